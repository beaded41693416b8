//! Statistics of round-trip times: exact sums, and percentiles of bounded error.

use serde::{Deserialize, Serialize};

named_enum! {
    /// How a round-trip time was measured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RttMethod {
        /// Data and its acknowledgement, by Karn's rule.
        Ack = "ack",
        /// Data sent once and the first SACK block with its end.
        Sack = "sack",
        /// Timestamp and its echo.
        Timestamp = "timestamp",
        /// A value echoed by a receiver's report, less the time it was held.
        Report = "report",
        /// Edges of QUIC's spin bit (RFC 9000 section 17.4).
        SpinBit = "spin",
    }
}

/// A measured round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    pub ns: u64,
    pub method: RttMethod,
}

impl RoundTrip {
    pub fn new(ns: u64, method: RttMethod) -> Self {
        Self { ns, method }
    }
}

/// Buckets in each power of two.
const PER_OCTAVE_BITS: u32 = 6;
const PER_OCTAVE: u64 = 1 << PER_OCTAVE_BITS;

/// Number, range and mean of round-trip times, in nanoseconds. All sums are integers, so the result
/// depends neither on order nor on the distribution of samples over threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RttRange {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    /// 584 years of round trips fit.
    sum_ns: u64,
}

impl Default for RttRange {
    fn default() -> Self {
        Self { count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }
}

impl RttRange {
    #[inline(always)]
    pub fn add(&mut self, rtt_ns: u64) {
        self.count += 1;
        // Not `min` and `max`, which store an unchanged value too.
        if rtt_ns < self.min_ns {
            self.min_ns = rtt_ns;
        }
        if rtt_ns > self.max_ns {
            self.max_ns = rtt_ns;
        }
        self.sum_ns = self.sum_ns.saturating_add(rtt_ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Smallest sample in ns; `u64::MAX` without samples.
    #[inline(always)]
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// Largest sample in ns; None without samples.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Smallest sample in ms; None without samples, as all below.
    pub fn min_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| ms(self.min_ns as f64))
    }

    pub fn max_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| ms(self.max_ns as f64))
    }

    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| ms(self.sum_ns as f64 / self.count as f64))
    }
}

/// The same with the standard deviation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RttStatistics {
    pub range: RttRange,
    /// 128 bits, the lower half first: a `u128` would be aligned to 16 bytes.
    sum_of_squares: [u64; 2],
}

impl RttStatistics {
    #[inline(always)]
    pub fn add(&mut self, rtt_ns: u64) {
        self.range.add(rtt_ns);
        let square = u128::from(rtt_ns) * u128::from(rtt_ns);
        let sum = self.sum_of_squares().saturating_add(square);
        self.sum_of_squares = [sum as u64, (sum >> 64) as u64];
    }

    #[inline(always)]
    fn sum_of_squares(&self) -> u128 {
        let [low, high] = self.sum_of_squares;
        u128::from(high) << 64 | u128::from(low)
    }

    /// Population standard deviation in ms; None without samples.
    pub fn std_ms(&self) -> Option<f64> {
        if self.range.count == 0 {
            return None;
        }
        let (n, sum) = (u128::from(self.range.count), u128::from(self.range.sum_ns));
        // n * sum(x^2) - sum(x)^2 in integers: no cancellation. Out of range only for samples of
        // hours, where floats do.
        let exact = n
            .checked_mul(self.sum_of_squares())
            .zip(sum.checked_mul(sum))
            .and_then(|(squares, square)| squares.checked_sub(square));
        let n = n as f64;
        let variance = match exact {
            Some(difference) => difference as f64 / n / n,
            None => {
                let mean = sum as f64 / n;
                (self.sum_of_squares() as f64 / n - mean * mean).max(0.0)
            }
        };
        Some(ms(variance.sqrt()))
    }

    /// Sample standard deviation (n - 1) in ms; None with fewer than two.
    pub fn sample_std_ms(&self) -> Option<f64> {
        let n = self.range.count as f64;
        self.std_ms().filter(|_| self.range.count > 1).map(|std_ms| std_ms * (n / (n - 1.0)).sqrt())
    }
}

