//! The canonical packet, into which every format is decoded.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::packet::encapsulation::Lane;
use crate::packet::frame::FrameKind;

/// Index into one of the lists of [`PacketExtras`](super::extras::PacketExtras), from 1.
pub type ExtraIndex = NonZeroU32;

/// An address of either family as one number, so that a key compares without branches.
/// The family stands beside it in [`Endpoints`].
pub type Address = u128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Family {
    /// IPv4: the address is in the low 32 bits.
    #[default]
    V4,
    V6,
    /// A node of a simulation, by number.
    Node,
    /// A host of a text trace known only by name: index into the source's names.
    Name,
}

/// Stands in [`Endpoints::protocol`] for TFRC that a simulator sends without a protocol of the
/// wire: a number for experiments (RFC 3692).
pub const PROTOCOL_TFRC: u8 = 253;

/// The five-tuple of a packet, in its own direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Endpoints {
    /// Kind of `src` and `dst`.
    pub family: Family,
    pub protocol: u8,
    pub src: Address,
    pub dst: Address,
    /// Sender's port; 0 without ports.
    pub src_port: u16,
    /// Receiver's port; 0 without ports.
    pub dst_port: u16,
}

/// TCP flags as on the wire (RFC 9293, RFC 3168, RFC 9768).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    /// Buffered data shall be delivered.
    pub const PSH: u16 = 0x008;
    /// The acknowledgement number is valid.
    pub const ACK: u16 = 0x010;
    /// The urgent pointer is valid.
    pub const URG: u16 = 0x020;
    /// ECN-echo: a mark of congestion arrived (RFC 3168).
    pub const ECE: u16 = 0x040;
    /// The congestion window was reduced for it.
    pub const CWR: u16 = 0x080;
    /// Accurate ECN (RFC 9768); once the nonce sum of RFC 3540.
    pub const AE: u16 = 0x100;

    /// Letters of the flags, from the lowest bit; AE has that of tcpdump.
    pub const LETTERS: &'static str = "FSRPAUECe";

    /// Whether any of `flags` is set.
    #[inline(always)]
    pub fn has(self, flags: u16) -> bool {
        self.0 & flags != 0
    }

    /// The set flags as letters.
    pub fn letters(self) -> String {
        Self::LETTERS
            .chars()
            .enumerate()
            .filter(|(bit, _)| self.0 & (1 << bit) != 0)
            .map(|(_, letter)| letter)
            .collect()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp {
    /// Sequence number of the first payload byte (or of SYN).
    pub seq: u32,
    /// Acknowledgement number; means nothing without the flag.
    pub ack: u32,
    pub flags: TcpFlags,
    /// Window field, not scaled.
    pub window: u16,
    /// Options, as far as they were captured.
    pub options: TcpOptions,
}

/// The options that matter for reconstruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpOptions {
    /// Timestamp value and echo reply (RFC 7323).
    pub timestamp: Option<(u32, u32)>,
    /// Maximum segment size, on SYN.
    pub mss: Option<u16>,
    /// Window scale, on SYN; at most 14 (RFC 7323 section 2.3).
    pub window_scale: Option<u8>,
    pub sack: Sack,
}

/// The two options of RFC 2018, in two bytes: they never stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sack(u16);

impl Sack {
    pub const NONE: Self = Self(0);

    /// Blocks that a line of a text has printed; the reader of the text still has them.
    pub const PRINTED: Self = Self(u16::MAX - 1);

    /// "SACK permitted", on SYN.
    pub const PERMITTED: Self = Self(u16::MAX);

    /// Blocks stored beside the batch; None if that has too many packets for an index.
    pub fn with_blocks(index: ExtraIndex) -> Option<Self> {
        u16::try_from(index.get()).ok().map(Self).filter(|sack| !sack.is_mark())
    }

    /// Whether the SYN permits selective acknowledgements.
    pub fn is_permitted(self) -> bool {
        self == Self::PERMITTED
    }

