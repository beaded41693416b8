//! Samples of a flow's variables that another program wrote down: congestion window, thresholds,
//! round-trip times of the sender itself.

use crate::event::Endpoints;

/// What a variable's value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Packets or segments.
    Packets,
    /// Milliseconds.
    Ms,
    /// Bits per second.
    Bps,
    /// A plain number or share.
    One,
}

impl Unit {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Ms => "ms",
            Self::Bps => "bit/s",
            Self::One => "",
        }
    }
}

/// One value of one variable at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariableSample {
    /// The sender whose variable it is, and whom it sends to. Unknown ports are 0.
    pub endpoints: Endpoints,
    /// Since the epoch, or since the start of a simulation.
    pub time_ns: i64,
    /// Such as `cwnd`, `ssthresh`, `rtt`, `srtt`.
    pub name: &'static str,
    /// What `value` counts.
    pub unit: Unit,
    /// The value.
    pub value: f64,
}
