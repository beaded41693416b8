//! TFRC over DCCP: CCID 3 (RFC 4342) and CCID 4 (RFC 5622). Sections are of RFC 4342 unless another
//! is named.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::feedback_options::FeedbackOptions;
use super::{Connection, LatestPacket};
use crate::flow::sequences::NumberArrival;
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tfrc::findings::{Finding, FindingKind as Found};
use crate::flow::tfrc::from_capture::{CapturedEnds, CarrierSetup, Reported};
use crate::flow::tfrc::{PacketRef, RttBy, TfrcFlow, TfrcSamples};
use crate::packet::dccp::{DccpHeader, DccpType};
use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::tfrc::DataPacket;
use crate::tfrc::profile::Profile;
use crate::tfrc::round_trip::CounterRtt;

/// Timestamps waiting for their echo; older ones give no RTT.
const TIMESTAMPS: usize = 16;
/// Times in options are in units of 10 µs (RFC 4340 section 13).
const TICK_S: f64 = 1e-5;
/// Weight of the old round-trip time for each sample of the window counter, as for R.
const KEPT: f64 = 0.9;
/// Largest advance of the window counter from one packet to the next (section 8.1).
const MOST_QUARTERS: u8 = 5;
/// Congestion experienced (RFC 3168).
const ECN_MARKED: u8 = 3;

/// TFRC state from one side's packets.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CcidHalf {
    counter: CounterRtt,
    /// From the window counter, smoothed; seconds.
    counter_rtt: Option<f64>,
    /// The sender's own estimate (RFC 6323), seconds.
    estimate: Option<f64>,
    /// The last packet's number and window counter.
    last: Option<(u64, u8)>,
    /// Whether the counter ever moved, which it does only in CCID 3 and 4.
    counts: bool,
    timestamps: VecDeque<(u32, i64)>,
    origin_ns: Option<i64>,
    restarts: u64,
}

/// Facts that a connection's packets do not show, or not yet.
#[derive(Clone, Copy, Debug)]
pub struct CcidAssumptions {
    /// TFRC variant of its ends.
    pub profile: Profile,
    /// Where the data that the packet may report on were captured.
    pub vantage: Option<Vantage>,
}

impl CcidHalf {
    /// Round-trip time from the window counter, seconds.
    pub(super) fn counter_rtt(&self) -> Option<f64> {
        self.counter_rtt
    }

    /// Process a packet that this side sent.
    fn on_packet(
        &mut self,
        latest: &LatestPacket,
        header: &DccpHeader,
        feedback: &FeedbackOptions,
        time_ns: i64,
    ) {
        if let Some(us) = feedback.estimate.filter(|us| *us > 0) {
            self.estimate = Some(f64::from(us) / 1e6);
        }
        if let Some(timestamp) = feedback.timestamp {
            if self.timestamps.len() == TIMESTAMPS {
                self.timestamps.pop_front();
            }
            self.timestamps.push_back((timestamp, time_ns));
        }
        let origin_ns = *self.origin_ns.get_or_insert(time_ns);
        // The counter begins with the data, and means nothing where a number is doubtful.
        if !is_data(header) || latest.arrival != Some(NumberArrival::New) {
            return;
        }
        self.counts |= header.ccval != 0;
        let time = time_ns.saturating_sub(origin_ns) as f64 / 1e9;
        if let Some(sample) = self.counter.on_ccval(header.ccval, time) {
            let mean = self.counter_rtt.map_or(sample, |rtt| KEPT * rtt + (1.0 - KEPT) * sample);
            self.counter_rtt = Some(mean);
        }
    }

    /// Advance of the counter from the packet before, if larger than allowed.
    fn excess(&mut self, seq: u64, ccval: u8) -> Option<f64> {
        let (before, counter) = self.last.replace((seq, ccval))?;
        let quarters = ccval.wrapping_sub(counter) & 15;
        (seq == before.wrapping_add(1) && quarters > MOST_QUARTERS).then_some(f64::from(quarters))
    }

