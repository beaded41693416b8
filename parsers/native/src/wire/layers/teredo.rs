//! Teredo: IPv6 over UDP (RFC 4380).

use super::super::ether_type::IPV6;
use super::super::{Bytes, u16_at};
use super::{MALFORMED, Next, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::tunnel::Tunnel;

const AUTHENTICATION: u16 = 1;
const ORIGIN: u16 = 0;
const IPV6_HEADER: usize = 40;

pub fn header<'a>(mut bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let first = need(bytes, 4)?;
    if u16_at(first, 0) == AUTHENTICATION {
        // Identifier and value, then a nonce and a byte of confirmation.
        let length = 4 + usize::from(first[2]) + usize::from(first[3]) + 9;
        need(bytes, length)?;
        bytes = bytes.after(length);
    }
    if u16_at(need(bytes, 2)?, 0) == ORIGIN {
        bytes = bytes.after(8);
    }
    let header = need(bytes, IPV6_HEADER)?;
    // Behind it there may be a trailer.
    let fits = usize::from(u16_at(header, 4)) + IPV6_HEADER <= bytes.on_wire as usize;
    if header[0] >> 4 != 6 || !fits {
        return Err(MALFORMED);
    }
    tunnel.enter(Encapsulation::Teredo);
    Ok((Next::EtherType(IPV6), bytes))
}
