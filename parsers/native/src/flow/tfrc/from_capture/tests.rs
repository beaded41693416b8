use proptest::prelude::*;

use super::packet_outcomes::{NamedBy, OutcomeRun, PacketOutcome, ReportedOutcomes};
use super::*;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::tfrc::findings::FindingKind;
use crate::tfrc::profile::Profile;

const MS: i64 = 1_000_000;
const RTT_MS: i64 = 100;

struct Script {
    ends: CapturedEnds,
    samples: TfrcSamples,
    packet: u64,
}

impl Script {
    fn new(profile: Profile) -> Self {
        let setup =
            CarrierSetup { receiver: profile.receiver(), sender: profile.sender(1000.0), is_whole: true };
        let samples = TfrcSamples {
            feedback: BoundedSamples::new(true, 10_000),
            loss_events: BoundedSamples::new(true, 10_000),
            loss_intervals: BoundedSamples::new(true, 10_000),
            findings: BoundedSamples::new(true, 10_000),
        };
        Self { ends: CapturedEnds::new(setup), samples, packet: 0 }
    }

    fn at(&mut self, time_ns: i64) -> PacketRef {
        self.packet += 1;
        PacketRef { flow: 0, side: Side::Low, time_ns, packet: self.packet }
    }

    fn data(&mut self, time_ms: i64, seq: u64) {
        let at = self.at(time_ms * MS);
        let rtt = Some(RTT_MS as f64 / 1e3);
        let packet = DataPacket { seq, rtt, bytes: 1000, ..DataPacket::default() };
        self.ends.on_data(at, &packet, &mut self.samples);
    }

    fn report(&mut self, time_ms: i64, sequence: u64, p: f64, x_recv: f64) {
        self.report_after(RTT_MS, time_ms, sequence, p, x_recv);
    }

    fn report_after(&mut self, rtt_ms: i64, time_ms: i64, sequence: u64, p: f64, x_recv: f64) {
        let at = self.at(time_ms * MS);
        let r_sample = Some((rtt_ms as f64 / 1e3, RttBy::Ack));
        let (sequence, p, x_recv) = (Some(sequence), Some(p), Some(x_recv));
        let reported = Reported { sequence, p, x_recv, r_sample, shows_sending: true, ..Reported::default() };
        self.ends.on_report(at, &reported, &mut self.samples);
    }

    fn found(&self, kind: FindingKind) -> Vec<FindingSample> {
        self.samples.findings.kept.iter().filter(|sample| sample.finding.kind == kind).copied().collect()
    }

    fn last(&self) -> FeedbackSample {
        *self.samples.feedback.kept.last().unwrap()
    }
}

/// Ten packets and a report each 100 ms; `lost` neither pass nor arrive.
fn at_the_receiver(lost: &[u64]) -> Script {
    let mut script = Script::new(Profile::Rfc5348);
    for number in 0..400 {
        let time_ms = number as i64 * 10;
        if !lost.contains(&number) {
            script.data(time_ms, number);
        }
        if number % 10 == 9 {
            script.report(time_ms, number, 0.0, 100_000.0);
        }
    }
    script.ends.finish((0, Side::Low), &mut script.samples);
    script
}

#[test]
fn test_a_receiver_counts_what_is_missing() {
    let script = at_the_receiver(&[101, 102, 203, 304]);
    let kept = script.samples.loss_events.kept.iter();
    let events: Vec<_> = kept.filter(|event| !event.is_inferred).collect();
    assert_eq!(events.iter().map(|event| event.start).collect::<Vec<_>>(), [101, 203, 304]);
    assert_eq!(events[0].lost_ns, 1_010 * MS);
    assert_eq!(script.ends.summary().loss_events, Some(3));
    let last = script.last();
    assert!((last.x_recv.unwrap() - 100_000.0).abs() < 1e-3);
    // Two closed intervals of 102 and 101 packets, and the one that the equation gives
    let intervals: Vec<_> = script.samples.loss_intervals.kept.iter().rev().take(4).collect();
    let lengths: Vec<_> = intervals.iter().rev().map(|interval| interval.packets.unwrap()).collect();
    assert_eq!(lengths[..3], [96.0, 101.0, 102.0]);
    assert!(last.p.unwrap() > 0.0);
}

