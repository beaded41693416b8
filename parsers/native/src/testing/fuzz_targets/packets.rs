//! Any bytes as packets of a capture, each preceded by a byte with its length, so that the fuzzer need not
//! find the file format, headers or a link type first.

use super::choices::Choices;
use crate::flow::quic::client_hellos::ClientHellos;
use crate::packet::event::TcpFlags;
use crate::packet::extras::PayloadHead;
use crate::pass::Options;
use crate::pass::datagram_layout::DatagramLayout;
use crate::testing::{
    analyse_bytes, analyse_bytes_with, check_tables, everything, pcap_of_packets, split_at_lengths,
};
use crate::wire::layers::udp_port::UdpTunnel;
use crate::wire::probe::{Field, OwnLayout, ProbeLayout};
use crate::wire::tfrc_layout::{
    DataFields, FeedbackFields, KindCondition, KindMark, Layout, NumberForm, Quantity,
};

const RAW_IPV4: u32 = 228;
/// Of Linux's cooked captures v2; one of a byte stands for it.
const LINUX_SLL2: u32 = 276;
const SLL2_BYTE: u8 = 255;
/// 802.11 frames alone, with a Prism, a radiotap and an AVS header.
const WIFI_LINK_TYPES: [u32; 4] = [105, 119, 127, 163];

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
/// Source and destination port of packets to the server.
const PORTS: [u16; 2] = [5201, 12345];

/// An IPv4 header whose length is 0, so that the record's counts, and the ports.
fn headers(protocol: u8, ecn: u8, is_back: bool) -> Vec<u8> {
    let (mut hosts, mut ports) = ([[10, 0, 0, 1], [10, 0, 0, 2]], PORTS);
    if is_back {
        hosts.reverse();
        ports.reverse();
    }
    let mut headers = vec![0x45, ecn, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0];
    headers.extend(hosts.as_flattened());
    headers.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    headers
}

/// A datagram whose length is 0 in its header, too.
fn datagram_of(payload: &[u8], is_back: bool) -> Vec<u8> {
    [headers(UDP, 0, is_back).as_slice(), &[0; 4], payload].concat()
}

