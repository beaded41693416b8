//! Bytes of a stream that have not been seen yet, and since when.

/// Limit of holes per direction. Real streams rarely have more than a window's worth; a hostile one
/// could have a hole after every packet.
const MAX_HOLES: usize = 256;

/// Facts known when a hole opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: i64,
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
/// Invariants: ranges are not empty, in order, and do not overlap; there are at most [`MAX_HOLES`].
#[derive(Clone, Debug, Default)]
pub struct Holes {
    ranges: Vec<Hole>,
    /// Bytes of holes dropped to keep the limit.
    forgotten: u64,
    /// Position up to which acknowledged but unseen bytes were counted.
    checked: i64,
    /// Bytes acknowledged and never seen.
    gap_bytes: u64,
}

impl Holes {
    /// Open a hole: the stream continued at `end` while `start` was expected.
    pub fn open(&mut self, start: i64, end: i64, opening: HoleOpening) {
        debug_assert!(start < end);
        if self.ranges.len() == MAX_HOLES {
            // The oldest is the least likely to be filled.
            let oldest = self.ranges.remove(0);
            self.forgotten += oldest.start.abs_diff(oldest.end);
        }
        let at = self.ranges.partition_point(|hole| hole.end <= start);
        self.ranges.insert(at, Hole { start, end, opening });
    }

    /// Record `start..end` as seen and return the new part.
    pub fn fill(&mut self, start: i64, end: i64) -> FilledHoles {
        let mut filled = FilledHoles::default();
        if start >= end {
            return filled;
        }
        let mut at = self.ranges.partition_point(|hole| hole.end <= start);
        while let Some(&hole) = self.ranges.get(at) {
            if hole.start >= end {
                break;
            }
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            filled.bytes += from.abs_diff(to);
            filled.opening.get_or_insert(hole.opening);
            let known = (to.min(self.checked) - from).max(0) as u64;
            filled.acknowledged += known;
            let before = Hole { end: from, ..hole };
            let behind = Hole { start: to, ..hole };
            let left = [before, behind].into_iter().filter(|hole| hole.start < hole.end);
            let n = left.clone().count();
            self.ranges.splice(at..=at, left);
            at += n;
        }
        if self.ranges.is_empty() {
            // Another flow may need the memory.
            self.ranges = Vec::new();
        }
        self.gap_bytes -= filled.acknowledged.min(self.gap_bytes);
        filled
    }

    /// The parts of `start..end` that have not been seen.
    pub fn within(&self, start: i64, end: i64) -> impl Iterator<Item = (i64, i64)> {
        let at = self.ranges.partition_point(|hole| hole.end <= start);
        let holes = self.ranges.iter().skip(at).take_while(move |hole| hole.start < end);
        holes.map(move |hole| (hole.start.max(start), hole.end.min(end)))
    }

    /// Whether any byte of `start..end` has not been seen.
    pub fn overlap(&self, start: i64, end: i64) -> bool {
        let at = self.ranges.partition_point(|hole| hole.end <= start);
        self.ranges.get(at).is_some_and(|hole| hole.start < end)
    }

    /// Record the acknowledgement of all up to `position`: bytes missing there arrived but were not
    /// captured.
    pub fn acknowledge(&mut self, position: i64) {
        if position <= self.checked {
            return;
        }
        let first = self.ranges.partition_point(|hole| hole.end <= self.checked);
        for hole in self.ranges.iter().skip(first).take_while(|hole| hole.start < position) {
            self.gap_bytes += hole.start.max(self.checked).abs_diff(hole.end.min(position));
        }
        self.checked = position;
    }

    pub fn missing(&self) -> u64 {
        let open: u64 = self.ranges.iter().map(|hole| hole.start.abs_diff(hole.end)).sum();
        open + self.forgotten
    }

    /// Bytes acknowledged and never seen.
    pub fn gap_bytes(&self) -> u64 {
        self.gap_bytes
    }

    /// Unacknowledged holes, with their bytes and openings.
    pub fn never_filled(&self) -> impl Iterator<Item = (u64, HoleOpening)> {
        let lost = self.ranges.iter().filter(|hole| hole.end > self.checked);
        lost.map(|hole| (hole.start.max(self.checked).abs_diff(hole.end), hole.opening))
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

    fn open(holes: &mut Holes, start: i64, end: i64) {
        holes.open(start, end, HoleOpening { time_ns: start, ..HoleOpening::default() });
    }

    #[test]
    fn test_a_hole_is_filled_in_pieces() {
        let mut holes = Holes::default();
        open(&mut holes, 10, 30);
        assert!(holes.overlap(29, 40) && !holes.overlap(30, 40) && !holes.overlap(0, 10));
        let filled = holes.fill(15, 20);
        assert_eq!((filled.bytes, filled.opening.unwrap().time_ns), (5, 10));
        assert!(!holes.overlap(15, 20));
        assert_eq!(holes.fill(15, 20), FilledHoles::default());
        assert_eq!(holes.fill(0, 100).bytes, 15);
        assert_eq!(holes.missing(), 0);
    }

    #[test]
    fn test_a_hole_may_begin_where_another_ends() {
        let mut holes = Holes::default();
        open(&mut holes, 0, 1);
        open(&mut holes, 1, 19);
        assert_eq!((holes.fill(13, 23).bytes, holes.fill(0, 19).bytes), (6, 13));
        assert_eq!(holes.missing(), 0);
    }

    #[test]
    fn test_what_was_acknowledged_and_never_seen_is_a_gap_of_the_capture() {
        let mut holes = Holes::default();
        open(&mut holes, 10, 30);
        open(&mut holes, 40, 50);
        holes.acknowledge(20);
        holes.acknowledge(45);
        assert_eq!((holes.gap_bytes(), holes.missing()), (25, 30));
        assert_eq!(holes.never_filled().map(|hole| hole.0).sum::<u64>(), 5);
        // It arrived after all.
        assert_eq!(holes.fill(10, 30).acknowledged, 20);
        assert_eq!(holes.gap_bytes(), 5);
    }

    #[test]
    fn test_more_holes_than_the_bound_are_counted_as_missing() {
        let mut holes = Holes::default();
        for i in 0..2 * MAX_HOLES as i64 {
            open(&mut holes, 10 * i, 10 * i + 1);
        }
        assert!(holes.overflowed());
        assert_eq!(holes.missing(), 2 * MAX_HOLES as u64);
    }

    proptest! {
        /// Compare with a set of single positions.
        #[test]
        fn test_holes_agree_with_a_set_of_bytes(
            segments in proptest::collection::vec((0_i64..200, 1_i64..30), 1..60),
        ) {
            let mut holes = Holes::default();
            let mut seen = std::collections::HashSet::new();
            let mut next = 0_i64;
            for (start, length) in segments {
                let end = start + length;
                let expected = (start..end).filter(|byte| seen.insert(*byte)).count() as u64;
                if start > next {
                    open(&mut holes, next, start);
                }
                let beyond = (end - next.max(start)).max(0) as u64;
                let new = holes.fill(start, end.min(next)).bytes + beyond;
                next = next.max(end);
                prop_assert_eq!(new, expected);
                prop_assert_eq!(holes.missing(), next as u64 - seen.len() as u64);
            }
        }
    }
}