    /// Where the blocks are, if there are any.
    #[inline(always)]
    pub fn blocks(self) -> Option<ExtraIndex> {
        // Most have none.
        if self == Self::NONE || self.is_mark() { None } else { ExtraIndex::new(u32::from(self.0)) }
    }

    fn is_mark(self) -> bool {
        self == Self::PERMITTED || self == Self::PRINTED
    }
}

/// Where a packet lies in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// Identification, the same in all fragments of a datagram.
    pub id: u32,
    /// First byte of the datagram's payload in this fragment.
    pub offset: u32,
}

named_enum! {
    /// Event of the packet where it was seen, from the source.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Event {
        /// It left the host, or the layer that the trace names.
        Sent = "sent",
        Received = "received",
        /// It was passed on by a node that is not its destination.
        Forwarded = "forwarded",
        /// It was put into a queue.
        Enqueued = "enqueued",
        /// It left a queue, for the link.
        Dequeued = "dequeued",
        /// It was thrown away.
        Dropped = "dropped",
    }
}

named_enum! {
    /// Where in a node a simulator saw a packet, from the application down.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum NodeLayer {
        /// The transport agent or application socket (ns-2 `AGT`).
        Agent = "agent",
        /// The routing agent (ns-2 `RTR`).
        Routing = "routing",
        /// The IP layer (ns-3 `Ipv4L3Protocol`).
        Ip = "ip",
        /// The interface queue of a wireless node (ns-2 `IFQ`).
        Queue = "queue",
        Mac = "mac",
        Phy = "phy",
        /// A wired link with its queue.
        Link = "link",
    }
}

named_enum! {
    /// At which point of its path a packet was seen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub enum PathPoint {
        /// At the node that made it.
        Source = "source",
        /// At the node that it is for.
        Destination = "destination",
        /// In between, or unknown.
        #[default]
        Between = "between",
    }
}

/// A short code of a source, such as a drop reason; longer ones are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Code([u8; 8]);

impl Code {
    /// The first letters of `text`, with `?` for those that are not printable ASCII.
    pub fn new(text: &[u8]) -> Self {
        let mut code = [0; 8];
        for (to, from) in code.iter_mut().zip(text) {
            *to = if from.is_ascii_graphic() { *from } else { b'?' };
        }
        Self(code)
    }

    /// The letters; empty if there are none.
    pub fn text(&self) -> &str {
        let n = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..n]).unwrap_or_default()
    }
}

/// Fields that only a simulator's trace has of a packet. [`Packet::interface`] is the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Where in the node.
    pub layer: NodeLayer,
    /// Where on the packet's path.
    pub point: PathPoint,
    /// The same number whenever this packet of its direction is seen, and another for every other
    /// one, retransmissions included.
    pub identity: u64,
    /// Drop reason; empty if the trace gives none.
    pub reason: Code,
    /// Agent of the packet, if it is one of ns-2's.
    pub agent: Option<Agent>,
}

impl Sighting {
    /// Identity of packets that cannot be distinguished.
    pub const NO_IDENTITY: u64 = u64::MAX;
}

/// ns-2's packet types of agents: they distinguish applications over UDP, and a sender of TCP from
/// its sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent(u8);

impl Agent {
    /// The types of ns-2.35 (`packet.h`) that agents and applications of hosts send.
    const NAMES: [&str; 21] = [
        "tcp", "ack", "tcpFriend", "tcpFriendCtl", "cbr", "exp", "pareto", "udp", "ftp", "telnet", "http",
        "rtp", "rtcp", "message", "audio", "video", "realaudio", "ping", "rap_data", "rap_ack", "sctp",
    ];

    /// The agent of a packet's type.
    pub fn of(name: &[u8]) -> Option<Self> {
        Self::NAMES.iter().position(|known| known.as_bytes() == name).map(|place| Self(place as u8))
    }

