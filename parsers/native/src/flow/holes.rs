//! Bytes of a stream that have not been seen yet, and since when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outstanding::Pool;

/// Limit of holes per direction, a third of the room of all. A hostile stream can have a hole after
/// every packet, or split one with every packet; all directions together have no more than their
/// pools have room for.
const MAX_HOLES: usize = 1 << 17;

/// Limit of holes while the oldest is acknowledged: nothing in it was lost, and hardly anything will
/// fill it. A capture that misses packets leaves such holes all the time.
const MAX_ACKNOWLEDGED: usize = 256;

/// Facts known when a hole opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoleOpening {
    /// Time of the packet that skipped it.
    pub time_ns: i64,
    /// The timestamp value of that packet.
    pub timestamp: Option<u32>,
    /// Its IPv4 identification.
    pub ip_id: Option<u16>,
    /// Data segments seen before that packet.
    pub segments: u32,
}

/// A hole, without its start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hole {
    end: i64,
    opening: HoleOpening,
}

/// The part of a packet that filled holes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilledHoles {
    pub bytes: u64,
    pub acknowledged: u64,
    /// Opening of the first of these holes.
    pub opening: Option<HoleOpening>,
}

/// The ranges between the first and the highest position that no packet has shown.
///
/// Invariants: ranges are not empty and do not overlap; there are at most [`MAX_HOLES`], and each
/// takes a node's room from the pool of its flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Holes {
    /// By start.
    ranges: BTreeMap<i64, Hole>,
    /// Bytes of holes dropped to keep the limit.
    forgotten: u64,
    /// Position up to which acknowledged but unseen bytes were counted.
    checked: i64,
    /// Position up to which the stream was sent before the capture began; 0 for up to its first byte.
    sent_before: i64,
    /// Bytes acknowledged and never seen.
    gap_bytes: u64,
}

impl Holes {
    /// Open a hole: the stream continued at `end` while `start` was expected.
    pub fn open(&mut self, start: i64, end: i64, opening: HoleOpening, pool: &mut Pool) {
        debug_assert!(start < end);
        self.insert(start, Hole { end, opening }, pool);
    }

    /// Add a hole; without room, in place of the oldest, which is the least likely to be filled.
    fn insert(&mut self, start: i64, hole: Hole, pool: &mut Pool) {
        let is_acknowledged =
            self.ranges.first_key_value().is_some_and(|(_, oldest)| oldest.end <= self.checked);
        let most = if is_acknowledged { MAX_ACKNOWLEDGED } else { MAX_HOLES };
        if self.ranges.len() >= most || !pool.reserve() {
            let Some((oldest_start, oldest)) = self.ranges.pop_first() else {
                self.forgotten += start.abs_diff(hole.end);
                return;
            };
            self.forgotten += oldest_start.abs_diff(oldest.end);
        }
        self.ranges.insert(start, hole);
    }

    /// The first hole with a byte of `start..end`.
    fn first_in(&self, start: i64, end: i64) -> Option<(i64, Hole)> {
        if start >= end {
            return None;
        }
        let around = self.ranges.range(..=start).next_back().filter(|(_, hole)| hole.end > start);
        let found = around.or_else(|| self.ranges.range(start..end).next());
        found.map(|(&start, &hole)| (start, hole))
    }

    /// Record `start..end` as seen and return the new part.
    pub fn fill(&mut self, start: i64, end: i64, pool: &mut Pool) -> FilledHoles {
        let mut filled = FilledHoles::default();
        if start >= end {
            return filled;
        }
        while let Some((hole_start, hole)) = self.first_in(start, end) {
            let (from, to) = (hole_start.max(start), hole.end.min(end));
            filled.bytes += from.abs_diff(to);
            filled.opening.get_or_insert(hole.opening);
            let known = (to.min(self.checked) - from.max(self.sent_before())).max(0) as u64;
            filled.acknowledged += known;
            match self.ranges.get_mut(&hole_start) {
                Some(before) if hole_start < from => before.end = from,
                _ => {
                    self.ranges.remove(&hole_start);
                    pool.release();
                }
            }
            if to < hole.end {
                self.insert(to, hole, pool);
            }
        }
        if self.ranges.is_empty() {
            // Another flow may need the memory.
            self.ranges = BTreeMap::new();
        }
        self.gap_bytes -= filled.acknowledged.min(self.gap_bytes);
        filled
    }

