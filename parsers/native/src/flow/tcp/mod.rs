//! One TCP connection as the capture shows it.
//!
//! Read RFC 9293 (TCP), RFC 5681 (duplicate acknowledgements), RFC 6298 (Karn's rule) and RFC 7323
//! (timestamps) with this folder. Each side has a [`HalfConnection`]: what it sent, and what the
//! other side acknowledged. [`Connection::on_segment`] takes one segment and returns its
//! [`Outcome`]; counting and sampling happen elsewhere.
//!
//! Repeated and late segments get a class in `classify/`, from the state in
//! `recovery/recovery_state.rs`.

use serde::{Deserialize, Serialize};

pub mod accurate_ecn;
pub mod causes;
pub mod classify;
pub mod details;
pub mod ecn;
mod half_connection;
mod kinship;
mod loss_events;
pub mod recovery;
pub mod rounds;
pub mod rtt;
pub mod sequence_graph;
mod state;
#[cfg(test)]
mod tests;
pub mod vantage;
mod window;
mod wire_mss;

use std::num::NonZeroU32;

use super::outstanding::Pool;
use super::rtt_statistics::RoundTrip;
use crate::packet::event::{Tcp, TcpFlags};
use crate::packet::extras::EcnByteCounters;
use crate::packet::ip_fields::IpFields;
use crate::packet::key::Side;
use crate::packet::opening::Opening;
use crate::packet::seq::SeqNumber;
use classify::class::{Class, Classification, Evidence};
use ecn::{Ecn, EcnMode, EcnNegotiation};
pub use half_connection::{HalfConnection, Sight};
use half_connection::{TIMESTAMP_BYTES, elapsed};
pub use kinship::Kinship;
pub use rounds::{RepairCause, Round, Rounds};
pub use state::ConnectionState;

/// Silence after which a SYN starts a new connection whatever its sequence number (two maximum
/// segment lifetimes, RFC 9293 section 3.4.1).
pub const TWO_MSL_NS: i64 = 120_000_000_000;

/// Marks a time in [`Connection::handshake`] as not seen.
const UNSEEN: i64 = i64::MIN;
/// Marks [`Connection::handshake_rtt_ns`] as not measured.
const UNTIMED: u64 = u64::MAX;

/// A segment and the time of its capture.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    pub time_ns: i64,
    pub tcp: &'a Tcp,
    pub payload: u32,
    /// Blocks of its SACK option.
    pub sack: &'a [(u32, u32)],
    /// Its option of accurate ECN.
    pub ecn_counters: Option<EcnByteCounters>,
    /// Fields of its IP header.
    pub ip: &'a IpFields,
}

impl Segment<'_> {
    /// A copy to pass to functions that are not inlined, so that the common path keeps the segment
    /// itself in registers.
    #[inline(always)]
    fn apart(&self) -> Self {
        *self
    }
}

/// Result of processing a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Position of its first byte (0 is the SYN's number, or one before the first seen).
    pub position: i64,
    pub new_bytes: u32,
    /// Payload bytes already shown by the capture.
    pub repeated_bytes: u32,
    /// Whether it has new bytes below the highest position seen.
    pub out_of_order: bool,
    /// Its class, if it repeats others or is late.
    pub finding: Option<Classification>,
    /// Round-trip time of the other side's data that it acknowledged.
    pub rtt: Option<RoundTrip>,
    /// Whether that seems to include a delayed-acknowledgement timer.
    pub is_delayed_ack: bool,
    /// The round of the other side's data that it ended.
    pub round: Option<Round>,
}

impl Outcome {
    #[inline(always)]
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether the packet is a duplicate made by the capture.
    pub fn is_copy(&self) -> bool {
        self.is_of(Class::CaptureDuplicate)
    }

    fn is_network_duplicate(&self) -> bool {
        self.is_of(Class::NetworkDuplicate)
    }

    fn is_of(&self, class: Class) -> bool {
        self.finding.is_some_and(|finding| finding.class == class)
    }
}

/// Both halves and what belongs to neither.
#[derive(Debug, Serialize, Deserialize)]
pub struct Connection {
    halves: [HalfConnection; 2],
    /// The side that sent the first SYN.
    opener: Option<Side>,
    /// Times of the first SYN and SYN/ACK, or [`UNSEEN`].
    handshake: [i64; 2],
    /// From SYN to the ACK that completes the handshake, or [`UNTIMED`].
    handshake_rtt_ns: u64,
    handshake_done: bool,
    ecn: EcnNegotiation,
    /// Whether each segment has a counter of marks (accurate ECN).
    has_ecn_counters: bool,
    reset_by: Option<Side>,
    last_ns: i64,
    /// What the client sent first, if that names a server or may do so.
    opening: Option<Box<Opening>>,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            halves: [HalfConnection::default(), HalfConnection::default()],
            opener: None,
            handshake: [UNSEEN; 2],
            handshake_rtt_ns: UNTIMED,
            handshake_done: false,
            ecn: EcnNegotiation::default(),
            has_ecn_counters: false,
            reset_by: None,
            last_ns: i64::MIN,
            opening: None,
        }
    }
}

