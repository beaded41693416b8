//! Acknowledgements of a side's data: progress, round-trip times, rounds.

use super::{HalfConnection, elapsed};
use crate::flow::outstanding::Pool;
use crate::flow::rtt_statistics::{RoundTrip, RttMethod};
use crate::flow::tcp::classify::ip_id_order::RelativeAge;
use crate::flow::tcp::ecn::RoundMarks;
use crate::flow::tcp::recovery::retransmission::Acknowledgement;
use crate::flow::tcp::rounds::{Round, RoundEnd};
use crate::flow::tcp::{Outcome, Segment};
use crate::packet::event::TcpFlags;

/// Data segments after which the path to the sender is timed; before that it is not worth the
/// memory.
const MANY_SEGMENTS: u32 = 64;

/// The shortest delayed-acknowledgement timer in wide use (Linux's 40 ms; RFC 1122 section 4.2.3.2
/// and RFC 5681 section 4.2 allow 500 ms).
const DELAYED_ACK_NS: u64 = 40_000_000;

/// Position of the first byte that a capture without the SYN shows.
pub(in crate::flow::tcp) const FIRST_SEEN: i64 = 1;

impl HalfConnection {
    /// Process an acknowledgement: `segment`, sent by `acknowledger`, acknowledges data of this
    /// half.
    #[inline(always)]
    pub(crate) fn on_acknowledgement(
        &mut self,
        acknowledger: &mut HalfConnection,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let last_number = std::mem::replace(&mut self.acknowledged.number, segment.tcp.ack);
        let Some(position) = self.sent.position(segment.tcp.ack) else {
            return;
        };
        if position > self.sent.next {
            self.confirm_leap(position, pool);
        }
        let before = self.acknowledged.position;
        if position >= before {
            self.acknowledged.window_end = acknowledger.window_end_from(position, segment.tcp.window);
        }
        let in_flight = self.outstanding_bytes();
        let (mut rtt, mut echoed_ns) = (None, None);
        if position > before {
            self.flight.note(in_flight);
            let acked_ns = self.on_progress(position, segment.time_ns, pool);
            if let Some((_, echo)) = segment.tcp.options.timestamp {
                echoed_ns = self.on_echo(echo, segment.time_ns, pool);
            }
            let bytes = self.acknowledged.position - before;
            rtt = acked_ns.map(|rtt_ns| RoundTrip::new(rtt_ns, RttMethod::Ack));
            if let Some(rtt_ns) = acked_ns
                && self.acknowledged.position == self.sent.next
                && self.is_late(rtt_ns)
            {
                outcome.is_delayed_ack = self.note_delay(bytes, acknowledger, &segment.apart());
            }
        } else if (position == before || (self.is_before_capture(position) && segment.tcp.ack == last_number))
            && self.sent.next > position
            && acknowledger.repeats_acknowledgement(segment)
        {
            self.acknowledged.duplicates += 1;
            self.recovery_mut().on_duplicate_ack();
        }
        if self.sent.segments > MANY_SEGMENTS
            && let Some((value, _)) = segment.tcp.options.timestamp
        {
            let is_busy = segment.payload == 0 && self.acknowledged.position < self.sent.next;
            let echoes = self.rare_state.get_or_insert_default().echoes.get_or_insert_default();
            echoes.ask(value, segment.time_ns, self.sent.segments, is_busy);
        }
        let sacked = self.note_recovery((before, position), acknowledger, segment);
        if rtt.is_none() && (sacked.is_some() || echoed_ns.is_some()) {
            rtt = self.other_rtt(sacked, echoed_ns, (segment.time_ns, pool));
        }
        outcome.rtt = rtt;
        let left = in_flight - self.outstanding_bytes();
        if position > before {
            if self.flight.on_progress(left, self.acknowledged.position, segment.time_ns) {
                let measured = (in_flight, rtt.map(|rtt| rtt.ns));
                outcome.round = self.end_round(acknowledger, &segment.apart(), measured);
            }
        } else if left != 0 {
            self.flight.note(in_flight);
            self.flight.on_sacked(left, segment.time_ns);
        }
    }

    /// Whether an acknowledgement of this side that does not advance, while data are outstanding, is a "duplicate
    /// acknowledgment" by the other conditions of RFC 5681 section 2, (b), (c) and (e); and not a duplicate packet.
    #[inline(always)]
    fn repeats_acknowledgement(&self, segment: &Segment<'_>) -> bool {
        segment.payload == 0
            && !segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
            && Some(segment.tcp.window) == self.windows.last()
            && self.order.age(segment.ip.ip_id) != RelativeAge::Seen
    }

