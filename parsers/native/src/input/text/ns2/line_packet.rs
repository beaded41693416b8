//! The fields that all forms of lines share, and the packet that is made of them.

use super::fields::PathEnd;
use crate::packet::event::{
    Address, Agent, Code, Endpoints, Event, Family, Layer, Network, NodeLayer, Numbering, PROTOCOL_TFRC,
    Packet, PathPoint, Reason, Sack, Sighting, Stop, Tcp, TcpFlags, TcpOptions, Transport,
};

/// Bytes of header that ns-2 adds to the size of a packet of its one-way TCP agents.
pub const TCP_HEADER_BYTES: u32 = 40;
/// Bytes of header that ns-2 adds to the size of a TFRC packet.
const TFRC_HEADER_BYTES: u32 = 32;
/// The port of routing agents.
const ROUTING_PORT: u16 = 255;
/// ECT(0) and CE (RFC 3168).
const ECN_CAPABLE: u8 = 2;
const ECN_MARKED: u8 = 3;
/// The TCP flags ECE and CWR (RFC 3168).
const ECN_ECHO: u16 = 0x040;
const WINDOW_REDUCED: u16 = 0x080;
/// A header with unknown fields. ns-2's receivers never close their windows, and print none.
const NO_WINDOW: Tcp = Tcp {
    seq: 0,
    ack: 0,
    flags: TcpFlags(0),
    window: u16::MAX,
    options: TcpOptions { timestamp: None, mss: None, window_scale: None, sack: Sack::NONE },
};

/// Kinds of packets by their type in ns-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    Tcp,
    /// An acknowledgement of TCP.
    Ack,
    Tfrc,
    /// A report of TFRC's receiver.
    TfrcFeedback,
    /// Other application data.
    Datagram,
    /// Traffic of the network itself: routing, address resolution, medium access.
    Control,
}

impl PacketKind {
    /// The kind of ns-2's packet type `name`.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        match name {
            b"tcp" => Self::Tcp,
            b"ack" => Self::Ack,
            b"tcpFriend" => Self::Tfrc,
            b"tcpFriendCtl" => Self::TfrcFeedback,
            b"RTS" | b"CTS" | b"ACK" | b"MAC" | b"ARP" | b"AODV" | b"AOMDV" | b"DSDV" | b"DSR" | b"TORA"
            | b"IMEP" | b"OLSR" | b"MDART" | b"PUMA" | b"rtProtoDV" | b"rtProtoLS" => Self::Control,
            _ => Self::Datagram,
        }
    }
}

/// The header of a FullTcp agent, which `show_tcphdr_` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The next byte expected; -1 before the first data.
    pub ack: i64,
    /// Flags as on the wire; None where only the numbers are printed.
    pub flags: Option<u16>,
    /// Bytes of the IP and TCP headers.
    pub bytes: u32,
}

/// The packet of one line.
#[derive(Clone, Copy, Debug)]
pub struct LinePacket {
    pub event: Event,
    pub time_ns: i64,
    /// Number of the node.
    pub node: u32,
    pub layer: NodeLayer,
    /// Number of the packet, the same at all hops.
    pub uid: u64,
    pub kind: PacketKind,
    pub agent: Option<Agent>,
    /// Bytes, headers included as ns-2 counts them.
    pub size: u32,
    /// The flow id; not in all forms.
    pub flow_id: Option<u32>,
    /// Source and destination; frames of medium access have none.
    pub ends: Option<(PathEnd, PathEnd)>,
    /// Sequence number as printed; not in all forms.
    pub sequence: Option<i64>,
    pub header: Option<Header>,
    /// Bytes of header in `size`, for one-way TCP.
    pub tcp_header_bytes: u32,
    pub marks: FlagMarks,
    /// Why it was dropped.
    pub reason: Code,
    /// Time to live; 0 if not shown.
    pub ttl: u8,
}

impl Default for LinePacket {
    fn default() -> Self {
        Self {
            event: Event::Sent,
            time_ns: 0,
            node: 0,
            layer: NodeLayer::Link,
            uid: 0,
            kind: PacketKind::Control,
            agent: None,
            size: 0,
            flow_id: None,
            ends: None,
            sequence: None,
            header: None,
            tcp_header_bytes: TCP_HEADER_BYTES,
            marks: FlagMarks::default(),
            reason: Code::default(),
            ttl: 0,
        }
    }
}

impl LinePacket {
    /// A packet with only the fields that all forms start with.
    pub fn new(event: Event, time_ns: i64, node: u32, layer: NodeLayer) -> Self {
        Self { event, time_ns, node, layer, ..Self::default() }
    }

    /// Reset to such a packet in place: copying this struct for each line would cost time.
    #[inline(always)]
    pub fn restart(&mut self, event: Event, time_ns: i64, node: u32, layer: NodeLayer) {
        self.event = event;
        self.time_ns = time_ns;
        self.node = node;
        self.layer = layer;
        self.uid = 0;
        self.kind = PacketKind::Control;
        self.size = 0;
        self.flow_id = None;
        self.ends = None;
        self.sequence = None;
        self.header = None;
        self.marks = FlagMarks::default();
        self.agent = None;
        self.reason = Code::default();
        self.ttl = 0;
    }

