//! Whole lines, as a reader of a file gives them.

use proptest::prelude::*;

use super::*;
use crate::input::text::tests::packets_of;
use crate::input::text::{TextFormat, detect};
use crate::packet::event::NodeLayer;
use crate::testing::{analyse_bytes_as, check_tables};

/// A packet's fields under test: line, event, place, point, identity.
type Seen = (u64, Event, String, PathPoint, u64);

fn read(lines: &[String]) -> (Vec<Seen>, Ns3) {
    let mut reader = Ns3::default();
    let packets = packets_of(&mut reader, lines.iter().map(String::as_str));
    let seen = packets.iter().map(|packet| {
        let sighting = packet.sighting.unwrap();
        let place = reader.names.get(packet.interface).unwrap().to_owned();
        (packet.number, packet.event.unwrap(), place, sighting.point, sighting.identity)
    });
    (seen.collect(), reader)
}

const DEVICE: &str = "$ns3::PointToPointNetDevice";

fn udp(event: &str, time: &str, place: &str, ends: &str, id: u16) -> String {
    let (node, device) = place.split_once('/').unwrap();
    let source = match event {
        "+" => "TxQueue/Enqueue",
        "-" => "TxQueue/Dequeue",
        "d" => "TxQueue/Drop",
        _ => "MacRx",
    };
    format!(
        "{event} {time} /NodeList/{node}/DeviceList/{device}/{DEVICE}/{source} ns3::PppHeader (Point-to-Point Protocol: IP \
         (0x0021)) ns3::Ipv4Header (tos 0x0 DSCP Default ECN Not-ECT ttl 64 id {id} protocol 17 offset (bytes) 0 flags \
         [none] length: 1028 {ends}) ns3::UdpHeader (length: 1008 49153 > 6001) Payload (size=1000)"
    )
}

const FORTH: &str = "10.0.0.1 > 10.0.1.2";

#[test]
fn test_source_and_destination_of_a_path() {
    use Event::{Dequeued, Enqueued, Received};
    use PathPoint::{Between, Destination, Source};
    let lines = [
        udp("+", "1", "0/1", FORTH, 7),
        udp("-", "1", "0/1", FORTH, 7),
        udp("r", "1.1", "5/1", FORTH, 7),
        udp("+", "1.1", "5/2", FORTH, 7),
        udp("r", "1.2", "2/1", FORTH, 7),
        udp("+", "1.3", "0/1", FORTH, 8),
        udp("r", "1.4", "5/1", FORTH, 8),
    ];
    let (seen, _) = read(&lines);
    let expected = [
        (Enqueued, "0/1", Source),
        (Dequeued, "0/1", Between),
        (Received, "5/1", Between),
        (Enqueued, "5/2", Between),
        (Received, "2/1", Destination),
        (Enqueued, "0/1", Source),
        (Received, "5/1", Between),
    ];
    assert_eq!(seen.len(), expected.len());
    for (line, (seen, (event, place, point))) in (1..).zip(seen.iter().zip(expected)) {
        assert_eq!((seen.0, seen.1, seen.2.as_str(), seen.3), (line, event, place, point));
    }
    assert!(seen[..5].iter().all(|it| it.4 == seen[0].4), "one packet");
    assert_ne!(seen[5].4, seen[0].4, "another packet");
}

#[test]
fn test_an_answer_shows_the_destination_at_once() {
    let lines = [
        udp("+", "1", "0/1", FORTH, 7),
        udp("r", "1.2", "2/1", FORTH, 7),
        udp("+", "1.2", "2/1", "10.0.1.2 > 10.0.0.1", 0),
    ];
    let (seen, reader) = read(&lines);
    assert_eq!(seen[1].3, PathPoint::Destination);
    assert!(!reader.waiting.is_empty() || seen.len() == 3);
}

#[test]
fn test_a_packet_that_waits_too_long_is_taken_as_arrived() {
    let mut lines = vec![udp("+", "1", "0/1", FORTH, 0), udp("r", "1.2", "2/1", FORTH, 0)];
    lines.extend((0..10_000).map(|n| udp("+", "1.3", "0/1", FORTH, n)));
    let mut reader = Ns3::default();
    let mut packet = Packet::default();
    let held = lines.iter().filter(|line| reader.read(1, line.as_bytes(), &mut packet) == Outcome::Held);
    assert_eq!(held.count(), 4096, "no more than that wait");
}

