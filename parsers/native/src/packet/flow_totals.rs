//! Totals of a flow from another program.

use serde::{Deserialize, Serialize};

use super::event::{Code, Endpoints, NodeLayer};

/// Totals of one direction of a flow. Times are in ns since the epoch or since the start of a
/// simulation; None where the program does not give them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowTotals {
    pub endpoints: Endpoints,
    /// First and last packet sent.
    pub sent_ns: Option<(i64, i64)>,
    /// First and last packet received.
    pub received_ns: Option<(i64, i64)>,
    /// Packets and bytes sent.
    pub sent: (u64, u64),
    /// Packets and bytes received.
    pub received: (u64, u64),
    pub lost: Option<u64>,
    /// Drops by place and reason.
    pub drops: Vec<(NodeLayer, Code, u64)>,
    /// Sum of the delays of the packets received.
    pub delay_sum_ns: Option<u128>,
    /// Smallest and largest delay.
    pub delay_range_ns: Option<(i64, i64)>,
    /// Sum of the differences (without sign) between successive delays.
    pub jitter_sum_ns: Option<u128>,
    /// Delays as a histogram: upper edges in ns, and counts.
    pub delay_histogram: Vec<(i64, u64)>,
}
