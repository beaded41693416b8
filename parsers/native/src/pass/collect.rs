//! Collects bins and samples beside the flows.

use super::Options;
use crate::flow::Found;
use crate::flow::bins::BinnedPacket;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::tcp::classify::class::Classification;
use crate::flow::tcp::{Outcome, Round};
use crate::packet::event::{Network, Packet};
use crate::packet::key::Side;
use crate::packet::plain::PlainSegment;

named_enum! {
    /// How an RTT was measured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RttMethod {
        /// Data and its acknowledgement, by Karn's rule.
        Ack = "ack",
        /// Timestamp and its echo.
        Timestamp = "timestamp",
        /// SYN to final ACK.
        Handshake = "handshake",
        /// The window counter of CCID 3 (RFC 4342 section 8.1).
        Counter = "ccval",
        /// A value echoed by a receiver's report, less the time it was held.
        Report = "report",
        /// Edges of QUIC's spin bit (RFC 9000 section 17.4).
        SpinBit = "spin",
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RttSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side whose data were acknowledged.
    pub side: Side,
    pub time_ns: i64,
    pub rtt_ns: u64,
    pub method: RttMethod,
    /// Whether it seems to have waited for a delayed-acknowledgement timer.
    pub is_delayed_ack: bool,
    /// Number of the acknowledging packet.
    pub packet: u64,
}

/// One round of data in flight.
#[derive(Clone, Copy, Debug)]
pub struct RoundSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent the data.
    pub side: Side,
    pub round: Round,
}

/// One data packet that was not simply the next.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent it.
    pub side: Side,
    pub time_ns: i64,
    pub packet: u64,
    pub position: i64,
    pub payload_bytes: u32,
    /// Bytes of it captured before.
    pub repeated_bytes: u32,
    pub finding: Classification,
}

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
}

impl Captured {
    pub fn of(packet: &Packet, network: &Network) -> Self {
        let payload_bytes = network.payload_bytes.unwrap_or(0);
        let &Packet { number, time_ns, wire_bytes, .. } = packet;
        Self { number, time_ns, wire_bytes, payload_bytes, ecn: network.ecn }
    }

    #[inline(always)]
    pub fn plain(segment: &PlainSegment) -> Self {
        let &PlainSegment { number, time_ns, wire_bytes, payload, ip, .. } = segment;
        Self { number, time_ns, wire_bytes, payload_bytes: payload, ecn: ip.ecn }
    }

    /// What bins count of it.
    #[inline(always)]
    pub fn binned(&self) -> BinnedPacket {
        let &Self { time_ns, wire_bytes, payload_bytes, ecn, .. } = self;
        BinnedPacket { time_ns, wire_bytes, payload_bytes, ecn }
    }
}

/// Samples of TCP's packets, in the order of the file.
#[derive(Debug)]
pub struct PacketSamples {
    pub rtt: BoundedSamples<RttSample>,
    /// Retransmissions and late arrivals.
    pub losses: BoundedSamples<LossSample>,
    pub rounds: BoundedSamples<RoundSample>,
}

impl PacketSamples {
    pub fn new(options: &Options) -> Self {
        Self {
            rtt: options.samples_of("rtt"),
            losses: options.samples_of("losses"),
            rounds: options.samples_of("rounds"),
        }
    }

    /// Set the turn of the next packet, if packets are not followed in the order of the file.
    #[inline(always)]
    pub fn set_turn(&mut self, turn: Option<u16>) {
        (self.rtt.turn, self.losses.turn, self.rounds.turn) = (turn, turn, turn);
    }

    /// Add the samples that were collected out of turn, here and by the other threads, in order.
    pub fn put_in_order<'a>(&mut self, others: impl Iterator<Item = &'a mut Self>) {
        let (mut rtt, mut losses, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
        for other in others {
            rtt.push(&mut other.rtt);
            losses.push(&mut other.losses);
            rounds.push(&mut other.rounds);
        }
        self.rtt.put_in_order(&mut rtt);
        self.losses.put_in_order(&mut losses);
        self.rounds.put_in_order(&mut rounds);
    }

    /// Collect the samples of a packet.
    #[inline(always)]
    pub(super) fn collect(&mut self, found: Found, packet: &Captured, outcome: &Outcome) {
        if self.losses.wanted
            && let Some(finding) = outcome.finding
        {
            let Found { flow, side } = found;
            let &Captured { time_ns, number: packet, payload_bytes, .. } = packet;
            let &Outcome { position, repeated_bytes, .. } = outcome;
            let sample =
                LossSample { flow, side, time_ns, packet, position, payload_bytes, repeated_bytes, finding };
            self.losses.add(sample);
        }
        self.collect_answers(found, packet, outcome);
    }

    /// Collect the samples of the other direction that a packet gave.
    #[inline(always)]
    pub(super) fn collect_answers(&mut self, found: Found, packet: &Captured, outcome: &Outcome) {
        if self.rtt.wanted {
            sample_rtt(&mut self.rtt, found, packet, outcome);
        }
        if self.rounds.wanted
            && let Some(round) = outcome.round
        {
            self.rounds.add(RoundSample { flow: found.flow, side: found.side.other(), round });
        }
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
