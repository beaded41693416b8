//! Columns of what receivers report of RTP.

use super::FlowRow;
use crate::flow::rtp::RtpDirection;
use crate::flow::rtp::media_source::ReportedLoss;
use crate::tables::Column;
use crate::tables::column::column;

impl<'a> FlowRow<'a> {
    pub(super) const RTP: &'a [Column<Self>] = &[
        column(
            "reported_lost_packets",
            "",
            "packets lost on the whole path, less duplicates, by the last report blocks of RTP's receivers (RFC 3550 \
             section 6.4), summed over sources; of a source that began before the capture since the first report",
        )
        .null_when("not RTP, or no such report on a source that the capture shows")
        .i64(|row| Some(row.reported_loss()?.lost)),
        column("reported_expected_packets", "", "packets that the receivers expected up to these reports")
            .null_when("as reported_lost_packets")
            .u64(|row| Some(row.reported_loss()?.expected)),
        column(
            "reported_plr",
            "",
            "reported_lost_packets (0 for fewer) of reported_expected_packets: the loss ratio of the whole path",
        )
        .null_when("as reported_lost_packets, nothing was expected, or less than was lost: from before the capture")
        .f64(|row| row.reported_loss()?.ratio()),
        column("reported_jitter_ms", "ms", "jitter of the largest source by the receiver's last report block")
            .null_when("as reported_lost_packets, or the rate of the media clock is not known")
            .f64(|row| {
                let source = row.rtp()?.main_source()?;
                Some(source.clock.seconds(source.last_report?.jitter)? * 1e3)
            }),
    ];

    fn rtp(&self) -> Option<&'a RtpDirection> {
        Some(self.flow.transport.rtp()?.direction(self.side))
    }

    fn reported_loss(&self) -> Option<ReportedLoss> {
        self.rtp()?.reported_loss()
    }
}
