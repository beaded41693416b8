//! Delay of reports on the reverse path, where a trace does not show them.

use std::collections::VecDeque;

/// Ways back that are remembered.
const REMEMBERED: usize = 64;
/// A report that has been away so many times longer than any before is taken to be lost.
const LOST_AFTER: f64 = 3.0;

/// The reverse delay: the given one, until packets show it.
#[derive(Clone, Debug)]
pub struct ReverseDelay {
    given: f64,
    /// The latest measured delays, seconds.
    measured: VecDeque<f64>,
    /// See [`ReverseDelay::usual`]: asked for at each packet, and changed by few.
    usual: f64,
}

impl ReverseDelay {
    /// Starts with the given delay, in seconds.
    pub fn new(given: f64) -> Self {
        Self { given, measured: VecDeque::with_capacity(REMEMBERED), usual: given }
    }

    /// A report took so long.
    pub fn record(&mut self, took: f64) {
        if self.measured.len() == REMEMBERED {
            self.measured.pop_front();
        }
        self.measured.push_back(took);
        let mut measured: Vec<f64> = self.measured.iter().copied().collect();
        measured.sort_by(f64::total_cmp);
        self.usual = measured.get(measured.len() / 2).copied().unwrap_or(self.given);
    }

    /// Delay of a report that was not measured: the median of the measured ones.
    pub fn usual(&self) -> f64 {
        self.usual
    }

    /// Whether a report that is away for so long will not come any more.
    pub fn is_too_long(&self, away: f64) -> bool {
        let longest = self.measured.iter().copied().fold(self.given, f64::max);
        !self.measured.is_empty() && away > LOST_AFTER * longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_what_packets_tell_counts_more_than_what_is_given() {
        let mut way = ReverseDelay::new(0.02);
        assert_eq!((way.usual(), way.is_too_long(100.0)), (0.02, false));
        [0.5, 0.04, 0.05].into_iter().for_each(|took| way.record(took));
        assert_eq!(way.usual(), 0.05);
        assert!(!way.is_too_long(1.4) && way.is_too_long(1.6));
        (0..100).for_each(|_| way.record(0.01));
        assert!(way.usual() == 0.01 && way.measured.len() == REMEMBERED && way.is_too_long(0.1));
    }
}
