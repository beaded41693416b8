//! Numbers waiting for an acknowledgement or an echo, of neighbouring flows together.
//!
//! A hundred thousand flows with a window each are millions of small entries. In separate buffers
//! they took three times the memory, because buffers that grow side by side leave their smaller
//! predecessors behind. So the entries of neighbouring flows share a pool of nodes, each a cache
//! line with several entries, and each direction has a linked list in it. All pools together are
//! bounded: each allocates only the nodes granted to it.

use serde::{Deserialize, Serialize};

use crate::packet::seq::SeqNumber;

/// Limit of nodes in all pools: 24 MiB, enough for 3,000,000 numbers, of 4 GB in flight. Beyond it
/// numbers are not tracked. Holes, which have no nodes, take the room of one each.
pub const MAX_NODES: u32 = (24 << 20) / size_of::<Node>() as u32;

/// Nodes that a packet can need: for its end, for its timestamp, and for a hole (`holes.rs`).
pub const NODES_PER_PACKET: u32 = 3;

/// Nodes for which a pool reserves address space, 256 kB: memory is used page by page. Pools that
/// grow side by side leave holes that nothing else fits into.
const RESERVED: usize = 4_096;

/// Entries in a node, as a power of two.
const ENTRY_BITS: u32 = 3;
const ENTRIES: usize = 1 << ENTRY_BITS;

/// Limit of nodes searched for an entry that is not the first.
const MAX_STEPS: usize = 4_096;

const NONE: u32 = u32::MAX;

/// Marks an unused entry in [`Node::later_ns`].
const EMPTY: u32 = u32::MAX;

/// Consecutive entries of a list, as offsets from the first: a cache line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
struct Node {
    time_ns: i64,
    number: u32,
    /// Next node of the list, or of the free list.
    next: u32,
    later_ns: [u32; ENTRIES],
    beyond: [u16; ENTRIES],
}

impl Node {
    /// A node whose first entry is `number`, sent at `time_ns`.
    #[inline(always)]
    fn new(number: u32, time_ns: i64) -> Self {
        let mut later_ns = [EMPTY; ENTRIES];
        later_ns[0] = 0;
        Self { time_ns, number, next: NONE, later_ns, beyond: [0; ENTRIES] }
    }

    /// Number and time of entry `at`; meaningless unless the node has it.
    #[inline(always)]
    fn entry(&self, at: usize) -> (u32, i64) {
        let number = self.number.wrapping_add(u32::from(self.beyond[at]));
        (number, self.time_ns.wrapping_add(i64::from(self.later_ns[at])))
    }

    #[inline(always)]
    fn has(&self, at: usize) -> bool {
        self.later_ns.get(at).is_some_and(|&later_ns| later_ns != EMPTY)
    }

    /// Write entry `at`; false beyond the last, or too far from the first: four seconds, or 64 kB.
    #[inline(always)]
    fn put(&mut self, at: usize, number: u32, time_ns: i64) -> bool {
        // A time before the first wraps to a large number.
        let later = time_ns.wrapping_sub(self.time_ns) as u64;
        let beyond = number.wrapping_sub(self.number);
        if at >= ENTRIES || later >= u64::from(EMPTY) || beyond > u32::from(u16::MAX) {
            return false;
        }
        self.later_ns[at] = later as u32;
        self.beyond[at] = beyond as u16;
        true
    }
}

/// The nodes of several lists.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pool {
    nodes: Vec<Node>,
    /// First node of the free list.
    free: u32,
    /// Nodes that may still be allocated.
    room: u32,
}

impl Default for Pool {
    /// A pool with the full limit, when it is the only one.
    fn default() -> Self {
        Self::with_room(MAX_NODES)
    }
}

impl Pool {
    /// A pool of at most `room` nodes.
    pub fn with_room(room: u32) -> Self {
        Self { nodes: Vec::new(), free: NONE, room }
    }

    /// Nodes in use or free.
    pub fn size(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Nodes that may still be allocated.
    #[inline(always)]
    pub fn room(&self) -> u32 {
        self.room
    }

    pub fn add_room(&mut self, nodes: u32) {
        self.room += nodes;
    }

    /// Take back the nodes not allocated yet.
    pub fn take_room(&mut self) -> u32 {
        std::mem::take(&mut self.room)
    }

    /// Forget all nodes, of lists that are no more, and return how many there were or could have been. Their
    /// memory stays for others.
    pub fn reset(&mut self) -> u32 {
        let room = self.size() + self.take_room();
        self.nodes.clear();
        self.free = NONE;
        room
    }

    /// Give back the memory that no node takes.
    pub fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
    }

