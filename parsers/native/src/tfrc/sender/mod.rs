//! A sender: the allowed rate X after each report and each nofeedback timeout.

mod rfc3448;
mod rfc5348;

pub use rfc3448::Rfc3448;
pub use rfc5348::Rfc5348;

use super::Report;
use super::profile::{SenderProfile, SenderRules};
use super::round_trip::RoundTrip;
use super::small_packets::SmallPacketRate;

/// How a step changed X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The nofeedback timer ran out, and X was halved.
    Halved,
    /// X limited by the receive rate.
    LimitedByXRecv,
    /// X limited by half of the equation's rate.
    LimitedByXBps,
    /// The sender was idle and keeps its rate (section 4.4).
    Held,
}

/// A sender of either RFC.
#[derive(Clone, Debug)]
pub enum Sender {
    /// RFC 5348.
    Rfc5348(Rfc5348),
    /// RFC 3448.
    Rfc3448(Rfc3448),
}

impl Sender {
    /// A sender that starts at `time`.
    pub fn new(profile: &SenderProfile, time: f64) -> Self {
        match profile.rules {
            SenderRules::Rfc5348 => Self::Rfc5348(Rfc5348::new(profile, time)),
            SenderRules::Rfc3448 => Self::Rfc3448(Rfc3448::new(profile, time)),
        }
    }

    /// A report arrives (section 4.3).
    pub fn on_report(&mut self, report: &Report) {
        match self {
            Self::Rfc5348(sender) => sender.on_report(report),
            Self::Rfc3448(sender) => sender.on_report(report),
        }
    }

    /// The nofeedback timer runs out (section 4.4). `is_idle`: nothing was sent since it was set.
    pub fn on_no_feedback(&mut self, is_idle: bool) -> Step {
        match self {
            Self::Rfc5348(sender) => sender.on_no_feedback(is_idle),
            Self::Rfc3448(sender) => sender.on_no_feedback(is_idle),
        }
    }

    /// When the nofeedback timer runs out.
    pub fn timer(&self) -> f64 {
        match self {
            Self::Rfc5348(sender) => sender.timer,
            Self::Rfc3448(sender) => sender.timer,
        }
    }

    /// The allowed rate in bytes per second.
    pub fn x(&self) -> f64 {
        match self {
            Self::Rfc5348(sender) => sender.x,
            Self::Rfc3448(sender) => sender.x,
        }
    }

    /// Limit from the receive rate; infinite while there is none.
    pub fn recv_limit(&self) -> f64 {
        match self {
            Self::Rfc5348(sender) => sender.recv_limit,
            Self::Rfc3448(sender) => sender.recv_limit,
        }
    }

    /// The receive rate in the limit: the maximum of X_recv_set, in RFC 3448 the latest. Infinite
    /// while nothing limits.
    pub fn highest_x_recv(&self) -> f64 {
        match self {
            Self::Rfc5348(sender) => sender.highest_x_recv(),
            Self::Rfc3448(sender) => sender.highest_x_recv(),
        }
    }

    /// R; None before the first sample.
    pub fn r(&self) -> Option<f64> {
        self.round_trip().map(|round_trip| round_trip.r)
    }

    /// R_sqmean, likewise (section 4.5).
    pub fn r_sqmean(&self) -> Option<f64> {
        self.round_trip().map(|round_trip| round_trip.r_sqmean)
    }

    /// R is known from the sender itself. The answer is whether that is of use: the first R has to come
    /// as the sample of a report, because the initial rate does.
    pub fn know_r(&mut self, r: f64) -> bool {
        let round_trip = match self {
            Self::Rfc5348(sender) => &mut sender.round_trip,
            Self::Rfc3448(sender) => &mut sender.round_trip,
        };
        let is_known = round_trip.is_some() && r > 0.0 && r.is_finite();
        if is_known {
            *round_trip = Some(RoundTrip::steady(r));
        }
        is_known
    }

    fn round_trip(&self) -> Option<RoundTrip> {
        match self {
            Self::Rfc5348(sender) => sender.round_trip,
            Self::Rfc3448(sender) => sender.round_trip,
        }
    }

    /// Rate of the equation; None before the first loss event.
    pub fn x_equation(&self) -> Option<f64> {
        match self {
            Self::Rfc5348(sender) => sender.x_bps,
            Self::Rfc3448(sender) => sender.x_calc,
        }
    }

    /// The allowed rate with the damping of section 4.5: X_inst.
    pub fn x_inst(&self) -> f64 {
        match self {
            Self::Rfc5348(sender) => sender.x_inst(),
            Self::Rfc3448(sender) => sender.x_inst(),
        }
    }

    /// The size of packets has changed.
    pub fn set_s(&mut self, s: f64) {
        match self {
            Self::Rfc5348(sender) => sender.profile.s = s,
            Self::Rfc3448(sender) => sender.profile.s = s,
        }
    }

    /// Skip to `time` without events, and restart the nofeedback timer there.
    pub fn rest_until(&mut self, time: f64) {
        match self {
            Self::Rfc5348(sender) => sender.set_timer(time),
            Self::Rfc3448(sender) => sender.set_timer(time),
        }
    }
}

/// The equation's rate; without a loss event there is none.
fn x_equation(profile: &SenderProfile, r: f64, p: f64) -> Option<f64> {
    let t_rto = profile.t_rto_factor * r;
    let Some(header) = profile.small_packets else { return profile.equation.rate(profile.s, r, t_rto, p) };
    SmallPacketRate::new(&profile.equation, r, t_rto, p, profile.s, header).map(|rate| rate.x_limited)
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
