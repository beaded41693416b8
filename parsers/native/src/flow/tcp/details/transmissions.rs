//! Transmissions of each segment until its acknowledgement.

use std::collections::VecDeque;

use crate::flow::rtt_statistics::RttStatistics;

/// Limit of unacknowledged segments in one direction; further ones are not tracked separately.
const MAX_SEGMENTS: usize = 65_536;
/// Limit of segments of all directions: 32 MB.
const MAX_SEGMENTS_OF_ALL: usize = 1 << 20;
/// Limit of segments that one packet repeats: 64 kB hold 123 of the smallest that hosts send (536
/// bytes, RFC 9293 section 3.7.1). Data of a hostile packet beyond that are not tracked.
const MAX_REPEATED: usize = 1_024;
/// Limit of segments moved to insert one that was skipped before.
const MAX_MOVED: usize = 4_096;
/// Segments for which a direction keeps capacity between flights.
const ROOM_KEPT: usize = 64;

/// Remaining capacity, shared by all directions.
#[derive(Debug)]
pub struct SegmentPool {
    left: usize,
}

impl Default for SegmentPool {
    fn default() -> Self {
        Self { left: MAX_SEGMENTS_OF_ALL }
    }
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    start: i64,
    end: i64,
    /// Time of its last transmission.
    sent_ns: i64,
    repeats: u32,
}

/// Unacknowledged segments of one direction in order, and counts of the acknowledged ones.
#[derive(Debug, Default)]
pub struct Transmissions {
    waiting: VecDeque<Transmission>,
    /// Latest send time of any acknowledged data.
    latest_ns: Option<i64>,
    pub unwatched: u32,
    /// Segments acknowledged together with later ones.
    pub cumulative: u32,
    /// Acknowledgements ending at a segment that was sent more than once, with the time since its
    /// last transmission.
    pub ambiguous: RttStatistics,
    /// Acknowledgements ending at a segment sent once, before older data were retransmitted or
    /// arrived late.
    pub post_loss: u32,
    /// Most retransmissions of one segment.
    pub max_repeats: u32,
    /// Times between consecutive transmissions of a segment.
    pub intervals: RttStatistics,
}

impl Transmissions {
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Record the transmission of `start..end`.
    pub fn on_sent(&mut self, (start, end): (i64, i64), time_ns: i64, room: &mut SegmentPool) {
        let next = self.waiting.back().map_or(i64::MIN, |last| last.end);
        let first = self.waiting.partition_point(|sent| sent.end <= start);
        let is_known = self.waiting.get(first).is_some_and(|sent| sent.start < end);
        if is_known {
            self.repeat(first, end, time_ns);
        }
        if is_known && end <= next {
            return;
        }
        // At the end, or where data were skipped before.
        let (at, start) = if is_known { (self.waiting.len(), start.max(next)) } else { (first, start) };
        let is_near_an_end = at.min(self.waiting.len() - at) <= MAX_MOVED;
        if self.waiting.len() == MAX_SEGMENTS || room.left == 0 || !is_near_an_end {
            self.unwatched = self.unwatched.saturating_add(1);
            return;
        }
        room.left -= 1;
        self.waiting.insert(at, Transmission { start, end, sent_ns: time_ns, repeats: 0 });
    }

    /// Record a retransmission of the segments from index `first` to position `end`.
    fn repeat(&mut self, first: usize, end: i64, time_ns: i64) {
        let last = self.waiting.len().min(first.saturating_add(MAX_REPEATED));
        if self.waiting.get(last).is_some_and(|sent| sent.start < end) {
            self.unwatched = self.unwatched.saturating_add(1);
        }
        for sent in self.waiting.range_mut(first..last).take_while(|sent| sent.start < end) {
            sent.repeats = sent.repeats.saturating_add(1);
            self.max_repeats = self.max_repeats.max(sent.repeats);
            self.intervals.add(elapsed_ns(sent.sent_ns, time_ns));
            sent.sent_ns = time_ns;
        }
    }

    /// Record that all data below `position` were acknowledged.
    pub fn on_acknowledged(&mut self, position: i64, time_ns: i64, room: &mut SegmentPool) {
        while let Some(sent) = self.waiting.front().copied().filter(|sent| sent.end <= position) {
            self.waiting.pop_front();
            room.left = room.left.saturating_add(1);
            if sent.end < position && self.waiting.front().is_some_and(|next| next.end <= position) {
                self.cumulative = self.cumulative.saturating_add(1);
            } else if sent.repeats > 0 {
                self.ambiguous.add(elapsed_ns(sent.sent_ns, time_ns));
            } else if self.latest_ns > Some(sent.sent_ns) {
                self.post_loss = self.post_loss.saturating_add(1);
            }
            self.latest_ns = self.latest_ns.max(Some(sent.sent_ns));
        }
        if self.waiting.is_empty() && self.waiting.capacity() > ROOM_KEPT {
            self.waiting.shrink_to(ROOM_KEPT);
        }
    }
}

