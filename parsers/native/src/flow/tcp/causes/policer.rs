//! Whether a token bucket limited a flow, and its rate.
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

/// Payload bytes in a second that a policer lets pass; None if nothing tells of one.
pub fn policer_rate(path: &Path) -> Option<Interval> {
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
    Some(rate.widened(RATE_ERROR))
}
