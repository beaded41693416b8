//! The results of replaying rate algorithms. Python adds the flow and the algorithm.

use super::column::column;
use super::{Column, Row};
use crate::tfrc::Report;
use crate::tfrc::replay::drive_sender::ReplayStep;
use crate::tfrc::replay::inferred_feedback::RoundReport;

impl<'a> Row<'a> for ReplayStep {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("time_ns", "ns", "when it decided").i64(|row| Some(row.time_ns)),
        column(
            "event",
            "",
            "trigger of the decision: a `report` arrived, `no_feedback` until the timer expired, or \
             the `population` of the wireless network changed",
        )
        .name(|row| Some(if row.report.is_some() { "report" } else { "no_feedback" })),
        column("x_bps", "bit/s", "X: allowed sending rate from then on, payload")
            .f64(|row| Some(row.decision.x * 8.0)),
        column(
            "mode",
            "",
            "rule that set X: `slow_start`, `equation`, `receive_limited`, `no_feedback`, `idle`; of \
             MTFRC also `x_t` and `x_fair`; of windows `slow_start`, `congestion_avoidance`, \
             `recovery` and `timeout`",
        )
        .name(|row| Some(row.decision.mode.name())),
        column(
            "reason",
            "",
            "what changed it: `first_report`, `no_rtt`, `doubled`, `held`, `receive_rate`, \
             `leaving_slow_start`, `loss_event`, `loss_free`, `round_trip_time`, `approaching`, \
             `halved`, `limited_by_x_recv`, `limited_by_equation`, `idle`, `population`",
        )
        .name(|row| Some(row.decision.reason.name())),
        column("p", "", "reported loss event rate").null_when("no report").f64(|row| Some(row.report?.p)),
        column("rtt_ms", "ms", "round-trip time sample of the report")
            .null_when("it gave none, or no report")
            .f64(|row| Some(row.report?.r_sample? * 1e3)),
        column("r_ms", "ms", "R: smoothed round-trip time")
            .null_when("not known yet")
            .f64(|row| Some(row.decision.r? * 1e3)),
        column("x_calc_bps", "bit/s", "rate of the throughput equation")
            .null_when("no loss event yet")
            .f64(|row| Some(row.decision.x_calc? * 8.0)),
        column("x_recv_bps", "bit/s", "X_recv: rate at which payload arrived")
            .null_when("no report")
            .f64(|row| Some(row.report?.x_recv * 8.0)),
        column(
            "x_recv_set_bps",
            "bit/s",
            "the highest rate of X_recv_set, which may be a report's before (RFC 5348); elsewhere \
             X_recv of the latest report",
        )
        .null_when("it sets no limit yet, or no TFRC")
        .f64(|row| Some(row.decision.x_recv? * 8.0)),
        column("x_limit_bps", "bit/s", "recv_limit, from what X_recv_set has (RFC 5348), or twice X_recv")
            .null_when("no limit yet")
            .f64(|row| Some(row.decision.x_limit? * 8.0)),
    ]];
}

/// A report, and when it reaches the sender in ns.
pub struct ReportRow(pub i64, pub Report);

impl<'a> Row<'a> for ReportRow {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("time_ns", "ns", "when the report reaches the sender").i64(|row| Some(row.0)),
        column("rtt_ms", "ms", "round-trip time sample of the report")
            .null_when("it gives none")
            .f64(|row| Some(row.1.r_sample? * 1e3)),
        column("p", "", "loss event rate in the report").f64(|row| Some(row.1.p)),
        column("x_recv_bps", "bit/s", "receive rate in the report").f64(|row| Some(row.1.x_recv * 8.0)),
        column("lost_packets", "", "packets lost since the report before").u64(|row| Some(row.1.losses)),
    ]];
}

/// A report on a round of a TCP connection, and when it reaches the sender in ns.
pub struct RoundReportRow(pub i64, pub RoundReport);

impl<'a> Row<'a> for RoundReportRow {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("time_ns", "ns", "when the report reaches the sender").i64(|row| Some(row.0)),
        column("rtt_ms", "ms", "round-trip time of the round").f64(|row| Some(row.1.rtt * 1e3)),
        column("p", "", "loss event rate").f64(|row| Some(row.1.p)),
        column("x_recv_bps", "bit/s", "receive rate").f64(|row| Some(row.1.x_recv * 8.0)),
    ]];
}
