//! Time bins: packets, bytes and RTT samples of each direction per interval.

mod packed_bins;

pub use packed_bins::PackedBins;

use crate::flow::Found;
use crate::flow::flow_places::{FLOWS, index_by_group, index_in_group};
use crate::flow::tcp::Outcome;
use crate::flow::tcp::ecn::{CE, ECT_1};
use crate::packet::captured::Captured;
use crate::packet::key::Side;

const FIRST_WIDTH_NS: i64 = 1_000_000;
/// An adaptive width grows when one direction exceeds this number of bins ...
const MAX_BINS_OF_ONE: usize = 3_000;
/// ... or when all directions together exceed this.
const MAX_BINS_OF_ALL: usize = 1 << 18;

/// Width of the bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinWidth {
    /// Given by the user, in nanoseconds.
    Fixed(i64),
    /// Grows with the trace so that the table stays small: 1 ms, then 2, 10, 20, 100, 200 ms, 1 s
    /// and so on.
    Adaptive,
}

/// One direction in one interval. Bins without a packet do not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Its number, counted from the time of the first packet.
    pub index: i64,
    pub packets: u64,
    pub wire_bytes: u64,
    pub payload_bytes: u64,
    /// Payload bytes not seen before.
    pub unique_bytes: u64,
    /// Packets with payload seen before.
    pub retransmitted_packets: u64,
    pub ect1_packets: u64,
    /// Packets with a congestion mark.
    pub ce_packets: u64,
    /// RTT samples whose acknowledgement arrived in it.
    pub rtt_samples: u64,
    pub rtt_min_ns: u64,
    pub rtt_max_ns: u64,
    pub rtt_sum_ns: u64,
    /// Packets sent in it whose one-way delay is known.
    pub delay_samples: u64,
    pub delay_min_ns: u64,
    pub delay_max_ns: u64,
    pub delay_sum_ns: u64,
    /// Packets sent in it that never arrived.
    pub lost_packets: u64,
}

impl Bin {
    /// Bin `index` with one packet.
    #[inline(always)]
    fn of_packet(index: i64, packet: &Captured, outcome: &Outcome) -> Self {
        let Captured { wire_bytes, payload_bytes, ecn, .. } = *packet;
        Self {
            index,
            packets: 1,
            wire_bytes: u64::from(wire_bytes),
            payload_bytes: u64::from(payload_bytes),
            unique_bytes: u64::from(outcome.new_bytes),
            retransmitted_packets: u64::from(
                outcome.finding.is_some_and(|finding| finding.class.is_retransmission()),
            ),
            ect1_packets: u64::from(ecn == ECT_1),
            ce_packets: u64::from(ecn == CE),
            ..Self::default()
        }
    }

    /// Bin `index` with one RTT sample.
    #[inline(always)]
    fn of_rtt(index: i64, rtt_ns: u64) -> Self {
        Self {
            index,
            rtt_samples: 1,
            rtt_min_ns: rtt_ns,
            rtt_max_ns: rtt_ns,
            rtt_sum_ns: rtt_ns,
            ..Self::default()
        }
    }

    fn merge(&mut self, other: &Self) {
        let first_rtt = self.rtt_samples == 0;
        self.packets += other.packets;
        self.wire_bytes += other.wire_bytes;
        self.payload_bytes += other.payload_bytes;
        self.unique_bytes += other.unique_bytes;
        self.retransmitted_packets += other.retransmitted_packets;
        self.ect1_packets += other.ect1_packets;
        self.ce_packets += other.ce_packets;
        if other.rtt_samples > 0 {
            let min = other.rtt_min_ns;
            self.rtt_min_ns = if first_rtt { min } else { self.rtt_min_ns.min(min) };
            self.rtt_max_ns = self.rtt_max_ns.max(other.rtt_max_ns);
            self.rtt_samples += other.rtt_samples;
            self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(other.rtt_sum_ns);
        }
        self.lost_packets += other.lost_packets;
        if other.delay_samples > 0 {
            let (min, is_first) = (other.delay_min_ns, self.delay_samples == 0);
            self.delay_min_ns = if is_first { min } else { self.delay_min_ns.min(min) };
            self.delay_max_ns = self.delay_max_ns.max(other.delay_max_ns);
            self.delay_samples += other.delay_samples;
            self.delay_sum_ns = self.delay_sum_ns.saturating_add(other.delay_sum_ns);
        }
    }
}

