//! Times of the path of one side's data, as far as a capture shows them.

use serde::{Deserialize, Serialize};

use super::RoundTrips;
use super::rto_timer::MIN_VARIATION_NS;

/// A sender responds to an acknowledgement within this time, plus the path to it and back.
const ANSWER_NS: i64 = 10_000_000;
/// A sender that answers at once does so within this time, beyond the way to it and back: the time to wake
/// up a machine, not a timer.
const PROMPT_NS: i64 = 500_000;
/// RTT samples needed to know the smallest: a single one may include a delayed-acknowledgement
/// timer.
const MIN_SAMPLES: u64 = 3;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PathTimes {
    /// Round-trip times from the handshake in us, rounded up: between the capture point and this side,
    /// and of the whole path. 0 is unknown, not no time.
    pub(in crate::flow::tcp) handshake_us: (u32, u32),
    /// Round-trip times of this side's data.
    pub round_trips: RoundTrips,
}

impl PathTimes {
    /// From the capture point to this side and back; 0 if unknown.
    pub(in crate::flow::tcp) fn near_ns(&self) -> i64 {
        i64::from(self.handshake_us.0) * 1_000
    }

    /// The round-trip time of the whole path, as far as it is known; `repair_ns` is that of data lost
    /// upstream of the capture.
    pub(in crate::flow::tcp) fn whole_ns(&self, repair_ns: Option<i64>) -> Option<i64> {
        let handshake_ns = i64::from(self.handshake_us.1) * 1_000;
        let known = [Some(handshake_ns), self.round_trips.timer().smoothed_ns(), repair_ns];
        known.into_iter().flatten().max().filter(|&longest_ns| longest_ns > 0)
    }

    /// A segment within this time after an acknowledgement may be a response to it.
    pub(in crate::flow::tcp) fn latest_answer_ns(&self) -> i64 {
        self.way_back_ns().saturating_add(ANSWER_NS)
    }

    /// The latest answer of a sender that answers at once.
    pub(in crate::flow::tcp) fn prompt_answer_ns(&self) -> i64 {
        self.way_back_ns().saturating_add(PROMPT_NS)
    }

    /// Longest time until the sender has what passed the capture, and its answer passes.
    pub(in crate::flow::tcp) fn way_back_ns(&self) -> i64 {
        self.near_ns() + self.near_ns() / 2
    }

    /// Silence after which a timer retransmits data lost upstream of the capture: the round trip to
    /// the sender and 0.7 of its smallest timeout. `path_ns` is the round trip of the whole path.
    pub(in crate::flow::tcp) fn earliest_upstream_timeout_ns(&self, path_ns: i64) -> i64 {
        let near_ns = if self.handshake_us.0 == 0 { path_ns } else { self.near_ns() };
        // A queue is not silence, so use the shortest round trips.
        let far_ns = i64::try_from(self.round_trips.min_ns()).unwrap_or(i64::MAX);
        let timeout_ns = near_ns.saturating_add(far_ns).min(path_ns).saturating_add(MIN_VARIATION_NS);
        near_ns.saturating_add(timeout_ns / 10 * 7)
    }

    /// An acknowledgement sooner than this after a packet is not for it: half of the shortest round
    /// trip to `acknowledger`, from data or SYN. 0 if unknown.
    pub(in crate::flow::tcp) fn earliest_ack_ns(&self, acknowledger: &Self) -> i64 {
        if self.round_trips.count() < MIN_SAMPLES {
            return 0;
        }
        let shortest_ns = i64::try_from(self.round_trips.min_ns()).unwrap_or(i64::MAX);
        let of_syn_ns = Some(acknowledger.near_ns()).filter(|&syn_ns| syn_ns > 0);
        of_syn_ns.map_or(shortest_ns, |syn_ns| syn_ns.min(shortest_ns)) / 2
    }
}
