//! Samples of a flow's variables logged by another program: congestion window, thresholds, the
//! sender's own round-trip times.

use crate::packet::event::Endpoints;
use crate::plural::counted;

named_enum! {
    /// Unit of a variable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit {
        Bytes = "bytes",
        Packets = "packets",
        Ms = "ms",
        Bps = "bit/s",
        /// A plain number or share.
        One = "",
    }
}

/// One value of one variable at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariableSample {
    /// The sender of the variable and its peer. Unknown ports are 0.
    pub endpoints: Endpoints,
    /// Since the epoch, or since the start of a simulation.
    pub time_ns: i64,
    /// Such as `cwnd`, `ssthresh`, `rtt`, `srtt`.
    pub name: &'static str,
    pub unit: Unit,
    pub value: f64,
}

/// Samples of one source that are kept: a log that runs for days must not fill the memory.
const MAX_SAMPLES: usize = 1 << 22;

/// The samples of one source, up to a bound.
#[derive(Debug, Default)]
pub struct SampleList {
    kept: Vec<VariableSample>,
    left_out: u64,
}

impl SampleList {
    /// Keep `sample` up to the limit. Overflowed values and non-numbers are dropped.
    pub fn add(&mut self, sample: VariableSample) {
        if !sample.value.is_finite() {
            return;
        }
        if self.kept.len() < MAX_SAMPLES {
            self.kept.push(sample);
        } else {
            self.left_out += 1;
        }
    }

    /// Count the samples that another list dropped.
    pub fn note_left_out(&mut self, other: &Self) {
        self.left_out += other.left_out;
    }

    /// Take those kept out.
    pub fn take(&mut self) -> Vec<VariableSample> {
        std::mem::take(&mut self.kept)
    }

    /// A note if samples were dropped.
    pub fn caveat(&self) -> Option<String> {
        let left_out = self.left_out;
        let dropped = || counted(left_out, "sample[s] left out");
        (left_out > 0).then(|| format!("{}: only the first {MAX_SAMPLES} of a log are kept", dropped()))
    }
}
