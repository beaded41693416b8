//! What the capture shows of a source in each second: losses, late packets, jitter.

use serde::{Deserialize, Serialize};

const FIRST_WIDTH_NS: i64 = 1_000_000_000;
/// Limit of intervals, in 4 KiB; their width doubles when there are more.
const MOST: usize = 256;
/// Intervals of a source with few packets, and packets for each further one: silence between few packets must not take
/// more memory than the packets.
const MOST_OF_FEW: u64 = 8;
const PACKETS_OF_ONE_MORE: u64 = 8;

/// A source's counts from its beginning on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaTotals {
    /// From the first number to the highest.
    pub sent: u64,
    pub received: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediaInterval {
    sent: u32,
    pub received: u32,
    pub reordered: u32,
    /// Jitter at its last packet, 0 if not known.
    jitter_us: u32,
}

impl MediaInterval {
    /// Packets expected less packets received (RFC 3550 appendix A.3): negative if more of an earlier interval came
    /// late than were lost in this one.
    pub fn lost(&self) -> i64 {
        i64::from(self.sent) - i64::from(self.received)
    }

    pub fn jitter_ms(&self) -> Option<f64> {
        (self.jitter_us > 0).then(|| f64::from(self.jitter_us) / 1e3)
    }

    fn add(&mut self, later: &Self) {
        self.sent = self.sent.saturating_add(later.sent);
        self.received = self.received.saturating_add(later.received);
        self.reordered = self.reordered.saturating_add(later.reordered);
        if later.jitter_us > 0 {
            self.jitter_us = later.jitter_us;
        }
    }
}

/// Intervals from the first packet on.
#[derive(Debug, Serialize, Deserialize)]
pub struct MediaIntervals {
    width_ns: i64,
    intervals: Vec<MediaInterval>,
    before: MediaTotals,
}

impl Default for MediaIntervals {
    fn default() -> Self {
        Self { width_ns: FIRST_WIDTH_NS, intervals: Vec::new(), before: MediaTotals::default() }
    }
}

impl MediaIntervals {
    pub fn width_ns(&self) -> i64 {
        self.width_ns
    }

    pub fn all(&self) -> &[MediaInterval] {
        &self.intervals
    }

    /// Record the counts after a packet `since_ns` after the first one, and the jitter then.
    pub fn record(&mut self, since_ns: i64, totals: MediaTotals, jitter_ms: Option<f64>) {
        let most = (MOST_OF_FEW + totals.received / PACKETS_OF_ONE_MORE).min(MOST as u64);
        while since_ns / self.width_ns >= most as i64 {
            self.double_width();
        }
        let at = (since_ns / self.width_ns).max(0) as usize;
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, MediaInterval::default());
        }
        let step = |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
        let before = std::mem::replace(&mut self.before, totals);
        let news = MediaInterval {
            sent: step(totals.sent, before.sent),
            received: step(totals.received, before.received),
            reordered: step(totals.reordered, before.reordered),
            jitter_us: jitter_ms.map_or(0, |ms| (ms * 1e3).round().max(1.0) as u32),
        };
        if let Some(interval) = self.intervals.get_mut(at) {
            interval.add(&news);
        }
    }

    fn double_width(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let wider = self.intervals.chunks(2).map(|pair| {
            let mut sum = MediaInterval::default();
            pair.iter().for_each(|interval| sum.add(interval));
            sum
        });
        self.intervals = wider.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn test_each_second_has_its_losses_and_its_last_jitter() {
        let mut intervals = MediaIntervals::default();
        let totals = |sent, received, reordered| MediaTotals { sent, received, reordered };
        intervals.record(0, totals(1, 1, 0), None);
        intervals.record(S / 2, totals(4, 2, 0), Some(2.0));
        intervals.record(2 * S, totals(5, 3, 0), Some(3.0));
        intervals.record(3 * S - 1, totals(5, 4, 1), Some(4.0));
        let of = |interval: &MediaInterval| (interval.lost(), interval.reordered, interval.jitter_ms());
        let found: Vec<_> = intervals.all().iter().map(of).collect();
        assert_eq!(found, [(2, 0, Some(2.0)), (0, 0, None), (-1, 1, Some(4.0))]);
    }

    #[test]
    fn test_silence_between_few_packets_takes_little() {
        let mut intervals = MediaIntervals::default();
        for (packet, second) in (1..).zip([0, 200, 10_000]) {
            intervals.record(second * S, MediaTotals { sent: packet, received: packet, reordered: 0 }, None);
        }
        assert!(intervals.all().len() <= MOST_OF_FEW as usize);
        let received: u32 = intervals.all().iter().map(|interval| interval.received).sum();
        assert_eq!(received, 3);
    }

    proptest! {
        #[test]
        fn test_intervals_are_bounded_and_lose_no_packet(
            steps in proptest::collection::vec((-S..i64::MAX / 400, 0_u64..3), 1..400)
        ) {
            let (mut intervals, mut since_ns, mut totals) = (MediaIntervals::default(), 0_i64, MediaTotals::default());
            for (step, sent) in steps {
                since_ns = since_ns.saturating_add(step);
                totals = MediaTotals { sent: totals.sent + sent, received: totals.received + 1, reordered: 0 };
                intervals.record(since_ns, totals, None);
            }
            prop_assert!(intervals.all().len() <= MOST);
            let received: u64 = intervals.all().iter().map(|interval| u64::from(interval.received)).sum();
            let lost: i64 = intervals.all().iter().map(MediaInterval::lost).sum();
            prop_assert_eq!((received, lost), (totals.received, totals.sent as i64 - totals.received as i64));
        }
    }
}
