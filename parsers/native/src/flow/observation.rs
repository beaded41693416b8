//! Where a simulator's trace shows the packets of a flow. It need not have the lines of all nodes and
//! layers: then packets are counted, and the connection is watched, at the best place that it has.

use serde::{Deserialize, Serialize};

use super::outstanding::Pool;
use super::tcp::ecn::CE;
use super::tcp::vantage::Vantage;
use super::tcp::{Outcome, Sight};
use super::volume::Direction;
use super::{Flow, Seen};
use crate::packet::event::{Network, Numbering, Packet, PathPoint, TcpFlags, Transport};
use crate::packet::ip_fields::IpFields;
use crate::packet::key::Side;

/// Places of packets of a flow that the trace has shown so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Observation {
    /// Where the packets of each side are counted.
    counted: [Option<PathPoint>; 2],
    watched: Option<WatchedPlace>,
    /// The node or interface on the way at which packets were seen first.
    node: Option<u32>,
}

/// Where the connection is watched. A later one is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum WatchedPlace {
    Between,
    /// The end that receives the data.
    Receiver,
    /// The end that sends the data.
    Sender,
}

/// Ends of a path that the trace does not show, so that nothing is known of what happens there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingEnds {
    pub sender: bool,
    pub receiver: bool,
}

impl MissingEnds {
    pub const BOTH: Self = Self { sender: true, receiver: true };

    pub fn any(self) -> bool {
        self.sender || self.receiver
    }
}

/// What a sighting is to its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whether packets of this direction are counted at this place.
    pub is_counted: bool,
    /// Whether the connection is watched at this place.
    pub is_watched: bool,
}

impl Observation {
    /// Where the packets of `side` are counted; None if no packet of it was seen.
    pub fn counted_at(&self, side: Side) -> Option<PathPoint> {
        self.counted[side as usize]
    }

    /// The end at which a connection whose data come from `sender` is watched; None on the way.
    fn watched_end(&self, sender: Side) -> Option<Side> {
        match self.watched {
            Some(WatchedPlace::Between) => None,
            Some(WatchedPlace::Receiver) => Some(sender.other()),
            Some(WatchedPlace::Sender) | None => Some(sender),
        }
    }
}

impl Flow {
    /// The end at which a flow with both ends in the trace is watched: that of the side that sent
    /// first, or the only one that the trace has. None if it has packets on their way alone.
    pub fn watched(&self) -> Option<Side> {
        match self.deliveries() {
            Some(both) => both.observation.watched_end(self.first),
            None => Some(self.first),
        }
    }

    /// Where it was captured, seen from the data of `side`, and the confidence: as given by the user (of the
    /// data that are more payload) or by a simulator, else inferred.
    pub fn vantage(&self, side: Side, given: Option<Vantage>) -> Option<(Vantage, f64)> {
        if self.shows_path() {
            if self.is_simulated() && !self.is_watched() {
                return None;
            }
            let vantage = match self.watched() {
                Some(watched) if watched == side => Vantage::Sender,
                Some(_) => Vantage::Receiver,
                None => Vantage::Middle,
            };
            return Some((vantage, 1.0));
        }
        let Some(vantage) = given else { return self.transport.vantage(side) };
        if !self.transport.has_vantage() {
            return None;
        }
        Some((if self.is_larger(side) { vantage } else { vantage.of_other_direction() }, 1.0))
    }

    /// Whether the data of `side` are more payload than those of the other one.
    pub fn is_larger(&self, side: Side) -> bool {
        let payload = |side| self.direction(side).payload_bytes;
        (payload(side), side == self.forward()) > (payload(side.other()), side != self.forward())
    }

