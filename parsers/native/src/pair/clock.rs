//! Offset and drift of the second capture's clock against the first.
//!
//! A packet that passes the first capture at t and the second one D later is stamped t + θ(t) + D
//! there, where θ is how far the second clock is ahead. As D is never negative, the difference of
//! the stamps bounds θ from above; packets of the other direction bound it from below. With a
//! constant drift, θ is a straight line below the hull of the one differences and above that of the
//! others.
//!
//! The drift is the slope of the hull (Moon, Skelly and Towsley, INFOCOM 1999; of the lines below
//! all points the one that leaves the least area, Zhang, Liu and Xia, INFOCOM 2002). The quieter of
//! the two directions decides: where a queue is hardly ever empty, the hull follows the queue.
//!
//! The offset lies between the two hulls, at an unknown point: the middle means that the shortest
//! delay is the same in both directions. Its error is at most half the shortest round-trip time.

use super::Tap;
use super::convex_hull::{LowerHull, Point};
use super::hash_sampling::SampledPacket;
use super::routes::Routes;

/// Largest drift that a clock discipline could follow (RFC 5905 section 11.3, MAXFREQ: 500 ppm);
/// more is a growing queue.
pub const LARGEST_DRIFT: f64 = 500e-6;

/// Halvings in the search for the ends of an interval of slopes: to 1e-19.
const HALVINGS: u32 = 52;

/// A clock with a constant drift against another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    pub reference_ns: i64,
    /// How far the second clock was ahead at that time.
    pub offset_ns: i64,
    /// Gain per unit of time.
    pub drift: f64,
}

impl Clock {
    /// The time of the first clock at which the second one shows `time_ns`.
    #[inline]
    pub fn to_first(&self, time_ns: i64) -> i64 {
        let time_ns = time_ns.saturating_sub(self.offset_ns);
        let gained_ns = time_ns.saturating_sub(self.reference_ns) as f64 * (self.drift / (1.0 + self.drift));
        time_ns.saturating_sub(gained_ns.round() as i64)
    }

    /// The earliest time of the second clock at which the first one shows `time_ns` or more.
    pub fn to_second(&self, time_ns: i64) -> i64 {
        let gained_ns = time_ns.saturating_sub(self.reference_ns) as f64 * self.drift;
        let near_ns = time_ns.saturating_add(self.offset_ns).saturating_add(gained_ns.round() as i64);
        // Rounding moves it by a nanosecond at most.
        let mut around = (-2..=2).map(|step| near_ns.saturating_add(step));
        around.find(|&second_ns| self.to_first(second_ns) >= time_ns).unwrap_or(near_ns)
    }
}

/// Estimate of the second clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub clock: Clock,
    /// Its drift; None if neither direction shows it, and then 0 is assumed.
    pub drift: Option<f64>,
    /// The smallest and largest offset at the reference time with which no packet arrives before it
    /// was sent. None where no packet of that direction is in both captures.
    pub offset_bounds_ns: (Option<i64>, Option<i64>),
    /// The drifts for which such an offset exists; None if there is none, because the clock was set
    /// or adjusted in between.
    pub drift_bounds: Option<(f64, f64)>,
    pub packets: usize,
}

impl Estimate {
    /// From packets that both captures have, in the order of the first's time, at least one.
    pub fn from_packets(common: &[(SampledPacket, SampledPacket)], routes: &Routes) -> Option<Self> {
        let reference_ns = common.first()?.0.time_ns;
        let near_ns = difference_ns(common.first()?);
        let points = |tap: Tap| {
            let is_of = move |pair: &&(SampledPacket, SampledPacket)| {
                routes.ends(&pair.0.endpoints).is_some_and(|(ends, _)| ends.near == tap)
            };
            common.iter().filter(is_of).map(move |pair| Point {
                time_ns: pair.0.time_ns.saturating_sub(reference_ns),
                value_ns: difference_ns(pair).saturating_sub(near_ns),
            })
        };
        let mirrored = |point: Point| Point { value_ns: point.value_ns.saturating_neg(), ..point };
        let corridor = Corridor {
            above: Limit::of(points(Tap::FIRST).collect()),
            below: Limit::of(points(Tap::SECOND).map(mirrored).collect()),
        };
        let drift = corridor.drift();
        let slope = drift.unwrap_or(0.0);
        let offset = |height: Option<f64>| height.map(|height| near_ns.saturating_add(height.round() as i64));
        let high_ns = offset(corridor.above.hull.height(slope));
        let low_ns = offset(corridor.below.hull.height(-slope).map(|height| -height));
        let offset_ns = match (low_ns, high_ns) {
            (Some(low_ns), Some(high_ns)) => low_ns.midpoint(high_ns),
            (one, other) => one.or(other)?,
        };
        Some(Self {
            clock: Clock { reference_ns, offset_ns, drift: slope },
            drift,
            offset_bounds_ns: (low_ns, high_ns),
            drift_bounds: corridor.feasible(slope),
            packets: common.len(),
        })
    }

