//! Packets on their way into a flow.

use super::Flow;
use super::outstanding::Pool;
use super::queued_packet::QueuedPacket;
use super::tcp::{Outcome, Segment};
use crate::packet::event::{Network, Packet, PathPoint, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::ip_fields::IpFields;
use crate::packet::key::Side;
use crate::packet::plain::PlainSegment;

/// A packet of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The side that sent it.
    pub side: Side,
    pub packet: &'a Packet,
    /// Its headers, of a later fragment with the ports of the first.
    pub network: &'a Network,
    pub extras: &'a PacketExtras,
}

impl<'a> Seen<'a> {
    /// The TCP segment in it, with so many `units` of sequence space for data.
    #[inline(always)]
    pub(super) fn segment(&self, units: u32, ip: &'a IpFields) -> Segment<'a> {
        let Self { packet, network, extras, .. } = *self;
        Segment {
            time_ns: packet.time_ns,
            tcp: &network.tcp,
            payload: units,
            sack: extras.sack(network.tcp.options.sack),
            ecn_counters: extras.ecn_counters(network.head),
            ip,
        }
    }
}

impl Flow {
    /// Process a packet, seen at a `point` of its path by a simulator or a pair of captures, else by a capture
    /// alone, and write its result to `outcome`, which must be clear.
    #[inline(always)]
    pub fn on(&mut self, seen: &Seen<'_>, point: Option<PathPoint>, pool: &mut Pool, outcome: &mut Outcome) {
        match point {
            None => self.on_captured(seen, pool, outcome),
            Some(point) => self.on_sighting(seen, point, pool, outcome),
        }
    }

    #[inline(always)]
    fn on_captured(&mut self, seen: &Seen<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        let Seen { side, packet, network, .. } = *seen;
        if network.dscp != Some(0) {
            self.note_dscp(side, network.dscp);
        }
        match (network.payload_bytes, &mut self.transport.tcp) {
            (Some(payload), Some(connection)) if network.transport == Transport::Tcp => {
                let ip = IpFields::of(packet);
                if !connection.on_segment(side, &seen.segment(payload, &ip), pool, outcome) {
                    return self.on_copy(side);
                }
            }
            // Every datagram is new as far as its header shows.
            (Some(payload), None) => {
                outcome.new_bytes = payload;
                self.transport.note_codepoint(side, network.ecn);
                self.transport.note_ttl(side, network.ttl);
                if network.transport == Transport::Dccp {
                    outcome.rtt = self.transport.non_tcp_mut().on_dccp(seen, pool);
                }
            }
            _ => {}
        }
        self.count(seen);
        if network.fragment.is_some() {
            self.count_fragment(side);
        }
    }

    /// Count a packet where the trace shows those of its side best.
    #[inline(always)]
    pub fn count(&mut self, &Seen { side, packet, network, .. }: &Seen<'_>) {
        self.directions[side as usize].count(packet.time_ns, packet.wire_bytes, network.payload_bytes);
    }

    /// Process a packet from `side` with a time that the capture already showed; `outcome`, which
    /// must be clear, gets its class. Returns false, and does nothing, if the flow does not have it.
    pub fn on_again(&mut self, seen: &Seen<'_>, outcome: &mut Outcome) -> bool {
        let Seen { side, packet, network, .. } = *seen;
        let direction = self.direction(side);
        if !(direction.start_ns..=direction.end_ns).contains(&packet.time_ns) {
            return false;
        }
        if let (Some(connection), Some(payload)) = (&mut self.transport.tcp, network.payload_bytes) {
            let ip = IpFields::of(packet);
            if !connection.on_segment_again(side, &seen.segment(payload, &ip), outcome) {
                return false;
            }
        }
        self.on_copy(side);
        true
    }

    /// [`Flow::on`] for a plain segment of a capture.
    #[inline(always)]
    pub fn on_plain(
        &mut self,
        side: Side,
        plain: &PlainSegment,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let segment = Segment {
            time_ns: plain.time_ns,
            tcp: &plain.tcp,
            payload: plain.payload,
            sack: extras.sack(plain.tcp.options.sack),
            ecn_counters: None,
            ip: &plain.ip,
        };
        self.on_segment(side, plain.wire_bytes, &segment, pool, outcome);
    }

    /// The same for a queued packet captured at `time_ns`.
    #[inline(always)]
    pub(super) fn on_waiting(
        &mut self,
        packet: &QueuedPacket,
        time_ns: i64,
        sack: &[(u32, u32)],
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let (tcp, ip) = (&packet.tcp(), &packet.ip());
        let segment = Segment { time_ns, tcp, payload: packet.payload(), sack, ecn_counters: None, ip };
        self.on_segment(packet.side(), packet.wire_bytes(), &segment, pool, outcome);
    }

    #[inline(always)]
    fn on_segment(
        &mut self,
        side: Side,
        wire_bytes: u32,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        // Not in a closure, which is not always inlined.
        let is_counted = match &mut self.transport.tcp {
            Some(connection) => connection.on_segment(side, segment, pool, outcome),
            None => {
                self.transport.note_codepoint(side, segment.ip.ecn);
                true
            }
        };
        if is_counted {
            self.directions[side as usize].count(segment.time_ns, wire_bytes, Some(segment.payload));
        } else {
            self.on_copy(side);
        }
    }
}
