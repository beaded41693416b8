//! Packets lost outside of the path between the captures, as TCP shows them.
//!
//! Upstream of the nearer capture: it shows a segment for the first time after later ones, and the
//! segment's timestamp (RFC 7323) is newer than theirs. So it was retransmitted after them; a
//! reordered one has an older timestamp. Without timestamps this is unknown.
//!
//! Downstream of the other capture: a segment passes it again while the receiver's
//! acknowledgements, as they passed there, still request its bytes: the next one, or (RFC 2018)
//! those between selectively acknowledged data. The receiver does not request data that it has and
//! that are retransmitted needlessly.
//!
//! Not lost, though the other capture has not got it: data that the receiver acknowledges and that have
//! not passed there. The capture missed them. Of several packets with these data the last one before the
//! acknowledgement arrived.

use std::collections::{BTreeMap, VecDeque};

use smallvec::SmallVec;

use super::by_side::BySide;
use crate::flow::holes::{HoleOpening, Holes};
use crate::flow::outstanding::Pool;
use crate::packet::event::{Tcp, TcpFlags};
use crate::packet::key::Side;
use crate::packet::seq::{SeqNumber, Unwrapper};
use crate::pair::unmatched::PacketAtCapture;

/// How many segments counted as lost downstream are kept, in case the receiver reports them as duplicates.
const MAX_LOST_BEHIND: usize = 64;

/// How many ranges that the farther capture missed are kept until their packets are given up: the oldest
/// are dropped, and their packets count as lost.
const MAX_MISSED: usize = 1 << 16;

/// How many retransmissions are kept to find which packet brought data that were missed.
const MAX_RESENT: usize = 1 << 10;

/// How a segment relates to those that a capture has shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Novelty {
    /// It continues the data, or leaves a gap.
    Ahead,
    /// It has bytes of a gap.
    Late,
    /// It has no new bytes.
    Repeated,
}

/// Data of one direction in one capture.
#[derive(Debug)]
struct CaptureView {
    unwrapper: Unwrapper,
    highest: i64,
    holes: Holes,
    /// Timestamp of the segment that reached the highest position.
    timestamp: Option<u32>,
}

impl CaptureView {
    fn starting_with(tcp: &Tcp) -> Self {
        let is_syn = tcp.flags.has(TcpFlags::SYN);
        let unwrapper = Unwrapper::new(SeqNumber(tcp.seq.wrapping_add(is_syn.into())));
        Self { unwrapper, highest: 0, holes: Holes::default(), timestamp: None }
    }

    fn show(&mut self, tcp: &Tcp, payload: u32, pool: &mut Pool) -> Novelty {
        let (start, end) = self.range(tcp, payload);
        let novelty = self.cover(start, end, pool);
        if novelty == Novelty::Ahead {
            self.timestamp = timestamp(tcp);
        }
        novelty
    }

    fn range(&self, tcp: &Tcp, payload: u32) -> (i64, i64) {
        let start = self.unwrapper.position(SeqNumber(tcp.seq), self.highest);
        (start, start.saturating_add(i64::from(payload)))
    }

    /// The parts of `start..end` that have not been shown, which count as shown now.
    fn miss(&mut self, start: i64, end: i64, pool: &mut Pool) -> Vec<(i64, i64)> {
        let start = start.max(0);
        let mut missed: Vec<_> = self.holes.within(start, end.min(self.highest)).collect();
        if end > self.highest {
            missed.push((self.highest.max(start), end));
        }
        missed.iter().for_each(|&(start, end)| {
            self.cover(start, end, pool);
        });
        missed
    }

    fn cover(&mut self, start: i64, end: i64, pool: &mut Pool) -> Novelty {
        if start < 0 {
            // Before all data in the capture: it is unknown whether it was sent before.
            return Novelty::Ahead;
        }
        if end <= self.highest {
            let filled = self.holes.fill(start, end, pool);
            return if filled.bytes > 0 { Novelty::Late } else { Novelty::Repeated };
        }
        if start > self.highest {
            self.holes.open(self.highest, start, HoleOpening::default(), pool);
        } else {
            self.holes.fill(start, self.highest, pool);
        }
        self.highest = end;
        Novelty::Ahead
    }
}

