//! Whole lines, each form as printed by tcpdump 4.99 or version 3.

use super::*;
use crate::input::text::BadLines;
use crate::input::text::tests::read_line;
use crate::packet::event::{Event, Family, Fragment, Layer, Reason, Stop, Transport};
use proptest::prelude::*;

/// All packets of a text, and counts of other and wrong lines.
struct Text {
    packets: Vec<Packet>,
    wrong: Vec<u64>,
    format: Tcpdump,
}

fn read_all(text: &str) -> Text {
    let mut format = Tcpdump::default();
    let (mut packets, mut wrong, mut bad_lines) = (Vec::new(), Vec::new(), BadLines::default());
    let mut packet = Packet::default();
    for (number, line) in (1..).zip(text.lines()) {
        match read_line(&mut format, number, line.as_bytes(), &mut packet) {
            Outcome::Packet => packets.push(packet),
            Outcome::Held | Outcome::Forwarded(_) | Outcome::Other => {}
            Outcome::Wrong(expected) => {
                bad_lines.add(number, expected);
                wrong.push(number);
            }
        }
    }
    while format.finish(&mut packet) {
        packets.push(packet);
    }
    Text { packets, wrong, format }
}

fn packets_of(text: &str) -> Vec<Packet> {
    let text = read_all(text);
    assert_eq!(text.wrong, [] as [u64; 0]);
    text.packets
}

fn packet_of(text: &str) -> Packet {
    let packets = packets_of(text);
    assert_eq!(packets.len(), 1, "{text}");
    packets[0]
}

/// Opening of a connection, data, its acknowledgement.
const CONNECTION: &str = "\
1.000000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [S], seq 3000000000, win 64240, options [mss 1460,sackOK,TS val 7 ecr 0,nop,wscale 10], length 0
1.010000 IP 10.0.0.2.80 > 10.0.0.1.4000: Flags [S.], seq 4294967295, ack 3000000001, win 65160, options [mss 1400], length 0
1.020000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [.], ack 1, win 63, length 0
1.030000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [P.], seq 1:28, ack 1, win 63, options [nop,nop,TS val 8 ecr 9], length 27: HTTP: GET / HTTP/1.1
1.040000 IP 10.0.0.2.80 > 10.0.0.1.4000: Flags [.], ack 28, win 64, length 0
";

#[test]
fn test_a_connection_has_the_numbers_of_the_wire() {
    let packets = packets_of(CONNECTION);
    let tcp: Vec<_> = packets.iter().map(|packet| packet.network.tcp().unwrap()).collect();
    assert_eq!(
        tcp.iter().map(|tcp| tcp.seq).collect::<Vec<_>>(),
        [3_000_000_000, u32::MAX, 3_000_000_001, 3_000_000_001, 0]
    );
    assert_eq!(tcp.iter().map(|tcp| tcp.ack).collect::<Vec<_>>(), [0, 3_000_000_001, 0, 0, 3_000_000_028]);
    assert_eq!((tcp[0].options.mss, tcp[0].options.window_scale), (Some(1460), Some(10)));
    let data = &packets[3];
    assert_eq!((data.number, data.time_ns, data.network.payload_bytes), (4, 1_030_000_000, Some(27)));
    assert_eq!((data.wire_bytes, data.network.header_bytes), (20 + 32 + 27, 32));
    assert_eq!((data.network.endpoints.src, data.network.endpoints.dst_port), (0x0a00_0001, 80));
    assert!(data.sighting.is_none() && data.event.is_none());
}

#[test]
fn test_two_lines_of_a_verbose_ipv4_packet() {
    let packet = packet_of(
        "07:53:26.956209 IP (tos 0x3,CE, ttl 63, id 50956, offset 0, flags [DF], proto TCP (6), length 53)\n    \
         10.0.0.2.80 > 10.0.0.1.4000: Flags [P.], cksum 0xc954 (correct), seq 5:6, ack 38, win 64, options \
         [nop,nop,TS val 1 ecr 2], length 1\n\t0x0000:  4500 0035\n",
    );
    let network = &packet.network;
    assert_eq!((network.ip_id, network.ttl, network.ecn), (Some(50_956), 63, 3));
    assert_eq!((packet.number, packet.wire_bytes, network.payload_bytes), (1, 53, Some(1)));
    assert_eq!(packet.time_ns, 28_406_956_209_000);
}

