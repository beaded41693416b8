//! The tables of what happens over the life of a flow: bins, round-trip times, losses, logged variables.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::{Columns, Rows};
use crate::flow::bins::{Bin, Bins};
use crate::flow::tcp::classify::class::{Class, Evidence};
use crate::flow::{Found, direction_name};
use crate::input::source_summary::SourceSummary;
use crate::packet::key::{Side, address_text};
use crate::packet::logged_variables::VariableSample;
use crate::pass::{Analysis, LossSample, RttSample};

/// The table of bins, in order of flow, direction and time.
pub struct BinRows {
    analysis: Arc<Analysis>,
    first_flow: u32,
    /// Directions that have bins, each with its number of rows before.
    lanes: Vec<(u32, Side, usize)>,
    total: usize,
}

impl BinRows {
    /// The bins of `analysis`, flows numbered from `first_flow`.
    pub fn new(analysis: Arc<Analysis>, first_flow: u32) -> Self {
        let mut lanes = Vec::new();
        let mut total = 0;
        if let Some(bins) = &analysis.bins {
            for flow in 0..analysis.flows.len() as u32 {
                let forward = analysis.flows.get(flow).forward();
                for side in [forward, forward.other()] {
                    let n = bins.lane(flow, side).len();
                    if n > 0 {
                        lanes.push((flow, side, total));
                        total += n;
                    }
                }
            }
        }
        Self { analysis, first_flow, lanes, total }
    }

    fn row<'a>(&self, bins: &'a Bins, row: usize) -> Option<(u32, Side, &'a Bin)> {
        let lane = self.lanes.partition_point(|lane| lane.2 <= row).checked_sub(1)?;
        let &(flow, side, before) = self.lanes.get(lane)?;
        Some((flow, side, bins.lane(flow, side).get(row - before)?))
    }
}

impl Rows for BinRows {
    fn len(&self) -> usize {
        self.total
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let empty = Bins::new(crate::flow::bins::BinWidth::Adaptive, 0);
        let bins = self.analysis.bins.as_ref().unwrap_or(&empty);
        let rows: Vec<_> = (start..end).filter_map(|row| self.row(bins, row)).collect();
        let forward = |flow: u32| self.analysis.flows.get(flow).forward();
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.0 + self.first_flow));
        columns.text("direction", rows.iter().map(|row| direction_name(row.1, forward(row.0))).map(Some));
        columns.i64("time_ns", rows.iter().map(|row| bins.start_ns(row.2.index)));
        columns.i64("width_ns", rows.iter().map(|_| bins.width_ns()));
        columns.u64("packets", rows.iter().map(|row| row.2.packets));
        columns.u64("wire_bytes", rows.iter().map(|row| row.2.wire_bytes));
        columns.u64("payload_bytes", rows.iter().map(|row| row.2.payload_bytes));
        columns.u64("unique_bytes", rows.iter().map(|row| row.2.unique_bytes));
        columns.u64("retransmitted_packets", rows.iter().map(|row| row.2.retransmitted_packets));
        columns.u64("rtt_samples", rows.iter().map(|row| row.2.rtt_samples));
        let ms = |bin: &Bin, ns: f64| (bin.rtt_samples > 0).then_some(ns / 1e6);
        columns.f64("rtt_min_ms", rows.iter().map(|row| ms(row.2, row.2.rtt_min_ns as f64)));
        let mean = |bin: &Bin| bin.rtt_sum_ns as f64 / bin.rtt_samples as f64;
        columns.f64("rtt_mean_ms", rows.iter().map(|row| ms(row.2, mean(row.2))));
        columns.f64("rtt_max_ms", rows.iter().map(|row| ms(row.2, row.2.rtt_max_ns as f64)));
        self.delays(&rows, &mut columns);
        columns.finish(rows.len())
    }
}

