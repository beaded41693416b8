//! The throughput equation (section 3.1), its inverse, and its form for another decrease factor.

use serde::{Deserialize, Serialize};

/// One form of the equation. With a decrease factor γ of one half it is the RFC's; TFRC Veno has
/// others, by the same derivation from a sawtooth between γW and W.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equation {
    /// Packets that one acknowledgement of the TCP it imitates covers; the RFC recommends 1.
    pub b: f64,
    /// Share of a window that remains after a loss event.
    pub gamma: f64,
    /// Whether the share of losses that end in a timeout cannot exceed 1, as in the original
    /// equation of Padhye et al. and in ns-2. The RFCs leave that out.
    pub is_capped: bool,
}

impl Default for Equation {
    fn default() -> Self {
        Self { b: 1.0, gamma: 0.5, is_capped: false }
    }
}

/// Loss event rate for a given throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inverse {
    pub p: f64,
    /// Whether even p = 1 allows more than that.
    pub is_clipped: bool,
}

/// Decrease factors that TFRC Veno may have: TCP's own and its weakest.
const VENO_GAMMAS: std::ops::RangeInclusive<f64> = 0.5..=0.95;

impl Equation {
    /// The equation of TFRC Veno; None for a decrease factor outside of 0.5 to 0.95.
    pub fn veno(gamma: f64) -> Option<Self> {
        VENO_GAMMAS.contains(&gamma).then(|| Self { gamma, ..Self::default() })
    }

    /// X in bytes per second for packets of `s` bytes. None where the equation is undefined: before
    /// the first loss event (p = 0), or for impossible arguments.
    pub fn rate(&self, s: f64, rtt: f64, t_rto: f64, p: f64) -> Option<f64> {
        let is_meant = s > 0.0 && rtt > 0.0 && t_rto >= 0.0 && self.b >= 1.0 && p > 0.0 && p <= 1.0;
        is_meant.then(|| s / self.seconds_per_packet(rtt, t_rto, p))
    }

    /// f(p) = s / (R X) with t_RTO = 4R (section 6.3.1). It grows with p.
    pub fn f(&self, p: f64) -> f64 {
        self.seconds_per_packet(1.0, 4.0, p)
    }

    /// The p for which the equation gives `x`: exact within floating point, where the RFC accepts 5
    /// %, so that two programs agree. None for impossible arguments.
    pub fn inverse(&self, s: f64, rtt: f64, t_rto: f64, x: f64) -> Option<Inverse> {
        let seconds = s / x;
        if !(seconds.is_finite() && seconds > 0.0 && rtt > 0.0 && t_rto >= 0.0) {
            return None;
        }
        if seconds >= self.seconds_per_packet(rtt, t_rto, 1.0) {
            return Some(Inverse { p: 1.0, is_clipped: true });
        }
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        loop {
            let p = 0.5 * (low + high);
            if p <= low || p >= high {
                return Some(Inverse { p: high.max(f64::MIN_POSITIVE), is_clipped: false });
            }
            if self.seconds_per_packet(rtt, t_rto, p) < seconds {
                low = p;
            } else {
                high = p;
            }
        }
    }

    fn seconds_per_packet(&self, rtt: f64, t_rto: f64, p: f64) -> f64 {
        let Self { b, gamma, is_capped } = *self;
        let recovery = (2.0 * b * (1.0 - gamma) / (1.0 + gamma) * p).sqrt();
        let timeout = 3.0 * (b * (1.0 - gamma * gamma) / 2.0 * p).sqrt();
        let timeout = if is_capped { timeout.min(1.0) } else { timeout };
        rtt * recovery + t_rto * timeout * p * (1.0 + 32.0 * p * p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_no_loss_and_nonsense_have_no_rate() {
        let equation = Equation::default();
        for (s, rtt, p) in [(1460.0, 0.1, 0.0), (0.0, 0.1, 0.1), (1460.0, 0.0, 0.1), (1460.0, 0.1, 1.1)] {
            assert_eq!(equation.rate(s, rtt, 4.0 * rtt, p), None);
        }
        assert_eq!(equation.rate(1460.0, f64::NAN, 0.4, 0.1), None);
        assert_eq!(equation.inverse(1460.0, 0.1, 0.4, 0.0), None);
        assert_eq!((Equation::veno(0.4), Equation::veno(0.96)), (None, None));
    }

    proptest! {
        #[test]
        fn test_f_grows_with_p(p in 1e-9..0.999_f64, further in 1e-6..1e-3_f64) {
            for equation in [Equation::default(), Equation::veno(0.8).unwrap()] {
                prop_assert!(equation.f(p * (1.0 + further)) > equation.f(p));
            }
        }

        #[test]
        fn test_the_inverse_takes_the_equation_back(
            p in 1e-9..0.999_f64, rtt in 1e-4..10.0_f64, s in 20.0..9000.0_f64, is_capped: bool,
        ) {
            let equation = Equation { is_capped, ..Equation::default() };
            let x = equation.rate(s, rtt, 4.0 * rtt, p).unwrap();
            let found = equation.inverse(s, rtt, 4.0 * rtt, x).unwrap();
            prop_assert!((found.p / p - 1.0).abs() < 1e-9);
        }

        #[test]
        fn test_any_rate_has_a_p_from_0_to_1(x in proptest::num::f64::ANY, rtt in proptest::num::f64::ANY) {
            if let Some(found) = Equation::default().inverse(1000.0, rtt, 4.0 * rtt, x) {
                prop_assert!(found.p > 0.0 && found.p <= 1.0);
            }
        }
    }
}