/// A histogram whose buckets grow with the value: 64 in each power of two, so that a percentile
/// read from it is within 1/128 (0.8 %) of its sample. Two histograms merge by adding their counts.
///
/// Only buckets in use take memory, and their number is bounded by the 58 * 64 that exist for
/// 64-bit values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogHistogram {
    /// Bucket and count of the last samples: consecutive ones are alike. Kept apart, so that most
    /// samples, and directions with few of them, need no allocation.
    last: (u16, u32),
    /// (bucket, count) of earlier samples, in order of bucket.
    buckets: Vec<(u16, u32)>,
}

/// Samples that share a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value of the bucket.
    pub from: u64,
    pub to: u64,
    pub count: u32,
}

impl LogHistogram {
    pub fn is_empty(&self) -> bool {
        self.last.1 == 0 && self.buckets.is_empty()
    }

    /// The samples that came after the state `before`.
    pub fn since(&self, before: &Self) -> Self {
        let (mut all, mut earlier) = (self.clone(), before.clone());
        all.put_away();
        earlier.put_away();
        for (bucket, count) in earlier.buckets {
            if let Ok(at) = all.place_of(bucket) {
                all.buckets[at].1 = all.buckets[at].1.saturating_sub(count);
            }
        }
        all.buckets.retain(|entry| entry.1 > 0);
        all
    }

    /// Add the samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for &(bucket, count) in other.buckets.iter().chain([&other.last]).filter(|entry| entry.1 > 0) {
            self.put(bucket, count);
        }
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().chain([&self.last]).map(|entry| u64::from(entry.1)).sum()
    }

    /// Buckets with samples, in order.
    pub fn buckets(&self) -> Vec<Bucket> {
        let mut whole = self.clone();
        whole.put_away();
        let bounds = |&(bucket, count): &(u16, u32)| {
            let (from, width) = bounds_of(bucket);
            Bucket { from, to: from.saturating_add(width - 1), count }
        };
        whole.buckets.iter().map(bounds).collect()
    }

    #[inline(always)]
    pub fn add(&mut self, value: u64) {
        self.add_times(value, 1);
    }

    /// Add a sample with a weight.
    #[inline(always)]
    pub fn add_times(&mut self, value: u64, times: u32) {
        let bucket = bucket_of(value);
        if self.last.0 != bucket {
            self.put_away();
            self.last = (bucket, 0);
        }
        self.last.1 = self.last.1.saturating_add(times);
    }

    /// Add `last` to the others.
    #[inline(never)]
    fn put_away(&mut self) {
        let (bucket, count) = self.last;
        self.last.1 = 0;
        if count > 0 {
            self.put(bucket, count);
        }
    }

    fn put(&mut self, bucket: u16, count: u32) {
        match self.place_of(bucket) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(count),
            Err(at) => {
                if self.buckets.len() == self.buckets.capacity() {
                    // Most flows need a few, and a vector doubles.
                    self.buckets.reserve_exact(self.buckets.len().max(6) / 2);
                }
                self.buckets.insert(at, (bucket, count));
            }
        }
    }

    /// Index of a bucket, or where to insert it.
    fn place_of(&self, bucket: u16) -> Result<usize, usize> {
        // With many samples hardly a bucket is empty between the first and the last.
        let first = self.buckets.first().map_or(0, |entry| entry.0);
        let guess = usize::from(bucket.wrapping_sub(first));
        match self.buckets.get(guess) {
            Some(entry) if entry.0 == bucket => Ok(guess),
            _ => self.buckets.binary_search_by_key(&bucket, |entry| entry.0),
        }
    }

    /// Sample of nearest rank `ceil(share * n)` to within 0.8 %; None without samples.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.count() as f64).ceil() as u64).max(1);
        let place = self.buckets.partition_point(|entry| entry.0 < self.last.0);
        let (below, above) = self.buckets.split_at_checked(place)?;
        let mut seen = 0;
        for &(bucket, n) in below.iter().chain([&self.last]).chain(above) {
            seen += u64::from(n);
            if seen >= rank {
                return Some(middle_of(bucket));
            }
        }
        None
    }

    /// The same in ms, of samples with this range.
    pub fn percentile_ms(&self, share: f64, range: &RttRange) -> Option<f64> {
        let found = ms(self.percentile(share)? as f64);
        // The middle of a bucket may lie outside the measured range; the ends are exact.
        Some(found.clamp(range.min_ms()?, range.max_ms()?))
    }
}

