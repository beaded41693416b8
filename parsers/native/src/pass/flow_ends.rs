//! Flows that are over leave during a pass.
//!
//! A packet that comes later than the time-out after the last of its five-tuple, or two maximum segment lifetimes
//! after a close, is of another flow. That is exact, and costs nothing: from time to time a sweep removes the flows
//! that are over and marks those that may be before the next one, and only these are looked at again.

use std::io;

use serde::{Deserialize, Serialize};

use super::Analysis;
use crate::error::{ProblemKind, ReadError};
use crate::flow::Flow;
use crate::flow::ends::{FlowEnd, Sweep};
use crate::flow::tcp::TWO_MSL_NS;
use crate::packet::batch::Batch;

/// Packets of which the earliest time is the clock, so that a few wrong times do nothing.
const OF_A_CLOCK: u32 = 256;

/// Sweeps in the shortest silence that ends a flow: a flow stays so much longer in memory.
const SWEEPS: i64 = 8;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FlowEnds {
    idle_ns: i64,
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
    pub fn new(idle_ns: i64) -> Self {
        Self {
            idle_ns,
            shortest_ns: idle_ns.min(TWO_MSL_NS),
            clock_ns: i64::MIN,
            since: (i64::MAX, 0),
            horizon_ns: i64::MAX,
            next_sweep_ns: i64::MIN,
            trusted_from_ns: i64::MIN,
            is_off: false,
        }
    }

    /// The next `packets` are of `earliest_ns` or later.
    #[inline(always)]
    fn note(&mut self, earliest_ns: i64, packets: u32) {
        if earliest_ns < self.clock_ns.saturating_sub(self.shortest_ns / 2) {
            self.trusted_from_ns = self.clock_ns.saturating_add(self.idle_ns);
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
    fn next_sweep(&mut self, latest_ns: i64) -> Option<Sweep> {
        let Self { clock_ns: now_ns, idle_ns, .. } = *self;
        if now_ns < self.next_sweep_ns.max(self.trusted_from_ns) || now_ns == i64::MIN {
            return None;
        }
        self.next_sweep_ns = now_ns.saturating_add(self.shortest_ns / SWEEPS);
        // Until behind these packets, unless one of them has a wrong time.
        let behind_ns = latest_ns.saturating_add(1).min(now_ns.saturating_add(self.shortest_ns));
        self.horizon_ns = self.next_sweep_ns.max(behind_ns);
        let next_ns = self.horizon_ns;
        Some(Sweep { now_ns, next_ns, idle_ns })
    }
}

impl Analysis {
    /// How a flow ended; None if the trace has no packet of it.
    pub fn end_of(&self, flow: &Flow) -> Option<FlowEnd> {
        flow.end(self.options.idle_ns, self.end_ns)
    }

    /// Report that flows that are over could not be read.
    pub(super) fn note_unread(&mut self, read: io::Result<()>) {
        if let Err(error) = read {
            let message = format!("flows that are over cannot be read: {error}");
            self.bound(ReadError::whole(ProblemKind::ReadFailed, message));
        }
    }

    /// Prepare the flows for these batches.
    pub(super) fn end_flows_before(&mut self, batches: &[Batch]) {
        let times = || batches.iter().filter_map(Batch::times_ns);
        let (earliest, latest) = (times().map(|times| times.0).min(), times().map(|times| times.1).max());
        if let Some((earliest_ns, latest_ns)) = earliest.zip(latest) {
            let packets = batches.iter().map(|batch| batch.len() as u32).sum();
            self.end_flows(earliest_ns, latest_ns, packets);
        }
    }

    /// Prepare the flows for the next `packets`, of these times.
    #[inline(always)]
    pub(super) fn end_flows(&mut self, earliest_ns: i64, latest_ns: i64, packets: u32) {
        let ends = &mut self.ends;
        ends.horizon_ns = ends.horizon_ns.min(earliest_ns.saturating_add(ends.shortest_ns));
        let is_near = latest_ns > ends.horizon_ns;
        if is_near || self.flows.is_careful() {
            self.end_flows_near(earliest_ns, latest_ns);
        }
        self.ends.note(earliest_ns, packets);
    }

    #[cold]
    #[inline(never)]
    fn end_flows_near(&mut self, earliest_ns: i64, latest_ns: i64) {
        if self.ends.is_off {
            return self.flows.be_careful(false);
        }
        if let Some(sweep) = self.ends.next_sweep(latest_ns) {
            self.sweep(sweep);
            let horizon_ns = earliest_ns.saturating_add(self.ends.shortest_ns);
            self.ends.horizon_ns = self.ends.horizon_ns.min(horizon_ns);
        }
        let is_careful = latest_ns > self.ends.horizon_ns;
        if is_careful {
            self.backlog.settle_all(&mut self.flows, &self.threads);
        }
        self.flows.be_careful(is_careful);
    }

    fn sweep(&mut self, sweep: Sweep) {
        self.backlog.settle_all(&mut self.flows, &self.threads);
        self.group_settled();
        let over = self.flows.sweep(sweep);
        for &number in &over {
            if self.flows.finish_leaving(number) {
                self.note_gaps(number);
                self.group_rest(number);
            }
        }
        self.give_up_queries(&over);
        over.into_iter().for_each(|number| self.flows.settle(number));
        self.flows.shrink();
    }
}
