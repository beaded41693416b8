//! Headers that older drivers put before an 802.11 frame: Prism's and its successor of the AVS
//! project.

use std::num::NonZeroU32;

use super::link_header::{need, stop};
use super::radiotap::Preamble;
use super::{Bytes, u32_at};
use crate::packet::event::{Reason, Stop};
use crate::packet::frame::Radio;

/// Versions of the AVS header; the last digit is the revision.
const AVS: u32 = 0x8021_1000;
/// `ssi_type` of an AVS header whose levels are in dBm.
const IN_DBM: u32 = 2;

/// Read either header: they share a link type of libpcap.
pub fn decode(bytes: Bytes<'_>) -> Result<Preamble, Stop> {
    let start = need(bytes, 8)?;
    if u32_at(start, 0) & 0xffff_fff0 == AVS { avs(bytes) } else { prism(bytes) }
}

/// A Prism header has its length in the byte order of the machine that wrote it: the smaller of
/// both readings is used. Its levels have no unit, so they are not read.
fn prism(bytes: Bytes<'_>) -> Result<Preamble, Stop> {
    let length = u32_at(need(bytes, 8)?, 4);
    let header = length.min(length.swap_bytes()) as usize;
    if header < 24 {
        return Err(stop(Reason::Malformed));
    }
    need(bytes, header)?;
    Ok(Preamble { header, ..Preamble::default() })
}

fn avs(bytes: Bytes<'_>) -> Result<Preamble, Stop> {
    let length = u32_at(need(bytes, 8)?, 4) as usize;
    if length < 64 {
        return Err(stop(Reason::Malformed));
    }
    let header = need(bytes, length)?;
    let level = |at| i8::try_from(u32_at(header, at) as i32).ok();
    let has_levels = u32_at(header, 44) == IN_DBM;
    let radio = Radio {
        // In units of 100 kbit/s.
        rate_kbps: u32_at(header, 32).checked_mul(100).and_then(NonZeroU32::new),
        signal_dbm: level(48).filter(|_| has_levels),
        noise_dbm: level(52).filter(|_| has_levels),
        ..Radio::default()
    };
    Ok(Preamble { header: length, radio, ..Preamble::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::Layer;

    fn bytes(captured: &[u8]) -> Bytes<'_> {
        Bytes { captured, on_wire: captured.len() as u32 }
    }

    #[test]
    fn test_a_prism_header_is_skipped_in_either_byte_order() {
        let mut header = [0; 150];
        header[4] = 144;
        assert_eq!(decode(bytes(&header)).unwrap().header, 144);
        header[4..8].copy_from_slice(&[0, 0, 0, 144]);
        assert_eq!(decode(bytes(&header)).unwrap().header, 144);
    }

    #[test]
    fn test_levels_and_rate_of_an_avs_header() {
        let mut header = [0_u8; 64];
        for (at, value) in
            [(0, 0x8021_1001), (4, 64), (32, 540), (44, 2), (48, -50_i32 as u32), (52, -90_i32 as u32)]
        {
            header[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
        }
        let found = decode(bytes(&header)).unwrap();
        assert_eq!(found.radio.rate_kbps.map(NonZeroU32::get), Some(54_000));
        assert_eq!((found.radio.signal_dbm, found.radio.noise_dbm), (Some(-50), Some(-90)));
    }

    #[test]
    fn test_impossible_lengths_stop() {
        let malformed = Some(Stop { layer: Layer::Link, reason: Reason::Malformed });
        assert_eq!(decode(bytes(&[0; 200])).err(), malformed);
        assert_eq!(decode(bytes(&[0xff; 200])).err(), malformed);
        assert_eq!(decode(bytes(&[0; 3])).err(), malformed);
    }
}
