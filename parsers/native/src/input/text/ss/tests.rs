use proptest::prelude::*;

use super::*;
use crate::input::text::{TextFormat, detect};

const SOCKET: &str = "ESTAB 0      30408  10.74.1.1:35808 10.74.2.2:5202";
const INFO: &str = "reno wscale:10,10 rto:248 rtt:46.262/4.757 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:4 \
    ssthresh:3 bytes_sent:69541 bytes_retrans:20272 bytes_acked:43478 segs_out:51 send 1001600bps lastsnd:8 \
    pacing_rate 1201912bps delivery_rate 712552bps delivered:32 busy:392ms unacked:4 retrans:0/14 \
    rcv_space:14480 notsent:24616 minrtt:0.01 snd_wnd:82944";

fn read(text: &str) -> (Vec<VariableSample>, Vec<String>, Vec<Outcome>) {
    let mut ss = Ss::default();
    let mut packet = Packet::default();
    let outcomes = text.lines().map(|line| ss.read(1, line.as_bytes(), &mut packet)).collect();
    (ss.take_samples(), ss.caveats(), outcomes)
}

fn value(samples: &[VariableSample], name: &str) -> Option<f64> {
    samples.iter().find(|sample| sample.name == name).map(|sample| sample.value)
}

#[test]
fn test_one_line_and_two_lines_say_the_same() {
    let one = read(&format!("# 1795247631.602526 snd\n{SOCKET} {INFO}     \n"));
    let two = read(&format!(
        "# 1795247631.602526 snd\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\n{SOCKET} \n\t {INFO}\n"
    ));
    assert_eq!(one.0, two.0);
    assert!(one.2.iter().chain(&two.2).all(|outcome| *outcome == Outcome::Other));
    assert!(one.1.is_empty() && two.1.is_empty());
    let expected = [
        ("cwnd", 4.0),
        ("ssthresh", 3.0),
        ("srtt", 46.262),
        ("rttvar", 4.757),
        ("minrtt", 0.01),
        ("rto", 248.0),
        ("mss", 1448.0),
        ("unacked", 4.0),
        ("retransmits", 14.0),
        ("send_rate", 1_001_600.0),
        ("pacing_rate", 1_201_912.0),
        ("delivery_rate", 712_552.0),
        ("snd_wnd", 82_944.0),
        ("notsent", 24_616.0),
    ];
    for (name, expected) in expected {
        assert_eq!(value(&one.0, name), Some(expected), "{name}");
    }
    let ends = one.0[0].endpoints;
    assert_eq!((ends.src, ends.src_port), (0x0a4a_0101, 35808));
    assert_eq!((ends.dst, ends.dst_port, ends.protocol), (0x0a4a_0202, 5202, 6));
    assert!(one.0.iter().all(|sample| sample.time_ns == 1_795_247_631_602_526_000));
}

#[test]
fn test_times_of_every_form() {
    let expected = 1_795_247_640_500_000_000;
    for line in [
        "1795247640.500000000",
        "# 1795247640.5",
        "#1795247640.5 host",
        "2026-11-21T07:54:00,500000000+00:00",
        "2026-11-21 07:54:00.5",
        "# 2026-11-21T08:54:00.5+01:00",
    ] {
        let (samples, caveats, outcomes) = read(&format!("{line}\n{SOCKET} {INFO}\n"));
        assert_eq!(outcomes, [Outcome::Other; 2], "{line}");
        assert!(!samples.is_empty() && caveats.is_empty());
        assert!(samples.iter().all(|sample| sample.time_ns == expected), "{line}");
    }
    // At the start of each line, as printed by `ts`.
    for stamp in ["1795247640.5", "2026-11-21T07:54:00.5Z", "2026-11-21 07:54:00.5"] {
        let (samples, ..) = read(&format!("{stamp} {SOCKET}\n{stamp} \t {INFO}\n"));
        assert!(!samples.is_empty(), "{stamp}");
        assert!(samples.iter().all(|sample| sample.time_ns == expected), "{stamp}");
    }
}

