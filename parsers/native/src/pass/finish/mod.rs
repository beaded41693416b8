//! The end of a pass: emits pending samples and reports the limits that were reached.

pub(super) mod borrowed_rtt;
pub(super) mod cut_flows;
mod missing_ends;
mod place_of_hosts;
pub(super) mod source_problems;

use std::collections::HashMap;
use std::io;

use super::collectors::RttSample;
use super::options::Options;
use super::state::{Analysis, Carried};
use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::flow::delivery::Deliveries;
use crate::flow::ends::FlowEnd;
use crate::flow::tcp::causes::Ledgers;
use crate::flow::tcp::sequence_graph::SequenceGraphs;
use crate::flow::tfrc::{LossEventSample, TfrcSamples};
use crate::flow::transits::TransitCounters;
use crate::flow::{Flow, FlowTable};
use crate::packet::key::Side;
use crate::pass::stages::sweeps::settle;
use crate::pass::wifi_links::WifiLinks;
use borrowed_rtt::RttSources;
use cut_flows::{CutFlows, unknown_cuts};
use missing_ends::{find_hidden_arrivals, find_missing_ends};
use place_of_hosts::find_places;
use source_problems::source_problems;

/// Flows beyond which tables are made of packed states: what needs the memory next is not the core.
const MOST_UNPACKED: usize = 200_000;

impl Analysis {
    /// Find what is only known after the last source, and report the bounds that were reached. To be called once.
    pub fn finish(&mut self) {
        settle(&self.carried.flows.packed(), self);
        let carried = &mut self.carried;
        find_missing_ends(&mut carried.flows, &carried.sources);
        self.find_cut_flows();
        self.finish_transits();
        self.check_times();
        self.warn_empty_layer();
        let Self { options, carried, results, .. } = self;
        carried.flows.iter_mut().for_each(|flow| flow.transport.finish());
        let read_hosts = find_places(&mut carried.flows);
        carried.flows.iter_mut().for_each(|flow| find_hidden_arrivals(flow, options));
        if let Some(groups) = &mut carried.groups {
            groups.finish(&mut carried.flows, results.end_ns);
        }
        finish_tfrc(&mut carried.flows, &mut results.tfrc, options);
        results.ledgers.iter_mut().for_each(Ledgers::finish);
        results.graphs.iter_mut().for_each(SequenceGraphs::finish);
        let (rtt_sources, read) = RttSources::find(&carried.flows, options);
        results.rtt_sources = rtt_sources;
        self.note_unread(read_hosts.and(read));
        let Carried { flows, gaps, sources, problems, .. } = &mut self.carried;
        problems.extend(source_problems(flows, gaps, sources));
        self.report_bounds();
        if self.carried.flows.live() > MOST_UNPACKED {
            self.carried.flows.settle_rest();
        }
    }

    /// How a flow ended; None if the trace has no packet of it.
    pub fn end_of(&self, flow: &Flow) -> Option<FlowEnd> {
        let end = flow.end(&self.options.idle, self.results.end_ns)?;
        // All packets of a path are of its flows.
        let goes_on = self.carried.ends.is_off || self.results.pairing.is_some();
        Some(if goes_on && end == FlowEnd::Idle { FlowEnd::Open } else { end })
    }

    /// Mark the flows that began before the stretch or went on after it.
    fn find_cut_flows(&mut self) {
        let outside = std::mem::take(&mut self.working.outside);
        if outside.is_empty() {
            return;
        }
        if outside.has_more {
            self.bound(unknown_cuts());
        }
        let (cut_flows, read) = CutFlows::find(outside, &self.carried.flows);
        self.results.cut_flows = cut_flows;
        self.note_unread(read);
    }

    /// Give up the packets that are still between their two ends.
    fn finish_transits(&mut self) {
        let Self { carried, working, results, .. } = self;
        working.transits.finish(&mut TransitCounters {
            flows: &mut carried.flows,
            bins: results.bins.as_mut(),
            outcomes: carried.groups.is_some().then_some(&mut working.path_outcomes),
        });
        if let Some(groups) = &mut carried.groups {
            groups.group_outcomes(&mut working.path_outcomes, &carried.flows);
        }
    }

    /// Without times, or with a clock that stands still, no time between packets is known.
    fn check_times(&mut self) {
        let with_packets = || self.carried.sources.iter().filter(|source| source.packets > 0);
        let packets: u64 = with_packets().map(|source| source.packets).sum();
        let start_ns = with_packets().map(|source| source.start_ns).min();
        let end_ns = with_packets().map(|source| source.end_ns).max();
        self.results.end_ns = end_ns.unwrap_or(i64::MIN);
        self.results.has_times = packets < 2 || start_ns != end_ns;
        if !self.results.has_times {
            if let Some(rtt) = self.results.samples.of_mut::<RttSample>() {
                rtt.kept.clear();
            }
            let message = format!("all {packets} packets have the same time");
            self.bound(ReadError::whole(ProblemKind::ClockStill, message).hint(Hint::ClockStill));
        }
    }

