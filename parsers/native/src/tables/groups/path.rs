//! Columns of packets of which a trace shows both ends, and of `ping`.

use super::GroupTableRow;
use crate::flow::intervals::{Count, Duration};
use crate::tables::Column;
use crate::tables::column::column;

impl<'a> GroupTableRow<'a> {
    pub(super) const PATH: &'a [Column<Self>] = &[
        column(
            "path_packets",
            "",
            "packets of which the trace shows whether they arrived (simulations, pairs of captures), in the \
             interval in which they were sent",
        )
        .null_when("none")
        .u64(|row| row.if_any(Count::PathPackets, Count::PathPackets)),
        column("path_lost_packets", "", "of them lost")
            .null_when("as path_packets")
            .u64(|row| row.if_any(Count::PathPackets, Count::PathLost)),
        column("path_loss_ratio", "", "path_lost_packets of all path_packets")
            .null_when("as path_packets")
            .f64(|row| row.ratio(Count::PathLost, Count::PathPackets)),
        column("delay_samples", "", "one-way delays of those that arrived")
            .null_when("as connect_samples")
            .u64(|row| row.samples(Duration::Delay)),
        column("delay_p50_ms", "ms", "their median, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Delay, 0.50)),
        column("delay_p95_ms", "ms", "their 95th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Delay, 0.95)),
        column(
            "echo_requests",
            "",
            "ICMP echo requests (`ping`), and probes of IRTT, TWAMP and STAMP, that went this way in the interval, \
             repeated ones once; what became of them counts here, too; probes to which nobody ever replied, as of \
             OWAMP, count for none",
        )
        .u64(|row| row.count(Count::EchoRequests)),
        column("echo_unanswered", "", "of them without a reply until the end of the trace")
            .u64(|row| row.count(Count::EchoUnanswered)),
        column("echo_samples", "", "times from a request to its reply")
            .null_when("as connect_samples")
            .u64(|row| row.samples(Duration::Echo)),
        column("echo_p50_ms", "ms", "their median, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Echo, 0.50)),
        column("echo_p95_ms", "ms", "their 95th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Echo, 0.95)),
        column(
            "oneway_delay_samples",
            "",
            "test packets of OWAMP, TWAMP and STAMP (probes and replies) with the delay from their sender to the capture: \
             the sender states a synchronised clock, and an error below the delays (RFC 4656 section 4.1.2)",
        )
        .null_when("as connect_samples")
        .u64(|row| row.samples(Duration::OnewayDelay)),
        column("oneway_delay_p50_ms", "ms", "median of these delays, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::OnewayDelay, 0.50)),
        column("oneway_delay_p95_ms", "ms", "their 95th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::OnewayDelay, 0.95)),
        column(
            "oneway_variation_samples",
            "",
            "such test packets, whatever the sender's clock, with the delay variation (RFC 5481 section 4.2): the delay \
             above the least one of the sender, without the drift of its clock",
        )
        .null_when("as connect_samples")
        .u64(|row| row.samples(Duration::OnewayVariation)),
        column("oneway_variation_p50_ms", "ms", "median of it, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::OnewayVariation, 0.50)),
        column("oneway_variation_p95_ms", "ms", "its 95th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::OnewayVariation, 0.95)),
    ];

    /// A share of a count; None if that is 0.
    pub(super) fn ratio(&self, part: Count, whole: Count) -> Option<f64> {
        let whole = self.count(whole).filter(|&whole| whole > 0)?;
        Some(self.count(part)? as f64 / whole as f64)
    }
}
