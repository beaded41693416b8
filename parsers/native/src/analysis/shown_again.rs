//! Datagrams that a capture of several interfaces shows more than once, as `-i any` on a router does.
//!
//! A segment of TCP is known again by what its connection expects ([`crate::flow::tcp`]). A datagram is
//! known by itself: a copy has the identity of one that was seen lately, at another place. At the same
//! place it is another datagram, however alike: then nothing tells them apart.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::Analysis;
use crate::asides::Asides;
use crate::event::{Network, Packet, Transport};
use crate::flow::Found;
use crate::flow::tcp::Carrier;
use crate::pair::identity::{identity, payload_head};

/// How long after a packet its copy may be shown: the longest that it waits in a router's queue.
const LONGEST_NS: i64 = 4_000_000_000;
/// Packets that are remembered, for all flows: 1 MB, where a capture has several places.
const REMEMBERED: usize = 1 << 14;
/// Packets that are remembered before it is known whether there are several. Afterwards a capture of one
/// place costs nothing.
const FIRST: u32 = 256;

/// Where a packet was shown first.
#[derive(Clone, Copy, Debug)]
struct Shown {
    place: u16,
    time_ns: i64,
    /// Of all that are remembered, to tell it from one that had the same identity before.
    number: u64,
}

/// Datagrams that were shown lately.
#[derive(Debug, Default)]
pub(super) struct ShownAgain {
    /// Of the first packet.
    place: Option<u16>,
    has_several: bool,
    number: u64,
    shown: HashMap<u64, Shown>,
    /// Identities and numbers, the oldest first.
    order: VecDeque<(u64, u64)>,
}

impl ShownAgain {
    /// Whether a packet was shown at another place before.
    #[inline]
    pub fn is_copy(&mut self, packet: &Packet, network: &Network, asides: &Asides) -> bool {
        let place = Carrier::place_of(packet.interface, packet.event);
        self.has_several |= *self.place.get_or_insert(place) != place;
        (self.has_several || self.number < u64::from(FIRST))
            && identity(network, payload_head(network, asides))
                .is_some_and(|identity| self.see(identity, place, packet.time_ns))
    }

    #[inline(never)]
    fn see(&mut self, identity: u64, place: u16, time_ns: i64) -> bool {
        if let Some(shown) = self.shown.get(&identity)
            && shown.place != place
            && time_ns.saturating_sub(shown.time_ns) <= LONGEST_NS
        {
            return true;
        }
        if self.order.len() == REMEMBERED
            && let Some((oldest, number)) = self.order.pop_front()
            && self.shown.get(&oldest).is_some_and(|shown| shown.number == number)
        {
            self.shown.remove(&oldest);
        }
        self.number += 1;
        self.shown.insert(identity, Shown { place, time_ns, number: self.number });
        self.order.push_back((identity, self.number));
        false
    }
}

impl Analysis {
    /// Whether a packet of a flow that is none of TCP was shown before. Then it counts only as that.
    #[inline]
    pub(super) fn take_copy(
        &mut self,
        found: Found,
        packet: &Packet,
        network: &Network,
        asides: &Asides,
    ) -> bool {
        let has_identity =
            matches!(network.transport, Transport::Udp | Transport::Dccp | Transport::LaterFragment);
        let is_copy = has_identity && self.shown_again.is_copy(packet, network, asides);
        if is_copy {
            self.flows.get_mut(found.flow).on_copy(found.side);
        }
        is_copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_a_copy_is_alike_at_another_place_and_soon() {
        let mut shown = ShownAgain::default();
        assert!(!shown.see(1, 0, 0));
        assert!(!shown.see(1, 0, 1));
        assert!(shown.see(1, 2, 2) && shown.see(1, 2, 3) && shown.see(1, 4, 3));
        assert!(!shown.see(2, 2, 3));
        assert!(!shown.see(1, 2, 2 + LONGEST_NS));
    }

    #[test]
    fn test_what_is_remembered_is_bounded() {
        let mut shown = ShownAgain::default();
        for identity in 0..3 * REMEMBERED as u64 {
            assert!(!shown.see(identity % (2 * REMEMBERED as u64), 0, 0));
        }
        assert_eq!((shown.shown.len(), shown.order.len()), (REMEMBERED, REMEMBERED));
        assert!(shown.see(REMEMBERED as u64 - 1, 1, 0));
        assert!(!shown.see(REMEMBERED as u64, 1, 0));
    }

    proptest! {
        #[test]
        fn test_each_datagram_that_every_interface_shows_counts_once(
            alike in proptest::collection::vec(0_u64..4, 1..60), lags in 0_usize..5, places in 2_u16..4,
        ) {
            // The copies at each further place come `lags` datagrams behind.
            let mut shown = ShownAgain::default();
            let steps = alike.len() + lags * usize::from(places);
            let counted = (0..steps).flat_map(|step| (0..places).map(move |place| (step, place)))
                .filter_map(|(step, place)| {
                    let identity = alike.get(step.checked_sub(lags * usize::from(place))?)?;
                    Some((*identity, place, step as i64))
                })
                .filter(|&(identity, place, time_ns)| !shown.see(identity, place, time_ns))
                .count();
            prop_assert_eq!(counted, alike.len());
        }
    }
}
