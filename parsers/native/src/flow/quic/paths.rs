//! Further paths of QUIC flows: after a change of addresses, a short header still has the identifier that its receiver
//! chose in the handshake, unless the client deliberately took another one (RFC 9000 section 9.5).

use hashbrown::HashMap;
use smallvec::SmallVec;

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
#[derive(Debug, Default)]
struct OfFlow {
    ids: SmallVec<[(End, ConnectionId); 2]>,
    paths: Vec<FlowKey>,
}

#[derive(Debug, Default)]
pub struct QuicPaths {
    /// The flow of packets to an identifier, and the side that sends them.
    ids: HashMap<(End, ConnectionId), Found>,
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
        let of_flow = self.of_flows.entry(found.flow).or_default();
        if length < LEAST_BYTES || of_flow.ids.len() >= MOST_IDS || of_flow.ids.contains(&(end, id)) {
            return;
        }
        of_flow.ids.push((end, id));
        self.ids.insert((end, id), found);
        self.lengths |= 1 << length;
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
        let mut ids = lengths.filter_map(|length| short.destination(length));
        ids.find_map(|id| {
            let ends = [(family, dst, dst_port, false), (family, src, src_port, true)];
            ends.into_iter().find_map(|end| self.ids.get(&(end, id)).copied())
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
            if self.ids.get(&id).is_some_and(|found| found.flow == flow) {
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
