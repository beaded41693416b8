//! What only a direction with trouble has: retransmissions, selective acknowledgements.
//!
//! Most connections end without, so it is made at the first sign and costs the others one pointer.
//! Its memory is bounded: 256 ranges of SACK, 256 retransmissions whose verdict is open and 4,096
//! verdicts (`spurious.rs`), and in `upstream_loss.rs` 256 holes and 64 repairs, below 100 kB in all.

use smallvec::SmallVec;

use super::scoreboard::Scoreboard;
use super::spurious::{Acknowledgement, SpuriousRetransmission};
use super::upstream_loss::UpstreamLoss;
use crate::flow::tcp::classify::class::{Class, ClassCounts, Evidence};
use crate::flow::tcp::loss_events::LossEvents;
use crate::flow::tcp::wire_mss::MssEstimator;

/// Retransmissions that wait for a verdict. The oldest is then believed to have been needed.
const MAX_RESENT: usize = 256;

/// A time in which the sender repairs losses.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryEpisode {
    /// It is over when this is acknowledged (`recover` of RFC 6582, `RecoveryPoint` of RFC 6675).
    pub until: i64,
    /// Whether a timeout began it.
    pub is_timeout: bool,
    /// Segments sent again in it; at its maximum there may be more, as below.
    pub sent: u16,
    /// Acknowledgements that moved on in it.
    pub(crate) progressed: u16,
    /// When it was over, or [`GOING_ON`].
    ended_ns: i64,
}

/// In [`RecoveryEpisode::ended_ns`].
const GOING_ON: i64 = i64::MAX;

impl RecoveryEpisode {
    /// The one that begins while `until` is sent.
    pub fn new(until: i64, is_timeout: bool) -> Self {
        Self { until, is_timeout, sent: 0, progressed: 0, ended_ns: GOING_ON }
    }

    /// The same, where F-RTO (RFC 5682) has nothing to judge: what the timer repeated was lost.
    pub fn certainly(self) -> Self {
        Self { progressed: 1, ..self }
    }

    /// It is over, if it was not before.
    pub fn end(&mut self, time_ns: i64) {
        self.ended_ns = self.ended_ns.min(time_ns);
    }

    /// When it was over; None while it goes on.
    pub fn ended_ns(&self) -> Option<i64> {
        (self.ended_ns != GOING_ON).then_some(self.ended_ns)
    }
}

/// Whether a sender answers acknowledgements that ask for a segment at once, or when its pacing lets it:
/// above 0 mostly at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promptness(i8);

impl Promptness {
    /// Take in an answer. One that comes later speaks against as many as four that came at once.
    pub fn note(&mut self, is_prompt: bool) {
        self.0 = self.0.saturating_add(if is_prompt { 1 } else { -4 });
    }

    /// Whether it answers at once, so that what it repeats later has another cause. Agents of a simulator
    /// do as long as nothing speaks against it.
    pub fn is_prompt(self, is_simulated: bool) -> bool {
        self.0 > 0 || (is_simulated && self.0 == 0)
    }
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug)]
pub struct Retransmission {
    /// Its first position.
    pub start: i64,
    /// The one behind its last.
    pub end: i64,
    /// When.
    pub time_ns: i64,
    /// When it was sent before.
    pub previous_ns: i64,
    /// The round-trip time then; 0 if it is not known.
    pub rtt_ns: i64,
    /// When an acknowledgement showed that it arrived before what it repeats, or [`NEVER`].
    pub arrived_ns: i64,
    /// Its bytes that the receiver said it had twice.
    pub doubled: u32,
    /// Whether it is seen what arrives, and nothing is concluded from acknowledgements.
    pub shows_arrivals: bool,
    /// Its timestamp value.
    pub timestamp: Option<u32>,
    /// Whether it was the first that was not acknowledged.
    pub is_head: bool,
    /// Packets on the wire.
    pub segments: u32,
    /// Number of its finding.
    pub number: u32,
    /// Whether it was acknowledged since.
    pub is_acknowledged: bool,
    /// By what it was found that it was not needed.
    pub spurious: Option<Evidence>,
}

/// In [`Retransmission::arrived_ns`].
pub const NEVER: i64 = i64::MAX;

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetransmissionCounts {
    /// Segments on the wire, of the classes in [`Class::RETRANSMISSIONS`].
    retransmissions: [u32; Class::RETRANSMISSIONS.len()],
    /// Findings of all classes.
    pub findings: u32,
    /// Packets in the capture with data sent again.
    pub retransmitted_packets: u32,
    /// Those data.
    pub retransmitted_bytes: u64,
    /// Segments sent again that were not needed.
    pub spurious: u32,
}

