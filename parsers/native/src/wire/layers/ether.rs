//! EtherTypes, and the headers of links that they follow.

use super::super::{Bytes, u16_at, u32_at};
use super::{Next, Step, mpls, need, nsh};
use crate::packet::event::{Layer, Reason, Stop};
use crate::packet::tunnel::{Encapsulation, Tunnel};

pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;
pub const BRIDGED_ETHERNET: u16 = 0x6558;
/// 802.1Q, 802.1ad and its predecessors.
const CUSTOMER_TAG: u16 = 0x8100;
const SERVICE_TAGS: [u16; 3] = [0x88a8, 0x9100, 0x9200];
const PPPOE_SESSION: u16 = 0x8864;
const PPP: u16 = 0x880b;
const MPLS: [u16; 2] = [0x8847, 0x8848];
const NSH: u16 = 0x894f;
const PBB: u16 = 0x88e7;
/// Port extension, IEEE 802.1BR, and Cisco's VN-tag before it.
const E_TAG: u16 = 0x893f;
const VN_TAG: u16 = 0x8926;
/// Below this the field is an 802.3 length.
const FIRST_ETHER_TYPE: u16 = 0x0600;
const ETHERNET: usize = 14;

/// The header that `ether_type` names; `layer` is where an unknown one stops decoding.
pub(super) fn header<'a>(ether_type: u16, bytes: Bytes<'a>, tunnel: &mut Tunnel, layer: Layer) -> Step<'a> {
    match ether_type {
        0..FIRST_ETHER_TYPE => llc(ether_type, bytes),
        CUSTOMER_TAG => tag(bytes, tunnel, false),
        _ if SERVICE_TAGS.contains(&ether_type) => tag(bytes, tunnel, true),
        _ if MPLS.contains(&ether_type) => mpls::labels(bytes, tunnel),
        PPPOE_SESSION => need(bytes, 6).map(|_| (Next::Ppp, bytes.behind(6))),
        PPP => Ok((Next::Ppp, bytes)),
        BRIDGED_ETHERNET => Ok((Next::Ethernet, bytes)),
        NSH => nsh::header(bytes, tunnel),
        PBB => backbone_service(bytes, tunnel),
        E_TAG => skip_tag(bytes, 6),
        VN_TAG => skip_tag(bytes, 4),
        _ => Err(Stop { layer, reason: Reason::Unknown(ether_type.into()) }),
    }
}

#[inline(always)]
pub(super) fn ethernet(bytes: Bytes<'_>) -> Step<'_> {
    let header = need(bytes, ETHERNET)?;
    Ok((Next::EtherType(u16_at(header, 12)), bytes.behind(ETHERNET)))
}

/// IP of either version; `layer` is where anything else stops decoding.
pub(super) fn ip(bytes: Bytes<'_>, layer: Layer) -> Step<'_> {
    match bytes.captured.first().map(|first| first >> 4) {
        Some(4) => Ok((Next::EtherType(IPV4), bytes)),
        Some(6) => Ok((Next::EtherType(IPV6), bytes)),
        Some(_) => Err(Stop { layer, reason: Reason::Malformed }),
        None => Err(bytes.shortage(1, layer)),
    }
}

/// LLC and SNAP, with an EtherType (RFC 1042) or a bridged frame (RFC 2684), in a frame of `length`.
pub(in super::super) fn llc(length: u16, bytes: Bytes<'_>) -> Step<'_> {
    const SNAP: [u8; 3] = [0xaa, 0xaa, 3];
    const BRIDGED: [u8; 3] = [0x00, 0x80, 0xc2];
    let unknown = Stop { layer: Layer::Link, reason: Reason::Unknown(length.into()) };
    let header = bytes.captured.get(..8).ok_or_else(|| bytes.shortage(8, Layer::Link))?;
    let kind = u16_at(header, 6);
    match (&header[..3], &header[3..6]) {
        (snap, [0, 0, 0]) if snap == SNAP => Ok((Next::EtherType(kind), bytes.behind(8))),
        // Two bytes of padding precede the frame.
        (snap, oui) if snap == SNAP && oui == BRIDGED && matches!(kind, 1 | 7) => {
            Ok((Next::Ethernet, bytes.behind(10)))
        }
        _ => Err(unknown),
    }
}

/// A VLAN tag. A provider's separates networks: a service tag, or the outer one of two.
fn tag<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel, is_service: bool) -> Step<'a> {
    let header = bytes.captured.get(..4).ok_or_else(|| bytes.shortage(4, Layer::Link))?;
    let (vlan, ether_type) = (u16_at(header, 0) & 0x0fff, u16_at(header, 2));
    tunnel.vlans.push(vlan.into());
    if is_service || ether_type == CUSTOMER_TAG {
        tunnel.lane.enter_vlan(vlan);
    }
    Ok((Next::EtherType(ether_type), bytes.behind(4)))
}

/// A tag of `length` bytes before the next EtherType.
fn skip_tag(bytes: Bytes<'_>, length: usize) -> Step<'_> {
    let header = need(bytes, length + 2)?;
    Ok((Next::EtherType(u16_at(header, length)), bytes.behind(length + 2)))
}

/// The I-tag of a provider backbone bridge, before the customer's frame.
fn backbone_service<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let service = u32_at(need(bytes, 4)?, 0) & 0x00ff_ffff;
    tunnel.enter(Encapsulation::Pbb);
    tunnel.vni = Some(service);
    tunnel.lane.enter_network(Encapsulation::Pbb, service.into());
    Ok((Next::Ethernet, bytes.behind(4)))
}

/// Whether bytes without a type before them are an Ethernet frame, by its EtherType and what follows.
pub(super) fn is_frame(bytes: Bytes<'_>) -> bool {
    let Some(header) = bytes.captured.first_chunk::<{ ETHERNET + 1 }>() else { return false };
    let version = header[ETHERNET] >> 4;
    match u16_at(header, 12) {
        IPV4 => version == 4,
        IPV6 => version == 6,
        0x0806 | CUSTOMER_TAG | PPPOE_SESSION | 0x8863 | 0x88cc => true,
        other => SERVICE_TAGS.contains(&other) || MPLS.contains(&other) || is_spanning_tree(header, other),
    }
}

/// A bridge's message: an 802.3 length, and LLC's number of the protocol.
fn is_spanning_tree(header: &[u8; ETHERNET + 1], length: u16) -> bool {
    (3..FIRST_ETHER_TYPE).contains(&length) && header[ETHERNET] == 0x42
}
