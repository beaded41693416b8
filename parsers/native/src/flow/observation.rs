//! Where a simulator's trace shows the packets of a flow. It need not have the lines of all nodes and
//! layers: then packets are counted, and the connection is watched, at the best place that it has.

use serde::{Deserialize, Serialize};

use super::Flow;
use super::outstanding::Pool;
use crate::packet::event::{Packet, PathPoint, TcpFlags, Transport};
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
        if let Some(tcp) = self.tcp.as_mut().filter(|_| !is_first && before.watched < watched) {
            tcp.start_anew(pool);
        }
        if before.counted[side as usize].is_some_and(|known| Some(known) != counted) {
            self.directions[side as usize] = super::Direction::UNSEEN;
        }
        observed
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