    /// Take the room of a node for something stored elsewhere; false if there is none.
    pub fn reserve(&mut self) -> bool {
        let room = self.room.checked_sub(1);
        self.room = room.unwrap_or(0);
        room.is_some()
    }

    /// Give back what [`Pool::reserve`] took.
    pub fn release(&mut self) {
        self.room += 1;
    }

    /// Store `node` and return its index; None if the pool is full.
    fn add(&mut self, node: Node) -> Option<u32> {
        let index = self.free;
        if let Some(slot) = self.nodes.get_mut(index as usize) {
            self.free = slot.next;
            *slot = node;
            return Some(index);
        }
        self.room = self.room.checked_sub(1)?;
        if self.nodes.capacity() == 0 {
            self.nodes.reserve_exact(RESERVED);
        }
        self.nodes.push(node);
        Some(self.nodes.len() as u32 - 1)
    }

    /// Free node `index` and return the next one of its list.
    fn remove(&mut self, index: usize) -> u32 {
        let Some(node) = self.nodes.get_mut(index) else { return NONE };
        let next = std::mem::replace(&mut node.next, self.free);
        self.free = index as u32;
        next
    }
}

/// Position of an entry: the index of its node, and its index there.
///
/// In one word, because two small ones side by side are written one by one and read together, for
/// which a processor has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Cursor(u32);

impl Cursor {
    /// In a node that no pool has.
    const NOWHERE: Self = Self(NONE);

    #[inline(always)]
    fn first_of(node: u32) -> Self {
        Self(node << ENTRY_BITS)
    }

    #[inline(always)]
    fn node(self) -> usize {
        (self.0 >> ENTRY_BITS) as usize
    }

    #[inline(always)]
    fn place(self) -> usize {
        self.0 as usize % ENTRIES
    }
}

/// An entry found before, if any, from which a search for a later number begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bookmark {
    at: Cursor,
    number: u32,
}

impl Default for Bookmark {
    fn default() -> Self {
        Self { at: Cursor::NOWHERE, number: 0 }
    }
}

/// Send times of numbers, in order. Numbers wrap; those waiting span less than 2^31.
///
/// Invariants: `first` and `last` are nowhere exactly if `count` is 0; the nodes from one to the
/// other belong to no other list.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outstanding {
    first: Cursor,
    last: Cursor,
    count: u32,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self { first: Cursor::NOWHERE, last: Cursor::NOWHERE, count: 0 }
    }
}

impl Outstanding {
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Add `number` with its send time; false if the pool is full.
    #[inline(always)]
    pub fn push(&mut self, number: u32, time_ns: i64, pool: &mut Pool) -> bool {
        if let Some(node) = pool.nodes.get_mut(self.last.node())
            && node.put(self.last.place() + 1, number, time_ns)
        {
            self.last.0 += 1;
            self.count += 1;
            return true;
        }
        self.push_node(number, time_ns, pool)
    }

    #[inline(never)]
    fn push_node(&mut self, number: u32, time_ns: i64, pool: &mut Pool) -> bool {
        let Some(index) = pool.add(Node::new(number, time_ns)) else {
            return false;
        };
        match pool.nodes.get_mut(self.last.node()) {
            Some(last) => last.next = index,
            None => self.first = Cursor::first_of(index),
        }
        self.last = Cursor::first_of(index);
        self.count += 1;
        true
    }

    /// Send time of the oldest entry.
    pub fn oldest_ns(&self, pool: &Pool) -> Option<i64> {
        self.entries(pool).next().map(|(_, time_ns)| time_ns)
    }

    /// Send time of the newest entry.
    pub fn newest_ns(&self, pool: &Pool) -> Option<i64> {
        pool.nodes.get(self.last.node()).map(|node| node.entry(self.last.place()).1)
    }

