//! What a client sends first: the ClientHello of TLS, over TCP and in QUIC, or a request of HTTP/1. It names the server
//! that the client wants.

pub mod client_hello;
pub mod first_bytes;
mod http;
pub mod pieces;
mod records;

use crate::packet::opening::Opening;

/// What bytes that begin a stream are to a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reading<T> {
    Whole(T),
    /// More bytes are needed; whether these are of no other protocol.
    Part {
        is_certain: bool,
    },
    /// They break the format.
    Damaged,
    OtherProtocol,
}

impl Reading<Opening> {
    fn of(stream: &[u8]) -> Self {
        match stream.first() {
            Some(&records::HANDSHAKE) => records::first_message(stream).map(Opening::Hello),
            _ => http::first_request(stream).map(Opening::Request),
        }
    }
}

impl<T> Reading<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Whole(value) => Reading::Whole(with(value)),
            Self::Part { is_certain } => Reading::Part { is_certain },
            Self::Damaged => Reading::Damaged,
            Self::OtherProtocol => Reading::OtherProtocol,
        }
    }
}

/// Bytes as text, with `?` for those that are not printable ASCII.
fn printable(bytes: &[u8]) -> String {
    let letter = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
    bytes.iter().take(MOST_LETTERS).map(letter).collect()
}

/// A name of DNS has no more (RFC 1035 section 2.3.4).
const MOST_LETTERS: usize = 255;

#[cfg(test)]
mod tests;
