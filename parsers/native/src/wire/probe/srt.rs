//! SRT in live mode (draft-sharabayko-srt-01 section 3): data packets have a number, and the time since the
//! connection began in microseconds.

use super::{SenderClock, Stamp};
use crate::wire::u32_at;

const CONTROL: u32 = 1 << 31;
/// Of the second word: first and last packet of a message, as each is in live mode; sent again.
const WHOLE_MESSAGE: u32 = 0b11 << 30;
const RETRANSMITTED: u32 = 1 << 26;
/// The largest type of control packets, but for that of users.
const PEER_ERROR: u32 = 8;
const USER_DEFINED: u32 = 0x7fff;

pub(super) fn read(bytes: &[u8]) -> Option<Stamp> {
    let fields = bytes.first_chunk::<16>()?;
    let (number, message) = (u32_at(fields, 0), u32_at(fields, 4));
    let sent_ns = i64::from(u32_at(fields, 8)) * 1_000;
    let is_data = number & CONTROL == 0 && message & WHOLE_MESSAGE == WHOLE_MESSAGE;
    is_data.then_some(Stamp { number: number.into(), sent_ns, clock: SenderClock::Unstated })
}

/// Whether it is a control packet.
pub(super) fn is_control(bytes: &[u8]) -> bool {
    let Some(fields) = bytes.first_chunk::<16>() else { return false };
    let first = u32_at(fields, 0);
    let kind = first >> 16 & 0x7fff;
    first & CONTROL != 0 && (kind <= PEER_ERROR || kind == USER_DEFINED)
}

/// Whether it is a data packet that was sent before.
pub(super) fn is_retransmission(bytes: &[u8]) -> bool {
    read(bytes).is_some() && bytes.get(4).is_some_and(|word| u32::from(*word) << 24 & RETRANSMITTED != 0)
}
