//! Computes p from loss events as ns-2's sink does: by one of four estimates.

use std::collections::VecDeque;

use super::loss_interval::LossInterval;
use super::{Header, Parameters, p_of};
use crate::tfrc::ns2::parameters::Algorithm;

/// Packets that the sink remembers (`InitHistorySize_`).
const REMEMBERED: f64 = 100_000.0;

/// The most loss events kept for `algo_` 3 and 4, the largest `minlc_`.
const MAX_EVENTS: usize = 1000;

/// Loss events so far.
#[derive(Clone, Debug)]
pub struct History {
    parameters: Parameters,
    /// The interval that no loss event has ended.
    open: LossInterval,
    /// Closed intervals, the newest first.
    closed: VecDeque<LossInterval>,
    /// Weight of each after discounting.
    kept: VecDeque<f64>,
    /// Discount applied to all of them until the open interval closes.
    factor: f64,
    /// The exponentially weighted mean.
    average: Option<f64>,
    /// First packets of the latest loss events, the newest first.
    events: VecDeque<i64>,
}

impl History {
    /// No loss event yet.
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            parameters: *parameters,
            open: LossInterval::made_up(0.0),
            closed: VecDeque::new(),
            kept: VecDeque::new(),
            factor: 1.0,
            average: None,
            events: VecDeque::new(),
        }
    }

    /// Packets in the open interval, then in the closed ones, the newest first; nothing before the first loss
    /// event.
    pub fn packets(&self) -> impl Iterator<Item = f64> {
        let is_known = !self.closed.is_empty();
        let open = is_known.then_some(self.open.packets);
        open.into_iter().chain(self.closed.iter().map(|interval| interval.packets))
    }

    /// Mark this many packets of the open interval as lost or marked.
    pub fn on_lost(&mut self, packets: u64) {
        self.open.lost += packets as f64;
    }

    /// A loss event began, this many seconds after the previous one.
    pub fn on_event(&mut self, seconds: f64, rtt: f64) {
        self.open.end(seconds, rtt, &self.parameters);
    }

    /// Add this many packets to the open interval.
    pub fn extend(&mut self, packets: f64) {
        self.open.packets += packets;
    }

    /// A report is made, this many seconds after the latest loss event.
    pub fn on_report(&mut self, seconds: f64, rtt: f64) {
        self.open.look(seconds, rtt, &self.parameters);
    }

    /// Entries of the array of intervals beside the open one (`numsamples`).
    fn slots(&self) -> usize {
        self.parameters.num_samples as usize + usize::from(self.parameters.smooth)
    }

    /// Weight of the `i`th entry (`init_WALI`); with an odd number some are below 0.
    fn weight(&self, i: usize) -> f64 {
        let middle = self.slots() / 2;
        if i < middle {
            return 1.0;
        }
        let beyond = i - middle + usize::from(!self.parameters.smooth);
        1.0 - beyond as f64 / (middle as f64 + 1.0)
    }

    /// The synthetic first loss interval.
    pub fn begin(&mut self, packets: f64) {
        self.push(LossInterval::made_up(packets));
        self.open = LossInterval::after_slow_start();
    }

    /// The packet `start` began a loss event and ended the open interval.
    pub fn close(&mut self, start: i64) {
        let length = self.open.packets;
        self.push(self.open);
        self.open = LossInterval::begun();
        let history = self.parameters.history;
        let mean = self.average.map_or(length, |average| history * average + (1.0 - history) * length);
        self.average = Some(mean);
        self.events.push_front(start);
        self.events.truncate(MAX_EVENTS);
    }

    fn push(&mut self, interval: LossInterval) {
        self.kept.iter_mut().for_each(|kept| *kept *= self.factor);
        self.closed.push_front(interval);
        self.kept.push_front(1.0);
        self.factor = 1.0;
        let slots = self.slots();
        self.closed.truncate(slots);
        self.kept.truncate(slots);
    }

    /// p, while `highest` is the last packet. `header` is of the newest one, and `report_bytes` is
    /// the size of the report that carries p.
    pub fn p(&mut self, highest: i64, header: &Header, report_bytes: u32) -> f64 {
        match self.parameters.algo {
            // ns-2 uses the size of the sink's own packets where the sender's would be right.
            Algorithm::Weighted => self.weighted((header.fsize / f64::from(report_bytes.max(1))).trunc()),
            Algorithm::Exponential => self.exponential(),
            Algorithm::RateWindow => self.in_rate_window(highest, header),
            Algorithm::EventWindow => self.in_window(0.0, highest),
        }
    }

    fn weighted(&mut self, of_large: f64) -> f64 {
        if self.closed.is_empty() {
            return 0.0;
        }
        let open = self.open.packets;
        if self.parameters.discount && open > 0.0 {
            let ratio = 2.0 * self.mean_of_closed() / open;
            if ratio < 1.0 {
                self.factor = ratio.max(self.parameters.min_discount_ratio);
            }
        }
        let is_left_out = self.open.is_short && self.parameters.short_intervals.leaves_out_open;
        let with_open = if is_left_out { f64::NEG_INFINITY } else { self.mean_with_open(of_large) };
        let mean = self.mean_of_closed().max(with_open);
        // A mean below one packet would be a rate above one event a packet.
        if mean > 1.0 { 1.0 / mean } else { 1.0 }
    }

    fn mean_of_closed(&self) -> f64 {
        let weights = (1..).map(|i| self.weight(i));
        let lengths = self.closed.iter().map(|interval| interval.length(&self.parameters, None));
        mean(lengths.zip(weights.zip(&self.kept).map(|(weight, kept)| weight * kept)))
    }

    /// With `smooth_` the open interval precedes the others, and the oldest of a full array is
    /// dropped.
    fn mean_with_open(&self, of_large: f64) -> f64 {
        let of_large = Some(of_large).filter(|_| self.parameters.smooth);
        let length = |interval: &LossInterval| interval.length(&self.parameters, of_large);
        let first = usize::from(self.parameters.smooth);
        let is_full = self.closed.len() == self.slots();
        let count = self.closed.len().saturating_sub(usize::from(self.parameters.smooth && is_full));
        let weights = (first + 1..).map(|i| self.weight(i) * self.factor);
        let closed =
            self.closed.iter().map(length).zip(weights.zip(&self.kept).map(|(weight, kept)| weight * kept));
        mean(std::iter::once((length(&self.open), self.weight(first))).chain(closed.take(count)))
    }

    fn exponential(&self) -> f64 {
        let Some(average) = self.average else { return 0.0 };
        let open = self.open.packets;
        let history = self.parameters.history;
        let with_open = if open > 0.0 { history * average + (1.0 - history) * open } else { average };
        1.0 / average.max(with_open).max(1.0)
    }

    /// Packets that contain `minlc_` loss events, for the rate at which the equation gives the
    /// sender's rate.
    fn in_rate_window(&self, highest: i64, header: &Header) -> f64 {
        let packets = if header.rate > 0.0 && header.rtt > 0.0 {
            self.parameters.minlc / p_of(header.rate, header.rtt, header.tzero, f64::from(header.size))
        } else {
            REMEMBERED
        };
        self.in_window(packets, highest)
    }

    /// Loss events per packet in the last `packets`, or in more if these have less than `minlc_`.
    fn in_window(&self, packets: f64, highest: i64) -> f64 {
        let most = (highest as f64).clamp(0.0, REMEMBERED);
        let back = |start: &i64| highest.saturating_sub(*start) as f64 + 1.0;
        let window = packets.min(most).ceil();
        let inside = self.events.iter().take_while(|start| back(start) <= window).count();
        let wanted = self.parameters.minlc as usize;
        let (found, window) = if inside >= wanted {
            (inside, window)
        } else {
            let reached = self.events.iter().take(wanted).take_while(|start| back(start) <= most);
            let found = reached.clone().count();
            let all = reached.last().filter(|_| found == wanted).map_or(most, back);
            (found, all)
        };
        if window > 0.0 { (found as f64 / window).min(1.0) } else { 0.0 }
    }
}

