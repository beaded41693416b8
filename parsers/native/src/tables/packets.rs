//! The table of packets.

use std::sync::Arc;

use hashbrown::HashMap;

use super::column::{TextKey, column};
use super::{Column, Row};
use crate::flow::{FORWARD, FlowTable, Found, REVERSE};
use crate::input::reading::Reading;
use crate::packet::batch::Item;
use crate::packet::dccp;
use crate::packet::event::{
    Address, Agent, Endpoints, Event, Layer, PROTOCOL_TFRC, Packet, Reason, Sighting, Stop, Tcp, TcpFlags,
    Transport,
};
use crate::packet::extras::PacketExtras;
use crate::packet::key::{Notation, address_text};
use crate::packet::plain::PlainSegment;
use crate::wire::dccp::notation::notation;

/// One row of the table of packets. Many are in memory at a time, so it has what most packets have.
pub struct PacketRow {
    number: u64,
    time_ns: i64,
    endpoints: Endpoints,
    captured_bytes: u32,
    wire_bytes: u32,
    payload_bytes: Option<u32>,
    /// Number of its flow, and whether it is of the reverse direction.
    found: Option<(u32, bool)>,
    has_ports: bool,
    is_icmp_error: bool,
    ip: Option<IpRow>,
    tcp: Option<TcpRow>,
    node: Option<Arc<str>>,
    rare: Option<Box<RareRow>>,
}

/// Fields of the IP header.
struct IpRow {
    id: Option<u32>,
    ttl: u8,
    ecn: u8,
    dscp: Option<u8>,
}

/// Fields of the TCP header, and what they mean in the connection.
struct TcpRow {
    seq: u32,
    ack: u32,
    flags: TcpFlags,
    timestamp: Option<(u32, u32)>,
    window_bytes: Option<u32>,
    positions: (Option<i64>, Option<i64>),
}

/// What only packets of other protocols, of simulators, and those that were not decoded whole have.
struct RareRow {
    event: Option<Event>,
    sighting: Option<Sighting>,
    /// Names of both ends, where an address is no IP address.
    names: Option<(String, String)>,
    /// Also that which a traffic generator wrote into a datagram.
    sequence: Option<u64>,
    transport: Transport,
    /// The DCCP header, and its other fields as text.
    dccp: Option<(dccp::DccpHeader, String)>,
    flow_id: Option<u32>,
    stop: Option<Stop>,
}

impl RareRow {
    fn of(
        packet: &Packet,
        extras: &PacketExtras,
        number: Option<u64>,
        reading: &Reading,
    ) -> Option<Box<Self>> {
        let network = &packet.network;
        let names = reading.endpoint_names(&network.endpoints);
        let sequence = network.sequence.or(number);
        let is_usual = matches!(
            network.transport,
            Transport::Tcp | Transport::Udp | Transport::Unread | Transport::LaterFragment
        );
        let is_plain = is_usual && names.is_none() && sequence.is_none() && network.flow_id.is_none();
        if is_plain && packet.event.is_none() && packet.sighting.is_none() && packet.stop.is_none() {
            return None;
        }
        let header = network.head.filter(|_| network.transport == Transport::Dccp);
        let dccp = header.and_then(|index| extras.dccp(index));
        Some(Box::new(Self {
            event: packet.event,
            sighting: packet.sighting,
            names,
            sequence,
            transport: network.transport,
            dccp: dccp.map(|(header, options)| (*header, notation(header, options))),
            flow_id: network.flow_id,
            stop: packet.stop,
        }))
    }
}

/// What the rows of one reading have in common.
pub struct PacketRows<'a> {
    pub first_flow: u32,
    pub flows: &'a FlowTable,
    pub reading: &'a Reading,
    pub node_names: &'a mut NodeNames,
}

/// Names of the interfaces or nodes of the packets before, by number: most packets share theirs with others.
#[derive(Default)]
pub struct NodeNames(HashMap<u32, Arc<str>>);

impl NodeNames {
    fn get(&mut self, interface: u32, reading: &Reading) -> Option<Arc<str>> {
        let name = reading.interface_name(interface)?;
        let kept = self.0.entry(interface).or_insert_with(|| Arc::from(name));
        if **kept != *name {
            *kept = Arc::from(name);
        }
        Some(Arc::clone(kept))
    }
}

