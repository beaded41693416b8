//! The numbers of published formulas and of the RFCs' procedures, worked out by evaluators that share
//! no code with this one: `tests/data/vectors`, where a README says how.

use serde_json::Value;

use super::equation::Equation;
use super::loss_events::LossEvent;
use super::loss_intervals::{Averaging, LossHistory};
use super::loss_tracker::{ArrivalContext, RefillingTracker};
use super::profile::{FirstInterval, LateArrival, ReceiverProfile, SenderProfile, initial_window};
use super::receive_record::{Arrival, ArrivalCounts, ReceiveRecord};
use super::round_trip::{CounterRtt, r_sample};
use super::sender::{Sender, Step};
use super::sequence_unwrapper::Unwrapper;
use super::small_packets::SmallPacketRate;
use super::{EPS_T, Report};
use crate::testing::vectors::vectors;

fn number(value: &Value) -> f64 {
    if value == "inf" { f64::INFINITY } else { value.as_f64().unwrap() }
}

/// Within the 12 digits of the vectors, and equal where they are infinite.
fn assert_near(found: f64, expected: &Value, what: &str) {
    let expected = number(expected);
    let is_near = found == expected || (found - expected).abs() <= 1e-9 * expected.abs();
    assert!(is_near, "{what}: {found} is not {expected}");
}

fn assert_optional(found: Option<f64>, expected: &Value, what: &str) {
    match found {
        Some(found) => assert_near(found, expected, what),
        None => assert!(expected.is_null(), "{what}: nothing instead of {expected}"),
    }
}

#[test]
fn test_the_throughput_equation() {
    for row in vectors("tfrc_equation.json") {
        let equation =
            Equation { b: number(&row["b"]), is_capped: row["cap"] == true, ..Equation::default() };
        let (p, rtt, s) = (number(&row["p"]), number(&row["rtt"]), number(&row["s"]));
        let t_rto = row["t_rto"].as_f64().unwrap_or(4.0 * rtt);
        let id = row["id"].to_string();
        assert_near(equation.rate(s, rtt, t_rto, p).unwrap(), &row["X"], &id);
        if !row["f"].is_null() {
            assert_near(equation.f(p), &row["f"], &id);
        }
    }
    for row in vectors("tfrc_f_lookup_crosscheck.json") {
        let scaled = (Equation::default().f(number(&row["p"])) * 1e6).floor();
        assert!((scaled - number(&row["f_scaled_1e6"])).abs() <= 1.0, "{row}");
    }
    for row in vectors("tfrc_veno.json") {
        let equation = Equation { b: number(&row["b"]), ..Equation::veno(number(&row["gamma"])).unwrap() };
        let (p, rtt, s) = (number(&row["p"]), number(&row["rtt"]), number(&row["s"]));
        assert_near(equation.rate(s, rtt, 4.0 * rtt, p).unwrap(), &row["X"], &row["id"].to_string());
    }
}

#[test]
fn test_the_inverse_of_the_equation() {
    for row in vectors("tfrc_inverse.json") {
        let equation = Equation { b: number(&row["b"]), ..Equation::default() };
        let (x, rtt, s) = (number(&row["X"]), number(&row["rtt"]), number(&row["s"]));
        let found = equation.inverse(s, rtt, 4.0 * rtt, x).unwrap();
        assert_near(found.p, &row["p"], &row["id"].to_string());
        assert_eq!(found.is_clipped, row["clipped"] == true);
    }
    for row in vectors("first_loss_interval.json") {
        let (x, rtt, s) = (number(&row["x_target"]), number(&row["rtt"]), number(&row["s"]));
        let x = if row["mode"] == "first_lost" { s / (2.0 * rtt) } else { x };
        let found = Equation::default().inverse(s, rtt, 4.0 * rtt, x).unwrap();
        assert_near(found.p, &row["p"], &row["id"].to_string());
        assert_near(1.0 / found.p, &row["interval"], &row["id"].to_string());
    }
}

#[test]
fn test_the_average_loss_interval() {
    for row in vectors("average_loss_interval.json") {
        let intervals: Vec<f64> = row["intervals"].as_array().unwrap().iter().map(number).collect();
        let df: Option<Vec<f64>> =
            row["DF_in"].as_array().map(|all| all.iter().skip(1).map(number).collect());
        let discounting = (row["discount"] == true).then(|| number(&row["threshold"]));
        let averaging = Averaging { discounting, ..Averaging::default() };
        let mut history = LossHistory::with(averaging, &intervals[1..], df.as_deref());
        let mean = history.mean(intervals[0], true).unwrap();
        let (id, expected) = (row["id"].to_string(), &row["expect"]);
        assert_near(mean.i_tot0, &expected["I_tot0"], &id);
        assert_near(mean.i_tot1, &expected["I_tot1"], &id);
        let names = if discounting.is_some() { ["W_tot0", "W_tot1"] } else { ["W_tot", "W_tot"] };
        assert_near(mean.w_tot0, &expected[names[0]], &id);
        assert_near(mean.w_tot1, &expected[names[1]], &id);
        assert_near(mean.i_mean, &expected["I_mean"], &id);
        assert_near(mean.p, &expected["p"], &id);
    }
}

