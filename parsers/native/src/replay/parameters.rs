//! Parameters of the RFCs' senders by the names that users give them.

use crate::tfrc::equation::Equation;
use crate::tfrc::ns2;
use crate::tfrc::profile::{InitialRate, ReceiverProfile, SenderProfile};
use crate::tfrc::small_packets::{HEADER_CCID4, HEADER_TFRC_SP};

use super::machine::Rules;

/// Whose implementation a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// RFC 5348.
    Rfc5348,
    /// RFC 3448.
    Rfc3448,
    /// ns-2.35's agent.
    Ns2,
    /// Linux's CCID 3.
    Linux,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rfc5348, Self::Rfc3448, Self::Ns2, Self::Linux];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rfc5348 => "rfc5348",
            Self::Rfc3448 => "rfc3448",
            Self::Ns2 => "ns2",
            Self::Linux => "linux",
        }
    }

    /// Its receiver, which a trace without reports needs; ns-2's is a machine of its own.
    pub fn receiver(self) -> ReceiverProfile {
        match self {
            Self::Rfc5348 | Self::Ns2 => ReceiverProfile::rfc5348(),
            Self::Rfc3448 => ReceiverProfile::rfc3448(),
            Self::Linux => ReceiverProfile::linux(),
        }
    }

    /// The parameters that [`rules`] may be given for it.
    pub fn parameters(self) -> Vec<&'static str> {
        match self {
            Self::Ns2 => ns2::Parameters::NAMES.to_vec(),
            _ => RFC_PARAMETERS.to_vec(),
        }
    }
}

/// What the RFCs leave open, or recommend.
const RFC_PARAMETERS: [&str; 9] = [
    "b",
    "gamma",
    "t_rto_factor",
    "q",
    "q2",
    "t_mbi",
    "mss",
    "initial_rate_follows_rtt",
    "reduce_oscillations",
];

/// Kinds of TFRC that share the senders of its profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// TFRC itself.
    Tfrc,
    /// For small packets (RFC 4828).
    SmallPackets,
    /// The same in DCCP (RFC 5622).
    Ccid4,
    /// With the equation of TCP Veno.
    Veno,
}

/// What TFRC Veno's window keeps after a loss that is not congestion.
const VENO_GAMMA: f64 = 0.8;

impl Variant {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tfrc, Self::SmallPackets, Self::Ccid4, Self::Veno];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tfrc => "tfrc",
            Self::SmallPackets => "tfrc-sp",
            Self::Ccid4 => "ccid4",
            Self::Veno => "tfrc-veno",
        }
    }

    fn apply(self, sender: &mut SenderProfile) {
        match self {
            Self::Tfrc => {}
            Self::SmallPackets => sender.small_packets = Some(HEADER_TFRC_SP),
            Self::Ccid4 => sender.small_packets = Some(HEADER_CCID4),
            Self::Veno => sender.equation.gamma = VENO_GAMMA,
        }
    }
}

/// Why there are no such rules.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The profile has no such variant: ns-2's agent is what it is.
    Variant,
    /// It has no parameter of this name.
    Name(String),
    /// The parameter cannot have this value.
    Value(String),
}

/// The rules of a sender of packets of `s` bytes, which knows `handshake_rtt` if that is known.
pub fn rules(
    profile: Profile,
    variant: Variant,
    s: f64,
    handshake_rtt: Option<f64>,
    parameters: &[(String, f64)],
) -> Result<Rules, Refusal> {
    let mut sender = match profile {
        Profile::Ns2 if variant != Variant::Tfrc => return Err(Refusal::Variant),
        Profile::Ns2 => return ns2_rules(parameters),
        Profile::Rfc5348 => SenderProfile::rfc5348(s),
        Profile::Rfc3448 => SenderProfile::rfc3448(s),
        Profile::Linux => SenderProfile::linux(s),
    };
    sender.handshake_rtt = handshake_rtt;
    variant.apply(&mut sender);
    for (name, value) in parameters {
        if !RFC_PARAMETERS.contains(&name.as_str()) {
            return Err(Refusal::Name(name.clone()));
        }
        if !set(&mut sender, name, *value) {
            return Err(Refusal::Value(name.clone()));
        }
    }
    Ok(Rules::Rfc(sender))
}

fn ns2_rules(parameters: &[(String, f64)]) -> Result<Rules, Refusal> {
    let mut chosen = ns2::Parameters::default();
    for (name, value) in parameters {
        if !ns2::Parameters::NAMES.contains(&name.as_str()) {
            return Err(Refusal::Name(name.clone()));
        }
        if !chosen.set(name, *value) {
            return Err(Refusal::Value(name.clone()));
        }
    }
    Ok(Rules::Ns2(chosen))
}

/// Set one of [`RFC_PARAMETERS`]; whether it may have this value.
fn set(sender: &mut SenderProfile, name: &str, value: f64) -> bool {
    let (at, allowed) = match name {
        "b" => (&mut sender.equation.b, value >= 1.0),
        "gamma" => (&mut sender.equation.gamma, Equation::veno(value).is_some()),
        "t_rto_factor" => (&mut sender.t_rto_factor, value > 0.0),
        "q" => (&mut sender.q, (0.0..1.0).contains(&value)),
        "q2" => (&mut sender.q2, (0.0..1.0).contains(&value)),
        "t_mbi" => (&mut sender.t_mbi, value > 0.0),
        "mss" => (sender.mss.get_or_insert(value), value > 0.0),
        _ => return set_switch(sender, name, value),
    };
    *at = value;
    allowed && value.is_finite()
}

/// The same for those that are 0 or 1.
fn set_switch(sender: &mut SenderProfile, name: &str, value: f64) -> bool {
    let is_on = value == 1.0;
    if name == "initial_rate_follows_rtt" {
        sender.initial_rate = if is_on { InitialRate::Current } else { InitialRate::Fixed };
    } else {
        sender.reduces_oscillations = is_on;
    }
    is_on || value == 0.0
}
