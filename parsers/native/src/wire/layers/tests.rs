use proptest::prelude::*;

use super::*;
use crate::packet::event::Fragment;

const PORTS: [u16; 9] = [4789, 4790, 6081, 2152, 1701, 3544, 6635, 4754, 4500];
const ETHER_TYPES: [u16; 17] = [
    IPV4, IPV6, 0x8100, 0x88a8, 0x8847, 0x8864, 0x6558, 0x880b, 0x88e7, 0x893f, 0x8926, 0x894f, 0x88e5,
    0x8909, 0xdada, 0x1234, 0x0018,
];
const PROTOCOLS: [u8; 12] = [4, 41, 47, 50, 51, 94, 97, 115, 137, 17, 6, 1];

fn decoded(next: Next, bytes: &[u8], on_wire: u32) -> (bool, Option<Stop>, Network, PacketExtras) {
    let (mut network, mut extras) = (Network::default(), PacketExtras::default());
    let bytes = Bytes { captured: bytes, on_wire };
    let (is_ip, stop) = decode(next, bytes, &mut network, &mut extras, &TunnelPorts::default());
    (is_ip, stop, network, extras)
}

/// An IPv4 header of `protocol`, before `after`.
fn ipv4(protocol: u8, after: &[u8]) -> Vec<u8> {
    let length = (20 + after.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    [header.as_slice(), after].concat()
}

fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x30, 0x39];
    header.extend(port.to_be_bytes());
    header.extend((8 + payload.len() as u16).to_be_bytes());
    header.extend([0, 0]);
    [header.as_slice(), payload].concat()
}

#[test]
fn test_a_tunnel_without_a_packet_leaves_the_outer_flow_as_it_was() {
    let arp = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &[0; 12], &[8, 6, 0, 1]].concat();
    let bytes = ipv4(17, &datagram(4789, &arp));
    let (is_ip, stop, network, extras) = decoded(Next::EtherType(IPV4), &bytes, bytes.len() as u32);
    assert!(is_ip && network.lane.is_outside() && extras.tunnel(network.tunnel).is_none());
    assert_eq!(stop, Some(Stop { layer: Layer::Tunnel, reason: Reason::Unknown(0x0806) }));
    assert_eq!((network.endpoints.dst_port, network.payload_bytes), (4789, Some(arp.len() as u32)));
}

#[test]
fn test_a_damaged_inner_header_leaves_the_outer_one() {
    let bytes = ipv4(4, &[0x41, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 9, 9, 9, 9, 8, 8, 8, 8]);
    let (is_ip, stop, network, _) = decoded(Next::EtherType(IPV4), &bytes, bytes.len() as u32);
    assert_eq!(stop.map(|stop| stop.reason), Some(Reason::Malformed));
    assert!(is_ip && network.endpoints.src == 0x0a00_0001 && network.tunnel.is_none());
}

#[test]
fn test_a_first_outer_fragment_knows_where_the_inner_payload_begins() {
    let mut inner = ipv4(17, &datagram(9, &[0; 8]));
    inner[2..4].copy_from_slice(&1000_u16.to_be_bytes());
    let mut bytes = ipv4(4, &inner);
    bytes[6] = 0x20;
    let (_, _, network, extras) = decoded(Next::EtherType(IPV4), &bytes, bytes.len() as u32);
    let outer = extras.tunnel(network.tunnel).and_then(|tunnel| tunnel.outer_fragment).unwrap();
    assert_eq!((outer.before, outer.endpoints.protocol), (20, 4));
    assert_eq!(network.fragment, Some(Fragment { id: 1, offset: 0 }));
    assert_eq!(network.payload_bytes, Some(8));
}

#[test]
fn test_a_gre_keepalive_is_neither_llc_nor_a_packet() {
    let bytes = ipv4(47, &[0, 0, 0, 0]);
    let (is_ip, stop, network, _) = decoded(Next::EtherType(IPV4), &bytes, bytes.len() as u32);
    assert!(is_ip && network.tunnel.is_none());
    assert_eq!(stop.map(|stop| stop.reason.words(stop.layer)).as_deref(), Some("tunnel protocol 0x0000"));
}

#[test]
fn test_a_frame_that_macsec_does_not_encrypt_is_read() {
    let inner = ipv4(17, &datagram(9, &[0; 30]));
    for (control, tag) in [(0x00, 6), (0x20, 14), (0x2c, 14), (0x04, 6)] {
        let mut bytes = vec![control];
        bytes.resize(tag, 0);
        bytes.extend([8, 0]);
        bytes.extend(&inner);
        bytes.extend([7; 16]);
        let (is_ip, stop, network, _) = decoded(Next::EtherType(0x88e5), &bytes, bytes.len() as u32);
        let is_readable = control & 0x0c == 0;
        assert_eq!((is_ip, network.endpoints.dst_port == 9), (is_readable, is_readable));
        let words = stop.map(|stop| stop.reason.words(stop.layer));
        assert_eq!(words.as_deref(), if is_readable { None } else { Some("MACsec") });
    }
}

