//! The table of packets as CSV: the output of `convert --what packets`, and of plugins.
//!
//! The first line names the columns (`tables/packets.rs`), in any order; only `time_ns`, `src` and
//! `dst` are required, and unknown columns are skipped.

use memchr::memchr;

use super::number::{decimal, signed};
use super::{LineFormat, NameTable, Outcome};
use crate::packet::event::{
    Agent, Code, Endpoints, Event, Family, Layer, Network, NodeLayer, PROTOCOL_TFRC, Packet, PathPoint,
    Reason, Sighting, Stop, TcpFlags, Transport,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    TimeNs,
    Node,
    Event,
    Transport,
    Src,
    SrcPort,
    Dst,
    DstPort,
    CapturedBytes,
    WireBytes,
    PayloadBytes,
    Seq,
    Ack,
    Flags,
    WindowBytes,
    TsVal,
    TsEcr,
    IpId,
    Ttl,
    Ecn,
    Dscp,
    Layer,
    Point,
    DropReason,
    Uid,
    Sequence,
    Agent,
    FlowId,
    Kind,
    Other,
}

impl Column {
    fn named(name: &[u8]) -> Self {
        match name {
            b"time_ns" => Self::TimeNs,
            b"node" => Self::Node,
            b"event" => Self::Event,
            b"transport" => Self::Transport,
            b"src" => Self::Src,
            b"src_port" => Self::SrcPort,
            b"dst" => Self::Dst,
            b"dst_port" => Self::DstPort,
            b"captured_bytes" => Self::CapturedBytes,
            b"wire_bytes" => Self::WireBytes,
            b"payload_bytes" => Self::PayloadBytes,
            b"seq" => Self::Seq,
            b"ack" => Self::Ack,
            b"flags" => Self::Flags,
            b"window_bytes" => Self::WindowBytes,
            b"ts_val" => Self::TsVal,
            b"ts_ecr" => Self::TsEcr,
            b"ip_id" => Self::IpId,
            b"ttl" => Self::Ttl,
            b"ecn" => Self::Ecn,
            b"dscp" => Self::Dscp,
            b"layer" => Self::Layer,
            b"point" => Self::Point,
            b"drop_reason" => Self::DropReason,
            b"uid" => Self::Uid,
            b"sequence" => Self::Sequence,
            b"flow_id" => Self::FlowId,
            b"agent" => Self::Agent,
            b"kind" => Self::Kind,
            _ => Self::Other,
        }
    }
}

/// Whether a line looks like the names of these columns.
pub fn recognises(line: &[u8]) -> bool {
    let columns: Vec<Column> = header(line).collect();
    [Column::TimeNs, Column::Src, Column::Dst].iter().all(|column| columns.contains(column))
}

fn header(line: &[u8]) -> impl Iterator<Item = Column> {
    line.split(|&byte| byte == b',').take(MAX_COLUMNS).map(|name| Column::named(unquoted(name.trim_ascii())))
}

const MAX_COLUMNS: usize = 256;

/// Reader of the table.
#[derive(Default)]
pub struct PacketsCsv {
    columns: Vec<Column>,
    places: NameTable,
    hosts: NameTable,
}

/// Fields of a row that are not fields of the packet.
#[derive(Default)]
struct RowExtras {
    has_time: bool,
    layer: Option<NodeLayer>,
    point: PathPoint,
    uid: Option<u64>,
    reason: Code,
    agent: Option<Agent>,
    timestamp: (Option<u32>, Option<u32>),
    src: Option<(Family, u128)>,
    dst: Option<(Family, u128)>,
    is_known: bool,
    is_feedback: bool,
}