#[test]
fn test_loss_events_from_before_the_numbers_began_anew_still_count() {
    let mut script = at_the_receiver(&[101, 203]);
    let at = script.at(4_000 * MS);
    script.ends.restart(at, &mut script.samples);
    assert_eq!(script.ends.summary().loss_events, Some(2));
    for number in (0..100).filter(|number| *number != 50) {
        script.data(4_000 + 10 * number as i64, 1_000_000 + number);
    }
    assert_eq!(script.ends.summary().loss_events, Some(3));
}

#[test]
fn test_a_sender_that_yields_to_a_growing_queue_is_not_data_limited() {
    let taken_at = |sent_ms: usize| {
        let mut script = Script::new(Profile::Rfc5348);
        script.data(0, 0);
        for number in 1..=20 {
            script.report(100 * number, 0, 0.01, 100_000.0);
        }
        // R_sample is three times what it was: X_inst is about six tenths of X.
        script.report_after(3 * RTT_MS, 2_100, 0, 0.01, 100_000.0);
        let rfc = script.last().taken.unwrap().rfc.unwrap();
        let x = script.last().taken.unwrap().x;
        assert!(rfc.damping.unwrap().x_inst < 0.7 * x && x > 80_000.0);
        for number in 1..=10_u64 {
            script.data(2_100 + (number as i64) * sent_ms as i64, number);
        }
        script.report(2_100 + 10 * sent_ms as i64, 10, 0.01, 100_000.0);
        (1e6 / sent_ms as f64 / x, script.last().taken.unwrap().rfc.unwrap().is_data_limited)
    };
    let (share, is_limited) = taken_at(16);
    assert!((0.6..0.8).contains(&share) && !is_limited, "{share}");
    let (share, is_limited) = taken_at(40);
    assert!(share < 0.4 && is_limited, "{share}");
}

#[test]
fn test_losses_behind_the_capture_follow_from_the_receive_rate() {
    let mut script = Script::new(Profile::Linux);
    for number in 0..200_u64 {
        let time_ms = number as i64 * 10;
        script.data(time_ms, number);
        if number % 10 == 9 {
            // Of packets 100 to 109 three were lost.
            let (arrived, p) = if number == 109 { (7.0, 0.01) } else { (10.0, 0.0) };
            script.report(time_ms + RTT_MS, number, p, arrived * 10_000.0);
        }
    }
    let before: Vec<_> = script.samples.feedback.kept.iter().map(|report| report.inferred_p).collect();
    assert_eq!(before[9], Some((0.0, "receive_rate")));
    assert!(before[10].unwrap().0 > 0.0);
    script.ends.finish((0, Side::Low), &mut script.samples);
    let [event] = script.samples.loss_events.kept[..] else { panic!("one loss event") };
    assert!(event.is_inferred);
    assert_eq!((event.start, event.packets), (104, 3));
    assert_eq!(script.ends.summary().inferred_loss_events, Some(1));
    assert_eq!(script.ends.summary().loss_events, Some(0));
}

/// 200 packets, each 10 ms after the one before, and each 100 ms a report that names the arrived
/// ones.
fn named(outcomes: impl Fn(u64) -> Option<ReportedOutcomes>) -> Script {
    let mut script = Script::new(Profile::Rfc5348);
    for number in 0..200_u64 {
        let time_ms = number as i64 * 10;
        script.data(time_ms, number);
        if number % 10 == 9 {
            let at = script.at((time_ms + RTT_MS) * MS);
            let outcomes = outcomes(number);
            let (sequence, x_recv) = (Some(number), Some(100_000.0));
            let reported = Reported { sequence, x_recv, outcomes: outcomes.as_ref(), ..Reported::default() };
            script.ends.on_report(at, &reported, &mut script.samples);
        }
    }
    script.ends.finish((0, Side::Low), &mut script.samples);
    script
}

