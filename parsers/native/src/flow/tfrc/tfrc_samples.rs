//! Samples of TFRC's ends for the tables.

use super::findings::FindingSample;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::rtp::media_reports::MediaReport;
use crate::packet::key::Side;

named_enum! {
    /// How the round-trip time of a report is known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RttBy {
        /// From the packet that it acknowledges.
        Ack = "ack",
        /// From the timestamp that it echoes.
        Timestamp = "timestamp",
        /// The data carry the sender's own R.
        Estimate = "estimate",
        /// The data's window counter moves in quarters of the sender's R (RFC 4342 section 8.1).
        WindowCounter = "ccval",
    }
}

impl RttBy {
    /// Whether this is R, and not a sample.
    pub fn is_smoothed(self) -> bool {
        matches!(self, Self::Estimate | Self::WindowCounter)
    }
}

/// A receiver's report, as the receiver made it and as the sender processed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackSample {
    pub flow: u32,
    /// The side whose data it is about.
    pub side: Side,
    pub sent_ns: i64,
    /// Its packet number where it was sent.
    pub packet: u64,
    /// The highest sequence number received.
    pub sequence: Option<u64>,
    /// Loss event rate as reconstructed.
    pub p: Option<f64>,
    /// The same downstream of the capture, and how losses are known there.
    pub inferred_p: Option<(f64, &'static str)>,
    /// Receive rate as reconstructed, bytes per second.
    pub x_recv: Option<f64>,
    /// Loss event rate in the report.
    pub reported_p: Option<f64>,
    /// Receive rate in the report.
    pub reported_x_recv: Option<f64>,
    /// How long the receiver held the packet it echoes, by its own account, seconds.
    pub elapsed: Option<f64>,
    /// Packets lost or marked since the report before, if reported.
    pub losses: Option<u64>,
    /// State of the sender after it; None if it never arrived.
    pub taken: Option<TakenReport>,
    /// Contents of a media report.
    pub media: Option<MediaReport>,
}

/// The sender's state after a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TakenReport {
    pub time_ns: i64,
    /// Its round-trip time in seconds, and how it is known.
    pub r_sample: Option<(f64, RttBy)>,
    pub r: f64,
    /// t_RTO, seconds.
    pub t_rto: f64,
    /// Allowed rate, bytes per second.
    pub x: f64,
    pub mode: &'static str,
    /// State that only a sender of the RFCs has.
    pub rfc: Option<RfcSender>,
}

/// Additional state of a sender of RFC 5348 or RFC 3448.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RfcSender {
    /// State that depends on samples of the round-trip time; None where only R is known.
    pub damping: Option<Damping>,
    /// Payload sent since the last report, bytes per second; None at the first one.
    pub x_sent: Option<f64>,
    /// Whether the application had less to send than allowed, all that time.
    pub is_data_limited: bool,
}

/// Response to a growing queue (RFC 5348 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damping {
    /// The mean of the samples' square roots: R_sqmean.
    pub r_sqmean: f64,
    /// The rate with that damping, bytes per second: X_inst.
    pub x_inst: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossEventSample {
    pub flow: u32,
    /// The side whose data were lost.
    pub side: Side,
    /// When the receiver detected it.
    pub time_ns: i64,
    /// The packet that revealed it.
    pub packet: u64,
    /// Sequence number of the first packet lost or marked.
    pub start: i64,
    /// Send time of that, interpolated from its neighbours if needed.
    pub lost_ns: i64,
    /// Packets lost or marked.
    pub packets: u64,
    /// Whether it follows from a report, not from a missing packet.
    pub is_inferred: bool,
}

/// A loss interval in a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedInterval {
    /// Its length in packets.
    pub packets: f64,
    /// Packets of it lost or marked.
    pub lost: Option<u32>,
}

/// A loss interval at the time of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossIntervalSample {
    pub flow: u32,
    /// The side whose data it counts.
    pub side: Side,
    /// Time of the report.
    pub time_ns: i64,
    pub packet: u64,
    /// 0 for the open interval, 1 for the newest closed one and so on.
    pub index: u32,
    /// Packets in it, as reconstructed.
    pub packets: Option<f64>,
    /// The same downstream of the capture.
    pub inferred: Option<f64>,
    /// The same as reported.
    pub reported: Option<ReportedInterval>,
}

/// Samples of all flows, as far as collected.
#[derive(Debug)]
pub struct TfrcSamples {
    pub feedback: BoundedSamples<FeedbackSample>,
    pub loss_events: BoundedSamples<LossEventSample>,
    /// Loss intervals at each report.
    pub loss_intervals: BoundedSamples<LossIntervalSample>,
    pub findings: BoundedSamples<FindingSample>,
}

impl TfrcSamples {
    pub fn wants_any(&self) -> bool {
        let Self { feedback, loss_events, loss_intervals, findings } = self;
        feedback.wanted || loss_events.wanted || loss_intervals.wanted || findings.wanted
    }
}