#[test]
fn test_one_line_of_a_verbose_ipv6_packet() {
    let packet = packet_of(
        "1.5 IP6 (flowlabel 0x30ac9, hlim 63, next-header TCP (6) payload length: 33) fd00:9:1::1.36844 > \
         fd00:9:2::2.5201: Flags [P.], cksum 0xc954 (correct), seq 5:6, ack 38, win 64, options [nop,nop,TS val 1 ecr 2], length 1",
    );
    assert_eq!((packet.network.endpoints.family, packet.network.ttl), (Family::V6, 63));
    assert_eq!((packet.wire_bytes, packet.network.endpoints.src_port), (73, 36_844));
}

#[test]
fn test_lengths_of_frames_interfaces_and_directions() {
    let text = read_all(
        "1.5 eth0  In  ifindex 2 8a:6c:f6:84:7f:33 ethertype IPv4 (0x0800), length 80: 10.0.0.1.1 > 10.0.0.2.2: UDP, length 32\n\
         1.6 wlan0 Out ifindex 3 8a:6c:f6:84:7f:33 ethertype IPv4 (0x0800), length 81: 10.0.0.1.1 > 10.0.0.2.2: UDP, length 33\n",
    );
    assert_eq!(text.packets.iter().map(|packet| packet.wire_bytes).collect::<Vec<_>>(), [80, 81]);
    assert_eq!(text.packets[0].event, Some(Event::Received));
    assert_eq!((text.packets[1].event, text.packets[1].interface), (Some(Event::Sent), 1));
    assert_eq!(text.format.places().iter().collect::<Vec<_>>(), ["eth0", "wlan0"]);
    assert!(text.format.caveats().is_empty());
}

#[test]
fn test_what_is_no_flow_is_counted() {
    let packets = packets_of(
        "1.0 ARP, Request who-has 10.0.0.1 tell 10.0.0.2, length 28\n\
         1.1 IP6 :: > ff02::16: HBH ICMP6, multicast listener report v2, 2 group record(s), length 48\n\
         1.2 STP 802.1d, Config, Flags [none], bridge-id 0000.00:00:00:00:00:00.0000, length 35\n\
         1.3 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, seq 1, length 64\n\
         1.4  [|ip6]\n\
         1.5 IP 10.0.0.1.5 > 10.0.0.2.6: sctp (1) [INIT] [init tag: 0]\n",
    );
    let stop = |layer, reason| Some(Stop { layer, reason });
    let stops: Vec<_> = packets.iter().map(|packet| packet.stop).collect();
    assert_eq!(
        stops,
        [
            stop(Layer::Link, Reason::Unknown(0x0806)),
            stop(Layer::Ipv6, Reason::Unknown(58)),
            stop(Layer::Link, Reason::Unknown(0)),
            stop(Layer::Ipv4, Reason::Unknown(1)),
            stop(Layer::Link, Reason::Cut),
            stop(Layer::Ipv4, Reason::Unknown(132)),
        ]
    );
    assert_eq!(
        packets.iter().map(|packet| packet.is_ip).collect::<Vec<_>>(),
        [false, true, false, true, false, true]
    );
}

#[test]
fn test_datagrams_fragments_and_cut_headers() {
    let packets = packets_of(
        "1.0 IP (tos 0x0, ttl 64, id 77, offset 0, flags [+], proto UDP (17), length 1420)\n    10.0.0.1.9000 > 10.0.0.2.9001: UDP, length 3000\n\
         1.1 IP (tos 0x0, ttl 64, id 77, offset 1400, flags [+], proto UDP (17), length 1420)\n    10.0.0.1 > 10.0.0.2: ip-proto-17\n\
         1.2 IP 10.0.0.1 > 10.0.0.2: ip-proto-17\n\
         1.3 IP 10.0.0.1.5 > 10.0.0.2.6:  [|tcp]\n\
         1.4 IP 10.0.0.1.5353 > 10.0.0.2.53: 0+ A? www.example.com. (33)\n\
         1.5 IP truncated-ip - 155 bytes missing! 10.0.0.1.5 > 10.0.0.2.6: Flags [P.], seq 6:166, ack 1, win 8192, length 160\n",
    );
    let payloads: Vec<_> = packets.iter().map(|packet| packet.network.payload_bytes).collect();
    assert_eq!(payloads, [Some(1392), Some(1400), None, None, Some(33), Some(5)]);
    assert_eq!(packets[1].network.transport, Transport::LaterFragment);
    assert_eq!(packets[1].network.fragment, Some(Fragment { id: 77, offset: 1400 }));
    assert_eq!((packets[2].network.endpoints.protocol, packets[2].network.has_ports), (17, false));
    assert_eq!(packets[3].stop, Some(Stop { layer: Layer::Tcp, reason: Reason::Cut }));
    assert_eq!(packets[5].wire_bytes, 45);
}