/// Bins of all flows, with the same width and start time.
pub struct Bins {
    width_ns: i64,
    is_adaptive: bool,
    origin_ns: Option<i64>,
    /// Bins of each side of each flow, group by group, in order of index.
    lanes: Vec<PackedBins>,
    total: usize,
    max_total: usize,
    /// Packets that fell into no bin because `max_total` was reached.
    lost_packets: u64,
}

impl Bins {
    /// Empty bins; at most `max_total` if the width is fixed.
    pub fn new(width: BinWidth, max_total: usize) -> Self {
        let (width_ns, is_adaptive) = match width {
            BinWidth::Fixed(width_ns) => (width_ns.max(1), false),
            BinWidth::Adaptive => (FIRST_WIDTH_NS, true),
        };
        Self {
            width_ns,
            is_adaptive,
            origin_ns: None,
            lanes: Vec::new(),
            total: 0,
            max_total: if is_adaptive { usize::MAX } else { max_total },
            lost_packets: 0,
        }
    }

    pub fn width_ns(&self) -> i64 {
        self.width_ns
    }

    /// Start time of bin `index`.
    pub fn start_ns(&self, index: i64) -> i64 {
        let distance = index.saturating_mul(self.width_ns);
        self.origin_ns.unwrap_or(0).saturating_add(distance)
    }

    pub fn total(&self) -> usize {
        self.total
    }

    /// Packets that fell into no bin because of the limit.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// Whether the order of the next `packets` makes no difference: the first bin has begun, and no limit is
    /// in reach. The final width of adaptive bins depends on all packets, whatever their order.
    pub fn takes_any_order(&self, packets: usize) -> bool {
        self.origin_ns.is_some() && self.total.saturating_add(2 * packets) <= self.max_total
    }

    /// Bins of one direction, in order of time.
    pub fn lane(&self, flow: u32, side: Side) -> Option<&PackedBins> {
        self.lanes.get(lane_index(flow, side))
    }

    /// Add a packet sent by `side` of `flow`, and the RTT sample of the other side's data that it
    /// gave.
    #[inline(always)]
    pub fn add(&mut self, found: Found, packet: &Captured, outcome: &Outcome) {
        let Found { flow, side } = found;
        let index = self.index(packet.time_ns);
        self.put(lane_index(flow, side), Bin::of_packet(index, packet, outcome));
        if let Some(rtt) = outcome.rtt {
            self.add_rtt(flow, side.other(), packet.time_ns, rtt.ns);
        }
    }

    /// Add an RTT sample of the data of `side`, which an answer at `time_ns` gave.
    #[inline(always)]
    pub fn add_rtt(&mut self, flow: u32, side: Side, time_ns: i64, rtt_ns: u64) {
        // Not the packet's own bin: adding it may have widened the bins.
        let index = self.index(time_ns);
        self.put(lane_index(flow, side), Bin::of_rtt(index, rtt_ns));
    }

    /// Add the one-way delay of a packet that `side` of `flow` sent at `time_ns`.
    pub fn add_delay(&mut self, flow: u32, side: Side, time_ns: i64, delay_ns: u64) {
        let delay = Bin {
            index: self.index(time_ns),
            delay_samples: 1,
            delay_min_ns: delay_ns,
            delay_max_ns: delay_ns,
            delay_sum_ns: delay_ns,
            ..Bin::default()
        };
        self.put(lane_index(flow, side), delay);
    }

