//! Whether a token bucket limited a flow, and its rate.
//!
//! A policer drops what finds its bucket empty, and delays nothing. So losses come without a queue while more is
//! sent than passes, and from one loss to the next exactly what the bucket got meanwhile has passed (Flach et al.,
//! "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016, section 3).

use super::interval::Interval;
use super::path::{Cut, CutReason, Lap, Path, QUEUE_NS};

/// Losses between which rates are compared, and the part by which those of a policer vary (quartiles).
const LOSSES: usize = 4;
const EQUAL: f64 = 0.1;
/// Segments leave in bursts, so each rate is wrong by some of them.
const RATE_ERROR: f64 = 0.01;
/// A queue that is full holds more than so many bytes.
const QUEUE_BYTES: f64 = 3_000.0;
/// Before a loss more is sent than passes, by this factor: what does not pass was either dropped or is queued.
const FASTER: f64 = 1.05;

/// Payload bytes in a second that a policer lets pass; None if nothing tells of one.
pub fn policer_rate(path: &Path) -> Option<Interval> {
    if path.hides_queues {
        return None;
    }
    let losses: Vec<&Cut> = path.timed_cuts().filter(|cut| cut.reason != CutReason::Mark).collect();
    let rate = rate_between(&losses, path.base_rtt_ns()?)?;
    let laps: Vec<(&Cut, &Lap)> =
        losses.iter().filter_map(|&cut| Some((cut, path.lap_at(cut.sent_ns)?))).collect();
    let faster = laps.iter().filter(|(_, lap)| is_faster(lap, rate.value)).count();
    let undelayed =
        laps.iter().filter(|(cut, lap)| is_undelayed(path, cut, lap.rate().max(rate.value))).count();
    (4 * faster >= 3 * losses.len() && 2 * undelayed > losses.len()).then(|| rate.widened(RATE_ERROR))
}

/// The rate that passes from one loss to the next; None if it varies.
fn rate_between(losses: &[&Cut], base_ns: i64) -> Option<Interval> {
    let mut rates: Vec<f64> = losses
        .windows(2)
        .filter_map(|pair| {
            let ns = pair[1].sent_ns.saturating_sub(pair[0].sent_ns);
            (ns / 2 > base_ns).then(|| (pair[1].sent - pair[0].sent) as f64 * 1e9 / ns as f64)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let rate = Interval::of_quartiles(&rates)?;
    (rates.len() + 1 >= LOSSES && rate.value > 0.0 && rate.width() < EQUAL).then_some(rate)
}

/// Whether no queue delayed what passed before a loss, at such a rate.
fn is_undelayed(path: &Path, cut: &Cut, rate: f64) -> bool {
    path.delay_ns(cut.rtt_ns) <= QUEUE_NS.max(QUEUE_BYTES * 1e9 / rate)
}

/// Whether more was sent in a lap than passes.
fn is_faster(lap: &Lap, rate: f64) -> bool {
    lap.flight.is_some_and(|(flight, _)| f64::from(flight) * 1e9 / lap.rtt_ns as f64 >= FASTER * rate)
}
