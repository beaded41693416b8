//! One direction of a connection: what one side sent, and what the other said of it.

use std::cmp::Ordering;
use std::num::NonZeroU32;

use super::classify::class::{Class, ClassCounts, Evidence};
use super::classify::ip_id_order::{IpIdOrder, RelativeAge};
use super::ecn::Ecn;
use super::loss_events::LossEvents;
use super::recovery::recovery_state::{RareRecoveryCounts, RecoveryState, RetransmissionCounts};
use super::recovery::scoreboard::Scoreboard;
use super::recovery::upstream_loss::UpstreamLoss;
use super::rounds::flight::Flight;
use super::rounds::{RepairCause, Round, RoundEnd, Rounds};
use super::rtt::RoundTrips;
use super::rtt::timestamp_echoes::TimestampEchoes;
use super::window::Windows;
use super::{Outcome, Segment};
use crate::flow::outstanding::{Outstanding, Pool};
use crate::packet::event::TcpFlags;
use crate::packet::seq::{SeqNumber, Unwrapper};

/// Segments of one direction that wait for their acknowledgement: 90 MB in full-size segments.
/// Those beyond give no RTT sample.
pub(super) const MAX_OUTSTANDING: usize = 65_536;

/// Timestamp values that wait for their echo; they tick a thousand times a second at most, usually.
const MAX_TIMESTAMPS: usize = 4_096;

/// Data segments behind which it is worth the memory to time the way to their sender.
const MANY_SEGMENTS: u32 = 64;

/// The shortest delayed-acknowledgement timer in wide use (Linux's 40 ms; RFC 1122 section 4.2.3.2
/// and RFC 5681 section 4.2 allow 500 ms).
const DELAYED_ACK_NS: u64 = 40_000_000;

/// Maximum segment size where no SYN tells it: Ethernet's, by IPv4.
const USUAL_MSS: u16 = 1_460;

/// Bytes of a timestamp option with its padding, which every segment carries if one does (RFC 7323
/// section 3.2), and which the MSS does not account for (RFC 6691).
pub(super) const TIMESTAMP_BYTES: u32 = 12;

/// What few directions have.
#[derive(Debug, Default)]
struct RareState {
    ecn: Ecn,
    echoes: Option<Box<TimestampEchoes>>,
    delayed_acks: u32,
    /// What was seen to arrive.
    arrived: Scoreboard,
    /// What was seen not to.
    losses: LossEvents,
}

/// Where a side's packets are seen besides the place of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// Nowhere.
    #[default]
    Alone,
    /// Where they arrive, by another capture.
    Pair,
    /// Where they arrive, by a simulator.
    Simulation,
}

/// What one side sent, and what was said of it.
#[derive(Debug, Default)]
pub struct HalfConnection {
    pub(super) stream: Option<Unwrapper>,
    /// Position behind the highest seen (SND.NXT as the capture knows it).
    pub(super) next: i64,
    /// Lowest position seen.
    pub(super) start: i64,
    /// Highest position that the other side acknowledged (SND.UNA).
    pub(super) acknowledged: i64,
    /// The acknowledgement number that the other side sent last.
    pub(super) last_ack: u32,
    /// When it was acknowledged.
    pub(super) progress_ns: i64,
    /// What the other side's window has room for ends here (SND.UNA + SND.WND).
    pub(super) window_end: i64,
    /// Data segments seen.
    pub(super) segments: u32,
    /// The longest payload of a packet on the wire: of the handshake, learned, or for want of these the
    /// usual one (`wire_mss.rs`).
    pub(super) longest: Option<NonZeroU32>,
    /// What only a direction with trouble has.
    pub(super) trouble: Option<Box<RecoveryState>>,
    /// None unless ECN is used, there are many data, or the receiver waits with acknowledgements.
    asides: Option<Box<RareState>>,