/// The mean of intervals with their weights; 0 where these leave nothing.
fn mean(weighted: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, weights) = weighted
        .fold((0.0, 0.0), |(sum, weights), (length, weight)| (sum + length * weight, weights + weight));
    if weights == 0.0 { 0.0 } else { sum / weights }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn history(settings: &[(&str, f64)], closed: &[f64]) -> History {
        let mut parameters = Parameters::default();
        settings.iter().for_each(|(name, value)| assert!(parameters.set(name, *value)));
        let mut history = History::new(&parameters);
        let mut at = 0.0;
        for &length in closed {
            at += length;
            history.open.packets = length;
            history.close(at as i64 - 1);
        }
        history
    }

    fn p(history: &mut History, open: f64, highest: i64) -> f64 {
        history.open.packets = open;
        history.p(highest, &Header { rtt: 0.1, tzero: 0.3, size: 1000, ..Header::default() }, 40)
    }

    #[test]
    fn test_weights_are_the_rfcs_for_eight_whether_smooth_or_not() {
        let weights = |smooth, from| {
            let history = history(&[("smooth", smooth)], &[]);
            (from..from + 8).map(|i| (history.weight(i) * 10.0).round() / 10.0).collect::<Vec<_>>()
        };
        let rfc = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
        assert_eq!((weights(1.0, 1), weights(0.0, 0)), (rfc.to_vec(), rfc.to_vec()));
    }

    #[test]
    fn test_all_intervals_count_beside_the_open_one() {
        assert_eq!(p(&mut history(&[], &[102.0, 33.0]), 49.0, 183), 1.0 / 67.5);
        assert_eq!(p(&mut history(&[], &[102.0, 33.0]), 90.0, 224), 1.0 / 75.0);
    }

    #[test]
    fn test_a_discount_becomes_permanent_at_the_next_loss_event() {
        let mut history = history(&[], &[100.0]);
        assert_eq!(p(&mut history, 400.0, 499), 1.0 / 300.0);
        history.close(500);
        assert_eq!(history.kept, [1.0, 0.5]);
    }

    #[test]
    fn test_the_exponential_mean_keeps_its_share() {
        let mut history = history(&[("algo", 2.0)], &[100.0, 200.0]);
        assert_eq!(p(&mut history, 0.0, 299), 1.0 / 125.0);
        assert_eq!(p(&mut history, 325.0, 624), 1.0 / 175.0);
    }

    #[test]
    fn test_windows_count_events_back_from_the_newest_packet() {
        let mut events = history(&[("algo", 4.0), ("minlc", 2.0)], &[100.0, 50.0, 30.0]);
        // The second newest event was packet 149, the newest packet is 189.
        assert_eq!(p(&mut events, 10.0, 189), 2.0 / 41.0);
        let mut few = history(&[("algo", 4.0)], &[100.0]);
        assert_eq!(p(&mut few, 10.0, 110), 1.0 / 110.0);
    }

    #[test]
    fn test_losses_of_short_intervals_count() {
        let mut history = history(&[("short_intervals", 1.0)], &[100.0, 60.0]);
        // Two round-trip times with three losses, the last of which began the next interval.
        history.on_lost(2);
        history.extend(90.0);
        history.on_event(0.15, 0.1);
        history.close(250);
        history.on_report(0.1, 0.1);
        // Both intervals made before are short, too: no report looked while they were open.
        assert_eq!(p(&mut history, 1.0, 251), 1.0 / ((30.0 + 60.0 + 100.0) / 3.0));
    }

    proptest! {
        #[test]
        fn test_p_is_a_share_whatever_the_intervals(
            lengths in proptest::collection::vec(1.0..1e9_f64, 0..40), open in 0.0..1e12_f64,
            algo in 1_u8..5, samples in 1_u8..65, smooth in 0_u8..2, highest: i64,
            (short, lost, rounds) in (0_u8..4, 0_u8..200, 0_u8..200),
        ) {
            let settings = [
                ("algo", f64::from(algo)),
                ("num_samples", f64::from(samples)),
                ("smooth", f64::from(smooth)),
                ("short_intervals", f64::from(short)),
            ];
            let mut history = history(&settings, &lengths);
            for interval in &mut history.closed {
                (interval.lost, interval.rounds) = (lost.into(), rounds.into());
            }
            let found = p(&mut history, open, highest);
            prop_assert!((0.0..=1.0).contains(&found), "{found}");
        }
    }
}
