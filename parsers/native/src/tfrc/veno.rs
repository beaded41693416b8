//! TFRC Veno's γ where it follows the losses: TCP Veno keeps 4/5 of its window after a loss with
//! hardly any queue, and half of it otherwise (Fu and Liew, JSAC 2003), so the equation's γ lies
//! between.

use serde::{Deserialize, Serialize};

use super::Report;

/// Loss events that count.
const EVENTS: usize = 8;
/// Segments in the queue from which on a loss is one of congestion: beta.
const CONGESTED: f64 = 3.0;
/// Share kept after a random loss, and after a congestion loss.
const AFTER_RANDOM_LOSS: f64 = 0.8;
const AFTER_CONGESTION: f64 = 0.5;

/// The latest loss events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GammaMix {
    /// R_min: the smallest sample; None before the first.
    base_rtt: Option<f64>,
    p: f64,
    /// Share kept after each event, and their number; the oldest is overwritten.
    kept: [f64; EVENTS],
    events: usize,
}

impl GammaMix {
    /// γ after a report: the mean over the last eight loss events. `r` is R after it, `x` the rate
    /// before, of packets of `s` bytes. A rising p marks a loss event.
    pub fn after(&mut self, report: &Report, r: f64, x: f64, s: f64) -> f64 {
        let sample = report.r_sample.filter(|sample| *sample > 0.0 && sample.is_finite());
        let smallest = sample.unwrap_or(r).min(self.base_rtt.unwrap_or(f64::INFINITY));
        self.base_rtt = Some(smallest);
        if report.p > self.p
            && let Some(kept) = self.kept.get_mut(self.events % EVENTS)
        {
            // N = X R / s (R - R_min) / R
            let queued = x * (r - smallest).max(0.0) / s;
            *kept = if queued < CONGESTED { AFTER_RANDOM_LOSS } else { AFTER_CONGESTION };
            self.events = self.events.saturating_add(1);
        }
        self.p = report.p;
        self.gamma()
    }

    fn gamma(&self) -> f64 {
        let known = self.kept.iter().take(self.events);
        let count = known.len();
        if count == 0 { AFTER_RANDOM_LOSS } else { known.sum::<f64>() / count as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(r_sample: f64, p: f64) -> Report {
        Report { time: 0.0, r_sample: Some(r_sample), x_recv: 1e6, p, ..Report::default() }
    }

    #[test]
    fn test_gamma_is_the_mean_of_what_the_last_eight_events_left() {
        let mut mix = GammaMix::default();
        assert_eq!(mix.after(&report(0.1, 0.0), 0.1, 1e5, 1000.0), 0.8);
        // 100 packets/s and no queue, then 100 ms of it: 10 packets wait.
        assert_eq!(mix.after(&report(0.1, 0.01), 0.1, 1e5, 1000.0), 0.8);
        assert_eq!(mix.after(&report(0.2, 0.02), 0.2, 1e5, 1000.0), 0.65);
        // No event: p falls, or stays.
        assert_eq!(mix.after(&report(0.2, 0.01), 0.2, 1e5, 1000.0), 0.65);
        assert_eq!(mix.after(&report(0.2, 0.01), 0.2, 1e5, 1000.0), 0.65);
        for event in 2..10 {
            mix.after(&report(0.2, f64::from(event) / 100.0), 0.2, 1e5, 1000.0);
        }
        assert_eq!(mix.gamma(), 0.5);
    }

    #[test]
    fn test_less_than_three_segments_in_the_queue_are_no_congestion() {
        for (rtt, gamma) in [(0.129, 0.8), (0.131, 0.5)] {
            let mut mix = GammaMix::default();
            mix.after(&report(0.1, 0.0), 0.1, 1e5, 1000.0);
            assert_eq!(mix.after(&report(rtt, 0.1), rtt, 1e5, 1000.0), gamma);
        }
    }
}
