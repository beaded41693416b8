//! Lines of wired links: `EVENT TIME FROM TO TYPE SIZE FLAGS FID SRC.PORT DST.PORT SEQ UID`, which
//! `show_tcphdr_` follows up with `ACKNO 0xFLAGS HLEN SACKLEN`.

use super::fields::Fields;
use super::seen::{Header, Kind, Marks, Seen};
use crate::event::{Event, NodeLayer};
use crate::text::{Outcome, number};

const EXPECTED: Outcome = Outcome::Wrong(
    "expected `EVENT TIME FROM TO TYPE SIZE FLAGS FID SRC.PORT DST.PORT SEQ UID`, a packet on a link of ns-2",
);
const SATELLITE: Outcome =
    Outcome::Wrong("positions of satellites behind a packet, expected a trace of ns-2 without satellites");

/// What the first letter says happened, and at which of the link's two ends.
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

/// Read what follows the time into `seen`.
#[inline(always)]
pub fn read(letter: u8, time_ns: i64, fields: &mut Fields<'_>, seen: &mut Seen) -> Result<(), Outcome> {
    read_packet(letter, time_ns, fields, seen).ok_or(EXPECTED)?;
    if fields.is_empty() { Ok(()) } else { read_header(fields, seen) }
}

#[inline(always)]
fn read_packet(letter: u8, time_ns: i64, fields: &mut Fields<'_>, seen: &mut Seen) -> Option<()> {
    let (event, at_far_end) = event(letter)?;
    let (from, to) = (fields.small()?, fields.small()?);
    let node = if at_far_end { to } else { from };
    seen.restart(event, time_ns, node, NodeLayer::Link);
    seen.kind = Kind::of(fields.field()?);
    seen.size = fields.small()?;
    seen.marks = Marks::of(fields.field()?);
    seen.flow_id = u32::try_from(fields.signed()?).ok();
    seen.ends = Some((fields.end()?, fields.end()?));
    seen.sequence = Some(fields.signed()?);
    seen.uid = fields.signed()? as u64;
    Some(())
}

/// The four fields of `show_tcphdr_`. Only FullTcp agents have a header: others print zeros.
fn read_header(fields: &mut Fields<'_>, seen: &mut Seen) -> Result<(), Outcome> {
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
        // Nine bits are all that TCP has.
        seen.header = Some(Header { ack, flags: Some((flags & 0x1ff) as u16), bytes });
    }
    Ok(())
}

/// Whether a field is a latitude with its fraction.
fn is_position(field: &[u8]) -> bool {
    field.contains(&b'.') && number::real(field).is_some()
}
