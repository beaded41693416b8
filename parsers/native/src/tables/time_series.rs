//! Bins of time, in order of flow, direction and time.

use std::io;

use super::column::column;
use super::shown::{Shown, each_flow};
use super::{Column, PassTable, Row};
use crate::flow::bins::{Bin, PackedBins};
use crate::flow::direction_name;
use crate::packet::key::Side;
use crate::pass::Analysis;

/// The table of bins.
pub(super) struct TimeBins {
    /// Directions with bins, each with the number of rows before it.
    lanes: Vec<(u32, Side, usize)>,
    total: usize,
}

/// A bin of a direction.
pub struct BinRow {
    flow: u32,
    direction: &'static str,
    start_ns: i64,
    width_ns: i64,
    bin: Bin,
    shows_both_ends: bool,
    shows_marks: bool,
}

impl TimeBins {
    fn lane_of(&self, row: usize) -> Option<&(u32, Side, usize)> {
        let lane = self.lanes.partition_point(|lane| lane.2 <= row).checked_sub(1)?;
        self.lanes.get(lane)
    }
}

impl PassTable for TimeBins {
    type Row<'a> = BinRow;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut lanes = Vec::new();
        let mut total = 0;
        if let Some(bins) = &analysis.results.bins {
            each_flow(analysis, |shown, flow| {
                let forward = shown.flow(flow).forward();
                for side in [forward, forward.other()] {
                    let n = bins.lane(flow, side).map_or(0, PackedBins::count);
                    if n > 0 {
                        lanes.push((flow, side, total));
                        total += n;
                    }
                }
            })?;
        }
        Ok(Self { lanes, total })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.total
    }

    fn flow(&self, _: &Analysis, row: usize) -> Option<u32> {
        self.lane_of(row).map(|lane| lane.0)
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<BinRow> {
        let &(number, side, before) = self.lane_of(row)?;
        let (bins, flow) = (shown.analysis.results.bins.as_ref()?, shown.flow(number));
        let bin = bins.lane(number, side)?.get(row - before)?;
        Some(BinRow {
            flow: number + first_flow,
            direction: direction_name(side, flow.forward()),
            start_ns: bins.start_ns(bin.index),
            width_ns: bins.width_ns(),
            bin,
            shows_both_ends: flow.shows_both_ends(side),
            shows_marks: flow.marks(side).is_some(),
        })
    }
}

impl<'a> Row<'a> for BinRow {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "`fwd` or `rev`").name(|row| Some(row.direction)),
        column("time_ns", "ns", "start of the bin; bins without a packet and a round-trip time have no row")
            .i64(|row| Some(row.start_ns)),
        column("width_ns", "ns", "width of the bin, the same for every row").i64(|row| Some(row.width_ns)),
        column("packets", "", "packets in the bin").u64(|row| Some(row.bin.packets)),
        column("wire_bytes", "bytes", "their frames").u64(|row| Some(row.bin.wire_bytes)),
        column("payload_bytes", "bytes", "their payload").u64(|row| Some(row.bin.payload_bytes)),
        column("unique_bytes", "bytes", "payload not seen before (all payload for UDP)")
            .u64(|row| Some(row.bin.unique_bytes)),
        column("retransmitted_packets", "", "data packets with bytes seen before")
            .u64(|row| Some(row.bin.retransmitted_packets)),
        column("ect1_packets", "", "packets with ECT(1), which asks for the service of L4S (RFC 9331)")
            .null_when("as ect_packets of the flow")
            .u64(|row| row.shows_marks.then_some(row.bin.ect1_packets)),
        column("ce_packets", "", "packets that arrived at the capture with a congestion mark")
            .null_when("as ect_packets of the flow")
            .u64(|row| row.shows_marks.then_some(row.bin.ce_packets)),
        column("rtt_samples", "", "RTT samples whose acknowledgement arrived in the bin")
            .u64(|row| Some(row.bin.rtt_samples)),
        column("rtt_min_ms", "ms", "smallest of them")
            .null_when("no sample")
            .f64(|row| row.rtt_ms(row.bin.rtt_min_ns as f64)),
        column("rtt_mean_ms", "ms", "their mean")
            .null_when("no sample")
            .f64(|row| row.rtt_ms(row.bin.rtt_sum_ns as f64 / row.bin.rtt_samples as f64)),
        column("rtt_max_ms", "ms", "largest of them")
            .null_when("no sample")
            .f64(|row| row.rtt_ms(row.bin.rtt_max_ns as f64)),
        column("delay_samples", "", "packets sent in the bin with a one-way delay")
            .null_when("the trace does not show both ends")
            .u64(|row| row.shows_both_ends.then_some(row.bin.delay_samples)),
        column("delay_min_ms", "ms", "smallest one-way delay")
            .null_when("no sample")
            .f64(|row| row.delay_ms(row.bin.delay_min_ns as f64)),
        column("delay_mean_ms", "ms", "their mean")
            .null_when("no sample")
            .f64(|row| row.delay_ms(row.bin.delay_sum_ns as f64 / row.bin.delay_samples as f64)),
        column("delay_max_ms", "ms", "largest of them")
            .null_when("no sample")
            .f64(|row| row.delay_ms(row.bin.delay_max_ns as f64)),
        column("lost_packets", "", "packets sent in the bin that never arrived")
            .null_when("as delay_samples")
            .u64(|row| row.shows_both_ends.then_some(row.bin.lost_packets)),
    ]];
}

impl BinRow {
    fn rtt_ms(&self, ns: f64) -> Option<f64> {
        (self.bin.rtt_samples > 0).then_some(ns / 1e6)
    }

    fn delay_ms(&self, ns: f64) -> Option<f64> {
        (self.bin.delay_samples > 0).then_some(ns / 1e6)
    }
}
