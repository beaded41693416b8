//! Both ends of a TFRC flow whose data packets and reports are in a capture, over any transport.
//!
//! The receiver is reconstructed twice: from the data packets as if it stood at the capture point,
//! and from the losses downstream of it that reports show ([`downstream_loss`]). Which one is
//! nearer to the true receiver depends on the vantage, which only all packets together show. The
//! sender is reconstructed from the reports ([`sender_side`]). Sections are of RFC 5348.

mod downstream_loss;
mod inferred_receiver;
pub mod packet_outcomes;
mod receiver_side;
mod sender_side;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::findings::{Finding, FindingCounts, FindingKind, FindingSample};
use super::{
    FeedbackSample, LossIntervalSample, PacketRef, ReportedInterval, RttBy, TfrcSamples, TfrcSummary,
};
use crate::packet::key::Side;
use crate::plural::counted;
use crate::tfrc::profile::{ReceiverProfile, SenderProfile};
use crate::tfrc::receive_record;
use crate::tfrc::small_packets::HEADER_CCID4;
use crate::tfrc::{DataPacket, EPS_T, Report};
use downstream_loss::{DownstreamReceiver, ReportContents};
pub use inferred_receiver::InferredReceiver;
use packet_outcomes::ReportedOutcomes;
use receiver_side::ReceiverSide;
use sender_side::SenderSide;

/// A report is late after more than this many round-trip times plus the longest pause of the data:
/// receivers round the round-trip time, and their clocks tick.
const LATE: f64 = 2.0;

/// Facts needed about the ends before their first packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CarrierSetup {
    pub receiver: ReceiverProfile,
    /// The sender's profile; its `s` is the first packet's, and then follows the payloads.
    pub sender: SenderProfile,
    /// Whether the data are seen from their start.
    pub is_whole: bool,
}

/// Contents of a report, and facts that its transport adds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reported<'a> {
    /// Highest sequence number received, as sent.
    pub sequence: Option<u64>,
    pub p: Option<f64>,
    /// Receive rate in bytes per second.
    pub x_recv: Option<f64>,
    /// How long it was held, seconds.
    pub elapsed: Option<f64>,
    /// Its round-trip time in seconds, and how it is known.
    pub r_sample: Option<(f64, RttBy)>,
    /// Whether the capture shows data when they are sent, and not later on their path.
    pub shows_sending: bool,
    /// Whether a report before it is missing in the capture.
    pub follows_gap: bool,
    /// Loss intervals, the newest first.
    pub intervals: &'a [ReportedInterval],
    /// Outcomes of single packets, if it names them.
    pub outcomes: Option<&'a ReportedOutcomes>,
}

impl CarrierSetup {
    /// Make the ends count headers and short loss intervals as for small packets (RFC 5622).
    pub fn use_small_packets(&mut self) {
        self.receiver.short_intervals = true;
        self.sender.small_packets = Some(HEADER_CCID4);
    }
}

/// Both ends of one direction.
#[derive(Debug, Serialize, Deserialize)]
pub struct CapturedEnds {
    setup: CarrierSetup,
    /// Zero of all times in seconds.
    origin_ns: Option<i64>,
    /// The receiver as if it stood at the capture.
    receiving: ReceiverSide,
    downstream: DownstreamReceiver,
    /// Loss events found by each before the sender's numbering restarted.
    found_before: (Option<u64>, Option<u64>),
    sending: SenderSide,
    pauses: Pauses,
    last_report: Option<f64>,
    feedback_packets: u64,
    /// Data before any round-trip time was known.
    without_rtt: u64,
    summary: TfrcSummary,
    findings: FindingCounts,
}

/// Data since the last report.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Pauses {
    last: Option<f64>,
    /// The longest time without data, seconds.
    longest: f64,
    packets: u64,
}

impl Pauses {
    fn on_data(&mut self, time: f64) {
        if let Some(last) = self.last.replace(time) {
            self.longest = self.longest.max(time - last);
        }
        self.packets += 1;
    }

    fn on_report(&mut self) {
        (self.longest, self.packets) = (0.0, 0);
    }
}

