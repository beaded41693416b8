//! Packets at a node that may or may not be their destination.
//!
//! Only traces with hierarchical addresses have them, and nearly always the next line decides: the
//! packet is passed on, or answered. Until then it and all packets after it wait, so that the
//! order stays that of the trace.

use std::collections::VecDeque;

use super::node_addresses::NodeAddresses;
use crate::packet::event::{Event, Packet, PathPoint};

/// The most packets that wait: about 1 MB.
const MAX_WAITING: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingArrival {
    /// The packet's destination.
    pub address: u32,
    /// The node that it reached.
    pub node: u32,
    /// Number of the packet.
    pub uid: u64,
}

/// Packets in the order of their lines; the first is waiting, or the first ones can be returned.
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

    /// Add a packet, which has to wait if it has an arrival.
    pub fn add(&mut self, packet: Packet, arrival: Option<PendingArrival>) {
        self.queue.push_back((packet, arrival));
    }

    /// The trace shows packet `uid` at `node` again: if it had arrived there, it was passed on.
    pub fn on_passed(&mut self, node: u32, uid: u64) {
        if let Some((_, arrival)) = self.queue.back_mut()
            && arrival.is_some_and(|arrival| arrival.node == node && arrival.uid == uid)
        {
            *arrival = None;
        }
    }

    /// The node of `address` became known: packets to it need not wait any longer.
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

    /// The first packet, after the last line.
    pub fn finish(&mut self, addresses: &mut NodeAddresses) -> Option<Packet> {
        if let Some(arrival) = self.queue.front()?.1 {
            self.conclude(arrival, addresses);
        }
        self.queue.pop_front().map(|(packet, _)| packet)
    }

    /// Decide about the first packet. A path that ends at a node ends at its destination, unless
    /// the packet may leave that node by radio.
    fn conclude(&mut self, arrival: PendingArrival, addresses: &mut NodeAddresses) {
        let PendingArrival { address, node, .. } = arrival;
        if !addresses.has_radio(node) {
            addresses.conclude(address, node);
            self.on_known(address, addresses);
        }
    }
}

/// Mark a packet as arrived at its destination.
fn arrive(packet: &mut Packet) {
    packet.event = Some(Event::Received);
    if let Some(sighting) = &mut packet.sighting {
        sighting.point = PathPoint::Destination;
    }
}
