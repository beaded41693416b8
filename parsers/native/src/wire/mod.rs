//! Bytes to headers, one file per protocol.
//!
//! Decoding proceeds layer by layer. Nothing is rejected: the fields that could be read are kept,
//! and a [`Stop`] has the layer in which decoding ended and the reason. Lengths are checked before
//! bytes are read; no function here can fail otherwise.

pub mod anonymize;
mod capture_header;
pub mod dccp;
pub mod dns;
mod ether_type;
mod frame_relay;
pub mod icmp;
mod ip;
mod juniper;
pub mod layers;
mod link;
mod link_header;
mod nflog;
pub mod opening;
mod prism;
pub mod probe;
pub mod quic;
mod radiotap;
mod rest;
pub mod rtcp;
pub mod rtp;
mod tcp;
pub mod tfrc_layout;
mod udp;
mod wifi;
mod wifi_rates;

use crate::packet::event::{Event, Layer, Packet, Reason, Stop};
use crate::packet::extras::PacketExtras;
use crate::packet::ip_fields::IpFields;
use crate::packet::key::Ipv4Ends;
use crate::packet::link_type::LinkType;
use crate::packet::plain::PlainSegment;
use crate::packet::record::Record;
use capture_header::Unwrapped;
use layers::TunnelPorts;

/// The input of a layer's decoder: the captured bytes from its first on, and their number on the
/// wire.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    captured: &'a [u8],
    on_wire: u32,
}

impl<'a> Bytes<'a> {
    /// The bytes after the first `n`; empty if these are not all captured.
    #[inline(always)]
    fn after(self, n: usize) -> Self {
        Self {
            captured: self.captured.get(n..).unwrap_or_default(),
            on_wire: self.on_wire.saturating_sub(n as u32),
        }
    }

    /// The reason why a header of `n` bytes is incomplete: the snap length, or the packet itself.
    fn shortage(self, n: usize, layer: Layer) -> Stop {
        let reason = if (self.on_wire as usize) < n { Reason::Malformed } else { Reason::Cut };
        Stop { layer, reason }
    }
}

/// Decode a record into `segment` if a plain segment holds all of it: nine packets in ten. One
/// length check instead of one per layer; false for other packets, and then `segment` is undefined.
#[inline(always)]
pub fn decode_plain(
    record: &Record<'_>,
    number: u64,
    segment: &mut PlainSegment,
    extras: &mut PacketExtras,
) -> bool {
    const BEFORE_OPTIONS: usize = 14 + 20 + 20;
    let Record { data, wire_bytes, .. } = *record;
    let Some((headers, rest)) = data.split_first_chunk::<BEFORE_OPTIONS>() else {
        return false;
    };
    let Some((ethernet, after)) = headers.split_first_chunk::<14>() else {
        return false;
    };
    let Some((ip_header, tcp_header)) = after.split_first_chunk::<20>() else {
        return false;
    };
    let Some(tcp_header) = tcp_header.first_chunk::<20>() else {
        return false;
    };
    // Version, ECN, total length, identification and fragment offset.
    let word = u64_at(ip_header, 0);
    let is_plain = record.link_type == LinkType::Ethernet
        && u16_at(ethernet, 12) == ether_type::IPV4
        // Version 4, no options, no fragment; packets marked by ECN are rare.
        && word & 0xfffc_0000_0000_3fff == 0x4500_0000_0000_0000
        && ip_header[9] == ip::TCP;
    let total = (word >> 32) as u32 & 0xffff;
    let header_bytes = (tcp_header[12] >> 4) * 4;
    let headers = 20 + u32::from(header_bytes);
    if !is_plain || header_bytes < 20 || total < headers || total > wire_bytes.saturating_sub(14) {
        return false;
    }
    let Some(options) = rest.get(..usize::from(header_bytes) - 20) else {
        return false;
    };
    let (Ok(captured_bytes), Ok(interface)) = (u16::try_from(data.len()), u16::try_from(record.interface))
    else {
        return false;
    };
    if !tcp::decode_plain(tcp_header, options, &mut segment.tcp, extras) {
        return false;
    }
    segment.number = number;
    segment.time_ns = record.time_ns;
    segment.ends = Ipv4Ends { addresses: u64_at(ip_header, 12), ports: u32_at(tcp_header, 0) };
    segment.interface = interface;
    segment.wire_bytes = wire_bytes;
    segment.captured_bytes = captured_bytes;
    segment.header_bytes = header_bytes;
    segment.payload = total - headers;
    segment.ip = IpFields {
        ip_id: Some((word >> 16) as u16),
        ttl: ip_header[8],
        ecn: (word >> 48) as u8 & 3,
        capture_point: IpFields::capture_point_of(u32::from(interface), None),
        is_cut: false,
    };
    true
}

