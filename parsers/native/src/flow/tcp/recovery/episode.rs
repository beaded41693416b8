//! Periods in which a sender repairs losses.

use serde::{Deserialize, Serialize};

/// What started a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecoveryStart {
    /// Acknowledgements that report data missing.
    Acknowledgements,
    /// The end of another recovery while retransmissions are unacknowledged.
    UnfinishedRecovery,
    Timeout,
    /// A timeout in a recovery that acknowledgements started. F-RTO does not apply (RFC 5682 section
    /// 2.1).
    TimeoutInRecovery,
}

/// A period in which the sender repairs losses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RecoveryEpisode {
    /// It ends when this position is acknowledged (`recover` of RFC 6582, `RecoveryPoint` of RFC
    /// 6675).
    pub until: i64,
    pub start: RecoveryStart,
    /// Segments retransmitted in it; a saturated count is a lower bound.
    pub sent: u16,
    /// Segments retransmitted before the timeout that started it, since acknowledgements last
    /// advanced or since the recovery that it interrupted began.
    sent_before: u16,
    /// Acknowledgements of new data in it.
    pub(crate) progressed: u16,
    /// When it ended, or [`GOING_ON`].
    ended_ns: i64,
}

/// Marks [`RecoveryEpisode::ended_ns`] as not ended.
const GOING_ON: i64 = i64::MAX;

impl RecoveryEpisode {
    /// Start an episode that ends when `until` is acknowledged.
    pub fn new(until: i64, start: RecoveryStart) -> Self {
        Self { until, start, sent: 0, sent_before: 0, progressed: 0, ended_ns: GOING_ON }
    }

    /// The episode that a timeout starts in place of `interrupted`; `is_repeated` if no
    /// acknowledgement advanced since the timeout before.
    pub(super) fn after_timeout(until: i64, interrupted: Option<Self>, is_repeated: bool) -> Self {
        let interrupted = interrupted.filter(|episode| episode.ended_ns().is_none());
        let continued = interrupted.filter(|episode| is_repeated || !episode.is_timeout());
        let has_f_rto = is_repeated || continued.is_none();
        let start = if has_f_rto { RecoveryStart::Timeout } else { RecoveryStart::TimeoutInRecovery };
        let sent_before = continued.map_or(0, |episode| episode.sent.saturating_add(episode.sent_before));
        Self { sent_before, ..Self::new(until, start) }
    }

    /// Whether F-RTO may find its timeout spurious.
    pub(crate) fn has_f_rto(&self) -> bool {
        self.start == RecoveryStart::Timeout
    }

    /// Segments retransmitted since the sender last had nothing to undo.
    pub(crate) fn sent_in_all(&self) -> usize {
        usize::from(self.sent) + usize::from(self.sent_before)
    }

    /// Whether a timeout started it.
    pub fn is_timeout(&self) -> bool {
        matches!(self.start, RecoveryStart::Timeout | RecoveryStart::TimeoutInRecovery)
    }

    /// The same without F-RTO (RFC 5682): the retransmitted data are known to be lost.
    pub fn without_f_rto(self) -> Self {
        Self { progressed: 1, ..self }
    }

    /// End it, if it has not ended before.
    pub fn end(&mut self, time_ns: i64) {
        self.ended_ns = self.ended_ns.min(time_ns);
    }

    /// When it ended; None while it goes on.
    pub fn ended_ns(&self) -> Option<i64> {
        (self.ended_ns != GOING_ON).then_some(self.ended_ns)
    }
}

/// Whether a sender retransmits at once when acknowledgements ask for a segment, or when its pacing permits:
/// mostly at once if above 0.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Promptness(i8);

impl Promptness {
    /// Count an answer. A late one outweighs four prompt ones.
    pub fn note(&mut self, is_prompt: bool) {
        self.0 = self.0.saturating_add(if is_prompt { 1 } else { -4 });
    }

    /// Whether it answers at once, so that a later retransmission has another cause. A simulated agent is
    /// taken to do so until a late answer is seen.
    pub fn is_prompt(self, is_simulated: bool) -> bool {
        self.0 > 0 || (is_simulated && self.0 == 0)
    }
}
