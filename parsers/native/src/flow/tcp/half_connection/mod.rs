//! One direction of a connection: what one side sent, and what the other acknowledged.

mod acknowledgements;
mod options;
mod results;

use serde::{Deserialize, Serialize};

use super::accurate_ecn::CeFeedback;
use super::classify::class::Class;
use super::classify::ip_id_order::IpIdOrder;
use super::ecn::{Ecn, RoundMarks};
use super::loss_events::LossEvents;
use super::recovery::recovery_state::RecoveryState;
use super::recovery::scoreboard::Scoreboard;
use super::rounds::RepairCause;
use super::rounds::flight::Flight;
use super::rtt::path_times::PathTimes;
use super::rtt::timestamp_echoes::TimestampEchoes;
use super::window::Windows;
use super::wire_mss::OnWire;
use super::{Outcome, Segment};
use crate::flow::outstanding::{Outstanding, Pool};
use crate::packet::event::TcpFlags;
use crate::packet::seq::{SeqNumber, Unwrapper};
pub(super) use acknowledgements::FIRST_SEEN;
use options::Options;
pub(super) use results::AT_SENDER_NS;

/// Limit of unacknowledged segments in one direction: 90 MB of full-size segments. Those beyond
/// give no RTT sample.
pub(super) const MAX_OUTSTANDING: usize = 65_536;

/// Limit of timestamp values waiting for their echo; most clocks tick at most a thousand times a
/// second.
const MAX_TIMESTAMPS: usize = 4_096;

/// Maximum segment size assumed without a SYN: Ethernet with IPv4.
const USUAL_MSS: u16 = 1_460;

/// Bytes of a timestamp option with padding. If one segment carries it, all do (RFC 7323 section
/// 3.2), and the MSS does not account for it (RFC 6691).
pub(super) const TIMESTAMP_BYTES: u32 = 12;

/// State that few directions have.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RareState {
    ecn: Ecn,
    ce_feedback: Option<Box<CeFeedback>>,
    /// Marks up to the last round.
    marks_before: RoundMarks,
    echoes: Option<Box<TimestampEchoes>>,
    delayed_acks: u32,
    /// Data seen to arrive.
    arrived: Scoreboard,
    /// Losses of data seen not to arrive.
    losses: LossEvents,
}

/// Where the packets of a side are visible besides the capture point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sight {
    /// Nowhere.
    #[default]
    Alone,
    /// Where they arrive, in another capture.
    Pair,
    /// Where they arrive, in a simulator's trace.
    Simulation,
}

/// SYNs of one side.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Syns {
    /// A saturated count is a lower bound.
    pub(super) count: u8,
    pub(super) syn_acks: u8,
    /// SYNs of the other side less the SYN/ACKs since then, at least -1.
    owed: i8,
    /// Whether the options of one were cut by the capture.
    pub(super) is_cut: bool,
}

impl Syns {
    /// The other side sent a SYN.
    pub(super) fn on_asked(&mut self) {
        self.owed = self.owed.max(0).saturating_add(1);
    }

    pub(super) fn on_syn(&mut self, is_answer: bool, is_cut: bool) {
        self.count = self.count.saturating_add(1);
        self.syn_acks = self.syn_acks.saturating_add(u8::from(is_answer));
        self.owed = self.owed.saturating_sub(i8::from(is_answer)).max(-1);
        self.is_cut |= is_cut;
    }

    /// Whether each SYN/ACK so far answers a SYN of its own.
    pub(super) fn are_answers(self) -> bool {
        self.owed >= 0
    }

    /// Whether the options that both sides announced are known.
    pub(super) fn are_whole(self) -> bool {
        self.count > 0 && !self.is_cut
    }
}

/// The data that one side sent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sent {
    pub(super) stream: Option<Unwrapper>,
    pub(super) start: i64,
    /// Position after the highest seen (SND.NXT as the capture knows it).
    pub(super) next: i64,
    /// Payload bytes, each counted once.
    pub unique_bytes: u64,
    pub(super) segments: u32,
    /// New data not yet acknowledged, by end position.
    pub(super) outstanding: Outstanding,
}

impl Sent {
    /// Position of sequence number `number` in the stream, if any.
    pub fn position(&self, number: u32) -> Option<i64> {
        Some(self.stream?.position(SeqNumber(number), self.next))
    }

    /// Whether a segment with this number is the next in the stream.
    #[inline(always)]
    pub(in crate::flow) fn expects(&self, seq: u32) -> bool {
        self.stream.is_some_and(|stream| stream.number(self.next).0 == seq)
    }
}

