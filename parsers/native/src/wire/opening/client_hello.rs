//! The first message of TLS (RFC 8446 section 4.1.2), in which a client names the server and the protocols that it
//! speaks.

use super::super::rest::Rest;
use super::printable;
use crate::packet::opening::ClientHello;

const CLIENT_HELLO: usize = 1;
const SERVER_NAME: usize = 0;
const ALPN: usize = 16;
/// Of Encrypted Client Hello (RFC 9849 section 5).
const ECH: usize = 0xfe0d;
/// Bytes of a message's type and length.
const HEAD: usize = 4;

/// Bytes of the message that a handshake begins with; None if these are too few, and an error if it is another one.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, NoClientHello> {
    let mut rest = Rest(bytes);
    match rest.integer(1) {
        None => Ok(None),
        Some(CLIENT_HELLO) => Ok(rest.integer(3).map(|length| length + HEAD)),
        Some(_) => Err(NoClientHello),
    }
}

/// The handshake begins with another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoClientHello;

/// Read a whole message.
pub fn client_hello(bytes: &[u8]) -> Option<ClientHello> {
    let mut rest = Rest(bytes.get(HEAD..)?);
    // Version and random number.
    rest.take(2 + 32)?;
    rest.behind_length()?;
    let suites = rest.integer(2)?;
    rest.take(suites)?;
    rest.behind_length()?;
    let mut hello = ClientHello::default();
    // RFC 5246 section 7.4.1.2: a message may end here.
    if rest.0.is_empty() {
        return Some(hello);
    }
    let length = rest.integer(2)?;
    let mut extensions = Rest(rest.take(length)?);
    while !extensions.0.is_empty() {
        let (kind, length) = (extensions.integer(2)?, extensions.integer(2)?);
        let data = extensions.take(length)?;
        match kind {
            SERVER_NAME => hello.server_name = server_name(data),
            ALPN => hello.protocols = protocols(data),
            ECH => hello.has_ech = true,
            _ => {}
        }
    }
    Some(hello)
}

fn server_name(data: &[u8]) -> Option<String> {
    let mut rest = Rest(data);
    let _list = rest.integer(2)?;
    // The only type of names is 0, that of hosts.
    rest.integer(1).filter(|kind| *kind == 0)?;
    let length = rest.integer(2)?;
    rest.take(length).map(printable).filter(|name| !name.is_empty())
}

fn protocols(data: &[u8]) -> Option<String> {
    let mut rest = Rest(data);
    let length = rest.integer(2)?;
    let mut rest = Rest(rest.take(length)?);
    let mut names = Vec::new();
    while let Some(name) = rest.behind_length() {
        names.push(name);
    }
    Some(printable(&names.join(&b','))).filter(|names| !names.is_empty())
}
