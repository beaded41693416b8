//! Timestamps of senders (RFC 7323) and the clocks that they come from.

use serde::{Deserialize, Serialize};

use super::seq::SeqNumber;

/// Ticks of timestamps that are in use (RFC 7323 section 5.4 recommends 1 ms to 1 s). A queue makes them
/// look longer, so only a long time tells which it is.
const TICKS_NS: [i64; 5] = [1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000];

/// A timestamp of a sender and when it was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub time_ns: i64,
    pub value: u32,
}

impl Stamp {
    /// Ticks from `earlier` to `self`.
    pub fn ticks_since(self, earlier: Self) -> i64 {
        i64::from(SeqNumber(self.value).since(SeqNumber(earlier.value)))
    }
}

/// The tick in use that is nearest.
pub fn nearest_tick_ns(tick_ns: i64) -> i64 {
    let distance = |known_ns: &i64| ((*known_ns as f64).ln() - (tick_ns.max(1) as f64).ln()).abs();
    TICKS_NS.into_iter().min_by(|one, other| distance(one).total_cmp(&distance(other))).unwrap_or(TICKS_NS[1])
}
