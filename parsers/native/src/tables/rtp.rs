//! The table of RTP's sources, and the columns of feedback that only reports on RTP have.

use std::io;

use super::column::column;
use super::shown::Shown;
use super::tfrc::FeedbackRow;
use super::{Column, PassTable, Row};
use crate::flow::direction_name;
use crate::flow::rtp::media_intervals::MediaInterval;
use crate::flow::rtp::media_source::MediaSource;
use crate::packet::key::Side;
use crate::pass::Analysis;

/// The table of sources, in order of flow, direction and appearance.
pub(super) struct RtpSources {
    /// Flow, side, and index of the source.
    places: Vec<(u32, Side, usize)>,
}

/// A source of RTP in a direction of a flow.
pub struct SourceRow<'a> {
    flow: u32,
    direction: &'static str,
    source: &'a MediaSource,
}

impl PassTable for RtpSources {
    type Row<'a> = SourceRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut places = Vec::new();
        // Those with media stay.
        for number in analysis.carried.flows.here() {
            let flow = analysis.carried.flows.get(number);
            let Some(rtp) = flow.transport.rtp() else { continue };
            for side in [flow.forward(), flow.forward().other()] {
                let sources = rtp.direction(side).sources().len();
                places.extend((0..sources).map(|at| (number, side, at)));
            }
        }
        Ok(Self { places })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.places.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<SourceRow<'a>> {
        let &(number, side, at) = self.places.get(row)?;
        let flow = shown.flow(number);
        let source = flow.transport.rtp()?.direction(side).sources().get(at)?;
        Some(SourceRow { flow: number + first_flow, direction: direction_name(side, flow.forward()), source })
    }
}

impl<'a> Row<'a> for SourceRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "`fwd` or `rev`").name(|row| Some(row.direction)),
        column("ssrc", "", "synchronisation source (RFC 3550)").u32(|row| Some(row.source.ssrc)),
        column("payload_type", "", "of the first packet").u32(|row| Some(row.source.payload_type.into())),
        column("clock_rate_hz", "1/s", "ticks of the timestamps per second")
            .null_when("not known; a layout `rtp/CLOCKRATE` of the port sets it")
            .u32(|row| Some(row.source.clock.rate()?.0)),
        column(
            "clock_rate_by",
            "",
            "`payload_type` (RFC 3551), `user`, `reports` (two sender reports) or `arrivals` \
             (measured)",
        )
        .null_when("as clock_rate_hz")
        .name(|row| Some(row.source.clock.rate()?.1.name())),
        column("start_ns", "ns", "first packet").i64(|row| Some(row.source.times_ns.0)),
        column("end_ns", "ns", "latest packet").i64(|row| Some(row.source.times_ns.1)),
        column("sent_packets", "", "from the first number captured to the highest")
            .u64(|row| Some(row.source.sequences.sent())),
        column("received_packets", "", "sent packets that arrived at the capture")
            .u64(|row| Some(row.source.sequences.received)),
        column("lost_packets", "", "sent packets that did not").u64(|row| Some(row.source.lost())),
        column("duplicate_packets", "", "arrivals of packets that had arrived before")
            .u64(|row| Some(row.source.sequences.duplicates)),
        column("reordered_packets", "", "packets captured after one with a higher number")
            .u64(|row| Some(row.source.sequences.reordered)),
        column(
            "loss_bursts",
            "",
            "stretches of consecutive numbers of which packets never arrived at the capture",
        )
        .u64(|row| Some(row.source.bursts.count())),
        column("longest_loss_burst", "", "the most packets that never arrived of one of them")
            .null_when("no loss")
            .u64(|row| row.source.bursts.longest()),
        column("restarts", "", "times that the sequence numbers restarted")
            .u64(|row| Some(row.source.sequences.restarts)),
        column(
            "payload_bytes",
            "bytes",
            "payload of the datagrams of received_packets, including the RTP header",
        )
        .u64(|row| Some(row.source.payload_bytes)),
        column("jitter_ms", "ms", "interarrival jitter here (RFC 3550 A.8)")
            .null_when("as clock_rate_hz")
            .f64(|row| row.source.clock.jitter()?.ms()),
        column("sender_packets", "", "packets sent according to its last sender report")
            .null_when("no such report")
            .u64(|row| row.source.sender_packets.map(u64::from)),
        column("reports", "", "receiver reports about it").u64(|row| Some(row.source.reports)),
        column("reported_fraction_lost", "", "share lost according to the last receiver report")
            .null_when("no receiver report")
            .f64(|row| Some(f64::from(row.source.last_report?.fraction_lost) / 256.0)),
        column("reported_lost_packets", "", "packets lost according to it, less duplicates")
            .null_when("as reported_fraction_lost")
            .i64(|row| Some(row.source.last_report?.cumulative_lost.into())),
        column(
            "reported_plr",
            "",
            "share of packets lost up to it; of a source that began before the capture since the first report",
        )
        .null_when("as reported_fraction_lost, or less was expected than lost: from before the capture")
        .f64(|row| row.source.reported_loss()?.ratio()),
        column("reported_jitter_ms", "ms", "jitter according to it")
            .null_when("as reported_fraction_lost or clock_rate_hz")
            .f64(|row| Some(row.source.clock.seconds(row.source.last_report?.jitter)? * 1e3)),
    ]];
}

