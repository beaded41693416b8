//! Linux's netfilter log: attributes, of which one is the packet.

use super::Bytes;
use super::layers::Next;
use super::link_header::{Link, need, plain, stop};
use crate::packet::event::{Reason, Stop};

const HEADER: usize = 4;
const ATTRIBUTE: usize = 4;
const PAYLOAD: u16 = 9;
/// The most attributes before the packet; the kernel has some twenty.
const MOST_ATTRIBUTES: usize = 64;

/// Attributes are in the byte order of the writer.
pub fn decode(bytes: Bytes<'_>) -> Result<Link, Stop> {
    if need(bytes, HEADER)?[1] != 0 {
        return Err(stop(Reason::Malformed));
    }
    let little = payload(bytes, u16::from_le_bytes);
    let at = match little {
        Err(Stop { reason: Reason::Malformed, .. }) => payload(bytes, u16::from_be_bytes)?,
        found => found?,
    };
    Ok(plain(Next::Ip, at))
}

fn payload(bytes: Bytes<'_>, number: fn([u8; 2]) -> u16) -> Result<usize, Stop> {
    let mut at = HEADER;
    for _ in 0..MOST_ATTRIBUTES {
        let header = need(bytes, at + ATTRIBUTE)?;
        let length = usize::from(number([header[at], header[at + 1]]));
        let kind = number([header[at + 2], header[at + 3]]);
        if length < ATTRIBUTE || at + length > bytes.on_wire as usize {
            return Err(stop(Reason::Malformed));
        }
        if kind == PAYLOAD {
            return Ok(at + ATTRIBUTE);
        }
        at += length.next_multiple_of(4);
    }
    Err(stop(Reason::Malformed))
}
