//! Retransmissions, and the acknowledgements after them.

use serde::{Deserialize, Serialize};

use crate::flow::tcp::classify::class::Evidence;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Retransmission {
    pub start: i64,
    pub end: i64,
    pub time_ns: i64,
    /// Time of the previous transmission.
    pub previous_ns: i64,
    /// The round-trip time at that time; 0 if unknown.
    pub rtt_ns: i64,
    /// When an acknowledgement showed that it arrived before its original, or [`NEVER`].
    pub arrived_ns: i64,
    /// Its bytes that the receiver reported as duplicates.
    pub doubled: u32,
    /// Whether arrivals are visible, so that nothing is concluded from acknowledgements.
    pub shows_arrivals: bool,
    pub timestamp: Option<u32>,
    /// Whether it was the first unacknowledged segment.
    pub is_head: bool,
    pub segments: u32,
    /// Index of its classification.
    pub number: u32,
    pub is_acknowledged: bool,
    /// Evidence that it was spurious.
    pub spurious: Option<Evidence>,
}

/// Marks [`Retransmission::arrived_ns`] as unknown.
pub const NEVER: i64 = i64::MAX;

/// A retransmission found to be spurious.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SpuriousRetransmission {
    /// Index of its classification.
    pub number: u32,
    pub segments: u32,
    pub sent_ns: i64,
    pub evidence: Evidence,
    /// Whether it was counted, and only the evidence is new.
    pub is_known: bool,
    /// Whether it was counted as a loss before the capture.
    pub is_before: bool,
}

impl Retransmission {
    /// Mark it as not needed, unless it is already marked or the arrivals show that it was needed.
    pub(super) fn mark_spurious(&mut self, evidence: Evidence) -> Option<SpuriousRetransmission> {
        let is_news = match self.spurious {
            None => evidence == Evidence::Arrived || !self.shows_arrivals,
            // Evidence that reached the sender replaces evidence that did not.
            Some(Evidence::Arrived) => evidence != Evidence::Arrived && !self.shows_arrivals,
            Some(_) => false,
        };
        is_news.then(|| {
            let is_known = self.spurious.replace(evidence).is_some();
            let Self { number, segments, time_ns: sent_ns, .. } = *self;
            SpuriousRetransmission { number, segments, sent_ns, evidence, is_known, is_before: false }
        })
    }

    /// Whether acknowledgements showed the sender that it was not needed.
    pub(super) fn is_concluded(&self) -> bool {
        self.spurious.is_some_and(|evidence| evidence != Evidence::Arrived)
    }
}

/// An acknowledgement during recovery.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement {
    pub position: i64,
    pub time_ns: i64,
    /// SACK blocks of this stream, in their order.
    pub blocks: [Option<(i64, i64)>; 4],
    /// Whether it has blocks, of whatever numbers.
    pub has_blocks: bool,
    /// Whether it is a duplicate of a packet.
    pub is_copy: bool,
    /// Position after the highest sent.
    pub next: i64,
    /// The timestamp that it echoes.
    pub echo: Option<u32>,
    /// An acknowledgement sooner than this after a packet cannot be for it; 0 if unknown.
    pub earliest_ns: i64,
    /// Whether SACK blocks would report data received out of order.
    pub has_sack: bool,
}

impl Acknowledgement {
    /// Whether it arrives so soon after `resent` that it cannot be for it. False if the clock was
    /// set back.
    pub(super) fn is_too_soon_for(&self, resent: &Retransmission) -> bool {
        (0..self.earliest_ns).contains(&self.time_ns.saturating_sub(resent.time_ns))
    }

    /// Whether enough time passed for `resent` to reach the receiver and its acknowledgement to
    /// return.
    pub(super) fn is_late_enough_for(&self, resent: &Retransmission) -> bool {
        self.earliest_ns > 0 && self.time_ns.saturating_sub(resent.time_ns) >= 2 * self.earliest_ns
    }
}
