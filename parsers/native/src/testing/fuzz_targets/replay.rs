//! Any bytes as the recording of a flow, and a sender that it drives.

use super::choices::Choices;
use crate::tfrc::ns2::PRINTED;
use crate::tfrc::replay::drive_sender::{RecordedReport, Recording, run};
use crate::tfrc::replay::inferred_feedback::{Loss, ObservedDirection, Sample, SentSegment, round_reports};
use crate::tfrc::replay::rfc_parameters::{EndParameters, ParameterProfile, Value, Variant, ends};
use crate::tfrc::replay::simulate::{Packet, ReturnPath, simulate};

/// Events of a recording; more only take longer.
const MOST_EVENTS: usize = 400;
/// A year of trace.
const MOST_NS: i64 = 365 * 86_400 * 1_000_000_000;

/// A recording of reports, one without, or a TCP connection.
pub fn replay(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let way = choices.u8();
    let segment_bytes = f64::from(choices.u16()) + 1.0;
    let Some(ends) = chosen_ends(&mut choices, segment_bytes) else { return };
    match way % 3 {
        0 => drive(&ends, &mut choices),
        1 => answer(&ends, &mut choices),
        _ => infer(&ends, &mut choices, segment_bytes),
    }
}

/// Both ends; None if they are refused.
fn chosen_ends(choices: &mut Choices, segment_bytes: f64) -> Option<EndParameters> {
    let profile = choices.one_of(&ParameterProfile::ALL);
    let variant = choices.one_of(&Variant::ALL);
    let handshake_rtt = choices.flag().then(|| seconds(choices)).filter(|rtt| *rtt > 0.0);
    let names = profile.parameters();
    let parameters: Vec<_> = (0..choices.u8() % 4)
        .map(|_| {
            let name = choices.one_of(&names).to_owned();
            (name, Value::Number(choices.one_of(&[0.0, 0.5, 1.0, 2.0, 8.0, 1e-300, 1e300, f64::NAN])))
        })
        .collect();
    ends(profile, variant, segment_bytes, handshake_rtt, &parameters).ok()
}

/// A duration with steps of 1 ns, or with steps of 1 ms.
fn duration_ns(choices: &mut Choices) -> i64 {
    let value = i64::from(choices.u16());
    if value & 1 == 1 { value >> 1 } else { value * 500_000 }
}

fn seconds(choices: &mut Choices) -> f64 {
    duration_ns(choices) as f64 / 1e9
}

/// A time after `time_ns`, at times much later.
fn next_ns(choices: &mut Choices, time_ns: i64) -> i64 {
    let jump = if choices.u8() == 0xff { i64::from(choices.u32()) * 1_000_000 } else { 0 };
    (time_ns + jump + duration_ns(choices)).min(MOST_NS)
}

/// A share from 0 to 1.
fn share(choices: &mut Choices) -> f64 {
    f64::from(choices.u32()) / f64::from(u32::MAX)
}

fn drive(ends: &EndParameters, choices: &mut Choices) {
    let mut recording = Recording::default();
    let mut time_ns = 0;
    for _ in 0..MOST_EVENTS {
        if choices.is_empty() {
            break;
        }
        time_ns = next_ns(choices, time_ns);
        let kind = choices.u8();
        if kind & 1 == 0 {
            recording.sends.push((time_ns, choices.u16().into()));
            continue;
        }
        recording.reports.push(RecordedReport {
            time_ns,
            r_sample: if kind & 2 == 0 { seconds(choices) } else { f64::NAN },
            p: if kind & 4 == 0 { share(choices) } else { 0.0 },
            x_recv: f64::from(choices.u32()),
            is_data_limited: (kind & 8 == 0).then_some(kind & 16 == 0),
            losses: (kind >> 5).into(),
        });
    }
    recording.end_ns = time_ns;
    check_steps(ends, &recording);
}