impl CapturedEnds {
    pub fn new(setup: CarrierSetup) -> Self {
        Self {
            setup,
            origin_ns: None,
            receiving: ReceiverSide::new(&setup.receiver, false),
            downstream: DownstreamReceiver::new(&setup.receiver),
            found_before: (None, None),
            sending: SenderSide::new(&setup.sender, setup.is_whole),
            pauses: Pauses::default(),
            last_report: None,
            feedback_packets: 0,
            without_rtt: 0,
            summary: TfrcSummary::default(),
            findings: FindingCounts::default(),
        }
    }

    /// Values for the table of flows. The receiver's part is from the reports, and reconstructed
    /// only without them.
    pub fn summary(&self) -> TfrcSummary {
        let (loss_events, inferred_loss_events) = self.found();
        TfrcSummary {
            loss_events,
            inferred_loss_events,
            feedback_packets: self.feedback_packets,
            ..self.summary
        }
    }

    /// Loss events of the receiver at the capture and downstream of it; None where unknown.
    fn found(&self) -> (Option<u64>, Option<u64>) {
        let sum = |before: Option<u64>, now: Option<u64>| match (before, now) {
            (Some(before), Some(now)) => Some(before.saturating_add(now)),
            (before, now) => before.or(now),
        };
        let (seen, inferred) = self.found_before;
        (sum(seen, self.receiving.loss_events()), sum(inferred, self.downstream.loss_events()))
    }