    /// Note that a simulator shows a packet of `side` at `point` of its path. What was counted and
    /// watched at a worse place before is forgotten.
    pub fn observe(&mut self, side: Side, packet: &Packet, point: PathPoint, pool: &mut Pool) -> Observed {
        let before = self.deliveries_mut().observation;
        let is_first = before.watched.is_none();
        if is_first && is_answer(packet) {
            self.first = side.other();
        }
        let place = match point {
            PathPoint::Between => WatchedPlace::Between,
            PathPoint::Source if side == self.first => WatchedPlace::Sender,
            PathPoint::Destination if side != self.first => WatchedPlace::Sender,
            PathPoint::Source | PathPoint::Destination => WatchedPlace::Receiver,
        };
        let now = &mut self.deliveries_mut().observation;
        let is_at_node =
            point != PathPoint::Between || *now.node.get_or_insert(packet.interface) == packet.interface;
        now.watched = now.watched.max(Some(place));
        let counted = &mut now.counted[side as usize];
        *counted = if rank(*counted) < rank(Some(point)) { Some(point) } else { *counted };
        let observed = Observed {
            is_counted: is_at_node && *counted == Some(point),
            is_watched: is_at_node && now.watched == Some(place),
        };
        let (watched, counted) = (now.watched, *counted);
        if let Some(tcp) = self.transport.tcp.as_mut().filter(|_| !is_first && before.watched < watched) {
            tcp.start_anew(pool);
            for side in [Side::Low, Side::High] {
                let delivery = self.deliveries_mut().of_mut(side);
                (delivery.unique_bytes, delivery.repeated_bytes) = (0, 0);
            }
        }
        if before.counted[side as usize].is_some_and(|known| Some(known) != counted) {
            self.directions[side as usize] = Direction::UNSEEN;
        }
        observed
    }

    /// Process a packet seen at a `point` of its path. The connection is watched at one end, like a capture
    /// there: it sees its own packets when they leave and the other side's when they arrive.
    pub(super) fn on_sighting(
        &mut self,
        seen: &Seen<'_>,
        point: PathPoint,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let Seen { side, packet, network, .. } = *seen;
        if point != PathPoint::Destination {
            self.count(seen);
        }
        if network.dscp != Some(0) {
            self.note_dscp(side, network.dscp);
        }
        let agent = packet.sighting.and_then(|sighting| sighting.agent);
        // Some traces show it on links only, and not where the packet was sent.
        self.deliveries_mut().note_identity(side, network, agent);
        let is_watched = match point {
            PathPoint::Source => self.watched() == Some(side),
            PathPoint::Between => true,
            PathPoint::Destination => self.watched() == Some(side.other()),
        };
        if is_watched {
            self.watch(seen, pool, outcome);
        } else {
            outcome.new_bytes = network.payload_bytes.unwrap_or(0);
            if point == PathPoint::Destination && network.ecn == CE {
                self.transport.note_mark_on_way(side);
            }
        }
    }

    fn watch(&mut self, seen: &Seen<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        let Seen { side, packet, network, .. } = *seen;
        let payload = network.payload_bytes.unwrap_or(0);
        let is_at_sender = side == self.first && self.watched() == Some(side);
        let Some(connection) = self.transport.tcp.as_mut().filter(|_| network.transport == Transport::Tcp)
        else {
            outcome.new_bytes = payload;
            self.transport.note_codepoint(side, network.ecn);
            if network.transport == Transport::Dccp {
                outcome.rtt = self.transport.non_tcp_mut().on_dccp(seen, pool);
            }
            return;
        };
        if is_at_sender {
            let sight = if packet.sighting.is_some() { Sight::Simulation } else { Sight::Pair };
            connection.half_mut(side).sight = sight;
        }
        let ip = IpFields::of(packet);
        connection.on_segment(side, &seen.segment(units_of(network, payload), &ip), pool, outcome);
        if network.numbering == Numbering::Packets {
            // Rounds are in bytes.
            outcome.round = None;
            let bytes_of = |units: u32| if units > 0 { payload } else { 0 };
            outcome.new_bytes = bytes_of(outcome.new_bytes);
            outcome.repeated_bytes = bytes_of(outcome.repeated_bytes);
            let delivery = self.deliveries_mut().of_mut(side);
            delivery.unique_bytes += u64::from(outcome.new_bytes);
            delivery.repeated_bytes += u64::from(outcome.repeated_bytes);
        }
    }