impl PacketRows<'_> {
    /// The row of a packet that its flow has taken.
    pub fn row(&mut self, item: Item<'_>, extras: &PacketExtras, found: Option<Found>) -> PacketRow {
        match item {
            Item::Plain(segment) => self.plain(segment, found),
            Item::Other(packet) => self.other(packet, extras, found),
        }
    }

    fn plain(&mut self, segment: &PlainSegment, found: Option<Found>) -> PacketRow {
        PacketRow {
            number: segment.number,
            time_ns: segment.time_ns,
            endpoints: segment.endpoints(),
            captured_bytes: segment.captured_bytes.into(),
            wire_bytes: segment.wire_bytes,
            payload_bytes: Some(segment.payload),
            found: self.direction(found),
            has_ports: true,
            is_icmp_error: false,
            ip: Some(IpRow {
                id: segment.ip.ip_id.map(u32::from),
                ttl: segment.ip.ttl,
                ecn: segment.ip.ecn,
                dscp: segment.dscp(),
            }),
            tcp: Some(self.tcp(&segment.tcp, found)),
            node: self.node_names.get(segment.interface.into(), self.reading),
            rare: None,
        }
    }

    fn other(&mut self, packet: &Packet, extras: &PacketExtras, found: Option<Found>) -> PacketRow {
        let network = &packet.network;
        let flow = found.map(|found| (found, self.flows.get(found.flow)));
        let number =
            flow.and_then(|(found, flow)| flow.transport.number_of(found.side, &extras.head(network.head)));
        let fragment = network.fragment.map(|fragment| fragment.id);
        PacketRow {
            number: packet.number,
            time_ns: packet.time_ns,
            endpoints: network.endpoints,
            captured_bytes: packet.captured_bytes,
            wire_bytes: packet.wire_bytes,
            payload_bytes: network.payload_bytes,
            found: self.direction(found),
            has_ports: network.has_ports,
            is_icmp_error: network.transport == Transport::IcmpError,
            ip: packet.is_ip.then(|| IpRow {
                id: network.ip_id.map(u32::from).or(fragment),
                ttl: network.ttl,
                ecn: network.ecn,
                dscp: network.dscp,
            }),
            tcp: network.tcp().map(|tcp| self.tcp(tcp, found)),
            node: self.node_names.get(packet.interface, self.reading),
            rare: RareRow::of(packet, extras, number, self.reading),
        }
    }

    fn direction(&self, found: Option<Found>) -> Option<(u32, bool)> {
        found.map(|found| (self.first_flow + found.flow, found.side != self.flows.get(found.flow).forward()))
    }

    fn tcp(&self, tcp: &Tcp, found: Option<Found>) -> TcpRow {
        let mut row = TcpRow {
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            timestamp: tcp.options.timestamp,
            window_bytes: None,
            positions: (None, None),
        };
        if let Some(found) = found
            && let Some(connection) = &self.flows.get(found.flow).transport.tcp
        {
            let (mine, theirs) = (connection.half(found.side), connection.half(found.side.other()));
            let is_ack = tcp.flags.has(TcpFlags::ACK);
            row.positions.0 = mine.sent.position(tcp.seq);
            row.positions.1 = theirs.sent.position(tcp.ack).filter(|_| is_ack);
            // A SYN's window is never scaled (RFC 7323 section 2.2).
            let is_syn = tcp.flags.has(TcpFlags::SYN);
            row.window_bytes =
                if is_syn { Some(u32::from(tcp.window)) } else { mine.scaled(tcp.window, theirs) };
        }
        row
    }
}

impl PacketRow {
    fn is_ip(&self) -> bool {
        self.ip.is_some()
    }

    fn transport(&self) -> Option<String> {
        self.is_ip().then(|| match (self.is_icmp_error, self.endpoints.protocol) {
            (true, _) => "icmp error".into(),
            (_, 6) => "tcp".into(),
            (_, 17) => "udp".into(),
            (_, 33) => "dccp".into(),
            (_, PROTOCOL_TFRC) => "tfrc".into(),
            (_, number) => Reason::Unknown(u32::from(number)).words(Layer::Ipv4),
        })
    }

    fn transport_key(&self) -> Option<TextKey> {
        self.is_ip().then(|| (u128::from(self.is_icmp_error), self.endpoints.protocol.into()))
    }

