//! Lines as ns-2.35 printed them, whole, tampered with, and arbitrary.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::input::bytes::{Input, Progress};
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::input::text::tests::{packets_of, read_line};
use crate::input::text::{TextFormat, detect};
use crate::packet::batch::Batch;
use crate::packet::event::{Numbering, PROTOCOL_TFRC, TcpFlags, Transport};
use crate::packet::logged_variables::Unit;
use crate::testing::{analyse_bytes, analyse_bytes_as, check_tables};
use proptest::prelude::*;

/// One line of each form and kind.
const LINES: &str = "\
+ 0.2 2 0 tcpFriend 1032 ------- 1 2.0 3.0 0 0
- 2.492298 0 1 tcpFriend 1032 ----E-N 1 2.0 3.0 162 235 0 0x0 0 0
r 0.22533 1 3 tcpFriend 1032 ------- 1 2.0 3.0 0 0
d 0.884923 0 1 tcp 1040 ------- 2 4.0 5.0 5 140
+ 1.056352 5 1 ack 40 C------ 2 5.0 4.0 0 57 0 0x0 0 0
+ 1 4 0 tcp 40 ------- 2 4.0 5.0 0 56 -1 0xa 40 0
+ 1.12943 4 0 tcp 1040 ------- 2 4.0 5.0 1001 80 1 0x10 40 0
+ 2.004019 6 0 message 120 ------- 9 1.0.2.1 0.0.5.0 -1 7
s 1.000000000 _5_ AGT  --- 1 tcp 40 [0 0 0 0] ------- [5:0 3:0 32 0] [0 0] 0 0
D 3.332500382 _4_ RTR NRTE 268 tcp 552 [13a 4 5 800] ------- [5:0 3:0 29 4] [17 0] 1 0
r 1.001128667 _1_ RTR  --- 0 AODV 48 [0 ffffffff 0 800] ------- [0:255 -1:255 30 0] [0x2 1 1 [2 0] [0 4]] (REQUEST)
s 1.010389744 _1_ MAC  --- 0 RTS 44 [52e 2 1 0] 
s 1.009606078 _2_ MAC  --- 0 ARP 86 [0 ffffffff 2 806] ------- [REQUEST 2/2 0/1]
D 2.8 _3_ MAC  COL 480 tcp 610 [13a 3 2 800] [energy 999.4 ei 0.0 es 0.0 et 0.1 er 0.4] ------- [2:0 3:0 30 3] [173 0] 0 0
s -t 1.000000000 -Hs 2 -Hd -2 -Ni 2 -Nx 450.00 -Ny 50.00 -Nz 0.00 -Ne -1.000000 -Nl AGT -Nw --- -Ma 0 -Md 0 -Ms 0 -Mt 0 -Is 2.0 -Id 3.0 -It tcp -Il 40 -If 2 -Ii 1 -Iv 32 -Pn tcp -Ps 7 -Pa 0 -Pf 0 -Po 0 
d -t 1.014 -Hs 2 -Hd -2 -Ni 2 -Nx 4.0 -Ny 1.0 -Nz 0.0 -Ne 9.9 -Nl MAC -Nw COL -Ma 13a -Md 2 -Ms 3 -Mt 806 -P arp -Po REPLY -Pms 3 -Ps 3 -Pmd 2 -Pd 2 
d 1.06612737641685 -s 0 -d 1 -p tcpFriend -e 1032 -c 1 -i 52 -a 1 -x {2.0 3.0 44 ------- null}
+ 1 -s 2 -d -1 -p tcp -k AGT -i 1 -N:loc {50.00 250.00 0.00} -N:en -1.0 -M:dur 0 -M:s 0 -M:d 0 -M:t 0 -IP:s 2 -IP:sp 0 -IP:d 3 -IP:dp 0 -p tcp -e 40 -c 2 -i 1 -IP:ttl 32 -tcp:s 3 -tcp:a 0 -tcp:f 0 -tcp:o 0 
";

