//! A common interface to the senders of both RFCs and of ns-2, and names of their decisions.

use crate::tfrc::Report;
use crate::tfrc::ns2::{self, Mode as Ns2Mode};
use crate::tfrc::profile::SenderProfile;
use crate::tfrc::sender::{Sender, Step};

/// In slow start rates that differ by less than this share are equal: a limit that repeats is computed from other
/// times, which a trace rounds.
const SAME_RATE: f64 = 1e-5;

named_enum! {
    /// Limit in force on the rate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mode {
        /// No loss event yet.
        SlowStart = "slow_start",
        Equation = "equation",
        /// Limited by the receive rate.
        ReceiveLimited = "receive_limited",
        NoFeedback = "no_feedback",
        /// Reports are missing because nothing is sent.
        Idle = "idle",
    }
}

named_enum! {
    /// Reason for the rate after a step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reason {
        /// The first round-trip time is known.
        FirstReport = "first_report",
        /// No round-trip time is known yet, so that a report changes nothing.
        NoRtt = "no_rtt",
        /// Slow start doubled the rate.
        Doubled = "doubled",
        /// Slow start waits until a round-trip time has passed since its last step.
        Held = "held",
        /// The receive rate limits the rate.
        ReceiveRate = "receive_rate",
        /// The first loss event ended slow start.
        LeavingSlowStart = "leaving_slow_start",
        /// The loss event rate rose.
        LossEvent = "loss_event",
        LossFree = "loss_free",
        /// Only the round-trip time changed.
        RoundTripTime = "round_trip_time",
        /// ns-2 increases to the equation's rate by some packets per round-trip time.
        Approaching = "approaching",
        /// The nofeedback timer halved the rate.
        Halved = "halved",
        /// The nofeedback timer set the limit to the receive rate.
        LimitedByXRecv = "limited_by_x_recv",
        /// The nofeedback timer set the limit to half of the equation's rate.
        LimitedByEquation = "limited_by_equation",
        /// The nofeedback timer expired for an idle sender, which keeps its rate.
        Idle = "idle",
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Allowed rate, bytes per second.
    pub x: f64,
    /// Rate of the equation; None before the first loss event.
    pub x_calc: Option<f64>,
    /// Limit from the receive rate; None without one.
    pub x_limit: Option<f64>,
    /// The largest receive rate that counts: of X_recv_set, or of the latest report alone; None before one.
    pub x_recv: Option<f64>,
    /// R, seconds; None before the first sample.
    pub r: Option<f64>,
    /// When the nofeedback timer expires.
    pub timer: f64,
    pub mode: Mode,
    pub reason: Reason,
}

/// Variant and parameters of a sender.
#[derive(Clone, Copy, Debug)]
pub enum Rules {
    /// One of the RFCs.
    Rfc(SenderProfile),
    Ns2(ns2::Parameters),
}

/// A sender of any kind.
#[derive(Clone, Debug)]
pub enum SenderVariant {
    /// A sender of an RFC. The flag: report X_inst instead of X (section 4.5).
    Rfc(Box<Sender>, bool),
    Ns2(Box<ns2::Sender>),
}

/// State before a step, used to explain it.
struct PreviousState {
    x: f64,
    p: f64,
    has_r: bool,
    had_losses: bool,
}

impl SenderVariant {
    /// A sender whose first packet leaves at `time`.
    pub fn new(rules: &Rules, time: f64) -> Self {
        match rules {
            Rules::Rfc(profile) => {
                Self::Rfc(Box::new(Sender::new(profile, time)), profile.reduces_oscillations)
            }
            Rules::Ns2(parameters) => Self::Ns2(Box::new(ns2::Sender::new(parameters))),
        }
    }

    pub fn x(&self) -> f64 {
        match self {
            Self::Rfc(sender, _) => sender.x(),
            Self::Ns2(sender) => sender.rate,
        }
    }

    /// The rate at which packets leave: the allowed one, or less while the queue grows (section
    /// 4.5).
    pub fn sending_rate(&self) -> f64 {
        match self {
            Self::Rfc(sender, _) => sender.x().min(sender.x_inst()),
            Self::Ns2(sender) => sender.rate,
        }
    }

    /// A packet of `bytes` payload is sent. Only ns-2's rules depend on each of them.
    pub fn on_sent(&mut self, time: f64, bytes: u32) {
        if let Self::Ns2(sender) = self {
            sender.on_data(time, bytes);
        }
    }

    /// The corrected decision of the last report, if later packets showed that a tie was decided
    /// otherwise than in `decision`; the rate before it was `x_before`.
    pub fn revised(&mut self, decision: &Decision, x_before: f64) -> Option<Decision> {
        let Self::Ns2(sender) = self else { return None };
        if !std::mem::take(&mut sender.is_revised) {
            return None;
        }
        let reason = match () {
            () if self.mode() == Mode::ReceiveLimited => Reason::ReceiveRate,
            () if self.x() > x_before => Reason::Doubled,
            () if self.x() < x_before => Reason::ReceiveRate,
            () => Reason::Held,
        };
        Some(Decision { timer: decision.timer, ..self.decision(self.mode(), reason) })
    }

