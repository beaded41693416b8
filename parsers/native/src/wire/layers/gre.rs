//! GRE (RFC 2784, RFC 2890) and PPTP's version of it (RFC 2637), NVGRE (RFC 7637), ERSPAN, EoIP.

use super::super::ether_type::BRIDGED_ETHERNET;
use super::super::{Bytes, u16_at, u32_at};
use super::{MALFORMED, Next, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::event::{Layer, Reason, Stop};
use crate::packet::tunnel::Tunnel;

const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const ACKNOWLEDGEMENT: u16 = 0x0080;
const VERSION: u16 = 7;
const ERSPAN_I_OR_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
/// MikroTik's Ethernet over IP: the bytes of PPTP's version, with a protocol of its own.
const EOIP: u16 = 0x6400;
/// WCCP puts four bytes of its own before a redirected packet, unless this is an IPv4 header.
const WCCP: u16 = 0x883e;

pub fn header<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let start = need(bytes, 4)?;
    let (flags, protocol) = (u16_at(start, 0), u16_at(start, 2));
    let length = |bit: u16| if flags & bit != 0 { 4 } else { 0 };
    if flags & VERSION > 1 || flags & ROUTING != 0 {
        return Err(MALFORMED);
    }
    let key_at = 4 + length(CHECKSUM);
    let end = key_at + length(KEY) + length(SEQUENCE) + length(ACKNOWLEDGEMENT);
    let header = need(bytes, end)?;
    let key = (flags & KEY != 0).then(|| u32_at(header, key_at));
    let after = bytes.after(end);
    if flags & VERSION == 1 && protocol == EOIP {
        // Length of the frame, and in the other byte order the tunnel, which is the same both ways.
        let tunnel_id = key.unwrap_or(0) as u16;
        tunnel.enter(Encapsulation::Eoip);
        tunnel.lane.enter_network(Encapsulation::Eoip, tunnel_id.swap_bytes().into());
        return Ok((Next::Ethernet, after));
    }
    if flags & VERSION == 1 {
        // Length of the payload, and the call.
        tunnel.enter(Encapsulation::Gre);
        tunnel.lane.enter_path(Encapsulation::Gre, (key.unwrap_or(0) & 0xffff).into());
        return Ok((Next::EtherType(protocol), after));
    }
    match (protocol, key) {
        (ERSPAN_I_OR_II | ERSPAN_III, _) => {
            tunnel.enter(Encapsulation::Erspan);
            mirrored(protocol, flags & SEQUENCE != 0, after)
        }
        (BRIDGED_ETHERNET, Some(key)) => {
            let subnet = key >> 8;
            tunnel.enter(Encapsulation::Nvgre);
            tunnel.vni = Some(subnet);
            tunnel.lane.enter_network(Encapsulation::Nvgre, subnet.into());
            Ok((Next::Ethernet, after))
        }
        _ => {
            tunnel.enter(Encapsulation::Gre);
            tunnel.gre_key = key.or(tunnel.gre_key);
            if let Some(key) = key {
                tunnel.lane.enter_path(Encapsulation::Gre, key.into());
            }
            if protocol == WCCP {
                let is_ip = after.captured.first().is_some_and(|first| first >> 4 == 4);
                return Ok((Next::Ip, if is_ip { after } else { after.after(4) }));
            }
            // No EtherType, and no length as in a frame either: 0 is a keepalive, 0xfe is OSI's network layer.
            if protocol < 0x0600 {
                return Err(Stop { layer: Layer::Tunnel, reason: Reason::Unknown(protocol.into()) });
            }
            Ok((Next::EtherType(protocol), after))
        }
    }
}

/// A mirrored frame after ERSPAN's header, which type I does not have.
fn mirrored(protocol: u16, has_sequence: bool, bytes: Bytes<'_>) -> Step<'_> {
    if protocol == ERSPAN_I_OR_II {
        let header = if has_sequence { 8 } else { 0 };
        return need(bytes, header).map(|_| (Next::Ethernet, bytes.after(header)));
    }
    let header = need(bytes, 12)?;
    let frame_kind = header[10] >> 2 & 0x1f;
    let has_more = header[11] & 1 != 0;
    let after = bytes.after(if has_more { 20 } else { 12 });
    match frame_kind {
        0 => Ok((Next::Ethernet, after)),
        2 => Ok((Next::Ip, after)),
        _ => Err(Stop { layer: Layer::Tunnel, reason: Reason::Unknown(ERSPAN_III.into()) }),
    }
}
