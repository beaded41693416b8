//! What bins and samples need of a packet, whatever holds it.

use super::event::{Network, Packet};
use super::plain::PlainSegment;

/// A packet as bins and samples see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Captured {
    /// Number in the source, from 1.
    pub number: u64,
    pub time_ns: i64,
    pub wire_bytes: u32,
    pub payload_bytes: u32,
    /// Codepoint of its IP header.
    pub ecn: u8,
}

impl Captured {
    pub fn of(packet: &Packet, network: &Network) -> Self {
        let payload_bytes = network.payload_bytes.unwrap_or(0);
        let &Packet { number, time_ns, wire_bytes, .. } = packet;
        Self { number, time_ns, wire_bytes, payload_bytes, ecn: network.ecn }
    }

    #[inline(always)]
    pub fn plain(segment: &PlainSegment) -> Self {
        let &PlainSegment { number, time_ns, wire_bytes, payload, ip, .. } = segment;
        Self { number, time_ns, wire_bytes, payload_bytes: payload, ecn: ip.ecn }
    }
}