#[test]
fn test_a_drop_at_the_source_is_of_a_packet_that_was_sent() {
    let lines = [
        udp("d", "1", "0/1", FORTH, 0),
        udp("+", "1", "0/1", FORTH, 1),
        udp("r", "1.2", "2/1", FORTH, 1),
        udp("d", "1.3", "0/1", FORTH, 2),
    ];
    let analysis = analyse_bytes_as(lines.join("\n").into_bytes(), "ns3");
    let flow = analysis.carried.flows.get(0);
    let delivery = flow.deliveries().unwrap().of(flow.forward());
    assert_eq!((delivery.sent, delivery.received, delivery.dropped, delivery.lost), (3, 1, 2, 2));
    assert_eq!(delivery.drop_words().as_deref(), Some("link queue 2"));
}

#[test]
fn test_the_file_of_one_device_is_like_a_capture() {
    let line = |event: &str, id: u16| {
        let whole = udp(event, "1.5", "0/1", FORTH, id);
        let headers = whole.find(" ns3::").unwrap();
        format!("{event} 1.5{}", &whole[headers..])
    };
    let lines = [line("+", 1), line("-", 1), line("d", 2), line("r", 3)].join("\n");
    let analysis = analyse_bytes_as(lines.into_bytes(), "ns3");
    let flow = analysis.carried.flows.get(0);
    assert!(flow.deliveries().is_none());
    assert_eq!(flow.direction(flow.forward()).packets, 2);
    assert_eq!((analysis.carried.sources[0].other_lines, analysis.carried.sources[0].bad_lines), (2, 0));
    assert!(analysis.carried.problems.iter().any(|problem| problem.error.message.contains("drops")));
}

#[test]
fn test_wrong_lines_are_counted_and_others_read() {
    let text = [
        "+ abc /NodeList/0/DeviceList/1/$ns3::X/TxQueue/Enqueue ns3::PppHeader (".into(),
        udp("+", "1", "0/1", FORTH, 1),
        String::new(),
        "x 1 ns3::PppHeader (".into(),
        "+ 1 /NodeList/0/DeviceList/1/$ns3::X/TxQueue/Enqueue ns3::Ipv4Header (tos 0x0 ttl".into(),
        "t 1 /NodeList/0/DeviceList/1/$ns3::WifiNetDevice/Phy/State/Tx DsssRate1Mbps ns3::WifiMacHeader (CTL_ACK \
         Duration/ID=0us, RA=00:00:00:00:00:05) "
            .into(),
        udp("r", "1.5\0", "2/1", FORTH, 1),
    ];
    let analysis = analyse_bytes_as(text.join("\r\n").into_bytes(), "ns3");
    let source = &analysis.carried.sources[0];
    assert_eq!((source.packets, source.bad_lines, source.other_lines, source.non_ip_packets), (2, 4, 1, 1));
}

#[test]
fn test_the_format_is_recognised() {
    let line = udp("+", "1", "0/1", FORTH, 1);
    assert_eq!(detect(line.as_bytes()), Some(TextFormat::Ns3));
    assert!(recognises(b"r 0.5 DsssRate1Mbps ns3::WifiMacHeader (CTL_ACK"));
    assert!(!recognises(b"+ 0.1 0 2 cbr 210 ------- 1 0.0 3.1 0 0"));
    assert!(!recognises(b"s 0.5 _0_ AGT ns3::"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn test_any_bytes_are_lines(bytes: Vec<u8>) {
        check_tables(analyse_bytes_as(bytes, "ns3"));
    }

    #[test]
    fn test_tampered_lines_keep_every_bound(
        events in proptest::collection::vec((0..4_usize, 0..4_u8, 0..4_u16, 0..30_i32), 1..60),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..30),
    ) {
        let line = |&(event, node, id, tenths): &(usize, u8, u16, i32)| {
            let time = format!("{}", f64::from(tenths - 3) / 10.0);
            udp(["+", "-", "r", "d"][event], &time, &format!("{node}/1"), FORTH, id)
        };
        let mut bytes = events.iter().map(line).collect::<Vec<_>>().join("\n").into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_tables(analyse_bytes_as(bytes, "ns3"));
    }
}

#[test]
fn test_layers_of_places() {
    let line = "t 0.5 /NodeList/0/$ns3::Ipv4L3Protocol/Tx(1) ns3::Ipv4Header (tos 0x0 ttl 64 id 0 protocol 17 offset 0 \
                flags [none] length: 28 10.0.0.1 > 10.0.1.2) ns3::UdpHeader (length: 8 1 > 2)";
    let mut reader = Ns3::default();
    let mut packet = Packet::default();
    assert_eq!(reader.read(1, line.as_bytes(), &mut packet), Outcome::Packet);
    assert_eq!(packet.sighting.map(|it| it.layer), Some(NodeLayer::Ip));
    assert_eq!(reader.places().get(packet.interface), Some("0/ip1"));
}
