//! Unauthenticated test packets of OWAMP (RFC 4656 section 4.1.2), TWAMP (RFC 5357 section 4.2.1) and STAMP
//! (RFC 8762 section 4.2), which begin alike: number, timestamp, error estimate.

use super::{ProbeEcho, SenderClock, Stamp};
use crate::wire::{u16_at, u32_at};

/// Number, timestamp and error estimate.
const FIRST_FIELDS: usize = 14;
/// What a reflector sends up to the number that it answers, behind which is the time of the probe.
const REFLECTED: usize = 28;
/// From 1900, where NTP's seconds begin, to 1970 (RFC 5905 section 6).
const NTP_EPOCH_S: i64 = 2_208_988_800;
const NS: i64 = 1_000_000_000;
/// Longest time from the arrival at a reflector to its answer.
const LONGEST_TURN_S: u32 = 60;
/// Of the error estimate: whether the clock is synchronised to UTC, and whether times are of PTP.
const SYNCHRONISED: u16 = 0x8000;
const PTP: u16 = 0x4000;

pub(super) fn read(bytes: &[u8]) -> Option<Stamp> {
    let fields = bytes.first_chunk::<FIRST_FIELDS>()?;
    let estimate = u16_at(fields, 12);
    let sent_ns = time_ns(u32_at(fields, 4), u32_at(fields, 8), estimate & PTP != 0)?;
    Some(Stamp { number: u32_at(fields, 0).into(), sent_ns, clock: clock(estimate)? })
}

/// Which probe a packet is, or answers: one that was reflected has the time at which it arrived there, and the
/// number and the time of the sender.
pub(super) fn echo(bytes: &[u8]) -> Option<ProbeEcho> {
    let fields = bytes.first_chunk::<FIRST_FIELDS>()?;
    let (number, seconds) = (u32_at(fields, 0), u32_at(fields, 4));
    let reflected = bytes.first_chunk::<REFLECTED>();
    let reflected = reflected.filter(|fields| seconds.wrapping_sub(u32_at(*fields, 16)) <= LONGEST_TURN_S);
    Some(match reflected {
        None => ProbeEcho { is_reply: false, number, repeated: Some(seconds.into()) },
        Some(fields) => {
            let sent = bytes.get(REFLECTED..).and_then(|rest| rest.first_chunk::<4>());
            let repeated = sent.map(|sent| u32::from_be_bytes(*sent).into());
            ProbeEcho { is_reply: true, number: u32_at(fields, 24), repeated }
        }
    })
}

/// What an error estimate says; None if it has a multiplier of 0, with which a packet is corrupt.
fn clock(estimate: u16) -> Option<SenderClock> {
    let (scale, multiplier) = (estimate >> 8 & 0x3f, u128::from(estimate & 0xff));
    let error_ns = ((multiplier << scale) * NS as u128) >> 32;
    (multiplier > 0).then_some(match estimate & SYNCHRONISED {
        0 => SenderClock::Free,
        _ => SenderClock::Within { error_ns: u64::try_from(error_ns).unwrap_or(u64::MAX) },
    })
}

/// A timestamp of NTP or of PTP, which counts from 1970 in seconds and nanoseconds (RFC 8186).
fn time_ns(seconds: u32, fraction: u32, is_ptp: bool) -> Option<i64> {
    let (seconds, fraction) = (i64::from(seconds), i64::from(fraction));
    if is_ptp {
        return (fraction < NS).then_some(seconds * NS + fraction);
    }
    // times before 1968 are of the era that begins in 2036 (RFC 4330 section 3)
    let era_s = if seconds < 1 << 31 { 1 << 32 } else { 0 };
    Some((seconds + era_s - NTP_EPOCH_S) * NS + ((fraction * NS) >> 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe of twampy 1.3.2 and what its responder answered, both as tshark shows them.
    const PROBE: [u8; 14] = [0, 0, 1, 0x29, 0xee, 0xb3, 0x20, 0x92, 0xea, 0xaa, 0x9f, 0xff, 0x3f, 0xff];
    const ANSWER: [u8; 32] = [
        0, 0, 1, 0x1c, 0xee, 0xb3, 0x20, 0x92, 0xea, 0xb5, 0xaf, 0xff, 0, 1, 0, 0, 0xee, 0xb3, 0x20, 0x92,
        0xea, 0xb5, 0xaf, 0xff, 0, 0, 1, 0x29, 0xee, 0xb3, 0x20, 0x92,
    ];

    #[test]
    fn test_a_probe_and_its_answer() {
        let sent = read(&PROBE).unwrap();
        assert_eq!((sent.number, sent.sent_ns / 1_000), (297, 1_795_727_890_916_666));
        assert_eq!(sent.clock, SenderClock::Free);
        let repeated = Some(0xeeb3_2092);
        assert_eq!(echo(&PROBE), Some(ProbeEcho { is_reply: false, number: 297, repeated }));
        assert_eq!(read(&ANSWER).unwrap().number, 284);
        assert_eq!(echo(&ANSWER), Some(ProbeEcho { is_reply: true, number: 297, repeated }));
        assert_eq!(echo(&ANSWER[..28]), Some(ProbeEcho { is_reply: true, number: 297, repeated: None }));
    }

    #[test]
    fn test_an_error_estimate_is_multiplier_and_scale() {
        // RFC 4656 section 4.1.2: Multiplier * 2^-32 * 2^Scale seconds.
        assert_eq!(clock(0x8000 | 22 << 8 | 2), Some(SenderClock::Within { error_ns: 1_953_125 }));
        assert_eq!(clock(0xbfff), Some(SenderClock::Within { error_ns: u64::MAX }));
        assert_eq!((clock(0x0001), clock(0x8000)), (Some(SenderClock::Free), None));
    }

    #[test]
    fn test_times_of_ntp_and_ptp() {
        // RFC 5905, figure 4: the first day of UNIX, and the first of NTP's era 1.
        assert_eq!(time_ns(2_208_988_800, 0, false), Some(0));
        assert_eq!(time_ns(0, 1 << 31, false), Some(2_085_978_496 * NS + NS / 2));
        assert_eq!(time_ns(7, 5, true), Some(7 * NS + 5));
        assert_eq!(time_ns(7, 1_000_000_000, true), None);
    }
}