/// The arrivals of a vector: `[seq, time]`, then possibly the RTT and whether it was marked.
fn arrivals(row: &Value) -> Vec<(Arrival, ArrivalContext)> {
    let mut numbers = Unwrapper::new(number(&row["seq_bits"]) as u32);
    let read = |arrival: &Value| {
        let rtt = arrival[2].as_f64().or(row["rtt"].as_f64()).unwrap();
        let ce = arrival[3] == true;
        let extended = numbers.extend(arrival[0].as_u64().unwrap());
        let arrival = Arrival { number: extended, time: number(&arrival[1]), ..Arrival::default() };
        (arrival, ArrivalContext { rtt, x_target: 1.0, s: 1.0, ce })
    };
    row["arrivals"].as_array().unwrap().iter().map(read).collect()
}

fn loss_profile(row: &Value) -> ReceiverProfile {
    let fills = row["late_arrival"] == "fill";
    ReceiverProfile {
        ndupack: number(&row["ndupack"]) as u32,
        late_arrival: if fills { LateArrival::Fill } else { LateArrival::Ignore },
        first_interval: row["first_interval"].as_f64().map_or(FirstInterval::Count, FirstInterval::Given),
        averaging: Averaging { discounting: None, ..Averaging::default() },
        ..ReceiverProfile::rfc5348()
    }
}

#[test]
fn test_loss_detection_declares_the_packets_and_counts_the_others() {
    for row in vectors("loss_detection.json").iter().filter(|row| row["late_arrival"] == "ignore") {
        let mut record = ReceiveRecord::new(number(&row["ndupack"]) as u32);
        let mut losses = Vec::new();
        for (arrival, _) in arrivals(row) {
            record.on_arrival(arrival, &mut losses);
        }
        let lost: Vec<(i64, f64)> = losses
            .iter()
            .flat_map(|loss| (loss.first..=loss.last).map(|number| (number, loss.time_of(number))))
            .collect();
        let expected = row["expect"]["lost"].as_array().unwrap();
        assert_eq!(lost.len(), expected.len(), "{}", row["id"]);
        for ((number, time), expected) in lost.into_iter().zip(expected) {
            assert_eq!(expected[0].as_i64(), Some(number), "{}", row["id"]);
            assert!((time - expected[1].as_f64().unwrap()).abs() <= EPS_T, "{}", row["id"]);
        }
    }
}

#[test]
fn test_loss_events_and_intervals() {
    for row in vectors("loss_detection.json") {
        let (id, expected) = (row["id"].to_string(), &row["expect"]);
        let mut tracker = RefillingTracker::new(&loss_profile(&row));
        let mut declared_at: Vec<usize> = Vec::new();
        let mut events: Vec<LossEvent> = Vec::new();
        for (at, (arrival, now)) in arrivals(&row).into_iter().enumerate() {
            tracker.on_arrival(arrival, &now);
            events.extend(tracker.now.ended());
            // A refill may take events back.
            declared_at.resize(tracker.now.events.count as usize, at);
        }
        let mut now = tracker.now;
        events.extend(now.events.current);
        assert_eq!(events.len(), expected["events"].as_array().unwrap().len(), "{id}");
        for ((event, at), expected) in
            events.iter().zip(&declared_at).zip(expected["events"].as_array().unwrap())
        {
            assert_eq!(expected["start_ext"].as_i64(), Some(event.start), "{id}");
            assert_eq!(expected["packets"].as_u64(), Some(event.packets), "{id}");
            assert_eq!(expected["declared_at"].as_u64(), Some(*at as u64), "{id}");
            assert!((event.time - number(&expected["t_loss"])).abs() <= EPS_T, "{id}");
        }
        let count = |name: &str| expected[name].as_u64().unwrap();
        let ArrivalCounts { duplicates, reordered, late_after_declared, early, .. } = now.record.counts;
        assert_eq!((duplicates, reordered), (count("duplicates"), count("reordered")), "{id}");
        assert_eq!((late_after_declared, early), (count("late_after_declared"), count("early")), "{id}");
        assert_eq!(now.record.first(), expected["first_seq"].as_i64(), "{id}");
        assert_eq!(Some(now.record.highest()), expected["highest_ext"].as_i64(), "{id}");
        let intervals: Vec<f64> =
            now.open_interval().into_iter().chain(now.closed_intervals().iter().copied()).collect();
        let expected_intervals: Vec<f64> =
            expected["intervals"].as_array().unwrap().iter().take(9).map(number).collect();
        assert_eq!(intervals, expected_intervals, "{id}");
        assert_near(now.p(0.0, 1.0), &expected["p"], &id);
    }
}

