use proptest::prelude::*;

use super::*;
use crate::input::text::{TextFormat, detect};
use crate::packet::logged_variables::Unit;

type Row = (i64, &'static str, Unit, f64);

fn read(text: &str) -> (Vec<VariableSample>, TcpVars, Vec<Outcome>) {
    let mut log = TcpVars::default();
    let mut packet = Packet::default();
    let outcomes = text.lines().map(|line| log.read(1, line.as_bytes(), &mut packet)).collect();
    (log.take_samples(), log, outcomes)
}

fn rows(samples: &[VariableSample]) -> Vec<Row> {
    samples.iter().map(|s| (s.time_ns / 1_000_000, s.name, s.unit, s.value)).collect()
}

#[test]
fn test_columns_in_every_notation() {
    let expected = [
        (500, "cwnd", Unit::Packets, 10.0),
        (500, "srtt", Unit::Ms, 32.5),
        (1500, "cwnd", Unit::Packets, 11.0),
        (1500, "srtt", Unit::Ms, 33.0),
    ];
    for text in [
        "time,cwnd_packets,srtt_ms,note\n0.5,10,32.5,x\n1.5,11,33,y\n",
        "time;cwnd [packets];SRTT(us)\n0.5;10;32500\n1.5;11;33000\n",
        "\u{feff}\"time\",\"cwnd_pkts\",\"srtt_s\"\n0.5,10,0.0325\n1.5,11,0.033\n",
        "# time snd_cwnd_segments srtt_ms\n0.5   10 32.5\n  1.5 11 33\n",
        "t\tcwnd_packets\tssthresh_packets\tsrtt_ms\n0.5\t10\t2147483647\t32.5\n1.5\t11\t\t33\n",
    ] {
        let (samples, log, outcomes) = read(text);
        assert_eq!(rows(&samples), expected, "{text}");
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Other));
        assert!(log.caveats().is_empty());
        assert_eq!(detect(text.as_bytes()), Some(TextFormat::TcpVars), "{text}");
    }
}

#[test]
fn test_one_line_of_names_is_enough_for_many_numbers() {
    let text = format!("time,cwnd_packets\n{}", "0.5,10\n".repeat(1000));
    assert_eq!(detect(text.as_bytes()), Some(TextFormat::TcpVars));
}

#[test]
fn test_units_that_are_not_named_are_reported() {
    let (samples, log, _) = read("time,fid,cwnd,ssthresh,rtt_s\n0.100000,1,2.0000,80.00,0.0320\n");
    let expected = [
        (100, "cwnd", Unit::Packets, 2.0),
        (100, "ssthresh", Unit::Packets, 80.0),
        (100, "rtt", Unit::Ms, 32.0),
    ];
    assert_eq!(rows(&samples), expected);
    assert!(log.caveats()[0].contains("packets"));
}

#[test]
fn test_connections_in_columns_and_comments() {
    for text in [
        "time,src,sport,dst,dport,cwnd\n1,10.0.0.1,5000,10.0.0.2,80,7\n",
        "time,src,dst,cwnd\n1,10.0.0.1:5000,10.0.0.2:80,7\n",
        "# 10.0.0.1:5000 > 10.0.0.2:80\ntime cwnd\n1 7\n",
        "# connection 10.0.0.1:5000->10.0.0.2:80\ntime,cwnd\n1,7\n",
        "# src=10.0.0.1:5000, dst=10.0.0.2:80\ntime,cwnd\n1,7\n",
    ] {
        let (samples, ..) = read(text);
        let ends = samples[0].endpoints;
        assert_eq!(
            (ends.src, ends.src_port, ends.dst, ends.dst_port),
            (0x0a00_0001, 5000, 0x0a00_0002, 80),
            "{text}"
        );
        assert_eq!((ends.family, ends.protocol), (Family::V4, 6));
    }
}

#[test]
fn test_connections_without_addresses_have_names() {
    let (samples, log, _) = read("time,flow,cwnd\n1,7,10\n1,8,11\n2,7,12\n");
    let name = |address: u128| log.hosts().and_then(|hosts| hosts.get(address as u32)).map(str::to_owned);
    let names: Vec<_> = samples.iter().filter_map(|sample| name(sample.endpoints.src)).collect();
    assert_eq!(names, ["flow 7", "flow 8", "flow 7"]);
    assert_eq!(name(samples[0].endpoints.dst).as_deref(), Some("unknown"));

    let (samples, log, _) = read("time,src,dst,cwnd\n1,alice,bob,10\n");
    let hosts: Vec<_> = log.hosts.iter().collect();
    assert_eq!((hosts, samples[0].endpoints.family), (vec!["alice", "bob"], Family::Name));
}

#[test]
fn test_traces_of_ns3_have_no_names() {
    let (samples, log, _) = read("0 15.529020800 10000\n0 15.566803200 11000\n");
    let expected = [(15_529, "value", Unit::One, 10_000.0), (15_566, "value", Unit::One, 11_000.0)];
    assert_eq!(rows(&samples), expected);
    assert!(log.caveats()[0].contains("no names"));
    assert_eq!(rows(&read("0.5 536\n").0), [(500, "value", Unit::One, 536.0)]);
    assert_eq!(rows(&read("flow time rtt_s\n0 1.5 0.029\n").0), [(1500, "rtt", Unit::Ms, 29.0)]);
}

#[test]
fn test_rows_that_do_not_fit_are_counted() {
    let (samples, _, outcomes) = read("no names\ntime,cwnd\nx,1\n1\n1,x\n2,3,4\n");
    let wrong = [EXPECTED_NAMES, EXPECTED_TIME, EXPECTED_COLUMNS].map(Outcome::Wrong);
    assert_eq!(outcomes, [wrong[0], Outcome::Other, wrong[1], wrong[2], Outcome::Other, Outcome::Other]);
    assert_eq!(rows(&samples), [(2000, "cwnd", Unit::Packets, 3.0)]);
}

proptest! {
    #[test]
    fn test_any_lines_are_read(lines in prop::collection::vec(any::<Vec<u8>>(), 0..20), with_names: bool) {
        let mut log = TcpVars::default();
        let mut packet = Packet::default();
        if with_names {
            log.read(1, b"time,src,dst,sport,flow,cwnd", &mut packet);
        }
        for line in &lines {
            let _ = recognises(line);
            prop_assert_ne!(log.read(1, line, &mut packet), Outcome::Packet);
        }
    }

    #[test]
    fn test_any_columns_are_read(text in "[-a-z0-9_.,:#\\[\\]\t\n ]{0,300}") {
        let mut log = TcpVars::default();
        let mut packet = Packet::default();
        for line in text.lines() {
            log.read(1, line.as_bytes(), &mut packet);
        }
        prop_assert!(log.take_samples().iter().all(|sample| sample.value.is_finite()));
    }
}
