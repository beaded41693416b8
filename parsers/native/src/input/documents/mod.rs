//! Inputs that are one document, not a sequence of packets: totals of flows and logs of programs.
//! One file per format.

mod flowmon;
mod iperf3;
pub mod json;
mod qlog;
mod xml;

use crate::error::ReadError;
use crate::input::bytes::Input;
use crate::packet::flow_totals::FlowTotals;
use crate::packet::logged_variables::VariableSample;

named_enum! {
    /// The document formats, in the order in which they are tried.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DocumentFormat {
        /// Logs of QUIC's ends.
        Qlog = "qlog",
        /// iperf3's JSON, one document or several.
        Iperf3 = "iperf3",
        /// ns-3's FlowMonitor, XML.
        FlowMonitor = "flowmon",
    }
}

impl DocumentFormat {
    /// Whether a file that starts with these bytes looks like this format.
    pub fn recognises(self, start: &[u8]) -> bool {
        match self {
            Self::Qlog => qlog::recognises(start),
            Self::Iperf3 => iperf3::recognises(start),
            Self::FlowMonitor => flowmon::recognises(start),
        }
    }

    /// Read all of `input` into `document`, which keeps what was read before an error.
    pub fn read(self, input: Input, document: &mut Document) -> Result<(), ReadError> {
        match self {
            Self::Qlog => qlog::read(input, document),
            Self::Iperf3 => iperf3::read(input, document),
            Self::FlowMonitor => flowmon::read(input, document),
        }
    }
}

/// The content of a document.
#[derive(Debug, Default)]
pub struct Document {
    /// Totals of flows, one for each direction.
    pub flows: Vec<FlowTotals>,
    pub samples: Vec<VariableSample>,
    /// Names of ends without addresses.
    pub hosts: Vec<String>,
    /// Caveats that concern no single place in the file, lower case, without full stop.
    pub caveats: Vec<String>,
}
