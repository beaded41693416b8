//! The sender of RFC 5348, section 4.

use super::{Step, x_equation};
use crate::tfrc::Report;
use crate::tfrc::profile::{InitialRate, SenderProfile};
use crate::tfrc::round_trip::RoundTrip;
use crate::tfrc::veno::GammaMix;

/// Seconds until the nofeedback timer first runs out (section 4.2).
const FIRST_TIMER: f64 = 2.0;
/// Factor of X_recv after a data-limited interval with losses (section 4.3).
const DATA_LIMITED_SHARE: f64 = 0.85;
/// Entries of X_recv_set: two round-trip times hold about two reports. With more, the oldest goes.
const MAX_X_RECV_SET: usize = 64;

#[derive(Clone, Debug)]
pub struct Rfc5348 {
    pub(super) profile: SenderProfile,
    /// The allowed rate X.
    pub x: f64,
    /// Rate of the equation: X_Bps. None without a loss event.
    pub x_bps: Option<f64>,
    /// R and related state; None before the first sample.
    pub round_trip: Option<RoundTrip>,
    /// Limit from the receive rate; infinite at first.
    pub recv_limit: f64,
    /// When the nofeedback timer runs out.
    pub timer: f64,
    p: f64,
    /// When X was last doubled: tld.
    tld: f64,
    /// W_init/R of the first report.
    initial_rate: f64,
    x_recv_set: XRecvSet,
    gamma_mix: Option<GammaMix>,
}

impl Rfc5348 {
    /// Start (section 4.2): one packet per second, or the initial window if the handshake gave an RTT.
    pub fn new(profile: &SenderProfile, time: f64) -> Self {
        let mut sender = Self {
            profile: *profile,
            x: profile.s,
            x_bps: None,
            round_trip: None,
            recv_limit: f64::INFINITY,
            timer: time + FIRST_TIMER,
            p: 0.0,
            tld: time,
            initial_rate: 0.0,
            x_recv_set: XRecvSet::default(),
            gamma_mix: profile.mixes_gamma.then(GammaMix::default),
        };
        if let Some(rtt) = profile.handshake_rtt.filter(|rtt| *rtt > 0.0 && rtt.is_finite()) {
            sender.round_trip = Some(RoundTrip::after(None, rtt, profile.q, profile.q2));
            sender.begin(time, rtt);
        }
        sender
    }

    /// The first round-trip time is known.
    fn begin(&mut self, time: f64, rtt: f64) {
        self.initial_rate = self.profile.w_init() / rtt;
        self.x = self.initial_rate.min(self.profile.highest_rate());
        self.tld = time;
        self.x_recv_set = XRecvSet::unlimited(time);
    }

    /// The rate that slow start and idle senders do not fall below.
    fn initial_rate(&self, r: f64) -> f64 {
        match self.profile.initial_rate {
            InitialRate::Fixed => self.initial_rate,
            InitialRate::Current => self.profile.w_init() / r,
        }
    }

    /// The lowest rate: one packet each t_mbi.
    fn floor(&self) -> f64 {
        self.profile.s / self.profile.t_mbi
    }

    /// The rate with the damping of section 4.5.
    pub fn x_inst(&self) -> f64 {
        self.round_trip.map_or(self.x, |round_trip| (self.x * round_trip.damping()).max(self.floor()))
    }

    /// A report arrives (section 4.3, its steps by number).
    pub fn on_report(&mut self, report: &Report) {
        // Step 1: the sample. Without any, a report is ignored.
        let (q, q2) = (self.profile.q, self.profile.q2);
        let sample = report.r_sample.filter(|sample| *sample > 0.0 && sample.is_finite());
        let is_first = self.round_trip.is_none();
        let round_trip = match (self.round_trip, sample) {
            (past, Some(sample)) => RoundTrip::after(past, sample, q, q2),
            (Some(past), None) => past,
            (None, None) => return,
        };
        // Step 2: R.
        self.round_trip = Some(round_trip);
        let r = round_trip.r;
        if is_first {
            self.begin(report.time, r);
        }
        // Step 3: RTO, with the X of before.
        let rto = (4.0 * r).max(2.0 * self.profile.s / self.x);
        // Step 4: X.
        self.limit(report, r);
        self.p = report.p;
        if let Some(mix) = &mut self.gamma_mix {
            self.profile.equation.gamma = mix.after(report, r, self.x, self.profile.s);
        }
        self.x_bps = x_equation(&self.profile, r, report.p);
        self.update_x(report.time, r);
        // Step 5 is x_inst. Step 6: the timer.
        self.timer = report.time + rto;
    }

