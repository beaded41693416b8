//! GTP-U (3GPP TS 29.281), the user plane of mobile networks.

use super::super::{Bytes, u16_at, u32_at};
use super::frame_shape::is_frame;
use super::{MALFORMED, Next, Step, need};
use crate::packet::encapsulation::Encapsulation;
use crate::packet::tunnel::Tunnel;

const HEADER: usize = 8;
const VERSION_1: u8 = 0x30;
/// Of version and protocol type, whose other value is GTP' for charging.
const VERSION_AND_TYPE: u8 = 0xf0;
const EXTENDED: u8 = 0x04;
/// Flags of which any brings four more bytes: extension, sequence number, N-PDU number.
const LONGER: u8 = 0x07;
const USER_PACKET: u8 = 255;
/// The most extension headers.
const MOST_EXTENSIONS: usize = 8;

/// A user's packet; echoes and other messages carry none.
pub fn header<'a>(bytes: Bytes<'a>, tunnel: &mut Tunnel) -> Step<'a> {
    let header = need(bytes, HEADER)?;
    let flags = header[0];
    // Longer than the rest if the datagram is fragmented.
    let length = u32::from(u16_at(header, 2)).min(bytes.on_wire.saturating_sub(HEADER as u32));
    if flags & VERSION_AND_TYPE != VERSION_1 || header[1] != USER_PACKET {
        return Err(MALFORMED);
    }
    let teid = u32_at(header, 4);
    let mut bytes = Bytes { on_wire: HEADER as u32 + length, ..bytes }.after(HEADER);
    if flags & LONGER != 0 {
        let mut next = need(bytes, 4)?[3];
        bytes = bytes.after(4);
        for _ in 0..MOST_EXTENSIONS {
            if next == 0 || flags & EXTENDED == 0 {
                break;
            }
            let length = usize::from(need(bytes, 1)?[0]) * 4;
            let Some(&last) = need(bytes, length)?.last() else { return Err(MALFORMED) };
            (next, bytes) = (last, bytes.after(length));
        }
        if next != 0 && flags & EXTENDED != 0 {
            return Err(MALFORMED);
        }
    }
    let next = match need(bytes, 1)?[0] >> 4 {
        4 | 6 => Next::Ip,
        _ if is_frame(bytes) => Next::Ethernet,
        _ => return Err(MALFORMED),
    };
    tunnel.enter(Encapsulation::GtpU);
    tunnel.teid = Some(teid);
    tunnel.lane.enter_path(Encapsulation::GtpU, teid.into());
    Ok((next, bytes))
}
