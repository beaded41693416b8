//! Losses that follow each other: how many stretches of missing numbers there are, and how long the longest is.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Gaps that late packets may still fill.
const MOST_OPEN: usize = 32;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Gap {
    /// The first number after it.
    end: i64,
    length: u64,
    missing: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LossBursts {
    open: VecDeque<Gap>,
    closed: u64,
    longest_closed: u64,
}

impl LossBursts {
    /// Record that `number` follows `highest`, and that the numbers between them are missing.
    pub fn on_gap(&mut self, highest: i64, number: i64) {
        let length = number.saturating_sub(highest).saturating_sub(1).max(0).unsigned_abs();
        if length == 0 {
            return;
        }
        if self.open.len() == MOST_OPEN
            && let Some(oldest) = self.open.pop_front()
        {
            self.closed += u64::from(oldest.missing > 0);
            self.longest_closed = self.longest_closed.max(oldest.missing);
        }
        self.open.push_back(Gap { end: number, length, missing: length });
    }

    /// Record that a missing number came late.
    pub fn on_late(&mut self, number: i64) {
        let holds = |gap: &&mut Gap| (1..=gap.length as i64).contains(&gap.end.saturating_sub(number));
        if let Some(gap) = self.open.iter_mut().rev().find(holds) {
            gap.missing = gap.missing.saturating_sub(1);
        }
    }

    /// Gaps of which a packet never came.
    pub fn count(&self) -> u64 {
        self.closed + self.open.iter().filter(|gap| gap.missing > 0).count() as u64
    }

    /// The most packets of a gap that never came; None without any.
    pub fn longest(&self) -> Option<u64> {
        let open = self.open.iter().map(|gap| gap.missing).max().unwrap_or(0);
        Some(self.longest_closed.max(open)).filter(|&longest| longest > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_what_comes_late_is_no_loss() {
        let mut bursts = LossBursts::default();
        assert_eq!((bursts.count(), bursts.longest()), (0, None));
        for (highest, number) in [(1, 2), (2, 4), (4, 8), (8, 10)] {
            bursts.on_gap(highest, number);
        }
        for late in [3, 6, 4, 100] {
            bursts.on_late(late);
        }
        // 5 and 7; 9
        assert_eq!((bursts.count(), bursts.longest()), (2, Some(2)));
        for number in 0..1_000 {
            bursts.on_gap(10 + 2 * number, 12 + 2 * number);
        }
        assert_eq!((bursts.count(), bursts.longest(), bursts.open.len()), (1_002, Some(2), MOST_OPEN));
    }
}
