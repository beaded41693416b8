//! Both ends of a TFRC flow of which a capture shows data packets and reports, whatever carries them.
//!
//! The receiver is rebuilt from the data packets as if it stood where the capture was taken: losses
//! between there and the receiver do not show. The sender is rebuilt from what the reports say.
//! Sections are of RFC 5348.

mod sending;

use std::collections::VecDeque;

use super::findings::{Counts, Finding, FindingSample, Kind};
use super::{FeedbackSample, LossEventSample, LossIntervalSample, Place, Summary, TfrcSamples};
use crate::tfrc::events::LossEvent;
use crate::tfrc::profile::{ReceiverProfile, SenderProfile};
use crate::tfrc::receiver::{Feedback, Receiver};
use crate::tfrc::{DataPacket, Report};
use sending::Sending;

/// Data packets whose place in the count of bytes is remembered until a report says that they
/// came, 16 bytes each. CCID 3 reports once per round-trip time, so this is the largest flight.
const IN_FLIGHT: usize = 1 << 13;
/// A report is late if it takes longer than this many round-trip times and the longest pause of the
/// data: receivers round the round-trip time, and their clocks tick.
const LATE: f64 = 1.5;

/// What must be known of a carrier and its ends before their first packet.
#[derive(Clone, Copy, Debug)]
pub struct Carrier {
    /// How the receiver works.
    pub receiver: ReceiverProfile,
    /// How the sender works; its `s` is that of the first packet, and then follows the payloads.
    pub sender: SenderProfile,
    /// Whether the data are seen from their beginning on.
    pub is_whole: bool,
}

/// What a report says, and what a carrier finds out about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reported<'a> {
    /// Highest sequence number that had arrived, as sent.
    pub sequence: Option<u64>,
    /// Loss event rate.
    pub p: Option<f64>,
    /// Bytes per second that the receiver got.
    pub x_recv: Option<f64>,
    /// How long it was held, seconds.
    pub elapsed: Option<f64>,
    /// The round-trip time that it gives, seconds, and how that is measured.
    pub r_sample: Option<(f64, &'static str)>,
    /// Loss intervals in packets, the newest first.
    pub intervals: &'a [f64],
}

/// Both ends of one direction.
#[derive(Debug)]
pub struct Carried {
    /// Floats are exact to the nanosecond only near zero.
    origin_ns: Option<i64>,
    receiver: Receiver,
    /// Reports that would have been due; kept for its memory.
    due: Vec<Feedback>,
    /// The packet that told of the current loss event.
    told: Option<(i64, u64)>,
    passed: Passed,
    last: Option<LastReport>,
    sending: Sending,
    feedback_packets: u64,
    is_whole: bool,
    summary: Summary,
    findings: Counts,
}

/// What is remembered of the last report.
#[derive(Clone, Copy, Debug)]
struct LastReport {
    time: f64,
    /// Bytes of data that had passed up to the packet it acknowledges.
    through: u64,
}

/// Data that passed, by number.
#[derive(Debug, Default)]
struct Passed {
    /// Number and bytes up to and with it.
    in_flight: VecDeque<(i64, u64)>,
    bytes: u64,
    /// Bytes up to the packet that was acknowledged last.
    acknowledged: u64,
    last: Option<f64>,
    /// The longest time without data since the last report, seconds.
    longest_pause: f64,
    /// Packets of data since the last report.
    packets: u64,
}

impl Passed {
    fn take(&mut self, number: i64, bytes: u32, time: f64) {
        if bytes == 0 {
            return;
        }
        if let Some(last) = self.last.replace(time) {
            self.longest_pause = self.longest_pause.max(time - last);
        }
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(u64::from(bytes));
        if self.in_flight.len() == IN_FLIGHT {
            self.in_flight.pop_front();
        }
        self.in_flight.push_back((number, self.bytes));
    }

