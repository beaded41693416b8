//! What follows an EtherType, and the headers that have one.

use super::super::ether_type::{
    BRIDGED_ETHERNET, CUSTOMER_TAG, E_TAG, EDSA, FABRIC_PATH, FIRST, IPV4, IPV6, MACSEC, METADATA, MPLS, NSH,
    PBB, PPP, PPPOE_SESSION, SERVICE_TAGS, VN_TAG,
};
use super::super::{Bytes, ip, u16_at, u32_at};
use super::{Next, Step, mpls, need, nsh};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::event::{Layer, Reason, Stop};
use crate::packet::tunnel::Tunnel;

const ETHERNET: usize = 14;

/// The header that `ether_type` names; `layer` is where an unknown one stops decoding.
pub(super) fn header<'a>(ether_type: u16, bytes: Bytes<'a>, tunnel: &mut Tunnel, layer: Layer) -> Step<'a> {
    match ether_type {
        0..FIRST => llc(ether_type, bytes).or_else(|stop| switch_tag(bytes).ok_or(stop)),
        CUSTOMER_TAG => tag(bytes, tunnel, false),
        _ if SERVICE_TAGS.contains(&ether_type) => tag(bytes, tunnel, true),
        _ if MPLS.contains(&ether_type) => mpls::labels(bytes, tunnel),
        PPPOE_SESSION => pppoe_session(bytes),
        PPP => Ok((Next::Ppp, bytes)),
        BRIDGED_ETHERNET => Ok((Next::Ethernet, bytes)),
        NSH => nsh::header(bytes, tunnel),
        PBB => backbone_service(bytes, tunnel),
        E_TAG => skip_tag(bytes, 6),
        // Behind two bytes with a tree and a hop count, a frame.
        FABRIC_PATH => need(bytes, 2).map(|_| (Next::Ethernet, bytes.after(2))),
        MACSEC => protected(bytes, layer),
        VN_TAG => skip_tag(bytes, 4),
        METADATA => metadata(bytes),
        EDSA => skip_tag(bytes, 6),
        _ => switch_tag(bytes).ok_or(Stop { layer, reason: Reason::Unknown(ether_type.into()) }),
    }
}

#[inline(always)]
pub(super) fn ethernet(bytes: Bytes<'_>) -> Step<'_> {
    let header = need(bytes, ETHERNET)?;
    Ok((Next::EtherType(u16_at(header, 12)), bytes.after(ETHERNET)))
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
        (snap, [0, 0, 0]) if snap == SNAP => Ok((Next::EtherType(kind), bytes.after(8))),
        // Two bytes of padding precede the frame.
        (snap, oui) if snap == SNAP && oui == BRIDGED && matches!(kind, 1 | 7) => {
            Ok((Next::Ethernet, bytes.after(10)))
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
    Ok((Next::EtherType(ether_type), bytes.after(4)))
}

/// What follows a session's header is as long as it says; the rest pads the frame.
fn pppoe_session(bytes: Bytes<'_>) -> Step<'_> {
    const HEADER: usize = 6;
    let length = u32::from(u16_at(need(bytes, HEADER)?, 4));
    let after = bytes.after(HEADER);
    Ok((Next::Ppp, Bytes { on_wire: after.on_wire.min(length), ..after }))
}

/// A tag of `length` bytes before the next EtherType.
fn skip_tag(bytes: Bytes<'_>, length: usize) -> Step<'_> {
    let header = need(bytes, length + 2)?;
    Ok((Next::EtherType(u16_at(header, length)), bytes.after(length + 2)))
}

/// Cisco MetaData: a version, the number of options, four bytes for each, then an EtherType.
fn metadata(bytes: Bytes<'_>) -> Step<'_> {
    let options = usize::from(need(bytes, 2)?[1]);
    skip_tag(bytes, 2 + 4 * options)
}

/// A switch's tag of four bytes (Marvell's DSA) in the place of the EtherType, of which `bytes` has the second half.
/// Nothing names it, so the EtherType after it and an IP packet have to follow: None if that is not certain.
fn switch_tag(bytes: Bytes<'_>) -> Option<(Next, Bytes<'_>)> {
    let ether_type = u16_at(bytes.captured.get(2..4)?, 0);
    let inside = bytes.after(4);
    let is_packet = matches!(ether_type, IPV4 | IPV6) && ip::is_certainly(inside);
    is_packet.then_some((Next::EtherType(ether_type), inside))
}

/// A frame that MACsec protects (IEEE 802.1AE), which may be readable all the same.
fn protected(bytes: Bytes<'_>, layer: Layer) -> Step<'_> {
    const HAS_CHANNEL: u8 = 0x20;
    const IS_ENCRYPTED_OR_CHANGED: u8 = 0x0c;
    const CHECK_VALUE: u32 = 16;
    let header = need(bytes, 2)?;
    let (control, short_length) = (header[0], header[1] & 0x3f);
    if control & IS_ENCRYPTED_OR_CHANGED != 0 {
        return Err(Stop { layer, reason: Reason::Unknown(MACSEC.into()) });
    }
    let tag = if control & HAS_CHANNEL == 0 { 6 } else { 14 };
    let (next, after) = skip_tag(bytes, tag)?;
    let length = match short_length {
        0 => after.on_wire.saturating_sub(CHECK_VALUE),
        // With the EtherType.
        short => after.on_wire.min(u32::from(short).saturating_sub(2)),
    };
    Ok((next, Bytes { on_wire: length, ..after }))
}

/// The I-tag of a provider backbone bridge, before the customer's frame.
fn backbone_service<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let service = u32_at(need(bytes, 4)?, 0) & 0x00ff_ffff;
    tunnel.enter(Encapsulation::Pbb);
    tunnel.vni = Some(service);
    tunnel.lane.enter_network(Encapsulation::Pbb, service.into());
    Ok((Next::Ethernet, bytes.after(4)))
}
