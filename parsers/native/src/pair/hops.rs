//! The way of each packet past several captures: which hop lost it, and how long each hop took.
//!
//! A hop leads from one place of a route to the next. A packet that a place did not see and a later
//! one did was missed by that capture, not lost.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::unmatched::LONGEST_NS;
use crate::flow::rtt_statistics::{LogHistogram, RttStatistics};
use crate::packet::key::Side;

/// Most places of all packets that are remembered: 64 MB.
const REMEMBERED_PLACES: usize = 1 << 21;

/// Most hops of all flows together: about 400 MB.
const MOST_HOPS: usize = 1 << 21;

/// No packet.
const NONE: u64 = u64::MAX;

/// A packet at one place of its route.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    pub identity: u64,
    pub flow: u32,
    pub side: Side,
    /// Number of the place on the route.
    pub place: usize,
    /// Places of the route.
    pub places: usize,
    /// Interface and direction in the capture.
    pub capture_point: u16,
    pub time_ns: i64,
}

/// Packets of one direction of a flow on one hop.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Packets that came to the end of the hop.
    pub arrived: u64,
    /// Packets seen at its start and nowhere beyond it.
    pub lost: u64,
    /// The same, while the capture at its end was not running for certain.
    pub in_flight: u64,
    /// Packets of `arrived` that the capture at its end missed: a later place has them.
    pub missed: u64,
    /// Packets first seen at the end of the hop.
    pub unsent: u64,
    /// Further arrivals of packets at its end.
    pub duplicates: u64,
    pub delay: RttStatistics,
    pub delay_sketch: LogHistogram,
    /// Packets that seem to arrive before they were sent: the clocks differ.
    pub negative_delays: u64,
    /// When the first and the last packet that arrived were at its start.
    arrived_ns: (i64, i64),
}

impl Default for Hop {
    fn default() -> Self {
        Self {
            arrived: 0,
            lost: 0,
            in_flight: 0,
            missed: 0,
            unsent: 0,
            duplicates: 0,
            delay: RttStatistics::default(),
            delay_sketch: LogHistogram::default(),
            negative_delays: 0,
            arrived_ns: (i64::MAX, i64::MIN),
        }
    }
}

impl Hop {
    /// Packets seen at its start, or known to have been there.
    pub fn packets(&self) -> u64 {
        self.arrived + self.lost + self.in_flight
    }

    fn on_delay(&mut self, from_ns: i64, to_ns: i64) {
        let (first_ns, last_ns) = &mut self.arrived_ns;
        (*first_ns, *last_ns) = (from_ns.min(*first_ns), from_ns.max(*last_ns));
        match u64::try_from(to_ns.saturating_sub(from_ns)) {
            Ok(delay_ns) => {
                self.delay.add(delay_ns);
                self.delay_sketch.add(delay_ns);
            }
            Err(_) => self.negative_delays += 1,
        }
    }

    /// Whether a capture that ran in `span_ns` should have a packet that left the start at `time_ns`.
    fn was_expected(&self, time_ns: i64, (start_ns, end_ns): (i64, i64)) -> bool {
        let longest_ns = self.delay.range.max_ns().and_then(|ns| i64::try_from(ns).ok()).unwrap_or(0);
        let (earliest_ns, latest_ns) = self.arrived_ns;
        time_ns >= start_ns.min(earliest_ns) && time_ns <= end_ns.saturating_sub(longest_ns).max(latest_ns)
    }
}

/// A packet, and where it was seen.
struct Passing {
    identity: u64,
    flow: u32,
    side: Side,
    entered_ns: i64,
    /// Time at each place; None where it was not seen.
    seen_ns: Box<[Option<i64>]>,
    /// The next packet with the same identity.
    next: u64,
}

/// Packets that look the same. Each place sees them in the same order.
struct SameIdentity {
    last: u64,
    /// For each place the first packet that it has not seen, and where it saw the last one.
    places: Box<[(u64, Option<u16>)]>,
}

/// The hops of all flows, and the packets on their way.
#[derive(Default)]
pub struct Hops {
    hops: HashMap<(u32, Side), Vec<Hop>>,
    /// Hops of all of them.
    count: usize,
    /// Packets of directions that are not followed because of the limit.
    pub left_out: u64,
    passing: VecDeque<Passing>,
    /// Number of the first of them.
    first: u64,
    places: usize,
    index: HashMap<u64, SameIdentity>,
}

impl Hops {
    /// The hops of one direction of a flow, from its sender on.
    pub fn of(&self, flow: u32, side: Side) -> &[Hop] {
        self.hops.get(&(flow, side)).map_or(&[], Vec::as_slice)
    }