/// Decode any record into `packet`, and the fields that do not fit there into `extras`. Both are
/// overwritten in place, because copies of a structure this size were a third of the time spent on
/// a packet.
#[inline(never)]
pub fn decode(
    record: &Record<'_>,
    number: u64,
    packet: &mut Packet,
    extras: &mut PacketExtras,
    ports: &TunnelPorts,
) {
    packet.number = number;
    packet.time_ns = record.time_ns;
    packet.interface = record.interface as u32;
    packet.captured_bytes = record.data.len() as u32;
    packet.wire_bytes = record.wire_bytes;
    packet.event = None;
    packet.sighting = None;
    packet.stop = None;
    packet.frame = None;
    let bytes = Bytes { captured: record.data, on_wire: record.wire_bytes };
    packet.is_ip = false;
    packet.network.clear();
    let (link_type, bytes) = match capture_header::unwrap(record.link_type, bytes) {
        Ok(Unwrapped { link_type, bytes, event }) => {
            packet.event = event;
            (link_type, bytes)
        }
        Err(stop) => {
            packet.stop = Some(stop);
            return;
        }
    };
    if wifi::is_wifi(link_type) {
        return wifi::decode(link_type, bytes, packet, extras, ports);
    }
    packet.stop = match link::decode(link_type, bytes) {
        Ok(link_header::Link { next, header, event }) => {
            packet.event = event.or(packet.event);
            let (is_ip, stop) = layers::decode(next, bytes.after(header), &mut packet.network, extras, ports);
            packet.is_ip = is_ip;
            stop
        }
        Err(stop) => Some(stop),
    };
}

#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// From a cooked header's packet type: 4 is "sent by us", 0 to 2 were received; 3 is a packet for
/// another host.
fn cooked_event(packet_type: u16) -> Option<Event> {
    match packet_type {
        0..=2 => Some(Event::Received),
        4 => Some(Event::Sent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ethernet, IPv4 and TCP headers with a timestamp option.
    const SEGMENT: [u8; 66] = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, // Ethernet
        0x45, 0, 0, 62, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4, 62 bytes
        0x14, 0x51, 0x30, 0x39, 0, 0, 0, 1, 0, 0, 0, 2, 0x80, 0x18, 1, 0, 0, 0, 0, 0, // TCP
        1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4,
    ];

    fn both_ways(data: &[u8], wire_bytes: u32) -> (Option<Packet>, Packet) {
        let link_type = LinkType::Ethernet;
        let record = Record { time_ns: 7, interface: 1, link_type, data, wire_bytes };
        let (mut segment, mut extras) = (PlainSegment::default(), PacketExtras::default());
        let is_plain = decode_plain(&record, 9, &mut segment, &mut extras);
        let mut packet = Packet::default();
        let mut others = PacketExtras::default();
        decode(&record, 9, &mut packet, &mut others, &TunnelPorts::default());
        if is_plain {
            let sack = packet.network.tcp.options.sack;
            assert_eq!(extras.sack(segment.tcp.options.sack), others.sack(sack));
            assert_eq!(segment.ip, IpFields::of(&packet));
        }
        (is_plain.then(|| segment.to_packet()), packet)
    }

    #[test]
    fn test_a_plain_segment_takes_the_short_way() {
        let (plain, _) = both_ways(&SEGMENT, 76);
        let network = plain.unwrap().network;
        assert_eq!(network.payload_bytes, Some(10));
        assert_eq!(network.tcp.options.timestamp, Some((3, 4)));
        assert_eq!((network.endpoints.src_port, network.endpoints.dst_port), (5201, 12345));
    }

    proptest! {
        #[test]
        fn test_the_short_way_finds_what_the_long_way_finds(
            changes in proptest::collection::vec((0_usize..66, any::<u8>()), 0..4),
            captured in 0_usize..=66,
            beyond in 0_u32..40,
        ) {
            let mut data = SEGMENT;
            changes.into_iter().for_each(|(at, byte)| data[at] = byte);
            let (plain, any) = both_ways(&data[..captured], captured as u32 + beyond);
            if let Some(plain) = plain {
                prop_assert_eq!(format!("{plain:?}"), format!("{any:?}"));
            }
        }
    }
}
