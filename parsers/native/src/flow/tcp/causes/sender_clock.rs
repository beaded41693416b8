//! When data left their sender, by its timestamps (RFC 7323).

use crate::packet::seq::SeqNumber;

/// Ticks of timestamps that are in use (RFC 7323 section 5.4 recommends 1 ms to 1 s). A queue makes them
/// look longer, so only a long time tells which it is.
const TICKS_NS: [i64; 5] = [1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000];
const USUAL_TICK_NS: i64 = 1_000_000;
const TELLING_NS: i64 = 2_000_000_000;
/// The clocks of two machines differ by up to this part (1/n).
const SKEW: i64 = 10_000;

/// The clock of a sender's timestamps, against the one of the capture.
#[derive(Debug, Default)]
pub struct SenderClock {
    /// The first value, and when it passed.
    first: Option<(u32, i64)>,
    /// Once it is known.
    tick_ns: Option<i64>,
    /// When the first value would have passed without a queue, and when the newest did.
    base_ns: i64,
    newest_ns: i64,
}

impl SenderClock {
    /// When data with this timestamp, which pass the capture now, would have passed without a queue: in
    /// the tick of their timestamp.
    pub fn sent_ns(&mut self, time_ns: i64, value: u32) -> i64 {
        let Some((first, first_ns)) = self.first else {
            self.first = Some((value, time_ns));
            (self.base_ns, self.newest_ns) = (time_ns, time_ns);
            return time_ns;
        };
        let ticks = i64::from(SeqNumber(value).since(SeqNumber(first)));
        let passed_ns = time_ns.saturating_sub(first_ns);
        if self.tick_ns.is_none() && passed_ns > TELLING_NS && ticks > 0 {
            let tick_ns = nearest_tick_ns(passed_ns / ticks);
            if tick_ns != USUAL_TICK_NS {
                self.base_ns = time_ns;
            }
            self.tick_ns = Some(tick_ns);
        }
        let tick_ns = self.tick_ns.unwrap_or(USUAL_TICK_NS);
        let ticked_ns = ticks.saturating_mul(tick_ns);
        let drifted_ns = time_ns.saturating_sub(self.newest_ns).max(0) / SKEW;
        self.newest_ns = time_ns;
        self.base_ns = self.base_ns.saturating_add(drifted_ns).min(time_ns.saturating_sub(ticked_ns));
        self.base_ns.saturating_add(ticked_ns).saturating_add(tick_ns).min(time_ns)
    }
}

fn nearest_tick_ns(tick_ns: i64) -> i64 {
    let distance = |known_ns: &i64| ((*known_ns as f64).ln() - (tick_ns.max(1) as f64).ln()).abs();
    TICKS_NS
        .into_iter()
        .min_by(|one, other| distance(one).total_cmp(&distance(other)))
        .unwrap_or(USUAL_TICK_NS)
}