/// Data that the receiver has, in positions of the farther capture.
#[derive(Debug, Default)]
struct ReceivedRanges {
    /// The next byte that it expects.
    next: i64,
    /// End of its acknowledged data, including selective acknowledgements; holes are below.
    highest: i64,
    holes: Holes,
    /// Its window is closed, so it requests nothing.
    is_closed: bool,
}

impl ReceivedRanges {
    fn on_acknowledgement(&mut self, next: i64, blocks: &[(i64, i64)], pool: &mut Pool) {
        self.next = next.max(self.next);
        self.cover(0, self.next, pool);
        for &(start, end) in blocks {
            self.cover(start.max(self.next), end, pool);
        }
    }

    fn cover(&mut self, start: i64, end: i64, pool: &mut Pool) {
        if start >= end {
            return;
        }
        if start > self.highest {
            self.holes.open(self.highest, start, HoleOpening::default(), pool);
        }
        self.holes.fill(start, end, pool);
        self.highest = self.highest.max(end);
    }

    fn asks_for(&self, start: i64, end: i64) -> bool {
        !self.is_closed && ((start..end).contains(&self.next) || self.holes.overlap(start, end))
    }
}

/// One direction at both captures.
#[derive(Debug, Default)]
struct Direction {
    near: Option<CaptureView>,
    far: Option<CaptureView>,
    receipts: ReceivedRanges,
    /// The newest segments counted as lost beyond the farther capture.
    lost_behind: VecDeque<LostBehind>,
    /// Data that the receiver acknowledged before the farther capture had shown them, in its positions:
    /// by their start the end, and when they were acknowledged.
    missed: BTreeMap<i64, (i64, i64)>,
    /// The newest retransmissions at the nearer capture: sequence number, payload, time.
    resent: VecDeque<(u32, u32, i64)>,
}

/// A segment counted as lost beyond the farther capture, in its positions: it passed there again at
/// the receiver's request.
#[derive(Clone, Copy, Debug)]
struct LostBehind {
    start: i64,
    end: i64,
    /// Its bytes not reported as duplicates.
    unrefuted: i64,
}

impl Direction {
    /// The receiver reported `start..end` as a duplicate: the newest retransmission of these bytes
    /// was not needed. One of more data must be duplicated entirely. Returns how many segments no
    /// longer count as lost beyond the farther capture.
    fn on_duplicate_sack(&mut self, (start, end): (i64, i64)) -> u64 {
        let mut left = end.saturating_sub(start);
        for lost in self.lost_behind.iter_mut().rev() {
            let overlap =
                (lost.end.min(end) - lost.start.max(start)).min(lost.unrefuted).clamp(0, left.max(0));
            lost.unrefuted -= overlap;
            left -= overlap;
        }
        let before = self.lost_behind.len();
        self.lost_behind.retain(|lost| lost.unrefuted > 0);
        (before - self.lost_behind.len()) as u64
    }

    /// An acknowledgement of data up to `next` and of `blocks` passed the farther capture.
    fn note_missed(&mut self, time_ns: i64, next: u32, blocks: &[(u32, u32)], pool: &mut Pool) {
        let (Some(near), Some(far)) = (&self.near, &mut self.far) else { return };
        // Nothing is acknowledged that was not sent.
        let sent = far.unwrapper.position(near.unwrapper.number(near.highest), far.highest);
        let position = |number| far.unwrapper.position(SeqNumber(number), far.highest).min(sent);
        let next = position(next);
        if blocks.is_empty() && next <= far.highest && !far.holes.overlap(0, next) {
            return;
        }
        let ranges: Vec<_> = blocks.iter().map(|&(start, end)| (position(start), position(end))).collect();
        for (start, end) in ranges.into_iter().chain([(0, next)]) {
            for (start, end) in far.miss(start, end, pool) {
                self.missed.insert(start, (end, time_ns));
                if self.missed.len() > MAX_MISSED {
                    self.missed.pop_first();
                }
            }
        }
    }

