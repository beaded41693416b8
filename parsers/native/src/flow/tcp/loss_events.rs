//! Losses grouped into loss events (RFC 5348 section 5.2).

use serde::{Deserialize, Serialize};

/// Losses within one round-trip time of the first are one event: a sender reacts once.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct LossEvents {
    count: u32,
    segments: u32,
    start_ns: i64,
}

impl LossEvents {
    /// Record `segments` lost, sent at `sent_ns` when the round-trip time was `rtt_ns`.
    pub fn note(&mut self, sent_ns: i64, rtt_ns: i64, segments: u32) {
        self.segments = self.segments.saturating_add(segments);
        if self.count == 0 || sent_ns.saturating_sub(self.start_ns) > rtt_ns {
            self.count = self.count.saturating_add(1);
            self.start_ns = sent_ns;
        }
    }

    /// Remove `segments` that were not lost after all. Their event stays: it may contain others.
    pub fn remove(&mut self, segments: u32) {
        self.segments = self.segments.saturating_sub(segments);
        if self.segments == 0 {
            self.count = 0;
        }
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Lost segments of all events.
    pub fn segments(&self) -> u32 {
        self.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_losses_of_one_round_trip_are_one_event() {
        let mut events = LossEvents::default();
        for sent_ns in [100, 110, 150, 151, 201, 202, 140] {
            events.note(sent_ns, 50, 2);
        }
        assert_eq!((events.count(), events.segments()), (3, 14));
    }
}
