//! One direction of a connection: what one side sent, and what the other acknowledged.

mod acknowledgements;
mod results;

use std::cmp::Ordering;
use std::num::NonZeroU32;

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
use super::rtt::RoundTrips;
use super::rtt::timestamp_echoes::TimestampEchoes;
use super::window::Windows;
use super::{Outcome, Segment};
use crate::flow::outstanding::{Outstanding, Pool};
use crate::packet::event::TcpFlags;
use crate::packet::seq::{SeqNumber, Unwrapper};

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

/// What one side sent, and what the other acknowledged.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HalfConnection {
    pub(super) stream: Option<Unwrapper>,
    /// Position after the highest seen (SND.NXT as the capture knows it).
    pub(super) next: i64,
    pub(super) start: i64,
    /// Highest position acknowledged by the peer (SND.UNA).
    pub(super) acknowledged: i64,
    /// Last acknowledgement number from the peer.
    pub(super) last_ack: u32,
    /// Time of the last acknowledgement of new data.
    pub(super) progress_ns: i64,
    /// End of the peer's window (SND.UNA + SND.WND).
    pub(super) window_end: i64,
    pub(super) segments: u32,
    /// Longest payload of a packet on the wire: from the handshake, else learned, else assumed
    /// (`wire_mss.rs`).
    pub(super) longest: Option<NonZeroU32>,
    /// Loss recovery state, allocated when needed.
    pub(super) recovery: Option<Box<RecoveryState>>,
    /// None unless ECN is used, there are many data, or the receiver delays acknowledgements.
    rare_state: Option<Box<RareState>>,

    /// New data not yet acknowledged, by end position.
    pub(super) outstanding: Outstanding,
    /// Timestamp values not yet echoed, each with the time of the first data that carried it.
    timestamps: Outstanding,
    /// Newest timestamp value of data and its echo; meaningless before data had one.
    newest_stamp: (u32, u32),
    is_stamped: bool,
    /// Round-trip times from the handshake in us: between the capture point and this side, and of
    /// the whole path.
    pub(super) handshake_us: (u32, u32),
    /// Send order of this side's packets.
    pub(super) order: IpIdOrder,
    /// Interface that captured its first packet.
    pub(super) capture_point: u16,
    /// Time to live of the first packet.
    pub(super) ttl: u8,
    /// Shift of its windows, if both SYNs announced a scale.
    pub(super) window_shift: Option<u8>,
    /// Whether the packet length is only assumed.
    pub(super) longest_is_usual: bool,
    /// Where the packets of this side are visible.
    pub(super) sight: Sight,
    /// Whether a SYN did not permit SACK.
    pub(super) refuses_sack: bool,
    /// Whether this side's SYN permitted SACK.
    pub(super) permits_sack: bool,
    /// Bytes in flight, round by round.
    flight: Flight,

    /// Receive windows announced by this side.
    pub windows: Windows,
    pub window_scale: Option<u8>,
    pub mss: Option<u16>,
    /// SYNs of this side; a saturated count is a lower bound.
    pub(super) syns: u16,
    pub(super) syn_acks: u8,
    /// Whether the options of a SYN were cut by the capture.
    pub(super) has_cut_syn: bool,
    pub(super) fin: bool,
    /// Segments with SYN, FIN or RST and no payload; a saturated count is a lower bound.
    pub bare_controls: u16,

    /// Payload bytes, each counted once.
    pub unique_bytes: u64,
    /// Duplicate acknowledgements sent by this side.
    pub duplicate_acks: u32,
    /// Round-trip times of this side's data.
    pub round_trips: RoundTrips,
    pub has_timestamps: bool,
}

impl HalfConnection {
    pub(super) fn ce_feedback_mut(&mut self) -> &mut CeFeedback {
        self.rare_state.get_or_insert_default().ce_feedback.get_or_insert_default()
    }

