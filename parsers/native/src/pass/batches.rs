//! Passes a batch of packets to their flows: flow by flow, or queued until there are several of the
//! same flow.

use super::collect::Captured;
use super::{Analysis, is_flow};
use crate::flow::{Found, LOOK_UPS};
use crate::input::source_summary::SourceSummary;
use crate::packet::batch::{Batch, Item};
use crate::packet::event::{Packet, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::plain::PlainSegment;

/// Number of flows whose state fits in the caches: up to here packets go to their flows at once.
const CACHED_FLOWS: usize = 1_024;

impl Analysis {
    /// [`Analysis::take`] for many packets, set aside if there are many flows and nothing is
    /// collected in the order of packets.
    pub(super) fn take_batch(&mut self, batch: &Batch, summary: &mut SourceSummary) {
        let extras = batch.extras();
        self.end_flows_before(batch);
        self.appended.begin(batch);
        if self.appended.concerns(batch) {
            self.take_batch_in_doubt(batch, summary);
        } else if self.flows.is_careful() {
            for item in batch.items() {
                self.end_flows(item.time_ns(), item.time_ns(), 1);
                self.take_item(item, extras, summary);
            }
        } else if self.is_in_order(batch) {
            for item in batch.items() {
                self.take_item(item, extras, summary);
            }
        } else if self.collects || self.flows.live() < CACHED_FLOWS {
            self.take_batch_by_flow(batch, summary);
        } else {
            self.take_batch_later(batch, summary);
        }
        self.group_settled();
    }

    /// Whether packets have to be followed in the order of the file.
    fn is_in_order(&self, batch: &Batch) -> bool {
        self.details.is_some()
            || self.bins.as_ref().is_some_and(|bins| !bins.takes_any_order(batch.len()))
            || self.is_all_sightings(batch)
    }

    /// Look up the flows in order, and follow the plain segments flow by flow.
    fn take_batch_by_flow(&mut self, batch: &Batch, summary: &mut SourceSummary) {
        self.runs.begin(batch.len());
        for (index, item) in batch.items().enumerate() {
            match item {
                Item::Plain(segment) => match self.flows.find_or_open_plain(segment, self.source) {
                    Some(found) => self.runs.add(index, found),
                    None => summary.untracked_packets += 1,
                },
                Item::Other(packet) => {
                    if self.has_samples() || !is_plain_datagram(packet) {
                        self.settle_runs(batch);
                    }
                    self.take(packet, batch.extras(), summary);
                }
            }
        }
        self.settle_runs(batch);
    }

    /// Follow the segments that wait.
    fn settle_runs(&mut self, batch: &Batch) {
        let mut taken = 0;
        while let Some((flow, first)) = self.runs.take(taken) {
            taken += 1;
            if self.collects {
                self.follow_run::<true>(flow, first, batch);
            } else {
                self.follow_run::<false>(flow, first, batch);
            }
        }
        self.runs.clear();
        if self.collects {
            self.rtt.put_in_order();
            self.losses.put_in_order();
            self.rounds.put_in_order();
        }
    }

    /// Whether samples are collected whose rows are in the order of packets.
    fn has_samples(&self) -> bool {
        self.rtt.wanted || self.losses.wanted || self.rounds.wanted
    }

    /// Follow the segments of flow `number` that wait, the first of them at index `first`.
    #[inline(never)]
    fn follow_run<const COLLECTS: bool>(&mut self, number: u32, first: usize, batch: &Batch) {
        let mut index = first;
        while let Some((side, next)) = self.runs.step(index) {
            let (found, segment) = (Found { flow: number, side }, batch.segment(index));
            self.follow_plain::<COLLECTS>(found, segment, batch.extras(), Some(index as u16));
            index = next;
        }
    }

    /// Pass a plain segment to its flow, and collect what it shows; `turn` is its index in the batch
    /// if it is not followed in order.
    #[inline(always)]
    fn follow_plain<const COLLECTS: bool>(
        &mut self,
        found: Found,
        segment: &PlainSegment,
        extras: &PacketExtras,
        turn: Option<u16>,
    ) {
        if COLLECTS {
            self.outcome.clear();
        }
        self.reach_segment(found, segment.time_ns, segment.tcp.seq, segment.payload);
        let (flow, pool) = self.flows.get_with_pool(found.flow);
        flow.on_plain(found.side, segment, extras, pool, &mut self.outcome);
        if COLLECTS {
            if let (Some(details), Some(connection)) = (&mut self.details, &flow.tcp)
                && !self.outcome.is_copy()
            {
                let sack = extras.sack(segment.tcp.options.sack);
                let place = (found.flow, found.side);
                details.take(place, connection, &segment.to_packet(), sack, &self.outcome);
            }
            self.collect(found, &Captured::plain(segment, turn));
            self.spool_plain(found, segment);
        }
    }

    /// [`Analysis::take`] for a packet of any kind.
    #[inline(always)]
    pub(super) fn take_item(
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
        let Some(found) = self.flows.find_or_open_plain(segment, self.source) else {
            summary.untracked_packets += 1;
            return None;
        };
        if self.collects {
            self.follow_plain::<true>(found, segment, extras, None);
        } else {
            self.follow_plain::<false>(found, segment, extras, None);
        }
        Some(found)
    }

    /// Look up the flows of many packets together, and queue those that can be.
    fn take_batch_later(&mut self, batch: &Batch, summary: &mut SourceSummary) {
        let mut items = batch.items();
        let mut found = [None; LOOK_UPS];
        while self.flows.find_each(items.clone(), &mut found) > 0 {
            let flows_before = self.flows.len();
            for (found, item) in found.into_iter().zip(items.by_ref()) {
                // A flow opened since may have taken over the five-tuple.
                let is_known = self.flows.len() == flows_before;
                self.take_later(item, batch.extras(), found.filter(|_| is_known), summary);
            }
        }
    }

    /// Whether none of the packets can be set aside or has to wait for any that were.
    fn is_all_sightings(&self, batch: &Batch) -> bool {
        let is_sighting = |item| matches!(item, Item::Other(packet) if packet.sighting.is_some());
        self.backlog.is_empty() && batch.items().all(is_sighting)
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
            && !self.flows.is_doubtful(found.flow)
            && self.backlog.set_aside(item, found, extras, &mut self.flows)
        {
            self.note_tunnel(found, item, extras);
            // Its number, if it has one, is not in the queued form, and can be counted at once.
            if let Item::Other(packet) = item
                && packet.network.transport == Transport::Udp
            {
                self.take_datagram(found, packet, extras);
            }
            return;
        }
        self.take_in_turn(item, extras, summary);
    }

    /// Take a packet after those of its flow that were set aside.
    #[inline(never)]
    fn take_in_turn(&mut self, item: Item<'_>, extras: &PacketExtras, summary: &mut SourceSummary) {
        let found = match item {
            Item::Plain(segment) => self.flows.find_endpoints(&segment.endpoints()),
            Item::Other(packet) if packet.is_ip => self.flows.find_in_lane(&packet.network),
            Item::Other(_) => None,
        };
        if let Some(found) = found {
            self.backlog.settle(found.flow, &mut self.flows);
        }
        self.take_item(item, extras, summary);
    }
}

/// Whether a packet is a datagram that touches no connection.
fn is_plain_datagram(packet: &Packet) -> bool {
    let network = &packet.network;
    packet.is_ip
        && packet.sighting.is_none()
        && packet.frame.is_none()
        && network.transport == Transport::Udp
        && network.fragment.is_none()
}

/// Whether a packet's effect on its flow may be processed later.
#[inline(always)]
fn can_wait(item: Item<'_>) -> bool {
    match item {
        Item::Plain(_) => true,
        Item::Other(packet) => {
            packet.is_ip && packet.sighting.is_none() && packet.frame.is_none() && is_flow(&packet.network)
        }
    }
}
