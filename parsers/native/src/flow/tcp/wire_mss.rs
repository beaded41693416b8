//! Length of the packets on the wire. Longer packets in a capture were split after it (segmentation
//! offload) or merged before it.
//!
//! Both SYNs announce it. Without them it is inferred from the segments: those before offload are
//! whole multiples of a packet, so its length is their common divisor.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::classify::class::Class;
use super::half_connection::HalfConnection;

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
    /// Add a segment of `payload`; returns the packet length if it is known now.
    fn take(&mut self, payload: u32) -> Option<NonZeroU32> {
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

    /// Packets beyond one per segment, if packets carry `longest`.
    fn extra(&self, longest: NonZeroU32) -> u64 {
        (self.bytes / u64::from(longest.get())).saturating_sub(self.segments.into())
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

impl HalfConnection {
    /// Without a SYN, examine packets longer than usual before assuming their length.
    pub(super) fn assume_usual_length(&mut self) {
        (self.longest, self.longest_is_usual) = (NonZeroU32::new(USUAL), true);
    }

    /// The longest payload of a packet on the wire, if known.
    pub(super) fn known_longest(&self) -> Option<NonZeroU32> {
        self.longest.filter(|_| !self.longest_is_usual)
    }

    /// Packets on the wire that carry `bytes`.
    pub(super) fn packets_of(&self, bytes: u32) -> u32 {
        self.known_longest().map_or(1, |longest| bytes.div_ceil(longest.get())).max(1)
    }

    fn learn_longest(&mut self, payload: u32) {
        let rare_counts = self.recovery_mut().rare_counts_mut();
        let Some(longest) = rare_counts.learning.take(payload) else { return };
        if longest.get() < payload {
            // Those before this one, which the caller counts.
            let others = rare_counts.learning.segments.saturating_sub(1);
            let packets = u64::from(payload / longest.get()).saturating_sub(1);
            rare_counts.super_segments = rare_counts.super_segments.saturating_add(others);
            let extra = rare_counts.learning.extra(longest).saturating_sub(packets);
            rare_counts.extra_segments = rare_counts.extra_segments.saturating_add(extra);
        }
        (self.longest, self.longest_is_usual) = (Some(longest), false);
    }

    /// Handle a packet of `payload` ending at `end` that no link carries, or that fills the window.
    #[cold]
    pub(super) fn note_unusual_size(&mut self, payload: u32, end: i64) {
        if self.longest_is_usual && self.longest.is_some_and(|usual| payload > usual.get()) {
            self.learn_longest(payload);
        }
        let packets = self.packets_of(payload);
        let is_full = end >= self.window_end;
        let is_probe = is_full && payload == 1 && self.is_window_closed();
        let recovery = self.recovery_mut();
        if is_probe {
            recovery.count_segments(Class::ZeroWindowProbe, 1);
            recovery.rare_counts_mut().last_probe_end = Some(end);
        } else if is_full {
            recovery.window_full = recovery.window_full.saturating_add(1);
        }
        if packets > 1 {
            let rare_counts = recovery.rare_counts_mut();
            rare_counts.super_segments = rare_counts.super_segments.saturating_add(1);
            rare_counts.extra_segments = rare_counts.extra_segments.saturating_add(u64::from(packets - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(payloads: &[u32]) -> Option<u32> {
        let mut learning = MssEstimator::default();
        payloads.iter().find_map(|&payload| learning.take(payload)).map(NonZeroU32::get)
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
