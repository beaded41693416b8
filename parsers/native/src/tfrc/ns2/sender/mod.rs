//! ns-2's agent: round-trip time, t_RTO and allowed rate after each report.
//!
//! Besides reports, its nofeedback timer and its send timer change it: a packet that was due and
//! not sent is how a trace shows that the application had nothing to send.

mod pacing;
mod slow_start;

use super::rto::Rto;
use super::{Feedback, Header, MAX_RATE, PRINTED, Parameters, rate_of};
use crate::tfrc::round_trip::{RoundTrip, r_sample};

/// The most timer expiries between two packets: more expiries of the send timer change nothing, and
/// more of the nofeedback timer halve a rate of nearly zero.
const MOST_TURNS: u32 = 1 << 12;

named_enum! {
    /// Limit in force on the rate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mode {
        /// No loss event was reported yet.
        SlowStart = "slow_start",
        /// The first loss event was just reported: the rate is the equation's.
        LeavingSlowStart = "leaving_slow_start",
        /// The equation allows more than before, and the rate approaches that.
        Increase = "increase",
        /// The equation allows less, or the nofeedback timer expired.
        Decrease = "decrease",
    }
}

/// The agent of one flow.
#[derive(Clone, Debug)]
pub struct Sender {
    parameters: Parameters,
    /// Payload of a packet.
    size: f64,
    /// The allowed rate, bytes per second.
    pub rate: f64,
    pub mode: Mode,
    /// R and related state; None before the first report.
    pub round_trip: Option<RoundTrip>,
    rto: Rto,
    /// Reports and nofeedback timeouts so far.
    round_id: u64,
    /// Nofeedback timeouts so far.
    pub timeouts: u64,
    /// Reports in slow start whose times or rates were equal within the trace's resolution, while
    /// one was larger for the agent, and no later packet decided: its rate may have been another
    /// until slow start ended.
    pub ties: u64,
    /// Alternative states, had a tie been decided otherwise.
    others: Vec<Sender>,
    /// Whether the packets after the last report showed that a tie was decided otherwise.
    pub is_revised: bool,
    /// The receive rate of the latest report; 0 if it gave none.
    pub x_recv: f64,
    /// Limit of the rate after slow start, as a multiple of that.
    most_of_x_recv: f64,
    /// Rate of the equation.
    x_calc: f64,
    /// Reports in a row that found the equation's rate above that.
    heavy_rounds: f64,
    last_change: f64,
    nofeedback_timer: f64,
    pacing: Pacing,
    /// Whether the first packet was sent.
    started: bool,
}

/// When the next packet is due.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    /// When the send timer expires.
    timer: f64,
    /// A rate approaching the allowed one in slow start, and its steps.
    old_rate: f64,
    delta: f64,
    /// Whether the timer expired and nothing was sent.
    is_data_limited: bool,
    /// The last expiry of this kind.
    missed: f64,
    last_limited: f64,
    /// Whether it was so for all of a nofeedback period.
    is_all_idle: bool,
    /// A packet is sent at this time outside of the timer's turns.
    extra: f64,
    /// The same, if the timer expired at that time as well: of two packets there one is the timer's.
    coinciding: f64,
}

impl Sender {
    /// An agent that has not started.
    pub fn new(parameters: &Parameters) -> Self {
        let rate = parameters.init_rate;
        Self {
            parameters: *parameters,
            size: 0.0,
            rate,
            mode: Mode::SlowStart,
            round_trip: None,
            rto: Rto::default(),
            round_id: 0,
            timeouts: 0,
            ties: 0,
            others: Vec::new(),
            is_revised: false,
            x_recv: 0.0,
            most_of_x_recv: SLOW_START_FACTOR,
            x_calc: 0.0,
            heavy_rounds: 0.0,
            last_change: 0.0,
            nofeedback_timer: f64::INFINITY,
            pacing: Pacing {
                timer: f64::INFINITY,
                old_rate: rate,
                delta: 0.0,
                is_data_limited: false,
                missed: 0.0,
                last_limited: 0.0,
                is_all_idle: false,
                extra: f64::NEG_INFINITY,
                coinciding: f64::NEG_INFINITY,
            },
            started: false,
        }
    }

