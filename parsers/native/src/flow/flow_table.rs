//! All flows, found by key and kept in order of their first packet.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use serde::{Deserialize, Serialize};

use super::ends::idle_times::IdleTimes;
use super::ends::packed_flows::Packing;
use super::ends::settled_flows::{Chunks, SettledFlows};
use super::flow_group::FlowGroup;
use super::flow_places::{
    FLOWS, FLOWS_IN_TURNS, GROUPS_IN_TURNS, flow_at, flows_in_group, group_of, groups_of, index_in_group,
};
use super::intervals::{Cuts, Piece};
use super::outstanding::{MAX_NODES, NODES_PER_PACKET, Pool};
use super::quic::paths::QuicPaths;
use super::tunnelled_flows::TunnelledFlows;
use super::{Flow, Origin};
use crate::packet::batch::Item;
use crate::packet::event::{Endpoints, Network, Packet, TcpFlags, Transport};
use crate::packet::key::Ipv4Ends;
use crate::packet::key::{FlowKey, LookupKey, Side};
use crate::packet::plain::PlainSegment;

/// Entries of the first-level cache of keys.
const RECENT: usize = 256;

/// The same of the ends of plain segments: 48 kB, for both directions of several hundred connections.
const RECENT_ENDS: usize = 2_048;

/// The number of no flow.
const NO_FLOW: u32 = u32::MAX;

/// Nodes granted to a group's pool at a time.
const LOAN: u32 = 64;

/// Packets that [`FlowTable::find_each`] looks up at a time.
pub const LOOK_UPS: usize = 32;

#[derive(Serialize, Deserialize)]
pub struct FlowTable {
    /// Flows over TCP and IPv4 by their ends; of several with the same ends the newest. The
    /// compared ends are stored in the table, so that a look-up waits for memory as few times as
    /// possible.
    #[serde(skip)] // made again of the flows' keys
    plain: HashTable<PlainFlow>,
    /// Flows over UDP and IPv4, likewise.
    #[serde(skip)]
    datagrams: HashTable<PlainFlow>,
    /// All other flows, likewise.
    #[serde(skip)]
    others: HashTable<(FlowKey, u32)>,
    /// Those in tunnels, which are in the other tables only if packets outside of a tunnel are theirs too.
    pub(super) tunnelled: TunnelledFlows,
    pub(super) quic_paths: QuicPaths,
    #[serde(skip)] // seeded anew
    hasher: DefaultHashBuilder,
    /// All flows, in order of their first packet, without the first groups of which all left.
    pub(super) groups: Vec<FlowGroup>,
    /// Where the states of the flows in these first groups are.
    pub(super) before: Vec<Chunks>,
    /// The state of those that left.
    #[serde(skip)] // copied as it is
    pub settled: SettledFlows,
    /// The memory of groups that left, for new ones.
    #[serde(skip)] // memory only
    pub(super) spare_pools: Vec<Pool>,
    pub(super) length: u32,
    /// Flows that did not leave.
    pub(super) live: u32,
    /// Those of them that are packed.
    #[serde(skip)] // counted again
    pub(super) packed: u32,
    pub(super) packing: Packing,
    /// How many may be unpacked before some are packed.
    pub(super) most_unpacked: u32,
    /// The most flows at a time.
    max_live: u32,
    /// Nodes that can still be granted to pools.
    pub(super) room: u32,
    /// Silence after which a flow is over.
    pub(super) idle: IdleTimes,
    /// Whether any flow may be over at its next packet.
    pub(super) is_careful: bool,
    /// How counters are cut into intervals, if they are.
    cuts: Option<Cuts>,
    /// Last flow found for each [`FlowKey::slot`]: spares most look-ups.
    #[serde(skip, default = "no_recent")]
    pub(super) recent: [u32; RECENT],
    /// The same for plain segments, which do not even need a key.
    #[serde(skip, default = "no_recent_ends")]
    recent_ends: Box<[RecentEnds; RECENT_ENDS]>,
}

fn no_recent() -> [u32; RECENT] {
    [NO_FLOW; RECENT]
}

fn no_recent_ends() -> Box<[RecentEnds; RECENT_ENDS]> {
    Box::new([RecentEnds::default(); RECENT_ENDS])
}

