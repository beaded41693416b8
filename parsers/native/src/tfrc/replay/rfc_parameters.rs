//! Parameters of the RFC variants by their user-visible names.

use crate::tfrc::equation::Equation;
use crate::tfrc::loss_intervals::MAX_N;
use crate::tfrc::ns2;
use crate::tfrc::profile::{InitialRate, ReceiverProfile, SenderProfile};
use crate::tfrc::small_packets::{HEADER_CCID4, HEADER_TFRC_SP};

use super::sender_variant::Rules;

named_enum! {
    /// Implementation of a sender.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ParameterProfile {
        Rfc5348 = "rfc5348",
        Rfc3448 = "rfc3448",
        /// ns-2.35's agent.
        Ns2 = "ns2",
        /// Linux's CCID 3.
        Linux = "linux",
    }
}

impl ParameterProfile {
    /// Its receiver, needed by a trace without reports; ns-2's is a separate state machine.
    fn receiver(self) -> ReceiverProfile {
        match self {
            Self::Rfc5348 | Self::Ns2 => ReceiverProfile::rfc5348(),
            Self::Rfc3448 => ReceiverProfile::rfc3448(),
            Self::Linux => ReceiverProfile::linux(),
        }
    }

    /// The parameters that its receiver uses.
    pub fn receiver_parameters(self) -> &'static [&'static str] {
        match self {
            Self::Ns2 => &ns2::Parameters::OF_SINK,
            _ => &RECEIVER_PARAMETERS,
        }
    }

    /// The parameters that [`ends`] accepts for it.
    pub fn parameters(self) -> Vec<&'static str> {
        match self {
            Self::Ns2 => ns2::Parameters::names().collect(),
            _ => RFC_PARAMETERS.to_vec(),
        }
    }
}

/// Parameters that the RFCs leave open or recommend.
const RFC_PARAMETERS: [&str; 13] = [
    "b",
    "gamma",
    "t_rto_factor",
    "q",
    "q2",
    "t_mbi",
    "mss",
    "initial_window",
    "initial_rate_follows_rtt",
    "reduce_oscillations",
    "n",
    "discounting",
    "threshold",
];

/// Those used by the receiver: they change nothing where a trace has its reports. ns-2's sink has
/// its own.
const RECEIVER_PARAMETERS: [&str; 3] = ["n", "discounting", "threshold"];

/// Instead of a number for γ: it follows the losses.
const MIX: &str = "mix";

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    /// A word in place of one.
    Word(String),
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug)]
pub struct EndParameters {
    pub rules: Rules,
    /// The parameters of the receiver, if it is an RFC's.
    pub receiver: ReceiverProfile,
}

named_enum! {
    /// The variants of TFRC that share the senders of its profiles.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Variant {
        Tfrc = "tfrc",
        /// For small packets (RFC 4828).
        SmallPackets = "tfrc-sp",
        /// For small packets in DCCP (RFC 5622).
        Ccid4 = "ccid4",
        /// With the equation of TCP Veno.
        Veno = "tfrc-veno",
    }
}

/// THRESHOLD for a profile without discounting if the user requests it: that of RFC 3448, which
/// Linux's receiver follows.
const LINUX_WOULD_DISCOUNT_TO: f64 = 0.5;

/// Share of TFRC Veno's window that remains after a loss without congestion.
const VENO_GAMMA: f64 = 0.8;

impl Variant {
    fn apply(self, sender: &mut SenderProfile, receiver: &mut ReceiverProfile) {
        match self {
            Self::Tfrc => {}
            Self::SmallPackets => sender.small_packets = Some(HEADER_TFRC_SP),
            Self::Ccid4 => sender.small_packets = Some(HEADER_CCID4),
            Self::Veno => sender.equation.gamma = VENO_GAMMA,
        }
        // RFC 4828 section 3.3, adopted by RFC 5622.
        receiver.short_intervals = sender.small_packets.is_some();
    }
}

/// Why these rules do not exist.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The profile has no such variant: ns-2's agent is fixed.
    Variant,
    /// It has no parameter of this name.
    Name(String),
    /// The parameter cannot have this value.
    Value(String),
}

