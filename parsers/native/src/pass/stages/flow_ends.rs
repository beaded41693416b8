//! Flows that are over leave during a pass.
//!
//! A packet that comes later than the time-out after the last of its five-tuple, or two maximum segment lifetimes
//! after a close, is of another flow. That is exact, and costs nothing: from time to time a sweep (`sweeps.rs`) removes the
//! flows that are over and marks those that may be before the next one, and only these are looked at again.

use serde::{Deserialize, Serialize};

use crate::flow::ends::Sweep;
use crate::flow::ends::idle_times::IdleTimes;

/// Packets of which the earliest time is the clock, so that a few wrong times do nothing.
const OF_A_CLOCK: u32 = 256;

/// Sweeps in the shortest silence that ends a flow: a flow stays so much longer in memory.
const SWEEPS: i64 = 8;

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::pass) struct FlowEnds {
    longest_ns: i64,
    /// No silence that ends a flow is shorter.
    shortest_ns: i64,
    clock_ns: i64,
    /// Earliest time and number of the packets since the clock was set.
    since: (i64, u32),
    /// No flow that is not marked can be over before.
    horizon_ns: i64,
    next_sweep_ns: i64,
    /// Times stepped back: until then flows only seem to be silent.
    trusted_from_ns: i64,
    /// Whether flows stay to the end: of a simulation all its paths do.
    pub is_off: bool,
}

impl FlowEnds {
    pub fn new(idle: &IdleTimes) -> Self {
        Self {
            longest_ns: idle.longest_ns(),
            shortest_ns: idle.shortest_ns(),
            clock_ns: i64::MIN,
            since: (i64::MAX, 0),
            horizon_ns: i64::MAX,
            next_sweep_ns: i64::MIN,
            trusted_from_ns: i64::MIN,
            is_off: false,
        }
    }

    /// About the time of the last packets.
    pub fn clock_ns(&self) -> i64 {
        self.clock_ns
    }

    /// Flows may be over when packets of `earliest_ns` have been silent for long enough.
    #[inline(always)]
    pub fn limit_horizon(&mut self, earliest_ns: i64) {
        self.horizon_ns = self.horizon_ns.min(earliest_ns.saturating_add(self.shortest_ns));
    }

    /// Whether a flow that is not marked may be over at `latest_ns`.
    #[inline(always)]
    pub fn is_near(&self, latest_ns: i64) -> bool {
        latest_ns > self.horizon_ns
    }

    /// The next `packets` are of `earliest_ns` or later.
    #[inline(always)]
    pub fn note(&mut self, earliest_ns: i64, packets: u32) {
        if earliest_ns < self.clock_ns.saturating_sub(self.shortest_ns / 2) {
            self.trusted_from_ns = self.clock_ns.saturating_add(self.longest_ns);
        }
        let (earliest, count) = &mut self.since;
        *earliest = earliest_ns.min(*earliest);
        *count += packets;
        if *count >= OF_A_CLOCK {
            self.clock_ns = self.clock_ns.max(*earliest);
            self.since = (i64::MAX, 0);
        }
    }

    /// The sweep that is due, if any, before packets until `latest_ns`.
    pub fn next_sweep(&mut self, latest_ns: i64) -> Option<Sweep> {
        let now_ns = self.clock_ns;
        if now_ns < self.next_sweep_ns.max(self.trusted_from_ns) || now_ns == i64::MIN {
            return None;
        }
        self.next_sweep_ns = now_ns.saturating_add(self.shortest_ns / SWEEPS);
        // Until after these packets, unless one of them has a wrong time.
        let behind_ns = latest_ns.saturating_add(1).min(now_ns.saturating_add(self.shortest_ns));
        self.horizon_ns = self.next_sweep_ns.max(behind_ns);
        let next_ns = self.horizon_ns;
        Some(Sweep { now_ns, next_ns })
    }
}
