//! Protocol violations and other events in the packets of a TFRC flow.

use serde::{Deserialize, Serialize};

use super::PacketRef;
use crate::plural::all_counted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum FindingKind {
    /// A report later than the receiver may wait.
    LateFeedback,
    /// Sent more than X allows.
    AboveAllowedRate,
    /// The same after the nofeedback timer had reduced X.
    HalvingMissed,
    /// The nofeedback timer expired.
    NofeedbackTimeout,
    /// An option was cut short, or has an impossible length.
    BadOption,
    /// A report acknowledges a packet that the capture does not show.
    UnseenAcknowledged,
    /// A report was held longer than the time since its packet.
    ImpossibleElapsedTime,
    /// A loss event rate of infinity.
    ZeroLossEventRate,
    /// A number far from all others.
    SequenceJump,
    /// The window counter advanced by more than five quarters of a round-trip time.
    CounterJump,
    /// The receiver's application did not get data that had arrived.
    DataDropped,
    /// A field has an impossible value.
    ImpossibleValue,
}

/// Description of a kind.
struct FindingFacts {
    name: &'static str,
    end: &'static str,
    rule: &'static str,
    unit: &'static str,
    /// Text after a count of them, in the notation of [`crate::plural`].
    words: &'static str,
}

impl FindingKind {
    /// All of them, by number.
    pub const ALL: [Self; 12] = [
        Self::LateFeedback,
        Self::AboveAllowedRate,
        Self::HalvingMissed,
        Self::NofeedbackTimeout,
        Self::BadOption,
        Self::UnseenAcknowledged,
        Self::ImpossibleElapsedTime,
        Self::ZeroLossEventRate,
        Self::SequenceJump,
        Self::CounterJump,
        Self::DataDropped,
        Self::ImpossibleValue,
    ];

    fn facts(self) -> FindingFacts {
        let facts = |name, end, rule, unit, words| FindingFacts { name, end, rule, unit, words };
        match self {
            Self::LateFeedback => facts(
                "late_feedback",
                "receiver",
                "RFC 5348 section 6.2",
                "s",
                "report[s] came much later than a round-trip time after the one before",
            ),
            Self::AboveAllowedRate => facts(
                "above_allowed_rate",
                "sender",
                "RFC 5348 section 4.3",
                "bit/s",
                "time[s] more was sent than X allows",
            ),
            Self::HalvingMissed => facts(
                "halving_missed",
                "sender",
                "RFC 5348 section 4.4",
                "bit/s",
                "time[s] more was sent than X allows after a nofeedback timeout",
            ),
            Self::NofeedbackTimeout => {
                facts("nofeedback_timeout", "path", "RFC 5348 section 4.4", "bit/s", "nofeedback timeout[s]")
            }
            Self::BadOption => facts(
                "bad_option",
                "receiver",
                "RFC 4340 section 5.8",
                "",
                "report[s] with options of impossible lengths",
            ),
            Self::UnseenAcknowledged => facts(
                "unseen_acknowledged",
                "path",
                "RFC 4340 section 7",
                "",
                "report[s] about packets that the capture does not show",
            ),
            Self::ImpossibleElapsedTime => facts(
                "impossible_elapsed_time",
                "receiver",
                "RFC 4340 section 13.2",
                "",
                "report[s] with an impossible elapsed time",
            ),
            Self::ZeroLossEventRate => facts(
                "zero_loss_event_rate",
                "receiver",
                "RFC 4342 section 8.5",
                "",
                "report[s] whose inverse loss event rate is 0",
            ),
            Self::SequenceJump => facts(
                "sequence_jump",
                "sender",
                "RFC 4340 section 7.5",
                "",
                "sequence number[s] far from all others, which [was|were] left out",
            ),
            Self::CounterJump => facts(
                "counter_jump",
                "sender",
                "RFC 4342 section 8.1",
                "quarters of a round-trip time",
                "window counter[s] that advanced by more than 5",
            ),
            Self::DataDropped => facts(
                "data_dropped",
                "receiver",
                "RFC 4340 section 11.7",
                "",
                "report[s] of data that the receiver's application did not get",
            ),
            Self::ImpossibleValue => facts(
                "impossible_value",
                "path",
                "RFC 5348 section 3.2",
                "",
                "packet[s] with an impossible value, such as p above 1",
            ),
        }
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The end that it concerns: `sender`, `receiver`, or `path` if neither violated a rule.
    pub fn end(self) -> &'static str {
        self.facts().end
    }

    /// RFC section of the rule.
    pub fn rule(self) -> &'static str {
        self.facts().rule
    }

    /// The unit of [`Finding::value`] and [`Finding::limit`].
    pub fn unit(self) -> &'static str {
        self.facts().unit
    }
}

/// A finding without its packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    pub kind: FindingKind,
    /// Value found, in [`FindingKind::unit`].
    pub value: Option<f64>,
    pub limit: Option<f64>,
}

impl Finding {
    pub fn of(kind: FindingKind) -> Self {
        Self { kind, value: None, limit: None }
    }

    /// A value with its limit.
    pub fn measured(kind: FindingKind, value: f64, limit: f64) -> Self {
        Self { kind, value: Some(value), limit: Some(limit) }
    }
}

/// Number of findings of each kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct FindingCounts([u32; FindingKind::ALL.len()]);

impl FindingCounts {
    pub fn count(&mut self, kind: FindingKind) {
        if let Some(count) = self.0.get_mut(kind as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// All counts as text.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let counts = FindingKind::ALL.into_iter().zip(self.0);
        all_counted(counts.map(|(kind, count)| (count, kind.facts().words)))
    }
}

/// A finding and the packet that showed it.
#[derive(Clone, Copy, Debug)]
pub struct FindingSample {
    /// Data direction, time and packet.
    pub at: PacketRef,
    pub finding: Finding,
}
