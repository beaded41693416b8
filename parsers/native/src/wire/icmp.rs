//! ICMP errors (RFC 792, RFC 4443), which quote the packet that caused them.

use super::{Bytes, ip, u16_at};
use crate::packet::event::{Family, Layer, Network, Reason, Stop, Transport};
use crate::packet::extras::{PacketExtras, PayloadHead};
use crate::wire::ether_type::{IPV4, IPV6};

const HEADER: usize = 8;

/// An echo request or its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    pub is_reply: bool,
    pub identifier: u16,
    pub sequence: u16,
    /// The beginning of the data, which a reply returns: most programs write the time there. None if there is less.
    pub data: Option<u64>,
}

impl Echo {
    /// Read a message of `protocol`, ICMP or ICMPv6.
    pub fn of(protocol: u8, message: &[u8]) -> Option<Self> {
        let header = message.first_chunk::<HEADER>()?;
        let is_reply = match (protocol, header[0], header[1]) {
            (1, 8, 0) | (58, 128, 0) => false,
            (1, 0, 0) | (58, 129, 0) => true,
            _ => return None,
        };
        let data = message[HEADER..].first_chunk().map(|data| u64::from_be_bytes(*data));
        Some(Self { is_reply, identifier: u16_at(header, 4), sequence: u16_at(header, 6), data })
    }
}

/// Decode an ICMP error: `network` gets the five-tuple of the quoted packet. Other messages are not
/// decoded.
pub(super) fn decode(bytes: Bytes<'_>, network: &mut Network, extras: &mut PacketExtras) -> Option<Stop> {
    let Some(header) = bytes.captured.first_chunk::<HEADER>() else {
        return Some(bytes.shortage(HEADER, Layer::Icmp));
    };
    let (is_error, ether_type, layer) = match network.endpoints.family {
        // Unreachable, source quench, redirect, time exceeded, parameter problem.
        Family::V4 => (matches!(header[0], 3 | 4 | 5 | 11 | 12), IPV4, Layer::Ipv4),
        // Unreachable, too big, time exceeded, parameter problem.
        _ => (matches!(header[0], 1..=4), IPV6, Layer::Ipv6),
    };
    if !is_error {
        if Echo::of(network.endpoints.protocol, header).is_some() {
            network.head = extras.add_head(PayloadHead::new(bytes.captured));
        }
        let reason = Reason::Unknown(u32::from(network.endpoints.protocol));
        return Some(Stop { layer, reason });
    }
    let quote = bytes.after(HEADER);
    let mut quoted = Network::default();
    let Ok((header, _)) = ip::headers(ether_type, quote, &mut quoted) else {
        return Some(Stop { layer: Layer::Icmp, reason: Reason::Malformed });
    };
    network.endpoints = quoted.endpoints;
    network.transport = Transport::IcmpError;
    let quoted_transport = quote.after(header).captured;
    network.head = extras.add_head(PayloadHead::new(quoted_transport));
    // RFC 792 promises eight bytes of the transport header: enough for the ports, not for more.
    if let Some(ports) = quoted_transport.first_chunk::<4>()
        && matches!(quoted.endpoints.protocol, ip::TCP | ip::UDP | ip::DCCP)
    {
        network.endpoints.src_port = u16_at(ports, 0);
        network.endpoints.dst_port = u16_at(ports, 2);
        network.has_ports = true;
    }
    None
}
