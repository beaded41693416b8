//! When data left their sender, by its timestamps (RFC 7323).

use crate::packet::sender_stamp::{Stamp, nearest_tick_ns};

const USUAL_TICK_NS: i64 = 1_000_000;
const TELLING_NS: i64 = 2_000_000_000;
/// The clocks of two machines differ by up to this part (1/n).
const SKEW: i64 = 10_000;

/// The clock of a sender's timestamps, against the one of the capture.
#[derive(Debug, Default)]
pub struct SenderClock {
    first: Option<Stamp>,
    /// Once it is known.
    tick_ns: Option<i64>,
    /// When the first value would have passed without a queue, and when the newest did.
    base_ns: i64,
    newest_ns: i64,
}

impl SenderClock {
    /// That of a sender whose data with this timestamp would have passed then without a queue.
    pub fn dated(first: Stamp) -> Self {
        let time_ns = first.time_ns;
        Self { first: Some(first), tick_ns: None, base_ns: time_ns, newest_ns: time_ns }
    }

    /// When data with this timestamp, which pass the capture now, would have passed without a queue: in
    /// the tick of their timestamp.
    pub fn sent_ns(&mut self, time_ns: i64, value: u32) -> i64 {
        let stamp = Stamp { time_ns, value };
        let Some(first) = self.first else {
            self.first = Some(stamp);
            (self.base_ns, self.newest_ns) = (time_ns, time_ns);
            return time_ns;
        };
        let ticks = stamp.ticks_since(first);
        let passed_ns = time_ns.saturating_sub(first.time_ns);
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
