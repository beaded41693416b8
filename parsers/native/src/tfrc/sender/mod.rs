//! A sender: the allowed rate X after each report and each nofeedback timeout.

mod rfc3448;
mod rfc5348;

use serde::{Deserialize, Serialize};

use super::Report;
use super::profile::{SenderProfile, SenderRules};
use super::round_trip::RoundTrip;
use super::small_packets::SmallPacketRate;
use super::veno::GammaMix;
use rfc3448::Rfc3448;
use rfc5348::Rfc5348;

/// Seconds until the nofeedback timer first expires (section 4.2).
const FIRST_TIMER: f64 = 2.0;

/// How a step changed X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The nofeedback timer expired, and X was halved.
    Halved,
    /// X limited by the receive rate.
    LimitedByXRecv,
    /// X limited by half of the equation's rate.
    LimitedByXBps,
    /// The sender was idle and keeps its rate (section 4.4).
    Held,
}

/// A sender of either RFC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sender {
    rate: RateState,
    rules: Rules,
}

/// The rules in which the RFCs differ, with the state that only these need.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Rules {
    Rfc5348(Rfc5348),
    Rfc3448(Rfc3448),
}

/// The rate of a sender, and what it follows from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RateState {
    profile: SenderProfile,
    /// The allowed rate X.
    x: f64,
    /// Rate of the equation, X_Bps or X_calc. None without a loss event.
    x_equation: Option<f64>,
    /// R and related state; None before the first sample.
    round_trip: Option<RoundTrip>,
    /// Limit from the receive rate; infinite at first.
    recv_limit: f64,
    /// When the nofeedback timer expires.
    timer: f64,
    /// When X was last doubled: tld.
    tld: f64,
    gamma_mix: Option<GammaMix>,
}

impl Sender {
    /// Start at `time` (section 4.2): one packet per second, or the initial window if the handshake
    /// gave an RTT.
    pub fn new(profile: &SenderProfile, time: f64) -> Self {
        let mut rate = RateState {
            profile: *profile,
            x: profile.s,
            x_equation: None,
            round_trip: None,
            recv_limit: f64::INFINITY,
            timer: time + FIRST_TIMER,
            tld: time,
            gamma_mix: profile.mixes_gamma.then(GammaMix::default),
        };
        let rtt = profile.handshake_rtt.filter(|rtt| *rtt > 0.0 && rtt.is_finite());
        let rules = match profile.rules {
            SenderRules::Rfc5348 => Rules::Rfc5348(Rfc5348::new(&mut rate, time, rtt)),
            SenderRules::Rfc3448 => Rules::Rfc3448(Rfc3448::new(&mut rate, time, rtt)),
        };
        Self { rate, rules }
    }

    /// A report arrives (section 4.3). Without an RTT sample, the first ones are ignored.
    pub fn on_report(&mut self, report: &Report) {
        let is_first = self.rate.round_trip.is_none();
        if let Some(sample) = report.r_sample.filter(|sample| *sample > 0.0 && sample.is_finite()) {
            self.rate.take_sample(sample);
        }
        let Some(r) = self.rate.r() else { return };
        match &mut self.rules {
            Rules::Rfc5348(rules) => rules.on_report(&mut self.rate, report, r, is_first),
            Rules::Rfc3448(rules) => rules.on_report(&mut self.rate, report, r),
        }
    }

    /// The nofeedback timer expires (section 4.4). `is_idle`: nothing was sent since it was set.
    pub fn on_no_feedback(&mut self, is_idle: bool) -> Step {
        let time = self.rate.timer;
        let step = match &mut self.rules {
            Rules::Rfc5348(rules) => rules.reduce(&mut self.rate, time, is_idle),
            Rules::Rfc3448(rules) => rules.reduce(&mut self.rate, time, is_idle),
        };
        self.rate.set_timer(time);
        step
    }

    /// When the nofeedback timer expires.
    pub fn timer(&self) -> f64 {
        self.rate.timer
    }

    /// The allowed rate in bytes per second.
    pub fn x(&self) -> f64 {
        self.rate.x
    }

    /// Limit from the receive rate; infinite while there is none.
    pub fn recv_limit(&self) -> f64 {
        self.rate.recv_limit
    }

    /// The receive rate in the limit: the maximum of X_recv_set, in RFC 3448 the latest. Infinite
    /// while nothing limits.
    pub fn highest_x_recv(&self) -> f64 {
        match &self.rules {
            Rules::Rfc5348(rules) => rules.highest_x_recv(),
            Rules::Rfc3448(rules) if self.rate.recv_limit.is_finite() => rules.x_recv,
            Rules::Rfc3448(_) => f64::INFINITY,
        }
    }

    /// R; None before the first sample.
    pub fn r(&self) -> Option<f64> {
        self.rate.r()
    }

    /// R_sqmean; None before the first sample (section 4.5).
    pub fn r_sqmean(&self) -> Option<f64> {
        self.rate.round_trip.map(|round_trip| round_trip.r_sqmean)
    }

    /// Set R as known from the sender itself. False if it is not used: the first R has to come as the
    /// sample of a report, because the initial rate does.
    pub fn know_r(&mut self, r: f64) -> bool {
        let is_known = self.rate.round_trip.is_some() && r > 0.0 && r.is_finite();
        if is_known {
            self.rate.round_trip = Some(RoundTrip::steady(r));
        }
        is_known
    }