    /// Whether `alone`, which only the nearer capture has, brought data that the farther one missed.
    fn was_missed(&self, alone: &PacketAtCapture) -> bool {
        let Some(far) = &self.far else { return false };
        let start = far.unwrapper.position(SeqNumber(alone.seq), far.highest);
        let Some((_, &(mut end, acknowledged_ns))) = self.missed.range(..=start).next_back() else {
            return false;
        };
        // What was acknowledged bit by bit is in several ranges.
        while let Some(&(next, _)) = self.missed.get(&end) {
            end = next;
        }
        let is_covered = start + i64::from(alone.payload_bytes) <= end;
        let comes_later = |&(seq, payload, time_ns): &(u32, u32, i64)| {
            let offset = SeqNumber(alone.seq).since(SeqNumber(seq));
            (0..i64::from(payload)).contains(&i64::from(offset))
                && time_ns > alone.time_ns
                && time_ns <= acknowledged_ns
        };
        is_covered && alone.time_ns <= acknowledged_ns && !self.resent.iter().any(comes_later)
    }
}

/// A segment that passes the farther capture, compared with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It has bytes that have not passed before.
    New,
    /// It retransmits a segment lost downstream of the capture.
    OfLost,
    /// The receiver has all of it.
    Needless,
}

/// All directions of TCP connections with data: as many as flows are followed.
#[derive(Debug, Default)]
pub struct OutsideLoss {
    directions: BySide<Box<Direction>>,
    /// Room for the holes of all.
    pool: Pool,
}

impl OutsideLoss {
    /// A segment with payload, or a SYN, of `side` passed the nearer capture; whether it had been lost before.
    pub fn is_lost_before(
        &mut self,
        flow: u32,
        side: Side,
        (tcp, time_ns): (&Tcp, i64),
        payload: u32,
    ) -> bool {
        let Self { directions, pool } = self;
        let Direction { near, resent, .. } = directions.get_or_insert_with(flow, side, Box::default).as_mut();
        let shown = near.get_or_insert_with(|| CaptureView::starting_with(tcp));
        let latest = shown.timestamp;
        let novelty = shown.show(tcp, payload, pool);
        let is_late = novelty == Novelty::Late;
        if novelty != Novelty::Ahead && payload > 0 {
            if resent.len() == MAX_RESENT {
                resent.pop_front();
            }
            resent.push_back((tcp.seq, payload, time_ns));
        }
        let is_younger = |(mine, latest): (u32, u32)| SeqNumber(mine).since(SeqNumber(latest)) > 0;
        is_late && timestamp(tcp).zip(latest).is_some_and(is_younger)
    }

    /// Process a segment that passed the farther capture.
    pub fn arrival(&mut self, flow: u32, side: Side, tcp: &Tcp, payload: u32) -> Arrival {
        let Self { directions, pool } = self;
        let Direction { far, receipts, lost_behind, .. } =
            directions.get_or_insert_with(flow, side, Box::default).as_mut();
        let shown = far.get_or_insert_with(|| CaptureView::starting_with(tcp));
        let (start, end) = shown.range(tcp, payload);
        match (shown.show(tcp, payload, pool), receipts.asks_for(start, end)) {
            (Novelty::Ahead | Novelty::Late, _) => Arrival::New,
            (Novelty::Repeated, false) => Arrival::Needless,
            (Novelty::Repeated, true) => {
                if lost_behind.len() == MAX_LOST_BEHIND {
                    lost_behind.pop_front();
                }
                lost_behind.push_back(LostBehind { start, end, unrefuted: end - start });
                Arrival::OfLost
            }
        }
    }

