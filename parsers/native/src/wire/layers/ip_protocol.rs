//! Encapsulations that follow an IP header.

use super::super::ether_type::{IPV4, IPV6};
use super::super::{Bytes, u16_at};
use super::{Next, Step, gre, ipsec, l2tp, mpls, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::event::Network;
use crate::packet::tunnel::Tunnel;

/// The header of a protocol in the packet `around` it; None if it carries no packets that could be read.
pub fn header<'a>(protocol: u8, bytes: Bytes<'a>, around: &Network, tunnel: &mut Tunnel) -> Option<Step<'a>> {
    Some(match protocol {
        // 94 came before 4.
        4 | 94 => ip_in_ip(IPV4, bytes, tunnel),
        41 => ip_in_ip(IPV6, bytes, tunnel),
        47 => gre::header(bytes, tunnel),
        50 => return ipsec::unencrypted(bytes, &around.endpoints, tunnel).map(Ok),
        51 => ipsec::authenticated(bytes, tunnel),
        97 => ether_ip(bytes, tunnel),
        115 => l2tp::over_ip(bytes, around.fragment.is_some(), tunnel).ok().map(Ok)?,
        137 => mpls::labels(bytes, tunnel),
        _ => return None,
    })
}

fn ip_in_ip<'a>(ether_type: u16, bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    tunnel.enter(Encapsulation::Ipip);
    Ok((Next::EtherType(ether_type), bytes))
}

fn ether_ip<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    const VERSION_3: u16 = 0x3000;
    if u16_at(need(bytes, 2)?, 0) != VERSION_3 {
        return Err(super::MALFORMED);
    }
    tunnel.enter(Encapsulation::EtherIp);
    Ok((Next::Ethernet, bytes.after(2)))
}