    /// Rate of the equation; None before the first loss event.
    pub fn x_equation(&self) -> Option<f64> {
        self.rate.x_equation
    }

    /// The allowed rate with the damping of section 4.5: X_inst.
    pub fn x_inst(&self) -> f64 {
        let rate = &self.rate;
        rate.round_trip.map_or(rate.x, |round_trip| (rate.x * round_trip.damping()).max(rate.floor()))
    }

    /// The size of packets has changed.
    pub fn set_s(&mut self, s: f64) {
        self.rate.profile.s = s;
    }

    /// Skip to `time` without events, and restart the nofeedback timer there.
    pub fn rest_until(&mut self, time: f64) {
        self.rate.set_timer(time);
    }
}

impl RateState {
    fn r(&self) -> Option<f64> {
        self.round_trip.map(|round_trip| round_trip.r)
    }

    fn take_sample(&mut self, sample: f64) {
        self.round_trip = Some(RoundTrip::after(self.round_trip, sample, self.profile.q, self.profile.q2));
    }

    /// The lowest rate: one packet each t_mbi.
    fn floor(&self) -> f64 {
        self.profile.s / self.profile.t_mbi
    }

    /// Four round-trip times or two packets (in RFC 3448 by erratum 270).
    fn timeout(&self) -> f64 {
        self.r().map_or(0.0, |r| 4.0 * r).max(2.0 * self.profile.s / self.x)
    }

    fn set_timer(&mut self, time: f64) {
        self.timer = time + self.timeout();
    }

    /// Update the rate of the equation; without a loss event there is none.
    fn update_equation(&mut self, report: &Report, r: f64) {
        if let Some(mix) = &mut self.gamma_mix {
            self.profile.equation.gamma = mix.after(report, r, self.x, self.profile.s);
        }
        let SenderProfile { s, t_rto_factor, equation, small_packets, .. } = self.profile;
        let (t_rto, p) = (t_rto_factor * r, report.p);
        self.x_equation = match small_packets {
            None => equation.rate(s, r, t_rto, p),
            Some(header) => {
                SmallPacketRate::new(&equation, r, t_rto, p, s, header).map(|rate| rate.x_limited)
            }
        };
    }

    /// Update X: the rate of the equation within the limit, or slow start down to `initial_rate`.
    fn update_x(&mut self, time: f64, r: f64, initial_rate: f64) {
        if let Some(x_equation) = self.x_equation {
            self.x = x_equation.min(self.recv_limit).max(self.floor());
        } else if time - self.tld >= r {
            let x = (2.0 * self.x).min(self.recv_limit).max(initial_rate);
            self.x = x.min(self.profile.highest_rate());
            self.tld = time;
        }
    }

    fn halve(&mut self) -> Step {
        self.x = (self.x / 2.0).max(self.floor());
        Step::Halved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn test_the_rate_never_falls_below_a_packet_per_t_mbi(
            reports in proptest::collection::vec(
                (0.0..10.0_f64, proptest::option::of(0.0001..10.0_f64), 0.0..1e9_f64, 0.0..1.0_f64, any::<bool>()),
                0..40,
            ),
            is_new: bool,
        ) {
            let profile = if is_new { SenderProfile::rfc5348(1000.0) } else { SenderProfile::rfc3448(1000.0) };
            let mut sender = Sender::new(&profile, 0.0);
            let mut time = 0.0;
            for (step, r_sample, x_recv, p, is_data_limited) in reports {
                time += step;
                while sender.timer() < time {
                    sender.on_no_feedback(is_data_limited);
                }
                sender.on_report(&Report { time, r_sample, x_recv, p, is_data_limited, losses: 0 });
                prop_assert!(sender.x() >= 1000.0 / 64.0 && sender.x().is_finite());
                prop_assert!(sender.timer() > time);
            }
        }

        #[test]
        fn test_the_rate_has_its_floor_whatever_the_times(
            reports in proptest::collection::vec(
                (any::<f64>(), proptest::option::of(1e-9..1e9_f64), 0.0..1e9_f64, 0.0..1.0_f64, any::<bool>()),
                0..40,
            ),
            is_new: bool,
        ) {
            let profile = if is_new { SenderProfile::rfc5348(1000.0) } else { SenderProfile::rfc3448(1000.0) };
            let mut sender = Sender::new(&profile, 0.0);
            for (time, r_sample, x_recv, p, is_data_limited) in reports {
                sender.on_report(&Report { time, r_sample, x_recv, p, is_data_limited, losses: 0 });
                prop_assert!(sender.x() >= 1000.0 / 64.0 && sender.x().is_finite(), "{}", sender.x());
                sender.on_no_feedback(is_data_limited);
                prop_assert!(sender.x() >= 1000.0 / 64.0 && sender.x().is_finite(), "{}", sender.x());
            }
        }

        #[test]
        fn test_any_reports_are_taken(
            reports in proptest::collection::vec(
                (any::<f64>(), proptest::option::of(any::<f64>()), any::<f64>(), any::<f64>(), any::<bool>()),
                0..40,
            ),
            is_new: bool,
        ) {
            let profile = if is_new { SenderProfile::rfc5348(1000.0) } else { SenderProfile::rfc3448(1000.0) };
            let mut sender = Sender::new(&profile, 0.0);
            for (time, r_sample, x_recv, p, is_data_limited) in reports {
                sender.on_report(&Report { time, r_sample, x_recv, p, is_data_limited, losses: 0 });
                sender.on_no_feedback(is_data_limited);
            }
        }
    }
}
