//! Probes of IRTT: magic, flags, an optional HMAC, the token of the connection, and a number in little-endian,
//! which the server repeats in its reply.

use super::{ProbeEcho, SenderClock, Stamp};

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
const OPEN: u8 = 1;
const REPLY: u8 = 2;
const CLOSE: u8 = 4;
const HMAC: u8 = 8;
const HMAC_BYTES: usize = 16;
const TOKEN_BYTES: usize = 8;

pub(super) fn read(bytes: &[u8]) -> Option<Stamp> {
    let number = echo(bytes)?.number.into();
    Some(Stamp { number, sent_ns: 0, clock: SenderClock::Unstated })
}

/// Whether it opens or closes a connection.
pub(super) fn is_control(bytes: &[u8]) -> bool {
    flags(bytes).is_some_and(|flags| flags & (OPEN | CLOSE) != 0)
}

pub(super) fn echo(bytes: &[u8]) -> Option<ProbeEcho> {
    let flags = flags(bytes).filter(|flags| flags & (OPEN | CLOSE) == 0)?;
    let at = if flags & HMAC != 0 { 12 + HMAC_BYTES } else { 12 };
    let number = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    let token = bytes.get(at - TOKEN_BYTES..)?.first_chunk()?;
    let repeated = Some(u64::from_le_bytes(*token));
    Some(ProbeEcho { is_reply: flags & REPLY != 0, number, repeated })
}

fn flags(bytes: &[u8]) -> Option<u8> {
    bytes.strip_prefix(&MAGIC)?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginnings of packets of irtt 0.9.1.
    const OPENING: [u8; 16] = [0x14, 0xa7, 0x5b, 1, 1, 2, 2, 0x80, 0xa0, 0xbe, 0x81, 0x95, 1, 3, 0x80, 0xb4];
    const PROBE: [u8; 16] = [0x14, 0xa7, 0x5b, 0, 0x2d, 0x85, 0xf0, 0x82, 0x22, 0x4a, 0xbe, 0xad, 4, 1, 0, 0];

    #[test]
    fn test_probes_and_replies_have_numbers() {
        let mut reply = PROBE;
        reply[3] = REPLY;
        let repeated = Some(0xadbe_4a22_82f0_852d);
        assert_eq!(echo(&PROBE), Some(ProbeEcho { is_reply: false, number: 260, repeated }));
        assert_eq!(echo(&reply), Some(ProbeEcho { is_reply: true, number: 260, repeated }));
        assert_eq!((echo(&OPENING), echo(&PROBE[..15]), read(&[])), (None, None, None));
        assert!(is_control(&OPENING) && !is_control(&PROBE));
    }
}
