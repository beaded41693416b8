//! Links between 802.11 stations, and their frames.

use std::io;

use super::column::column;
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::packet::frame::station_text;
use crate::pass::Analysis;
use crate::pass::wifi_links::{Link, LinkSample, SignalLevel};

/// A row for each pair of transmitter and receiver.
pub(super) struct Links;

impl PassTable for Links {
    type Row<'a> = LinkRow<'a>;

    fn new(_: &Analysis) -> io::Result<Self> {
        Ok(Self)
    }

    fn len(&self, analysis: &Analysis) -> usize {
        analysis.carried.links.all.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, _: u32) -> Option<LinkRow<'a>> {
        let analysis = shown.analysis;
        let link = analysis.carried.links.all.get(row)?;
        let source = analysis.carried.sources.get(usize::from(link.capture));
        Some(LinkRow { link, source: source.map_or("", |source| &source.source) })
    }
}

/// A link, and the file that shows it.
pub(super) struct LinkRow<'a> {
    link: &'a Link,
    source: &'a str,
}

impl<'a> Row<'a> for LinkRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("transmitter", "", "station whose radio sent")
            .null_when("frames of this kind do not name it")
            .text(|row| row.link.transmitter.map(station_text)),
        column("receiver", "", "station they were for; `ff:ff:ff:ff:ff:ff` is everybody")
            .text(|row| Some(station_text(row.link.receiver))),
        column("bssid", "", "the network of the last frame that names one")
            .null_when("none does")
            .text(|row| row.link.bssid.map(station_text)),
        column("source", "", "file that the link was read from (the first, when files are joined)")
            .name(|row| Some(row.source)),
        column("start_ns", "ns", "first frame").i64(|row| Some(row.link.start_ns)),
        column("end_ns", "ns", "last frame").i64(|row| Some(row.link.end_ns)),
        column("frames", "", "frames of every kind, including repeated ones")
            .u64(|row| Some(row.link.frames)),
        column("data_frames", "", "data frames").u64(|row| Some(row.link.data_frames)),
        column("retry_frames", "", "frames with the retry bit").u64(|row| Some(row.link.retries)),
        column(
            "repeated_frames",
            "",
            "frames that the capture had already shown: retry bit and sequence number (802.11's \
             rule)",
        )
        .u64(|row| Some(row.link.repeats)),
        column("bytes", "bytes", "whole frames").u64(|row| Some(row.link.bytes)),
        column("signal_min_dbm", "dBm", "weakest signal at the capturing radio")
            .null_when("not recorded")
            .f64(|row| row.link.signal_dbm.min().map(f64::from)),
        column("signal_mean_dbm", "dBm", "mean of the frames, in dBm")
            .null_when("not recorded")
            .f64(|row| row.link.signal_dbm.mean()),
        column("signal_max_dbm", "dBm", "strongest signal")
            .null_when("not recorded")
            .f64(|row| row.link.signal_dbm.max().map(f64::from)),
        column("noise_mean_dbm", "dBm", "mean noise at the capturing radio")
            .null_when("not recorded")
            .f64(|row| row.link.noise_dbm.mean()),
        column("rate_mean_mbps", "Mbit/s", "mean rate of the frames")
            .null_when("not recorded")
            .f64(|row| mbps(&row.link.rate_kbps)),
        column("channel_mhz", "MHz", "centre of the channel of the last frame")
            .null_when("not recorded")
            .u32(|row| row.link.channel_mhz.map(u32::from)),
    ]];
}

/// The table of collected frames.
pub(super) struct LinkSamples;

impl PassTable for LinkSamples {
    type Row<'a> = &'a LinkSample;

    fn new(_: &Analysis) -> io::Result<Self> {
        Ok(Self)
    }

    fn len(&self, analysis: &Analysis) -> usize {
        analysis.results.link_samples.kept.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, _: u32) -> Option<&'a LinkSample> {
        shown.analysis.results.link_samples.kept.get(row)
    }
}

impl<'a> Row<'a> for &'a LinkSample {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("time_ns", "ns", "when the frame was seen").i64(|sample| Some(sample.time_ns)),
        column("packet", "", "its number in the source").u64(|sample| Some(sample.packet)),
        column("transmitter", "", "station whose radio sent")
            .null_when("frames of this kind do not name it")
            .text(|sample| sample.frame.transmitter.map(station_text)),
        column("receiver", "", "station it was for").text(|sample| Some(station_text(sample.frame.receiver))),
        column("bssid", "", "network of the frame")
            .null_when("frames of this kind do not name it")
            .text(|sample| sample.frame.bssid.map(station_text)),
        column("kind", "", "type of the frame, such as `data`, `beacon`, `ack`")
            .name(|sample| Some(sample.frame.kind.name())),
        column("retry", "", "1 if it has the retry bit").u32(|sample| Some(sample.frame.is_retry.into())),
        column("repeated", "", "1 if it was captured before").u32(|sample| Some(sample.is_repeat.into())),
        column("bytes", "bytes", "the whole frame").u32(|sample| Some(sample.frame.bytes)),
        column("rate_mbps", "Mbit/s", "rate at which it was sent")
            .null_when("not recorded")
            .f64(|sample| sample.frame.radio.rate_kbps.map(|rate| f64::from(rate.get()) / 1e3)),
        column("signal_dbm", "dBm", "signal at the capturing radio")
            .null_when("not recorded")
            .i64(|sample| sample.frame.radio.signal_dbm.map(i64::from)),
        column("noise_dbm", "dBm", "noise there")
            .null_when("not recorded")
            .i64(|sample| sample.frame.radio.noise_dbm.map(i64::from)),
        column("channel_mhz", "MHz", "centre of its channel")
            .null_when("not recorded")
            .u32(|sample| sample.frame.radio.channel_mhz.map(|mhz| mhz.get().into())),
        column("antenna", "", "antenna of the capturing radio")
            .null_when("not recorded")
            .u32(|sample| sample.frame.radio.antenna.map(u32::from)),
    ]];
}

fn mbps(kbps: &SignalLevel) -> Option<f64> {
    kbps.mean().map(|mean| mean / 1e3)
}
