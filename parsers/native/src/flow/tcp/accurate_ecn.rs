//! Counters of accurate ECN feedback (RFC 9768): CE packets in three bits of the TCP header, bytes
//! by codepoint in an option.

use serde::{Deserialize, Serialize};

use super::ecn::ace;
use super::{Connection, Outcome, Segment};
use crate::packet::event::TcpFlags;
use crate::packet::extras::EcnByteCounters;
use crate::packet::key::Side;
use crate::packet::seq::SeqNumber;

/// Values of the packet counter in a header (DIVACE).
const PACKET_VALUES: u64 = 1 << 3;
/// Values of a byte counter in an option (DIVOPT).
const BYTE_VALUES: u64 = 1 << 24;
/// Section 3.2.1: first values, so that a field cleared on the path differs from a counter.
const FIRST_CE_PACKETS: u64 = 5;
const FIRST_ECT_BYTES: u64 = 1;
/// ACE of an acknowledgement of a SYN/ACK that arrived with a mark (table 3).
const HANDSHAKE_CE: u8 = 0b110;
/// Section A.2.1: where acknowledgements usually cover so many packets, a long one is no evidence
/// of lost acknowledgements. "Well below 8".
const THINNED_PACKETS: f64 = 4.0;
/// Weight of one acknowledgement in their moving average.
const ACK_WEIGHT: f64 = 1.0 / 64.0;

/// Marks on one side's packets as the other side reports them: s.cep, s.ceb, s.e0b and s.e1b.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CeFeedback {
    /// Up to the last report whose byte counters settled how many there were.
    settled_ce_packets: u64,
    since: UnsettledSteps,
    /// The same if the three bits never cycled unseen: a lower bound.
    least_ce_packets: u64,
    bytes: Option<ReportedBytes>,
    /// Newest timestamp of the reports.
    newest_timestamp: Option<u32>,
    /// Moving average of the packets that an acknowledgement covers.
    usual_packets: Option<f64>,
    /// Whether a counter was not 0; otherwise something on the path clears it, or the other side
    /// does not count (section 3.2.2.4).
    is_counting: bool,
}

/// Steps of the packet counter since byte counters last said how many marks there were.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct UnsettledSteps {
    /// Packets if it never cycled.
    least: u64,
    /// Packets if it cycled wherever it may have.
    safest: u64,
    /// Packets by section A.2.1.
    likely: u64,
    /// Reports in which it may have cycled, where acknowledgements usually are that long.
    ambiguous: u32,
    /// Of these, such in which it stood still and would not have if every packet had a mark.
    unmarked: u32,
}

impl UnsettledSteps {
    /// Take the smallest `step` of the counter in a report on `packets`.
    fn add(&mut self, step: u64, packets: u64, usual_packets: f64) {
        let safest = safest_step(step, packets);
        let is_usual = safest > step && usual_packets >= THINNED_PACKETS;
        self.least += step;
        self.safest += safest;
        self.likely += if is_usual { step } else { safest };
        self.ambiguous += u32::from(is_usual);
        self.unmarked += u32::from(is_usual && step == 0 && !packets.is_multiple_of(PACKET_VALUES));
    }

    /// The packets that byte counters leave: as few as carry the `ce_bytes` that these newly report as marked.
    fn settled(&self, ce_bytes: u64, full_size: u64) -> u64 {
        let needed = ce_bytes.div_ceil(full_size);
        let cycles = needed.saturating_sub(self.least).div_ceil(PACKET_VALUES);
        (self.least + cycles * PACKET_VALUES).min(self.safest)
    }

    /// The likely number of packets. Long acknowledgements say nothing of how often the counter cycled (section
    /// A.2.1): None, unless most of them show that there were no marks.
    fn likely(&self) -> Option<u64> {
        (self.unmarked * 2 >= self.ambiguous).then_some(self.likely)
    }
}

/// Payload bytes that arrived, by codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedBytes {
    pub ect0: u64,
    pub ce: u64,
    pub ect1: u64,
}

