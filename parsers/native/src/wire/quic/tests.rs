use proptest::prelude::*;

use super::frames::{Frame, Frames};
use super::initial::{InitialKeys, Role, is_retry_to};
use super::*;
use crate::packet::opening::ClientHello;
use crate::testing::vectors::{from_hex, vectors};
use crate::wire::opening::client_hello::{client_hello, length};

fn first_long(datagram: &[u8]) -> LongPacket<'_> {
    match packets(datagram, datagram.len()).next() {
        Some(QuicPacket::Long(packet)) => packet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn test_packets_of_the_rfcs_are_opened() {
    for vector in vectors("quic_initial.json") {
        let text = |name: &str| from_hex(vector[name].as_str().unwrap());
        let (datagram, expected) = (text("packet"), &vector["expect"]);
        let destination = ConnectionId::new(&text("destination")).unwrap();
        let packet = first_long(&datagram);
        assert_eq!(packet.version.name(), expected["version"], "{}", vector["origin"]);
        let role = match vector["role"].as_str().unwrap() {
            "client" => Role::Client,
            "server" => Role::Server,
            _ => {
                assert_eq!(packet.kind, Kind::Retry);
                assert!(is_retry_to(&packet, &destination));
                assert!(!is_retry_to(&packet, &packet.header.source));
                continue;
            }
        };
        assert_eq!((packet.kind, packet.is_whole), (Kind::Initial, true));
        let opened = InitialKeys::new(packet.version, &destination, role).unwrap().open(&packet).unwrap();
        assert_eq!(opened.number, expected["number"]);
        assert_eq!(opened.frames, from_hex(expected["frames"].as_str().unwrap()), "{}", vector["origin"]);
        let wrong = InitialKeys::new(packet.version, &packet.header.source, role).unwrap();
        assert!(wrong.open(&packet).is_none());
    }
}

#[test]
fn test_the_client_hello_of_the_rfc_names_its_server() {
    let frames = from_hex(vectors("quic_initial.json")[0]["expect"]["frames"].as_str().unwrap());
    let Some(Frame::Crypto { offset: 0, data }) = Frames::of(&frames).next() else { panic!("no handshake") };
    assert_eq!(length(data), Ok(Some(data.len())));
    let expected = ClientHello {
        server_name: Some("example.com".into()),
        protocols: Some("alpn".into()),
        has_ech: false,
    };
    assert_eq!(client_hello(data), Some(expected));
    assert_eq!(Frames::of(&frames).count(), 1);
}

#[test]
fn test_the_server_of_the_rfc_acknowledges_the_client() {
    let frames = from_hex(vectors("quic_initial.json")[1]["expect"]["frames"].as_str().unwrap());
    let found: Vec<_> = Frames::of(&frames).collect();
    assert!(matches!(found[..], [Frame::Ack { largest: 0 }, Frame::Crypto { offset: 0, .. }]), "{found:?}");
}

#[test]
fn test_coalesced_packets_end_where_their_lengths_say() {
    // A server's Initial and Handshake packets, a short header, and padding instead of one.
    let long = |kind: u8, length: u8| {
        let mut packet = vec![0xc0 | kind << 4, 0, 0, 0, 1, 2, 7, 8, 1, 9];
        packet.extend(if kind == 0 { vec![0, length] } else { vec![length] });
        packet.extend(vec![0; length.into()]);
        packet
    };
    let short = [&[0x60, 7, 8][..], &[0; 20]].concat();
    let kinds = |datagram: &[u8]| {
        let kind = |packet| match packet {
            QuicPacket::Long(packet) => format!("{:?}", packet.kind),
            QuicPacket::Short(short) => format!("short, {}", short.spin),
            other => format!("{other:?}"),
        };
        packets(datagram, datagram.len()).map(kind).collect::<Vec<_>>()
    };
    let coalesced = [long(0, 30), long(2, 40), short].concat();
    assert_eq!(kinds(&coalesced), ["Initial", "Handshake", "short, true"]);
    assert_eq!(kinds(&[long(0, 30), vec![0; 50]].concat()), ["Initial"]);
    // A length beyond the datagram, and another destination.
    assert_eq!(kinds(&long(0, 30)[..40]), [""; 0]);
    let mut other = long(2, 40);
    other[6] = 1;
    assert_eq!(kinds(&[long(0, 30), other].concat()), ["Initial"]);
}

#[test]
fn test_numbers_of_the_rfc() {
    // RFC 9000 section A.1.
    let number = |digits: &str| Rest(&from_hex(digits)).number();
    assert_eq!(number("c2197c5eff14e88c"), Some(151_288_809_941_952_652));
    assert_eq!(number("9d7f3e7d"), Some(494_878_333));
    assert_eq!((number("7bbd"), number("4025"), number("25")), (Some(15_293), Some(37), Some(37)));
    assert_eq!(number("7b"), None);
}

proptest! {
    #[test]
    fn test_no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0..4_usize) {
        if let (Some(version), Some(start)) = (Version::ALL.get(version), bytes.first_chunk_mut::<5>()) {
            start[0] |= LONG | FIXED;
            start[1..].copy_from_slice(&version.number().to_be_bytes());
        }
        let destination = ConnectionId::default();
        for packet in packets(&bytes, bytes.len() + 9) {
            if let QuicPacket::Long(packet) = packet {
                let keys = InitialKeys::new(packet.version, &destination, Role::Client).unwrap();
                prop_assert!(keys.open(&packet).is_none());
                prop_assert!(!is_retry_to(&packet, &destination));
            }
        }
        prop_assert!(Frames::of(&bytes).count() <= bytes.len());
        let _ = client_hello(&bytes);
    }
}