    /// Capture time of the packet with this timestamp.
    fn sent_ns(&self, timestamp: u32) -> Option<i64> {
        self.timestamps.iter().rev().find(|(sent, _)| *sent == timestamp).map(|(_, time_ns)| *time_ns)
    }
}

/// TFRC's ends of a flow, and what they add to.
pub struct EndsAndSamples<'a> {
    pub ends: &'a mut Option<Box<TfrcFlow>>,
    pub samples: &'a mut TfrcSamples,
}

fn is_data(header: &DccpHeader) -> bool {
    matches!(header.kind, DccpType::Data | DccpType::DataAck)
}

impl Connection {
    /// Pass the latest packet, sent by `side`, to the TFRC ends that it concerns.
    pub fn follow_tfrc(
        &mut self,
        (flow, side): (u32, Side),
        packet: &Packet,
        (header, after): (&DccpHeader, &[u8]),
        assumed: CcidAssumptions,
        mut tfrc: EndsAndSamples<'_>,
    ) {
        let feedback = FeedbackOptions::read(after, assumed.profile.receiver().ndupack);
        let (latest, half) = (self.latest, &mut self.halves[side as usize]);
        half.ccid_half.on_packet(&latest, header, &feedback, packet.time_ns);
        let at = |side| PacketRef { flow, side, time_ns: packet.time_ns, packet: packet.number };
        if self.sends_by_tfrc(side) {
            self.give_data(at(side), packet, (header, &feedback), assumed.profile, &mut tfrc);
        }
        let is_about = header.ack.is_some() && (feedback.is_report() || self.sends_by_tfrc(side.other()));
        if is_about {
            self.give_report(at(side.other()), &feedback, assumed, &mut tfrc);
        }
    }

    /// Whether the data of `side` use CCID 3 or 4, as negotiated or else as they look.
    fn sends_by_tfrc(&self, side: Side) -> bool {
        let half = self.half(side);
        half.ccid.map_or(half.ccid_half.counts, |ccid| matches!(ccid, 3 | 4))
    }

    fn setup(&self, side: Side, profile: Profile, first_bytes: u32) -> CarrierSetup {
        let mut setup = CarrierSetup {
            receiver: profile.receiver(),
            sender: profile.sender(f64::from(first_bytes.max(1))),
            is_whole: self.opener.is_some(),
        };
        setup.sender.handshake_rtt = self.handshake_rtt_ns.map(|ns| ns as f64 / 1e9);
        if self.half(side).ccid == Some(4) {
            setup.use_small_packets();
        }
        setup
    }

    fn give_data(
        &mut self,
        at: PacketRef,
        packet: &Packet,
        (header, feedback): (&DccpHeader, &FeedbackOptions),
        profile: Profile,
        EndsAndSamples { ends, samples }: &mut EndsAndSamples<'_>,
    ) {
        let LatestPacket { seq, arrival, restarts, .. } = self.latest;
        let bytes = packet.network.payload_bytes.filter(|_| is_data(header)).unwrap_or(0);
        let setup = || self.setup(at.side, profile, bytes);
        let ends = if bytes > 0 {
            ends.get_or_insert_default().captured(at.side, setup)
        } else {
            // The handshake and acknowledgements before the first data do not belong to the TFRC
            // flow.
            ends.as_mut().and_then(|ends| ends.known(at.side))
        };
        let Some(ends) = ends else { return };
        let half = &mut self.halves[at.side as usize].ccid_half;
        if arrival == Some(NumberArrival::Unconfirmed) {
            ends.on_finding(at, Finding::of(Found::SequenceJump), samples);
            return;
        }
        if std::mem::replace(&mut half.restarts, restarts) != restarts {
            ends.restart(at, samples);
        }
        if let Some(quarters) = half.excess(seq, header.ccval).filter(|_| is_data(header)) {
            let finding = Finding::measured(Found::CounterJump, quarters, f64::from(MOST_QUARTERS));
            ends.on_finding(at, finding, samples);
        }
        let rtt = half.estimate.or(half.counter_rtt).or(self.handshake_rtt_ns.map(|ns| ns as f64 / 1e9));
        let ce = packet.network.ecn == ECN_MARKED;
        let data = DataPacket {
            seq,
            rtt,
            ccval: header.ccval,
            ce,
            bytes,
            ndp: feedback.ndp,
            ..DataPacket::default()
        };
        ends.on_data(at, &data, samples);
    }