/// Values below 64 have a bucket each; above, the bucket is the exponent and the six bits after the
/// leading one.
#[inline(always)]
fn bucket_of(value: u64) -> u16 {
    if value < PER_OCTAVE {
        return value as u16;
    }
    let shift = value.ilog2() - PER_OCTAVE_BITS;
    let mantissa = (value >> shift) & (PER_OCTAVE - 1);
    ((u64::from(shift) + 1) * PER_OCTAVE + mantissa) as u16
}

fn middle_of(bucket: u16) -> u64 {
    let (low, width) = bounds_of(bucket);
    low + (width >> 1)
}

/// Smallest value of a bucket, and the number of its values.
fn bounds_of(bucket: u16) -> (u64, u64) {
    let bucket = u64::from(bucket);
    if bucket < PER_OCTAVE {
        return (bucket, 1);
    }
    let shift = bucket / PER_OCTAVE - 1;
    ((PER_OCTAVE + bucket % PER_OCTAVE) << shift, 1 << shift)
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_statistics_of_four_known_samples() {
        let mut statistics = RttStatistics::default();
        for sample in [2_000_000, 2_000_000, 6_000_000, 6_000_000] {
            statistics.add(sample);
        }
        assert_eq!(statistics.range.mean_ms(), Some(4.0));
        assert_eq!(statistics.std_ms(), Some(2.0));
        assert_eq!((statistics.range.min_ms(), statistics.range.max_ms()), (Some(2.0), Some(6.0)));
    }

    #[test]
    fn test_no_samples_give_no_statistics() {
        assert_eq!(RttStatistics::default().range.mean_ms(), None);
        assert_eq!(LogHistogram::default().percentile(0.5), None);
    }

    proptest! {
        #[test]
        fn test_a_percentile_is_within_its_error(
            mut values in proptest::collection::vec(1_u64..10_000_000_000_000, 1..300),
            share in 0.01_f64..1.0,
        ) {
            let mut sketch = LogHistogram::default();
            values.iter().for_each(|&value| sketch.add(value));
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            let found = sketch.percentile(share).unwrap() as f64;
            prop_assert!((found - exact).abs() <= exact / 128.0, "{} for {}", found, exact);
        }

        /// Merging the bucket counts of two parts gives the whole.
        #[test]
        fn test_buckets_of_parts_add_up_to_those_of_the_whole(
            values in proptest::collection::vec(any::<u64>(), 0..200), cut in 0_usize..200,
        ) {
            let of = |values: &[u64]| {
                let mut sketch = LogHistogram::default();
                values.iter().for_each(|&value| sketch.add(value));
                sketch.buckets()
            };
            let (one, other) = values.split_at(cut.min(values.len()));
            let mut sum = std::collections::BTreeMap::new();
            for Bucket { from, to, count } in of(one).into_iter().chain(of(other)) {
                *sum.entry((from, to)).or_insert(0) += count;
            }
            let sum: Vec<_> = sum.into_iter().map(|((from, to), count)| Bucket { from, to, count }).collect();
            prop_assert_eq!(&sum, &of(&values));
            for value in values {
                prop_assert!(sum.iter().any(|bucket| (bucket.from..=bucket.to).contains(&value)));
            }
        }

        #[test]
        fn test_statistics_do_not_depend_on_order(
            mut values in proptest::collection::vec(0_u64..1_000_000_000_000, 1..100),
        ) {
            let of = |values: &[u64]| {
                let mut statistics = RttStatistics::default();
                values.iter().for_each(|&value| statistics.add(value));
                (statistics.range.mean_ms(), statistics.std_ms())
            };
            let forward = of(&values);
            values.reverse();
            prop_assert_eq!(forward, of(&values));
        }
    }
}
