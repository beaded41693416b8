//! A receiver without TFRC reports, or whose reports are not captured: the reports it would send
//! for the packets that passed, and for those that its other reports name, given a round-trip time
//! from elsewhere.

use serde::{Deserialize, Serialize};

use super::super::{LossIntervalSample, PacketRef, TfrcSamples, TfrcSummary};
use super::downstream_loss::{DownstreamReceiver, ReportContents};
use super::packet_outcomes::ReportedOutcomes;
use super::receiver_side::ReceiverSide;
use crate::packet::key::Side;
use crate::plural::counted;
use crate::tfrc::DataPacket;
use crate::tfrc::profile::ReceiverProfile;
use crate::tfrc::sequence_unwrapper::Unwrapper;

const NO_RTT: &str = "no loss events: round-trip time of the whole path unknown, and `rtt=TIME` not assumed";

#[derive(Debug, Serialize, Deserialize)]
pub struct InferredReceiver {
    profile: ReceiverProfile,
    /// The receiver at the capture, from the first packet with a known round-trip time.
    receiving: Option<Box<ReceiverSide>>,
    numbers: Unwrapper,
    highest: Option<i64>,
    /// From the capture to the receiver and back, seconds.
    rtt_from_here: Option<f64>,
    /// Loss event rate downstream of the capture at the latest report.
    inferred_p: Option<f64>,
    /// The receiver downstream of the capture, from the first report that names packets.
    downstream: Option<Box<DownstreamReceiver>>,
    origin_ns: Option<i64>,
    /// Seconds; None while unknown.
    rtt: Option<f64>,
    /// Packets before it was known.
    too_early: u64,
    /// Time of the latest packet, seconds.
    latest: f64,
}

impl InferredReceiver {
    /// An empty state. `rtt` is the user's round-trip time in seconds.
    pub fn new(profile: &ReceiverProfile, rtt: Option<f64>) -> Self {
        let numbers = Unwrapper::new(profile.seq_bits);
        Self {
            profile: *profile,
            receiving: None,
            numbers,
            highest: None,
            downstream: None,
            rtt_from_here: None,
            inferred_p: None,
            origin_ns: None,
            rtt,
            too_early: 0,
            latest: 0.0,
        }
    }

    /// Set the measured round-trip time of the whole path, in seconds.
    pub fn on_rtt(&mut self, rtt: f64) {
        self.rtt = Some(rtt).filter(|rtt| *rtt > 0.0).or(self.rtt);
    }

    /// Process a data packet. Without a round-trip time its losses belong to no event.
    pub fn on_data(&mut self, at: PacketRef, packet: &DataPacket, samples: &mut TfrcSamples) {
        let number = self.numbers.extend(packet.seq);
        let (time, origin_ns) = self.seconds(at.time_ns);
        self.latest = time;
        let packet = DataPacket { time, rtt: self.rtt, ..*packet };
        let is_new = self.highest.is_none_or(|highest| number > highest);
        if let Some(downstream) = self.downstream.as_mut().filter(|_| is_new) {
            let rtt = self.rtt.or(self.rtt_from_here);
            downstream.on_data(at, origin_ns, (number, DataPacket { rtt, ..packet }), samples);
        }
        self.highest = self.highest.max(Some(number));
        if self.rtt.is_none() {
            self.too_early += 1;
            return;
        }
        let receiving =
            self.receiving.get_or_insert_with(|| Box::new(ReceiverSide::new(&self.profile, false)));
        receiving.on_packet(at, origin_ns, &packet, samples);
        if receiving.is_report_due() && samples.loss_intervals.wanted {
            let lengths: Vec<f64> = receiving.intervals().collect();
            take_intervals(at, lengths.into_iter().map(|length| (Some(length), None)), samples);
        }
    }

    /// The time in seconds, and its origin.
    fn seconds(&mut self, time_ns: i64) -> (f64, i64) {
        let origin_ns = *self.origin_ns.get_or_insert(time_ns);
        (time_ns.saturating_sub(origin_ns) as f64 / 1e9, origin_ns)
    }