/// Lines that are understood but hold no packet.
const OTHERS: &str = "\
E 1.651689 4 5 TCP FAST_RECOVERY 2 7 3
h 0.5 -s 2 -d 0 -p tcpFriend -e 1032 -c 1 -i 0 -a 1 -x {2.0 3.0 -1 ------- null}
M 1.00000 0 (50.00, 50.00, 0.00), (190.63, 73.44), 10.00
N -t 1.000136 -n 1 -e 999.999746
SFESTs 1.014271130 _3_ 2 [3 -> 2] 1(1) to 2 [3 |2 ]
a 0.211152 8.28681
Q 0.211152 1040
0.1 1 2 0.0 0.0 0 0 0 0 0 0
0.00000  4  0  5  0  cwnd_ 1.000 
f t0.510714 a_o72 ntrue_loss_rate_ v0.111111
f -t 0.2620096 -s 0 -d 2 -n ndatapack_ -a (null) -v 2 -o 1 -T v
time: 0.14534  saddr: 0  sport: 0  daddr: 2  dport: 0  maxseq: 0    hiack: 0    seqno: 1    cwnd: 2.000  ssthresh: 20  dupacks: 0  rtt: 0.050  srtt: 0.050  rttvar: 0.025  bkoff: 1
";

/// Lines of other programs, or of other traces of ns-2.
const WRONG: &str = "\
V -t * -v 1.0a5 -a 0
+ -t 0.2 -s 2 -d 0 -p tcpFriend -e 1032 -c 1 -i 0 -a 1 -x {2.0 3.0 0 ------- null}
+ 1.0000 66 26 cbr 210 ------- 0 66.0 67.0 0 0 37.90 -122.30 48.90 -120.94
+ 0.2 2 0 tcpFriend 1032 ------- 1 2.0
+ 2 /NodeList/0/DeviceList/0/$ns3::PointToPointNetDevice/TxQueue/Enqueue
+ 1e99 2 0 tcp 40 ------- 1 2.0 3.0 0 0
";

fn read(line: &str) -> (Outcome, Packet) {
    read_with(&mut Ns2::default(), line)
}

fn read_with(reader: &mut Ns2, line: &str) -> (Outcome, Packet) {
    let mut packet = Packet::default();
    let outcome = read_line(reader, 1, line.as_bytes(), &mut packet);
    (outcome, packet)
}

fn seen_at(packet: &Packet) -> (Option<Event>, Option<PathPoint>) {
    (packet.event, packet.sighting.map(|sighting| sighting.point))
}

fn read_all(text: &str) -> Vec<Packet> {
    packets_of(&mut Ns2::default(), text.lines())
}

#[test]
fn test_every_form_is_recognised_and_read() {
    for line in LINES.lines() {
        assert_eq!(read(line).0, Outcome::Packet, "{line}");
        assert!(recognises(line.as_bytes()), "{line}");
    }
    for line in OTHERS.lines() {
        assert_eq!(read(line).0, Outcome::Other, "{line}");
    }
    for line in WRONG.lines() {
        assert!(matches!(read(line).0, Outcome::Wrong(_)), "{line}");
    }
    assert_eq!(detect(LINES.as_bytes()), Some(TextFormat::Ns2));
    assert_eq!(detect(OTHERS.as_bytes()), Some(TextFormat::Ns2));
    assert!(!recognises(b"+ 2 /NodeList/0/DeviceList/0/$ns3::PointToPointNetDevice/TxQueue/Enqueue"));
}

#[test]
fn test_a_nam_trace_and_a_satellite_trace_are_refused_by_name() {
    let reasons: Vec<_> = WRONG.lines().map(|line| read(line).0).collect();
    assert_eq!(&reasons[..2], [NAM, NAM]);
    let Outcome::Wrong(satellite) = reasons[2] else { panic!("{:?}", reasons[2]) };
    assert!(satellite.contains("satellite"));
}

#[test]
fn test_a_wired_line_in_full() {
    let (_, packet) = read("r 0.22533 1 3 tcpFriend 1032 ----E-N 1 2.0 3.7 5 11");
    assert_eq!(packet.time_ns, 225_330_000);
    assert_eq!((packet.wire_bytes, packet.captured_bytes), (1032, 1032));
    assert_eq!(seen_at(&packet), (Some(Event::Received), Some(PathPoint::Destination)));
    let network = &packet.network;
    let ends = network.endpoints;
    assert_eq!((ends.src, ends.src_port, ends.dst, ends.dst_port), (2, 0, 3, 7));
    assert_eq!((ends.protocol, network.transport), (PROTOCOL_TFRC, Transport::Tfrc));
    assert_eq!((network.payload_bytes, network.sequence, network.flow_id), (Some(1000), Some(5), Some(1)));
    assert_eq!((network.ecn, packet.sighting.unwrap().identity), (3, 11));
}

