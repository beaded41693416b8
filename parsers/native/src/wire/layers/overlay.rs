//! Virtual networks over UDP: VXLAN (RFC 7348) and its generic extension, Geneve (RFC 8926).

use super::super::ether_type::{IPV4, IPV6};
use super::super::{Bytes, u16_at, u32_at};
use super::frame_shape::is_frame;
use super::{MALFORMED, Next, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::event::{Layer, Reason, Stop};
use crate::packet::tunnel::Tunnel;

const HEADER: usize = 8;
/// Flag: the network identifier is valid.
const HAS_NETWORK: u8 = 0x08;
/// Flag of the extension: the next protocol is valid.
const HAS_PROTOCOL: u8 = 0x04;

pub fn vxlan<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let header = need(bytes, HEADER)?;
    // Reserved fields are to be ignored, but without a frame after them it is something else.
    let is_plain = header[0] == HAS_NETWORK && header[7] == 0;
    if header[0] & HAS_NETWORK == 0 || !is_plain && !is_frame(bytes.after(HEADER)) {
        return Err(MALFORMED);
    }
    enter(Encapsulation::Vxlan, header, tunnel);
    Ok((Next::Ethernet, bytes.after(HEADER)))
}

pub fn vxlan_gpe<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let header = need(bytes, HEADER)?;
    if header[0] & HAS_NETWORK == 0 || header[0] >> 6 != 0 {
        return Err(MALFORMED);
    }
    enter(Encapsulation::VxlanGpe, header, tunnel);
    let next = match (header[0] & HAS_PROTOCOL, header[3]) {
        // Some senders name the protocol without the flag.
        (0, 0) | (_, 3) => Next::Ethernet,
        (_, 1) => Next::EtherType(IPV4),
        (_, 2) => Next::EtherType(IPV6),
        (_, 4) => Next::EtherType(0x894f),
        (_, 5) => Next::EtherType(0x8847),
        _ => return Err(MALFORMED),
    };
    Ok((next, bytes.after(HEADER)))
}

pub fn geneve<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    /// Flag: the packet is for the tunnel's end itself.
    const CONTROL: u8 = 0x80;
    let header = need(bytes, HEADER)?;
    if header[0] >> 6 != 0 || header[1] & 0x3f != 0 || header[7] != 0 {
        return Err(MALFORMED);
    }
    let ether_type = u16_at(header, 2);
    let options = usize::from(header[0] & 0x3f) * 4;
    need(bytes, HEADER + options)?;
    if header[1] & CONTROL != 0 && ether_type == 0 {
        return Err(Stop { layer: Layer::Tunnel, reason: Reason::Unknown(0) });
    }
    enter(Encapsulation::Geneve, header, tunnel);
    Ok((Next::EtherType(ether_type), bytes.after(HEADER + options)))
}

/// All three have their network identifier at the same place.
fn enter(kind: Encapsulation, header: &[u8], tunnel: &mut Tunnel) {
    let network = u32_at(header, 4) >> 8;
    tunnel.enter(kind);
    tunnel.vni = Some(network);
    tunnel.lane.enter_network(kind, network.into());
}
