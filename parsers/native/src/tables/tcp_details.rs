//! The details of TCP connections as a table.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::flows::FlowRow;
use super::{Columns, Rows};
use crate::flow::rtt_statistics::RttStatistics;
use crate::flow::tcp::details::ConnectionDetails;
use crate::pass::Analysis;

/// The table of details: two rows for each TCP connection of a capture, `fwd` then `rev`.
pub struct DetailRows {
    analysis: Arc<Analysis>,
    first_flow: u32,
    /// The flows that have some.
    flows: Vec<u32>,
}

/// A row of the table of flows, with its details.
struct DetailRow<'a> {
    flow: FlowRow<'a>,
    details: &'a ConnectionDetails,
}

impl DetailRow<'_> {
    fn mean_segment_bytes(&self) -> Option<f64> {
        let direction = self.flow.direction;
        let bytes = self.flow.payload_bytes()?;
        (direction.data_packets > 0).then(|| bytes as f64 / direction.data_packets as f64)
    }

    fn mean_window_bytes(&self) -> Option<f64> {
        let connection = self.flow.connection?;
        let (side, other) = (self.flow.side, self.flow.side.other());
        let factor = connection.half(side).scaled(1, connection.half(other))?;
        Some(self.details.mean_window()? * f64::from(factor))
    }

    /// What SYN and FIN say there is, and the capture does not show.
    fn missed_bytes(&self) -> Option<u64> {
        self.details.stream_bytes()?.checked_sub(self.flow.unique_bytes()?)
    }
}

impl DetailRows {
    /// The details that `analysis` has, flows numbered from `first_flow`.
    pub fn new(analysis: Arc<Analysis>, first_flow: u32) -> Self {
        let has_some = |flow: &u32| analysis.details.as_ref().is_some_and(|all| all.get(*flow).is_some());
        let flows = (0..analysis.flows.len() as u32).filter(has_some).collect();
        Self { analysis, first_flow, flows }
    }

    fn row(&self, row: usize) -> Option<DetailRow<'_>> {
        let &number = self.flows.get(row / 2)?;
        let flow = FlowRow::at(&self.analysis, 2 * number as usize + row % 2, self.first_flow);
        let both = self.analysis.details.as_ref()?.get(number)?;
        let details = both.get(flow.side as usize)?;
        Some(DetailRow { flow, details })
    }
}

impl Rows for DetailRows {
    fn len(&self) -> usize {
        2 * self.flows.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows: Vec<DetailRow<'_>> = (start..end).filter_map(|row| self.row(row)).collect();
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.flow.number));
        columns.text("direction", rows.iter().map(|row| Some(row.flow.direction_name())));
        packets(&rows, &mut columns);
        sizes(&rows, &mut columns);
        acknowledgements(&rows, &mut columns);
        columns.finish(rows.len())
    }
}

fn packets(rows: &[DetailRow<'_>], columns: &mut Columns) {
    let mut count = |name: &str, value: fn(&ConnectionDetails) -> u32| {
        columns.u64(name, rows.iter().map(|row| u64::from(value(row.details))));
    };
    count("ack_packets", |details| details.ack_packets);
    count("pure_acks", |details| details.pure_acks);
    count("sack_packets", |details| details.sack_packets);
    count("dsack_packets", |details| details.dsack_packets);
    count("max_sack_blocks", |details| u32::from(details.max_sack_blocks));
    count("pushed_packets", |details| details.pushed_packets);
    count("syn_packets", |details| details.syns);
    count("fin_packets", |details| details.fins);
    count("rst_packets", |details| details.resets);
    count("urgent_packets", |details| details.urgent_packets);
    let with_syn = |row: &DetailRow<'_>, value: bool| (row.details.syns > 0).then_some(u32::from(value));
    let scale = |row: &DetailRow<'_>| row.flow.half?.window_scale.map(u32::from);
    columns.u32("window_scale", rows.iter().map(scale));
    columns.u32("offers_timestamps", rows.iter().map(|row| with_syn(row, row.details.offers_timestamps)));
    columns.u32("permits_sack", rows.iter().map(|row| with_syn(row, row.details.permits_sack)));
}

fn sizes(rows: &[DetailRow<'_>], columns: &mut Columns) {
    let of_data = |value: u32| (value > 0).then_some(value);
    let longest = |row: &DetailRow<'_>| of_data(row.flow.direction.largest_payload);
    columns.u32("min_segment_bytes", rows.iter().map(|row| of_data(row.details.shortest_payload)));
    columns.f64("mean_segment_bytes", rows.iter().map(DetailRow::mean_segment_bytes));
    columns.u32("max_segment_bytes", rows.iter().map(longest));
    columns.f64("mean_window_bytes", rows.iter().map(DetailRow::mean_window_bytes));
    let initial = |row: &DetailRow<'_>| row.details.initial_window();
    columns.u64("initial_window_bytes", rows.iter().map(|row| initial(row).map(|window| window.0)));
    let packets = |row: &DetailRow<'_>| initial(row).map(|window| u64::from(window.1));
    columns.u64("initial_window_packets", rows.iter().map(packets));
    columns.u64("stream_bytes", rows.iter().map(|row| row.details.stream_bytes()));
    columns.u64("missed_bytes", rows.iter().map(DetailRow::missed_bytes));
    columns.u64("truncated_packets", rows.iter().map(|row| u64::from(row.details.truncated.0)));
    columns.u64("truncated_bytes", rows.iter().map(|row| row.details.truncated.1));
    let data_time = |row: &DetailRow<'_>| row.details.data_time_ns().map(|ns| ns as f64 / 1e9);
    columns.f64("data_time_s", rows.iter().map(data_time));
    let gap = |row: &DetailRow<'_>| row.flow.seen(row.details.longest_gap_ns as f64 / 1e6);
    columns.f64("gap_max_ms", rows.iter().map(gap));
}

fn acknowledgements(rows: &[DetailRow<'_>], columns: &mut Columns) {
    let mut count = |name: &str, value: fn(&ConnectionDetails) -> u64| {
        columns.u64(name, rows.iter().map(|row| value(row.details)));
    };
    count("cumulative_acks", |details| details.transmissions.cumulative.into());
    count("post_loss_acks", |details| details.transmissions.post_loss.into());
    count("triple_duplicate_acks", |details| details.triple_duplicates.into());
    count("max_retransmissions", |details| details.transmissions.max_repeats.into());
    spread("retransmission", rows, columns, |details| &details.transmissions.intervals);
    columns.u64("ambiguous_acks", rows.iter().map(|row| row.details.transmissions.ambiguous.range.count()));
    spread("ambiguous_rtt", rows, columns, |details| &details.transmissions.ambiguous);
    let unwatched = |row: &DetailRow<'_>| u64::from(row.details.transmissions.unwatched);
    columns.u64("unwatched_segments", rows.iter().map(unwatched));
}

/// Four columns, named after `what`.
fn spread(
    what: &str,
    rows: &[DetailRow<'_>],
    columns: &mut Columns,
    of: fn(&ConnectionDetails) -> &RttStatistics,
) {
    let mut column = |name: &str, value: fn(&RttStatistics) -> Option<f64>| {
        columns.f64(&format!("{what}_{name}_ms"), rows.iter().map(|row| value(of(row.details))));
    };
    column("min", |times| times.range.min_ms());
    column("mean", |times| times.range.mean_ms());
    column("max", |times| times.range.max_ms());
    column("std", RttStatistics::sample_std_ms);
}