#[test]
fn test_where_on_its_path_a_packet_is() {
    use PathPoint::{Between, Destination, Source};
    for (line, event, point) in [
        ("+ 1 2 0 cbr 500 ------- 1 2.0 3.0 0 9", Event::Enqueued, Source),
        ("- 1 2 0 cbr 500 ------- 1 2.0 3.0 0 9", Event::Dequeued, Between),
        ("r 1 2 0 cbr 500 ------- 1 2.0 3.0 0 9", Event::Forwarded, Between),
        ("+ 1 0 3 cbr 500 ------- 1 2.0 3.0 0 9", Event::Enqueued, Between),
        ("r 1 0 3 cbr 500 ------- 1 2.0 3.0 0 9", Event::Received, Destination),
        ("d 1 0 3 cbr 500 ------- 1 2.0 3.0 0 9", Event::Dropped, Between),
        ("s 1 _2_ AGT  --- 9 cbr 500 [0 0 0 0] ------- [2:0 3:0 32 0] [0] 0 0", Event::Sent, Source),
        ("r 1 _2_ RTR  --- 9 cbr 500 [0 0 0 0] ------- [2:0 3:0 32 0] [0] 0 0", Event::Received, Between),
        ("s 1 _2_ RTR  --- 9 cbr 520 [0 0 0 0] ------- [2:0 3:0 30 0] [0] 0 0", Event::Sent, Source),
        ("f 1 _2_ RTR  --- 9 cbr 520 [0 0 0 0] ------- [2:0 3:0 30 0] [0] 0 0", Event::Sent, Source),
        ("f 1 _1_ RTR  --- 9 cbr 520 [0 0 0 0] ------- [2:0 3:0 30 0] [0] 0 0", Event::Forwarded, Between),
        ("r 1 _3_ MAC  --- 9 cbr 520 [0 0 0 0] ------- [2:0 3:0 30 0] [0] 0 0", Event::Received, Destination),
        ("r 1 _3_ AGT  --- 9 cbr 520 [0 0 0 0] ------- [2:0 3:0 30 0] [0] 0 0", Event::Received, Destination),
        ("D 1 _1_ IFQ  ARP 9 cbr 520 [0 0 0 0] ------- [2:0 3:0 30 0] [0] 0 0", Event::Dropped, Between),
    ] {
        assert_eq!(seen_at(&read(line).1), (Some(event), Some(point)), "{line}");
    }
}

#[test]
fn test_tcp_that_counts_packets() {
    let (_, data) = read("+ 1 4 0 tcp 1040 ---A--N 2 4.0 5.0 40 347");
    assert_eq!(data.network.numbering, Numbering::Packets);
    assert_eq!((data.network.tcp.seq, data.network.payload_bytes), (40, Some(1000)));
    assert_eq!((data.network.tcp.flags, data.network.ecn), (TcpFlags(0x80), 2));
    let (_, ack) = read("+ 1 5 1 ack 40 C------ 2 5.0 4.0 40 57 0 0x0 0 0");
    assert_eq!((ack.network.tcp.ack, ack.network.payload_bytes), (41, Some(0)));
    assert_eq!(ack.network.tcp.flags, TcpFlags(0x50));
    assert_eq!(ack.network.numbering, Numbering::Packets);
    let nothing_yet = read("+ 1 5 1 ack 40 ------- 2 5.0 4.0 -1 57").1;
    assert_eq!(nothing_yet.network.tcp.ack, 0);
}

#[test]
fn test_tcp_that_counts_bytes() {
    let (_, syn) = read("+ 1 4 0 tcp 40 ------- 2 4.0 5.0 0 56 -1 0xa 40 0");
    assert_eq!(syn.network.numbering, Numbering::Bytes);
    assert_eq!((syn.network.tcp.flags, syn.network.tcp.ack), (TcpFlags(0x0a), 0));
    let (_, data) = read("+ 1 4 0 tcp 1040 ------- 2 4.0 5.0 1001 80 1 0x10 40 0");
    assert_eq!((data.network.tcp.seq, data.network.tcp.ack), (1001, 1));
    assert_eq!(data.network.payload_bytes, Some(1000));
    let (_, pure) = read("s 1 _5_ AGT  --- 1 ack 40 [0 0 0 0] ------- [5:0 3:0 32 0] [1 2001] 0 0");
    assert_eq!((pure.network.tcp.ack, pure.network.tcp.flags), (2001, TcpFlags(0x10)));
}

