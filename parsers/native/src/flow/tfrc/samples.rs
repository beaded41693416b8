//! What is kept of TFRC's ends for tables.

use super::super::key::Side;
use crate::samples::Samples;
use crate::tfrc::ns2::Mode;

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
    /// Loss event rate.
    pub p: f64,
    /// Receive rate in bytes per second.
    pub x_recv: f64,
    /// What the sender made of it; None if it never arrived.
    pub taken: Option<TakenReport>,
}

/// The sender's state after a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TakenReport {
    /// When it arrived.
    pub time_ns: i64,
    /// The round-trip time that it gave, seconds.
    pub r_sample: f64,
    /// R, seconds.
    pub r: f64,
    /// t_RTO, seconds.
    pub t_rto: f64,
    /// Allowed rate, bytes per second.
    pub x: f64,
    /// What governs that.
    pub mode: Mode,
}

/// A loss event.
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
    /// When that was sent, or by its neighbours must have been, seconds.
    pub start_time: f64,
    /// Packets lost or marked.
    pub packets: u64,
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
    /// The report's number.
    pub packet: u64,
    /// 0 for the open interval, 1 for the newest closed one and so on.
    pub index: u32,
    /// Packets in it.
    pub packets: f64,
}

/// What is kept of all flows, as far as it is wanted.
#[derive(Debug)]
pub struct TfrcSamples {
    /// Reports.
    pub feedback: Samples<FeedbackSample>,
    /// Loss events.
    pub loss_events: Samples<LossEventSample>,
    /// Loss intervals at each report.
    pub loss_intervals: Samples<LossIntervalSample>,
}
