//! Slow start of ns-2's agent, and its alternatives where the trace's times are ambiguous.

use super::Sender;
use crate::tfrc::ns2::PRINTED;

/// Rates that differ by less than this share come from times that the trace rounds.
const SAME_RATE: f64 = 1e-5;

/// Effect of a report on the rate in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowStartStep {
    Up,
    Stay,
    Down,
}

impl SlowStartStep {
    fn of(is_below: bool, is_above: bool, is_late: bool) -> Self {
        match () {
            () if is_below && is_late => Self::Up,
            () if is_above => Self::Down,
            () => Self::Stay,
        }
    }
}

impl Sender {
    /// A packet sent on the timer of only some of the alternatives decides between them.
    pub(super) fn settle(&mut self, time: f64) {
        let fits = |sender: &Self| (sender.pacing.timer - time).abs() <= PRINTED;
        let is_extra = (time - self.pacing.extra).abs() <= PRINTED;
        if self.others.is_empty() || is_extra || (!fits(self) && !self.others.iter().any(fits)) {
            return;
        }
        self.others.retain(fits);
        if !fits(self) {
            let mut others = std::mem::take(&mut self.others);
            *self = Self { is_revised: true, ..others.swap_remove(0) };
            self.others = others;
        }
        if self.others.is_empty() {
            self.ties = 0;
        }
    }

    /// Returns the alternative states.
    pub(super) fn slow_start(&mut self, time: f64) -> Vec<Self> {
        let least = self.size / self.rtt();
        let initial = self.initial_rate();
        let limit = self.slow_start_limit();
        let is_early = self.round_id <= 1 || (self.round_id == 2 && self.initial_window() > 1.0);
        let is_excused = self.parameters.idle_fix && self.was_data_limited(time);
        if is_early || (limit > 0.0 && limit < initial && is_excused) {
            self.ramp_to(self.rate.max(initial), time);
        } else if limit <= 0.0 {
            self.pacing.old_rate = self.rate;
            (self.rate, self.pacing.delta, self.last_change) = (least, 0.0, time);
        } else {
            return self.approach(limit, least, time);
        }
        Vec::new()
    }

    /// Multiply the rate once per round-trip time as long as it is below `limit`, and fall back to
    /// half of that above it.
    fn approach(&mut self, limit: f64, least: f64, time: f64) -> Vec<Self> {
        let elapsed = time - self.last_change;
        let is_close = (elapsed - self.rtt()).abs() <= PRINTED;
        let is_at_limit = (self.rate - limit).abs() <= SAME_RATE * limit;
        // Reports in slow start come exactly one round-trip time apart, which is not more than one.
        let is_late = elapsed > self.rtt() + PRINTED;
        let likely = SlowStartStep::of(self.rate < limit, self.rate > limit, is_late);
        let possible = |turn: &SlowStartStep| match turn {
            SlowStartStep::Up => (self.rate < limit || is_at_limit) && (is_late || is_close),
            SlowStartStep::Stay => is_at_limit || (self.rate < limit && (!is_late || is_close)),
            SlowStartStep::Down => self.rate > limit || is_at_limit,
        };
        let unlikely = [SlowStartStep::Up, SlowStartStep::Stay, SlowStartStep::Down]
            .into_iter()
            .filter(|turn| *turn != likely);
        let unlikely: Vec<SlowStartStep> = unlikely.filter(possible).collect();
        self.ties = self.ties.saturating_add(u64::from(!unlikely.is_empty()));
        let mut others = vec![self.clone(); unlikely.len()];
        for (other, turn) in others.iter_mut().zip(unlikely) {
            other.turn(turn, limit, least, time);
        }
        self.turn(likely, limit, least, time);
        others
    }

    fn turn(&mut self, turn: SlowStartStep, limit: f64, least: f64, time: f64) {
        match turn {
            SlowStartStep::Up => {
                self.ramp_to((self.parameters.ssmult * self.rate).min(limit).max(least), time)
            }
            SlowStartStep::Stay => {}
            SlowStartStep::Down => {
                self.rate = limit / 2.0;
                (self.pacing.old_rate, self.pacing.delta, self.last_change) = (self.rate, 0.0, time);
            }
        }
    }

    /// Go to `rate` in equal steps over a round-trip time.
    fn ramp_to(&mut self, rate: f64, time: f64) {
        self.pacing.old_rate = self.rate;
        self.rate = rate;
        self.pacing.delta = (rate - self.pacing.old_rate) / (rate * self.rtt() / self.size);
        self.last_change = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrc::ns2::{Feedback, Parameters};

    /// An agent with reports exactly each 100 ms, as far as the trace shows; the third is a tie.
    fn tied() -> Sender {
        let mut sender = Sender::new(&Parameters { slow_increase: false, ..Parameters::default() });
        sender.on_data(0.0, 1000);
        for report in 1..=3 {
            let time = f64::from(report) * 0.1;
            let feedback = Feedback { timestamp_echo: time - 0.1, x_recv_pps: 100.0, ..Feedback::default() };
            sender.on_report(time, &feedback);
            // The one that answers the report, and those that follow in their turn.
            sender.on_data(time, 1000);
            for later in [0.025, 0.05, 0.075].into_iter().filter(|_| report < 3) {
                sender.on_data(time + later, 1000);
            }
        }
        sender
    }

    #[test]
    fn test_the_packet_after_a_tie_shows_how_it_fell() {
        assert_eq!((tied().rate, tied().is_undecided()), (40_000.0, true));
        for (turn, rate, is_revised) in [(0.025, 40_000.0, false), (0.0125, 80_000.0, true)] {
            let mut sender = tied();
            let header = sender.on_data(0.3 + turn, 1000);
            assert_eq!((header.rate, sender.rate, sender.is_revised), (rate, rate, is_revised));
            assert_eq!((sender.ties, sender.is_undecided()), (0, false));
        }
    }

    #[test]
    fn test_a_tie_that_no_packet_decides_stays_counted() {
        let mut sender = tied();
        let loss = Feedback { timestamp_echo: 0.3, x_recv_pps: 100.0, p: 0.01, ..Feedback::default() };
        sender.on_report(0.4, &loss);
        assert!(sender.ties > 0 && !sender.is_undecided());
    }
}
