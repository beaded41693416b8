//! Packets between their two ends, matched by identity when they arrive or are dropped.

use super::FlowTable;
use super::delivery::Delivery;
use super::flow_table::Found;
use super::observation::has_data;
use super::ring_index::{Key, RingIndex};
use crate::flow::bins::Bins;
use crate::packet::event::{Event, NodeLayer, Packet, Sighting};

/// Limit of packets remembered; the oldest are dropped first. At 10 GbE and full-size packets this
/// is a third of a second, in a simulation of 10 Mbit/s five minutes.
const REMEMBERED: usize = 1 << 18;

/// A packet that was sent, or dropped or seen on its way where its transmission is not in the trace.
#[derive(Clone, Copy, Debug)]
struct PacketInTransit {
    found: Found,
    state: TransitState,
    was_sent: bool,
    is_stranded: bool,
    has_data: bool,
    identity: u64,
    sent_ns: i64,
}

impl PacketInTransit {
    fn key(&self) -> Key {
        (self.found, self.identity)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransitState {
    Sent,
    /// It was seen on its way.
    Passed,
    Dropped,
    /// It was still in a queue when the simulation ended.
    Left,
    /// It arrived, at this layer.
    Received(NodeLayer),
}

/// A packet that a simulator shows.
#[derive(Clone, Copy, Debug)]
pub struct Sighted<'a> {
    pub found: Found,
    pub packet: &'a Packet,
    pub sighting: &'a Sighting,
}

/// Meaning of a sighting for its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SightingMeaning {
    /// A packet was sent.
    Sent,
    /// A packet was seen on its way for the first time.
    Passed,
    /// A packet arrived for the first time; with the time at which it was sent, if that was seen.
    Received(Option<i64>),
    ReceivedAgain,
    /// Seen again along its path, or at a layer that is not counted.
    Nothing,
}

/// Where deliveries are counted: in the flows, and in time bins if these are collected.
pub struct TransitCounters<'a> {
    pub flows: &'a mut FlowTable,
    pub bins: Option<&'a mut Bins>,
    /// Outcomes of packets, if they are wanted.
    pub outcomes: Option<&'a mut Vec<PathOutcome>>,
}

/// What became of a packet of which both ends are shown.
#[derive(Clone, Copy, Debug)]
pub struct PathOutcome {
    pub found: Found,
    pub sent_ns: i64,
    /// None if it was lost.
    pub received_ns: Option<i64>,
    /// Whether it was a segment with data.
    pub is_segment: bool,
}

impl TransitCounters<'_> {
    fn delivery(&mut self, Found { flow, side }: Found) -> &mut Delivery {
        self.flows.get_mut(flow).deliveries_mut().of_mut(side)
    }

    /// Count a packet that arrived after it had been seen sent.
    fn arrived(&mut self, found: Found, sent_ns: i64, received_ns: i64) {
        self.delivery(found).on_delay(sent_ns, received_ns);
        if let Some(outcomes) = &mut self.outcomes {
            let received_ns = Some(received_ns);
            outcomes.push(PathOutcome { found, sent_ns, received_ns, is_segment: false });
        }
        if let (Some(bins), Ok(delay_ns)) =
            (&mut self.bins, u64::try_from(received_ns.saturating_sub(sent_ns)))
        {
            bins.add_delay(found.flow, found.side, sent_ns, delay_ns);
        }
    }

    /// Count a packet that will not arrive any more.
    fn lost(&mut self, &PacketInTransit { found, sent_ns, has_data, state, .. }: &PacketInTransit) {
        let delivery = self.delivery(found);
        delivery.lost += 1;
        if state != TransitState::Dropped && delivery.received == 0 && delivery.missing.receiver {
            return;
        }
        if has_data {
            self.flows.get_mut(found.flow).on_loss(found.side, sent_ns);
        }
        if let Some(outcomes) = &mut self.outcomes {
            let is_segment = has_data && self.flows.get(found.flow).transport.tcp.is_some();
            outcomes.push(PathOutcome { found, sent_ns, received_ns: None, is_segment });
        }
        if let Some(bins) = &mut self.bins {
            bins.add_loss(found.flow, found.side, sent_ns);
        }
    }
}

/// All packets of a trace that were sent lately.
pub struct Transits {
    ring: Vec<PacketInTransit>,
    /// Slot for the next packet, once the ring is full.
    next: usize,
    index: RingIndex,
    latest_ns: i64,
}

impl Default for Transits {
    fn default() -> Self {
        Self { ring: Vec::new(), next: 0, index: RingIndex::default(), latest_ns: i64::MIN }
    }
}

