//! The table of packets.

use super::column::{TextKey, column};
use super::{Column, Row};
use crate::flow::{FlowTable, Found, direction_name};
use crate::input::reading::Reading;
use crate::packet::dccp;
use crate::packet::event::{
    Address, Agent, Endpoints, Layer, PROTOCOL_TFRC, Packet, Reason, Sighting, Tcp, TcpFlags, Transport,
};
use crate::packet::extras::PacketExtras;
use crate::packet::key::{Notation, address_text};
use crate::pass::packet_spool::{SpooledPacket, SpooledSighting};
use crate::wire::dccp::notation::notation;

/// One row of the table of packets.
pub struct PacketRow {
    packet: Packet,
    node: Option<String>,
    /// Names of both ends, where an address is no IP address.
    names: Option<(String, String)>,
    found: Option<(u32, &'static str)>,
    positions: (Option<i64>, Option<i64>),
    window_bytes: Option<u64>,
    /// The DCCP header, and its other fields as text.
    dccp: Option<(dccp::DccpHeader, String)>,
    /// The number that a traffic generator wrote into a datagram.
    number: Option<u64>,
}

impl PacketRow {
    /// A row for a packet, with its extras and the facts of its flow; flows are numbered from `first_flow`.
    pub fn new(
        packet: Packet,
        asides: &PacketExtras,
        found: Option<Found>,
        first_flow: u32,
        flows: &FlowTable,
        reading: &Reading,
    ) -> Self {
        let network = packet.network;
        let is_dccp = network.transport == Transport::Dccp;
        let header = network.head.filter(|_| is_dccp).and_then(|aside| asides.dccp(aside));
        let flow = found.map(|found| (found, flows.get(found.flow)));
        let mut row = Self {
            packet,
            node: reading.interface_name(packet.interface).map(str::to_owned),
            names: reading.endpoint_names(&network.endpoints),
            found: flow
                .map(|(found, flow)| (first_flow + found.flow, direction_name(found.side, flow.forward()))),
            positions: (None, None),
            window_bytes: None,
            dccp: header.map(|(header, options)| (*header, notation(header, options))),
            number: flow.and_then(|(found, flow)| flow.number_of(found.side, &asides.head(network.head))),
        };
        if let Some((found, flow)) = flow
            && let (Some(tcp), Some(connection)) = (network.tcp(), &flow.tcp)
        {
            let (mine, theirs) = (connection.half(found.side), connection.half(found.side.other()));
            let is_ack = tcp.flags.has(TcpFlags::ACK);
            row.positions.0 = mine.position(tcp.seq);
            row.positions.1 = theirs.position(tcp.ack).filter(|_| is_ack);
            // A SYN's window is never scaled (RFC 7323 section 2.2).
            let is_syn = tcp.flags.has(TcpFlags::SYN);
            let scaled = if is_syn { Some(u32::from(tcp.window)) } else { mine.scaled(tcp.window, theirs) };
            row.window_bytes = scaled.map(u64::from);
        }
        row
    }

    /// Flow, direction, and the packet as a spool keeps it; None without payload.
    pub fn spooled(&self) -> Option<(u32, &'static str, SpooledPacket)> {
        let (flow, direction) = self.found?;
        let payload_bytes = self.packet.network.payload_bytes.filter(|bytes| *bytes > 0)?;
        let sighting = self.sighting().map(|sighting| SpooledSighting {
            layer: sighting.layer,
            point: sighting.point,
            uid: self.uid(),
        });
        let packet = SpooledPacket {
            time_ns: self.packet.time_ns,
            payload_bytes,
            seq_rel: self.positions.0,
            sequence: self.sequence(),
            ecn: self.is_ip().then_some(self.packet.network.ecn),
            event: self.packet.event,
            sighting,
        };
        Some((flow, direction, packet))
    }

    fn is_ip(&self) -> bool {
        self.packet.is_ip
    }

    fn tcp(&self) -> Option<&Tcp> {
        self.packet.network.tcp()
    }

    fn transport(&self) -> Option<String> {
        self.is_ip().then(|| match (&self.packet.network.transport, self.packet.network.endpoints.protocol) {
            (Transport::IcmpError, _) => "icmp error".into(),
            (_, 6) => "tcp".into(),
            (_, 17) => "udp".into(),
            (_, 33) => "dccp".into(),
            (_, PROTOCOL_TFRC) => "tfrc".into(),
            (_, number) => Reason::Unknown(u32::from(number)).words(Layer::Ipv4),
        })
    }

