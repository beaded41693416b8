//! TFRC's reports, loss events, loss intervals and findings.

use std::collections::HashMap;
use std::io;

use super::column::column;
use super::flows::FlowRow;
use super::samples::{Sample, SampleRow};
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tfrc::findings::FindingSample;
use crate::flow::tfrc::{FeedbackSample, LossEventSample, LossIntervalSample, TfrcSummary};
use crate::packet::key::Side;
use crate::pass::Analysis;

/// Of TFRC, and of TCP by its measures.
impl<'a> FlowRow<'a> {
    pub(super) const TFRC: &'a [Column<Self>] = &[
        column(
            "loss_events",
            "",
            "losses, where all within a round-trip time of the first are one event (RFC 5348 section \
             5.2): of TFRC those its receiver detected, of TCP those before and beyond the capture",
        )
        .null_when(
            "TCP: as retransmitted_packets, or no round-trip time is known; TFRC: without \
            the flow's beginning or any report, the chosen layer is not that of its agents, or the capture shows \
            none and may have been made before the losses",
        )
        .u64(FlowRow::loss_events),
        column(
            "loss_event_rate",
            "",
            "of TFRC p in the last report of its receiver; of TCP loss_events of all data segments \
             sent",
        )
        .null_when("as loss_events, or without data or reports")
        .f64(FlowRow::loss_event_rate),
        column("feedback_packets", "", "reports about this direction's data")
            .null_when("not TFRC, or the chosen layer is not that of its agents")
            .u64(FlowRow::feedback_packets),
        column("x_recv_bps", "bit/s", "receive rate in the last report of TFRC's receiver: payload")
            .null_when("as loss_event_rate")
            .f64(|row| Some(row.tfrc().filter(|ends| row.knows_rates(ends))?.x_recv? * 8.0)),
        column("srtt_ms", "ms", "R: smoothed round-trip time of TFRC's sender")
            .null_when("no report arrived")
            .f64(|row| Some(row.tfrc()?.r? * 1e3)),
    ];

    /// Values reconstructed without a report are only correct where losses are visible.
    fn knows_rates(&self, ends: &TfrcSummary) -> bool {
        ends.feedback_packets > 0 || self.shows_arrivals()
    }

    /// Whether all packets arrived if the capture shows no loss.
    fn shows_every_loss(&self) -> bool {
        let is_known =
            self.delivery().is_some_and(|delivery| delivery.is_counted() && !delivery.missing.any());
        is_known || self.flow.shows_both_ends(self.side) || self.believed_vantage() == Some(Vantage::Receiver)
    }

    fn loss_events(&self) -> Option<u64> {
        match self.tfrc() {
            Some(ends) if self.shows_arrivals() => {
                let is_reported = ends.feedback_packets > 0 && ends.p == Some(0.0);
                ends.loss_events.filter(|&events| events > 0 || is_reported || self.shows_every_loss())
            }
            Some(ends) => ends.inferred_loss_events,
            None => self.tcp_loss_events(),
        }
    }

    fn loss_event_rate(&self) -> Option<f64> {
        let Some(ends) = self.tfrc() else { return self.tcp_loss_event_rate() };
        let inferred = || ends.inferred_p.filter(|_| !self.shows_arrivals());
        let is_known = |p| p > 0.0 || ends.feedback_packets > 0 || self.shows_every_loss();
        ends.p.filter(|&p| self.knows_rates(&ends) && is_known(p)).or_else(inferred)
    }

    fn feedback_packets(&self) -> Option<u64> {
        match self.flow.transport.rtp().map(|rtp| rtp.direction(self.side)) {
            Some(rtp) if rtp.has_media() => Some(rtp.reports()),
            _ => self.tfrc().map(|ends| ends.feedback_packets),
        }
    }
}

/// Whether arrivals at the receiver, and so its losses, are visible, by flow and side.
struct ArrivalVisibility(HashMap<(u32, Side), bool>);

impl ArrivalVisibility {
    fn of<S: Sample>(analysis: &Analysis) -> Self {
        let mut shown = HashMap::new();
        for (flow, side) in S::kept(analysis).iter().map(Sample::place) {
            let shows = || analysis.options.shows_arrivals(analysis.carried.flows.get(flow), side);
            shown.entry((flow, side)).or_insert_with(shows);
        }
        Self(shown)
    }

