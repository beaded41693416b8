//! The flow of a packet in a tunnel, and of one outside whose flow may have been in a tunnel before.
//!
//! The same lane, five-tuple and side is the same flow. A packet of a new lane joins a flow with its five-tuple
//! if it is a copy at another interface, if it answers, or if it continues a TCP connection on another path.

use smallvec::SmallVec;

use super::tcp::{Kinship, Segment};
use super::tunnelled_flows::MOST_CANDIDATES;
use super::{FlowTable, Found, Origin};
use crate::packet::encapsulation::Lane;
use crate::packet::event::{Endpoints, Network, Packet, TcpFlags, Transport};
use crate::packet::ip_fields::IpFields;
use crate::packet::key::{FlowKey, Side};
use crate::packet::plain::PlainSegment;
use crate::packet::tunnel::Tunnel;

/// Flows with the five-tuple of a packet.
pub type Candidates = SmallVec<[u32; 4]>;

/// A packet whose lane is new.
pub struct Newcomer<'a> {
    side: Side,
    lane: Lane,
    /// Its TCP header, if it has one.
    segment: Option<Segment<'a>>,
    /// Whether it is a datagram that the capture showed at another place.
    is_copy: bool,
}

/// Why a newcomer joins a flow, from the weakest reason to the strongest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The first segment of its side acknowledges the other's, though in another network.
    AnswersFromElsewhere,
    Continues,
    Answers,
    /// It answers, with the identifiers of the packets that it answers.
    AnswersAlike,
    Copy,
}

impl FlowTable {
    pub fn has_tunnels(&self) -> bool {
        !self.tunnelled.is_empty()
    }

    /// What carried the first packet of `side`, if anything.
    pub fn tunnel(&self, flow: u32, side: Side) -> Option<&Tunnel> {
        self.tunnelled.tunnel(flow, side)
    }

    /// Record what carried a packet.
    #[inline]
    pub fn note_tunnel(&mut self, found: Found, tunnel: &Tunnel) {
        self.tunnelled.note(found, tunnel);
    }

    /// The flow of a packet in its lane, if known.
    pub fn find_in_lane(&self, network: &Network) -> Option<Found> {
        if network.lane.is_outside() {
            return self.find(network);
        }
        let (key, side) = FlowKey::of(&network.endpoints);
        self.tunnelled.find(&key, side, network.lane).map(|flow| Found { flow, side })
    }

    /// Whether a packet's lane is new for its five-tuple; for packet after packet.
    #[inline]
    pub fn is_new_lane(&mut self, network: &Network) -> bool {
        if network.lane.is_outside() {
            return self.find(network).is_none();
        }
        let (key, side) = FlowKey::of(&network.endpoints);
        self.tunnelled.find_next(&key, side, network.lane).is_none()
    }

    /// The flow that an error's quoted packet probably belongs to: that of its lane, or the newest.
    pub fn find_quoted(&self, network: &Network) -> Option<Found> {
        let (key, side) = FlowKey::of(&network.endpoints);
        let in_lane = |of| self.tunnelled.find(&key, of, network.lane);
        let newest = || self.candidates(&network.endpoints).last().copied();
        let flow = in_lane(side).or_else(|| in_lane(side.other())).or_else(newest)?;
        Some(Found { flow, side })
    }

    /// The last flows of a five-tuple in any lane, the newest last.
    pub fn candidates(&self, endpoints: &Endpoints) -> Candidates {
        let (key, _) = FlowKey::of(endpoints);
        let mut flows: Candidates = self.tunnelled.newest(&key).into();
        if let Some(outside) = self.lookup(&key.sought()).filter(|flow| !flows.contains(flow)) {
            flows.push(outside);
        }
        flows.sort_unstable();
        flows
    }

    /// The flow of a packet in a tunnel, opened if needed. None if the limit is reached.
    pub fn find_or_open_in_lane(&mut self, packet: &Packet, network: &Network, source: u32) -> Option<Found> {
        let (key, side) = FlowKey::of(&network.endpoints);
        let lane = network.lane;
        let known = self.tunnelled.find_next(&key, side, lane);
        let is_syn = network.transport == Transport::Tcp && network.tcp.flags.has(TcpFlags::SYN);
        let flow = match known {
            Some(flow) if !self.is_over_before((flow, side), packet, network, is_syn) => flow,
            _ => {
                let flow = self.open_unregistered(&key, side, Origin::new(source, packet.interface))?;
                if let Some(old) = known {
                    self.note_replaced(old);
                    self.tunnelled.hand_over(key, old, flow);
                    if self.lookup(&key.sought()) == Some(old) {
                        self.register(&key.sought(), flow);
                    }
                }
                self.tunnelled.register(key, Found { flow, side }, lane);
                flow
            }
        };
        Some(Found { flow, side })
    }

