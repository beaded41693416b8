//! Drives a sender through a recording: its reports, its own packets, and its timer between them.

use super::sender_variant::{Decision, Rules, SenderVariant};
use super::{nanoseconds, seconds};
use crate::tfrc::Report;

/// The most expiries of the nofeedback timer between two reports. RFC 5348's timer doubles up to
/// 128 s, so that this is a day; ns-2 halves without a bound, and reaches nothing long before that.
pub(super) const MOST_EXPIRIES: usize = 1000;

/// Limit of consecutive timer expiries recorded without a change: an idle sender keeps its rate at
/// each, and with a short round-trip time and a pausing application these would be most of all
/// rows.
const MOST_ALIKE: usize = 32;

/// A recorded report. Unknown values are NaN, as in the arrays from Python.
#[derive(Clone, Copy, Debug)]
pub struct RecordedReport {
    /// When it reached the sender.
    pub time_ns: i64,
    /// Round-trip time sample in seconds.
    pub r_sample: f64,
    pub p: f64,
    /// Receive rate in bytes per second.
    pub x_recv: f64,
    /// Whether the sender was data-limited; None to derive it from the packets sent.
    pub is_data_limited: Option<bool>,
    /// Packets lost or marked since the report before.
    pub losses: u64,
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
    /// Time and payload of data packets in order of time; may be empty if unknown.
    pub sends: Vec<(i64, u32)>,
}

#[derive(Clone, Copy, Debug)]
pub struct ReplayStep {
    pub time_ns: i64,
    /// The report that made it; None if the nofeedback timer did.
    pub report: Option<Report>,
    pub decision: Decision,
}

/// A sender below this share of its allowed rate has no more to send.
const DATA_LIMITED_SHARE: f64 = 0.9;

/// Drive a sender with these rules through the recording.
pub fn run(rules: &Rules, recording: &Recording) -> Vec<ReplayStep> {
    let mut replay = Replay {
        machine: SenderVariant::new(rules, 0.0),
        recording,
        rows: Vec::with_capacity(recording.reports.len()),
        sent: 0,
        timer_set: 0.0,
        last_report: 0.0,
        bytes: 0,
        p: 0.0,
        alike: 0,
    };
    for report in &recording.reports {
        if report.time_ns > recording.end_ns {
            break;
        }
        replay.on_report(report);
    }
    replay.send_until(recording.end_ns);
    replay.expire(seconds(recording.end_ns, recording.start_ns));
    replay.rows
}

struct Replay<'a> {
    machine: SenderVariant,
    recording: &'a Recording,
    rows: Vec<ReplayStep>,
    /// Packets sent so far.
    sent: usize,
    timer_set: f64,
    last_report: f64,
    /// Payload sent since the last report.
    bytes: u64,
    p: f64,
    /// Consecutive rows without a change.
    alike: usize,
}

