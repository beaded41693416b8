//! The receive record: received and lost packets (sections 5.1 and 5.2).

use serde::{Deserialize, Serialize};

use std::collections::{BTreeSet, VecDeque};

/// Holes that wait for later packets. Three later packets close every hole, so that only with a
/// larger NDUPACK more of them can be open; the lowest is then declared lost before its time.
const MAX_HOLES: usize = 1024;
/// Limit of losses remembered to distinguish late packets from duplicates; older ones count as
/// duplicates.
const MAX_DECLARED: usize = 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    pub number: i64,
    /// When: by the receiver's clock, or by the sender's if its times are known.
    pub time: f64,
    /// CCID 3's window counter.
    pub ccval: u8,
    /// Packets right before it that had no data: none of these is a loss (RFC 4340 section 7.7.1).
    pub ndp: u64,
}

/// Consecutive packets that were declared lost together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The first of them.
    pub first: i64,
    pub last: i64,
    /// The packet received right before `after`.
    pub before: Arrival,
    /// The first received packet with a higher number.
    pub after: Arrival,
}

impl Loss {
    /// When the packet `number` would have come, by interpolation (section 5.2).
    pub fn time_of(&self, number: i64) -> f64 {
        self.before.time + self.seconds_per_packet() * number.saturating_sub(self.before.number) as f64
    }

    /// Between two packets around the loss.
    pub fn seconds_per_packet(&self) -> f64 {
        let packets = self.after.number.saturating_sub(self.before.number).max(1);
        (self.after.time - self.before.time) / packets as f64
    }

    /// The first number from `number` on whose time is later than `limit`. They are evenly spaced,
    /// so no search is needed.
    pub fn first_later(&self, limit: f64, number: i64) -> Option<i64> {
        let distance = (limit - self.before.time) / self.seconds_per_packet();
        // Without order in time no number is preferable to the next. Beyond the range of integers a
        // float saturates, and a step back compensates for its rounding.
        let estimate = match distance.is_finite() && self.seconds_per_packet() > 0.0 {
            true => self.before.number.saturating_add(distance as i64).saturating_sub(1),
            false => number,
        };
        let near = (estimate.max(number)..=self.last).take(4);
        near.into_iter().find(|&number| self.time_of(number) > limit)
    }

    pub fn packets(&self) -> u64 {
        self.last.saturating_sub(self.first).unsigned_abs() + 1
    }
}

/// Meaning of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArrivalKind {
    /// The highest number so far.
    New,
    /// Reordered, and not declared lost.
    Reordered,
    /// Received before, or too long ago to know.
    Duplicate,
    /// It had been declared lost.
    Late,
    /// Below the first packet seen.
    Early,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalCounts {
    /// Packets that had come before.
    pub duplicates: u64,
    /// Reordered packets that still arrived in time.
    pub reordered: u64,
    /// Packets that arrived after they were declared lost.
    pub late_after_declared: u64,
    /// Packets below the first one seen.
    pub early: u64,
    pub lost: u64,
    /// Losses declared before NDUPACK later packets, because too many were pending.
    pub hurried: u64,
}

/// Consecutive missing numbers not yet declared lost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hole {
    loss: Loss,
    /// Received packets with a higher number.
    later: u32,
}

/// The record of one direction. Its memory is bounded: it keeps holes and losses, not packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiveRecord {
    /// Later packets that make a missing one lost: NDUPACK.
    ndupack: u32,
    first: Option<i64>,
    highest: i64,
    previous: Arrival,
    /// In ascending order; the lower of two has as many later packets as the higher, or more.
    holes: VecDeque<Hole>,
    /// Declared losses in ascending order.
    declared: VecDeque<(i64, i64)>,
    /// Packets that are known to come late, and are never declared lost.
    withheld: BTreeSet<i64>,
    pub counts: ArrivalCounts,
}

impl ReceiveRecord {
    pub fn new(ndupack: u32) -> Self {
        Self {
            ndupack: ndupack.max(1),
            first: None,
            highest: 0,
            previous: Arrival::default(),
            holes: VecDeque::new(),
            declared: VecDeque::new(),
            withheld: BTreeSet::new(),
            counts: ArrivalCounts::default(),
        }
    }

    pub fn first(&self) -> Option<i64> {
        self.first
    }

    /// The highest number; means nothing before the first packet.
    pub fn highest(&self) -> i64 {
        self.highest
    }

    /// Missing packets that are not declared lost.
    pub fn pending(&self) -> u64 {
        self.holes.iter().map(|hole| hole.loss.packets()).sum()
    }

