//! Frames written by hand.

use super::*;
use crate::packet::event::{Layer, Transport};
use crate::packet::extras::PayloadHead;
use crate::packet::record::Record;
use proptest::prelude::*;

const HERE: Station = [2, 0, 0, 0, 0, 1];
const THERE: Station = [2, 0, 0, 0, 0, 2];
const BEHIND: Station = [2, 0, 0, 0, 0, 3];
const FAR: Station = [2, 0, 0, 0, 0, 4];

/// IPv4 and UDP headers and ten bytes of payload.
const DATAGRAM: [u8; 38] = [
    0x45, 0, 0, 38, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x14, 0x51, 0x30, 0x39, 0, 18, 0, 0, // UDP
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
];

/// A MAC header with this frame control, three addresses and sequence number 7.
fn header(control: u8, flags: u8) -> Vec<u8> {
    let mut header = vec![control, flags, 0, 0];
    for address in [HERE, THERE, BEHIND] {
        header.extend(address);
    }
    header.extend((7_u16 << 4).to_le_bytes());
    header
}

fn with_datagram(mut frame: Vec<u8>) -> Vec<u8> {
    frame.extend(SNAP);
    frame.extend([8, 0]);
    frame.extend(DATAGRAM);
    frame
}

/// A packet and its extras.
struct Seen {
    packet: Packet,
    frame: Option<Frame>,
    head: PayloadHead,
}

fn decode_record(record: &Record<'_>, packet: &mut Packet) -> Seen {
    let mut extras = PacketExtras::default();
    crate::wire::decode(record, 1, packet, &mut extras, &TunnelPorts::default());
    let frame = packet.frame.and_then(|index| extras.frame(index)).copied();
    Seen { packet: *packet, frame, head: extras.head(packet.network.head) }
}

fn decoded(link_type: LinkType, data: &[u8]) -> Seen {
    let record = Record { time_ns: 0, interface: 0, link_type, data, wire_bytes: data.len() as u32 };
    decode_record(&record, &mut Packet::default())
}

