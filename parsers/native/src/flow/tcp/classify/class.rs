//! The classes of segments that are not simply the next in their stream.

use serde::{Deserialize, Serialize};

named_enum! {
    /// Why a segment repeats data or arrives late; `docs/tcp.md` has a section for each class.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Class {
        /// First retransmission of a recovery that duplicate acknowledgements started; without SACK,
        /// every retransmission of that recovery (RFC 5681 section 3.2, RFC 6582).
        Fast = "fast_retransmission",
        /// A further retransmission of a recovery with SACK (RFC 6675, RFC 8985).
        Sack = "sack_retransmission",
        /// Retransmission by timeout, or in the recovery that follows one (RFC 6298).
        Rto = "rto_retransmission",
        /// Retransmission of the last segment to provoke an acknowledgement (RFC 8985 section 7).
        TailLossProbe = "tail_loss_probe",
        /// Retransmission for which the capture shows no cause.
        Unexplained = "unexplained_retransmission",
        Syn = "syn_retransmission",
        /// Retransmitted FIN without data.
        Fin = "fin_retransmission",
        /// The byte before the next, or no byte, sent to check that the peer is alive (RFC 9293 section
        /// 3.8.4).
        KeepAlive = "keep_alive",
        /// The same while the peer's window is closed (RFC 9293 section 3.8.6.1).
        ZeroWindowProbe = "zero_window_probe",
        /// Duplicate made by the network.
        NetworkDuplicate = "network_duplicate",
        /// Duplicate made by the capture, seen at another interface.
        CaptureDuplicate = "capture_duplicate",
        /// A packet that arrived at the capture point after packets sent later.
        Reordered = "reordering",
        /// A late retransmission whose original was lost upstream of the capture point.
        Unseen = "retransmission_of_unseen",
    }
}

impl Class {
    /// Retransmissions whose original the capture shows.
    pub const RETRANSMISSIONS: [Self; 5] =
        [Self::Fast, Self::Sack, Self::Rto, Self::TailLossProbe, Self::Unexplained];

    /// Whether this is a retransmission whose original the capture shows.
    pub fn is_retransmission(self) -> bool {
        Self::RETRANSMISSIONS.contains(&self)
    }
}

named_enum! {
    /// Evidence for a class, or for a retransmission being spurious.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Evidence {
        /// Order of the IPv4 identifications.
        IpId = "ip_id",
        /// Order of the TCP timestamps; for a spurious retransmission, the Eifel detection algorithm
        /// (RFC 3522).
        Timestamp = "timestamp",
        /// Time since the hole opened, compared with the round-trip time.
        Time = "time",
        Interface = "interface",
        DuplicateAcks = "duplicate_acks",
        Sack = "sack",
        /// A segment sent later had arrived (RFC 8985 section 6.2).
        SentBefore = "sent_before",
        /// A recovery already in progress.
        Recovery = "recovery",
        /// Silence for as long as a retransmission timer.
        Timer = "timer",
        /// The peer's window, or all data acknowledged.
        Window = "window",
        Flags = "flags",
        /// The data were acknowledged before the retransmission.
        Acknowledged = "acknowledged",
        /// The receiver reported a duplicate (D-SACK, RFC 2883).
        DuplicateSack = "d_sack",
        /// Later data were acknowledged without a retransmission (F-RTO, RFC 5682).
        ForwardRto = "f_rto",
        /// The original was seen to arrive.
        Arrived = "arrived",
        Nothing = "none",
    }
}

impl Evidence {
    /// Evidence of a class.
    pub const OF_CLASSES: [Self; 12] = [
        Self::IpId,
        Self::Timestamp,
        Self::Time,
        Self::Interface,
        Self::DuplicateAcks,
        Self::Sack,
        Self::SentBefore,
        Self::Recovery,
        Self::Timer,
        Self::Window,
        Self::Flags,
        Self::Nothing,
    ];

    /// Evidence that a retransmission was spurious.
    pub const OF_SPURIOUS: [Self; 7] = [
        Self::Acknowledged,
        Self::DuplicateSack,
        Self::Timestamp,
        Self::Time,
        Self::IpId,
        Self::ForwardRto,
        Self::Arrived,
    ];
}

/// The class of a segment and its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    pub class: Class,
    pub evidence: Evidence,
    /// Index among the classified segments of its direction, from 0.
    pub number: u32,
}

/// Number of segments per class.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ClassCounts([u32; Class::ALL.len()]);

impl ClassCounts {
    pub fn add(&mut self, class: Class, segments: u32) {
        if let Some(count) = self.0.get_mut(class as usize) {
            *count = count.saturating_add(segments);
        }
    }

    pub fn of(&self, class: Class) -> u32 {
        self.0.get(class as usize).copied().unwrap_or_default()
    }

    pub fn sum(&self, classes: &[Class]) -> u32 {
        classes.iter().fold(0, |sum, class| sum.saturating_add(self.of(*class)))
    }
}