/// The rules of a sender of packets of `s` bytes, which knows `handshake_rtt` if it is not None,
/// and of its receiver.
pub fn ends(
    profile: ParameterProfile,
    variant: Variant,
    s: f64,
    handshake_rtt: Option<f64>,
    parameters: &[(String, Value)],
) -> Result<EndParameters, Refusal> {
    let mut receiver = profile.receiver();
    let mut sender = match profile {
        ParameterProfile::Ns2 if variant != Variant::Tfrc => return Err(Refusal::Variant),
        ParameterProfile::Ns2 => return Ok(EndParameters { rules: ns2_rules(parameters)?, receiver }),
        ParameterProfile::Rfc5348 => SenderProfile::rfc5348(s),
        ParameterProfile::Rfc3448 => SenderProfile::rfc3448(s),
        ParameterProfile::Linux => SenderProfile::linux(s),
    };
    sender.handshake_rtt = handshake_rtt;
    variant.apply(&mut sender, &mut receiver);
    for (name, value) in parameters {
        if !RFC_PARAMETERS.contains(&name.as_str()) {
            return Err(Refusal::Name(name.clone()));
        }
        let is_set = match value {
            Value::Number(value) if RECEIVER_PARAMETERS.contains(&name.as_str()) => {
                set_receiver(&mut receiver, name, *value)
            }
            Value::Number(value) => set(&mut sender, name, *value),
            Value::Word(word) => {
                sender.mixes_gamma = name == "gamma" && word == MIX;
                sender.mixes_gamma
            }
        };
        if !is_set {
            return Err(Refusal::Value(name.clone()));
        }
    }
    // The first loss interval is made with the sender's own equation (section 6.3.1).
    (receiver.equation, receiver.t_rto_factor) = (sender.equation, sender.t_rto_factor);
    Ok(EndParameters { rules: Rules::Rfc(sender), receiver })
}

fn ns2_rules(parameters: &[(String, Value)]) -> Result<Rules, Refusal> {
    let mut chosen = ns2::Parameters::default();
    for (name, value) in parameters {
        if !ns2::Parameters::names().any(|known| known == name) {
            return Err(Refusal::Name(name.clone()));
        }
        let Value::Number(value) = value else { return Err(Refusal::Value(name.clone())) };
        if !chosen.set(name, *value) {
            return Err(Refusal::Value(name.clone()));
        }
    }
    Ok(Rules::Ns2(chosen))
}

/// Set one of [`RECEIVER_PARAMETERS`]; false if the value is invalid.
fn set_receiver(receiver: &mut ReceiverProfile, name: &str, value: f64) -> bool {
    let averaging = &mut receiver.averaging;
    let in_force = averaging.discounting.unwrap_or(LINUX_WOULD_DISCOUNT_TO);
    match name {
        "n" => {
            averaging.n = value as usize;
            value.fract() == 0.0 && (1.0..=MAX_N as f64).contains(&value)
        }
        "discounting" => {
            averaging.discounting = (value == 1.0).then_some(in_force);
            value == 0.0 || value == 1.0
        }
        _ => {
            averaging.discounting = Some(value);
            (0.0..=1.0).contains(&value)
        }
    }
}

/// Set one of the other [`RFC_PARAMETERS`]; false if the value is invalid.
fn set(sender: &mut SenderProfile, name: &str, value: f64) -> bool {
    let (at, allowed) = match name {
        "b" => (&mut sender.equation.b, value >= 1.0),
        "gamma" => (&mut sender.equation.gamma, Equation::veno(value).is_some()),
        "t_rto_factor" => (&mut sender.t_rto_factor, value > 0.0),
        "q" => (&mut sender.q, (0.0..1.0).contains(&value)),
        "q2" => (&mut sender.q2, (0.0..1.0).contains(&value)),
        "t_mbi" => (&mut sender.t_mbi, value > 0.0),
        "mss" => (sender.mss.get_or_insert(value), value > 0.0),
        "initial_window" => (sender.initial_window.get_or_insert(value), value > 0.0),
        _ => return set_switch(sender, name, value),
    };
    *at = value;
    allowed && value.is_finite()
}

