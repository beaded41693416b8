//! Columns of frames of 802.11.

use super::GroupTableRow;
use crate::flow::intervals::Count;
use crate::tables::Column;
use crate::tables::column::column;

impl<'a> GroupTableRow<'a> {
    pub(super) const WIFI: &'a [Column<Self>] = &[
        column("wifi_frames", "", "frames of every kind, repeated ones included")
            .null_when("not grouped by station, BSSID or channel")
            .u64(|row| row.of_frames(Count::WifiFrames)),
        column("wifi_bytes", "bytes", "whole frames")
            .null_when("as wifi_frames")
            .u64(|row| row.of_frames(Count::WifiBytes)),
        column("wifi_retry_frames", "", "frames with the retry bit")
            .null_when("as wifi_frames")
            .u64(|row| row.of_frames(Count::WifiRetries)),
        column("wifi_retry_ratio", "", "wifi_retry_frames of all wifi_frames")
            .null_when("as wifi_frames")
            .f64(|row| row.ratio(Count::WifiRetries, Count::WifiFrames)),
        column("wifi_timed_frames", "", "frames with a recorded rate")
            .null_when("as wifi_frames")
            .u64(|row| row.of_frames(Count::WifiTimedFrames)),
        column(
            "wifi_airtime_ns",
            "ns",
            "time on the air of wifi_timed_frames: their bytes at their rates, without preambles and gaps",
        )
        .null_when("wifi_timed_frames is 0")
        .u64(|row| row.if_any(Count::WifiTimedFrames, Count::WifiAirtimeNs)),
        column("wifi_airtime_share", "", "wifi_airtime_ns of the time from start_ns to end_ns")
            .null_when("as wifi_airtime_ns, or no time passed")
            .f64(Self::airtime_share),
        column("wifi_signal_samples", "", "frames with a recorded signal")
            .null_when("as wifi_frames")
            .u64(|row| row.of_frames(Count::WifiSignalSamples)),
        column("wifi_signal_sum_dbm", "dBm", "sum of the signals of these frames")
            .null_when("wifi_signal_samples is 0")
            .i64(|row| row.signal_sum()),
        column("wifi_signal_mean_dbm", "dBm", "their mean")
            .null_when("as wifi_signal_sum_dbm")
            .f64(Self::signal_mean_dbm),
    ];

    fn of_frames(&self, count: Count) -> Option<u64> {
        self.if_any(Count::WifiFrames, count)
    }

    fn airtime_share(&self) -> Option<f64> {
        let duration_ns = self.row.end_ns.saturating_sub(self.row.start_ns);
        let airtime_ns = self.if_any(Count::WifiTimedFrames, Count::WifiAirtimeNs)?;
        (duration_ns > 0).then(|| airtime_ns as f64 / duration_ns as f64)
    }

    fn signal_sum(&self) -> Option<i64> {
        let counts = &self.row.counts;
        (counts.get(Count::WifiSignalSamples) > 0).then(|| counts.get(Count::WifiSignalSum))
    }

    fn signal_mean_dbm(&self) -> Option<f64> {
        Some(self.signal_sum()? as f64 / self.row.counts.get(Count::WifiSignalSamples) as f64)
    }
}
