//! Round-trip times between the capture and the sender of data: from an acknowledgement that passes
//! the capture to the first data that echo its timestamp (RFC 7323 section 4.1).
//!
//! One is measured at a time, as in RFC 6298 section 3, so a flow needs no list. Each is weighted
//! by the data segments that passed meanwhile, so that the median is per segment, as on the other
//! side of the capture: a short-lived queue counts for the segments that crossed it, not for its
//! duration.

use serde::{Deserialize, Serialize};

use super::rto_timer::MIN_VARIATION_NS;
use crate::flow::rtt_statistics::{LogHistogram, RttRange};
use crate::packet::seq::SeqNumber;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TimestampEchoes {
    /// The newest timestamp of an acknowledgement.
    newest: Option<u32>,
    /// The acknowledgement whose echo is awaited.
    asked: Option<PendingAck>,
    rtt: RttRange,
    sketch: LogHistogram,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PendingAck {
    timestamp: u32,
    time_ns: i64,
    /// Data segments seen before it.
    segments: u32,
}

/// A measurement, which may include the application's time.
#[derive(Clone, Copy, Debug)]
pub struct EchoTiming {
    /// From an acknowledgement to the data that echo it.
    rtt_ns: u64,
    /// Data segments seen meanwhile, including these.
    segments: u32,
}

impl EchoTiming {
    /// Whether the time may include waiting for the application: nothing else passed, and a sender
    /// with data to send is not silent for so much longer than `path_ns`, because its timer expires
    /// first.
    #[inline(always)]
    pub fn waits_for_application(self, path_ns: impl FnOnce() -> i64) -> bool {
        let beyond_ns = self.rtt_ns.saturating_sub(MIN_VARIATION_NS as u64);
        beyond_ns > 0 && self.segments == 1 && beyond_ns > path_ns() as u64
    }
}

impl TimestampEchoes {
    /// Start measuring at an acknowledgement with this timestamp, after so many data segments;
    /// `is_busy` is whether the sender has data in flight, so that it responds at once without
    /// waiting for its application.
    pub fn ask(&mut self, timestamp: u32, time_ns: i64, segments: u32, is_busy: bool) {
        let is_new = self.newest.is_none_or(|newest| SeqNumber(timestamp).since(SeqNumber(newest)) > 0);
        if !is_new {
            // Another acknowledgement of the same tick may be echoed.
            return;
        }
        self.newest = Some(timestamp);
        if is_busy && self.asked.is_none() {
            self.asked = Some(PendingAck { timestamp, time_ns, segments });
        }
    }

    /// Give up the measurement that was begun.
    pub fn forget(&mut self) {
        self.asked = None;
    }

    /// Whether data that echo `timestamp` end the measurement.
    #[inline]
    pub fn is_awaited(&self, timestamp: u32) -> bool {
        self.asked.is_some_and(|asked| SeqNumber(timestamp).since(SeqNumber(asked.timestamp)) >= 0)
    }

    /// Data passed with the awaited echo: so many segments with them, and whether they were
    /// retransmitted. A retransmission gives no time: the sender may have waited for a timer.
    #[inline]
    pub fn answer(
        &mut self,
        timestamp: u32,
        time_ns: i64,
        (segments, is_resent): (u32, bool),
    ) -> Option<EchoTiming> {
        let asked = self.asked.take()?;
        // A newer echo belongs to a later acknowledgement.
        if timestamp != asked.timestamp || is_resent {
            return None;
        }
        let rtt_ns = u64::try_from(time_ns.saturating_sub(asked.time_ns)).ok()?;
        Some(EchoTiming { rtt_ns, segments: segments.saturating_sub(asked.segments).max(1) })
    }

    /// Count a time that was the sender's.
    #[inline]
    pub fn add(&mut self, answer: EchoTiming) {
        self.rtt.add(answer.rtt_ns);
        self.sketch.add_times(answer.rtt_ns, answer.segments);
    }

    /// The shortest; None without measurements.
    pub fn shortest_ns(&self) -> Option<i64> {
        i64::try_from(self.rtt.min_ns()).ok().filter(|_| self.rtt.count() > 0)
    }

    /// Median in ms; None without measurements.
    pub fn median_ms(&self) -> Option<f64> {
        self.sketch.percentile_ms(0.5, &self.rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Data that echo `timestamp` pass, after a path of 50 ms.
    fn pass(echoes: &mut TimestampEchoes, timestamp: u32, time_ns: i64, segments: u32) {
        let answer = echoes.answer(timestamp, time_ns, (segments, false));
        if let Some(answer) = answer.filter(|answer| !answer.waits_for_application(|| 50 * MS)) {
            echoes.add(answer);
        }
    }

    #[test]
    fn test_the_first_echo_of_a_timestamp_ends_its_round_trip() {
        let mut echoes = TimestampEchoes::default();
        echoes.ask(100, 0, 1, true);
        echoes.ask(103, 3 * MS, 1, true);
        assert!(!echoes.is_awaited(99));
        pass(&mut echoes, 100, 20 * MS, 3);
        pass(&mut echoes, 103, 23 * MS, 4);
        assert_eq!(echoes.median_ms(), Some(20.0));
    }

    #[test]
    fn test_the_median_is_that_of_segments() {
        let mut echoes = TimestampEchoes::default();
        let (mut now_ns, mut segments) = (0, 0);
        // More time is spent in the long ones, but fewer segments are sent.
        for (step, (rtt_ms, sent)) in [(20, 10), (20, 10), (900, 9), (20, 10)].into_iter().enumerate() {
            echoes.ask(step as u32, now_ns, segments, true);
            now_ns += rtt_ms * MS;
            segments += sent;
            pass(&mut echoes, step as u32, now_ns, segments);
        }
        assert!((19.8..20.2).contains(&echoes.median_ms().unwrap()));
        // A link of constant rate has more in flight in a longer round trip.
        for (step, (rtt_ms, sent)) in [(60, 30), (60, 30)].into_iter().enumerate() {
            echoes.ask(10 + step as u32, now_ns, segments, true);
            now_ns += rtt_ms * MS;
            segments += sent;
            pass(&mut echoes, 10 + step as u32, now_ns, segments);
        }
        assert!((59.5..60.5).contains(&echoes.median_ms().unwrap()));
    }

    #[test]
    fn test_nothing_is_timed_that_something_else_may_have_provoked() {
        let mut echoes = TimestampEchoes::default();
        echoes.ask(100, 0, 0, false);
        // The same tick, and the sender has nothing to send; its acknowledgement was lost; the
        // clock was set back.
        echoes.ask(100, 0, 0, true);
        pass(&mut echoes, 100, 20 * MS, 1);
        echoes.ask(130, 30 * MS, 1, true);
        pass(&mut echoes, 140, 50 * MS, 2);
        echoes.ask(160, 60 * MS, 2, true);
        pass(&mut echoes, 160, 10 * MS, 3);
        // A timer expired.
        echoes.ask(170, 70 * MS, 3, true);
        assert!(echoes.answer(170, 270 * MS, (4, true)).is_none());
        // The application had nothing to send.
        echoes.ask(180, 300 * MS, 4, true);
        pass(&mut echoes, 180, 551 * MS, 5);
        assert_eq!(echoes.median_ms(), None);
    }
}