#[test]
fn test_a_short_frame_of_macsec_is_as_long_as_it_says() {
    // Of tcpdump's tests: a datagram of 4 bytes in 34, and a check value that was cut.
    let inner = ipv4(17, &datagram(6666, b"123\n"));
    let bytes =
        [&[0x20, 34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0][..], inner.as_slice(), &[7; 12]].concat();
    let (_, stop, network, _) = decoded(Next::EtherType(0x88e5), &bytes, bytes.len() as u32);
    assert_eq!((stop, network.payload_bytes), (None, Some(4)));
}

#[test]
fn test_a_frame_is_behind_the_tag_of_fabric_path() {
    let bytes = [&[0, 0x20][..], &[2; 12], &[8, 0], &ipv4(17, &datagram(9, &[0; 8]))].concat();
    let (_, stop, network, _) = decoded(Next::EtherType(0x8903), &bytes, bytes.len() as u32);
    assert_eq!((stop, network.endpoints.dst_port), (None, 9));
}

#[test]
fn test_a_next_protocol_counts_without_its_flag() {
    let inner = ipv4(17, &datagram(9, &[0; 8]));
    for flags in [0x08, 0x0c] {
        let bytes = ipv4(17, &datagram(4790, &[&[flags, 0, 0, 1, 0, 0, 7, 0], inner.as_slice()].concat()));
        let (_, stop, network, _) = decoded(Next::EtherType(IPV4), &bytes, bytes.len() as u32);
        assert_eq!((stop, network.endpoints.dst_port), (None, 9));
    }
}

#[test]
fn test_negotiation_of_ppp_is_named() {
    let (_, stop, ..) = decoded(Next::Ppp, &[0xc0, 0x21, 1, 1, 0, 4], 6);
    assert_eq!(stop.map(|stop| stop.reason.words(stop.layer)).as_deref(), Some("LCP"));
}

#[test]
fn test_the_given_port_comes_before_the_registered_one() {
    let ports = TunnelPorts::with(&[(4789, udp_port::UdpTunnel::Geneve), (8472, udp_port::UdpTunnel::Vxlan)]);
    assert_eq!(ports.of(1, 4789), Some(udp_port::UdpTunnel::Geneve));
    assert_eq!(ports.of(1, 8472), Some(udp_port::UdpTunnel::Vxlan));
    // A source port of VXLAN only spreads flows.
    assert_eq!((ports.of(8472, 1), ports.of(2152, 1)), (None, Some(udp_port::UdpTunnel::GtpU)));
}

fn first_header() -> impl Strategy<Value = Next> {
    prop_oneof![
        Just(Next::Ethernet),
        Just(Next::Ppp),
        Just(Next::Ip),
        prop::sample::select(ETHER_TYPES.to_vec()).prop_map(Next::EtherType),
    ]
}

/// Headers that are mostly right, with any bytes between.
fn headers() -> impl Strategy<Value = Vec<u8>> {
    let any_bytes = || prop::collection::vec(any::<u8>(), 0..24);
    let piece = prop_oneof![
        any_bytes(),
        (prop::sample::select(PROTOCOLS.to_vec()), any_bytes())
            .prop_map(|(protocol, rest)| ipv4(protocol, &rest)),
        (prop::sample::select(PORTS.to_vec()), any_bytes())
            .prop_map(|(port, rest)| ipv4(17, &datagram(port, &rest))),
        prop::sample::select(ETHER_TYPES.to_vec()).prop_map(|ether_type| [
            &[2; 12][..],
            &ether_type.to_be_bytes()
        ]
        .concat()),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn test_any_headers_end_and_are_named(next in first_header(), bytes in headers(), missing in 0_u32..2000) {
        let on_wire = bytes.len() as u32 + missing;
        let (is_ip, stop, network, extras) = decoded(next, &bytes, on_wire);
        prop_assert!(is_ip || stop.is_some());
        prop_assert!(network.payload_bytes.is_none_or(|payload| payload <= on_wire));
        let tunnel = extras.tunnel(network.tunnel);
        prop_assert_eq!(network.lane, tunnel.map_or(network.lane, |tunnel| tunnel.lane));
        if network.lane.is_outside() {
            prop_assert!(tunnel.is_none_or(|tunnel| tunnel.vni.is_none() && tunnel.teid.is_none()));
        }
    }

    #[test]
    fn test_a_packet_in_another_is_the_inner_one(
        protocols in prop::collection::vec(prop::sample::select(vec![4_u8, 94]), 0..20), payload in 0_u16..100,
    ) {
        let inner = ipv4(17, &datagram(7, &vec![0; payload.into()]));
        let bytes = protocols.iter().fold(inner, |inner, &protocol| ipv4(protocol, &inner));
        let (_, stop, network, extras) = decoded(Next::Ip, &bytes, bytes.len() as u32);
        let is_bomb = 2 * protocols.len() + 3 > MOST_HEADERS;
        prop_assert_eq!(stop.is_some_and(|stop| stop.reason == Reason::TooDeep), is_bomb);
        if !is_bomb {
            prop_assert_eq!(network.payload_bytes, Some(payload.into()));
            let depth = extras.tunnel(network.tunnel).and_then(Tunnel::name).map_or(0, |name| name.split('/').count());
            prop_assert_eq!(depth, protocols.len().min(8));
        }
    }
}