    /// New data not yet acknowledged, by the position where they end.
    pub(super) outstanding: Outstanding,
    /// Timestamp values not yet echoed, each with the time of the first data that carried it.
    timestamps: Outstanding,
    /// The newest timestamp value of data, and the newest echo beside it; mean nothing before data had one.
    newest_stamp: (u32, u32),
    /// Whether they did.
    is_stamped: bool,
    /// From the capture point to this side and back, and over the whole path, by the handshake.
    pub(super) handshake_us: (u32, u32),
    /// In which order this side sent its packets.
    pub(super) order: IpIdOrder,
    /// Where its first packet was captured.
    pub(super) place: u16,
    /// Time to live of that.
    pub(super) ttl: u8,
    /// By how much its windows are shifted, if both SYNs told.
    pub(super) window_shift: Option<u8>,
    /// Whether nothing told how long packets are.
    pub(super) longest_is_usual: bool,
    /// Where this side's packets are seen.
    pub(super) sight: Sight,
    /// Whether a SYN did not permit SACK.
    pub(super) refuses_sack: bool,
    /// Whether this side's SYN did.
    pub(super) permits_sack: bool,
    /// What is outstanding, in bytes, and how that went from round to round.
    flight: Flight,

    /// Receive windows that this side announced.
    pub windows: Windows,
    /// Window scale of this side's SYN.
    pub window_scale: Option<u8>,
    /// Maximum segment size of this side's SYN.
    pub mss: Option<u16>,
    /// SYNs of this side; at its maximum there may be more, as below.
    pub(super) syns: u16,
    /// Those of them that acknowledge.
    pub(super) syn_acks: u8,
    /// Whether the options of one of them were not captured whole.
    pub(super) has_cut_syn: bool,
    pub(super) fin: bool,
    /// Segments with SYN, FIN or RST and no payload; at its maximum there may be more.
    pub bare_controls: u16,

    /// Payload with every byte counted once.
    pub unique_bytes: u64,
    /// Duplicate acknowledgements that this side sent.
    pub duplicate_acks: u32,
    /// RTT of this side's data.
    pub round_trips: RoundTrips,
    /// Whether any segment carried a timestamp.
    pub has_timestamps: bool,
}

impl HalfConnection {
    /// Bytes passed over and never seen.
    pub fn missing_bytes(&self) -> u64 {
        self.unseen().map_or(0, |unseen| unseen.holes.missing())
    }

    /// Whether there were more holes than are kept.
    pub fn lost_track_of_holes(&self) -> bool {
        self.unseen().is_some_and(|unseen| unseen.holes.overflowed())
    }

    /// Losses before the capture point: what came late because it had been lost, and what never came.
    pub fn lost_before(&self) -> LossEvents {
        let Some(unseen) = self.unseen() else { return LossEvents::default() };
        let (mut events, rtt_ns) = (unseen.events, self.path_ns().unwrap_or(0));
        for (bytes, opening) in unseen.holes.never_filled() {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            events.note(opening.time_ns, rtt_ns, self.packets_of(bytes));
        }
        events
    }

    /// Losses behind the capture point: what was sent again and was needed, as far as is known.
    pub fn lost_after(&self) -> LossEvents {
        if self.is_simulated() {
            return self.asides.as_ref().map_or_else(LossEvents::default, |asides| asides.losses);
        }
        self.trouble.as_ref().map_or_else(LossEvents::default, |trouble| trouble.after())
    }

    /// Loss events on the whole path; None if there were losses and no round-trip time to group them.
    pub fn loss_events(&self) -> Option<u32> {
        let count = self.lost_before().count().saturating_add(self.lost_after().count());
        (count == 0 || self.path_ns().is_some()).then_some(count)
    }

    /// Whether it is known how much the other side had room for.
    pub fn knows_window_ends(&self) -> bool {
        self.window_shift.is_some()
    }

    /// Bytes that were acknowledged and never seen.
    pub fn gap_bytes(&self) -> u64 {
        self.unseen().map_or(0, |unseen| unseen.holes.gap_bytes())
    }

    /// Data segments as the wire carried them; None if their length is not known.
    pub fn wire_segments(&self) -> Option<u64> {
        self.known_longest()?;
        Some(u64::from(self.segments).saturating_add(self.rare_counts().extra_segments))
    }

    /// By what it was found that the retransmission of finding `number` was not needed.
    pub fn verdict(&self, number: u32) -> Option<Evidence> {
        self.trouble.as_ref()?.verdict(number)
    }

    /// What was lost before the capture point, if anything was.
    pub(super) fn unseen(&self) -> Option<&UpstreamLoss> {
        self.trouble.as_ref()?.unseen.as_deref()
    }

