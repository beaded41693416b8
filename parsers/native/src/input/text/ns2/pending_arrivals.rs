//! Packets that came to a node of which it is not known yet whether it is their destination.
//!
//! Only traces with hierarchical addresses have them, and nearly always the next line tells: the
//! packet is passed on, or answered. Until then it and all packets behind it wait, so that the order
//! stays as it is in the trace.

use std::collections::VecDeque;

use super::node_addresses::NodeAddresses;
use crate::packet::event::{Event, Packet, PathPoint};

/// Packets that wait at most: about 1 MB.
const MAX_WAITING: usize = 4096;

/// Where a packet is that may have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingArrival {
    /// The address that it is for.
    pub address: u32,
    /// The node that it came to.
    pub node: u32,
    /// Number of the packet.
    pub uid: u64,
}

/// Packets in the order of their lines; the first is one that waits, or others are about to go.
#[derive(Debug, Default)]
pub struct PendingArrivals {
    queue: VecDeque<(Packet, Option<PendingArrival>)>,
}

impl PendingArrivals {
    /// Whether no packet waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Put a packet at the end, which has to wait if it has an arrival.
    pub fn add(&mut self, packet: Packet, arrival: Option<PendingArrival>) {
        self.queue.push_back((packet, arrival));
    }

    /// The packet `uid` was seen again at `node`: if it had just come there, it was passed on.
    pub fn on_passed(&mut self, node: u32, uid: u64) {
        if let Some((_, arrival)) = self.queue.back_mut()
            && arrival.is_some_and(|arrival| arrival.node == node && arrival.uid == uid)
        {
            *arrival = None;
        }
    }

    /// It became known where `address` is: all that waited for that need not any longer.
    pub fn on_known(&mut self, address: u32, addresses: &NodeAddresses) {
        for (packet, arrival) in &mut self.queue {
            if let Some(PendingArrival { node, .. }) = arrival.filter(|arrival| arrival.address == address) {
                if addresses.is_at(address, node) == Some(true) {
                    arrive(packet);
                }
                *arrival = None;
            }
        }
    }

    /// The first packet, if it need not wait.
    pub fn next(&mut self, addresses: &mut NodeAddresses) -> Option<Packet> {
        let &(_, first) = self.queue.front()?;
        if let Some(arrival) = first {
            if self.queue.len() < MAX_WAITING {
                return None;
            }
            self.conclude(arrival, addresses);
        }
        self.queue.pop_front().map(|(packet, _)| packet)
    }

    /// The first packet, now that no line can tell any more.
    pub fn finish(&mut self, addresses: &mut NodeAddresses) -> Option<Packet> {
        if let Some(arrival) = self.queue.front()?.1 {
            self.conclude(arrival, addresses);
        }
        self.queue.pop_front().map(|(packet, _)| packet)
    }

    /// Decide about the first packet. A path that ends at a node ends at its destination, unless it
    /// may go on by radio there, unseen.
    fn conclude(&mut self, arrival: PendingArrival, addresses: &mut NodeAddresses) {
        let PendingArrival { address, node, .. } = arrival;
        if !addresses.has_radio(node) {
            addresses.conclude(address, node);
            self.on_known(address, addresses);
        }
    }
}

/// Make of a packet that came to some node one that came to its destination.
fn arrive(packet: &mut Packet) {
    packet.event = Some(Event::Received);
    if let Some(sighting) = &mut packet.sighting {
        sighting.point = PathPoint::Destination;
    }
}
