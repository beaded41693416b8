//! One TCP connection as the capture shows it.
//!
//! Read RFC 9293 (TCP), RFC 5681 (duplicate acknowledgements), RFC 6298 (Karn's rule) and RFC 7323
//! (timestamps) beside this file. Each side has a [`Half`]: what it sent, and what the other side
//! said of it. [`Connection::on_segment`] takes one segment and says what it was in an [`Outcome`];
//! who counts, samples or draws that is not decided here.
//!
//! Finer classes of retransmissions (fast, by timeout, spurious, ...) belong between `Half::place`,
//! which knows whether bytes repeat, and `Outcome`.

use super::holes::Holes;
use super::key::Side;
use super::rtt::{RttRange, RttStatistics, Sketch};
use super::sendings::{Pool, Sendings};
use crate::event::{Tcp, TcpFlags};
use crate::seq::{SeqNumber, Unwrapper};

/// Segments of one direction that wait for their acknowledgement: 90 MB in full-size segments.
/// Those beyond give no RTT sample.
const MAX_OUTSTANDING: usize = 65_536;

/// Timestamp values that wait for their echo; they tick a thousand times a second at most, usually.
const MAX_TIMESTAMPS: usize = 4_096;

/// Silence after which a SYN begins a new connection whatever its number (two maximum segment
/// lifetimes, RFC 9293 section 3.4.1).
const TWO_MSL_NS: i64 = 120_000_000_000;

/// A segment, and when it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// When.
    pub time_ns: i64,
    /// Its header.
    pub tcp: &'a Tcp,
    /// Its payload.
    pub payload: u32,
}

/// What a segment turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Position of its first byte (0 is the SYN's number, or one before the first seen).
    pub position: i64,
    /// Payload bytes not seen before.
    pub new_bytes: u32,
    /// Payload bytes the capture had already shown.
    pub repeated_bytes: u32,
    /// Bytes not seen before, below the highest seen.
    pub out_of_order: bool,
    /// It acknowledged data of the other side, sent this long ago (Karn's rule).
    pub ack_rtt_ns: Option<u64>,
    /// It echoed a timestamp that the other side sent this long ago.
    pub timestamp_rtt_ns: Option<u64>,
    /// It completed the handshake that began this long ago.
    pub handshake_rtt_ns: Option<u64>,
}

impl Outcome {
    /// Nothing happened yet.
    #[inline(always)]
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// State of a connection at the end of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// SYN without an answer.
    Attempted,
    /// SYN answered by RST.
    Refused,
    /// SYN and SYN/ACK, no final ACK.
    Opening,
    /// Open.
    Established,
    /// One side has sent FIN.
    HalfClosed,
    /// Both have.
    Closed,
    /// RST.
    Reset,
    /// No SYN, FIN or RST in the capture.
    Midstream,
}

impl State {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attempted => "attempted",
            Self::Refused => "refused",
            Self::Opening => "opening",
            Self::Established => "established",
            Self::HalfClosed => "half_closed",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Midstream => "midstream",
        }
    }
}

/// What one side sent, and what was said of it.
#[derive(Debug, Default)]
pub struct Half {
    stream: Option<Unwrapper>,
    /// Position behind the highest seen (SND.NXT as the capture knows it).
    next: i64,
    /// The sequence number at `next`; means nothing without a stream.
    next_number: u32,
    /// Lowest position seen.
    start: i64,
    /// Highest position that the other side acknowledged (SND.UNA).
    acknowledged: i64,
    /// The acknowledgement number that the other side sent last.
    last_ack: u32,
    /// None until something is passed over.
    holes: Option<Box<Holes>>,

    /// New data not yet acknowledged, by the position where they end.
    outstanding: Sendings,
    /// Acknowledgements beyond `ambiguous.0` while up to `ambiguous.1` is outstanding tell no RTT:
    /// something there was sent twice or arrived late (Karn's rule).
    ambiguous: (i64, i64),
    /// Timestamp values not yet echoed, each with the time of the first data that carried it.
    timestamps: Sendings,
    last_timestamp: Option<u32>,

