//! Radiotap headers (<https://www.radiotap.org>): the radio's data about an 802.11 frame.
//!
//! A header is a list of words whose bits are the fields that follow, each aligned to its own size
//! from the header's start. A field of unknown length ends reading, because the position of the
//! next is unknown.

use std::num::{NonZeroU16, NonZeroU32};

use super::Bytes;
use super::link_header::{need, stop};
use super::wifi_rates::{Modulation, Width, ht_kbps};
use crate::packet::event::{Reason, Stop};
use crate::packet::frame::Radio;

/// The header before a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preamble {
    pub header: usize,
    pub radio: Radio,
    /// Whether the frame ends with its check sequence.
    pub has_check_sequence: bool,
    /// Whether it was received damaged.
    pub is_damaged: bool,
    /// Whether the frame's body begins at a multiple of four bytes.
    pub is_padded: bool,
}

/// Alignment and size of each field, by its bit.
const FIELDS: [(usize, usize); 28] = [
    (8, 8),  // 0: time
    (1, 1),  // 1: flags
    (1, 1),  // 2: rate
    (2, 4),  // 3: channel
    (1, 2),  // 4: frequency hopping
    (1, 1),  // 5: signal, dBm
    (1, 1),  // 6: noise, dBm
    (2, 2),  // 7: lock quality
    (2, 2),  // 8: attenuation
    (2, 2),  // 9: attenuation, dB
    (1, 1),  // 10: power, dBm
    (1, 1),  // 11: antenna
    (1, 1),  // 12: signal, dB
    (1, 1),  // 13: noise, dB
    (2, 2),  // 14: flags of receiving
    (2, 2),  // 15: flags of sending
    (1, 1),  // 16: retries of the reservation
    (1, 1),  // 17: retries of the data
    (4, 8),  // 18: extended channel
    (1, 3),  // 19: HT
    (4, 8),  // 20: A-MPDU
    (2, 12), // 21: VHT
    (8, 12), // 22: another time
    (2, 12), // 23: HE
    (2, 12), // 24: HE of several users
    (2, 6),  // 25: HE of another user
    (1, 1),  // 26: no data
    (2, 4),  // 27: legacy signal field
];
const RADIOTAP_NEXT: u32 = 29;
const VENDOR_NEXT: u32 = 30;
const MORE: u32 = 1 << 31;

/// The frame ends with its check sequence.
const FCS_AT_END: u8 = 0x10;
/// The body begins at a multiple of four bytes.
const PADDED: u8 = 0x20;
/// The check sequence is wrong.
const BAD_FCS: u8 = 0x40;
/// In the flags of receiving: the check sequence of the physical header is wrong.
const BAD_PLCP: u16 = 0x0002;

/// Read a radiotap header.
pub fn decode(bytes: Bytes<'_>) -> Result<Preamble, Stop> {
    let start = need(bytes, 8)?;
    let length = usize::from(u16::from_le_bytes([start[2], start[3]]));
    if start[0] != 0 || length < 8 {
        return Err(stop(Reason::Malformed));
    }
    let header = need(bytes, length)?;
    let mut preamble = Preamble { header: length, ..Preamble::default() };
    let words = || Words { header, at: 4 };
    let mut fields = Fields { header, at: 4 + 4 * words().count() };
    let mut namespace = Namespace::Radiotap;
    for word in words() {
        // The positions of further fields are unknown.
        let Some(next) = read_word(word, namespace, &mut fields, &mut preamble) else { break };
        namespace = next;
    }
    Ok(preamble)
}

/// The namespace of a word's bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Radiotap,
    Vendor,
    /// Radiotap's bits from 32 on, which are not defined yet.
    Beyond,
}

/// Read the fields of one word; return the namespace of the next word.
fn read_word(
    word: u32,
    namespace: Namespace,
    fields: &mut Fields<'_>,
    preamble: &mut Preamble,
) -> Option<Namespace> {
    let mut own_bits = word & !(MORE | 1 << RADIOTAP_NEXT | 1 << VENDOR_NEXT);
    match namespace {
        // The vendor's fields are skipped as a whole.
        Namespace::Vendor => own_bits = 0,
        Namespace::Beyond if own_bits != 0 => return None,
        _ => {}
    }
    while own_bits != 0 {
        let bit = own_bits.trailing_zeros();
        own_bits &= own_bits - 1;
        let &(alignment, size) = FIELDS.get(bit as usize)?;
        take_field(bit, fields.take(alignment, size)?, preamble);
    }
    if word & 1 << VENDOR_NEXT != 0 {
        // Organisation, its sub-namespace, and the length of its fields.
        let vendor = fields.take(2, 6)?;
        let skipped = usize::from(u16_le(vendor, 4)?);
        fields.take(1, skipped)?;
        return Some(Namespace::Vendor);
    }
    if word & 1 << RADIOTAP_NEXT != 0 {
        return Some(Namespace::Radiotap);
    }
    Some(if namespace == Namespace::Radiotap { Namespace::Beyond } else { namespace })
}

