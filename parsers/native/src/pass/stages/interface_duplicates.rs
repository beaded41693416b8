//! Datagrams and ICMP errors that a capture of several interfaces shows more than once, as `-i any`
//! on a router does.
//!
//! The duplicate of a TCP segment is recognised by what its connection expects
//! ([`crate::flow::tcp`]). A duplicate datagram has the identity of a recent one, at another
//! capture point. At the same capture point it is another datagram, however alike.

use std::collections::VecDeque;

use hashbrown::HashMap;

use serde::{Deserialize, Serialize};

use crate::packet::event::{Network, Packet, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::ip_fields::IpFields;
use crate::pair::packet_identity::{error_identity, identity, payload_head};

/// The longest time between a packet and its duplicate: the longest wait in a router's queue.
const LONGEST_NS: i64 = 4_000_000_000;
/// The most packets remembered, over all flows: 1 MB, for a capture with several capture points.
const REMEMBERED: usize = 1 << 14;
/// Packets remembered before a second capture point is known. With a single one, nothing is
/// remembered after them.
const FIRST: usize = 256;

/// The first capture of a packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct FirstSighting {
    capture_point: u16,
    time_ns: i64,
    /// Number of the packet, to distinguish it from an earlier one with the same identity.
    number: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::pass) struct InterfaceDuplicates {
    /// Capture point of the first packet.
    capture_point: Option<u16>,
    has_several: bool,
    shown: HashMap<u64, FirstSighting>,
    /// Identities and numbers, the oldest first.
    order: VecDeque<(u64, u64)>,
}

impl InterfaceDuplicates {
    /// Whether a packet was captured at another point before. May be called twice for a packet.
    #[inline]
    pub fn is_copy(&mut self, packet: &Packet, network: &Network, extras: &PacketExtras) -> bool {
        let capture_point = IpFields::capture_point(packet);
        self.has_several |= *self.capture_point.get_or_insert(capture_point) != capture_point;
        (self.has_several || self.order.len() < FIRST) && self.is_known(packet, network, extras)
    }

    /// Whether the first sighting of a packet was at another point; remembered if this is the first.
    #[inline(never)]
    fn is_known(&mut self, packet: &Packet, network: &Network, extras: &PacketExtras) -> bool {
        let capture_point = IpFields::capture_point(packet);
        let head = payload_head(network, extras);
        let network = &whole_datagram(network, extras);
        let identity = match network.transport {
            Transport::IcmpError => Some(error_identity(network, head)),
            _ => identity(network, head),
        };
        let shown = FirstSighting { capture_point, time_ns: packet.time_ns, number: packet.number };
        identity.is_some_and(|identity| self.see(identity, shown))
    }

    fn see(&mut self, identity: u64, packet: FirstSighting) -> bool {
        if let Some(shown) = self.shown.get(&identity) {
            let is_at_once = packet.time_ns.saturating_sub(shown.time_ns) <= LONGEST_NS;
            if shown.capture_point != packet.capture_point && is_at_once {
                return true;
            }
            if shown.number == packet.number {
                return false;
            }
        }
        if self.order.len() == REMEMBERED
            && let Some((oldest, number)) = self.order.pop_front()
            && self.shown.get(&oldest).is_some_and(|shown| shown.number == number)
        {
            self.shown.remove(&oldest);
        }
        self.shown.insert(identity, packet);
        self.order.push_back((identity, packet.number));
        false
    }
}

/// A datagram in a tunnel whose outer packet is in fragments as it was before them.
#[inline(always)]
fn whole_datagram(network: &Network, extras: &PacketExtras) -> Network {
    let mut whole = *network;
    if network.transport == Transport::Udp
        && network.fragment.is_some()
        && let Some(outer) = extras.tunnel(network.tunnel).and_then(|tunnel| tunnel.outer_fragment)
    {
        whole.payload_bytes = Some(outer.inner_payload.saturating_sub(network.header_bytes.into()));
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl InterfaceDuplicates {
        /// Look up the next packet.
        fn next(&mut self, identity: u64, capture_point: u16, time_ns: i64) -> bool {
            let number = self.order.back().map_or(0, |last| last.1 + 1);
            self.see(identity, FirstSighting { capture_point, time_ns, number })
        }
    }

    #[test]
    fn test_a_copy_is_alike_at_another_place_and_soon() {
        let mut shown = InterfaceDuplicates::default();
        assert!(!shown.next(1, 0, 0));
        assert!(!shown.next(1, 0, 1));
        assert!(shown.next(1, 2, 2) && shown.next(1, 2, 3) && shown.next(1, 4, 3));
        assert!(!shown.next(2, 2, 3));
        assert!(!shown.next(1, 2, 2 + LONGEST_NS));
    }

    #[test]
    fn test_what_is_remembered_is_bounded() {
        let mut shown = InterfaceDuplicates::default();
        for identity in 0..3 * REMEMBERED as u64 {
            assert!(!shown.next(identity % (2 * REMEMBERED as u64), 0, 0));
        }
        assert_eq!((shown.shown.len(), shown.order.len()), (REMEMBERED, REMEMBERED));
        assert!(shown.next(REMEMBERED as u64 - 1, 1, 0));
        assert!(!shown.next(REMEMBERED as u64, 1, 0));
    }

    #[test]
    fn test_a_packet_that_is_asked_of_twice_is_remembered_once() {
        let mut shown = InterfaceDuplicates::default();
        for number in 0..10 {
            let packet = FirstSighting { capture_point: 0, time_ns: 0, number };
            assert!(!shown.see(number, packet) && !shown.see(number, packet));
        }
        assert_eq!(shown.order.len(), 10);
    }

    proptest! {
        #[test]
        fn test_each_datagram_that_every_interface_shows_counts_once(
            alike in proptest::collection::vec(0_u64..4, 1..60), lags in 0_usize..5, places in 2_u16..4,
        ) {
            // The duplicates at each further capture point follow `lags` datagrams later.
            let mut shown = InterfaceDuplicates::default();
            let steps = alike.len() + lags * usize::from(places);
            let counted = (0..steps).flat_map(|step| (0..places).map(move |capture_point| (step, capture_point)))
                .filter_map(|(step, capture_point)| {
                    let identity = alike.get(step.checked_sub(lags * usize::from(capture_point))?)?;
                    Some((*identity, capture_point, step as i64))
                })
                .filter(|&(identity, capture_point, time_ns)| !shown.next(identity, capture_point, time_ns))
                .count();
            prop_assert_eq!(counted, alike.len());
        }
    }
}
