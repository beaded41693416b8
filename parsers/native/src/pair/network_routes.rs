//! The routes of a network: the order in which packets pass captures of one clock.
//!
//! A route is learnt from packets that several captures have: of the sets of places that packets
//! pass, the one that most packets agree with, as far as losses let them come. The places stand in
//! the order of time; where times are equal, as in a simulation, in that of the time to live.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::HashMap;

use super::Tap;
use super::hash_sampling::{HashSample, SampledPacket};
use super::unmatched::LONGEST_NS;
use crate::packet::event::{Address, Endpoints};
use crate::packet::key::{FlowKey, Side};

/// Sets of places of one direction that are compared, those of most packets.
const MOST_SETS: usize = 64;

/// Places in the order in which packets of a direction pass them.
pub type Route = Arc<[Tap]>;

/// The places of a packet, in the order of the captures.
type Places = Vec<Tap>;

/// The routes between hosts, and those of flows that differ from them.
#[derive(Debug, Default)]
pub struct NetworkRoutes {
    hosts: HashMap<(Address, Address), Route>,
    flows: HashMap<(FlowKey, Side), Route>,
    /// Packets in several captures.
    pub packets: u64,
    /// Packets of these that are not found again, because their times differ by so much.
    pub apart: u64,
}

/// Packets of one direction.
#[derive(Debug, Default)]
struct Tally {
    sets: HashMap<Places, u64>,
}

/// How often packets pass one place before another: more often if above 0.
type Order = HashMap<(Tap, Tap), i64>;

impl NetworkRoutes {
    /// Learn from samples of all captures.
    pub fn learn(samples: &[&HashSample]) -> Self {
        let mut routes = Self::default();
        let mut of_hosts: HashMap<(Address, Address), Tally> = HashMap::new();
        let mut of_flows: HashMap<(FlowKey, Side), (Endpoints, Tally)> = HashMap::new();
        let mut orders: HashMap<(Address, Address), Order> = HashMap::new();
        for passed in HashSample::passed_captures(samples) {
            let Some((_, first)) = passed.first() else { continue };
            let endpoints = first.endpoints;
            let hosts = (endpoints.src, endpoints.dst);
            let places: Places = passed.iter().map(|(tap, _)| *tap).collect();
            routes.packets += u64::from(places.len() > 1);
            routes.apart += u64::from(is_apart(&passed));
            note_order(orders.entry(hosts).or_default(), &passed);
            *of_hosts.entry(hosts).or_default().sets.entry(places.clone()).or_default() += 1;
            let (_, tally) = of_flows.entry(FlowKey::of(&endpoints)).or_insert((endpoints, Tally::default()));
            *tally.sets.entry(places).or_default() += 1;
        }
        let none = Order::new();
        let order_of = |hosts: (Address, Address)| {
            let back = (hosts.1, hosts.0);
            (orders.get(&hosts).unwrap_or(&none), orders.get(&back).unwrap_or(&none))
        };
        for (&hosts, tally) in &of_hosts {
            routes.hosts.insert(hosts, ordered(&tally.usual(), order_of(hosts)));
        }
        for (&key, (endpoints, tally)) in &of_flows {
            let hosts = (endpoints.src, endpoints.dst);
            let own = tally.usual();
            let is_usual =
                routes.hosts.get(&hosts).is_some_and(|route| own.iter().all(|tap| route.contains(tap)));
            if !is_usual {
                routes.flows.insert(key, ordered(&own, order_of(hosts)));
            }
        }
        routes
    }

    /// The route of packets between `endpoints`; None if no such packet was sampled.
    #[inline]
    pub fn route(&self, endpoints: &Endpoints) -> Option<&Route> {
        if !self.flows.is_empty()
            && let Some(own) = self.flows.get(&FlowKey::of(endpoints))
        {
            return Some(own);
        }
        self.hosts.get(&(endpoints.src, endpoints.dst))
    }
}

/// Whether a packet would be given up before the last capture has it.
fn is_apart(passed: &[(Tap, SampledPacket)]) -> bool {
    let times_ns = || passed.iter().map(|(_, seen)| seen.time_ns);
    let range_ns = times_ns().min().zip(times_ns().max());
    range_ns.is_some_and(|(first_ns, last_ns)| last_ns.saturating_sub(first_ns) > LONGEST_NS)
}

/// Note which places the packet passed before others.
fn note_order(order: &mut Order, passed: &[(Tap, SampledPacket)]) {
    let moment = |seen: &SampledPacket| (seen.time_ns, Reverse(seen.ttl));
    for (at, (tap, seen)) in passed.iter().enumerate() {
        for (other, later) in &passed[at + 1..] {
            let step = match moment(seen).cmp(&moment(later)) {
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Greater => -1,
                std::cmp::Ordering::Equal => 0,
            };
            if step != 0 {
                *order.entry((*tap, *other)).or_default() += step;
            }
        }
    }
}