/// The table of intervals, in order of flow, direction, source and time.
pub(super) struct RtpIntervals {
    /// Flow, side, index of the source, and of its interval.
    places: Vec<(u32, Side, usize, usize)>,
}

/// An interval of a source.
pub struct IntervalRow<'a> {
    of: SourceRow<'a>,
    at: usize,
    width_ns: i64,
    interval: MediaInterval,
}

impl PassTable for RtpIntervals {
    type Row<'a> = IntervalRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let RtpSources { places } = RtpSources::new(analysis)?;
        let count = |(number, side, at): (u32, Side, usize)| {
            let rtp = analysis.carried.flows.get(number).transport.rtp()?;
            let source = rtp.direction(side).sources().get(at)?;
            Some(source.intervals.as_ref()?.all().len())
        };
        let intervals = |place: (u32, Side, usize)| {
            let (number, side, at) = place;
            (0..count(place).unwrap_or(0)).map(move |interval| (number, side, at, interval))
        };
        Ok(Self { places: places.into_iter().flat_map(intervals).collect() })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.places.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<IntervalRow<'a>> {
        let &(number, side, source, at) = self.places.get(row)?;
        let flow = shown.flow(number);
        let source = flow.transport.rtp()?.direction(side).sources().get(source)?;
        let of =
            SourceRow { flow: number + first_flow, direction: direction_name(side, flow.forward()), source };
        let intervals = source.intervals.as_ref()?;
        Some(IntervalRow { of, at, width_ns: intervals.width_ns(), interval: *intervals.all().get(at)? })
    }
}

impl<'a> Row<'a> for IntervalRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.of.flow)),
        column("direction", "", "`fwd` or `rev`").name(|row| Some(row.of.direction)),
        column("ssrc", "", "synchronisation source (RFC 3550)").u32(|row| Some(row.of.source.ssrc)),
        column("time_ns", "ns", "start of the interval").i64(|row| {
            Some(row.of.source.times_ns.0.saturating_add(row.width_ns.saturating_mul(row.at as i64)))
        }),
        column("width_ns", "ns", "width of the source's intervals: 1 s, twice as much each time that 256 are full")
            .i64(|row| Some(row.width_ns)),
        column("received_packets", "", "packets that arrived at the capture, each once")
            .u64(|row| Some(row.interval.received.into())),
        column(
            "lost_packets",
            "",
            "packets expected less packets that arrived (RFC 3550 A.3); negative if more of an earlier interval came \
             late",
        )
        .i64(|row| Some(row.interval.lost())),
        column("reordered_packets", "", "packets that arrived after one with a higher number")
            .u64(|row| Some(row.interval.reordered.into())),
        column("jitter_ms", "ms", "interarrival jitter at its last packet (RFC 3550 A.8)")
            .null_when("no packet, or the rate of the media clock was not known yet")
            .f64(|row| row.interval.jitter_ms()),
    ]];
}

impl<'a> FeedbackRow<'a> {
    pub(super) const ON_MEDIA: &'a [Column<Self>] = &[
        column(
            "kind",
            "",
            "`tfrc`, or of a report on RTP `rtcp` (SR or RR, RFC 3550), `rtcp_xr` (RFC 3611), \
             `rfc8888` or `twcc` (transport-wide); these name neither p nor X_recv: `x_recv_bps` is \
             computed from the packets that they list as arrived, and `sequence` is the last number \
             that they list",
        )
        .name(|row| Some(row.report.sample.media.map_or("tfrc", |media| media.kind.name()))),
        column("ssrc", "", "source of the media that the report is about")
            .null_when("TFRC's own report")
            .u32(|row| Some(row.report.sample.media?.ssrc)),
        column("reporter_ssrc", "", "source that sent the report")
            .null_when("TFRC's own report")
            .u32(|row| Some(row.report.sample.media?.reporter)),
        column(
            "fraction_lost",
            "",
            "share of the packets that did not arrive since the last report; of `rfc8888` and `twcc` \
             of those listed",
        )
        .null_when("not in the report")
        .f64(|row| row.report.sample.media?.fraction_lost),
        column("cumulative_lost", "", "packets lost since the source began, less duplicates")
            .null_when("not in it")
            .i64(|row| row.report.sample.media?.cumulative_lost),
        column(
            "ect1_packets",
            "",
            "packets that it lists as arrived with ECT(1); several reports may list a packet",
        )
        .null_when("not `rfc8888`")
        .u32(|row| Some(row.report.sample.media?.marks?.0)),
        column("ce_packets", "", "packets that it lists as arrived with a congestion mark, likewise")
            .null_when("not `rfc8888`")
            .u32(|row| Some(row.report.sample.media?.marks?.1)),
        column("jitter_ms", "ms", "interarrival jitter in the report")
            .null_when("not in it, or the clock is not known")
            .f64(FeedbackRow::jitter_ms),
    ];

    fn jitter_ms(&self) -> Option<f64> {
        let sample = self.report.sample;
        let media = sample.media?;
        let rtp = self.report.analysis.flow(sample.flow).transport.rtp()?;
        let mut sources = rtp.direction(sample.side).sources().iter();
        let source = sources.find(|source| source.ssrc == media.ssrc)?;
        Some(source.clock.seconds(media.jitter_ticks?)? * 1e3)
    }
}