    fn limit(&mut self, report: &Report, r: f64) {
        let Report { time, x_recv, .. } = *report;
        if !report.is_data_limited {
            self.x_recv_set.update(x_recv, time, 2.0 * r);
            self.recv_limit = 2.0 * self.x_recv_set.max();
        } else if report.p > self.p {
            self.x_recv_set.halve();
            self.x_recv_set.maximize(DATA_LIMITED_SHARE * x_recv, time);
            self.recv_limit = self.x_recv_set.max();
        } else {
            self.x_recv_set.maximize(x_recv, time);
            self.recv_limit = 2.0 * self.x_recv_set.max();
        }
    }

    /// The maximum of X_recv_set; infinite while that is not limited.
    pub fn highest_x_recv(&self) -> f64 {
        if self.x_recv_set.0.is_empty() { f64::INFINITY } else { self.x_recv_set.max() }
    }

    fn update_x(&mut self, time: f64, r: f64) {
        if let Some(x_bps) = self.x_bps {
            self.x = x_bps.min(self.recv_limit).max(self.floor());
        } else if time - self.tld >= r {
            let x = (2.0 * self.x).min(self.recv_limit).max(self.initial_rate(r));
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

    pub(super) fn set_timer(&mut self, time: f64) {
        let four_r = self.round_trip.map_or(0.0, |round_trip| 4.0 * round_trip.r);
        self.timer = time + four_r.max(2.0 * self.profile.s / self.x);
    }

    fn reduce(&mut self, time: f64, is_idle: bool) -> Step {
        let Some(r) = self.round_trip.map(|round_trip| round_trip.r) else {
            return if is_idle { Step::Held } else { self.halve() };
        };
        let x_recv = self.x_recv_set.max();
        let recover_rate = self.initial_rate(r);
        let Some(x_bps) = self.x_bps else {
            let holds = is_idle && self.x < 2.0 * recover_rate;
            return if holds { Step::Held } else { self.halve() };
        };
        if is_idle && x_recv < recover_rate {
            return Step::Held;
        }
        if x_bps > 2.0 * x_recv {
            self.update_limits(x_recv, time, r);
            Step::LimitedByXRecv
        } else {
            self.update_limits(x_bps / 2.0, time, r);
            Step::LimitedByXBps
        }
    }

    fn halve(&mut self) -> Step {
        self.x = (self.x / 2.0).max(self.floor());
        Step::Halved
    }

    fn update_limits(&mut self, timer_limit: f64, time: f64, r: f64) {
        let timer_limit = timer_limit.max(self.floor());
        self.x_recv_set = XRecvSet::of(timer_limit / 2.0, time);
        self.recv_limit = timer_limit;
        self.update_x(time, r);
    }
}

/// X_recv_set: receive rates of the last two round-trip times, each with its time.
#[derive(Clone, Debug, Default)]
struct XRecvSet(Vec<(f64, f64)>);

impl XRecvSet {
    fn of(x_recv: f64, time: f64) -> Self {
        Self(vec![(x_recv, time)])
    }

    /// No limit until that is two round-trip times old.
    fn unlimited(time: f64) -> Self {
        Self::of(f64::INFINITY, time)
    }

    fn max(&self) -> f64 {
        self.0.iter().fold(0.0, |max, (x_recv, _)| max.max(*x_recv))
    }

    /// Update X_recv_set(): add one and forget those older than `age`.
    fn update(&mut self, x_recv: f64, time: f64, age: f64) {
        self.0.retain(|(_, then)| *then >= time - age);
        if self.0.len() == MAX_X_RECV_SET {
            self.0.remove(0);
        }
        self.0.push((x_recv, time));
    }

    /// Maximize X_recv_set(): keep the largest alone, and no missing limit.
    fn maximize(&mut self, x_recv: f64, time: f64) {
        let finite = self.0.iter().map(|(x_recv, _)| *x_recv).filter(|x_recv| x_recv.is_finite());
        *self = Self::of(finite.fold(x_recv, f64::max), time);
    }

    fn halve(&mut self) {
        self.0.iter_mut().for_each(|(x_recv, _)| *x_recv /= 2.0);
    }
}
