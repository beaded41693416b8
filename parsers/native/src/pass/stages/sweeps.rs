//! Sweeps flows that are over out of the table, before the next packets.

use crate::flow::ends::Sweep;
use crate::packet::batch::Batch;
use crate::pass::finish::source_problems::note_gaps;
use crate::pass::state::{Analysis, Carried, Working};

/// Flows that are unpacked before they leave.
const UNPACKED_AT_A_TIME: usize = 4_096;

/// Prepare the flows for these batches.
pub(super) fn end_flows_before(batches: &[Batch], analysis: &mut Analysis) {
    let times = || batches.iter().filter_map(Batch::times_ns);
    let (earliest, latest) = (times().map(|times| times.0).min(), times().map(|times| times.1).max());
    if let Some(times_ns) = earliest.zip(latest) {
        let packets = batches.iter().map(|batch| batch.len() as u32).sum();
        end_flows(times_ns, packets, analysis);
    }
}

/// Prepare the flows for the next `packets`, the earliest and latest of which are of these times.
#[inline(always)]
pub(in crate::pass) fn end_flows(times_ns: (i64, i64), packets: u32, analysis: &mut Analysis) {
    let (earliest_ns, latest_ns) = times_ns;
    analysis.carried.ends.limit_horizon(earliest_ns);
    let is_near = analysis.carried.ends.is_near(latest_ns);
    if is_near || analysis.carried.flows.is_careful() {
        end_flows_near(times_ns, analysis);
    }
    let Analysis { carried, working, .. } = analysis;
    if carried.flows.is_crowded() {
        pack_silent(carried, working);
    }
    carried.ends.note(earliest_ns, packets);
}

/// Pack the flows that have been silent for a while. No segment may wait.
#[cold]
#[inline(never)]
fn pack_silent(carried: &mut Carried, working: &mut Working) {
    if !carried.ends.is_off {
        working.settle_backlog(&mut carried.flows);
        working.group_settled(carried);
        carried.flows.pack(carried.ends.clock_ns());
    }
}

#[cold]
#[inline(never)]
fn end_flows_near(times_ns: (i64, i64), analysis: &mut Analysis) {
    let (earliest_ns, latest_ns) = times_ns;
    if analysis.carried.ends.is_off {
        return analysis.carried.flows.be_careful(false);
    }
    if let Some(due) = analysis.carried.ends.next_sweep(latest_ns) {
        sweep(due, analysis);
        analysis.carried.ends.limit_horizon(earliest_ns);
    }
    let Analysis { carried, working, .. } = analysis;
    let is_careful = carried.ends.is_near(latest_ns);
    if is_careful {
        working.settle_backlog(&mut carried.flows);
    }
    carried.flows.be_careful(is_careful);
}

fn sweep(due: Sweep, analysis: &mut Analysis) {
    let Analysis { carried, working, .. } = analysis;
    working.settle_backlog(&mut carried.flows);
    working.group_settled(carried);
    let over = carried.flows.sweep(due);
    settle(&over, analysis);
}

/// Evaluate flows that no packet is of any more, and let those leave that can.
pub(in crate::pass) fn settle(over: &[u32], analysis: &mut Analysis) {
    let Analysis { carried: Carried { flows, groups, gaps, .. }, results, .. } = analysis;
    if let Some(ledgers) = &mut results.ledgers {
        over.iter().for_each(|&number| ledgers.finish_flow(number));
    }
    for over in over.chunks(UNPACKED_AT_A_TIME) {
        for &number in over {
            if flows.finish_leaving(number) {
                note_gaps(gaps, number, flows.get(number));
                if let Some(groups) = groups {
                    groups.group_rest(flows, number);
                }
            }
        }
        if let Some(groups) = groups {
            groups.give_up_queries(over, flows);
        }
        over.iter().for_each(|&number| flows.settle(number));
        flows.shrink();
    }
}
