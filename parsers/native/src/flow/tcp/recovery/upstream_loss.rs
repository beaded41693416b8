//! Losses upstream of the capture point: holes, and data that arrive late because they were
//! retransmitted.
//!
//! A capture at the sender has none, so they are apart from other recovery state.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::recovery_state::{RecoveryEpisode, RecoveryStart};
use crate::flow::holes::Holes;
use crate::flow::outstanding::Pool;
use crate::flow::tcp::Segment;
use crate::flow::tcp::classify::Placement;
use crate::flow::tcp::half_connection::{HalfConnection, elapsed};
use crate::flow::tcp::loss_events::LossEvents;
use crate::flow::tcp::rtt::rto_timer::{MIN_VARIATION_NS, RtoTimer};

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

impl HalfConnection {
    /// A retransmission of data lost upstream may start a recovery like one seen twice: by timeout
    /// if the sender was silent long enough, else by acknowledgements.
    pub(crate) fn note_upstream_recovery(&mut self, placed: &Placement, now_ns: i64, pool: &Pool) {
        let is_head = placed.start <= self.acknowledged;
        let newest_ns = self.outstanding.newest_ns(pool).unwrap_or(self.progress_ns);
        let timeout_ns = self.earliest_upstream_timeout_ns();
        let answer_ns = self.latest_answer_ns();
        let (next, progress_ns) = (self.next, self.progress_ns);
        let recovery = self.recovery_mut();
        let since = |event_ns: i64| now_ns.saturating_sub(event_ns);
        let is_answer = since(recovery.last_ack_ns.max(progress_ns).max(newest_ns)) <= answer_ns;
        // Duplicate acknowledgements do not restart the timer (RFC 6298 section 5.3).
        let is_due = timeout_ns.is_some_and(|timeout_ns| since(progress_ns) >= timeout_ns);
        if is_head && !is_answer && is_due {
            recovery.on_timeout(next);
            recovery.episode = recovery.episode.map(RecoveryEpisode::without_f_rto);
        } else if recovery.episode.is_none_or(|episode| episode.ended_ns().is_some()) {
            recovery.episode = Some(RecoveryEpisode::new(next, RecoveryStart::Acknowledgements));
        }
    }

    /// Silence after which a timer retransmits data lost upstream of the capture: the round trip to
    /// the sender and 0.7 of its smallest timeout. None if unknown.
    pub(crate) fn earliest_upstream_timeout_ns(&self) -> Option<i64> {
        let path_ns = self.path_ns()?;
        let near_ns = match self.handshake_us.0 {
            0 => path_ns,
            near_us => i64::from(near_us) * 1_000,
        };
        // A queue is not silence, so use the shortest round trips.
        let far_ns = i64::try_from(self.round_trips.min_ns()).unwrap_or(i64::MAX);
        let timeout_ns = near_ns.saturating_add(far_ns).min(path_ns).saturating_add(MIN_VARIATION_NS);
        Some(near_ns.saturating_add(timeout_ns / 10 * 7))
    }

    /// Count a loss, and keep it until the original may arrive.
    pub(crate) fn note_lost_before(
        &mut self,
        placed: &Placement,
        segment: &Segment<'_>,
        (number, segments): (u32, u32),
    ) {
        let lost_ns = placed.opening.map_or(segment.time_ns, |opening| opening.time_ns);
        if let Some(repair_ns) = elapsed(lost_ns, segment.time_ns) {
            self.recovery_mut().upstream_loss_mut().repair.note(repair_ns);
        }
        let rtt_ns = self.path_ns().unwrap_or(0);
        let upstream_loss = self.recovery_mut().upstream_loss_mut();
        upstream_loss.events.note(lost_ns, rtt_ns, segments);
        let (Placement { start, end, .. }, time_ns) = (*placed, segment.time_ns);
        upstream_loss.remember(RepairedLoss { start, end, segments, time_ns, number });
    }
}
