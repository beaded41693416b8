//! The table of packets.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::{Columns, Rows};
use crate::flow::{FlowTable, Found, direction_name};
use crate::input::reading::Reading;
use crate::packet::dccp;
use crate::packet::event::{Address, Agent, Layer, PROTOCOL_TFRC, Packet, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::key::{Notation, address_text};
use crate::wire::dccp::notation::notation;

/// One row of the table of packets.
pub struct PacketRow {
    packet: Packet,
    node: Option<String>,
    /// Of both ends, where an address is no IP address.
    names: Option<(String, String)>,
    found: Option<(u32, &'static str)>,
    positions: (Option<i64>, Option<i64>),
    window_bytes: Option<u64>,
    /// Of DCCP, and what else its header says.
    dccp: Option<(dccp::DccpHeader, String)>,
    /// Of a datagram that a traffic generator numbered.
    number: Option<u64>,
}

impl PacketRow {
    /// A packet as it stands in the table, with what `asides` and its flow add.
    pub fn new(
        packet: Packet,
        asides: &PacketExtras,
        found: Option<Found>,
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
            found: flow.map(|(found, flow)| (found.flow, direction_name(found.side, flow.forward()))),
            positions: (None, None),
            window_bytes: None,
            dccp: header.map(|(header, options)| (*header, notation(header, options))),
            number: flow.and_then(|(found, flow)| flow.number_of(found.side, &asides.head(network.head))),
        };
        if let Some((found, flow)) = flow
            && let (Some(tcp), Some(connection)) = (network.tcp(), &flow.tcp)
        {
            let (mine, theirs) = (connection.half(found.side), connection.half(found.side.other()));
            let is_ack = tcp.flags.has(crate::packet::event::TcpFlags::ACK);
            row.positions.0 = mine.position(tcp.seq);
            row.positions.1 = theirs.position(tcp.ack).filter(|_| is_ack);
            // A SYN's window is never scaled (RFC 7323 section 2.2).
            let is_syn = tcp.flags.has(crate::packet::event::TcpFlags::SYN);
            let scaled = if is_syn { Some(u32::from(tcp.window)) } else { mine.scaled(tcp.window, theirs) };
            row.window_bytes = scaled.map(u64::from);
        }
        row
    }

    fn is_ip(&self) -> bool {
        self.packet.is_ip
    }

    fn tcp(&self) -> Option<&crate::packet::event::Tcp> {
        self.packet.network.tcp()
    }

    fn transport(&self) -> Option<String> {
        self.is_ip().then(|| match (&self.packet.network.transport, self.packet.network.endpoints.protocol) {
            (Transport::IcmpError, _) => "icmp error".into(),
            (_, 6) => "tcp".into(),
            (_, 17) => "udp".into(),
            (_, 33) => "dccp".into(),
            (_, PROTOCOL_TFRC) => "tfrc".into(),
            (_, number) => crate::packet::event::Reason::Unknown(u32::from(number)).words(Layer::Ipv4),
        })
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
}

/// A batch of packets.
pub struct PacketRows {
    /// In order of the source.
    pub rows: Vec<PacketRow>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for PacketRows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.rows[start..end];
        let ends = |row: &PacketRow| row.packet.network.endpoints;
        let mut columns = Columns::default();
        columns.u64("packet", rows.iter().map(|row| row.packet.number));
        columns.i64("time_ns", rows.iter().map(|row| row.packet.time_ns));
        columns.text("node", rows.iter().map(|row| row.node.as_deref()));
        columns.text("event", rows.iter().map(|row| row.packet.event.map(|event| event.name())));
        columns.u32("flow", rows.iter().map(|row| row.found.map(|found| found.0 + self.first_flow)));
        columns.text("direction", rows.iter().map(|row| row.found.map(|found| found.1)));
        columns.text("transport", rows.iter().map(PacketRow::transport));
        columns.text("src", rows.iter().map(PacketRow::src));
        columns.u32("src_port", rows.iter().map(|row| row.port(ends(row).src_port)));
        columns.text("dst", rows.iter().map(PacketRow::dst));
        columns.u32("dst_port", rows.iter().map(|row| row.port(ends(row).dst_port)));
        columns.u32("captured_bytes", rows.iter().map(|row| row.packet.captured_bytes));
        columns.u32("wire_bytes", rows.iter().map(|row| row.packet.wire_bytes));
        columns.u32("payload_bytes", rows.iter().map(|row| row.packet.network.payload_bytes));
        header_columns(rows, &mut columns);
        columns.finish(rows.len())
    }
}

fn header_columns(rows: &[PacketRow], columns: &mut Columns) {
    let tcp = |row: &PacketRow| row.tcp().copied();
    let timestamp = |row: &PacketRow| row.tcp().and_then(|tcp| tcp.options.timestamp);
    let ack = |row: &PacketRow| {
        row.tcp().filter(|tcp| tcp.flags.has(crate::packet::event::TcpFlags::ACK)).map(|tcp| tcp.ack)
    };
    columns.u32("seq", rows.iter().map(|row| tcp(row).map(|tcp| tcp.seq)));
    columns.u32("ack", rows.iter().map(ack));
    columns.i64("seq_rel", rows.iter().map(|row| row.positions.0));
    columns.i64("ack_rel", rows.iter().map(|row| row.positions.1));
    columns.text("flags", rows.iter().map(|row| tcp(row).map(|tcp| tcp.flags.letters())));
    columns.u64("window_bytes", rows.iter().map(|row| row.window_bytes));
    columns.u32("ts_val", rows.iter().map(|row| timestamp(row).map(|timestamp| timestamp.0)));
    columns.u32("ts_ecr", rows.iter().map(|row| timestamp(row).map(|timestamp| timestamp.1)));
    let ip_id = |row: &PacketRow| {
        row.packet.network.ip_id.map(u32::from).or(row.packet.network.fragment.map(|fragment| fragment.id))
    };
    let ip = |row: &PacketRow, value: u8| row.is_ip().then_some(u32::from(value));
    columns.u32("ip_id", rows.iter().map(ip_id));
    columns.u32("ttl", rows.iter().map(|row| ip(row, row.packet.network.ttl)));
    columns.u32("ecn", rows.iter().map(|row| ip(row, row.packet.network.ecn)));
    columns.u32(
        "dscp",
        rows.iter().map(|row| row.packet.network.dscp.filter(|_| row.packet.is_ip).map(u32::from)),
    );
    let sighting = |row: &PacketRow| row.packet.sighting;
    columns.text("layer", rows.iter().map(|row| sighting(row).map(|seen| seen.layer.name())));
    columns.text("point", rows.iter().map(|row| sighting(row).map(|seen| seen.point.name())));
    let reason = |row: &PacketRow| {
        let reason = sighting(row)?.reason;
        (!reason.text().is_empty()).then(|| reason.text().to_owned())
    };
    columns.text("drop_reason", rows.iter().map(reason));
    columns.u64("uid", rows.iter().map(|row| sighting(row).map(|seen| seen.identity)));
    columns.u64("sequence", rows.iter().map(|row| row.packet.network.sequence.or(row.number)));
    columns.u64("acknowledged", rows.iter().map(|row| row.dccp.as_ref()?.0.ack));
    columns.text("kind", rows.iter().map(PacketRow::kind));
    columns.u32("ccval", rows.iter().map(|row| row.dccp.as_ref().map(|(header, _)| header.ccval.into())));
    columns.text("dccp", rows.iter().map(|row| row.dccp.as_ref().map(|(_, notation)| notation.as_str())));
    columns.u32("flow_id", rows.iter().map(|row| row.packet.network.flow_id));
    columns.text("agent", rows.iter().map(|row| sighting(row)?.agent.map(Agent::name)));
    columns.text("decode_stop", rows.iter().map(PacketRow::decode_stop));
}
