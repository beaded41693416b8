//! The sender of RFC 5348, section 4.

use serde::{Deserialize, Serialize};

use super::{RateState, Step};
use crate::tfrc::Report;
use crate::tfrc::profile::InitialRate;

/// Factor of X_recv after a data-limited interval with losses (section 4.3).
const DATA_LIMITED_SHARE: f64 = 0.85;
/// Entries of X_recv_set: two round-trip times hold about two reports. With more, the oldest goes.
const MAX_X_RECV_SET: usize = 64;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Rfc5348 {
    p: f64,
    /// W_init/R of the first report.
    initial_rate: f64,
    x_recv_set: XRecvSet,
}

impl Rfc5348 {
    pub fn new(rate: &mut RateState, time: f64, rtt: Option<f64>) -> Self {
        let mut rules = Self::default();
        if let Some(rtt) = rtt {
            rate.take_sample(rtt);
            rules.begin(rate, time, rtt);
        }
        rules
    }

    /// The first round-trip time is known.
    fn begin(&mut self, rate: &mut RateState, time: f64, rtt: f64) {
        self.initial_rate = rate.profile.w_init() / rtt;
        rate.x = self.initial_rate.min(rate.profile.highest_rate());
        rate.tld = time;
        self.x_recv_set = XRecvSet::unlimited(time);
    }

    /// The rate that slow start and idle senders do not fall below.
    fn initial_rate(&self, rate: &RateState, r: f64) -> f64 {
        match rate.profile.initial_rate {
            InitialRate::Fixed => self.initial_rate,
            InitialRate::Current => rate.profile.w_init() / r,
        }
    }

    /// Steps 3 to 6 of section 4.3; X_inst is step 5.
    pub fn on_report(&mut self, rate: &mut RateState, report: &Report, r: f64, is_first: bool) {
        if is_first {
            self.begin(rate, report.time, r);
        }
        // Step 3 uses X before step 4.
        let timeout = rate.timeout();
        self.limit(rate, report, r);
        self.p = report.p;
        rate.update_equation(report, r);
        rate.update_x(report.time, r, self.initial_rate(rate, r));
        rate.timer = report.time + timeout;
    }

    fn limit(&mut self, rate: &mut RateState, report: &Report, r: f64) {
        let Report { time, x_recv, .. } = *report;
        if !report.is_data_limited {
            self.x_recv_set.update(x_recv, time, 2.0 * r);
            rate.recv_limit = 2.0 * self.x_recv_set.max();
        } else if report.p > self.p {
            self.x_recv_set.halve();
            self.x_recv_set.maximize(DATA_LIMITED_SHARE * x_recv, time);
            rate.recv_limit = self.x_recv_set.max();
        } else {
            self.x_recv_set.maximize(x_recv, time);
            rate.recv_limit = 2.0 * self.x_recv_set.max();
        }
    }

    /// The maximum of X_recv_set; infinite while that is not limited.
    pub fn highest_x_recv(&self) -> f64 {
        if self.x_recv_set.0.is_empty() { f64::INFINITY } else { self.x_recv_set.max() }
    }

    pub fn reduce(&mut self, rate: &mut RateState, time: f64, is_idle: bool) -> Step {
        let Some(r) = rate.r() else {
            return if is_idle { Step::Held } else { rate.halve() };
        };
        let x_recv = self.x_recv_set.max();
        let recover_rate = self.initial_rate(rate, r);
        let Some(x_bps) = rate.x_equation else {
            let holds = is_idle && rate.x < 2.0 * recover_rate;
            return if holds { Step::Held } else { rate.halve() };
        };
        if is_idle && x_recv < recover_rate {
            return Step::Held;
        }
        if x_bps > 2.0 * x_recv {
            self.update_limits(rate, x_recv, time, r);
            Step::LimitedByXRecv
        } else {
            self.update_limits(rate, x_bps / 2.0, time, r);
            Step::LimitedByXBps
        }
    }

    fn update_limits(&mut self, rate: &mut RateState, timer_limit: f64, time: f64, r: f64) {
        let timer_limit = timer_limit.max(rate.floor());
        self.x_recv_set = XRecvSet::of(timer_limit / 2.0, time);
        rate.recv_limit = timer_limit;
        rate.update_x(time, r, self.initial_rate(rate, r));
    }
}

/// X_recv_set: receive rates of the last two round-trip times, each with its time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