    /// Of the last segment this side sent, as an acknowledger.
    last_window: u16,
    /// Window scale of this side's SYN.
    pub window_scale: Option<u8>,
    /// Maximum segment size of this side's SYN.
    pub mss: Option<u16>,
    syns: u32,
    fin: bool,

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
    /// Packets of this side that announce a window of 0.
    pub zero_windows: u32,
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

/// Both halves and what belongs to neither.
#[derive(Debug)]
pub struct Connection {
    halves: [Half; 2],
    /// The side that sent the first SYN.
    opener: Option<Side>,
    /// Time of the first SYN, of the SYN/ACK.
    handshake: [Option<i64>; 2],
    /// From SYN to the ACK that completes the handshake.
    pub handshake_rtt_ns: Option<u64>,
    handshake_done: bool,
    reset_by: Option<Side>,
    last_ns: i64,
}

impl Connection {
    /// A connection that nothing is known of.
    pub fn new() -> Self {
        Self {
            halves: [Half::default(), Half::default()],
            opener: None,
            handshake: [None; 2],
            handshake_rtt_ns: None,
            handshake_done: false,
            reset_by: None,
            last_ns: i64::MIN,
        }
    }

    /// What one side sent.
    pub fn half(&self, side: Side) -> &Half {
        &self.halves[side as usize]
    }

    /// Whether any of its segments could be read.
    pub fn was_seen(&self) -> bool {
        self.halves.iter().any(|half| half.stream.is_some())
    }

    /// Who opened the connection, if the capture shows it.
    pub fn opener(&self) -> Option<Side> {
        self.opener
    }

    /// Whether `segment` cannot belong to this connection but must begin another one between the
    /// same ports.
    #[inline(always)]
    pub fn is_over_before(&self, side: Side, segment: &Segment<'_>) -> bool {
        segment.tcp.flags.has(TcpFlags::SYN)
            && !segment.tcp.flags.has(TcpFlags::ACK)
            && self.is_succeeded_by_syn(side, segment)
    }

    fn is_succeeded_by_syn(&self, side: Side, segment: &Segment<'_>) -> bool {
        let half = self.half(side);
        let Some(stream) = half.stream else {
            // The SYN of a connection whose other side was seen first, in a simultaneous open or
            // after reordering; unless that is long ago or over.
            return self.is_closed() || self.idle_since(segment.time_ns);
        };
        if half.syns > 0 && stream.base() == SeqNumber(segment.tcp.seq) {
            return false;
        }
        // Another number. Inside the window of an open connection it is a stray or an attack
        // (RFC 5961 section 4); otherwise the ports are used again.
        let position = stream.position(SeqNumber(segment.tcp.seq), half.next);
        let inside = position > half.acknowledged && position <= half.next;
        let open = matches!(self.state(), State::Established | State::HalfClosed | State::Midstream);
        !(open && inside) || self.idle_since(segment.time_ns)
    }

    fn is_closed(&self) -> bool {
        matches!(self.state(), State::Closed | State::Reset | State::Refused)
    }

    fn idle_since(&self, time_ns: i64) -> bool {
        time_ns.saturating_sub(self.last_ns) > TWO_MSL_NS
    }

    /// State as far as seen.
    pub fn state(&self) -> State {
        let fins = self.halves.iter().filter(|half| half.fin).count();
        let data = self.halves.iter().any(|half| half.unique_bytes > 0);
        let syns = self.halves.iter().any(|half| half.syns > 0);
        match (self.reset_by, fins) {
            (_, 2) => State::Closed,
            (Some(by), _) => match self.opener {
                Some(opener) if opener != by && self.handshake[1].is_none() && !data => State::Refused,
                _ => State::Reset,
            },
            (None, 1) => State::HalfClosed,
            (None, _) if !syns => State::Midstream,
            (None, _) if self.handshake_done => State::Established,
            (None, _) if self.handshake[1].is_some() => State::Opening,
            (None, _) => State::Attempted,
        }
    }

