//! Follows the segments that wait: group of flows by group of flows, several threads at a time.

use super::runs::{Runs, RunsOfGroup};
use crate::flow::bins::{AddedBins, BinsOfGroup};
use crate::flow::tcp::Outcome;
use crate::flow::{FlowGroup, FlowTable, Found};
use crate::input::reading::BATCH;
use crate::packet::batch::Batch;
use crate::packet::extras::PacketExtras;
use crate::packet::plain::PlainSegment;
use crate::pass::Options;
use crate::pass::collect::{Captured, PacketSamples};
use crate::pass::spool::SpoolOfGroup;
use crate::pass::state::{Results, Working};

/// Fewer segments are followed by one thread: to wake others would take longer.
const MOST_OF_ONE_THREAD: usize = 1_024;

/// A group of flows, the segments of it that wait, and where that is kept what they show.
struct Share<'a> {
    flows: &'a mut FlowGroup,
    runs: &'a RunsOfGroup,
    bins: Option<BinsOfGroup<'a>>,
    spool: Option<SpoolOfGroup<'a>>,
}

/// What a thread needs, and what it collected.
#[derive(Debug)]
pub(in crate::pass) struct Follower {
    outcome: Outcome,
    pub samples: PacketSamples,
    bins: AddedBins,
    spooled_bytes: usize,
}

impl Follower {
    fn new(options: &Options) -> Self {
        Self {
            outcome: Outcome::default(),
            samples: PacketSamples::new(options),
            bins: AddedBins::default(),
            spooled_bytes: 0,
        }
    }

    /// Follow the segments of a group that wait.
    fn follow<const COLLECTS: bool>(&mut self, mut share: Share<'_>, runs: &Runs, batches: &[Batch]) {
        for (flow, segments) in runs.of_group(share.runs) {
            for (index, side) in segments {
                let (segment, extras) = segment_at(batches, index);
                let found = Found { flow, side };
                if COLLECTS {
                    self.outcome.clear();
                }
                share.flows.on_plain(found, segment, extras, &mut self.outcome);
                if COLLECTS {
                    self.samples.set_turn(Some(index as u16));
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
            bins.add(found, &captured.binned(), &self.outcome, &mut self.bins);
        }
        self.samples.collect(found, &captured, &self.outcome);
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

/// Follow the segments that wait.
#[inline(never)]
pub(super) fn follow_runs<const COLLECTS: bool>(
    batches: &[Batch],
    options: &Options,
    flows: &mut FlowTable,
    working: &mut Working,
    results: &mut Results,
) {
    let Working { runs, followers, threads, .. } = working;
    let Results { bins, spool, .. } = results;
    let segments: Vec<usize> = (0..runs.groups().len()).map(|group| runs.segments(group)).collect();
    flows.share_room(|place, _| segments.get(place).copied().unwrap_or(0));
    let before = flows.groups_before();
    let groups = before + runs.groups().len();
    let mut bins_of = bins.as_mut().map(|bins| bins.by_group(groups).skip(before));
    let mut spool_of = spool.as_mut().map(|spool| spool.by_group(groups).skip(before));
    let shares = flows.groups_mut().iter_mut().zip(runs.groups()).map(move |(flows, runs)| Share {
        flows,
        runs,
        bins: bins_of.as_mut().and_then(Iterator::next),
        spool: spool_of.as_mut().and_then(Iterator::next),
    });
    followers.resize_with(threads.count(), || Follower::new(options));
    let at_work = if segments.iter().sum::<usize>() > MOST_OF_ONE_THREAD { threads.count() } else { 1 };
    threads.share(
        shares.filter(|share| !share.runs.is_empty()),
        &mut followers[..at_work],
        |share, follower| {
            follower.follow::<COLLECTS>(share, runs, batches);
        },
    );
    if COLLECTS {
        let mut added = AddedBins::default();
        let mut spooled_bytes = 0;
        for follower in followers {
            added = added.and(std::mem::take(&mut follower.bins));
            spooled_bytes += std::mem::take(&mut follower.spooled_bytes);
        }
        if let Some(bins) = bins {
            bins.settle(added);
        }
        if let Some(spool) = spool {
            spool.count_buffered(spooled_bytes);
        }
    }
}