#[test]
fn test_quiet_lines_have_lengths_but_no_place_in_a_stream() {
    let text = read_all(
        "1.0 IP 10.0.0.1.5 > 10.0.0.2.6: tcp 1448\n1.1 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 12\n",
    );
    let networks: Vec<_> = text.packets.iter().map(|packet| packet.network).collect();
    assert_eq!((networks[0].transport, networks[0].payload_bytes), (Transport::Unread, Some(1448)));
    assert_eq!((networks[0].endpoints.protocol, networks[0].has_ports), (6, true));
    assert_eq!((networks[1].transport, networks[1].payload_bytes), (Transport::Udp, Some(12)));
    assert!(text.format.caveats().iter().any(|words| words.contains("-q")));
}

#[test]
fn test_names_instead_of_numbers() {
    let text = read_all("1.0 IP client.lan.40000 > server.lan.http: Flags [S], seq 5, win 9, length 0");
    let endpoints = text.packets[0].network.endpoints;
    assert_eq!((endpoints.family, endpoints.src_port, endpoints.dst_port), (Family::Name, 40_000, 80));
    assert_eq!(text.format.hosts().unwrap().get(endpoints.dst as u32), Some("server.lan"));
}

#[test]
fn test_versions_before_4() {
    let packets = packets_of(
        "12:00:00.000001 10.0.0.1.1024 > 10.0.0.2.80: S 123:123(0) win 8192 <mss 1460> (DF)\n\
         12:00:00.000002 10.0.0.2.80 > 10.0.0.1.1024: S 900:900(0) ack 124 win 8760 <mss 1460> (DF)\n\
         12:00:00.000003 10.0.0.1.1024 > 10.0.0.2.80: . ack 1 win 8760 (DF)\n\
         12:00:00.000004 IP 10.0.0.1.1024 > 10.0.0.2.80: P 1:513(512) ack 1 win 8760 (DF)\n\
         12:00:00.000005 arp who-has 10.0.0.1 tell 10.0.0.2\n\
         12:00:00.000006 10.0.0.1.53 > 10.0.0.2.99: udp 100\n",
    );
    let data = packets[3].network.tcp().unwrap();
    assert_eq!((data.seq, data.ack, packets[3].network.payload_bytes), (124, 901, Some(512)));
    assert_eq!(packets[5].network.payload_bytes, Some(100));
    assert!(!packets[4].is_ip);
}

#[test]
fn test_a_text_without_times() {
    let text = read_all(&CONNECTION.replace("1.0", "").replace("10000 ", "").replace("20000 ", ""));
    assert!(text.packets.len() < 5);
    let without: String = CONNECTION.lines().map(|line| format!("{}\n", &line[9..])).collect();
    let text = read_all(&without);
    assert_eq!((text.packets.len(), text.wrong.len()), (5, 0));
    assert!(text.packets.iter().all(|packet| packet.time_ns == 0));
    assert!(text.format.caveats().iter().any(|words| words.contains("no times")));
}

#[test]
fn test_differences_are_added_up() {
    let line = |ms: u32| format!(" 00:00:00.{ms:03}000 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 12\n");
    let steps = [0, 5, 1, 9, 2, 7];
    let text: String = steps.iter().map(|&ms| line(ms)).collect();
    let times: Vec<_> = packets_of(&text).iter().map(|packet| packet.time_ns / 1_000_000).collect();
    assert_eq!(times, [0, 5, 6, 15, 17, 24]);
}

#[test]
fn test_bytes_in_hexadecimal_and_as_text_are_passed_over() {
    let packets = packets_of(
        "1.0 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 12\n\t0x0000:  4500 0028\n\t0x0010:  0a00\n\
         1.1 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 12\nE..(....@.\n$anything\n\nelse\n\
         1.2 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 12\n",
    );
    assert_eq!(packets.len(), 3);
}

