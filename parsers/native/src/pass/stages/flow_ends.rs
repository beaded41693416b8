//! Flows that are over leave during a pass.
//!
//! A packet that comes later than the time-out after the last of its five-tuple, or two maximum segment lifetimes
//! after a close, is of another flow. That is exact, and costs nothing: from time to time a sweep removes the flows
//! that are over and marks those that may be before the next one, and only these are looked at again.

use serde::{Deserialize, Serialize};

use super::groups::group_settled;
use crate::flow::ends::Sweep;
use crate::flow::tcp::TWO_MSL_NS;
use crate::packet::batch::Batch;
use crate::pass::Options;
use crate::pass::finish::source_problems::note_gaps;
use crate::pass::state::{Carried, Working};

/// Packets of which the earliest time is the clock, so that a few wrong times do nothing.
const OF_A_CLOCK: u32 = 256;

/// Sweeps in the shortest silence that ends a flow: a flow stays so much longer in memory.
const SWEEPS: i64 = 8;

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::pass) struct FlowEnds {
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

/// Prepare the flows for these batches.
pub(super) fn end_flows_before(
    batches: &[Batch],
    options: &Options,
    carried: &mut Carried,
    working: &mut Working,
) {
    let times = || batches.iter().filter_map(Batch::times_ns);
    let (earliest, latest) = (times().map(|times| times.0).min(), times().map(|times| times.1).max());
    if let Some(times_ns) = earliest.zip(latest) {
        let packets = batches.iter().map(|batch| batch.len() as u32).sum();
        end_flows(times_ns, packets, options, carried, working);
    }
}

/// Prepare the flows for the next `packets`, the earliest and latest of which are of these times.
#[inline(always)]
pub(in crate::pass) fn end_flows(
    times_ns: (i64, i64),
    packets: u32,
    options: &Options,
    carried: &mut Carried,
    working: &mut Working,
) {
    let (earliest_ns, latest_ns) = times_ns;
    let ends = &mut carried.ends;
    ends.horizon_ns = ends.horizon_ns.min(earliest_ns.saturating_add(ends.shortest_ns));
    let is_near = latest_ns > ends.horizon_ns;
    if is_near || carried.flows.is_careful() {
        end_flows_near(times_ns, options, carried, working);
    }
    carried.ends.note(earliest_ns, packets);
}

#[cold]
#[inline(never)]
fn end_flows_near(times_ns: (i64, i64), options: &Options, carried: &mut Carried, working: &mut Working) {
    let (earliest_ns, latest_ns) = times_ns;
    if carried.ends.is_off {
        return carried.flows.be_careful(false);
    }
    if let Some(due) = carried.ends.next_sweep(latest_ns) {
        sweep(due, options, carried, working);
        let horizon_ns = earliest_ns.saturating_add(carried.ends.shortest_ns);
        carried.ends.horizon_ns = carried.ends.horizon_ns.min(horizon_ns);
    }
    let is_careful = latest_ns > carried.ends.horizon_ns;
    if is_careful {
        working.settle_backlog(&mut carried.flows);
    }
    carried.flows.be_careful(is_careful);
}

fn sweep(due: Sweep, options: &Options, carried: &mut Carried, working: &mut Working) {
    working.settle_backlog(&mut carried.flows);
    group_settled(options, carried, working);
    let Carried { flows, groups, gaps, .. } = carried;
    let over = flows.sweep(due);
    for &number in &over {
        if flows.finish_leaving(number) {
            note_gaps(gaps, number, flows.get(number));
            if let Some(groups) = groups {
                groups.group_rest(flows, number, options);
            }
        }
    }
    if let Some(groups) = groups {
        groups.give_up_queries(&over, flows);
    }
    over.into_iter().for_each(|number| flows.settle(number));
    flows.shrink();
}