#[test]
fn test_what_is_no_flow_is_counted_as_no_ip() {
    for line in
        LINES.lines().filter(|line| line.contains("RTS") || line.contains("arp") || line.contains("ODV"))
    {
        assert!(!read(line).1.is_ip && read(line).1.stop.is_some(), "{line}");
    }
    let update = "s 1 _4_ RTR  --- 3 message 32 [0 0 0 0] ------- [4:255 -1:255 32 0] ";
    assert!(!read(update).1.is_ip);
    assert!(!read("+ 1 4 0 udp 32 ------- 2 4.0 -1.-1 0 56").1.is_ip);
}

#[test]
fn test_tfrc_is_numbered_where_the_trace_does_not() {
    let text = "\
s 1.0 _0_ AGT  --- 5 tcpFriend 544 [0 0 0 0] ------- [0:0 2:0 32 0] 
s 1.0 _0_ RTR  --- 5 tcpFriend 564 [0 0 0 0] ------- [0:0 2:0 30 1] 
s 1.1 _0_ AGT  --- 8 tcpFriend 544 [0 0 0 0] ------- [0:0 2:0 32 0] 
r 1.2 _2_ AGT  --- 5 tcpFriend 564 [0 0 0 0] ------- [0:0 2:0 32 0] 
r 1.2 _2_ AGT  --- 4 tcpFriend 564 [0 0 0 0] ------- [0:0 2:0 32 0] 
+ 1.3 7 0 tcpFriend 564 ------- 1 7.0 2.0 6 9
r 1.4 _2_ AGT  --- 9 tcpFriend 564 [0 0 0 0] ------- [7:0 2:0 32 0] 
";
    let numbers: Vec<_> = read_all(text).iter().map(|packet| packet.network.sequence).collect();
    assert_eq!(numbers, [Some(0), Some(0), Some(1), Some(0), None, Some(6), Some(6)]);
}

#[test]
fn test_hierarchical_addresses_find_their_nodes() {
    // Node 1 has address 0.1.0, node 7 is the station 1.0.1, node 6 its base station.
    let text = "\
+ 1.0 1 0 tcp 40 ------- 0 0.1.0.0 1.0.1.0 0 1
r 1.1 1 0 tcp 40 ------- 0 0.1.0.0 1.0.1.0 0 1
+ 1.1 0 6 tcp 40 ------- 0 0.1.0.0 1.0.1.0 0 1
r 1.2 0 6 tcp 40 ------- 0 0.1.0.0 1.0.1.0 0 1
r 1.3 _7_ AGT  --- 1 tcp 60 [13a 3 0 800] ------- [2048:0 4194305:0 28 4194305] [0 0] 0 0
s 1.3 _7_ AGT  --- 2 ack 40 [0 0 0 0] ------- [4194305:0 2048:0 32 0] [0 0] 0 0
+ 1.4 6 0 ack 40 ------- 0 1.0.1.0 0.1.0.0 0 2
r 1.5 6 0 ack 40 ------- 0 1.0.1.0 0.1.0.0 0 2
+ 1.5 0 1 ack 40 ------- 0 1.0.1.0 0.1.0.0 0 2
r 1.6 0 1 ack 40 ------- 0 1.0.1.0 0.1.0.0 0 2
";
    let packets = read_all(text);
    let numbers: Vec<_> = packets.iter().map(|packet| packet.number).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<u64>>(), "the order stays");
    let ends: Vec<_> = packets
        .iter()
        .filter(|packet| seen_at(packet).1 != Some(PathPoint::Between))
        .map(|packet| packet.number)
        .collect();
    assert_eq!(ends, [1, 5, 6, 10]);
}

