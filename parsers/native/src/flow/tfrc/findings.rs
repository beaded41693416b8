//! What is wrong with the packets of a TFRC flow, or with what its ends do.

use super::Place;

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// A report came later than the receiver may wait.
    LateFeedback,
    /// More was sent than X allows.
    AboveAllowedRate,
    /// The same after the nofeedback timer had reduced X.
    HalvingMissed,
    /// The nofeedback timer ran out.
    NofeedbackTimeout,
}

/// What is said of a kind.
struct Facts {
    name: &'static str,
    end: &'static str,
    rule: &'static str,
    unit: &'static str,
    /// Behind a count of them.
    words: &'static str,
}

impl Kind {
    /// All of them, by number.
    pub const ALL: [Self; 4] =
        [Self::LateFeedback, Self::AboveAllowedRate, Self::HalvingMissed, Self::NofeedbackTimeout];

    fn facts(self) -> Facts {
        let facts = |name, end, rule, unit, words| Facts { name, end, rule, unit, words };
        match self {
            Self::LateFeedback => facts(
                "late_feedback",
                "receiver",
                "RFC 5348 section 6.2",
                "s",
                "reports came much later than a round-trip time after the one before",
            ),
            Self::AboveAllowedRate => facts(
                "above_allowed_rate",
                "sender",
                "RFC 5348 section 4.3",
                "bit/s",
                "times more was sent than X allows",
            ),
            Self::HalvingMissed => facts(
                "halving_missed",
                "sender",
                "RFC 5348 section 4.4",
                "bit/s",
                "times more was sent than X allows after a nofeedback timeout",
            ),
            Self::NofeedbackTimeout => {
                facts("nofeedback_timeout", "path", "RFC 5348 section 4.4", "bit/s", "nofeedback timeouts")
            }
        }
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Which end of the data it is about: `sender`, `receiver`, or `path` if neither did wrong.
    pub fn end(self) -> &'static str {
        self.facts().end
    }

    /// Where the rule stands.
    pub fn rule(self) -> &'static str {
        self.facts().rule
    }

    /// The unit of [`Finding::value`] and [`Finding::limit`].
    pub fn unit(self) -> &'static str {
        self.facts().unit
    }
}

/// A finding without its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// What was found, in [`Kind::unit`].
    pub value: Option<f64>,
    /// What would have been right.
    pub limit: Option<f64>,
}

impl Finding {
    /// A value against its limit.
    pub fn measured(kind: Kind, value: f64, limit: f64) -> Self {
        Self { kind, value: Some(value), limit: Some(limit) }
    }
}

/// How many of each kind there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts([u32; Kind::ALL.len()]);

impl Counts {
    /// One more.
    pub fn count(&mut self, kind: Kind) {
        if let Some(count) = self.0.get_mut(kind as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// All of them in words.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let counted = Kind::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0);
        counted.map(|(kind, count)| format!("{count} {}", kind.facts().words))
    }
}

/// A finding and the packet that showed it.
#[derive(Clone, Copy, Debug)]
pub struct FindingSample {
    /// Of which data, when, and which packet.
    pub at: Place,
    /// What.
    pub finding: Finding,
}
