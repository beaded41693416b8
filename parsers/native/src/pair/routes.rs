//! Decides which of the two captures the packets of a host pass first.

use std::cmp::Ordering;

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
    /// The packets are later at the other capture, for any clock offset that those of other hosts permit,
    /// or for the given one.
    Delay,
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
            Self::Delay => "by the delays",
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

    fn mean_ns(&self, direction: usize) -> i128 {
        self.difference_ns[direction] / i128::from(self.packets[direction].max(1))
    }

    /// The capture that packets of the lower host pass first, whatever the clocks are.
    fn conclude(&self) -> Option<(Tap, Evidence)> {
        let [low, high] = self.packets;
        if self.falls != 0 {
            Some((first_if(self.falls > 0), Evidence::TimeToLive))
        } else if low > 0 && high > 0 {
            // The offset of the clocks is in both means, the delay in one with each sign.
            Some((first_if(self.mean_ns(0) > self.mean_ns(1)), Evidence::BothDirections))
        } else {
            None
        }
    }

    /// The same of packets of one direction, by what is known of the clocks. If that does not decide, their
    /// sender is assumed to be near the first capture named.
    fn conclude_by_clocks(&self, offset: OffsetBounds) -> (Tap, Evidence) {
        let is_low = self.packets[0] > 0;
        match offset.sign_of_delay(self.mean_ns(usize::from(!is_low))) {
            Ordering::Equal => (first_if(is_low), Evidence::Given),
            sign => (first_if(is_low == sign.is_gt()), Evidence::Delay),
        }
    }
}

fn first_if(is_first: bool) -> Tap {
    if is_first { Tap::FIRST } else { Tap::SECOND }
}

/// How far the second clock may be ahead.
#[derive(Clone, Copy, Debug)]
struct OffsetBounds {
    low_ns: i64,
    high_ns: i64,
}

impl OffsetBounds {
    const UNKNOWN: Self = Self { low_ns: i64::MIN, high_ns: i64::MAX };

    /// Add a packet that passed the capture `near` first: it arrived no sooner than it was sent.
    fn limit(&mut self, near: Tap, difference_ns: i64) {
        if near == Tap::FIRST {
            self.high_ns = self.high_ns.min(difference_ns);
        } else {
            self.low_ns = self.low_ns.max(difference_ns);
        }
    }

    /// Whether packets are later at the second capture or at the first; equal if that is not known.
    fn sign_of_delay(self, difference_ns: i128) -> Ordering {
        let delay_ns = [self.low_ns, self.high_ns].map(|offset_ns| difference_ns - i128::from(offset_ns));
        // A clock that drifts makes the bounds contradict each other.
        match delay_ns {
            [above_low, above_high] if above_high > above_low => Ordering::Equal,
            [_, above_high] if above_high > 0 => Ordering::Greater,
            [above_low, _] if above_low < 0 => Ordering::Less,
            _ => Ordering::Equal,
        }
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
    /// Learn from packets in both captures. The second clock is ahead by `given_offset_ns`, if that is known.
    pub fn learn(common: &[(SampledPacket, SampledPacket)], given_offset_ns: Option<i64>) -> Self {
        let mut tallies: HashMap<HostPair, HostPairTally> = HashMap::new();
        for (first, second) in common {
            let (hosts, is_low) = hosts_of(&first.endpoints);
            tallies.entry(hosts).or_default().add(is_low, first, second);
        }
        let mut routes = Self::default();
        let concluded = tallies.iter().filter_map(|(hosts, tally)| Some((*hosts, tally.conclude()?)));
        routes.hosts.extend(concluded);
        let offset = match given_offset_ns {
            Some(offset_ns) => OffsetBounds { low_ns: offset_ns, high_ns: offset_ns },
            None => routes.offset_bounds(common),
        };
        for (hosts, tally) in tallies {
            let (tap, _) = *routes.hosts.entry(hosts).or_insert_with(|| tally.conclude_by_clocks(offset));
            for (host, home) in [(hosts.0, tap), (hosts.1, other(tap))] {
                let known = routes.homes.entry(host).or_insert(Some(home));
                *known = known.filter(|&known| known == home);
            }
        }
        routes
    }

    /// The offsets of the clocks with which no packet of a known route arrives before it was sent.
    fn offset_bounds(&self, common: &[(SampledPacket, SampledPacket)]) -> OffsetBounds {
        let mut bounds = OffsetBounds::UNKNOWN;
        for (first, second) in common {
            if let Some((ends, _)) = self.ends(&first.endpoints) {
                bounds.limit(ends.near, second.time_ns.saturating_sub(first.time_ns));
            }
        }
        bounds
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
        let found = Routes::learn(common, None).ends(&Endpoints { src, dst, ..Endpoints::default() });
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

    #[test]
    fn test_one_direction_passes_first_where_it_is_earlier_by_the_clocks() {
        for (times_ms, expected) in [
            ((0, 105), (Tap::FIRST, Evidence::Delay)),
            ((0, 90), (Tap::SECOND, Evidence::Delay)),
            ((0, 100), (Tap::FIRST, Evidence::Given)),
        ] {
            // The second clock is ahead by 98 to 103 ms.
            let both = [packet(9, 3, (0, 103), (64, 64)), packet(3, 9, (0, 98), (64, 64))];
            let common = [both[0], both[1], packet(7, 8, times_ms, (64, 64))];
            assert_eq!(first_tap(&common, 7, 8), Some(expected), "{times_ms:?}");
        }
        let alone = [packet(7, 8, (0, 5), (64, 64))];
        let ends = Endpoints { src: 7, dst: 8, ..Endpoints::default() };
        for (offset_ms, near) in [(0, Tap::FIRST), (9, Tap::SECOND)] {
            let found = Routes::learn(&alone, Some(offset_ms * MS)).ends(&ends);
            assert_eq!(found.map(|(ends, evidence)| (ends.near, evidence)), Some((near, Evidence::Delay)));
        }
    }
}
