//! TFRC's two ends as ns-2's agents, for the flows of a simulation that shows both.

use std::collections::VecDeque;

use super::{
    FeedbackSample, LossEventSample, LossIntervalSample, PacketRef, RttBy, TakenReport, TfrcSamples,
    TfrcSummary,
};
use crate::packet::event::{Network, Packet, Transport};
use crate::packet::key::Side;
use crate::plural::all_counted;
use crate::tfrc::ns2::{Feedback, Header, Parameters, Receiver, Sender};

/// Limit of data packets whose headers are remembered until they arrive.
const IN_FLIGHT: usize = 1 << 14;
/// Limit of reports remembered until they arrive, and in case they arrive twice.
const REPORTS: usize = 1 << 8;

/// An event of a TFRC packet in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    Sent,
    /// It arrived; possibly not for the first time, which the agents do not distinguish.
    Arrived,
}

/// A report in flight.
#[derive(Clone, Copy, Debug)]
struct ReportSent {
    identity: u64,
    feedback: Feedback,
    sample: FeedbackSample,
    has_arrived: bool,
}

/// Both ends of one direction.
#[derive(Debug)]
pub struct SimulatedEnds {
    sender: Sender,
    receiver: Receiver,
    /// Sequence numbers and headers of data sent, in order.
    in_flight: VecDeque<(u64, Header)>,
    reports: VecDeque<ReportSent>,
    /// The current loss event, which more losses may join.
    event: Option<LossEventSample>,
    /// Whether the trace has the flow's start, without which its state is unknown.
    is_whole: bool,
    feedback_packets: u64,
    /// Contents of the latest report.
    last_report: Option<FeedbackSample>,
    /// R after the latest that arrived, seconds.
    r: Option<f64>,
    /// Arrivals of data whose transmission is not in the trace, or too long ago.
    unknown_arrivals: u64,
    /// The same of reports, and arrivals of reports before the data they report on.
    unknown_reports: u64,
    /// The last report that arrived, until packets show its effect where the trace's times are
    /// ambiguous.
    latest: Option<FeedbackSample>,
}