    /// Declare missing packets lost at once: from now on only packets arrive that were waited for
    /// already.
    pub fn declare_at_once(&mut self) {
        self.ndupack = 1;
    }

    /// Never declare `number` lost: it arrives, although late.
    pub fn withhold(&mut self, number: i64) {
        self.withheld.insert(number);
    }

    /// No longer keep in mind that packets below `number` come late.
    pub fn release_below(&mut self, number: i64) {
        self.withheld = self.withheld.split_off(&number);
    }

    /// Record a packet; losses that it declares go to `losses` in ascending order.
    pub fn on_arrival(&mut self, arrival: Arrival, losses: &mut Vec<Loss>) -> ArrivalKind {
        let kind = self.place(arrival);
        match kind {
            ArrivalKind::New => {}
            ArrivalKind::Reordered => self.counts.reordered += 1,
            ArrivalKind::Duplicate => self.counts.duplicates += 1,
            ArrivalKind::Late => self.counts.late_after_declared += 1,
            ArrivalKind::Early => self.counts.early += 1,
        }
        if matches!(kind, ArrivalKind::New | ArrivalKind::Reordered) {
            if arrival.ndp > 0 {
                let last = arrival.number.saturating_sub(1);
                self.cut(arrival.number.saturating_sub_unsigned(arrival.ndp), last);
            }
            for hole in self.holes.iter_mut().take_while(|hole| hole.loss.last < arrival.number) {
                hole.later = hole.later.saturating_add(1);
            }
            self.previous = arrival;
            self.declare(losses);
        }
        kind
    }

    fn place(&mut self, arrival: Arrival) -> ArrivalKind {
        let number = arrival.number;
        let Some(first) = self.first else {
            self.first = Some(number);
            self.highest = number;
            return ArrivalKind::New;
        };
        if number < first {
            return ArrivalKind::Early;
        }
        if number > self.highest {
            self.advance(arrival);
            return ArrivalKind::New;
        }
        let at = self.holes.partition_point(|hole| hole.loss.last < number);
        if self.holes.get(at).is_some_and(|hole| hole.loss.first <= number) {
            self.cut(number, number);
            ArrivalKind::Reordered
        } else if self.forget_declared(number) {
            ArrivalKind::Late
        } else {
            ArrivalKind::Duplicate
        }
    }

    fn advance(&mut self, arrival: Arrival) {
        let next = self.highest.saturating_add(1);
        if arrival.number > next {
            let last = arrival.number.saturating_sub(1);
            let loss = Loss { first: next, last, before: self.previous, after: arrival };
            self.holes.push_back(Hole { loss, later: 0 });
        }
        self.highest = arrival.number;
    }

    /// Take the numbers from `first` to `last` out of the holes: of each something is left below, above,
    /// both or nothing.
    fn cut(&mut self, first: i64, last: i64) {
        let start = self.holes.partition_point(|hole| hole.loss.last < first);
        let end = self.holes.partition_point(|hole| hole.loss.first <= last).max(start);
        let holes: Vec<Hole> = self.holes.drain(start..end).collect();
        for hole in holes.into_iter().rev() {
            let part = |first: i64, last: i64| {
                (first <= last).then_some(Hole { loss: Loss { first, last, ..hole.loss }, ..hole })
            };
            let below = part(hole.loss.first, first.saturating_sub(1));
            let above = part(last.saturating_add(1), hole.loss.last);
            for part in [above, below].into_iter().flatten() {
                self.holes.insert(start, part);
            }
        }
    }

    fn declare(&mut self, losses: &mut Vec<Loss>) {
        let due = self.holes.partition_point(|hole| hole.later >= self.ndupack);
        let excess = self.holes.len().saturating_sub(MAX_HOLES);
        self.counts.hurried += excess.saturating_sub(due) as u64;
        if due.max(excess) == 0 {
            return;
        }
        let holes: Vec<Hole> = self.holes.drain(..due.max(excess)).collect();
        let mut kept = Vec::new();
        for hole in holes {
            self.declare_hole(hole, losses, &mut kept);
        }
        for hole in kept.into_iter().rev() {
            self.holes.push_front(hole);
        }
    }

    /// Declare a hole lost but for the packets that are withheld: these stay holes.
    fn declare_hole(&mut self, hole: Hole, losses: &mut Vec<Loss>, kept: &mut Vec<Hole>) {
        let mut first = hole.loss.first;
        let withheld: Vec<i64> = self.withheld.range(first..=hole.loss.last).copied().collect();
        for number in withheld {
            kept.push(Hole { loss: Loss { first: number, last: number, ..hole.loss }, ..hole });
            self.lose(Loss { first, last: number.saturating_sub(1), ..hole.loss }, losses);
            first = number.saturating_add(1);
        }
        self.lose(Loss { first, ..hole.loss }, losses);
    }

