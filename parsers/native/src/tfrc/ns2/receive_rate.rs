//! The receive rate that ns-2's sink reports.

use std::collections::VecDeque;

use super::PRINTED;

/// Limit of packets remembered; with more in one round-trip time the rate is too low.
const REMEMBERED: usize = 1 << 14;

/// Recently received packets, by sequence number.
#[derive(Clone, Debug, Default)]
pub struct ReceiveRate {
    /// Number and time of unmarked packets, in order of numbers.
    recent: VecDeque<(i64, f64)>,
    /// Arrivals since the last report, duplicates too.
    since_report: u64,
}

impl ReceiveRate {
    /// Count an arrival of any kind.
    pub fn on_arrival(&mut self) {
        self.since_report += 1;
    }

    /// Add a packet that is new and not marked.
    pub fn on_new(&mut self, number: i64, time: f64) {
        let at = self.recent.partition_point(|(known, _)| *known < number);
        self.recent.insert(at, (number, time));
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
    }

    /// Packets per second at `time`, `since` seconds after the last report. If that is a round-trip
    /// time or more it is the mean since then, otherwise the packets of the last round-trip time
    /// before the newest, at `newest`. The very first packet of a flow never counts there, and where
    /// none counts ns-2 reports one packet per second.
    pub fn packets_per_second(&self, since: f64, rtt: f64, newest: f64) -> f64 {
        if rtt <= 0.0 {
            return 1.0;
        }
        if since >= rtt {
            return if self.since_report > 0 { self.since_report as f64 / since } else { 1.0 };
        }
        // In slow start packets are exactly one round-trip time apart, and that old does not count.
        let oldest = newest - rtt + PRINTED;
        let counted = self.recent.iter().rev().take_while(|(number, time)| *number > 0 && *time > oldest);
        match counted.count() {
            0 => 1.0,
            packets => packets as f64 / rtt,
        }
    }

    pub fn on_report(&mut self) {
        self.since_report = 0;
    }
}
