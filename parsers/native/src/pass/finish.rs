//! The end of a pass: emits pending samples and reports the limits that were reached.

use std::collections::HashMap;

use super::Analysis;
use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::flow::delivery::Deliveries;
use crate::flow::tfrc::LossEventSample;
use crate::flow::transits::TransitCounters;
use crate::packet::key::Side;
use crate::pass::wifi_links::WifiLinks;

/// Flows beyond which tables are made of packed states: what needs the memory next is not the core.
const MOST_UNPACKED: usize = 200_000;

impl Analysis {
    /// Report the bounds that were reached. To be called once, after the last source.
    pub fn finish(&mut self) {
        self.find_missing_ends();
        self.find_cut_flows();
        let counts = &mut TransitCounters {
            flows: &mut self.flows,
            bins: self.bins.as_mut(),
            outcomes: self.groups.is_some().then_some(&mut self.path_outcomes),
        };
        self.crossings.finish(counts);
        self.group_outcomes();
        self.check_times();
        self.warn_empty_layer();
        self.flows.iter_mut().for_each(|flow| flow.transport.finish());
        self.finish_groups();
        self.finish_tfrc();
        self.find_rtt_sources();
        self.report_source_problems();
        // Documents may contain any number.
        let untracked =
            self.sources.iter().map(|source| source.untracked_packets).fold(0, u64::saturating_add);
        if untracked > 0 {
            let message = format!(
                "more than {} flows at a time: {untracked} packets of further flows were counted but not analysed",
                self.options.max_flows
            );
            self.bound(ReadError::whole(ProblemKind::FlowLimit, message).hint(Hint::FlowLimit));
        }
        if let Some(failure) = self.flows.spool_failure() {
            let message = format!("flows that are over stay in memory: no temporary file ({failure})");
            self.bound(ReadError::whole(ProblemKind::Imprecise, message).hint(Hint::NoSpool));
        }
        if self.links.untracked > 0 {
            let message = format!(
                "more than {} links between stations: {} frames of further links were left out",
                WifiLinks::MOST,
                self.links.untracked
            );
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(Hint::LinkLimit));
        }
        if let Some((rows, left_out)) = self.groups.as_ref().map(|groups| (groups.len(), groups.left_out))
            && left_out > 0
        {
            let message = format!(
                "more than {rows} rows of groups: {left_out} packets of further groups or intervals were left out"
            );
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(Hint::GroupLimit));
        }
        for (what, left_out) in self.left_out().into_iter().filter(|(_, left_out)| *left_out > 0) {
            let message =
                format!("{left_out} {what} left out: only the first {} are kept", self.options.max_samples);
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(Hint::SampleLimit));
        }
        if self.flows.live() > MOST_UNPACKED {
            self.flows.settle_rest();
        }
    }

    /// Emit the pending samples of TFRC's ends, and sort by time.
    pub(super) fn finish_tfrc(&mut self) {
        for number in self.flows.here().collect::<Vec<_>>() {
            let flow = self.flows.get_mut(number);
            if let Some(ends) =
                flow.transport.non_tcp_if_any().and_then(|non_tcp| non_tcp.tfrc.as_deref_mut())
            {
                ends.finish(number, &mut self.tfrc);
            }
        }
        let flows = &self.flows;
        let is_of_tfrc = |flow: u32, side| {
            flows.if_here(flow).and_then(|flow| flow.transport.tfrc()).is_some_and(|of| of.has(side))
        };
        self.tfrc.loss_events.kept.retain(|sample| is_of_tfrc(sample.flow, sample.side));
        self.tfrc.loss_intervals.kept.retain(|sample| is_of_tfrc(sample.flow, sample.side));
        self.drop_other_losses();
        self.tfrc.feedback.kept.sort_by_key(|sample| sample.sent_ns);
        self.tfrc.loss_events.kept.sort_by_key(|sample| sample.time_ns);
        self.tfrc.findings.kept.sort_by_key(|sample| sample.at.time_ns);
    }

    /// Loss events are found from missing packets, and from reports of losses downstream of the
    /// capture. Which of these applies is only known at the end.
    pub(super) fn drop_other_losses(&mut self) {
        let mut kept = std::mem::take(&mut self.tfrc.loss_events.kept);
        let mut shows = HashMap::new();
        kept.retain(|event| {
            let LossEventSample { flow, side, is_inferred, .. } = *event;
            let shown = shows.entry((flow, side));
            *shown.or_insert_with(|| self.shows_arrivals(self.flows.get(flow), side)) != is_inferred
        });
        self.tfrc.loss_events.kept = kept;
    }

    /// Warn if the trace does not have the requested layer.
    pub(super) fn warn_empty_layer(&mut self) {
        let Some(layer) = self.options.layer else { return };
        let mut deliveries = self.flows.here().filter_map(|flow| self.flows.get(flow).deliveries());
        let counted = |of: &Deliveries| [Side::Low, Side::High].iter().any(|&side| of.of(side).is_counted());
        let is_empty = !deliveries.any(counted);
        drop(deliveries);
        if is_empty {
            let message = format!("no packet is seen at the layer `{}`, so none is counted", layer.name());
            self.bound(ReadError::whole(ProblemKind::Imprecise, message).hint(Hint::EmptyLayer));
        }
    }

    pub(super) fn bound(&mut self, error: ReadError) {
        let first = self.sources.first().map(|source| source.source.clone()).unwrap_or_default();
        let packets_before = self.sources.iter().map(|source| source.packets).sum();
        self.problems.push(Problem { source: first, flows: Vec::new(), packet: None, packets_before, error });
    }
}