    fn lose(&mut self, loss: Loss, losses: &mut Vec<Loss>) {
        if loss.first > loss.last {
            return;
        }
        self.counts.lost = self.counts.lost.saturating_add(loss.packets());
        if self.declared.len() == MAX_DECLARED {
            self.declared.pop_front();
        }
        self.declared.push_back((loss.first, loss.last));
        losses.push(loss);
    }

    /// Whether `number` was declared lost. It returns true only once: the next arrival is a
    /// duplicate.
    fn forget_declared(&mut self, number: i64) -> bool {
        let at = self.declared.partition_point(|&(_, last)| last < number);
        let Some(&(first, last)) = self.declared.get(at).filter(|&&(first, _)| first <= number) else {
            return false;
        };
        self.declared.remove(at);
        for part in [(number.saturating_add(1), last), (first, number.saturating_sub(1))] {
            if part.0 <= part.1 {
                self.declared.insert(at, part);
            }
        }
        if self.declared.len() > MAX_DECLARED {
            self.declared.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take_all(ndupack: u32, numbers: &[i64]) -> (ReceiveRecord, Vec<Loss>) {
        let mut record = ReceiveRecord::new(ndupack);
        let mut losses = Vec::new();
        for (at, &number) in numbers.iter().enumerate() {
            record.on_arrival(Arrival { number, time: at as f64, ..Arrival::default() }, &mut losses);
        }
        (record, losses)
    }

    #[test]
    fn test_a_late_packet_is_late_once_and_then_a_duplicate() {
        let (record, losses) = take_all(3, &[0, 3, 4, 5, 1, 1, 2]);
        assert_eq!(losses.len(), 1);
        assert_eq!((record.counts.late_after_declared, record.counts.duplicates), (2, 1));
    }

    #[test]
    fn test_the_bound_on_holes_declares_the_lowest_early_and_says_so() {
        let numbers: Vec<i64> = (0..3000).map(|n| 2 * n).collect();
        let (record, losses) = take_all(u32::MAX, &numbers);
        assert_eq!(record.holes.len(), MAX_HOLES);
        assert_eq!(record.counts.hurried, 2999 - MAX_HOLES as u64);
        assert_eq!(losses.first().map(|loss| loss.first), Some(1));
    }

    #[test]
    fn test_what_had_no_data_is_no_loss() {
        // 3 to 6 are missing; the packets right below 7 had no data, as it or a later one reports.
        for (ndp, missing) in [(0, vec![(3, 6)]), (2, vec![(3, 4)]), (4, vec![]), (1 << 47, vec![])] {
            for order in [[7, 8, 9], [8, 7, 9]] {
                let (mut record, mut losses) = take_all(3, &[0, 1, 2]);
                for number in order {
                    let ndp = if number == 7 { ndp } else { 0 };
                    let arrival = Arrival { number, time: number as f64, ndp, ..Arrival::default() };
                    record.on_arrival(arrival, &mut losses);
                }
                let lost: Vec<_> = losses.iter().map(|loss| (loss.first, loss.last)).collect();
                assert_eq!(lost, missing);
            }
        }
    }

    proptest! {
        #[test]
        fn test_every_number_is_received_lost_or_pending(
            numbers in proptest::collection::vec(0_i64..60, 1..80), ndupack in 1_u32..6,
        ) {
            let (record, losses) = take_all(ndupack, &numbers);
            let first = numbers[0];
            let received: BTreeSet<i64> = numbers.iter().copied().filter(|&n| n >= first).collect();
            let lost: u64 = losses.iter().map(Loss::packets).sum();
            let late = record.counts.late_after_declared;
            let span = (record.highest() - first + 1) as u64;
            prop_assert_eq!(received.len() as u64 - late + lost + record.pending(), span);
            prop_assert_eq!(lost, record.counts.lost);
        }

        #[test]
        fn test_any_arrivals_are_taken(
            arrivals in proptest::collection::vec(
                (any::<i64>(), proptest::num::f64::ANY, prop_oneof![Just(0), 0_u64..9, any::<u64>()]), 0..60,
            ),
        ) {
            let mut record = ReceiveRecord::new(3);
            let mut losses = Vec::new();
            for (number, time, ndp) in arrivals {
                record.on_arrival(Arrival { number, time, ndp, ccval: 0 }, &mut losses);
            }
            for loss in &losses {
                loss.time_of(loss.first);
            }
        }
    }
}
