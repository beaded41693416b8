//! Loss recovery state of one direction: retransmissions and selective acknowledgements.
//!
//! Most connections end without any, so it is allocated at the first sign and costs the others one
//! pointer. Its memory is bounded: 256 ranges of SACK, 256 undecided retransmissions, 4,096
//! spurious ones (`spurious.rs`) and 64 repairs (`upstream_loss.rs`), below 100 kB in all. Holes
//! (`holes.rs`) share the bound of unacknowledged data.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::episode::{Promptness, RecoveryEpisode, RecoveryStart};
use super::retransmission::{Acknowledgement, Retransmission, SpuriousRetransmission};
use super::scoreboard::Scoreboard;
use super::upstream_loss::UpstreamLoss;
use crate::flow::holes::HoleOpening;
use crate::flow::outstanding::Bookmark;
use crate::flow::tcp::classify::class::{Class, ClassCounts, Evidence};
use crate::flow::tcp::loss_events::LossEvents;
use crate::flow::tcp::wire_mss::MssEstimator;

/// Limit of undecided retransmissions. Beyond it the oldest counts as needed.
const MAX_RESENT: usize = 256;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RetransmissionCounts {
    /// Segments on the wire, by class of [`Class::RETRANSMISSIONS`].
    retransmissions: [u32; Class::RETRANSMISSIONS.len()],
    pub findings: u32,
    /// Captured packets with retransmitted data.
    pub retransmitted_packets: u32,
    pub retransmitted_bytes: u64,
    /// Spurious retransmissions, in segments.
    pub spurious: u32,
}

impl RetransmissionCounts {
    /// Segments on the wire, of all classes of retransmissions.
    pub fn retransmitted_segments(&self) -> u32 {
        self.retransmissions.iter().fold(0, |sum, segments| sum.saturating_add(*segments))
    }
}

/// Counters that are zero for most directions with losses.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RareRecoveryCounts {
    /// Late packets with new data.
    pub out_of_order_packets: u32,
    /// Timeouts, counted by their first retransmissions.
    pub timeouts: u32,
    /// Most timeouts without an acknowledgement between them.
    pub timeouts_in_a_row: u32,
    /// Largest reordering extent, in segments.
    pub reordered_by_packets: u32,
    /// Longest delay of a segment after the first that arrived before it.
    pub reordered_by_ns: i64,
    /// Packets longer than the wire carries.
    pub super_segments: u32,
    /// Packets on the wire that they stand for, minus one each.
    pub extra_segments: u64,
    /// Send position at the last zero-window probe.
    pub last_probe_end: Option<i64>,
    /// Estimator of the packet length, from long segments.
    pub learning: MssEstimator,
    /// Whether duplicates crossed a router between two interfaces of the capture.
    pub is_forwarded: bool,
}

/// Data so far from all others that something else has to show that the stream is there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Leap {
    pub start: i64,
    /// End of its sequence numbers.
    pub occupied: i64,
    /// The next sequence number before it.
    pub after: i64,
    pub payload: u32,
    pub opening: HoleOpening,
}

/// State that few directions with losses need.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RareRecoveryState {
    rare_counts: RareRecoveryCounts,
    /// See [`RecoveryState::stamped_from`].
    stamped_from: Option<i64>,
    /// Segments on the wire, of classes other than retransmissions.
    classes: ClassCounts,
    /// The first spurious retransmissions.
    verdicts: Vec<SpuriousRetransmission>,
    /// See [`RecoveryState::leap`].
    leap: Option<Leap>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RecoveryState {
    /// Losses upstream of the capture point; None if there were none.
    pub upstream_loss: Option<Box<UpstreamLoss>>,
    /// Data received beyond the acknowledgement.
    pub sacked: Scoreboard,
    /// Acknowledgements beyond `.0` while up to `.1` is outstanding give no RTT: data there were
    /// retransmitted or arrived late (Karn's rule).
    ambiguous: (i64, i64),
    /// End of these data.
    resent_end: i64,
    /// Where the newest data in SACK blocks were found among those outstanding.
    pub sacked_at: Bookmark,
    /// Whether SACK blocks were seen.
    pub has_sack: bool,
    /// Consecutive duplicate acknowledgements; a saturated count is a lower bound.
    pub duplicate_acks: u16,
    /// Whether its sender answers at once.
    pub promptness: Promptness,
    /// Time of the last acknowledgement.
    pub last_ack_ns: i64,
    pub episode: Option<RecoveryEpisode>,
    /// Timeouts since the acknowledgement last advanced.
    pub timeouts_in_a_row: u32,
    /// Whether a tail loss probe was sent since then.
    pub has_probed: bool,
    /// Most flows retransmit one segment, which needs no allocation.
    pub(crate) resent: SmallVec<[Retransmission; 1]>,
    /// Retransmissions not acknowledged yet.
    pub(crate) awaited: u16,
    /// Packets that filled the peer's window.
    pub window_full: u32,
    /// Send time of the newest retransmission known to have arrived.
    pub delivered_ns: i64,
    /// End of the data that seemed missing at the last acknowledgement, and its time.
    pub missed: (i64, i64),
    after: LossEvents,
    pub tally: RetransmissionCounts,
    rarities: Option<Box<RareRecoveryState>>,
    /// Whether acknowledgements without SACK blocks change only `last_ack_ns`: most arrive when all
    /// losses are repaired. Any other change must reset it.
    pub is_over: bool,
}