#[test]
fn test_packets_in_tunnels_are_not_counted_twice() {
    let packets = packets_of(
        "1.0 IP 10.0.0.1.5000 > 10.0.0.2.4789: VXLAN, flags [I] (0x0c), vni 1\n\
         IP 1.1.1.1.1 > 2.2.2.2.2: Flags [S], seq 0:5, win 8192, length 5\n\
         1.1 IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto ICMP (1), length 61)\n    \
         10.0.0.2 > 10.0.0.1: ICMP 10.0.0.2 udp port 999 unreachable, length 41\n\t\
         IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto UDP (17), length 33)\n    \
         10.0.0.1.1234 > 10.0.0.2.999: UDP, length 5\n",
    );
    assert_eq!(packets.len(), 2);
}

#[test]
fn test_cut_lines_and_garbage_are_wrong() {
    let text = read_all(
        "garbage\n1.0 IP 10.0.0.1.5 > 10.0.0.2.6: Flags [P.], seq 1:9, ack 1, wi\n1.1 IP 10.0.0.1.5 >\n\
         1.2 IP (tos 0x0, ttl 64, id\n1.3 IP 10.0.0.1.5 > 10.0.0.2.6: Flags [P.], seq 1:99999999999, length 5\nmore garbage\n",
    );
    assert_eq!((text.packets.len(), text.wrong), (0, vec![1, 2, 3, 4, 5, 6]));
}

#[test]
fn test_a_missing_second_line_is_reported() {
    let first = "1.0 IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto UDP (17), length 33)\n";
    let text = read_all(&format!("{first}{first}    10.0.0.1.1234 > 10.0.0.2.999: UDP, length 5\n{first}"));
    assert_eq!(text.packets.len(), 1);
    assert!(text.format.caveats().iter().any(|words| words.starts_with("2 packets left out")));
}

#[test]
fn test_many_lines_of_details_do_not_hide_the_format() {
    let details = "\tUpdate Message (2), length: 154\n\t  Origin (1), length: 1\n".repeat(60);
    let text = format!(
        "    1  2022-03-20 13:29:37.678220 IP (tos 0x0, ttl 64, id 1, offset 0, flags [none], proto TCP (6), \
         length 4748)\n    127.0.0.1.540 > 127.0.0.1.179: Flags [S], seq 0:4708, win 8192, length 4708: BGP\n{details}"
    );
    assert_eq!(crate::input::text::detect(text.as_bytes()), Some(crate::input::text::TextFormat::Tcpdump));
    assert_eq!(crate::input::text::detect(details.as_bytes()), None);
}

#[test]
fn test_lengths_ports_behind_extension_headers_and_brackets() {
    let lines = [
        "caplen 98 len 266 1.5 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 224",
        "1.6 IP6 (hlim 4, next-header Routing (43), payload length 48) 2200::22f7 > 2200::4: RT6 (len=2, type=0, \
         segleft=1, [0]2200::210:2:0:0:4) 5645 > 5642: [udp sum ok] UDP, length 16",
        "1.7 IP 10.0.0.1.5 > 10.0.0.2.6: Flags [S], seq 9, win 1, options [mss 1460,mptcp 12 capable v0 flags \
         [AH] csum {0x9c9eabd1e46a33b2}], length 0",
    ];
    let packets = packets_of(&lines.join("\n"));
    assert_eq!(packets.iter().map(|packet| packet.wire_bytes).collect::<Vec<_>>(), [266, 88, 56]);
    let network = &packets[1].network;
    assert_eq!((network.endpoints.src_port, network.endpoints.dst_port), (5645, 5642));
    assert_eq!((network.transport, network.payload_bytes), (Transport::Udp, Some(16)));
    assert_eq!(packets[2].network.tcp().map(|tcp| tcp.seq), Some(9));
}

