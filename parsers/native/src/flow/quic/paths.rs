//! Further paths of QUIC flows: after a change of addresses, a short header still has the identifier that its receiver
//! chose in the handshake, unless the client deliberately took another one (RFC 9000 section 9.5).

use hashbrown::HashMap;
use smallvec::SmallVec;

use serde::{Deserialize, Serialize};

use crate::flow::Found;
use crate::packet::event::{Address, Endpoints, Family};
use crate::packet::key::{FlowKey, Side};
use crate::wire::quic::{ConnectionId, short_header};

/// Shorter identifiers occur by chance.
const LEAST_BYTES: usize = 4;
/// Identifiers of a flow.
const MOST_IDS: usize = 8;
/// Further paths of a flow.
const MOST_PATHS: usize = 64;

/// An end that stays, and whether it sends.
pub type End = (Family, Address, u16, bool);

/// What belongs to a flow.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OfFlow {
    ids: SmallVec<[(End, ConnectionId); 2]>,
    paths: Vec<FlowKey>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct QuicPaths {
    /// The flow of packets to an identifier, and the side that sends them; None if two flows have it.
    ids: HashMap<(End, ConnectionId), Option<Found>>,
    /// The flow of a further five-tuple, and the side that sends from the lower end.
    paths: HashMap<FlowKey, Found>,
    of_flows: HashMap<u32, OfFlow>,
    /// A bit for each length of an identifier.
    lengths: u32,
}

impl QuicPaths {
    /// Let packets to an identifier belong to a flow.
    pub fn register_id(&mut self, end: End, id: ConnectionId, found: Found) {
        let length = id.bytes().len();
        if length < LEAST_BYTES {
            return;
        }
        let of_flow = self.of_flows.entry(found.flow).or_default();
        if of_flow.ids.len() >= MOST_IDS || of_flow.ids.contains(&(end, id)) {
            return;
        }
        of_flow.ids.push((end, id));
        let known = self.ids.entry((end, id)).or_insert(Some(found));
        *known = known.filter(|known| known.flow == found.flow);
        self.lengths |= 1 << length;
    }

    /// All flows that are known here.
    pub fn flows(&self) -> impl Iterator<Item = u32> {
        self.ids.values().flatten().chain(self.paths.values()).map(|found| found.flow)
    }

    /// Whether there are any identifiers.
    #[inline(always)]
    pub fn has_ids(&self) -> bool {
        self.lengths != 0
    }

    /// The flow of a packet of `side` on a further path that is known.
    pub fn find(&self, key: &FlowKey, side: Side) -> Option<Found> {
        self.paths.get(key).map(|&found| turned(found, side))
    }

    /// The flow of a packet by its destination's identifier.
    pub fn find_by_id(&self, endpoints: &Endpoints, head: &[u8]) -> Option<Found> {
        let short = short_header(head).filter(|short| short.is_fixed)?;
        let &Endpoints { family, src, dst, src_port, dst_port, .. } = endpoints;
        let lengths = (LEAST_BYTES..=ConnectionId::MOST).filter(|length| self.lengths >> length & 1 != 0);
        // A short identifier may be the beginning of a longer one.
        let mut ids = lengths.rev().filter_map(|length| short.destination(length));
        ids.find_map(|id| {
            let ends = [(family, dst, dst_port, false), (family, src, src_port, true)];
            ends.into_iter().find_map(|end| self.ids.get(&(end, id)).copied().flatten())
        })
    }

    /// Let a five-tuple belong to a flow; returns whether there was room.
    pub fn register_path(&mut self, key: FlowKey, packet_side: Side, found: Found) -> bool {
        let Some(of_flow) = self.of_flows.get_mut(&found.flow) else { return false };
        if of_flow.paths.len() >= MOST_PATHS {
            return false;
        }
        of_flow.paths.push(key);
        self.paths.insert(key, turned(found, packet_side));
        true
    }

    /// Forget a flow.
    pub fn unregister(&mut self, flow: u32) {
        let Some(of_flow) = self.of_flows.remove(&flow) else { return };
        for id in of_flow.ids {
            if self.ids.get(&id).is_some_and(|known| known.is_none_or(|known| known.flow == flow)) {
                self.ids.remove(&id);
            }
        }
        for key in of_flow.paths {
            self.paths.remove(&key);
        }
    }
}

/// The side of the flow that sends a packet from `side` of a further five-tuple, or the reverse.
fn turned(found: Found, side: Side) -> Found {
    match side {
        Side::Low => found,
        Side::High => Found { side: found.side.other(), ..found },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: (Address, u16) = (9, 443);

    /// A packet of the client from this port to an identifier of the server, with what is after it.
    fn find(paths: &QuicPaths, port: u16, to: &[u8]) -> Option<u32> {
        let (dst, dst_port) = SERVER;
        let endpoints =
            Endpoints { src: 1, src_port: port, dst, dst_port, protocol: 17, ..Endpoints::default() };
        let head = [&[0x40], to, &[0xff; 30]].concat();
        paths.find_by_id(&endpoints, &head).map(|found| found.flow)
    }

    fn register(paths: &mut QuicPaths, flow: u32, id: &[u8]) {
        let end = (Family::default(), SERVER.0, SERVER.1, false);
        paths.register_id(end, ConnectionId::new(id).unwrap(), Found { flow, side: Side::Low });
    }

    #[test]
    fn test_an_identifier_of_two_flows_is_of_none() {
        let mut paths = QuicPaths::default();
        register(&mut paths, 1, b"12345678");
        assert_eq!(find(&paths, 5000, b"12345678"), Some(1));
        register(&mut paths, 2, b"12345678");
        register(&mut paths, 1, b"12345678");
        assert_eq!(find(&paths, 5000, b"12345678"), None);
        for flow in [1, 2] {
            paths.unregister(flow);
        }
        assert!(paths.ids.is_empty() && paths.of_flows.is_empty());
    }

    #[test]
    fn test_the_longest_identifier_decides() {
        let mut paths = QuicPaths::default();
        register(&mut paths, 1, b"1234");
        register(&mut paths, 2, b"12345678");
        assert_eq!((find(&paths, 5000, b"12345678"), find(&paths, 5000, b"1234")), (Some(2), Some(1)));
    }

    #[test]
    fn test_identifiers_and_paths_of_a_flow_are_bounded() {
        let mut paths = QuicPaths::default();
        for id in 0..100_u64 {
            register(&mut paths, 1, &id.to_be_bytes());
        }
        assert_eq!(paths.ids.len(), MOST_IDS);
        let found = Found { flow: 1, side: Side::Low };
        let key = |src_port| FlowKey::of(&Endpoints { src: 1, src_port, ..Endpoints::default() }).0;
        assert_eq!(
            (1..=100).filter(|&port| paths.register_path(key(port), Side::Low, found)).count(),
            MOST_PATHS
        );
        paths.unregister(1);
        assert!(paths.ids.is_empty() && paths.paths.is_empty());
    }
}
