//! Packets of simulators, with the point of their path at which they were seen.

use crate::flow::tfrc::from_simulation::PacketEvent;
use crate::flow::transits::{Sighted, SightingMeaning, TransitCounters};
use crate::flow::{Found, Seen};
use crate::input::source_summary::SourceSummary;
use crate::packet::captured::Captured;
use crate::packet::event::{Event, NodeLayer, PROTOCOL_TFRC, Packet, PathPoint, Sighting};
use crate::packet::extras::PacketExtras;
use crate::pass::state::Analysis;

impl Analysis {
    /// Process a packet that a simulator saw. It counts for its flow where it was sent, where it
    /// arrived, and where it was dropped; elsewhere it only has a flow.
    pub(super) fn take_sighting(
        &mut self,
        packet: &Packet,
        sighting: &Sighting,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        if !self.carried.ends.is_off {
            self.carried.ends.is_off = true;
            self.carried.flows.be_careful(false);
        }
        let network = &packet.network;
        if !network.has_ports || !matches!(network.endpoints.protocol, 6 | 17 | PROTOCOL_TFRC) {
            return None;
        }
        let counts = self.options.layer.is_none_or(|layer| layer == sighting.layer);
        let meaning = match (packet.event, sighting.point) {
            (Some(Event::Sent | Event::Enqueued), PathPoint::Source) if counts => SightingMeaning::Sent,
            (Some(Event::Received), PathPoint::Destination) if counts => SightingMeaning::Received(None),
            (Some(Event::Dropped), _) => SightingMeaning::Nothing,
            (_, PathPoint::Between) if counts => SightingMeaning::Passed,
            _ => return self.carried.flows.find(network),
        };
        if meaning == SightingMeaning::Passed
            && let Some(found) = self.carried.flows.find(network)
            && self.carried.flows.get(found.flow).is_seen_elsewhere(found.side, packet.interface)
        {
            let into = &mut TransitCounters { flows: &mut self.carried.flows, bins: None, outcomes: None };
            self.working.transits.on_way(&Sighted { found, packet, sighting }, into);
            return Some(found);
        }
        let Some(found) = self.carried.flows.find_or_open(packet, network, self.carried.source) else {
            summary.untracked_packets += 1;
            return None;
        };
        let seen = &Sighted { found, packet, sighting };
        let transits = &mut self.working.transits;
        let into = &mut TransitCounters {
            flows: &mut self.carried.flows,
            bins: self.results.bins.as_mut(),
            outcomes: self.carried.groups.is_some().then_some(&mut self.working.path_outcomes),
        };
        let meaning = match meaning {
            SightingMeaning::Sent => transits.on_sent(seen, into),
            SightingMeaning::Passed => transits.on_passed(seen, into),
            SightingMeaning::Received(_) => transits.on_received(seen, into),
            SightingMeaning::Nothing | SightingMeaning::ReceivedAgain => {
                // A full queue at the source drops packets before queueing them: they count as
                // sent.
                let is_first = counts && sighting.point == PathPoint::Source;
                let meaning = match is_first {
                    true => transits.on_sent(seen, into),
                    false => SightingMeaning::Nothing,
                };
                transits.on_dropped(seen, into);
                meaning
            }
        };
        if network.endpoints.protocol == PROTOCOL_TFRC && self.shows_agents() {
            self.take_tfrc(found, packet, meaning);
        }
        self.count_sighting(found, packet, extras, meaning);
        if let Some(groups) = &mut self.carried.groups {
            groups.group_outcomes(&mut self.working.path_outcomes, &self.carried.flows);
        }
        Some(found)
    }

    /// Count a packet for its flow, and move the connection on, where the trace shows these best.
    fn count_sighting(
        &mut self,
        found: Found,
        packet: &Packet,
        extras: &PacketExtras,
        meaning: SightingMeaning,
    ) {
        let point = match meaning {
            SightingMeaning::Nothing | SightingMeaning::ReceivedAgain => return,
            SightingMeaning::Sent => PathPoint::Source,
            SightingMeaning::Passed => PathPoint::Between,
            SightingMeaning::Received(_) => PathPoint::Destination,
        };
        let Found { flow, side } = found;
        let network = &packet.network;
        if let Some(groups) = &mut self.carried.groups {
            groups.reach(&mut self.carried.flows, flow, packet.time_ns);
        }
        let outcome = &mut self.working.outcome;
        outcome.clear();
        let (of, pool) = self.carried.flows.get_with_pool(flow);
        let observed = of.observe(side, packet, point, pool);
        if point == PathPoint::Between && !observed.is_counted {
            return;
        }
        if let SightingMeaning::Received(Some(sent_ns)) = meaning
            && let Some(payload) = network.payload_bytes
        {
            of.on_arrival(side, network, (0, payload), sent_ns);
        }
        let seen = Seen { side, packet, network, extras };
        of.on(&seen, Some(point), pool, outcome);
        if point == PathPoint::Destination && observed.is_counted {
            of.count(&seen);
        }
        let captured = Captured::of(packet, network);
        match observed.is_counted {
            _ if !self.results.collects => {}
            true => self.results.collect(found, &captured, &self.working.outcome),
            false => self.results.collect_rtt(found, &captured, &self.working.outcome),
        }
    }

    /// Whether packets are counted where agents send and receive them, or on the links next to these.
    fn shows_agents(&self) -> bool {
        self.options.layer.is_none_or(|layer| matches!(layer, NodeLayer::Agent | NodeLayer::Link))
    }

    fn take_tfrc(&mut self, found: Found, packet: &Packet, meaning: SightingMeaning) {
        let happening = match meaning {
            SightingMeaning::Sent => PacketEvent::Sent,
            SightingMeaning::Received(_) | SightingMeaning::ReceivedAgain => PacketEvent::Arrived,
            SightingMeaning::Nothing | SightingMeaning::Passed => return,
        };
        let Found { flow, side } = found;
        let followed = self.carried.flows.get_mut(flow).transport.non_tcp_mut().tfrc.get_or_insert_default();
        followed.take_simulated((flow, side), happening, packet, &self.options.tfrc, &mut self.results.tfrc);
    }
}
