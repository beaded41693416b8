//! The bins of one direction, a third of [`Bin`] each: most have small numbers, no one-way delay and no marks.

use super::Bin;

/// A bin whose numbers are small.
#[derive(Clone, Copy, Debug)]
struct NarrowBin {
    rtt_sum_ns: u64,
    index: u32,
    wire_bytes: u32,
    payload_bytes: u32,
    unique_bytes: u32,
    rtt_min_ns: u32,
    rtt_max_ns: u32,
    packets: u16,
    retransmitted_packets: u16,
    rtt_samples: u16,
}

impl NarrowBin {
    /// The same bin; None if a number is too large, or if it has delays or marks.
    #[inline(always)]
    fn of(bin: &Bin) -> Option<Self> {
        let words = bin.index as u64
            | bin.wire_bytes
            | bin.payload_bytes
            | bin.unique_bytes
            | bin.rtt_min_ns
            | bin.rtt_max_ns;
        let short = bin.packets | bin.retransmitted_packets | bin.rtt_samples;
        let others = bin.delay_samples | bin.lost_packets | bin.ect1_packets | bin.ce_packets;
        if words >> u32::BITS | short >> u16::BITS | others != 0 {
            return None;
        }
        Some(Self {
            rtt_sum_ns: bin.rtt_sum_ns,
            index: bin.index as u32,
            wire_bytes: bin.wire_bytes as u32,
            payload_bytes: bin.payload_bytes as u32,
            unique_bytes: bin.unique_bytes as u32,
            rtt_min_ns: bin.rtt_min_ns as u32,
            rtt_max_ns: bin.rtt_max_ns as u32,
            packets: bin.packets as u16,
            retransmitted_packets: bin.retransmitted_packets as u16,
            rtt_samples: bin.rtt_samples as u16,
        })
    }

    #[inline(always)]
    fn bin(&self) -> Bin {
        Bin {
            index: self.index.into(),
            packets: self.packets.into(),
            wire_bytes: self.wire_bytes.into(),
            payload_bytes: self.payload_bytes.into(),
            unique_bytes: self.unique_bytes.into(),
            retransmitted_packets: self.retransmitted_packets.into(),
            rtt_samples: self.rtt_samples.into(),
            rtt_min_ns: self.rtt_min_ns.into(),
            rtt_max_ns: self.rtt_max_ns.into(),
            rtt_sum_ns: self.rtt_sum_ns,
            ..Bin::default()
        }
    }

    /// The sum of both; None as for [`NarrowBin::of`].
    #[inline(always)]
    fn merged(&self, other: &Bin) -> Option<Self> {
        let other = Self::of(other)?;
        let (rtt_min_ns, rtt_max_ns) = match (self.rtt_samples, other.rtt_samples) {
            (_, 0) => (self.rtt_min_ns, self.rtt_max_ns),
            (0, _) => (other.rtt_min_ns, other.rtt_max_ns),
            _ => (self.rtt_min_ns.min(other.rtt_min_ns), self.rtt_max_ns.max(other.rtt_max_ns)),
        };
        Some(Self {
            index: self.index,
            packets: self.packets.checked_add(other.packets)?,
            wire_bytes: self.wire_bytes.checked_add(other.wire_bytes)?,
            payload_bytes: self.payload_bytes.checked_add(other.payload_bytes)?,
            unique_bytes: self.unique_bytes.checked_add(other.unique_bytes)?,
            retransmitted_packets: self.retransmitted_packets.checked_add(other.retransmitted_packets)?,
            rtt_samples: self.rtt_samples.checked_add(other.rtt_samples)?,
            rtt_sum_ns: self.rtt_sum_ns.saturating_add(other.rtt_sum_ns),
            rtt_min_ns,
            rtt_max_ns,
        })
    }
}

/// Bins in order of index, as they are or, once one of them is not narrow, in full.
#[derive(Debug)]
pub struct PackedBins(Form);

#[derive(Debug)]
enum Form {
    Narrow(Vec<NarrowBin>),
    #[expect(clippy::box_collection, reason = "so both forms have the size of a vector")]
    Full(Box<Vec<Bin>>),
}

impl Default for PackedBins {
    fn default() -> Self {
        Self(Form::Narrow(Vec::new()))
    }
}

impl PackedBins {
    /// How many there are.
    pub fn count(&self) -> usize {
        match &self.0 {
            Form::Narrow(bins) => bins.len(),
            Form::Full(bins) => bins.len(),
        }
    }

