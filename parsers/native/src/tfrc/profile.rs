//! Choices that TFRC implementations make differently, and profiles of them.

use serde::{Deserialize, Serialize};

use super::equation::Equation;
use super::loss_events::EventRule;
use super::loss_intervals::Averaging;
use super::small_packets::LEAST_INTERVAL;

/// Treatment of a packet that arrives after it was declared lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LateArrival {
    /// It stays lost, as for a receiver that cannot revoke a report.
    #[default]
    Ignore,
    /// Its hole is filled, which section 5.1 allows, and the history is as if it had come in time.
    Fill,
}

/// Receive rate that determines the first loss interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// The highest so far (section 6.3.1).
    Highest,
    /// That of the last round-trip time (RFC 3448 section 6.3.1).
    Latest,
}

/// The synthetic loss interval before the first loss event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum FirstInterval {
    /// 1/p for the receive rate, by the equation.
    Equation(Target),
    /// The packets from the first one to the first loss; for diagnosis.
    Count,
    /// A length that is known from elsewhere.
    Given(f64),
}

named_enum! {
    /// TFRC variant that the ends of a captured flow are checked against.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Profile {
        #[default]
        Rfc5348 = "rfc5348",
        /// RFC 3448, its predecessor.
        Rfc3448 = "rfc3448",
        /// Linux's CCID 3, up to the release that dropped it.
        Linux = "linux",
    }
}

impl Profile {
    pub fn receiver(self) -> ReceiverProfile {
        match self {
            Self::Rfc5348 => ReceiverProfile::rfc5348(),
            Self::Rfc3448 => ReceiverProfile::rfc3448(),
            Self::Linux => ReceiverProfile::linux(),
        }
    }