    /// Whether packets of both directions bound the offset. Of one direction alone only changes of
    /// the delay are known.
    pub fn has_delays(&self) -> bool {
        self.offset_bounds_ns.0.is_some() && self.offset_bounds_ns.1.is_some()
    }
}

fn difference_ns((first, second): &(SampledPacket, SampledPacket)) -> i64 {
    second.time_ns.saturating_sub(first.time_ns)
}

/// Bound from the packets of one direction: the line of the clock is not above any of these points.
struct Limit {
    points: Vec<Point>,
    hull: LowerHull,
}

impl Limit {
    fn of(points: Vec<Point>) -> Self {
        let hull = LowerHull::of(points.iter().copied());
        Self { points, hull }
    }

    /// The drift that the hull shows, if a clock can have it.
    fn drift(&self) -> Option<f64> {
        self.hull.slope().filter(|slope| slope.abs() <= LARGEST_DRIFT)
    }

    /// Median queueing delay of packets, if the clock drifts by `slope`.
    fn usual_wait_ns(&self, slope: f64) -> Option<f64> {
        let lowest = self.hull.height(slope)?;
        let wait = |point: &Point| point.value_ns as f64 - slope * point.time_ns as f64 - lowest;
        let mut waits: Vec<f64> = self.points.iter().map(wait).collect();
        let middle = waits.len() / 2;
        Some(*waits.select_nth_unstable_by(middle, f64::total_cmp).1)
    }
}

/// The space between the hulls for the line of the clock.
struct Corridor {
    above: Limit,
    /// Mirrored: the line is not below it.
    below: Limit,
}

impl Corridor {
    /// The drift that the quieter direction shows; None if neither shows one.
    fn drift(&self) -> Option<f64> {
        let slope_and_wait = |limit: &Limit| limit.drift().map(|slope| (slope, limit.usual_wait_ns(slope)));
        let (above, below) = (
            slope_and_wait(&self.above),
            slope_and_wait(&self.below).map(|(slope, wait)| (0.0 - slope, wait)),
        );
        match (above, below) {
            (Some(above), Some(below)) if above.1 <= below.1 => Some(above.0),
            (above, below) => below.or(above).map(|(slope, _)| slope),
        }
    }

    /// Width of the space for a line of `slope` between the hulls; negative if there is no such
    /// line.
    fn room(&self, slope: f64) -> f64 {
        let height = |limit: &Limit, slope| limit.hull.height(slope).unwrap_or(f64::INFINITY);
        height(&self.above, slope) + height(&self.below, -slope)
    }

    /// The range of possible slopes around `within`, which must be one.
    fn feasible(&self, within: f64) -> Option<(f64, f64)> {
        let has_room = |slope: f64| self.room(slope) >= 0.0;
        has_room(within)
            .then(|| (edge(within, -LARGEST_DRIFT, has_room), edge(within, LARGEST_DRIFT, has_room)))
    }
}