    fn at(&self, place: (u32, Side)) -> bool {
        self.0.get(&place).copied().unwrap_or_default()
    }
}

/// The table of reports, in order of sending.
pub(super) struct Feedback(ArrivalVisibility);

/// A report, and whether the losses that it covers are visible.
pub struct FeedbackRow<'a> {
    pub(super) report: SampleRow<'a, FeedbackSample>,
    shows_arrivals: bool,
}

impl Sample for FeedbackSample {
    fn kept(analysis: &Analysis) -> &[Self] {
        &analysis.results.tfrc.feedback.kept
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

impl PassTable for Feedback {
    type Row<'a> = FeedbackRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        Ok(Self(ArrivalVisibility::of::<FeedbackSample>(analysis)))
    }

    fn len(&self, analysis: &Analysis) -> usize {
        FeedbackSample::kept(analysis).len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<FeedbackRow<'a>> {
        let report = SampleRow::<FeedbackSample>::at(shown, row, first_flow)?;
        let shows_arrivals = self.0.at(report.sample.place());
        Some(FeedbackRow { report, shows_arrivals })
    }
}

impl<'a> Row<'a> for FeedbackRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[Self::REPORT, Self::SENDER, Self::ON_MEDIA];
}

impl<'a> FeedbackRow<'a> {
    const REPORT: &'a [Column<Self>] = &[
        column("flow", "", "number of the conversation").u32(|row| Some(row.report.flow)),
        column("direction", "", "direction of the data that the report is about")
            .name(|row| Some(row.report.direction)),
        column("time_ns", "ns", "when TFRC's receiver sent the report; in a capture when it passed")
            .i64(|row| Some(row.report.sample.sent_ns)),
        column(
            "received_ns",
            "ns",
            "when it arrived, in a capture when it passed; a second row if it arrived twice",
        )
        .null_when("the report never arrived, or no round-trip time is known")
        .i64(FeedbackRow::received_ns),
        column("packet", "", "its number in the source, where it was sent")
            .u64(|row| Some(row.report.sample.packet)),
        column("sequence", "", "highest sequence number that had arrived")
            .null_when("not in the trace")
            .u64(|row| row.report.sample.sequence),
        column("p", "", "loss event rate as rebuilt; 0 before the first loss event")
            .null_when(
                "no data in the trace, or captured at their sender and the reports name no \
            receive rate",
            )
            .f64(|row| Some(row.p()?.0)),
        column(
            "p_from",
            "",
            "source of p: `packets` that are missing; where losses are beyond the capture, what \
             reports name (`ack_vector`, `loss_intervals`, `rfc8888`, `twcc`), or else what follows \
             from their `receive_rate` (bytes sent less that rate times time)",
        )
        .null_when("as p")
        .name(|row| Some(row.p()?.1)),
        column("reported_p", "", "loss event rate in the report")
            .null_when("it names none")
            .f64(|row| row.report.sample.reported_p),
        column("p_difference", "", "reported_p - p")
            .null_when("either is not known")
            .f64(|row| Some(row.report.sample.reported_p? - row.p()?.0)),
        column("x_recv_bps", "bit/s", "rate at which payload arrived, as rebuilt")
            .null_when("captured at the sender of the data")
            .f64(FeedbackRow::x_recv_bps),
        column("reported_x_recv_bps", "bit/s", "receive rate in the report")
            .null_when("it names none")
            .f64(FeedbackRow::reported_x_recv_bps),
        column("x_recv_difference_bps", "bit/s", "reported_x_recv_bps - x_recv_bps")
            .null_when("either is not known")
            .f64(|row| Some(row.reported_x_recv_bps()? - row.x_recv_bps()?)),
        column(
            "elapsed_ms",
            "ms",
            "time for which the receiver reports to have held the acknowledged packet",
        )
        .null_when("the report names none")
        .f64(|row| Some(row.report.sample.elapsed? * 1e3)),
        column(
            "lost_packets",
            "",
            "packets lost or marked since the report before, which ns-2's sink reports to its sender",
        )
        .null_when("not a report of ns-2")
        .u64(|row| row.report.sample.losses),
    ];

    /// The sender's state after the report.
    const SENDER: &'a [Column<Self>] = &[
        column("rtt_ms", "ms", "round-trip time that the report gave the sender")
            .null_when("as received_ns")
            .f64(|row| Some(row.rtt()?.0 * 1e3)),
        column("r_ms", "ms", "R: smoothed round-trip time after it")
            .null_when("as received_ns")
            .f64(|row| Some(row.report.sample.taken?.r * 1e3)),
        column(
            "r_sqmean",
            "s^0.5",
            "R_sqmean: mean square root of the round-trip times (RFC 5348 section 4.5)",
        )
        .null_when("as received_ns, ns-2, or the data carry R itself instead of samples")
        .f64(|row| Some(row.report.sample.taken?.rfc?.damping?.r_sqmean)),
        column("t_rto_ms", "ms", "t_RTO of the throughput equation after it")
            .null_when("as received_ns")
            .f64(|row| Some(row.report.sample.taken?.t_rto * 1e3)),
        column("x_bps", "bit/s", "X: allowed sending rate after it, payload")
            .null_when("as received_ns")
            .f64(|row| Some(row.report.sample.taken?.x * 8.0)),
        column(
            "x_inst_bps",
            "bit/s",
            "X_inst: the same, less while the round-trip time grows (RFC 5348 section 4.5)",
        )
        .null_when("as r_sqmean")
        .f64(|row| Some(row.report.sample.taken?.rfc?.damping?.x_inst * 8.0)),
        column("sent_bps", "bit/s", "payload that was sent since the report before")
            .null_when(
                "as received_ns, the first report, not captured at the sender of the data, or \
            ns-2",
            )
            .f64(|row| Some(row.report.sample.taken?.rfc?.x_sent? * 8.0)),
        column(
            "data_limited",
            "",
            "1 if sent_bps was less than nine tenths of X: the application had no more data",
        )
        .null_when("as received_ns, or ns-2")
        .u32(|row| Some(row.report.sample.taken?.rfc?.is_data_limited.into())),
        column(
            "rtt_method",
            "",
            "how rtt_ms was measured: `ack` (acknowledged packet and elapsed time), `timestamp` \
             (echo), `ccval` (window counter, RFC 4342 section 8.1), `estimate` (RFC 6323)",
        )
        .null_when("as received_ns")
        .name(|row| Some(row.rtt()?.1)),
        column(
            "mode",
            "",
            "rule that set X: `slow_start`, `equation` or `receive_rate`; of ns-2's agents \
             `slow_start`, `leaving_slow_start`, `increase` or `decrease` towards the equation's \
             rate",
        )
        .null_when("as received_ns")
        .name(|row| Some(row.report.sample.taken?.mode)),
    ];

    /// A capture shows reports on media as they pass.
    fn received_ns(&self) -> Option<i64> {
        let sample = self.report.sample;
        sample.taken.map(|taken| taken.time_ns).or(sample.media.map(|_| sample.sent_ns))
    }

    /// The reconstructed loss event rate, and how it is known.
    fn p(&self) -> Option<(f64, &'static str)> {
        let sample = self.report.sample;
        if self.shows_arrivals { sample.p.map(|p| (p, "packets")) } else { sample.inferred_p }
    }

    fn x_recv_bps(&self) -> Option<f64> {
        let sample = self.report.sample;
        sample.x_recv.filter(|_| self.shows_arrivals || sample.media.is_some()).map(|x_recv| x_recv * 8.0)
    }

    fn reported_x_recv_bps(&self) -> Option<f64> {
        self.report.sample.reported_x_recv.map(|x_recv| x_recv * 8.0)
    }

    /// The RTT sample of the report in seconds, and how it was measured.
    fn rtt(&self) -> Option<(f64, &'static str)> {
        match self.report.sample.media {
            Some(media) => media.rtt,
            None => self.report.sample.taken?.r_sample.map(|(r_sample, by)| (r_sample, by.name())),
        }
    }
}