    fn transport_key(&self) -> Option<TextKey> {
        let is_icmp_error = matches!(self.packet.network.transport, Transport::IcmpError);
        self.is_ip().then(|| (u128::from(is_icmp_error), self.endpoints().protocol.into()))
    }

    fn kind(&self) -> Option<&'static str> {
        match self.packet.network.transport {
            Transport::Tfrc => Some("data"),
            Transport::TfrcFeedback => Some("feedback"),
            _ => self.dccp.as_ref().map(|(header, _)| header.kind.name()),
        }
    }

    fn src(&self) -> Option<String> {
        let src = self.packet.network.endpoints.src;
        self.is_ip().then(|| match &self.names {
            Some((src, _)) => src.clone(),
            None => self.ip_address(src),
        })
    }

    fn dst(&self) -> Option<String> {
        let dst = self.packet.network.endpoints.dst;
        self.is_ip().then(|| match &self.names {
            Some((_, dst)) => dst.clone(),
            None => self.ip_address(dst),
        })
    }

    fn address_key(&self, address: Address) -> Option<TextKey> {
        (self.is_ip() && self.names.is_none()).then(|| (address, self.endpoints().family as u32))
    }

    fn ip_address(&self, address: Address) -> String {
        address_text(address, self.packet.network.endpoints.family, Notation::default())
    }

    fn port(&self, port: u16) -> Option<u32> {
        self.packet.network.has_ports.then_some(u32::from(port))
    }

    fn decode_stop(&self) -> Option<String> {
        let stop = self.packet.stop?;
        Some(format!("{}: {}", stop.layer.name(), stop.reason.words(stop.layer)))
    }
    fn endpoints(&self) -> &Endpoints {
        &self.packet.network.endpoints
    }

    fn sighting(&self) -> Option<&Sighting> {
        self.packet.sighting.as_ref()
    }

    fn uid(&self) -> Option<u64> {
        Some(self.sighting()?.identity).filter(|&uid| uid != Sighting::NO_IDENTITY)
    }

    fn sequence(&self) -> Option<u64> {
        self.packet.network.sequence.or(self.number)
    }

    fn ack(&self) -> Option<u32> {
        self.tcp().filter(|tcp| tcp.flags.has(TcpFlags::ACK)).map(|tcp| tcp.ack)
    }

    fn ip_id(&self) -> Option<u32> {
        let network = &self.packet.network;
        network.ip_id.map(u32::from).or(network.fragment.map(|fragment| fragment.id))
    }

    /// A field of the IP header.
    fn ip(&self, value: u8) -> Option<u32> {
        self.is_ip().then_some(value.into())
    }

    fn drop_reason(&self) -> Option<String> {
        let reason = self.sighting()?.reason;
        (!reason.text().is_empty()).then(|| reason.text().to_owned())
    }
}

impl<'a> Row<'a> for PacketRow {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[Self::RECORD, Self::HEADERS];
}

