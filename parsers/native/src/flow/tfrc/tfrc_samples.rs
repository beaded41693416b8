//! What is kept of TFRC's ends for tables.

use super::findings::FindingSample;
use super::from_capture::ReportedInterval;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::rtp::media_reports::MediaReport;
use crate::packet::key::Side;

/// How the round-trip time of a report is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttBy {
    /// The packet that it acknowledges was seen.
    Ack,
    /// The time that it echoes was seen.
    Timestamp,
    /// The data carry the sender's own R.
    Estimate,
    /// The data's window counter moves in quarters of the sender's R (RFC 4342 section 8.1).
    WindowCounter,
}

impl RttBy {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Timestamp => "timestamp",
            Self::Estimate => "estimate",
            Self::WindowCounter => "ccval",
        }
    }

    /// Whether this is R, and not a sample that R is made of.
    pub fn is_smoothed(self) -> bool {
        matches!(self, Self::Estimate | Self::WindowCounter)
    }
}

/// A receiver's report, as the receiver made it and as the sender took it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side whose data it is about.
    pub side: Side,
    /// When it was sent.
    pub sent_ns: i64,
    /// Its number where it was sent.
    pub packet: u64,
    /// The highest sequence number received.
    pub sequence: Option<u64>,
    /// Loss event rate as rebuilt.
    pub p: Option<f64>,
    /// The same behind the capture, and what tells of losses there.
    pub inferred_p: Option<(f64, &'static str)>,
    /// Receive rate as rebuilt, bytes per second.
    pub x_recv: Option<f64>,
    /// Loss event rate as the report says it.
    pub reported_p: Option<f64>,
    /// Receive rate as the report says it.
    pub reported_x_recv: Option<f64>,
    /// How long the receiver says that it held the packet it echoes, seconds.
    pub elapsed: Option<f64>,
    /// Packets lost or marked since the report before, where reports say so.
    pub losses: Option<u64>,
    /// What the sender made of it; None if it never arrived.
    pub taken: Option<TakenReport>,
    /// What a report on media says.
    pub media: Option<MediaReport>,
}

/// The sender's state after a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TakenReport {
    pub time_ns: i64,
    /// The round-trip time that it gave, seconds, and how it was known.
    pub r_sample: Option<(f64, RttBy)>,
    /// R, seconds.
    pub r: f64,
    /// t_RTO, seconds.
    pub t_rto: f64,
    /// Allowed rate, bytes per second.
    pub x: f64,
    pub mode: &'static str,
    /// What only a sender of the RFCs has.
    pub rfc: Option<RfcSender>,
}

/// What a sender of RFC 5348 or RFC 3448 has beside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RfcSender {
    /// What hangs on samples of the round-trip time; None where only R is known.
    pub damping: Option<Damping>,
    /// Payload sent since the last report, bytes per second; None at the first one.
    pub x_sent: Option<f64>,
    /// Whether the application had less to send than was allowed, all that time.
    pub is_data_limited: bool,
}

/// How a sender yields to a growing queue (RFC 5348 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damping {
    /// The mean of the samples' square roots: R_sqmean.
    pub r_sqmean: f64,
    /// The rate with that damping, bytes per second: X_inst.
    pub x_inst: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossEventSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side whose data were lost.
    pub side: Side,
    /// When the receiver learnt of it.
    pub time_ns: i64,
    /// The packet that told it.
    pub packet: u64,
    /// Sequence number of the first packet lost or marked.
    pub start: i64,
    /// When that was sent, or by its neighbours must have been.
    pub lost_ns: i64,
    /// Packets lost or marked.
    pub packets: u64,
    /// Whether a report told of it, and not a missing packet.
    pub is_inferred: bool,
}

/// A loss interval at the time of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossIntervalSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side whose data it counts.
    pub side: Side,
    /// When the report was sent.
    pub time_ns: i64,
    pub packet: u64,
    /// 0 for the open interval, 1 for the newest closed one and so on.
    pub index: u32,
    /// Packets in it, as rebuilt.
    pub packets: Option<f64>,
    /// The same behind the capture.
    pub inferred: Option<f64>,
    /// The same as the report says it.
    pub reported: Option<ReportedInterval>,
}

/// What is kept of all flows, as far as it is wanted.
#[derive(Debug)]
pub struct TfrcSamples {
    pub feedback: BoundedSamples<FeedbackSample>,
    pub loss_events: BoundedSamples<LossEventSample>,
    /// Loss intervals at each report.
    pub loss_intervals: BoundedSamples<LossIntervalSample>,
    pub findings: BoundedSamples<FindingSample>,
}
