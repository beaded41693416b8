//! Link headers of captures.

use super::layers::{IPV4, IPV6, Next, PPP_ADDRESS};
use super::{Bytes, cooked_event, u16_at};
use crate::packet::event::{Event, Layer, Reason, Stop};
use crate::packet::link_type::LinkType;

pub struct Link {
    pub next: Next,
    /// Bytes before it.
    pub header: usize,
    /// Direction, where the link header has one.
    pub event: Option<Event>,
}

/// What follows a link header of `link_type`.
#[inline(always)]
pub fn decode(link_type: LinkType, bytes: Bytes<'_>) -> Result<Link, Stop> {
    if link_type == LinkType::Ethernet {
        let header = need(bytes, 14)?;
        return Ok(plain(Next::EtherType(u16_at(header, 12)), 14));
    }
    other(link_type, bytes)
}

fn other(link_type: LinkType, bytes: Bytes<'_>) -> Result<Link, Stop> {
    match link_type {
        LinkType::Ethernet => decode(link_type, bytes),
        LinkType::Raw => Ok(plain(Next::Ip, 0)),
        LinkType::Ipv4 => Ok(plain(Next::EtherType(IPV4), 0)),
        LinkType::Ipv6 => Ok(plain(Next::EtherType(IPV6), 0)),
        LinkType::Null | LinkType::Loop => loopback(bytes),
        LinkType::Ppp | LinkType::PppHdlc | LinkType::CiscoHdlc => ppp_or_cisco_hdlc(bytes, 0),
        LinkType::PppWithDirection => {
            let sent = need(bytes, 1)?[0] != 0;
            let mut link = ppp_or_cisco_hdlc(bytes, 1)?;
            link.event = Some(if sent { Event::Sent } else { Event::Received });
            Ok(link)
        }
        LinkType::Sll => cooked(bytes, 14, 16, |header| u16_at(header, 0)),
        LinkType::Sll2 => cooked(bytes, 0, 20, |header| u16::from(header[10])),
        // Radio headers precede these frames: `wifi` decodes both.
        LinkType::Wifi | LinkType::WifiPrism | LinkType::WifiRadiotap | LinkType::WifiAvs => {
            Err(stop(Reason::UnknownLinkType(link_type.number())))
        }
        LinkType::None => Err(stop(Reason::UnknownLinkType(link_type.number()))),
        LinkType::Unknown(number) => Err(stop(Reason::UnknownLinkType(number))),
    }
}

/// Four bytes of address family. Null uses the writer's byte order; families are small numbers, so both
/// orders are tried. Writers that name their captures so also put PPP there, or end with an EtherType as
/// Cisco HDLC does.
fn loopback(bytes: Bytes<'_>) -> Result<Link, Stop> {
    let header = need(bytes, 4)?;
    if header[..2] == PPP_ADDRESS {
        return Ok(plain(Next::Ppp, 0));
    }
    let family = by_family(u16::from(header[0]) | u16::from(header[3]));
    match (family, u16_at(header, 2)) {
        (Err(_), ether_type @ (IPV4 | IPV6)) => Ok(plain(Next::EtherType(ether_type), 4)),
        (family, _) => Ok(plain(Next::EtherType(family?), 4)),
    }
}

/// Cisco HDLC begins with a unicast or multicast address, then control 0, then an EtherType.
fn ppp_or_cisco_hdlc(bytes: Bytes<'_>, at: usize) -> Result<Link, Stop> {
    match *need(bytes, at + 2)? {
        [.., 0x0f | 0x8f, 0] => {
            let ether_type = u16_at(need(bytes, at + 4)?, at + 2);
            Ok(plain(Next::EtherType(ether_type), at + 4))
        }
        _ => Ok(plain(Next::Ppp, at)),
    }
}

fn cooked(
    bytes: Bytes<'_>,
    protocol_at: usize,
    length: usize,
    packet_type: impl Fn(&[u8]) -> u16,
) -> Result<Link, Stop> {
    let header = need(bytes, length)?;
    let next = Next::EtherType(u16_at(header, protocol_at));
    Ok(Link { next, header: length, event: cooked_event(packet_type(header)) })
}

fn plain(next: Next, header: usize) -> Link {
    Link { next, header, event: None }
}

/// Address families: 2 is IPv4 everywhere; IPv6's number depends on the system.
fn by_family(family: u16) -> Result<u16, Stop> {
    match family {
        2 => Ok(IPV4),
        10 | 24 | 28 | 30 => Ok(IPV6),
        other => Err(stop(Reason::Unknown(u32::from(other)))),
    }
}

/// The first `n` bytes, or the reason why they are missing.
#[inline(always)]
pub fn need(bytes: Bytes<'_>, n: usize) -> Result<&[u8], Stop> {
    bytes.captured.get(..n).ok_or_else(|| bytes.shortage(n, Layer::Link))
}

pub fn stop(reason: Reason) -> Stop {
    Stop { layer: Layer::Link, reason }
}
