//! The retransmission timer of a sender, as its round trips seen here make it (RFC 6298).

/// Smallest variation that Linux counts with, which makes its smallest timeout a round trip longer.
/// Others wait for a second (RFC 6298 section 2.4): what waited that long waited this long too.
const MIN_VARIATION_NS: i64 = 200_000_000;
/// The timeout before the first round trip (RFC 6298 section 2.1).
const INITIAL_NS: i64 = 1_000_000_000;
/// What a receiver may wait with the acknowledgement of a single segment, in the probe timeout of
/// Linux.
const DELAYED_ACK_NS: i64 = 200_000_000;

/// The shortest probe timeout of Linux.
const MIN_PROBE_NS: i64 = 2_000_000;

/// Smoothed round-trip time and its variation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    /// 0 before the first sample.
    smoothed_ns: i64,
    variation_ns: i64,
}

impl Timer {
    /// Take in a round-trip time, by equations (2.2) and (2.3).
    #[inline(always)]
    pub fn note(&mut self, rtt_ns: u64) {
        let rtt_ns = rtt_ns.clamp(1, 1 << 50) as i64;
        if self.smoothed_ns == 0 {
            (self.smoothed_ns, self.variation_ns) = (rtt_ns, rtt_ns / 2);
        } else {
            let off = rtt_ns - self.smoothed_ns;
            self.variation_ns += (off.abs() - self.variation_ns) / 4;
            self.smoothed_ns += off / 8;
        }
    }

    /// The smoothed round-trip time.
    pub fn smoothed_ns(&self) -> Option<i64> {
        (self.smoothed_ns > 0).then_some(self.smoothed_ns)
    }

    /// The retransmission timeout without backoff.
    pub fn timeout_ns(&self) -> i64 {
        match self.smoothed_ns() {
            Some(smoothed_ns) => smoothed_ns + MIN_VARIATION_NS.max(4 * self.variation_ns),
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn test_the_first_samples_go_in_as_rfc_6298_says() {
        let mut timer = Timer::default();
        assert_eq!((timer.timeout_ns(), timer.smoothed_ns()), (1_000 * MS, None));
        timer.note(800_000_000);
        // SRTT 800, RTTVAR 400
        assert_eq!(timer.timeout_ns(), 2_400 * MS);
        timer.note(400_000_000);
        // RTTVAR = 3/4 400 + 1/4 400, SRTT = 7/8 800 + 1/8 400
        assert_eq!((timer.smoothed_ns(), timer.timeout_ns()), (Some(750 * MS), 2_350 * MS));
        assert_eq!((timer.probe_ns(false), timer.probe_ns(true)), (1_500 * MS, 1_700 * MS));
    }
}
