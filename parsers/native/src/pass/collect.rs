//! Collects bins and samples beside the flows.

use super::{Analysis, LossSample, RoundSample, RttMethod, RttSample};
use crate::flow::Found;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::tcp::Outcome;
use crate::packet::event::{Network, Packet};

impl Analysis {
    /// Collect the requested samples of a packet.
    #[inline(never)]
    pub(super) fn collect(&mut self, found: Found, packet: &Packet, network: &Network) {
        let Found { flow, side } = found;
        let outcome = &self.outcome;
        let payload_bytes = network.payload_bytes.unwrap_or(0);
        if let Some(bins) = &mut self.bins
            && !outcome.is_copy()
        {
            bins.add(flow, side, packet.time_ns, packet.wire_bytes, payload_bytes, outcome);
        }
        if self.losses.wanted
            && let Some(finding) = outcome.finding
        {
            self.losses.add(LossSample {
                flow,
                side,
                time_ns: packet.time_ns,
                packet: packet.number,
                position: outcome.position,
                payload_bytes,
                repeated_bytes: outcome.repeated_bytes,
                finding,
            });
        }
        self.collect_samples(found, packet);
    }

    /// Collect the RTT of the other direction from a packet's arrival, without counting the packet.
    pub(super) fn collect_rtt(&mut self, found: Found, packet: &Packet) {
        if let Some(bins) = &mut self.bins {
            bins.add_rtt(found.flow, found.side, packet.time_ns, &self.outcome);
        }
        self.collect_samples(found, packet);
    }

    /// The samples of the other direction that a packet gave.
    pub(super) fn collect_samples(&mut self, found: Found, packet: &Packet) {
        if self.rtt.wanted {
            sample_rtt(&mut self.rtt, found, packet, &self.outcome);
        }
        if self.rounds.wanted
            && let Some(round) = self.outcome.round
        {
            self.rounds.add(RoundSample { flow: found.flow, side: found.side.other(), round });
        }
    }
}

fn sample_rtt(samples: &mut BoundedSamples<RttSample>, found: Found, packet: &Packet, outcome: &Outcome) {
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
        samples.add(RttSample {
            flow: found.flow,
            side,
            time_ns: packet.time_ns,
            rtt_ns,
            method,
            is_delayed_ack: method == RttMethod::Ack && outcome.is_delayed_ack,
            packet: packet.number,
        });
    }
}
