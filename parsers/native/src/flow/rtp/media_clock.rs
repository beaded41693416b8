//! The media clock: its rate, and the jitter that depends on it.

use serde::{Deserialize, Serialize};

use super::super::delivery::Jitter;
use crate::packet::seq::distance;
use crate::wire::rtp::static_clock_rate;

/// Candidate rates where none is given: those of RFC 3551 and of Opus.
const USUAL_RATES: [u32; 10] =
    [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 90_000];
/// Tolerance of a measured rate, half the distance between two usual ones.
const TOLERANCE: f64 = 0.04;
/// A shorter measurement is too imprecise.
const LEAST_S: f64 = 2.0;
/// A larger change of the transit time is a new clock, as after a change of the codec: no live medium waits so long.
const LONGEST_WAIT_NS: u64 = 10_000_000_000;

named_enum! {
    /// How the clock's rate is known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RateBy {
        /// From the payload type (RFC 3551 section 6).
        PayloadType = "payload_type",
        User = "user",
        /// From two sender reports.
        Reports = "reports",
        /// From arrivals and their timestamps.
        Arrivals = "arrivals",
    }
}

/// First and latest values of two parallel clocks: media ticks, and seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct ClockSpan {
    first: Option<(i64, f64)>,
    latest: (i64, f64),
}

impl ClockSpan {
    fn on_timestamp(&mut self, ticks: i64, seconds: f64) {
        self.first.get_or_insert((ticks, seconds));
        self.latest = (ticks, seconds);
    }

    /// The usual rate nearest to this.
    fn rate(&self) -> Option<u32> {
        let (ticks, seconds) = self.first?;
        let elapsed = self.latest.1 - seconds;
        let rate = self.latest.0.saturating_sub(ticks) as f64 / elapsed;
        let is_near = |usual: &u32| (rate / f64::from(*usual) - 1.0).abs() < TOLERANCE;
        USUAL_RATES.into_iter().find(is_near).filter(|_| elapsed >= LEAST_S)
    }
}

/// The clock of one source. While its rate is unknown, jitter is computed for each candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MediaClock {
    known: Option<(u32, RateBy)>,
    payload_type: u8,
    /// The latest timestamp, unwrapped.
    ticks: Option<i64>,
    arrivals: ClockSpan,
    reports: ClockSpan,
    meters: Vec<(u32, Jitter)>,
}

impl MediaClock {
    /// A source that sends `payload_type`; `given` is the user's rate for types without a fixed
    /// one.
    pub fn new(payload_type: u8, given: Option<u32>) -> Self {
        let by_type = static_clock_rate(payload_type).map(|rate| (rate, RateBy::PayloadType));
        let known = by_type.or(given.map(|rate| (rate, RateBy::User)));
        let meter = |rate| (rate, Jitter::default());
        let meters = match known {
            Some((rate, _)) => vec![meter(rate)],
            None => USUAL_RATES.into_iter().map(meter).collect(),
        };
        Self {
            known,
            payload_type,
            ticks: None,
            arrivals: ClockSpan::default(),
            reports: ClockSpan::default(),
            meters,
        }
    }

    /// Record a packet that arrived at `time_ns`. One of another type with another clock is skipped, and beside a
    /// type with a fixed clock any without one: such as telephone events, whose timestamps are those of their
    /// beginning (RFC 4733 section 2.2.1).
    pub fn on_packet(&mut self, payload_type: u8, timestamp: u32, time_ns: i64) {
        if payload_type != self.payload_type
            && let Some((known, by)) = self.known
            && static_clock_rate(payload_type).map_or(by == RateBy::PayloadType, |rate| rate != known)
        {
            return;
        }
        let ticks = self.unwrapped(timestamp);
        self.ticks = Some(ticks);
        self.arrivals.on_timestamp(ticks, time_ns as f64 / 1e9);
        let since = ticks.saturating_sub(self.arrivals.first.map_or(ticks, |first| first.0));
        for (rate, jitter) in &mut self.meters {
            let sent_ns = nearest(since as f64 * 1e9 / f64::from(*rate));
            jitter.add_within(time_ns.saturating_sub(sent_ns), LONGEST_WAIT_NS);
        }
    }

    /// Record a sender report: the media timestamp of a time of the sender's wall clock.
    pub fn on_sender_report(&mut self, timestamp: u32, ntp: u64) {
        let seconds = ntp as f64 / 4_294_967_296.0;
        let ticks = self.unwrapped(timestamp);
        self.reports.on_timestamp(ticks, seconds);
    }

