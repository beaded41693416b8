//! Directions between the same hosts that stood in a queue at the same time: they shared it.
//!
//! Of two flows alike neither shows the other by its own rate, which is half of the path's and steady.

use super::cause::{Cause, Sign};
use super::explained::ExplainedDirection;
use super::ledger::Stretch;

/// Tell of directions that are all between the same hosts and ends of one capture where they shared a queue: for most
/// of a stretch another one stood in it, too.
pub fn tell_shared_queues(directions: &mut [&mut ExplainedDirection]) {
    let several = Overlaps::of(
        directions.iter().flat_map(|of| of.stretches().filter(|(_, stretch)| stretch.cause.is_of_queue())),
    );
    for of in directions {
        of.change_causes(|start_ns, stretch| {
            let lasts_ns = stretch.end_ns.saturating_sub(start_ns);
            let shared_ns = several.until(stretch.end_ns).saturating_sub(several.until(start_ns));
            if stretch.cause == Cause::Bottleneck && shared_ns.saturating_mul(2) > lasts_ns {
                (stretch.cause, stretch.sign, stretch.second) =
                    (Cause::SharedBottleneck, Sign::BesideOthers, None);
            }
        });
    }
}

/// The times in which two stretches or more were under way.
struct Overlaps {
    /// From each time on: how long it had been so before, and whether it is so.
    since: Vec<(i64, i64, bool)>,
}

impl Overlaps {
    fn of(stretches: impl Iterator<Item = (i64, Stretch)>) -> Self {
        let ends = |(start_ns, stretch): (i64, Stretch)| [(start_ns, 1_i64), (stretch.end_ns, -1)];
        let mut changes: Vec<(i64, i64)> = stretches.flat_map(ends).collect();
        changes.sort_unstable();
        let mut since = Vec::<(i64, i64, bool)>::new();
        let mut under_way = 0;
        for (time_ns, change) in changes {
            under_way += change;
            let before_ns = since.last().map_or(0, |&last| total_ns(last, time_ns));
            if since.last().is_none_or(|last| last.2 != (under_way > 1)) {
                since.push((time_ns, before_ns, under_way > 1));
            }
        }
        Self { since }
    }

    /// For how long it was so until then.
    fn until(&self, time_ns: i64) -> i64 {
        let after = self.since.partition_point(|&(since_ns, ..)| since_ns <= time_ns);
        let last = after.checked_sub(1).and_then(|last| self.since.get(last));
        last.map_or(0, |&last| total_ns(last, time_ns))
    }
}

fn total_ns((since_ns, before_ns, is_so): (i64, i64, bool), until_ns: i64) -> i64 {
    before_ns.saturating_add(if is_so { until_ns.saturating_sub(since_ns) } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch((start_ns, end_ns): (i64, i64)) -> (i64, Stretch) {
        let (cause, sign) = (Cause::Bottleneck, Sign::QueueGrows);
        let (flight, flight_error, window) = (0, None, None);
        (start_ns, Stretch { end_ns, cause, sign, second: None, flight, flight_error, window, rtt_ns: None })
    }

    #[test]
    fn test_only_times_in_which_two_are_under_way_count() {
        let overlaps = Overlaps::of([(0, 10), (20, 40), (5, 8), (30, 50), (35, 60)].map(stretch).into_iter());
        let until: Vec<i64> = [0, 5, 7, 9, 30, 45, 100].map(|time_ns| overlaps.until(time_ns)).into();
        // two from 5 to 8, and from 30 to 50
        assert_eq!(until, [0, 0, 2, 3, 3, 18, 23]);
    }

    #[test]
    fn test_times_at_the_ends_of_64_bits_are_some() {
        let overlaps = Overlaps::of([(i64::MIN, i64::MAX); 2].map(stretch).into_iter());
        assert_eq!(overlaps.until(i64::MAX), i64::MAX);
    }
}
