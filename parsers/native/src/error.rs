//! Problems of an input: where, what was found, what was expected.
//!
//! Readers return a [`ReadError`] and know no file names; the pass adds the source and the packet
//! number and keeps it as a [`Problem`]. Python turns these facts into messages, and the code of a
//! [`Hint`] into words: the core knows no option of the command line.

use serde::{Deserialize, Serialize};

use std::io;

named_enum! {
    /// Stable names of problems.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ProblemKind {
        /// The path cannot be opened (missing, not permitted, a directory).
        CannotOpen = "cannot_open",
        /// Reading failed half-way (disk, network file system, vanished file).
        ReadFailed = "read_failed",
        Empty = "empty",
        /// Not a capture file at all.
        NotACapture = "not_a_capture",
        /// A capture of a kind or version that is not read.
        Unsupported = "unsupported",
        /// The input ends in the middle of a record or of a compressed stream.
        Truncated = "truncated",
        /// A length or field that cannot be true.
        Corrupt = "corrupt",
        /// Lines of a text that could not be read.
        BadLines = "bad_lines",
        /// Missing or too coarse in the format.
        Imprecise = "imprecise",
        /// The compressed data are damaged.
        BadCompression = "bad_compression",
        /// The bound on decompressed bytes was reached.
        DecompressionLimit = "decompression_limit",
        /// The bound on the number of flows was reached.
        FlowLimit = "flow_limit",
        /// The bound on the number of samples was reached.
        SampleLimit = "sample_limit",
        /// A well-formed file without a packet.
        NoPackets = "no_packets",
        /// The capture lost packets, by its own count.
        CaptureDrops = "capture_drops",
        /// Data that was acknowledged and is not in the capture.
        CaptureGap = "capture_gap",
        /// Times before their predecessors'.
        ClockBack = "clock_back",
        /// The same by so little that the order of records or rounded times explain it.
        OutOfOrder = "out_of_order",
        /// A step of the clock that no idle link explains.
        ClockAhead = "clock_ahead",
        /// All packets at one time.
        ClockStill = "clock_still",
        /// Packets without a readable IP header.
        Undecoded = "undecoded",
        /// Packets, none of which belongs to a flow.
        NoFlow = "no_flow",
        /// Two captures that have no packet in common.
        NotAPair = "not_a_pair",
        /// Joined files cover the same time.
        Overlap = "overlap",
        /// Packets are missing between two joined files.
        Gap = "gap",
        /// The clock was set: within a file, or between two joined ones.
        ClockStep = "clock_step",
        /// The clock runs faster or slower than those of senders.
        ClockDrift = "clock_drift",
        /// The user stopped the analysis.
        Cancelled = "cancelled",
    }
}

impl ProblemKind {
    /// How much of the result it concerns.
    pub fn severity(self) -> Severity {
        match self {
            Self::OutOfOrder => Severity::Note,
            Self::Truncated
            | Self::FlowLimit
            | Self::SampleLimit
            | Self::NoPackets
            | Self::BadLines
            | Self::Imprecise
            | Self::CaptureDrops
            | Self::CaptureGap
            | Self::ClockBack
            | Self::ClockAhead
            | Self::ClockStill
            | Self::Undecoded
            | Self::NoFlow
            | Self::Overlap
            | Self::Gap
            | Self::ClockStep
            | Self::ClockDrift => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Whether the input, or the rest of it, could not be read.
    pub fn is_error(self) -> bool {
        self.severity() == Severity::Error
    }
}

named_enum! {
    /// How much of the result a problem concerns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Severity {
        /// The input, or the rest of it, could not be read.
        Error = "error",
        /// Read, with a caveat.
        Warning = "warning",
        Note = "note",
    }
}

named_enum! {
    /// What the user can do about a problem. `tfrctrace/base/hints.py` has the words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Hint {
        CutShort = "cut_short",
        LinesLeftOut = "lines_left_out",
        DocumentCut = "document_cut",
        NameFormat = "name_format",
        LinkTypes = "link_types",
        CaptureFilter = "capture_filter",
        DecompressionLimit = "decompression_limit",
        FlowLimit = "flow_limit",
        NoSpool = "no_spool",
        LinkLimit = "link_limit",
        GroupLimit = "group_limit",
        SampleLimit = "sample_limit",
        EmptyLayer = "empty_layer",
        PairOfSimulation = "pair_of_simulation",
        PacketsChanged = "packets_changed",
        ImpossibleOffset = "impossible_offset",
        ClockStep = "clock_step",
        ClockDrift = "clock_drift",
        CaptureLoss = "capture_loss",
        PairOfCopies = "pair_of_copies",
        JoinedOverlap = "joined_overlap",
        JoinedGap = "joined_gap",
        ReadAsOther = "read_as_other",
        CaptureDrops = "capture_drops",
        CaptureGap = "capture_gap",
        ClockBack = "clock_back",
        OutOfOrder = "out_of_order",
        ClockAhead = "clock_ahead",
        ClockStill = "clock_still",
        Undecoded = "undecoded",
        NoFlow = "no_flow",
    }
}

/// Why a reader stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadError {
    /// What kind of trouble.
    pub kind: ProblemKind,
    /// Offset in the uncompressed input of the record that could not be read.
    pub byte: Option<u64>,
    /// Number of the line, in a text.
    pub line: Option<u64>,
    /// Found and expected, lower case, without full stop.
    pub message: String,
    pub hint: Option<Hint>,
}

impl ReadError {
    /// An error about the input as a whole.
    pub fn whole(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { kind, byte: None, line: None, message: message.into(), hint: None }
    }

    /// An error about the record that starts at `byte`.
    pub fn at(kind: ProblemKind, byte: u64, message: impl Into<String>) -> Self {
        Self { kind, byte: Some(byte), line: None, message: message.into(), hint: None }
    }

    /// The same with advice.
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The input ends inside a record: `have` of `need` bytes are there.
    pub fn cut(byte: u64, what: &str, have: usize, need: usize) -> Self {
        Self::at(
            ProblemKind::Truncated,
            byte,
            format!("the file ends inside a {what}: {have} bytes, expected {need}"),
        )
        .hint(Hint::CutShort)
    }

    /// An error of the operating system.
    pub fn io(kind: ProblemKind, error: &io::Error) -> Self {
        // `No such file or directory (os error 2)`: the number says nothing to a user.
        let text = error.to_string();
        let words = text.split(" (os error").next().unwrap_or(&text);
        Self::whole(kind, words.to_lowercase())
    }
}

/// A [`ReadError`] with the source and the packet it belongs to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// The input as the user named it.
    pub source: String,
    /// Flows concerned, from 0; empty if it concerns the whole input.
    pub flows: Vec<u32>,
    /// Number of the packet where it was found, from 1.
    pub packet: Option<u64>,
    /// Packets of this source analysed before it.
    pub packets_before: u64,
    /// The error of the reader.
    pub error: ReadError,
}

impl Problem {
    /// A problem of a whole source.
    pub fn of_source(source: &str, error: ReadError) -> Self {
        Self { source: source.to_owned(), flows: Vec::new(), packet: None, packets_before: 0, error }
    }
}
