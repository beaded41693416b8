//! One packet from its lines.

use super::absolute_sequence::Numbers;
use super::{Tcpdump, datagram, endpoints, ip, link, tcp, tcp_options};
use crate::packet::event::{
    Endpoints, Event, Family, Layer, Network, Packet, Reason, Sack, Stop, Tcp, TcpFlags, Transport,
};
use crate::packet::ip_fields::IpFields;
use crate::packet::key::FlowKey;
use crate::packet::plain::PlainSegment;

const ENDS: &str = "expected `source > destination:` after `IP` or `IP6`";
const A_TCP_HEADER: &str = "expected a whole TCP header";

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;
const IPV4_HEADER: u32 = 20;

/// The fields before the addresses.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Number of the line.
    pub number: u64,
    /// Time, as far as it is known.
    pub time_ns: i64,
    /// Whether the time is relative.
    pub is_since: bool,
    pub interface: u32,
    pub event: Option<Event>,
    pub frame_bytes: Option<u32>,
    pub ip: ip::Header,
}

impl Start {
    fn packet(&self) -> Packet {
        Packet {
            number: self.number,
            time_ns: self.time_ns,
            interface: self.interface,
            event: self.event,
            ..Packet::default()
        }
    }

    /// Make a packet without IP, with this EtherType.
    pub fn without_ip(&self, ether_type: u32, text: &[u8], packet: &mut Packet) {
        *packet = self.packet();
        let reason = match is_cut(text) {
            true => Reason::Cut,
            false => Reason::Unknown(ether_type),
        };
        packet.stop = Some(Stop { layer: Layer::Link, reason });
        set_size(packet, self.frame_bytes.unwrap_or_else(|| link::other_bytes(text)));
    }

    /// Make an IP packet; `text` begins with its addresses.
    #[inline]
    pub fn with_ip(
        &self,
        text: &[u8],
        format: &mut Tcpdump,
        packet: &mut Packet,
    ) -> Result<(), &'static str> {
        *packet = self.packet();
        let Some((has_ports, rest)) = endpoints::read(text, &mut packet.network.endpoints, &mut format.hosts)
        else {
            if !is_cut(text) {
                return Err(ENDS);
            }
            self.without_ip(0, text, packet);
            return Ok(());
        };
        packet.is_ip = true;
        self.ip.fill(&mut packet.network);
        packet.network.has_ports = has_ports;
        let mut ip = self.ip;
        if matches!(packet.network.endpoints.family, Family::V4 | Family::V6) {
            ip.family = Some(packet.network.endpoints.family);
        }
        let rest = match endpoints::behind_extension_headers(rest).filter(|_| !has_ports) {
            Some(((src_port, dst_port), after)) => {
                let network = &mut packet.network;
                (network.endpoints.src_port, network.endpoints.dst_port) = (src_port, dst_port);
                network.has_ports = true;
                (ip.protocol, ip.has_options) = (None, true);
                after
            }
            None => rest,
        };
        let behind_ip = match self.transport(&ip, rest, format, packet)? {
            Some(bytes) => bytes,
            None => ip.payload().unwrap_or_else(|| link::other_bytes(rest)),
        };
        let ip_bytes = ip.payload().unwrap_or_else(|| behind_ip.saturating_sub(ip.missing));
        set_size(packet, self.frame_bytes.unwrap_or(ip_bytes.saturating_add(ip.bytes())));
        Ok(())
    }

    /// Read the text after the addresses, and return the packet's length if it is known.
    #[inline]
    fn transport(
        &self,
        ip: &ip::Header,
        text: &[u8],
        format: &mut Tcpdump,
        packet: &mut Packet,
    ) -> Result<Option<u32>, &'static str> {
        let network = &mut packet.network;
        let may_have_ports = network.has_ports || network.endpoints.family == Family::Name;
        if may_have_ports
            && matches!(ip.protocol, None | Some(TCP))
            && !ip.is_later_fragment()
            && let Some(header) = tcp::read(text)
        {
            if header.is_cut {
                packet.stop = Some(Stop { layer: Layer::Tcp, reason: Reason::Cut });
            }
            return Ok(take_tcp(&header, ip, text, format, network));
        }
        if text.starts_with(b"Flags [") {
            return Err(A_TCP_HEADER);
        }
        let protocol = ip.protocol.unwrap_or_else(|| datagram::protocol(text, network.has_ports));
        network.endpoints.protocol = protocol;
        if ip.is_later_fragment() {
            network.transport = Transport::LaterFragment;
            network.has_ports = false;
            network.payload_bytes = ip.payload();
            return Ok(ip.payload());
        }
        let is_cut_inside = memchr::memmem::find(text, b"[|udp]").is_some();
        if protocol == UDP && may_have_ports && !is_cut_inside {
            return Ok(take_udp(text, ip, network));
        }
        packet.stop = stop(protocol, text, network);
        Ok(None)
    }
}

/// Whether a packet fits a plain segment: only its ends and a whole TCP header are printed, without
/// SYN, with no options but a timestamp and SACK blocks, and its number is known.
#[inline(always)]
pub fn is_plain(known: &endpoints::KnownConnection, header: &tcp::Header) -> bool {
    known.endpoints.family == Family::V4 && ipv4_bytes(header) <= u32::from(u16::MAX)
}

#[inline(always)]
fn ipv4_bytes(header: &tcp::Header) -> u32 {
    header.payload.unwrap_or(0).saturating_add(IPV4_HEADER + TCP_HEADER + header.options.bytes)
}