    /// Send time of the first number not before `number`; None if it is not in the first
    /// [`MAX_STEPS`] nodes.
    pub fn sent_ns(&self, number: u32, pool: &Pool) -> Option<i64> {
        let is_before = |sent: u32| SeqNumber(sent).since(SeqNumber(number)) < 0;
        let mut at = self.first;
        for _ in 0..MAX_STEPS {
            let node = pool.nodes.get(at.node())?;
            let is_elsewhere = pool.nodes.get(node.next as usize).is_some_and(|next| is_before(next.number));
            if !is_elsewhere {
                let entries = (at.place()..ENTRIES).take_while(|&place| node.has(place));
                let found = entries.map(|place| node.entry(place)).find(|&(sent, _)| !is_before(sent));
                if let Some((_, time_ns)) = found {
                    return Some(time_ns);
                }
            }
            at = Cursor::first_of(node.next);
        }
        None
    }

    /// Send time of exactly `number`, which is after that of `bookmark`; None if it is not in the first
    /// [`MAX_STEPS`] nodes from there. The bookmark moves to it.
    pub fn sent_ns_after(&self, bookmark: &mut Bookmark, number: u32, pool: &Pool) -> Option<i64> {
        let (first, _) = pool.nodes.get(self.first.node())?.entry(self.first.place());
        let is_waiting =
            bookmark.at != Cursor::NOWHERE && SeqNumber(bookmark.number).since(SeqNumber(first)) >= 0;
        let mut at = if is_waiting { bookmark.at } else { self.first };
        for _ in 0..MAX_STEPS {
            let node = pool.nodes.get(at.node())?;
            let mut places = (at.place()..ENTRIES).take_while(|&place| node.has(place));
            let reached = places.find(|&place| SeqNumber(node.entry(place).0).since(SeqNumber(number)) >= 0);
            if let Some(place) = reached {
                let (sent, time_ns) = node.entry(place);
                let first_there = at.0 - at.place() as u32;
                *bookmark = Bookmark { at: Cursor(first_there + place as u32), number: sent };
                return (sent == number).then_some(time_ns);
            }
            at = Cursor::first_of(node.next);
        }
        None
    }

