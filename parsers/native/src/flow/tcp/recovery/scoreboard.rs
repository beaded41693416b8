//! Data that a receiver reports beyond its acknowledgement in SACK blocks (RFC 6675 section 3).

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Limit of ranges; the lowest are dropped first. A receiver that reports more holes at once is not
/// honest: each acknowledgement carries four blocks.
const MAX_RANGES: usize = 256;

/// Ranges of positions that arrived.
///
/// Invariants: ranges are not empty, in order, do not touch, and there are at most [`MAX_RANGES`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Scoreboard {
    /// Most losses are single, and their range needs no allocation.
    ranges: SmallVec<[(i64, i64); 1]>,
    /// Positions in all of them.
    bytes: u64,
}

impl Scoreboard {
    /// Add `start..end`; returns whether any of it is new.
    pub fn add(&mut self, start: i64, end: i64) -> bool {
        if start >= end {
            return false;
        }
        let from = self.ranges.partition_point(|range| range.1 < start);
        let to = self.ranges.partition_point(|range| range.0 <= end);
        let touched = self.ranges.get(from..to).unwrap_or_default();
        let mut merged = (start, end);
        let mut known = 0;
        for range in touched {
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            known += length(*range);
        }
        if from < to {
            self.ranges.drain(from + 1..to);
            if let Some(range) = self.ranges.get_mut(from) {
                *range = merged;
            }
        } else {
            if self.ranges.len() == MAX_RANGES {
                self.bytes -= length(self.ranges.remove(0));
            }
            let at = self.ranges.partition_point(|range| range.1 < start);
            self.ranges.insert(at, merged);
        }
        self.bytes += length(merged) - known;
        length(merged) > known
    }

    /// Remove all below the acknowledged `position`.
    pub fn acknowledge(&mut self, position: i64) {
        let whole = self.ranges.partition_point(|range| range.1 <= position);
        self.bytes -= self.ranges.drain(..whole).map(length).sum::<u64>();
        if let Some(first) = self.ranges.first_mut()
            && first.0 < position
        {
            self.bytes -= length((first.0, position));
            first.0 = position;
        }
        if self.ranges.is_empty() {
            // The recovery is over; release the memory for other flows.
            self.ranges = SmallVec::new();
        }
    }

    /// Whether all of `start..end` arrived.
    pub fn has(&self, start: i64, end: i64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < end);
        self.ranges.get(at).is_some_and(|range| range.0 <= start)
    }

    /// Whether anything after `position` arrived.
    pub fn has_beyond(&self, position: i64) -> bool {
        self.ranges.last().is_some_and(|range| range.1 > position)
    }

    /// Bytes that arrived beyond the acknowledgement.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// End of the highest range.
    pub fn end(&self) -> Option<i64> {
        self.ranges.last().map(|range| range.1)
    }

    /// Whether nothing arrived beyond the acknowledgement.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

fn length(range: (i64, i64)) -> u64 {
    range.0.abs_diff(range.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compare with a set of single positions.
        #[test]
        fn test_a_scoreboard_agrees_with_a_set_of_bytes(
            steps in proptest::collection::vec((any::<bool>(), 0_i64..200, 0_i64..30), 1..80),
        ) {
            let mut board = Scoreboard::default();
            let mut set = BTreeSet::new();
            for (is_block, start, length) in steps {
                if is_block {
                    let before = set.len();
                    set.extend(start..start + length);
                    prop_assert_eq!(board.add(start, start + length), set.len() > before);
                } else {
                    board.acknowledge(start);
                    set = set.split_off(&start);
                }
                let bytes: u64 = board.ranges.iter().map(|range| super::length(*range)).sum();
                prop_assert_eq!((bytes, board.is_empty()), (set.len() as u64, set.is_empty()));
                prop_assert_eq!(board.bytes(), bytes);
                let whole = (start..start + length).all(|position| set.contains(&position));
                prop_assert!(length == 0 || board.has(start, start + length) == whole);
                prop_assert_eq!(board.has_beyond(start), set.last().is_some_and(|&last| last >= start));
            }
        }

        #[test]
        fn test_any_blocks_keep_the_bound(blocks in proptest::collection::vec((0_i64..1 << 40, 0_i64..9), 900)) {
            let mut board = Scoreboard::default();
            for (start, length) in blocks {
                board.add(start, start + length);
            }
            prop_assert!(board.ranges.len() <= MAX_RANGES);
        }
    }
}
