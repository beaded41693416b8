//! A sender driven through what a trace shows: its reports, its own packets, and its timer between them.

use super::machine::{Decision, Machine, Rules};
use super::{nanoseconds, seconds};
use crate::tfrc::Report;

/// Expiries of the nofeedback timer between two reports that are followed. RFC 5348's timer doubles until
/// it is 128 s long, so that this is a day; ns-2 halves without a bound, and long before that to nothing.
pub(super) const MOST_EXPIRIES: usize = 1000;

/// A report as a trace has it. What is not known is NaN, as in the arrays that Python hands over.
#[derive(Clone, Copy, Debug)]
pub struct RecordedReport {
    /// When it reached the sender.
    pub time_ns: i64,
    /// Round-trip time sample in seconds.
    pub r_sample: f64,
    /// Loss event rate.
    pub p: f64,
    /// Receive rate in bytes per second.
    pub x_recv: f64,
    /// Whether the sender was data-limited; None is to be told from what was sent.
    pub is_data_limited: Option<bool>,
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// When its first packet was sent.
    pub start_ns: i64,
    /// When its last one was: later reports find no sender.
    pub end_ns: i64,
    /// In order of time.
    pub reports: Vec<RecordedReport>,
    /// Time and payload of data packets in order of time; may be empty if that is not known.
    pub sends: Vec<(i64, u32)>,
}

/// One step of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// When.
    pub time_ns: i64,
    /// The report that made it; None if the nofeedback timer did.
    pub report: Option<Report>,
    /// What was decided.
    pub decision: Decision,
}

/// A sender that sends less than this share of what it may has no more to send.
const DATA_LIMITED_SHARE: f64 = 0.9;

/// Drive a sender with these rules through the recording.
pub fn run(rules: &Rules, recording: &Recording) -> Vec<Row> {
    let mut replay = Replay {
        machine: Machine::new(rules, 0.0),
        recording,
        rows: Vec::with_capacity(recording.reports.len()),
        sent: 0,
        timer_set: 0.0,
        last_report: 0.0,
        bytes: 0,
        p: 0.0,
    };
    for report in &recording.reports {
        if report.time_ns > recording.end_ns {
            break;
        }
        replay.take(report);
    }
    replay.send_until(recording.end_ns);
    replay.expire(seconds(recording.end_ns, recording.start_ns));
    replay.rows
}

struct Replay<'a> {
    machine: Machine,
    recording: &'a Recording,
    rows: Vec<Row>,
    /// Packets sent so far.
    sent: usize,
    timer_set: f64,
    last_report: f64,
    /// Payload sent since the last report.
    bytes: u64,
    p: f64,
}

impl Replay<'_> {
    fn take(&mut self, recorded: &RecordedReport) {
        // A packet that a report sets free leaves at the same time, but after it.
        self.send_until(recorded.time_ns.saturating_sub(1));
        let time = seconds(recorded.time_ns, self.recording.start_ns);
        self.expire(time);
        let known = |value: f64| Some(value).filter(|value| value.is_finite());
        let (Some(p), Some(x_recv)) = (known(recorded.p), known(recorded.x_recv)) else { return };
        let report = Report {
            time,
            r_sample: known(recorded.r_sample),
            x_recv,
            p,
            is_data_limited: recorded.is_data_limited.unwrap_or_else(|| self.looks_data_limited(time)),
        };
        let decision = self.machine.on_report(&report, self.p);
        (self.timer_set, self.last_report, self.bytes, self.p) = (time, time, 0, p);
        self.rows.push(Row { time_ns: recorded.time_ns, report: Some(report), decision });
    }

    fn looks_data_limited(&self, time: f64) -> bool {
        let allowed = self.machine.x() * (time - self.last_report);
        !self.recording.sends.is_empty() && (self.bytes as f64) < DATA_LIMITED_SHARE * allowed
    }

    /// Packets sent up to then. ns-2's agent lives through its timers with each of them.
    fn send_until(&mut self, time_ns: i64) {
        while let Some(&(sent_ns, bytes)) =
            self.recording.sends.get(self.sent).filter(|send| send.0 <= time_ns)
        {
            let time = seconds(sent_ns, self.recording.start_ns);
            self.expire(time);
            self.machine.on_sent(time, bytes);
            self.bytes = self.bytes.saturating_add(u64::from(bytes));
            self.sent += 1;
        }
    }

    /// Let the nofeedback timer run out as often as it does before `time`.
    fn expire(&mut self, time: f64) {
        for _ in 0..MOST_EXPIRIES {
            let (recording, since) = (self.recording, self.timer_set);
            let is_idle = |from: f64, to: f64| is_idle(recording, from, to);
            let Some((due, decision)) = self.machine.expire(time, since, is_idle) else { return };
            self.timer_set = due;
            let time_ns = nanoseconds(due, recording.start_ns);
            self.rows.push(Row { time_ns, report: None, decision });
        }
    }
}

/// Whether nothing was sent after the one time and until the other, as far as that is known.
fn is_idle(recording: &Recording, from: f64, to: f64) -> bool {
    let place = |time: f64| {
        let time_ns = nanoseconds(time, recording.start_ns);
        recording.sends.partition_point(|send| send.0 <= time_ns)
    };
    !recording.sends.is_empty() && place(from) == place(to)
}