impl SimulatedEnds {
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            sender: Sender::new(parameters),
            receiver: Receiver::new(parameters),
            in_flight: VecDeque::new(),
            reports: VecDeque::new(),
            event: None,
            is_whole: false,
            feedback_packets: 0,
            last_report: None,
            r: None,
            unknown_arrivals: 0,
            unknown_reports: 0,
            latest: None,
        }
    }

    /// Loss events are unknown if the flow's start or its reports are not in the trace: the
    /// receiver gets the round-trip time only from these.
    pub fn summary(&self) -> TfrcSummary {
        TfrcSummary {
            loss_events: (self.is_whole && self.feedback_packets > 0).then_some(self.receiver.loss_events),
            inferred_loss_events: None,
            inferred_p: None,
            p: self.last_report.and_then(|report| report.p),
            x_recv: self.last_report.and_then(|report| report.x_recv),
            feedback_packets: self.feedback_packets,
            r: self.r,
        }
    }

    /// Notes on the flow as text.
    pub fn notes(&self) -> Vec<String> {
        if !self.is_whole {
            return vec![
                "the trace lacks the beginning of this TFRC flow, so its ends cannot be reconstructed".into(),
            ];
        }
        if self.feedback_packets == 0 {
            return vec![
                "no report about this TFRC flow in the trace, so its ends cannot be reconstructed".into(),
            ];
        }
        let Sender { timeouts, ties, .. } = self.sender;
        all_counted([
            (timeouts, "nofeedback timeout[s]"),
            (ties, "slow-start report[s] whose rate the trace's time resolution leaves open"),
            (self.unknown_arrivals, "arrival[s] of data whose sending is not in the trace"),
            (self.unknown_reports, "arrival[s] of reports whose sending is not in the trace"),
        ])
        .collect()
    }

    /// Process a packet about the data of `at`.
    pub fn on_packet(
        &mut self,
        at: PacketRef,
        happening: PacketEvent,
        packet: &Packet,
        samples: &mut TfrcSamples,
    ) {
        let network = &packet.network;
        match (network.transport == Transport::Tfrc, happening) {
            (true, PacketEvent::Sent) => self.on_data_sent(packet, network, samples),
            (true, PacketEvent::Arrived) => self.on_data_arrived(at, packet, network, samples),
            (false, PacketEvent::Sent) => self.on_report_sent(at, packet, network, samples),
            (false, PacketEvent::Arrived) => self.on_report_arrived(packet, samples),
        }
    }

    fn on_data_sent(&mut self, packet: &Packet, network: &Network, samples: &mut TfrcSamples) {
        let Some(sequence) = network.sequence else { return };
        self.is_whole |= sequence == 0;
        if !self.is_whole {
            return;
        }
        let header = self.sender.on_data(seconds(packet.time_ns), network.payload_bytes.unwrap_or(0));
        if std::mem::take(&mut self.sender.is_revised) {
            self.correct();
        }
        if !self.sender.is_undecided() {
            self.release_latest(samples);
        }
        if self.in_flight.len() == IN_FLIGHT {
            self.in_flight.pop_front();
        }
        self.in_flight.push_back((sequence, header));
    }

    fn on_data_arrived(
        &mut self,
        at: PacketRef,
        packet: &Packet,
        network: &Network,
        samples: &mut TfrcSamples,
    ) {
        let header = network.sequence.and_then(|sequence| self.header_of(sequence));
        let Some((number, header)) = header else {
            self.unknown_arrivals += 1;
            return;
        };
        let is_marked = network.ecn == ECN_MARKED;
        let arrived = self.receiver.on_data(number, seconds(packet.time_ns), &header, is_marked);
        if let Some((start, start_time)) = arrived.event {
            self.end_event(samples);
            let PacketRef { flow, side, time_ns, packet } = at;
            // A float beyond the range of integers saturates.
            let lost_ns = (start_time * 1e9).round() as i64;
            self.event = Some(LossEventSample {
                flow,
                side,
                time_ns,
                packet,
                start,
                lost_ns,
                packets: 0,
                is_inferred: false,
            });
        }
        if let Some(event) = &mut self.event {
            event.packets = event.packets.saturating_add(arrived.lost);
        }
    }

    fn header_of(&self, sequence: u64) -> Option<(i64, Header)> {
        let at = self.in_flight.binary_search_by_key(&sequence, |(sent, _)| *sent).ok()?;
        let (_, header) = self.in_flight.get(at)?;
        Some((i64::try_from(sequence).ok()?, *header))
    }

    fn end_event(&mut self, samples: &mut TfrcSamples) {
        if let Some(event) = self.event.take() {
            samples.loss_events.offer(event);
        }
    }

    fn on_report_sent(
        &mut self,
        at: PacketRef,
        packet: &Packet,
        network: &Network,
        samples: &mut TfrcSamples,
    ) {
        self.feedback_packets += 1;
        if !self.is_whole {
            return;
        }
        let feedback = self.receiver.on_report(seconds(packet.time_ns), packet.wire_bytes);
        let PacketRef { flow, side, time_ns, packet: number } = at;
        let sample = FeedbackSample {
            flow,
            side,
            sent_ns: time_ns,
            packet: number,
            sequence: network.sequence,
            p: Some(feedback.p),
            inferred_p: None,
            x_recv: Some(feedback.x_recv_pps * self.sender.size()),
            reported_p: None,
            reported_x_recv: None,
            elapsed: None,
            losses: Some(feedback.losses),
            taken: None,
            media: None,
        };
        self.last_report = Some(sample);
        if samples.loss_intervals.wanted {
            for (index, packets) in (0..).zip(self.receiver.intervals()) {
                let interval = LossIntervalSample {
                    flow,
                    side,
                    time_ns,
                    packet: number,
                    index,
                    packets: Some(packets),
                    inferred: None,
                    reported: None,
                };
                samples.loss_intervals.add(interval);
            }
        }
        if self.reports.len() == REPORTS {
            self.forget_report(samples);
        }
        let identity = packet.sighting.map_or(0, |sighting| sighting.identity);
        self.reports.push_back(ReportSent { identity, feedback, sample, has_arrived: false });
    }

    /// Stop waiting for the oldest report.
    fn forget_report(&mut self, samples: &mut TfrcSamples) {
        if let Some(report) = self.reports.pop_front().filter(|report| !report.has_arrived) {
            samples.feedback.offer(report.sample);
        }
    }

    fn on_report_arrived(&mut self, packet: &Packet, samples: &mut TfrcSamples) {
        let identity = packet.sighting.map(|sighting| sighting.identity);
        let found = self.reports.iter_mut().rev().find(|report| Some(report.identity) == identity);
        let time = seconds(packet.time_ns);
        let taken = found.and_then(|report| {
            let r_sample = self.sender.on_report(time, &report.feedback)?;
            report.has_arrived = true;
            Some((report.sample, r_sample))
        });
        let (Some((sample, r_sample)), Some(round_trip)) = (taken, self.sender.round_trip) else {
            self.unknown_reports += 1;
            return;
        };
        self.r = Some(round_trip.r);
        let taken = TakenReport {
            time_ns: packet.time_ns,
            r_sample: Some((r_sample, RttBy::Ack)),
            r: round_trip.r,
            t_rto: self.sender.t_rto(),
            x: self.sender.rate,
            mode: self.sender.mode.name(),
            rfc: None,
        };
        self.release_latest(samples);
        self.latest = Some(FeedbackSample { taken: Some(taken), ..sample });
    }

    fn release_latest(&mut self, samples: &mut TfrcSamples) {
        if let Some(report) = self.latest.take() {
            samples.feedback.offer(report);
        }
    }

    /// Correct the sender's state: the latest report had another effect than assumed.
    fn correct(&mut self) {
        if let Some(taken) = self.latest.as_mut().and_then(|report| report.taken.as_mut()) {
            (taken.x, taken.mode) = (self.sender.rate, self.sender.mode.name());
        }
    }

    /// Emit everything still pending.
    pub fn finish(&mut self, samples: &mut TfrcSamples) {
        self.end_event(samples);
        self.release_latest(samples);
        while !self.reports.is_empty() {
            self.forget_report(samples);
        }
    }
}