    pub fn get(&self, at: usize) -> Option<Bin> {
        match &self.0 {
            Form::Narrow(bins) => bins.get(at).map(NarrowBin::bin),
            Form::Full(bins) => bins.get(at).copied(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Bin> {
        (0..self.count()).filter_map(|at| self.get(at))
    }

    /// Place of the bin with this index, or else where it belongs.
    pub fn search(&self, index: i64) -> Result<usize, usize> {
        // Mostly it is later than all.
        let last = match &self.0 {
            Form::Narrow(bins) => bins.last().map(|bin| bin.index.into()),
            Form::Full(bins) => bins.last().map(|bin| bin.index),
        };
        if last.is_none_or(|last: i64| last < index) {
            return Err(self.count());
        }
        match &self.0 {
            Form::Narrow(bins) => bins.binary_search_by_key(&index, |bin| bin.index.into()),
            Form::Full(bins) => bins.binary_search_by_key(&index, |bin| bin.index),
        }
    }

    /// Add `bin` to the last one; false if that has another index, or not enough room.
    #[inline(always)]
    pub fn merge_into_last(&mut self, bin: &Bin) -> bool {
        match &mut self.0 {
            Form::Narrow(bins) => match bins.last_mut() {
                Some(last) if i64::from(last.index) == bin.index => {
                    let merged = last.merged(bin);
                    merged.inspect(|&merged| *last = merged).is_some()
                }
                _ => false,
            },
            Form::Full(bins) => match bins.last_mut() {
                Some(last) if last.index == bin.index => {
                    last.merge(bin);
                    true
                }
                _ => false,
            },
        }
    }

    /// Add `bin` to the one at `at`.
    pub fn merge(&mut self, at: usize, bin: &Bin) {
        if let Form::Narrow(bins) = &mut self.0
            && let Some(merged) = bins[at].merged(bin)
        {
            bins[at] = merged;
            return;
        }
        self.in_full(|bins| bins[at].merge(bin));
    }

    pub fn insert(&mut self, at: usize, bin: Bin) {
        if let Form::Narrow(bins) = &mut self.0
            && let Some(narrow) = NarrowBin::of(&bin)
        {
            if bins.len() == bins.capacity() {
                // Most of a million flows have no second bin, and half of a doubled vector may be empty.
                bins.reserve_exact((bins.len() / 4).max(1));
            }
            bins.insert(at, narrow);
            return;
        }
        self.in_full(|bins| bins.insert(at, bin));
    }

    /// Change the bins as they are in full.
    fn in_full(&mut self, change: impl FnOnce(&mut Vec<Bin>)) {
        let mut bins = match std::mem::take(self).0 {
            Form::Narrow(bins) => Box::new(bins.iter().map(NarrowBin::bin).collect()),
            Form::Full(bins) => bins,
        };
        change(&mut bins);
        self.0 = Form::Full(bins);
    }

    /// The bins with indices divided by `factor`, each the sum of those with the same.
    pub fn widened(&self, factor: i64) -> Self {
        let mut wider = Self::default();
        for bin in self.iter() {
            let bin = Bin { index: bin.index.div_euclid(factor), ..bin };
            match wider.search(bin.index) {
                Ok(at) => wider.merge(at, &bin),
                Err(at) => wider.insert(at, bin),
            }
        }
        wider
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_bins_take_little_memory() {
        assert_eq!((size_of::<NarrowBin>(), size_of::<PackedBins>()), (40, size_of::<Vec<Bin>>()));
    }

    /// A bin with numbers that are narrow, or barely so, or not.
    fn bin() -> impl Strategy<Value = Bin> {
        let number = || prop_oneof![0_u64..10, Just(0xffff), Just(0xffff_ffff), 0_u64..1 << 40];
        let few = || prop_oneof![20 => 0_u64..10, 1 => 0_u64..1 << 20];
        (-1_i64..40, few(), [number(), number(), number()], few(), (few(), number()), (0_u64..17, number()))
            .prop_map(
                |(index, packets, [wire, payload, unique], repeated, (rtts, rtt_ns), (delays, delay_ns))| {
                    Bin {
                        index,
                        packets,
                        wire_bytes: wire,
                        payload_bytes: payload,
                        unique_bytes: unique,
                        retransmitted_packets: repeated,
                        rtt_samples: rtts,
                        rtt_min_ns: rtt_ns * rtts.min(1),
                        rtt_max_ns: 2 * rtt_ns * rtts.min(1),
                        rtt_sum_ns: rtt_ns * rtts,
                        ce_packets: delays / 15,
                        delay_samples: delays / 16,
                        delay_sum_ns: delay_ns * (delays / 16),
                        ..Bin::default()
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn test_packed_bins_are_those_that_were_put_there(bins in proptest::collection::vec(bin(), 0..60)) {
            let (mut packed, mut plain) = (PackedBins::default(), Vec::<Bin>::new());
            for bin in bins {
                match plain.binary_search_by_key(&bin.index, |bin| bin.index) {
                    Ok(at) => plain[at].merge(&bin),
                    Err(at) => plain.insert(at, bin),
                }
                if !packed.merge_into_last(&bin) {
                    match packed.search(bin.index) {
                        Ok(at) => packed.merge(at, &bin),
                        Err(at) => packed.insert(at, bin),
                    }
                }
            }
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), plain);
        }
    }
}
