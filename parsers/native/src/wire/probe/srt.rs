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

/// Whether it is a control packet: a type of 15 bits, and a subtype, which is 0 for all types but that of users
/// (section 3.2, table 1). RTP with the first payload types has its sequence number there.
pub(super) fn is_control(bytes: &[u8]) -> bool {
    let Some(fields) = bytes.first_chunk::<16>() else { return false };
    let first = u32_at(fields, 0);
    let (kind, subtype) = ((first >> 16) & 0x7fff, first & 0xffff);
    first & CONTROL != 0 && (kind == USER_DEFINED || kind <= PEER_ERROR && subtype == 0)
}

/// Whether it is a data packet that was sent before.
pub(super) fn is_retransmission(bytes: &[u8]) -> bool {
    read(bytes).is_some() && bytes.get(4).is_some_and(|word| u32::from(*word) << 24 & RETRANSMITTED != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: [u32; 4]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn test_the_type_tells_control_packets_and_users_have_subtypes() {
        // first words of handshake, keep-alive, ACK, NAK, shutdown and ACKACK of srt-live-transmit 1.5.1, as tshark
        // names them, and of a key exchange (section 3.2.2)
        for first in
            [0x8000_0000, 0x8001_0000, 0x8002_0000, 0x8003_0000, 0x8005_0000, 0x8006_0000, 0xffff_0003]
        {
            assert!(is_control(&header([first, 1, 2, 3])), "{first:x}");
        }
        assert!(!is_control(&header([0x8009_0000, 1, 2, 3])));
        assert!(!is_control(&header([0x0002_0000, 0xe000_0001, 2, 3])));
    }

    #[test]
    fn test_rtp_of_the_first_payload_types_is_no_control() {
        // RFC 3551 section 6: PCMU is 0 and PCMA 8
        for first in [0x8000_1234, 0x8008_0001] {
            assert!(!is_control(&header([first, 160, 0xfeed, 3])));
        }
    }
}