/// What the other side acknowledged.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Highest position acknowledged (SND.UNA).
    pub(super) position: i64,
    /// End of the peer's window (SND.UNA + SND.WND).
    pub(super) window_end: i64,
    /// Time of the last acknowledgement of new data.
    pub(super) progress_ns: i64,
    /// Last acknowledgement number.
    pub(super) number: u32,
    /// Duplicate acknowledgements.
    pub duplicates: u32,
}

impl Acknowledged {
    pub(super) fn is_window_closed(&self) -> bool {
        self.window_end <= self.position
    }
}

/// What one side sent, and what the other acknowledged.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HalfConnection {
    pub sent: Sent,
    pub acknowledged: Acknowledged,
    pub path: PathTimes,
    pub options: Options,
    pub(super) on_wire: OnWire,
    /// Loss recovery state, allocated when needed.
    pub(super) recovery: Option<Box<RecoveryState>>,
    /// None unless ECN is used, there are many data, or the receiver delays acknowledgements.
    rare_state: Option<Box<RareState>>,
    /// Bytes in flight, round by round.
    flight: Flight,
    /// Send order of this side's packets.
    pub(super) order: IpIdOrder,
    /// Receive windows announced by this side.
    pub windows: Windows,
    /// Where the packets of this side are visible.
    pub(in crate::flow) sight: Sight,
    pub(super) syns: Syns,
    pub(super) fin: bool,
    /// Segments with SYN, FIN or RST and no payload; a saturated count is a lower bound.
    pub bare_controls: u16,
}

impl HalfConnection {
    pub(super) fn ce_feedback_mut(&mut self) -> &mut CeFeedback {
        self.rare_state.get_or_insert_default().ce_feedback.get_or_insert_default()
    }

    #[inline(never)]
    pub(super) fn note_ecn(&mut self, segment: &Segment<'_>) {
        self.rare_state.get_or_insert_default().ecn.note(segment);
    }

    /// A packet of this side that left without a congestion mark arrived with one.
    pub(in crate::flow) fn note_mark_on_way(&mut self) {
        self.rare_state.get_or_insert_default().ecn.note_mark_on_way();
    }

    /// The recovery state, allocated on first use.
    #[inline(never)]
    pub(super) fn recovery_mut(&mut self) -> &mut RecoveryState {
        let recovery = self.recovery.get_or_insert_default();
        recovery.is_over = false;
        recovery
    }

    /// Whether this side is a simulated agent, which answers in no time.
    pub(in crate::flow) fn is_simulated(&self) -> bool {
        self.sight == Sight::Simulation
    }

    /// `units` of sequence space from `seq`, sent at `sent_ns`, arrived.
    pub(in crate::flow) fn on_arrival(&mut self, (seq, units): (u32, u32), sent_ns: i64) {
        let Some(start) = self.sent.position(seq) else { return };
        let end = start + i64::from(units);
        let is_final = self.is_simulated();
        let arrived = &mut self.rare_state.get_or_insert_default().arrived;
        arrived.add(start, end);
        if let Some(recovery) = &mut self.recovery {
            recovery.on_arrival((start, end), sent_ns, arrived, is_final);
        }
    }

    /// `units` of sequence space from `seq`, sent at `sent_ns`, reached a receiver that had them.
    pub(in crate::flow) fn on_needless_arrival(&mut self, (seq, units): (u32, u32), sent_ns: i64) {
        let Some(start) = self.sent.position(seq) else { return };
        if let Some(recovery) = &mut self.recovery {
            recovery.on_needless_arrival((start, start + i64::from(units)), sent_ns);
        }
    }

    /// A segment sent at `sent_ns` did not arrive.
    pub(in crate::flow) fn on_loss(&mut self, sent_ns: i64) {
        let rtt_ns = self.path_ns().unwrap_or(0);
        self.rare_state.get_or_insert_default().losses.note(sent_ns, rtt_ns, 1);
    }

    /// Whether all data of `start..end` were seen to arrive.
    pub(super) fn has_arrived(&self, start: i64, end: i64) -> bool {
        self.rare_state.as_deref().is_some_and(|state| state.arrived.has(start, end))
    }

    /// `window` of a segment of this side in bytes. RFC 7323 section 2.2: the scale applies if both
    /// SYNs offered one; None if they were not fully seen.
    pub fn scaled(&self, window: u16, other: &Self) -> Option<u32> {
        let scale = match (self.options.window_scale, other.options.window_scale) {
            (Some(scale), Some(_)) => scale,
            _ if self.syns.are_whole() && other.syns.are_whole() => 0,
            _ => return None,
        };
        Some(u32::from(window) << scale)
    }

    /// Payload of a full-sized segment to `other` (Eff.snd.MSS, RFC 1122 section 4.2.2.6).
    pub(super) fn full_size(&self, other: &Self) -> u32 {
        let announced =
            [self.options.mss, other.options.mss].into_iter().flatten().min().unwrap_or(USUAL_MSS);
        let options = if self.options.has_timestamps { TIMESTAMP_BYTES } else { 0 };
        u32::from(announced).saturating_sub(options).max(1)
    }