/// A sender after each thing that happens to it: its reports, and its timer wherever that runs out.
fn replay(row: &Value, mut sender: Sender) -> Vec<(f64, Option<Step>, Sender)> {
    let idle = row["idle_intervals"].as_array().unwrap();
    let mut states = Vec::new();
    let mut timer_set = number(&row["params"]["t0"]);
    let expire = |sender: &mut Sender, timer_set: f64| {
        let expiry = sender.timer();
        let covers = |span: &Value| number(&span[0]) <= timer_set && expiry <= number(&span[1]);
        let step = sender.on_no_feedback(idle.iter().any(covers));
        (expiry, Some(step), sender.clone())
    };
    for feedback in row["feedback"].as_array().unwrap() {
        let time = number(&feedback["t"]);
        while sender.timer() < time {
            states.push(expire(&mut sender, timer_set));
            timer_set = states[states.len() - 1].0;
        }
        sender.on_report(&Report {
            time,
            r_sample: feedback["r_sample"].as_f64(),
            x_recv: number(&feedback["x_recv"]),
            p: number(&feedback["p"]),
            is_data_limited: feedback["data_limited"] == true,
            losses: 0,
        });
        timer_set = time;
        states.push((time, None, sender.clone()));
    }
    let end = row["params"]["t_end"].as_f64().unwrap_or(f64::NEG_INFINITY);
    while sender.timer() <= end {
        states.push(expire(&mut sender, timer_set));
        timer_set = states[states.len() - 1].0;
    }
    states
}

fn step_of(expected: &Value) -> Option<Step> {
    match expected["action"].as_str()? {
        "halve" => Some(Step::Halved),
        "limit_xrecv" => Some(Step::LimitedByXRecv),
        "limit_xbps" => Some(Step::LimitedByXBps),
        "none" => Some(Step::Held),
        other => panic!("unknown action {other}"),
    }
}

fn check_sender(profile: impl Fn(f64) -> SenderProfile, expectations: &str) {
    for row in vectors("sender.json").iter().filter(|row| !row[expectations].is_null()) {
        let (id, params) = (&row["id"], &row["params"]);
        let profile = SenderProfile { mss: params["mss"].as_f64(), ..profile(number(&params["s"])) };
        let states = replay(row, Sender::new(&profile, number(&params["t0"])));
        let expected = row[expectations].as_array().unwrap();
        assert_eq!(states.len(), expected.len(), "{id}");
        for ((time, step, sender), expected) in states.iter().zip(expected) {
            let what = format!("{id} at {time}");
            assert_near(*time, &expected["t"], &what);
            assert_near(sender.x(), &expected["X"], &what);
            assert_near(sender.timer(), &expected["timer_expiry"], &what);
            assert_optional(sender.r(), &expected["R"], &what);
            assert_eq!(step.is_some(), expected["event"] == "nofeedback", "{what}");
            let is_report = step.is_none();
            match expectations {
                "expect_rfc5348" if is_report => {
                    assert_optional(sender.x_equation(), &expected["X_Bps"], &what);
                    assert_near(sender.recv_limit(), &expected["recv_limit"], &what);
                    assert_near(sender.x_inst(), &expected["X_inst"], &what);
                }
                "expect_rfc5348" => assert_eq!(*step, step_of(expected), "{what}"),
                _ if is_report => assert_optional(sender.x_equation(), &expected["X_calc"], &what),
                _ => {}
            }
        }
    }
}

#[test]
fn test_the_sender_of_rfc_5348() {
    check_sender(SenderProfile::rfc5348, "expect_rfc5348");
}

#[test]
fn test_the_sender_of_rfc_3448() {
    check_sender(SenderProfile::rfc3448, "expect_rfc3448");
}

#[test]
fn test_the_initial_window() {
    for row in vectors("initial_window.json") {
        assert_near(initial_window(number(&row["mss"])), &row["w_init"], "window");
    }
}

#[test]
fn test_round_trip_times_from_elapsed_times_and_window_counters() {
    for row in vectors("rtt_from_elapsed.json") {
        let found = r_sample(number(&row["t_ack"]), number(&row["t_sent"]), number(&row["elapsed"]));
        assert_optional(found, &row["r_sample"], "sample");
    }
    for row in vectors("ccval_rtt.json") {
        let packets = row["packets"].as_array().unwrap();
        for pair in row["exact4_pairs"].as_array().unwrap() {
            // The vectors list all pairs four apart, a receiver takes one after the other.
            let mut rtt = CounterRtt::default();
            let from = |packet: &&Value| packet[0].as_u64() >= pair[0].as_u64();
            let samples = packets
                .iter()
                .filter(from)
                .filter_map(|packet| rtt.on_ccval(packet[1].as_u64().unwrap() as u8, number(&packet[2])));
            assert_near(samples.take(1).sum(), &pair[2], &row["id"].to_string());
        }
    }
}

#[test]
fn test_small_packets() {
    for row in vectors("tfrc_sp.json") {
        let (rtt, p, s_true) = (number(&row["rtt"]), number(&row["p"]), number(&row["s_true"]));
        let found =
            SmallPacketRate::new(&Equation::default(), rtt, 4.0 * rtt, p, s_true, number(&row["H"])).unwrap();
        let id = row["id"].to_string();
        assert_near(found.x_nominal, &row["X_nominal"], &id);
        assert_near(found.x_payload, &row["X_payload"], &id);
        assert_near(found.x_limited, &row["X_after_10ms_limit"], &id);
        assert_eq!(found.x_limited < found.x_payload, row["limited"] == true);
    }
}