    /// Take in one segment that `side` sent; `outcome` must be clear. What waits for its
    /// acknowledgement is kept in `pool`.
    #[inline(always)]
    pub fn on_segment(&mut self, side: Side, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        let flags = segment.tcp.flags;
        if flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
            self.on_control(side, segment);
        }
        let (sender, receiver) = self.split(side);
        sender.place(segment, pool, outcome);
        if segment.tcp.window == 0 && !flags.has(TcpFlags::RST) {
            sender.zero_windows += 1;
        }
        if let Some((value, _)) = segment.tcp.options.timestamp
            && sender.last_timestamp != Some(value)
        {
            sender.remember_timestamp(value, segment, pool);
        }
        // Most data packets repeat the last acknowledgement on their way.
        if flags.has(TcpFlags::ACK) && (segment.payload == 0 || segment.tcp.ack != receiver.last_ack) {
            receiver.on_acknowledgement(sender, segment, pool, outcome);
            if !self.handshake_done {
                outcome.handshake_rtt_ns = self.complete_handshake(side, segment);
            }
        }
        self.halves[side as usize].last_window = segment.tcp.window;
        self.last_ns = self.last_ns.max(segment.time_ns);
    }

    fn split(&mut self, side: Side) -> (&mut Half, &mut Half) {
        let [low, high] = &mut self.halves;
        match side {
            Side::Low => (low, high),
            Side::High => (high, low),
        }
    }

    #[cold]
    #[inline(never)]
    fn on_control(&mut self, side: Side, segment: &Segment<'_>) {
        let flags = segment.tcp.flags;
        if flags.has(TcpFlags::RST) {
            self.reset_by.get_or_insert(side);
        }
        let half = &mut self.halves[side as usize];
        half.fin |= flags.has(TcpFlags::FIN);
        if flags.has(TcpFlags::SYN) {
            half.syns += 1;
            half.mss = half.mss.or(segment.tcp.options.mss);
            half.window_scale = half.window_scale.or(segment.tcp.options.window_scale);
            let answers = flags.has(TcpFlags::ACK);
            self.handshake[usize::from(answers)].get_or_insert(segment.time_ns);
            let opener = if answers { side.other() } else { side };
            self.opener.get_or_insert(opener);
        }
    }

    /// The opener's first segment that acknowledges the SYN/ACK.
    #[cold]
    fn complete_handshake(&mut self, side: Side, segment: &Segment<'_>) -> Option<u64> {
        if self.opener != Some(side) || self.handshake[1].is_none() {
            // Data or ACKs of a connection that was open already.
            self.handshake_done |= self.opener.is_none();
            return None;
        }
        let answer = self.half(side.other());
        if answer.acknowledged < 1 {
            return None;
        }
        self.handshake_done = true;
        let once = self.halves.iter().all(|half| half.syns == 1);
        let since = self.handshake[0].filter(|_| once)?;
        self.handshake_rtt_ns = elapsed(since, segment.time_ns);
        self.handshake_rtt_ns
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
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

    /// Position of `number` in this side's stream, if it has one.
    pub fn position(&self, number: u32) -> Option<i64> {
        let stream = self.stream?;
        Some(stream.position(SeqNumber(number), self.next))
    }

    /// Find where a segment belongs in this side's stream, and what of it is new.
    #[inline(always)]
    fn place(&mut self, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        let control = segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let is_next = segment.tcp.seq == self.next_number && self.stream.is_some();
        if !is_next || control {
            return self.place_unusual(segment, pool, outcome);
        }
        if segment.payload > 0 {
            outcome.position = self.next;
            outcome.new_bytes = segment.payload;
            self.unique_bytes += u64::from(segment.payload);
            self.advance(self.next + i64::from(segment.payload), segment.time_ns, pool);
        }
    }

    /// Everything but the next data or a bare acknowledgement with the next number.
    #[inline(never)]
    fn place_unusual(&mut self, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
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
            self.advance(occupied, segment.time_ns, pool);
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
            self.advance(occupied, segment.time_ns, pool);
        }
        if outcome.position < known.end {
            let from = self.ambiguous.0.min(outcome.position);
            self.ambiguous = (from, self.ambiguous.1.max(self.next));
        }
    }