/// One report: the counters of a packet, and what it acknowledges.
#[derive(Clone, Copy, Debug)]
struct Report {
    ace: u8,
    counters: Option<EcnByteCounters>,
    timestamp: Option<u32>,
    /// Bytes newly acknowledged, cumulatively or by SACK (newlyAckedB).
    acked_bytes: u64,
    /// Payload of a full-sized packet of the side that is reported on, and of a usual one.
    full_size: u64,
    usual_size: u64,
    /// Whether it carries the next new data of its sender.
    has_new_data: bool,
}

impl Default for CeFeedback {
    fn default() -> Self {
        Self {
            settled_ce_packets: FIRST_CE_PACKETS,
            since: UnsettledSteps::default(),
            least_ce_packets: FIRST_CE_PACKETS,
            bytes: None,
            newest_timestamp: None,
            usual_packets: None,
            is_counting: false,
        }
    }
}

impl CeFeedback {
    /// Packets that arrived with a mark; None if the counter was always 0, or cycled too often to tell.
    pub fn ce_packets(&self) -> Option<u64> {
        let likely = self.since.likely().filter(|_| self.is_counting)?;
        Some(self.settled_ce_packets + likely - FIRST_CE_PACKETS)
    }

    /// The fewest packets that the counter allows.
    pub fn least_ce_packets(&self) -> Option<u64> {
        self.is_counting.then(|| self.least_ce_packets - FIRST_CE_PACKETS)
    }

    /// Payload bytes by codepoint; None without the option.
    pub fn bytes(&self) -> Option<ReportedBytes> {
        let ReportedBytes { ect0, ce, ect1 } = self.bytes?;
        Some(ReportedBytes { ect0: ect0 - FIRST_ECT_BYTES, ce, ect1: ect1 - FIRST_ECT_BYTES })
    }

    /// Take the acknowledgement of a SYN/ACK, whose `ace` is the mark of that (section 3.2.2.1).
    fn on_handshake(&mut self, ace: u8) {
        self.is_counting |= ace != 0;
        if ace == HANDSHAKE_CE && self.least_ce_packets == FIRST_CE_PACKETS {
            self.settled_ce_packets += 1;
            self.least_ce_packets += 1;
        }
    }

    /// Take a report, unless a newer one was taken (section A.1).
    fn on_report(&mut self, report: &Report) {
        let has_newer_timestamp = self.note_timestamp(report.timestamp);
        if report.acked_bytes == 0 && !has_newer_timestamp && !report.has_new_data {
            return;
        }
        self.is_counting |= report.ace != 0;
        let packets = report.acked_bytes / report.usual_size;
        let usual_packets = self.usual_packets.unwrap_or(packets as f64);
        let step = step(self.least_ce_packets, report.ace.into(), PACKET_VALUES);
        self.least_ce_packets += step;
        self.since.add(step, packets, usual_packets);
        if let Some(counters) = &report.counters {
            // They begin at 0 with the connection, so that the first ones tell of all packets before.
            let ce_bytes = self.on_counters(counters);
            self.settled_ce_packets += std::mem::take(&mut self.since).settled(ce_bytes, report.full_size);
        }
        if report.acked_bytes > 0 {
            self.usual_packets = Some(usual_packets + (packets as f64 - usual_packets) * ACK_WEIGHT);
        }
    }

    /// Whether `timestamp` is newer than all before.
    fn note_timestamp(&mut self, timestamp: Option<u32>) -> bool {
        let Some(timestamp) = timestamp else { return false };
        let is_newer =
            self.newest_timestamp.is_some_and(|newest| SeqNumber(timestamp).since(SeqNumber(newest)) > 0);
        if is_newer || self.newest_timestamp.is_none() {
            self.newest_timestamp = Some(timestamp);
        }
        is_newer
    }

    /// Take byte counters; returns the bytes newly reported as marked. A counter that is left out
    /// has not changed (section 3.2.3).
    fn on_counters(&mut self, counters: &EcnByteCounters) -> u64 {
        let bytes =
            self.bytes.get_or_insert(ReportedBytes { ect0: FIRST_ECT_BYTES, ce: 0, ect1: FIRST_ECT_BYTES });
        let before = bytes.ce;
        for (known, counter) in
            [(&mut bytes.ect0, counters.ect0), (&mut bytes.ce, counters.ce), (&mut bytes.ect1, counters.ect1)]
        {
            if let Some(counter) = counter {
                *known += step(*known, counter.into(), BYTE_VALUES);
            }
        }
        bytes.ce - before
    }
}

