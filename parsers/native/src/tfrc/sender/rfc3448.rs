//! The sender of RFC 3448, section 4, with errata 270 and 1458.

use super::{Step, x_equation};
use crate::tfrc::Report;
use crate::tfrc::profile::SenderProfile;
use crate::tfrc::round_trip::RoundTrip;
use crate::tfrc::veno::GammaMix;

/// Seconds until the nofeedback timer first runs out.
const FIRST_TIMER: f64 = 2.0;

#[derive(Clone, Debug)]
pub struct Rfc3448 {
    pub(super) profile: SenderProfile,
    /// The allowed rate X.
    pub x: f64,
    /// Rate of the equation. None without a loss event.
    pub x_calc: Option<f64>,
    /// R and related state; None before the first sample.
    pub round_trip: Option<RoundTrip>,
    /// When the nofeedback timer runs out.
    pub timer: f64,
    /// Twice the receive rate; infinite before the first report.
    pub recv_limit: f64,
    x_recv: f64,
    /// When X was last doubled: tld.
    tld: f64,
    has_report: bool,
    gamma_mix: Option<GammaMix>,
}

impl Rfc3448 {
    /// Start (section 4.2): one packet per second, or the initial window.
    pub fn new(profile: &SenderProfile, time: f64) -> Self {
        let mut sender = Self {
            profile: *profile,
            x: profile.s,
            x_calc: None,
            round_trip: None,
            timer: time + FIRST_TIMER,
            recv_limit: f64::INFINITY,
            x_recv: 0.0,
            tld: f64::NEG_INFINITY,
            has_report: false,
            gamma_mix: profile.mixes_gamma.then(GammaMix::default),
        };
        let handshake_rtt = profile.handshake_rtt.filter(|rtt| *rtt > 0.0 && rtt.is_finite());
        if let Some(rtt) = handshake_rtt.filter(|_| profile.opens_with_window) {
            sender.round_trip = Some(RoundTrip::after(None, rtt, profile.q, profile.q2));
            sender.open(time, rtt);
        }
        sender
    }

    /// The initial window per round-trip time (RFC 4342 section 5).
    fn open(&mut self, time: f64, r: f64) {
        self.x = self.profile.w_init() / r;
        self.tld = time;
    }

    fn floor(&self) -> f64 {
        self.profile.s / self.profile.t_mbi
    }

    /// The rate with the damping of section 4.5.
    pub fn x_inst(&self) -> f64 {
        self.round_trip.map_or(self.x, |round_trip| (self.x * round_trip.damping()).max(self.floor()))
    }

    /// A report arrives (section 4.3).
    pub fn on_report(&mut self, report: &Report) {
        let sample = report.r_sample.filter(|sample| *sample > 0.0 && sample.is_finite());
        let round_trip = match (self.round_trip, sample) {
            (past, Some(sample)) => RoundTrip::after(past, sample, self.profile.q, self.profile.q2),
            (Some(past), None) => past,
            (None, None) => return,
        };
        self.round_trip = Some(round_trip);
        self.x_recv = report.x_recv;
        if let Some(mix) = &mut self.gamma_mix {
            self.profile.equation.gamma = mix.after(report, round_trip.r, self.x, self.profile.s);
        }
        self.x_calc = x_equation(&self.profile, round_trip.r, report.p);
        let is_first = !std::mem::replace(&mut self.has_report, true);
        if is_first && self.profile.opens_with_window {
            self.open(report.time, round_trip.r);
        } else {
            self.update_x(report.time, round_trip.r);
        }
        self.set_timer(report.time);
    }

    /// X_recv; infinite before the first report.
    pub fn highest_x_recv(&self) -> f64 {
        if self.recv_limit.is_finite() { self.x_recv } else { f64::INFINITY }
    }

    fn update_x(&mut self, time: f64, r: f64) {
        self.recv_limit = 2.0 * self.x_recv;
        if let Some(x_calc) = self.x_calc {
            self.x = x_calc.min(self.recv_limit).max(self.floor());
        } else if time - self.tld >= r {
            let least = (self.profile.s / r).max(self.floor());
            let x = (2.0 * self.x).min(self.recv_limit).max(least);
            self.x = x.min(self.profile.highest_rate());
            self.tld = time;
        }
    }

    /// The nofeedback timer runs out (section 4.4).
    pub fn on_no_feedback(&mut self, is_idle: bool) -> Step {
        let time = self.timer;
        let step = self.reduce(time, is_idle);
        self.set_timer(time);
        step
    }

    fn reduce(&mut self, time: f64, is_idle: bool) -> Step {
        let Some(r) = self.round_trip.map(|round_trip| round_trip.r) else { return self.halve() };
        if is_idle && self.x_recv < 4.0 * self.profile.s / r {
            return Step::Held;
        }
        let Some(x_calc) = self.x_calc else { return self.halve() };
        let step = if x_calc > 2.0 * self.x_recv {
            self.x_recv = (self.x_recv / 2.0).max(self.floor() / 2.0);
            Step::LimitedByXRecv
        } else {
            self.x_recv = x_calc / 4.0;
            Step::LimitedByXBps
        };
        self.update_x(time, r);
        step
    }

    fn halve(&mut self) -> Step {
        self.x = (self.x / 2.0).max(self.floor());
        Step::Halved
    }

    /// Four round-trip times (erratum 270) or two packets.
    pub(super) fn set_timer(&mut self, time: f64) {
        let four_r = self.round_trip.map_or(0.0, |round_trip| 4.0 * round_trip.r);
        self.timer = time + four_r.max(2.0 * self.profile.s / self.x);
    }
}
