//! One loss interval of ns-2's sink, and its length in packets (`ShortIntervals_`).

use super::parameters::{Parameters, ShortLosses};

/// Divisor of a short interval where ns-2 has not finished the second of its rules.
const UNFINISHED: f64 = 7.0;

/// An interval that is open, or was closed by the loss event after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossInterval {
    pub packets: f64,
    /// Packets that were lost or marked.
    pub lost: f64,
    /// Whether it lasted less than `ShortRtts_` round-trip times at the last report.
    pub is_short: bool,
    /// Its duration in round-trip times, rounded up.
    pub rounds: f64,
}

impl LossInterval {
    /// The synthetic interval before the first loss event.
    pub fn made_up(packets: f64) -> Self {
        Self { packets, lost: 0.0, is_short: false, rounds: 0.0 }
    }

    /// An interval started by a loss event: its packet is the first loss, and it is short until a
    /// report finds it long.
    pub fn begun() -> Self {
        Self { packets: 0.0, lost: 1.0, is_short: true, rounds: 0.0 }
    }

    /// An interval started by the first loss event: losses that belong to it do not make it
    /// shorter.
    pub fn after_slow_start() -> Self {
        Self { is_short: false, ..Self::begun() }
    }

    /// A loss event ends it, this many seconds after the one that began it.
    pub fn end(&mut self, seconds: f64, rtt: f64, parameters: &Parameters) {
        self.is_short |= seconds < parameters.short_rtts * rtt;
        if rtt > 0.0 {
            self.rounds = rounds(seconds, rtt);
        }
    }

    /// A report is made while it is open, this many seconds after it began.
    pub fn look(&mut self, seconds: f64, rtt: f64, parameters: &Parameters) {
        self.is_short &= seconds <= parameters.short_rtts * rtt;
        if rtt > 0.0 {
            self.rounds = rounds(seconds, rtt);
        }
    }

    /// Its length in packets, where `of_large` packets of the sender make a large one.
    pub fn length(&self, parameters: &Parameters, of_large: Option<f64>) -> f64 {
        let Some(losses) = parameters.short_intervals.losses.filter(|_| self.is_short) else {
            return self.packets;
        };
        let lost = match losses {
            ShortLosses::Lost => self.lost,
            ShortLosses::AsLargePackets => of_large.map_or(UNFINISHED, |packets| packets.min(self.lost)),
            ShortLosses::ByRoundTrips => (self.lost * self.share(parameters.short_rtts)).floor(),
        };
        // Whole packets, as ns-2 divides.
        if lost == 0.0 { self.packets } else { (self.packets / lost).trunc() }
    }

    /// The share of its losses that counts.
    fn share(&self, short_rtts: f64) -> f64 {
        if short_rtts == 0.0 { 1.0 } else { (short_rtts + 1.0 - self.rounds) / short_rtts }
    }
}

fn rounds(seconds: f64, rtt: f64) -> f64 {
    (seconds / rtt).ceil().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(setting: f64, interval: &LossInterval, of_large: Option<f64>) -> f64 {
        let mut parameters = Parameters::default();
        assert!(parameters.set("short_intervals", setting));
        interval.length(&parameters, of_large)
    }

    #[test]
    fn test_a_short_interval_counts_for_fewer_packets_the_more_were_lost() {
        let short = LossInterval { packets: 32.0, lost: 5.0, is_short: true, rounds: 2.0 };
        assert_eq!(length(0.0, &short, None), 32.0);
        assert_eq!(length(1.0, &short, None), 6.0);
        assert_eq!((length(2.0, &short, Some(3.0)), length(2.0, &short, None)), (10.0, 4.0));
        // Half of the five, rounded down.
        assert_eq!(length(3.0, &short, None), 16.0);
        let long = LossInterval { is_short: false, ..short };
        assert!([1.0, 2.0, 3.0, 11.0].iter().all(|setting| length(*setting, &long, Some(3.0)) == 32.0));
    }

    #[test]
    fn test_an_interval_is_short_until_a_report_finds_it_long() {
        let parameters = Parameters::default();
        let mut interval = LossInterval::begun();
        interval.look(0.2, 0.1, &parameters);
        assert_eq!((interval.is_short, interval.rounds), (true, 2.0));
        interval.look(0.201, 0.1, &parameters);
        assert_eq!((interval.is_short, interval.rounds), (false, 3.0));
        // On the sender's clock, which separates loss events, it may still be short.
        interval.end(0.19, 0.1, &parameters);
        assert_eq!((interval.is_short, interval.rounds), (true, 2.0));
    }
}
