//! Sequence numbers of TFRC where the trace has none: wireless nodes print nothing of its header. A
//! number that a link printed earlier is used. TFRC retransmits nothing, so the k-th packet that a
//! wireless node sends has number k - 1.

use std::collections::HashMap;

use super::line_packet::{LinePacket, PacketKind};
use crate::packet::event::{Event, NodeLayer};

/// The most flows that are counted.
const MAX_FLOWS: usize = 1 << 12;
/// The most packets whose number is kept until they arrive.
const REMEMBERED: usize = 1 << 14;

/// Both addresses and ports.
type Flow = (u32, Option<u16>, u32, Option<u16>);

/// The count of each flow, and the latest numbers.
#[derive(Debug, Default)]
pub struct TfrcSequences {
    next: HashMap<Flow, i64>,
    /// Packet and its number, at the packet's place modulo the length.
    given: Vec<Option<(u64, i64)>>,
}

impl TfrcSequences {
    /// Set the number of `seen`, if it is TFRC's and has none; else remember its number.
    #[inline(always)]
    pub fn number(&mut self, seen: &mut LinePacket) {
        if seen.kind != PacketKind::Tfrc {
            return;
        }
        match seen.sequence {
            Some(sequence) => self.remember(seen.uid, sequence),
            None => seen.sequence = self.number_of(seen),
        }
    }

    fn remember(&mut self, uid: u64, sequence: i64) {
        self.given.resize(REMEMBERED, None);
        if let Some(place) = self.given.get_mut(uid as usize % REMEMBERED) {
            *place = Some((uid, sequence));
        }
    }

    #[inline(never)]
    fn number_of(&mut self, seen: &LinePacket) -> Option<i64> {
        if let Some(&Some((uid, sequence))) = self.given.get(seen.uid as usize % REMEMBERED)
            && uid == seen.uid
        {
            return Some(sequence);
        }
        if (seen.layer, seen.event) != (NodeLayer::Agent, Event::Sent) {
            return None;
        }
        let (src, dst) = seen.ends?;
        let flow = (src.address, src.port, dst.address, dst.port);
        if self.next.len() >= MAX_FLOWS && !self.next.contains_key(&flow) {
            return None;
        }
        let next = self.next.entry(flow).or_default();
        let sequence = *next;
        *next += 1;
        self.remember(seen.uid, sequence);
        Some(sequence)
    }
}
