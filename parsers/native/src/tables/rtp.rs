//! RTP's sources as a table, and what reports on media add to that of feedback.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::{Columns, Rows};
use crate::flow::direction_name;
use crate::flow::rtp::RateBy;
use crate::flow::rtp::media_reports::MediaReport;
use crate::flow::rtp::media_source::MediaSource;
use crate::flow::tfrc::FeedbackSample;
use crate::packet::key::Side;
use crate::pass::Analysis;

/// The table of sources, in order of flow, direction and appearance.
pub struct RtpSourceRows {
    analysis: Arc<Analysis>,
    first_flow: u32,
    /// Flow, side, and which of its sources.
    places: Vec<(u32, Side, usize)>,
}

impl RtpSourceRows {
    /// All sources of `analysis`, whose flows are numbered from `first_flow`.
    pub fn new(analysis: Arc<Analysis>, first_flow: u32) -> Self {
        let mut places = Vec::new();
        for number in 0..analysis.flows.len() as u32 {
            let flow = analysis.flows.get(number);
            let Some(rtp) = flow.rtp() else { continue };
            for side in [flow.forward(), flow.forward().other()] {
                let sources = rtp.direction(side).sources().len();
                places.extend((0..sources).map(|at| (number, side, at)));
            }
        }
        Self { analysis, first_flow, places }
    }

    fn source(&self, &(flow, side, at): &(u32, Side, usize)) -> Option<&MediaSource> {
        self.analysis.flows.get(flow).rtp()?.direction(side).sources().get(at)
    }
}

impl Rows for RtpSourceRows {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let places = self.places.get(start..end).unwrap_or_default();
        let mut columns = Columns::default();
        let direction =
            |place: &(u32, Side, usize)| direction_name(place.1, self.analysis.flows.get(place.0).forward());
        columns.u32("flow", places.iter().map(|(flow, ..)| flow + self.first_flow));
        columns.text("direction", places.iter().map(direction).map(Some));
        let sources: Vec<Option<&MediaSource>> = places.iter().map(|place| self.source(place)).collect();
        let all = || sources.iter().copied();
        columns.u32("ssrc", all().map(|source| source.map(|source| source.ssrc)));
        columns.u32("payload_type", all().map(|source| source.map(|source| source.payload_type.into())));
        let rate = |source: Option<&MediaSource>| source?.clock.rate();
        columns.u32("clock_rate_hz", all().map(|source| rate(source).map(|(rate, _)| rate)));
        columns.text("clock_rate_by", all().map(|source| rate(source).map(|(_, by): (_, RateBy)| by.name())));
        columns.i64("start_ns", all().map(|source| source.map(|source| source.times_ns.0)));
        columns.i64("end_ns", all().map(|source| source.map(|source| source.times_ns.1)));
        let mut counts = |name: &str, value: fn(&MediaSource) -> u64| {
            columns.u64(name, all().map(|source| source.map(value)));
        };
        counts("sent_packets", |source| source.sequences.sent());
        counts("received_packets", |source| source.sequences.received);
        counts("lost_packets", MediaSource::lost);
        counts("duplicate_packets", |source| source.sequences.duplicates);
        counts("reordered_packets", |source| source.sequences.reordered);
        counts("restarts", |source| source.sequences.restarts);
        counts("payload_bytes", |source| source.payload_bytes);
        columns.f64("jitter_ms", all().map(|source| source?.clock.jitter()?.ms()));
        columns.u64("sender_packets", all().map(|source| source?.sender_packets.map(u64::from)));
        columns.u64("reports", all().map(|source| source.map(|source| source.reports)));
        let last = |source: Option<&MediaSource>| source?.last_report;
        let fraction = |source| last(source).map(|report| f64::from(report.fraction_lost) / 256.0);
        columns.f64("reported_fraction_lost", all().map(fraction));
        let lost = |source| last(source).map(|report| i64::from(report.cumulative_lost));
        columns.i64("reported_lost_packets", all().map(lost));
        let jitter =
            |source: Option<&MediaSource>| Some(source?.clock.seconds(source?.last_report?.jitter)? * 1e3);
        columns.f64("reported_jitter_ms", all().map(jitter));
        columns.finish(places.len())
    }
}

/// What a report on media says.
pub(super) fn feedback_columns(analysis: &Analysis, rows: &[FeedbackSample], columns: &mut Columns) {
    let media = || rows.iter().map(|row| row.media);
    columns.text("kind", rows.iter().map(|row| Some(row.media.map_or("tfrc", |media| media.kind.name()))));
    columns.u32("ssrc", media().map(|media| media.map(|media| media.ssrc)));
    columns.u32("reporter_ssrc", media().map(|media| media.map(|media| media.reporter)));
    columns.f64("fraction_lost", media().map(|media| media?.fraction_lost));
    columns.i64("cumulative_lost", media().map(|media| media?.cumulative_lost));
    let seconds = |row: &FeedbackSample, media: MediaReport| {
        let rtp = analysis.flows.get(row.flow).rtp()?;
        let mut sources = rtp.direction(row.side).sources().iter();
        sources.find(|source| source.ssrc == media.ssrc)?.clock.seconds(media.jitter_ticks?)
    };
    let jitter = |row: &FeedbackSample| Some(seconds(row, row.media?)? * 1e3);
    columns.f64("jitter_ms", rows.iter().map(jitter));
}
