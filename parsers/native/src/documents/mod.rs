//! Inputs that are one document, not a sequence of packets: totals of flows and logs of programs.
//! One file per format.

mod flowmon;
mod iperf3;
mod json;
mod xml;

use crate::error::ReadError;
use crate::event::{Code, Endpoints, NodeLayer};
use crate::input::Input;
use crate::samples::VariableSample;

/// The formats by the names that `--input-format` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    /// iperf3's JSON, one document or several.
    Iperf3,
    /// ns-3's FlowMonitor, XML.
    FlowMonitor,
}

impl DocumentFormat {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 2] = [Self::Iperf3, Self::FlowMonitor];

    /// The name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::FlowMonitor => "flowmon",
        }
    }

    /// Whether a file that starts so looks as if it were of this format.
    pub fn recognises(self, start: &[u8]) -> bool {
        match self {
            Self::Iperf3 => iperf3::recognises(start),
            Self::FlowMonitor => flowmon::recognises(start),
        }
    }

    /// Read all of `input` into `document`. What was read before an error stays there.
    pub fn read(self, input: Input, document: &mut Document) -> Result<(), ReadError> {
        match self {
            Self::Iperf3 => iperf3::read(input, document),
            Self::FlowMonitor => flowmon::read(input, document),
        }
    }
}

/// What a document says.
#[derive(Debug, Default)]
pub struct Document {
    /// Totals of flows, one for each direction.
    pub flows: Vec<FlowTotals>,
    /// Samples of variables.
    pub samples: Vec<VariableSample>,
    /// Reservations that are not about one place in the file, lower case, without full stop.
    pub remarks: Vec<String>,
}

/// One direction of a flow as another program summed it up. Times are in ns since the epoch or
/// since the start of a simulation; None where the program does not say.
#[derive(Clone, Debug, Default)]
pub struct FlowTotals {
    /// Who sends to whom.
    pub endpoints: Endpoints,
    /// First and last packet sent.
    pub sent_ns: Option<(i64, i64)>,
    /// First and last packet received.
    pub received_ns: Option<(i64, i64)>,
    /// Packets and bytes sent.
    pub sent: (u64, u64),
    /// Packets and bytes received.
    pub received: (u64, u64),
    /// Packets given up as lost.
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
