//! What was lost before the capture point: holes, and what came late because it had been sent again.
//!
//! A capture beside the sender has nothing of it, so it is apart from other trouble.

use std::collections::VecDeque;

use super::recovery_state::RecoveryEpisode;
use crate::flow::holes::Holes;
use crate::flow::outstanding::Pool;
use crate::flow::tcp::Segment;
use crate::flow::tcp::classify::Placement;
use crate::flow::tcp::half_connection::{HalfConnection, elapsed};
use crate::flow::tcp::loss_events::LossEvents;
use crate::flow::tcp::rtt::rto_timer::{MIN_VARIATION_NS, RtoTimer};

/// Late segments that may turn out to have overtaken their originals.
const MAX_REPAIRED: usize = 64;

/// A segment that was taken for lost before the capture point.
#[derive(Clone, Copy, Debug)]
pub struct RepairedLoss {
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
pub struct UpstreamLoss {
    /// Never seen.
    pub holes: Holes,
    /// How long it takes until what was lost before the capture point comes again: a round trip.
    pub repair: RtoTimer,
    /// Losses before the capture point.
    pub events: LossEvents,
    repaired: VecDeque<RepairedLoss>,
}

impl UpstreamLoss {
    /// Keep what was taken for lost, until the original may come.
    pub fn remember(&mut self, repaired: RepairedLoss) {
        if self.repaired.len() == MAX_REPAIRED {
            self.repaired.pop_front();
        }
        self.repaired.push_back(repaired);
    }

    /// The original of `start..end` came: what had been taken for lost because its retransmission
    /// overtook it.
    pub fn forgive(&mut self, start: i64, end: i64) -> Option<RepairedLoss> {
        let overlaps = |repaired: &RepairedLoss| repaired.start < end && start < repaired.end;
        let at = self.repaired.iter().position(overlaps)?;
        let found = self.repaired.remove(at)?;
        self.events.forgive(found.segments);
        Some(found)
    }
}

impl HalfConnection {
    /// What is sent again because it was lost before the capture may begin a recovery as well as what is seen
    /// twice: by the timer if the sender was silent for so long, else by acknowledgements.
    pub(crate) fn note_upstream_recovery(&mut self, placed: &Placement, now_ns: i64, pool: &Pool) {
        let is_head = placed.start <= self.acknowledged;
        let newest_ns = self.outstanding.newest_ns(pool).unwrap_or(self.progress_ns);
        let timeout_ns = self.soonest_unseen_timeout_ns();
        let answer_ns = self.latest_answer_ns();
        let (next, progress_ns) = (self.next, self.progress_ns);
        let trouble = self.recovery_mut();
        let since = |event_ns: i64| now_ns.saturating_sub(event_ns);
        let is_answer = since(trouble.heard_ns.max(progress_ns).max(newest_ns)) <= answer_ns;
        // Duplicate acknowledgements do not set the timer anew (RFC 6298 section 5.3).
        let is_due = timeout_ns.is_some_and(|timeout_ns| since(progress_ns) >= timeout_ns);
        if is_head && !is_answer && is_due {
            trouble.on_timeout(next);
            trouble.episode = trouble.episode.map(RecoveryEpisode::certainly);
        } else if trouble.episode.is_none_or(|episode| episode.ended_ns().is_some()) {
            trouble.episode = Some(RecoveryEpisode::new(next, false));
        }
    }

    /// After this much silence a timer repeats what was lost before the capture: the way to the sender and
    /// back, and 0.7 of its smallest timeout. None if nothing tells how long that is.
    pub(crate) fn soonest_unseen_timeout_ns(&self) -> Option<i64> {
        let path_ns = self.path_ns()?;
        let near_ns = match self.handshake_us.0 {
            0 => path_ns,
            near_us => i64::from(near_us) * 1_000,
        };
        // A queue is no silence, so the ways are as short as they ever were.
        let far_ns = i64::try_from(self.round_trips.min_ns()).unwrap_or(i64::MAX);
        let timeout_ns = near_ns.saturating_add(far_ns).min(path_ns).saturating_add(MIN_VARIATION_NS);
        Some(near_ns.saturating_add(timeout_ns / 10 * 7))
    }

    /// Count a loss, and keep it until the original may come.
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
        let unseen = self.recovery_mut().upstream_loss_mut();
        unseen.events.note(lost_ns, rtt_ns, segments);
        unseen.remember(RepairedLoss { start: placed.start, end: placed.end, segments, number });
    }
}