    /// Packets that seem to come to the end of a hop before they were at its start, of all that are in
    /// both captures.
    pub fn negative_delays(&self) -> (u64, u64) {
        let hops = self.hops.values().flatten();
        hops.fold((0, 0), |(negative, all), hop| {
            let own = hop.negative_delays;
            (negative + own, all + own + hop.delay.range.count())
        })
    }

    /// Process a packet at one place.
    pub fn see(&mut self, sighting: &Sighting) {
        let &Sighting { identity, flow, side, place, places, capture_point, time_ns } = sighting;
        let known = self.hops.get(&(flow, side)).map_or(0, Vec::len);
        let new = places.saturating_sub(1 + known);
        if self.count + new > MOST_HOPS {
            self.left_out += 1;
            return;
        }
        self.count += new;
        let hops = self.hops.entry((flow, side)).or_default();
        if new > 0 {
            hops.resize_with(places - 1, Hop::default);
        }
        let Some(alike) = self.index.get_mut(&identity).filter(|alike| alike.places.len() == places) else {
            return self.enter(sighting);
        };
        let (waiting, seen_at) = &mut alike.places[place];
        if seen_at.is_some_and(|seen_at| seen_at != capture_point) {
            return; // the same capture has it at another interface
        }
        if *waiting == NONE {
            match place {
                0 => self.enter(sighting),
                _ => hops[place - 1].duplicates += 1,
            }
            return;
        }
        let Some(passing) = self.passing.get_mut(waiting.wrapping_sub(self.first) as usize) else { return };
        (*waiting, *seen_at) = (passing.next, Some(capture_point));
        passing.seen_ns[place] = Some(time_ns);
        if let Some(from_ns) = place.checked_sub(1).and_then(|before| passing.seen_ns[before]) {
            hops[place - 1].on_delay(from_ns, time_ns);
        }
        if let Some(to_ns) = passing.seen_ns.get(place + 1).copied().flatten() {
            hops[place].on_delay(time_ns, to_ns);
        }
    }

    /// Remember a packet that no place has seen yet.
    fn enter(&mut self, sighting: &Sighting) {
        let &Sighting { identity, flow, side, place, places, capture_point, time_ns } = sighting;
        let number = self.first.wrapping_add(self.passing.len() as u64);
        let mut seen_ns = vec![None; places].into_boxed_slice();
        seen_ns[place] = Some(time_ns);
        let alike = self.index.entry(identity).or_insert_with(|| SameIdentity {
            last: NONE,
            places: vec![(NONE, None); places].into_boxed_slice(),
        });
        if alike.places.len() != places {
            // The same number for a packet of another route.
            *alike = SameIdentity { last: NONE, places: vec![(NONE, None); places].into_boxed_slice() };
        }
        if let Some(last) = self.passing.get_mut(alike.last.wrapping_sub(self.first) as usize) {
            last.next = number;
        }
        alike.last = number;
        for (other, (waiting, seen_at)) in alike.places.iter_mut().enumerate() {
            if other == place {
                *seen_at = Some(capture_point);
            } else if *waiting == NONE {
                *waiting = number;
            }
        }
        self.places += places;
        self.passing.push_back(Passing { identity, flow, side, entered_ns: time_ns, seen_ns, next: NONE });
    }

    /// Count the packets that have expired at `now_ns`, or that exceed the limit. `span_ns` tells when
    /// the capture at a place of a flow's route ran.
    pub fn expire(&mut self, now_ns: i64, span_ns: &impl Fn(u32, Side, usize) -> (i64, i64)) {
        while let Some(oldest) = self.passing.front() {
            let is_late = now_ns.saturating_sub(oldest.entered_ns) > LONGEST_NS;
            if !is_late && self.places < REMEMBERED_PLACES {
                return;
            }
            self.close_oldest(span_ns);
        }
    }

    /// Count all packets that are left.
    pub fn finish(&mut self, span_ns: &impl Fn(u32, Side, usize) -> (i64, i64)) {
        while !self.passing.is_empty() {
            self.close_oldest(span_ns);
        }
    }