/// An entry of [`FlowTable::plain`]: [`Ipv4Ends`] and the number of the flow, in 16 bytes.
#[derive(Clone, Copy)]
struct PlainFlow {
    addresses: u64,
    ports: u32,
    flow: u32,
}

impl PlainFlow {
    #[inline(always)]
    fn ends(&self) -> Ipv4Ends {
        Ipv4Ends { addresses: self.addresses, ports: self.ports }
    }
}

/// The flow of a plain segment, and its ends.
#[derive(Clone, Copy, Default)]
struct RecentEnds {
    ends: Ipv4Ends,
    found: Option<Found>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Found {
    pub flow: u32,
    pub side: Side,
}

impl FlowTable {
    /// An empty table of at most `max_live` flows at a time, which are over after a silence of `idle`.
    pub fn new(max_live: u32, idle: IdleTimes, packing: Packing, cuts: Option<Cuts>) -> Self {
        Self {
            plain: HashTable::new(),
            datagrams: HashTable::new(),
            others: HashTable::new(),
            tunnelled: TunnelledFlows::default(),
            quic_paths: QuicPaths::default(),
            // Seeded for each process: nobody can prepare a capture whose keys collide.
            hasher: DefaultHashBuilder::default(),
            groups: Vec::new(),
            before: Vec::new(),
            settled: SettledFlows::default(),
            spare_pools: Vec::new(),
            length: 0,
            live: 0,
            packed: 0,
            packing,
            most_unpacked: packing.few,
            max_live,
            room: MAX_NODES,
            idle,
            is_careful: false,
            cuts,
            recent: no_recent(),
            recent_ends: no_recent_ends(),
        }
    }

    /// The flows that look-ups find by their five-tuple, in order.
    pub fn registered(&self) -> Vec<u32> {
        let others = self.others.iter().map(|other| other.1);
        let plain = self.plain.iter().chain(&self.datagrams).map(|plain| plain.flow);
        let mut flows: Vec<u32> = plain.chain(others).collect();
        flows.sort_unstable();
        flows
    }

    /// Complete what was read back from a checkpoint; false if it contradicts itself.
    pub fn restore(&mut self, settled: SettledFlows, registered: &[u32]) -> bool {
        self.settled = settled;
        let bytes = self.settled.bytes();
        let opened = |group| flows_in_group(group, self.length);
        let is_sound = self.before.len() + self.groups.len() == groups_of(self.length)
            && (0..self.before.len()).all(|group| opened(group) == FLOWS)
            && (self.before.len()..)
                .zip(&self.groups)
                .all(|(number, group)| group.flows.opened() == opened(number) && group.is_sound(bytes))
            && self.before.iter().flatten().all(|chunk| chunk.is_within(bytes))
            && self.here().count() == self.live()
            && registered
                .iter()
                .copied()
                .chain(self.tunnelled.flows())
                .chain(self.quic_paths.flows())
                .all(|flow| self.has(flow));
        if is_sound {
            self.count_packed();
            let key = |flow| self.group(flow).flows.key(index_in_group(flow));
            let sought: Vec<_> = registered.iter().map(|&flow| (key(flow).sought(), flow)).collect();
            sought.iter().for_each(|(sought, flow)| self.register(sought, *flow));
        }
        is_sound
    }

    /// Whether there is a flow of this number, which did not leave.
    pub fn has(&self, flow: u32) -> bool {
        let group = self.groups.get(self.place(flow)).filter(|_| flow < self.length);
        group.is_some_and(|group| !group.flows.has_left(index_in_group(flow)))
    }

    pub fn len(&self) -> usize {
        self.length as usize
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many flows did not leave.
    pub fn live(&self) -> usize {
        self.live as usize
    }

    /// A flow that did not leave.
    #[inline(always)]
    pub fn get(&self, flow: u32) -> &Flow {
        self.group(flow).flows.at(index_in_group(flow))
    }

    /// The same, unpacked to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, flow: u32) -> &mut Flow {
        self.wake(flow);
        self.group_mut(flow).flows.at_mut(index_in_group(flow))
    }

    /// A flow, if it did not leave.
    pub fn if_here(&self, flow: u32) -> Option<&Flow> {
        self.has(flow).then(|| self.get(flow))
    }