fn check_steps(ends: &EndParameters, recording: &Recording) {
    // ns-2's agent expires a timer that is due by as much later as its traces round times.
    let end_ns = recording.end_ns + (PRINTED * 1e9) as i64;
    for step in run(&ends.rules, recording) {
        assert!(step.decision.x >= 0.0, "{step:?}");
        assert!(step.decision.x_calc.is_none_or(|x| x >= 0.0), "{step:?}");
        assert!(step.decision.r.is_none_or(|r| r >= 0.0), "{step:?}");
        assert!((recording.start_ns..=end_ns).contains(&step.time_ns), "{step:?}");
    }
}

/// Reports of a receiver as the recording of a sender.
fn drive_by(ends: &EndParameters, sends: Vec<(i64, u32)>, reports: Vec<RecordedReport>) {
    let start_ns = sends.first().map_or(0, |(time_ns, _)| *time_ns);
    let end_ns = sends.last().map_or(start_ns, |(time_ns, _)| *time_ns);
    check_steps(ends, &Recording { start_ns, end_ns, reports, sends });
}

fn answer(ends: &EndParameters, choices: &mut Choices) {
    let path =
        ReturnPath { least: seconds(choices), reports_ns: Vec::new(), reveals_arrivals: choices.flag() };
    let mut packets: Vec<Packet> = Vec::new();
    let (mut sent_ns, mut number) = (0, 0_u64);
    while !choices.is_empty() && packets.len() < MOST_EVENTS {
        let kind = choices.u8();
        number = number.wrapping_add(if kind & 1 == 0 { 1 } else { choices.u16().into() });
        sent_ns = next_ns(choices, sent_ns);
        let arrived_ns = (kind & 2 == 0).then(|| next_ns(choices, sent_ns));
        let bytes = choices.u16().into();
        packets.push(Packet { number, sent_ns, arrived_ns, bytes, is_marked: kind & 4 != 0 });
    }
    let reports = simulate(ends, &packets, &path).into_iter().map(|(time_ns, report)| {
        assert!((0.0..=1.0).contains(&report.p), "{report:?}");
        assert!(report.x_recv >= 0.0, "{report:?}");
        RecordedReport {
            time_ns,
            r_sample: report.r_sample.unwrap_or(f64::NAN),
            p: report.p,
            x_recv: report.x_recv,
            is_data_limited: None,
            losses: report.losses,
        }
    });
    let reports = reports.collect();
    let sends = packets.iter().map(|packet| (packet.sent_ns, packet.bytes)).collect();
    drive_by(ends, sends, reports);
}

fn infer(ends: &EndParameters, choices: &mut Choices, segment_bytes: f64) {
    let mut observed = ObservedDirection { is_at_receiver: choices.flag(), ..ObservedDirection::default() };
    let mut sends = Vec::new();
    let (mut time_ns, mut end) = (0, 0.0);
    for _ in 0..MOST_EVENTS {
        if choices.is_empty() {
            break;
        }
        time_ns = next_ns(choices, time_ns);
        let time = time_ns as f64 / 1e9;
        match choices.u8() % 4 {
            0 => observed.samples.push(Sample { time, rtt: seconds(choices) + 1e-9 }),
            1 => observed.losses.push(Loss { time, packet: f64::from(choices.u16()) }),
            _ => {
                let bytes = choices.u16();
                end += f64::from(bytes) / segment_bytes;
                observed.sent.push(SentSegment { time, bytes: bytes.into(), end });
                sends.push((time_ns, bytes.into()));
            }
        }
    }
    let reports = round_reports(&observed, segment_bytes, &ends.receiver).into_iter().map(|report| {
        assert!((0.0..=1.0).contains(&report.p), "{report:?}");
        assert!(report.x_recv >= 0.0 && report.rtt > 0.0, "{report:?}");
        RecordedReport {
            time_ns: (report.time * 1e9).round() as i64,
            r_sample: report.rtt,
            p: report.p,
            x_recv: report.x_recv,
            is_data_limited: None,
            losses: 0,
        }
    });
    let reports = reports.collect();
    drive_by(ends, sends, reports);
}
