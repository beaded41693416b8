//! Whether a token bucket limited a flow, and which.
//!
//! A policer drops what finds its bucket empty, and delays nothing. So losses come without a queue, and from
//! one loss to the next exactly what the bucket got meanwhile has passed (Flach et al., "An Internet-Wide
//! Analysis of Traffic Policing", SIGCOMM 2016, section 3).

use super::interval::Interval;
use super::path::{Cut, CutReason, Path};

/// Losses between which rates are compared, and the part by which those of a policer vary (quartiles).
const LOSSES: usize = 4;
const EQUAL: f64 = 0.1;
/// Segments leave in bursts, so each rate is wrong by some of them.
const RATE_ERROR: f64 = 0.01;

/// Rate and depth of a token bucket.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    /// Payload bytes in a second.
    pub rate: Interval,
    /// Payload bytes; None if the first loss does not show it.
    pub bucket: Option<f64>,
}

impl Policer {
    /// The policer of a path; None if nothing tells of one.
    pub fn of(path: &Path) -> Option<Self> {
        let base_ns = path.base_rtt_ns()?;
        let losses: Vec<&Cut> = path.cuts.iter().filter(|cut| cut.reason != CutReason::Mark).collect();
        let unqueued = losses.iter().filter(|cut| !path.has_queue(cut.least_rtt_ns)).count();
        if losses.len() < LOSSES || 4 * unqueued < 3 * losses.len() {
            return None;
        }
        let mut rates: Vec<f64> = losses
            .windows(2)
            .filter_map(|pair| {
                let ns = pair[1].sent_ns.saturating_sub(pair[0].sent_ns);
                (ns / 2 > base_ns).then(|| (pair[1].sent - pair[0].sent) as f64 * 1e9 / ns as f64)
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        let rate = Interval::of_quartiles(&rates)?;
        if rates.len() + 1 < LOSSES || rate.value <= 0.0 || rate.width() >= EQUAL {
            return None;
        }
        Some(Self { rate: rate.widened(RATE_ERROR), bucket: bucket(path, losses.first()?, rate.value) })
    }
}

/// A bucket is full at the start: it holds what passed until it was first empty, less what it got meanwhile.
fn bucket(path: &Path, first: &Cut, rate: f64) -> Option<f64> {
    let (start_ns, start) = path.start()?;
    let passed = (first.sent - start) as f64;
    let bytes = passed - rate * first.sent_ns.saturating_sub(start_ns) as f64 / 1e9;
    (bytes > 0.0).then_some(bytes)
}
