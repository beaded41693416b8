//! Round-trip times of one direction.
//!
//! Half of all directions only acknowledge, so only their SYN and FIN are acknowledged. Therefore
//! the first samples are kept unchanged, and statistics begin when there are more.

pub(crate) mod path_times;
pub(crate) mod rto_timer;
pub(crate) mod timestamp_echoes;

use std::borrow::Cow;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use self::rto_timer::RtoTimer;
use crate::flow::rtt_statistics::{LogHistogram, RttRange, RttStatistics};

/// Statistics of the samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RttTotals {
    pub all: RttStatistics,
    pub sketch: LogHistogram,
    /// Samples that [`RoundTrips::drain`] took out of `sketch`.
    drained: Option<Box<LogHistogram>>,
    pub by_echo: RttRange,
    /// The retransmission timer computed from the samples.
    timer: RtoTimer,
}

impl RttTotals {
    #[inline(always)]
    fn add(&mut self, rtt_ns: u64) {
        self.timer.note(rtt_ns);
        self.all.add(rtt_ns);
        self.sketch.add(rtt_ns);
    }
}

/// A sample below four seconds, plus one.
type ShortRtt = NonZeroU32;

/// All samples of one kind, while there are at most two.
type FirstSamples = [Option<ShortRtt>; 2];

/// Samples, or their statistics.
#[derive(Debug, Serialize, Deserialize)]
pub enum RoundTrips {
    /// By the best method, and from all timestamp echoes.
    Few(FirstSamples, FirstSamples),
    /// More of one kind, or longer ones.
    Many(Box<RttTotals>),
}

impl Default for RoundTrips {
    fn default() -> Self {
        Self::Few(FirstSamples::default(), FirstSamples::default())
    }
}

impl RoundTrips {
    /// Add the sample of an acknowledgement by the best method.
    #[inline(always)]
    pub fn add(&mut self, rtt_ns: u64) {
        match self {
            Self::Many(measured) => measured.add(rtt_ns),
            Self::Few(by_ack, _) => {
                if !keep(by_ack, rtt_ns) {
                    self.measure(|measured| measured.add(rtt_ns));
                }
            }
        }
    }

    /// Add a sample from a timestamp echo.
    #[inline(always)]
    pub fn add_echo(&mut self, rtt_ns: u64) {
        match self {
            Self::Many(measured) => measured.by_echo.add(rtt_ns),
            Self::Few(_, by_echo) => {
                if !keep(by_echo, rtt_ns) {
                    self.measure(|measured| measured.by_echo.add(rtt_ns));
                }
            }
        }
    }

