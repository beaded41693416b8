//! Packets of simulators, with the point of their path at which they were seen.

use super::Analysis;
use super::collect::Captured;
use crate::flow::tfrc::from_simulation::PacketEvent;
use crate::flow::transits::{Sighted, SightingMeaning, TransitCounters};
use crate::flow::{Found, Seen};
use crate::input::source_summary::SourceSummary;
use crate::packet::event::{Event, NodeLayer, PROTOCOL_TFRC, Packet, PathPoint, Sighting};
use crate::packet::extras::PacketExtras;

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
        if !self.ends.is_off {
            self.ends.is_off = true;
            self.flows.be_careful(false);
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
            _ => return self.flows.find(network),
        };
        if meaning == SightingMeaning::Passed
            && let Some(found) = self.flows.find(network)
            && self.flows.get(found.flow).is_seen_elsewhere(found.side, packet.interface)
        {
            let into = &mut TransitCounters { flows: &mut self.flows, bins: None, outcomes: None };
            self.crossings.on_way(&Sighted { found, packet, sighting }, into);
            return Some(found);
        }
        let Some(found) = self.flows.find_or_open(packet, network, self.source) else {
            summary.untracked_packets += 1;
            return None;
        };
        let seen = &Sighted { found, packet, sighting };
        let crossings = &mut self.crossings;
        let into = &mut TransitCounters {
            flows: &mut self.flows,
            bins: self.bins.as_mut(),
            outcomes: self.groups.is_some().then_some(&mut self.path_outcomes),
        };
        let meaning = match meaning {
            SightingMeaning::Sent => crossings.on_sent(seen, into),
            SightingMeaning::Passed => crossings.on_passed(seen, into),
            SightingMeaning::Received(_) => crossings.on_received(seen, into),
            SightingMeaning::Nothing | SightingMeaning::ReceivedAgain => {
                // A full queue at the source drops packets before queueing them: they count as
                // sent.
                let is_first = counts && sighting.point == PathPoint::Source;
                let meaning = match is_first {
                    true => crossings.on_sent(seen, into),
                    false => SightingMeaning::Nothing,
                };
                crossings.on_dropped(seen, into);
                meaning
            }
        };
        if network.endpoints.protocol == PROTOCOL_TFRC && self.shows_agents() {
            self.take_tfrc(found, packet, meaning);
        }
        self.count_sighting(found, packet, extras, meaning);
        self.group_outcomes();
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
        self.reach(flow, packet.time_ns);
        let outcome = &mut self.outcome;
        outcome.clear();
        let (of, pool) = self.flows.get_with_pool(flow);
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
        match observed.is_counted {
            _ if !self.collects => {}
            true => self.collect(found, &Captured::of(packet, network)),
            false => self.collect_rtt(found, &Captured::of(packet, network)),
        }
    }

    /// Whether packets are counted where agents send and receive them, or on the links next to these.
    pub(super) fn shows_agents(&self) -> bool {
        self.options.layer.is_none_or(|layer| matches!(layer, NodeLayer::Agent | NodeLayer::Link))
    }

    pub(super) fn take_tfrc(&mut self, found: Found, packet: &Packet, meaning: SightingMeaning) {
        let happening = match meaning {
            SightingMeaning::Sent => PacketEvent::Sent,
            SightingMeaning::Received(_) | SightingMeaning::ReceivedAgain => PacketEvent::Arrived,
            SightingMeaning::Nothing | SightingMeaning::Passed => return,
        };
        let Found { flow, side } = found;
        let followed = self.flows.get_mut(flow).transport.non_tcp_mut().tfrc.get_or_insert_default();
        followed.take_simulated((flow, side), happening, packet, &self.options.tfrc, &mut self.tfrc);
    }
}