impl Replay<'_> {
    fn on_report(&mut self, recorded: &RecordedReport) {
        // A packet that a report allows leaves at the same time, but after it.
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
            losses: recorded.losses,
        };
        let decision = self.machine.on_report(&report, self.p);
        (self.timer_set, self.last_report, self.bytes, self.p) = (time, time, 0, p);
        self.rows.push(ReplayStep { time_ns: recorded.time_ns, report: Some(report), decision });
    }

    fn looks_data_limited(&self, time: f64) -> bool {
        let allowed = self.machine.sending_rate() * (time - self.last_report);
        // One packet more or less is no sign: reports on loss events cover short intervals.
        let packet = self.sent.checked_sub(1).and_then(|last| self.recording.sends.get(last));
        packet.is_some_and(|packet| {
            (self.bytes.saturating_add(u64::from(packet.1)) as f64) < DATA_LIMITED_SHARE * allowed
        })
    }

    /// Process packets sent until then. ns-2's agent expires its timers at each of them.
    fn send_until(&mut self, time_ns: i64) {
        while let Some(&(sent_ns, bytes)) =
            self.recording.sends.get(self.sent).filter(|send| send.0 <= time_ns)
        {
            let time = seconds(sent_ns, self.recording.start_ns);
            self.expire(time);
            self.machine.on_sent(time, bytes);
            self.correct();
            self.bytes = self.bytes.saturating_add(u64::from(bytes));
            self.sent += 1;
        }
    }

    /// Correct the last decision: later packets show that the report had another effect.
    fn correct(&mut self) {
        let before = self.rows.len().checked_sub(2).and_then(|at| self.rows.get(at));
        let x_before = before.map_or(0.0, |row| row.decision.x);
        if let Some(last) = self.rows.last_mut().filter(|row| row.report.is_some())
            && let Some(decision) = self.machine.revised(&last.decision, x_before)
        {
            last.decision = decision;
        }
    }

    /// Expire the nofeedback timer as often as it is due before `time`.
    fn expire(&mut self, time: f64) {
        for _ in 0..MOST_EXPIRIES {
            let (recording, since) = (self.recording, self.timer_set);
            let is_idle = |from: f64, to: f64| is_idle(recording, from, to);
            let Some((due, decision)) = self.machine.expire(time, since, is_idle) else { return };
            self.timer_set = due;
            let changes = self.rows.last().is_none_or(|last| !is_alike(&last.decision, &decision));
            self.alike = if changes { 0 } else { self.alike.saturating_add(1) };
            if self.alike < MOST_ALIKE {
                let time_ns = nanoseconds(due, recording.start_ns);
                self.rows.push(ReplayStep { time_ns, report: None, decision });
            }
        }
    }
}

/// Whether two decisions are equal apart from the next timer expiry.
fn is_alike(one: &Decision, other: &Decision) -> bool {
    Decision { timer: other.timer, ..*one } == *other
}