    /// The round-trip time of an acknowledgement without one by Karn's rule, in the order of Linux
    /// (`tcp_ack_update_rtt`): of data up to `sacked`, else by the echo of a timestamp.
    #[inline(never)]
    fn other_rtt(
        &mut self,
        sacked: Option<i64>,
        echoed_ns: Option<u64>,
        (time_ns, pool): (i64, &Pool),
    ) -> Option<RoundTrip> {
        let sacked_ns = sacked.and_then(|end| {
            let recovery = self.recovery.as_mut()?;
            elapsed(self.sent.outstanding.sent_ns_after(&mut recovery.sacked_at, end as u32, pool)?, time_ns)
        });
        let by_sack = sacked_ns.map(|rtt_ns| RoundTrip::new(rtt_ns, RttMethod::Sack));
        let rtt = by_sack.or(echoed_ns.map(|rtt_ns| RoundTrip::new(rtt_ns, RttMethod::Timestamp)))?;
        self.path.round_trips.add(rtt.ns);
        Some(rtt)
    }

    /// Update the recovery state with an acknowledgement. Returns the end of the data whose SACK gives a round-trip
    /// time.
    #[inline(always)]
    fn note_recovery(
        &mut self,
        moved: (i64, i64),
        acknowledger: &HalfConnection,
        segment: &Segment<'_>,
    ) -> Option<i64> {
        match &mut self.recovery {
            None if segment.sack.is_empty() => None,
            Some(recovery) if recovery.is_over && segment.sack.is_empty() => {
                recovery.last_ack_ns = segment.time_ns;
                None
            }
            _ => self.on_acknowledgement_in_recovery(moved, acknowledger, &segment.apart()),
        }
    }

    #[inline(never)]
    fn on_acknowledgement_in_recovery(
        &mut self,
        moved: (i64, i64),
        acknowledger: &HalfConnection,
        segment: &Segment<'_>,
    ) -> Option<i64> {
        let answer = Acknowledgement {
            position: self.acknowledged.position,
            time_ns: segment.time_ns,
            blocks: self.blocks_of(segment),
            has_blocks: !segment.sack.is_empty(),
            is_copy: acknowledger.order.age(segment.ip.ip_id) == RelativeAge::Seen,
            next: self.sent.next,
            echo: segment.tcp.options.timestamp.map(|(_, echo)| echo),
            earliest_ns: self.path.earliest_ack_ns(&acknowledger.path),
            has_sack: !self.options.refuses_sack,
        };
        if self.began_before_capture() && moved.0 <= FIRST_SEEN {
            self.note_sent_before(answer.blocks.iter().flatten().map(|block| block.1).max());
        }
        self.recovery_mut().on_acknowledgement(moved, &answer)
    }

    /// Whether data may have been sent before the capture began: it shows no SYN.
    pub(in crate::flow::tcp) fn began_before_capture(&self) -> bool {
        self.syns.count == 0
    }

    /// Whether data at `position` were sent before the capture began, and none that it shows is acknowledged.
    fn is_before_capture(&self, position: i64) -> bool {
        position < FIRST_SEEN && self.acknowledged.position <= FIRST_SEEN && self.began_before_capture()
    }

    /// Position up to which the stream was sent before the capture began, as far as it shows.
    fn sent_before(&self) -> i64 {
        self.upstream_loss().map_or(FIRST_SEEN, |upstream_loss| upstream_loss.holes.sent_before())
    }

    /// An acknowledgement reaches `end`, which the capture did not show, before any of the data that it
    /// shows is acknowledged, or where what was sent before it is: this was sent before, too.
    #[cold]
    fn note_sent_before(&mut self, end: Option<i64>) {
        if let Some(end) = end.filter(|end| *end > self.sent.next) {
            self.recovery_mut().upstream_loss_mut().holes.begin_after(end);
        }
    }

    fn blocks_of(&self, segment: &Segment<'_>) -> [Option<(i64, i64)>; 4] {
        let mut blocks = [None; 4];
        for (block, (start, end)) in blocks.iter_mut().zip(segment.sack) {
            let ends = self.sent.position(*start).zip(self.sent.position(*end));
            *block = ends.filter(|(start, end)| start < end);
        }
        blocks
    }

    /// End of the window that this side announces for data from `position` of the other's stream.
    /// If the scale is unknown there is none, except that a closed window is closed at any scale.
    #[inline(always)]
    fn window_end_from(&self, position: i64, window: u16) -> i64 {
        match self.options.window_shift {
            Some(shift) => position + (i64::from(window) << shift),
            None if window == 0 => position,
            None => i64::MAX,
        }
    }

