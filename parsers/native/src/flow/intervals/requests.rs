//! Requests of the side that opened a connection, until they are answered; and data sent again and again.

use serde::{Deserialize, Serialize};

use super::{Count, Counts};
use crate::flow::Flow;
use crate::flow::rtt_statistics::LogHistogram;
use crate::flow::tcp::Connection;
use crate::packet::key::Side;

/// A request without an answer for so long, or data sent again for so long without any acknowledgement, hangs.
pub const HANGS_NS: i64 = 10_000_000_000;

/// Payload of segments that are not small: any path carries 1,280 bytes (RFC 8200 section 5), of which tunnels
/// and headers take less than this leaves.
const LARGE_BYTES: u32 = 1_000;

/// When large segments of `side` began to vanish before the capture, smaller ones behind them passed, and the side still
/// spoke when they had been missing for long: as behind a tunnel whose "packet too big" messages are dropped (RFC 2923).
pub fn large_hole_ns(flow: &Flow, side: Side) -> Option<i64> {
    let connection = flow.transport.tcp.as_deref().filter(|tcp| tcp.has_handshake())?;
    let direction = flow.direction(side);
    let opened_ns = connection.half(side).hole_of_full_segments(direction.largest_payload)?;
    (direction.end_ns.saturating_sub(opened_ns) >= HANGS_NS).then_some(opened_ns)
}

/// What one side has said since the other one spoke.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Time of its last byte.
    pub asked_ns: i64,
    /// Which copy of a repeated request is answered is not known (Karn's rule).
    pub is_repeated: bool,
    /// Whether it counts already: it hung before more of it came.
    is_counted: bool,
}

impl Request {
    pub fn new(asked_ns: i64) -> Self {
        Self { asked_ns, is_repeated: false, is_counted: false }
    }

    pub fn hangs_at(&self, time_ns: i64) -> bool {
        time_ns.saturating_sub(self.asked_ns) >= HANGS_NS
    }

    /// Count it, once.
    pub fn count(&mut self, is_unanswered: bool) -> Counts {
        let mut counts = Counts::default();
        if !std::mem::replace(&mut self.is_counted, true) {
            counts.add(Count::Requests, 1_u64);
            counts.add(Count::RequestsUnanswered, u64::from(is_unanswered));
        }
        counts
    }

    /// What became of it at the end of its connection, of which the trace would show packets until `until_ns`:
    /// None if that is not known.
    pub fn count_at_end(&mut self, connection: &Connection, until_ns: i64) -> Option<Counts> {
        let opener = connection.opener()?;
        let has_waited = self.hangs_at(connection.end_ns());
        if connection.has_ended(opener.other()) {
            return Some(self.count(has_waited));
        }
        // Who resets a connection does not wait any longer.
        let is_given_up = connection.was_reset_by(opener);
        (has_waited || (self.hangs_at(until_ns) && !is_given_up)).then(|| self.count(true))
    }
}

/// Requests of one interval, and the times until their answers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answers {
    pub counts: Counts,
    pub times: LogHistogram,
}

/// The first data of a side that are not acknowledged, and were sent again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Repeat {
    seq: u32,
    since_ns: i64,
    is_counted: bool,
}

/// Data of either side that were sent again without progress.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Stalls([Option<Repeat>; 2]);

impl Stalls {
    /// Data from `seq` of `side`, the first that are not acknowledged, were sent again. Returns when that began
    /// and what counts if this is a stall from now on.
    pub fn on_repeat(
        &mut self,
        connection: &Connection,
        side: Side,
        time_ns: i64,
        (seq, payload): (u32, u32),
    ) -> Option<(i64, Counts)> {
        let place = &mut self.0[side as usize];
        let repeat = match place {
            Some(repeat) if repeat.seq == seq => repeat,
            _ => place.insert(Repeat { seq, since_ns: time_ns, is_counted: false }),
        };
        if repeat.is_counted || time_ns.saturating_sub(repeat.since_ns) < HANGS_NS {
            return None;
        }
        repeat.is_counted = true;
        let mut counts = Counts::default();
        counts.add(Count::Stalls, 1_u64);
        let has_only_small = payload > LARGE_BYTES
            && connection.has_handshake()
            && connection.half(side).acknowledged_bytes() < i64::from(payload);
        counts.add(Count::LargeStalls, u64::from(has_only_small));
        Some((repeat.since_ns, counts))
    }
}