/// Set a parameter that is 0 or 1.
fn set_switch(sender: &mut SenderProfile, name: &str, value: f64) -> bool {
    let is_on = value == 1.0;
    if name == "initial_rate_follows_rtt" {
        sender.initial_rate = if is_on { InitialRate::Current } else { InitialRate::Fixed };
    } else {
        sender.reduces_oscillations = is_on;
    }
    is_on || value == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrc::loss_intervals::Averaging;

    fn number(name: &str, value: f64) -> (String, Value) {
        (name.to_owned(), Value::Number(value))
    }

    fn with(
        profile: ParameterProfile,
        variant: Variant,
        parameters: &[(String, Value)],
    ) -> Result<EndParameters, Refusal> {
        ends(profile, variant, 1000.0, None, parameters)
    }

    fn averaging(profile: ParameterProfile, parameters: &[(String, Value)]) -> Averaging {
        with(profile, Variant::Tfrc, parameters).unwrap().receiver.averaging
    }

    #[test]
    fn test_the_receiver_s_parameters_are_its_own() {
        assert_eq!(averaging(ParameterProfile::Rfc5348, &[number("n", 16.0)]).n, 16);
        assert_eq!(averaging(ParameterProfile::Rfc5348, &[number("discounting", 0.0)]).discounting, None);
        assert_eq!(
            averaging(ParameterProfile::Rfc3448, &[number("discounting", 1.0)]).discounting,
            Some(0.5)
        );
        assert_eq!(averaging(ParameterProfile::Linux, &[]).discounting, None);
        assert_eq!(averaging(ParameterProfile::Linux, &[number("discounting", 1.0)]).discounting, Some(0.5));
        assert_eq!(averaging(ParameterProfile::Rfc5348, &[number("threshold", 0.1)]).discounting, Some(0.1));
    }

    #[test]
    fn test_what_no_parameter_can_be_is_refused() {
        let refused = [
            ("n", 0.0),
            ("n", 2.5),
            ("n", 65.0),
            ("n", f64::NAN),
            ("discounting", 0.5),
            ("threshold", 1.5),
            ("threshold", f64::NAN),
            ("initial_window", 0.0),
            ("initial_window", f64::INFINITY),
        ];
        for (name, value) in refused {
            let found = with(ParameterProfile::Rfc5348, Variant::Tfrc, &[number(name, value)]);
            assert_eq!(found.unwrap_err(), Refusal::Value(name.to_owned()));
        }
        let mix = ("gamma".to_owned(), Value::Word("mix".to_owned()));
        assert!(with(ParameterProfile::Rfc5348, Variant::Veno, std::slice::from_ref(&mix)).is_ok());
        for word in [("gamma", "both"), ("q", "mix")] {
            let word = (word.0.to_owned(), Value::Word(word.1.to_owned()));
            assert!(with(ParameterProfile::Rfc5348, Variant::Veno, &[word]).is_err());
        }
        assert!(with(ParameterProfile::Ns2, Variant::Tfrc, &[mix]).is_err());
    }

    #[test]
    fn test_the_first_interval_is_made_with_the_sender_s_equation() {
        let found =
            with(ParameterProfile::Rfc5348, Variant::Veno, &[number("b", 2.0), number("t_rto_factor", 2.0)]);
        let receiver = found.unwrap().receiver;
        assert_eq!((receiver.equation.b, receiver.equation.gamma, receiver.t_rto_factor), (2.0, 0.8, 2.0));
    }

    #[test]
    fn test_receivers_of_small_packets_count_short_intervals() {
        for variant in Variant::ALL {
            let is_small = matches!(variant, Variant::SmallPackets | Variant::Ccid4);
            assert_eq!(
                with(ParameterProfile::Rfc5348, variant, &[]).unwrap().receiver.short_intervals,
                is_small
            );
        }
    }
}