impl LineFormat for PacketsCsv {
    fn read(&mut self, number: u64, line: &[u8], packet: &mut Packet) -> Outcome {
        if line.is_empty() {
            return Outcome::Other;
        }
        if self.columns.is_empty() {
            self.columns = header(line).collect();
            return match recognises(line) {
                true => Outcome::Other,
                false => {
                    self.columns.clear();
                    Outcome::Wrong("expected names of columns with `time_ns`, `src` and `dst`")
                }
            };
        }
        *packet = Packet { number, ..Packet::default() };
        let mut row = RowExtras::default();
        let mut rest = Some(line);
        for at in 0..self.columns.len() {
            let Some(text) = rest else { break };
            let (field, after) = split_field(text);
            rest = after;
            if !field.is_empty() && self.read_field(self.columns[at], field, packet, &mut row).is_none() {
                return Outcome::Wrong(expected(self.columns[at]));
            }
        }
        finish(packet, &row)
    }

    fn places(&self) -> &NameTable {
        &self.places
    }

    fn hosts(&self) -> Option<&NameTable> {
        Some(&self.hosts)
    }
}

impl PacketsCsv {
    /// Set one field; None if its value is invalid.
    fn read_field(
        &mut self,
        column: Column,
        field: &[u8],
        packet: &mut Packet,
        row: &mut RowExtras,
    ) -> Option<()> {
        let network = &mut packet.network;
        let tcp = &mut network.tcp;
        match column {
            Column::TimeNs => {
                packet.time_ns = signed(field)?;
                row.has_time = true;
            }
            Column::Node => packet.interface = self.places.index(&String::from_utf8_lossy(field)),
            Column::Event => packet.event = Some(event(field)?),
            Column::Transport => row.is_known = transport(field, network),
            Column::Src => row.src = Some(self.address(field)),
            Column::Dst => row.dst = Some(self.address(field)),
            Column::SrcPort => network.endpoints.src_port = decimal(field)?.try_into().ok()?,
            Column::DstPort => {
                network.endpoints.dst_port = decimal(field)?.try_into().ok()?;
                network.has_ports = true;
            }
            Column::CapturedBytes => packet.captured_bytes = decimal(field)?.try_into().ok()?,
            Column::WireBytes => packet.wire_bytes = decimal(field)?.try_into().ok()?,
            Column::PayloadBytes => network.payload_bytes = Some(decimal(field)?.try_into().ok()?),
            Column::Seq => tcp.seq = decimal(field)?.try_into().ok()?,
            Column::Ack => tcp.ack = decimal(field)?.try_into().ok()?,
            Column::Flags => tcp.flags = flags(field)?,
            Column::WindowBytes => tcp.window = folded_window(decimal(field)?),
            Column::TsVal => row.timestamp.0 = Some(decimal(field)?.try_into().ok()?),
            Column::TsEcr => row.timestamp.1 = Some(decimal(field)?.try_into().ok()?),
            Column::IpId => network.ip_id = u16::try_from(decimal(field)?).ok(),
            Column::Ttl => network.ttl = decimal(field)?.try_into().ok()?,
            Column::Ecn => network.ecn = u8::try_from(decimal(field)?).ok().filter(|&ecn| ecn < 4)?,
            Column::Dscp => {
                network.dscp = Some(u8::try_from(decimal(field)?).ok().filter(|&dscp| dscp < 64)?);
            }
            Column::Layer => {
                row.layer = Some(*NodeLayer::ALL.iter().find(|layer| layer.name().as_bytes() == field)?);
            }
            Column::Point => row.point = point(field)?,
            Column::DropReason => row.reason = Code::new(field),
            Column::Uid => row.uid = Some(decimal(field)?),
            Column::Sequence => network.sequence = Some(decimal(field)?),
            Column::Agent => row.agent = Some(Agent::of(field)?),
            Column::FlowId => network.flow_id = Some(decimal(field)?.try_into().ok()?),
            Column::Kind => row.is_feedback = field == b"feedback",
            Column::Other => {}
        }
        Some(())
    }

    /// An IP address, the number of a node, or a name.
    fn address(&mut self, field: &[u8]) -> (Family, u128) {
        let text = std::str::from_utf8(field).unwrap_or_default();
        if let Some(node) = decimal(field) {
            return (Family::Node, node.into());
        }
        match text.parse() {
            Ok(std::net::IpAddr::V4(address)) => (Family::V4, address.to_bits().into()),
            Ok(std::net::IpAddr::V6(address)) => (Family::V6, address.to_bits()),
            Err(_) => (Family::Name, self.hosts.index(&String::from_utf8_lossy(field)).into()),
        }
    }
}

