//! TFRC as state machines without clock, socket or file: RFC 5348, its predecessor RFC 3448, the
//! changes of RFC 4342 (CCID 3), RFC 4828 and RFC 5622 (small packets), and ns-2's own agent.
//!
//! Names are the RFC's in snake case. Times are seconds, sizes bytes, rates bytes per second;
//! sections named in comments are of RFC 5348 unless another is named.
//!
//! The path of a data packet: [`sequence_unwrapper`] unwraps its number, [`receive_record`] keeps
//! the receive record and declares losses, [`loss_events`] groups them, [`loss_intervals`] has the
//! history between events and the loss event rate p; [`loss_tracker`] ties these together and lets
//! late packets fill their holes. [`receiver`] adds the receive rate and decides when reports are
//! due. A report then updates a [`sender`]. The transport (DCCP, RTP, UDP, a simulator) creates
//! [`DataPacket`] and [`Report`].

use serde::{Deserialize, Serialize};

pub mod equation;
pub mod loss_events;
pub mod loss_intervals;
pub mod loss_tracker;
pub mod ns2;
pub mod profile;
pub mod receive_record;
pub mod receiver;
pub mod replay;
pub mod round_trip;
pub mod segment_size;
pub mod sender;
pub mod sequence_unwrapper;
pub mod small_packets;
#[cfg(test)]
mod tests;
pub mod veno;

/// Times closer than this are the same, in seconds: captures have nanoseconds.
pub const EPS_T: f64 = 1e-9;

/// A data packet where the receiver gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataPacket {
    /// Sequence number as sent.
    pub seq: u64,
    pub time: f64,
    /// Send time by the sender's own clock, if known.
    pub sent_time: Option<f64>,
    /// The sender's estimate of the round-trip time that it carries, if it does.
    pub rtt: Option<f64>,
    /// CCID 3's window counter (RFC 4342 section 8.1), modulo 16.
    pub ccval: u8,
    /// Whether it was marked congestion experienced (RFC 3168).
    pub ce: bool,
    pub bytes: u32,
    /// Packets without payload immediately before it, as it reports (RFC 4340 section 7.7).
    pub ndp: u64,
}

/// A receiver's report where the sender gets it (section 3.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub time: f64,
    /// Its round-trip time; None if not positive or unknown.
    pub r_sample: Option<f64>,
    /// Bytes per second that the receiver got.
    pub x_recv: f64,
    /// Loss event rate; 0 before the first loss event.
    pub p: f64,
    /// Whether the sender was data-limited over all of the interval that the report covers.
    pub is_data_limited: bool,
    /// Packets lost or marked since the previous report: ns-2's agents report and use it.
    pub losses: u64,
}