/// Write such a packet; its time and blocks are to be set.
#[inline(always)]
pub fn fill_plain(
    number: u64,
    known: &endpoints::KnownConnection,
    header: &tcp::Header,
    numbers: Numbers,
    segment: &mut PlainSegment,
) {
    let bytes = ipv4_bytes(header);
    segment.number = number;
    segment.ends = known.ends;
    segment.interface = 0;
    segment.wire_bytes = bytes;
    segment.captured_bytes = bytes as u16;
    segment.header_bytes = (TCP_HEADER + header.options.bytes) as u8;
    segment.payload = header.payload.unwrap_or(0);
    segment.tcp = tcp_header(header, numbers.seq.unwrap_or(0), numbers);
    segment.ip = IpFields::default();
}

/// A packet of any family and length.
#[inline]
pub fn tcp_alone(number: u64, endpoints: &Endpoints, header: &tcp::Header, numbers: Numbers) -> Packet {
    let ip = ip::Header::of(Some(endpoints.family));
    let payload = header.payload.unwrap_or(0);
    let bytes = payload.saturating_add(TCP_HEADER + header.options.bytes).saturating_add(ip.bytes());
    let mut packet = Packet {
        number,
        wire_bytes: bytes,
        captured_bytes: bytes,
        is_ip: true,
        network: Network {
            endpoints: *endpoints,
            has_ports: true,
            payload_bytes: header.payload,
            ..Network::default()
        },
        ..Packet::default()
    };
    place_in_stream(header, numbers, &mut packet.network);
    packet
}

/// Read the TCP header that `text` begins with. Return the length with the payload, unless the text
/// was cut.
#[inline]
fn take_tcp(
    header: &tcp::Header,
    ip: &ip::Header,
    text: &[u8],
    format: &mut Tcpdump,
    network: &mut Network,
) -> Option<u32> {
    network.endpoints.protocol = TCP;
    network.has_ports = true;
    network.payload_bytes = header.payload.map(|payload| payload.saturating_sub(ip.missing));
    let length = TCP_HEADER + header.options.bytes;
    if header.is_whole {
        let (key, side) = FlowKey::of(&network.endpoints);
        let place = format.conversations.place(key);
        let numbers = format.conversations.resolve(place, side, header);
        place_in_stream(header, numbers, network);
        format.seen.no_ip_header |= network.endpoints.family == Family::V4 && network.ip_id.is_none();
        if network.tcp.options.sack == Sack::PRINTED {
            format.sacks.push(tcp_options::sack_blocks(text, numbers.ack_offset(header)));
        }
    } else {
        format.seen.tcp_without_header |= !header.is_cut;
    }
    header.payload.map(|payload| payload.saturating_add(length))
}

/// Write the TCP header. A bare acknowledgement without a number is counted, but has no place in
/// the stream yet.
#[inline]
fn place_in_stream(header: &tcp::Header, numbers: Numbers, network: &mut Network) {
    let Some(seq) = numbers.seq else { return };
    network.transport = Transport::Tcp;
    network.header_bytes = (TCP_HEADER + header.options.bytes) as u8;
    network.tcp = tcp_header(header, seq, numbers);
}

#[inline(always)]
fn tcp_header(header: &tcp::Header, seq: u32, numbers: Numbers) -> Tcp {
    Tcp {
        seq,
        ack: if header.flags.has(TcpFlags::ACK) { numbers.ack } else { 0 },
        flags: header.flags,
        window: header.window,
        options: header.options.known,
    }
}

/// Read a datagram. IP's length is more reliable than an application's text.
fn take_udp(text: &[u8], ip: &ip::Header, network: &mut Network) -> Option<u32> {
    let printed = datagram::udp_payload(text);
    let behind_ip = ip.payload().and_then(|bytes| bytes.checked_sub(UDP_HEADER));
    network.has_ports = true;
    network.transport = Transport::Udp;
    network.header_bytes = UDP_HEADER as u8;
    let is_shorter = ip.has_options || network.fragment.is_some();
    network.payload_bytes = match (printed, behind_ip, is_shorter) {
        (Some(printed), Some(whole), true) => Some(printed.min(whole)),
        (_, Some(whole), _) => Some(whole),
        (printed, None, _) => printed.map(|payload| payload.saturating_sub(ip.missing)),
    };
    printed.or(behind_ip).map(|payload| payload.saturating_add(UDP_HEADER))
}

/// Why nothing after the IP header was read.
#[cold]
fn stop(protocol: u8, text: &[u8], network: &Network) -> Option<Stop> {
    let (layer, reason) = match (protocol, is_cut(text)) {
        (TCP, true) => (Layer::Tcp, Reason::Cut),
        (UDP, true) => (Layer::Udp, Reason::Cut),
        // A fragment, whose datagram the text does not identify.
        (TCP | UDP, false) => return None,
        (_, cut) => {
            let layer = if network.endpoints.family == Family::V6 { Layer::Ipv6 } else { Layer::Ipv4 };
            (layer, if cut { Reason::Cut } else { Reason::Unknown(u32::from(protocol)) })
        }
    };
    Some(Stop { layer, reason })
}

#[inline]
fn is_cut(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"[|").is_some()
}

#[inline]
fn set_size(packet: &mut Packet, bytes: u32) {
    packet.wire_bytes = bytes;
    packet.captured_bytes = bytes;
}
