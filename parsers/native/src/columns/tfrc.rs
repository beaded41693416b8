//! TFRC's reports, loss events and loss intervals as tables.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::{Columns, FlowRow, Rows, classes};
use crate::analysis::Analysis;
use crate::flow::direction_name;
use crate::flow::key::Side;
use crate::flow::tfrc::TakenReport;

/// What the table of flows tells of TFRC, and of TCP by its measures.
pub(super) fn flow_columns(rows: &[FlowRow<'_>], columns: &mut Columns) {
    let last = |row: &FlowRow<'_>| row.tfrc()?.last_report;
    let events = |row: &FlowRow<'_>| match row.tfrc() {
        Some(ends) => ends.loss_events(),
        None => classes::loss_events(row),
    };
    columns.u64("loss_events", rows.iter().map(events));
    let rate = |row: &FlowRow<'_>| match row.tfrc() {
        Some(ends) => ends.last_report.map(|report| report.p),
        None => classes::loss_event_rate(row),
    };
    columns.f64("loss_event_rate", rows.iter().map(rate));
    columns.u64("feedback_packets", rows.iter().map(|row| row.tfrc().map(|ends| ends.feedback_packets)));
    columns.f64("x_recv_bps", rows.iter().map(|row| last(row).map(|report| report.x_recv * 8.0)));
    columns.f64("srtt_ms", rows.iter().map(|row| row.tfrc()?.r.map(|r| r * 1e3)));
}

/// Which flow and direction a row is of.
fn place(columns: &mut Columns, analysis: &Analysis, first_flow: u32, places: &[(u32, Side)]) {
    let direction = |&(flow, side): &(u32, Side)| direction_name(side, analysis.flows.get(flow).forward());
    columns.u32("flow", places.iter().map(|(flow, _)| flow + first_flow));
    columns.text("direction", places.iter().map(direction).map(Some));
}

/// The table of reports, in order of sending.
pub struct FeedbackRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for FeedbackRows {
    fn len(&self) -> usize {
        self.analysis.tfrc.feedback.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.analysis.tfrc.feedback.kept.get(start..end).unwrap_or_default();
        let places: Vec<_> = rows.iter().map(|row| (row.flow, row.side)).collect();
        let mut columns = Columns::default();
        place(&mut columns, &self.analysis, self.first_flow, &places);
        columns.i64("time_ns", rows.iter().map(|row| row.sent_ns));
        columns.i64("received_ns", rows.iter().map(|row| row.taken.map(|taken| taken.time_ns)));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.u64("sequence", rows.iter().map(|row| row.sequence));
        columns.f64("p", rows.iter().map(|row| row.p));
        columns.f64("x_recv_bps", rows.iter().map(|row| row.x_recv * 8.0));
        let mut taken = |name: &str, value: fn(&TakenReport) -> f64| {
            columns.f64(name, rows.iter().map(|row| row.taken.as_ref().map(value)));
        };
        taken("rtt_ms", |taken| taken.r_sample * 1e3);
        taken("r_ms", |taken| taken.r * 1e3);
        taken("t_rto_ms", |taken| taken.t_rto * 1e3);
        taken("x_bps", |taken| taken.x * 8.0);
        columns.text("mode", rows.iter().map(|row| row.taken.map(|taken| taken.mode.name())));
        columns.finish(rows.len())
    }
}

/// The table of loss events, in the order in which receivers learnt of them.
pub struct LossEventRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for LossEventRows {
    fn len(&self) -> usize {
        self.analysis.tfrc.loss_events.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.analysis.tfrc.loss_events.kept.get(start..end).unwrap_or_default();
        let places: Vec<_> = rows.iter().map(|row| (row.flow, row.side)).collect();
        let mut columns = Columns::default();
        place(&mut columns, &self.analysis, self.first_flow, &places);
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.i64("start_sequence", rows.iter().map(|row| row.start));
        // A float beyond the range of integers saturates.
        columns.i64("lost_ns", rows.iter().map(|row| (row.start_time * 1e9).round() as i64));
        columns.u64("packets", rows.iter().map(|row| row.packets));
        columns.finish(rows.len())
    }
}

/// The table of loss intervals at each report, in order of reports.
pub struct LossIntervalRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for LossIntervalRows {
    fn len(&self) -> usize {
        self.analysis.tfrc.loss_intervals.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.analysis.tfrc.loss_intervals.kept.get(start..end).unwrap_or_default();
        let places: Vec<_> = rows.iter().map(|row| (row.flow, row.side)).collect();
        let mut columns = Columns::default();
        place(&mut columns, &self.analysis, self.first_flow, &places);
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.u32("interval", rows.iter().map(|row| row.index));
        columns.f64("packets", rows.iter().map(|row| row.packets));
        columns.finish(rows.len())
    }
}