impl Default for RecoveryState {
    fn default() -> Self {
        Self {
            upstream_loss: None,
            sacked: Scoreboard::default(),
            ambiguous: (i64::MAX, i64::MIN),
            resent_end: i64::MIN,
            sacked_at: Bookmark::default(),
            duplicate_acks: 0,
            has_sack: false,
            promptness: Promptness::default(),
            last_ack_ns: i64::MIN,
            episode: None,
            timeouts_in_a_row: 0,
            has_probed: false,
            resent: SmallVec::new(),
            awaited: 0,
            window_full: 0,
            missed: (i64::MIN, i64::MIN),
            delivered_ns: i64::MIN,
            after: LossEvents::default(),
            tally: RetransmissionCounts::default(),
            rarities: None,
            is_over: false,
        }
    }
}

impl RecoveryState {
    /// Exclude outstanding data up to `until` from RTT samples by acknowledgement: `start..end` was
    /// retransmitted or late.
    pub fn mark_ambiguous(&mut self, (start, end): (i64, i64), until: i64) {
        self.ambiguous = (self.ambiguous.0.min(start), self.ambiguous.1.max(until));
        self.resent_end = self.resent_end.max(end);
    }

    /// Whether data that end at `end` are sent once, as all beyond the last retransmission are.
    pub(super) fn is_sent_once(&self, end: i64) -> bool {
        end > self.resent_end
    }

    /// Whether the acknowledgement that advanced from `before` to `position` gives no RTT: for data sent twice, or
    /// that a SACK block reported before.
    pub fn is_ambiguous(&mut self, before: i64, position: i64, acknowledged: i64) -> bool {
        let is_ambiguous = (before < self.ambiguous.1 && position > self.ambiguous.0)
            || self.sacked.has(position - 1, position);
        if acknowledged >= self.ambiguous.1 {
            self.ambiguous = (i64::MAX, i64::MIN);
        }
        is_ambiguous
    }

    /// Keep a retransmission until it is known whether it was spurious.
    pub fn remember(&mut self, resent: Retransmission) {
        if self.resent.len() == MAX_RESENT {
            let oldest = self.resent.remove(0);
            self.awaited -= u16::from(!oldest.is_acknowledged);
            if oldest.spurious.is_none() {
                self.after.note(oldest.previous_ns, oldest.rtt_ns, oldest.segments);
            }
        }
        self.awaited += u16::from(!resent.is_acknowledged);
        self.resent.push(resent);
        if let Some(evidence) = resent.spurious {
            self.record(&[SpuriousRetransmission {
                number: resent.number,
                segments: resent.segments,
                sent_ns: resent.time_ns,
                evidence,
                is_known: false,
                is_before: false,
            }]);
        }
    }

    pub fn rare_counts(&self) -> RareRecoveryCounts {
        self.rarities.as_ref().map_or_else(RareRecoveryCounts::default, |rarities| rarities.rare_counts)
    }

    pub fn rare_counts_mut(&mut self) -> &mut RareRecoveryCounts {
        &mut self.rarities.get_or_insert_default().rare_counts
    }