    /// Add the loss of a packet that `side` of `flow` sent at `time_ns`.
    pub fn add_loss(&mut self, flow: u32, side: Side, time_ns: i64) {
        let loss = Bin { index: self.index(time_ns), lost_packets: 1, ..Bin::default() };
        self.put(lane_index(flow, side), loss);
    }

    #[inline(always)]
    fn index(&mut self, time_ns: i64) -> i64 {
        let origin = *self.origin_ns.get_or_insert(time_ns);
        time_ns.saturating_sub(origin).div_euclid(self.width_ns)
    }

    #[inline(always)]
    fn put(&mut self, lane: usize, bin: Bin) {
        if !self.lanes.get_mut(lane).is_some_and(|bins| bins.merge_into_last(&bin)) {
            self.put_elsewhere(lane, bin);
        }
    }

    fn put_elsewhere(&mut self, lane: usize, bin: Bin) {
        if lane >= self.lanes.len() {
            self.lanes.resize_with(lane + 1, PackedBins::default);
        }
        let bins = &mut self.lanes[lane];
        // Usually at the end; earlier only if the capture's clock went backwards.
        match bins.search(bin.index) {
            Ok(at) => bins.merge(at, &bin),
            Err(_) if self.total >= self.max_total => self.lost_packets += bin.packets,
            Err(at) => {
                bins.insert(at, bin);
                self.total += 1;
                let longest = bins.count();
                self.widen_for(longest);
            }
        }
    }

    /// Widen the bins until neither the longest lane, of so many bins, nor all together are too long.
    #[inline]
    fn widen_for(&mut self, mut longest: usize) {
        while self.is_adaptive && (longest > MAX_BINS_OF_ONE || self.total > MAX_BINS_OF_ALL) {
            self.widen();
            longest = self.lanes.iter().map(PackedBins::count).max().unwrap_or(0);
        }
    }

    /// The lanes of each of the first `groups` of flows, to be filled by one thread each. To be called if
    /// [`Bins::takes_any_order`].
    pub fn by_group(&mut self, groups: usize) -> impl Iterator<Item = BinsOfGroup<'_>> {
        if self.lanes.len() < groups * LANES_OF_GROUP {
            self.lanes.resize_with(groups * LANES_OF_GROUP, PackedBins::default);
        }
        let (width_ns, origin_ns) = (self.width_ns, self.origin_ns.unwrap_or(0));
        let lanes = self.lanes.chunks_mut(LANES_OF_GROUP);
        lanes.map(move |lanes| BinsOfGroup { lanes, width_ns, origin_ns })
    }

    /// Count the bins that threads added, and widen all if there are too many.
    pub fn settle(&mut self, added: AddedBins) {
        self.total += added.count;
        self.widen_for(added.longest);
    }

    /// Make bins two or five times as wide (1, 2, 10, 20, 100 ...), each the sum of whole bins.
    fn widen(&mut self) {
        // Once a bin is wider than any capture, one per direction is enough.
        let Some(wider) = self.width_ns.checked_mul(5) else {
            self.is_adaptive = false;
            return;
        };
        let is_power_of_ten = 10_i64.pow(self.width_ns.ilog10()) == self.width_ns;
        let factor = if is_power_of_ten { 2 } else { 5 };
        self.width_ns = if is_power_of_ten { 2 * self.width_ns } else { wider };
        self.total = 0;
        for lane in &mut self.lanes {
            *lane = lane.widened(factor);
            self.total += lane.count();
        }
    }
}

/// The bins of a group of flows.
pub struct BinsOfGroup<'a> {
    lanes: &'a mut [PackedBins],
    width_ns: i64,
    origin_ns: i64,
}

/// Bins that a thread added.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddedBins {
    count: usize,
    /// The most in a lane to which one was added.
    longest: usize,
}

impl AddedBins {
    /// Those of both.
    pub fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, longest: self.longest.max(other.longest) }
    }
}

