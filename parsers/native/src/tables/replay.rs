//! What the replay of rate algorithms gives, as tables. Who is replayed, and by which algorithm, is added
//! where that is known.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::{Columns, Rows};
use crate::tfrc::Report;
use crate::tfrc::replay::drive_sender::ReplayStep;
use crate::tfrc::replay::inferred_feedback::RoundReport;
use crate::tfrc::replay::nanoseconds;

/// The steps of a sender.
pub struct ReplayRows(pub Vec<ReplayStep>);

impl Rows for ReplayRows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.0.get(start..end).unwrap_or_default();
        let mut columns = Columns::default();
        let event = |row: &ReplayStep| if row.report.is_some() { "report" } else { "no_feedback" };
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.text("event", rows.iter().map(event).map(Some));
        columns.f64("x_bps", rows.iter().map(|row| row.decision.x * 8.0));
        columns.text("mode", rows.iter().map(|row| Some(row.decision.mode.name())));
        columns.text("reason", rows.iter().map(|row| Some(row.decision.reason.name())));
        columns.f64("p", rows.iter().map(|row| row.report.map(|report| report.p)));
        columns.f64("rtt_ms", rows.iter().map(|row| Some(row.report?.r_sample? * 1e3)));
        columns.f64("r_ms", rows.iter().map(|row| row.decision.r.map(|r| r * 1e3)));
        columns.f64("x_calc_bps", rows.iter().map(|row| row.decision.x_calc.map(|x_calc| x_calc * 8.0)));
        columns.f64("x_recv_bps", rows.iter().map(|row| row.report.map(|report| report.x_recv * 8.0)));
        columns.f64("x_recv_set_bps", rows.iter().map(|row| row.decision.x_recv.map(|x_recv| x_recv * 8.0)));
        columns.f64("x_limit_bps", rows.iter().map(|row| row.decision.x_limit.map(|x_limit| x_limit * 8.0)));
        columns.finish(rows.len())
    }
}

/// Reports as they reach a sender.
pub struct ReportRows(pub Vec<(i64, Report)>);

impl Rows for ReportRows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.0.get(start..end).unwrap_or_default();
        let mut columns = Columns::default();
        columns.i64("time_ns", rows.iter().map(|(time_ns, _)| *time_ns));
        columns.f64("rtt_ms", rows.iter().map(|(_, report)| report.r_sample.map(|r_sample| r_sample * 1e3)));
        columns.f64("p", rows.iter().map(|(_, report)| report.p));
        columns.f64("x_recv_bps", rows.iter().map(|(_, report)| report.x_recv * 8.0));
        columns.u64("lost_packets", rows.iter().map(|(_, report)| report.losses));
        columns.finish(rows.len())
    }
}

/// Reports on the rounds of a TCP connection, whose time 0 is `start_ns`.
pub struct RoundRows {
    /// What is shown.
    pub reports: Vec<RoundReport>,
    /// When the first packet was seen.
    pub start_ns: i64,
}

impl Rows for RoundRows {
    fn len(&self) -> usize {
        self.reports.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.reports.get(start..end).unwrap_or_default();
        let mut columns = Columns::default();
        columns.i64("time_ns", rows.iter().map(|report| nanoseconds(report.time, self.start_ns)));
        columns.f64("rtt_ms", rows.iter().map(|report| report.rtt * 1e3));
        columns.f64("p", rows.iter().map(|report| report.p));
        columns.f64("x_recv_bps", rows.iter().map(|report| report.x_recv * 8.0));
        columns.finish(rows.len())
    }
}