    /// The same with its pool, which has space for a packet if any is left.
    #[inline(always)]
    pub fn get_with_pool(&mut self, flow: u32) -> (&mut Flow, &mut Pool) {
        let place = self.place(flow);
        let group = &mut self.groups[place];
        if group.pool_mut().room() < NODES_PER_PACKET {
            grant_nodes(&mut self.room, group);
        }
        group.flow_and_pool(index_in_group(flow))
    }

    /// The place of a flow's group in `groups`, which does not exist if all flows of it left.
    #[inline(always)]
    pub fn place(&self, flow: u32) -> usize {
        group_of(flow).wrapping_sub(self.before.len())
    }

    #[inline(always)]
    pub(super) fn group(&self, flow: u32) -> &FlowGroup {
        &self.groups[self.place(flow)]
    }

    #[inline(always)]
    pub fn group_mut(&mut self, flow: u32) -> &mut FlowGroup {
        let place = self.place(flow);
        &mut self.groups[place]
    }

    /// The next packet of `flow` is of `time_ns`: end its interval if that is another,
    /// and return whether it was.
    #[inline(always)]
    pub fn reach(&mut self, flow: u32, time_ns: i64) -> bool {
        self.group_mut(flow).reach(index_in_group(flow), time_ns)
    }

    /// The next packet of a flow is a segment with data: its number and payload.
    #[inline(always)]
    pub fn note_data(&mut self, found: Found, time_ns: i64, data: (u32, u32)) {
        self.group_mut(found.flow).note_data(index_in_group(found.flow), found.side, time_ns, data);
    }

    /// Cut the flows whose interval ended after `ended.0`, and at `ended.1` at the latest.
    pub fn cut_ended(&mut self, ended: (i64, i64)) {
        self.groups.iter_mut().for_each(|group| group.cut_ended(ended));
        self.count_packed();
    }

    /// The first flow of each group of neighbours.
    pub fn neighbourhoods(&self) -> impl Iterator<Item = u32> + use<> {
        (self.before.len()..groups_of(self.length)).map(|group| flow_at(group, 0))
    }

    /// What the neighbours of `flow` counted in intervals that ended, each with its flow.
    pub fn take_pieces(&mut self, flow: u32) -> impl Iterator<Item = (u32, Piece)> + use<> {
        let group = group_of(flow);
        let pieces = self.group_mut(flow).take_pieces().into_iter();
        pieces.map(move |piece| (flow_at(group, piece.flow.into()), piece))
    }

    /// Grant a group's pool nodes for the queued packets and one more, if any are left.
    pub fn borrow_pool(&mut self, flow: u32) {
        let place = self.place(flow);
        grant_nodes(&mut self.room, &mut self.groups[place]);
    }

    /// Take back the nodes that a group's pool needs no longer.
    pub fn take_room_back(&mut self, flow: u32) {
        let pool = self.group_mut(flow).pool_mut();
        let room = pool.take_room();
        pool.add_room(room.min(LOAN));
        self.room += room.saturating_sub(LOAN);
    }

    /// The groups with flows.
    pub fn groups_mut(&mut self) -> &mut [FlowGroup] {
        &mut self.groups
    }

    /// Divide the remaining nodes among the groups by the packets that each, at its place, is to follow. The
    /// shares are fixed here, and not while the groups run, perhaps in several threads.
    pub fn share_room(&mut self, packets: impl Fn(usize, &FlowGroup) -> usize) {
        for group in &mut self.groups {
            self.room += group.pool_mut().take_room();
        }
        // For one packet more, so that the next one is taken without a grant.
        let needed = |(place, group): (usize, &FlowGroup)| match packets(place, group) {
            0 => 0,
            packets => (packets as u64 + 1) * u64::from(NODES_PER_PACKET),
        };
        let all_needed: u64 = self.groups.iter().enumerate().map(needed).sum();
        let room = u64::from(self.room);
        for (place, group) in self.groups.iter_mut().enumerate() {
            let needed = needed((place, group));
            let share = (room * needed).checked_div(all_needed).unwrap_or(0);
            // Not more than the room, which is a 32-bit number.
            let share = share.min(needed) as u32;
            self.room -= share;
            group.pool_mut().add_room(share);
        }
    }

    /// How many groups all of whose flows left come before those that are here.
    pub fn groups_before(&self) -> usize {
        self.before.len()
    }