/// Whether nothing was sent between both times, as far as known.
fn is_idle(recording: &Recording, from: f64, to: f64) -> bool {
    let place = |time: f64| {
        let time_ns = nanoseconds(time, recording.start_ns);
        recording.sends.partition_point(|send| send.0 <= time_ns)
    };
    !recording.sends.is_empty() && place(from) == place(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrc::replay::rfc_parameters::{ParameterProfile, Variant, ends};
    use crate::tfrc::replay::sender_variant::{Mode, Reason};
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn report(time_ns: i64, p: f64, x_recv: f64) -> RecordedReport {
        RecordedReport { time_ns, r_sample: 0.1, p, x_recv, is_data_limited: Some(false), losses: 0 }
    }

    fn replayed(
        profile: ParameterProfile,
        reports: Vec<RecordedReport>,
        sends: Vec<(i64, u32)>,
        end_ns: i64,
    ) -> Vec<ReplayStep> {
        let ends = ends(profile, Variant::Tfrc, 1000.0, None, &[]).unwrap();
        run(&ends.rules, &Recording { start_ns: 0, end_ns, reports, sends })
    }

    #[test]
    fn test_each_step_says_why() {
        let reports = vec![
            report(100 * MS, 0.0, 10_000.0),
            report(150 * MS, 0.0, 40_000.0),
            report(250 * MS, 0.0, 40_000.0),
            report(350 * MS, 0.01, 80_000.0),
            report(450 * MS, 0.02, 80_000.0),
            report(550 * MS, 0.01, 80_000.0),
            report(650 * MS, 0.01, 20_000.0),
            report(850 * MS, 0.01, 20_000.0),
            report(1050 * MS, 0.01, 20_000.0),
        ];
        let rows = replayed(ParameterProfile::Rfc5348, reports, Vec::new(), 1400 * MS);
        let words: Vec<_> = rows.iter().map(|row| (row.decision.mode, row.decision.reason)).collect();
        assert_eq!(
            words,
            [
                (Mode::SlowStart, Reason::FirstReport),
                (Mode::SlowStart, Reason::Held),
                (Mode::SlowStart, Reason::Doubled),
                (Mode::Equation, Reason::LeavingSlowStart),
                (Mode::Equation, Reason::LossEvent),
                (Mode::Equation, Reason::LossFree),
                (Mode::Equation, Reason::RoundTripTime),
                (Mode::ReceiveLimited, Reason::ReceiveRate),
                (Mode::ReceiveLimited, Reason::ReceiveRate),
            ]
        );
    }

    #[test]
    fn test_a_timer_that_runs_out_is_a_row_of_its_own_and_an_idle_sender_keeps_its_rate() {
        let reports = vec![report(100 * MS, 0.0, 10_000.0)];
        let busy = (0..200).map(|n| (n * 10 * MS, 1000)).collect();
        let rows = replayed(ParameterProfile::Rfc5348, reports.clone(), busy, 2000 * MS);
        assert_eq!((rows[1].decision.mode, rows[1].decision.reason), (Mode::NoFeedback, Reason::Halved));
        assert!(rows[1].report.is_none() && rows[1].decision.x == rows[0].decision.x / 2.0);
        // Four round-trip times after the report (section 4.3 step 3).
        assert_eq!(rows[1].time_ns, 500 * MS);
        let idle = vec![(0, 1000), (4000 * MS, 1000)];
        let rows = replayed(ParameterProfile::Rfc5348, reports, idle, 4000 * MS);
        assert_eq!((rows[1].decision.mode, rows[1].decision.reason), (Mode::Idle, Reason::Idle));
        assert_eq!(rows[1].decision.x, rows[0].decision.x);
    }

    #[test]
    fn test_reports_after_the_end_find_no_sender() {
        let reports = vec![report(100 * MS, 0.0, 1e4), report(300 * MS, 0.0, 1e4)];
        assert_eq!(replayed(ParameterProfile::Rfc3448, reports, Vec::new(), 200 * MS).len(), 1);
    }

    #[test]
    fn test_a_timer_that_changes_nothing_makes_few_rows() {
        // 20 µs away, a packet each 100 ms: the timer of an idle sender runs out a thousand times in between.
        let first = RecordedReport { r_sample: 20e-6, ..report(MS, 0.01, 1e8) };
        let sends: Vec<_> = (0..200).map(|n| (n * 100 * MS, 160)).collect();
        let rows = replayed(ParameterProfile::Rfc5348, vec![first], sends, 20_000 * MS);
        let idle = rows.iter().filter(|row| row.decision.mode == Mode::Idle).count();
        assert!(idle > MOST_ALIKE && rows.len() < 2000, "{idle} of {}", rows.len());
    }

    proptest! {
        #[test]
        fn test_any_recording_is_taken_within_bounds(
            reports in proptest::collection::vec(
                (
                    any::<i64>(), any::<f64>(), any::<f64>(), any::<f64>(), proptest::option::of(any::<bool>()),
                    any::<u64>(),
                ),
                0..30,
            ),
            sends in proptest::collection::vec((any::<i64>(), any::<u32>()), 0..30),
            end_ns: i64, at in 0_usize..4,
        ) {
            let reports = reports.into_iter().map(|(time_ns, r_sample, p, x_recv, is_data_limited, losses)| {
                RecordedReport { time_ns, r_sample, p, x_recv, is_data_limited, losses }
            });
            let (reports, mut sends): (Vec<_>, Vec<_>) = (reports.collect(), sends);
            sends.sort_unstable();
            let (given, sent) = (reports.len(), sends.len());
            let rows = replayed(ParameterProfile::ALL[at], reports, sends, end_ns);
            prop_assert!(rows.len() <= given + (given + sent + 1) * MOST_EXPIRIES);
        }

        #[test]
        fn test_the_limit_of_rfc_5348_holds_after_slow_start(
            reports in proptest::collection::vec((0.001..0.5_f64, 0.0001..1.0_f64, 100.0..1e7_f64), 1..60),
        ) {
            let mut time_ns = 0;
            let reports = reports.into_iter().map(|(step, p, x_recv)| {
                time_ns += (step * 1e9) as i64;
                report(time_ns, p, x_recv)
            });
            let rows = replayed(ParameterProfile::Rfc5348, reports.collect(), Vec::new(), i64::MAX);
            for row in rows.iter().filter(|row| row.report.is_some()) {
                let Decision { x, x_calc, x_limit, .. } = row.decision;
                prop_assert!(x <= x_calc.unwrap() * (1.0 + 1e-12) || x <= 1000.0 / 64.0);
                prop_assert!(x_limit.is_none_or(|limit| x <= limit || x <= 1000.0 / 64.0));
            }
        }
    }
}
