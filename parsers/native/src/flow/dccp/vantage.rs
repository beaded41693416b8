//! Where on the path of a DCCP connection the capture was taken.

use super::Connection;
use crate::flow::tcp::vantage::{Vantage, VantageEvidence};
use crate::packet::key::Side;

/// Window counter samples needed for a reliable round-trip time.
const MIN_SAMPLES: u64 = 3;

impl Connection {
    /// Where the data of `side` were captured, and the confidence from 0 to 1. None if unknown.
    pub fn vantage(&self, side: Side) -> Option<(Vantage, f64)> {
        let mut signs = VantageEvidence::default();
        if let (Some(opener), [Some(there), Some(here)]) = (self.opener, self.handshake_ns) {
            // The other end answers the Request, the opener the Response.
            let us = [there, here].map(|ns| u32::try_from(ns / 1_000).unwrap_or(u32::MAX));
            signs.add_handshake(if opener == Side::High { us } else { [us[1], us[0]] });
        }
        signs.add_hops([Side::Low, Side::High].map(|side| self.half(side).ttl));
        for side in [Side::Low, Side::High] {
            self.add_turnaround(side, &mut signs);
        }
        signs.conclusion(side)
    }

    /// At the sender an acknowledgement takes the whole round trip of the window counter, at the
    /// receiver nothing. Both grow with queues, so that the shortest one is a small part of the others.
    fn add_turnaround(&self, side: Side, signs: &mut VantageEvidence) {
        let half = self.half(side);
        let Some(round_trip) = half.ccid_half.counter_rtt() else { return };
        let median_ms = half.rtt_sketch.percentile_ms(0.5, &half.rtt.range);
        if let Some(median_ms) = median_ms.filter(|_| half.rtt.range.count() >= MIN_SAMPLES) {
            signs.add_turnaround(side, median_ms / 1e3 / round_trip);
        }
    }
}