    /// The flows that did not leave, group by group.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.groups.iter_mut().flat_map(|group| group.flows.iter_mut())
    }

    /// Numbers of the flows that did not leave, in order.
    pub fn here(&self) -> impl Iterator<Item = u32> {
        (self.first_here()..self.length).filter(|&flow| self.has(flow))
    }

    /// A number before which all flows left.
    fn first_here(&self) -> u32 {
        let turns = self.before.len() / GROUPS_IN_TURNS * GROUPS_IN_TURNS;
        flow_at(turns, 0)
    }

    /// Forget when packets of connections passed that wait for an answer.
    pub fn forget_times(&mut self) {
        self.change_all(|flow, pool| {
            if let Some(connection) = flow.transport.tcp.as_deref_mut() {
                connection.forget_times(pool);
            }
        });
        self.groups.iter_mut().for_each(FlowGroup::forget_waiting);
    }

    /// The capture has a gap here: what it does not show was not lost.
    pub fn leave_gap(&mut self) {
        self.change_all(|flow, _| {
            if let Some(state) = flow.transport.non_tcp_if_any() {
                state.leave_gap();
            }
        });
    }

    /// Change all flows that did not leave; those that are packed stay so.
    fn change_all(&mut self, change: impl Fn(&mut Flow, &mut Pool)) {
        self.groups.iter_mut().for_each(|group| group.change_all(&change));
    }

    /// The flow of a packet, opened if needed. None if the limit is reached.
    #[inline(always)]
    pub fn find_or_open(&mut self, packet: &Packet, network: &Network, source: u32) -> Option<Found> {
        let (key, side) = FlowKey::of(&network.endpoints);
        let slot = key.slot() % RECENT;
        let recent = self.recent[slot];
        let is_recent = recent != NO_FLOW && self.tunnelled.is_empty() && self.get(recent).key() == key;
        let known = if is_recent { Some(recent) } else { self.lookup(&key.sought()) };
        // Only a SYN can start another connection between the same ports.
        let is_syn = network.transport == Transport::Tcp && network.tcp.flags.has(TcpFlags::SYN);
        let flow = match known {
            Some(flow) if !self.is_over_before((flow, side), packet, network, is_syn) => flow,
            _ => self.open(key, side, Origin::new(source, packet.interface))?,
        };
        self.recent[slot] = flow;
        Some(Found { flow, side })
    }

    /// Whether the last packet with a like key was of the flow with this one.
    #[inline(always)]
    pub(super) fn is_recent(&self, key: &FlowKey) -> bool {
        let recent = self.recent[key.slot() % RECENT];
        recent != NO_FLOW && self.get(recent).key() == *key
    }

    /// Whether a packet of `side` cannot belong to a known flow although it has its five-tuple.
    #[inline(always)]
    pub(super) fn is_over_before(
        &mut self,
        (flow, side): (u32, Side),
        packet: &Packet,
        network: &Network,
        is_syn: bool,
    ) -> bool {
        self.ends_before(flow, packet.time_ns)
            || is_syn && self.get(flow).is_over_before(side, packet, network)
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
        let (ends, side) = segment.ends.sorted();
        let known = self.lookup(&LookupKey::Plain(ends));
        let flow = match known.filter(|&flow| !self.ends_before(flow, segment.time_ns)) {
            Some(flow) => flow,
            None if known.is_none()
                && self.has_tunnels()
                && let Some(flow) = self.join_plain(segment) =>
            {
                flow
            }
            None => {
                let flow = self.open(
                    FlowKey::of(&segment.endpoints()).0,
                    side,
                    Origin::new(source, segment.interface.into()),
                )?;
                if segment.ip.ip_id.is_none() {
                    // A text without IP headers; in a capture plain segments have 0.
                    self.get_mut(flow).note_dscp(side, None);
                }
                flow
            }
        };
        let (ends, found) = (segment.ends, Some(Found { flow, side }));
        if !self.is_careful {
            self.recent_ends[slot_of(ends)] = RecentEnds { ends, found };
        }
        found
    }

    /// The flow of a direction in another program's totals.
    pub fn find_or_open_totals(&mut self, endpoints: &Endpoints, source: u32) -> Option<Found> {
        let (key, side) = FlowKey::of(endpoints);
        let flow = match self.lookup(&key.sought()) {
            Some(flow) => flow,
            None => self.open(key, side, Origin::of_totals(source))?,
        };
        Some(Found { flow, side })
    }

