//! What was lost before the capture point: holes, and what came late because it had been sent again.
//!
//! A capture beside the sender has nothing of it, so it is apart from other trouble.

use std::collections::VecDeque;

use super::loss_events::LossEvents;
use super::timer::Timer;
use crate::flow::holes::Holes;

/// Late segments that may turn out to have overtaken their originals.
const MAX_REPAIRED: usize = 64;

/// A segment that was taken for lost before the capture point.
#[derive(Clone, Copy, Debug)]
pub struct Repaired {
    /// Its first position.
    pub start: i64,
    /// The one behind its last.
    pub end: i64,
    /// Packets on the wire.
    pub segments: u32,
    /// Number of its finding.
    pub number: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Unseen {
    /// Never seen.
    pub holes: Holes,
    /// How long it takes until what was lost before the capture point comes again: a round trip.
    pub repair: Timer,
    /// Losses before the capture point.
    pub events: LossEvents,
    repaired: VecDeque<Repaired>,
}

impl Unseen {
    /// Keep what was taken for lost, until the original may come.
    pub fn remember(&mut self, repaired: Repaired) {
        if self.repaired.len() == MAX_REPAIRED {
            self.repaired.pop_front();
        }
        self.repaired.push_back(repaired);
    }

    /// The original of `start..end` came: what had been taken for lost because its retransmission
    /// overtook it.
    pub fn forgive(&mut self, start: i64, end: i64) -> Option<Repaired> {
        let overlaps = |repaired: &Repaired| repaired.start < end && start < repaired.end;
        let at = self.repaired.iter().position(overlaps)?;
        let found = self.repaired.remove(at)?;
        self.events.forgive(found.segments);
        Some(found)
    }
}