impl BinRows {
    fn delays(&self, rows: &[(u32, Side, &Bin)], columns: &mut Columns) {
        let flows = &self.analysis.flows;
        let count = |row: &(u32, Side, &Bin), n: u64| flows.get(row.0).shows_both_ends().then_some(n);
        let ms = |bin: &Bin, ns: f64| (bin.delay_samples > 0).then_some(ns / 1e6);
        let mean = |bin: &Bin| bin.delay_sum_ns as f64 / bin.delay_samples as f64;
        columns.u64("delay_samples", rows.iter().map(|row| count(row, row.2.delay_samples)));
        columns.f64("delay_min_ms", rows.iter().map(|row| ms(row.2, row.2.delay_min_ns as f64)));
        columns.f64("delay_mean_ms", rows.iter().map(|row| ms(row.2, mean(row.2))));
        columns.f64("delay_max_ms", rows.iter().map(|row| ms(row.2, row.2.delay_max_ns as f64)));
        columns.u64("lost_packets", rows.iter().map(|row| count(row, row.2.lost_packets)));
    }
}

/// The table of RTT samples, in order of time of arrival.
pub struct RttRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for RttRows {
    fn len(&self) -> usize {
        self.analysis.rtt.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.analysis.rtt.kept[start..end];
        let direction =
            |row: &RttSample| direction_name(row.side, self.analysis.flows.get(row.flow).forward());
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.flow + self.first_flow));
        columns.text("direction", rows.iter().map(direction).map(Some));
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.i64("rtt_ns", rows.iter().map(|row| i64::try_from(row.rtt_ns).ok()));
        columns.text("method", rows.iter().map(|row| row.method.name()).map(Some));
        columns.u32("delayed_ack", rows.iter().map(|row| u32::from(row.is_delayed_ack)));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.finish(rows.len())
    }
}

/// The table of retransmissions and late arrivals, in order of arrival.
pub struct LossRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for LossRows {
    fn len(&self) -> usize {
        self.analysis.losses.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.analysis.losses.kept[start..end];
        let forward = |flow: u32| self.analysis.flows.get(flow).forward();
        let kind = |row: &LossSample| match row.finding.class {
            class if class.is_retransmission() => Some("retransmission"),
            Class::Reordered | Class::Unseen => Some("out_of_order"),
            _ => None,
        };
        let verdict = |row: &LossSample| {
            let connection = self.analysis.flows.get(row.flow).tcp.as_deref();
            connection.and_then(|tcp| tcp.half(row.side).verdict(row.finding.number)).map(Evidence::name)
        };
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.flow + self.first_flow));
        columns
            .text("direction", rows.iter().map(|row| direction_name(row.side, forward(row.flow))).map(Some));
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.i64("seq_rel", rows.iter().map(|row| row.position));
        columns.u32("payload_bytes", rows.iter().map(|row| row.payload_bytes));
        columns.u32("repeated_bytes", rows.iter().map(|row| row.repeated_bytes));
        columns.text("kind", rows.iter().map(kind));
        columns.text("class", rows.iter().map(|row| Some(row.finding.class.name())));
        columns.text("evidence", rows.iter().map(|row| Some(row.finding.evidence.name())));
        columns.text("spurious", rows.iter().map(verdict));
        columns.finish(rows.len())
    }
}

/// The table of variables, in order of the sources.
pub struct VariableRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for VariableRows {
    fn len(&self) -> usize {
        self.analysis.variables.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.analysis.variables.kept[start..end];
        let flows = &self.analysis.flows;
        let found: Vec<Option<Found>> = rows.iter().map(|row| flows.find_endpoints(&row.endpoints)).collect();
        let direction = |found: &Option<Found>| {
            found.map(|found| direction_name(found.side, flows.get(found.flow).forward()))
        };
        let notation = self.analysis.sources.first().map(SourceSummary::notation).unwrap_or_default();
        let address = |address, row: &VariableSample| address_text(address, row.endpoints.family, notation);
        let mut columns = Columns::default();
        columns.u32("flow", found.iter().map(|found| found.map(|found| found.flow + self.first_flow)));
        columns.text("direction", found.iter().map(direction));
        columns.text("src", rows.iter().map(|row| address(row.endpoints.src, row)).map(Some));
        columns.u32("src_port", rows.iter().map(|row| u32::from(row.endpoints.src_port)));
        columns.text("dst", rows.iter().map(|row| address(row.endpoints.dst, row)).map(Some));
        columns.u32("dst_port", rows.iter().map(|row| u32::from(row.endpoints.dst_port)));
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.text("name", rows.iter().map(|row| row.name).map(Some));
        columns.text("unit", rows.iter().map(|row| row.unit.name()).map(Some));
        columns.f64("value", rows.iter().map(|row| row.value));
        columns.finish(rows.len())
    }
}