    /// Process an acknowledgement of the data of `side`, where packets of `side` pass last;
    /// `blocks` are its SACK blocks. Returns how many segments counted as lost downstream it reports
    /// as received twice (RFC 2883).
    pub fn on_acknowledgement(
        &mut self,
        flow: u32,
        side: Side,
        (tcp, time_ns): (&Tcp, i64),
        blocks: &[(u32, u32)],
    ) -> u64 {
        let Some(direction) = self.directions.get_mut(flow, side).map(Box::as_mut) else { return 0 };
        if !tcp.flags.has(TcpFlags::ACK) {
            return 0;
        }
        direction.note_missed(time_ns, tcp.ack, blocks, &mut self.pool);
        let Some(far) = &direction.far else { return 0 };
        let position = |number| far.unwrapper.position(SeqNumber(number), far.highest);
        // Data not in the capture cannot have passed it to the receiver.
        let known = |&(start, end): &(u32, u32)| (position(start), position(end).min(far.highest));
        let acknowledged = position(tcp.ack).min(far.highest);
        let reported: SmallVec<[_; 4]> = blocks.iter().map(known).collect();
        let doubled = match *reported.as_slice() {
            [first, second, ..] if second.0 <= first.0 && first.1 <= second.1 => Some(first),
            [first, ..] if first.1 <= acknowledged => Some(first),
            _ => None,
        };
        let taken_back = doubled.map_or(0, |block| direction.on_duplicate_sack(block));
        direction.receipts.on_acknowledgement(acknowledged, &reported, &mut self.pool);
        direction.receipts.is_closed = tcp.window == 0;
        taken_back
    }

    /// Whether a packet that only the nearer capture has arrived, because its data were acknowledged and no
    /// other packet with them passed the farther capture.
    pub fn was_missed(&self, alone: &PacketAtCapture) -> bool {
        let direction = self.directions.get(alone.flow, alone.side).filter(|_| alone.payload_bytes > 0);
        direction.is_some_and(|direction| direction.was_missed(alone))
    }
}