impl Transits {
    /// Whether no packet was followed.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Process a packet seen where it was created.
    pub fn on_sent(&mut self, seen: &Sighted<'_>, counts: &mut TransitCounters<'_>) -> SightingMeaning {
        let Sighted { found, packet, sighting } = *seen;
        self.latest_ns = self.latest_ns.max(packet.time_ns);
        let delivery = counts.delivery(found);
        let slot = self.find(found, sighting.identity);
        // A trace without its start may begin below the agent.
        if delivery.sent == 0 || (slot.is_none() && sighting.layer == NodeLayer::Agent) {
            delivery.layer = Some(sighting.layer);
        }
        let Some(slot) = slot else {
            delivery.sent += 1;
            self.insert(seen, TransitState::Sent, counts);
            return SightingMeaning::Sent;
        };
        let crossing = &mut self.ring[slot];
        if crossing.was_sent || matches!(crossing.state, TransitState::Received(_)) {
            return SightingMeaning::Nothing;
        }
        // A line of the packet on its way came before that of its source.
        delivery.sent += 1;
        delivery.dropped_unsent -= u64::from(crossing.state == TransitState::Dropped);
        (crossing.was_sent, crossing.sent_ns) = (true, packet.time_ns);
        if crossing.state == TransitState::Passed {
            crossing.state = TransitState::Sent;
        }
        SightingMeaning::Sent
    }

    /// Process a packet seen on its way.
    pub fn on_passed(&mut self, seen: &Sighted<'_>, counts: &mut TransitCounters<'_>) -> SightingMeaning {
        let Sighted { found, packet, sighting } = *seen;
        self.latest_ns = self.latest_ns.max(packet.time_ns);
        if sighting.identity == Sighting::NO_IDENTITY {
            // Each passes a device once, but for leaving its queue.
            let is_again = packet.event == Some(Event::Dequeued);
            return if is_again { SightingMeaning::Nothing } else { SightingMeaning::Passed };
        }
        if self.find(found, sighting.identity).is_some() {
            return SightingMeaning::Nothing;
        }
        self.insert(seen, TransitState::Passed, counts);
        SightingMeaning::Passed
    }

    /// Note how far a packet came of which it is not known whether the trace would show its arrival.
    pub fn on_way(&mut self, seen: &Sighted<'_>, counts: &mut TransitCounters<'_>) {
        let Sighted { found, packet, sighting } = *seen;
        let delivery = counts.delivery(found);
        if delivery.received > 0 {
            return;
        }
        // A radio hears also what is not for it.
        let is_at_node = packet.event == Some(Event::Received) && sighting.layer == NodeLayer::Link;
        if sighting.identity == Sighting::NO_IDENTITY {
            match packet.event {
                _ if is_at_node => delivery.stranded += 1,
                Some(Event::Enqueued | Event::Sent) => {
                    delivery.stranded = delivery.stranded.saturating_sub(1);
                }
                _ => {}
            }
        } else if let Some(slot) = self.find(found, sighting.identity) {
            let crossing = &mut self.ring[slot];
            let was_stranded = std::mem::replace(
                &mut crossing.is_stranded,
                is_at_node && crossing.state == TransitState::Sent,
            );
            delivery.stranded += u64::from(crossing.is_stranded);
            delivery.stranded -= u64::from(was_stranded);
        }
    }

    /// Process a packet seen at its destination.
    pub fn on_received(&mut self, seen: &Sighted<'_>, counts: &mut TransitCounters<'_>) -> SightingMeaning {
        let Sighted { found, packet, sighting } = *seen;
        self.latest_ns = self.latest_ns.max(packet.time_ns);
        let delivery = counts.delivery(found);
        // In a trace without its start the first arrival comes first, and at the lowest layer.
        if delivery.sent == 0 && sighting.layer == NodeLayer::Agent {
            delivery.layer = Some(sighting.layer);
        }
        let sent_at = *delivery.layer.get_or_insert(sighting.layer);
        if !is_same_path(sent_at, sighting.layer) {
            return SightingMeaning::Nothing;
        }
        let Some(slot) = self.find(found, sighting.identity) else {
            delivery.received += 1;
            delivery.unsent += 1;
            delivery.received_bytes += u64::from(packet.wire_bytes);
            self.insert(seen, TransitState::Received(sighting.layer), counts);
            return SightingMeaning::Received(None);
        };
        let crossing = &mut self.ring[slot];
        match crossing.state {
            TransitState::Received(layer) => {
                // A node with a link and an agent records the same arrival twice.
                if layer != sighting.layer {
                    return SightingMeaning::Nothing;
                }
                delivery.duplicates += 1;
                return SightingMeaning::ReceivedAgain;
            }
            TransitState::Dropped => {
                delivery.dropped -= 1;
                delivery.dropped_unsent -= u64::from(!crossing.was_sent);
            }
            TransitState::Sent | TransitState::Passed | TransitState::Left => {}
        }
        crossing.state = TransitState::Received(sighting.layer);
        delivery.received += 1;
        delivery.received_bytes += u64::from(packet.wire_bytes);
        if !crossing.was_sent {
            delivery.unsent += 1;
            return SightingMeaning::Received(None);
        }
        let sent_ns = crossing.sent_ns;
        counts.arrived(found, sent_ns, packet.time_ns);
        SightingMeaning::Received(Some(sent_ns))
    }

