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
pub struct FindingFacts {
    pub name: &'static str,
    /// The end that it concerns: `sender`, `receiver`, or `path` if neither violated a rule.
    pub end: &'static str,
    /// RFC section of the rule.
    pub rule: &'static str,
    /// The unit of [`Finding::value`] and [`Finding::limit`].
    pub unit: &'static str,
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

    pub fn facts(self) -> FindingFacts {
        let (name, end, rule, unit) = match self {
            Self::LateFeedback => ("late_feedback", "receiver", "RFC 5348 section 6.2", "s"),
            Self::AboveAllowedRate => ("above_allowed_rate", "sender", "RFC 5348 section 4.3", "bit/s"),
            Self::HalvingMissed => ("halving_missed", "sender", "RFC 5348 section 4.4", "bit/s"),
            Self::NofeedbackTimeout => ("nofeedback_timeout", "path", "RFC 5348 section 4.4", "bit/s"),
            Self::BadOption => ("bad_option", "receiver", "RFC 4340 section 5.8", ""),
            Self::UnseenAcknowledged => ("unseen_acknowledged", "path", "RFC 4340 section 7", ""),
            Self::ImpossibleElapsedTime => {
                ("impossible_elapsed_time", "receiver", "RFC 4340 section 13.2", "")
            }
            Self::ZeroLossEventRate => ("zero_loss_event_rate", "receiver", "RFC 4342 section 8.5", ""),
            Self::SequenceJump => ("sequence_jump", "sender", "RFC 4340 section 7.5", ""),
            Self::CounterJump => {
                ("counter_jump", "sender", "RFC 4342 section 8.1", "quarters of a round-trip time")
            }
            Self::DataDropped => ("data_dropped", "receiver", "RFC 4340 section 11.7", ""),
            Self::ImpossibleValue => ("impossible_value", "path", "RFC 5348 section 3.2", ""),
        };
        FindingFacts { name, end, rule, unit }
    }

    /// Text after a count of them, in the notation of [`crate::plural`].
    fn words(self) -> &'static str {
        match self {
            Self::LateFeedback => "report[s] came much later than a round-trip time after the one before",
            Self::AboveAllowedRate => "time[s] more was sent than X allows",
            Self::HalvingMissed => "time[s] more was sent than X allows after a nofeedback timeout",
            Self::NofeedbackTimeout => "nofeedback timeout[s]",
            Self::BadOption => "report[s] with options of impossible lengths",
            Self::UnseenAcknowledged => "report[s] about packets that the capture does not show",
            Self::ImpossibleElapsedTime => "report[s] with an impossible elapsed time",
            Self::ZeroLossEventRate => "report[s] whose inverse loss event rate is 0",
            Self::SequenceJump => "sequence number[s] far from all others, which [was|were] left out",
            Self::CounterJump => "window counter[s] that advanced by more than 5",
            Self::DataDropped => "report[s] of data that the receiver's application did not get",
            Self::ImpossibleValue => "packet[s] with an impossible value, such as p above 1",
        }
    }
}

/// A finding without its packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    pub kind: FindingKind,
    /// Value found, in [`FindingFacts::unit`].
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
        all_counted(counts.map(|(kind, count)| (count, kind.words())))
    }
}

/// A finding and the packet that showed it.
#[derive(Clone, Copy, Debug)]
pub struct FindingSample {
    /// Data direction, time and packet.
    pub at: PacketRef,
    pub finding: Finding,
}