    /// Data from this position on were first sent with the newest timestamp and echo of their side.
    /// Tracked from the first call on; `next` is the next position then.
    pub fn stamped_from(&mut self, next: i64) -> i64 {
        *self.rarities.get_or_insert_default().stamped_from.get_or_insert(next)
    }

    /// Whether this is tracked.
    #[inline(always)]
    pub fn follows_stamps(&self) -> bool {
        self.rarities.as_ref().is_some_and(|rarities| rarities.stamped_from.is_some())
    }

    /// Data from `position` on have a newer timestamp or echo.
    pub fn note_stamp(&mut self, position: i64) {
        if let Some(from) = self.rarities.as_mut().and_then(|rarities| rarities.stamped_from.as_mut()) {
            *from = position;
        }
    }

    /// The last data, if they are far from all before them.
    pub fn leap(&self) -> Option<Leap> {
        self.rarities.as_ref()?.leap
    }

    pub fn set_leap(&mut self, leap: Option<Leap>) {
        self.rarities.get_or_insert_default().leap = leap;
    }

    /// The first spurious retransmissions.
    pub(crate) fn verdicts(&self) -> &[SpuriousRetransmission] {
        self.rarities.as_ref().map_or(&[], |rarities| &rarities.verdicts)
    }

    pub(crate) fn spurious_mut(&mut self) -> &mut Vec<SpuriousRetransmission> {
        &mut self.rarities.get_or_insert_default().verdicts
    }

    /// Losses upstream of the capture point, allocated on first use.
    pub fn upstream_loss_mut(&mut self) -> &mut UpstreamLoss {
        self.upstream_loss.get_or_insert_default()
    }

    /// The original of `start..end` arrived: retract its loss if a retransmission that arrived
    /// first had been counted as one.
    pub fn retract_loss(&mut self, start: i64, end: i64, evidence: Evidence) -> bool {
        let found =
            self.upstream_loss.as_mut().and_then(|upstream_loss| upstream_loss.retract_loss(start, end));
        if let Some(repaired) = found {
            self.record(&[SpuriousRetransmission {
                number: repaired.number,
                segments: repaired.segments,
                sent_ns: repaired.time_ns,
                evidence,
                is_known: false,
                is_before: true,
            }]);
        }
        found.is_some()
    }

    /// Remember, before an acknowledgement covers it, that data seemed to be missing.
    pub fn note_missed(&mut self, acknowledged: i64, time_ns: i64) {
        if let Some(end) = self.sacked.end() {
            self.missed = (end, time_ns);
        } else if self.duplicate_acks > 0 {
            self.missed = (acknowledged.saturating_add(1), time_ns);
        }
    }

    /// See [`RecoveryState::is_over`].
    pub fn is_settled(&self) -> bool {
        let is_repaired = self.episode.is_none_or(|episode| episode.ended_ns().is_some());
        let is_heard = self.duplicate_acks == 0 && self.timeouts_in_a_row == 0 && !self.has_probed;
        is_repaired && is_heard && self.awaited == 0 && self.sacked.is_empty() && self.upstream_loss.is_none()
    }

    /// Whether anything was retransmitted at this time.
    pub fn resends(&self, time_ns: i64) -> bool {
        self.resent.last().is_some_and(|resent| resent.time_ns == time_ns)
    }

    /// Time of the last retransmission at `position`.
    pub fn resent_ns(&self, position: i64) -> Option<i64> {
        self.last_resent(position).map(|resent| resent.time_ns)
    }

    /// Last retransmission at `position`.
    pub fn last_resent(&self, position: i64) -> Option<&Retransmission> {
        let covers = |resent: &&Retransmission| resent.start <= position && position < resent.end;
        self.resent.iter().rev().find(covers)
    }

    /// Whether a packet sent after the last retransmission of `position` arrived; `newest` is the time at
    /// which the highest byte in SACK blocks was sent.
    pub fn has_arrived_since_resent(&self, position: i64, newest: Option<i64>) -> bool {
        let Some(resent_ns) = self.resent_ns(position) else { return true };
        // Of packets with one time the later one was sent later (RFC 8985 section 5.1).
        let is_it = |resent: &&Retransmission| resent.start <= position && position < resent.end;
        let mut later = self.resent.iter().rev().take_while(|resent| !is_it(resent));
        self.delivered_ns > resent_ns
            || newest.is_some_and(|newest_ns| newest_ns > resent_ns)
            || later.any(|resent| self.sacked.has(resent.start, resent.end))
    }