    /// Process a drop. A collision on the air is repaired by the MAC layer and is no loss yet, and
    /// packets in a queue at the end of a simulation (ns-2's `END`) are still in flight.
    pub fn on_dropped(&mut self, seen: &Sighted<'_>, counts: &mut TransitCounters<'_>) {
        let Sighted { found, packet, sighting } = *seen;
        self.latest_ns = self.latest_ns.max(packet.time_ns);
        let delivery = counts.delivery(found);
        delivery.on_drop(sighting.layer, sighting.reason, 1);
        let state = match (sighting.layer, sighting.reason.text()) {
            (NodeLayer::Mac, "COL") => return,
            (NodeLayer::Queue, "END") => TransitState::Left,
            _ => TransitState::Dropped,
        };
        let is_lost = u64::from(state == TransitState::Dropped);
        let Some(slot) = self.find(found, sighting.identity) else {
            delivery.dropped += is_lost;
            delivery.dropped_unsent += is_lost;
            self.insert(seen, state, counts);
            return;
        };
        let crossing = &mut self.ring[slot];
        if matches!(crossing.state, TransitState::Sent | TransitState::Passed) {
            crossing.state = state;
            delivery.dropped += is_lost;
            delivery.dropped_unsent += if crossing.was_sent { 0 } else { is_lost };
        }
    }

    /// Decide about packets that neither arrived nor were dropped. Call once, at the end.
    pub fn finish(&mut self, counts: &mut TransitCounters<'_>) {
        // The oldest first.
        let (newest, oldest) = self.ring.split_at(self.next);
        for crossing in oldest.iter().chain(newest) {
            let delivery = counts.delivery(crossing.found);
            match crossing.state {
                _ if !crossing.was_sent => {}
                TransitState::Received(_) | TransitState::Passed => {}
                TransitState::Dropped => counts.lost(crossing),
                TransitState::Left => delivery.in_flight += 1,
                TransitState::Sent => {
                    let age_ns = self.latest_ns.saturating_sub(crossing.sent_ns);
                    let longest_ns = delivery.delay.range.max_ns();
                    if longest_ns.is_some_and(|longest| age_ns as u64 <= longest) {
                        delivery.in_flight += 1;
                    } else {
                        counts.lost(crossing);
                    }
                }
            }
        }
        self.ring.clear();
        self.index.clear();
    }

    fn find(&self, found: Found, identity: u64) -> Option<usize> {
        let key_of = |slot: u32| self.ring[slot as usize].key();
        self.index.find(&(found, identity), key_of).map(|slot| slot as usize)
    }

    fn insert(&mut self, seen: &Sighted<'_>, state: TransitState, counts: &mut TransitCounters<'_>) {
        let Sighted { found, packet, sighting: &Sighting { identity, .. } } = *seen;
        let has_data = has_data(&packet.network);
        let was_sent = state == TransitState::Sent;
        let sent_ns = packet.time_ns;
        let crossing =
            PacketInTransit { found, state, was_sent, is_stranded: false, has_data, identity, sent_ns };
        let slot = if self.ring.len() < REMEMBERED {
            self.ring.push(crossing);
            self.ring.len() - 1
        } else {
            let slot = self.next;
            self.next = (self.next + 1) % REMEMBERED;
            self.forget(slot, counts);
            self.ring[slot] = crossing;
            slot
        };
        let Self { index, ring, .. } = self;
        index.insert(slot as u32, REMEMBERED, |slot| ring[slot as usize].key());
    }

    /// Remove the packet in `slot` from the index; if it has not arrived by now it is lost.
    fn forget(&mut self, slot: usize, counts: &mut TransitCounters<'_>) {
        let old = self.ring[slot];
        self.index.remove(slot as u32, &old.key());
        if old.was_sent && !matches!(old.state, TransitState::Received(_)) {
            counts.lost(&old);
        }
    }
}

/// Whether a packet sent at one layer may be counted as received at another: the wired half of a
/// mixed trace has links only, with a radio in place of a link. Without agents' lines a packet is sent
/// where it is routed; most routing protocols show no arrival, the layers below do.
fn is_same_path(sent: NodeLayer, received: NodeLayer) -> bool {
    use NodeLayer::{Agent, Link, Mac, Phy, Routing};
    sent == received
        || matches!(
            (sent, received),
            (Agent | Phy | Routing, Link) | (Link, Agent | Phy | Routing) | (Routing, Mac | Phy)
        )
}