    /// Statistics of all samples.
    pub fn measured(&self) -> Cow<'_, RttTotals> {
        match self {
            Self::Many(measured) => match &measured.drained {
                None => Cow::Borrowed(measured),
                Some(drained) => {
                    let mut whole = RttTotals { drained: None, ..(**measured).clone() };
                    whole.sketch.merge(drained);
                    Cow::Owned(whole)
                }
            },
            Self::Few(by_ack, by_echo) => {
                let mut measured = RttTotals::default();
                samples(by_ack).for_each(|rtt_ns| measured.add(rtt_ns));
                samples(by_echo).for_each(|rtt_ns| measured.by_echo.add(rtt_ns));
                Cow::Owned(measured)
            }
        }
    }

    /// The retransmission timer of the sender.
    pub fn timer(&self) -> RtoTimer {
        match self {
            Self::Many(measured) => measured.timer,
            Self::Few(by_ack, _) => {
                let mut timer = RtoTimer::default();
                samples(by_ack).for_each(|rtt_ns| timer.note(rtt_ns));
                timer
            }
        }
    }

    /// Samples since the last call, without further echoes.
    pub fn drain(&mut self) -> LogHistogram {
        if let Self::Few(by_ack, _) = self {
            if samples(by_ack).next().is_none() {
                return LogHistogram::default();
            }
            self.measure(|_| {});
        }
        let Self::Many(measured) = self else { return LogHistogram::default() };
        let taken = std::mem::take(&mut measured.sketch);
        if !taken.is_empty() {
            measured.drained.get_or_insert_default().merge(&taken);
        }
        taken
    }

    /// The same without a change: for the last time.
    pub fn undrained(&self) -> LogHistogram {
        match self {
            Self::Many(measured) => measured.sketch.clone(),
            Self::Few(by_ack, _) => {
                let mut found = LogHistogram::default();
                samples(by_ack).for_each(|rtt_ns| found.add(rtt_ns));
                found
            }
        }
    }

    /// Sum of the samples, without further echoes.
    pub fn sum_ns(&self) -> u64 {
        match self {
            Self::Many(measured) => measured.all.range.sum_ns(),
            Self::Few(by_ack, _) => samples(by_ack).sum(),
        }
    }

    /// Number of them.
    pub fn count(&self) -> u64 {
        match self {
            Self::Many(measured) => measured.all.range.count(),
            Self::Few(by_ack, _) => samples(by_ack).count() as u64,
        }
    }

    /// The smallest of them; `u64::MAX` without samples.
    #[inline(always)]
    pub fn min_ns(&self) -> u64 {
        match self {
            Self::Many(measured) => measured.all.range.min_ns(),
            Self::Few(by_ack, _) => samples(by_ack).min().unwrap_or(u64::MAX),
        }
    }

    /// Switch to statistics of the samples so far, and add one more with `add`.
    #[cold]
    fn measure(&mut self, add: impl FnOnce(&mut RttTotals)) {
        let mut measured = self.measured().into_owned();
        add(&mut measured);
        *self = Self::Many(Box::new(measured));
    }
}

/// Add a sample to the first ones, if there is space and it is short.
#[inline(never)]
fn keep(few: &mut FirstSamples, rtt_ns: u64) -> bool {
    let short = u32::try_from(rtt_ns).ok().and_then(|rtt_ns| rtt_ns.checked_add(1)).and_then(ShortRtt::new);
    match few.iter_mut().find(|place| place.is_none()) {
        Some(place) if short.is_some() => {
            *place = short;
            true
        }
        _ => false,
    }
}

fn samples(few: &FirstSamples) -> impl Iterator<Item = u64> {
    few.iter().flatten().map(|short| u64::from(short.get()) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_a_direction_that_only_acknowledges_takes_little_room() {
        assert_eq!(size_of::<RoundTrips>(), 24);
        let mut trips = RoundTrips::default();
        for rtt_ns in [0, u64::from(u32::MAX) - 1] {
            trips.add(rtt_ns);
            trips.add_echo(rtt_ns);
        }
        assert!(matches!(trips, RoundTrips::Few(..)));
        trips.add_echo(1);
        assert!(matches!(trips, RoundTrips::Many(_)));
    }

    proptest! {
        /// Compare with statistics from the first sample on.
        #[test]
        fn test_samples_come_to_the_same_however_they_are_kept(
            samples in proptest::collection::vec(
                (any::<bool>(), prop_oneof![0..100_000_u64, u64::from(u32::MAX) - 2..1 << 33]), 0..8),
        ) {
            let mut trips = RoundTrips::default();
            let mut expected = RttTotals::default();
            for (is_ack, rtt_ns) in samples {
                if is_ack {
                    trips.add(rtt_ns);
                    expected.add(rtt_ns);
                } else {
                    trips.add_echo(rtt_ns);
                    expected.by_echo.add(rtt_ns);
                }
                prop_assert_eq!(format!("{:?}", trips.measured()), format!("{expected:?}"));
                prop_assert_eq!(trips.count(), expected.all.range.count());
                prop_assert_eq!(trips.min_ns(), expected.all.range.min_ns());
                prop_assert_eq!(format!("{:?}", trips.timer()), format!("{:?}", expected.timer));
            }
        }
    }
}