/// What was counted of which most directions with trouble have nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RareRecoveryCounts {
    /// Late packets with data not seen before.
    pub out_of_order_packets: u32,
    /// Timeouts, by their first retransmissions.
    pub timeouts: u32,
    /// The most without an acknowledgement between them.
    pub timeouts_in_a_row: u32,
    /// The most segments that overtook another.
    pub reordered_by_packets: u32,
    /// The longest that a segment came after the first that overtook it.
    pub reordered_by_ns: i64,
    /// Packets longer than the wire carries.
    pub super_segments: u32,
    /// Packets on the wire that they stand for, beyond themselves.
    pub extra_segments: u64,
    /// Behind what the last zero-window probe was sent.
    pub asked_at: Option<i64>,
    /// What long segments have told of the length of packets.
    pub learning: MssEstimator,
    /// Whether copies of packets had passed a router between two interfaces of the capture.
    pub is_forwarded: bool,
}

/// What most directions with trouble do not have.
#[derive(Debug, Default)]
struct RareRecoveryState {
    rare_counts: RareRecoveryCounts,
    /// See [`RecoveryState::stamped_from`].
    stamped_from: Option<i64>,
    /// Segments on the wire, of classes that are no retransmissions.
    classes: ClassCounts,
    /// Findings that were not needed, and by what that was found.
    verdicts: Vec<(u32, Evidence)>,
}

/// See the module.
#[derive(Debug)]
pub struct RecoveryState {
    /// What was lost before the capture point; None if nothing was.
    pub unseen: Option<Box<UpstreamLoss>>,
    /// Arrived beyond the acknowledgement.
    pub sacked: Scoreboard,
    /// Acknowledgements beyond `.0` while up to `.1` is outstanding tell no RTT: something there was
    /// sent twice or arrived late (Karn's rule).
    ambiguous: (i64, i64),
    /// Whether blocks were seen.
    pub has_sack: bool,
    /// In a row; at its maximum there may be more.
    pub duplicate_acks: u16,
    /// How its sender answers.
    pub promptness: Promptness,
    /// When the last acknowledgement came.
    pub heard_ns: i64,
    /// The last one.
    pub episode: Option<RecoveryEpisode>,
    /// Timeouts since the acknowledgement moved.
    pub timeouts_in_a_row: u32,
    /// Whether a tail loss probe was sent since then.
    pub has_probed: bool,
    /// Most flows send one again, which needs no other memory.
    pub(crate) resent: SmallVec<[Retransmission; 1]>,
    /// Of them, those not acknowledged yet.
    pub(crate) awaited: u16,
    /// Packets that filled the other side's window.
    pub window_full: u32,
    /// When the segment was sent that was sent last of those sent again that arrived.
    pub delivered_ns: i64,
    /// Up to where something seemed to be missing when the last acknowledgement came, and when.
    pub missed: (i64, i64),
    after: LossEvents,
    /// What was counted.
    pub tally: RetransmissionCounts,
    rarities: Option<Box<RareRecoveryState>>,
    /// Whether acknowledgements change nothing but `heard_ns`, as long as they have no SACK blocks: most
    /// come when all is repaired. Whoever changes anything else takes it back.
    pub is_over: bool,
}

