//! The timeout of ns-2's agent.

/// t_RTO: a TCP's retransmission timeout in ticks, srtt with 3 and rttvar with 2 bits of fraction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rto {
    srtt: i64,
    rttvar: i64,
}

impl Rto {
    /// Add a sample in seconds, with ticks of `tick` seconds.
    pub fn update(&mut self, sample: f64, tick: f64) {
        // Far above any round-trip time, and far below an overflow.
        let ticks = ((sample / tick + 0.5) as i64).clamp(1, 1 << 40);
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (ticks << 3, ticks << 1);
            return;
        }
        let delta = ticks - (self.srtt >> 3);
        self.srtt = (self.srtt + delta).max(1);
        self.rttvar = (self.rttvar + delta.abs() - (self.rttvar >> 2)).max(1);
    }

    pub fn seconds(&self, tick: f64) -> f64 {
        let ticks = ((self.rttvar << 3) + self.srtt) >> 3;
        ticks as f64 * tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds_after(samples: &[f64]) -> f64 {
        let mut rto = Rto::default();
        samples.iter().for_each(|&sample| rto.update(sample, 0.1));
        rto.seconds(0.1)
    }

    /// The reference output of ns-2's documentation.
    #[test]
    fn test_that_of_a_short_round_trip_stays_at_three_ticks() {
        for count in [1, 2, 200] {
            assert!((seconds_after(&vec![0.149; count]) - 0.3).abs() < 1e-12);
        }
    }

    #[test]
    fn test_a_sample_without_end_overflows_nothing() {
        assert!(seconds_after(&[f64::INFINITY, 0.1, f64::INFINITY, f64::MAX]).is_finite());
    }
}
