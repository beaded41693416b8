//! The clock of TFRC's sender over RTP, in milliseconds or microseconds depending on the
//! implementation.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::wire::rtp::RttSendTime;

/// Send times remembered until reports echo them: 16 KiB.
const REMEMBERED: usize = 1024;
/// Shortest common time of two clocks to be compared, in ns.
const LEAST_NS: i64 = 20_000_000;
/// Possible ticks per second.
const RATES: [f64; 2] = [1e3, 1e6];

/// Send times of the latest packets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SendTimes {
    first: Option<(u32, i64)>,
    rate: Option<f64>,
    /// The sender's own R in ticks, once it has one.
    reported_rtt: Option<u32>,
    latest: VecDeque<(u32, u16, i64)>,
}

impl SendTimes {
    /// Record a captured packet with these times and this number.
    pub fn add(&mut self, RttSendTime { rtt, send_time }: RttSendTime, sequence: u16, time_ns: i64) {
        self.reported_rtt = Some(rtt).filter(|rtt| *rtt > 0).or(self.reported_rtt);
        let (first, first_ns) = *self.first.get_or_insert((send_time, time_ns));
        let elapsed_ns = time_ns.saturating_sub(first_ns);
        if self.rate.is_none() && elapsed_ns >= LEAST_NS {
            let rate = f64::from(send_time.wrapping_sub(first)) / (elapsed_ns as f64 / 1e9);
            self.rate = RATES.into_iter().find(|known| (known / 2.0..known * 2.0).contains(&rate));
        }
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back((send_time, sequence, time_ns));
    }

    /// Whether no send time is recorded.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Ticks per second, once known.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// The sender's own R in seconds, once it and its unit are known.
    pub fn reported_rtt(&self) -> Option<f64> {
        Some(f64::from(self.reported_rtt?) / self.rate?)
    }

    /// Number of the latest packet with this send time, and its capture time.
    pub fn captured(&self, send_time: u32) -> Option<(u16, i64)> {
        let found = self.latest.iter().rev().find(|(of, ..)| *of == send_time)?;
        Some((found.1, found.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_the_unit_is_decided_by_the_capture_across_the_wrap() {
        for (per_ms, rate) in [(1, 1e3), (1000, 1e6)] {
            let mut times = SendTimes::default();
            for packet in 0..10_u16 {
                assert_eq!(times.rate(), (packet > 4).then_some(rate));
                let late_ns = i64::from(packet % 3) * 300_000;
                let ms = u32::from(packet) * 5;
                let send_time = (u32::MAX - 3).wrapping_add(ms * per_ms);
                times.add(
                    RttSendTime { rtt: 40 * per_ms * u32::from(packet > 1), send_time },
                    packet,
                    i64::from(ms) * 1_000_000 + late_ns,
                );
            }
            assert_eq!(times.reported_rtt(), Some(0.04));
            assert_eq!(times.captured((u32::MAX - 3).wrapping_add(40 * per_ms)), Some((8, 40_600_000)));
        }
    }

    #[test]
    fn test_what_is_no_clock_has_no_unit() {
        let mut times = SendTimes::default();
        (0..100).for_each(|packet| {
            times.add(RttSendTime { rtt: 9, send_time: 7 }, packet, i64::from(packet) * 10_000_000);
        });
        assert_eq!(times.reported_rtt(), None);
        assert_eq!(times.rate(), None);
    }
}