    /// Bytes that passed up to the packet `number`.
    fn through(&mut self, number: i64) -> u64 {
        while let Some(&(_, bytes)) = self.in_flight.front().filter(|(passed, _)| *passed <= number) {
            self.acknowledged = bytes;
            self.in_flight.pop_front();
        }
        self.acknowledged
    }

    fn on_report(&mut self) {
        (self.longest_pause, self.packets) = (0.0, 0);
    }
}

impl Carried {
    /// Nothing seen yet.
    pub fn new(carrier: Carrier) -> Self {
        Self {
            origin_ns: None,
            receiver: Receiver::new(&carrier.receiver),
            due: Vec::new(),
            told: None,
            passed: Passed::default(),
            last: None,
            sending: Sending::new(&carrier.sender, carrier.is_whole),
            feedback_packets: 0,
            is_whole: carrier.is_whole,
            summary: Summary::default(),
            findings: Counts::default(),
        }
    }

    /// What the table of flows tells. The receiver's part is what the reports say, and only without
    /// that what is rebuilt.
    pub fn summary(&self) -> Summary {
        Summary {
            loss_events: Some(self.receiver.tracker.now.events.count),
            feedback_packets: self.feedback_packets,
            ..self.summary
        }
    }

    /// What is to be said of the flow in words.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.feedback_packets == 0 {
            notes.push("no report about this TFRC flow in the capture: p, R and X are not known".into());
        } else if !self.is_whole {
            notes.push("the capture lacks the beginning of this TFRC flow: R and X begin anew".into());
        }
        notes.extend(self.findings.words());
        notes
    }

    fn seconds(&mut self, time_ns: i64) -> f64 {
        let origin_ns = *self.origin_ns.get_or_insert(time_ns);
        time_ns.saturating_sub(origin_ns) as f64 / 1e9
    }

    fn time_ns(&self, seconds: f64) -> i64 {
        // A float beyond the range of integers saturates.
        self.origin_ns.unwrap_or(0).saturating_add((seconds * 1e9).round() as i64)
    }

    /// Something is wrong with a packet, or with what an end does.
    pub fn on_finding(&mut self, at: Place, finding: Finding, samples: &mut TfrcSamples) {
        self.findings.count(finding.kind);
        samples.findings.offer(FindingSample { at, finding });
    }

    /// A packet from the sender passes, of data if it has any payload. Its `time` is that of `at`.
    pub fn on_data(&mut self, at: Place, packet: &DataPacket, samples: &mut TfrcSamples) {
        let time = self.seconds(at.time_ns);
        let packet = DataPacket { time, ..*packet };
        if self.feedback_packets > 0 {
            self.run_timer(at, time, samples);
        }
        self.due.clear();
        self.receiver.on_data(&packet, &mut self.due);
        self.take_events(at, samples);
        let number = self.receiver.extended(packet.seq);
        self.passed.take(number, packet.bytes, time);
        if let Some(finding) = self.sending.on_data(time, packet.bytes) {
            self.on_finding(at, finding, samples);
        }
    }

    /// Hand out the loss events that the last packet ended; it told of the ones that follow.
    fn take_events(&mut self, at: Place, samples: &mut TfrcSamples) {
        let ended: Vec<LossEvent> = self.receiver.tracker.now.ended().to_vec();
        for event in ended {
            self.end_event(at, &event, samples);
        }
        if self.receiver.tracker.now.events.current.is_some() {
            self.told.get_or_insert((at.time_ns, at.packet));
        }
    }

    fn end_event(&mut self, at: Place, event: &LossEvent, samples: &mut TfrcSamples) {
        let (time_ns, packet) = self.told.replace((at.time_ns, at.packet)).unwrap_or((at.time_ns, at.packet));
        let lost_ns = self.time_ns(event.time);
        let Place { flow, side, .. } = at;
        let LossEvent { start, packets, .. } = *event;
        samples.loss_events.offer(LossEventSample { flow, side, time_ns, packet, start, lost_ns, packets });
    }

    fn run_timer(&mut self, at: Place, time: f64, samples: &mut TfrcSamples) {
        for finding in self.sending.run_until(time) {
            self.on_finding(at, finding, samples);
        }
    }

    /// A report passes.
    pub fn on_report(&mut self, at: Place, reported: &Reported<'_>, samples: &mut TfrcSamples) {
        let time = self.seconds(at.time_ns);
        self.feedback_packets += 1;
        if let Some(finding) = self.lateness(time) {
            self.on_finding(at, finding, samples);
        }
        self.run_timer(at, time, samples);
        let p = self.receiver.p(time);
        let x_recv = self.x_recv(time, reported.sequence);
        let taken = Report {
            time,
            r_sample: reported.r_sample.map(|(sample, _)| sample),
            x_recv: reported.x_recv.or(x_recv).unwrap_or(0.0),
            p: reported.p.unwrap_or(p),
            is_data_limited: false,
        };
        let taken = self.sending.on_report(at.time_ns, taken, reported.r_sample);
        let Place { flow, side, time_ns, packet } = at;
        samples.feedback.offer(FeedbackSample {
            flow,
            side,
            sent_ns: time_ns,
            packet,
            sequence: reported.sequence,
            p: Some(p),
            x_recv,
            reported_p: reported.p,
            reported_x_recv: reported.x_recv,
            elapsed: reported.elapsed,
            taken,
        });
        self.take_intervals(at, reported.intervals, samples);
        self.summary = Summary {
            p: reported.p.or(Some(p)),
            x_recv: reported.x_recv.or(x_recv),
            r: taken.map(|taken| taken.r),
            ..self.summary
        };
    }

    /// Reports come at least once per round-trip time in which data came (section 6.2).
    fn lateness(&mut self, time: f64) -> Option<Finding> {
        let (last, r) = (self.last?, self.sending.r()?);
        let (value, limit) = (time - last.time, LATE * r + self.passed.longest_pause);
        let is_late = self.passed.packets > 0 && value > limit;
        is_late.then(|| Finding::measured(Kind::LateFeedback, value, limit))
    }

    /// Payload of the packets up to the acknowledged one over the time since the last report, or over
    /// a round-trip time if that is longer (section 6.2).
    fn x_recv(&mut self, time: f64, sequence: Option<u64>) -> Option<f64> {
        let through = match sequence {
            Some(sequence) => self.passed.through(self.receiver.extended(sequence)),
            None => self.passed.bytes,
        };
        self.passed.on_report();
        let last = self.last.replace(LastReport { time, through });
        match last.filter(|last| time - last.time >= self.receiver.rtt()) {
            Some(last) => Some(through.saturating_sub(last.through) as f64 / (time - last.time)),
            None => self.receiver.recent_rate(),
        }
    }

    fn take_intervals(&mut self, at: Place, reported: &[f64], samples: &mut TfrcSamples) {
        if !samples.loss_intervals.wanted {
            return;
        }
        let tracker = &self.receiver.tracker.now;
        let rebuilt = tracker.open_interval().into_iter().chain(tracker.closed_intervals().iter().copied());
        let rebuilt: Vec<f64> = rebuilt.collect();
        let Place { flow, side, time_ns, packet } = at;
        for (index, at) in (0..).zip(0..rebuilt.len().max(reported.len())) {
            let (packets, reported) = (rebuilt.get(at).copied(), reported.get(at).copied());
            let interval = LossIntervalSample { flow, side, time_ns, packet, index, packets, reported };
            samples.loss_intervals.add(interval);
        }
    }

    /// Hand out the loss event that is still open. To be called once, after the last packet.
    pub fn finish(&mut self, (flow, side): (u32, super::Side), samples: &mut TfrcSamples) {
        if let (Some(event), Some((time_ns, packet))) = (self.receiver.tracker.now.events.current, self.told)
        {
            self.end_event(Place { flow, side, time_ns, packet }, &event, samples);
        }
    }
}
