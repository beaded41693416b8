//! One direction of a connection: what one side sent, and what the other said of it.

use super::flight::Flight;
use super::rounds::{Close, Repair, Round, Rounds};
use super::window::Windows;
use super::{Outcome, Segment};
use crate::event::TcpFlags;
use crate::flow::holes::Holes;
use crate::flow::rtt::{RttRange, RttStatistics, Sketch};
use crate::flow::sendings::{Pool, Sendings};
use crate::seq::{SeqNumber, Unwrapper};

/// Segments of one direction that wait for their acknowledgement: 90 MB in full-size segments.
/// Those beyond give no RTT sample.
pub(super) const MAX_OUTSTANDING: usize = 65_536;

/// Timestamp values that wait for their echo; they tick a thousand times a second at most, usually.
const MAX_TIMESTAMPS: usize = 4_096;

/// The shortest delayed-acknowledgement timer in wide use (Linux's 40 ms; RFC 1122 section 4.2.3.2
/// and RFC 5681 section 4.2 allow 500 ms).
const DELAYED_ACK_NS: u64 = 40_000_000;

/// Maximum segment size where no SYN tells it: Ethernet's, by IPv4.
const USUAL_MSS: u16 = 1_460;

/// Bytes of a timestamp option with its padding, which every segment carries if one does (RFC 7323
/// section 3.2), and which the MSS does not account for (RFC 6691).
const TIMESTAMP_BYTES: u32 = 12;

/// The shortest retransmission timeout in wide use (Linux's; RFC 6298 recommends a second).
const SHORTEST_TIMEOUT_NS: i64 = 200_000_000;

/// What one side sent, and what was said of it.
#[derive(Debug, Default)]
pub struct Half {
    pub(super) stream: Option<Unwrapper>,
    /// Position behind the highest seen (SND.NXT as the capture knows it).
    pub(super) next: i64,
    /// The sequence number at `next`; means nothing without a stream.
    next_number: u32,
    /// Lowest position seen.
    start: i64,
    /// Highest position that the other side acknowledged (SND.UNA).
    pub(super) acknowledged: i64,
    /// The acknowledgement number that the other side sent last.
    pub(super) last_ack: u32,
    /// None until something is passed over.
    holes: Option<Box<Holes>>,

    /// New data not yet acknowledged, by the position where they end.
    outstanding: Sendings,
    /// Acknowledgements beyond `ambiguous.0` while up to `ambiguous.1` is outstanding tell no RTT:
    /// something there was sent twice or arrived late (Karn's rule).
    ambiguous: (i64, i64),
    /// Timestamp values not yet echoed, each with the time of the first data that carried it.
    timestamps: Sendings,
    pub(super) last_timestamp: Option<u32>,
    /// What is outstanding, in bytes, and how that went from round to round.
    flight: Flight,

    /// Receive windows that this side announced.
    pub windows: Windows,
    /// Window scale of this side's SYN.
    pub window_scale: Option<u8>,
    /// Maximum segment size of this side's SYN.
    pub mss: Option<u16>,
    pub(super) syns: u32,
    /// Whether the options of one of them were not captured whole.
    pub(super) has_cut_syn: bool,
    pub(super) fin: bool,
    /// Segments with SYN, FIN or RST and no payload; at its maximum there may be more.
    pub bare_controls: u16,

    /// Payload with every byte counted once.
    pub unique_bytes: u64,
    /// Packets with bytes seen before.
    pub retransmitted_packets: u32,
    /// Those bytes.
    pub retransmitted_bytes: u64,
    /// Late packets with bytes not seen before.
    pub out_of_order_packets: u32,
    /// Duplicate acknowledgements that this side sent.
    pub duplicate_acks: u32,
    /// RTT of this side's data, by Karn's rule.
    pub rtt: RttStatistics,
    /// Its percentiles.
    pub rtt_sketch: Sketch,
    /// RTT of this side's data, by timestamp echo.
    pub timestamp_rtt: RttRange,
    /// Whether any segment carried a timestamp.
    pub has_timestamps: bool,
    /// Segments whose RTT was not looked for because too many were outstanding.
    pub unwatched: u32,
}

