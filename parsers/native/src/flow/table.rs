//! All flows, found by key and kept in order of their first packet.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Flow;
use super::group::{GROUP_BITS, Group};
use super::key::{FlowKey, Side};
use super::sendings::{MAX_NODES, NODES_PER_PACKET, Pool};
use crate::batch::Item;
use crate::event::{Endpoints, Network, Packet, TcpFlags, Transport};
use crate::plain::{Ends, PlainSegment};

/// Entries of the first-level cache.
const RECENT: usize = 256;

/// Flows whose keys' address space is reserved at once; up to here nothing is copied on growing.
const RESERVED: usize = 1 << 17;

/// Nodes that a group's pool is lent at a time.
const LOAN: u32 = 64;

/// Packets that [`FlowTable::find_each`] looks up at a time.
pub const LOOK_UPS: usize = 32;

/// The table of flows.
pub struct FlowTable {
    /// Numbers of flows by key; the newest of those that share one.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// All flows, in order of their first packet.
    groups: Vec<Group>,
    /// Nodes that the groups' pools may still be lent.
    room: u32,
    /// Their keys again, close together: a look-up compares them without touching the flow.
    keys: Vec<FlowKey>,
    max_flows: u32,
    /// The flow found last for each [`FlowKey::slot`]: spares most look-ups in `index`.
    recent: [u32; RECENT],
    /// The same for plain segments, which need not even make a key.
    recent_ends: [RecentEnds; RECENT],
}

/// The flow of a plain segment, and which ends that had.
#[derive(Clone, Copy, Default)]
struct RecentEnds {
    ends: Ends,
    found: Option<Found>,
}

/// The flow of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    /// Its number, from 0.
    pub flow: u32,
    /// The side that sent the packet.
    pub side: Side,
}

impl FlowTable {
    /// An empty table of at most `max_flows`.
    pub fn new(max_flows: u32) -> Self {
        let reserved = RESERVED.min(max_flows as usize);
        Self {
            index: HashTable::new(),
            // Seeded anew in each process: nobody can prepare a capture whose keys collide.
            hasher: DefaultHashBuilder::default(),
            groups: Vec::new(),
            room: MAX_NODES,
            keys: Vec::with_capacity(reserved),
            max_flows,
            recent: [0; RECENT],
            recent_ends: [RecentEnds::default(); RECENT],
        }
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Flow number `flow`.
    #[inline(always)]
    pub fn get(&self, flow: u32) -> &Flow {
        &self.groups[(flow >> GROUP_BITS) as usize].flows()[place_of(flow)]
    }

    /// Flow number `flow`, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, flow: u32) -> &mut Flow {
        &mut self.group_mut(flow).flows_mut()[place_of(flow)]
    }

    /// The same with the pool for what waits for acknowledgements, which has room for a packet if
    /// there is any room left.
    #[inline(always)]
    pub fn get_with_pool(&mut self, flow: u32) -> (&mut Flow, &mut Pool) {
        let group = &mut self.groups[(flow >> GROUP_BITS) as usize];
        if group.pool_mut().room() < NODES_PER_PACKET {
            lend(&mut self.room, group);
        }
        group.flow_and_pool(place_of(flow))
    }

    /// The group that `flow` belongs to.
    #[inline(always)]
    pub fn group_mut(&mut self, flow: u32) -> &mut Group {
        &mut self.groups[(flow >> GROUP_BITS) as usize]
    }

    /// Give a group's pool room for the packets set aside and one more, if there is any.
    pub fn lend_room(&mut self, flow: u32) {
        lend(&mut self.room, &mut self.groups[(flow >> GROUP_BITS) as usize]);
    }

    /// All groups.
    pub fn groups_mut(&mut self) -> &mut [Group] {
        &mut self.groups
    }

    /// Divide the room that is left among the groups by the packets that they have set aside. What
    /// each may use is decided here, and not while they use it, perhaps in several threads.
    pub fn share_room(&mut self) {
        for group in &mut self.groups {
            self.room += group.pool_mut().take_room();
        }
        let needed = |group: &Group| u64::from(group.needed_room());
        let all_needed: u64 = self.groups.iter().map(needed).sum();
        let room = u64::from(self.room);
        for group in &mut self.groups {
            let share = (room * needed(group)).checked_div(all_needed).unwrap_or(0);
            // Not more than needed, which is a 32-bit number.
            let share = share.min(needed(group)) as u32;
            self.room -= share;
            group.pool_mut().add_room(share);
        }
    }

