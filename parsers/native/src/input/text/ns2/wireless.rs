//! Lines of wireless nodes in the old form:
//! `EVENT TIME _NODE_ LAYER REASON UID TYPE SIZE [DURATION TO FROM ETHERTYPE] ------- [SRC:PORT DST:PORT
//! TTL NEXTHOP]` and what the type adds. An energy model puts a part of its own before the dashes; frames
//! of medium access end there.

use super::fields::Fields;
use super::line_packet::{Header, LinePacket, PacketKind};
use crate::input::text::{Outcome, number};
use crate::packet::event::{Agent, Code, Event, NodeLayer};

const EXPECTED: Outcome = Outcome::Wrong(
    "expected `EVENT TIME _NODE_ LAYER REASON UID TYPE SIZE [...] ------- [SRC:PORT DST:PORT TTL NEXTHOP]`, \
     a packet at a wireless node of ns-2",
);

/// The event of a line's first letter.
pub fn event(letter: u8) -> Option<Event> {
    match letter {
        b's' => Some(Event::Sent),
        b'r' => Some(Event::Received),
        b'f' => Some(Event::Forwarded),
        b'D' | b'd' => Some(Event::Dropped),
        _ => None,
    }
}

/// The layer of a name in the trace.
pub fn layer(name: &[u8]) -> Option<NodeLayer> {
    match name {
        b"AGT" => Some(NodeLayer::Agent),
        b"RTR" => Some(NodeLayer::Routing),
        b"IFQ" => Some(NodeLayer::Queue),
        b"MAC" => Some(NodeLayer::Mac),
        b"PHY" => Some(NodeLayer::Phy),
        _ => None,
    }
}

/// The reason for a drop; empty if the trace gives none.
pub fn reason(event: Event, code: &[u8]) -> Code {
    match code {
        b"---" => Code::default(),
        _ if event == Event::Dropped => Code::new(code),
        _ => Code::default(),
    }
}

/// Read the text after the time.
pub fn read(letter: u8, time_ns: i64, fields: &mut Fields<'_>) -> Result<LinePacket, Outcome> {
    read_packet(letter, time_ns, fields).ok_or(EXPECTED)
}

fn read_packet(letter: u8, time_ns: i64, fields: &mut Fields<'_>) -> Option<LinePacket> {
    let event = event(letter)?;
    let node = fields.field()?.strip_prefix(b"_")?.strip_suffix(b"_")?;
    let node = u32::try_from(number::decimal(node)?).ok()?;
    let layer = layer(fields.field()?)?;
    let mut seen = LinePacket::new(event, time_ns, node, layer);
    seen.reason = reason(event, fields.field()?);
    seen.uid = fields.signed()? as u64;
    let name = fields.field()?;
    (seen.kind, seen.agent) = (PacketKind::of(name), Agent::of(name));
    seen.size = fields.small()?;
    fields.bracketed()?;
    if fields.rest().first() == Some(&b'[') {
        fields.bracketed()?;
    }
    if fields.is_empty() || seen.kind == PacketKind::Control {
        seen.kind = PacketKind::Control;
        return Some(seen);
    }
    fields.skip(b"-------")?;
    let mut addresses = Fields::new(fields.bracketed()?);
    seen.ends = Some((addresses.end()?, addresses.end()?));
    seen.ttl = addresses.signed()?.clamp(0, 255) as u8;
    read_numbers(seen, fields)
}

/// `[SEQ ACK]` of TCP, `[SEQ]` of constant bit rate, nothing of other types.
fn read_numbers(mut seen: LinePacket, fields: &mut Fields<'_>) -> Option<LinePacket> {
    let is_tcp = matches!(seen.kind, PacketKind::Tcp | PacketKind::Ack);
    match fields.bracketed().map(Fields::new) {
        Some(mut numbers) if is_tcp => {
            let sequence = numbers.signed()?;
            seen = with_numbers(seen, sequence, numbers.signed()?);
        }
        None if is_tcp => return None,
        Some(mut numbers) if seen.kind == PacketKind::Datagram => seen.sequence = numbers.signed(),
        _ => {}
    }
    Some(seen)
}

/// Copy TCP's two numbers. One-way agents leave the acknowledgement at zero and put the number of
/// the last packet into the sequence of an `ack`; only FullTcp acknowledges in both directions.
pub fn with_numbers(mut seen: LinePacket, sequence: i64, ack: i64) -> LinePacket {
    /// Bytes of IP and TCP headers.
    const HEADER_BYTES: u32 = 40;
    seen.sequence = Some(sequence);
    if ack != 0 {
        seen.header = Some(Header { ack, flags: None, bytes: HEADER_BYTES });
    }
    seen
}