impl Tally {
    /// The set of places that most packets agree with: they passed all of it, or a part. Of equal ones
    /// the largest.
    fn usual(&self) -> Places {
        let mut sets: Vec<(&Places, u64)> = self.sets.iter().map(|(set, &count)| (set, count)).collect();
        sets.sort_by_key(|&(set, count)| (Reverse(count), Reverse(set.len()), set.clone()));
        sets.truncate(MOST_SETS);
        let agreeing = |whole: &Places| -> u64 {
            let is_part = |set: &Places| set.iter().all(|tap| whole.contains(tap));
            sets.iter().filter(|(set, _)| is_part(set)).map(|(_, count)| count).sum()
        };
        let best = sets.iter().max_by_key(|(set, _)| (agreeing(set), set.len(), Reverse(*set)));
        best.map(|(set, _)| (*set).clone()).unwrap_or_default()
    }
}

/// The places in the order of the packets of this direction; where that is not known, against that of
/// the other direction, else as the captures were given.
fn ordered(places: &[Tap], (there, back): (&Order, &Order)) -> Route {
    let net = |order: &Order, a: Tap, b: Tap| -> i64 {
        let known = |pair| order.get(&pair).copied().unwrap_or(0);
        known((a, b)) - known((b, a))
    };
    let is_before = |a: Tap, b: Tap| match (net(there, a, b), net(back, a, b)) {
        (0, 0) => a < b,
        (0, other) => other < 0,
        (own, _) => own > 0,
    };
    let mut route: Vec<Tap> = places.to_vec();
    let ahead = |tap: Tap| places.iter().filter(|&&other| other != tap && is_before(tap, other)).count();
    route.sort_by_key(|&tap| (Reverse(ahead(tap)), tap));
    route.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet: its ends, and the captures that have it, with time and time to live.
    type Passed<'a> = (Address, Address, &'a [(usize, i64, u8)]);

    fn learn(captures: usize, packets: &[Passed<'_>]) -> NetworkRoutes {
        let mut samples: Vec<HashSample> = (0..captures).map(|_| HashSample::new(1_000)).collect();
        for (identity, &(src, dst, passed)) in packets.iter().enumerate() {
            for &(at, time_ns, ttl) in passed {
                let endpoints = Endpoints { src, dst, ..Endpoints::default() };
                let seen = SampledPacket { time_ns, endpoints, ttl, place: 0, is_ambiguous: false };
                samples[at].add(identity as u64, seen);
            }
        }
        NetworkRoutes::learn(&samples.iter().collect::<Vec<_>>())
    }

    fn route(routes: &NetworkRoutes, src: Address, dst: Address) -> Vec<usize> {
        let found = routes.route(&Endpoints { src, dst, ..Endpoints::default() });
        found.map_or(Vec::new(), |route| route.iter().map(|tap| tap.index()).collect())
    }

    #[test]
    fn test_losses_shorten_no_route_and_directions_have_their_own() {
        let routes = learn(
            4,
            &[
                (1, 2, &[(3, 0, 64), (1, 5, 64)]),
                (1, 2, &[(3, 1, 64), (1, 6, 64)]),
                (1, 2, &[(3, 2, 64), (1, 7, 64), (2, 9, 63)]),
                (2, 1, &[(2, 10, 64), (1, 12, 63), (3, 15, 63)]),
                (1, 9, &[(3, 20, 64), (0, 25, 64)]),
            ],
        );
        assert_eq!(route(&routes, 1, 2), [3, 1, 2]);
        assert_eq!(route(&routes, 2, 1), [2, 1, 3]);
        assert_eq!(route(&routes, 1, 9), [3, 0]);
        assert_eq!(route(&routes, 9, 1), [0; 0]);
        assert_eq!(routes.packets, 5);
    }

    #[test]
    fn test_at_one_time_the_time_to_live_or_the_way_back_decides() {
        let by_ttl = learn(2, &[(1, 2, &[(0, 5, 63), (1, 5, 64)])]);
        assert_eq!(route(&by_ttl, 1, 2), [1, 0]);
        let by_way_back = learn(2, &[(1, 2, &[(0, 5, 64), (1, 5, 64)]), (2, 1, &[(0, 7, 64), (1, 8, 64)])]);
        assert_eq!(route(&by_way_back, 1, 2), [1, 0]);
    }

    #[test]
    fn test_of_two_routes_the_more_frequent_is_usual() {
        let (one, other): (&[_], &[_]) =
            (&[(0, 1, 64), (1, 2, 64), (3, 3, 64)], &[(0, 1, 64), (2, 2, 64), (3, 3, 64)]);
        let routes = learn(4, &[(1, 2, one), (1, 2, other), (1, 2, other)]);
        assert_eq!(route(&routes, 1, 2), [0, 2, 3]);
    }
}
