//! PPP (RFC 1661).

use super::super::ether_type::{IPV4, IPV6};
use super::super::{Bytes, u16_at};
use super::{Next, Step};
use crate::packet::event::{Layer, Reason, Stop};

/// Address and control (RFC 1662 section 3.1).
pub const PPP_ADDRESS: [u8; 2] = [0xff, 0x03];
const MULTILINK: u16 = 0x003d;
/// First and last fragment of a multilink packet (RFC 1990): both are set in one that is whole.
const WHOLE: u8 = 0xc0;

/// Address and control may be omitted, and so may the protocol's high byte. ns-3 writes neither address nor
/// control.
pub fn header(bytes: Bytes<'_>, layer: Layer) -> Step<'_> {
    let need = |bytes: Bytes<'_>, n: usize| -> Result<(), Stop> {
        if bytes.captured.len() < n { Err(bytes.shortage(n, Layer::Link)) } else { Ok(()) }
    };
    need(bytes, 2)?;
    let bytes = if bytes.captured.starts_with(&PPP_ADDRESS) { bytes.after(2) } else { bytes };
    need(bytes, 1)?;
    let (protocol, after) = if bytes.captured[0] & 1 == 1 {
        (u16::from(bytes.captured[0]), bytes.after(1))
    } else {
        need(bytes, 2)?;
        (u16_at(bytes.captured, 0), bytes.after(2))
    };
    match protocol {
        0x0021 => Ok((Next::EtherType(IPV4), after)),
        0x0057 => Ok((Next::EtherType(IPV6), after)),
        0x0281 | 0x0283 => Ok((Next::EtherType(0x8847), after)),
        MULTILINK if after.captured.first().is_some_and(|flags| flags & WHOLE == WHOLE) => {
            Ok((Next::Ppp, after.after(4)))
        }
        other => Err(Stop { layer, reason: Reason::Unknown(other.into()) }),
    }
}
