//! Why data were sent again: a timer, or acknowledgements that report them lost (RFC 5681, RFC 6298,
//! RFC 6675, RFC 8985).

use super::Placement;
use super::class::{Class, Evidence};
use crate::flow::outstanding::Pool;
use crate::flow::tcp::half_connection::HalfConnection;
use crate::flow::tcp::recovery::episode::{RecoveryEpisode, RecoveryStart};
use crate::flow::tcp::recovery::recovery_state::RecoveryState;
use crate::flow::tcp::rtt::rto_timer::RtoTimer;

/// `DupThresh` of RFC 6675 section 2.
const DUPLICATES: u16 = 3;

/// A retransmission, and all that is known when it passes.
pub(super) struct Situation<'a> {
    pub half: &'a HalfConnection,
    pub recovery: &'a RecoveryState,
    pub placed: &'a Placement,
    pub now_ns: i64,
    pub pool: &'a Pool,
}

impl Situation<'_> {
    /// The class if a timer of the sender expired that is seen to run.
    pub(super) fn expired_timer(&self) -> Option<(Class, Evidence)> {
        let head_ns = self.head_ns();
        if self.acknowledged() < self.placed.end && self.is_probe(head_ns) {
            Some((Class::TailLossProbe, Evidence::Timer))
        } else if self.is_head() && self.is_timeout(head_ns) {
            Some((Class::Rto, Evidence::Timer))
        } else {
            None
        }
    }

    /// The class if no such timer expired.
    pub(super) fn other_cause(&self) -> (Class, Evidence) {
        if self.is_unheard() {
            // A sender that has repaired the segment, and did not hear that it arrived, is still in recovery
            // and schedules no probe (RFC 8985 section 7.2).
            let is_repaired = self.recovery.resent_ns(self.placed.start).is_some();
            let is_probe =
                self.placed.is_last && !self.refuses_sack() && !self.recovery.has_probed && !is_repaired;
            (if is_probe { Class::TailLossProbe } else { Class::Rto }, Evidence::Timer)
        } else if let Some(episode) = self.episode() {
            self.class_in_recovery(&episode)
        } else {
            match self.evidence_of_loss() {
                Some(evidence) => (Class::Fast, evidence),
                None => (Class::Unexplained, Evidence::Nothing),
            }
        }
    }

    /// Whether it answers the last acknowledgement as a sender does that answers at once. A simulated agent
    /// takes no time.
    pub(super) fn is_prompt(&self) -> bool {
        self.quiet_ns() <= if self.half.is_simulated() { 0 } else { self.half.path.prompt_answer_ns() }
    }

    fn acknowledged(&self) -> i64 {
        self.half.acknowledged.position
    }

    fn refuses_sack(&self) -> bool {
        self.half.options.refuses_sack
    }

    fn timer(&self) -> RtoTimer {
        self.half.path.round_trips.timer()
    }

    fn since(&self, event_ns: i64) -> i64 {
        self.now_ns.saturating_sub(event_ns)
    }

    /// Time since the last acknowledgement.
    fn quiet_ns(&self) -> i64 {
        self.since(self.recovery.last_ack_ns.max(self.half.acknowledged.progress_ns))
    }

    /// Whether the sender answers at once when acknowledgements ask for a segment.
    fn answers_at_once(&self) -> bool {
        self.recovery.promptness.is_prompt(self.half.is_simulated())
    }

    /// Whether it may answer the last acknowledgement.
    fn is_answer(&self) -> bool {
        if self.answers_at_once() {
            self.is_prompt()
        } else {
            self.quiet_ns() <= self.half.path.latest_answer_ns()
        }
    }

    /// Whether it is the first unacknowledged segment.
    fn is_head(&self) -> bool {
        self.placed.start <= self.acknowledged() && self.acknowledged() < self.placed.end
    }

    /// Whether the capture is near the sender.
    fn is_near(&self) -> bool {
        self.half.path_ns().is_some_and(|path_ns| self.half.path.near_ns() < path_ns / 4)
    }

    /// The recovery to which it belongs.
    fn episode(&self) -> Option<RecoveryEpisode> {
        self.recovery.episode.filter(|episode| match episode.ended_ns() {
            None => true,
            // The sender receives it later than the capture point.
            Some(ended_ns) => {
                self.placed.start < episode.until && self.since(ended_ns) <= self.half.path.way_back_ns()
            }
        })
    }

    /// Whether duplicate acknowledgements or SACK blocks report data lost (RFC 5681 section 3.2;
    /// `IsLost` of RFC 6675 section 4).
    fn is_reported_lost(&self) -> bool {
        let length = self.placed.end - self.placed.start;
        let sacked = i64::try_from(self.recovery.sacked.bytes()).unwrap_or(i64::MAX);
        self.recovery.duplicate_acks >= DUPLICATES || sacked > length * i64::from(DUPLICATES - 1)
    }

    /// Whether the sender knows of the loss and repairs it when its pacing permits.
    fn is_paced(&self) -> bool {
        self.is_near() && self.is_reported_lost() && self.episode().is_none() && !self.answers_at_once()
    }

    /// Silence after which a timeout is assumed to retransmit the first unacknowledged segment: 0.7
    /// of the timeout. Without SACK only a timer retransmits without a cue, and no timeout is below
    /// a round trip (RFC 6298 equation 2.3), so a round trip is enough where the capture sees the
    /// sender's silence.
    fn earliest_timeout_ns(&self) -> i64 {
        let timeout_ns = self.timer().timeout_ns();
        if self.is_paced() {
            return timeout_ns;
        }
        let path_ns = self.half.path_ns().filter(|_| self.refuses_sack() && self.is_near());
        (timeout_ns / 10 * 7).min(path_ns.unwrap_or(i64::MAX))
    }

    /// Time since the timer of the first unacknowledged segment was started.
    fn head_ns(&self) -> i64 {
        let outstanding = &self.half.sent.outstanding;
        let progress_ns = self.half.acknowledged.progress_ns;
        // A sender with probes restarts its timer with new data (RFC 8985 section 7.2).
        let newest_ns = outstanding.newest_ns(self.pool).filter(|_| self.is_paced());
        let restarted_ns = newest_ns.unwrap_or(progress_ns).max(progress_ns);
        let sent_ns = self.recovery.resent_ns(self.acknowledged()).or(outstanding.oldest_ns(self.pool));
        sent_ns.map_or(0, |sent_ns| self.since(sent_ns.max(restarted_ns)))
    }

    /// Time without an acknowledgement since the last data were sent.
    fn tail_ns(&self) -> i64 {
        let newest_ns = self.half.sent.outstanding.newest_ns(self.pool);
        let sent_ns = newest_ns.max(self.recovery.resent_ns(self.half.sent.next - 1));
        sent_ns.map_or(0, |sent_ns| self.since(sent_ns.max(self.half.acknowledged.progress_ns)))
    }

    /// Whether it is a tail loss probe, which is due no later than the timer of the head (RFC 8985 section 7.2).
    fn is_probe(&self, head_ns: i64) -> bool {
        let is_possible = self.placed.is_last
            && !self.refuses_sack()
            && !self.half.is_simulated()
            && self.episode().is_none()
            && !self.recovery.has_probed
            && self.recovery.duplicate_acks == 0
            && self.recovery.sacked.is_empty();
        if !is_possible {
            return false;
        }
        let (timer, tail_ns) = (self.timer(), self.tail_ns());
        let is_due = tail_ns >= timer.probe_ns(false) / 4 * 3
            || (!self.is_head() && head_ns >= self.earliest_timeout_ns());
        let is_too_late = self.is_head() && tail_ns > timer.probe_ns(true).max(timer.timeout_ns()) / 2 * 3;
        is_due && !is_too_late
    }

    /// Whether the recovery that goes on has retransmitted the first unacknowledged segment before.
    fn is_again(&self) -> bool {
        self.episode().is_some() && self.recovery.has_resent_in_recovery(self.acknowledged())
    }

    /// When the highest byte in SACK blocks was sent.
    fn sacked_ns(&self) -> Option<i64> {
        let end = self.recovery.sacked.end()?;
        self.half.sent.outstanding.sent_ns(end as u32, self.pool)
    }

    /// Whether nothing reports the loss of the retransmission before. A sender learns of it only if later data
    /// arrive (RFC 8985 section 6.2). This is checked near the sender only: elsewhere an acknowledgement may
    /// have passed the capture and not yet have reached the sender.
    fn is_unreported(&self) -> bool {
        self.is_again()
            && self.recovery.has_sack
            && self.is_near()
            && !self.recovery.has_arrived_since_resent(self.acknowledged(), self.sacked_ns())
    }

    /// Whether the timer of the first unacknowledged segment expired.
    fn is_timeout(&self, head_ns: i64) -> bool {
        let is_simulated_at_once = self.half.is_simulated() && self.answers_at_once();
        match (self.is_answer(), self.refuses_sack()) {
            // Agents of a simulator have no shorter timer.
            (false, _) if is_simulated_at_once => true,
            (false, false) => head_ns >= self.earliest_timeout_ns() || self.is_unreported(),
            (false, true) => head_ns >= self.earliest_timeout_ns() || self.is_again(),
            // Acknowledgements trigger a segment once in a recovery (RFC 6582 section 3.2).
            (true, true) => self.is_again(),
            // SACK blocks do not restart the timer (RFC 6298 section 5.3).
            (true, false) => {
                !is_simulated_at_once
                    && (self.is_unreported()
                        || (self.is_again() && !self.is_prompt() && head_ns >= self.timer().timeout_ns()))
            }
        }
    }

    /// Whether a timer expired because the acknowledgement was lost downstream of the capture.
    fn is_unheard(&self) -> bool {
        let timeout_ns = self.half.earliest_upstream_timeout_ns();
        self.placed.end <= self.acknowledged()
            && timeout_ns.is_some_and(|timeout_ns| self.quiet_ns() >= timeout_ns)
    }

    fn class_in_recovery(&self, episode: &RecoveryEpisode) -> (Class, Evidence) {
        let has_sack = self.recovery.has_sack;
        if episode.is_timeout()
            && has_sack
            && self.recovery.has_lost_in_recovery(self.placed.start, self.sacked_ns())
        {
            return (Class::Fast, Evidence::SentBefore);
        }
        let class = match (episode.start, has_sack) {
            _ if episode.is_timeout() => Class::Rto,
            (RecoveryStart::UnfinishedRecovery, _) if episode.sent == 0 => Class::Fast,
            (_, true) => Class::Sack,
            (_, false) => Class::Fast,
        };
        (class, Evidence::Recovery)
    }

    /// What told the sender that the data were lost.
    fn evidence_of_loss(&self) -> Option<Evidence> {
        let Placement { start, end, .. } = *self.placed;
        let recovery = self.recovery;
        let sent_ns = || self.half.sent.outstanding.sent_ns(end as u32, self.pool);
        let last_ns = recovery.resent_ns(start).or_else(sent_ns);
        if recovery.sacked.has_beyond(start) {
            Some(Evidence::Sack)
        } else if last_ns.is_some_and(|last_ns| last_ns < recovery.delivered_ns) {
            Some(Evidence::SentBefore)
        } else {
            // Or the sender had not yet received the acknowledgement of the original.
            let is_missed = start < recovery.missed.0
                && self.since(recovery.missed.1) <= self.half.path.latest_answer_ns();
            let is_reported = (recovery.duplicate_acks > 0 && self.is_head()) || is_missed;
            is_reported.then_some(Evidence::DuplicateAcks)
        }
    }
}
