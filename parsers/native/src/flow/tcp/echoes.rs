//! The half of the path between the capture and the sender of data: from an acknowledgement that passes the
//! capture to the first data that echo its timestamp (RFC 7323 section 4.1).
//!
//! One is timed after the other, as RFC 6298 section 3 has it, so that a flow needs no list of them. Of long
//! round trips there are fewer then in the same time, so each counts for as long as it took.

use crate::flow::rtt::{RttRange, Sketch};
use crate::seq::SeqNumber;

/// What a round trip is counted in: of an hour the counts still fit.
const UNIT_NS: u64 = 16_000;

/// See the module.
#[derive(Debug, Default)]
pub struct Echoes {
    /// The newest timestamp of an acknowledgement.
    newest: Option<u32>,
    /// The timestamp whose echo is awaited, and when it passed.
    asked: Option<(u32, i64)>,
    rtt: RttRange,
    sketch: Sketch,
}

impl Echoes {
    /// An acknowledgement with this timestamp passed; whether the sender has data on their way, so that it
    /// answers at once and does not wait for its application.
    pub fn ask(&mut self, value: u32, time_ns: i64, is_busy: bool) {
        let is_new = self.newest.is_none_or(|newest| SeqNumber(value).since(SeqNumber(newest)) > 0);
        if !is_new {
            // Another one of the same tick may be echoed.
            return;
        }
        self.newest = Some(value);
        if is_busy && self.asked.is_none() {
            self.asked = Some((value, time_ns));
        }
    }

    /// Data with this echo passed, the first ones with it. If they are sent again nobody knows what the sender
    /// waited for: it may have been a timer, and then it waited for long.
    pub fn answer(&mut self, echo: u32, time_ns: i64, is_resent: bool) {
        let Some((value, asked_ns)) = self.asked else { return };
        let since = SeqNumber(echo).since(SeqNumber(value));
        if since < 0 {
            return;
        }
        self.asked = None;
        // A newer echo tells of an acknowledgement that came later.
        if since == 0
            && !is_resent
            && let Ok(rtt_ns) = u64::try_from(time_ns.saturating_sub(asked_ns))
        {
            self.rtt.add(rtt_ns);
            let units = u32::try_from(rtt_ns / UNIT_NS).unwrap_or(u32::MAX);
            self.sketch.add_times(rtt_ns, units.max(1));
        }
    }

    /// Median in ms; None if nothing was timed.
    pub fn median_ms(&self) -> Option<f64> {
        self.sketch.percentile_ms(0.5, &self.rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn test_the_first_echo_of_a_timestamp_ends_its_round_trip() {
        let mut echoes = Echoes::default();
        echoes.ask(100, 0, true);
        echoes.ask(103, 3 * MS, true);
        echoes.answer(99, 5 * MS, false);
        echoes.answer(100, 20 * MS, false);
        echoes.answer(103, 23 * MS, false);
        assert_eq!(echoes.median_ms(), Some(20.0));
    }

    #[test]
    fn test_the_median_is_that_of_the_time() {
        let mut echoes = Echoes::default();
        let mut now_ns = 0;
        // 100 ms of short ones and 120 ms of long ones.
        for (step, rtt_ms) in [20, 20, 20, 20, 20, 60, 60].into_iter().enumerate() {
            echoes.ask(step as u32, now_ns, true);
            now_ns += rtt_ms * MS;
            echoes.answer(step as u32, now_ns, false);
        }
        assert_eq!(echoes.median_ms(), Some(60.0));
    }

    #[test]
    fn test_nothing_is_timed_that_something_else_may_have_provoked() {
        let mut echoes = Echoes::default();
        echoes.ask(100, 0, false);
        // Of the same tick, and the sender has nothing to send; its acknowledgement was lost; the clock was set back.
        echoes.ask(100, 0, true);
        echoes.answer(100, 20 * MS, false);
        echoes.ask(130, 30 * MS, true);
        echoes.answer(140, 50 * MS, false);
        echoes.ask(160, 60 * MS, true);
        echoes.answer(160, 10 * MS, false);
        // A timer ran out.
        echoes.ask(170, 70 * MS, true);
        echoes.answer(170, 270 * MS, true);
        assert_eq!(echoes.median_ms(), None);
    }
}
