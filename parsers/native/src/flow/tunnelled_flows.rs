//! Flows inside of tunnels. Several may have the same five-tuple, in different networks, and one may have a
//! label or tunnel identifier for each direction.

use hashbrown::HashMap;
use smallvec::SmallVec;

use serde::{Deserialize, Serialize};

use super::Found;
use crate::packet::encapsulation::Lane;
use crate::packet::key::{FlowKey, Side};
use crate::packet::tunnel::Tunnel;

/// Flows of a five-tuple that a packet in a new lane may belong to: the newest.
pub const MOST_CANDIDATES: usize = 8;
/// Lanes that are remembered of a flow; packets in others are compared with it each time.
const MOST_LANES: usize = 16;

/// The lanes of a flow's packets and what carried the first one of each direction.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Passage {
    lanes: SmallVec<[(Side, Lane); 2]>,
    tunnels: [Option<Box<Tunnel>>; 2],
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TunnelledFlows {
    /// The flow of each side's packets in each lane.
    lanes: HashMap<(FlowKey, Side, Lane), u32>,
    /// The last flows of each five-tuple in any lane, the newest last.
    newest: HashMap<FlowKey, SmallVec<[u32; 2]>>,
    passages: HashMap<u32, Passage>,
    /// A bit for each flow and side whose tunnel is known.
    noted: Vec<u64>,
    /// The last flows found, by a few bits of what they were found by: spares most look-ups.
    #[serde(skip)]
    recent: Vec<Option<(FlowKey, Side, Lane, u32)>>,
}

/// Entries of the cache.
const RECENT: usize = 256;

impl TunnelledFlows {
    /// Whether no packet was in a lane.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// All flows that are known here.
    pub fn flows(&self) -> impl Iterator<Item = u32> {
        let newest = self.newest.values().flatten();
        self.lanes.values().chain(newest).chain(self.passages.keys()).copied()
    }

    /// The same as [`TunnelledFlows::find`], for packet after packet.
    #[inline]
    pub fn find_next(&mut self, key: &FlowKey, side: Side, lane: Lane) -> Option<u32> {
        let slot = (key.slot() ^ (lane.network ^ lane.path) as usize ^ side as usize) % RECENT;
        if let Some(Some((known, its_side, its_lane, flow))) = self.recent.get(slot)
            && *known == *key
            && (*its_side, *its_lane) == (side, lane)
        {
            return Some(*flow);
        }
        let flow = self.find(key, side, lane)?;
        self.recent.resize(RECENT, None);
        self.recent[slot] = Some((*key, side, lane, flow));
        Some(flow)
    }

    pub fn find(&self, key: &FlowKey, side: Side, lane: Lane) -> Option<u32> {
        self.lanes.get(&(*key, side, lane)).copied()
    }

    /// The last flows of a five-tuple, the newest last.
    pub fn newest(&self, key: &FlowKey) -> &[u32] {
        self.newest.get(key).map_or(&[], |flows| flows.as_slice())
    }

    /// The lanes in which `side` of a flow sends.
    pub fn lanes(&self, flow: u32, side: Side) -> impl Iterator<Item = Lane> {
        let lanes = self.passages.get(&flow).map_or(&[][..], |passage| passage.lanes.as_slice());
        lanes.iter().filter(move |(known, _)| *known == side).map(|&(_, lane)| lane)
    }

    /// Let packets of `side` in `lane` belong to a flow.
    pub fn register(&mut self, key: FlowKey, Found { flow, side }: Found, lane: Lane) {
        let passage = self.passages.entry(flow).or_default();
        if passage.lanes.contains(&(side, lane)) {
            return;
        }
        if passage.lanes.len() < MOST_LANES {
            passage.lanes.push((side, lane));
            self.lanes.insert((key, side, lane), flow);
            self.recent.clear();
        }
        let newest = self.newest.entry(key).or_default();
        if !newest.contains(&flow) {
            if newest.len() == MOST_CANDIDATES {
                newest.remove(0);
            }
            newest.push(flow);
        }
    }

    /// Let the lanes of an `old` flow belong to the one that follows it between the same ports.
    pub fn hand_over(&mut self, key: FlowKey, old: u32, new: u32) {
        let lanes = self.passages.get(&old).map(|passage| passage.lanes.clone()).unwrap_or_default();
        for (side, lane) in lanes {
            self.register(key, Found { flow: new, side }, lane);
        }
        if let Some(newest) = self.newest.get_mut(&key) {
            newest.retain(|flow| *flow != old);
        }
    }

    /// Let no packets belong to a flow any more.
    pub fn unregister(&mut self, key: &FlowKey, flow: u32) {
        let Some(passage) = self.passages.get(&flow) else { return };
        for &(side, lane) in &passage.lanes {
            let place = (*key, side, lane);
            if self.lanes.get(&place) == Some(&flow) {
                self.lanes.remove(&place);
            }
        }
        self.recent.clear();
        if let Some(newest) = self.newest.get_mut(key) {
            newest.retain(|known| *known != flow);
            if newest.is_empty() {
                self.newest.remove(key);
            }
        }
    }

    /// Forget what carried a flow, and return it.
    pub fn take_tunnels(&mut self, flow: u32) -> [Option<Box<Tunnel>>; 2] {
        self.passages.remove(&flow).map_or([None, None], |passage| passage.tunnels)
    }

    /// Remember what carried the first packet of a direction.
    #[inline]
    pub fn note(&mut self, Found { flow, side }: Found, tunnel: &Tunnel) {
        let bit = 2 * flow as usize + side as usize;
        let (word, mask) = (bit / 64, 1_u64 << (bit % 64));
        if self.noted.get(word).is_some_and(|noted| noted & mask != 0) {
            return;
        }
        if self.noted.len() <= word {
            self.noted.resize(word + 1, 0);
        }
        self.noted[word] |= mask;
        self.passages.entry(flow).or_default().tunnels[side as usize] = Some(Box::new(*tunnel));
    }

    /// What carried the first packet of `side`.
    pub fn tunnel(&self, flow: u32, side: Side) -> Option<&Tunnel> {
        self.passages.get(&flow)?.tunnels[side as usize].as_deref()
    }
}