/// Set the fields that depend on the whole row.
fn finish(packet: &mut Packet, row: &RowExtras) -> Outcome {
    if !row.has_time {
        return Outcome::Wrong(expected(Column::TimeNs));
    }
    packet.wire_bytes = packet.wire_bytes.max(packet.captured_bytes);
    let (Some(src), Some(dst)) = (row.src, row.dst) else {
        packet.stop = Some(Stop { layer: Layer::Link, reason: Reason::Unknown(0) });
        return Outcome::Packet;
    };
    if src.0 != dst.0 {
        return Outcome::Wrong("expected `src` and `dst` of one kind: IP addresses, node numbers or names");
    }
    packet.is_ip = true;
    let network = &mut packet.network;
    network.endpoints = Endpoints { family: src.0, src: src.1, dst: dst.1, ..network.endpoints };
    network.tcp.options.timestamp = row.timestamp.0.zip(row.timestamp.1);
    if !row.is_known {
        network.has_ports = false;
        network.transport = Transport::Unread;
    }
    if row.is_feedback && network.transport == Transport::Tfrc {
        network.transport = Transport::TfrcFeedback;
    }
    packet.sighting = row.uid.map(|identity| Sighting {
        layer: row.layer.unwrap_or(NodeLayer::Agent),
        point: match (row.point, packet.event) {
            // Without a path column, a packet is sent by its source and received by its
            // destination.
            (PathPoint::Between, Some(Event::Sent)) => PathPoint::Source,
            (PathPoint::Between, Some(Event::Received)) => PathPoint::Destination,
            (point, _) => point,
        },
        identity,
        reason: row.reason,
        agent: row.agent,
    });
    Outcome::Packet
}

fn expected(column: Column) -> &'static str {
    match column {
        Column::TimeNs => "expected a time in whole nanoseconds in `time_ns`",
        Column::Event => "expected `sent`, `received`, `forwarded`, `enqueued`, `dequeued` or `dropped`",
        Column::SrcPort | Column::DstPort => "expected a port from 0 to 65535",
        Column::Flags => "expected TCP flags as letters of `FSRPAUECe`",
        Column::Layer => "expected a layer: agent, routing, ip, queue, mac, phy or link",
        Column::Point => "expected `source`, `destination` or `between`",
        Column::Ecn => "expected ECN bits from 0 to 3",
        Column::Agent => "expected a type of ns-2's packets, such as `tcp` or `cbr`",
        Column::Dscp => "expected a codepoint from 0 to 63",
        _ => "expected a whole number that fits its column",
    }
}

fn event(field: &[u8]) -> Option<Event> {
    Some(match field {
        b"sent" => Event::Sent,
        b"received" => Event::Received,
        b"forwarded" => Event::Forwarded,
        b"enqueued" => Event::Enqueued,
        b"dequeued" => Event::Dequeued,
        b"dropped" => Event::Dropped,
        _ => return None,
    })
}

fn point(field: &[u8]) -> Option<PathPoint> {
    Some(match field {
        b"source" => PathPoint::Source,
        b"destination" => PathPoint::Destination,
        b"between" => PathPoint::Between,
        _ => return None,
    })
}

/// Set the transport; return whether it makes flows.
fn transport(field: &[u8], network: &mut Network) -> bool {
    let (transport, protocol) = match field {
        b"tcp" => (Transport::Tcp, 6),
        b"udp" => (Transport::Udp, 17),
        b"tfrc" => (Transport::Tfrc, PROTOCOL_TFRC),
        _ => return false,
    };
    network.transport = transport;
    network.endpoints.protocol = protocol;
    true
}

/// A window that is 0 or not, and equal to another if the scaled ones were: only this is used.
fn folded_window(bytes: u64) -> u16 {
    match u16::try_from(bytes) {
        Ok(window) => window,
        Err(_) => (bytes ^ bytes >> 16) as u16 | 1,
    }
}