impl Sample for LossEventSample {
    fn kept(analysis: &Analysis) -> &[Self] {
        &analysis.results.tfrc.loss_events.kept
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

impl<'a> Row<'a> for SampleRow<'a, LossEventSample> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data").name(|row| Some(row.direction)),
        column("time_ns", "ns", "when the receiver detected it").i64(|row| Some(row.sample.time_ns)),
        column("packet", "", "number in the source of the packet that revealed it")
            .u64(|row| Some(row.sample.packet)),
        column("start_sequence", "", "sequence number of the first packet lost or marked")
            .i64(|row| Some(row.sample.start)),
        column(
            "lost_ns",
            "ns",
            "when that was sent or would have come, between its neighbours (RFC 5348 section 5.2)",
        )
        .i64(|row| Some(row.sample.lost_ns)),
        column(
            "packets",
            "",
            "packets lost or marked in it, as far as known: Loss Intervals name the first one only",
        )
        .u64(|row| Some(row.sample.packets)),
    ]];
}

impl Sample for FindingSample {
    fn kept(analysis: &Analysis) -> &[Self] {
        &analysis.results.tfrc.findings.kept
    }

    fn place(&self) -> (u32, Side) {
        (self.at.flow, self.at.side)
    }
}

impl<'a> Row<'a> for SampleRow<'a, FindingSample> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data concerned").name(|row| Some(row.direction)),
        column("time_ns", "ns", "time of the packet that showed it").i64(|row| Some(row.sample.at.time_ns)),
        column("packet", "", "number in the source of the packet that showed it")
            .u64(|row| Some(row.sample.at.packet)),
        column(
            "finding",
            "",
            "rule that was broken, by name; listed in `docs/tfrc.md` and `docs/conformance.md`",
        )
        .name(|row| Some(row.sample.finding.kind.facts().name)),
        column("end", "", "end that broke it: `sender`, `receiver`, or `path` if neither")
            .name(|row| Some(row.sample.finding.kind.facts().end)),
        column("rule", "", "source of the rule").name(|row| Some(row.sample.finding.kind.facts().rule)),
        column(
            "level",
            "",
            "how the source requires it: `MUST`, `SHOULD`, or `paper`, which describes it only",
        )
        .null_when("a rule of TFRC or DCCP")
        .name(|_| None),
        column("value", "", "value found, in `unit`")
            .null_when("nothing to be measured")
            .f64(|row| row.sample.finding.value),
        column("limit", "", "value that the rule allows, in `unit`")
            .null_when("as value")
            .f64(|row| row.sample.finding.limit),
        column("unit", "", "unit of value and limit")
            .null_when("as value")
            .name(|row| row.sample.finding.value.map(|_| row.sample.finding.kind.facts().unit)),
    ]];
}

