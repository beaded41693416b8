//! Packets seen at one capture and not yet at the other.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::Tap;
use crate::packet::key::Side;

/// Longest wait: a packet that did not arrive after a minute is lost.
pub const LONGEST_NS: i64 = 60_000_000_000;

/// Packets that are remembered, arrived ones included so that duplicates are known: 25 MB. At 10
/// GbE and full-size packets they are a third of a second.
const REMEMBERED: usize = 1 << 18;

const NONE: u64 = u64::MAX;

/// The end of the path between the captures at which a packet was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// The capture near its source.
    Near,
    /// The capture near its destination.
    Far,
}

/// A packet at one capture, or the part of a segment that was a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketAtCapture {
    /// Its identity at the other.
    pub identity: u64,
    pub end: PathEnd,
    /// The same capture as named by the user.
    pub tap: Tap,
    /// The capture at the other end.
    pub other: Tap,
    /// The interface and direction.
    pub capture_point: u16,
    /// Capture time on the first capture's clock.
    pub time_ns: i64,
    pub flow: u32,
    pub side: Side,
    /// Number of the packet in its capture.
    pub packet: u64,
    /// Sequence number of its payload, in TCP.
    pub seq: u32,
    /// Its frame; of a part of a segment its share.
    pub wire_bytes: u32,
    pub payload_bytes: u32,
}

/// The result for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchResult {
    /// The other capture has not had it yet.
    Waits,
    /// It is this packet of the other capture.
    Meets(PacketAtCapture),
    /// It reached the far capture more often than the near one.
    Again,
    /// The same capture has it at another interface.
    Copy,
}

struct Entered {
    passing: PacketAtCapture,
    is_met: bool,
    /// Its capture point at the other capture, once matched.
    met_place: u16,
    /// The next with the same identity.
    next: u64,
}

impl Entered {
    /// Whether `again`, with the same identity, is this packet at another interface of one of the
    /// captures.
    fn has_copy(&self, again: &PacketAtCapture) -> bool {
        match again.end == self.passing.end {
            true => again.capture_point != self.passing.capture_point,
            false => self.is_met && again.capture_point != self.met_place,
        }
    }
}

/// Packets with one identity. Those that wait are all of one end, and are matched in order: some
/// hosts send indistinguishable packets.
struct SameIdentity {
    identity: u64,
    waits: u64,
    last: u64,
}

/// The recent packets of both captures.
pub struct UnmatchedPackets {
    /// In order of capture.
    entered: VecDeque<Entered>,
    /// Number of the first of them.
    first: u64,
    index: HashTable<SameIdentity>,
    hasher: DefaultHashBuilder,
    most: usize,
}

impl Default for UnmatchedPackets {
    fn default() -> Self {
        Self::with_room_for(REMEMBERED)
    }
}

impl UnmatchedPackets {
    fn with_room_for(most: usize) -> Self {
        Self {
            entered: VecDeque::new(),
            first: 0,
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            most,
        }
    }

    /// Process a packet. Expired ones must have been removed before
    /// ([`UnmatchedPackets::take_expired`]).
    pub fn see(&mut self, passing: PacketAtCapture) -> MatchResult {
        let number = self.first.wrapping_add(self.entered.len() as u64);
        let hash = self.hasher.hash_one(passing.identity);
        let hasher = &self.hasher;
        let is_alike = |alike: &SameIdentity| alike.identity == passing.identity;
        match self.index.entry(hash, is_alike, |alike| hasher.hash_one(alike.identity)) {
            Entry::Vacant(capture_point) => {
                capture_point.insert(SameIdentity {
                    identity: passing.identity,
                    waits: number,
                    last: number,
                });
            }
            Entry::Occupied(mut capture_point) => {
                let alike = capture_point.get_mut();
                let slot = |number: u64| number.wrapping_sub(self.first) as usize;
                if self.entered.get(slot(alike.last)).is_some_and(|last| last.has_copy(&passing)) {
                    return MatchResult::Copy;
                }
                match self.entered.get_mut(slot(alike.waits)) {
                    Some(waiting) if waiting.passing.end != passing.end => {
                        (waiting.is_met, waiting.met_place) = (true, passing.capture_point);
                        alike.waits = waiting.next;
                        return MatchResult::Meets(waiting.passing);
                    }
                    None if passing.end == PathEnd::Far => return MatchResult::Again,
                    Some(_) => {}
                    None => alike.waits = number,
                }
                if let Some(last) = self.entered.get_mut(slot(alike.last)) {
                    last.next = number;
                }
                alike.last = number;
            }
        }
        self.entered.push_back(Entered { passing, is_met: false, met_place: 0, next: NONE });
        MatchResult::Waits
    }

    /// Remove the oldest packet that has expired at `now_ns`, or that exceeds the limit.
    pub fn take_expired(&mut self, now_ns: i64) -> Option<PacketAtCapture> {
        while let Some(oldest) = self.entered.front() {
            let is_late = now_ns.saturating_sub(oldest.passing.time_ns) > LONGEST_NS;
            if !is_late && self.entered.len() < self.most {
                return None;
            }
            let alone = self.forget_oldest();
            if alone.is_some() {
                return alone;
            }
        }
        None
    }

