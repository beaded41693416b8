//! The retransmission timer of a sender, from the round trips seen here (RFC 6298).

use serde::{Deserialize, Serialize};

/// Smallest variation in Linux, which makes its smallest timeout a round trip longer. Others wait
/// for a second (RFC 6298 section 2.4), which includes this time.
pub const MIN_VARIATION_NS: i64 = 200_000_000;
/// The timeout before the first round trip (RFC 6298 section 2.1).
const INITIAL_NS: i64 = 1_000_000_000;
/// Longest delay of the acknowledgement of a single segment in Linux's probe timeout.
const DELAYED_ACK_NS: i64 = 200_000_000;

/// Shortest probe timeout of Linux.
const MIN_PROBE_NS: i64 = 2_000_000;

/// Unit of the timer in ns: a round trip of a minute fits in 32 bits, and no retransmission clock
/// is as fine.
const TICK_NS: u64 = 16;

/// Smoothed round-trip time and its variation, in 8 bytes: there are many flows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RtoTimer {
    /// 0 before the first nonzero sample.
    smoothed: u32,
    variation: u32,
}

impl RtoTimer {
    /// Add a round-trip time, by equations (2.2) and (2.3).
    #[inline(always)]
    pub fn note(&mut self, rtt_ns: u64) {
        let rtt = (rtt_ns / TICK_NS).min(u32::MAX.into()) as i64;
        if self.smoothed == 0 {
            // A round-trip time of 0, from a capture without a clock, does not start it.
            (self.smoothed, self.variation) = (rtt as u32, rtt as u32 / 2);
        } else {
            let (smoothed, variation) = (i64::from(self.smoothed), i64::from(self.variation));
            let off = rtt - smoothed;
            // Both stay between the old and the new value.
            self.variation = (variation + (off.abs() - variation) / 4) as u32;
            self.smoothed = (smoothed + off / 8) as u32;
        }
    }

    pub fn smoothed_ns(&self) -> Option<i64> {
        (self.smoothed > 0).then(|| in_ns(self.smoothed))
    }

    /// The retransmission timeout without backoff.
    pub fn timeout_ns(&self) -> i64 {
        match self.smoothed_ns() {
            Some(smoothed_ns) => smoothed_ns + MIN_VARIATION_NS.max(4 * in_ns(self.variation)),
            None => INITIAL_NS,
        }
    }

    /// The probe timeout (RFC 8985 section 7.2), for one segment in flight or for several.
    pub fn probe_ns(&self, is_single: bool) -> i64 {
        match self.smoothed_ns() {
            Some(smoothed_ns) if is_single => 2 * smoothed_ns + DELAYED_ACK_NS,
            Some(smoothed_ns) => 2 * smoothed_ns,
            None if is_single => INITIAL_NS,
            None => MIN_PROBE_NS,
        }
    }
}

fn in_ns(ticks: u32) -> i64 {
    i64::from(ticks) * TICK_NS as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn test_the_first_samples_go_in_as_rfc_6298_says() {
        let mut timer = RtoTimer::default();
        assert_eq!((timer.timeout_ns(), timer.smoothed_ns()), (1_000 * MS, None));
        timer.note(0);
        assert_eq!(timer.smoothed_ns(), None);
        timer.note(800_000_000);
        // SRTT 800, RTTVAR 400
        assert_eq!(timer.timeout_ns(), 2_400 * MS);
        timer.note(400_000_000);
        // RTTVAR = 3/4 400 + 1/4 400, SRTT = 7/8 800 + 1/8 400
        assert_eq!((timer.smoothed_ns(), timer.timeout_ns()), (Some(750 * MS), 2_350 * MS));
        assert_eq!((timer.probe_ns(false), timer.probe_ns(true)), (1_500 * MS, 1_700 * MS));
    }
}
