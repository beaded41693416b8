//! TFRC's reports, loss events and loss intervals as tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::flows::FlowRow;
use super::{Columns, Rows, retransmissions, rtp};
use crate::flow::direction_name;
use crate::flow::tfrc::findings::FindingSample;
use crate::flow::tfrc::{FeedbackSample, LossIntervalSample, TakenReport, TfrcSummary};
use crate::packet::key::Side;
use crate::pass::Analysis;

/// What the table of flows tells of TFRC, and of TCP by its measures.
pub(super) fn flow_columns(rows: &[FlowRow<'_>], columns: &mut Columns) {
    // What is rebuilt without a report is nothing where losses do not show.
    let tells = |row: &FlowRow<'_>, ends: &TfrcSummary| ends.feedback_packets > 0 || row.shows_arrivals();
    let events = |row: &FlowRow<'_>| match row.tfrc() {
        Some(ends) if row.shows_arrivals() => ends.loss_events,
        Some(ends) => ends.inferred_loss_events,
        None => retransmissions::loss_events(row),
    };
    columns.u64("loss_events", rows.iter().map(events));
    let rate = |row: &FlowRow<'_>| match row.tfrc() {
        Some(ends) => {
            ends.p.filter(|_| tells(row, &ends)).or(ends.inferred_p.filter(|_| !row.shows_arrivals()))
        }
        None => retransmissions::loss_event_rate(row),
    };
    columns.f64("loss_event_rate", rows.iter().map(rate));
    let reports = |row: &FlowRow<'_>| match (row.tfrc(), row.flow.rtp()) {
        (_, Some(rtp)) if rtp.direction(row.side).has_media() => Some(rtp.direction(row.side).reports()),
        (ends, _) => ends.map(|ends| ends.feedback_packets),
    };
    columns.u64("feedback_packets", rows.iter().map(reports));
    let x_recv = |row: &FlowRow<'_>| row.tfrc().filter(|ends| tells(row, ends))?.x_recv;
    columns.f64("x_recv_bps", rows.iter().map(|row| x_recv(row).map(|x_recv| x_recv * 8.0)));
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
        let received_ns = |row: &FeedbackSample| {
            // A capture shows reports on media as they pass.
            row.taken.map(|taken| taken.time_ns).or(row.media.map(|_| row.sent_ns))
        };
        columns.i64("received_ns", rows.iter().map(received_ns));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.u64("sequence", rows.iter().map(|row| row.sequence));
        let shows = ArrivalVisibility::of(&self.analysis, &places);
        let known = |at, row: &FeedbackSample| match shows.at(at) {
            true => row.p.map(|p| (p, "packets")),
            false => row.inferred_p,
        };
        let p = |at, row: &FeedbackSample| known(at, row).map(|(p, _)| p);
        let x_recv = |at: usize, row: &FeedbackSample| {
            row.x_recv.filter(|_| shows.at(at) || row.media.is_some()).map(|x| x * 8.0)
        };
        let numbered = || rows.iter().enumerate();
        columns.f64("p", numbered().map(|(at, row)| p(at, row)));
        columns.text("p_from", numbered().map(|(at, row)| known(at, row).map(|(_, from)| from)));
        columns.f64("reported_p", rows.iter().map(|row| row.reported_p));
        let difference = |at, row: &FeedbackSample| Some(row.reported_p? - p(at, row)?);
        columns.f64("p_difference", numbered().map(|(at, row)| difference(at, row)));
        let reported = |row: &FeedbackSample| row.reported_x_recv.map(|x_recv| x_recv * 8.0);
        columns.f64("x_recv_bps", numbered().map(|(at, row)| x_recv(at, row)));
        columns.f64("reported_x_recv_bps", rows.iter().map(reported));
        let difference = |at, row: &FeedbackSample| Some(reported(row)? - x_recv(at, row)?);
        columns.f64("x_recv_difference_bps", numbered().map(|(at, row)| difference(at, row)));
        columns.f64("elapsed_ms", rows.iter().map(|row| row.elapsed.map(|elapsed| elapsed * 1e3)));
        columns.u64("lost_packets", rows.iter().map(|row| row.losses));
        sender_columns(rows, &mut columns);
        rtp::feedback_columns(&self.analysis, rows, &mut columns);
        columns.finish(rows.len())
    }
}