    /// Take out the oldest unmatched packet; None at the end.
    pub fn take_oldest(&mut self) -> Option<PacketAtCapture> {
        while !self.entered.is_empty() {
            let alone = self.forget_oldest();
            if alone.is_some() {
                return alone;
            }
        }
        None
    }

    /// Remove the oldest packet, and return it if it was not matched.
    fn forget_oldest(&mut self) -> Option<PacketAtCapture> {
        let Entered { passing, is_met, next, .. } = self.entered.pop_front()?;
        let number = self.first;
        self.first = self.first.wrapping_add(1);
        let hash = self.hasher.hash_one(passing.identity);
        if let Ok(mut capture_point) = self.index.find_entry(hash, |alike| alike.identity == passing.identity)
        {
            let alike = capture_point.get_mut();
            if alike.last == number {
                capture_point.remove();
            } else if alike.waits == number {
                alike.waits = next;
            }
        }
        (!is_met).then_some(passing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passing(identity: u64, end: PathEnd, time_ns: i64) -> PacketAtCapture {
        PacketAtCapture {
            identity,
            end,
            tap: if end == PathEnd::Near { Tap::FIRST } else { Tap::SECOND },
            other: if end == PathEnd::Near { Tap::SECOND } else { Tap::FIRST },
            capture_point: 0,
            time_ns,
            flow: 0,
            side: Side::Low,
            packet: 1,
            seq: 0,
            wire_bytes: 100,
            payload_bytes: 50,
        }
    }

    #[test]
    fn test_packets_that_nothing_distinguishes_meet_in_order() {
        let mut waiting = UnmatchedPackets::default();
        for time_ns in [10, 20] {
            assert_eq!(waiting.see(passing(7, PathEnd::Near, time_ns)), MatchResult::Waits);
        }
        for time_ns in [10, 20] {
            let met = MatchResult::Meets(passing(7, PathEnd::Near, time_ns));
            assert_eq!(waiting.see(passing(7, PathEnd::Far, time_ns + 5)), met);
        }
        assert_eq!(waiting.see(passing(7, PathEnd::Far, 30)), MatchResult::Again);
        assert_eq!(waiting.take_oldest(), None);
    }

    #[test]
    fn test_a_capture_may_show_a_packet_at_two_interfaces() {
        let copy = |end, time_ns| PacketAtCapture { capture_point: 4, ..passing(7, end, time_ns) };
        let mut waiting = UnmatchedPackets::default();
        assert_eq!(waiting.see(passing(7, PathEnd::Near, 10)), MatchResult::Waits);
        assert_eq!(waiting.see(copy(PathEnd::Near, 11)), MatchResult::Copy);
        assert_eq!(
            waiting.see(passing(7, PathEnd::Far, 20)),
            MatchResult::Meets(passing(7, PathEnd::Near, 10))
        );
        assert_eq!(waiting.see(copy(PathEnd::Far, 21)), MatchResult::Copy);
        assert_eq!(waiting.see(copy(PathEnd::Near, 22)), MatchResult::Copy);
        assert_eq!(waiting.see(passing(7, PathEnd::Far, 23)), MatchResult::Again);
        assert_eq!(waiting.take_oldest(), None);
    }

    #[test]
    fn test_an_arrival_may_come_before_its_sending() {
        let mut waiting = UnmatchedPackets::default();
        assert_eq!(waiting.see(passing(7, PathEnd::Far, 10)), MatchResult::Waits);
        assert_eq!(
            waiting.see(passing(7, PathEnd::Near, 12)),
            MatchResult::Meets(passing(7, PathEnd::Far, 10))
        );
    }

    #[test]
    fn test_after_a_minute_a_packet_is_lost_and_its_identity_is_free() {
        let mut waiting = UnmatchedPackets::default();
        waiting.see(passing(7, PathEnd::Near, 0));
        assert_eq!(waiting.take_expired(LONGEST_NS), None);
        assert_eq!(waiting.take_expired(LONGEST_NS + 1), Some(passing(7, PathEnd::Near, 0)));
        assert_eq!(waiting.see(passing(7, PathEnd::Near, LONGEST_NS + 1)), MatchResult::Waits);
    }

    proptest! {
        #[test]
        fn test_every_packet_is_met_or_taken_out(
            seen in proptest::collection::vec((0_u64..6, any::<bool>()), 0..300),
            most in 1_usize..40,
        ) {
            let mut waiting = UnmatchedPackets::with_room_for(most);
            let (mut met, mut again, mut alone) = (0, 0, 0);
            for (at, &(identity, is_near)) in seen.iter().enumerate() {
                while waiting.take_expired(at as i64).is_some() {
                    alone += 1;
                }
                let end = if is_near { PathEnd::Near } else { PathEnd::Far };
                match waiting.see(passing(identity, end, at as i64)) {
                    MatchResult::Waits => {}
                    MatchResult::Meets(other) => {
                        prop_assert!(other.identity == identity && other.end != end);
                        met += 1;
                    }
                    MatchResult::Again => again += 1,
                    MatchResult::Copy => prop_assert!(false, "all have one place"),
                }
                prop_assert!(waiting.entered.len() <= most);
                prop_assert!(waiting.index.len() <= most);
            }
            while waiting.take_oldest().is_some() {
                alone += 1;
            }
            prop_assert_eq!(2 * met + again + alone, seen.len());
            prop_assert!(waiting.index.is_empty());
        }
    }
}