    /// The parts of `start..end` in holes.
    pub fn within(&self, start: i64, end: i64) -> impl Iterator<Item = (i64, i64)> {
        let first = self.first_in(start, end).map_or(end, |(first, _)| first);
        self.ranges.range(first..end).map(move |(&from, hole)| (from.max(start), hole.end.min(end)))
    }

    pub fn clear(&mut self, pool: &mut Pool) {
        while self.ranges.pop_first().is_some() {
            pool.release();
        }
    }

    /// Give the pool the room of the holes, which stay as they are: nothing may be opened or filled any more.
    pub fn release(&self, pool: &mut Pool) {
        pool.add_room(self.ranges.len() as u32);
    }

    /// Whether any byte of `start..end` has not been seen.
    pub fn overlap(&self, start: i64, end: i64) -> bool {
        self.first_in(start, end).is_some()
    }

    /// Record the acknowledgement of all up to `position`: bytes missing there arrived but were not
    /// captured.
    pub fn acknowledge(&mut self, position: i64) {
        if position <= self.checked {
            return;
        }
        let (around, sent_before) = (self.ranges.range(..self.checked).next_back(), self.sent_before());
        for (&start, hole) in around.into_iter().chain(self.ranges.range(self.checked..position)) {
            let start = start.max(self.checked).max(sent_before);
            self.gap_bytes += (hole.end.min(position) - start).max(0) as u64;
        }
        self.checked = position;
    }

    /// Record that all up to `position` was sent before the capture began: the capture did not lose it.
    pub fn begin_after(&mut self, position: i64) {
        self.sent_before = self.sent_before.max(position);
    }

    /// Position up to which the stream was sent before the capture began. The first byte that it shows, or
    /// that follows a SYN, is at position 1.
    pub fn sent_before(&self) -> i64 {
        self.sent_before.max(1)
    }

    pub fn missing(&self) -> u64 {
        let open: u64 = self.ranges.iter().map(|(start, hole)| start.abs_diff(hole.end)).sum();
        open + self.forgotten
    }

    /// Bytes acknowledged and never seen.
    pub fn gap_bytes(&self) -> u64 {
        self.gap_bytes
    }

    /// Unacknowledged holes, with their bytes and openings.
    pub fn never_filled(&self) -> impl Iterator<Item = (u64, HoleOpening)> {
        let lost = self.ranges.iter().filter(|(_, hole)| hole.end > self.checked);
        lost.map(|(&start, hole)| (start.max(self.checked).abs_diff(hole.end), hole.opening))
    }

