//! Links between 802.11 stations, and their frames, as tables.

use std::fmt::Write;
use std::num::NonZeroU32;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::{Columns, Rows};
use crate::packet::frame::Station;
use crate::pass::Analysis;
use crate::pass::wifi_links::{Link, LinkSample, SignalLevel};

/// The table of links: one row for each pair of transmitter and receiver.
pub struct LinkRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
}

impl Rows for LinkRows {
    fn len(&self) -> usize {
        self.analysis.links.all.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let links = self.analysis.links.all.get(start..end).unwrap_or_default();
        let mut columns = Columns::default();
        columns.text("transmitter", links.iter().map(|link| link.transmitter.map(station_text)));
        columns.text("receiver", links.iter().map(|link| Some(station_text(link.receiver))));
        columns.text("bssid", links.iter().map(|link| link.bssid.map(station_text)));
        columns.i64("start_ns", links.iter().map(|link| link.start_ns));
        columns.i64("end_ns", links.iter().map(|link| link.end_ns));
        let mut counts = |name: &str, value: fn(&Link) -> u64| {
            columns.u64(name, links.iter().map(value));
        };
        counts("frames", |link| link.frames);
        counts("data_frames", |link| link.data_frames);
        counts("retry_frames", |link| link.retries);
        counts("repeated_frames", |link| link.repeats);
        counts("bytes", |link| link.bytes);
        let mut values = |name: &str, value: fn(&Link) -> Option<f64>| {
            columns.f64(name, links.iter().map(value));
        };
        values("signal_min_dbm", |link| link.signal_dbm.min().map(f64::from));
        values("signal_mean_dbm", |link| link.signal_dbm.mean());
        values("signal_max_dbm", |link| link.signal_dbm.max().map(f64::from));
        values("noise_mean_dbm", |link| link.noise_dbm.mean());
        values("rate_mean_mbps", |link| mbps(&link.rate_kbps));
        columns.u32("channel_mhz", links.iter().map(|link| link.channel_mhz.map(u32::from)));
        columns.finish(links.len())
    }
}

/// The table of frames, as far as they were collected.
pub struct LinkSampleRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
}

impl Rows for LinkSampleRows {
    fn len(&self) -> usize {
        self.analysis.link_samples.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let samples = self.analysis.link_samples.kept.get(start..end).unwrap_or_default();
        let mut columns = Columns::default();
        columns.i64("time_ns", samples.iter().map(|sample| sample.time_ns));
        columns.u64("packet", samples.iter().map(|sample| sample.packet));
        columns.text("transmitter", samples.iter().map(|sample| sample.frame.transmitter.map(station_text)));
        columns.text("receiver", samples.iter().map(|sample| Some(station_text(sample.frame.receiver))));
        columns.text("bssid", samples.iter().map(|sample| sample.frame.bssid.map(station_text)));
        columns.text("kind", samples.iter().map(|sample| Some(sample.frame.kind.name())));
        columns.u32("retry", samples.iter().map(|sample| u32::from(sample.frame.is_retry)));
        columns.u32("repeated", samples.iter().map(|sample| u32::from(sample.is_repeat)));
        columns.u32("bytes", samples.iter().map(|sample| sample.frame.bytes));
        columns.f64("rate_mbps", samples.iter().map(rate_mbps));
        let level =
            |value: fn(&LinkSample) -> Option<i8>| samples.iter().map(value).map(|v| v.map(i64::from));
        columns.i64("signal_dbm", level(|sample| sample.frame.radio.signal_dbm));
        columns.i64("noise_dbm", level(|sample| sample.frame.radio.noise_dbm));
        let channel = |sample: &LinkSample| sample.frame.radio.channel_mhz.map(|mhz| u32::from(mhz.get()));
        columns.u32("channel_mhz", samples.iter().map(channel));
        columns.u32("antenna", samples.iter().map(|sample| sample.frame.radio.antenna.map(u32::from)));
        columns.finish(samples.len())
    }
}

fn rate_mbps(sample: &LinkSample) -> Option<f64> {
    sample.frame.radio.rate_kbps.map(|rate: NonZeroU32| f64::from(rate.get()) / 1e3)
}

fn mbps(kbps: &SignalLevel) -> Option<f64> {
    kbps.mean().map(|mean| mean / 1e3)
}

/// Six bytes in hexadecimal with colons between them.
fn station_text(station: Station) -> String {
    let mut text = String::with_capacity(17);
    for (at, byte) in station.iter().enumerate() {
        let colon = if at > 0 { ":" } else { "" };
        // Writing into a String cannot fail.
        let _ = write!(text, "{colon}{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_notation_of_a_station() {
        assert_eq!(station_text([0, 1, 0x2a, 0xff, 0x10, 9]), "00:01:2a:ff:10:09");
    }
}