    /// Warn if the trace does not have the requested layer.
    fn warn_empty_layer(&mut self) {
        let Some(layer) = self.options.layer else { return };
        let mut deliveries =
            self.carried.flows.here().filter_map(|flow| self.carried.flows.get(flow).deliveries());
        let counted = |of: &Deliveries| [Side::Low, Side::High].iter().any(|&side| of.of(side).is_counted());
        let is_empty = !deliveries.any(counted);
        drop(deliveries);
        if is_empty {
            let message = format!("no packet is seen at the layer `{}`, so none is counted", layer.name());
            self.bound(ReadError::whole(ProblemKind::Imprecise, message).hint(Hint::EmptyLayer));
        }
    }

    fn report_bounds(&mut self) {
        // Documents may contain any number.
        let untracked =
            self.carried.sources.iter().map(|source| source.untracked_packets).fold(0, u64::saturating_add);
        if untracked > 0 {
            let message = format!(
                "more than {} flows at a time: {untracked} packets of further flows were counted but not analysed",
                self.options.max_flows
            );
            self.bound(ReadError::whole(ProblemKind::FlowLimit, message).hint(Hint::FlowLimit));
        }
        if let Some(failure) = self.carried.flows.spool_failure() {
            let message = format!("flows that are over stay in memory: no temporary file ({failure})");
            self.bound(ReadError::whole(ProblemKind::Imprecise, message).hint(Hint::NoSpool));
        }
        if self.carried.links.untracked > 0 {
            let message = format!(
                "more than {} links between stations: {} frames of further links were left out",
                WifiLinks::MOST,
                self.carried.links.untracked
            );
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(Hint::LinkLimit));
        }
        if let Some((rows, left_out)) =
            self.carried.groups.as_ref().map(|of| (of.groups.len(), of.groups.left_out))
            && left_out > 0
        {
            let message = format!(
                "more than {rows} rows of groups: {left_out} packets of further groups or intervals were left out"
            );
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(Hint::GroupLimit));
        }
        let late = self.carried.groups.as_ref().map_or(0, |of| of.groups.late);
        if late > 0 {
            let message = format!(
                "{late} late changes of groups are missing: their rows had been written and are no longer kept"
            );
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(Hint::GroupLimit));
        }
        for (what, left_out) in self.results.left_out().collect::<Vec<_>>() {
            let message =
                format!("{left_out} {what} left out: only the first {} are kept", self.options.max_samples);
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(Hint::SampleLimit));
        }
    }

    /// Report that flows that are over could not be read.
    fn note_unread(&mut self, read: io::Result<()>) {
        if let Err(error) = read {
            let message = format!("flows that are over cannot be read: {error}");
            self.bound(ReadError::whole(ProblemKind::ReadFailed, message));
        }
    }

    fn bound(&mut self, error: ReadError) {
        let first = self.carried.sources.first().map_or("", |source| &source.source);
        let packets_before = self.carried.sources.iter().map(|source| source.packets).sum();
        let problem = Problem { packets_before, ..Problem::of_source(first, error) };
        self.carried.problems.push(problem);
    }
}

/// Emit the pending samples of TFRC's ends, and sort by time.
fn finish_tfrc(flows: &mut FlowTable, samples: &mut TfrcSamples, options: &Options) {
    for number in flows.here().collect::<Vec<_>>() {
        let flow = flows.get_mut(number);
        if let Some(ends) = flow.transport.non_tcp_if_any().and_then(|non_tcp| non_tcp.tfrc.as_deref_mut()) {
            ends.finish(number, samples);
        }
    }
    let is_of_tfrc = |flow: u32, side| {
        flows.if_here(flow).and_then(|flow| flow.transport.tfrc()).is_some_and(|of| of.has(side))
    };
    samples.loss_events.kept.retain(|sample| is_of_tfrc(sample.flow, sample.side));
    samples.loss_intervals.kept.retain(|sample| is_of_tfrc(sample.flow, sample.side));
    drop_other_losses(flows, samples, options);
    samples.feedback.kept.sort_by_key(|sample| sample.sent_ns);
    samples.loss_events.kept.sort_by_key(|sample| sample.time_ns);
    samples.findings.kept.sort_by_key(|sample| sample.at.time_ns);
}

/// Loss events are found from missing packets, and from reports of losses downstream of the
/// capture. Which of these applies is only known at the end.
fn drop_other_losses(flows: &FlowTable, samples: &mut TfrcSamples, options: &Options) {
    let mut shows = HashMap::new();
    samples.loss_events.kept.retain(|event| {
        let LossEventSample { flow, side, is_inferred, .. } = *event;
        let shown = shows.entry((flow, side));
        *shown.or_insert_with(|| options.shows_arrivals(flows.get(flow), side)) != is_inferred
    });
}
