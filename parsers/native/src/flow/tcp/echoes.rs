//! The half of the path between the capture and the sender of data: from an acknowledgement that passes the
//! capture to the first data that echo its timestamp (RFC 7323 section 4.1).
//!
//! One is timed after the other, as RFC 6298 section 3 has it, so that a flow needs no list of them. Each counts
//! for the data segments that passed meanwhile, so that the median is that of segments, as it is of the other
//! half: a queue that stood for a moment counts for what went through it, not for how long that took.

use super::half::Half;
use super::timer::MIN_VARIATION_NS;
use crate::flow::rtt::{RttRange, Sketch};
use crate::seq::SeqNumber;

/// See the module.
#[derive(Debug, Default)]
pub struct Echoes {
    /// The newest timestamp of an acknowledgement.
    newest: Option<u32>,
    /// The acknowledgement whose echo is awaited.
    asked: Option<Asked>,
    rtt: RttRange,
    sketch: Sketch,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Asked {
    timestamp: u32,
    /// When it passed.
    time_ns: i64,
    /// Data segments that had passed before.
    segments: u32,
}

/// Data with a timestamp option, where they are the newest.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// The timestamp that they echo.
    pub timestamp: u32,
    /// When they passed.
    pub time_ns: i64,
    /// Data segments that have passed, with them.
    pub segments: u32,
    /// Whether they were sent again. Then nobody knows what the sender waited for: it may have been a timer.
    pub is_resent: bool,
    /// A sender with something to send is not silent for as long as this: its timer runs out before.
    pub longest_silence_ns: i64,
}

impl Echoes {
    /// An acknowledgement with this timestamp passed after so many data segments; whether the sender has data on
    /// their way, so that it answers at once and does not wait for its application.
    pub fn ask(&mut self, timestamp: u32, time_ns: i64, segments: u32, is_busy: bool) {
        let is_new = self.newest.is_none_or(|newest| SeqNumber(timestamp).since(SeqNumber(newest)) > 0);
        if !is_new {
            // Another one of the same tick may be echoed.
            return;
        }
        self.newest = Some(timestamp);
        if is_busy && self.asked.is_none() {
            self.asked = Some(Asked { timestamp, time_ns, segments });
        }
    }

    /// Whether data that echo `timestamp` end what is being timed.
    #[inline]
    pub fn is_awaited(&self, timestamp: u32) -> bool {
        self.asked.is_some_and(|asked| SeqNumber(timestamp).since(SeqNumber(asked.timestamp)) >= 0)
    }

    /// Data passed with an echo that is awaited.
    pub fn answer(&mut self, echo: &Echo) {
        let Some(asked) = self.asked.take() else { return };
        // A newer echo tells of an acknowledgement that came later.
        if echo.timestamp != asked.timestamp || echo.is_resent {
            return;
        }
        let elapsed_ns = echo.time_ns.saturating_sub(asked.time_ns);
        let segments = echo.segments.saturating_sub(asked.segments).max(1);
        let waits_for_application = segments == 1 && elapsed_ns > echo.longest_silence_ns;
        if let Ok(rtt_ns) = u64::try_from(elapsed_ns)
            && !waits_for_application
        {
            self.rtt.add(rtt_ns);
            self.sketch.add_times(rtt_ns, segments);
        }
    }

    /// Median in ms; None if nothing was timed.
    pub fn median_ms(&self) -> Option<f64> {
        self.sketch.percentile_ms(0.5, &self.rtt)
    }
}

impl Half {
    /// Data of this side echo a `timestamp` that is awaited.
    #[inline(never)]
    pub(super) fn answer_echo(&mut self, timestamp: u32, time_ns: i64) {
        let echo = Echo {
            timestamp,
            time_ns,
            segments: self.segments,
            is_resent: self.trouble.as_deref().is_some_and(|trouble| trouble.resends(time_ns)),
            longest_silence_ns: self.path_ns().unwrap_or(0).saturating_add(MIN_VARIATION_NS),
        };
        if let Some(echoes) = self.echoes_mut() {
            echoes.answer(&echo);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn echo(timestamp: u32, time_ns: i64, segments: u32) -> Echo {
        Echo { timestamp, time_ns, segments, is_resent: false, longest_silence_ns: 250 * MS }
    }

    #[test]
    fn test_the_first_echo_of_a_timestamp_ends_its_round_trip() {
        let mut echoes = Echoes::default();
        echoes.ask(100, 0, 1, true);
        echoes.ask(103, 3 * MS, 1, true);
        assert!(!echoes.is_awaited(99));
        echoes.answer(&echo(100, 20 * MS, 3));
        echoes.answer(&echo(103, 23 * MS, 4));
        assert_eq!(echoes.median_ms(), Some(20.0));
    }

    #[test]
    fn test_the_median_is_that_of_segments() {
        let mut echoes = Echoes::default();
        let (mut now_ns, mut segments) = (0, 0);
        // More time is spent in the long ones, but less is sent.
        for (step, (rtt_ms, sent)) in [(20, 10), (20, 10), (900, 9), (20, 10)].into_iter().enumerate() {
            echoes.ask(step as u32, now_ns, segments, true);
            now_ns += rtt_ms * MS;
            segments += sent;
            echoes.answer(&echo(step as u32, now_ns, segments));
        }
        assert!((19.8..20.2).contains(&echoes.median_ms().unwrap()));
        // A link of constant rate has more on its way in a longer round trip.
        for (step, (rtt_ms, sent)) in [(60, 30), (60, 30)].into_iter().enumerate() {
            echoes.ask(10 + step as u32, now_ns, segments, true);
            now_ns += rtt_ms * MS;
            segments += sent;
            echoes.answer(&echo(10 + step as u32, now_ns, segments));
        }
        assert!((59.5..60.5).contains(&echoes.median_ms().unwrap()));
    }

    #[test]
    fn test_nothing_is_timed_that_something_else_may_have_provoked() {
        let mut echoes = Echoes::default();
        echoes.ask(100, 0, 0, false);
        // Of the same tick, and the sender has nothing to send; its acknowledgement was lost; the clock was set back.
        echoes.ask(100, 0, 0, true);
        echoes.answer(&echo(100, 20 * MS, 1));
        echoes.ask(130, 30 * MS, 1, true);
        echoes.answer(&echo(140, 50 * MS, 2));
        echoes.ask(160, 60 * MS, 2, true);
        echoes.answer(&echo(160, 10 * MS, 3));
        // A timer ran out.
        echoes.ask(170, 70 * MS, 3, true);
        echoes.answer(&Echo { is_resent: true, ..echo(170, 270 * MS, 4) });
        // The application had nothing to send.
        echoes.ask(180, 300 * MS, 4, true);
        echoes.answer(&echo(180, 551 * MS, 5));
        assert_eq!(echoes.median_ms(), None);
    }
}
