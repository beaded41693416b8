//! Fields of media reports for the feedback table, beside those of TFRC's reports.

named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReportKind {
        /// A block of a sender or receiver report (RFC 3550 section 6.4).
        Block = "rtcp",
        /// A block of an extended report (RFC 3611).
        Extended = "rtcp_xr",
        /// Congestion control feedback (RFC 8888).
        Congestion = "rfc8888",
        /// Transport-wide congestion control feedback.
        TransportWide = "twcc",
    }
}

/// A report on a media source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaReport {
    pub kind: ReportKind,
    pub ssrc: u32,
    pub reporter: u32,
    /// Share of packets lost since the last report.
    pub fraction_lost: Option<f64>,
    /// Packets lost since the start of the source.
    pub cumulative_lost: Option<i64>,
    /// Interarrival jitter in ticks of the media's clock.
    pub jitter_ticks: Option<u32>,
    /// Its round-trip time in seconds, and how it was measured.
    pub rtt: Option<(f64, &'static str)>,
    /// Packets that it lists with ECT(1), and with a congestion mark.
    pub marks: Option<(u32, u32)>,
}

impl MediaReport {
    /// A report without values.
    pub fn new(kind: ReportKind, ssrc: u32, reporter: u32) -> Self {
        Self {
            kind,
            ssrc,
            reporter,
            fraction_lost: None,
            cumulative_lost: None,
            jitter_ticks: None,
            rtt: None,
            marks: None,
        }
    }
}