    fn kind(&self) -> Option<&'static str> {
        let rare = self.rare.as_ref()?;
        match rare.transport {
            Transport::Tfrc => Some("data"),
            Transport::TfrcFeedback => Some("feedback"),
            _ => rare.dccp.as_ref().map(|(header, _)| header.kind.name()),
        }
    }

    fn names(&self) -> Option<&(String, String)> {
        self.rare.as_ref()?.names.as_ref()
    }

    fn src(&self) -> Option<String> {
        self.is_ip().then(|| match self.names() {
            Some((src, _)) => src.clone(),
            None => self.ip_address(self.endpoints.src),
        })
    }

    fn dst(&self) -> Option<String> {
        self.is_ip().then(|| match self.names() {
            Some((_, dst)) => dst.clone(),
            None => self.ip_address(self.endpoints.dst),
        })
    }

    fn address_key(&self, address: Address) -> Option<TextKey> {
        (self.is_ip() && self.names().is_none()).then_some((address, self.endpoints.family as u32))
    }

    fn ip_address(&self, address: Address) -> String {
        address_text(address, self.endpoints.family, Notation::default())
    }

    fn port(&self, port: u16) -> Option<u32> {
        self.has_ports.then_some(u32::from(port))
    }

    fn decode_stop(&self) -> Option<String> {
        let stop = self.rare.as_ref()?.stop?;
        Some(format!("{}: {}", stop.layer.name(), stop.reason.words(stop.layer)))
    }

    fn sighting(&self) -> Option<&Sighting> {
        self.rare.as_ref()?.sighting.as_ref()
    }

    fn uid(&self) -> Option<u64> {
        Some(self.sighting()?.identity).filter(|&uid| uid != Sighting::NO_IDENTITY)
    }

    fn ack(&self) -> Option<u32> {
        self.tcp.as_ref().filter(|tcp| tcp.flags.has(TcpFlags::ACK)).map(|tcp| tcp.ack)
    }

    fn drop_reason(&self) -> Option<String> {
        let reason = self.sighting()?.reason;
        (!reason.text().is_empty()).then(|| reason.text().to_owned())
    }

    fn dccp(&self) -> Option<&(dccp::DccpHeader, String)> {
        self.rare.as_ref()?.dccp.as_ref()
    }
}

impl<'a> Row<'a> for PacketRow {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[Self::RECORD, Self::HEADERS];
}

