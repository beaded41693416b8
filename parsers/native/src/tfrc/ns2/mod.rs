//! ns-2.35's TFRC agent and sink, reconstructed from a trace.
//!
//! Their headers are not in a trace: a data packet carries the sender's round-trip time, its round
//! and whether it requests a report; a report carries p and X_recv. All of it follows from the send
//! and arrival times of data and reports, because the agents are deterministic: [`Sender`] and
//! [`Receiver`] process these four kinds of events and exchange [`Header`] and [`Feedback`].
//!
//! The agent is not RFC 3448: differences are noted in the code. Parameters have the names of its
//! Tcl variables without the trailing underscore.

mod gaps;
mod history;
mod loss_interval;
mod parameters;
mod receive_rate;
mod receiver;
mod rto;
mod sender;

pub use parameters::Parameters;
pub use receiver::{ArrivalOutcome, Receiver};
pub use sender::{Mode, Sender};

/// Wired traces have microseconds: events at one time, or one round-trip time apart, may be printed
/// up to this much earlier or later, in seconds.
pub const PRINTED: f64 = 2e-6;

/// Header of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Header {
    /// When it was sent.
    pub timestamp: f64,
    /// R; 0 before the first report.
    pub rtt: f64,
    /// t_RTO; 0 before the first report.
    pub tzero: f64,
    /// Reports and nofeedback timeouts so far.
    pub round_id: u64,
    /// The allowed rate, bytes per second.
    pub rate: f64,
    /// Payload of the sender's packets.
    pub size: u32,
    /// Payload with which the equation counts; other than `size` with `voip_`.
    pub fsize: f64,
}

/// Contents of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Send time of the echoed packet.
    pub timestamp_echo: f64,
    /// How long the receiver held it.
    pub hold: f64,
    /// Loss event rate; 0 before the first loss.
    pub p: f64,
    /// Packets per second received.
    pub x_recv_pps: f64,
    /// Packets that were found lost, or marked, since the last report.
    pub losses: u64,
}

/// The highest rate of ns-2's equation, in bytes per second; also without losses.
const MAX_RATE: f64 = 25e6;
/// Seconds per packet below which the equation gives that rate.
const LEAST_SECONDS: f64 = 1e-7;

/// The equation as ns-2 has it (`p_to_b`): capped, and bounded.
fn rate_of(p: f64, rtt: f64, tzero: f64, size: f64, bval: f64) -> f64 {
    let equation = super::equation::Equation { b: bval, is_capped: true, ..Default::default() };
    let rate = equation.rate(size, rtt, tzero, p).unwrap_or(MAX_RATE);
    if rate * LEAST_SECONDS > size { MAX_RATE } else { rate.min(MAX_RATE) }
}

/// The p for a rate as ns-2 finds it (`b_to_p`): the first of a bisection within 5 %.
fn p_of(rate: f64, rtt: f64, tzero: f64, size: f64) -> f64 {
    let (mut p, mut step) = (0.5, 0.25);
    for _ in 0..=30 {
        let found = rate_of(p, rtt, tzero, size, 1.0);
        if found > 0.95 * rate && found < 1.05 * rate {
            break;
        }
        p += if found > rate { step } else { -step };
        step /= 2.0;
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_no_loss_gives_the_highest_rate() {
        assert_eq!(rate_of(0.0, 0.1, 0.3, 1000.0, 1.0), MAX_RATE);
        assert_eq!(rate_of(1e-12, 0.1, 0.3, 1000.0, 1.0), MAX_RATE);
    }

    proptest! {
        #[test]
        fn test_the_coarse_inverse_is_within_5_percent(rate in 100.0..1e6_f64, rtt in 0.001..1.0_f64) {
            let p = p_of(rate, rtt, 0.3, 1000.0);
            let found = rate_of(p, rtt, 0.3, 1000.0, 1.0);
            // Where more than a third of the packets is lost the bisection may end at p = 1.
            prop_assert!((found / rate - 1.0).abs() < 0.05 || p > 0.99);
        }
    }
}
