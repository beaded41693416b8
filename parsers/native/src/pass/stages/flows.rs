//! Passes packets to their flows, in order.

use super::datagrams::Datagrams;
use super::frames;
use crate::flow::{Found, Resolved, Seen};
use crate::input::source_summary::SourceSummary;
use crate::packet::batch::Item;
use crate::packet::captured::Captured;
use crate::packet::event::{Network, Packet, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::tunnel::OuterFragment;
use crate::pass::state::Analysis;

impl Analysis {
    /// Pass a packet to its flow, which is returned. `summary` gets counts that only the flow
    /// knows.
    #[inline(always)]
    pub fn take(
        &mut self,
        packet: &Packet,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        let found = self.pass_on(packet, extras, summary);
        if let (Some(found), Some(spool)) = (found, &mut self.results.spool) {
            spool.add_taken(found, packet, extras, self.carried.flows.get(found.flow));
        }
        found
    }

    #[inline(always)]
    fn pass_on(
        &mut self,
        packet: &Packet,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        if let Some(index) = packet.frame
            && let Some(frame) = extras.frame(index)
            && frames::take(packet, frame, &mut self.carried, &mut self.results)
        {
            return frames::take_repeat(packet, &mut self.carried.flows, summary);
        }
        if !packet.is_ip {
            return None;
        }
        if let Some(sighting) = packet.sighting {
            return self.take_sighting(packet, &sighting, extras, summary);
        }
        let network = &packet.network;
        match network.transport {
            Transport::Tcp | Transport::Udp | Transport::Dccp | Transport::Unread if network.is_flow() => {
                let Some(found) = self.find_or_open(packet, network, extras) else {
                    summary.untracked_packets += 1;
                    return None;
                };
                let is_copy = self.take_copy(found, packet, network, extras);
                if network.fragment.is_some() {
                    let outer = outer_fragment(network, extras);
                    self.carried.fragments.remember(network, outer, found, is_copy);
                }
                if is_copy {
                    return Some(found);
                }
                self.give(found, packet, network, extras);
                match network.transport {
                    Transport::Udp => self.datagrams().take_datagram(found, packet, extras),
                    Transport::Dccp => self.datagrams().follow_dccp(found, packet, extras),
                    _ if network.opening.is_some() => self.note_opening(found, network, extras),
                    _ => {}
                }
                if network.fragment.is_some() {
                    self.take_early_fragments(packet, extras, summary);
                }
                Some(found)
            }
            Transport::LaterFragment | Transport::IcmpError => {
                self.take_by_reference(packet, network, extras, summary)
            }
            _ => {
                summary.portless_packets += u64::from(network.has_flows());
                if let Some(groups) = &mut self.carried.groups
                    && network.is_icmp()
                {
                    groups.on_icmp(packet, extras, self.carried.source);
                }
                None
            }
        }
    }

    /// Packets that identify their flow only by another packet.
    #[cold]
    fn take_by_reference(
        &mut self,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        if matches!(network.transport, Transport::IcmpError) {
            let quoted = self.carried.flows.find_quoted(network).filter(|_| network.has_ports);
            let found = quoted.filter(|found| !self.carried.flows.is_over_at(found.flow, packet.time_ns))?;
            if !self.carried.copies.is_copy(packet, network, extras) {
                self.carried.flows.get_mut(found.flow).on_icmp_error(found.side);
            }
            return None;
        }
        let mut network = *network;
        let known = self.carried.fragments.resolve(&mut network);
        let is_alive = |known: &Resolved| !self.carried.flows.is_over_at(known.found.flow, packet.time_ns);
        let Some(Resolved { found, is_copy }) = known.filter(is_alive) else {
            summary.portless_packets += u64::from(network.has_flows());
            self.carried.fragments.keep_early(packet);
            return None;
        };
        let packet = &Packet { network, ..*packet };
        if is_copy {
            self.carried.flows.get_mut(found.flow).on_copy(found.side);
            return Some(found);
        }
        if network.transport == Transport::LaterFragment
            && self.take_copy(found, packet, &network, &PacketExtras::default())
        {
            return Some(found);
        }
        self.carried.flows.wake(found.flow);
        self.working.backlog.settle(found.flow, &mut self.carried.flows);
        // A later fragment has no options.
        self.give(found, packet, &network, &PacketExtras::default());
        Some(found)
    }

    /// Give the fragments that came before the `first` one of their datagram to its flow.
    #[cold]
    fn take_early_fragments(&mut self, first: &Packet, extras: &PacketExtras, summary: &mut SourceSummary) {
        for packet in self.carried.fragments.take_early(first, outer_fragment(&first.network, extras)) {
            let found = self.take_by_reference(&packet, &packet.network, &PacketExtras::default(), summary);
            summary.portless_packets -= u64::from(found.is_some() && packet.network.has_flows());
        }
    }

    #[inline(always)]
    fn give(&mut self, found: Found, packet: &Packet, network: &Network, extras: &PacketExtras) {
        let payload = network.tcp().and(network.payload_bytes).unwrap_or(0);
        self.reach_segment(found, packet.time_ns, network.tcp.seq, payload);
        let outcome = &mut self.working.outcome;
        if self.results.collects {
            outcome.clear();
        }
        let (flow, pool) = self.carried.flows.get_with_pool(found.flow);
        flow.on(&Seen { side: found.side, packet, network, extras }, None, pool, outcome);
        if self.results.follows_connections()
            && let Some(connection) = &flow.transport.tcp
            && !outcome.is_copy()
        {
            let packet = (packet, extras.sack(network.tcp.options.sack));
            self.results.follow_connection((found.flow, found.side), connection, packet, outcome);
        }
        if self.results.collects {
            self.results.collect(found, &Captured::of(packet, network), &self.working.outcome);
        }
    }

    /// The next segment of a flow has this time, number and payload: if an interval ended, group what it counted.
    #[inline(always)]
    pub(super) fn reach_segment(&mut self, found: Found, time_ns: i64, seq: u32, payload: u32) {
        if let Some(groups) = &mut self.carried.groups {
            groups.reach(&mut self.carried.flows, found.flow, time_ns);
            if payload > 0 {
                self.carried.flows.note_data(found, time_ns, (seq, payload));
            }
        }
    }

    /// Whether a packet of a non-TCP flow is a duplicate, which is then counted only as such.
    #[inline]
    pub(super) fn take_copy(
        &mut self,
        found: Found,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
    ) -> bool {
        let has_identity =
            matches!(network.transport, Transport::Udp | Transport::Dccp | Transport::LaterFragment);
        let is_copy = has_identity && self.carried.copies.is_copy(packet, network, extras);
        if is_copy {
            self.carried.flows.get_mut(found.flow).on_copy(found.side);
        }
        is_copy
    }

    /// What datagrams change.
    #[inline(always)]
    pub(super) fn datagrams(&mut self) -> Datagrams<'_> {
        let Self { options, carried, results, .. } = self;
        Datagrams { options, carried, results }
    }

    /// Count a packet of a time that the capture already showed as a duplicate, if its flow has it.
    pub(super) fn take_again(&mut self, packet: &Packet, extras: &PacketExtras) -> bool {
        let network = &packet.network;
        let is_whole = packet.is_ip && packet.sighting.is_none() && packet.frame.is_none();
        if !is_whole || !network.is_flow() {
            return false;
        }
        let Some(found) = self.carried.flows.find_in_lane(network) else { return false };
        self.working.outcome.clear();
        let flow = self.carried.flows.get_mut(found.flow);
        let is_known =
            flow.on_again(&Seen { side: found.side, packet, network, extras }, &mut self.working.outcome);
        if is_known {
            self.carried.appended.packets += 1;
            // A duplicate of another protocol is nothing but counted: no bin and no table takes it.
            if self.results.collects && self.working.outcome.is_copy() {
                self.results.collect(found, &Captured::of(packet, network), &self.working.outcome);
            }
            if let Some(spool) = &mut self.results.spool {
                spool.add_taken(found, packet, extras, self.carried.flows.get(found.flow));
            }
        }
        is_known
    }

    /// The flow of a packet, opened if needed. None if the limit is reached.
    #[inline(always)]
    pub(super) fn find_or_open(
        &mut self,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
    ) -> Option<Found> {
        if network.transport == Transport::Udp
            && self.carried.flows.has_quic_ids()
            && let Some(found) = self.carried.flows.find_quic_path(packet, network, extras)
        {
            self.working.backlog.settle(found.flow, &mut self.carried.flows);
            return Some(found);
        }
        if network.lane.is_outside() && !self.carried.flows.has_tunnels() {
            let found = self.carried.flows.find_or_open(packet, network, self.carried.source)?;
            if let Some(vlan) = extras.tunnel(network.tunnel) {
                self.carried.flows.note_tunnel(found, vlan);
            }
            return Some(found);
        }
        self.find_or_open_among_tunnels(packet, network, extras)
    }

    #[inline(never)]
    fn find_or_open_among_tunnels(
        &mut self,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
    ) -> Option<Found> {
        if self.carried.flows.is_new_lane(network) {
            self.join(packet, network, extras);
        }
        let found = if network.lane.is_outside() {
            self.carried.flows.find_or_open(packet, network, self.carried.source)?
        } else {
            self.carried.flows.find_or_open_in_lane(packet, network, self.carried.source)?
        };
        if let Some(tunnel) = extras.tunnel(network.tunnel) {
            self.carried.flows.note_tunnel(found, tunnel);
        }
        Some(found)
    }

    /// Compare a packet of a new lane with the flows that have its five-tuple.
    fn join(&mut self, packet: &Packet, network: &Network, extras: &PacketExtras) {
        let candidates = self.carried.flows.candidates(&network.endpoints);
        if candidates.is_empty() {
            return;
        }
        for &flow in &candidates {
            self.working.backlog.settle(flow, &mut self.carried.flows);
        }
        let has_identity = matches!(network.transport, Transport::Udp | Transport::Dccp);
        let is_copy = has_identity && self.carried.copies.is_copy(packet, network, extras);
        self.carried.flows.join(packet, network, &candidates, is_copy);
    }

    /// Record what a client opened its connection with.
    #[cold]
    pub(super) fn note_opening(&mut self, found: Found, network: &Network, extras: &PacketExtras) {
        if let Some(opening) = extras.opening(network.opening) {
            self.carried.flows.get_mut(found.flow).note_opening(opening);
        }
    }

    /// Record what carried a packet that is queued.
    #[inline(always)]
    pub(super) fn note_tunnel(&mut self, found: Found, item: Item<'_>, extras: &PacketExtras) {
        if let Item::Other(packet) = item
            && let Some(tunnel) = extras.tunnel(packet.network.tunnel)
        {
            self.carried.flows.note_tunnel(found, tunnel);
        }
    }
}

/// The fragment around a packet, if there is one.
pub(in crate::pass) fn outer_fragment<'a>(
    network: &Network,
    extras: &'a PacketExtras,
) -> Option<&'a OuterFragment> {
    extras.tunnel(network.tunnel)?.outer_fragment.as_ref()
}
