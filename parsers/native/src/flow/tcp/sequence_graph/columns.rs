//! The bytes of a tile: columns of variable-length integers (LEB128, as in DWARF 5 section 7.6) one after the
//! other, compressed (RFC 1951). `reports/figures/sequence_tiles.py` and `reports/page/sequence.js` read them.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::packet::key::Side;

const NS_PER_US: i64 = 1_000;

/// A piece of one level of a graph.
#[derive(Debug)]
pub struct Tile {
    /// The side whose data are drawn.
    pub side: Side,
    /// 0 has the points themselves, each further level sums up those of the level below.
    pub level: u32,
    /// Points or summaries in it.
    pub count: u32,
    pub start_ns: i64,
    pub end_ns: i64,
    pub deflated: Vec<u8>,
}

/// Columns of a tile that begins at a time.
pub(super) struct Columns {
    bytes: Vec<u8>,
    start_ns: i64,
    ns_per_tick: i64,
}

impl Columns {
    /// Empty; times are whole microseconds if all `times_ns` are.
    pub fn new(start_ns: i64, mut times_ns: impl Iterator<Item = i64>) -> Self {
        let is_in_us = times_ns.all(|time_ns| time_ns % NS_PER_US == 0);
        let ns_per_tick = if is_in_us { NS_PER_US } else { 1 };
        Self { bytes: vec![u8::from(is_in_us)], start_ns, ns_per_tick }
    }

    /// Add bytes as they are.
    pub fn raw(&mut self, values: impl Iterator<Item = u8>) {
        self.bytes.extend(values);
    }

    /// Add numbers.
    pub fn numbers(&mut self, values: impl Iterator<Item = u64>) {
        values.for_each(|value| self.number(value));
    }

    /// Add durations in ns.
    pub fn durations(&mut self, values_ns: impl Iterator<Item = i64>) {
        let ns_per_tick = self.ns_per_tick;
        self.numbers(values_ns.map(|value_ns| (value_ns / ns_per_tick).unsigned_abs()));
    }

    /// Add numbers of both signs; those close to 0 are short.
    pub fn signed(&mut self, values: impl Iterator<Item = i64>) {
        self.numbers(values.map(|value| ((value << 1) ^ (value >> 63)) as u64));
    }

    /// Add the distances from one value to the next, the first from 0.
    pub fn steps(&mut self, values: impl Iterator<Item = i64>) {
        let mut before = 0;
        self.signed(values.map(|value| value.wrapping_sub(std::mem::replace(&mut before, value))));
    }

    /// Add times in ns, as distances, the first from the start of the tile.
    pub fn times(&mut self, values_ns: impl Iterator<Item = i64>) {
        self.times_from(self.start_ns, values_ns);
    }

    /// Add times in ns, as distances, the first from `start_ns`.
    pub fn times_from(&mut self, start_ns: i64, values_ns: impl Iterator<Item = i64>) {
        let ns_per_tick = self.ns_per_tick;
        self.steps(values_ns.map(|value_ns| value_ns.saturating_sub(start_ns) / ns_per_tick));
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// All columns, compressed.
    pub fn deflated(&self) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // Memory takes all that is written.
        encoder.write_all(&self.bytes).and_then(|()| encoder.finish()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_numbers_are_those_of_the_examples_of_dwarf() {
        let mut columns = Columns::new(0, [1].into_iter());
        // Figure 22 of DWARF 5.
        columns.numbers([2, 127, 128, 129, 12_857].into_iter());
        assert_eq!(columns.bytes, [0, 2, 127, 0x80, 1, 0x81, 1, 0xb9, 0x64]);
    }

    #[test]
    fn test_times_are_in_microseconds_only_if_all_are() {
        for (times_ns, bytes) in [([5_000, 7_000], [1, 0, 4]), ([5_000, 5_001], [0, 0, 2])] {
            let mut columns = Columns::new(5_000, times_ns.into_iter());
            columns.times(times_ns.into_iter());
            assert_eq!(columns.bytes, bytes);
        }
    }

    #[test]
    fn test_times_five_centuries_apart_stay_in_order() {
        let times_ns = [i64::MIN, i64::MAX];
        let mut columns = Columns::new(i64::MIN, times_ns.into_iter());
        columns.times(times_ns.into_iter());
        // 2^63 - 1 ns, the longest there is.
        assert_eq!(columns.bytes[..3], [0, 0, 0xfe]);
    }
}
