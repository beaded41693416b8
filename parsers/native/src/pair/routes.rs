//! Decides which of the two captures the packets of a host pass first.

use hashbrown::HashMap;

use super::hash_sampling::SampledPacket;
use super::{RouteEnds, Tap};
use crate::packet::event::{Address, Endpoints};

/// How the first capture of a path was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The time to live is smaller at the other capture.
    TimeToLive,
    /// The packets of one direction are later at the other capture than those of the other
    /// direction, for any clock offset.
    BothDirections,
    /// Other packets of the same hosts.
    OtherPackets,
    /// Unknown: the order in which the captures were given.
    Given,
}

impl Evidence {
    /// As text, to follow a colon or to stand in brackets.
    pub fn words(self) -> &'static str {
        match self {
            Self::TimeToLive => "the time to live falls",
            Self::BothDirections => "by the delays of both directions",
            Self::OtherPackets => "by other packets of these hosts",
            Self::Given => "as the captures were given",
        }
    }
}

/// Two hosts, the lower address first.
type HostPair = (Address, Address);

/// Sampled packets of two hosts. Both directions are kept apart: 0 from the lower address, 1 from
/// the higher.
#[derive(Clone, Copy, Debug, Default)]
struct HostPairTally {
    /// Packets of the lower host whose TTL is smaller at the second capture, less those where it is
    /// larger; of the higher host the other way round.
    falls: i64,
    packets: [u64; 2],
    /// Sums of the time at the second capture less that at the first.
    difference_ns: [i128; 2],
}

impl HostPairTally {
    fn add(&mut self, is_low: bool, first: &SampledPacket, second: &SampledPacket) {
        let fall = i64::from(first.ttl > second.ttl) - i64::from(first.ttl < second.ttl);
        self.falls += if is_low { fall } else { -fall };
        let direction = usize::from(!is_low);
        self.packets[direction] += 1;
        self.difference_ns[direction] += i128::from(second.time_ns) - i128::from(first.time_ns);
    }

    /// The capture that packets of the lower host pass first.
    fn conclude(&self) -> (Tap, Evidence) {
        let first_if = |is_first: bool| if is_first { Tap::FIRST } else { Tap::SECOND };
        if self.falls != 0 {
            return (first_if(self.falls > 0), Evidence::TimeToLive);
        }
        let [low, high] = self.packets;
        if low > 0 && high > 0 {
            // The offset of the clocks is in both means, the delay in one with each sign.
            let mean = |direction: usize| self.difference_ns[direction] / i128::from(self.packets[direction]);
            return (first_if(mean(0) > mean(1)), Evidence::BothDirections);
        }
        // One direction only: its sender is assumed to be near the first capture named.
        (first_if(low > 0), Evidence::Given)
    }
}

/// The first capture for each pair of hosts in the sample.
#[derive(Debug, Default)]
pub struct Routes {
    hosts: HashMap<HostPair, (Tap, Evidence)>,
    /// The capture nearer to a host, for pairs of hosts without a sampled packet; None if its
    /// packets with different hosts disagree.
    homes: HashMap<Address, Option<Tap>>,
}

impl Routes {
    /// Learn from packets in both captures.
    pub fn learn(common: &[(SampledPacket, SampledPacket)]) -> Self {
        let mut tallies: HashMap<HostPair, HostPairTally> = HashMap::new();
        for (first, second) in common {
            let (hosts, is_low) = hosts_of(&first.endpoints);
            tallies.entry(hosts).or_default().add(is_low, first, second);
        }
        let mut routes = Self::default();
        for (hosts, tally) in tallies {
            let (tap, evidence) = tally.conclude();
            routes.hosts.insert(hosts, (tap, evidence));
            for (host, home) in [(hosts.0, tap), (hosts.1, other(tap))] {
                let known = routes.homes.entry(host).or_insert(Some(home));
                *known = known.filter(|&known| known == home);
            }
        }
        routes
    }

    /// The captures that a packet passes first and last, and how this is known; None if no packet between
    /// these hosts, or hosts near them, is in both captures.
    #[inline]
    pub fn ends(&self, endpoints: &Endpoints) -> Option<(RouteEnds, Evidence)> {
        let (hosts, is_low) = hosts_of(endpoints);
        match self.hosts.get(&hosts) {
            Some(&(tap, evidence)) => {
                Some((if is_low { ends_from(tap) } else { ends_from(tap).reversed() }, evidence))
            }
            None => self.by_node_addresses(endpoints),
        }
    }

    fn by_node_addresses(&self, endpoints: &Endpoints) -> Option<(RouteEnds, Evidence)> {
        let home = |host| self.homes.get(host).copied().flatten();
        let (src, dst) = (home(&endpoints.src)?, home(&endpoints.dst)?);
        (src != dst).then_some((RouteEnds { near: src, far: dst }, Evidence::OtherPackets))
    }
}

fn other(tap: Tap) -> Tap {
    if tap == Tap::FIRST { Tap::SECOND } else { Tap::FIRST }
}

fn ends_from(near: Tap) -> RouteEnds {
    RouteEnds { near, far: other(near) }
}

fn hosts_of(endpoints: &Endpoints) -> (HostPair, bool) {
    let Endpoints { src, dst, src_port, dst_port, .. } = *endpoints;
    // A host that sends to itself is distinguished by its ports.
    let is_low = (src, src_port) <= (dst, dst_port);
    (if is_low { (src, dst) } else { (dst, src) }, is_low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn packet(
        src: Address,
        dst: Address,
        times_ms: (i64, i64),
        ttl: (u8, u8),
    ) -> (SampledPacket, SampledPacket) {
        let endpoints = Endpoints { src, dst, ..Endpoints::default() };
        let seen = |time_ms: i64, ttl| SampledPacket {
            time_ns: time_ms * MS,
            endpoints,
            ttl,
            place: 0,
            is_ambiguous: false,
        };
        (seen(times_ms.0, ttl.0), seen(times_ms.1, ttl.1))
    }

    fn first_tap(
        common: &[(SampledPacket, SampledPacket)],
        src: Address,
        dst: Address,
    ) -> Option<(Tap, Evidence)> {
        let found = Routes::learn(common).ends(&Endpoints { src, dst, ..Endpoints::default() });
        found.map(|(ends, evidence)| (ends.near, evidence))
    }

    #[test]
    fn test_the_time_to_live_decides_whatever_the_clocks_say() {
        let common = [packet(1, 2, (0, -5_000), (64, 62))];
        assert_eq!(first_tap(&common, 1, 2), Some((Tap::FIRST, Evidence::TimeToLive)));
        assert_eq!(first_tap(&common, 2, 1), Some((Tap::SECOND, Evidence::TimeToLive)));
    }

    #[test]
    fn test_delays_of_both_directions_decide_without_common_clocks() {
        // The second clock is an hour behind; 20 ms each way.
        let hour = 3_600_000;
        let common = [packet(9, 3, (0, 20 - hour), (64, 64)), packet(3, 9, (41, 21 - hour), (64, 64))];
        assert_eq!(first_tap(&common, 9, 3), Some((Tap::FIRST, Evidence::BothDirections)));
        assert_eq!(first_tap(&common, 3, 9), Some((Tap::SECOND, Evidence::BothDirections)));
    }

    #[test]
    fn test_one_direction_alone_passes_the_first_capture_first() {
        let common = [packet(9, 3, (5, 1), (64, 64))];
        assert_eq!(first_tap(&common, 9, 3), Some((Tap::FIRST, Evidence::Given)));
        assert_eq!(first_tap(&common, 9, 4), None);
    }
}
