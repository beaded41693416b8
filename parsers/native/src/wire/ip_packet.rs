//! An IP packet: its headers, and the transport behind them.

use super::ip::{DCCP, ICMP, ICMPV6, TCP, UDP};
use super::{Bytes, dccp, icmp, ip, tcp, udp};
use crate::packet::event::{Family, Layer, Network, Reason, Stop, Transport};
use crate::packet::extras::PacketExtras;

/// Decode an IP packet of type `ether_type` into `network`. False if there is no IP header.
#[inline(always)]
pub fn decode(
    ether_type: u16,
    bytes: Bytes<'_>,
    network: &mut Network,
    extras: &mut PacketExtras,
) -> (bool, Option<Stop>) {
    match ip::headers(ether_type, bytes, network) {
        Ok((header, payload)) => (true, transport(bytes.behind(header), payload, network, extras)),
        // Addresses are set once the fixed header is read; the failure may be behind it.
        Err(stop) => (network.endpoints.src != 0 || network.endpoints.dst != 0, Some(stop)),
    }
}

#[inline(always)]
fn transport(
    bytes: Bytes<'_>,
    payload: u32,
    network: &mut Network,
    extras: &mut PacketExtras,
) -> Option<Stop> {
    let bytes = Bytes { captured: bytes.captured, on_wire: payload };
    if network.fragment.is_some_and(|fragment| fragment.offset > 0) {
        network.transport = Transport::LaterFragment;
        network.payload_bytes = Some(payload);
        return None;
    }
    match network.endpoints.protocol {
        TCP => tcp::decode(bytes, network, extras),
        UDP => udp::decode(bytes, network, extras),
        DCCP => dccp::decode(bytes, network, extras),
        ICMP | ICMPV6 => icmp::decode(bytes, network, extras),
        other => Some(Stop {
            layer: match network.endpoints.family {
                Family::V4 => Layer::Ipv4,
                _ => Layer::Ipv6,
            },
            reason: Reason::Unknown(u32::from(other)),
        }),
    }
}