fn runs<const N: usize>(by: NamedBy, runs: [(u32, PacketOutcome); N]) -> Option<ReportedOutcomes> {
    let runs = runs.map(|(packets, outcome)| OutcomeRun { packets, outcome });
    Some(ReportedOutcomes { by, runs: runs.into() })
}

#[test]
fn test_losses_behind_the_capture_are_those_that_a_report_names() {
    // 104 and 106 lost, 150 marked; packets below are not named again.
    let script = named(|number| match number {
        109 => runs(
            NamedBy::AckVector,
            [
                (3, PacketOutcome::Came),
                (1, PacketOutcome::Lost),
                (1, PacketOutcome::Came),
                (1, PacketOutcome::Lost),
                (2, PacketOutcome::Came),
            ],
        ),
        159 => runs(
            NamedBy::AckVector,
            [(9, PacketOutcome::Came), (1, PacketOutcome::Marked), (5, PacketOutcome::Came)],
        ),
        _ => runs(NamedBy::AckVector, [(4, PacketOutcome::Came)]),
    });
    let events: Vec<_> =
        script.samples.loss_events.kept.iter().map(|event| (event.start, event.packets)).collect();
    assert_eq!(events, [(104, 2), (150, 1)]);
    assert_eq!(script.last().inferred_p.map(|(_, by)| by), Some("ack_vector"));
    assert_eq!(script.ends.summary().inferred_loss_events, Some(2));
}

#[test]
fn test_what_an_interval_had_no_room_for_is_lost_all_the_same() {
    // 108 is lost, which the report on 109 does not know yet.
    let script = named(|number| match number {
        ..=109 => runs(NamedBy::LossIntervals, [(number as u32 + 1, PacketOutcome::Came)]),
        _ => {
            let lossless = (number - 108) as u32;
            runs(
                NamedBy::LossIntervals,
                [
                    (lossless, PacketOutcome::Came),
                    (1, PacketOutcome::LostAmong(1)),
                    (108, PacketOutcome::Came),
                ],
            )
        }
    });
    let [event] = script.samples.loss_events.kept[..] else { panic!("one loss event") };
    assert_eq!((event.start, event.packets), (108, 1));
    // The open interval goes up to the packet that the last report names.
    let open = script.samples.loss_intervals.kept.iter().rev().find(|interval| interval.index == 0);
    assert_eq!(open.unwrap().inferred, Some(199.0 - 108.0 + 1.0));
}

#[test]
fn test_what_a_report_leaves_open_is_looked_at_only_now_and_then_if_it_is_much() {
    let all_open = ReportedOutcomes {
        by: NamedBy::AckVector,
        runs: vec![OutcomeRun { packets: u32::MAX, outcome: PacketOutcome::Open }],
    };
    let [mut looked_at, mut reports] = [0, 0];
    let mut script = Script::new(Profile::Rfc5348);
    for number in 0..8000_u64 {
        script.data(number as i64, number);
        let at = script.at(number as i64 * MS);
        let outcomes = if number == 0 {
            runs(NamedBy::AckVector, [(1, PacketOutcome::Came)])
        } else {
            Some(all_open.clone())
        };
        let reported =
            Reported { sequence: Some(number), outcomes: outcomes.as_ref(), ..Reported::default() };
        script.ends.on_report(at, &reported, &mut script.samples);
        if number >= 4000 {
            looked_at += usize::from(script.ends.downstream.latest.is_some());
            reports += 1;
        }
    }
    // 4000 packets are open, and 64 may be simulated for each that passes.
    assert!((reports / 70..reports / 50).contains(&looked_at), "{looked_at} of {reports}");
}

