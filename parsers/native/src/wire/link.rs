//! Link layers: the offset of the IP header, and its version.

use super::{Bytes, cooked_event, u16_at};
use crate::packet::event::{Event, Layer, Reason, Stop};
use crate::packet::link_type::LinkType;

pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;
const PPPOE_SESSION: u16 = 0x8864;
/// Address and control (RFC 1662 section 3.1).
const PPP_ADDRESS: [u8; 2] = [0xff, 0x03];
/// Below this the field is an 802.3 length.
const FIRST_ETHER_TYPE: u16 = 0x0600;
/// The most stacked tags.
const MAX_TAGS: usize = 8;

pub struct Link {
    /// EtherType of what follows.
    pub ether_type: u16,
    /// Bytes before it.
    pub header: usize,
    /// Direction, where the link header has one.
    pub event: Option<Event>,
}

/// Find the network header behind a link header of `link_type`.
#[inline(always)]
pub fn decode(link_type: LinkType, bytes: Bytes<'_>) -> Result<Link, Stop> {
    if link_type == LinkType::Ethernet {
        let header = need(bytes, 14)?;
        let ether_type = u16_at(header, 12);
        if ether_type == IPV4 {
            return Ok(plain(IPV4, 14));
        }
        return tagged(bytes, ether_type, 14).map(|(ether_type, at)| plain(ether_type, at));
    }
    other(link_type, bytes)
}

fn other(link_type: LinkType, bytes: Bytes<'_>) -> Result<Link, Stop> {
    match link_type {
        LinkType::Ethernet => decode(link_type, bytes),
        LinkType::Raw => Ok(plain(by_version(need(bytes, 1)?[0])?, 0)),
        LinkType::Ipv4 => Ok(plain(IPV4, 0)),
        LinkType::Ipv6 => Ok(plain(IPV6, 0)),
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
        return ppp(bytes, 0);
    }
    let family = by_family(u16::from(header[0]) | u16::from(header[3]));
    match (family, u16_at(header, 2)) {
        (Err(_), ether_type @ (IPV4 | IPV6)) => Ok(plain(ether_type, 4)),
        (family, _) => Ok(plain(family?, 4)),
    }
}

/// Cisco HDLC begins with a unicast or multicast address, then control 0, then an EtherType.
fn ppp_or_cisco_hdlc(bytes: Bytes<'_>, at: usize) -> Result<Link, Stop> {
    match *need(bytes, at + 2)? {
        [.., 0x0f | 0x8f, 0] => {
            let ether_type = u16_at(need(bytes, at + 4)?, at + 2);
            tagged(bytes, ether_type, at + 4).map(|(ether_type, at)| plain(ether_type, at))
        }
        _ => ppp(bytes, at),
    }
}

fn cooked(
    bytes: Bytes<'_>,
    protocol_at: usize,
    length: usize,
    packet_type: impl Fn(&[u8]) -> u16,
) -> Result<Link, Stop> {
    let header = need(bytes, length)?;
    let (ether_type, at) = tagged(bytes, u16_at(header, protocol_at), length)?;
    Ok(Link { ether_type, header: at, event: cooked_event(packet_type(header)) })
}

/// Skip VLAN tags, LLC/SNAP and PPPoE from `at` on, where the type is `ether_type`.
pub fn tagged(bytes: Bytes<'_>, mut ether_type: u16, mut at: usize) -> Result<(u16, usize), Stop> {
    for _ in 0..MAX_TAGS {
        match ether_type {
            // 802.1Q, 802.1ad and its predecessors.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                ether_type = u16_at(need(bytes, at + 4)?, at + 2);
                at += 4;
            }
            PPPOE_SESSION => {
                let link = ppp(bytes, at + 6)?;
                return Ok((link.ether_type, link.header));
            }
            0..FIRST_ETHER_TYPE => {
                let snap = need(bytes, at + 8)?;
                if snap[at..at + 6] != [0xaa, 0xaa, 3, 0, 0, 0] {
                    return Err(stop(Reason::Unknown(u32::from(ether_type))));
                }
                ether_type = u16_at(snap, at + 6);
                at += 8;
            }
            _ => return Ok((ether_type, at)),
        }
    }
    Err(stop(Reason::Malformed))
}

/// PPP (RFC 1661): address and control may be omitted, and so may the protocol's high byte. ns-3
/// writes neither address nor control.
fn ppp(bytes: Bytes<'_>, at: usize) -> Result<Link, Stop> {
    let header = need(bytes, at + 2)?;
    let at = if header[at..at + 2] == PPP_ADDRESS { at + 2 } else { at };
    let first = need(bytes, at + 1)?[at];
    let (protocol, header) =
        if first & 1 == 1 { (u16::from(first), at + 1) } else { (u16_at(need(bytes, at + 2)?, at), at + 2) };
    match protocol {
        0x0021 => Ok(plain(IPV4, header)),
        0x0057 => Ok(plain(IPV6, header)),
        other => Err(stop(Reason::Unknown(u32::from(other)))),
    }
}

fn plain(ether_type: u16, header: usize) -> Link {
    Link { ether_type, header, event: None }
}

fn by_version(first: u8) -> Result<u16, Stop> {
    match first >> 4 {
        4 => Ok(IPV4),
        6 => Ok(IPV6),
        _ => Err(stop(Reason::Malformed)),
    }
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
