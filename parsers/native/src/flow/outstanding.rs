//! What waits for an acknowledgement or an echo, of neighbouring flows together.
//!
//! A hundred thousand flows with a window each are millions of small entries. In buffers of their
//! own they took three times the memory, because buffers that grow side by side leave their
//! smaller predecessors behind. So the entries of neighbouring flows share a pool of nodes, each a
//! cache line with several entries, and each direction has a list through it. The pools together
//! are bounded: each makes only as many nodes as it was given room for.

use crate::packet::seq::SeqNumber;

/// Nodes of all pools together: 24 MiB, enough for 3,000,000 numbers, of 4 GB in flight. What would need
/// more is not watched.
pub const MAX_NODES: u32 = (24 << 20) / size_of::<Node>() as u32;

/// Nodes that a packet can need: for the number behind it, and for its timestamp.
pub const NODES_PER_PACKET: u32 = 2;

/// Nodes that a pool has address space for from the beginning, 256 kB: memory is taken page by page
/// as they are used. Pools that grow side by side leave holes that nothing else fits into.
const RESERVED: usize = 4_096;

/// Entries in a node, as a power of two.
const ENTRY_BITS: u32 = 3;
const ENTRIES: usize = 1 << ENTRY_BITS;

/// Entries looked through for one that is not the first.
const MAX_STEPS: usize = 4_096;

const NONE: u32 = u32::MAX;

/// In [`Node::later_ns`]: there is no such entry.
const EMPTY: u32 = u32::MAX;

/// Consecutive entries of a list, by their distance to a first one: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node {
    time_ns: i64,
    number: u32,
    /// The next of the list, or of the free nodes.
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

    /// Number and time of entry `at`; mean nothing unless the node has it.
    #[inline(always)]
    fn entry(&self, at: usize) -> (u32, i64) {
        let number = self.number.wrapping_add(u32::from(self.beyond[at]));
        (number, self.time_ns.wrapping_add(i64::from(self.later_ns[at])))
    }

    /// Whether there is an entry `at`.
    #[inline(always)]
    fn has(&self, at: usize) -> bool {
        self.later_ns.get(at).is_some_and(|&later_ns| later_ns != EMPTY)
    }

    /// Write entry `at`; false if that is behind the last, or too far from the first: four seconds,
    /// or 64 kB.
    #[inline(always)]
    fn put(&mut self, at: usize, number: u32, time_ns: i64) -> bool {
        // What was before makes a large number.
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
#[derive(Debug)]
pub struct Pool {
    nodes: Vec<Node>,
    /// The first of those that were given back.
    free: u32,
    /// Nodes that may still be made.
    room: u32,
}

impl Default for Pool {
    /// The only pool there is.
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
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes that may still be made.
    #[inline(always)]
    pub fn room(&self) -> u32 {
        self.room
    }

    /// Let it make so many nodes more.
    pub fn add_room(&mut self, nodes: u32) {
        self.room += nodes;
    }

    /// Take back the room for nodes that were not made.
    pub fn take_room(&mut self) -> u32 {
        std::mem::take(&mut self.room)
    }

    /// Store `node`: where, or None without room.
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

    /// Give node `index` back; the one behind it in its list.
    fn remove(&mut self, index: usize) -> u32 {
        let Some(node) = self.nodes.get_mut(index) else { return NONE };
        let next = std::mem::replace(&mut node.next, self.free);
        self.free = index as u32;
        next
    }
}

/// Where an entry is: the number of its node, and its place there.
///
/// In one word, because two small ones side by side are written one by one and read together, for
/// which a processor has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// When numbers were sent, in order. Numbers wrap, and those waiting are less than 2^31 apart.
///
/// Invariants: `first` and `last` are nowhere exactly if `count` is 0; the nodes from one to the
/// other belong to no other list.
#[derive(Debug)]
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

    /// Remember when `number` was sent; false if the pool is full.
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

    /// When the one sent first was sent.
    pub fn oldest_ns(&self, pool: &Pool) -> Option<i64> {
        self.entries(pool).next().map(|(_, time_ns)| time_ns)
    }

    /// When the one sent last was sent.
    pub fn newest_ns(&self, pool: &Pool) -> Option<i64> {
        pool.nodes.get(self.last.node()).map(|node| node.entry(self.last.place()).1)
    }

    /// When the first number was sent that is not before `number`; None if it is not among the
    /// first [`MAX_STEPS`].
    pub fn sent_ns(&self, number: u32, pool: &Pool) -> Option<i64> {
        let is_meant = |entry: &(u32, i64)| SeqNumber(entry.0).since(SeqNumber(number)) >= 0;
        self.entries(pool).take(MAX_STEPS).find(is_meant).map(|(_, time_ns)| time_ns)
    }

    /// Numbers and times, the one sent first before the others.
    fn entries<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = (u32, i64)> + 'a {
        let mut at = self.first;
        (0..self.count).map_while(move |_| {
            let node = pool.nodes.get(at.node())?;
            let entry = node.entry(at.place());
            at = if node.has(at.place() + 1) { Cursor(at.0 + 1) } else { Cursor::first_of(node.next) };
            Some(entry)
        })
    }

    /// Forget the one sent first.
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

    /// Forget numbers up to `number`; when exactly that one was sent.
    #[inline(always)]
    pub fn pop_through(&mut self, number: u32, pool: &mut Pool) -> Option<i64> {
        let mut last = None;
        while let Some(node) = pool.nodes.get(self.first.node()) {
            // The entries of a node in one go: what changes stays in registers.
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
        /// Two lists through one pool, each against a queue of its own.
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
            prop_assert!(pool.size() <= 2 * most);
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