    /// New sequence numbers up to `occupied` went out.
    #[inline(always)]
    fn advance(&mut self, occupied: i64, time_ns: i64, pool: &mut Pool) {
        self.next_number = self.next_number.wrapping_add((occupied - self.next) as u32);
        self.next = occupied;
        let is_watched = self.outstanding.count() < MAX_OUTSTANDING
            && self.outstanding.push(occupied as u32, time_ns, pool);
        if !is_watched {
            self.unwatched += 1;
        }
    }

    #[inline(always)]
    fn remember_timestamp(&mut self, value: u32, segment: &Segment<'_>, pool: &mut Pool) {
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
    fn on_acknowledgement(
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
            outcome.ack_rtt_ns = self.on_progress(position, segment.time_ns, pool);
            if let Some((_, echo)) = segment.tcp.options.timestamp {
                outcome.timestamp_rtt_ns = self.on_echo(echo, segment.time_ns, pool);
            }
        } else if position == self.acknowledged
            && self.next > position
            && segment.payload == 0
            && !segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
            && segment.tcp.window == acknowledger.last_window
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
fn elapsed(since: i64, until: i64) -> Option<u64> {
    u64::try_from(until.checked_sub(since)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TcpOptions;

    const MS: i64 = 1_000_000;

    /// A connection fed by hand: the sender of the data is `Low`.
    struct Script {
        connection: Connection,
        pool: Pool,
    }

    impl Script {
        fn new() -> Self {
            Self { connection: Connection::new(), pool: Pool::default() }
        }

        fn give(&mut self, side: Side, time_ms: i64, payload: u32, tcp: Tcp) -> Outcome {
            let mut outcome = Outcome::default();
            let segment = Segment { time_ns: time_ms * MS, tcp: &tcp, payload };
            self.connection.on_segment(side, &segment, &mut self.pool, &mut outcome);
            outcome
        }

        fn data(&mut self, time_ms: i64, seq: u32, payload: u32) -> Outcome {
            self.give(Side::Low, time_ms, payload, Tcp { seq, ..header(TcpFlags::ACK) })
        }

        fn ack(&mut self, time_ms: i64, ack: u32) -> Outcome {
            self.give(Side::High, time_ms, 0, Tcp { ack, ..header(TcpFlags::ACK) })
        }

        fn flags(&mut self, side: Side, time_ms: i64, flags: u16, seq: u32, ack: u32) -> Outcome {
            self.give(side, time_ms, 0, Tcp { seq, ack, ..header(flags) })
        }

        /// A handshake of 20 ms in which both sides begin at 0.
        fn open(&mut self) {
            self.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
            self.flags(Side::High, 10, TcpFlags::SYN | TcpFlags::ACK, 0, 1);
            self.flags(Side::Low, 20, TcpFlags::ACK, 1, 1);
        }

        fn sender(&self) -> &Half {
            self.connection.half(Side::Low)
        }

        fn state(&self) -> State {
            self.connection.state()
        }
    }

    fn header(flags: u16) -> Tcp {
        Tcp { flags: TcpFlags(flags), window: 100, ..Tcp::default() }
    }

    #[test]
    fn test_each_acknowledgement_of_new_data_gives_an_rtt() {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.data(1, 1001, 1000);
        assert_eq!(script.ack(50, 1001).ack_rtt_ns, Some(50_000_000));
        assert_eq!(script.ack(51, 2001).ack_rtt_ns, Some(50_000_000));
        script.data(52, 2001, 1000);
        assert_eq!(script.ack(103, 3001).ack_rtt_ns, Some(51_000_000));
    }

    #[test]
    fn test_an_acknowledgement_inside_a_segment_gives_none() {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        assert_eq!(script.ack(50, 501).ack_rtt_ns, None);
    }

    #[test]
    fn test_retransmitted_data_give_no_rtt_by_karns_rule() {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.ack(50, 1001);
        for segment in 0..5 {
            script.data(51 + segment, 1001 + 1000 * segment as u32, 1000);
        }
        for time in 102..106 {
            script.ack(time, 1001);
        }
        let again = script.data(106, 1001, 1000);
        assert_eq!((again.new_bytes, again.repeated_bytes), (0, 1000));
        assert_eq!(script.ack(156, 6001).ack_rtt_ns, None);
        assert_eq!(script.connection.half(Side::High).duplicate_acks, 4);
        assert_eq!(script.sender().retransmitted_packets, 1);
    }

    #[test]
    fn test_data_sent_after_a_retransmission_give_an_rtt_again() {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.data(300, 1, 1000);
        assert_eq!(script.ack(350, 1001).ack_rtt_ns, None);
        script.data(360, 1001, 1000);
        assert_eq!(script.ack(400, 2001).ack_rtt_ns, Some(40_000_000));
    }

    #[test]
    fn test_a_late_segment_is_out_of_order_and_not_repeated() {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.ack(50, 1001);
        script.data(51, 2001, 1000);
        assert_eq!(script.sender().missing_bytes(), 1000);
        let late = script.data(52, 1001, 1000);
        assert!(late.out_of_order);
        assert_eq!((late.new_bytes, late.repeated_bytes), (1000, 0));
        assert_eq!(script.sender().missing_bytes(), 0);
        assert_eq!(script.ack(103, 3001).ack_rtt_ns, None);
    }

    #[test]
    fn test_a_partial_retransmission_is_new_behind_what_was_seen() {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        let partial = script.data(150, 1, 2000);
        assert_eq!((partial.new_bytes, partial.repeated_bytes), (1000, 1000));
        assert_eq!(script.ack(250, 2001).ack_rtt_ns, None);
        assert_eq!(script.sender().unique_bytes, 2000);
    }

    #[test]
    fn test_the_stream_goes_on_across_the_wrap() {
        let mut script = Script::new();
        let before = u32::MAX - 499;
        script.data(0, before, 1000);
        let behind = script.data(1, 500, 1000);
        assert_eq!((behind.new_bytes, behind.repeated_bytes), (1000, 0));
        assert_eq!(behind.position, 1001);
        let again = script.data(2, before, 1000);
        assert_eq!(again.repeated_bytes, 1000);
        assert_eq!(script.ack(30, 1500).ack_rtt_ns, None);
    }

    #[test]
    fn test_the_handshake_takes_from_syn_to_final_ack() {
        let mut script = Script::new();
        script.open();
        assert_eq!(script.connection.handshake_rtt_ns, Some(20_000_000));
        assert_eq!(script.state(), State::Established);
        assert_eq!(script.connection.opener(), Some(Side::Low));
    }

    #[test]
    fn test_a_repeated_syn_leaves_the_handshake_unknown() {
        let mut script = Script::new();
        script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
        script.flags(Side::Low, 1000, TcpFlags::SYN, 0, 0);
        script.flags(Side::High, 1010, TcpFlags::SYN | TcpFlags::ACK, 0, 1);
        script.flags(Side::Low, 1020, TcpFlags::ACK, 1, 1);
        assert_eq!(script.connection.handshake_rtt_ns, None);
        assert_eq!(script.state(), State::Established);
    }

    #[test]
    fn test_states_follow_the_flags() {
        let mut script = Script::new();
        script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
        assert_eq!(script.state(), State::Attempted);
        script.flags(Side::High, 1, TcpFlags::RST | TcpFlags::ACK, 0, 1);
        assert_eq!(script.state(), State::Refused);

        let mut script = Script::new();
        script.open();
        script.flags(Side::Low, 30, TcpFlags::FIN | TcpFlags::ACK, 1, 1);
        assert_eq!(script.state(), State::HalfClosed);
        script.flags(Side::High, 31, TcpFlags::FIN | TcpFlags::ACK, 1, 2);
        assert_eq!(script.state(), State::Closed);

        let mut script = Script::new();
        script.data(0, 7, 10);
        assert_eq!(script.state(), State::Midstream);
        script.flags(Side::High, 1, TcpFlags::RST, 0, 0);
        assert_eq!(script.state(), State::Reset);
    }

    #[test]
    fn test_ports_used_again_begin_another_connection() {
        let mut script = Script::new();
        script.open();
        let over = |script: &Script, seq: u32| {
            let tcp = Tcp { seq, ..header(TcpFlags::SYN) };
            let segment = Segment { time_ns: 40 * MS, tcp: &tcp, payload: 0 };
            script.connection.is_over_before(Side::Low, &segment)
        };
        assert!(!over(&script, 0), "a repeated SYN is of this connection");
        assert!(over(&script, 77_777), "a number out of the window is not");
        script.flags(Side::High, 30, TcpFlags::RST, 1, 0);
        assert!(over(&script, 1), "after a reset any other number begins anew");
    }

    #[test]
    fn test_the_first_echo_of_a_timestamp_gives_an_rtt_even_of_repeated_data() {
        let mut script = Script::new();
        let stamped = |seq, ack, value, echo| Tcp {
            seq,
            ack,
            options: TcpOptions { timestamp: Some((value, echo)), ..TcpOptions::default() },
            ..header(TcpFlags::ACK)
        };
        script.give(Side::Low, 0, 1000, stamped(1, 1, 100, 0));
        script.give(Side::Low, 300, 1000, stamped(1, 1, 400, 0));
        let acknowledged = script.give(Side::High, 350, 0, stamped(1, 1001, 9, 400));
        assert_eq!(acknowledged.ack_rtt_ns, None);
        assert_eq!(acknowledged.timestamp_rtt_ns, Some(50_000_000));
        script.give(Side::Low, 360, 1000, stamped(1001, 1, 400, 9));
        let second_echo = script.give(Side::High, 900, 0, stamped(1, 2001, 10, 400));
        assert_eq!(second_echo.timestamp_rtt_ns, None);
    }

    #[test]
    fn test_an_acknowledgement_of_what_was_never_seen_does_not_block_later_ones() {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.ack(10, 1_000_000_000);
        script.data(20, 1001, 1000);
        assert_eq!(script.ack(60, 2001).ack_rtt_ns, Some(40_000_000));
    }

    #[test]
    fn test_segments_in_flight_beyond_the_bound_are_counted() {
        let mut script = Script::new();
        for segment in 0..MAX_OUTSTANDING as u32 + 5 {
            script.data(i64::from(segment), 1 + 10 * segment, 10);
        }
        assert_eq!(script.sender().unwatched, 5);
    }

    #[test]
    fn test_a_window_of_acknowledgements_keeps_memory_for_one_window() {
        let mut script = Script::new();
        for round in 0..10_000_u32 {
            script.data(i64::from(round), 1 + 100 * round, 100);
            if round >= 20 {
                let ack = script.ack(i64::from(round), 1 + 100 * (round - 19));
                assert_eq!(ack.ack_rtt_ns, Some(20_000_000));
            }
        }
        assert!(script.pool.size() <= 32);
    }
}