/// The most packets that a smallest `step` of the counter stands for in a report on `packets` (section A.2.1).
fn safest_step(step: u64, packets: u64) -> u64 {
    packets.checked_sub(step).map_or(step, |unexplained| packets - unexplained % PACKET_VALUES)
}

/// The smallest increase of `counter` that ends at `value`, modulo `values`.
fn step(counter: u64, value: u64, values: u64) -> u64 {
    (value + values - counter % values) % values
}

impl Connection {
    /// Take the counters of a segment from `side` that was processed; the other side had delivered
    /// `delivered_before` bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn on_accurate_ecn(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        delivered_before: i64,
        outcome: &Outcome,
    ) {
        let flags = segment.tcp.flags;
        if flags.has(TcpFlags::SYN) || !flags.has(TcpFlags::ACK) {
            return;
        }
        let is_opener = self.opener == Some(side);
        if !is_opener && self.ecn.is_refuted_by(ace(flags)) {
            self.has_ecn_counters = false;
            return;
        }
        let (sender, receiver) = self.split(side);
        let is_pure =
            segment.payload == 0 && segment.sack.is_empty() && !flags.has(TcpFlags::FIN | TcpFlags::RST);
        if is_opener && is_pure && receiver.sent.position(segment.tcp.ack) == Some(1) {
            return receiver.ce_feedback_mut().on_handshake(ace(flags));
        }
        let full_size = receiver.full_size(sender).into();
        let mean_size = receiver.sent.unique_bytes.checked_div(receiver.sent.segments.into());
        let report = Report {
            ace: ace(flags),
            counters: segment.ecn_counters,
            timestamp: segment.tcp.options.timestamp.map(|(value, _)| value),
            acked_bytes: u64::try_from(receiver.delivered() - delivered_before).unwrap_or(0),
            full_size,
            usual_size: mean_size.unwrap_or(full_size).clamp(1, full_size),
            has_new_data: outcome.new_bytes > 0 && !outcome.out_of_order,
        };
        receiver.ce_feedback_mut().on_report(&report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1460;

    fn report(ace: u8, packets: u64) -> Report {
        Report {
            ace,
            counters: None,
            timestamp: None,
            acked_bytes: packets * MSS,
            full_size: MSS,
            usual_size: MSS,
            has_new_data: false,
        }
    }

    /// Counts after a report of each of `packets` with ACE so much higher.
    fn counted(increments: &[(u64, u8)]) -> (u64, u64) {
        let (mut feedback, mut ace) = (CeFeedback::default(), 5);
        for &(packets, increment) in increments {
            ace = (ace + increment) % 8;
            feedback.on_report(&report(ace, packets));
        }
        (feedback.ce_packets().unwrap(), feedback.least_ce_packets().unwrap())
    }

    #[test]
    fn test_an_ambiguous_step_is_the_safest_one() {
        // The two examples of section A.2.1, after acknowledgements of two packets each.
        let usual = [(2, 0); 20];
        assert_eq!(counted(&[&usual[..], &[(9, 2)]].concat()), (2, 2));
        assert_eq!(counted(&[&usual[..], &[(10, 2)]].concat()), (10, 2));
        // Section 3.2.2.5.2: the counter is right, not the number of packets.
        assert_eq!(counted(&[(1, 2)]), (2, 2));
    }

    #[test]
    fn test_acknowledgements_that_are_always_long_are_not_ambiguous() {
        assert_eq!(counted(&[(44, 0); 1000]), (0, 0));
    }

    #[test]
    fn test_bytes_decide_as_in_the_examples() {
        // Section A.2.2: the smallest step, the safest one, bytes, and which one it is.
        for (least, safest, bytes, expected) in [(0, 8, 1460, 8), (2, 10, 1460, 2), (7, 15, 10_200, 7)] {
            let mut since = UnsettledSteps::default();
            since.add(least, safest, 2.0);
            assert_eq!(since.settled(bytes, MSS), expected, "{least} or {safest}");
        }
    }

    #[test]
    fn test_a_counter_that_cycles_in_each_long_acknowledgement_says_nothing() {
        // Every packet marked, or all but one in twenty: 240 packets or 228 by acknowledgements of 8, 16 or 20.
        for (packets, marked) in [(8, 8), (16, 16), (16, 15), (20, 20), (20, 19)] {
            let mut feedback = CeFeedback::default();
            for number in 1..=240 / packets {
                feedback.on_report(&report(((5 + number * marked) % 8) as u8, packets));
            }
            assert_eq!(feedback.ce_packets(), None, "{packets} {marked}");
            let marks = 240 / packets * marked;
            assert!(feedback.least_ce_packets().is_some_and(|least| least < marks), "{packets} {marked}");
        }
        // It does in acknowledgements of fewer than eight.
        let mut feedback = CeFeedback::default();
        for number in 1..=60 {
            feedback.on_report(&report(((5 + number * 4) % 8) as u8, 4));
        }
        assert_eq!(feedback.ce_packets(), Some(240));
    }

    #[test]
    fn test_bytes_settle_all_steps_since_the_last_ones() {
        // 168 of 240 packets, seven of ten, in acknowledgements of 20 of which every third has the option.
        let mut feedback = CeFeedback::default();
        for number in 1..=12_u64 {
            let marked = number * 14;
            let ce = (marked * MSS) as u32;
            let counters = EcnByteCounters { ect0: None, ce: Some(ce), ect1: None };
            let counters = number.is_multiple_of(3).then_some(counters);
            feedback.on_report(&Report { counters, ..report(((5 + marked) % 8) as u8, 20) });
        }
        assert_eq!(feedback.ce_packets(), Some(168));
    }

    #[test]
    fn test_bytes_are_unwrapped_as_in_the_example() {
        // Section A.1: s.ceb of 33,554,433 and a field of 1461.
        assert_eq!(step(33_554_433, 1461, BYTE_VALUES), 1460);
    }

    #[test]
    fn test_a_counter_that_is_left_out_has_not_changed() {
        let mut feedback = CeFeedback::default();
        assert_eq!(feedback.bytes(), None);
        let counters = EcnByteCounters { ect0: Some(1), ce: Some(1460), ect1: Some(2921) };
        feedback.on_report(&Report { counters: Some(counters), ..report(6, 3) });
        let fewer = EcnByteCounters { ect0: None, ce: None, ect1: Some(4381) };
        feedback.on_report(&Report { counters: Some(fewer), ..report(6, 1) });
        assert_eq!(feedback.bytes(), Some(ReportedBytes { ect0: 0, ce: 1460, ect1: 4380 }));
        assert_eq!(feedback.ce_packets(), Some(1));
    }

    #[test]
    fn test_a_report_that_was_overtaken_is_ignored() {
        let mut feedback = CeFeedback::default();
        let stamped = |ace, packets, value| Report { timestamp: Some(value), ..report(ace, packets) };
        feedback.on_report(&stamped(7, 2, u32::MAX));
        feedback.on_report(&stamped(6, 0, u32::MAX - 1));
        assert_eq!(feedback.ce_packets(), Some(2));
        // A newer timestamp and nothing acknowledged: marks on packets without data.
        feedback.on_report(&stamped(0, 0, 3));
        assert_eq!(feedback.ce_packets(), Some(3));
    }

    #[test]
    fn test_a_cleared_counter_counts_nothing() {
        let mut feedback = CeFeedback::default();
        feedback.on_handshake(0);
        feedback.on_report(&report(0, 2));
        assert_eq!(feedback.ce_packets(), None);
    }

    #[test]
    fn test_a_marked_syn_ack_is_counted_once() {
        let mut feedback = CeFeedback::default();
        feedback.on_handshake(HANDSHAKE_CE);
        feedback.on_handshake(HANDSHAKE_CE);
        feedback.on_report(&report(6, 1));
        assert_eq!(feedback.ce_packets(), Some(1));
    }
}