    fn give_report(
        &self,
        at: PacketRef,
        feedback: &FeedbackOptions,
        assumed: CcidAssumptions,
        EndsAndSamples { ends, samples }: &mut EndsAndSamples<'_>,
    ) {
        let setup = || self.setup(at.side, assumed.profile, 0);
        let ends = match feedback.is_report() {
            true => ends.get_or_insert_default().captured(at.side, setup),
            false => ends.as_mut().and_then(|ends| ends.known(at.side)),
        };
        let Some(ends) = ends else { return };
        self.report_rare_counts(at, feedback, ends, samples);
        if feedback.is_report() {
            let reported = Reported {
                sequence: self.latest.ack,
                p: feedback.p(),
                x_recv: feedback.receive_rate.map(f64::from),
                elapsed: feedback.elapsed.map(|ticks| f64::from(ticks) * TICK_S),
                r_sample: self.r_sample(at, feedback, assumed.vantage),
                shows_sending: matches!(assumed.vantage, None | Some(Vantage::Sender)),
                follows_gap: self.latest.follows_gap,
                intervals: &feedback.intervals,
                outcomes: feedback.outcomes.as_ref(),
            };
            ends.on_report(at, &reported, samples);
        }
    }

    fn report_rare_counts(
        &self,
        at: PacketRef,
        feedback: &FeedbackOptions,
        ends: &mut CapturedEnds,
        samples: &mut TfrcSamples,
    ) {
        let LatestPacket { acknowledges_unseen, has_impossible_elapsed_time, .. } = self.latest;
        let rare_counts = [
            (acknowledges_unseen && feedback.is_report(), Found::UnseenAcknowledged),
            (has_impossible_elapsed_time, Found::ImpossibleElapsedTime),
            (feedback.loss_event_rate == Some(0), Found::ZeroLossEventRate),
            (feedback.drops_data, Found::DataDropped),
            (feedback.bad > 0, Found::BadOption),
        ];
        for (_, kind) in rare_counts.into_iter().filter(|(is_so, _)| *is_so) {
            ends.on_finding(at, Finding::of(kind), samples);
        }
    }

    /// The round-trip time of a report. At the sender of the data it is that of the packet that the
    /// report acknowledges, or of the timestamp it echoes; elsewhere that is only a part of it, and
    /// the sender's own measurement is in its data.
    fn r_sample(
        &self,
        at: PacketRef,
        feedback: &FeedbackOptions,
        vantage: Option<Vantage>,
    ) -> Option<(f64, RttBy)> {
        let half = &self.half(at.side).ccid_half;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let acknowledged = self.latest.rtt_ns.map(|ns| (seconds(ns), RttBy::Ack));
        let echoed = || {
            let (timestamp, elapsed) = feedback.echo?;
            let since = at.time_ns.checked_sub(half.sent_ns(timestamp)?)?;
            let sample = since as f64 / 1e9 - f64::from(elapsed.or(feedback.elapsed).unwrap_or(0)) * TICK_S;
            (sample > 0.0).then_some((sample, RttBy::Timestamp))
        };
        let captured = half.estimate.map(|rtt| (rtt, RttBy::Estimate));
        let captured = captured.or(half.counter_rtt.map(|rtt| (rtt, RttBy::WindowCounter)));
        match vantage {
            Some(Vantage::Sender) => acknowledged.or_else(echoed),
            None => captured.or(acknowledged).or_else(echoed),
            Some(_) => captured,
        }
    }
}