impl Default for RecoveryState {
    fn default() -> Self {
        Self {
            unseen: None,
            sacked: Scoreboard::default(),
            ambiguous: (i64::MAX, i64::MIN),
            duplicate_acks: 0,
            has_sack: false,
            promptness: Promptness::default(),
            heard_ns: i64::MIN,
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
    /// What is outstanding from `position` to `until` tells no RTT any more.
    pub fn doubt(&mut self, position: i64, until: i64) {
        self.ambiguous = (self.ambiguous.0.min(position), self.ambiguous.1.max(until));
    }

    /// Whether the acknowledgement that moved from `before` to `position` tells no RTT.
    pub fn is_ambiguous(&mut self, before: i64, position: i64, acknowledged: i64) -> bool {
        let is_ambiguous = before < self.ambiguous.1 && position > self.ambiguous.0;
        if acknowledged >= self.ambiguous.1 {
            self.ambiguous = (i64::MAX, i64::MIN);
        }
        is_ambiguous
    }

    /// Keep a retransmission until it is known whether it was needed.
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
                evidence,
                is_known: false,
            }]);
        }
    }

    /// What was counted that is rare.
    pub fn rare_counts(&self) -> RareRecoveryCounts {
        self.rarities.as_ref().map_or_else(RareRecoveryCounts::default, |rarities| rarities.rare_counts)
    }

    /// The same, to be changed.
    pub fn rare_counts_mut(&mut self) -> &mut RareRecoveryCounts {
        &mut self.rarities.get_or_insert_default().rare_counts
    }

    /// Data from this position on were first sent with the newest timestamp and echo of their side. Followed from the
    /// first time on that somebody asks, when the next position is `next`.
    pub fn stamped_from(&mut self, next: i64) -> i64 {
        *self.rarities.get_or_insert_default().stamped_from.get_or_insert(next)
    }

    /// Whether anybody has asked.
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

    /// What findings were not needed, and by what that was found.
    pub(crate) fn verdicts(&self) -> &[(u32, Evidence)] {
        self.rarities.as_ref().map_or(&[], |rarities| &rarities.verdicts)
    }

    /// The same, to be changed.
    pub(crate) fn spurious_mut(&mut self) -> &mut Vec<(u32, Evidence)> {
        &mut self.rarities.get_or_insert_default().verdicts
    }

    /// What was lost before the capture point, which is made if there was nothing yet.
    pub fn upstream_loss_mut(&mut self) -> &mut UpstreamLoss {
        self.unseen.get_or_insert_default()
    }

    /// The original of `start..end` came: whether it had been taken for lost because its
    /// retransmission overtook it.
    pub fn forgive(&mut self, start: i64, end: i64, evidence: Evidence) -> bool {
        let found = self.unseen.as_mut().and_then(|unseen| unseen.forgive(start, end));
        if let Some(repaired) = found {
            self.record(&[SpuriousRetransmission {
                number: repaired.number,
                segments: repaired.segments,
                evidence,
                is_known: false,
            }]);
        }
        found.is_some()
    }

    /// Remember, before an acknowledgement says that it came, that something seemed to be missing.
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
        is_repaired && is_heard && self.awaited == 0 && self.sacked.is_empty() && self.unseen.is_none()
    }

    /// Whether something was sent again at this time.
    pub fn resends(&self, time_ns: i64) -> bool {
        self.resent.last().is_some_and(|resent| resent.time_ns == time_ns)
    }

    /// When what lies at `position` was sent again last.
    pub fn resent_ns(&self, position: i64) -> Option<i64> {
        self.last_resent(position).map(|resent| resent.time_ns)
    }

    /// The last time that what lies at `position` was sent again.
    pub fn last_resent(&self, position: i64) -> Option<&Retransmission> {
        let covers = |resent: &&Retransmission| resent.start <= position && position < resent.end;
        self.resent.iter().rev().find(covers)
    }

    /// Whether anything arrived that was sent after what lies at `position` was sent again last; `newest` is
    /// when the highest was sent of what blocks tell of.
    pub fn has_arrived_since_resent(&self, position: i64, newest: Option<i64>) -> bool {
        let Some(resent_ns) = self.resent_ns(position) else { return true };
        let mut later = self.resent.iter().rev().take_while(|resent| resent.time_ns > resent_ns);
        self.delivered_ns > resent_ns
            || newest.is_some_and(|newest_ns| newest_ns > resent_ns)
            || later.any(|resent| self.sacked.has(resent.start, resent.end))
    }

    /// Whether what lies at `position` was sent again in the recovery that goes on.
    pub fn has_resent_in_recovery(&self, position: i64) -> bool {
        let sent = self.episode.map_or(0, |episode| episode.sent);
        let mut of_episode = self.resent.iter().rev().take(sent.into());
        of_episode.any(|resent| resent.start <= position && position < resent.end)
    }

    /// Losses behind the capture point: what was sent again and was needed, as far as is known.
    pub fn after(&self) -> LossEvents {
        let mut events = self.after;
        for resent in self.resent.iter().filter(|resent| resent.spurious.is_none()) {
            events.note(resent.previous_ns, resent.rtt_ns, resent.segments);
        }
        events
    }

    /// The acknowledgement was repeated.
    pub fn on_duplicate_ack(&mut self) {
        self.duplicate_acks = self.duplicate_acks.saturating_add(1);
    }

    /// The acknowledgement moved on.
    pub fn on_progress(&mut self, answer: &Acknowledgement) {
        let Acknowledgement { position, time_ns, echo, .. } = *answer;
        self.duplicate_acks = 0;
        self.timeouts_in_a_row = 0;
        self.has_probed = false;
        self.sacked.acknowledge(position);
        if let Some(unseen) = &mut self.unseen {
            unseen.holes.acknowledge(position);
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

    /// Segments on the wire by class.
    pub fn classes(&self) -> ClassCounts {
        let mut classes =
            self.rarities.as_ref().map_or_else(ClassCounts::default, |rarities| rarities.classes);
        for (class, segments) in Class::RETRANSMISSIONS.into_iter().zip(self.tally.retransmissions) {
            classes.add(class, segments);
        }
        classes
    }

    /// Count `segments` of a class that are no finding.
    pub fn count_segments(&mut self, class: Class, segments: u32) {
        match Class::RETRANSMISSIONS.iter().zip(&mut self.tally.retransmissions).find(|(of, _)| **of == class)
        {
            Some((_, count)) => *count = count.saturating_add(segments),
            None => self.rarities.get_or_insert_default().classes.add(class, segments),
        }
    }

    /// Count `segments` of a class; the number of the finding.
    pub fn count(&mut self, class: Class, segments: u32) -> u32 {
        self.count_segments(class, segments);
        let number = self.tally.findings;
        self.tally.findings = number.saturating_add(1);
        number
    }
}