fn check_datagram(seen: &Seen) {
    let packet = &seen.packet;
    assert_eq!(packet.stop, None);
    assert!(packet.is_ip);
    assert_eq!(packet.network.transport, Transport::Udp);
    assert_eq!(packet.network.payload_bytes, Some(10));
    assert_eq!(seen.head.bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

fn reason(seen: &Seen) -> Option<Reason> {
    let packet = &seen.packet;
    assert!(!packet.is_ip);
    packet.stop.map(|stop| {
        assert_eq!(stop.layer, Layer::Link);
        stop.reason
    })
}

#[test]
fn test_data_to_and_from_the_network_and_within_it() {
    for (flags, bssid) in [(0, BEHIND), (1, HERE), (2, THERE)] {
        let seen = decoded(LinkType::Wifi, &with_datagram(header(0x08, flags)));
        check_datagram(&seen);
        let frame = seen.frame.unwrap();
        assert_eq!((frame.receiver, frame.transmitter, frame.bssid), (HERE, Some(THERE), Some(bssid)));
        assert_eq!(frame.place, Some(FrameNumber { traffic: FrameNumber::NO_TRAFFIC, sequence: 7 }));
        assert_eq!(frame.bytes, 24 + 8 + 38);
        assert!(!frame.is_retry && frame.kind == FrameKind::Data);
    }
}

#[test]
fn test_four_addresses_quality_of_service_and_ht_control() {
    let mut frame = header(0x88, 0x03 | RETRY | HT_CONTROL);
    frame.extend(FAR);
    frame.extend([5, 0]);
    frame.extend([1, 2, 3, 4]);
    let seen = decoded(LinkType::Wifi, &with_datagram(frame));
    check_datagram(&seen);
    let frame = seen.frame.unwrap();
    assert_eq!((frame.bssid, frame.is_retry), (None, true));
    assert_eq!(frame.place, Some(FrameNumber { traffic: 5, sequence: 7 }));
}

#[test]
fn test_a_check_sequence_and_padding_are_no_payload() {
    // Flags only: check sequence at the end, body padded; the header of 26 bytes gets two more.
    let mut frame = vec![0, 0, 9, 0, 2, 0, 0, 0, 0x30];
    frame.extend(header(0x88, 1));
    frame.extend([0, 0, 0xee, 0xee]);
    let mut frame = with_datagram(frame);
    frame.extend([9; 4]);
    let seen = decoded(LinkType::WifiRadiotap, &frame);
    check_datagram(&seen);
    assert_eq!(seen.frame.unwrap().bytes, frame.len() as u32 - 9);
}

#[test]
fn test_the_first_ip_packet_of_an_aggregate_is_read_and_the_rest_reported() {
    let subframe = |ether_type: [u8; 2], body: &[u8]| {
        let mut subframe = [HERE, FAR].concat();
        subframe.extend((8 + body.len() as u16).to_be_bytes());
        subframe.extend(SNAP);
        subframe.extend(ether_type);
        subframe.extend(body);
        subframe.resize(subframe.len().next_multiple_of(4), 0);
        subframe
    };
    let mut frame = header(0x88, 1);
    frame.extend([0x80, 0]);
    let alone = [&frame[..], &subframe([8, 0], &DATAGRAM)].concat();
    check_datagram(&decoded(LinkType::Wifi, &alone));
    frame.extend(subframe([8, 6], &[0; 28]));
    frame.extend(subframe([8, 0], &DATAGRAM));
    frame.extend(subframe([8, 0], &DATAGRAM));
    let seen = decoded(LinkType::Wifi, &frame);
    assert_eq!(seen.packet.stop, Some(stop(Reason::Aggregate)));
    check_datagram(&Seen { packet: Packet { stop: None, ..seen.packet }, ..seen });
}

#[test]
fn test_the_first_part_of_a_packet_has_the_whole_length() {
    let mut frame = with_datagram(header(0x08, MORE_PARTS));
    frame.truncate(frame.len() - 10);
    let seen = decoded(LinkType::Wifi, &frame);
    assert_eq!((seen.packet.stop, seen.packet.network.payload_bytes), (None, Some(10)));
    let mut later = header(0x08, 0);
    later[22] |= 1;
    later.extend([7; 10]);
    let seen = decoded(LinkType::Wifi, &later);
    assert_eq!(reason(&seen), Some(Reason::LaterPart));
    assert_eq!(seen.frame.unwrap().place, None);
}

#[test]
fn test_encrypted_frames_are_reported_and_decrypted_ones_read() {
    let mut frame = header(0x88, PROTECTED);
    frame.extend([0; 60]);
    let seen = decoded(LinkType::Wifi, &frame);
    assert_eq!(reason(&seen), Some(Reason::Encrypted));
    assert!(seen.frame.is_some());
    check_datagram(&decoded(LinkType::Wifi, &with_datagram(header(0x08, PROTECTED))));
}

#[test]
fn test_frames_without_packets() {
    let acknowledgement = [&[0xd4, 0, 0, 0][..], &HERE].concat();
    let seen = decoded(LinkType::Wifi, &acknowledgement);
    assert_eq!(reason(&seen), Some(Reason::Frame(FrameKind::Control)));
    let frame = seen.frame.unwrap();
    assert_eq!((frame.receiver, frame.transmitter, frame.place), (HERE, None, None));

    let request = [&[0xb4, 0, 0, 0][..], &HERE, &[3, 0, 0, 0, 0, 2]].concat();
    let seen = decoded(LinkType::Wifi, &request);
    assert_eq!(seen.frame.unwrap().transmitter, Some(THERE));

    let seen = decoded(LinkType::Wifi, &header(0x80, 0));
    assert_eq!(reason(&seen), Some(Reason::Frame(FrameKind::Management)));
    assert_eq!(seen.frame.unwrap().bssid, Some(BEHIND));

    let seen = decoded(LinkType::Wifi, &header(0x48, 1));
    assert_eq!(reason(&seen), Some(Reason::Frame(FrameKind::NullData)));
}

#[test]
fn test_a_damaged_frame_belongs_to_no_link() {
    let mut frame = vec![0, 0, 9, 0, 2, 0, 0, 0, 0x50];
    frame.extend(with_datagram(header(0x08, 1)));
    let seen = decoded(LinkType::WifiRadiotap, &frame);
    assert_eq!((reason(&seen), seen.frame), (Some(Reason::BadChecksum), None));
}

#[test]
fn test_a_frame_leaves_nothing_to_the_next_packet() {
    let frame = with_datagram(header(0x08, 1));
    let mut packet = decoded(LinkType::Wifi, &frame).packet;
    let next = Record { time_ns: 0, interface: 0, link_type: LinkType::Raw, data: &DATAGRAM, wire_bytes: 38 };
    let seen = decode_record(&next, &mut packet);
    check_datagram(&seen);
    assert_eq!(seen.frame, None);
}

proptest! {
    #[test]
    fn test_no_frame_panics_however_it_is_cut_and_changed(
        link_type in prop::sample::select(vec![
            LinkType::Wifi, LinkType::WifiPrism, LinkType::WifiRadiotap, LinkType::WifiAvs,
        ]),
        start in proptest::collection::vec(any::<u8>(), 0..70),
        control: u8,
        flags: u8,
        captured in 0_usize..200,
        beyond in 0_u32..2000,
    ) {
        let mut frame = start;
        frame.extend(with_datagram(header(control, flags)));
        frame.truncate(captured);
        let wire_bytes = frame.len() as u32 + beyond;
        let record = Record { time_ns: 0, interface: 0, link_type, data: &frame, wire_bytes };
        let seen = decode_record(&record, &mut Packet::default());
        prop_assert!(seen.packet.is_ip || seen.packet.stop.is_some());
        prop_assert!(seen.frame.is_none_or(|frame| frame.bytes <= wire_bytes));
    }
}
