//! Passes what flows counted in intervals to their groups.

mod dns_queries;
mod echo_requests;
mod oneway_delays;

use serde::{Deserialize, Serialize};

use crate::flow::intervals::{Count, Duration};
use crate::flow::numbered_datagrams::NumberedDatagram;
use crate::flow::transits::PathOutcome;
use crate::flow::{FlowTable, Found};
use crate::groups::{Grouping, Groups};
use crate::packet::event::{Network, Packet};
use crate::packet::extras::PacketExtras;
use dns_queries::DnsQueries;
use echo_requests::EchoRequests;
use oneway_delays::OnewayDelays;

/// Groups by interval, and what waits to be counted with them.
#[derive(Serialize, Deserialize)]
pub struct GroupStage {
    pub groups: Groups,
    dns_queries: DnsQueries,
    echo_requests: EchoRequests,
    oneway_delays: OnewayDelays,
}

impl GroupStage {
    pub fn new(grouping: Grouping) -> Self {
        Self {
            groups: Groups::new(grouping),
            dns_queries: DnsQueries::default(),
            echo_requests: EchoRequests::default(),
            oneway_delays: OnewayDelays::default(),
        }
    }

    /// Whether what was read back from a checkpoint agrees with itself and the flows.
    pub fn is_sound(&self, flows: &FlowTable) -> bool {
        self.groups.is_sound() && self.dns_queries.flows().all(|flow| flows.has(flow))
    }

    /// The next packet of `flow` is of `time_ns`: if its interval ended, group what it counted.
    #[inline(always)]
    pub fn reach(&mut self, flows: &mut FlowTable, flow: u32, time_ns: i64) {
        if flows.reach(flow, time_ns) {
            self.group_pieces(flows, flow);
        }
    }

    /// Group what flows counted in intervals that ended.
    pub fn group_all_pieces(&mut self, flows: &mut FlowTable) {
        for flow in flows.neighbourhoods() {
            self.group_pieces(flows, flow);
        }
    }

    /// Group the rest of a flow that leaves.
    pub fn group_rest(&mut self, flows: &mut FlowTable, flow: u32) {
        flows.finish_interval(flow);
        self.group_pieces(flows, flow);
    }

    /// Group the rest, after the last packet, of `end_ns`.
    pub fn finish(&mut self, flows: &mut FlowTable, end_ns: i64) {
        for flow in flows.neighbourhoods() {
            flows.finish_intervals(flow, end_ns);
            self.group_pieces(flows, flow);
        }
        for (flow, piece) in self.dns_queries.give_up_all(self.groups.grouping.every) {
            self.groups.on_piece(&piece, (flow, flows.get(flow)));
        }
        self.echo_requests.finish(&mut self.groups);
        self.oneway_delays.settle_all(&mut self.groups);
    }

    /// Count nothing of what waits for an answer: how long is not known.
    pub fn forget_waiting(&mut self) {
        self.dns_queries = DnsQueries::default();
        self.echo_requests = EchoRequests::default();
        std::mem::take(&mut self.oneway_delays).settle_all(&mut self.groups);
    }

    /// Group what became of packets between their ends, by the time at which they were sent.
    pub fn group_outcomes(&mut self, outcomes: &mut Vec<PathOutcome>, flows: &FlowTable) {
        for outcome in outcomes.drain(..) {
            let PathOutcome { found: Found { flow, side }, sent_ns, received_ns, is_segment } = outcome;
            self.groups.change((flow, flows.get(flow)), side, sent_ns, |row| {
                row.counts.change(Count::PathPackets, 1);
                match received_ns {
                    Some(received_ns) => {
                        row.add_duration(Duration::Delay, received_ns.saturating_sub(sent_ns))
                    }
                    None => {
                        row.counts.change(Count::PathLost, 1);
                        row.counts.change(Count::LostBehind, is_segment.into());
                    }
                }
            });
        }
    }

    /// Look for a query of DNS or an answer in a datagram that begins with `payload`.
    pub fn on_datagram(&mut self, found: Found, packet: &Packet, payload: &[u8], flows: &mut FlowTable) {
        let every = self.groups.grouping.every;
        if let Some((flow, piece)) = self.dns_queries.on_datagram(found, packet, payload, every) {
            flows.wake(flow);
            self.groups.on_piece(&piece, (flow, flows.get(flow)));
        }
    }

    /// Look for an echo request or its reply in a packet of ICMP.
    #[inline(never)]
    pub fn on_icmp(&mut self, packet: &Packet, extras: &PacketExtras, source: u32) {
        self.echo_requests.on_icmp(packet, extras, source, &mut self.groups);
    }

    /// Look for a probe or what answers it in a numbered datagram.
    pub fn on_numbered(&mut self, numbered: &NumberedDatagram, network: &Network, source: u32) {
        self.echo_requests.on_numbered(numbered, network, source, &mut self.groups);
        self.oneway_delays.on_numbered(numbered, network, source, &mut self.groups);
    }

    /// Count queries of flows that are over, which waited for longer than these, as unanswered.
    pub fn give_up_queries(&mut self, over: &[u32], flows: &FlowTable) {
        for (flow, piece) in self.dns_queries.give_up(over, self.groups.grouping.every) {
            self.groups.on_piece(&piece, (flow, flows.get(flow)));
        }
    }

    /// Group what the neighbours of `flow` counted.
    #[inline(never)]
    fn group_pieces(&mut self, flows: &mut FlowTable, flow: u32) {
        for (number, piece) in flows.take_pieces(flow) {
            self.groups.on_piece(&piece, (number, flows.get(number)));
        }
    }
}
