//! The meaning of a packet of a pair for its flow.

use std::sync::Arc;

use super::two_readings::PairedReading;
use super::{CaptureNetwork, CapturePair, PairOutcome};
use crate::flow::transits::PathOutcome;
use crate::flow::{Found, Seen};
use crate::input::source_summary::SourceSummary;
use crate::packet::captured::Captured;
use crate::packet::event::{Packet, PathPoint, TcpFlags, Transport};
use crate::packet::extras::{PacketExtras, PayloadHead};
use crate::packet::ip_fields::IpFields;
use crate::packet::key::Side;
use crate::pair::by_side::BySide;
use crate::pair::first_reading::wire_payload;
use crate::pair::hops::Sighting;
use crate::pair::network_routes::Route;
use crate::pair::outside_loss::Arrival;
use crate::pair::packet_identity::{payload_head, pieces};
use crate::pair::unmatched::{MatchResult, PacketAtCapture, PathEnd};
use crate::pair::{RouteEnds, Tap};
use crate::pass::stages::flows::outer_fragment;
use crate::pass::stages::frames;
use crate::pass::state::Analysis;

impl CapturePair {
    /// Follow the packets on the wire on their way past the captures of a network.
    fn follow(&mut self, found: Found, tap: Tap, packet: &Packet, head: PayloadHead) {
        let Some(CaptureNetwork { routes, hops, ways }) = &mut self.network else { return };
        let spans_ns = &self.spans_ns;
        let network = &packet.network;
        let Some(route) = routes.route(&network.endpoints) else { return };
        let Some(place) = route.iter().position(|&other| other == tap) else { return };
        let Found { flow, side } = found;
        ways.get_or_insert_with(flow, side, || Arc::clone(route));
        hops.expire(packet.time_ns, &|flow, side, place| span_at(ways, spans_ns, flow, side, place));
        for piece in pieces(network, head, wire_payload(&self.surveys, network)) {
            hops.see(&Sighting {
                identity: piece.identity,
                flow,
                side,
                place,
                places: route.len(),
                capture_point: IpFields::capture_point(packet),
                time_ns: packet.time_ns,
            });
        }
    }

    /// Count the packets that are still on their way.
    pub(super) fn finish_hops(&mut self) {
        let Some(CaptureNetwork { hops, ways, .. }) = &mut self.network else { return };
        let spans_ns = &self.spans_ns;
        hops.finish(&|flow, side, place| span_at(ways, spans_ns, flow, side, place));
    }
}

/// When the capture at a place of a route ran.
fn span_at(ways: &BySide<Route>, spans_ns: &[(i64, i64)], flow: u32, side: Side, place: usize) -> (i64, i64) {
    let tap = ways.get(flow, side).and_then(|route| route.get(place));
    tap.and_then(|tap| spans_ns.get(tap.index())).copied().unwrap_or_default()
}

/// Outcome of all pieces of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceTotals {
    /// New, at least in part.
    First,
    /// Some of it reached the far capture before.
    Again,
    /// The same capture has all of it at another interface.
    Copy,
}