    /// Whether the current recovery retransmitted `position`, and that was lost.
    pub fn has_lost_in_recovery(&self, position: i64, newest: Option<i64>) -> bool {
        self.has_resent_in_recovery(position) && self.has_arrived_since_resent(position, newest)
    }

    /// Whether the current recovery retransmitted `position`.
    pub fn has_resent_in_recovery(&self, position: i64) -> bool {
        let sent = self.episode.map_or(0, |episode| episode.sent);
        let mut of_episode = self.resent.iter().rev().take(sent.into());
        of_episode.any(|resent| resent.start <= position && position < resent.end)
    }

    /// Losses downstream of the capture point: retransmissions not known to be spurious.
    pub fn after(&self) -> LossEvents {
        let mut events = self.after;
        for resent in self.resent.iter().filter(|resent| resent.spurious.is_none()) {
            events.note(resent.previous_ns, resent.rtt_ns, resent.segments);
        }
        events
    }

    /// A timeout, after which a sender repairs all data below `next`.
    pub(crate) fn on_timeout(&mut self, next: i64) {
        let is_repeated = self.timeouts_in_a_row > 0;
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
        let in_a_row = self.timeouts_in_a_row;
        let rare_counts = self.rare_counts_mut();
        rare_counts.timeouts = rare_counts.timeouts.saturating_add(1);
        rare_counts.timeouts_in_a_row = rare_counts.timeouts_in_a_row.max(in_a_row);
        self.episode = Some(RecoveryEpisode::after_timeout(next, self.episode, is_repeated));
    }

    pub fn on_duplicate_ack(&mut self) {
        self.duplicate_acks = self.duplicate_acks.saturating_add(1);
    }

    pub fn on_progress(&mut self, answer: &Acknowledgement) {
        let Acknowledgement { position, time_ns, echo, .. } = *answer;
        self.duplicate_acks = 0;
        self.timeouts_in_a_row = 0;
        self.has_probed = false;
        self.sacked.acknowledge(position);
        if let Some(upstream_loss) = &mut self.upstream_loss {
            upstream_loss.holes.acknowledge(position);
        }
        if self.awaited > 0 {
            self.judge_acknowledged(answer);
        }
        if echo.is_none() {
            self.judge_forward_rto();
        }
        if let Some(episode) = &mut self.episode {
            episode.progressed = episode.progressed.saturating_add(1);
            if position >= episode.until {
                episode.end(time_ns);
            }
        }
    }

    /// If a recovery ended at `time_ns` while retransmissions beyond its end are unacknowledged, start
    /// the next one: a sender with SACK holds these segments for lost.
    pub(crate) fn continue_unfinished(&mut self, time_ns: i64, next: i64) {
        let has_ended = self.episode.is_some_and(|episode| episode.ended_ns() == Some(time_ns));
        let is_lost =
            |resent: &Retransmission| !resent.is_acknowledged && !self.sacked.has(resent.start, resent.end);
        if has_ended && self.awaited > 0 && self.resent.iter().any(is_lost) {
            self.episode = Some(RecoveryEpisode::new(next, RecoveryStart::UnfinishedRecovery));
        }
    }

    /// Segments on the wire by class.
    pub fn classes(&self) -> ClassCounts {
        let mut classes =
            self.rarities.as_ref().map_or_else(ClassCounts::default, |rarities| rarities.classes);
        for (class, segments) in Class::RETRANSMISSIONS.into_iter().zip(self.tally.retransmissions) {
            classes.add(class, segments);
        }
        classes
    }

    /// Count `segments` of a class without a classification of their own.
    pub fn count_segments(&mut self, class: Class, segments: u32) {
        match Class::RETRANSMISSIONS.iter().zip(&mut self.tally.retransmissions).find(|(of, _)| **of == class)
        {
            Some((_, count)) => *count = count.saturating_add(segments),
            None => self.rarities.get_or_insert_default().classes.add(class, segments),
        }
    }

    /// Count `segments` of a class and return the index of the classification.
    pub fn count(&mut self, class: Class, segments: u32) -> u32 {
        self.count_segments(class, segments);
        let number = self.tally.findings;
        self.tally.findings = number.saturating_add(1);
        number
    }
}