/// The words that list the fields.
struct Words<'a> {
    header: &'a [u8],
    at: usize,
}

impl Iterator for Words<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let word = u32::from_le_bytes(*self.header.get(self.at..)?.first_chunk::<4>()?);
        self.at = if word & MORE == 0 { self.header.len() } else { self.at + 4 };
        Some(word)
    }
}

struct Fields<'a> {
    header: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn take(&mut self, alignment: usize, size: usize) -> Option<&'a [u8]> {
        let start = self.at.next_multiple_of(alignment);
        self.at = start + size;
        self.header.get(start..self.at)
    }
}

/// Keep the fields that are used. The first of several counts: later ones are of single antennas.
fn take_field(bit: u32, field: &[u8], preamble: &mut Preamble) {
    let radio = &mut preamble.radio;
    match (bit, field) {
        (1, [flags]) => {
            preamble.has_check_sequence = flags & FCS_AT_END != 0;
            preamble.is_padded = flags & PADDED != 0;
            preamble.is_damaged |= flags & BAD_FCS != 0;
        }
        // In units of 500 kbit/s.
        (2, [rate]) => set(&mut radio.rate_kbps, NonZeroU32::new(u32::from(*rate) * 500)),
        (3, field) => set(&mut radio.channel_mhz, u16_le(field, 0).and_then(NonZeroU16::new)),
        (5, [signal]) => set(&mut radio.signal_dbm, Some(*signal as i8)),
        (6, [noise]) => set(&mut radio.noise_dbm, Some(*noise as i8)),
        (11, [antenna]) => set(&mut radio.antenna, Some(*antenna)),
        (14, field) => preamble.is_damaged |= u16_le(field, 0).is_some_and(|flags| flags & BAD_PLCP != 0),
        (18, field) => set(&mut radio.channel_mhz, u16_le(field, 4).and_then(NonZeroU16::new)),
        (19, [known, flags, number]) => set(&mut radio.rate_kbps, ht(*known, *flags, *number)),
        (21, field) => set(&mut radio.rate_kbps, vht(field)),
        (23, field) => set(&mut radio.rate_kbps, he(field)),
        _ => {}
    }
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

/// The rate of an HT transmission, if its width, scheme and guard interval are all known.
fn ht(known: u8, flags: u8, number: u8) -> Option<NonZeroU32> {
    let width = if flags & 3 == 1 { Width::Mhz40 } else { Width::Mhz20 };
    let symbol_ns = if flags & 4 != 0 { 3600 } else { 4000 };
    (known & 7 == 7).then(|| ht_kbps(number, width, symbol_ns))?
}

/// The rate of a VHT transmission to its first user.
fn vht(field: &[u8]) -> Option<NonZeroU32> {
    const GUARD_INTERVAL_KNOWN: u16 = 0x0004;
    const WIDTH_KNOWN: u16 = 0x0040;
    const ALL: u16 = GUARD_INTERVAL_KNOWN | WIDTH_KNOWN;
    if u16_le(field, 0)? & ALL != ALL {
        return None;
    }
    let symbol_ns = if field.get(2)? & 4 != 0 { 3600 } else { 4000 };
    // The numbers include the part of the channel.
    let width = match field.get(3)? {
        0 | 2 | 3 | 7..=10 | 18..=25 => Width::Mhz20,
        1 | 5 | 6 | 14..=17 => Width::Mhz40,
        4 | 12 | 13 => Width::Mhz80,
        11 => Width::Mhz160,
        _ => return None,
    };
    let user = *field.get(4)?;
    let scheme = user >> 4;
    Modulation { scheme, streams: user & 0x0f, width, symbol_ns }.vht_kbps()
}

/// The rate of an HE transmission.
fn he(field: &[u8]) -> Option<NonZeroU32> {
    const SCHEME_KNOWN: u16 = 0x0020;
    const WIDTH_KNOWN: u16 = 0x4000;
    const GUARD_INTERVAL_KNOWN: u16 = 0x0002;
    const DUAL_CARRIER_KNOWN: u16 = 0x0040;
    const DUAL_CARRIER: u16 = 0x1000;
    const ALL: u16 = SCHEME_KNOWN | WIDTH_KNOWN;
    let known = u16_le(field, 0)?;
    if known & ALL != ALL || u16_le(field, 2)? & GUARD_INTERVAL_KNOWN == 0 {
        return None;
    }
    let coding = u16_le(field, 4)?;
    let shape = u16_le(field, 8)?;
    let width = match shape & 0x0f {
        0 | 7 => Width::Mhz20,
        1 | 8 => Width::Mhz40,
        2 | 9 => Width::Mhz80,
        3 | 10 => Width::Mhz160,
        4 => Width::Tones26,
        5 => Width::Tones52,
        6 => Width::Tones106,
        _ => return None,
    };
    let symbol_ns = 12_800
        + match shape >> 4 & 3 {
            0 => 800,
            1 => 1600,
            2 => 3200,
            _ => return None,
        };
    let scheme = (coding >> 8 & 0x0f) as u8;
    let streams = (u16_le(field, 10)? & 0x0f) as u8;
    let rate = Modulation { scheme, streams, width, symbol_ns }.he_kbps()?;
    // Each bit is transmitted twice.
    let is_doubled = known & DUAL_CARRIER_KNOWN != 0 && coding & DUAL_CARRIER != 0;
    if is_doubled { NonZeroU32::new(rate.get() / 2) } else { Some(rate) }
}

fn u16_le(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|two| u16::from_le_bytes(*two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::frame::Radio;
    use proptest::prelude::*;

    fn read(header: &[u8]) -> Result<Preamble, Stop> {
        decode(Bytes { captured: header, on_wire: header.len() as u32 })
    }

    fn header(words: &[u32], fields: &[u8]) -> Vec<u8> {
        let length = 4 + 4 * words.len() + fields.len();
        let mut header = vec![0, 0, length as u8, 0];
        header.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        header.extend_from_slice(fields);
        header
    }

    fn kbps(preamble: &Preamble) -> u32 {
        preamble.radio.rate_kbps.map_or(0, NonZeroU32::get)
    }

    #[test]
    fn test_fields_are_aligned_from_the_start_of_the_header() {
        // Flags, rate, channel, signal, noise, antenna: the channel begins at an even byte.
        let found = read(&header(&[0x086e], &[0x10, 108, 0x6c, 0x09, 0xa0, 0, 0xba, 0xa2, 1])).unwrap();
        assert_eq!(found.radio.channel_mhz.map(NonZeroU16::get), Some(2412));
        assert_eq!(kbps(&found), 54_000);
        assert_eq!((found.radio.signal_dbm, found.radio.noise_dbm), (Some(-70), Some(-94)));
        assert_eq!(found.radio.antenna, Some(1));
        assert!(found.has_check_sequence && !found.is_damaged);
    }

    #[test]
    fn test_words_of_single_antennas_do_not_replace_the_first() {
        let again = MORE | 1 << RADIOTAP_NEXT;
        let found = read(&header(&[1 << 5 | again, 1 << 5 | 1 << 11], &[0xc4, 0xb0, 3])).unwrap();
        assert_eq!((found.radio.signal_dbm, found.radio.antenna), (Some(-60), Some(3)));
    }

    #[test]
    fn test_a_vendors_fields_are_skipped() {
        let words = [1 << 2 | 1 << VENDOR_NEXT | MORE, 0xff | 1 << RADIOTAP_NEXT | MORE, 1 << 5];
        // Rate; padding, organisation, its namespace, three bytes; signal.
        let found = read(&header(&words, &[2, 0, 0, 0x11, 0x22, 1, 3, 0, 9, 9, 9, 0xd8])).unwrap();
        assert_eq!((kbps(&found), found.radio.signal_dbm), (1_000, Some(-40)));
    }

    #[test]
    fn test_rates_from_modulation_and_coding() {
        let ht = read(&header(&[1 << 19], &[7, 5, 15])).unwrap();
        assert_eq!(kbps(&ht), 300_000);
        let unknown = read(&header(&[1 << 19], &[3, 5, 15])).unwrap();
        assert_eq!(kbps(&unknown), 0);
        let vht = read(&header(&[1 << 21], &[0x44, 0, 4, 4, 0x92, 0, 0, 0, 0, 0, 0, 0])).unwrap();
        assert_eq!(kbps(&vht), 866_666);
        let he = read(&header(&[1 << 23], &[0x20, 0x40, 2, 0, 0, 11, 0, 0, 2, 0, 1, 0])).unwrap();
        assert_eq!(kbps(&he), 600_490);
    }

    #[test]
    fn test_a_damaged_frame_is_reported() {
        assert!(read(&header(&[1 << 1], &[0x50])).unwrap().is_damaged);
        assert!(read(&header(&[1 << 14], &[2, 0])).unwrap().is_damaged);
    }

    #[test]
    fn test_impossible_lengths() {
        assert!(read(&[0, 0, 4, 0, 0, 0, 0, 0]).is_err());
        assert!(read(&[0, 0, 9, 0, 0, 0, 0, 0]).is_err());
        assert!(read(&[1, 0, 8, 0, 0, 0, 0, 0]).is_err());
        // Words or fields that do not fit are not read; the header's own length stands.
        assert_eq!(read(&header(&[MORE], &[])).unwrap().header, 8);
        assert_eq!(read(&header(&[1 << 5], &[])).unwrap().radio, Radio::default());
    }

    proptest! {
        #[test]
        fn test_no_header_panics(
            words in proptest::collection::vec(any::<u32>(), 0..6),
            fields in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let header = header(&words, &fields);
            if header.len() >= 8 {
                prop_assert_eq!(read(&header).unwrap().header, header.len());
            }
        }
    }
}
