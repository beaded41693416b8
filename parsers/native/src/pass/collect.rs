//! Collects bins and samples beside the flows.

use super::{Analysis, LossSample, RoundSample, RttMethod, RttSample};
use crate::flow::Found;
use crate::flow::bins::BinnedPacket;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::tcp::Outcome;
use crate::packet::event::{Network, Packet};
use crate::packet::plain::PlainSegment;

/// What samples and bins need of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Captured {
    /// Number in the source, from 1.
    pub number: u64,
    pub time_ns: i64,
    pub wire_bytes: u32,
    pub payload_bytes: u32,
    /// Codepoint of its IP header.
    pub ecn: u8,
    /// Index in the batch of a packet that is followed before or after its turn.
    pub turn: Option<u16>,
}

impl Captured {
    pub fn of(packet: &Packet, network: &Network) -> Self {
        let payload_bytes = network.payload_bytes.unwrap_or(0);
        let &Packet { number, time_ns, wire_bytes, .. } = packet;
        Self { number, time_ns, wire_bytes, payload_bytes, ecn: network.ecn, turn: None }
    }

    #[inline(always)]
    pub fn plain(segment: &PlainSegment, turn: Option<u16>) -> Self {
        let &PlainSegment { number, time_ns, wire_bytes, payload, ip, .. } = segment;
        Self { number, time_ns, wire_bytes, payload_bytes: payload, ecn: ip.ecn, turn }
    }
}

impl Analysis {
    /// Collect the requested samples of a packet.
    #[inline(always)]
    pub(super) fn collect(&mut self, found: Found, packet: &Captured) {
        let Found { flow, side } = found;
        let outcome = &self.outcome;
        let &Captured { time_ns, wire_bytes, payload_bytes, ecn, .. } = packet;
        if let Some(bins) = &mut self.bins
            && !outcome.is_copy()
        {
            bins.add(flow, side, &BinnedPacket { time_ns, wire_bytes, payload_bytes, ecn }, outcome);
        }
        if self.losses.wanted
            && let Some(finding) = outcome.finding
        {
            self.losses.add_in_turn(
                packet.turn,
                LossSample {
                    flow,
                    side,
                    time_ns,
                    packet: packet.number,
                    position: outcome.position,
                    payload_bytes,
                    repeated_bytes: outcome.repeated_bytes,
                    finding,
                },
            );
        }
        self.collect_samples(found, packet);
    }

    /// Collect the RTT of the other direction from a packet's arrival, without counting the packet.
    pub(super) fn collect_rtt(&mut self, found: Found, packet: &Captured) {
        if let (Some(bins), Some(rtt_ns)) = (&mut self.bins, self.outcome.ack_rtt_ns) {
            bins.add_rtt(found.flow, found.side.other(), packet.time_ns, rtt_ns);
        }
        self.collect_samples(found, packet);
    }

    /// The samples of the other direction that a packet gave.
    pub(super) fn collect_samples(&mut self, found: Found, packet: &Captured) {
        if self.rtt.wanted {
            sample_rtt(&mut self.rtt, found, packet, &self.outcome);
        }
        if self.rounds.wanted
            && let Some(round) = self.outcome.round
        {
            let round = RoundSample { flow: found.flow, side: found.side.other(), round };
            self.rounds.add_in_turn(packet.turn, round);
        }
        self.spool_samples(found, packet.time_ns);
    }
}

fn sample_rtt(samples: &mut BoundedSamples<RttSample>, found: Found, packet: &Captured, outcome: &Outcome) {
    let found_rtts = [
        (outcome.ack_rtt_ns, RttMethod::Ack),
        (outcome.timestamp_rtt_ns, RttMethod::Timestamp),
        (outcome.handshake_rtt_ns, RttMethod::Handshake),
    ];
    for (rtt_ns, method) in found_rtts {
        let Some(rtt_ns) = rtt_ns else { continue };
        // The handshake belongs to the side that began it; it also sent the final ACK.
        let side = match method {
            RttMethod::Handshake => found.side,
            _ => found.side.other(),
        };
        samples.add_in_turn(
            packet.turn,
            RttSample {
                flow: found.flow,
                side,
                time_ns: packet.time_ns,
                rtt_ns,
                method,
                is_delayed_ack: method == RttMethod::Ack && outcome.is_delayed_ack,
                packet: packet.number,
            },
        );
    }
}