    /// Process a report that follows one with `p_before`.
    pub fn on_report(&mut self, report: &Report, p_before: f64) -> Decision {
        let before = PreviousState {
            x: self.x(),
            p: p_before,
            has_r: self.r().is_some(),
            had_losses: self.x_calc().is_some(),
        };
        let mut approaches = false;
        match self {
            Self::Rfc(sender, _) => sender.on_report(report),
            Self::Ns2(sender) => {
                if let Some(sample) = report.r_sample {
                    let x_recv_pps = report.x_recv / sender.size().max(1.0);
                    let echo = ns2::Feedback {
                        timestamp_echo: report.time - sample,
                        hold: 0.0,
                        p: report.p,
                        x_recv_pps,
                        losses: report.losses,
                    };
                    sender.on_report(report.time, &echo);
                    approaches = sender.mode == Ns2Mode::Increase;
                }
            }
        }
        let mode = self.mode();
        let reason = self.reason(&before, report.p, mode, approaches);
        self.decision(mode, reason)
    }

    /// Expire the nofeedback timer if it is due before `time`; returns the time and the decision.
    /// `is_idle` returns whether nothing was sent between two times; ns-2's agent determines that
    /// itself.
    pub fn expire(
        &mut self,
        time: f64,
        since: f64,
        is_idle: impl Fn(f64, f64) -> bool,
    ) -> Option<(f64, Decision)> {
        let (due, mode, reason) = match self {
            Self::Rfc(sender, _) => {
                let due = sender.timer();
                if due >= time {
                    return None;
                }
                let (mode, reason) = words_of(sender.on_no_feedback(is_idle(since, due)));
                (due, mode, reason)
            }
            Self::Ns2(sender) => {
                let rate = sender.rate;
                let due = sender.expire(time)?;
                let is_kept = sender.rate >= rate;
                (
                    due,
                    if is_kept { Mode::Idle } else { Mode::NoFeedback },
                    if is_kept { Reason::Idle } else { Reason::Halved },
                )
            }
        };
        Some((due, self.decision(mode, reason)))
    }

    fn decision(&self, mode: Mode, reason: Reason) -> Decision {
        let (x, timer) = match self {
            Self::Rfc(sender, reduces_oscillations) => {
                (if *reduces_oscillations { sender.x_inst() } else { sender.x() }, sender.timer())
            }
            Self::Ns2(sender) => (sender.rate, sender.nofeedback_timer()),
        };
        let x_limit = Some(self.limit()).filter(|limit| limit.is_finite());
        Decision {
            x,
            x_calc: self.x_calc(),
            x_limit,
            x_recv: self.x_recv(),
            r: self.r(),
            timer,
            mode,
            reason,
        }
    }

    /// R, seconds; None before the first sample.
    pub fn r(&self) -> Option<f64> {
        match self {
            Self::Rfc(sender, _) => sender.r(),
            Self::Ns2(sender) => sender.round_trip.map(|round_trip| round_trip.r),
        }
    }

    fn x_calc(&self) -> Option<f64> {
        match self {
            Self::Rfc(sender, _) => sender.x_equation(),
            Self::Ns2(sender) => sender.x_calc(),
        }
    }

    fn limit(&self) -> f64 {
        match self {
            Self::Rfc(sender, _) => sender.recv_limit(),
            Self::Ns2(sender) => sender.recv_limit(),
        }
    }

    /// The receive rate in the limit.
    fn x_recv(&self) -> Option<f64> {
        match self {
            Self::Rfc(sender, _) => Some(sender.highest_x_recv()).filter(|x_recv| x_recv.is_finite()),
            Self::Ns2(sender) => Some(sender.x_recv).filter(|x_recv| *x_recv > 0.0),
        }
    }

    /// The limit in force on x after a report.
    fn mode(&self) -> Mode {
        let (x, limit) = (self.x(), self.limit());
        match self.x_calc() {
            None if limit.is_finite() && (x - limit).abs() <= SAME_RATE * limit => Mode::ReceiveLimited,
            None if x < limit => Mode::SlowStart,
            Some(x_calc) if x_calc <= limit || x > limit => Mode::Equation,
            Some(_) if x < limit => Mode::Equation,
            // Slow start keeps its initial rate also where less is received.
            None if x > limit => Mode::SlowStart,
            _ => Mode::ReceiveLimited,
        }
    }

    fn reason(&self, before: &PreviousState, p: f64, mode: Mode, approaches: bool) -> Reason {
        let has_losses = self.x_calc().is_some();
        match () {
            () if self.r().is_none() => Reason::NoRtt,
            () if !before.has_r => Reason::FirstReport,
            () if mode == Mode::ReceiveLimited => Reason::ReceiveRate,
            () if has_losses && !before.had_losses => Reason::LeavingSlowStart,
            () if !has_losses && self.x() > before.x => Reason::Doubled,
            () if !has_losses && self.x() < before.x => Reason::ReceiveRate,
            () if !has_losses => Reason::Held,
            () if approaches => Reason::Approaching,
            () if p > before.p => Reason::LossEvent,
            () if p < before.p => Reason::LossFree,
            () => Reason::RoundTripTime,
        }
    }
}

fn words_of(step: Step) -> (Mode, Reason) {
    match step {
        Step::Halved => (Mode::NoFeedback, Reason::Halved),
        Step::LimitedByXRecv => (Mode::NoFeedback, Reason::LimitedByXRecv),
        Step::LimitedByXBps => (Mode::NoFeedback, Reason::LimitedByEquation),
        Step::Held => (Mode::Idle, Reason::Idle),
    }
}