    fn close_oldest(&mut self, span_ns: &impl Fn(u32, Side, usize) -> (i64, i64)) {
        let Some(passing) = self.passing.pop_front() else { return };
        let number = self.first;
        self.first = self.first.wrapping_add(1);
        self.places -= passing.seen_ns.len();
        if let Some(alike) = self.index.get_mut(&passing.identity) {
            if alike.last == number {
                self.index.remove(&passing.identity);
            } else {
                for (waiting, _) in &mut alike.places {
                    if *waiting == number {
                        *waiting = passing.next;
                    }
                }
            }
        }
        let Some(hops) = self.hops.get_mut(&(passing.flow, passing.side)) else { return };
        let was_seen = |place: &usize| passing.seen_ns[*place].is_some();
        let places = 0..passing.seen_ns.len();
        let (Some(first), Some(last)) = (places.clone().find(was_seen), places.rev().find(was_seen)) else {
            return;
        };
        if let Some(before) = first.checked_sub(1) {
            hops[before].unsent += 1;
        }
        for (hop, end_ns) in hops.iter_mut().zip(&passing.seen_ns[1..]).take(last).skip(first) {
            hop.arrived += 1;
            hop.missed += u64::from(end_ns.is_none());
        }
        if let (Some(hop), Some(time_ns)) = (hops.get_mut(last), passing.seen_ns[last]) {
            match hop.was_expected(time_ns, span_ns(passing.flow, passing.side, last + 1)) {
                true => hop.lost += 1,
                false => hop.in_flight += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACES: usize = 4;

    fn see(hops: &mut Hops, identity: u64, place: usize, time_ns: i64) {
        hops.see(&Sighting {
            identity,
            flow: 0,
            side: Side::Low,
            place,
            places: PLACES,
            capture_point: 0,
            time_ns,
        });
    }

    fn finished(mut hops: Hops) -> Vec<[u64; 6]> {
        hops.finish(&|_, _, _| (i64::MIN, i64::MAX));
        let count =
            |hop: &Hop| [hop.arrived, hop.lost, hop.in_flight, hop.missed, hop.unsent, hop.duplicates];
        hops.of(0, Side::Low).iter().map(count).collect()
    }

    #[test]
    fn test_a_packet_is_lost_behind_the_last_place_that_saw_it() {
        let mut hops = Hops::default();
        for (identity, last) in [(1, 3), (2, 1), (3, 0), (4, 2)] {
            (0..=last).for_each(|place| see(&mut hops, identity, place, 10 * place as i64));
        }
        assert_eq!(finished(hops), [[3, 1, 0, 0, 0, 0], [2, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]]);
    }

    #[test]
    fn test_packets_beyond_the_most_hops_are_counted_and_not_followed() {
        let mut hops = Hops { count: MOST_HOPS - 1, ..Hops::default() };
        for time_ns in 0..3 {
            see(&mut hops, 7, 0, time_ns);
        }
        assert_eq!((hops.left_out, hops.of(0, Side::Low).len(), hops.passing.len()), (3, 0, 0));
    }

    #[test]
    fn test_a_place_that_is_passed_over_missed_the_packet() {
        let mut hops = Hops::default();
        [0, 1, 3].into_iter().for_each(|place| see(&mut hops, 1, place, 10));
        see(&mut hops, 2, 2, 20);
        assert_eq!(finished(hops), [[1, 0, 0, 0, 0, 0], [1, 0, 0, 1, 1, 0], [1, 1, 0, 0, 0, 0]]);
    }

    #[test]
    fn test_sightings_of_one_time_may_come_in_any_order() {
        let mut hops = Hops::default();
        [2, 0, 3, 1].into_iter().for_each(|place| see(&mut hops, 1, place, 5));
        assert_eq!(finished(hops), [[1, 0, 0, 0, 0, 0]; 3]);
    }

    #[test]
    fn test_packets_that_nothing_tells_apart_are_matched_in_order() {
        let mut hops = Hops::default();
        for time_ns in [0, 1, 2] {
            see(&mut hops, 7, 0, time_ns);
        }
        for time_ns in [10, 11] {
            see(&mut hops, 7, 1, time_ns);
        }
        [1, 2, 3].into_iter().for_each(|place| see(&mut hops, 7, place, 20));
        assert_eq!(finished(hops), [[3, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]);
    }

    #[test]
    fn test_a_packet_that_comes_twice_is_a_duplicate_and_one_sent_twice_is_not() {
        let mut hops = Hops::default();
        [0, 1, 2, 3, 3].into_iter().for_each(|place| see(&mut hops, 7, place, 10));
        [0, 1].into_iter().for_each(|place| see(&mut hops, 7, place, 20));
        assert_eq!(finished(hops), [[2, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 1]]);
    }

    proptest! {
        #[test]
        fn test_what_comes_to_a_place_goes_on_or_is_lost(
            seen in proptest::collection::vec((0_u64..6, 0_usize..PLACES, 0_i64..100), 0..300),
        ) {
            let mut hops = Hops::default();
            for (identity, place, time_ns) in seen {
                hops.expire(time_ns, &|_, _, _| (0, 50));
                see(&mut hops, identity, place, time_ns);
            }
            let counts = finished(hops);
            for pair in counts.windows(2) {
                let [arrived, _, _, _, unsent, _] = pair[0];
                prop_assert_eq!(arrived + unsent, pair[1][0] + pair[1][1] + pair[1][2]);
            }
        }
    }
}