    /// The acknowledgement advanced to `position`: its RTT, if it gives one.
    #[inline(always)]
    fn on_progress(&mut self, position: i64, time_ns: i64, pool: &mut Pool) -> Option<u64> {
        let before = self.acknowledged.position;
        if position > self.sent.next && self.began_before_capture() && before <= self.sent_before() {
            self.note_sent_before(Some(position));
        }
        let sent_ns = self.sent.outstanding.pop_through(position as u32, pool);
        // An acknowledgement of data that the capture never showed must not advance beyond the data
        // shown.
        self.acknowledged.position = position.min(self.sent.next);
        self.acknowledged.progress_ns = time_ns;
        if let Some(recovery) = &mut self.recovery
            && recovery.is_ambiguous(before, position, self.acknowledged.position)
        {
            return None;
        }
        let rtt_ns = elapsed(sent_ns?, time_ns)?;
        self.path.round_trips.add(rtt_ns);
        Some(rtt_ns)
    }

    /// Whether an RTT exceeds the smallest by at least a delayed-acknowledgement timer.
    #[inline(always)]
    fn is_late(&self, rtt_ns: u64) -> bool {
        rtt_ns >= self.path.round_trips.min_ns().saturating_add(DELAYED_ACK_NS)
    }

    /// All outstanding `bytes` were acknowledged late: whether the receiver delayed the
    /// acknowledgement. It does so for less than two full-sized segments (RFC 5681 section 4.2),
    /// and only without data of its own to send.
    #[inline(never)]
    fn note_delay(&mut self, bytes: i64, acknowledger: &HalfConnection, segment: &Segment<'_>) -> bool {
        let is_control = segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let is_few = bytes < 2 * i64::from(self.full_size(acknowledger));
        let is_delayed = is_few && !is_control && segment.payload == 0;
        if is_delayed {
            let rare_state = self.rare_state.get_or_insert_default();
            rare_state.delayed_acks = rare_state.delayed_acks.saturating_add(1);
        }
        is_delayed
    }

    /// End a round: all data sent when it began are acknowledged.
    fn end_round(
        &mut self,
        acknowledger: &HalfConnection,
        segment: &Segment<'_>,
        (in_flight, rtt_ns): (i64, Option<u64>),
    ) -> Option<Round> {
        let has_sack = self.recovery.as_ref().is_some_and(|recovery| recovery.has_sack);
        let close = RoundEnd {
            time_ns: segment.time_ns,
            window: acknowledger.windows.last().and_then(|window| acknowledger.scaled(window, self)),
            full_size: self.full_size(acknowledger),
            in_flight: has_sack.then(|| in_flight.clamp(0, u32::MAX.into()) as u32),
            rtt_ns,
            marks: self.take_marks(acknowledger),
        };
        let outstanding = self.outstanding_bytes();
        self.flight.end_round((self.acknowledged.position, self.sent.next), outstanding, close)
    }

    /// The congestion marks since the last time.
    pub(crate) fn take_marks(&mut self, acknowledger: &HalfConnection) -> RoundMarks {
        let all = self.marks(acknowledger);
        let Some(rare_state) = &mut self.rare_state else { return all };
        rare_state.marks_before.advance(all)
    }

    /// All congestion marks so far.
    pub(in crate::flow::tcp) fn marks(&self, acknowledger: &HalfConnection) -> RoundMarks {
        let Some(rare_state) = &self.rare_state else { return RoundMarks::default() };
        let ecn = rare_state.ecn;
        let saturated = |packets: u64| u32::try_from(packets).unwrap_or(u32::MAX);
        let reported = rare_state.ce_feedback.as_ref().and_then(|feedback| feedback.ce_packets());
        RoundMarks {
            ect_packets: saturated(ecn.ect_packets()),
            ect1_packets: ecn.ect1_packets,
            ce_packets: ecn.ce_packets,
            ece_packets: acknowledger.ecn().ece_packets,
            reported_ce_packets: reported.map(saturated),
        }
    }

    /// Take an RTT from the first echo of a timestamp; later echoes may repeat it until a newer
    /// timestamp arrives.
    #[inline(always)]
    fn on_echo(&mut self, echo: u32, time_ns: i64, pool: &mut Pool) -> Option<u64> {
        let sent_ns = self.options.unechoed.pop_through(echo, pool)?;
        let rtt_ns = elapsed(sent_ns, time_ns)?;
        self.path.round_trips.add_echo(rtt_ns);
        Some(rtt_ns)
    }
}