    /// Let a packet of a lane that is new for its five-tuple belong to one of the `candidates`, if it does.
    pub fn join(&mut self, packet: &Packet, network: &Network, candidates: &[u32], is_copy: bool) {
        let ip = IpFields::of(packet);
        let payload = network.payload_bytes.filter(|_| network.transport == Transport::Tcp);
        let segment = payload.map(|payload| Segment {
            time_ns: packet.time_ns,
            tcp: &network.tcp,
            payload,
            sack: &[],
            ecn_counters: None,
            ip: &ip,
        });
        let (key, side) = FlowKey::of(&network.endpoints);
        let newcomer = Newcomer { side, lane: network.lane, segment, is_copy };
        if let Some(flow) = self.best(&key, candidates, &newcomer) {
            self.admit(key, Found { flow, side }, network.lane);
        }
    }

    /// The same for a plain segment, which is in no tunnel.
    #[cold]
    #[inline(never)]
    pub(super) fn join_plain(&mut self, segment: &PlainSegment) -> Option<u32> {
        let endpoints = segment.endpoints();
        let candidates = self.candidates(&endpoints);
        let (key, side) = FlowKey::of(&endpoints);
        let segment = Segment {
            time_ns: segment.time_ns,
            tcp: &segment.tcp,
            payload: segment.payload,
            sack: &[],
            ecn_counters: None,
            ip: &segment.ip,
        };
        let newcomer = Newcomer { side, lane: Lane::OUTSIDE, segment: Some(segment), is_copy: false };
        let flow = self.best(&key, &candidates, &newcomer)?;
        self.admit(key, Found { flow, side }, Lane::OUTSIDE);
        Some(flow)
    }

    fn admit(&mut self, key: FlowKey, found: Found, lane: Lane) {
        if lane.is_outside() {
            self.register(&key.sought(), found.flow);
        } else {
            self.tunnelled.register(key, found, lane);
        }
    }

    /// The flow that a newcomer belongs to; of several with equal reason the oldest.
    fn best(&mut self, key: &FlowKey, candidates: &[u32], newcomer: &Newcomer<'_>) -> Option<u32> {
        candidates.iter().for_each(|&flow| self.wake(flow));
        let outside = self.lookup(&key.sought());
        let mut best = None;
        for &flow in candidates.iter().rev().take(MOST_CANDIDATES + 1) {
            if let Some(reason) = self.reason_to_join(flow, outside == Some(flow), newcomer)
                && best.is_none_or(|(found, _)| found <= reason)
            {
                best = Some((reason, flow));
            }
        }
        best.map(|(_, flow)| flow)
    }

    fn reason_to_join(&self, flow: u32, is_outside: bool, newcomer: &Newcomer<'_>) -> Option<Reason> {
        let Newcomer { side, lane, ref segment, is_copy } = *newcomer;
        let any = |side: Side, is_meant: &dyn Fn(Lane) -> bool| {
            is_outside && is_meant(Lane::OUTSIDE) || self.tunnelled.lanes(flow, side).any(is_meant)
        };
        let in_network = |known: Lane| known.network == lane.network;
        let crosses = |known: Lane| known.network == 0 || lane.network == 0 || in_network(known);
        let of = self.get(flow);
        let kinship = match (&of.transport.tcp, segment) {
            (Some(connection), Some(segment)) => connection.kinship(side, segment),
            _ if is_copy => Kinship::Copy,
            _ if of.direction(side).packets == 0 => Kinship::Answers,
            _ => Kinship::None,
        };
        let other = side.other();
        match kinship {
            Kinship::Copy => any(side, &crosses).then_some(Reason::Copy),
            Kinship::Answers if any(other, &|known| known == lane) => Some(Reason::AnswersAlike),
            Kinship::Answers if any(other, &in_network) => Some(Reason::Answers),
            Kinship::Answers => segment.is_some().then_some(Reason::AnswersFromElsewhere),
            Kinship::Continues => any(side, &in_network).then_some(Reason::Continues),
            Kinship::None => None,
        }
    }
}