impl PairedReading<'_> {
    /// Pass a packet of one of the captures to its flow.
    pub(super) fn take_paired(
        &mut self,
        tap: Tap,
        packet: &Packet,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) {
        while let Some(alone) = self.pairing.waiting.take_expired(packet.time_ns) {
            self.give_up(alone);
        }
        let network = &packet.network;
        let Some(ends) = self.pairing.route_ends(&network.endpoints).filter(|_| packet.is_ip) else {
            return self.take_alone(tap, packet, extras, summary);
        };
        let end = match tap {
            _ if tap == ends.near => Some(PathEnd::Near),
            _ if tap == ends.far => Some(PathEnd::Far),
            _ => None,
        };
        let has_identity = matches!(network.transport, Transport::Tcp | Transport::Udp | Transport::Dccp);
        if !has_identity || !network.is_flow() {
            // An error or later fragment counts where it passes first, as in a single capture.
            if end == Some(PathEnd::Near) {
                self.take_alone(tap, packet, extras, summary);
            }
            return;
        }
        if let Some(index) = packet.frame
            && let Some(frame) = extras.frame(index)
            && frames::take(packet, frame, &mut self.analysis.carried, &mut self.analysis.results)
        {
            frames::take_repeat(packet, &mut self.analysis.carried.flows, summary);
            return;
        }
        let Some(found) = self.analysis.carried.flows.find_or_open(packet, network, u32::from(tap.0)) else {
            summary.untracked_packets += 1;
            return;
        };
        if network.fragment.is_some() && end == Some(PathEnd::Near) {
            let outer = outer_fragment(network, extras);
            self.analysis.carried.fragments.remember(network, outer, found, false);
        }
        let head = payload_head(network, extras);
        if network.transport == Transport::Udp && self.pairing.is_end_of_test(found, end, packet, head) {
            if let Some(end) = end {
                self.pass(found, end, packet, extras);
            }
            return;
        }
        self.pairing.follow(found, tap, packet, head);
        let Some(end) = end else { return };
        let (seen, sent_ns) = self.match_pieces(found, (tap, end, ends), packet, head);
        if seen == PieceTotals::Copy {
            return self.analysis.carried.flows.get_mut(found.flow).on_copy(found.side);
        }
        self.pass(found, end, packet, extras);
        let is_tcp = network.transport == Transport::Tcp;
        if is_tcp && seen == PieceTotals::First {
            self.look_for_outside_loss(found, (end, sent_ns), packet, extras);
        }
    }

    /// Pass a packet that only one capture can have to its flow, as in a single capture.
    fn take_alone(&mut self, tap: Tap, packet: &Packet, extras: &PacketExtras, summary: &mut SourceSummary) {
        let first = std::mem::replace(&mut self.analysis.carried.source, u32::from(tap.0));
        self.analysis.take(packet, extras, summary);
        self.analysis.carried.source = first;
    }

    /// Update the flow, as seen at the end where it is observed.
    fn pass(&mut self, found: Found, end: PathEnd, packet: &Packet, extras: &PacketExtras) {
        let Found { flow, side } = found;
        let network = &packet.network;
        let Analysis { carried, working, results, .. } = &mut *self.analysis;
        if let Some(groups) = &mut carried.groups {
            groups.reach(&mut carried.flows, flow, packet.time_ns);
        }
        let outcome = &mut working.outcome;
        outcome.clear();
        let captured = Captured::of(packet, network);
        let (watched, pool) = carried.flows.get_with_pool(flow);
        let point = if end == PathEnd::Near { PathPoint::Source } else { PathPoint::Destination };
        watched.on(&Seen { side, packet, network, extras }, Some(point), pool, outcome);
        match end {
            _ if !results.collects => {}
            PathEnd::Near => results.collect(found, &captured, outcome),
            PathEnd::Far => results.collect_rtt(found, &captured, outcome),
        }
        let flow = carried.flows.get(flow);
        if (end == PathEnd::Near) == (Some(side) == flow.watched())
            && results.follows_connections()
            && let Some(connection) = &flow.transport.tcp
        {
            let packet = (packet, extras.sack(network.tcp.options.sack));
            results.follow_connection((found.flow, side), connection, packet, outcome);
        }
    }

    /// Check whether a segment shows losses outside of the path between the captures.
    fn look_for_outside_loss(
        &mut self,
        found: Found,
        (end, sent_ns): (PathEnd, Option<i64>),
        packet: &Packet,
        extras: &PacketExtras,
    ) {
        let &Packet { time_ns, ref network, .. } = packet;
        let Found { flow, side } = found;
        let outside = &mut self.pairing.outside;
        if end == PathEnd::Near {
            // The capture that this side's packets pass first is the last one of the other side's.
            let blocks = extras.sack(network.tcp.options.sack);
            let acknowledgement = (&network.tcp, time_ns);
            let taken_back = outside.on_acknowledgement(flow, side.other(), acknowledgement, blocks);
            if taken_back > 0 {
                let delivery =
                    self.analysis.carried.flows.get_mut(flow).deliveries_mut().of_mut(side.other());
                delivery.lost_behind = delivery.lost_behind.map(|lost| lost.saturating_sub(taken_back));
            }
        }
        let delivery = self.analysis.carried.flows.get_mut(flow).deliveries_mut().of_mut(side);
        let payload = network.payload_bytes.unwrap_or(0);
        if payload == 0 && !network.tcp.flags.has(TcpFlags::SYN) {
            return;
        }
        match end {
            PathEnd::Near => {
                let is_lost = outside.is_lost_before(flow, side, (&network.tcp, time_ns), payload);
                if network.tcp.options.timestamp.is_some() {
                    *delivery.lost_before.get_or_insert_default() += u64::from(is_lost);
                }
            }
            PathEnd::Far => {
                let arrival = outside.arrival(flow, side, &network.tcp, payload);
                *delivery.lost_behind.get_or_insert_default() += u64::from(arrival == Arrival::OfLost);
                if let (Arrival::Needless, Some(sent_ns)) = (arrival, sent_ns) {
                    self.analysis.carried.flows.get_mut(flow).on_needless_arrival(side, network, sent_ns);
                }
            }
        }
    }

    /// Match the packets on the wire with the other capture; also return when the first was sent.
    fn match_pieces(
        &mut self,
        found: Found,
        (tap, end, ends): (Tap, PathEnd, RouteEnds),
        packet: &Packet,
        head: PayloadHead,
    ) -> (PieceTotals, Option<i64>) {
        let mut sent_ns = None;
        let (mut is_again, mut pieces_seen, mut copies, mut offset) = (false, 0, 0, 0);
        let Found { flow, side } = found;
        let network = &packet.network;
        let header_bytes = packet.wire_bytes.saturating_sub(network.payload_bytes.unwrap_or(0));
        let wire_payload = wire_payload(&self.pairing.surveys, network);
        for piece in pieces(network, head, wire_payload) {
            let passing = PacketAtCapture {
                identity: piece.identity,
                end,
                tap,
                other: if end == PathEnd::Near { ends.far } else { ends.near },
                capture_point: IpFields::capture_point(packet),
                time_ns: packet.time_ns,
                flow,
                side,
                packet: packet.number,
                seq: network.tcp.seq.wrapping_add(offset),
                wire_bytes: header_bytes.saturating_add(piece.payload_bytes),
                payload_bytes: piece.payload_bytes,
            };
            let sight = self.pairing.waiting.see(passing);
            pieces_seen += 1;
            copies += u32::from(sight == MatchResult::Copy);
            match sight {
                MatchResult::Copy | MatchResult::Waits => {}
                MatchResult::Meets(other) => {
                    let (near, far) = if end == PathEnd::Near { (passing, other) } else { (other, passing) };
                    self.arrive(near, far);
                    sent_ns.get_or_insert(near.time_ns);
                    let part = (offset, piece.payload_bytes);
                    self.analysis.carried.flows.get_mut(flow).on_arrival(side, network, part, near.time_ns);
                }
                MatchResult::Again => {
                    is_again = true;
                    self.analysis.carried.flows.get_mut(flow).deliveries_mut().of_mut(side).duplicates += 1;
                    self.pairing.keep(PairOutcome::Duplicate, None, Some(passing));
                }
            }
            offset += piece.payload_bytes;
        }
        let seen = match (copies > 0 && copies == pieces_seen, is_again) {
            (true, _) => PieceTotals::Copy,
            (false, true) => PieceTotals::Again,
            (false, false) => PieceTotals::First,
        };
        (seen, sent_ns)
    }

    /// Process a packet that is in both captures.
    fn arrive(&mut self, near: PacketAtCapture, far: PacketAtCapture) {
        let delivery = self.analysis.carried.flows.get_mut(near.flow).deliveries_mut().of_mut(near.side);
        delivery.missed.get_or_insert_default();
        delivery.sent += 1;
        delivery.received += 1;
        delivery.received_bytes += u64::from(near.wire_bytes);
        delivery.on_delay(near.time_ns, far.time_ns);
        let delay_ns = far.time_ns.saturating_sub(near.time_ns);
        self.pairing.met += 1;
        self.pairing.longest_ns = self.pairing.longest_ns.max(delay_ns);
        let arrived_ns =
            self.pairing.arrived_ns.get_or_insert_with(near.flow, near.side, || (i64::MAX, i64::MIN));
        let (first_ns, last_ns) = arrived_ns;
        (*first_ns, *last_ns) = (near.time_ns.min(*first_ns), near.time_ns.max(*last_ns));
        if let Some(bins) = &mut self.analysis.results.bins
            && let Ok(delay_ns) = u64::try_from(delay_ns)
            && self.pairing.has_delays()
        {
            bins.add_delay(near.flow, near.side, near.time_ns, delay_ns);
        }
        self.note_outcome(near, Some(far.time_ns));
        self.pairing.keep(PairOutcome::Arrived, Some(near), Some(far));
    }

    /// Group what became of a packet that was sent at the `near` capture.
    fn note_outcome(&mut self, near: PacketAtCapture, received_ns: Option<i64>) {
        let Analysis { carried, working, .. } = &mut *self.analysis;
        if let Some(groups) = &mut carried.groups {
            let found = Found { flow: near.flow, side: near.side };
            let outcome = PathOutcome { found, sent_ns: near.time_ns, received_ns, is_segment: false };
            working.path_outcomes.push(outcome);
            groups.group_outcomes(&mut working.path_outcomes, &carried.flows);
        }
    }

    /// Process a packet that is in one capture only.
    pub(super) fn give_up(&mut self, alone: PacketAtCapture) {
        let delivery = self.analysis.carried.flows.get_mut(alone.flow).deliveries_mut().of_mut(alone.side);
        if alone.end == PathEnd::Far {
            delivery.received += 1;
            delivery.unsent += 1;
            delivery.received_bytes += u64::from(alone.wire_bytes);
            if self.pairing.was_running(alone.other, alone.time_ns) {
                self.pairing.note_missed(alone.other, delivery);
            }
            self.pairing.keep(PairOutcome::Unsent, None, Some(alone));
            return;
        }
        delivery.sent += 1;
        if self.pairing.outside.was_missed(&alone) {
            delivery.received += 1;
            delivery.received_bytes += u64::from(alone.wire_bytes);
            self.pairing.note_missed(alone.other, delivery);
            self.pairing.keep(PairOutcome::Missed, Some(alone), None);
            return;
        }
        let fate = if self.pairing.was_expected(&alone, delivery) {
            PairOutcome::Lost
        } else {
            PairOutcome::Unknown
        };
        if fate == PairOutcome::Lost {
            delivery.lost += 1;
            if let Some(bins) = &mut self.analysis.results.bins {
                bins.add_loss(alone.flow, alone.side, alone.time_ns);
            }
            self.note_outcome(alone, None);
        } else {
            delivery.in_flight += 1;
        }
        self.pairing.keep(fate, Some(alone), None);
    }
}