    /// Payload of a packet in bytes.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// R; 0 before the first report, as in the header.
    fn rtt(&self) -> f64 {
        self.round_trip.map_or(0.0, |round_trip| round_trip.r)
    }

    /// t_RTO in seconds; 0 before the first report, as in the header.
    pub fn t_rto(&self) -> f64 {
        self.round_trip
            .map_or(0.0, |_| self.rto.seconds(self.parameters.tcp_tick).max(self.parameters.minrto))
    }

    /// Process a data packet sent with `size` bytes of payload; returns its header.
    pub fn on_data(&mut self, time: f64, size: u32) -> Header {
        self.settle(time);
        for other in &mut self.others {
            other.send(time, size);
        }
        self.send(time, size)
    }

    /// Whether later packets may still decide a tie.
    pub fn is_undecided(&self) -> bool {
        !self.others.is_empty()
    }

    fn send(&mut self, time: f64, size: u32) -> Header {
        if self.started {
            self.advance(time);
            self.pace(time);
        } else {
            self.start(time, f64::from(size));
        }
        Header {
            timestamp: time,
            rtt: self.rtt(),
            tzero: self.t_rto(),
            round_id: self.round_id,
            rate: self.rate,
            size,
            fsize: self.fsize(),
        }
    }

    /// Payload with which the equation counts.
    fn fsize(&self) -> f64 {
        if self.parameters.voip { self.parameters.fsize } else { self.size }
    }

    fn start(&mut self, time: f64, size: f64) {
        self.started = true;
        // A flow of empty packets would never get anywhere.
        self.size = size.max(1.0);
        self.pacing.timer = time + size / self.rate;
        self.nofeedback_timer = time + 2.0 * size / self.rate;
    }

    /// Whether a packet that is sent at `time` is before its turn, and not by the nofeedback timer.
    pub fn is_out_of_turn(&mut self, time: f64) -> bool {
        if !self.started {
            return false;
        }
        self.settle(time);
        self.advance(time);
        self.pacing.timer > time + PRINTED && (self.pacing.extra - time).abs() > PRINTED
    }

    /// Whether it sends a packet at each report that arrives at `time`: in slow start, unless it has nothing to
    /// send.
    pub fn answers_reports(&self, time: f64) -> bool {
        self.mode == Mode::SlowStart && !self.was_data_limited(time)
    }

    /// When the nofeedback timer runs out; infinite before the first packet.
    pub fn nofeedback_timer(&self) -> f64 {
        self.nofeedback_timer
    }

    /// Rate of the equation; None before the first loss event.
    pub fn x_calc(&self) -> Option<f64> {
        (self.mode != Mode::SlowStart).then_some(self.x_calc)
    }

    /// The limit that the latest receive rate sets; infinite if there was none.
    pub fn recv_limit(&self) -> f64 {
        let limit = if self.mode == Mode::SlowStart { self.slow_start_limit() } else { self.max_rate() };
        if limit > 0.0 { limit } else { f64::INFINITY }
    }

    fn slow_start_limit(&self) -> f64 {
        SLOW_START_FACTOR * self.x_recv
    }

    fn max_rate(&self) -> f64 {
        self.most_of_x_recv * self.x_recv
    }

    /// Expire the nofeedback timer if it is due before `time`; returns when. Data and reports do
    /// this themselves: it is for callers that need each step.
    pub fn expire(&mut self, time: f64) -> Option<f64> {
        let due = self.nofeedback_timer;
        if due > time + PRINTED {
            return None;
        }
        self.miss_packets(due);
        self.on_no_feedback(due);
        Some(due)
    }

    /// Process the timers that expired before `time`, as far as a trace shows them.
    fn advance(&mut self, time: f64) {
        for _ in 0..MOST_TURNS {
            if self.expire(time).is_none() {
                break;
            }
        }
        self.nofeedback_timer = self.nofeedback_timer.max(time + PRINTED);
        self.miss_packets(time);
    }