impl Connection {
    #[inline(always)]
    pub fn half(&self, side: Side) -> &HalfConnection {
        &self.halves[side as usize]
    }

    pub(super) fn half_mut(&mut self, side: Side) -> &mut HalfConnection {
        &mut self.halves[side as usize]
    }

    /// Whether any segment could be decoded.
    pub fn was_seen(&self) -> bool {
        self.halves.iter().any(|half| half.sent.stream.is_some())
    }

    /// Whether the capture shows that the opener acknowledged the SYN/ACK.
    pub fn has_handshake(&self) -> bool {
        self.handshake_done && self.syn_ack_ns().is_some()
    }

    /// Whether the capture shows a SYN/ACK, or data of either side.
    pub fn has_answer(&self) -> bool {
        self.syn_ack_ns().is_some() || self.halves.iter().any(|half| half.sent.unique_bytes > 0)
    }

    /// The side that opened the connection, if the capture shows it.
    pub fn opener(&self) -> Option<Side> {
        self.opener
    }

    /// Whether a segment with this header cannot belong to this connection but starts another one
    /// between the same ports.
    #[inline(always)]
    pub fn is_over_before(&self, side: Side, time_ns: i64, tcp: &Tcp) -> bool {
        tcp.flags.has(TcpFlags::SYN)
            && !tcp.flags.has(TcpFlags::ACK)
            && self.is_succeeded_by_syn(side, time_ns, tcp.seq)
    }

    fn is_succeeded_by_syn(&self, side: Side, time_ns: i64, seq: u32) -> bool {
        let half = self.half(side);
        let Some(stream) = half.sent.stream else {
            // The SYN of a connection whose other side was seen first, in a simultaneous open or
            // after reordering; unless the connection is idle or closed.
            return self.is_closed() || self.idle_since(time_ns);
        };
        if half.syns.count > 0 && stream.base() == SeqNumber(seq) {
            return false;
        }
        // A SYN with another number. Inside the window of an open connection it is a stray or an
        // attack (RFC 5961 section 4); otherwise the ports are reused.
        let position = stream.position(SeqNumber(seq), half.sent.next);
        let inside = position > half.acknowledged.position && position <= half.sent.next;
        let open = matches!(
            self.state(),
            ConnectionState::Established | ConnectionState::HalfClosed | ConnectionState::Midstream
        );
        !(open && inside) || self.idle_since(time_ns)
    }

    pub fn opening(&self) -> Option<&Opening> {
        self.opening.as_deref()
    }

    /// Record what the client sent first; the first whole message stays.
    pub fn note_opening(&mut self, opening: &Opening) {
        if self.opening().is_none_or(|known| *known == Opening::Part) {
            self.opening = Some(Box::new(opening.clone()));
        }
    }

    pub fn end_ns(&self) -> i64 {
        self.last_ns
    }

    /// How marks are fed back; None if the capture does not show the SYNs that decide.
    pub fn ecn_mode(&self) -> Option<EcnMode> {
        self.ecn.mode()
    }

    /// Time from SYN to the ACK that completes the handshake.
    pub fn handshake_rtt_ns(&self) -> Option<u64> {
        Some(self.handshake_rtt_ns).filter(|&rtt_ns| rtt_ns != UNTIMED)
    }

    /// From the SYN of `side` to its acknowledgement, measured between the capture point and the
    /// other side; the sum of both sides is the handshake RTT.
    pub fn syn_rtt_ns(&self, side: Side) -> Option<u64> {
        let whole_ns = self.handshake_rtt_ns()?;
        let to_answer_ns = elapsed(self.syn_ns()?, self.syn_ack_ns()?)?;
        if self.opener? == side { Some(to_answer_ns) } else { whole_ns.checked_sub(to_answer_ns) }
    }

    /// When the first SYN passed, if the capture shows it.
    pub fn syn_ns(&self) -> Option<i64> {
        Some(self.handshake[0]).filter(|&time_ns| time_ns != UNSEEN)
    }

