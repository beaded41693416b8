//! The flow of a datagram on another path than its first: see [`QuicPaths`](super::paths::QuicPaths).

use super::QuicFlow;
use crate::flow::{Flow, FlowTable, Found};
use crate::packet::event::{Network, Packet};
use crate::packet::extras::PacketExtras;
use crate::packet::key::FlowKey;
use crate::wire::quic::ConnectionId;

impl FlowTable {
    /// Record the identifier that a side chose.
    pub fn register_quic_id(&mut self, chosen_by: Found, id: ConnectionId) {
        let Found { flow, side } = chosen_by;
        let Some(client) = self.get(flow).transport.quic().and_then(|quic| quic.client()) else { return };
        let key = self.get(flow).key();
        let (server, port) = key.end(client.other());
        let end = (key.family(), server, port, client == side);
        self.quic_paths.register_id(end, id, Found { flow, side: side.other() });
    }

    /// Whether packets on an unknown path may belong to a known flow.
    #[inline(always)]
    pub fn has_quic_ids(&self) -> bool {
        self.quic_paths.has_ids()
    }

    /// The flow of a datagram on another path than its first.
    pub fn find_quic_path(
        &mut self,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
    ) -> Option<Found> {
        let (key, side) = FlowKey::of(&network.endpoints);
        if self.is_recent(&key) || !network.lane.is_outside() {
            return None;
        }
        if let Some(found) = self.quic_paths.find(&key, side) {
            self.wake(found.flow);
            return (!self.is_over_at(found.flow, packet.time_ns)).then_some(found);
        }
        if self.find(network).is_some() {
            return None;
        }
        let found = self.quic_paths.find_by_id(&network.endpoints, extras.head(network.head).bytes())?;
        if self.is_over_at(found.flow, packet.time_ns) || !self.quic_paths.register_path(key, side, found) {
            return None;
        }
        if let Some(quic) = self.get_mut(found.flow).quic_mut() {
            quic.further_paths += 1;
        }
        Some(found)
    }
}

impl Flow {
    fn quic_mut(&mut self) -> Option<&mut QuicFlow> {
        self.transport.non_tcp_if_any()?.quic.as_deref_mut()
    }
}
