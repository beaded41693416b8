//! Which bytes of a stream have not been seen yet.

/// Holes kept per direction. Real streams rarely have more than a window's worth; a hostile one
/// could have a hole behind every packet.
const MAX_HOLES: usize = 256;

/// The ranges between the first and the highest position that no packet has shown.
///
/// Invariants: ranges are not empty, in order, and do not touch; there are at most [`MAX_HOLES`].
#[derive(Clone, Debug, Default)]
pub struct Holes {
    ranges: Vec<(i64, i64)>,
    /// Bytes of holes that were given up to keep the bound.
    forgotten: u64,
}

impl Holes {
    /// The stream went on at `end` while `start` was expected.
    pub fn open(&mut self, start: i64, end: i64) {
        debug_assert!(start < end);
        if self.ranges.len() == MAX_HOLES {
            // The oldest is the least likely to be filled.
            let (start, end) = self.ranges.remove(0);
            self.forgotten += (end - start) as u64;
        }
        let at = self.ranges.partition_point(|range| range.1 <= start);
        self.ranges.insert(at, (start, end));
    }

    /// `start..end` was seen: how many of these bytes are new?
    pub fn fill(&mut self, start: i64, end: i64) -> u64 {
        if start >= end {
            return 0;
        }
        let mut filled = 0;
        let mut at = self.ranges.partition_point(|range| range.1 <= start);
        while let Some(&(hole_start, hole_end)) = self.ranges.get(at) {
            if hole_start >= end {
                break;
            }
            filled += (hole_end.min(end) - hole_start.max(start)) as u64;
            let before = (hole_start, start.max(hole_start));
            let behind = (end.min(hole_end), hole_end);
            match (before.0 < before.1, behind.0 < behind.1) {
                (false, false) => {
                    self.ranges.remove(at);
                }
                (true, false) => {
                    self.ranges[at] = before;
                    at += 1;
                }
                (false, true) => {
                    self.ranges[at] = behind;
                    at += 1;
                }
                (true, true) => {
                    self.ranges[at] = before;
                    self.ranges.insert(at + 1, behind);
                    break;
                }
            }
        }
        filled
    }

    /// Whether any byte of `start..end` has not been seen.
    pub fn overlap(&self, start: i64, end: i64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 <= start);
        self.ranges.get(at).is_some_and(|range| range.0 < end)
    }

    /// Bytes never seen.
    pub fn missing(&self) -> u64 {
        let open: u64 = self.ranges.iter().map(|range| (range.1 - range.0) as u64).sum();
        open + self.forgotten
    }

    /// Whether the bound was reached.
    pub fn overflowed(&self) -> bool {
        self.forgotten > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_a_hole_is_filled_in_pieces() {
        let mut holes = Holes::default();
        holes.open(10, 30);
        assert!(holes.overlap(29, 40) && !holes.overlap(30, 40) && !holes.overlap(0, 10));
        assert_eq!(holes.fill(15, 20), 5);
        assert!(!holes.overlap(15, 20));
        assert_eq!(holes.fill(15, 20), 0);
        assert_eq!(holes.fill(0, 100), 15);
        assert_eq!(holes.missing(), 0);
    }

    #[test]
    fn test_a_hole_may_begin_where_another_ends() {
        let mut holes = Holes::default();
        holes.open(0, 1);
        holes.open(1, 19);
        assert_eq!((holes.fill(13, 23), holes.fill(0, 19)), (6, 13));
        assert_eq!(holes.missing(), 0);
    }

    #[test]
    fn test_more_holes_than_the_bound_are_counted_as_missing() {
        let mut holes = Holes::default();
        for i in 0..2 * MAX_HOLES as i64 {
            holes.open(10 * i, 10 * i + 1);
        }
        assert!(holes.overflowed());
        assert_eq!(holes.missing(), 2 * MAX_HOLES as u64);
    }

    proptest! {
        /// Against a set of single positions, which cannot be wrong.
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
                    holes.open(next, start);
                }
                let beyond = (end - next.max(start)).max(0) as u64;
                let new = holes.fill(start, end.min(next)) + beyond;
                next = next.max(end);
                prop_assert_eq!(new, expected);
                prop_assert_eq!(holes.missing(), next as u64 - seen.len() as u64);
            }
        }
    }
}
