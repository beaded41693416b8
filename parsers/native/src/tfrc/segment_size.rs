//! The segment size s where it is not given (section 4.1): the mean payload of data packets.

use serde::{Deserialize, Serialize};

/// Weight of the old mean for each packet, as for R.
const KEPT: f64 = 0.9;
/// Packets before a mean is used. Until then the largest counts: flows begin with small packets.
const FIRST: u32 = 10;

/// The size so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SegmentSize {
    packets: u32,
    s: f64,
}

impl SegmentSize {
    /// A packet with so much payload passed. One without is no data.
    pub fn on_packet(&mut self, bytes: u32) {
        if bytes == 0 {
            return;
        }
        self.packets = self.packets.saturating_add(1);
        let size = f64::from(bytes);
        self.s = if self.packets <= FIRST { self.s.max(size) } else { KEPT * self.s + (1.0 - KEPT) * size };
    }

    /// s in bytes; None before any data.
    pub fn s(&self) -> Option<f64> {
        (self.packets > 0).then_some(self.s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_small_packets_at_the_beginning_do_not_count_and_later_ones_do() {
        let mut size = SegmentSize::default();
        assert_eq!(size.s(), None);
        [8, 0, 1000, 1000].into_iter().for_each(|bytes| size.on_packet(bytes));
        assert_eq!(size.s(), Some(1000.0));
        (0..200).for_each(|_| size.on_packet(500));
        assert!((size.s().unwrap() - 500.0).abs() < 1.0);
    }
}
