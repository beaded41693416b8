//! Passes a batch of packets to their flows: flow by flow, or queued until there are several of the
//! same flow.

use super::follow_runs::{Follower, Share, segment_at};
use super::runs::Runs;
use super::sweeps::{end_flows, end_flows_before};
use crate::flow::bins::AddedBins;
use crate::flow::{FlowTable, Found, LOOK_UPS};
use crate::input::reading::BATCH;
use crate::input::source_summary::SourceSummary;
use crate::packet::batch::{Batch, Item};
use crate::packet::captured::Captured;
use crate::packet::event::{Packet, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::plain::PlainSegment;
use crate::pass::options::Options;
use crate::pass::state::{Analysis, Results, Working};

/// Batches that are taken together: enough for several threads.
pub(in crate::pass) const BATCHES: usize = 8;
const _: () = assert!(BATCHES * BATCH <= Runs::MOST);

/// Fewer segments are followed by one thread: to wake others would take longer.
const MOST_OF_ONE_THREAD: usize = 1_024;

/// Number of flows whose state fits in the caches: up to here packets go to their flows at once.
const CACHED_FLOWS: usize = 1_024;

impl Analysis {
    /// [`Analysis::take`] for many packets: batches that are full, but for the last one.
    pub(in crate::pass) fn take_batches(&mut self, batches: &[Batch], summary: &mut SourceSummary) {
        self.working.runs.begin(batches.len() * BATCH);
        end_flows_before(batches, self);
        let is_careful = self.carried.flows.is_careful();
        for number in 0..batches.len() {
            if is_careful {
                self.settle_runs(batches);
                end_flows_before(&batches[number..=number], self);
            }
            self.take_batch(batches, number, summary);
        }
        self.settle_runs(batches);
        self.working.group_settled(&mut self.carried);
    }

    /// The same for one of the batches. What waits is set aside if there are many flows and nothing
    /// is collected in the order of packets.
    fn take_batch(&mut self, batches: &[Batch], number: usize, summary: &mut SourceSummary) {
        let batch = &batches[number];
        self.carried.appended.begin(batch);
        if !batch.clock_steps().is_empty() {
            self.settle_runs(batches);
            return self.take_batch_with_steps(batch, summary);
        }
        let is_by_flow = !self.carried.appended.concerns(batch)
            && !self.carried.flows.is_careful()
            && !self.is_in_order(batch);
        if is_by_flow && (self.results.collects || self.carried.flows.live() < CACHED_FLOWS) {
            return self.take_batch_by_flow(batches, number, summary);
        }
        self.settle_runs(batches);
        let extras = batch.extras();
        if self.carried.appended.concerns(batch) {
            self.take_batch_in_doubt(batch, summary);
        } else if self.carried.flows.is_careful() {
            for item in batch.items() {
                self.end_flows_before(item.time_ns());
                self.take_item(item, extras, summary);
            }
        } else if is_by_flow {
            self.take_batch_later(batch, summary);
        } else {
            for item in batch.items() {
                self.take_item(item, extras, summary);
            }
        }
    }

    /// Take a batch in which packets may come again.
    #[cold]
    pub(super) fn take_batch_in_doubt(&mut self, batch: &Batch, summary: &mut SourceSummary) {
        self.working.settle_backlog(&mut self.carried.flows);
        let extras = batch.extras();
        let mut latest_ns = batch.latest_before_step_back_ns().unwrap_or(i64::MIN);
        for item in batch.items() {
            let packet = item.to_packet();
            let is_known = self.carried.appended.is_repeating(&packet, extras, latest_ns)
                && self.take_again(&packet, extras);
            if !is_known {
                self.take(&packet, extras, summary);
            }
            latest_ns = latest_ns.max(packet.time_ns);
        }
    }

    /// Take a batch in which the clock was set: no time is measured across.
    #[cold]
    fn take_batch_with_steps(&mut self, batch: &Batch, summary: &mut SourceSummary) {
        self.working.settle_backlog(&mut self.carried.flows);
        for (index, item) in batch.items().enumerate() {
            if batch.clock_steps().contains(&index) {
                self.forget_times();
            }
            self.end_flows_before(item.time_ns());
            self.take_item(item, batch.extras(), summary);
        }
    }

    /// Nothing later may be measured from the packets so far.
    pub(in crate::pass) fn forget_times(&mut self) {
        self.carried.flows.forget_times();
        if let Some(groups) = &mut self.carried.groups {
            groups.forget_waiting();
        }
    }

    /// Whether packets have to be followed in the order of the file.
    fn is_in_order(&self, batch: &Batch) -> bool {
        self.results.follows_connections()
            || self.results.bins.as_ref().is_some_and(|bins| !bins.takes_any_order(BATCHES * BATCH))
            || self.is_all_sightings(batch)
    }

    /// Follow the segments that wait.
    fn settle_runs(&mut self, batches: &[Batch]) {
        if !self.working.runs.is_empty() {
            let Self { options, carried, working, results } = self;
            match results.collects {
                true => follow_runs::<true>(batches, options, &mut carried.flows, working, results),
                false => follow_runs::<false>(batches, options, &mut carried.flows, working, results),
            }
            working.runs.clear();
            if let Some(groups) = &mut carried.groups {
                groups.group_all_pieces(&mut carried.flows);
            }
        }
        if self.results.collects {
            self.results
                .samples
                .put_in_order(self.working.followers.iter_mut().map(|follower| &mut follower.samples));
        }
    }

    /// Follow the segments of a flow that wait, before a packet that cannot.
    fn settle_run(&mut self, flow: u32, batches: &[Batch]) {
        let mut runs = std::mem::take(&mut self.working.runs);
        for (index, side) in runs.take(flow) {
            let (segment, extras) = segment_at(batches, index);
            let found = Found { flow, side };
            if self.results.collects {
                self.results.samples.turn = Some(index as u16);
                self.follow_plain::<true>(found, segment, extras);
            } else {
                self.follow_plain::<false>(found, segment, extras);
            }
        }
        self.working.runs = runs;
    }

    /// Look up the flows in order, and let plain segments wait.
    fn take_batch_by_flow(&mut self, batches: &[Batch], number: usize, summary: &mut SourceSummary) {
        let mut items = (number * BATCH..).zip(batches[number].items());
        while let Some((index, item)) = items.next() {
            match item {
                Item::Plain(segment) => {
                    match self.carried.flows.find_or_open_plain(segment, self.carried.source) {
                        Some(found) => {
                            self.working.runs.add(index, found, || self.carried.flows.place(found.flow))
                        }
                        None => summary.untracked_packets += 1,
                    }
                }
                Item::Other(packet) => {
                    self.take_others((index, packet), &mut items, (batches, number), summary);
                }
            }
        }
    }

    /// Take a packet that is no plain segment, and those that follow up to the next one that is. Apart from
    /// the loop over plain segments, which otherwise has too few registers.
    #[inline(never)]
    fn take_others<'a>(
        &mut self,
        first: (usize, &'a Packet),
        items: &mut (impl Iterator<Item = (usize, Item<'a>)> + Clone),
        (batches, number): (&'a [Batch], usize),
        summary: &mut SourceSummary,
    ) {
        let mut next = Some(first);
        while let Some((index, packet)) = next {
            if !self.working.runs.is_empty() {
                self.settle_before(packet, batches);
            }
            if self.results.collects {
                self.results.samples.turn = Some(index as u16);
            }
            self.take(packet, batches[number].extras(), summary);
            if self.results.collects {
                self.results.samples.turn = None;
            }
            let mut after = items.clone();
            next = match after.next() {
                Some((index, Item::Other(packet))) => {
                    *items = after;
                    Some((index, packet))
                }
                _ => None,
            };
        }
    }

    /// Follow the segments that wait for those that a packet may depend on.
    #[inline(never)]
    fn settle_before(&mut self, packet: &Packet, batches: &[Batch]) {
        if is_plain(packet, Transport::Udp) {
            return;
        }
        if is_plain(packet, Transport::Tcp) && !self.carried.flows.has_tunnels() {
            if let Some(found) = self.carried.flows.find(&packet.network) {
                self.settle_run(found.flow, batches);
            }
        } else {
            self.settle_runs(batches);
        }
    }

    /// Pass a plain segment to its flow, and collect what it shows.
    #[inline(always)]
    pub(super) fn follow_plain<const COLLECTS: bool>(
        &mut self,
        found: Found,
        segment: &PlainSegment,
        extras: &PacketExtras,
    ) {
        if COLLECTS {
            self.working.outcome.clear();
        }
        self.reach_segment(found, segment.time_ns, segment.tcp.seq, segment.payload);
        let (flow, pool) = self.carried.flows.get_with_pool(found.flow);
        flow.on_plain(found.side, segment, extras, pool, &mut self.working.outcome);
        if COLLECTS {
            if self.results.follows_connections()
                && let Some(connection) = &flow.transport.tcp
                && !self.working.outcome.is_copy()
            {
                let packet = (&segment.to_packet(), extras.sack(segment.tcp.options.sack));
                let place = (found.flow, found.side);
                self.results.follow_connection(place, connection, packet, &self.working.outcome);
            }
            self.results.collect(found, &Captured::plain(segment), &self.working.outcome);
            if let Some(spool) = &mut self.results.spool {
                spool.add_plain(found, segment, self.carried.flows.get(found.flow));
            }
        }
    }

    /// Prepare the flows for the next packet, of this time.
    #[inline(always)]
    pub(in crate::pass) fn end_flows_before(&mut self, time_ns: i64) {
        end_flows((time_ns, time_ns), 1, self);
    }

    /// [`Analysis::take`] for a packet of any kind.
    #[inline(always)]
    pub(in crate::pass) fn take_item(
        &mut self,
        item: Item<'_>,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        match item {
            Item::Plain(segment) => self.take_plain(segment, extras, summary),
            Item::Other(packet) => self.take(packet, extras, summary),
        }
    }

    /// Find the flow of a plain segment and pass the segment to it.
    #[inline(always)]
    fn take_plain(
        &mut self,
        segment: &PlainSegment,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        let Some(found) = self.carried.flows.find_or_open_plain(segment, self.carried.source) else {
            summary.untracked_packets += 1;
            return None;
        };
        if self.results.collects {
            self.follow_plain::<true>(found, segment, extras);
        } else {
            self.follow_plain::<false>(found, segment, extras);
        }
        Some(found)
    }

    /// Look up the flows of many packets together, and queue those that can be.
    fn take_batch_later(&mut self, batch: &Batch, summary: &mut SourceSummary) {
        let mut items = batch.items();
        let mut found = [None; LOOK_UPS];
        while self.carried.flows.find_each(items.clone(), &mut found) > 0 {
            let flows_before = self.carried.flows.len();
            for (found, item) in found.into_iter().zip(items.by_ref()) {
                // A flow opened since may have taken over the five-tuple.
                let is_known = self.carried.flows.len() == flows_before;
                self.take_later(item, batch.extras(), found.filter(|_| is_known), summary);
            }
        }
    }

    /// Whether none of the packets can be set aside or has to wait for any that were.
    fn is_all_sightings(&self, batch: &Batch) -> bool {
        let is_sighting = |item| matches!(item, Item::Other(packet) if packet.sighting.is_some());
        self.working.backlog.is_empty() && batch.items().all(is_sighting)
    }

    /// Set a packet aside if its flow was `found` and it is of the usual kind, else take it.
    #[inline(always)]
    fn take_later(
        &mut self,
        item: Item<'_>,
        extras: &PacketExtras,
        found: Option<Found>,
        summary: &mut SourceSummary,
    ) {
        if let (Some(found), Item::Other(packet)) = (found, item)
            && can_wait(item)
            && self.take_copy(found, packet, &packet.network, extras)
        {
            return;
        }
        if let Some(found) = found
            && can_wait(item)
            && !self.carried.flows.is_doubtful(found.flow)
            && self
                .working
                .backlog
                .set_aside(item, found, extras, &mut self.carried.flows, &self.working.threads)
        {
            self.note_tunnel(found, item, extras);
            // Its number, if it has one, is not in the queued form, and can be counted at once.
            if let Item::Other(packet) = item {
                match packet.network.transport {
                    Transport::Udp => self.datagrams().take_datagram(found, packet, extras),
                    _ if packet.network.opening.is_some() => {
                        self.note_opening(found, &packet.network, extras);
                    }
                    _ => {}
                }
            }
            return;
        }
        self.take_in_turn(item, extras, summary);
    }

    /// Take a packet after those of its flow that were set aside.
    #[inline(never)]
    fn take_in_turn(&mut self, item: Item<'_>, extras: &PacketExtras, summary: &mut SourceSummary) {
        let found = match item {
            Item::Plain(segment) => self.carried.flows.find_endpoints(&segment.endpoints()),
            Item::Other(packet) if packet.is_ip => self.carried.flows.find_in_lane(&packet.network),
            Item::Other(_) => None,
        };
        if let Some(found) = found {
            self.working.backlog.settle(found.flow, &mut self.carried.flows);
        }
        self.take_item(item, extras, summary);
    }
}

/// Follow the segments that wait: group of flows by group of flows, several threads at a time.
#[inline(never)]
fn follow_runs<const COLLECTS: bool>(
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

/// Whether a packet of this transport is whole, and seen by a capture outside of frames.
fn is_plain(packet: &Packet, transport: Transport) -> bool {
    let network = &packet.network;
    packet.is_ip
        && packet.sighting.is_none()
        && packet.frame.is_none()
        && network.transport == transport
        && network.fragment.is_none()
}

/// Whether a packet's effect on its flow may be processed later.
#[inline(always)]
fn can_wait(item: Item<'_>) -> bool {
    match item {
        Item::Plain(_) => true,
        Item::Other(packet) => {
            packet.is_ip && packet.sighting.is_none() && packet.frame.is_none() && packet.network.is_flow()
        }
    }
}