/// The table of loss intervals at each report, in order of reports.
pub(super) struct LossIntervals(ArrivalVisibility);

/// A loss interval, and whether the losses around it are visible.
pub struct LossIntervalRow<'a> {
    interval: SampleRow<'a, LossIntervalSample>,
    shows_arrivals: bool,
}

impl Sample for LossIntervalSample {
    fn kept(analysis: &Analysis) -> &[Self] {
        &analysis.results.tfrc.loss_intervals.kept
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

impl PassTable for LossIntervals {
    type Row<'a> = LossIntervalRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        Ok(Self(ArrivalVisibility::of::<LossIntervalSample>(analysis)))
    }

    fn len(&self, analysis: &Analysis) -> usize {
        LossIntervalSample::kept(analysis).len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<LossIntervalRow<'a>> {
        let interval = SampleRow::<LossIntervalSample>::at(shown, row, first_flow)?;
        let shows_arrivals = self.0.at(interval.sample.place());
        Some(LossIntervalRow { interval, shows_arrivals })
    }
}

impl<'a> Row<'a> for LossIntervalRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.interval.flow)),
        column("direction", "", "direction of the data").name(|row| Some(row.interval.direction)),
        column("time_ns", "ns", "when the receiver sent a report")
            .i64(|row| Some(row.interval.sample.time_ns)),
        column("packet", "", "number of the report in the source")
            .u64(|row| Some(row.interval.sample.packet)),
        column("interval", "", "0 for the open one, 1 for the newest that a loss event closed, to 8")
            .u32(|row| Some(row.interval.sample.index)),
        column("packets", "", "its length as rebuilt; the first of a flow follows from the receive rate")
            .null_when("as p, or only the report has it")
            .f64(LossIntervalRow::packets),
        column("reported_packets", "", "its length in the report")
            .null_when("it names none")
            .f64(|row| Some(row.interval.sample.reported?.packets)),
        column(
            "reported_lost",
            "",
            "packets lost or marked in it as the report names them (CCID 4, RFC 5622 section 8.7)",
        )
        .null_when("it names none")
        .u32(|row| row.interval.sample.reported?.lost),
    ]];
}

impl LossIntervalRow<'_> {
    fn packets(&self) -> Option<f64> {
        if self.shows_arrivals { self.interval.sample.packets } else { self.interval.sample.inferred }
    }
}
