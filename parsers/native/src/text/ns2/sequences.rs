//! Sequence numbers of TFRC where the trace has none: wireless nodes print nothing of its header.
//! TFRC repeats no packet, so the k-th that a flow sends has number k - 1.

use std::collections::HashMap;

use super::seen::{Kind, Seen};
use crate::event::{Event, NodeLayer};

/// Flows that are counted.
const MAX_FLOWS: usize = 1 << 12;
/// Packets whose number is remembered until they arrive.
const REMEMBERED: usize = 1 << 14;

/// What is counted for: both addresses and ports.
type Flow = (u32, Option<u16>, u32, Option<u16>);

/// The count of each flow, and the numbers given lately.
#[derive(Debug, Default)]
pub struct Sequences {
    next: HashMap<Flow, i64>,
    /// Packet and its number, at the packet's place modulo the length.
    given: Vec<Option<(u64, i64)>>,
}

impl Sequences {
    /// Give `seen` its number, if it is TFRC's and has none.
    #[inline(always)]
    pub fn number(&mut self, seen: &mut Seen) {
        if seen.kind == Kind::Tfrc && seen.sequence.is_none() {
            seen.sequence = self.number_of(seen);
        }
    }

    #[inline(never)]
    fn number_of(&mut self, seen: &Seen) -> Option<i64> {
        self.given.resize(REMEMBERED, None);
        let place = self.given.get_mut(seen.uid as usize % REMEMBERED)?;
        if let Some((uid, sequence)) = *place
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
        *place = Some((seen.uid, sequence));
        Some(sequence)
    }
}
