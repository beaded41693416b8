//! IPsec where it does not encrypt: AH (RFC 4302), ESP with the null cipher (RFC 2410).

use super::super::{Bytes, ip};
use super::{Next, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::event::Endpoints;
use crate::packet::tunnel::Tunnel;

/// Security parameters index and sequence number.
const ESP: usize = 8;
/// Bytes of padding's length and next header.
const TRAILER: usize = 2;
/// Bytes of the usual check values (RFC 2403, 2404, 4868, 4543), and none.
const CHECK_VALUES: [usize; 5] = [12, 16, 0, 24, 32];
/// Bytes of an initialization vector: none, or that of GMAC.
const VECTORS: [usize; 2] = [0, 8];

pub fn authenticated<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let header = need(bytes, 12)?;
    let length = (usize::from(header[1]) + 2) * 4;
    need(bytes, length)?;
    tunnel.enter(Encapsulation::Ah);
    Ok((Next::Protocol(header[0]), bytes.after(length)))
}

/// Nothing in a packet says whether it is encrypted (RFC 5879): it is not if its padding counts and the checksum
/// of the packet inside is right. None if that is not certain.
pub fn unencrypted<'a>(bytes: Bytes<'a>, ends: &Endpoints, tunnel: &mut Tunnel) -> Option<(Next, Bytes<'a>)> {
    let whole = bytes.captured.get(..bytes.on_wire as usize)?;
    for check_value in CHECK_VALUES {
        let Some(end) = whole.len().checked_sub(check_value + TRAILER) else { continue };
        let (padding, protocol) = (usize::from(whole[end]), whole[end + 1]);
        let Some(end) = end.checked_sub(padding) else { continue };
        let counts = whole[end..end + padding].iter().zip(1..).all(|(&byte, number)| byte == number);
        for vector in VECTORS.into_iter().filter(|_| counts) {
            let Some(inside) = whole.get(ESP + vector..end) else { continue };
            let packet = Bytes { on_wire: inside.len() as u32, ..bytes.after(ESP + vector) };
            let is_packet = match protocol {
                4 | 41 => ip::is_certainly(packet) && ip::length(packet) == Some(inside.len()),
                ip::TCP | ip::UDP => ip::has_right_checksum(protocol, inside, ends),
                _ => false,
            };
            if is_packet {
                tunnel.enter(Encapsulation::Esp);
                return Some((Next::Protocol(protocol), packet));
            }
        }
    }
    None
}