    /// Source and destination with their ports, if it is a packet of a flow.
    #[inline(always)]
    pub fn endpoints(&self) -> Option<Endpoints> {
        let (src, dst) = self.ends?;
        let protocol = match self.kind {
            PacketKind::Tcp | PacketKind::Ack => 6,
            PacketKind::Tfrc | PacketKind::TfrcFeedback => PROTOCOL_TFRC,
            PacketKind::Datagram => 17,
            PacketKind::Control => return None,
        };
        let (src_port, dst_port) = (src.port?, dst.port?);
        // DSDV's updates have type `message`, which applications use too.
        if protocol == 17 && src_port == ROUTING_PORT && dst_port == ROUTING_PORT {
            return None;
        }
        let (src, dst) = (Address::from(src.address), Address::from(dst.address));
        Some(Endpoints { family: Family::Node, protocol, src, dst, src_port, dst_port })
    }

    /// The protocol, if it is a packet of a flow.
    #[inline(always)]
    pub fn protocol(&self) -> Option<u8> {
        self.endpoints().map(|endpoints| endpoints.protocol)
    }

    /// Write `packet` field by field, for the same reason as in [`LinePacket::restart`].
    #[inline(always)]
    pub fn fill(&self, number: u64, interface: u32, event: Event, point: PathPoint, packet: &mut Packet) {
        packet.number = number;
        packet.time_ns = self.time_ns;
        packet.interface = interface;
        packet.event = Some(event);
        packet.sighting = Some(Sighting {
            layer: self.layer,
            point,
            identity: self.uid,
            reason: self.reason,
            agent: self.agent,
        });
        packet.captured_bytes = self.size;
        packet.wire_bytes = self.size;
        packet.network.clear();
        packet.network.tcp = NO_WINDOW;
        packet.network.header_bytes = 0;
        packet.network.ttl = self.ttl;
        packet.network.ecn = self.marks.ecn;
        match self.endpoints() {
            Some(endpoints) => {
                packet.is_ip = true;
                packet.stop = None;
                self.fill_network(endpoints, &mut packet.network);
            }
            None => {
                packet.is_ip = false;
                packet.stop = Some(Stop { layer: Layer::Link, reason: Reason::Unknown(0) });
            }
        }
    }

    #[inline(always)]
    fn fill_network(&self, endpoints: Endpoints, network: &mut Network) {
        network.endpoints = endpoints;
        network.has_ports = true;
        network.flow_id = self.flow_id;
        let payload = match self.kind {
            PacketKind::Tcp | PacketKind::Ack => self.fill_tcp(network),
            PacketKind::Tfrc => {
                network.transport = Transport::Tfrc;
                self.size.saturating_sub(TFRC_HEADER_BYTES)
            }
            PacketKind::TfrcFeedback => {
                network.transport = Transport::TfrcFeedback;
                0
            }
            PacketKind::Datagram | PacketKind::Control => {
                network.transport = Transport::Udp;
                self.size
            }
        };
        network.payload_bytes = Some(payload);
        if network.transport != Transport::Tcp {
            network.sequence = self.sequence.and_then(|sequence| u64::try_from(sequence).ok());
        }
    }

    /// Write the header of TCP and return the length of the payload. Sequence numbers wrap on the
    /// wire, so their lower 32 bits are enough.
    #[inline(always)]
    fn fill_tcp(&self, network: &mut Network) -> u32 {
        network.transport = Transport::Tcp;
        let sequence = self.sequence.unwrap_or(0);
        if let Some(header) = self.header {
            return self.fill_full_tcp(sequence, header, network);
        }
        network.numbering = Numbering::Packets;
        let marks = TcpFlags(self.marks.tcp_flags);
        if self.kind == PacketKind::Tcp {
            network.tcp.seq = sequence as u32;
            network.tcp.flags = marks;
            return self.size.saturating_sub(self.tcp_header_bytes);
        }
        // ns-2 prints the last packet received, TCP the next one expected.
        let ack = sequence.wrapping_add(1) as u32;
        network.tcp.ack = ack;
        network.tcp.flags = TcpFlags(TcpFlags::ACK | marks.0);
        0
    }

    fn fill_full_tcp(&self, sequence: i64, header: Header, network: &mut Network) -> u32 {
        network.numbering = Numbering::Bytes;
        // If flags are not printed, only a SYN acknowledges nothing.
        let shown = if header.ack < 0 { TcpFlags::SYN } else { TcpFlags::ACK };
        let flags = TcpFlags(header.flags.unwrap_or(shown) | self.marks.tcp_flags);
        let ack = if flags.has(TcpFlags::ACK) { header.ack as u32 } else { 0 };
        network.tcp = Tcp { seq: sequence as u32, ack, flags, ..NO_WINDOW };
        self.size.saturating_sub(header.bytes)
    }
}

/// The letters of the flags field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlagMarks {
    ecn: u8,
    tcp_flags: u16,
}

impl FlagMarks {
    /// The flags field: `-------`, `----E-N` and so on.
    #[inline(always)]
    pub fn of(field: &[u8]) -> Self {
        if field == b"-------" { Self::default() } else { Self::of_letters(field) }
    }

    fn of_letters(field: &[u8]) -> Self {
        let has = |letter: u8| field.contains(&letter);
        let ecn = match (has(b'E'), has(b'N')) {
            (true, _) => ECN_MARKED,
            (false, true) => ECN_CAPABLE,
            (false, false) => 0,
        };
        let bit = |letter: u8, flag: u16| if has(letter) { flag } else { 0 };
        Self { ecn, tcp_flags: bit(b'C', ECN_ECHO) | bit(b'A', WINDOW_REDUCED) }
    }
}
