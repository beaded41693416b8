//! Parameters of ns-2's agents, named after their Tcl variables without the trailing underscore.

use crate::tfrc::loss_intervals::MAX_N;

/// The most later packets awaited, and rounds above the limit.
const MOST_COUNTED: f64 = 1000.0;

/// How the sink computes p from its loss events (`algo_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// 1: the weighted mean of the latest loss intervals.
    Weighted,
    /// 2: an exponentially weighted mean.
    Exponential,
    /// 3: loss events in as many packets as should contain `minlc_` at the sender's rate.
    RateWindow,
    /// 4: `minlc_` loss events over the packets since the first of them.
    EventWindow,
}

/// Divisor of the packets of a short loss interval (`ShortIntervals_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortLosses {
    /// 1: the packets lost in it.
    Lost,
    /// 2: no more of these than small packets make one of `fsize_`.
    AsLargePackets,
    /// 3: the fewer of these, the more round-trip times it lasted.
    ByRoundTrips,
}

/// How short loss intervals count (`ShortIntervals_`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortIntervals {
    /// None if they count as all others.
    pub losses: Option<ShortLosses>,
    /// Whether the open interval does not count as long as it is short.
    pub leaves_out_open: bool,
}

impl ShortIntervals {
    /// That of ns-2's number: 1 to 3, and 10 more than these for its older rule of the open interval.
    fn numbered(value: f64) -> Option<Self> {
        let losses = match value {
            0.0 => None,
            1.0 | 11.0 => Some(ShortLosses::Lost),
            2.0 | 12.0 => Some(ShortLosses::AsLargePackets),
            3.0 | 13.0 => Some(ShortLosses::ByRoundTrips),
            _ => return None,
        };
        Some(Self { losses, leaves_out_open: value == 2.0 || value == 3.0 })
    }
}

/// The agents' parameters that change the meaning of a trace, with their defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Weight of the past in R.
    pub df: f64,
    /// Seconds per tick of the TCP-like RTO, which is t_RTO.
    pub tcp_tick: f64,
    /// The least t_RTO, in seconds.
    pub minrto: f64,
    /// Packets per acknowledgement in the equation.
    pub bval: f64,
    /// Whether packets are spaced by the square root of the round-trip time.
    pub ca: bool,
    /// The random variation of the distance between packets, as a share of it.
    pub overhead: f64,
    /// Whether the application may have nothing to send, which shows as packets that were due and
    /// not sent.
    pub sndr_type: bool,
    /// The first rate, bytes per second.
    pub init_rate: f64,
    /// Whether the initial window is that of RFC 3390 (2), or `rate_init` (1).
    pub rate_init_option: f64,
    /// The initial window in packets.
    pub rate_init: f64,
    /// Factor of the rate in slow start.
    pub ssmult: f64,
    /// Whether slow start goes from one rate to the next packet by packet.
    pub slow_increase: bool,
    /// Whether the receive rate after an idle period does not limit the rate below the initial
    /// window.
    pub idle_fix: bool,
    /// Reports in a row for which the rate may be above twice the receive rate.
    pub max_heavy_rounds: f64,
    /// Whether small packets get the rate of packets of `fsize` (RFC 4828), less their headers.
    pub voip: bool,
    /// The most packets per second with `voip`.
    pub voip_max_pkt_rate: f64,
    /// That size, bytes.
    pub fsize: f64,
    /// Bytes of a header, with `voip`.
    pub headersize: f64,
    /// Whether a report without losses allows `scmult` times the receive rate and one with losses
    /// no more than it, after slow start.
    pub conservative: bool,
    pub scmult: f64,
    /// Whether data after an idle period leave without waiting for the timer, which then always
    /// halves without reports.
    pub old_code: bool,
    /// Packets beyond a gap that make it a loss.
    pub num_pkts: f64,
    /// Reports per round-trip time.
    pub num_feedback: f64,
    /// Whether a loss event also needs a new round.
    pub precise_loss: bool,
    /// Whether the first loss interval is computed from the receive rate.
    pub adjust_history_after_ss: bool,
    pub algo: Algorithm,
    /// Loss intervals that count.
    pub num_samples: f64,
    /// Whether the open interval precedes all of them, instead of replacing the oldest.
    pub smooth: bool,
    /// Whether a long open interval discounts the others.
    pub discount: bool,
    /// The least weight that it leaves.
    pub min_discount_ratio: f64,
    /// Weight of the past in the exponentially weighted mean.
    pub history: f64,
    /// Loss events in the windows of `algo` 3 and 4.
    pub minlc: f64,
    pub short_intervals: ShortIntervals,
    /// Round-trip times that such an interval lasts at most.
    pub short_rtts: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            df: 0.95,
            tcp_tick: 0.1,
            minrto: 0.0,
            bval: 1.0,
            ca: true,
            overhead: 0.0,
            sndr_type: true,
            init_rate: 300.0,
            rate_init_option: 2.0,
            rate_init: 2.0,
            ssmult: 2.0,
            slow_increase: true,
            idle_fix: true,
            max_heavy_rounds: 0.0,
            voip: false,
            voip_max_pkt_rate: 100.0,
            fsize: 1460.0,
            headersize: 32.0,
            conservative: false,
            scmult: 1.5,
            old_code: false,
            num_pkts: 1.0,
            num_feedback: 1.0,
            precise_loss: true,
            adjust_history_after_ss: true,
            algo: Algorithm::Weighted,
            num_samples: 8.0,
            smooth: true,
            discount: true,
            min_discount_ratio: 0.5,
            history: 0.75,
            minlc: 4.0,
            short_intervals: ShortIntervals::default(),
            short_rtts: 2.0,
        }
    }
}