    /// The flow of a five-tuple outside of tunnels, if known.
    pub fn find(&self, network: &Network) -> Option<Found> {
        let (key, side) = FlowKey::of(&network.endpoints);
        self.lookup(&key.sought()).map(|flow| Found { flow, side })
    }

    /// The same, or else the newest in a tunnel.
    pub fn find_endpoints(&self, endpoints: &Endpoints) -> Option<Found> {
        let (key, side) = FlowKey::of(endpoints);
        let flow = self.lookup(&key.sought()).or_else(|| self.tunnelled.newest(&key).last().copied())?;
        Some(Found { flow, side })
    }

    /// The same for the first [`LOOK_UPS`] of many packets, written to `found`; returns how many
    /// these are.
    ///
    /// First come all hashes, then the positions of the probable entries, then the entries: their
    /// memory accesses overlap.
    #[inline(always)]
    pub fn find_each<'a>(
        &self,
        items: impl Iterator<Item = Item<'a>> + Clone,
        found: &mut [Option<Found>; LOOK_UPS],
    ) -> usize {
        let mut hashes = [0; LOOK_UPS];
        for (hash, item) in hashes.iter_mut().zip(items.clone()) {
            if let Item::Plain(segment) = item {
                *hash = self.hasher.hash_one(LookupKey::Plain(segment.ends.sorted().0));
            }
        }
        // The first candidate, not compared yet.
        let places = hashes.map(|hash| self.plain.find(hash, |_| true));
        let probable = places.map(Option::<&PlainFlow>::copied);
        let mut count = 0;
        for (((found, hash), probable), item) in found.iter_mut().zip(hashes).zip(probable).zip(items) {
            count += 1;
            *found = match item {
                Item::Plain(segment) => {
                    let (ends, side) = segment.ends.sorted();
                    let flow = match probable.filter(|known| known.ends() == ends) {
                        Some(known) => Some(known.flow),
                        None => self.lookup_plain(ends, hash),
                    };
                    flow.map(|flow| Found { flow, side })
                }
                Item::Other(packet) => self.find_in_lane(&packet.network),
            };
        }
        count
    }

    pub(super) fn lookup(&self, sought: &LookupKey) -> Option<u32> {
        let hash = self.hasher.hash_one(sought);
        match sought {
            LookupKey::Plain(ends) => self.lookup_plain(*ends, hash),
            LookupKey::Datagrams(ends) => {
                self.datagrams.find(hash, |known| known.ends() == *ends).map(|known| known.flow)
            }
            LookupKey::Other(key) => self.others.find(hash, |known| known.0 == *key).map(|known| known.1),
        }
    }

    #[inline(always)]
    fn lookup_plain(&self, ends: Ipv4Ends, hash: u64) -> Option<u32> {
        self.plain.find(hash, |known| known.ends() == ends).map(|known| known.flow)
    }

    #[cold]
    #[inline(never)]
    fn open(&mut self, key: FlowKey, side: Side, origin: Origin) -> Option<u32> {
        let number = self.open_unregistered(&key, side, origin)?;
        self.forget_ends(&key);
        self.register(&key.sought(), number);
        Some(number)
    }

    /// Open a flow that look-ups do not find yet.
    pub(super) fn open_unregistered(&mut self, key: &FlowKey, side: Side, origin: Origin) -> Option<u32> {
        let number = self.length;
        if self.live >= self.max_live || number == NO_FLOW {
            return None;
        }
        if index_in_group(number) == 0 {
            let pool = self.spare_pools.pop().unwrap_or_else(|| Pool::with_room(0));
            let mut group = FlowGroup::new(pool, self.cuts);
            if self.length >= FLOWS_IN_TURNS {
                group.flows.reserve();
            }
            self.groups.push(group);
        }
        let others = self.live();
        self.group_mut(number).open(Flow::new(*key, side, origin), others);
        self.length += 1;
        self.live += 1;
        Some(number)
    }

    /// An older flow may have had the same ends.
    pub(super) fn forget_ends(&mut self, key: &FlowKey) {
        for side in [Side::Low, Side::High] {
            // Only those of IPv4 are there. For others, another entry is removed, if any.
            let ends = Ipv4Ends::of(&key.endpoints(side));
            self.recent_ends[slot_of(ends)].found = None;
        }
    }

    /// Make `number` the flow that look-ups find, instead of an older one with the same key.
    pub(super) fn register(&mut self, sought: &LookupKey, number: u32) {
        let Self { plain, datagrams, others, hasher, .. } = self;
        let hash = hasher.hash_one(sought);
        let mut replaced = None;
        let table = if matches!(sought, LookupKey::Plain(_)) { plain } else { datagrams };
        match *sought {
            LookupKey::Plain(ends) | LookupKey::Datagrams(ends) => {
                match table.find_mut(hash, |known| known.ends() == ends) {
                    Some(known) => replaced = Some(std::mem::replace(&mut known.flow, number)),
                    None => {
                        let Ipv4Ends { addresses, ports } = ends;
                        let hash_of = |known: &PlainFlow| hasher.hash_one(LookupKey::Plain(known.ends()));
                        table.insert_unique(hash, PlainFlow { addresses, ports, flow: number }, hash_of);
                    }
                }
            }
            LookupKey::Other(key) => match others.find_mut(hash, |known| known.0 == key) {
                Some(known) => replaced = Some(std::mem::replace(&mut known.1, number)),
                None => {
                    let hash_of = |known: &(FlowKey, u32)| hasher.hash_one(LookupKey::Other(known.0));
                    others.insert_unique(hash, (key, number), hash_of);
                }
            },
        }
        if let Some(old) = replaced {
            self.note_replaced(old);
        }
    }

    /// Another flow has the five-tuple of one, which it ended unless that was over before.
    pub(super) fn note_replaced(&mut self, old: u32) {
        let was_over = self.is_doubtful(old);
        self.get_mut(old).is_replaced = !was_over;
    }

    /// Let look-ups find a flow no longer.
    pub(super) fn unregister(&mut self, number: u32) {
        let key = self.get(number).key();
        self.forget_recent(number, &key);
        let sought = key.sought();
        let hash = self.hasher.hash_one(sought);
        let table = if matches!(sought, LookupKey::Plain(_)) { &mut self.plain } else { &mut self.datagrams };
        match sought {
            LookupKey::Plain(_) | LookupKey::Datagrams(_) => {
                if let Ok(entry) = table.find_entry(hash, |known| known.flow == number) {
                    entry.remove();
                }
            }
            LookupKey::Other(_) => {
                if let Ok(entry) = self.others.find_entry(hash, |known| known.1 == number) {
                    entry.remove();
                }
            }
        }
        self.tunnelled.unregister(&key, number);
        self.quic_paths.unregister(number);
    }

    /// Let look-ups find no flow any more.
    pub(super) fn forget_keys(&mut self) {
        (self.plain, self.datagrams, self.others) = Default::default();
        self.forget_all_recent();
    }

    /// Look all flows up anew for their next packets.
    pub(super) fn forget_all_recent(&mut self) {
        self.recent = [NO_FLOW; RECENT];
        self.recent_ends.fill(RecentEnds::default());
    }

    /// Look a flow up anew for its next packet.
    pub(super) fn forget_recent(&mut self, number: u32, key: &FlowKey) {
        self.forget_ends(key);
        let recent = &mut self.recent[key.slot() % RECENT];
        if *recent == number {
            *recent = NO_FLOW;
        }
    }

    /// Look all flows up anew, and check each time whether they are over, or no longer.
    pub fn be_careful(&mut self, is_careful: bool) {
        if is_careful && !self.is_careful {
            self.recent_ends.fill(RecentEnds::default());
        }
        self.is_careful = is_careful;
    }
}

/// Slot in [`FlowTable::recent_ends`]. It is predictable: flows that share a slot are looked up
/// each time.
#[inline(always)]
fn slot_of(ends: Ipv4Ends) -> usize {
    let mixed = (ends.addresses ^ u64::from(ends.ports) << 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - RECENT_ENDS.ilog2())) as usize
}

/// See [`FlowTable::borrow_pool`].
#[cold]
#[inline(never)]
fn grant_nodes(room: &mut u32, group: &mut FlowGroup) {
    let missing = group.needed_room().saturating_sub(group.pool_mut().room());
    let loan = missing.max(LOAN).min(*room);
    *room -= loan;
    group.pool_mut().add_room(loan);
}
