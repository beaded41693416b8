//! The network service header (RFC 8300).

use super::super::ether_type::{IPV4, IPV6};
use super::super::{Bytes, u32_at};
use super::{MALFORMED, Next, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::tunnel::Tunnel;

const SMALLEST: usize = 8;

pub fn header<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let word = u32_at(need(bytes, SMALLEST)?, 0);
    let length = (word >> 16 & 0x3f) as usize * 4;
    if word >> 30 != 0 || length < SMALLEST {
        return Err(MALFORMED);
    }
    need(bytes, length)?;
    let next = match word & 0xff {
        1 => Next::EtherType(IPV4),
        2 => Next::EtherType(IPV6),
        3 => Next::Ethernet,
        4 => Next::EtherType(0x894f),
        5 => Next::EtherType(0x8847),
        _ => return Err(MALFORMED),
    };
    tunnel.enter(Encapsulation::Nsh);
    Ok((next, bytes.after(length)))
}