    /// Whether the limit was reached.
    pub fn overflowed(&self) -> bool {
        self.forgotten > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Holes, and the pool that gives them room.
    #[derive(Default)]
    struct WithPool(Holes, Pool);

    impl WithPool {
        fn open(&mut self, start: i64, end: i64) {
            self.0.open(start, end, HoleOpening { time_ns: start, ..HoleOpening::default() }, &mut self.1);
        }

        fn fill(&mut self, start: i64, end: i64) -> FilledHoles {
            self.0.fill(start, end, &mut self.1)
        }
    }

    #[test]
    fn test_a_hole_is_filled_in_pieces() {
        let mut holes = WithPool::default();
        holes.open(10, 30);
        assert!(holes.0.overlap(29, 40) && !holes.0.overlap(30, 40) && !holes.0.overlap(0, 10));
        let filled = holes.fill(15, 20);
        assert_eq!((filled.bytes, filled.opening.unwrap().time_ns), (5, 10));
        assert!(!holes.0.overlap(15, 20));
        assert_eq!(holes.fill(15, 20), FilledHoles::default());
        assert_eq!(holes.fill(0, 100).bytes, 15);
        assert_eq!(holes.0.missing(), 0);
    }

    #[test]
    fn test_a_hole_may_begin_where_another_ends() {
        let mut holes = WithPool::default();
        holes.open(0, 1);
        holes.open(1, 19);
        assert_eq!((holes.fill(13, 23).bytes, holes.fill(0, 19).bytes), (6, 13));
        assert_eq!(holes.0.missing(), 0);
    }

    #[test]
    fn test_what_was_acknowledged_and_never_seen_is_a_gap_of_the_capture() {
        let mut holes = WithPool::default();
        holes.open(10, 30);
        holes.open(40, 50);
        holes.0.acknowledge(20);
        holes.0.acknowledge(45);
        assert_eq!((holes.0.gap_bytes(), holes.0.missing()), (25, 30));
        assert_eq!(holes.0.never_filled().map(|hole| hole.0).sum::<u64>(), 5);
        // It arrived after all.
        assert_eq!(holes.fill(10, 30).acknowledged, 20);
        assert_eq!(holes.0.gap_bytes(), 5);
    }

    #[test]
    fn test_more_holes_than_the_bound_are_counted_as_missing() {
        let mut holes = WithPool::default();
        for i in 0..2 * MAX_HOLES as i64 {
            holes.open(10 * i, 10 * i + 1);
        }
        assert!(holes.0.overflowed());
        assert_eq!(holes.0.missing(), 2 * MAX_HOLES as u64);
    }

    #[test]
    fn test_splitting_a_hole_keeps_the_bound() {
        let mut holes = WithPool::default();
        let most = 4 * MAX_HOLES as i64;
        holes.open(0, most);
        // Every second byte, the last first.
        let mut seen = 0;
        for position in (0..most / 2).map(|i| 2 * i + 1).rev() {
            seen += holes.fill(position, position + 1).bytes;
            assert!(holes.0.ranges.len() <= MAX_HOLES);
        }
        assert!(holes.0.overflowed());
        assert_eq!(holes.0.missing() + seen, most as u64);
    }

    #[test]
    fn test_acknowledged_holes_make_room_for_others() {
        let mut holes = WithPool::default();
        let room = holes.1.room();
        for i in 1..=4 * MAX_ACKNOWLEDGED as i64 {
            holes.open(10 * i, 10 * i + 1);
            holes.0.acknowledge(10 * i + 5);
        }
        assert_eq!(holes.0.ranges.len(), MAX_ACKNOWLEDGED);
        assert_eq!(holes.1.room() + MAX_ACKNOWLEDGED as u32, room);
        assert_eq!(
            (holes.0.missing(), holes.0.gap_bytes()),
            (4 * MAX_ACKNOWLEDGED as u64, 4 * MAX_ACKNOWLEDGED as u64)
        );
    }

    #[test]
    fn test_directions_share_the_room_of_their_pool() {
        let mut pool = Pool::with_room(5);
        let mut both = [Holes::default(), Holes::default()];
        for i in 0..4 {
            for holes in &mut both {
                holes.open(10 * i, 10 * i + 4, HoleOpening::default(), &mut pool);
            }
        }
        assert_eq!(both.each_ref().map(|holes| holes.ranges.len()), [3, 2]);
        assert_eq!(both.each_ref().map(Holes::missing), [16, 16]);
        // What is filled gives its room back.
        assert_eq!((both[0].fill(0, 40, &mut pool).bytes, pool.room()), (12, 3));
        both[1].open(50, 54, HoleOpening::default(), &mut pool);
        assert_eq!((both[1].ranges.len(), pool.room()), (3, 2));
    }

    proptest! {
        /// Compare with a set of single positions.
        #[test]
        fn test_holes_agree_with_a_set_of_bytes(
            segments in proptest::collection::vec((0_i64..200, 1_i64..30), 1..60),
        ) {
            let mut holes = WithPool::default();
            let mut seen = std::collections::HashSet::new();
            let mut next = 0_i64;
            for (start, length) in segments {
                let end = start + length;
                let expected = (start..end).filter(|byte| seen.insert(*byte)).count() as u64;
                if start > next {
                    holes.open(next, start);
                }
                let beyond = (end - next.max(start)).max(0) as u64;
                let new = holes.fill(start, end.min(next)).bytes + beyond;
                next = next.max(end);
                prop_assert_eq!(new, expected);
                prop_assert_eq!(holes.0.missing(), next as u64 - seen.len() as u64);
            }
        }
    }
}
