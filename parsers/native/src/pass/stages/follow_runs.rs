//! What a thread does that follows the segments of groups of flows.

use super::runs::{Runs, RunsOfGroup};
use crate::flow::bins::{AddedBins, BinsOfGroup};
use crate::flow::tcp::Outcome;
use crate::flow::{FlowGroup, Found};
use crate::input::reading::BATCH;
use crate::packet::batch::Batch;
use crate::packet::captured::Captured;
use crate::packet::extras::PacketExtras;
use crate::packet::plain::PlainSegment;
use crate::pass::collectors::PacketSamples;
use crate::pass::options::Options;
use crate::pass::spool::SpoolOfGroup;

/// A group of flows, the segments of it that wait, and where that is kept what they show.
pub(super) struct Share<'a> {
    pub flows: &'a mut FlowGroup,
    pub runs: &'a RunsOfGroup,
    pub bins: Option<BinsOfGroup<'a>>,
    pub spool: Option<SpoolOfGroup<'a>>,
}

/// What a thread needs, and what it collected.
#[derive(Debug)]
pub(in crate::pass) struct Follower {
    outcome: Outcome,
    pub samples: PacketSamples,
    pub bins: AddedBins,
    pub spooled_bytes: usize,
}

impl Follower {
    pub fn new(options: &Options) -> Self {
        Self {
            outcome: Outcome::default(),
            samples: PacketSamples::new(&options.collectors, options.max_samples, &options.sampled_flows),
            bins: AddedBins::default(),
            spooled_bytes: 0,
        }
    }

    /// Follow the segments of a group that wait.
    pub(super) fn follow<const COLLECTS: bool>(
        &mut self,
        mut share: Share<'_>,
        runs: &Runs,
        batches: &[Batch],
    ) {
        for (flow, segments) in runs.of_group(share.runs) {
            for (index, side) in segments {
                let (segment, extras) = segment_at(batches, index);
                let found = Found { flow, side };
                if COLLECTS {
                    self.outcome.clear();
                }
                share.flows.on_plain(found, segment, extras, &mut self.outcome);
                if COLLECTS {
                    self.samples.turn = Some(index as u16);
                    self.collect(found, segment, &mut share);
                }
            }
        }
    }

    #[inline(always)]
    fn collect(&mut self, found: Found, segment: &PlainSegment, share: &mut Share<'_>) {
        let captured = Captured::plain(segment);
        if let Some(bins) = &mut share.bins
            && !self.outcome.is_copy()
        {
            bins.add(found, &captured, &self.outcome, &mut self.bins);
        }
        self.samples.collect(found, &captured, &self.outcome, true);
        if let Some(spool) = &mut share.spool {
            self.spooled_bytes += spool.add(found, segment, share.flows.flow(found.flow), &self.outcome);
        }
    }
}

/// The segment at `index` among all packets of the batches, all but the last of which are full.
#[inline(always)]
pub(super) fn segment_at(batches: &[Batch], index: usize) -> (&PlainSegment, &PacketExtras) {
    let batch = &batches[index / BATCH];
    (batch.segment(index % BATCH), batch.extras())
}