fn timestamp(tcp: &Tcp) -> Option<u32> {
    tcp.options.timestamp.map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Tap;
    use crate::pair::unmatched::PathEnd;
    use proptest::prelude::*;

    fn segment(seq: u32, timestamp: u32) -> Tcp {
        let mut tcp = Tcp { seq, window: 100, ..Tcp::default() };
        tcp.options.timestamp = Some((timestamp, 0));
        tcp
    }

    fn acknowledgement(ack: u32) -> Tcp {
        Tcp { ack, window: 100, flags: TcpFlags(TcpFlags::ACK), ..Tcp::default() }
    }

    #[test]
    fn test_a_late_segment_was_lost_before_if_it_was_sent_again_and_not_if_it_was_overtaken() {
        for (timestamp, is_lost) in [(9, false), (11, true)] {
            let mut outside = OutsideLoss::default();
            let mut lost =
                |seq, timestamp| outside.is_lost_before(0, Side::Low, (&segment(seq, timestamp), 0), 100);
            assert!(!lost(0, 8) && !lost(200, 10));
            assert_eq!(lost(100, timestamp), is_lost);
            assert!(!lost(100, 12), "seen twice is not lost before");
        }
    }

    fn is_lost_behind(outside: &mut OutsideLoss, tcp: &Tcp) -> bool {
        outside.arrival(0, Side::Low, tcp, 100) == Arrival::OfLost
    }

    #[test]
    fn test_what_the_receiver_got_twice_was_not_lost_behind() {
        for (blocks, taken_back) in [(vec![(0, 100)], 1), (vec![(100, 200), (50, 300)], 1), (vec![], 0)] {
            let mut outside = OutsideLoss::default();
            for seq in [0, 100, 200] {
                assert_eq!(outside.arrival(0, Side::Low, &segment(seq, 1), 100), Arrival::New);
            }
            let (next, lost) = blocks.first().map_or((0, 0), |&(start, _)| (start, start));
            outside.on_acknowledgement(0, Side::Low, (&acknowledgement(next), 0), &[]);
            assert!(is_lost_behind(&mut outside, &segment(lost, 2)));
            let ack = if blocks.len() > 1 { 50 } else { 300 };
            let reported = outside.on_acknowledgement(0, Side::Low, (&acknowledgement(ack), 0), &blocks);
            assert_eq!(reported, taken_back);
        }
    }

    #[test]
    fn test_a_duplicate_refutes_one_loss_of_as_many_bytes_as_it_has() {
        let acknowledge = |outside: &mut OutsideLoss, ack, blocks: &[(u32, u32)]| {
            outside.on_acknowledgement(0, Side::Low, (&acknowledgement(ack), 0), blocks)
        };
        let mut outside = OutsideLoss::default();
        assert_eq!(outside.arrival(0, Side::Low, &segment(0, 1), 100), Arrival::New);
        // Of three packets with the same data the receiver got two: one was lost.
        assert!(is_lost_behind(&mut outside, &segment(0, 2)) && is_lost_behind(&mut outside, &segment(0, 3)));
        assert_eq!(acknowledge(&mut outside, 100, &[(0, 100)]), 1);
        // Reported by halves.
        assert_eq!(outside.arrival(0, Side::Low, &segment(100, 1), 100), Arrival::New);
        assert!(is_lost_behind(&mut outside, &segment(100, 2)));
        assert_eq!(acknowledge(&mut outside, 200, &[(100, 150)]), 0);
        assert_eq!(acknowledge(&mut outside, 200, &[(150, 200)]), 1);
    }

    #[test]
    fn test_a_segment_is_lost_behind_only_if_the_receiver_asks_for_it() {
        let mut outside = OutsideLoss::default();
        let mut lost = |seq, asked| {
            outside.on_acknowledgement(0, Side::Low, (&acknowledgement(asked), 0), &[]);
            is_lost_behind(&mut outside, &segment(seq, 1))
        };
        assert!(!lost(u32::MAX - 49, 0) && !lost(50, 0) && !lost(150, 0));
        assert!(!lost(150, 50), "it asks for another");
        assert!(lost(50, 50));
        assert!(!lost(50, 250), "it has all");
    }

    #[test]
    fn test_what_is_between_selective_acknowledgements_is_asked_for() {
        let mut outside = OutsideLoss::default();
        for seq in [0, 100, 200, 300, 400] {
            assert!(!is_lost_behind(&mut outside, &segment(seq, 1)));
        }
        outside.on_acknowledgement(0, Side::Low, (&acknowledgement(100), 0), &[(200, 300)]);
        outside.on_acknowledgement(0, Side::Low, (&acknowledgement(100), 0), &[(400, 500)]);
        let lost = [0, 100, 200, 300, 400].map(|seq| is_lost_behind(&mut outside, &segment(seq, 2)));
        assert_eq!(lost, [false, true, false, true, false]);
    }

    fn alone(seq: u32, time_ns: i64) -> PacketAtCapture {
        PacketAtCapture {
            identity: 0,
            end: PathEnd::Near,
            tap: Tap::FIRST,
            other: Tap::SECOND,
            capture_point: 0,
            time_ns,
            flow: 0,
            side: Side::Low,
            packet: 1,
            seq,
            wire_bytes: 140,
            payload_bytes: 100,
        }
    }

    #[test]
    fn test_acknowledged_data_that_have_not_passed_were_missed_and_only_the_last_packet_with_them() {
        let mut outside = OutsideLoss::default();
        for (seq, time_ns) in [(0, 0), (100, 1), (200, 2), (300, 3), (200, 9), (400, 10)] {
            outside.is_lost_before(0, Side::Low, (&segment(seq, 1), time_ns), 100);
        }
        for seq in [0, 300] {
            outside.arrival(0, Side::Low, &segment(seq, 1), 100);
        }
        outside.on_acknowledgement(0, Side::Low, (&acknowledgement(200), 5), &[(300, 400)]);
        outside.on_acknowledgement(0, Side::Low, (&acknowledgement(400), 20), &[]);
        let missed = [(0, 0), (100, 1), (200, 2), (200, 9), (400, 10)];
        let missed = missed.map(|(seq, time_ns)| outside.was_missed(&alone(seq, time_ns)));
        assert_eq!(missed, [false, true, false, true, false]);
    }

    proptest! {
        #[test]
        fn test_no_numbers_panic(
            segments in proptest::collection::vec(any::<(u32, u32, u32, bool)>(), 0..200),
        ) {
            let mut outside = OutsideLoss::default();
            for (seq, timestamp, payload, is_near) in segments {
                let tcp = segment(seq, timestamp);
                match is_near {
                    true => outside.is_lost_before(0, Side::Low, (&tcp, 0), payload),
                    false => outside.arrival(0, Side::Low, &tcp, payload) == Arrival::OfLost,
                };
                outside.on_acknowledgement(0, Side::Low, (&acknowledgement(payload), 0), &[(seq, timestamp)]);
            }
        }
    }
}