fn flags(field: &[u8]) -> Option<TcpFlags> {
    let mut bits = 0;
    for letter in field {
        // AE was once the nonce sum.
        let letter = if *letter == b'N' { b'e' } else { *letter };
        bits |= 1 << TcpFlags::LETTERS.bytes().position(|known| known == letter)?;
    }
    Some(TcpFlags(bits))
}

/// The first field without its quotes, and the text after its comma.
fn split_field(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let inside = text.strip_prefix(b"\"");
    let (field, after) = match inside.and_then(|inside| memchr(b'"', inside).map(|end| (inside, end))) {
        Some((inside, end)) => (inside.get(..end), inside.get(end + 1..)),
        None => {
            let end = memchr(b',', text).unwrap_or(text.len());
            (text.get(..end), text.get(end..))
        }
    };
    (field.unwrap_or_default(), after.and_then(|after| after.strip_prefix(b",")))
}

fn unquoted(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(lines: &[&str]) -> (Vec<Packet>, Vec<&'static str>) {
        let mut reader = PacketsCsv::default();
        let (mut packets, mut wrong) = (Vec::new(), Vec::new());
        for (number, line) in (1..).zip(lines) {
            let mut packet = Packet::default();
            match reader.read(number, line.as_bytes(), &mut packet) {
                Outcome::Packet => packets.push(packet),
                Outcome::Held | Outcome::Other | Outcome::Forwarded(_) => {}
                Outcome::Wrong(expected) => wrong.push(expected),
            }
        }
        (packets, wrong)
    }

    #[test]
    fn test_columns_may_stand_in_any_order_and_be_left_out() {
        let (packets, wrong) = read(&[
            "dst,dst_port,src,src_port,time_ns,transport,payload_bytes,flags,\"note\",seq",
            "10.0.0.2,80,10.0.0.1,4000,17,tcp,100,PA,\"a, b\",5",
            "2,0,\"1\",0,18,tfrc,,,,",
        ]);
        assert_eq!(wrong, Vec::<&str>::new());
        assert_eq!(packets[0].time_ns, 17);
        assert_eq!(
            packets[0].network.tcp().map(|tcp| (tcp.seq, tcp.flags.letters())),
            Some((5, "PA".into()))
        );
        assert_eq!(packets[1].network.endpoints.family, Family::Node);
        assert_eq!(packets[1].network.transport, Transport::Tfrc);
    }

    #[test]
    fn test_a_sighting_needs_a_uid() {
        let (packets, _) = read(&[
            "time_ns,src,dst,event,uid,transport,src_port,dst_port",
            "1,a,b,sent,7,udp,1,2",
            "2,a,b,received,7,udp,1,2",
            "3,a,b,dropped,8,udp,1,2",
            "4,a,b,sent,,udp,1,2",
        ]);
        let points: Vec<_> = packets.iter().map(|packet| packet.sighting.map(|seen| seen.point)).collect();
        let (source, destination) = (Some(PathPoint::Source), Some(PathPoint::Destination));
        assert_eq!(points, [source, destination, Some(PathPoint::Between), None]);
    }

    #[test]
    fn test_what_does_not_fit_its_column_is_reported() {
        let (packets, wrong) = read(&[
            "time_ns,src,dst,src_port,event",
            "x,1,2,3,sent",
            "1,1,2,70000,sent",
            "1,1,2,3,flew",
            ",1,2,3,sent",
            "1,1,10.0.0.1,3,sent",
        ]);
        assert!(packets.is_empty());
        assert_eq!(wrong.len(), 5);
    }

    proptest! {
        #[test]
        fn test_any_line_is_read_or_refused(lines in proptest::collection::vec("[\\PC,\"]{0,60}", 0..6)) {
            let mut all = vec!["time_ns,src,dst,src_port,dst_port,transport,uid,event,seq,layer,point"];
            all.extend(lines.iter().map(String::as_str));
            read(&all);
        }
    }
}