    /// Process a report that names packets received up to `highest`. At the sender `rtt_from_here`,
    /// in seconds, is that of the whole path. Returns the loss event rate downstream of the
    /// capture, and how it is known.
    pub fn on_named(
        &mut self,
        at: PacketRef,
        (highest, outcomes): (u64, &ReportedOutcomes),
        rtt_from_here: Option<f64>,
        samples: &mut TfrcSamples,
    ) -> Option<(f64, &'static str)> {
        self.rtt_from_here = rtt_from_here.or(self.rtt_from_here);
        self.rtt.or(self.rtt_from_here)?;
        let (time, origin_ns) = self.seconds(at.time_ns);
        let number = self.numbers.peek(highest);
        let downstream =
            self.downstream.get_or_insert_with(|| Box::new(DownstreamReceiver::new(&self.profile)));
        let report =
            ReportContents { number, x_recv: None, p: None, time, elapsed: 0.0, outcomes: Some(outcomes) };
        downstream.on_report(at, origin_ns, report, samples);
        let p = downstream.p(time);
        self.inferred_p = p.map(|(p, _)| p);
        if samples.loss_intervals.wanted {
            let lengths: Vec<f64> = downstream.intervals().collect();
            take_intervals(at, lengths.into_iter().map(|length| (None, Some(length))), samples);
        }
        p
    }

    /// Loss event rate at a time; None before any packet counts.
    pub fn p(&mut self, time_ns: i64) -> Option<f64> {
        let origin_ns = self.origin_ns?;
        self.receiving.as_mut()?.p(time_ns.saturating_sub(origin_ns) as f64 / 1e9)
    }

    /// Values for the table of flows.
    pub fn summary(&self) -> TfrcSummary {
        let receiving = self.receiving.as_deref().filter(|receiving| receiving.has_data);
        TfrcSummary {
            loss_events: receiving.and_then(ReceiverSide::loss_events),
            p: receiving.map(|receiving| receiving.state.clone().p(self.latest)),
            x_recv: receiving.and_then(|receiving| receiving.state.recent_rate()),
            inferred_loss_events: self.downstream.as_ref().and_then(|downstream| downstream.loss_events()),
            inferred_p: self.inferred_p,
            ..TfrcSummary::default()
        }
    }

    /// Whether losses belong to no event because the round-trip time is unknown.
    pub fn lacks_rtt(&self) -> bool {
        self.rtt.is_none() && self.too_early > 0 && !self.reports_downstream_losses()
    }

    fn reports_downstream_losses(&self) -> bool {
        self.downstream
            .as_ref()
            .and_then(|downstream| downstream.loss_events())
            .is_some_and(|events| events > 0)
    }

    /// Notes on the receiver as text.
    pub fn notes(&self) -> Vec<String> {
        if self.lacks_rtt() {
            return vec![NO_RTT.into()];
        }
        let early = self.too_early;
        let is_worth_noting = early > 0 && !self.reports_downstream_losses();
        let note = is_worth_noting
            .then(|| counted(early, "packet[s] [is|are] in no loss event: round-trip time not known yet"));
        note.into_iter().collect()
    }

    /// Emit the loss event that is still open. Call once, after the last packet.
    pub fn finish(&self, (flow, side): (u32, Side), samples: &mut TfrcSamples) {
        let at = PacketRef { flow, side, time_ns: 0, packet: 0 };
        if let Some(receiving) = &self.receiving {
            receiving.finish(at, samples);
        }
        if let Some(downstream) = &self.downstream {
            downstream.finish(at, samples);
        }
    }
}

/// Keep the loss intervals at a report: as reconstructed at the capture, and downstream of it.
fn take_intervals(
    at: PacketRef,
    intervals: impl Iterator<Item = (Option<f64>, Option<f64>)>,
    samples: &mut TfrcSamples,
) {
    let PacketRef { flow, side, time_ns, packet } = at;
    for (index, (packets, inferred)) in (0..).zip(intervals) {
        samples.loss_intervals.add(LossIntervalSample {
            flow,
            side,
            time_ns,
            packet,
            index,
            packets,
            inferred,
            reported: None,
        });
    }
}
