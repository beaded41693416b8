//! Length of the packets on the wire. Longer packets in a capture were split after it (segmentation
//! offload) or merged before it.
//!
//! Both SYNs announce it. Without them it is inferred from the segments: those before offload are
//! whole multiples of a packet, so its length is their common divisor.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// The longest payload on Ethernet: longer ones are examined if no SYN announces the length.
const USUAL: u32 = 1_460;
/// No shorter one is full-sized (RFC 9293 section 3.7.1).
const SHORTEST: u32 = 536;
/// The longest on Ethernet with 9,000 bytes, which seven of 1,280 would also equal.
const JUMBO: u32 = 8_960;
/// Segments of one length that confirm it; of two lengths one of each is enough.
const CONFIRMING: u32 = 4;
/// Segments that contradict the inferred length before it is discarded: the last segment of an
/// application's write may have any length.
const MAX_MISFITS: u32 = 3;

/// One side's packets as the wire carries them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct OnWire {
    /// Longest payload of a packet: from the handshake, else learned, else assumed.
    longest: Option<NonZeroU32>,
    /// Interface that captured its first packet.
    pub(super) capture_point: u16,
    /// Time to live of the first packet.
    pub(super) ttl: u8,
    /// Whether the longest payload is only assumed.
    longest_is_usual: bool,
}

impl OnWire {
    /// Without a SYN, examine packets longer than usual before assuming their length.
    pub(super) fn assume_usual_length(&mut self) {
        (self.longest, self.longest_is_usual) = (NonZeroU32::new(USUAL), true);
    }

    pub(super) fn set_longest(&mut self, longest: Option<NonZeroU32>) {
        (self.longest, self.longest_is_usual) = (longest, false);
    }

    /// The longest payload of a packet, if known.
    pub(super) fn known_longest(&self) -> Option<NonZeroU32> {
        self.longest.filter(|_| !self.longest_is_usual)
    }

    /// Whether a payload is longer than any on the wire, if that is known or assumed.
    #[inline(always)]
    pub(super) fn is_exceeded_by(&self, payload: u32) -> bool {
        self.longest.is_some_and(|longest| payload > longest.get())
    }

    /// Whether a payload may show how long packets are.
    pub(super) fn is_to_be_learned_from(&self, payload: u32) -> bool {
        self.longest_is_usual && self.is_exceeded_by(payload)
    }

    /// Packets that carry `bytes`.
    pub(super) fn packets_of(&self, bytes: u32) -> u32 {
        self.known_longest().map_or(1, |longest| bytes.div_ceil(longest.get())).max(1)
    }
}

/// The packet length, and what it says of the long segments before the one that shows it.
#[derive(Clone, Copy, Debug)]
pub struct LearnedLength {
    pub longest: NonZeroU32,
    /// Segments of several packets.
    pub earlier: u32,
    /// Their packets beyond one each.
    pub extra: u64,
}

/// Lengths of long segments so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MssEstimator {
    common: u32,
    segments: u32,
    bytes: u64,
    misfits: u32,
    is_varied: bool,
}

impl MssEstimator {
    /// Whether there were segments longer than usual.
    pub(super) fn has_samples(&self) -> bool {
        self.segments > 0
    }

    /// Add a segment of `payload`; returns what is known now.
    pub(super) fn add(&mut self, payload: u32) -> Option<LearnedLength> {
        let longest = self.length_with(payload)?;
        if longest.get() >= payload {
            return Some(LearnedLength { longest, earlier: 0, extra: 0 });
        }
        // Those before this one, which the caller counts.
        let packets = u64::from(payload / longest.get()).saturating_sub(1);
        let all = (self.bytes / u64::from(longest.get())).saturating_sub(self.segments.into());
        let (earlier, extra) = (self.segments.saturating_sub(1), all.saturating_sub(packets));
        Some(LearnedLength { longest, earlier, extra })
    }

    /// The packet length, if it is known after a segment of `payload`.
    fn length_with(&mut self, payload: u32) -> Option<NonZeroU32> {
        let common = divisor(self.common, payload);
        if common < SHORTEST {
            self.misfits += 1;
            if self.misfits >= MAX_MISFITS {
                *self = Self { common: payload, segments: 1, bytes: payload.into(), ..Self::default() };
            }
            return None;
        }
        self.is_varied |= self.segments > 0 && payload != self.common;
        self.common = common;
        self.segments = self.segments.saturating_add(1);
        self.bytes = self.bytes.saturating_add(payload.into());
        let is_enough = self.is_varied || self.segments >= CONFIRMING;
        NonZeroU32::new(common).filter(|_| is_enough).map(packet_of)
    }
}

/// The packet length if segments are `common` or multiples of it.
fn packet_of(common: NonZeroU32) -> NonZeroU32 {
    let packets = common.get().div_ceil(USUAL);
    let length = common.get() / packets;
    let is_whole = length * packets == common.get() && length >= SHORTEST && common.get() != JUMBO;
    NonZeroU32::new(length).filter(|_| is_whole).unwrap_or(common)
}

fn divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(payloads: &[u32]) -> Option<u32> {
        let mut learning = MssEstimator::default();
        payloads.iter().find_map(|&payload| learning.add(payload)).map(|learned| learned.longest.get())
    }

    #[test]
    fn test_segments_of_several_packets_show_their_length() {
        assert_eq!(learned(&[2_896, 4_344]), Some(1_448));
        assert_eq!(learned(&[5_792, 2_896]), Some(1_448));
        assert_eq!(learned(&[65_160; 4]), Some(1_448));
        assert_eq!(learned(&[2_896]), None);
        // The first was the end of an application's write.
        assert_eq!(learned(&[5_000, 14_480, 2_896, 4_344, 14_480]), Some(1_448));
    }

    #[test]
    fn test_long_packets_of_one_length_are_packets() {
        assert_eq!(learned(&[8_948; 4]), Some(8_948));
        assert_eq!(learned(&[8_960; 4]), Some(8_960));
        assert_eq!(learned(&[5_003, 7_001, 9_007, 4_999, 6_007]), None);
    }
}