fn capture_of(packets: &[Vec<u8>]) -> Vec<u8> {
    pcap_of_packets(RAW_IPV4, &packets.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Packets after a byte with their link type.
pub fn packet(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let link_type = if choice == SLL2_BYTE { LINUX_SLL2 } else { choice.into() };
    check_tables(analyse_bytes(pcap_of_packets(link_type, &split_at_lengths(rest))));
}

/// What encapsulations hold: each packet after a byte with the protocol, or the port of UDP, and the end that
/// sends it.
pub fn tunnel(bytes: &[u8]) {
    const PROTOCOLS: [u8; 9] = [4, 41, 47, 50, 51, 94, 97, 115, 137];
    let packet = |bytes: &[u8]| {
        let (&choice, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let (is_back, place) = (choice & 0x80 != 0, usize::from(choice & 0x7f));
        match PROTOCOLS.get(place) {
            Some(&protocol) => [&headers(protocol, 0, is_back)[..20], rest].concat(),
            None => {
                let tunnel = UdpTunnel::ALL[(place - PROTOCOLS.len()) % UdpTunnel::ALL.len()];
                let ports = [&PORTS[0].to_be_bytes()[..], &tunnel.registered_port().to_be_bytes()].concat();
                [&headers(UDP, 0, is_back)[..20], &ports, &[0; 4], rest].concat()
            }
        }
    };
    let packets: Vec<_> = split_at_lengths(bytes).into_iter().map(packet).collect();
    check_tables(analyse_bytes(capture_of(&packets)));
}

/// 802.11 frames after a byte that chooses what precedes each.
pub fn frame(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let link_type = WIFI_LINK_TYPES[usize::from(choice) % WIFI_LINK_TYPES.len()];
    check_tables(analyse_bytes(pcap_of_packets(link_type, &split_at_lengths(rest))));
}

/// Payloads of UDP datagrams of one flow, which may have numbers and times.
pub fn datagram(bytes: &[u8]) {
    let packets: Vec<_> =
        split_at_lengths(bytes).into_iter().map(|payload| datagram_of(payload, false)).collect();
    check_tables(analyse_bytes(capture_of(&packets)));
}

/// DCCP packets of one connection after a byte with the end that sends them and their ECN field.
pub fn dccp(bytes: &[u8]) {
    let packet = |bytes: &[u8]| {
        let (choice, rest) = bytes.split_first().unwrap_or((&0, &[]));
        [headers(DCCP, choice >> 1 & 3, choice & 1 == 1).as_slice(), rest].concat()
    };
    let packets: Vec<_> = split_at_lengths(bytes).into_iter().map(packet).collect();
    check_tables(analyse_bytes(capture_of(&packets)));
}

/// Payloads of datagrams from both sides in turn that begin as RTP and RTCP do.
pub fn rtp(bytes: &[u8]) {
    let mut packets = Vec::new();
    // A source that is accepted, so that reports refer to it.
    for number in 0..6 {
        let media = [0x90, 96, 0, number, 0, 0, 0, 0, 1, 2, 3, 4, 0xbe, 0xde, 0, 1, 0x11, 0, number, 0];
        packets.push(datagram_of(&media, false));
    }
    for (turn, rest) in split_at_lengths(bytes).into_iter().enumerate() {
        let mut payload = rest.to_vec();
        if let Some(first) = payload.first_mut() {
            *first = *first & 0x3f | 0x80;
        }
        packets.push(datagram_of(&payload, turn % 2 == 1));
    }
    check_tables(analyse_bytes(capture_of(&packets)));
}

/// Payloads of QUIC after a byte with the end that sends them and the client's port, after a handshake without contents;
/// the same bytes as frames of Initial packets, which nobody would guess the keys of.
pub fn quic(bytes: &[u8]) {
    const TO_SERVER: &[u8] = b"\xc0\0\0\0\x01\x04AAAA\x04BBBB\0\x01\0";
    const TO_CLIENT: &[u8] = b"\xc0\0\0\0\x01\x04BBBB\x04CCCC\0\x01\0";
    let mut hellos = ClientHellos::default();
    let mut packets = vec![datagram_of(TO_SERVER, false), datagram_of(TO_CLIENT, true)];
    for (turn, piece) in split_at_lengths(bytes).into_iter().enumerate() {
        hellos.on_frames(turn as u32 % 3, piece);
        let (&choice, payload) = piece.split_first().unwrap_or((&0, &[]));
        let is_back = choice & 1 == 1;
        let mut packet = datagram_of(payload, is_back);
        // The port of the client, which has moved.
        packet[if is_back { 23 } else { 21 }] ^= choice >> 6;
        packets.push(packet);
    }
    check_tables(analyse_bytes(capture_of(&packets)));
}

/// Segments with the first bytes of a client, after two bytes with their place in the stream.
pub fn opening(bytes: &[u8]) {
    let segment = |flags: u8, seq: u32, payload: &[u8]| {
        let fixed = [&seq.to_be_bytes()[..], &[0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0]].concat();
        [headers(TCP, 0, false).as_slice(), &fixed, payload].concat()
    };
    let mut packets = vec![segment(TcpFlags::SYN as u8, u32::MAX, &[])];
    for piece in split_at_lengths(bytes) {
        let (&place, payload) = piece.split_first_chunk().unwrap_or((&[0; 2], &[]));
        packets.push(segment(TcpFlags::ACK as u8, u16::from_be_bytes(place).into(), payload));
    }
    check_tables(analyse_bytes(capture_of(&packets)));
}

/// A user's layout of payloads, and payloads after a byte with the end that sends them.
pub fn layout(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let layout = match choices.u8() % 6 {
        0 => DatagramLayout::Numbers(ProbeLayout::Own(numbers(&mut choices))),
        1 => DatagramLayout::by_name("rtp/90000").unwrap_or(DatagramLayout::Tfrc(tfrc(&mut choices))),
        2 => DatagramLayout::Numbers(choices.one_of(&ProbeLayout::ALL)),
        _ => DatagramLayout::Tfrc(tfrc(&mut choices)),
    };
    let options = Options { dissect: vec![(choices.one_of(&PORTS), layout)], ..everything() };
    let packet = |bytes: &[u8]| {
        let (choice, rest) = bytes.split_first().unwrap_or((&0, &[]));
        datagram_of(rest, choice & 1 == 1)
    };
    let packets: Vec<_> = split_at_lengths(choices.rest()).into_iter().map(packet).collect();
    check_tables(analyse_bytes_with(options, capture_of(&packets)));
}

fn field(choices: &mut Choices) -> Option<Field> {
    let [offset, bytes] = choices.bytes();
    let offset = usize::from(offset) % PayloadHead::MOST;
    Field::new(offset, usize::from(bytes & 7) + 1, bytes & 8 != 0)
}

fn quantity(choices: &mut Choices) -> Option<Quantity> {
    let (field, form) = (field(choices)?, choices.one_of(&NumberForm::ALL));
    let unit = choices.one_of(&[1e-9, 1e-6, 1e-3, 1.0, 125.0, 1e300]);
    Quantity::new(field, form, unit)
}

fn when(choices: &mut Choices) -> KindCondition {
    let [way, mask, value] = choices.bytes();
    let to_port = (way & 2 != 0).then_some(way & 1 != 0);
    let mark = field(choices).filter(|_| way & 4 != 0);
    let mark = mark.map(|field| KindMark { field, mask: mask.into(), value: value.into() });
    KindCondition { to_port, mark }
}

fn numbers(choices: &mut Choices) -> OwnLayout {
    let number = field(choices);
    let time = field(choices).map(|field| (field, choices.u32()));
    // Where the bytes describe no field of a payload.
    let Some(number) = number.or(Field::new(0, 4, false)) else { unreachable!("the first bytes are kept") };
    OwnLayout { number, time }
}

fn tfrc(choices: &mut Choices) -> Layout {
    let data = DataFields { when: when(choices), numbers: numbers(choices), rtt: quantity(choices) };
    let feedback = choices.flag().then(|| FeedbackFields {
        when: when(choices),
        time_echo: field(choices),
        elapsed: quantity(choices),
        x_recv: quantity(choices),
        p: quantity(choices),
        sequence: field(choices),
    });
    Layout { data, feedback }
}