impl PacketRow {
    const RECORD: &'static [Column<Self>] = &[
        column("packet", "", "number in the source, from 1, as Wireshark counts, through all joined captures; in a text the line")
            .u64(|row| Some(row.packet.number)),
        column("time_ns", "ns", "since the epoch, or since the start of a simulation")
            .i64(|row| Some(row.packet.time_ns)),
        column("node", "", "capture interface, or node of a simulation")
            .null_when("the file names none")
            .name(|row| row.node.as_deref()),
        column(
            "event",
            "",
            "event at the node: `sent`, `received`, `forwarded`, `enqueued`, `dequeued`, `dropped`",
        )
        .null_when("a capture does not say")
        .name(|row| Some(row.packet.event?.name())),
        column("flow", "", "number of the conversation")
            .null_when("belongs to no flow")
            .u32(|row| Some(row.found?.0)),
        column("direction", "", "`fwd` or `rev`")
            .null_when("belongs to no flow")
            .name(|row| Some(row.found?.1)),
        column("transport", "", "`tcp`, `udp`, `dccp`, or the IP protocol by number")
            .null_when("not IP")
            .repeated_text(PacketRow::transport_key, PacketRow::transport),
        column("src", "", "sender").null_when("not IP").repeated_text(
            |row| row.address_key(row.endpoints().src),
            PacketRow::src,
        ),
        column("src_port", "", "sender's port")
            .null_when("no ports")
            .u32(|row| row.port(row.endpoints().src_port)),
        column("dst", "", "receiver").null_when("not IP").repeated_text(
            |row| row.address_key(row.endpoints().dst),
            PacketRow::dst,
        ),
        column("dst_port", "", "receiver's port")
            .null_when("no ports")
            .u32(|row| row.port(row.endpoints().dst_port)),
        column("captured_bytes", "bytes", "bytes in the file").u32(|row| Some(row.packet.captured_bytes)),
        column("wire_bytes", "bytes", "bytes of the frame on the wire")
            .u32(|row| Some(row.packet.wire_bytes)),
        column("payload_bytes", "bytes", "transport payload")
            .null_when("cut off, or not TCP, UDP or DCCP")
            .u32(|row| row.packet.network.payload_bytes),
    ];

    const HEADERS: &'static [Column<Self>] = &[
        column("seq", "", "sequence number as sent")
            .null_when("not TCP, or cut off")
            .u32(|row| Some(row.tcp()?.seq)),
        column("ack", "", "acknowledgement number as sent").null_when("no ACK flag").u32(PacketRow::ack),
        column("seq_rel", "bytes", "sequence number from the first of its direction, unwrapped")
            .null_when("as seq")
            .i64(|row| row.positions.0),
        column("ack_rel", "bytes", "acknowledgement number, likewise")
            .null_when("as ack")
            .i64(|row| row.positions.1),
        column("flags", "", "TCP flags, letters of `FSRPAUECe` (`e` is AE of accurate ECN, RFC 9768)")
            .null_when("not TCP, or cut off")
            .repeated_text(
                |row| Some((0, row.tcp()?.flags.0.into())),
                |row| Some(row.tcp()?.flags.letters()),
            ),
        column("window_bytes", "bytes", "receive window, scaled")
            .null_when("the scale is not known")
            .u64(|row| row.window_bytes),
        column("ts_val", "", "TCP timestamp value")
            .null_when("no timestamps")
            .u32(|row| Some(row.tcp()?.options.timestamp?.0)),
        column("ts_ecr", "", "TCP timestamp echo reply")
            .null_when("no timestamps")
            .u32(|row| Some(row.tcp()?.options.timestamp?.1)),
        column("ip_id", "", "IPv4 identification, or that of an IPv6 fragment")
            .null_when("IPv6 without fragment header")
            .u32(PacketRow::ip_id),
        column("ttl", "", "time to live or hop limit")
            .null_when("not IP")
            .u32(|row| row.ip(row.packet.network.ttl)),
        column("ecn", "", "ECN bits of the IP header: 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE")
            .null_when("not IP")
            .u32(|row| row.ip(row.packet.network.ecn)),
        column("dscp", "", "differentiated services codepoint of the IP header (RFC 2474)")
            .null_when("not IP, or the source does not show it")
            .u32(|row| row.ip(row.packet.network.dscp?)),
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
        .u64(PacketRow::sequence),
        column("acknowledged", "", "highest sequence number received, reported by a DCCP packet")
            .null_when("as sequence")
            .u64(|row| row.dccp.as_ref()?.0.ack),
        column("kind", "", "DCCP packet type; of TFRC in a simulation `data` or `feedback`")
            .null_when("no such packet")
            .name(|row| row.kind()),
        column("ccval", "", "DCCP's CCVal: of CCID 3 and 4 the sender's window counter")
            .null_when("not DCCP")
            .u32(|row| Some(row.dccp.as_ref()?.0.ccval.into())),
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
        .name(|row| Some(row.dccp.as_ref()?.1.as_str())),
        column("flow_id", "", "the simulator's own flow id")
            .null_when("the trace has none")
            .u32(|row| row.packet.network.flow_id),
        column("agent", "", "ns-2's name for the packets of the agent")
            .null_when("not of ns-2, or of an agent that ns-2.35 does not have")
            .name(|row| row.sighting()?.agent.map(Agent::name)),
        column("decode_stop", "", "layer and reason where decoding ended")
            .null_when("decoded whole")
            .text(PacketRow::decode_stop),
    ];
}