/// Elapsed nanoseconds; 0 if the capture's clock went backwards.
fn elapsed_ns(since: i64, until: i64) -> u64 {
    u64::try_from(until.saturating_sub(since)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn test_a_segment_sent_three_times_has_two_intervals_and_an_ambiguous_acknowledgement() {
        let (mut sent, mut room) = (Transmissions::default(), SegmentPool::default());
        for time_ms in [0, 200, 600] {
            sent.on_sent((1, 1_001), time_ms * MS, &mut room);
        }
        sent.on_acknowledged(1_001, 650 * MS, &mut room);
        assert_eq!(sent.max_repeats, 2);
        let intervals = &sent.intervals.range;
        assert_eq!((intervals.min_ms(), intervals.max_ms()), (Some(200.0), Some(400.0)));
        assert_eq!((intervals.mean_ms(), sent.ambiguous.range.mean_ms()), (Some(300.0), Some(50.0)));
        assert!((sent.intervals.sample_std_ms().unwrap() - 141.421).abs() < 0.001);
    }

    #[test]
    fn test_what_was_sent_before_an_older_segment_was_sent_again_is_acknowledged_after_a_loss() {
        let (mut sent, mut room) = (Transmissions::default(), SegmentPool::default());
        sent.on_sent((1, 1_001), 0, &mut room);
        sent.on_sent((1_001, 2_001), MS, &mut room);
        sent.on_sent((2_001, 3_001), 2 * MS, &mut room);
        sent.on_sent((1, 1_001), 100 * MS, &mut room);
        sent.on_acknowledged(3_001, 150 * MS, &mut room);
        assert_eq!((sent.cumulative, sent.post_loss, sent.ambiguous.range.count()), (2, 1, 0));
        sent.on_sent((3_001, 4_001), 160 * MS, &mut room);
        sent.on_acknowledged(4_001, 200 * MS, &mut room);
        assert_eq!(sent.post_loss, 1);
    }

    #[test]
    fn test_transmissions_beyond_the_bound_are_counted_as_unwatched() {
        let mut room = SegmentPool { left: 3 };
        let (mut one, mut other) = (Transmissions::default(), Transmissions::default());
        for segment in 0..3 {
            one.on_sent((segment, segment + 1), 0, &mut room);
            other.on_sent((segment, segment + 1), 0, &mut room);
        }
        assert_eq!((one.waiting.len() + other.waiting.len(), one.unwatched + other.unwatched), (3, 3));
        one.on_acknowledged(3, MS, &mut room);
        other.on_sent((3, 4), 0, &mut room);
        assert_eq!((other.waiting.len(), room.left), (2, 1));
    }

    #[test]
    fn test_a_packet_that_covers_a_whole_window_of_small_ones_takes_little_time() {
        let (mut sent, mut room) = (Transmissions::default(), SegmentPool::default());
        let most = MAX_SEGMENTS as i64;
        (0..most).for_each(|byte| sent.on_sent((2 * byte, 2 * byte + 1), 0, &mut room));
        sent.on_sent((0, 2 * most), MS, &mut room);
        assert_eq!((sent.intervals.range.count(), sent.unwatched), (MAX_REPEATED as u64, 2));
        // In the middle of a segment.
        sent.on_acknowledged(2, MS, &mut room);
        sent.on_sent((most + 1, most + 2), MS, &mut room);
        assert_eq!((sent.waiting.len(), sent.unwatched), (MAX_SEGMENTS - 1, 3));
    }

    proptest! {
        /// Every segment is acknowledged in one of the ways, or waits.
        #[test]
        fn test_nothing_sent_is_lost_sight_of(
            steps in proptest::collection::vec((any::<bool>(), 0_i64..50, 1_i64..9), 1..200),
        ) {
            let (mut sent, mut room) = (Transmissions::default(), SegmentPool::default());
            let (mut next, mut segments) = (1, 0);
            for (time_ns, (is_data, back, length)) in steps.into_iter().enumerate() {
                let start = (next - back).max(1);
                if is_data {
                    // At most one more waits.
                    segments += 1;
                    next = next.max(start + length);
                    sent.on_sent((start, start + length), time_ns as i64, &mut room);
                } else {
                    sent.on_acknowledged(start, time_ns as i64, &mut room);
                }
            }
            let waiting = sent.waiting.len() as u32;
            let classified = sent.cumulative + sent.post_loss + sent.ambiguous.range.count() as u32;
            prop_assert!(classified + waiting <= segments);
            prop_assert!(sent.waiting.iter().is_sorted_by_key(|sent| sent.start));
            prop_assert_eq!(room.left + sent.waiting.len(), MAX_SEGMENTS_OF_ALL);
        }
    }
}