    #[inline(never)]
    pub(super) fn note_ecn(&mut self, segment: &Segment<'_>) {
        self.rare_state.get_or_insert_default().ecn.note(segment);
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
    pub(super) fn on_arrival(&mut self, (seq, units): (u32, u32), sent_ns: i64) {
        let Some(start) = self.position(seq) else { return };
        let end = start + i64::from(units);
        let is_final = self.is_simulated();
        let arrived = &mut self.rare_state.get_or_insert_default().arrived;
        arrived.add(start, end);
        if let Some(recovery) = &mut self.recovery {
            recovery.on_arrival((start, end), sent_ns, arrived, is_final);
        }
    }

    /// `units` of sequence space from `seq`, sent at `sent_ns`, reached a receiver that had them.
    pub(super) fn on_needless_arrival(&mut self, (seq, units): (u32, u32), sent_ns: i64) {
        let Some(start) = self.position(seq) else { return };
        if let Some(recovery) = &mut self.recovery {
            recovery.on_needless_arrival((start, start + i64::from(units)), sent_ns);
        }
    }

    /// `segments` sent at `sent_ns` did not arrive.
    pub(super) fn on_loss(&mut self, sent_ns: i64, segments: u32) {
        let rtt_ns = self.path_ns().unwrap_or(0);
        self.rare_state.get_or_insert_default().losses.note(sent_ns, rtt_ns, segments);
    }

    /// Whether all data of `start..end` were seen to arrive.
    pub(super) fn has_arrived(&self, start: i64, end: i64) -> bool {
        self.rare_state.as_deref().is_some_and(|state| state.arrived.has(start, end))
    }

    /// Whether the capture shows a SYN of this side.
    pub fn has_syn(&self) -> bool {
        self.syns > 0
    }

    pub(super) fn has_whole_syn(&self) -> bool {
        self.has_syn() && !self.has_cut_syn
    }

    /// Position of sequence number `number` in this side's stream, if any.
    pub fn position(&self, number: u32) -> Option<i64> {
        let stream = self.stream?;
        Some(stream.position(SeqNumber(number), self.next))
    }

    /// `window` of a segment of this side in bytes. RFC 7323 section 2.2: the scale applies if both
    /// SYNs offered one; None if they were not fully seen.
    pub fn scaled(&self, window: u16, other: &Self) -> Option<u32> {
        let scale = match (self.window_scale, other.window_scale) {
            (Some(scale), Some(_)) => scale,
            _ if self.has_whole_syn() && other.has_whole_syn() => 0,
            _ => return None,
        };
        Some(u32::from(window) << scale)
    }

    /// Payload of a full-sized segment to `other` (Eff.snd.MSS, RFC 1122 section 4.2.2.6).
    pub(super) fn full_size(&self, other: &Self) -> u32 {
        let announced = [self.mss, other.mss].into_iter().flatten().min().unwrap_or(USUAL_MSS);
        let options = if self.has_timestamps { TIMESTAMP_BYTES } else { 0 };
        u32::from(announced).saturating_sub(options).max(1)
    }

    /// Position up to which data are acknowledged, and bytes acknowledged beyond it.
    pub(super) fn delivered(&self) -> i64 {
        self.next - self.outstanding_bytes()
    }

    /// Bytes in flight: sent, and neither acknowledged nor in a SACK block.
    #[inline(always)]
    pub(super) fn outstanding_bytes(&self) -> i64 {
        let sacked = self.recovery.as_ref().map_or(0, |recovery| recovery.sacked.bytes());
        self.next - self.acknowledged - sacked as i64
    }

    /// Whether a segment of this side is the next and otherwise like the previous one, as most are:
    /// header prediction (V. Jacobson, "4BSD Header Prediction", Computer Communication Review
    /// 20(2), 1990).
    #[inline(always)]
    pub(super) fn expects(&self, segment: &Segment<'_>) -> bool {
        let Segment { tcp, ip, .. } = *segment;
        tcp.flags.0 & !TcpFlags::PSH == TcpFlags::ACK
            && self.is_next(tcp.seq)
            && self.windows.repeats(tcp.window)
            && ip.capture_point == self.capture_point
            && ip.ecn == 0
    }

    /// Whether a segment with this number is the next in its stream.
    #[inline(always)]
    pub(in crate::flow) fn is_next(&self, seq: u32) -> bool {
        self.stream.is_some_and(|stream| stream.number(self.next).0 == seq)
    }

    /// Find the position of a segment in this side's stream and its new data.
    #[inline(always)]
    pub(super) fn place(&mut self, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        let control = segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        if control || !self.is_next(segment.tcp.seq) {
            self.place_unusual(segment, pool, outcome);
        } else if segment.payload > 0 {
            self.place_next(segment, pool, outcome);
        }
    }

    /// The same for the next data.
    #[inline(always)]
    pub(super) fn place_next(&mut self, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        outcome.position = self.next;
        outcome.new_bytes = segment.payload;
        self.unique_bytes += u64::from(segment.payload);
        self.segments = self.segments.saturating_add(1);
        self.advance(self.next + i64::from(segment.payload), segment, pool);
        self.note_size(segment.payload, self.next);
    }

    /// For a payload that ends at `end`, count a packet longer than the wire allows and one that
    /// fills the peer's window.
    #[inline(always)]
    pub(super) fn note_size(&mut self, payload: u32, end: i64) {
        let is_super = self.longest.is_some_and(|longest| payload > longest.get());
        if is_super || end >= self.window_end {
            self.note_unusual_size(payload, end);
        }
    }

    /// Record that sequence numbers up to `occupied` were sent.
    #[inline(always)]
    pub(super) fn advance(&mut self, occupied: i64, segment: &Segment<'_>, pool: &mut Pool) {
        let time_ns = segment.time_ns;
        let bytes = occupied - self.next;
        self.next = occupied;
        self.flight.on_sent(bytes, segment.payload, occupied, time_ns);
        let is_watched = self.outstanding.count() < MAX_OUTSTANDING
            && self.outstanding.push(occupied as u32, time_ns, pool);
        if !is_watched {
            self.flight.note_unwatched();
        }
    }

    /// Newest timestamp value of data and its echo.
    #[inline(always)]
    pub(super) fn last_stamp(&self) -> Option<(u32, u32)> {
        self.is_stamped.then_some(self.newest_stamp)
    }

    /// Record a segment's timestamp option if it is new.
    #[inline(always)]
    pub(super) fn note_timestamp(&mut self, segment: &Segment<'_>, pool: &mut Pool) {
        if let Some(stamp) = segment.tcp.options.timestamp
            && self.last_stamp() != Some(stamp)
        {
            self.remember_timestamp(stamp, segment, pool);
        }
    }

    #[inline(always)]
    fn remember_timestamp(&mut self, (value, echo): (u32, u32), segment: &Segment<'_>, pool: &mut Pool) {
        self.has_timestamps = true;
        if segment.payload == 0 && !segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN) {
            return;
        }
        // As `stamp_order`, with one comparison where the value has grown.
        let is_older = |last| SeqNumber(echo).since(SeqNumber(last)) < 0;
        let (step, is_older) = self.last_stamp().map_or((1, false), |last| {
            let step = SeqNumber(value).since(SeqNumber(last.0));
            (step, step < 0 || (step == 0 && is_older(last.1)))
        });
        if is_older {
            return;
        }
        (self.newest_stamp, self.is_stamped) = ((value, echo), true);
        if self.recovery.as_ref().is_some_and(|recovery| recovery.follows_stamps()) {
            self.note_newest_stamp(&segment.apart());
        }
        if self.echoes_mut().is_some_and(|echoes| echoes.is_awaited(echo)) {
            self.answer_echo(echo, segment.time_ns);
        }
        if step != 0 {
            if self.timestamps.count() == MAX_TIMESTAMPS {
                self.timestamps.drop_oldest(pool);
            }
            // Without space in the pool the value gives no RTT, as if its echo had been lost.
            let _ = self.timestamps.push(value, segment.time_ns, pool);
        }
    }