/// The value nearest to `outside` that is still `good`, from `inside`, which is: the good ones are
/// an interval.
fn edge(mut inside: f64, mut outside: f64, good: impl Fn(f64) -> bool) -> f64 {
    if good(outside) {
        return outside;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(inside, outside);
        *(if good(middle) { &mut inside } else { &mut outside }) = middle;
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::Endpoints;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    /// Packets in both directions every 10 ms, with the given delays, seen by a second clock.
    fn common(clock: &Clock, delays_ns: &[(i64, i64)]) -> Vec<(SampledPacket, SampledPacket)> {
        let on_second = |time_ns: i64| {
            let gained = (time_ns - clock.reference_ns) as f64 * clock.drift;
            time_ns + clock.offset_ns + gained.round() as i64
        };
        let mut pairs = Vec::new();
        for (at, &(there_ns, back_ns)) in delays_ns.iter().enumerate() {
            let start_ns = clock.reference_ns + at as i64 * 10 * MS;
            let packet = |src, dst, first_ns, second_ns| {
                let endpoints = Endpoints { src, dst, ..Endpoints::default() };
                let ttl = |tap| if (src < dst) == (tap == 0) { 64 } else { 63 };
                let seen = |time_ns, tap| SampledPacket {
                    time_ns,
                    endpoints,
                    ttl: ttl(tap),
                    place: 0,
                    is_ambiguous: false,
                };
                (seen(first_ns, 0), seen(on_second(second_ns), 1))
            };
            pairs.push(packet(1, 2, start_ns, start_ns + there_ns));
            pairs.push(packet(2, 1, start_ns + back_ns, start_ns));
        }
        pairs.sort_by_key(|pair| pair.0.time_ns);
        pairs
    }

    fn estimate(pairs: &[(SampledPacket, SampledPacket)]) -> Estimate {
        Estimate::from_packets(pairs, &Routes::learn(pairs, None)).unwrap()
    }

    #[test]
    fn test_a_queue_that_grows_in_one_direction_is_no_drift() {
        let clock = Clock { reference_ns: 0, offset_ns: -3_000 * MS, drift: 0.0 };
        let delays: Vec<_> = (0..500).map(|at| (20 * MS + at * 10_000, 20 * MS)).collect();
        let found = estimate(&common(&clock, &delays));
        assert!(found.drift.unwrap().abs() < 1e-9, "{found:?}");
        assert_eq!(found.clock.offset_ns, clock.offset_ns);
    }

    #[test]
    fn test_queues_that_grow_in_both_directions_show_no_drift() {
        let clock = Clock { reference_ns: 0, offset_ns: 5, drift: 0.0 };
        let delays: Vec<_> = (0..500).map(|at| (20 * MS + at * 10_000, 20 * MS + at * 9_000)).collect();
        let found = estimate(&common(&clock, &delays));
        assert_eq!((found.drift, found.clock.drift, found.clock.offset_ns), (None, 0.0, 5));
    }

    #[test]
    fn test_of_one_direction_there_is_one_bound_and_no_delay() {
        let clock = Clock { offset_ns: 7 * MS, ..Clock::default() };
        let mut pairs = common(&clock, &[(20 * MS, MS), (21 * MS, MS)]);
        pairs.retain(|pair| pair.0.endpoints.src == 1);
        let found = estimate(&pairs);
        assert_eq!(found.offset_bounds_ns, (None, Some(27 * MS)));
        assert!(!found.has_delays());
    }

    #[test]
    fn test_a_clock_that_was_set_fits_no_line() {
        let before = Clock::default();
        let after = Clock { offset_ns: 500 * MS, ..before };
        let delays = vec![(MS, MS); 100];
        let mut pairs = common(&before, &delays);
        let mut late = common(&after, &delays);
        late.iter_mut().for_each(|pair| {
            pair.0.time_ns += 1_000 * MS;
            pair.1.time_ns += 1_000 * MS;
        });
        pairs.extend(late);
        assert_eq!(estimate(&pairs).drift_bounds, None);
    }

    proptest! {
        #[test]
        fn test_offset_and_drift_of_random_delays(
            reference_ns in 0_i64..2_000_000_000_000_000_000,
            offset_ns in -5_000_000_000_000_i64..5_000_000_000_000,
            drift_ppm in -200.0_f64..200.0,
            queues in proptest::collection::vec((0_i64..40, 0_i64..40), 1_000..1_200),
        ) {
            let clock = Clock { reference_ns, offset_ns, drift: drift_ppm * 1e-6 };
            // Every few packets find an empty queue.
            let delay = |queue: i64| 10 * MS + (queue - 5).max(0) * MS;
            let delays: Vec<_> = queues.iter().map(|&(there, back)| (delay(there), delay(back))).collect();
            let pairs = common(&clock, &delays);
            let found = estimate(&pairs);
            prop_assert!((found.clock.drift - clock.drift).abs() < 1e-7, "{:?} of {:?}", found, clock);
            let (low, high) = found.drift_bounds.unwrap();
            prop_assert!(low <= clock.drift && clock.drift <= high, "{:?} of {:?}", found, clock);
            // At the same time: the reference of the estimate is the first packet.
            prop_assert!((found.clock.to_first(reference_ns + offset_ns) - reference_ns).abs() < 10_000);
            let (low_ns, high_ns) = found.offset_bounds_ns;
            prop_assert!(low_ns.unwrap() <= offset_ns && offset_ns <= high_ns.unwrap());
        }

        #[test]
        fn test_no_times_panic(times in proptest::collection::vec(any::<(i64, i64, bool)>(), 1..40)) {
            let mut pairs: Vec<_> = times.iter().map(|&(first, second, back)| {
                let (src, dst) = if back { (2, 1) } else { (1, 2) };
                let endpoints = Endpoints { src, dst, ..Endpoints::default() };
                let seen = |time_ns| SampledPacket { time_ns, endpoints, ttl: 64, place: 0, is_ambiguous: false };
                (seen(first), seen(second))
            }).collect();
            pairs.sort_by_key(|pair| pair.0.time_ns);
            let found = estimate(&pairs);
            for (first, second, _) in times {
                found.clock.to_first(first);
                found.clock.to_first(second);
            }
        }
    }
}