#[test]
fn test_a_path_that_ends_ends_at_its_destination() {
    // Without an answer, no line reveals 0.1.0's node: only the end does.
    let text = "\
+ 1.0 2 0 cbr 40 ------- 0 0.0.2.0 0.1.0.0 0 1
r 1.1 2 0 cbr 40 ------- 0 0.0.2.0 0.1.0.0 0 1
+ 1.1 0 1 cbr 40 ------- 0 0.0.2.0 0.1.0.0 0 1
r 1.2 0 1 cbr 40 ------- 0 0.0.2.0 0.1.0.0 0 1
";
    let points: Vec<_> = read_all(text).iter().map(|packet| seen_at(packet).1.unwrap()).collect();
    assert_eq!(points, [PathPoint::Source, PathPoint::Between, PathPoint::Between, PathPoint::Destination]);
    // A packet at a base station may leave by radio.
    let by_radio = format!("s 0.5 _1_ RTR  --- 0 AODV 48 [0 0 0 0] ------- [1:255 -1:255 30 0] \n{text}");
    let last = read_all(&by_radio).pop().unwrap();
    assert_eq!(
        seen_at(&last).1,
        Some(PathPoint::Destination),
        "a routing packet in a flat run shows nothing"
    );
    let with_station = format!(
        "s 0.5 _7_ AGT  --- 0 cbr 48 [0 0 0 0] ------- [4194305:0 9:0 30 0] [0] 0 0\n\
         D 0.6 _1_ IFQ  --- 0 cbr 48 [0 0 0 0] ------- [4194305:0 9:0 30 0] [0] 0 0\n{text}"
    );
    let last = read_all(&with_station).pop().unwrap();
    assert_eq!(seen_at(&last).1, Some(PathPoint::Between));
}

#[test]
fn test_waiting_packets_are_bounded() {
    let mut text = String::new();
    for uid in 0..20_000 {
        text += &format!("r 1.2 0 {} cbr 40 ------- 0 0.0.2.0 0.1.0.0 0 {uid}\n", 1 + uid % 2);
    }
    let mut reader = Ns2::default();
    let held = text.lines().filter(|line| read_with(&mut reader, line).0 == Outcome::Held).count();
    assert!(held < 5_000, "{held}");
    assert_eq!(read_all(&text).len(), 20_000);
}

#[test]
fn test_variables_of_all_forms() {
    let mut reader = Ns2::default();
    for line in OTHERS.lines() {
        read_with(&mut reader, line);
    }
    let samples = reader.take_samples();
    let value = |name: &str| {
        samples.iter().filter(|sample| sample.name == name).map(|sample| sample.value).collect::<Vec<_>>()
    };
    assert_eq!((value("cwnd"), value("srtt")), (vec![1.0, 2.0], vec![50.0]));
    assert_eq!(value("data_packets"), [2.0]);
    let cwnd = samples.iter().find(|sample| sample.name == "cwnd").unwrap();
    assert_eq!((cwnd.unit, cwnd.endpoints.src, cwnd.endpoints.dst), (Unit::Packets, 4, 5));
    let caveats = reader.caveats();
    assert_eq!(caveats.len(), 2, "{caveats:?}");
    assert!(caveats.iter().any(|words| words.starts_with("1 line of a queue monitor was left out")));
    assert!(reader.take_samples().is_empty());
}

/// Delivery of the first flow's first direction.
fn delivery(text: &str) -> crate::flow::delivery::Delivery {
    let analysis = analyse_bytes(text.as_bytes().to_vec());
    let flow = analysis.carried.flows.get(0);
    flow.deliveries().unwrap().of(flow.watched().unwrap()).clone()
}

#[test]
fn test_a_drop_before_the_queue_was_sent_too() {
    let delivery = delivery(
        "d 1.0 2 0 cbr 40 ------- 0 2.0 3.0 0 1\n\
         + 1.1 2 0 cbr 40 ------- 0 2.0 3.0 1 2\n\
         d 1.1 2 0 cbr 40 ------- 0 2.0 3.0 1 2\n",
    );
    assert_eq!((delivery.sent, delivery.dropped, delivery.lost), (2, 2, 2));
}

#[test]
fn test_what_a_queue_holds_at_the_end_is_in_flight() {
    let delivery = delivery(
        "s 1.0 _0_ AGT  --- 5 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [0] 0 0\n\
         D 9.0 _0_ IFQ  END 5 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [0] 0 0\n",
    );
    assert_eq!((delivery.sent, delivery.dropped, delivery.lost, delivery.in_flight), (1, 0, 0, 1));
}