#[test]
fn test_recognition() {
    for line in CONNECTION.lines() {
        assert!(recognises(line.as_bytes()));
        assert!(recognises(&line.as_bytes()[9..]));
    }
    for line in [
        "    1  07:53:26.956209 ARP, Request who-has 10.0.0.1 tell 10.0.0.2, length 28",
        "\t0x0010:  0202 c001 1389 0000 0000 0000 0000 9002",
        " 00:00:00.000000 eth0  In  IP 10.0.0.1 > 10.0.0.2: ICMP echo request",
        "12:00:00.000001 10.0.0.1.1024 > 10.0.0.2.80: S 123:123(0) win 8192 <mss 1460> (DF)",
    ] {
        assert!(recognises(line.as_bytes()), "{line}");
    }
    for line in [
        "",
        "+ 0.1 0 1 tcp 40 ------- 0 0.0 3.0 0 0",
        "s 0.029290548 _1_ AGT  --- 0 cbr 512 [0 0 0 0] ------- [1:0 2:0 32 0] [0] 0 0",
        "0.00000  0  0  1  0  cwnd_ 1.000",
        "+ 0.5 /NodeList/0/DeviceList/1/$ns3::PointToPointNetDevice/TxQueue/Enqueue ns3::PppHeader (x: IP (0x0021))",
        "listening on eth0, link-type EN10MB (Ethernet)",
        "a > b: c",
    ] {
        assert!(!recognises(line.as_bytes()), "{line}");
    }
}

#[test]
fn test_times_of_usual_lines_end_where_a_time_does() {
    let rest = "IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [.], ack 1, win 63, length 0";
    for time in [
        "1700000000.000001",
        "1700000000.999999",
        "1699999999.000000",
        "9223372035.999999",
        "9223372036.854775",
        "9223372036.854776",
        "9999999999.999999",
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00000001",
    ] {
        let line = format!("{time} {rest}");
        let (mut packet, mut expected) = (Packet::default(), Packet::default());
        let read = read_line(&mut Tcpdump::default(), 1, line.as_bytes(), &mut packet);
        assert_eq!(read, Tcpdump::default().read(1, line.as_bytes(), &mut expected), "{time:?}");
        assert!(read != Outcome::Packet || packet.time_ns == expected.time_ns, "{time}");
    }
}

proptest! {
    #[test]
    fn test_any_bytes_as_lines_are_read(lines in proptest::collection::vec(any::<Vec<u8>>(), 0..20)) {
        let (mut format, mut packet) = (Tcpdump::default(), Packet::default());
        for (number, line) in (1..).zip(&lines) {
            let _ = (recognises(line), read_line(&mut format, number, line, &mut packet));
        }
        while format.finish(&mut packet) {}
        let _ = format.caveats();
    }

    #[test]
    fn test_usual_lines_are_read_like_any_others(
        lines in proptest::collection::vec((0..8_u32, 0..4_usize, any::<(u32, u32, u32)>(), 0..2_usize), 1..30),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut text = String::new();
        for (host, form, (seq, ack, more), options) in lines {
            let time = ["1700000000.000001", "07:53:26.956209", " 00:00:00.000019", "2026-11-21 07:53:26.9"][form];
            let ends = match host & 1 {
                0 => format!("IP 10.0.0.{host}.{} > 192.0.2.1.80: ", more >> 20),
                _ => format!("IP6 fd00::{host}.{} > fd00::f.80: ", more >> 20),
            };
            let numbers = match more & 3 {
                0 => format!("Flags [.], ack {ack}"),
                1 => format!("Flags [S.], seq {seq}, ack {ack}"),
                2 => format!("Flags [P.], seq {seq}:{}, ack {ack}", seq.wrapping_add(1448)),
                _ => format!("Flags [.], seq {seq}, ack {ack}"),
            };
            let options = ["", ", options [nop,nop,TS val 4294967295 ecr 17]"][options];
            text += &format!("{time} {ends}{numbers}, win {}{options}, length 1448: HTTP\n", more >> 8 & 0xffff);
        }
        let mut bytes = text.into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (mut usual, mut any) = (Tcpdump::default(), Tcpdump::default());
        for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            let (mut packet, mut expected) = (Packet::default(), Packet::default());
            let outcomes =
                (read_line(&mut usual, number, line, &mut packet), any.read(number, line, &mut expected));
            prop_assert_eq!(outcomes.0, outcomes.1);
            if outcomes.0 == Outcome::Packet {
                prop_assert_eq!(format!("{packet:?}"), format!("{expected:?}"));
            }
        }
        prop_assert_eq!(usual.caveats(), any.caveats());
    }

    #[test]
    fn test_tampered_lines_are_read(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut: prop::sample::Index,
    ) {
        let mut bytes = CONNECTION.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let (mut format, mut packet) = (Tcpdump::default(), Packet::default());
        for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            if read_line(&mut format, number, line, &mut packet) == Outcome::Packet {
                prop_assert!(packet.number <= number);
            }
        }
    }
}
