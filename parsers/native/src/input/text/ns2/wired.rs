//! Lines of wired links: `EVENT TIME FROM TO TYPE SIZE FLAGS FID SRC.PORT DST.PORT SEQ UID`, which
//! `show_tcphdr_` follows up with `ACKNO 0xFLAGS HLEN SACKLEN`.

use super::fields::{Fields, PathEnd};
use super::line_packet::{FlagMarks, Header, LinePacket, PacketKind};
use crate::input::text::{Outcome, number};
use crate::packet::event::{Agent, Event, NodeLayer};

const EXPECTED: Outcome = Outcome::Wrong(
    "expected `EVENT TIME FROM TO TYPE SIZE FLAGS FID SRC.PORT DST.PORT SEQ UID`, a packet on a link of ns-2",
);
const SATELLITE: Outcome =
    Outcome::Wrong("positions of satellites after a packet, expected a trace of ns-2 without satellites");

/// The event of a line's first letter, and whether it is at the link's far end.
#[inline(always)]
pub fn event(letter: u8) -> Option<(Event, bool)> {
    match letter {
        b'+' => Some((Event::Enqueued, false)),
        b'-' => Some((Event::Dequeued, false)),
        b'r' => Some((Event::Received, true)),
        b'd' => Some((Event::Dropped, false)),
        _ => None,
    }
}

/// `FROM TO TYPE SIZE FLAGS FID SRC.PORT DST.PORT`: the fields that are the same for all packets of
/// a flow on a link.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    from: u32,
    to: u32,
    kind: PacketKind,
    agent: Option<Agent>,
    size: u32,
    marks: FlagMarks,
    flow_id: Option<u32>,
    ends: (PathEnd, PathEnd),
}

impl Route {
    #[inline(always)]
    pub fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (from, to, name) = (fields.small()?, fields.small()?, fields.field()?);
        Some(Self {
            from,
            to,
            kind: PacketKind::of(name),
            agent: Agent::of(name),
            size: fields.small()?,
            marks: FlagMarks::of(fields.field()?),
            flow_id: u32::try_from(fields.signed()?).ok(),
            ends: (fields.end()?, fields.end()?),
        })
    }

    /// Write the packet into `seen`, at one of the link's ends, without its numbers.
    #[inline(always)]
    pub fn fill(&self, (event, at_far_end): (Event, bool), time_ns: i64, seen: &mut LinePacket) {
        let node = if at_far_end { self.to } else { self.from };
        seen.restart(event, time_ns, node, NodeLayer::Link);
        seen.kind = self.kind;
        seen.agent = self.agent;
        seen.size = self.size;
        seen.marks = self.marks;
        seen.flow_id = self.flow_id;
        seen.ends = Some(self.ends);
    }
}

/// Read the text after the time into `seen`.
#[inline(always)]
pub fn read(letter: u8, time_ns: i64, fields: &mut Fields<'_>, seen: &mut LinePacket) -> Result<(), Outcome> {
    read_packet(letter, time_ns, fields, seen).ok_or(EXPECTED)?;
    if fields.is_empty() { Ok(()) } else { read_header(fields, seen) }
}

#[inline(always)]
fn read_packet(letter: u8, time_ns: i64, fields: &mut Fields<'_>, seen: &mut LinePacket) -> Option<()> {
    let event = event(letter)?;
    Route::read(fields)?.fill(event, time_ns, seen);
    seen.sequence = Some(fields.signed()?);
    seen.uid = fields.signed()? as u64;
    Some(())
}

/// The four fields of `show_tcphdr_`. Only FullTcp agents have a header: others print zeros.
fn read_header(fields: &mut Fields<'_>, seen: &mut LinePacket) -> Result<(), Outcome> {
    let mut ahead = *fields;
    let Some(ack) = fields.signed() else {
        return Err(if ahead.field().is_some_and(is_position) { SATELLITE } else { EXPECTED });
    };
    let flags = fields.field().and_then(|field| number::hexadecimal(field.strip_prefix(b"0x")?));
    let (Some(flags), Some(bytes), Some(_), true) =
        (flags, fields.small(), fields.small(), fields.is_empty())
    else {
        return Err(EXPECTED);
    };
    if flags != 0 || bytes != 0 {
        // TCP has nine flags.
        seen.header = Some(Header { ack, flags: Some((flags & 0x1ff) as u16), bytes });
    }
    Ok(())
}

/// Whether a field is a latitude with its fraction.
fn is_position(field: &[u8]) -> bool {
    field.contains(&b'.') && number::real(field).is_some()
}
