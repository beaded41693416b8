//! The sender of RFC 3448, section 4, with errata 270 and 1458.

use serde::{Deserialize, Serialize};

use super::{RateState, Step};
use crate::tfrc::Report;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rfc3448 {
    pub x_recv: f64,
    has_report: bool,
}

impl Rfc3448 {
    pub fn new(rate: &mut RateState, time: f64, rtt: Option<f64>) -> Self {
        rate.tld = f64::NEG_INFINITY;
        if let Some(rtt) = rtt.filter(|_| rate.profile.opens_with_window) {
            rate.take_sample(rtt);
            open(rate, time, rtt);
        }
        Self { x_recv: 0.0, has_report: false }
    }

    pub fn on_report(&mut self, rate: &mut RateState, report: &Report, r: f64) {
        self.x_recv = report.x_recv;
        rate.update_equation(report, r);
        let is_first = !std::mem::replace(&mut self.has_report, true);
        if is_first && rate.profile.opens_with_window {
            open(rate, report.time, r);
        } else {
            self.update_x(rate, report.time, r);
        }
        rate.set_timer(report.time);
    }

    fn update_x(&self, rate: &mut RateState, time: f64, r: f64) {
        rate.recv_limit = 2.0 * self.x_recv;
        rate.update_x(time, r, (rate.profile.s / r).max(rate.floor()));
    }

    pub fn reduce(&mut self, rate: &mut RateState, time: f64, is_idle: bool) -> Step {
        let Some(r) = rate.r() else { return rate.halve() };
        if is_idle && self.x_recv < 4.0 * rate.profile.s / r {
            return Step::Held;
        }
        let Some(x_calc) = rate.x_equation else { return rate.halve() };
        let step = if x_calc > 2.0 * self.x_recv {
            self.x_recv = (self.x_recv / 2.0).max(rate.floor() / 2.0);
            Step::LimitedByXRecv
        } else {
            self.x_recv = x_calc / 4.0;
            Step::LimitedByXBps
        };
        self.update_x(rate, time, r);
        step
    }
}

/// Set the initial window per round-trip time (RFC 4342 section 5).
fn open(rate: &mut RateState, time: f64, r: f64) {
    rate.x = rate.profile.w_init() / r;
    rate.tld = time;
}