    /// Notes on the flow as text.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.feedback_packets == 0 {
            notes.push("no report about this TFRC flow in the capture: R and X are not known".into());
        } else if !self.receiving.has_data {
            notes.push("no data packet of this TFRC flow in the capture: nothing is reconstructed".into());
        } else if !self.setup.is_whole {
            notes.push("the capture lacks the beginning of this TFRC flow: R and X start over".into());
        }
        if self.without_rtt > 0 {
            let (packets, fallback) = (self.without_rtt, self.setup.receiver.fallback_rtt);
            let came = counted(packets, "data packet[s] came before any round-trip time was known");
            notes.push(format!(
                "{came}: losses among them are grouped by {fallback} s (RFC 4340 section 3.4)"
            ));
        }
        notes.extend(self.findings.words());
        notes
    }

    /// The time in seconds, and its origin.
    fn seconds(&mut self, time_ns: i64) -> (f64, i64) {
        let origin_ns = *self.origin_ns.get_or_insert(time_ns);
        (time_ns.saturating_sub(origin_ns) as f64 / 1e9, origin_ns)
    }

    /// Record a finding about a packet or an end.
    pub fn on_finding(&mut self, at: PacketRef, finding: Finding, samples: &mut TfrcSamples) {
        self.findings.count(finding.kind);
        samples.findings.offer(FindingSample { at, finding });
    }

    /// The sender's numbering restarts, and with it the receiver's state.
    pub fn restart(&mut self, at: PacketRef, samples: &mut TfrcSamples) {
        self.receiving.finish(at, samples);
        self.downstream.finish(at, samples);
        self.found_before = self.found();
        self.receiving = ReceiverSide::new(&self.setup.receiver, false);
        self.downstream = DownstreamReceiver::new(&self.setup.receiver);
    }

    /// Process a packet from the sender, of data if it has any payload. Its `time` is that of `at`.
    pub fn on_data(&mut self, at: PacketRef, packet: &DataPacket, samples: &mut TfrcSamples) {
        let (time, origin_ns) = self.seconds(at.time_ns);
        let packet = DataPacket { time, ..*packet };
        if self.feedback_packets > 0 {
            self.run_timer(at, time, samples);
        }
        if self.receiving.on_packet(at, origin_ns, &packet, samples) == receive_record::ArrivalKind::Duplicate
        {
            return;
        }
        let number = self.receiving.state.extended(packet.seq);
        self.downstream.on_data(at, origin_ns, (number, packet), samples);
        if packet.bytes > 0 {
            self.pauses.on_data(time);
            self.without_rtt += u64::from(!self.receiving.state.knows_rtt());
        }
        if let Some(finding) = self.sending.on_data(time, packet.bytes) {
            self.on_finding(at, finding, samples);
        }
    }

    fn run_timer(&mut self, at: PacketRef, time: f64, samples: &mut TfrcSamples) {
        for finding in self.sending.run_until(time) {
            self.on_finding(at, finding, samples);
        }
    }

    pub fn on_report(&mut self, at: PacketRef, reported: &Reported<'_>, samples: &mut TfrcSamples) {
        let (time, origin_ns) = self.seconds(at.time_ns);
        self.feedback_packets += 1;
        if let Some(finding) = self.lateness(time).filter(|_| !reported.follows_gap) {
            self.on_finding(at, finding, samples);
        }
        self.run_timer(at, time, samples);
        let (p, x_recv) = (self.receiving.p(time), self.x_recv(at, origin_ns, time, reported, samples));
        // No capture resolves less than a nanosecond.
        let r_sample = reported.r_sample.filter(|(sample, _)| *sample >= EPS_T);
        let taken = Report {
            time,
            r_sample: r_sample.map(|(sample, _)| sample),
            x_recv: reported.x_recv.or(x_recv).unwrap_or(0.0),
            p: reported.p.or(p).unwrap_or(0.0),
            is_data_limited: false,
            losses: 0,
        };
        let taken = self.sending.on_report(at.time_ns, taken, r_sample, reported.shows_sending);
        let PacketRef { flow, side, time_ns, packet } = at;
        samples.feedback.offer(FeedbackSample {
            flow,
            side,
            sent_ns: time_ns,
            packet,
            sequence: reported.sequence,
            p,
            inferred_p: self.downstream.p(time),
            x_recv,
            reported_p: reported.p,
            reported_x_recv: reported.x_recv,
            elapsed: reported.elapsed,
            losses: None,
            taken,
            media: None,
        });
        self.take_intervals(at, reported.intervals, samples);
        self.pauses.on_report();
        self.last_report = Some(time);
        self.summary = TfrcSummary {
            p: reported.p.or(p),
            x_recv: reported.x_recv.or(x_recv),
            r: taken.map(|taken| taken.r).or(self.summary.r),
            ..self.summary
        };
    }

    /// Reports come at least once per round-trip time in which data arrived (section 6.2).
    fn lateness(&mut self, time: f64) -> Option<Finding> {
        let (last, r) = (self.last_report?, self.sending.r()?);
        let (value, limit) = (time - last, LATE * r + self.pauses.longest);
        let is_late = self.pauses.packets > 0 && value > limit;
        is_late.then(|| Finding::measured(FindingKind::LateFeedback, value, limit))
    }

    /// Payload of the packets that the report covers over the time since the last one, or over a
    /// round-trip time if that is longer (section 6.2).
    fn x_recv(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        time: f64,
        reported: &Reported<'_>,
        samples: &mut TfrcSamples,
    ) -> Option<f64> {
        let receiver = &self.receiving.state;
        let number = reported.sequence.map_or(i64::MAX, |sequence| receiver.extended(sequence));
        let elapsed = reported.elapsed.unwrap_or(0.0);
        let Reported { x_recv, p, outcomes, .. } = *reported;
        let report = ReportContents { number, x_recv, p, time, elapsed, outcomes };
        let bytes = self.downstream.on_report(at, origin_ns, report, samples);
        if !self.receiving.has_data {
            return None;
        }
        match self.last_report.filter(|last| time - last >= receiver.rtt()) {
            Some(last) => Some(bytes as f64 / (time - last)),
            None => receiver.recent_rate(),
        }
    }

    fn take_intervals(&mut self, at: PacketRef, reported: &[ReportedInterval], samples: &mut TfrcSamples) {
        if !samples.loss_intervals.wanted {
            return;
        }
        let seen: Vec<f64> = self.receiving.intervals().collect();
        let inferred: Vec<f64> = self.downstream.intervals().collect();
        let PacketRef { flow, side, time_ns, packet } = at;
        for (index, at) in (0..).zip(0..seen.len().max(inferred.len()).max(reported.len())) {
            samples.loss_intervals.add(LossIntervalSample {
                flow,
                side,
                time_ns,
                packet,
                index,
                packets: seen.get(at).copied(),
                inferred: inferred.get(at).copied(),
                reported: reported.get(at).copied(),
            });
        }
    }

    /// Emit the loss events that are still open. Call once, after the last packet.
    pub fn finish(&mut self, (flow, side): (u32, Side), samples: &mut TfrcSamples) {
        let at = PacketRef { flow, side, time_ns: 0, packet: 0 };
        self.receiving.finish(at, samples);
        self.downstream.finish(at, samples);
    }
}