    /// Process a report; returns its RTT sample. One from the future, which no simulation produces,
    /// is ignored.
    pub fn on_report(&mut self, time: f64, feedback: &Feedback) -> Option<f64> {
        let sample = r_sample(time, feedback.timestamp_echo, feedback.hold)?;
        let known = std::mem::take(&mut self.others);
        self.is_revised = false;
        let mut others = self.on_feedback(time, feedback, sample);
        for mut other in known {
            let more = other.on_feedback(time, feedback, sample);
            others.push(other);
            others.extend(more);
        }
        // From the first loss event on all are alike.
        others.truncate(if self.mode == Mode::SlowStart { MOST_OTHERS } else { 0 });
        self.others = others;
        Some(sample)
    }

    /// The same for one candidate state; returns the alternatives after it.
    fn on_feedback(&mut self, time: f64, feedback: &Feedback, sample: f64) -> Vec<Self> {
        self.advance(time);
        self.round_id += 1;
        // Of the first report's receive rate the agent makes no use.
        let has_rate = self.round_id > 1 && feedback.x_recv_pps > 0.0;
        self.x_recv = if has_rate { feedback.x_recv_pps * self.size } else { 0.0 };
        self.most_of_x_recv = match self.parameters.conservative {
            true if feedback.losses > 0 => 1.0,
            true => self.parameters.scmult,
            false => SLOW_START_FACTOR,
        };
        let is_first = self.round_trip.is_none();
        let df = self.parameters.df;
        self.round_trip = Some(RoundTrip::after(self.round_trip, sample, df, df));
        self.rto.update(sample, self.parameters.tcp_tick);
        let (rtt, tzero) = (self.rtt(), self.t_rto());
        self.x_calc = if feedback.p > 0.0 {
            rate_of(feedback.p, rtt, tzero, self.fsize(), self.parameters.bval)
        } else {
            MAX_RATE
        };
        if self.parameters.voip {
            // Headers reduce the payload.
            self.x_calc *= self.size / (self.parameters.headersize + self.size);
        }
        // Armed with the rate of before.
        self.nofeedback_timer = time + self.nofeedback_period();
        if is_first || (self.mode == Mode::SlowStart && feedback.p <= 0.0) {
            let mut others = self.slow_start(time);
            // Slow start sends a packet at each report.
            self.send_extra(time);
            others.iter_mut().for_each(|other| other.send_extra(time));
            return others;
        } else if self.mode == Mode::SlowStart {
            self.mode = Mode::LeavingSlowStart;
            self.rate = self.x_calc;
            self.pacing.old_rate = self.rate;
        } else if self.x_calc > self.rate {
            self.increase(time);
        } else {
            self.decrease(time);
        }
        Vec::new()
    }

    fn nofeedback_period(&self) -> f64 {
        (2.0 * self.rtt()).max(2.0 * self.size / self.rate)
    }

    /// The initial window in packets: RFC 3390's, or `rate_init_`.
    fn initial_window(&self) -> f64 {
        match () {
            () if self.parameters.rate_init_option == 1.0 => self.parameters.rate_init,
            () if self.size <= 1095.0 => 4.0,
            () if self.size < 2190.0 => 3.0,
            () => 2.0,
        }
    }

    fn initial_rate(&self) -> f64 {
        self.initial_window() * self.size / self.rtt()
    }

    /// Whether the application had nothing to send lately.
    fn was_data_limited(&self, time: f64) -> bool {
        self.pacing.is_data_limited || self.pacing.last_limited > time - 1.5 * self.rtt()
    }

    fn increase(&mut self, time: f64) {
        let rtt = self.rtt();
        // Negative where the times of a trace go back.
        let rounds = ((time - self.last_change) / rtt).clamp(0.0, 2.0);
        let least = if self.was_data_limited(time) { self.initial_rate() } else { self.size / rtt };
        let limit = self.max_rate().max(least).min(self.x_calc);
        self.rate = (self.rate + self.size / rtt * rounds).min(limit);
        self.heavy_rounds = 0.0;
        self.mode = Mode::Increase;
        self.last_change = time;
    }

    fn decrease(&mut self, time: f64) {
        let limit = self.max_rate().max(self.size / self.rtt());
        self.heavy_rounds = if self.x_calc > limit { self.heavy_rounds + 1.0 } else { 0.0 };
        let is_bound = self.heavy_rounds > self.parameters.max_heavy_rounds;
        self.rate = if is_bound { self.x_calc.min(limit) } else { self.x_calc };
        self.mode = Mode::Decrease;
        self.last_change = time;
    }

