//! The return path of reports whose arrival a trace does not show.

use std::collections::VecDeque;

/// Number of measured delays kept.
const REMEMBERED: usize = 64;
/// A report that is under way for this many times the longest delay counts as lost.
const LOST_AFTER: f64 = 3.0;
/// The same before any delay was measured, in seconds, unless `least` is longer.
const FIRST_DELAY: f64 = 1.0;

/// A report of the trace's own receiver. Times are seconds.
#[derive(Clone, Copy, Debug)]
pub struct ObservedReport {
    pub made: f64,
    /// Its delay; None if it was lost.
    pub took: Option<f64>,
}

/// Fate of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Passage {
    /// The trace shows a report that was sent at about the same time and took so long.
    Takes(f64),
    /// That report was lost.
    Lost,
    /// The trace shows none.
    Unknown,
}

/// Delay on the return path: that of the trace's own reports, else that which packets of the sender reveal,
/// else `least`.
#[derive(Clone, Debug)]
pub struct ReverseDelay {
    least: f64,
    /// In order of the time at which they were made.
    observed: Vec<ObservedReport>,
    /// The latest measured delays, seconds.
    measured: VecDeque<f64>,
    /// Kept because each packet asks for it and few change it, see [`ReverseDelay::usual`].
    usual: f64,
}

impl ReverseDelay {
    pub fn new(least: f64, observed: Vec<ObservedReport>) -> Self {
        Self { least, observed, measured: VecDeque::with_capacity(REMEMBERED), usual: least }
    }

    /// The passage of a report made at `made`: that of the observed one made nearest to it.
    pub fn passage(&self, made: f64) -> Passage {
        let at = self.observed.partition_point(|report| report.made < made);
        let before = at.checked_sub(1).and_then(|at| self.observed.get(at));
        let nearest = match (before, self.observed.get(at)) {
            (Some(before), Some(after)) if made - before.made <= after.made - made => before,
            (_, Some(after)) => after,
            (Some(before), None) => before,
            (None, None) => return Passage::Unknown,
        };
        nearest.took.map_or(Passage::Lost, Passage::Takes)
    }

    /// Record the delay of a report.
    pub fn record(&mut self, took: f64) {
        if self.measured.len() == REMEMBERED {
            self.measured.pop_front();
        }
        self.measured.push_back(took);
        let mut measured: Vec<f64> = self.measured.iter().copied().collect();
        measured.sort_by(f64::total_cmp);
        self.usual = measured.get(measured.len() / 2).copied().unwrap_or(self.least);
    }

    /// The delay of a report that was not measured: the median of the measured ones.
    pub fn usual(&self) -> f64 {
        self.usual
    }

    /// Whether a report that is under way for so long is lost.
    pub fn is_too_long(&self, away: f64) -> bool {
        let shortest = if self.measured.is_empty() { FIRST_DELAY } else { 0.0 };
        let longest = self.measured.iter().copied().fold(self.least.max(shortest), f64::max);
        away > LOST_AFTER * longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_measured_delays_replace_the_least_one() {
        let mut way = ReverseDelay::new(0.02, Vec::new());
        assert_eq!((way.usual(), way.passage(1.0)), (0.02, Passage::Unknown));
        assert!(!way.is_too_long(2.9) && way.is_too_long(3.1));
        [0.5, 0.04, 0.05].into_iter().for_each(|took| way.record(took));
        assert_eq!(way.usual(), 0.05);
        assert!(!way.is_too_long(1.4) && way.is_too_long(1.6));
        (0..100).for_each(|_| way.record(0.01));
        assert!(way.usual() == 0.01 && way.measured.len() == REMEMBERED && way.is_too_long(0.1));
    }

    #[test]
    fn test_a_report_passes_as_the_observed_one_nearest_to_it() {
        let observed = [(1.0, Some(0.1)), (2.0, None), (3.0, Some(0.3))];
        let observed = observed.map(|(made, took)| ObservedReport { made, took });
        let way = ReverseDelay::new(0.02, observed.into());
        let passages = [0.0, 1.5, 1.6, 2.6, 9.0].map(|made| way.passage(made));
        let (first, last) = (Passage::Takes(0.1), Passage::Takes(0.3));
        assert_eq!(passages, [first, first, Passage::Lost, last, last]);
    }
}