#[test]
fn test_an_arrival_at_link_and_agent_of_one_node_is_one() {
    let delivery = delivery(
        "+ 1.0 2 6 cbr 40 ------- 0 0.0.2.0 1.0.0.0 0 1\n\
         r 1.1 2 6 cbr 40 ------- 0 0.0.2.0 1.0.0.0 0 1\n\
         r 1.1 _6_ AGT  --- 1 cbr 40 [0 0 0 0] ------- [2:0 4194304:0 32 0] [0] 0 0\n",
    );
    assert_eq!((delivery.sent, delivery.received, delivery.duplicates), (1, 1, 0));
}

#[test]
fn test_a_trace_without_its_start_counts_an_arrival_once() {
    let delivery = delivery(
        "r 1.0 _2_ MAC  --- 4 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [0] 0 0\n\
         r 1.0 _2_ RTR  --- 4 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [0] 0 0\n\
         r 1.0 _2_ AGT  --- 4 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [0] 0 0\n\
         s 1.1 _0_ AGT  --- 5 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [1] 0 0\n\
         r 1.2 _2_ MAC  --- 5 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [1] 0 0\n\
         r 1.3 _2_ AGT  --- 5 cbr 544 [0 0 0 0] ------- [0:0 2:0 32 0] [1] 0 0\n",
    );
    assert_eq!((delivery.sent, delivery.received, delivery.unsent, delivery.duplicates), (1, 2, 1, 0));
    assert_eq!(delivery.delay.range.max_ns(), Some(200_000_000));
}

proptest! {
    #[test]
    fn test_any_bytes_are_read_without_panic(lines: Vec<Vec<u8>>) {
        let mut reader = Ns2::default();
        let mut packet = Packet::default();
        for (number, line) in lines.iter().enumerate() {
            let _ = (recognises(line), read_line(&mut reader, number as u64, line, &mut packet));
        }
        while reader.finish(&mut packet) {}
    }

    #[test]
    fn test_tampered_lines_are_read_without_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40), cut: prop::sample::Index,
    ) {
        let mut bytes: Vec<u8> = [LINES, OTHERS, WRONG].concat().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()));
        check_tables(analyse_bytes_as(bytes, "ns2"));
    }
}

/// Packets returned, and the source's counts.
fn count(text: &str, skips_passing: bool) -> (usize, [u64; 7], [i64; 2], Vec<u64>, usize) {
    let progress = Arc::new(Progress::default());
    let input = Input::from_reader(Box::new(Cursor::new(text.to_owned())), None, &progress);
    let mut reading = Reading::with_input("trace", input, None, &progress);
    if skips_passing {
        reading.skip_forwarded();
    }
    let mut batch = Batch::new(256);
    reading.fill(&mut batch, None).unwrap();
    let mut summary = SourceSummary::new("trace");
    let _ = reading.finish(&mut summary);
    let counts = [
        summary.packets,
        summary.tcp_packets,
        summary.udp_packets,
        summary.tfrc_packets,
        summary.non_ip_packets,
        summary.wire_bytes,
        summary.time_order.back.count,
    ];
    assert_eq!(progress.packets.load(Ordering::Relaxed), summary.packets);
    let at_nodes = summary.interfaces.iter().map(|interface| interface.1).collect();
    (batch.len(), counts, [summary.start_ns, summary.end_ns], at_nodes, summary.stops.len())
}

#[test]
fn test_packets_on_their_way_count_for_the_source_whether_they_are_given_or_not() {
    let mut way = String::new();
    for (uid, kind) in ["tcp", "ack", "cbr", "tcpFriend", "rtProtoDV"].iter().enumerate() {
        for step in
            ["+ 2 2 0", "- 2 2 0", "r 3 2 0", "+ 1.5 0 3", "- 0.5 0 3", "r 9 0 3", "d 4 0 3", "- 1 7 8"]
        {
            way.push_str(&format!("{step} {kind} 500 ------- 1 2.0 3.0 0 {uid}\n"));
        }
    }
    // Sent, received and dropped, and packets of no flow.
    assert_eq!(count(&way, true).0, 4 * 3 + 8);
    for text in [way.as_str(), LINES] {
        let all = count(text, false);
        let some = count(text, true);
        assert_eq!((all.1, all.2, &all.3, all.4), (some.1, some.2, &some.3, some.4));
        assert_eq!(all.0 as u64, all.1[0]);
    }
}