    /// `payload` bytes of a segment, `offset` bytes into it, that the first side sent at `sent_ns` arrived.
    pub fn on_arrival(&mut self, side: Side, network: &Network, (offset, payload): (u32, u32), sent_ns: i64) {
        if side == self.first
            && has_data(network)
            && let Some(connection) = &mut self.transport.tcp
        {
            let syn = u32::from(network.tcp.flags.has(TcpFlags::SYN));
            let seq = network.tcp.seq.wrapping_add(syn).wrapping_add(offset);
            connection.half_mut(side).on_arrival((seq, units_of(network, payload)), sent_ns);
        }
    }

    /// A segment that the first side sent at `sent_ns` reached a receiver that had its data.
    pub fn on_needless_arrival(&mut self, side: Side, network: &Network, sent_ns: i64) {
        if side == self.first
            && has_data(network)
            && let Some(connection) = &mut self.transport.tcp
        {
            let units = network.payload_bytes.unwrap_or(0);
            connection.half_mut(side).on_needless_arrival((network.tcp.seq, units), sent_ns);
        }
    }

    /// A segment with data that `side` sent at `sent_ns` did not arrive.
    pub fn on_loss(&mut self, side: Side, sent_ns: i64) {
        if let Some(connection) = &mut self.transport.tcp {
            connection.half_mut(side).on_loss(sent_ns);
        }
    }

    /// Whether a simulator's trace shows any packet of this flow.
    pub fn is_simulated(&self) -> bool {
        self.is_watched()
            || self
                .deliveries()
                .is_some_and(|both| [Side::Low, Side::High].into_iter().any(|side| both.has_only_drops(side)))
    }

    /// Whether a simulator's trace shows more of this flow than drops.
    pub fn is_watched(&self) -> bool {
        self.deliveries().is_some_and(|both| both.observation.watched.is_some())
    }

    /// Whether a packet of `side` on its way, at a node or interface, adds nothing to what the trace
    /// shows elsewhere: of the ends, or at the place on the way where the flow was seen first.
    pub fn is_seen_elsewhere(&self, side: Side, interface: u32) -> bool {
        self.deliveries().is_some_and(|both| {
            let Observation { counted, node, .. } = both.observation;
            let is_at_end = counted[side as usize].is_some_and(|point| point != PathPoint::Between);
            is_at_end || node.is_some_and(|node| node != interface)
        })
    }
}

/// Whether a packet is a TCP segment with data.
pub(super) fn has_data(network: &Network) -> bool {
    network.transport == Transport::Tcp && units_of(network, network.payload_bytes.unwrap_or(0)) > 0
}

/// Sequence space of a segment: bytes, or packets in traces that number these.
fn units_of(network: &Network, payload: u32) -> u32 {
    match network.numbering {
        Numbering::Bytes => payload,
        Numbering::Packets => u32::from(!network.tcp.flags.has(TcpFlags::ACK)),
    }
}

/// How good a place is to count packets at.
fn rank(point: Option<PathPoint>) -> u8 {
    match point {
        None => 0,
        Some(PathPoint::Between) => 1,
        Some(PathPoint::Destination) => 2,
        Some(PathPoint::Source) => 3,
    }
}

/// Whether a packet only answers to data of the other side.
fn is_answer(packet: &Packet) -> bool {
    let network = &packet.network;
    match network.transport {
        Transport::Tcp => {
            let flags = network.tcp.flags;
            network.payload_bytes == Some(0)
                && flags.has(TcpFlags::ACK)
                && !flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
        }
        Transport::TfrcFeedback => true,
        _ => false,
    }
}
