//! Rates of 802.11 transmissions from their modulation and coding (IEEE 802.11-2020 sections 19.5
//! and 21.5, IEEE 802.11ax-2021 section 27.5).

use std::num::NonZeroU32;

/// Data bits of one subcarrier in one symbol, in sixtieths, by modulation and coding scheme: BPSK
/// 1/2 to 64-QAM 5/6 (HT), 256-QAM 5/6 (VHT), 1024-QAM 5/6 (HE).
const SIXTIETHS_OF_BITS: [u32; 12] = [30, 60, 90, 120, 180, 240, 270, 300, 360, 400, 450, 500];

/// Channel width, or a resource unit of a multi-user transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A resource unit of 26 subcarriers.
    Tones26,
    /// A resource unit of 52 subcarriers.
    Tones52,
    /// A resource unit of 106 subcarriers.
    Tones106,
    Mhz20,
    Mhz40,
    Mhz80,
    /// 160 MHz, or twice 80 MHz.
    Mhz160,
}

/// The parameters of a rate.
#[derive(Clone, Copy, Debug)]
pub struct Modulation {
    /// Modulation and coding scheme (MCS), from 0.
    pub scheme: u8,
    pub streams: u8,
    pub width: Width,
    /// Duration of a symbol with its guard interval.
    pub symbol_ns: u32,
}

impl Modulation {
    /// HT or VHT: symbols of 3.2 µs and a guard interval of 0.8 or 0.4 µs.
    pub fn vht_kbps(self) -> Option<NonZeroU32> {
        let subcarriers = match self.width {
            Width::Mhz20 => 52,
            Width::Mhz40 => 108,
            Width::Mhz80 => 234,
            Width::Mhz160 => 468,
            _ => return None,
        };
        self.kbps(subcarriers)
    }

    /// HE: symbols of 12.8 µs and a guard interval of 0.8 to 3.2 µs.
    pub fn he_kbps(self) -> Option<NonZeroU32> {
        let subcarriers = match self.width {
            Width::Tones26 => 24,
            Width::Tones52 => 48,
            Width::Tones106 => 102,
            Width::Mhz20 => 234,
            Width::Mhz40 => 468,
            Width::Mhz80 => 980,
            Width::Mhz160 => 1960,
        };
        self.kbps(subcarriers)
    }

    fn kbps(self, subcarriers: u32) -> Option<NonZeroU32> {
        let bits = *SIXTIETHS_OF_BITS.get(usize::from(self.scheme))?;
        let bits = u64::from(bits) * u64::from(subcarriers) * u64::from(self.streams);
        let rate = (bits * 1_000_000).checked_div(60 * u64::from(self.symbol_ns))?;
        NonZeroU32::new(u32::try_from(rate).ok()?)
    }
}

/// HT's scheme numbers include the streams: 8 to 15 are 0 to 7 with two streams.
pub fn ht_kbps(number: u8, width: Width, symbol_ns: u32) -> Option<NonZeroU32> {
    // From 32 on: one single rate, and schemes that differ between streams.
    if number >= 32 {
        return None;
    }
    Modulation { scheme: number % 8, streams: number / 8 + 1, width, symbol_ns }.vht_kbps()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(rate: Option<NonZeroU32>) -> u32 {
        rate.map_or(0, NonZeroU32::get)
    }

    #[test]
    fn test_rates_are_those_of_the_standards_tables() {
        assert_eq!(kbps(ht_kbps(7, Width::Mhz20, 4000)), 65_000);
        assert_eq!(kbps(ht_kbps(7, Width::Mhz20, 3600)), 72_222);
        assert_eq!(kbps(ht_kbps(15, Width::Mhz40, 3600)), 300_000);
        let vht = Modulation { scheme: 9, streams: 1, width: Width::Mhz80, symbol_ns: 3600 };
        assert_eq!(kbps(vht.vht_kbps()), 433_333);
        let he = Modulation { scheme: 11, streams: 2, width: Width::Mhz80, symbol_ns: 13_600 };
        assert_eq!(kbps(he.he_kbps()), 1_200_980);
        let unit = Modulation { scheme: 0, streams: 1, width: Width::Tones26, symbol_ns: 13_600 };
        assert_eq!(kbps(unit.he_kbps()), 882);
    }

    #[test]
    fn test_schemes_out_of_range_have_no_rate() {
        assert_eq!(ht_kbps(32, Width::Mhz20, 4000), None);
        let scheme = Modulation { scheme: 12, streams: 1, width: Width::Mhz20, symbol_ns: 4000 };
        assert_eq!(scheme.vht_kbps(), None);
        let none = Modulation { scheme: 0, streams: 0, width: Width::Mhz20, symbol_ns: 0 };
        assert_eq!(none.vht_kbps(), None);
    }
}