impl BinsOfGroup<'_> {
    /// [`Bins::add`] for a flow of the group.
    #[inline(always)]
    pub fn add(&mut self, found: Found, packet: &Captured, outcome: &Outcome, added: &mut AddedBins) {
        let Found { flow, side } = found;
        let index = packet.time_ns.saturating_sub(self.origin_ns).div_euclid(self.width_ns);
        self.put(flow, side, Bin::of_packet(index, packet, outcome), added);
        if let Some(rtt) = outcome.rtt {
            self.put(flow, side.other(), Bin::of_rtt(index, rtt.ns), added);
        }
    }

    #[inline(always)]
    fn put(&mut self, flow: u32, side: Side, bin: Bin, added: &mut AddedBins) {
        let lane = &mut self.lanes[2 * index_in_group(flow) + side as usize];
        if !lane.merge_into_last(&bin) {
            put_elsewhere(lane, bin, added);
        }
    }
}

#[inline(never)]
fn put_elsewhere(lane: &mut PackedBins, bin: Bin, added: &mut AddedBins) {
    match lane.search(bin.index) {
        Ok(at) => lane.merge(at, &bin),
        Err(at) => {
            lane.insert(at, bin);
            added.count += 1;
            added.longest = added.longest.max(lane.count());
        }
    }
}

/// Lanes of a group of flows.
const LANES_OF_GROUP: usize = 2 * FLOWS;

#[inline(always)]
fn lane_index(flow: u32, side: Side) -> usize {
    2 * index_by_group(flow) + side as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::rtt_statistics::{RoundTrip, RttMethod};
    use proptest::prelude::*;

    const LOW: Found = Found { flow: 0, side: Side::Low };
    const HIGH: Found = Found { flow: 0, side: Side::High };

    fn sum(bins: &Bins) -> (u64, u64, u64) {
        let all = bins.lanes.iter().flat_map(PackedBins::iter);
        all.fold((0, 0, 0), |sum, bin| (sum.0 + bin.packets, sum.1 + bin.wire_bytes, sum.2 + bin.rtt_samples))
    }

    fn packet(time_ns: i64, wire_bytes: u32) -> Captured {
        Captured { time_ns, wire_bytes, ..Captured::default() }
    }

    #[test]
    fn test_widths_are_round_numbers() {
        let mut bins = Bins::new(BinWidth::Adaptive, 0);
        let mut widths = vec![];
        for _ in 0..6 {
            widths.push(bins.width_ns() / FIRST_WIDTH_NS);
            bins.widen();
        }
        assert_eq!(widths, [1, 2, 10, 20, 100, 200]);
    }

    #[test]
    fn test_a_full_table_of_fixed_bins_counts_what_it_leaves_out() {
        let mut bins = Bins::new(BinWidth::Fixed(10), 2);
        for time in [0, 10, 20, 5] {
            bins.add(LOW, &packet(time, 100), &Outcome::default());
        }
        assert_eq!((bins.total(), bins.lost_packets()), (2, 1));
    }

    proptest! {
        #[test]
        fn test_widening_keeps_every_sum(
            times in proptest::collection::vec(0_i64..50_000_000_000, 1..5_000),
        ) {
            let outcome = Outcome { rtt: Some(RoundTrip::new(5, RttMethod::Ack)), ..Outcome::default() };
            let mut adaptive = Bins::new(BinWidth::Adaptive, 0);
            for &time in &times {
                adaptive.add(HIGH, &packet(time, 7), &outcome);
            }
            let n = times.len() as u64;
            prop_assert_eq!(sum(&adaptive), (n, 7 * n, n));
            let lane = |bins: &Bins| bins.lane(0, Side::High).map_or(vec![], |lane| lane.iter().collect());
            prop_assert!(lane(&adaptive).len() <= MAX_BINS_OF_ONE);
            // The same as bins that had the final width from the start.
            let mut fixed = Bins::new(BinWidth::Fixed(adaptive.width_ns()), usize::MAX);
            for &time in &times {
                fixed.add(HIGH, &packet(time, 7), &outcome);
            }
            prop_assert_eq!(lane(&adaptive), lane(&fixed));
        }
    }
}