#[test]
fn test_a_lost_packet_without_data_is_no_loss_where_the_sender_says_so() {
    for (ndp, events) in [(0, 1), (1, 0)] {
        let mut script = Script::new(Profile::Rfc5348);
        for number in 0..40_u64 {
            let at = script.at(number as i64 * 10 * MS);
            let (bytes, ndp) = (if number == 20 { 0 } else { 1000 }, if number == 21 { ndp } else { 0 });
            let packet = DataPacket { seq: number, rtt: Some(0.1), bytes, ndp, ..DataPacket::default() };
            script.ends.on_data(at, &packet, &mut script.samples);
        }
        let outcomes = runs(
            NamedBy::AckVector,
            [(19, PacketOutcome::Came), (1, PacketOutcome::Lost), (20, PacketOutcome::Came)],
        );
        let at = script.at(400 * MS);
        let reported = Reported { sequence: Some(39), outcomes: outcomes.as_ref(), ..Reported::default() };
        script.ends.on_report(at, &reported, &mut script.samples);
        assert_eq!(script.ends.summary().inferred_loss_events, Some(events));
    }
}

#[test]
fn test_r_that_the_sender_reports_is_not_smoothed_again() {
    let mut script = Script::new(Profile::Rfc5348);
    script.data(0, 0);
    for (number, r) in [0.1, 0.2, 0.3].into_iter().enumerate() {
        let at = script.at(number as i64 * 100 * MS);
        let r_sample = Some((r, RttBy::Estimate));
        let reported = Reported { r_sample, p: Some(0.01), x_recv: Some(1e6), ..Reported::default() };
        script.ends.on_report(at, &reported, &mut script.samples);
        let taken = script.last().taken.unwrap();
        assert_eq!(taken.r, r);
        assert_eq!(taken.rfc.unwrap().damping, None);
    }
}

#[test]
fn test_a_packet_that_passes_twice_is_sent_once() {
    let mut script = Script::new(Profile::Rfc5348);
    for number in 0..40_u64 {
        script.data(number as i64 * 10, number);
        script.data(number as i64 * 10, number);
        if number % 10 == 9 {
            script.report(number as i64 * 10, number, 0.0, 100_000.0);
        }
    }
    let sent = script.last().taken.unwrap().rfc.unwrap().x_sent.unwrap();
    assert!((sent - 100_000.0).abs() < 1e-6, "{sent}");
}

#[test]
fn test_a_report_that_comes_late_is_found_and_one_behind_a_lost_one_is_not() {
    let mut script = Script::new(Profile::Rfc5348);
    for number in 0..100 {
        script.data(number as i64 * 10, number);
        if matches!(number, 9 | 19 | 59 | 69) {
            script.report(number as i64 * 10, number, 0.0, 100_000.0);
        }
    }
    let late = script.found(FindingKind::LateFeedback);
    assert_eq!(late.iter().map(|found| found.at.time_ns / MS).collect::<Vec<_>>(), [590]);
    assert!(late[0].finding.value.unwrap() > 0.39);
    let at = script.at(1_500 * MS);
    let reported = Reported { follows_gap: true, ..Reported::default() };
    script.ends.on_report(at, &reported, &mut script.samples);
    assert_eq!(script.found(FindingKind::LateFeedback).len(), 1);
}

#[test]
fn test_sending_faster_than_the_reports_allow_is_found() {
    let send = |step_ms: i64| {
        let mut script = Script::new(Profile::Rfc3448);
        script.data(0, 0);
        // One loss event in a hundred packets at 100 ms: 112 kB/s, or a packet each 8.9 ms.
        for number in 1..300_i64 {
            script.data(number * step_ms, number as u64);
            if number % 10 == 9 {
                script.report(number * step_ms, number as u64, 0.01, 200_000.0);
            }
        }
        script.found(FindingKind::AboveAllowedRate)
    };
    assert!(send(9).is_empty());
    let found = send(5);
    assert!(!found.is_empty());
    let finding = found.last().unwrap().finding;
    assert!((finding.limit.unwrap() - 112_333.0 * 8.0).abs() < 8.0, "{finding:?}");
    assert!((finding.value.unwrap() / 1.6e6 - 1.0).abs() < 0.1, "{finding:?}");
}

