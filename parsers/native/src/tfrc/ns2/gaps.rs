//! Packets that ns-2's sink declares lost: those missing below a packet that is the `numPkts_`th
//! after a gap, or that arrived more than a round-trip time after the last one without a gap.

use std::collections::VecDeque;

use crate::tfrc::receive_record::{Arrival, Loss};

/// The most gaps; beyond it the lowest is declared lost early.
const MAX_GAPS: usize = 1024;

/// Meaning of an arrival for the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// The highest number so far, and whether some before it are missing.
    Highest {
        /// Whether there is a gap right before it.
        has_gap: bool,
    },
    /// It was missing, and not lost yet.
    Fills,
    /// A duplicate, or declared lost.
    Old,
}

/// Numbers that are missing. Bounded: [`MAX_GAPS`] runs of them.
#[derive(Clone, Debug)]
pub struct Gaps {
    num_pkts: u32,
    /// The highest packet so far, and the one before the latest arrival.
    highest: Option<Arrival>,
    before: Arrival,
    /// The highest packet below which nothing is missing that is not lost (`maxseqList`).
    checked: Arrival,
    /// Packets beyond a gap since.
    later: u32,
    /// First and last number of each run, in order; all are above `checked`.
    missing: VecDeque<(i64, i64)>,
}

impl Gaps {
    pub fn new(num_pkts: u32) -> Self {
        let none = Arrival::default();
        Self { num_pkts, highest: None, before: none, checked: none, later: 0, missing: VecDeque::new() }
    }

    /// The highest number; 0 before the first packet.
    pub fn highest(&self) -> i64 {
        self.highest.map_or(0, |arrival| arrival.number)
    }

    /// Record a packet; [`Gaps::check`] then returns the losses that it reveals.
    pub fn place(&mut self, arrival: Arrival) -> ArrivalKind {
        let Some(highest) = self.highest else {
            (self.highest, self.before, self.checked) = (Some(arrival), arrival, arrival);
            return ArrivalKind::Highest { has_gap: false };
        };
        self.before = highest;
        let place = if arrival.number > highest.number {
            let (first, last) = (highest.number.saturating_add(1), arrival.number.saturating_sub(1));
            if first <= last {
                self.missing.push_back((first, last));
            }
            self.highest = Some(arrival);
            ArrivalKind::Highest { has_gap: first <= last }
        } else if self.fill(arrival.number) {
            ArrivalKind::Fills
        } else {
            ArrivalKind::Old
        };
        if place != ArrivalKind::Old && arrival.number > self.checked.number.saturating_add(1) {
            self.later = self.later.saturating_add(1);
        }
        place
    }

    /// Take a number out of those that are missing; whether it was.
    fn fill(&mut self, number: i64) -> bool {
        let at = self.missing.partition_point(|(_, last)| *last < number);
        let Some((first, last)) = self.missing.get(at).copied().filter(|(first, _)| *first <= number) else {
            return false;
        };
        self.missing.remove(at);
        if number < last {
            self.missing.insert(at, (number.saturating_add(1), last));
        }
        if first < number {
            self.missing.insert(at, (first, number.saturating_sub(1)));
        }
        true
    }

    /// Add the losses revealed by the packet just placed to `losses`, with round-trip time `rtt`; a
    /// marked one that began a loss event is not waited for.
    pub fn check(&mut self, arrival: Arrival, rtt: f64, begins_event: bool, losses: &mut Vec<Loss>) {
        let is_late = arrival.time - self.checked.time > rtt;
        let is_beyond = arrival.number > self.checked.number;
        if is_beyond && (begins_event || is_late || self.later >= self.num_pkts) {
            self.declare(|last| last < arrival.number, arrival, losses);
            (self.checked, self.later) = (arrival, 0);
        } else if arrival.number == self.checked.number.saturating_add(1) {
            (self.checked, self.later) = (arrival, 0);
        }
        while self.missing.len() > MAX_GAPS {
            let lowest = self.missing.front().map_or(0, |(_, last)| *last);
            self.declare(|last| last <= lowest, arrival, losses);
        }
    }

    /// Times of lost packets are interpolated between this packet and the highest before it,
    /// wherever they are.
    fn declare(&mut self, is_lost: impl Fn(i64) -> bool, arrival: Arrival, losses: &mut Vec<Loss>) {
        let in_order = self.before.number <= arrival.number;
        let (before, after) = if in_order { (self.before, arrival) } else { (arrival, self.before) };
        while let Some((first, last)) = self.missing.front().copied().filter(|(_, last)| is_lost(*last)) {
            self.missing.pop_front();
            losses.push(Loss { first, last, before, after });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The numbers that each arrival makes lost; packets were sent 10 ms apart, and R is 1 s.
    fn lost(num_pkts: u32, numbers: &[i64]) -> Vec<(i64, i64, i64)> {
        let mut gaps = Gaps::new(num_pkts);
        let mut found = Vec::new();
        for &number in numbers {
            let arrival = Arrival { number, time: number as f64 * 0.01, ..Arrival::default() };
            let mut losses = Vec::new();
            gaps.place(arrival);
            gaps.check(arrival, 1.0, false, &mut losses);
            found.extend(losses.iter().map(|loss| (number, loss.first, loss.last)));
        }
        found
    }

    #[test]
    fn test_so_many_packets_beyond_a_gap_make_it_a_loss() {
        assert_eq!(lost(1, &[0, 1, 4, 5]), [(4, 2, 3)]);
        assert_eq!(lost(3, &[0, 1, 4, 5, 6, 7]), [(6, 2, 3)]);
        // All gaps below it, whenever they began.
        assert_eq!(lost(3, &[0, 2, 4, 5]), [(5, 1, 1), (5, 3, 3)]);
        assert_eq!(lost(3, &[0, 2, 1, 3, 4, 5, 6]), []);
    }

    #[test]
    fn test_a_packet_sent_more_than_a_round_trip_time_later_does_too() {
        assert_eq!(lost(3, &[0, 2, 200]), [(200, 1, 1), (200, 3, 199)]);
    }

    proptest! {
        #[test]
        fn test_what_is_missing_is_bounded_and_lost_once(
            numbers in proptest::collection::vec(prop_oneof![0_i64..300, any::<i64>()], 1..300),
            num_pkts in 1_u32..20,
        ) {
            let mut reported: Vec<(i64, i64)> =
                lost(num_pkts, &numbers).into_iter().map(|(_, first, last)| (first, last)).collect();
            reported.sort_unstable();
            prop_assert!(reported.iter().all(|(first, last)| first <= last));
            prop_assert!(reported.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
