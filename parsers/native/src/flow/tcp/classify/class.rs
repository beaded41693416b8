//! What a segment was that is not simply the next.

/// Why a segment was seen that repeats others or is late: `docs/tcp.md` has a section for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The first retransmission of a recovery that acknowledgements began, and without SACK all of
    /// that recovery (RFC 5681 section 3.2, RFC 6582).
    Fast,
    /// A further retransmission of a recovery with SACK (RFC 6675, RFC 8985).
    Sack,
    /// By a timeout, or in the recovery after it (RFC 6298).
    Rto,
    /// The last segment again, to provoke an acknowledgement (RFC 8985 section 7).
    TailLossProbe,
    /// Sent again, and nothing in the capture says why.
    Unexplained,
    /// SYN sent again.
    Syn,
    /// FIN without data sent again.
    Fin,
    /// One byte before the next, or none, to hear whether the other side lives (RFC 9293 section
    /// 3.8.4).
    KeepAlive,
    /// The same while the other side's window is closed (RFC 9293 section 3.8.6.1).
    ZeroWindowProbe,
    /// The same packet again: the network doubled it.
    NetworkDuplicate,
    /// The same packet again at another interface: the capture doubled it.
    CaptureDuplicate,
    /// A packet that others overtook on their way to the capture point.
    Reordered,
    /// A late packet that was sent again: what it repeats was lost before the capture point.
    Unseen,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 13;
    /// Data sent again whose first sending the capture shows.
    pub const RETRANSMISSIONS: [Self; 5] =
        [Self::Fast, Self::Sack, Self::Rto, Self::TailLossProbe, Self::Unexplained];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast_retransmission",
            Self::Sack => "sack_retransmission",
            Self::Rto => "rto_retransmission",
            Self::TailLossProbe => "tail_loss_probe",
            Self::Unexplained => "unexplained_retransmission",
            Self::Syn => "syn_retransmission",
            Self::Fin => "fin_retransmission",
            Self::KeepAlive => "keep_alive",
            Self::ZeroWindowProbe => "zero_window_probe",
            Self::NetworkDuplicate => "network_duplicate",
            Self::CaptureDuplicate => "capture_duplicate",
            Self::Reordered => "reordering",
            Self::Unseen => "retransmission_of_unseen",
        }
    }

    /// Whether data were sent again whose first sending the capture shows.
    pub fn is_retransmission(self) -> bool {
        Self::RETRANSMISSIONS.contains(&self)
    }
}

/// By what a class, or that a retransmission was not needed, was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The order of IPv4 identifications.
    IpId,
    /// The order of TCP timestamps; of a verdict: the Eifel detection algorithm (RFC 3522).
    Timestamp,
    /// Time since the hole opened, against the round-trip time.
    Time,
    /// The interface.
    Interface,
    /// Acknowledgements of the same number.
    DuplicateAcks,
    /// SACK blocks.
    Sack,
    /// A segment that was sent later had arrived (RFC 8985 section 6.2).
    SentBefore,
    /// A recovery that had begun already.
    Recovery,
    /// Silence for as long as a timer runs.
    Timer,
    /// The other side's window, or that all was acknowledged.
    Window,
    /// Control flags.
    Flags,
    /// The data had been acknowledged when they were sent again.
    Acknowledged,
    /// The receiver said that it had them twice (RFC 2883).
    DuplicateSack,
    /// What followed was acknowledged without having been sent again (F-RTO, RFC 5682).
    ForwardRto,
    /// The original was seen to arrive.
    Arrived,
    /// None was found.
    Nothing,
}

impl Evidence {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::IpId => "ip_id",
            Self::Timestamp => "timestamp",
            Self::Time => "time",
            Self::Interface => "interface",
            Self::DuplicateAcks => "duplicate_acks",
            Self::Sack => "sack",
            Self::SentBefore => "sent_before",
            Self::Recovery => "recovery",
            Self::Timer => "timer",
            Self::Window => "window",
            Self::Flags => "flags",
            Self::Acknowledged => "acknowledged",
            Self::DuplicateSack => "d_sack",
            Self::ForwardRto => "f_rto",
            Self::Arrived => "arrived",
            Self::Nothing => "none",
        }
    }
}

/// A segment's class, and by what it was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// What it was.
    pub class: Class,
    /// Why we think so.
    pub evidence: Evidence,
    /// Which of its direction's findings this is, from 0.
    pub number: u32,
}

/// How many segments of each class there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassCounts([u32; Class::COUNT]);

impl ClassCounts {
    /// Count `segments` more.
    pub fn add(&mut self, class: Class, segments: u32) {
        if let Some(count) = self.0.get_mut(class as usize) {
            *count = count.saturating_add(segments);
        }
    }

    /// Segments of `class`.
    pub fn of(&self, class: Class) -> u32 {
        self.0.get(class as usize).copied().unwrap_or_default()
    }

    /// Segments of all these classes.
    pub fn sum(&self, classes: &[Class]) -> u32 {
        classes.iter().fold(0, |sum, class| sum.saturating_add(self.of(*class)))
    }
}