    /// Position up to which data are acknowledged, and bytes acknowledged beyond it.
    pub(super) fn delivered(&self) -> i64 {
        self.sent.next - self.outstanding_bytes()
    }

    /// Bytes of the stream that the other side acknowledged.
    pub(in crate::flow) fn acknowledged_bytes(&self) -> i64 {
        (self.acknowledged.position - FIRST_SEEN).max(0)
    }

    /// Whether `seq` is the first that the other side has not acknowledged, though its window is open.
    #[inline(never)]
    pub(in crate::flow) fn awaits(&self, seq: u32) -> bool {
        self.sent.position(seq) == Some(self.acknowledged.position) && !self.acknowledged.is_window_closed()
    }

    /// The round-trip time of the whole path, as far as it is known.
    pub(super) fn path_ns(&self) -> Option<i64> {
        let repair = self.upstream_loss().map(|upstream_loss| upstream_loss.repair);
        self.path.whole_ns(repair.and_then(|repair| repair.smoothed_ns()))
    }

    /// Bytes in flight: sent, and neither acknowledged nor in a SACK block.
    #[inline(always)]
    pub(super) fn outstanding_bytes(&self) -> i64 {
        let sacked = self.recovery.as_ref().map_or(0, |recovery| recovery.sacked.bytes());
        self.sent.next - self.acknowledged.position - sacked as i64
    }

    /// Whether a segment of this side is the next and otherwise like the previous one, as most are:
    /// header prediction (V. Jacobson, "4BSD Header Prediction", Computer Communication Review
    /// 20(2), 1990).
    #[inline(always)]
    pub(super) fn expects(&self, segment: &Segment<'_>) -> bool {
        let Segment { tcp, ip, .. } = *segment;
        tcp.flags.0 & !TcpFlags::PSH == TcpFlags::ACK
            && self.sent.expects(tcp.seq)
            && self.windows.repeats(tcp.window)
            && ip.capture_point == self.on_wire.capture_point
            && ip.ecn == 0
    }

    /// Find the position of a segment in this side's stream and its new data.
    #[inline(always)]
    pub(super) fn place(&mut self, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        let control = segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        if control || !self.sent.expects(segment.tcp.seq) {
            self.place_unusual(segment, pool, outcome);
        } else if segment.payload > 0 {
            self.place_next(segment, pool, outcome);
        }
    }

    /// The same for the next data.
    #[inline(always)]
    pub(super) fn place_next(&mut self, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        outcome.position = self.sent.next;
        outcome.new_bytes = segment.payload;
        self.sent.unique_bytes += u64::from(segment.payload);
        self.sent.segments = self.sent.segments.saturating_add(1);
        self.advance(self.sent.next + i64::from(segment.payload), segment.payload, segment.time_ns, pool);
        self.note_size(segment.payload, self.sent.next);
    }

    /// For a payload that ends at `end`, count a packet longer than the wire allows and one that
    /// fills the peer's window.
    #[inline(always)]
    pub(super) fn note_size(&mut self, payload: u32, end: i64) {
        let is_super = self.on_wire.is_exceeded_by(payload);
        if is_super || end >= self.acknowledged.window_end {
            self.note_unusual_size(payload, end);
        }
    }

    /// Record that sequence numbers up to `occupied` were sent, with `payload` at their end.
    #[inline(always)]
    pub(super) fn advance(&mut self, occupied: i64, payload: u32, time_ns: i64, pool: &mut Pool) {
        let bytes = occupied - self.sent.next;
        self.sent.next = occupied;
        self.flight.on_sent(bytes, payload, occupied, time_ns);
        let is_watched = self.sent.outstanding.count() < MAX_OUTSTANDING
            && self.sent.outstanding.push(occupied as u32, time_ns, pool);
        if !is_watched {
            self.flight.note_unwatched();
        }
    }

    /// Record a segment's timestamp option if it is new.
    #[inline(always)]
    pub(super) fn note_timestamp(&mut self, segment: &Segment<'_>, pool: &mut Pool) {
        if let Some(stamp) = segment.tcp.options.timestamp
            && self.options.last_stamp() != Some(stamp)
        {
            self.remember_timestamp(stamp, segment, pool);
        }
    }