    fn syn_ack_ns(&self) -> Option<i64> {
        Some(self.handshake[1]).filter(|&time_ns| time_ns != UNSEEN)
    }

    fn is_closed(&self) -> bool {
        self.state().is_closed()
    }

    fn idle_since(&self, time_ns: i64) -> bool {
        time_ns.saturating_sub(self.last_ns) > TWO_MSL_NS
    }

    /// Process one segment from `side`; `outcome` must be clear. Unacknowledged data are kept in
    /// `pool`. Returns false for a duplicate made by the capture.
    #[inline(always)]
    pub fn on_segment(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) -> bool {
        let has_ecn_counters = self.has_ecn_counters;
        let (sender, receiver) = self.split(side);
        if !sender.expects(segment) || has_ecn_counters {
            return self.on_other_segment(side, &segment.apart(), pool, outcome);
        }
        // Most data packets repeat the last acknowledgement.
        if segment.payload == 0 || segment.tcp.ack != receiver.acknowledged.number {
            self.on_expected_acknowledgement(side, &segment.apart(), pool, outcome);
        } else {
            sender.place_next(segment, pool, outcome);
            sender.note_timestamp(segment, pool);
            sender.order.note(segment.ip.ip_id);
        }
        self.note_time(segment.time_ns);
        true
    }

    /// The same for an expected segment that acknowledges.
    #[inline(never)]
    fn on_expected_acknowledgement(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let (sender, receiver) = self.split(side);
        if segment.payload == 0 {
            sender.options.has_timestamps |= segment.tcp.options.timestamp.is_some();
        } else {
            sender.place_next(segment, pool, outcome);
            sender.note_timestamp(segment, pool);
        }
        receiver.on_acknowledgement(sender, segment, pool, outcome);
        sender.order.note(segment.ip.ip_id);
        if !self.handshake_done {
            self.complete_handshake(side, segment);
        }
    }