impl Half {
    /// Bytes passed over and never seen.
    pub fn missing_bytes(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.missing())
    }

    /// Whether there were more holes than are kept.
    pub fn lost_track_of_holes(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| holes.overflowed())
    }

    /// Whether the capture shows a SYN of this side.
    pub fn has_syn(&self) -> bool {
        self.syns > 0
    }

    fn has_whole_syn(&self) -> bool {
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

    /// What is outstanding, in bytes.
    fn outstanding_bytes(&self) -> i64 {
        self.next - self.acknowledged
    }

    /// How the flight of this side's data went from round to round; None if it sent none.
    pub fn rounds(&self) -> Option<&Rounds> {
        self.flight.rounds()
    }

    /// Largest flight; None as [`Half::rounds`].
    pub fn max_flight_bytes(&self) -> Option<u32> {
        self.flight.max_bytes(self.outstanding_bytes())
    }

    /// Mean flight over the time until `end_ns` in which there was any.
    pub fn mean_flight_bytes(&self, end_ns: i64) -> Option<f64> {
        self.flight.mean_bytes(self.outstanding_bytes(), end_ns)
    }

    /// Find where a segment belongs in this side's stream, and what of it is new. The last segment
    /// of either side was at `last_ns`.
    #[inline(always)]
    pub(super) fn place(
        &mut self,
        segment: &Segment<'_>,
        last_ns: i64,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let control = segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let is_next = segment.tcp.seq == self.next_number && self.stream.is_some();
        if !is_next || control {
            return self.place_unusual(segment, last_ns, pool, outcome);
        }
        if segment.payload > 0 {
            outcome.position = self.next;
            outcome.new_bytes = segment.payload;
            self.unique_bytes += u64::from(segment.payload);
            self.advance(self.next + i64::from(segment.payload), segment, pool);
        }
    }

    /// Everything but the next data or a bare acknowledgement with the next number.
    #[inline(never)]
    fn place_unusual(&mut self, segment: &Segment<'_>, last_ns: i64, pool: &mut Pool, outcome: &mut Outcome) {
        let flags = segment.tcp.flags;
        let syn = i64::from(flags.has(TcpFlags::SYN));
        let Some(stream) = self.stream else {
            return self.begin(segment, syn, pool, outcome);
        };
        let position = stream.position(SeqNumber(segment.tcp.seq), self.next);
        outcome.position = position;
        let start = position + syn;
        let end = start + i64::from(segment.payload);
        let occupied = end + i64::from(flags.has(TcpFlags::FIN));
        // What a reset carries is not data of the stream (RFC 9293 section 3.5.3), and a bare
        // acknowledgement occupies no number.
        if !flags.has(TcpFlags::RST) && occupied > position {
            self.place_elsewhere((start, end, occupied), segment, pool, outcome);
            if outcome.repeated_bytes > 0 {
                self.on_repair(segment.time_ns, last_ns);
            }
        }
    }

    /// The first segment of this direction.
    #[cold]
    fn begin(&mut self, segment: &Segment<'_>, syn: i64, pool: &mut Pool, outcome: &mut Outcome) {
        // Without a SYN the first byte seen is position 1, as if the SYN had been just before it.
        let base = SeqNumber(segment.tcp.seq.wrapping_sub(1 - syn as u32));
        self.stream = Some(Unwrapper::new(base));
        let position = 1 - syn;
        outcome.position = position;
        self.start = position;
        self.next = position;
        self.next_number = segment.tcp.seq;
        self.acknowledged = position;
        self.ambiguous = (i64::MAX, i64::MIN);
        if segment.tcp.flags.has(TcpFlags::RST) {
            return;
        }
        outcome.new_bytes = segment.payload;
        self.unique_bytes += u64::from(segment.payload);
        let fin = i64::from(segment.tcp.flags.has(TcpFlags::FIN));
        let occupied = 1 + i64::from(segment.payload) + fin;
        if occupied > position {
            self.advance(occupied, segment, pool);
        }
    }

    /// A segment anywhere in the stream: at its end, beyond it, or before it.
    fn place_elsewhere(
        &mut self,
        (start, end, occupied): (i64, i64, i64),
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let known = self.start..self.next;
        let older = (end.min(known.start) - start).max(0);
        if older > 0 {
            // From before the first segment of the capture.
            self.start = start;
            if end < known.start {
                self.holes.get_or_insert_default().open(end, known.start);
            }
        }
        let within = (start.max(known.start), end.min(known.end));
        let filled = self.holes.as_mut().map_or(0, |holes| holes.fill(within.0, within.1));
        let beyond = (end - start.max(known.end)).max(0);
        if start > known.end {
            self.holes.get_or_insert_default().open(known.end, start);
        }
        // Each is a part of the payload, so they fit.
        let late_bytes = older as u32 + filled as u32;
        outcome.new_bytes = late_bytes + beyond as u32;
        outcome.repeated_bytes = segment.payload - outcome.new_bytes;
        self.unique_bytes += u64::from(outcome.new_bytes);
        if outcome.repeated_bytes > 0 {
            self.retransmitted_packets += 1;
            self.retransmitted_bytes += u64::from(outcome.repeated_bytes);
        } else if late_bytes > 0 {
            outcome.out_of_order = true;
            self.out_of_order_packets += 1;
        }
        if occupied > known.end {
            self.advance(occupied, segment, pool);
        }
        if outcome.position < known.end {
            let from = self.ambiguous.0.min(outcome.position);
            self.ambiguous = (from, self.ambiguous.1.max(self.next));
        }
    }

    /// New sequence numbers up to `occupied` went out.
    #[inline(always)]
    fn advance(&mut self, occupied: i64, segment: &Segment<'_>, pool: &mut Pool) {
        let time_ns = segment.time_ns;
        let bytes = occupied - self.next;
        self.next_number = self.next_number.wrapping_add(bytes as u32);
        self.next = occupied;
        self.flight.on_sent(bytes, segment.payload, occupied, time_ns);
        let is_watched = self.outstanding.count() < MAX_OUTSTANDING
            && self.outstanding.push(occupied as u32, time_ns, pool);
        if !is_watched {
            self.unwatched += 1;
        }
    }

    #[inline(always)]
    pub(super) fn remember_timestamp(&mut self, value: u32, segment: &Segment<'_>, pool: &mut Pool) {
        self.has_timestamps = true;
        let occupies = segment.payload > 0 || segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN);
        let is_newer = self.last_timestamp.is_none_or(|last| SeqNumber(value).since(SeqNumber(last)) > 0);
        if occupies && is_newer {
            self.last_timestamp = Some(value);
            if self.timestamps.count() == MAX_TIMESTAMPS {
                self.timestamps.drop_oldest(pool);
            }
            // Without room the value has no RTT, as if its echo had been lost.
            let _ = self.timestamps.push(value, segment.time_ns, pool);
        }
    }

    /// `segment`, sent by `acknowledger`, acknowledges data of this half.
    #[inline(always)]
    pub(super) fn on_acknowledgement(
        &mut self,
        acknowledger: &mut Half,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        self.last_ack = segment.tcp.ack;
        let Some(position) = self.position(segment.tcp.ack) else {
            return;
        };
        if position > self.acknowledged {
            let before = self.acknowledged;
            self.flight.note(self.outstanding_bytes());
            outcome.ack_rtt_ns = self.on_progress(position, segment.time_ns, pool);
            if let Some((_, echo)) = segment.tcp.options.timestamp {
                outcome.timestamp_rtt_ns = self.on_echo(echo, segment.time_ns, pool);
            }
            let bytes = self.acknowledged - before;
            if let Some(rtt_ns) = outcome.ack_rtt_ns
                && self.acknowledged == self.next
                && self.is_late(rtt_ns)
            {
                outcome.is_delayed_ack = self.note_delay(bytes, acknowledger, segment);
            }
            if self.flight.on_progress(bytes, self.acknowledged, segment.time_ns) {
                outcome.round = self.end_round(acknowledger, segment, outcome.ack_rtt_ns);
            }
        } else if position == self.acknowledged
            && self.next > position
            && segment.payload == 0
            && !segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
            && Some(segment.tcp.window) == acknowledger.windows.last()
        {
            // RFC 5681 section 2, "duplicate acknowledgment", conditions (a) to (e).
            acknowledger.duplicate_acks += 1;
        }
    }

    /// The acknowledgement moved on to `position`: its RTT, if it tells one.
    #[inline(always)]
    fn on_progress(&mut self, position: i64, time_ns: i64, pool: &mut Pool) -> Option<u64> {
        let before = self.acknowledged;
        let sent_ns = self.outstanding.pop_through(position as u32, pool);
        // An acknowledgement of what the capture never showed must not move beyond what it did.
        self.acknowledged = position.min(self.next);
        let is_ambiguous = before < self.ambiguous.1 && position > self.ambiguous.0;
        if self.acknowledged >= self.ambiguous.1 {
            self.ambiguous = (i64::MAX, i64::MIN);
        }
        let rtt_ns = elapsed(sent_ns.filter(|_| !is_ambiguous)?, time_ns)?;
        self.rtt.add(rtt_ns);
        self.rtt_sketch.add(rtt_ns);
        Some(rtt_ns)
    }

    /// Whether an RTT is so much above the smallest that a delayed-acknowledgement timer fits between.
    #[inline(always)]
    fn is_late(&self, rtt_ns: u64) -> bool {
        rtt_ns >= self.rtt.range.min_ns().saturating_add(DELAYED_ACK_NS)
    }

    /// Everything outstanding, `bytes`, was acknowledged late: whether by a receiver that waited for
    /// more. It does so for less than two full-sized segments (RFC 5681 section 4.2), and only if it
    /// has no data of its own to send along.
    #[inline(never)]
    fn note_delay(&mut self, bytes: i64, acknowledger: &Half, segment: &Segment<'_>) -> bool {
        let is_control = segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let is_few = bytes < 2 * i64::from(self.full_size(acknowledger));
        let is_delayed = is_few && !is_control && segment.payload == 0;
        if is_delayed {
            self.flight.note_delayed_ack();
        }
        is_delayed
    }

    /// The acknowledgement of all that was sent when the round began.
    fn end_round(
        &mut self,
        acknowledger: &Half,
        segment: &Segment<'_>,
        rtt_ns: Option<u64>,
    ) -> Option<Round> {
        let close = Close {
            time_ns: segment.time_ns,
            window: acknowledger.windows.last().and_then(|window| acknowledger.scaled(window, self)),
            next_window: acknowledger.scaled(segment.tcp.window, self),
            full_size: self.full_size(acknowledger),
            rtt_ns,
        };
        self.flight.end_round(self.acknowledged, self.next, close)
    }

    /// Data are sent again, after silence of both sides since `last_ns`.
    fn on_repair(&mut self, time_ns: i64, last_ns: i64) {
        // Acknowledgements make a sender repair at once; a timer runs while nothing is heard.
        let is_silent = time_ns.saturating_sub(last_ns) >= SHORTEST_TIMEOUT_NS;
        let repair = if is_silent { Repair::Timeout } else { Repair::Recovery };
        self.flight.note(self.outstanding_bytes());
        self.flight.on_repair(repair, self.next, time_ns);
    }

    /// The first echo of a timestamp: later ones may echo it for want of a newer.
    #[inline(always)]
    fn on_echo(&mut self, echo: u32, time_ns: i64, pool: &mut Pool) -> Option<u64> {
        let sent_ns = self.timestamps.pop_through(echo, pool)?;
        let rtt_ns = elapsed(sent_ns, time_ns)?;
        self.timestamp_rtt.add(rtt_ns);
        Some(rtt_ns)
    }
}

/// Nanoseconds from `since` to `until`; None if the capture's clock went backwards between them.
#[inline(always)]
pub(super) fn elapsed(since: i64, until: i64) -> Option<u64> {
    u64::try_from(until.checked_sub(since)?).ok()
}