    fn unwrapped(&self, timestamp: u32) -> i64 {
        let timestamp = u64::from(timestamp);
        match self.ticks {
            Some(latest) => latest.saturating_add(distance(timestamp, latest as u64, u32::BITS)),
            None => timestamp as i64,
        }
    }

    /// Ticks per second, and how they are known; None if they are not.
    pub fn rate(&self) -> Option<(u32, RateBy)> {
        let measured = |course: &ClockSpan, by| Some((course.rate()?, by));
        self.known
            .or_else(|| measured(&self.reports, RateBy::Reports))
            .or_else(|| measured(&self.arrivals, RateBy::Arrivals))
    }

    /// Interarrival jitter at the capture (RFC 3550 appendix A.8), if the rate is known.
    pub fn jitter(&self) -> Option<Jitter> {
        let (rate, _) = self.rate()?;
        self.meters.iter().find(|(of, _)| *of == rate).map(|(_, jitter)| *jitter)
    }

    pub fn seconds(&self, ticks: u32) -> Option<f64> {
        self.rate().map(|(rate, _)| f64::from(ticks) / f64::from(rate))
    }
}

/// The integer that is nearest to a number. As `round`, which is a call into the C library, ten for each packet.
fn nearest(number: f64) -> i64 {
    let whole = number as i64;
    let rest = number - whole as f64;
    whole.saturating_add(i64::from(rest >= 0.5)).saturating_sub(i64::from(rest <= -0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    /// A clock of `rate`, packets 20 ms apart, every other one 4 ms late.
    fn clock(payload_type: u8, given: Option<u32>, rate: u32, packets: u32) -> MediaClock {
        let mut clock = MediaClock::new(payload_type, given);
        for number in 0..packets {
            let timestamp = (u32::MAX - 1000).wrapping_add(number * rate / 50);
            let late = i64::from(number % 2) * 4 * MS;
            clock.on_packet(payload_type, timestamp, i64::from(number) * 20 * MS + late);
        }
        clock
    }

    #[test]
    fn test_rates_by_type_user_reports_and_arrivals() {
        assert_eq!(clock(0, Some(48_000), 8_000, 9).rate(), Some((8_000, RateBy::PayloadType)));
        assert_eq!(clock(96, Some(1_000), 1_000, 9).rate(), Some((1_000, RateBy::User)));
        assert_eq!(clock(96, None, 48_000, 200).rate(), Some((48_000, RateBy::Arrivals)));
        assert_eq!(clock(96, None, 48_000, 90).rate(), None);
        assert_eq!(clock(96, None, 1_000, 200).rate(), None);
        let mut reported = clock(96, None, 48_000, 9);
        reported.on_sender_report(0, 1 << 32);
        reported.on_sender_report(5 * 90_000, 6 << 32);
        assert_eq!(reported.rate(), Some((90_000, RateBy::Reports)));
    }

    #[test]
    fn test_jitter_is_that_of_the_rate_which_turns_out_across_the_wrap() {
        for (payload_type, rate) in [(96, 48_000), (26, 90_000)] {
            let jitter = clock(payload_type, None, rate, 400).jitter().and_then(|jitter| jitter.ms());
            assert!((jitter.unwrap() - 4.0).abs() < 1e-6, "{jitter:?}");
        }
    }

    #[test]
    fn test_telephone_events_and_a_clock_that_begins_anew_make_no_jitter() {
        let mut clock = MediaClock::new(8, None);
        for number in 0..100_u32 {
            let time_ns = i64::from(number) * 20 * MS;
            let begin = if number < 50 { 1 << 20 } else { 0 };
            clock.on_packet(8, begin + number * 160, time_ns);
            // All events of a tone have the timestamp of its beginning.
            clock.on_packet(101, begin, time_ns + 5 * MS);
        }
        assert_eq!(clock.jitter().and_then(|jitter| jitter.ms()), Some(0.0));
    }

    proptest! {
        #[test]
        fn test_the_nearest_integer_is_that_of_the_standard_library(bits: u64, near in -1e6..1e6, half in -1000_i32..1000) {
            for number in [f64::from_bits(bits), near, f64::from(half) + 0.5] {
                prop_assert_eq!(nearest(number), number.round() as i64, "{}", number);
            }
        }

        #[test]
        fn test_no_times_panic(packets in proptest::collection::vec((any::<u8>(), any::<u32>(), any::<i64>()), 0..60)) {
            let mut clock = MediaClock::new(96, None);
            for (payload_type, timestamp, time_ns) in packets {
                clock.on_packet(payload_type & 0x7f, timestamp, time_ns);
                clock.on_sender_report(timestamp, time_ns as u64);
            }
            prop_assert!(clock.jitter().and_then(|jitter| jitter.ms()).is_none_or(f64::is_finite));
        }
    }
}
