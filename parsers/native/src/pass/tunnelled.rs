//! Flows in tunnels: see `flow/lanes.rs`.

use super::Analysis;
use crate::flow::Found;
use crate::packet::batch::Item;
use crate::packet::event::{Network, Packet, Transport};
use crate::packet::extras::PacketExtras;

impl Analysis {
    /// The flow of a packet, opened if needed. None if the limit is reached.
    #[inline(always)]
    pub(super) fn find_or_open(
        &mut self,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
    ) -> Option<Found> {
        if network.transport == Transport::Udp
            && self.flows.has_quic_ids()
            && let Some(found) = self.flows.find_quic_path(packet, network, extras)
        {
            self.backlog.settle(found.flow, &mut self.flows);
            return Some(found);
        }
        if network.lane.is_outside() && !self.flows.has_tunnels() {
            let found = self.flows.find_or_open(packet, network, self.source)?;
            if let Some(vlan) = extras.tunnel(network.tunnel) {
                self.flows.note_tunnel(found, vlan);
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
        if self.flows.is_new_lane(network) {
            self.join(packet, network, extras);
        }
        let found = if network.lane.is_outside() {
            self.flows.find_or_open(packet, network, self.source)?
        } else {
            self.flows.find_or_open_in_lane(packet, network, self.source)?
        };
        if let Some(tunnel) = extras.tunnel(network.tunnel) {
            self.flows.note_tunnel(found, tunnel);
        }
        Some(found)
    }

    /// Compare a packet of a new lane with the flows that have its five-tuple.
    fn join(&mut self, packet: &Packet, network: &Network, extras: &PacketExtras) {
        let candidates = self.flows.candidates(&network.endpoints);
        if candidates.is_empty() {
            return;
        }
        for &flow in &candidates {
            self.backlog.settle(flow, &mut self.flows);
        }
        let has_identity = matches!(network.transport, Transport::Udp | Transport::Dccp);
        let is_copy = has_identity && self.shown_again.is_copy(packet, network, extras);
        self.flows.join(packet, network, &candidates, is_copy);
    }

    /// Record what carried a packet that is queued.
    #[inline(always)]
    pub(super) fn note_tunnel(&mut self, found: Found, item: Item<'_>, extras: &PacketExtras) {
        if let Item::Other(packet) = item
            && let Some(tunnel) = extras.tunnel(packet.network.tunnel)
        {
            self.flows.note_tunnel(found, tunnel);
        }
    }
}