#[test]
fn test_without_reports_the_timer_halves_the_rate_and_the_sender_must_obey() {
    let mut script = Script::new(Profile::Rfc3448);
    for number in 0..30_i64 {
        script.data(number * 9, number as u64);
        if number % 10 == 9 {
            script.report(number * 9, number as u64, 0.01, 200_000.0);
        }
    }
    for number in 30..200_i64 {
        script.data(number * 9, number as u64);
    }
    let timeouts = script.found(FindingKind::NofeedbackTimeout);
    // Each is four round-trip times after the last report, or after the one before.
    assert_eq!(timeouts.iter().map(|found| found.at.time_ns / MS / 100).collect::<Vec<_>>(), [6, 10, 14]);
    assert!(timeouts[0].finding.value.unwrap() < 0.6 * timeouts[0].finding.limit.unwrap());
    assert!(!script.found(FindingKind::HalvingMissed).is_empty());
}

#[test]
fn test_a_silence_of_years_ends() {
    let mut script = Script::new(Profile::Rfc5348);
    script.data(0, 0);
    script.report(1, 0, 0.5, 1.0);
    script.data(i64::MAX / MS, 1);
    assert!(script.found(FindingKind::NofeedbackTimeout).len() <= 128);
}

proptest! {
    #[test]
    fn test_any_packets_give_finite_numbers(
        events in proptest::collection::vec(
            (any::<bool>(), any::<i64>(), prop_oneof![0_u64..40, any::<u64>()], any::<u32>(),
             proptest::option::of(0.0..1.0_f64), proptest::option::of(0.0..1e10_f64), any::<f64>(), any::<bool>(),
             proptest::option::of(proptest::collection::vec((0_u32..20, 0_u8..5), 1..6))),
            0..80,
        ),
        which in 0_usize..3,
    ) {
        let mut script = Script::new(Profile::ALL[which]);
        for (is_data, time_ns, seq, bytes, p, x_recv, rtt, ce, named) in events {
            let at = script.at(time_ns);
            if is_data {
                let packet = DataPacket { seq, rtt: Some(rtt), ce, bytes, ..DataPacket::default() };
                script.ends.on_data(at, &packet, &mut script.samples);
            } else {
                let intervals = [ReportedInterval { packets: f64::from(bytes), lost: None }];
                let sequence = Some(seq);
                let outcome = [PacketOutcome::Came, PacketOutcome::Marked, PacketOutcome::Lost, PacketOutcome::LostAmong(2), PacketOutcome::Open];
                let by = if ce { NamedBy::AckVector } else { NamedBy::LossIntervals };
                let run = |(packets, kind)| OutcomeRun { packets, outcome: outcome[usize::from(kind)] };
                let outcomes = named.map(|runs| ReportedOutcomes { by, runs: runs.into_iter().map(run).collect() });
                let outcomes = outcomes.as_ref();
                let r_sample = Some((rtt, if ce { RttBy::Ack } else { RttBy::Estimate }));
                let reported =
                    Reported { sequence, p, x_recv, r_sample, intervals: &intervals, outcomes, ..Reported::default() };
                script.ends.on_report(at, &reported, &mut script.samples);
            }
        }
        script.ends.finish((0, Side::Low), &mut script.samples);
        for report in &script.samples.feedback.kept {
            let rates = [report.p, report.inferred_p.map(|(p, _)| p)];
            prop_assert!(rates.into_iter().flatten().all(|p| (0.0..=1.0).contains(&p)));
            if let Some(taken) = report.taken {
                prop_assert!(taken.x.is_finite() && taken.x > 0.0 && taken.r.is_finite(), "{:?}", taken);
            }
        }
    }
}