/// Congestion experienced (RFC 3168).
const ECN_MARKED: u8 = 3;

fn seconds(time_ns: i64) -> f64 {
    time_ns as f64 / 1e9
}

/// The side whose data a packet of `side` is about.
pub fn side_of_data(side: Side, packet: &Packet) -> Side {
    if packet.network.transport == Transport::Tfrc { side } else { side.other() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::bounded_samples::BoundedSamples;
    use crate::flow::tfrc::TfrcFlow;
    use crate::packet::event::{Code, NodeLayer, PathPoint, Sighting};
    use proptest::prelude::*;

    fn samples() -> TfrcSamples {
        TfrcSamples {
            feedback: BoundedSamples::new(true, 1000),
            loss_events: BoundedSamples::new(true, 1000),
            loss_intervals: BoundedSamples::new(true, 1000),
            findings: BoundedSamples::new(true, 1000),
        }
    }

    fn packet(transport: Transport, identity: u64, time_ns: i64, sequence: Option<u64>, ecn: u8) -> Packet {
        let sighting = Sighting {
            layer: NodeLayer::Agent,
            point: PathPoint::Source,
            identity,
            reason: Code::default(),
            agent: None,
        };
        let mut packet = Packet { number: identity, time_ns, sighting: Some(sighting), ..Packet::default() };
        packet.network.transport = transport;
        packet.network.sequence = sequence;
        packet.network.ecn = ecn;
        packet.network.payload_bytes = Some(1000);
        packet
    }

    fn take(flow: &mut TfrcFlow, packet: &Packet, happening: PacketEvent, samples: &mut TfrcSamples) {
        let side = if packet.network.transport == Transport::Tfrc { Side::Low } else { Side::High };
        flow.take_simulated((0, side), happening, packet, &Parameters::default(), samples);
    }

    #[test]
    fn test_reports_that_arrive_never_or_twice_are_rows_all_the_same() {
        const MS: i64 = 1_000_000;
        let (mut flow, mut found) = (TfrcFlow::default(), samples());
        for number in 0..3_u64 {
            let at = number as i64 * 100 * MS;
            let data = |time_ns| packet(Transport::Tfrc, number, time_ns, Some(number), 0);
            let report = |time_ns| packet(Transport::TfrcFeedback, 10 + number, time_ns, Some(number), 0);
            take(&mut flow, &data(at), PacketEvent::Sent, &mut found);
            take(&mut flow, &data(at + 20 * MS), PacketEvent::Arrived, &mut found);
            take(&mut flow, &report(at + 20 * MS), PacketEvent::Sent, &mut found);
            for _ in 0..number {
                take(&mut flow, &report(at + 50 * MS), PacketEvent::Arrived, &mut found);
            }
        }
        let stranger = packet(Transport::TfrcFeedback, 99, 400 * MS, Some(9), 0);
        take(&mut flow, &stranger, PacketEvent::Arrived, &mut found);
        flow.finish(0, &mut found);
        let mut rows: Vec<_> =
            found.feedback.kept.iter().map(|row| (row.packet, row.taken.is_some())).collect();
        rows.sort_unstable();
        assert_eq!(rows, [(10, false), (11, true), (12, true), (12, true)]);
        let samples_ms: Vec<_> = found.feedback.kept.iter().filter_map(|row| row.taken).collect();
        assert!(samples_ms.iter().all(|taken| (taken.r_sample.unwrap().0 - 0.05).abs() < 1e-9));
        assert_eq!(flow.summary(Side::Low).unwrap().feedback_packets, 3);
        assert!(flow.notes(Side::Low).iter().any(|words| words.starts_with("1 arrival of reports")));
    }

    proptest! {
        #[test]
        fn test_any_order_of_any_packets_is_taken_within_bounds(
            events in proptest::collection::vec(
                (0_u8..4, 0_u64..4, any::<i64>(), prop_oneof![0_u64..40, any::<u64>()], 0_u8..4), 0..120,
            ),
        ) {
            let (mut flow, mut found) = (TfrcFlow::default(), samples());
            for (kind, identity, time_ns, sequence, ecn) in events {
                let transport = if kind < 2 { Transport::Tfrc } else { Transport::TfrcFeedback };
                let happening = if kind % 2 == 0 { PacketEvent::Sent } else { PacketEvent::Arrived };
                let packet = packet(transport, identity, time_ns, Some(sequence), ecn);
                take(&mut flow, &packet, happening, &mut found);
            }
            flow.finish(0, &mut found);
            for report in &found.feedback.kept {
                prop_assert!((0.0..=1.0).contains(&report.p.unwrap()));
            }
        }
    }
}
