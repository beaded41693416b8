//! Datagrams by the numbers that their sender gave them: received and missing ones.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::packet::seq::distance;

/// Numbers below the highest whose arrival is remembered. A jump further than this in either
/// direction must be confirmed by the next datagram.
const WINDOW: i64 = 4096;
/// A longer gap is not a loss but another numbering.
const LONGEST_GAP: i64 = 1 << 20;
/// Largest distance between a jump and its confirmation.
const CONFIRMING: i64 = 64;
/// Later numbers after whose arrival a missing one counts as lost, not as overtaken (NDUPACK, RFC 5348 section 5.1).
const LATER_NUMBERS: usize = 3;

/// Meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NumberArrival {
    New,
    Duplicate,
    /// Far from the others: not counted unless the next datagram confirms it.
    Unconfirmed,
}

/// What numbers show so far of the packets of one direction that should have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberedArrivals {
    /// Each once.
    pub received: u64,
    pub lost: u64,
    /// Of `lost`, numbers that may still come.
    pub pending: u64,
    pub reordered: u64,
}

impl AddAssign for NumberedArrivals {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.lost += other.lost;
        self.pending += other.pending;
        self.reordered += other.reordered;
    }
}

/// The numbers of one direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sequences {
    /// Bits of the numbers before they wrap.
    bits: u32,
    run: Option<ConsecutiveRun>,
    /// The highest number before a gap of the capture.
    before_gap: Option<i64>,
    jump: Option<(i64, i64)>,
    /// Datagrams of earlier runs.
    ended: u64,
    /// Datagrams received, each once.
    pub received: u64,
    /// Repeated arrivals of datagrams.
    pub duplicates: u64,
    /// Arrivals after one with a higher number.
    pub reordered: u64,
    /// Restarts of the numbering.
    pub restarts: u64,
    /// Datagrams whose numbers were never confirmed.
    pub strange: u64,
    gaps: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ConsecutiveRun {
    first: i64,
    highest: i64,
    /// Send time of the highest.
    highest_sent_ns: i64,
    /// Bit n modulo the number of bits: whether number n was seen, within the window. As long as the
    /// numbers lie close together there are fewer bits than that.
    seen: Vec<u64>,
}

impl ConsecutiveRun {
    fn starting_at(number: i64, sent_ns: i64) -> Self {
        let mut run = Self { first: number, highest: number, highest_sent_ns: sent_ns, seen: vec![0] };
        run.mark(number);
        run
    }

    fn count(&self) -> u64 {
        self.highest.saturating_sub(self.first).unsigned_abs() + 1
    }

    /// Missing numbers that fewer than [`LATER_NUMBERS`] later ones followed.
    fn pending(&self) -> u64 {
        let lowest = self.first.max(self.highest.saturating_sub(self.remembered() - 1));
        let was_seen = |number: i64| {
            let (word, bit) = self.place(number);
            self.seen[word] & bit != 0
        };
        let (mut later, mut missing) = (0, 0);
        for number in (lowest..=self.highest).rev() {
            match was_seen(number) {
                true => later += 1,
                false => missing += 1,
            }
            if later == LATER_NUMBERS {
                break;
            }
        }
        missing
    }

    /// Numbers that have a bit.
    fn remembered(&self) -> i64 {
        64 * self.seen.len() as i64
    }

    /// The word and the bit of a number.
    fn place(&self, number: i64) -> (usize, u64) {
        // The number of bits is a power of two.
        let at = (number & (self.remembered() - 1)) as usize;
        (at / 64, 1 << (at % 64))
    }

    /// Have a bit for each number from `lowest` to `highest`, as far as the window reaches.
    fn make_room(&mut self, lowest: i64, highest: i64) {
        let span = highest.saturating_sub(lowest).saturating_add(1).min(WINDOW);
        if span <= self.remembered() {
            return;
        }
        let words = (span as usize).next_power_of_two() / 64;
        let before = std::mem::replace(self, Self { seen: vec![0; words], ..*self });
        let lowest = before.highest.saturating_sub(before.remembered().saturating_sub(1)).max(before.first);
        for number in lowest..=before.highest {
            let (word, bit) = before.place(number);
            if before.seen[word] & bit != 0 {
                self.mark(number);
            }
        }
    }

    /// Mark a number as seen; returns whether it was marked before.
    fn mark(&mut self, number: i64) -> bool {
        self.make_room(number.min(self.first), self.highest);
        let (word, bit) = self.place(number);
        let was_seen = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        was_seen
    }

