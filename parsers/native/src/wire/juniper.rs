//! Headers that Juniper's routers put before a frame.

use super::layers::Next;
use super::link_header::{Link, need, plain, stop};
use super::{Bytes, u16_at};
use crate::packet::event::{Event, Reason, Stop};
use crate::packet::link_type::LinkType;

const MAGIC: [u8; 3] = *b"MGC";
const RECEIVED: u8 = 0x01;
const NO_LINK_HEADER: u8 = 0x02;
const EXTENDED: u8 = 0x80;

pub fn decode(
    link_type: LinkType,
    bytes: Bytes<'_>,
    inner: impl Fn(LinkType, Bytes<'_>) -> Result<Link, Stop>,
) -> Result<Link, Stop> {
    let header = need(bytes, 4)?;
    if header[..3] != MAGIC {
        return Err(stop(Reason::Malformed));
    }
    let flags = header[3];
    let mut length = 4;
    if flags & EXTENDED != 0 {
        length += 2 + usize::from(u16_at(need(bytes, 6)?, 4));
    }
    let link = if flags & NO_LINK_HEADER != 0 {
        // The protocol as the router's software numbers it.
        plain(Next::Ip, length + 4)
    } else {
        let framed = match link_type {
            LinkType::JuniperEthernet | LinkType::JuniperPppoe => LinkType::Ethernet,
            LinkType::JuniperPpp => LinkType::Ppp,
            LinkType::JuniperFrameRelay => LinkType::FrameRelay,
            LinkType::JuniperHdlc => LinkType::CiscoHdlc,
            other => return Err(stop(Reason::UnknownLinkType(other.number()))),
        };
        need(bytes, length)?;
        let link = inner(framed, bytes.after(length))?;
        Link { header: length + link.header, ..link }
    };
    let event = if flags & RECEIVED != 0 { Event::Received } else { Event::Sent };
    Ok(Link { event: Some(event), ..link })
}