    /// Numbers and times, the oldest first.
    fn entries<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = (u32, i64)> + 'a {
        let mut at = self.first;
        (0..self.count).map_while(move |_| {
            let node = pool.nodes.get(at.node())?;
            let entry = node.entry(at.place());
            at = if node.has(at.place() + 1) { Cursor(at.0 + 1) } else { Cursor::first_of(node.next) };
            Some(entry)
        })
    }

    pub fn clear(&mut self, pool: &mut Pool) {
        while self.count > 0 {
            self.drop_oldest(pool);
        }
    }

    /// Remove the oldest entry.
    #[inline(always)]
    pub fn drop_oldest(&mut self, pool: &mut Pool) {
        let Some(node) = pool.nodes.get(self.first.node()) else { return };
        self.count -= 1;
        if node.has(self.first.place() + 1) {
            self.first.0 += 1;
        } else {
            self.drop_node(pool);
        }
    }

    #[inline(never)]
    fn drop_node(&mut self, pool: &mut Pool) {
        match pool.remove(self.first.node()) {
            NONE => (self.first, self.last) = (Cursor::NOWHERE, Cursor::NOWHERE),
            next => self.first = Cursor::first_of(next),
        }
    }

    /// Remove numbers up to `number`, and return the send time of exactly that one.
    #[inline(always)]
    pub fn pop_through(&mut self, number: u32, pool: &mut Pool) -> Option<i64> {
        let mut last = None;
        while let Some(node) = pool.nodes.get(self.first.node()) {
            // The entries of a node at once: the changing values stay in registers.
            let (from, mut place) = (self.first.place(), self.first.place());
            let is_whole = loop {
                let (sent, time_ns) = node.entry(place);
                let behind = SeqNumber(number).since(SeqNumber(sent));
                if behind < 0 {
                    break false;
                }
                last = (behind == 0).then_some(time_ns);
                place += 1;
                if !node.has(place) {
                    break true;
                }
            };
            self.count -= (place - from) as u32;
            if !is_whole {
                self.first.0 += (place - from) as u32;
                break;
            }
            self.drop_node(pool);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Distances that fit into a node, and some that do not.
    fn step() -> impl Strategy<Value = (u32, i64)> {
        let number = prop::sample::select(vec![1, 2, 9_000, 70_000]);
        let time_ns = prop::sample::select(vec![-1, 0, 1, 1_000_000, 5_000_000_000, i64::MAX]);
        (number, time_ns)
    }

    proptest! {
        /// Two lists in one pool, each compared with a queue of its own.
        #[test]
        fn test_lists_of_one_pool_do_not_disturb_each_other(
            steps in proptest::collection::vec((any::<bool>(), 0_u32..4, 0_usize..5, step()), 1..300),
        ) {
            let mut pool = Pool::default();
            let mut lists = [Outstanding::default(), Outstanding::default()];
            let mut queues = [VecDeque::new(), VecDeque::new()];
            let (mut next, mut now_ns) = (u32::MAX - 20, 0_i64);
            let mut most = 0;
            for (which, action, back, (step, step_ns)) in steps {
                let (list, queue) = (&mut lists[usize::from(which)], &mut queues[usize::from(which)]);
                if action > 0 {
                    next = next.wrapping_add(step);
                    now_ns = now_ns.wrapping_add(step_ns);
                    prop_assert!(list.push(next, now_ns, &mut pool));
                    queue.push_back((next, now_ns));
                    most = most.max(queue.len());
                    continue;
                }
                let newest = queue.len().saturating_sub(back + 1);
                let number = queue.get(newest).map_or(next, |&(number, _)| number);
                let mut expected = None;
                while let Some(&(front, time_ns)) = queue.front() && number.wrapping_sub(front) as i32 >= 0 {
                    expected = (front == number).then_some(time_ns);
                    queue.pop_front();
                }
                prop_assert_eq!(list.pop_through(number, &mut pool), expected);
                prop_assert_eq!(list.count(), queue.len());
            }
            prop_assert!(pool.size() as usize <= 2 * most);
        }
    }

    proptest! {
        /// A search from the last number found finds the same as one through all.
        #[test]
        fn test_a_bookmark_finds_what_is_waiting(
            steps in proptest::collection::vec((any::<bool>(), 0_u32..40, step()), 1..300),
        ) {
            let (mut pool, mut list, mut bookmark) = (Pool::default(), Outstanding::default(), Bookmark::default());
            let mut other = Outstanding::default();
            let (mut waiting, mut next) = (VecDeque::<(u32, i64)>::new(), u32::MAX - 20);
            let mut sought = next;
            for (pops, ahead, (step, step_ns)) in steps {
                next = next.wrapping_add(step);
                list.push(next, step_ns, &mut pool);
                other.push(next, -1, &mut pool);
                waiting.push_back((next, step_ns));
                if pops {
                    let (number, _) = waiting[ahead as usize % waiting.len()];
                    list.pop_through(number, &mut pool);
                    other.pop_through(number, &mut pool);
                    waiting.retain(|&(other, _)| SeqNumber(other).since(SeqNumber(number)) > 0);
                    continue;
                }
                sought = sought.wrapping_add(ahead * step / 8);
                let expected = waiting.iter().find(|&&(number, _)| number == sought);
                let found = list.sent_ns_after(&mut bookmark, sought, &pool);
                prop_assert_eq!(found, expected.map(|&(_, time_ns)| time_ns));
            }
        }
    }

    #[test]
    fn test_entries_that_follow_closely_share_a_node() {
        let (mut pool, mut list) = (Pool::default(), Outstanding::default());
        for number in 0..64 {
            assert!(list.push(1_448 * number, i64::from(number), &mut pool));
        }
        assert_eq!((pool.size(), size_of::<Node>()), (8, 64));
    }

    #[test]
    fn test_without_room_nothing_is_remembered_and_nodes_are_used_again() {
        let (mut pool, mut list) = (Pool::with_room(2), Outstanding::default());
        let far = 1 << 20;
        assert!(list.push(0, 0, &mut pool) && list.push(far, 0, &mut pool));
        assert!(!list.push(2 * far, 0, &mut pool));
        assert_eq!(list.count(), 2);
        assert_eq!(list.pop_through(0, &mut pool), Some(0));
        assert!(list.push(2 * far, 7, &mut pool));
        assert_eq!(list.pop_through(2 * far, &mut pool), Some(7));
    }
}