    /// Make `number` the highest, and clear the numbers that leave the window.
    fn advance(&mut self, number: i64, sent_ns: i64) {
        self.make_room(self.first, number);
        if number.saturating_sub(self.highest) >= self.remembered() {
            self.seen.fill(0);
        } else {
            for entering in self.highest.saturating_add(1)..=number {
                let (word, bit) = self.place(entering);
                self.seen[word] &= !bit;
            }
        }
        (self.highest, self.highest_sent_ns) = (number, sent_ns);
        self.mark(number);
    }
}

impl Sequences {
    /// Empty; numbers of `bits` bits (1 to 64) wrap.
    pub fn new(bits: u32) -> Self {
        Self {
            bits: bits.clamp(1, u64::BITS),
            run: None,
            before_gap: None,
            jump: None,
            ended: 0,
            received: 0,
            duplicates: 0,
            reordered: 0,
            restarts: 0,
            strange: 0,
            gaps: 0,
        }
    }

    /// The capture has a gap here: numbers that it does not show were not lost.
    pub fn leave_gap(&mut self) {
        if let Some(run) = self.run.take() {
            self.ended += run.count();
            self.before_gap = Some(run.highest);
            self.gaps += 1;
        }
        self.jump = None;
    }

    /// Differs after a restart of the numbering or a gap of the capture: losses before and after it
    /// have nothing in common.
    pub fn stretch(&self) -> u64 {
        self.restarts + self.gaps
    }

    /// Datagrams sent from the first to the highest number seen.
    pub fn sent(&self) -> u64 {
        self.ended + self.run.as_ref().map_or(0, ConsecutiveRun::count)
    }

    pub fn arrivals(&self) -> NumberedArrivals {
        let &Self { received, reordered, .. } = self;
        let lost = self.sent().saturating_sub(received);
        let pending = self.run.as_ref().map_or(0, ConsecutiveRun::pending).min(lost);
        NumberedArrivals { received, lost, pending, reordered }
    }

    /// The highest number of the current run, or before a gap of the capture.
    pub fn highest(&self) -> Option<i64> {
        self.run.as_ref().map(|run| run.highest).or(self.before_gap)
    }

    /// The highest number of the current run: what follows it was seen or lost.
    pub fn highest_in_run(&self) -> Option<i64> {
        self.run.as_ref().map(|run| run.highest)
    }

    /// Process the number of a datagram that was sent at `sent_ns`.
    pub fn take(&mut self, number: u64, sent_ns: i64) -> NumberArrival {
        let Some(run) = &self.run else {
            let first = self.before_gap.map_or(number as i64, |before| self.unwrapped(number, before));
            self.run = Some(ConsecutiveRun::starting_at(first, sent_ns));
            self.received += 1;
            return NumberArrival::New;
        };
        let number = self.unwrapped(number, run.highest);
        if let Some((jump, jump_sent_ns)) = self.jump.take() {
            let further = number.saturating_sub(jump);
            if (1..=CONFIRMING).contains(&further) && sent_ns >= jump_sent_ns {
                self.accept_jump(jump, jump_sent_ns);
            } else {
                self.strange += 1;
            }
        }
        self.place(number, sent_ns)
    }

    /// The full number from its low bits.
    fn unwrapped(&self, number: u64, highest: i64) -> i64 {
        highest.saturating_add(distance(number, highest as u64, self.bits))
    }

    fn place(&mut self, number: i64, sent_ns: i64) -> NumberArrival {
        let Some(run) = &mut self.run else { return NumberArrival::Unconfirmed };
        let ahead = number.saturating_sub(run.highest);
        // A reordered datagram was sent before the one that arrived before it.
        let is_sent_later = sent_ns > run.highest_sent_ns;
        if ahead.unsigned_abs() >= WINDOW as u64 || (ahead <= 0 && is_sent_later) {
            self.jump = Some((number, sent_ns));
            return NumberArrival::Unconfirmed;
        }
        if ahead > 0 {
            run.advance(number, sent_ns);
        } else if run.mark(number) {
            self.duplicates += 1;
            return NumberArrival::Duplicate;
        } else {
            run.first = run.first.min(number);
            self.reordered += 1;
        }
        self.received += 1;
        NumberArrival::New
    }

