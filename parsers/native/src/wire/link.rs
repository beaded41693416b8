//! Link headers of captures.

use super::ether_type::{IPV4, IPV6, MPLS, PPPOE_SESSION};
use super::layers::{Next, PPP_ADDRESS};
use super::link_header::{Link, need, plain, stop};
use super::{Bytes, cooked_event, frame_relay, juniper, nflog, u16_at};
use crate::packet::event::{Event, Reason, Stop};
use crate::packet::link_type::LinkType;

/// A length instead of an EtherType.
const LLC: Next = Next::EtherType(0);

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
        LinkType::PppWithDirection | LinkType::CiscoHdlcWithDirection => {
            directed(bytes, ppp_or_cisco_hdlc(bytes, 1)?)
        }
        // Direction in the place of the address, and control.
        LinkType::PppWithDirectionAsAddress => directed(bytes, plain(Next::Ppp, 2)),
        LinkType::PppEthernet => Ok(plain(Next::EtherType(PPPOE_SESSION), 0)),
        LinkType::FrameRelay => frame_relay::decode(bytes, 0),
        LinkType::FrameRelayWithDirection => directed(bytes, frame_relay::decode(bytes, 1)?),
        LinkType::Slip => directed(bytes, plain(Next::Ip, 16)),
        LinkType::TokenRing => token_ring(bytes),
        LinkType::Fddi => Ok(plain(LLC, 13)),
        LinkType::AtmLlc => Ok(plain(LLC, 0)),
        LinkType::SunAtm => Ok(plain(LLC, 4)),
        LinkType::Mpls => Ok(plain(Next::EtherType(MPLS[0]), 0)),
        LinkType::Enc => Ok(plain(Next::Ip, 12)),
        LinkType::Pflog => {
            // The header's length leaves its padding out.
            let length = usize::from(need(bytes, 1)?[0]).next_multiple_of(4);
            Ok(plain(Next::Ip, length))
        }
        LinkType::NetAnalyzer => Ok(plain(Next::Ethernet, 4)),
        LinkType::Mpacket => Ok(plain(Next::Ethernet, 8)),
        LinkType::IpOverInfiniband => Ok(plain(Next::EtherType(u16_at(need(bytes, 44)?, 40)), 44)),
        LinkType::BroadcomTag | LinkType::DsaTag => typed_at(bytes, 16),
        LinkType::BroadcomTagBefore => typed_at(bytes, 16),
        LinkType::EtherTypeDsaTag => typed_at(bytes, 20),
        LinkType::Nflog => nflog::decode(bytes),
        LinkType::JuniperEthernet
        | LinkType::JuniperPppoe
        | LinkType::JuniperPpp
        | LinkType::JuniperFrameRelay
        | LinkType::JuniperHdlc
        | LinkType::JuniperServices => juniper::decode(link_type, bytes, other),
        LinkType::Sll => cooked(bytes, 14, 16, |header| u16_at(header, 0)),
        LinkType::Sll2 => cooked(bytes, 0, 20, |header| u16::from(header[10])),
        // Radio headers precede these frames: `wifi` decodes both.
        LinkType::Wifi | LinkType::WifiPrism | LinkType::WifiRadiotap | LinkType::WifiAvs => {
            Err(stop(Reason::UnknownLinkType(link_type.number())))
        }
        // `capture_header` has removed these.
        LinkType::Ppi | LinkType::Pktap | LinkType::Erf | LinkType::None => {
            Err(stop(Reason::UnknownLinkType(link_type.number())))
        }
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

/// A link header whose first byte is not 0 in what was sent.
fn directed(bytes: Bytes<'_>, link: Link) -> Result<Link, Stop> {
    let sent = need(bytes, 1)?[0] != 0;
    Ok(Link { event: Some(if sent { Event::Sent } else { Event::Received }), ..link })
}

/// An Ethernet frame whose EtherType is at `at`, after a tag.
fn typed_at(bytes: Bytes<'_>, at: usize) -> Result<Link, Stop> {
    Ok(plain(Next::EtherType(u16_at(need(bytes, at + 2)?, at)), at + 2))
}

/// Routing information may follow the addresses, as the first bit of the source says.
fn token_ring(bytes: Bytes<'_>) -> Result<Link, Stop> {
    const HEADER: usize = 14;
    let header = need(bytes, HEADER)?;
    let routing =
        if header[8] & 0x80 != 0 { usize::from(need(bytes, HEADER + 1)?[HEADER] & 0x1f) } else { 0 };
    Ok(plain(LLC, HEADER + routing))
}

/// Address families: 2 is IPv4 everywhere; IPv6's number depends on the system.
fn by_family(family: u16) -> Result<u16, Stop> {
    match family {
        2 => Ok(IPV4),
        10 | 24 | 28 | 30 => Ok(IPV6),
        other => Err(stop(Reason::Unknown(u32::from(other)))),
    }
}