    /// The sender's part, for packets of `s` bytes.
    pub fn sender(self, s: f64) -> SenderProfile {
        match self {
            Self::Rfc5348 => SenderProfile::rfc5348(s),
            Self::Rfc3448 => SenderProfile::rfc3448(s),
            Self::Linux => SenderProfile::linux(s),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiverProfile {
    /// Bits of a sequence number.
    pub seq_bits: u32,
    /// Later packets that make a missing one lost (section 5.1).
    pub ndupack: u32,
    pub late_arrival: LateArrival,
    /// Rule that separates two loss events.
    pub event_rule: EventRule,
    /// The average of the loss intervals.
    pub averaging: Averaging,
    /// Whether intervals of up to two round-trip times count their losses (RFC 4828 section 3.3).
    pub short_intervals: bool,
    pub first_interval: FirstInterval,
    /// The equation for it.
    pub equation: Equation,
    /// t_RTO in round-trip times, for it.
    pub t_rto_factor: f64,
    /// Round-trip time while none is known, as DCCP's fallback.
    pub fallback_rtt: f64,
    /// Segment size; None takes that of the packets so far.
    pub s: Option<f64>,
}

impl ReceiverProfile {
    pub fn rfc5348() -> Self {
        Self {
            seq_bits: 48,
            ndupack: 3,
            late_arrival: LateArrival::Ignore,
            event_rule: EventRule::Time,
            averaging: Averaging::default(),
            short_intervals: false,
            first_interval: FirstInterval::Equation(Target::Highest),
            equation: Equation::default(),
            t_rto_factor: 4.0,
            fallback_rtt: 0.2,
            s: None,
        }
    }

    /// RFC 3448: discounting down to one half, and the first interval from the latest rate.
    pub fn rfc3448() -> Self {
        Self {
            averaging: Averaging { discounting: Some(0.5), ..Averaging::default() },
            first_interval: FirstInterval::Equation(Target::Latest),
            ..Self::rfc5348()
        }
    }

    /// Linux's CCID 3: window counters instead of times, whole numbers, no discounting.
    pub fn linux() -> Self {
        Self {
            event_rule: EventRule::Ccval,
            averaging: Averaging { discounting: None, int_intervals: true, ..Averaging::default() },
            ..Self::rfc3448()
        }
    }
}

impl ReceiverProfile {
    /// The interval before the first loss event, from a receive rate by the equation (section
    /// 6.3.1).
    pub fn first_interval(&self, s: f64, rtt: f64, x_target: f64) -> f64 {
        let inverse = self.equation.inverse(s, rtt, self.t_rto_factor * rtt, x_target);
        let interval = inverse.map_or(1.0, |inverse| 1.0 / inverse.p);
        if self.averaging.int_intervals { interval.floor() } else { interval }
    }
}

/// Variant of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SenderRules {
    /// RFC 5348 section 4.
    Rfc5348,
    /// RFC 3448 section 4.
    Rfc3448,
}

/// Which round-trip time the initial rate W_init/R is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitialRate {
    /// That of the first report, for ever.
    Fixed,
    Current,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderProfile {
    pub rules: SenderRules,
    /// Segment size in bytes: s.
    pub s: f64,
    /// Maximum segment size, for the initial window; None takes `s`.
    pub mss: Option<f64>,
    pub equation: Equation,
    /// t_RTO in round-trip times (section 4.3).
    pub t_rto_factor: f64,
    /// Weight of the past in R (section 4.3): q.
    pub q: f64,
    /// Weight of the past in R_sqmean (section 4.5): q2.
    pub q2: f64,
    /// The longest time between two packets in seconds (section 4.3).
    pub t_mbi: f64,
    /// The initial window in segments; None takes that of RFC 3390 (section 4.2).
    pub initial_window: Option<f64>,
    pub initial_rate: InitialRate,
    /// Whether a sender of RFC 3448 begins with the initial window and not with one packet per second
    /// (RFC 4342 section 5).
    pub opens_with_window: bool,
    /// Set for small packets (RFC 4828, RFC 5622): bytes of header that each counts.
    pub small_packets: Option<f64>,
    /// The handshake's round-trip time, if it is known.
    pub handshake_rtt: Option<f64>,
    /// Whether the rate yields to a growing queue (section 4.5).
    pub reduces_oscillations: bool,
    /// Whether the equation's γ follows the queueing at the latest loss events ([`super::veno`]).
    pub mixes_gamma: bool,
}

impl SenderProfile {
    /// RFC 5348, for packets of `s` bytes.
    pub fn rfc5348(s: f64) -> Self {
        Self {
            rules: SenderRules::Rfc5348,
            s,
            mss: None,
            equation: Equation::default(),
            t_rto_factor: 4.0,
            q: 0.9,
            q2: 0.9,
            t_mbi: 64.0,
            initial_window: None,
            initial_rate: InitialRate::Fixed,
            opens_with_window: false,
            small_packets: None,
            handshake_rtt: None,
            reduces_oscillations: false,
            mixes_gamma: false,
        }
    }

    pub fn rfc3448(s: f64) -> Self {
        Self { rules: SenderRules::Rfc3448, ..Self::rfc5348(s) }
    }

    /// Linux's CCID 3: the same but for the beginning.
    pub fn linux(s: f64) -> Self {
        Self { opens_with_window: true, ..Self::rfc3448(s) }
    }

    /// W_init in bytes: that of RFC 3390 unless another is asked for (section 4.2).
    pub fn w_init(&self) -> f64 {
        let mss = self.mss.unwrap_or(self.s);
        self.initial_window.map_or_else(|| initial_window(mss), |segments| segments * mss)
    }

    /// The highest rate: TFRC for small packets sends at most one each 10 ms.
    pub fn highest_rate(&self) -> f64 {
        self.small_packets.map_or(f64::INFINITY, |_| self.s / LEAST_INTERVAL)
    }
}

/// W_init: the initial window in bytes (section 4.2, after RFC 3390).
pub fn initial_window(mss: f64) -> f64 {
    (4.0 * mss).min((2.0 * mss).max(4380.0))
}