    /// The same for any segment.
    #[inline(never)]
    fn on_other_segment(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) -> bool {
        let flags = segment.tcp.flags;
        let (sender, _) = self.split(side);
        if segment.ip.capture_point != sender.on_wire.capture_point && self.is_copy(side, segment) {
            outcome.finding = Some(self.halves[side as usize].find_copy(segment));
            return false;
        }
        if flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) {
            self.on_control(side, segment);
        }
        let (sender, receiver) = self.split(side);
        let delivered = receiver.delivered();
        sender.place(segment, pool, outcome);
        if flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK) && !outcome.is_network_duplicate() {
            receiver.syns.on_asked();
        }
        if Ecn::concerns(segment) {
            sender.note_ecn(segment);
        }
        sender.note_timestamp(segment, pool);
        if flags.has(TcpFlags::ACK)
            && (segment.payload == 0 || segment.tcp.ack != receiver.acknowledged.number)
        {
            receiver.on_acknowledgement(sender, segment, pool, outcome);
            if !self.handshake_done {
                self.complete_handshake(side, segment);
            }
        }
        if self.has_ecn_counters {
            self.on_accurate_ecn(side, segment, delivered, outcome);
            if let Some(round) = &mut outcome.round {
                // The acknowledgement that ended it reports on it.
                let (sender, receiver) = self.split(side);
                round.marks += receiver.take_marks(sender);
            }
        }
        let (sender, _) = self.split(side);
        sender.windows.on_segment(flags, segment.tcp.window, segment.time_ns);
        sender.order.note(segment.ip.ip_id);
        self.note_time(segment.time_ns);
        true
    }

    #[inline(always)]
    fn note_time(&mut self, time_ns: i64) {
        if time_ns > self.last_ns {
            self.last_ns = time_ns;
        }
    }

    #[cold]
    fn is_copy(&self, side: Side, segment: &Segment<'_>) -> bool {
        // A router forwards at once: after such a silence it is another packet.
        if self.idle_since(segment.time_ns) {
            return false;
        }
        // A reset acknowledges nothing and mostly has no identification (RFC 9293 section 3.5.2).
        let is_reset_again = segment.tcp.flags.has(TcpFlags::RST) && self.reset_by == Some(side);
        is_reset_again || self.half(side).is_copy(segment, self.half(side.other()))
    }

    /// Forget when packets passed that wait for an answer: the time until it comes is unknown.
    pub fn forget_times(&mut self, pool: &mut Pool) {
        self.halves.iter_mut().for_each(|half| half.forget_times(pool));
        if !self.handshake_done {
            self.handshake = [UNSEEN; 2];
        }
    }

    /// Give back what is held of `pool`. No segment may follow; all that was counted stays.
    pub fn leave(&mut self, pool: &mut Pool) {
        self.halves.iter_mut().for_each(|half| half.leave(pool));
    }

    /// Forget everything, as before the first segment.
    pub fn start_anew(&mut self, pool: &mut Pool) {
        for half in &mut self.halves {
            half.give_up(pool);
        }
        *self = Self::default();
    }

    /// Process a segment with a time that the capture already showed. Returns false, and does
    /// nothing, if it has anything new.
    pub fn on_segment_again(&mut self, side: Side, segment: &Segment<'_>, outcome: &mut Outcome) -> bool {
        let half = &mut self.halves[side as usize];
        let is_known = half.has_seen(segment);
        if is_known {
            outcome.position = half.sent.position(segment.tcp.seq).unwrap_or(0);
            outcome.repeated_bytes = segment.payload;
            outcome.finding = Some(half.count_capture_duplicate(Evidence::Time));
        }
        is_known
    }

    fn split(&mut self, side: Side) -> (&mut HalfConnection, &mut HalfConnection) {
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
        half.bare_controls = half.bare_controls.saturating_add(u16::from(segment.payload == 0));
        if flags.has(TcpFlags::SYN) {
            let answers = flags.has(TcpFlags::ACK);
            half.syns.on_syn(answers, segment.ip.is_cut);
            half.options.on_syn(&segment.tcp.options);
            let first_ns = &mut self.handshake[usize::from(answers)];
            if *first_ns == UNSEEN {
                *first_ns = segment.time_ns;
            }
            let opener = if answers { side.other() } else { side };
            self.opener.get_or_insert(opener);
            self.negotiate();
            if !self.handshake_done {
                self.ecn.on_syn(flags);
                self.has_ecn_counters = self.ecn_mode() == Some(EcnMode::Accurate);
            }
        }
    }

    /// Apply the options of both SYNs. Without one of them nothing is negotiated.
    fn negotiate(&mut self) {
        if !self.halves.iter().all(|half| half.syns.are_whole()) {
            return;
        }
        let [low, high] = self.halves.each_ref().map(|half| &half.options);
        // RFC 7323 section 2.2: the scale applies if both offered one.
        let is_scaled = low.window_scale.is_some() && high.window_scale.is_some();
        let refuses_sack = !(low.permits_sack && high.permits_sack);
        // RFC 9293 section 3.7.1: the MSS does not include options.
        let options = if low.has_timestamps && high.has_timestamps { TIMESTAMP_BYTES } else { 0 };
        let mss = low.mss.into_iter().chain(high.mss).min().map(u32::from);
        let longest = mss.and_then(|mss| NonZeroU32::new(mss.saturating_sub(options)));
        for half in &mut self.halves {
            half.options.window_shift = if is_scaled { half.options.window_scale } else { Some(0) };
            half.options.refuses_sack = refuses_sack;
            half.on_wire.set_longest(longest);
        }
    }

    /// Complete the handshake with the opener's first segment that acknowledges the SYN/ACK.
    #[cold]
    fn complete_handshake(&mut self, side: Side, segment: &Segment<'_>) {
        let Some(answer_ns) = self.syn_ack_ns().filter(|_| self.opener == Some(side)) else {
            // Of a connection that was open already, or whose SYN/ACK the capture missed: the opener acknowledges
            // nothing before it (RFC 9293 section 3.10.7.3).
            let flags = segment.tcp.flags;
            let acknowledges = flags.has(TcpFlags::ACK) && !flags.has(TcpFlags::SYN);
            self.handshake_done |= self.opener.is_none_or(|opener| opener == side && acknowledges);
            return;
        };
        let answer = self.half(side.other());
        if answer.acknowledged.position < 1 {
            return;
        }
        self.handshake_done = true;
        let once = self.halves.iter().all(|half| half.syns.count == 1);
        let Some(since) = self.syn_ns().filter(|_| once) else { return };
        self.handshake_rtt_ns = elapsed(since, segment.time_ns).unwrap_or(UNTIMED);
        // By a coarse clock an answer may take no time; a trace without times does not tell.
        let least_us = u64::from(segment.time_ns > since);
        let us =
            |since: i64, until: i64| elapsed(since, until).map_or(0, |ns| ns.div_ceil(1_000).max(least_us));
        let us = |since, until| u32::try_from(us(since, until)).unwrap_or(0);
        let whole = us(since, segment.time_ns);
        self.halves[side as usize].path.handshake_us = (us(answer_ns, segment.time_ns), whole);
        self.halves[side.other() as usize].path.handshake_us = (us(since, answer_ns), whole);
    }
}
