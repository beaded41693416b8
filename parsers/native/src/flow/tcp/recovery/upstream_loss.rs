//! Losses upstream of the capture point: holes, and data that arrive late because they were
//! retransmitted.
//!
//! A capture at the sender has none, so they are apart from other recovery state.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::flow::holes::Holes;
use crate::flow::tcp::loss_events::LossEvents;
use crate::flow::tcp::rtt::rto_timer::RtoTimer;

/// Limit of late segments that may turn out to have arrived before their originals.
const MAX_REPAIRED: usize = 64;

/// A segment counted as lost upstream of the capture point.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RepairedLoss {
    pub start: i64,
    pub end: i64,
    pub segments: u32,
    /// When it was counted.
    pub time_ns: i64,
    /// Index of its classification.
    pub number: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct UpstreamLoss {
    pub holes: Holes,
    /// Time until data lost upstream of the capture point arrive again: a round trip.
    pub repair: RtoTimer,
    pub events: LossEvents,
    repaired: VecDeque<RepairedLoss>,
}

impl UpstreamLoss {
    /// Keep a loss until its original may arrive.
    pub fn remember(&mut self, repaired: RepairedLoss) {
        if self.repaired.len() == MAX_REPAIRED {
            self.repaired.pop_front();
        }
        self.repaired.push_back(repaired);
    }

    /// The original of `start..end` arrived: return the loss counted because its retransmission
    /// arrived first.
    pub fn retract_loss(&mut self, start: i64, end: i64) -> Option<RepairedLoss> {
        let overlaps = |repaired: &RepairedLoss| repaired.start < end && start < repaired.end;
        let at = self.repaired.iter().position(overlaps)?;
        let found = self.repaired.remove(at)?;
        self.events.remove(found.segments);
        Some(found)
    }
}