impl Parameters {
    /// The parameters of the sender.
    pub const OF_SENDER: [&'static str; 21] = [
        "df", "tcp_tick", "minrto", "bval", "ca", "overhead", "sndr_type", "init_rate", "rate_init_option",
        "rate_init", "ssmult", "slow_increase", "idle_fix", "max_heavy_rounds", "voip", "voip_max_pkt_rate",
        "fsize", "headersize", "conservative", "scmult", "old_code",
    ];

    /// The parameters of the sink.
    pub const OF_SINK: [&'static str; 13] = [
        "num_pkts",
        "num_feedback",
        "precise_loss",
        "adjust_history_after_ss",
        "algo",
        "num_samples",
        "smooth",
        "discount",
        "min_discount_ratio",
        "history",
        "minlc",
        "short_intervals",
        "short_rtts",
    ];

    /// Names that [`Parameters::set`] accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::OF_SENDER.into_iter().chain(Self::OF_SINK)
    }

    /// Set a parameter by its name; false if there is none or the value is invalid.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        let is_count = value.fract() == 0.0 && (1.0..=MOST_COUNTED).contains(&value);
        let (at, allowed) = match name {
            "df" => (&mut self.df, (0.0..1.0).contains(&value)),
            "tcp_tick" => (&mut self.tcp_tick, value > 0.0),
            "minrto" => (&mut self.minrto, value >= 0.0),
            "bval" => (&mut self.bval, value >= 1.0),
            "overhead" => (&mut self.overhead, (0.0..=1.0).contains(&value)),
            "init_rate" => (&mut self.init_rate, value > 0.0),
            "rate_init_option" => (&mut self.rate_init_option, value == 1.0 || value == 2.0),
            "rate_init" => (&mut self.rate_init, value > 0.0),
            "ssmult" => (&mut self.ssmult, value >= 1.0),
            "max_heavy_rounds" => (&mut self.max_heavy_rounds, is_count || value == 0.0),
            "voip_max_pkt_rate" => (&mut self.voip_max_pkt_rate, value > 0.0),
            "fsize" => (&mut self.fsize, value > 0.0),
            "headersize" => (&mut self.headersize, value >= 0.0),
            "scmult" => (&mut self.scmult, value > 0.0),
            "num_pkts" => (&mut self.num_pkts, is_count),
            "num_feedback" => (&mut self.num_feedback, is_count),
            "num_samples" => (&mut self.num_samples, is_count && value <= MAX_N as f64),
            "min_discount_ratio" => (&mut self.min_discount_ratio, (0.0..=1.0).contains(&value)),
            "history" => (&mut self.history, (0.0..=1.0).contains(&value)),
            "minlc" => (&mut self.minlc, is_count),
            "short_rtts" => (&mut self.short_rtts, is_count || value == 0.0),
            "short_intervals" => return self.set_short_intervals(value),
            "algo" => return self.set_algorithm(value),
            _ => return self.set_switch(name, value),
        };
        let is_good = allowed && value.is_finite();
        if is_good {
            *at = value;
        }
        is_good
    }

    fn set_algorithm(&mut self, value: f64) -> bool {
        self.algo = match value {
            1.0 => Algorithm::Weighted,
            2.0 => Algorithm::Exponential,
            3.0 => Algorithm::RateWindow,
            4.0 => Algorithm::EventWindow,
            _ => return false,
        };
        true
    }

    fn set_short_intervals(&mut self, value: f64) -> bool {
        let found = ShortIntervals::numbered(value);
        self.short_intervals = found.unwrap_or(self.short_intervals);
        found.is_some()
    }

    /// Set a parameter that is 0 or 1.
    fn set_switch(&mut self, name: &str, value: f64) -> bool {
        let at = match name {
            "ca" => &mut self.ca,
            "sndr_type" => &mut self.sndr_type,
            "slow_increase" => &mut self.slow_increase,
            "idle_fix" => &mut self.idle_fix,
            "voip" => &mut self.voip,
            "conservative" => &mut self.conservative,
            "old_code" => &mut self.old_code,
            "precise_loss" => &mut self.precise_loss,
            "adjust_history_after_ss" => &mut self.adjust_history_after_ss,
            "smooth" => &mut self.smooth,
            "discount" => &mut self.discount,
            _ => return false,
        };
        let is_good = value == 0.0 || value == 1.0;
        if is_good {
            *at = value == 1.0;
        }
        is_good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_parameters_are_set_by_name_and_within_their_range() {
        let mut parameters = Parameters::default();
        for name in Parameters::names() {
            assert!(parameters.set(name, 1.0) || name == "df", "{name}");
            assert!(!parameters.set(name, f64::NAN) && !parameters.set(name, -1.0), "{name}");
            assert!(!parameters.set(name, f64::INFINITY), "{name}");
        }
        assert!(parameters.set("df", 0.9) && !parameters.set("rtt", 0.9) && !parameters.set("ca", 0.5));
        assert!(!parameters.set("short_intervals", 4.0) && !parameters.set("short_intervals", 10.0));
        assert!(parameters.set("short_intervals", 13.0) && !parameters.short_intervals.leaves_out_open);
        assert!(!parameters.set("algo", 5.0) && !parameters.set("num_pkts", 1.5));
        let names: std::collections::HashSet<_> = Parameters::names().collect();
        assert_eq!(names.len(), Parameters::OF_SENDER.len() + Parameters::OF_SINK.len());
    }
}