    #[cold]
    fn note_newest_stamp(&mut self, segment: &Segment<'_>) {
        let behind = SeqNumber(segment.tcp.seq.wrapping_add(segment.payload));
        let is_last = self.stream.is_some_and(|stream| stream.number(self.next) == behind);
        let position = if is_last { self.next - i64::from(segment.payload) } else { self.next };
        if let Some(recovery) = &mut self.recovery {
            recovery.note_stamp(position);
        }
    }

    /// The path estimate to this side, if tracked.
    #[inline(always)]
    pub(super) fn echoes_mut(&mut self) -> Option<&mut TimestampEchoes> {
        self.rare_state.as_mut()?.echoes.as_deref_mut()
    }

    /// Whether a packet with this timestamp option was sent before or after the newest data of its
    /// side: value and echo never decrease (RFC 7323 sections 4.1 and 4.3).
    #[inline]
    pub(super) fn stamp_order(&self, (value, echo): (u32, u32)) -> Option<Ordering> {
        let last = self.last_stamp()?;
        let steps = [(value, last.0), (echo, last.1)];
        let [by_value, by_echo] = steps.map(|(this, last)| SeqNumber(this).since(SeqNumber(last)).cmp(&0));
        Some(by_value.then(by_echo))
    }

    pub(super) fn on_repair(&mut self, class: Class, time_ns: i64) {
        let repair = if class == Class::Rto { RepairCause::Timeout } else { RepairCause::Recovery };
        self.flight.note(self.outstanding_bytes());
        self.flight.on_repair(repair, self.next, time_ns);
    }

    /// Forget when data and acknowledgements passed: nothing later may be measured from them.
    pub(super) fn forget_times(&mut self, pool: &mut Pool) {
        self.outstanding.clear(pool);
        self.timestamps.clear(pool);
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
