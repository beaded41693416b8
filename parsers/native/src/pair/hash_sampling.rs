//! Selects the same packets at both captures: hash-based selection (RFC 5475 section 6.2).
//!
//! The packets with the smallest identities are kept. As both captures use the same rule, a packet
//! that is in both and kept of one is nearly always kept of the other, however the clocks differ
//! and whenever the captures began. Small captures are kept whole.

use hashbrown::HashMap;

use super::Tap;
use crate::packet::event::Endpoints;

/// Packets kept of one capture: 15 MB.
pub const KEPT: usize = 1 << 17;

/// Fields kept of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledPacket {
    /// Capture time on the capture's own clock.
    pub time_ns: i64,
    pub endpoints: Endpoints,
    pub ttl: u8,
    /// The interface and direction; a duplicate at another one is the same packet.
    pub place: u16,
    /// Whether another packet of the capture has the same identity.
    pub is_ambiguous: bool,
}

/// The sample of one capture.
#[derive(Debug)]
pub struct HashSample {
    kept: HashMap<u64, SampledPacket>,
    /// Identities above it are not kept.
    limit: u64,
    most: usize,
}

impl HashSample {
    /// An empty sample, which keeps at least `most` packets if the capture has as many.
    pub fn new(most: usize) -> Self {
        Self { kept: HashMap::new(), limit: u64::MAX, most }
    }

    #[inline]
    pub fn add(&mut self, identity: u64, seen: SampledPacket) {
        if identity > self.limit {
            return;
        }
        let place = seen.place;
        let doubt = |first: &mut SampledPacket| first.is_ambiguous |= first.place == place;
        self.kept.entry(identity).and_modify(doubt).or_insert(seen);
        if self.kept.len() >= 2 * self.most.max(1) {
            self.lower_limit();
        }
    }

    /// Keep half of the packets, those with the smallest identities. The limit only falls, so of an
    /// identity that is kept every packet was seen.
    fn lower_limit(&mut self) {
        let mut identities: Vec<u64> = self.kept.keys().copied().collect();
        let (_, &mut limit, _) = identities.select_nth_unstable(self.kept.len() / 2);
        self.limit = limit;
        self.kept.retain(|&identity, _| identity <= limit);
    }

    /// The packets in any of `samples`, each with the captures that have it, in the order of these.
    pub fn passed_captures(samples: &[&Self]) -> Vec<Vec<(Tap, SampledPacket)>> {
        let limit = samples.iter().map(|sample| sample.limit).min().unwrap_or(u64::MAX);
        let of_capture = |(tap, sample): (u8, &&Self)| {
            let own: Vec<_> =
                sample.kept.iter().map(|(identity, seen)| (*identity, Tap(tap), *seen)).collect();
            own
        };
        let mut kept: Vec<_> = (0..).zip(samples).flat_map(of_capture).collect();
        // Of a larger identity one of the samples may lack packets that its capture has.
        kept.retain(|(identity, ..)| *identity <= limit);
        kept.sort_unstable_by_key(|(identity, tap, _)| (*identity, *tap));
        let alike = kept.chunk_by(|(one, ..), (other, ..)| one == other);
        let clear = alike.filter(|packets| packets.iter().all(|(_, _, seen)| !seen.is_ambiguous));
        clear.map(|packets| packets.iter().map(|(_, tap, seen)| (*tap, *seen)).collect()).collect()
    }

    /// The packets in both samples, as captured at each, in the order of the first's time.
    pub fn common(&self, other: &Self) -> Vec<(SampledPacket, SampledPacket)> {
        let find =
            |(identity, first): (&u64, &SampledPacket)| Some((*identity, *first, *other.kept.get(identity)?));
        let mut common: Vec<_> = self.kept.iter().filter_map(find).collect();
        common.retain(|(_, first, second)| !first.is_ambiguous && !second.is_ambiguous);
        common.sort_unstable_by_key(|(identity, first, _)| (first.time_ns, *identity));
        common.into_iter().map(|(_, first, second)| (first, second)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(time_ns: i64) -> SampledPacket {
        SampledPacket { time_ns, endpoints: Endpoints::default(), ttl: 64, place: 0, is_ambiguous: false }
    }

    #[test]
    fn test_an_identity_of_two_packets_is_not_used() {
        let (mut first, mut second) = (HashSample::new(10), HashSample::new(10));
        for (identity, time_ns) in [(1, 10), (2, 20), (2, 30)] {
            first.add(identity, seen(time_ns));
            second.add(identity, seen(time_ns + 5));
        }
        assert_eq!(first.common(&second), [(seen(10), seen(15))]);
    }

    #[test]
    fn test_a_copy_at_another_interface_is_the_same_packet() {
        let (mut first, mut second) = (HashSample::new(10), HashSample::new(10));
        first.add(1, seen(10));
        first.add(1, SampledPacket { place: 4, ..seen(11) });
        second.add(1, seen(15));
        assert_eq!(first.common(&second), [(seen(10), seen(15))]);
    }

    proptest! {
        #[test]
        fn test_both_captures_keep_the_same_packets(
            identities in proptest::collection::hash_set(any::<u64>(), 0..500),
            lost in proptest::collection::hash_set(0_usize..500, 0..50),
        ) {
            let (mut first, mut second) = (HashSample::new(20), HashSample::new(20));
            for (at, &identity) in identities.iter().enumerate() {
                first.add(identity, seen(at as i64));
                if !lost.contains(&at) {
                    second.add(identity, seen(at as i64));
                }
            }
            prop_assert!(first.kept.len() < 40 && second.kept.len() < 40);
            let arrived = identities.len() - lost.iter().filter(|&&at| at < identities.len()).count();
            let limit = first.limit.min(second.limit);
            let below = first.kept.keys().filter(|&&identity| identity <= limit);
            let in_both = below.filter(|identity| second.kept.contains_key(*identity)).count();
            prop_assert_eq!(first.common(&second).len(), in_both);
            prop_assert!(in_both > 0 || arrived < 20 || lost.len() > 10);
        }
    }
}