    /// What was counted of trouble.
    pub fn tally(&self) -> RetransmissionCounts {
        self.trouble.as_ref().map_or_else(RetransmissionCounts::default, |trouble| trouble.tally)
    }

    /// Segments on the wire by class.
    pub fn classes(&self) -> ClassCounts {
        self.trouble.as_ref().map_or_else(ClassCounts::default, |trouble| trouble.classes())
    }

    /// What was counted of trouble that is rare.
    pub fn rare_counts(&self) -> RareRecoveryCounts {
        self.trouble.as_ref().map_or_else(RareRecoveryCounts::default, |trouble| trouble.rare_counts())
    }

    /// Packets that filled the other side's window.
    pub fn window_full(&self) -> u32 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.window_full)
    }

    /// What its packets say of congestion.
    pub fn ecn(&self) -> Ecn {
        self.asides.as_ref().map_or_else(Ecn::default, |asides| asides.ecn)
    }

    /// Data segments whose RTT was not looked for because too many were outstanding.
    pub fn unwatched(&self) -> u32 {
        self.rounds().map_or(0, |rounds| rounds.unwatched)
    }

    /// RTT samples that seem to have waited for a delayed-acknowledgement timer.
    pub fn delayed_acks(&self) -> u32 {
        self.asides.as_ref().map_or(0, |asides| asides.delayed_acks)
    }

    #[inline(never)]
    pub(super) fn note_ecn(&mut self, segment: &Segment<'_>) {
        self.asides.get_or_insert_default().ecn.note(segment);
    }

    /// What is known of trouble, which is made if there was none yet.
    #[inline(never)]
    pub(super) fn recovery_mut(&mut self) -> &mut RecoveryState {
        let trouble = self.trouble.get_or_insert_default();
        trouble.is_over = false;
        trouble
    }

    /// Whether a simulator shows this side, whose agents take no time.
    pub(super) fn is_simulated(&self) -> bool {
        self.sight == Sight::Simulation
    }

    /// `units` from `seq` on arrived that were sent at `sent_ns`.
    pub(super) fn on_arrival(&mut self, (seq, units): (u32, u32), sent_ns: i64) {
        let Some(start) = self.position(seq) else { return };
        let end = start + i64::from(units);
        let is_final = self.is_simulated();
        let arrived = &mut self.asides.get_or_insert_default().arrived;
        arrived.add(start, end);
        if let Some(trouble) = &mut self.trouble {
            trouble.on_arrival((start, end), sent_ns, arrived, is_final);
        }
    }

    /// A packet that was sent at `sent_ns` and has `units` from `seq` on came to a receiver that had them.
    pub(super) fn on_needless_arrival(&mut self, (seq, units): (u32, u32), sent_ns: i64) {
        let Some(start) = self.position(seq) else { return };
        if let Some(trouble) = &mut self.trouble {
            trouble.on_needless_arrival((start, start + i64::from(units)), sent_ns);
        }
    }

    /// `segments` that were sent at `sent_ns` were seen not to arrive.
    pub(super) fn on_loss(&mut self, sent_ns: i64, segments: u32) {
        let rtt_ns = self.path_ns().unwrap_or(0);
        self.asides.get_or_insert_default().losses.note(sent_ns, rtt_ns, segments);
    }

    /// Whether what was sent before `start..end`, with the same bytes, was seen to arrive.
    pub(super) fn has_arrived(&self, start: i64, end: i64) -> bool {
        self.asides.as_deref().is_some_and(|asides| asides.arrived.has(start, end))
    }

    /// Whether the capture shows a SYN of this side.
    pub fn has_syn(&self) -> bool {
        self.syns > 0
    }

    pub(super) fn has_whole_syn(&self) -> bool {
        self.has_syn() && !self.has_cut_syn
    }

    /// Position of `number` in this side's stream, if it has one.
    pub fn position(&self, number: u32) -> Option<i64> {
        let stream = self.stream?;
        Some(stream.position(SeqNumber(number), self.next))
    }

    /// `window` of a segment of this side in bytes. RFC 7323 section 2.2: the scale is in force if both
    /// SYNs offered one; None if they were not seen whole.
    pub fn scaled(&self, window: u16, other: &Self) -> Option<u32> {
        let scale = match (self.window_scale, other.window_scale) {
            (Some(scale), Some(_)) => scale,
            _ if self.has_whole_syn() && other.has_whole_syn() => 0,
            _ => return None,
        };
        Some(u32::from(window) << scale)
    }

    /// Payload of a full-sized segment to `other` (Eff.snd.MSS, RFC 1122 section 4.2.2.6).
    fn full_size(&self, other: &Self) -> u32 {
        let announced = [self.mss, other.mss].into_iter().flatten().min().unwrap_or(USUAL_MSS);
        let options = if self.has_timestamps { TIMESTAMP_BYTES } else { 0 };
        u32::from(announced).saturating_sub(options).max(1)
    }

    /// What is on its way, in bytes: sent and neither acknowledged nor within a SACK block.
    #[inline(always)]
    pub(super) fn outstanding_bytes(&self) -> i64 {
        let sacked = self.trouble.as_ref().map_or(0, |trouble| trouble.sacked.bytes());
        self.next - self.acknowledged - sacked as i64
    }

    /// The round-trip time between the capture and this side, its median in ms.
    pub fn sender_rtt_ms(&self) -> Option<f64> {
        self.asides.as_ref()?.echoes.as_ref()?.median_ms()
    }

    /// How the flight of this side's data went from round to round; None if it sent none.
    pub fn rounds(&self) -> Option<&Rounds> {
        self.flight.rounds()
    }

    /// Largest flight; None as [`HalfConnection::rounds`].
    pub fn max_flight_bytes(&self) -> Option<u32> {
        self.flight.max_bytes(self.outstanding_bytes())
    }

    /// Mean flight over the time until `end_ns` in which there was any.
    pub fn mean_flight_bytes(&self, end_ns: i64) -> Option<f64> {
        self.flight.mean_bytes(self.outstanding_bytes(), end_ns)
    }

    /// Whether a segment of this side is the next and, as most are, otherwise like the one before: header
    /// prediction (V. Jacobson, "4BSD Header Prediction", Computer Communication Review 20(2), 1990).
    #[inline(always)]
    pub(super) fn expects(&self, segment: &Segment<'_>) -> bool {
        let Segment { tcp, carrier, .. } = *segment;
        tcp.flags.0 & !TcpFlags::PSH == TcpFlags::ACK
            && self.is_next(tcp.seq)
            && self.windows.repeats(tcp.window)
            && carrier.place == self.place
            && carrier.ecn == 0
    }

    #[inline(always)]
    fn is_next(&self, seq: u32) -> bool {
        self.stream.is_some_and(|stream| stream.number(self.next).0 == seq)
    }

    /// Find where a segment belongs in this side's stream, and what of it is new.
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

    /// Count what is longer than a packet can be, and what fills the other side's window, of a payload that
    /// stands before `end`.
    #[inline(always)]
    pub(super) fn note_size(&mut self, payload: u32, end: i64) {
        let is_super = self.longest.is_some_and(|longest| payload > longest.get());
        if is_super || end >= self.window_end {
            self.note_unusual_size(payload, end);
        }
    }

    /// New sequence numbers up to `occupied` went out.
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

    /// The newest timestamp value of data, and the newest echo beside it.
    #[inline(always)]
    pub(super) fn last_stamp(&self) -> Option<(u32, u32)> {
        self.is_stamped.then_some(self.newest_stamp)
    }

    /// Take in what a segment's timestamp option says, if it has one and that is news.
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
        // What `stamp_order` says, with one comparison where the value has grown.
        let is_older = |last| SeqNumber(echo).since(SeqNumber(last)) < 0;
        let (step, is_older) = self.last_stamp().map_or((1, false), |last| {
            let step = SeqNumber(value).since(SeqNumber(last.0));
            (step, step < 0 || (step == 0 && is_older(last.1)))
        });
        if is_older {
            return;
        }
        (self.newest_stamp, self.is_stamped) = ((value, echo), true);
        if self.trouble.as_ref().is_some_and(|trouble| trouble.follows_stamps()) {
            self.note_newest_stamp(&segment.apart());
        }
        if self.echoes_mut().is_some_and(|echoes| echoes.is_awaited(echo)) {
            self.answer_echo(echo, segment.time_ns);
        }
        if step != 0 {
            if self.timestamps.count() == MAX_TIMESTAMPS {
                self.timestamps.drop_oldest(pool);
            }
            // Without room the value has no RTT, as if its echo had been lost.
            let _ = self.timestamps.push(value, segment.time_ns, pool);
        }
    }

    #[cold]
    fn note_newest_stamp(&mut self, segment: &Segment<'_>) {
        let behind = SeqNumber(segment.tcp.seq.wrapping_add(segment.payload));
        let is_last = self.stream.is_some_and(|stream| stream.number(self.next) == behind);
        let position = if is_last { self.next - i64::from(segment.payload) } else { self.next };
        if let Some(trouble) = &mut self.trouble {
            trouble.note_stamp(position);
        }
    }

    /// What is known of the way to this side, if anything is looked for.
    #[inline(always)]
    pub(super) fn echoes_mut(&mut self) -> Option<&mut TimestampEchoes> {
        self.asides.as_mut()?.echoes.as_deref_mut()
    }

    /// Whether a packet with this timestamp option was sent before or after the newest of its side that
    /// has data: both the value and what it echoes only grow (RFC 7323 sections 4.1 and 4.3).
    #[inline]
    pub(super) fn stamp_order(&self, (value, echo): (u32, u32)) -> Option<Ordering> {
        let last = self.last_stamp()?;
        let steps = [(value, last.0), (echo, last.1)];
        let [by_value, by_echo] = steps.map(|(this, last)| SeqNumber(this).since(SeqNumber(last)).cmp(&0));
        Some(by_value.then(by_echo))
    }

    /// `segment`, sent by `acknowledger`, acknowledges data of this half.
    #[inline(always)]
    pub(super) fn on_acknowledgement(
        &mut self,
        acknowledger: &mut HalfConnection,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        self.last_ack = segment.tcp.ack;
        let Some(position) = self.position(segment.tcp.ack) else {
            return;
        };
        let before = self.acknowledged;
        if position >= before {
            self.window_end = acknowledger.window_end_from(position, segment.tcp.window);
        }
        let in_flight = self.outstanding_bytes();
        if position > before {
            self.flight.note(in_flight);
            outcome.ack_rtt_ns = self.on_progress(position, segment.time_ns, pool);
            if let Some((_, echo)) = segment.tcp.options.timestamp {
                outcome.timestamp_rtt_ns = self.on_echo(echo, segment.time_ns, pool);
            }
            let bytes = self.acknowledged - before;
            if let Some(rtt_ns) = outcome.ack_rtt_ns
                && self.acknowledged == self.next
                && self.is_late(rtt_ns)
            {
                outcome.is_delayed_ack = self.note_delay(bytes, acknowledger, &segment.apart());
            }
        } else if position == before
            && self.next > position
            && segment.payload == 0
            && !segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
            && Some(segment.tcp.window) == acknowledger.windows.last()
            && acknowledger.order.age(segment.carrier.ip_id) != RelativeAge::Seen
        {
            // RFC 5681 section 2, "duplicate acknowledgment", conditions (a) to (e); and not the
            // same packet twice.
            acknowledger.duplicate_acks += 1;
            self.recovery_mut().on_duplicate_ack();
        }
        if self.segments > MANY_SEGMENTS
            && let Some((value, _)) = segment.tcp.options.timestamp
        {
            let is_busy = segment.payload == 0 && self.acknowledged < self.next;
            let echoes = self.asides.get_or_insert_default().echoes.get_or_insert_default();
            echoes.ask(value, segment.time_ns, self.segments, is_busy);
        }
        self.note_recovery((before, position), acknowledger, segment);
        let left = in_flight - self.outstanding_bytes();
        if position > before {
            if self.flight.on_progress(left, self.acknowledged, segment.time_ns) {
                let told = (in_flight, outcome.ack_rtt_ns);
                outcome.round = self.end_round(acknowledger, &segment.apart(), told);
            }
        } else if left != 0 {
            self.flight.note(in_flight);
            self.flight.on_sacked(left, segment.time_ns);
        }
    }

    /// The same for what is known of trouble.
    #[inline(always)]
    fn note_recovery(&mut self, moved: (i64, i64), acknowledger: &HalfConnection, segment: &Segment<'_>) {
        match &mut self.trouble {
            None if segment.sack.is_empty() => {}
            Some(trouble) if trouble.is_over && segment.sack.is_empty() => trouble.heard_ns = segment.time_ns,
            _ => self.on_acknowledgement_in_trouble(moved, acknowledger, &segment.apart()),
        }
    }

    /// Where the window ends that this side announces for what begins at `position` of the other's
    /// stream. Unless its scale is known there is no end, but a closed window is closed at any scale.
    #[inline(always)]
    fn window_end_from(&self, position: i64, window: u16) -> i64 {
        match self.window_shift {
            Some(shift) => position + (i64::from(window) << shift),
            None if window == 0 => position,
            None => i64::MAX,
        }
    }

    /// The acknowledgement moved on to `position`: its RTT, if it tells one.
    #[inline(always)]
    fn on_progress(&mut self, position: i64, time_ns: i64, pool: &mut Pool) -> Option<u64> {
        let before = self.acknowledged;
        let sent_ns = self.outstanding.pop_through(position as u32, pool);
        // An acknowledgement of what the capture never showed must not move beyond what it did.
        self.acknowledged = position.min(self.next);
        self.progress_ns = time_ns;
        if let Some(trouble) = &mut self.trouble
            && trouble.is_ambiguous(before, position, self.acknowledged)
        {
            return None;
        }
        let rtt_ns = elapsed(sent_ns?, time_ns)?;
        self.round_trips.add_ack(rtt_ns);
        Some(rtt_ns)
    }

    /// Whether an RTT is so much above the smallest that a delayed-acknowledgement timer fits between.
    #[inline(always)]
    fn is_late(&self, rtt_ns: u64) -> bool {
        rtt_ns >= self.round_trips.min_ns().saturating_add(DELAYED_ACK_NS)
    }

    /// Everything outstanding, `bytes`, was acknowledged late: whether by a receiver that waited for
    /// more. It does so for less than two full-sized segments (RFC 5681 section 4.2), and only if it
    /// has no data of its own to send along.
    #[inline(never)]
    fn note_delay(&mut self, bytes: i64, acknowledger: &HalfConnection, segment: &Segment<'_>) -> bool {
        let is_control = segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let is_few = bytes < 2 * i64::from(self.full_size(acknowledger));
        let is_delayed = is_few && !is_control && segment.payload == 0;
        if is_delayed {
            let asides = self.asides.get_or_insert_default();
            asides.delayed_acks = asides.delayed_acks.saturating_add(1);
        }
        is_delayed
    }

    /// The acknowledgement of all that was sent when the round began.
    fn end_round(
        &mut self,
        acknowledger: &HalfConnection,
        segment: &Segment<'_>,
        (in_flight, rtt_ns): (i64, Option<u64>),
    ) -> Option<Round> {
        let has_sack = self.trouble.as_ref().is_some_and(|trouble| trouble.has_sack);
        let close = RoundEnd {
            time_ns: segment.time_ns,
            window: acknowledger.windows.last().and_then(|window| acknowledger.scaled(window, self)),
            next_window: acknowledger.scaled(segment.tcp.window, self),
            full_size: self.full_size(acknowledger),
            in_flight: has_sack.then(|| in_flight.clamp(0, u32::MAX.into()) as u32),
            rtt_ns,
        };
        let outstanding = self.outstanding_bytes();
        self.flight.end_round((self.acknowledged, self.next), outstanding, close)
    }

    /// Data are sent again.
    pub(super) fn on_repair(&mut self, class: Class, time_ns: i64) {
        let repair = if class == Class::Rto { RepairCause::Timeout } else { RepairCause::Recovery };
        self.flight.note(self.outstanding_bytes());
        self.flight.on_repair(repair, self.next, time_ns);
    }

    /// The first echo of a timestamp: later ones may echo it for want of a newer.
    #[inline(always)]
    fn on_echo(&mut self, echo: u32, time_ns: i64, pool: &mut Pool) -> Option<u64> {
        let sent_ns = self.timestamps.pop_through(echo, pool)?;
        let rtt_ns = elapsed(sent_ns, time_ns)?;
        self.round_trips.add_echo(rtt_ns);
        Some(rtt_ns)
    }
}

/// Nanoseconds from `since` to `until`; None if the capture's clock went backwards between them.
#[inline(always)]
pub(super) fn elapsed(since: i64, until: i64) -> Option<u64> {
    u64::try_from(until.checked_sub(since)?).ok()
}
