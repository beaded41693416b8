use proptest::prelude::*;

use super::*;
use crate::input::text::{TextFormat, detect};

const UDP_SERVER: &str = "\
Server listening on UDP port 5202 with pid 29417
[  1] local 10.75.2.2%d0 port 5202 connected with 10.75.1.1 port 52479 (sock=3) (peer 2.1.8) on 2026-11-21 07:54:00 (UTC)
[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS
[  1] 0.0000-1.0000 sec   166 KBytes  1.36 Mbits/sec   3.435 ms 17/159 (11%) 44.221/32.164/53.693/4.770 ms 148 pps
[  1] 1.0000-2.0000 sec   176 KBytes  1.44 Mbits/sec   3.529 ms 5/155 (3.2%) 43.838/32.133/50.991/4.504 ms 152 pps
[  1] 0.0000-2.0000 sec   698 KBytes  1.45 Mbits/sec   0.150 ms 22/314 (7%) 39.766/0.006/53.693/13.165 ms 151 pps
";
const UDP_CLIENT: &str = "\
Client connecting to 10.75.2.2, UDP port 5202 with pid 29438 (1 flows)
[  1] local 10.75.1.1%s0 port 52479 connected with 10.75.2.2 port 5202 (sock=3)
[ ID] Interval            Transfer     Bandwidth      Write/Err  PPS
[  1] 0.0000-1.0000 sec   185 KBytes  1.52 Mbits/sec  157/0      158 pps
[  1] 0.0000-4.0066 sec   736 KBytes  1.50 Mbits/sec  627/0      157 pps
[  1] Sent 629 datagrams
[  1] Server Report:
[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS
[  1] 0.0000-3.9576 sec   698 KBytes  1.45 Mbits/sec   0.150 ms 32/628 (5.1%) 39.766/0.006/53.693/0.274 ms
";
const IPERF3: &str = "\
Connecting to host 127.0.0.1, port 5301
[  5] local 127.0.0.1 port 60944 connected to 127.0.0.1 port 5301
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-0.50   sec   640 KBytes  10.5 Mbits/sec    2   1.12 MBytes       
[  5]   0.50-1.00   sec   640 KBytes  10.5 Mbits/sec    3   1.12 MBytes       
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-1.00   sec  2.50 MBytes  10.5 Mbits/sec    5             sender
[  5]   0.00-1.00   sec  2.50 MBytes  10.5 Mbits/sec                  receiver
";

type Row = (&'static str, f64, f64);

fn read(text: &str) -> (Vec<VariableSample>, Iperf, Vec<Outcome>) {
    let mut iperf = Iperf::default();
    let mut packet = Packet::default();
    let outcomes = text.lines().map(|line| iperf.read(1, line.as_bytes(), &mut packet)).collect();
    (iperf.take_samples(), iperf, outcomes)
}

/// Name, seconds after `start_ns`, value.
fn rows(samples: &[VariableSample], start_ns: i64) -> Vec<Row> {
    let seconds = |sample: &VariableSample| (sample.time_ns - start_ns) as f64 / 1e9;
    samples.iter().map(|sample| (sample.name, seconds(sample), sample.value)).collect()
}

#[test]
fn test_a_server_of_udp_reports_goodput_jitter_and_losses() {
    let (samples, iperf, _) = read(UDP_SERVER);
    let expected = [
        ("goodput", 1.0, 1.36e6),
        ("jitter", 1.0, 3.435),
        ("lost_packets", 1.0, 17.0),
        ("packets", 1.0, 159.0),
        ("goodput", 2.0, 1.44e6),
        ("jitter", 2.0, 3.529),
        ("lost_packets", 2.0, 5.0),
        ("packets", 2.0, 155.0),
    ];
    assert_eq!(rows(&samples, 1_795_247_640_000_000_000), expected);
    let ends = samples[0].endpoints;
    assert_eq!((ends.src, ends.src_port, ends.dst_port, ends.protocol), (0x0a4b_0101, 52479, 5202, 17));
    assert!(iperf.caveats()[0].contains("whole seconds"));
}

#[test]
fn test_a_client_of_udp_reports_what_the_server_answered() {
    let (samples, iperf, _) = read(UDP_CLIENT);
    let expected = [
        ("throughput", 1.0, 1.52e6),
        ("goodput", 3.9576, 1.45e6),
        ("jitter", 3.9576, 0.15),
        ("lost_packets", 3.9576, 32.0),
        ("packets", 3.9576, 628.0),
    ];
    assert_eq!(rows(&samples, 0), expected);
    assert!(samples.iter().all(|sample| sample.endpoints.src_port == 52479));
    assert!(iperf.caveats()[0].contains("count from the start"));
}

#[test]
fn test_the_text_of_iperf3() {
    let (samples, ..) = read(IPERF3);
    let window = 1.12 * 1024.0 * 1024.0;
    let of = |seconds, all, now| {
        [
            ("throughput", seconds, 10.5e6),
            ("cwnd", seconds, window),
            ("retransmits", seconds, all),
            ("interval_retransmits", seconds, now),
        ]
    };
    assert_eq!(rows(&samples, 0), [of(0.5, 2.0, 2.0), of(1.0, 5.0, 3.0)].concat());
    assert_eq!(samples[0].endpoints.protocol, 6);
}

#[test]
fn test_reports_of_enhanced_and_of_old_releases() {
    let head = "[  3] local 10.0.0.1 port 47302 connected with 10.0.0.2 port 5001\n";
    let enhanced = "[ ID] Interval        Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr\n\
        [  3] 0.0000-1.0000 sec  41.8 MBytes   350 Mbits/sec  335/0       4       87K/412(31) us  106387\n";
    let (samples, ..) = read(&format!("{head}{enhanced}"));
    let value = |name| samples.iter().find(|sample| sample.name == name).map(|sample| sample.value);
    assert_eq!(value("cwnd"), Some(87.0 * 1024.0));
    assert_eq!((value("srtt"), value("rttvar"), value("retransmits")), (Some(0.412), Some(0.031), Some(4.0)));

    let old = "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
        [  3]  0.0- 1.0 sec  1.25 MBytes  10.5 Mbits/sec   0.010 ms    3/  893 (0.34%)\n";
    let (samples, ..) = read(&format!("{head}{old}"));
    let values: Vec<_> = samples.iter().map(|sample| sample.value).collect();
    assert_eq!(values, [10.5e6, 0.01, 3.0, 893.0]);
    // Only a receiver knows jitter.
    assert_eq!(samples[0].endpoints.src_port, 5001);
}

#[test]
fn test_tests_in_both_directions_and_in_reverse() {
    let both = "[  5] local 10.0.0.1 port 40000 connected to 10.0.0.2 port 5201\n\
        [  7] local 10.0.0.1 port 40001 connected to 10.0.0.2 port 5201\n\
        [ ID][Role] Interval           Transfer     Bitrate\n\
        [  5][TX-C]   0.00-1.00   sec   640 KBytes  5.24 Mbits/sec\n\
        [  7][RX-C]   0.00-1.00   sec   640 KBytes  5.25 Mbits/sec\n\
        [SUM][RX-C]   0.00-1.00   sec   640 KBytes  5.25 Mbits/sec\n";
    let (samples, ..) = read(both);
    let ends: Vec<_> = samples.iter().map(|s| (s.name, s.endpoints.src_port, s.endpoints.dst_port)).collect();
    assert_eq!(ends, [("throughput", 40000, 5201), ("goodput", 5201, 40001)]);

    let reverse =
        IPERF3.replace("[  5] local", "Reverse mode, remote host 127.0.0.1 is sending\n[  5] local");
    assert!(read(&reverse).0.iter().all(|sample| sample.endpoints.src_port == 5301));
}

#[test]
fn test_a_report_of_an_unknown_test_is_counted() {
    let (samples, _, outcomes) = read("[  9]  0.0- 1.0 sec  1.25 MBytes  10.5 Mbits/sec\n[  9] 1 x\n");
    assert!(samples.is_empty());
    assert_eq!(outcomes, [Outcome::Wrong(UNKNOWN), Outcome::Wrong(EXPECTED)]);
}

#[test]
fn test_the_number_of_tests_is_bounded() {
    let mut iperf = Iperf::default();
    let mut packet = Packet::default();
    for id in 0..10 * MAX_TESTS {
        let line = format!("[{id}] local 10.0.0.1 port 1 connected with 10.0.0.2 port 2");
        iperf.read(1, line.as_bytes(), &mut packet);
    }
    assert_eq!(iperf.tests.len(), MAX_TESTS);
}

#[test]
fn test_it_is_recognised() {
    for text in [UDP_SERVER, UDP_CLIENT, IPERF3] {
        assert_eq!(detect(text.as_bytes()), Some(TextFormat::Iperf));
    }
}

proptest! {
    #[test]
    fn test_any_lines_are_read(lines in prop::collection::vec(any::<Vec<u8>>(), 0..20)) {
        let mut iperf = Iperf::default();
        let mut packet = Packet::default();
        for line in &lines {
            let _ = recognises(line);
            prop_assert_ne!(iperf.read(1, line, &mut packet), Outcome::Packet);
        }
    }

    #[test]
    fn test_tampered_lines_are_read(at in 0_usize..1000, byte: u8, which in 0_usize..3) {
        let mut iperf = Iperf::default();
        let mut packet = Packet::default();
        let mut text = [UDP_SERVER, UDP_CLIENT, IPERF3][which].as_bytes().to_vec();
        if let Some(place) = text.get_mut(at) {
            *place = byte;
        }
        for line in text.split(|byte| *byte == b'\n') {
            iperf.read(1, line, &mut packet);
        }
        prop_assert!(iperf.take_samples().iter().all(|sample| sample.value.is_finite()));
    }
}