#[test]
fn test_without_times_samples_are_numbered() {
    let other = SOCKET.replace("35808", "35809");
    let once = format!("{SOCKET}\n\t {INFO}\n{other}\n\t {INFO}\n");
    let header = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n";
    for text in [once.repeat(3), format!("{header}{once}").repeat(3)] {
        let (samples, caveats, _) = read(&text);
        let mut times: Vec<i64> = samples.iter().map(|sample| sample.time_ns / 1_000_000_000).collect();
        times.dedup();
        assert_eq!(times, [1, 2, 3]);
        assert_eq!(caveats.len(), 1);
    }
}

#[test]
fn test_columns_that_the_command_line_adds_or_takes() {
    for socket in [
        "tcp   ESTAB 0      0      10.74.1.1:35808 10.74.2.2:5202",
        "0      0      10.74.1.1:35808 10.74.2.2:5202",
        "ESTAB 0      0      [::ffff:10.74.1.1]:35808 [::ffff:10.74.2.2]:5202 users:((\"iperf3\",pid=4,fd=5)) ino:267225 sk:1 <->",
        "ESTAB 0      0      10.74.1.1%eth0:35808 10.74.2.2:5202 timer:(on,204ms,0)",
    ] {
        let (samples, _, outcomes) =
            read(&format!("1795247640\n{socket}\n\t skmem:(r0,rb131072) ts sack {INFO}\n"));
        assert_eq!(outcomes, [Outcome::Other; 3], "{socket}");
        assert_eq!(samples[0].endpoints.src_port, 35808, "{socket}");
        assert_eq!(samples[0].endpoints.src, 0x0a4a_0101);
    }
}

#[test]
fn test_what_is_no_connection_gives_nothing() {
    let text = "LISTEN 0 4096 0.0.0.0:22 0.0.0.0:*\n\t cubic cwnd:10\n\
        udp   UNCONN 0 0 127.0.0.1:323 0.0.0.0:*\n\n";
    let (samples, _, outcomes) = read(text);
    assert!(samples.is_empty());
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Other), "{outcomes:?}");
}

#[test]
fn test_what_ss_did_not_print_is_counted() {
    let text = format!("ss: command not found\n\t {INFO}\nESTAB 0 0 host.example:ssh other:1\nESTAB 0 0\n");
    let (samples, _, outcomes) = read(&text);
    assert!(samples.is_empty());
    assert_eq!(outcomes[1], Outcome::Wrong(NO_SOCKET));
    assert_eq!([outcomes[0], outcomes[2], outcomes[3]], [Outcome::Wrong(EXPECTED); 3]);
}

#[test]
fn test_rates_with_units_and_values_out_of_range() {
    let (samples, ..) =
        read(&format!("{SOCKET} x cwnd:1e999 rto:-1 rtt:nan/0.5 pacing_rate 12.5Mbps send inf cwnd:"));
    assert_eq!(value(&samples, "pacing_rate"), Some(12.5e6));
    assert_eq!(value(&samples, "rttvar"), Some(0.5));
    for name in ["cwnd", "rto", "srtt", "send_rate"] {
        assert_eq!(value(&samples, name), None, "{name}");
    }
    assert_eq!(value(&samples, "retransmits"), Some(0.0));
}

#[test]
fn test_it_is_recognised() {
    for text in [format!("# 1.5 snd\n{SOCKET} {INFO}\n"), format!("{SOCKET}\n\t {INFO}\n")] {
        assert_eq!(detect(text.as_bytes()), Some(TextFormat::Ss));
    }
}

proptest! {
    #[test]
    fn test_any_lines_are_read(lines in prop::collection::vec(any::<Vec<u8>>(), 0..20)) {
        let mut ss = Ss::default();
        let mut packet = Packet::default();
        for line in &lines {
            let _ = recognises(line);
            prop_assert_ne!(ss.read(1, line, &mut packet), Outcome::Packet);
        }
    }

    #[test]
    fn test_tampered_lines_are_read(at in 0_usize..600, byte: u8, cut in 0_usize..600) {
        let mut ss = Ss::default();
        let mut packet = Packet::default();
        let mut text = format!("# 1795247631.6 snd\n{SOCKET}\n\t {INFO}\n{SOCKET} {INFO}\n").into_bytes();
        if let Some(place) = text.get_mut(at) {
            *place = byte;
        }
        text.truncate(text.len() - cut.min(text.len()));
        for line in text.split(|byte| *byte == b'\n') {
            ss.read(1, line, &mut packet);
        }
        prop_assert!(ss.take_samples().iter().all(|sample| sample.value.is_finite()));
    }
}