/// What the sender made of each report.
fn sender_columns(rows: &[FeedbackSample], columns: &mut Columns) {
    let r_sample = |row: &FeedbackSample| match row.media {
        Some(media) => media.rtt,
        None => row.taken?.r_sample.map(|(r_sample, by)| (r_sample, by.name())),
    };
    columns.f64("rtt_ms", rows.iter().map(|row| r_sample(row).map(|(r_sample, _)| r_sample * 1e3)));
    let mut taken = |name: &str, value: fn(&TakenReport) -> Option<f64>| {
        columns.f64(name, rows.iter().map(|row| row.taken.as_ref().and_then(value)));
    };
    taken("r_ms", |taken| Some(taken.r * 1e3));
    taken("r_sqmean", |taken| taken.rfc?.damping.map(|damping| damping.r_sqmean));
    taken("t_rto_ms", |taken| Some(taken.t_rto * 1e3));
    taken("x_bps", |taken| Some(taken.x * 8.0));
    taken("x_inst_bps", |taken| taken.rfc?.damping.map(|damping| damping.x_inst * 8.0));
    taken("sent_bps", |taken| taken.rfc?.x_sent.map(|x_sent| x_sent * 8.0));
    let is_limited = |row: &FeedbackSample| row.taken?.rfc.map(|rfc| u32::from(rfc.is_data_limited));
    columns.u32("data_limited", rows.iter().map(is_limited));
    columns.text("rtt_method", rows.iter().map(|row| r_sample(row).map(|(_, method)| method)));
    columns.text("mode", rows.iter().map(|row| row.taken.map(|taken| taken.mode)));
}

/// Whether arrivals at the receiver, and so its losses, can be seen in the directions of some rows.
struct ArrivalVisibility<'a> {
    places: &'a [(u32, Side)],
    shown: HashMap<(u32, Side), bool>,
}

impl<'a> ArrivalVisibility<'a> {
    fn of(analysis: &Analysis, places: &'a [(u32, Side)]) -> Self {
        let mut shown = HashMap::new();
        for &(flow, side) in places {
            shown
                .entry((flow, side))
                .or_insert_with(|| analysis.shows_arrivals(analysis.flows.get(flow), side));
        }
        Self { places, shown }
    }

    fn at(&self, row: usize) -> bool {
        self.places.get(row).and_then(|place| self.shown.get(place)).copied().unwrap_or_default()
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
        columns.i64("lost_ns", rows.iter().map(|row| row.lost_ns));
        columns.u64("packets", rows.iter().map(|row| row.packets));
        columns.finish(rows.len())
    }
}

/// The table of findings, in order of time.
pub struct FindingRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for FindingRows {
    fn len(&self) -> usize {
        self.analysis.tfrc.findings.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.analysis.tfrc.findings.kept.get(start..end).unwrap_or_default();
        let places: Vec<_> = rows.iter().map(|row| (row.at.flow, row.at.side)).collect();
        let mut columns = Columns::default();
        place(&mut columns, &self.analysis, self.first_flow, &places);
        columns.i64("time_ns", rows.iter().map(|row| row.at.time_ns));
        columns.u64("packet", rows.iter().map(|row| row.at.packet));
        columns.text("finding", rows.iter().map(|row| Some(row.finding.kind.name())));
        columns.text("end", rows.iter().map(|row| Some(row.finding.kind.end())));
        columns.text("rule", rows.iter().map(|row| Some(row.finding.kind.rule())));
        columns.f64("value", rows.iter().map(|row| row.finding.value));
        columns.f64("limit", rows.iter().map(|row| row.finding.limit));
        let unit = |row: &FindingSample| row.finding.value.map(|_| row.finding.kind.unit());
        columns.text("unit", rows.iter().map(unit));
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
        let shows = ArrivalVisibility::of(&self.analysis, &places);
        let packets = |at, row: &LossIntervalSample| if shows.at(at) { row.packets } else { row.inferred };
        columns.f64("packets", rows.iter().enumerate().map(|(at, row)| packets(at, row)));
        columns.f64("reported_packets", rows.iter().map(|row| Some(row.reported?.packets)));
        columns.u32("reported_lost", rows.iter().map(|row| row.reported?.lost));
        columns.finish(rows.len())
    }
}