impl PacketRow {
    const RECORD: &'static [Column<Self>] = &[
        column("packet", "", "number in the source, from 1, as Wireshark counts, through all joined captures; in a text the line")
            .u64(|row| Some(row.number)),
        column("time_ns", "ns", "since the epoch, or since the start of a simulation")
            .i64(|row| Some(row.time_ns)),
        column("node", "", "capture interface, or node of a simulation")
            .null_when("the file names none")
            .name(|row| row.node.as_deref()),
        column(
            "event",
            "",
            "event at the node: `sent`, `received`, `forwarded`, `enqueued`, `dequeued`, `dropped`",
        )
        .null_when("a capture does not say")
        .name(|row| Some(row.rare.as_ref()?.event?.name())),
        column("flow", "", "number of the conversation")
            .null_when("belongs to no flow")
            .u32(|row| Some(row.found?.0)),
        column("direction", "", "`fwd` or `rev`")
            .null_when("belongs to no flow")
            .name(|row| Some(if row.found?.1 { REVERSE } else { FORWARD })),
        column("transport", "", "`tcp`, `udp`, `dccp`, or the IP protocol by number")
            .null_when("not IP")
            .repeated_text(PacketRow::transport_key, PacketRow::transport),
        column("src", "", "sender").null_when("not IP").repeated_text(
            |row| row.address_key(row.endpoints.src),
            PacketRow::src,
        ),
        column("src_port", "", "sender's port")
            .null_when("no ports")
            .u32(|row| row.port(row.endpoints.src_port)),
        column("dst", "", "receiver").null_when("not IP").repeated_text(
            |row| row.address_key(row.endpoints.dst),
            PacketRow::dst,
        ),
        column("dst_port", "", "receiver's port")
            .null_when("no ports")
            .u32(|row| row.port(row.endpoints.dst_port)),
        column("captured_bytes", "bytes", "bytes in the file").u32(|row| Some(row.captured_bytes)),
        column("wire_bytes", "bytes", "bytes of the frame on the wire")
            .u32(|row| Some(row.wire_bytes)),
        column("payload_bytes", "bytes", "transport payload")
            .null_when("cut off, or not TCP, UDP or DCCP")
            .u32(|row| row.payload_bytes),
    ];

    const HEADERS: &'static [Column<Self>] = &[
        column("seq", "", "sequence number as sent")
            .null_when("not TCP, or cut off")
            .u32(|row| Some(row.tcp.as_ref()?.seq)),
        column("ack", "", "acknowledgement number as sent").null_when("no ACK flag").u32(PacketRow::ack),
        column("seq_rel", "bytes", "sequence number from the first of its direction, unwrapped")
            .null_when("as seq")
            .i64(|row| row.tcp.as_ref()?.positions.0),
        column("ack_rel", "bytes", "acknowledgement number, likewise")
            .null_when("as ack")
            .i64(|row| row.tcp.as_ref()?.positions.1),
        column("flags", "", "TCP flags, letters of `FSRPAUECe` (`e` is AE of accurate ECN, RFC 9768)")
            .null_when("not TCP, or cut off")
            .repeated_text(
                |row| Some((0, row.tcp.as_ref()?.flags.0.into())),
                |row| Some(row.tcp.as_ref()?.flags.letters()),
            ),
        column("window_bytes", "bytes", "receive window, scaled")
            .null_when("the scale is not known")
            .u64(|row| row.tcp.as_ref()?.window_bytes.map(u64::from)),
        column("ts_val", "", "TCP timestamp value")
            .null_when("no timestamps")
            .u32(|row| Some(row.tcp.as_ref()?.timestamp?.0)),
        column("ts_ecr", "", "TCP timestamp echo reply")
            .null_when("no timestamps")
            .u32(|row| Some(row.tcp.as_ref()?.timestamp?.1)),
        column("ip_id", "", "IPv4 identification, or that of an IPv6 fragment")
            .null_when("IPv6 without fragment header")
            .u32(|row| row.ip.as_ref()?.id),
        column("ttl", "", "time to live or hop limit")
            .null_when("not IP")
            .u32(|row| Some(row.ip.as_ref()?.ttl.into())),
        column("ecn", "", "ECN bits of the IP header: 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE")
            .null_when("not IP")
            .u32(|row| Some(row.ip.as_ref()?.ecn.into())),
        column("dscp", "", "differentiated services codepoint of the IP header (RFC 2474)")
            .null_when("not IP, or the source does not show it")
            .u32(|row| row.ip.as_ref()?.dscp.map(u32::from)),
        column("layer", "", "layer of the simulated node where it was seen")
            .null_when("not a simulation")
            .name(|row| Some(row.sighting()?.layer.name())),
        column("point", "", "point of its path: `source`, `destination`, `between`")
            .null_when("not a simulation")
            .name(|row| Some(row.sighting()?.point.name())),
        column("drop_reason", "", "reason of the drop in the trace")
            .null_when("not dropped, or not reported")
            .text(PacketRow::drop_reason),
        column("uid", "", "unique id of a packet of a simulation")
            .null_when("not a simulation, or an IPv6 packet of ns-3 on its way")
            .u64(PacketRow::uid),
        column(
            "sequence",
            "",
            "sequence number of a protocol other than TCP, or of a traffic generator in UDP",
        )
        .null_when("none, or not read")
        .u64(|row| row.rare.as_ref()?.sequence),
        column("acknowledged", "", "highest sequence number received, reported by a DCCP packet")
            .null_when("as sequence")
            .u64(|row| row.dccp()?.0.ack),
        column("kind", "", "DCCP packet type; of TFRC in a simulation `data` or `feedback`")
            .null_when("no such packet")
            .name(|row| row.kind()),
        column("ccval", "", "DCCP's CCVal: of CCID 3 and 4 the sender's window counter")
            .null_when("not DCCP")
            .u32(|row| Some(row.dccp()?.0.ccval.into())),
        column(
            "dccp",
            "",
            "further fields of the DCCP header and its options, as `name=value` with the numbers of \
             the wire (times in 10 µs). `timestamp_echo` is `TIMESTAMP+ELAPSED`, `ack_vector_0` and \
             `_1` (by the nonce) count `R`eceived, `M`arked and `N`ot received from the acknowledged \
             packet down, `loss_intervals` are `SKIP:LOSSLESS+LOSS/DATA/NONCE`, a feature is \
             `change_l_FEATURE=VALUES`; of very many options the rest is `...`",
        )
        .null_when("not DCCP")
        .name(|row| Some(row.dccp()?.1.as_str())),
        column("flow_id", "", "the simulator's own flow id")
            .null_when("the trace has none")
            .u32(|row| row.rare.as_ref()?.flow_id),
        column("agent", "", "ns-2's name for the packets of the agent")
            .null_when("not of ns-2, or of an agent that ns-2.35 does not have")
            .name(|row| row.sighting()?.agent.map(Agent::name)),
        column("decode_stop", "", "layer and reason where decoding ended")
            .null_when("decoded whole")
            .text(PacketRow::decode_stop),
    ];
}