    /// The nofeedback timer runs out.
    fn on_no_feedback(&mut self, time: f64) {
        if self.mode != Mode::SlowStart {
            self.mode = Mode::Decrease;
        }
        let is_limited = self.pacing.is_data_limited || self.pacing.is_all_idle;
        if self.parameters.old_code || !is_limited {
            self.rate *= 0.5;
        } else if self.round_trip.is_some() {
            // An idle sender keeps the rate of its initial window; with `rate_init_` it is halved or kept.
            let (halved, least) = (0.5 * self.rate, self.initial_rate());
            let left = if self.parameters.rate_init_option == 1.0 && halved <= least {
                self.rate
            } else {
                halved.max(least)
            };
            self.rate = left.min(self.rate);
        }
        self.round_id += 1;
        self.timeouts += 1;
        self.nofeedback_timer = time + self.nofeedback_period();
        self.pacing.is_all_idle |= self.pacing.is_data_limited;
        self.send_extra(time);
    }
}

/// Limit of alternative states: ties are rare, and the next packet decides.
const MOST_OTHERS: usize = 4;

/// In slow start, and after it unless `conservative_`, the rate may be so often that of the receiver.
const SLOW_START_FACTOR: f64 = 2.0;
/// Rates and times below this are none.
const LEAST: f64 = 1e-7;
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_the_first_rate_is_a_window_per_round_trip_time() {
        let mut sender = Sender::new(&Parameters::default());
        sender.on_data(0.0, 1000);
        sender.on_report(0.05, &Feedback { x_recv_pps: 1.0, ..Feedback::default() });
        assert!((sender.rate - 4.0 * 1000.0 / 0.05).abs() < 1e-6);
    }

    #[test]
    fn test_without_reports_the_rate_is_halved_at_twice_the_time_of_a_packet() {
        let mut sender = Sender::new(&Parameters::default());
        sender.on_data(0.0, 1000);
        // 300 bytes/s: one packet each 3.3 s, and the timer at 6.7 s.
        sender.on_data(3.333333, 1000);
        assert_eq!(sender.rate, 300.0);
        let header = sender.on_data(6.666667, 1000);
        assert_eq!((sender.rate, sender.timeouts, header.round_id), (150.0, 1, 1));
    }

    #[test]
    fn test_a_clock_that_goes_back_makes_no_negative_rate() {
        let mut sender = Sender::new(&Parameters::default());
        sender.on_data(0.0, 1000);
        for (time, p) in [(10.0, 0.0), (10.1, 0.01), (10.2, 0.001), (5.0, 0.001), (5.1, 0.001)] {
            let feedback =
                Feedback { timestamp_echo: time - 0.05, p, x_recv_pps: 100.0, ..Feedback::default() };
            let before = sender.rate;
            sender.on_report(time, &feedback);
            assert!(sender.rate > 0.0 && (time != 5.0 || sender.rate == before), "{time} {}", sender.rate);
        }
    }

    proptest! {
        #[test]
        fn test_the_rate_is_positive_and_finite_whatever_the_times(
            events in proptest::collection::vec(
                (-1e6..1e6_f64, 1e-6..100.0_f64, prop_oneof![Just(0.0), 1e-6..=1.0_f64], 0.0..1e6_f64, any::<bool>()),
                1..60,
            ),
        ) {
            let mut sender = Sender::new(&Parameters::default());
            sender.on_data(0.0, 1000);
            for (time, sample, p, x_recv_pps, is_data) in events {
                if is_data {
                    sender.on_data(time, 1000);
                } else {
                    let feedback = Feedback { timestamp_echo: time - sample, p, x_recv_pps, ..Feedback::default() };
                    sender.on_report(time, &feedback);
                }
                prop_assert!(sender.rate >= 0.0 && sender.rate.is_finite(), "{}", sender.rate);
            }
        }
    }

    #[test]
    fn test_a_report_from_the_future_is_left_alone() {
        let mut sender = Sender::new(&Parameters::default());
        sender.on_data(0.0, 1000);
        let feedback = Feedback { timestamp_echo: 2.0, ..Feedback::default() };
        assert_eq!(sender.on_report(1.0, &feedback), None);
        assert_eq!(sender.round_trip, None);
    }
}
