//! The headers of a packet, `ns3::Name (fields)` one after the other, as far as they matter.
//!
//! Parsing relies on the words around a field, not on its position: releases have added fields
//! (`DSCP`, `PowerManagement=`), moved marks (`DA=` became `DA(RA)=`) and never renamed one.

use memchr::memchr2;
use memchr::memmem::Finder;

use super::scanner::Scanner;
use super::transport;
use crate::input::text::number::hexadecimal;
use crate::packet::event::{Address, Family, Fragment, Layer, Packet, Reason, Stop};

/// Bytes of an IPv4 header; ns-3 sends no options.
const IPV4_HEADER: u32 = 20;
/// Bytes of an IPv6 header.
const IPV6_HEADER: u32 = 40;
/// The largest IPv6 packet, so that sums of lengths stay small.
const MAX_IP_BYTES: u64 = 65_535 + IPV6_HEADER as u64;

/// A MAC address as a number.
pub type Mac = u64;

/// Fields of the link layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// An address that the sending node claims by address resolution.
    pub announced: Option<(Family, Address)>,
    /// The station that sends.
    pub transmitter: Option<Mac>,
    pub receiver: Option<Mac>,
    /// Whether it is a retransmission of the link.
    pub is_retry: bool,
}

/// Read `text` into `packet`, whose headers must be empty. A packet without an IP header is not an
/// error.
pub fn read(text: &[u8], start: &Finder<'_>, packet: &mut Packet) -> Result<Frame, &'static str> {
    let mut frame = Frame::default();
    let mut rest = text;
    while let Some(at) = start.find(rest) {
        let header = rest.get(at + start.needle().len()..).unwrap_or_default();
        let Some(name_end) = memchr2(b' ', b'(', header) else { break };
        let (name, fields) = header.split_at(name_end);
        rest = fields;
        match name {
            b"Ipv4Header" if !packet.is_ip => {
                read_ipv4(fields, packet).ok_or("expected the fields of an IPv4 header")?;
            }
            b"Ipv6Header" if !packet.is_ip => {
                read_ipv6(fields, packet).ok_or("expected the fields of an IPv6 header")?;
            }
            b"TcpHeader" if has_transport(packet) => {
                let bytes = transport_bytes(packet);
                transport::read_tcp(fields, bytes, &mut packet.network)
                    .ok_or("expected the fields of a TCP header")?;
                break;
            }
            b"UdpHeader" if has_transport(packet) => {
                transport::read_udp(fields, &mut packet.network)
                    .ok_or("expected the fields of a UDP header")?;
                break;
            }
            b"WifiMacHeader" => frame = read_wifi(fields),
            b"ArpHeader" => frame.announced = arp_source(fields),
            b"Icmpv6NS" if packet.network.endpoints.src == 0 => frame.announced = wanted_address(fields),
            // An error message quotes the packet that it is about.
            _ if packet.is_ip && name.starts_with(b"Icmp") => break,
            _ => {}
        }
    }
    if !packet.is_ip {
        packet.stop = Some(Stop { layer: Layer::Link, reason: Reason::Unknown(0) });
    }
    Ok(frame)
}

/// Whether the packet may have a transport header: only the first fragment does.
fn has_transport(packet: &Packet) -> bool {
    packet.is_ip && packet.network.fragment.is_none_or(|fragment| fragment.offset == 0)
}

/// Bytes after the IP header.
fn transport_bytes(packet: &Packet) -> u32 {
    let header = if packet.network.endpoints.family == Family::V4 { IPV4_HEADER } else { IPV6_HEADER };
    packet.wire_bytes.saturating_sub(header)
}

/// `(tos 0x0 DSCP Default ECN Not-ECT ttl 64 id 0 protocol 6 offset (bytes) 0 flags [none] length: 56
/// 10.1.1.1 > 10.1.2.2)`
fn read_ipv4(fields: &[u8], packet: &mut Packet) -> Option<()> {
    let mut scanner = Scanner::new(fields);
    let tos = hexadecimal(scanner.after(b"tos 0x")?.until(b' ')?)?;
    let network = &mut packet.network;
    network.ecn = (tos & 3) as u8;
    network.dscp = Some((tos >> 2 & 0x3f) as u8);
    network.ttl = scanner.after(b"ttl ")?.small()?;
    let id: u16 = scanner.after(b"id ")?.small()?;
    network.ip_id = Some(id);
    network.endpoints.protocol = scanner.after(b"protocol ")?.small()?;
    scanner.after(b"offset ")?.passes(b"(bytes) ");
    let offset: u16 = scanner.small()?;
    let flags = scanner.after(b"flags [")?.until(b']')?;
    let has_more = flags.windows(2).any(|two| two == b"MF");
    let bytes = scanner.after(b"length: ")?.number().filter(|&bytes| bytes <= MAX_IP_BYTES)? as u32;
    let endpoints = &mut network.endpoints;
    endpoints.family = Family::V4;
    scanner.passes(b" ");
    endpoints.src = ipv4_address(scanner.until(b' ')?)?;
    endpoints.dst = ipv4_address(scanner.after(b"> ")?.until(b')')?)?;
    if has_more || offset > 0 {
        network.fragment = Some(Fragment { id: u32::from(id), offset: u32::from(offset) });
    }
    finish_ip(packet, bytes, bytes.saturating_sub(IPV4_HEADER));
    Some(())
}

/// `((Version 6 Traffic class 0x0 DSCP Default Flow Label 0x1 Payload Length 36 Next Header 6 Hop Limit
/// 64 )2001:db8::3 > 2001:db8::6)`
fn read_ipv6(fields: &[u8], packet: &mut Packet) -> Option<()> {
    let mut scanner = Scanner::new(fields);
    let class = hexadecimal(scanner.after(b"Traffic class 0x")?.until(b' ')?)?;
    let network = &mut packet.network;
    network.ecn = (class & 3) as u8;
    network.dscp = Some((class >> 2 & 0x3f) as u8);
    let payload = scanner.after(b"Payload Length ")?.number()?;
    let endpoints = &mut network.endpoints;
    endpoints.family = Family::V6;
    endpoints.protocol = scanner.after(b"Next Header ")?.small()?;
    network.ttl = scanner.after(b"Hop Limit ")?.small()?;
    endpoints.src = ipv6_address(scanner.after(b")")?.until(b' ')?)?;
    endpoints.dst = ipv6_address(scanner.after(b"> ")?.until(b')')?)?;
    let bytes = payload.checked_add(u64::from(IPV6_HEADER)).filter(|&bytes| bytes <= MAX_IP_BYTES)? as u32;
    finish_ip(packet, bytes, payload as u32);
    Some(())
}

fn finish_ip(packet: &mut Packet, bytes: u32, payload: u32) {
    packet.is_ip = true;
    packet.wire_bytes = bytes;
    packet.captured_bytes = bytes;
    if packet.network.fragment.is_some_and(|fragment| fragment.offset > 0) {
        transport::leave_later_fragment(&mut packet.network, payload);
    }
}

fn ipv4_address(text: &[u8]) -> Option<Address> {
    let mut scanner = Scanner::new(text);
    let mut address = 0;
    for part in 0..4 {
        if part > 0 && !scanner.passes(b".") {
            return None;
        }
        address = address << 8 | u128::from(scanner.small::<u8>()?);
    }
    scanner.rest().is_empty().then_some(address)
}

fn ipv6_address(text: &[u8]) -> Option<Address> {
    std::str::from_utf8(text).ok()?.parse().map(std::net::Ipv6Addr::to_bits).ok()
}

/// Older releases print the roles of the addresses in the frame, and the sender and receiver follow
/// from the direction; newer releases print both.
fn read_wifi(fields: &[u8]) -> Frame {
    let end = memchr::memchr(b')', fields).unwrap_or_default();
    // Marks such as `DA(RA)=` have parentheses of their own.
    let is_new = fields.get(end..end + 2) == Some(b")=");
    let field = |name: &[u8]| Scanner::new(fields).after(name).and_then(|it| mac(it.rest()));
    let is_set = |name: &[u8]| Scanner::new(fields).after(name).is_some_and(|it| it.passes(b"1"));
    let bssid = || field(b" BSSID=");
    let receiver = if is_new { field(b"(RA)=") } else { field(b" RA=") };
    let transmitter = if is_new { field(b"(TA)=") } else { field(b" TA=") };
    Frame {
        receiver: receiver.or_else(|| if is_set(b"ToDS=") { bssid() } else { field(b" DA=") }),
        transmitter: transmitter.or_else(|| if is_set(b"FromDS=") { bssid() } else { field(b" SA=") }),
        is_retry: is_set(b"Retry="),
        announced: None,
    }
}

/// `(reply source mac: 00-06-00:00:00:00:00:04 source ipv4: 10.1.1.2 dest mac: ...`
fn arp_source(fields: &[u8]) -> Option<(Family, Address)> {
    let address = Scanner::new(fields).after(b"source ipv4: ")?.until(b' ')?;
    ipv4_address(address).map(|address| (Family::V4, address))
}

/// `(( type = 135 (NS) code = 0 target = 2001:db8::6 checksum = 53834))`: without a source address
/// it asks whether another node has the address that this node is going to take (RFC 4862 section
/// 5.4).
fn wanted_address(fields: &[u8]) -> Option<(Family, Address)> {
    let address = Scanner::new(fields).after(b"target = ")?.until(b' ')?;
    ipv6_address(address).map(|address| (Family::V6, address))
}

/// Six hexadecimal numbers with colons.
fn mac(text: &[u8]) -> Option<Mac> {
    let text = text.get(..17)?;
    let mut address = 0;
    for part in text.split(|&byte| byte == b':') {
        address = address << 8 | hexadecimal(part).filter(|_| part.len() == 2)?;
    }
    Some(address)
}

/// Whether a MAC address is that of a group, not of a station.
pub fn is_group(mac: Mac) -> bool {
    mac >> 40 & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::Transport;

    fn packet_of(text: &str) -> (Packet, Frame) {
        let mut packet = Packet::default();
        let frame = read(text.as_bytes(), &Finder::new("ns3::"), &mut packet).unwrap();
        (packet, frame)
    }

    #[test]
    fn test_ipv4_of_all_releases() {
        for (words, offset) in
            [("ttl", ""), ("ttl", "(bytes) "), ("DSCP Default ECN Not-ECT ttl", "(bytes) ")]
        {
            let text = format!(
                "ns3::PppHeader (Point-to-Point Protocol: IP (0x0021)) ns3::Ipv4Header (tos 0x2 {words} 63 id 9 \
                 protocol 17 offset {offset}0 flags [none] length: 1028 10.1.5.1 > 10.1.6.2) ns3::UdpHeader \
                 (length: 1008 49153 > 6001) Payload (size=1000)"
            );
            let (packet, _) = packet_of(&text);
            let network = &packet.network;
            assert_eq!((network.ttl, network.ip_id, network.ecn), (63, Some(9), 2));
            assert_eq!((network.endpoints.src, network.endpoints.dst), (0x0a01_0501, 0x0a01_0602));
            assert_eq!((network.transport, network.payload_bytes), (Transport::Udp, Some(1000)));
            assert_eq!((packet.wire_bytes, packet.captured_bytes), (1028, 1028));
        }
    }

    #[test]
    fn test_ipv6_and_its_extension_headers() {
        let (packet, _) = packet_of(
            "ns3::Ipv6Header ((Version 6 Traffic class 0x1 DSCP Default Flow Label 0x1 Payload Length 1008 Next Header \
             17 Hop Limit 64 )2001:db8:3:0:200:ff:fe00:7 > 2001:db8:4:0:200:ff:fe00:a) ns3::UdpHeader (length: 1008 \
             49153 > 6001) ns3::SeqTsHeader ((seq=7 time=+0.7s)) Payload (size=988)",
        );
        let network = &packet.network;
        assert_eq!(network.endpoints.family, Family::V6);
        assert_eq!(network.endpoints.src, 0x2001_0db8_0003_0000_0200_00ff_fe00_0007);
        assert_eq!((network.sequence, network.payload_bytes, network.ecn), (Some(7), Some(1000), 1));
        assert_eq!(packet.wire_bytes, 1048);
    }

    #[test]
    fn test_fragments_behind_the_first_have_no_ports() {
        let fragment = |offset: u32, flags: &str| {
            packet_of(&format!(
                "ns3::Ipv4Header (tos 0x0 ttl 64 id 5 protocol 17 offset (bytes) {offset} flags [{flags}] length: 996 \
                 10.0.0.1 > 10.0.0.2) ns3::UdpHeader (length: 3008 49153 > 9) Payload Fragment [0:968]"
            ))
            .0
            .network
        };
        let (first, later, whole) = (fragment(0, "MF"), fragment(976, "none"), fragment(0, "none"));
        assert_eq!((first.transport, first.has_ports), (Transport::Udp, true));
        assert_eq!(
            (later.transport, later.has_ports, later.payload_bytes),
            (Transport::LaterFragment, false, Some(976))
        );
        assert_eq!((first.fragment.map(|it| it.offset), whole.fragment), (Some(0), None));
    }

    #[test]
    fn test_errors_that_quote_a_packet_are_not_that_packet() {
        let (packet, _) = packet_of(
            "ns3::Ipv4Header (tos 0x0 ttl 64 id 0 protocol 1 offset 0 flags [none] length: 56 10.0.0.2 > 10.0.0.1) \
             ns3::Icmpv4Header (type=3, code=3) ns3::UdpHeader (length: 8 1 > 2)",
        );
        assert!(packet.is_ip && !packet.network.has_ports);
    }

    #[test]
    fn test_sender_and_receiver_on_the_air() {
        let data = |fields: &str| {
            packet_of(&format!("ns3::WifiMacHeader (DATA {fields}, FragNumber=0, SeqNumber=9)")).1
        };
        let (ap, station, other) = (3, 4, 5);
        let frame = |transmitter, receiver| Frame {
            transmitter: Some(transmitter),
            receiver: Some(receiver),
            ..Frame::default()
        };
        let mac = |last: u64| format!("00:00:00:00:00:{last:02x}");
        let (ap_mac, station_mac, other_mac) = (mac(ap), mac(station), mac(other));
        for (fields, expected) in [
            (
                format!("ToDS=0, FromDS=1, DA(RA)={station_mac}, SA={other_mac}, BSSID(TA)={ap_mac}"),
                frame(ap, station),
            ),
            (
                format!("ToDS=1, FromDS=0, DA={other_mac}, SA(TA)={station_mac}, BSSID(RA)={ap_mac}"),
                frame(station, ap),
            ),
            (
                format!("ToDS=0, FromDS=1, DA={station_mac}, SA={other_mac}, BSSID={ap_mac}"),
                frame(ap, station),
            ),
            (
                format!("ToDS=1, FromDS=0, DA={other_mac}, SA={station_mac}, BSSID={ap_mac}"),
                frame(station, ap),
            ),
            (
                format!("ToDS=0, FromDS=0, DA={other_mac}, SA={station_mac}, BSSID={ap_mac}"),
                frame(station, other),
            ),
        ] {
            assert_eq!(data(&fields), expected, "{fields}");
        }
        let (packet, frame) =
            packet_of("ns3::WifiMacHeader (CTL_ACK Duration/ID=0us, RA=00:00:00:00:00:05) ");
        assert_eq!((frame.receiver, frame.transmitter), (Some(5), None));
        assert!(!packet.is_ip && packet.stop.is_some());
    }

    #[test]
    fn test_address_resolution_shows_whose_an_address_is() {
        let announced = |text: &str| packet_of(text).1.announced;
        let reply = "ns3::ArpHeader (reply source mac: 00-06-00:00:00:00:00:04 source ipv4: 10.1.1.2 dest mac: \
                     00-06-00:00:00:00:00:03 dest ipv4: 10.1.1.1) Payload (size=18)";
        assert_eq!(announced(reply), Some((Family::V4, 0x0a01_0102)));
        let solicitation = |source: &str| {
            announced(&format!(
                "ns3::Ipv6Header ((Version 6 Traffic class 0x0 DSCP Default Flow Label 0x1 Payload Length 32 Next Header \
                 58 Hop Limit 255 ){source} > ff02::1:ff00:6) ns3::Icmpv6NS (( type = 135 (NS) code = 0 target = \
                 2001:db8::6 checksum = 53834))"
            ))
        };
        assert_eq!(solicitation("::"), Some((Family::V6, 0x2001_0db8 << 96 | 6)));
        assert_eq!(solicitation("fe80::1"), None, "it asks for the address of another");
    }

    #[test]
    fn test_broken_fields_are_refused() {
        for text in [
            "ns3::Ipv4Header (tos 0x0 ttl 64 id 5",
            "ns3::Ipv4Header (tos 0x0 ttl 64 id 5 protocol 17 offset 0 flags [none] length: 99999999 10.0.0.1 > 10.0.0.2)",
            "ns3::Ipv4Header (tos 0x0 ttl 64 id 5 protocol 17 offset 0 flags [none] length: 28 10.0.0.256 > 10.0.0.2)",
            "ns3::Ipv6Header ((Version 6 Traffic class 0x1 Payload Length 1 Next Header 17 Hop Limit 64 )x > y)",
        ] {
            let mut packet = Packet::default();
            assert!(read(text.as_bytes(), &Finder::new("ns3::"), &mut packet).is_err(), "{text}");
        }
    }
}