    /// All flows, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.groups.iter_mut().flat_map(Group::flows_mut)
    }

    /// The flow that a packet belongs to, opened if need be. None if the bound is reached.
    #[inline(always)]
    pub fn find_or_open(&mut self, packet: &Packet, network: &Network, source: u32) -> Option<Found> {
        let (key, side) = FlowKey::of(&network.endpoints);
        let slot = key.slot() % RECENT;
        let recent = self.recent[slot];
        let known = match self.keys.get(recent as usize) {
            Some(known) if *known == key => Some(recent),
            _ => self.lookup(&key),
        };
        // Only a SYN can begin another connection between the same ports.
        let is_syn = network.transport == Transport::Tcp && network.tcp.flags.has(TcpFlags::SYN);
        let flow = match known {
            Some(flow) if !is_syn || !self.get(flow).is_over_before(side, packet, network) => flow,
            _ => self.open(key, side, source)?,
        };
        self.recent[slot] = flow;
        Some(Found { flow, side })
    }

    /// The same for a plain segment.
    #[inline(always)]
    pub fn find_or_open_plain(&mut self, segment: &PlainSegment, source: u32) -> Option<Found> {
        match self.recent_ends[slot_of(segment.ends)] {
            RecentEnds { ends, found: Some(found) } if ends == segment.ends => Some(found),
            _ => self.look_up_plain(segment, source),
        }
    }

    #[inline(never)]
    fn look_up_plain(&mut self, segment: &PlainSegment, source: u32) -> Option<Found> {
        let (key, side) = FlowKey::of(&segment.endpoints());
        let flow = match self.lookup(&key) {
            Some(flow) => flow,
            None => self.open(key, side, source)?,
        };
        let (ends, found) = (segment.ends, Some(Found { flow, side }));
        self.recent_ends[slot_of(ends)] = RecentEnds { ends, found };
        found
    }

    /// The flow of a direction that another program summed up.
    pub fn find_or_open_totals(&mut self, endpoints: &Endpoints, source: u32) -> Option<Found> {
        let (key, side) = FlowKey::of(endpoints);
        let flow = match self.lookup(&key) {
            Some(flow) => flow,
            None => self.open(key, side, source)?,
        };
        Some(Found { flow, side })
    }

    /// The flow of a five-tuple, if it is known.
    pub fn find(&self, network: &Network) -> Option<Found> {
        self.find_endpoints(&network.endpoints)
    }

    /// The same.
    pub fn find_endpoints(&self, endpoints: &Endpoints) -> Option<Found> {
        let (key, side) = FlowKey::of(endpoints);
        self.lookup(&key).map(|flow| Found { flow, side })
    }

    /// The same for [`LOOK_UPS`] packets or fewer, one after the other into `found`.
    ///
    /// All hashes come first: look-ups that follow each other closely wait for memory together.
    pub fn find_each(&self, items: &[Item<'_>], found: &mut [Option<Found>; LOOK_UPS]) {
        let hashed = |item: &Item<'_>| {
            let (key, side) = match item {
                Item::Plain(segment) => FlowKey::of(&segment.endpoints()),
                Item::Other(packet) => FlowKey::of(&packet.network.endpoints),
            };
            (key, side, self.hasher.hash_one(key))
        };
        let mut wanted = [(FlowKey::default(), Side::Low, 0); LOOK_UPS];
        for (item, wanted) in items.iter().zip(&mut wanted) {
            *wanted = hashed(item);
        }
        for ((key, side, hash), found) in wanted.iter().take(items.len()).zip(found) {
            *found = self.lookup_hashed(key, *hash).map(|flow| Found { flow, side: *side });
        }
    }

    fn lookup(&self, key: &FlowKey) -> Option<u32> {
        self.lookup_hashed(key, self.hasher.hash_one(key))
    }

    #[inline(always)]
    fn lookup_hashed(&self, key: &FlowKey, hash: u64) -> Option<u32> {
        self.index.find(hash, |&flow| self.keys[flow as usize] == *key).copied()
    }

    #[cold]
    #[inline(never)]
    fn open(&mut self, key: FlowKey, side: Side, source: u32) -> Option<u32> {
        let number = self.keys.len() as u32;
        if number >= self.max_flows {
            return None;
        }
        if place_of(number) == 0 {
            self.groups.push(Group::default());
        }
        self.group_mut(number).open(Flow::new(key, side, source));
        self.keys.push(key);
        self.forget_ends(&key);
        self.register(key, number);
        Some(number)
    }

    /// An older flow may have had the same ends.
    fn forget_ends(&mut self, key: &FlowKey) {
        for side in [Side::Low, Side::High] {
            // Only those of IPv4 are there. Of others another entry is forgotten, if any.
            let ends = Ends::of(&key.endpoints(side));
            self.recent_ends[slot_of(ends)].found = None;
        }
    }

    /// Make `number` the flow of `key`, in place of an older one if there is.
    fn register(&mut self, key: FlowKey, number: u32) {
        let Self { index, hasher, keys, .. } = self;
        let key_of = |flow: u32| keys[flow as usize];
        let hash = hasher.hash_one(key);
        match index.find_mut(hash, |&flow| key_of(flow) == key) {
            Some(entry) => *entry = number,
            None => {
                index.insert_unique(hash, number, |&flow| hasher.hash_one(key_of(flow)));
            }
        }
    }
}

/// Where in [`FlowTable::recent_ends`] to look. Anybody can foresee it: those that share a slot are
/// looked up each time.
#[inline(always)]
fn slot_of(ends: Ends) -> usize {
    let mixed = (ends.addresses ^ u64::from(ends.ports) << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - RECENT.ilog2())) as usize
}

/// See [`FlowTable::lend_room`].
#[cold]
#[inline(never)]
fn lend(room: &mut u32, group: &mut Group) {
    let missing = group.needed_room().saturating_sub(group.pool_mut().room());
    let loan = missing.max(LOAN).min(*room);
    *room -= loan;
    group.pool_mut().add_room(loan);
}

/// Where a flow is in its group.
#[inline(always)]
fn place_of(flow: u32) -> usize {
    (flow & ((1 << GROUP_BITS) - 1)) as usize
}
