//! Bytes of header in the packets of one-way TCP agents, from the first packet of each flow.
//!
//! An agent begins with a SYN of 40 bytes, and adds these to each packet of data; without SYN, its
//! first packet is `packetSize_` long and only later ones have a header. Vegas neither sends a SYN
//! nor adds a header.

use std::collections::HashMap;

use super::line_packet::{LinePacket, PacketKind, TCP_HEADER_BYTES};
use crate::packet::event::{Event, NodeLayer};

/// The most flows whose first packet is kept; those beyond have the usual header.
const MAX_FLOWS: usize = 1 << 14;
/// The longest header: IP and TCP with all options.
const LONGEST_HEADER: u32 = 80;
/// A longer first packet has data. Layers below the agent make a SYN longer than 40 bytes.
const LONGEST_SYN: u32 = 2 * TCP_HEADER_BYTES;

/// Both addresses and ports.
type Flow = (u32, Option<u16>, u32, Option<u16>);

/// The size of each flow's first packet.
#[derive(Debug, Default)]
pub struct TcpHeaders {
    first_sizes: HashMap<Flow, u32>,
    /// Whether any of them has data.
    has_data_first: bool,
}

impl TcpHeaders {
    /// Set the header of `seen`, if it is of one-way TCP.
    #[inline(always)]
    pub fn measure(&mut self, seen: &mut LinePacket) {
        seen.tcp_header_bytes = TCP_HEADER_BYTES;
        if seen.kind == PacketKind::Tcp && (self.has_data_first || seen.sequence == Some(0)) {
            self.measure_from_first(seen);
        }
    }

    #[inline(never)]
    fn measure_from_first(&mut self, seen: &mut LinePacket) {
        let Some((src, dst)) = seen.ends.filter(|_| seen.header.is_none()) else { return };
        let flow = (src.address, src.port, dst.address, dst.port);
        if let Some(&first) = self.first_sizes.get(&flow) {
            seen.tcp_header_bytes = header_bytes(seen.size, first);
        } else if seen.sequence == Some(0) && is_sent(seen) && self.first_sizes.len() < MAX_FLOWS {
            self.first_sizes.insert(flow, seen.size);
            self.has_data_first |= seen.size > LONGEST_SYN;
            seen.tcp_header_bytes = header_bytes(seen.size, seen.size);
        }
    }
}

/// Whether the packet is as its agent sent it.
fn is_sent(seen: &LinePacket) -> bool {
    match seen.layer {
        NodeLayer::Agent => seen.event == Event::Sent,
        NodeLayer::Link => matches!(seen.event, Event::Sent | Event::Enqueued),
        _ => false,
    }
}

/// The header of a packet of `size` bytes, if the flow's first packet had `first`.
fn header_bytes(size: u32, first: u32) -> u32 {
    match size.checked_sub(first) {
        Some(added) if first > LONGEST_SYN && added <= LONGEST_HEADER => added,
        _ => TCP_HEADER_BYTES,
    }
}