    pub fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Numbering {
    /// Bytes of payload, as TCP does on the wire.
    #[default]
    Bytes,
    /// Packets, as ns-2's one-way TCP agents do: each is one unit, whatever its size.
    Packets,
}

named_enum! {
    /// A layer, for saying where decoding stopped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Layer {
        /// Link layer, VLAN tags included.
        Link = "link",
        Ipv4 = "ipv4",
        /// IPv6 and its extension headers.
        Ipv6 = "ipv6",
        Tcp = "tcp",
        Udp = "udp",
        Dccp = "dccp",
        /// ICMP of either family.
        Icmp = "icmp",
        /// Any header of an encapsulation.
        Tunnel = "tunnel",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// The snap length cut the packet.
    Cut,
    /// A length or version that cannot be true.
    Malformed,
    /// An EtherType, PPP protocol or IP protocol that is not decoded, by number.
    Unknown(u32),
    /// A link type that is not decoded, by number.
    UnknownLinkType(u32),
    /// An 802.11 frame that is not for carrying packets.
    Frame(FrameKind),
    /// Part of a packet that begins, with all headers, in another 802.11 frame.
    LaterPart,
    /// The payload of the frame is encrypted.
    Encrypted,
    /// The radio received the frame damaged.
    BadChecksum,
    /// The first packet of an aggregate was decoded, the following ones were not.
    Aggregate,
    /// More headers than a real packet has.
    TooDeep,
}

impl Reason {
    /// Whether there was no IP header to be expected, rather than one that could not be read.
    pub fn is_without_ip(self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Frame(_) | Self::LaterPart)
    }
}

/// Decoding ended before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stop {
    pub layer: Layer,
    pub reason: Reason,
}

impl Reason {
    /// The words in tables.
    pub fn words(self, layer: Layer) -> String {
        match self {
            Self::Cut => "cut by the snap length".into(),
            Self::Malformed => "malformed".into(),
            Self::Unknown(number @ 0..0x0600) if layer == Layer::Tunnel => {
                format!("tunnel protocol 0x{number:04x}")
            }
            Self::Unknown(number) if matches!(layer, Layer::Link | Layer::Tunnel) => link_protocol(number),
            Self::UnknownLinkType(number) => format!("link type {number}"),
            Self::Frame(kind) => format!("802.11 {} frame", kind.name()),
            Self::LaterPart => "later part of a packet in several 802.11 frames".into(),
            Self::Encrypted => "encrypted".into(),
            Self::BadChecksum => "bad checksum".into(),
            Self::Aggregate => "further packets of an A-MSDU".into(),
            Self::TooDeep => "more headers than are read".into(),
            Self::Unknown(number) => ip_protocol(number),
        }
    }
}

/// Name of an EtherType or PPP protocol.
fn link_protocol(number: u32) -> String {
    let name = match number {
        0..0x0600 => "802.2 LLC",
        0x0806 => "ARP",
        0x8021 => "IPCP",
        0x8035 => "RARP",
        0x8057 => "IPV6CP",
        0x80fd => "CCP",
        0x8137 => "IPX",
        0x8847 | 0x8848 => "MPLS",
        0x8863 => "PPPoE discovery",
        0x888e => "EAPOL",
        0x8809 => "slow protocols (LACP)",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0x88f7 => "PTP",
        0xc021 => "LCP",
        0xc023 => "PAP",
        0xc025 => "LQR",
        0xc223 => "CHAP",
        _ => return format!("EtherType 0x{number:04x}"),
    };
    name.into()
}

/// Name of an IP protocol, as IANA registers it.
fn ip_protocol(number: u32) -> String {
    let name = match number {
        1 => "ICMP",
        2 => "IGMP",
        4 => "IP in IP",
        41 => "IPv6 in IP",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        136 => "UDP-Lite",
        _ => return format!("IP protocol {number}"),
    };
    name.into()
}

/// The protocol after the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// A TCP header, in [`Network::tcp`].
    Tcp,
    Dccp,
    /// A UDP header, or a simulator's packet of an application without feedback.
    Udp,
    /// A data packet of TFRC.
    Tfrc,
    /// A receiver report of TFRC.
    TfrcFeedback,
    /// An ICMP error; the five-tuple is that of the packet it quotes.
    IcmpError,
    /// A fragment after the first: its transport header is in another packet.
    LaterFragment,
    /// Nothing that could be read.
    #[default]
    Unread,
}

