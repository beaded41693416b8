//! Round-trip times: samples, and the sender's estimates (sections 4.3 and 4.5).

use serde::{Deserialize, Serialize};

/// The sample of a report: since the packet that it echoes was sent, without the time that the
/// receiver held it. None if that is not positive: clocks that step, fields that lie.
pub fn r_sample(time: f64, sent_time: f64, elapsed: f64) -> Option<f64> {
    let sample = time - sent_time - elapsed;
    (sample > 0.0 && sample.is_finite()).then_some(sample)
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    pub r: f64,
    /// The mean of the samples' square roots.
    pub r_sqmean: f64,
    pub r_sample: f64,
}

impl RoundTrip {
    /// All samples were `r`.
    pub fn steady(r: f64) -> Self {
        Self { r, r_sqmean: r.sqrt(), r_sample: r }
    }

    /// Add a sample to `past`; R keeps the share `q`, R_sqmean `q2`.
    pub fn after(past: Option<Self>, r_sample: f64, q: f64, q2: f64) -> Self {
        let root = r_sample.sqrt();
        match past {
            None => Self::steady(r_sample),
            Some(past) => Self {
                r: q * past.r + (1.0 - q) * r_sample,
                r_sqmean: q2 * past.r_sqmean + (1.0 - q2) * root,
                r_sample,
            },
        }
    }

    /// Factor of the rate that yields to a growing queue (section 4.5).
    pub fn damping(&self) -> f64 {
        self.r_sqmean / self.r_sample.sqrt()
    }
}

/// Round-trip times where CCID 3 data packets arrive: the window counter advances by one each
/// quarter of one (RFC 4342 section 8.1).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CounterRtt {
    /// The packet that is compared with.
    reference: Option<(u8, f64)>,
    /// The last one less than a round-trip time later.
    within: Option<(u8, f64)>,
}

impl CounterRtt {
    /// Process the counter of an arrived packet; returns its sample. Counters four apart are one
    /// round-trip time apart; where the counter skips that, the last packet within counts by its
    /// share.
    pub fn on_ccval(&mut self, ccval: u8, time: f64) -> Option<f64> {
        let Some((counter, since)) = self.reference else {
            self.reference = Some((ccval, time));
            return None;
        };
        let quarters = ccval.wrapping_sub(counter) & 15;
        let sample = match quarters {
            0 => return None,
            1..=3 => {
                self.within = Some((quarters, time));
                return None;
            }
            4 => Some(time - since),
            _ => self.within.map(|(quarters, time)| (time - since) * 4.0 / f64::from(quarters)),
        };
        (self.reference, self.within) = (Some((ccval, time)), None);
        sample.filter(|sample| *sample > 0.0 && sample.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_a_counter_that_jumps_is_scaled() {
        let mut rtt = CounterRtt::default();
        let samples: Vec<_> = [(0, 0.0), (2, 0.05), (6, 0.2)].map(|(c, t)| rtt.on_ccval(c, t)).into();
        assert_eq!(samples, [None, None, Some(0.1)]);
    }

    proptest! {
        #[test]
        fn test_no_sample_is_negative_or_infinite(packets in proptest::collection::vec((any::<u8>(), any::<f64>()), 0..40)) {
            let mut rtt = CounterRtt::default();
            for (ccval, time) in packets {
                prop_assert!(rtt.on_ccval(ccval, time).is_none_or(|sample| sample > 0.0 && sample.is_finite()));
            }
        }
    }
}