    #[inline(always)]
    fn remember_timestamp(&mut self, (value, echo): (u32, u32), segment: &Segment<'_>, pool: &mut Pool) {
        self.options.has_timestamps = true;
        if segment.payload == 0 && !segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN) {
            return;
        }
        let Some(step) = self.options.renew_stamp((value, echo)) else { return };
        if self.recovery.as_ref().is_some_and(|recovery| recovery.follows_stamps()) {
            self.note_newest_stamp(&segment.apart());
        }
        if self.echoes_mut().is_some_and(|echoes| echoes.is_awaited(echo)) {
            self.answer_echo(echo, segment.time_ns);
        }
        if step != 0 {
            if self.options.unechoed.count() == MAX_TIMESTAMPS {
                self.options.unechoed.drop_oldest(pool);
            }
            // Without space in the pool the value gives no RTT, as if its echo had been lost.
            let _ = self.options.unechoed.push(value, segment.time_ns, pool);
        }
    }

    /// Data of this side echo the awaited `timestamp`.
    #[inline(never)]
    fn answer_echo(&mut self, timestamp: u32, time_ns: i64) {
        let is_resent = self.recovery.as_deref().is_some_and(|recovery| recovery.resends(time_ns));
        let sent = (self.sent.segments, is_resent);
        let answer = self.echoes_mut().and_then(|echoes| echoes.answer(timestamp, time_ns, sent));
        if let Some(answer) = answer
            && !answer.waits_for_application(|| self.path_ns().unwrap_or(0))
            && let Some(echoes) = self.echoes_mut()
        {
            echoes.add(answer);
        }
    }

    #[cold]
    fn note_newest_stamp(&mut self, segment: &Segment<'_>) {
        let next = self.sent.next;
        let is_last = self.sent.expects(segment.tcp.seq.wrapping_add(segment.payload));
        let position = if is_last { next - i64::from(segment.payload) } else { next };
        if let Some(recovery) = &mut self.recovery {
            recovery.note_stamp(position);
        }
    }

    /// The path estimate to this side, if tracked.
    #[inline(always)]
    pub(super) fn echoes_mut(&mut self) -> Option<&mut TimestampEchoes> {
        self.rare_state.as_mut()?.echoes.as_deref_mut()
    }

    /// Handle a packet of `payload` ending at `end` that no link carries, or that fills the window.
    #[cold]
    fn note_unusual_size(&mut self, payload: u32, end: i64) {
        if self.on_wire.is_to_be_learned_from(payload) {
            let counts = self.recovery_mut().rare_counts_mut();
            if let Some(learned) = counts.learning.add(payload) {
                counts.super_segments = counts.super_segments.saturating_add(learned.earlier);
                counts.extra_segments = counts.extra_segments.saturating_add(learned.extra);
                self.on_wire.set_longest(Some(learned.longest));
            }
        }
        let packets = self.on_wire.packets_of(payload);
        let is_full = end >= self.acknowledged.window_end;
        let is_probe = is_full && payload == 1 && self.acknowledged.is_window_closed();
        let recovery = self.recovery_mut();
        if is_probe {
            recovery.count_segments(Class::ZeroWindowProbe, 1);
            recovery.rare_counts_mut().last_probe_end = Some(end);
        } else if is_full {
            recovery.window_full = recovery.window_full.saturating_add(1);
        }
        if packets > 1 {
            let counts = recovery.rare_counts_mut();
            counts.super_segments = counts.super_segments.saturating_add(1);
            counts.extra_segments = counts.extra_segments.saturating_add(u64::from(packets - 1));
        }
    }

    pub(super) fn on_repair(&mut self, class: Class, time_ns: i64) {
        let repair = if class == Class::Rto { RepairCause::Timeout } else { RepairCause::Recovery };
        self.flight.note(self.outstanding_bytes());
        self.flight.on_repair(repair, self.sent.next, time_ns);
    }

    /// Forget when data and acknowledgements passed: nothing later may be measured from them.
    pub(super) fn forget_times(&mut self, pool: &mut Pool) {
        self.sent.outstanding.clear(pool);
        self.options.unechoed.clear(pool);
        if let Some(echoes) = self.echoes_mut() {
            echoes.forget();
        }
    }

    /// Give the pool back what it needs no longer when nothing may follow.
    pub(super) fn leave(&mut self, pool: &mut Pool) {
        self.forget_times(pool);
        if let Some(upstream_loss) = self.upstream_loss() {
            upstream_loss.holes.release(pool);
        }
    }

    /// Give the pool back what this half holds of it.
    pub(super) fn give_up(&mut self, pool: &mut Pool) {
        self.forget_times(pool);
        if let Some(upstream_loss) =
            self.recovery.as_mut().and_then(|recovery| recovery.upstream_loss.as_mut())
        {
            upstream_loss.holes.clear(pool);
        }
    }
}

/// Nanoseconds from `since` to `until`; None if the capture's clock went backwards between them.
#[inline(always)]
pub(super) fn elapsed(since: i64, until: i64) -> Option<u64> {
    u64::try_from(until.checked_sub(since)?).ok()
}
