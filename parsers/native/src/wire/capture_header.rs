//! Headers of capturing programs that name the link type of each packet: PPI, PKTAP, ERF.

use super::link_header::{need, stop};
use super::{Bytes, u16_at};
use crate::packet::event::{Event, Reason, Stop};
use crate::packet::link_type::LinkType;

/// A frame without the header before it.
pub struct Unwrapped<'a> {
    pub link_type: LinkType,
    pub bytes: Bytes<'a>,
    pub event: Option<Event>,
}

/// Remove the header that `link_type` has, if it is one of these; there is only one.
pub fn unwrap(link_type: LinkType, bytes: Bytes<'_>) -> Result<Unwrapped<'_>, Stop> {
    let inner = match link_type {
        LinkType::Ppi => ppi(bytes)?,
        LinkType::Pktap => pktap(bytes)?,
        LinkType::Erf => erf(bytes)?,
        _ => return Ok(Unwrapped { link_type, bytes, event: None }),
    };
    match inner.link_type {
        LinkType::Ppi | LinkType::Pktap | LinkType::Erf => Err(stop(Reason::Malformed)),
        _ => Ok(inner),
    }
}

fn ppi(bytes: Bytes<'_>) -> Result<Unwrapped<'_>, Stop> {
    let header = need(bytes, 8)?;
    let length = u16::from_le_bytes([header[2], header[3]]).into();
    if header[0] != 0 || length < 8 {
        return Err(stop(Reason::Malformed));
    }
    need(bytes, length)?;
    let link_type = LinkType::from_number(u32_le(header, 4));
    Ok(Unwrapped { link_type, bytes: bytes.after(length), event: None })
}

fn pktap(bytes: Bytes<'_>) -> Result<Unwrapped<'_>, Stop> {
    const SHORTEST: usize = 40;
    const IS_PACKET: u32 = 1;
    const RECEIVED: u32 = 1;
    const SENT: u32 = 2;
    let header = need(bytes, SHORTEST)?;
    let length = u32_le(header, 0) as usize;
    if length < SHORTEST || u32_le(header, 4) != IS_PACKET {
        return Err(stop(Reason::Malformed));
    }
    need(bytes, length)?;
    let event = match u32_le(header, 36) & (RECEIVED | SENT) {
        RECEIVED => Some(Event::Received),
        SENT => Some(Event::Sent),
        _ => None,
    };
    let link_type = LinkType::from_number(u32_le(header, 8));
    Ok(Unwrapped { link_type, bytes: bytes.after(length), event })
}

/// A record of Endace's cards: 16 bytes, extension headers, and what its type says.
fn erf(bytes: Bytes<'_>) -> Result<Unwrapped<'_>, Stop> {
    const HEADER: usize = 16;
    const EXTENDED: u8 = 0x80;
    const EXTENSION: usize = 8;
    const MOST_EXTENSIONS: usize = 16;
    let header = need(bytes, HEADER)?;
    let (kind, on_wire) = (header[8] & !EXTENDED, u32::from(u16_at(header, 14)));
    let mut end = HEADER;
    let mut has_more = header[8] & EXTENDED != 0;
    for _ in 0..MOST_EXTENSIONS {
        if !has_more {
            break;
        }
        has_more = need(bytes, end + EXTENSION)?[end] & EXTENDED != 0;
        end += EXTENSION;
    }
    let (link_type, before) = match kind {
        // Offset and padding of the frame, one byte each.
        2 | 11 | 16 | 20 => (LinkType::Ethernet, 2),
        1 | 10 | 15 | 17 => (LinkType::CiscoHdlc, 0),
        22 => (LinkType::Ipv4, 0),
        23 => (LinkType::Ipv6, 0),
        other => return Err(stop(Reason::Unknown(other.into()))),
    };
    need(bytes, end + before)?;
    let bytes = Bytes { on_wire, ..bytes.after(end + before) };
    Ok(Unwrapped { link_type, bytes, event: None })
}

fn u32_le(header: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}