    /// Two datagrams agree on numbers far from the others: a long gap, or a restart.
    fn accept_jump(&mut self, number: i64, sent_ns: i64) {
        self.received += 1;
        match &mut self.run {
            Some(run) if (1..=LONGEST_GAP).contains(&number.saturating_sub(run.highest)) => {
                run.advance(number, sent_ns);
            }
            run => {
                self.ended += run.as_ref().map_or(0, ConsecutiveRun::count);
                self.restarts += 1;
                *run = Some(ConsecutiveRun::starting_at(number, sent_ns));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers that arrive a millisecond apart, each sent at the time of its number.
    fn arrivals(numbers: &[u32]) -> Sequences {
        let mut sequences = Sequences::new(32);
        for &number in numbers {
            sequences.take(u64::from(number), i64::from(number) * 1_000_000);
        }
        sequences
    }

    #[test]
    fn test_gaps_duplicates_and_overtaken_datagrams() {
        let found = arrivals(&[10, 11, 11, 15, 13, 9, 13, 16]);
        assert_eq!((found.sent(), found.received), (8, 6));
        assert_eq!((found.duplicates, found.reordered, found.restarts), (2, 2, 0));
    }

    #[test]
    fn test_a_missing_number_is_lost_when_three_later_ones_came() {
        let counted = |numbers: &[u32]| {
            let found = arrivals(numbers).arrivals();
            (found.lost, found.pending)
        };
        assert_eq!(counted(&[1, 2, 4]), (1, 1));
        assert_eq!(counted(&[1, 2, 4, 5]), (1, 1));
        assert_eq!(counted(&[1, 2, 4, 5, 6]), (1, 0));
        assert_eq!(counted(&[1, 2, 4, 6, 7]), (2, 1));
        assert_eq!(counted(&[1, 2, 4, 5, 3]), (0, 0));
    }

    #[test]
    fn test_what_a_gap_of_the_capture_hides_is_not_lost() {
        let mut found = Sequences::new(16);
        for number in [65_530_u64, 65_531, 65_533] {
            found.take(number, 0);
        }
        found.leave_gap();
        found.leave_gap();
        assert_eq!(found.highest(), Some(65_533));
        for number in [400, 401, 403] {
            found.take(number, 0);
        }
        assert_eq!((found.sent(), found.received, found.stretch(), found.restarts), (8, 6, 1, 0));
        assert_eq!(found.highest(), Some(65_536 + 403));
    }

    #[test]
    fn test_numbers_of_32_bits_wrap() {
        let mut found = Sequences::new(32);
        for (at, number) in (u32::MAX - 2..=u32::MAX).chain(0..3).enumerate() {
            found.take(u64::from(number), at as i64);
        }
        assert_eq!((found.sent(), found.received, found.restarts), (6, 6, 0));
    }

    #[test]
    fn test_a_long_gap_is_a_loss_once_the_next_datagram_confirms_it() {
        let found = arrivals(&[0, 1, 10_000, 10_001]);
        assert_eq!((found.sent(), found.received, found.strange), (10_002, 4, 0));
        let found = arrivals(&[0, 1, 10_000, 2, 3]);
        assert_eq!((found.sent(), found.received, found.strange), (4, 4, 1));
    }

    #[test]
    fn test_a_second_run_of_the_same_ports_is_another_count() {
        let mut found = Sequences::new(32);
        for at in 0..200 {
            found.take(at % 100, at as i64);
        }
        assert_eq!((found.sent(), found.received), (200, 200));
        assert_eq!((found.duplicates, found.restarts), (0, 1));
    }

    proptest! {
        #[test]
        fn test_no_numbers_panic_and_no_arrival_is_lost(
            bits in 1_u32..65,
            numbers in proptest::collection::vec((any::<u64>(), any::<i64>()), 0..60),
        ) {
            let mut found = Sequences::new(bits);
            for (number, sent_ns) in &numbers {
                found.take(*number, *sent_ns);
            }
            let waiting = u64::from(found.jump.is_some());
            prop_assert_eq!(found.received + found.duplicates + found.strange + waiting, numbers.len() as u64);
        }

        #[test]
        fn test_counts_are_those_of_a_set(
            numbers in proptest::collection::vec(0_u32..3000, 1..300),
        ) {
            let found = arrivals(&numbers);
            let unique: std::collections::BTreeSet<_> = numbers.iter().copied().collect();
            prop_assert_eq!(found.received, unique.len() as u64);
            let span = unique.last().unwrap() - unique.first().unwrap() + 1;
            prop_assert_eq!(found.sent(), u64::from(span));
        }
    }
}
