//! Frame Relay (RFC 2427), and Cisco's encapsulation of it.

use super::ether_type::{IPV4, IPV6};
use super::layers::Next;
use super::link_header::{Link, need, plain, stop};
use super::{Bytes, u16_at};
use crate::packet::event::{Reason, Stop};

/// Bit of the last byte of an address.
const LAST: u8 = 1;
/// Control byte of unnumbered information.
const UNNUMBERED: u8 = 3;
/// Network layer protocol identifiers.
const IPV4_ID: u8 = 0xcc;
const IPV6_ID: u8 = 0x8e;
const SNAP: u8 = 0x80;
const PPP: u8 = 0xcf;

pub fn decode(bytes: Bytes<'_>, start: usize) -> Result<Link, Stop> {
    let mut at = start + 2;
    while need(bytes, at)?[at - 1] & LAST == 0 {
        at += 1;
        if at > start + 4 {
            return Err(stop(Reason::Malformed));
        }
    }
    let header = need(bytes, at + 2)?;
    if header[at] != UNNUMBERED {
        return Ok(plain(Next::EtherType(u16_at(header, at)), at + 2));
    }
    at += 1;
    if header[at] == 0 {
        // Padding to an even length.
        at += 1;
    }
    match need(bytes, at + 1)?[at] {
        IPV4_ID => Ok(plain(Next::EtherType(IPV4), at + 1)),
        IPV6_ID => Ok(plain(Next::EtherType(IPV6), at + 1)),
        PPP => Ok(plain(Next::Ppp, at + 1)),
        SNAP => snap(bytes, at + 1),
        other => Err(stop(Reason::Unknown(other.into()))),
    }
}

fn snap(bytes: Bytes<'_>, at: usize) -> Result<Link, Stop> {
    let header = need(bytes, at + 5)?;
    let kind = u16_at(header, at + 3);
    match (&header[at..at + 3], kind) {
        ([0, 0, 0], _) => Ok(plain(Next::EtherType(kind), at + 5)),
        // A bridged frame, with or without its check sequence.
        ([0, 0x80, 0xc2], 1 | 7) => Ok(plain(Next::Ethernet, at + 5)),
        _ => Err(stop(Reason::Unknown(kind.into()))),
    }
}