/// An IP header and the following headers, as far as decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    pub endpoints: Endpoints,
    /// Whether the ports of `endpoints` were read.
    pub has_ports: bool,
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The ECN bits (RFC 3168).
    pub ecn: u8,
    /// The differentiated services codepoint (RFC 2474); None if the source does not show it.
    pub dscp: Option<u8>,
    /// Set if the packet is a fragment, or the packet around it is.
    pub fragment: Option<Fragment>,
    /// Tunnel or VLAN that carried it.
    pub tunnel: Option<ExtraIndex>,
    pub lane: Lane,
    pub transport: Transport,
    /// The TCP header; meaningless for other values of `transport`.
    pub tcp: Tcp,
    /// Of UDP how the payload begins, of DCCP the whole header, of an ICMP error how the transport header begins that
    /// it quotes, of TCP the option of accurate ECN; means nothing for others.
    pub head: Option<ExtraIndex>,
    /// What the client opened its TCP connection with, if this packet completes it.
    pub opening: Option<ExtraIndex>,
    /// Bytes of TCP payload that were captured, and what may follow them in the record.
    pub captured_payload: u32,
    /// Bytes of the transport header.
    pub header_bytes: u8,
    pub numbering: Numbering,
    /// Sequence number of a protocol that is not TCP: of the packet, or in feedback the highest
    /// one received.
    pub sequence: Option<u64>,
    /// The simulator's flow id; several flows may have the same.
    pub flow_id: Option<u32>,
    /// Bytes of transport payload; for a later fragment all bytes after the IP header. None if a
    /// header needed for it was cut.
    pub payload_bytes: Option<u32>,
}

impl Network {
    /// TCP, UDP and DCCP make flows; a partly decoded packet needs at least its ports.
    #[inline(always)]
    pub fn is_flow(&self) -> bool {
        self.has_ports && self.has_flows()
    }

    /// Whether its protocol is TCP, UDP or DCCP.
    #[inline(always)]
    pub fn has_flows(&self) -> bool {
        matches!(self.endpoints.protocol, 6 | 17 | 33)
    }

    /// Messages of ICMP and ICMPv6.
    pub fn is_icmp(&self) -> bool {
        matches!(self.endpoints.protocol, 1 | 58)
    }

    /// Forget the last packet, as far as the next one's decoders do not overwrite it.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.endpoints = Endpoints::default();
        self.has_ports = false;
        self.ip_id = None;
        self.dscp = None;
        self.fragment = None;
        self.tunnel = None;
        self.lane = Lane::OUTSIDE;
        self.transport = Transport::Unread;
        self.numbering = Numbering::Bytes;
        self.head = None;
        self.opening = None;
        self.sequence = None;
        self.flow_id = None;
        self.payload_bytes = None;
    }

    /// The TCP header, if there is one.
    #[inline(always)]
    pub fn tcp(&self) -> Option<&Tcp> {
        (self.transport == Transport::Tcp).then_some(&self.tcp)
    }
}

/// One packet, whatever the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// Number in the source, from 1; in a text the number of its line.
    pub number: u64,
    /// Since the epoch, or since the start of a simulation.
    pub time_ns: i64,
    /// Index of the interface or node it was seen at.
    pub interface: u32,
    pub event: Option<Event>,
    /// Set if a simulator saw it.
    pub sighting: Option<Sighting>,
    /// The 802.11 frame that carried it, if one did.
    pub frame: Option<ExtraIndex>,
    /// Bytes in the file.
    pub captured_bytes: u32,
    /// Bytes of the frame on the wire.
    pub wire_bytes: u32,
    /// Whether there is an IP header, or its equivalent in a simulation.
    pub is_ip: bool,
    /// The IP header and beyond; means nothing unless `is_ip`.
    pub network: Network,
    /// Set if decoding ended early.
    pub stop: Option<Stop>,
}
