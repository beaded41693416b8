//! Outcomes of single packets that a report names.

use serde::{Deserialize, Serialize};

/// Outcome of packets in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PacketOutcome {
    Came,
    Marked,
    /// They did not arrive.
    Lost,
    /// The first was lost or marked, and of the others so many that these are as many together. A
    /// report with a count does not say which: the lowest are taken.
    LostAmong(u32),
    /// Undecided: they may still arrive.
    Open,
}

/// Packets in a row with the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeRun {
    pub packets: u32,
    pub outcome: PacketOutcome,
}

named_enum! {
    /// How a report names packets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum NamedBy {
        /// Ack Vector (RFC 4340 section 11.4).
        AckVector = "ack_vector",
        /// Loss Intervals (RFC 4342 section 8.6).
        LossIntervals = "loss_intervals",
        /// Congestion control feedback (RFC 8888).
        Congestion = "rfc8888",
        /// Transport-wide congestion control feedback.
        TransportWide = "twcc",
    }
}

/// The packets that a report names.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedOutcomes {
    pub by: NamedBy,
    /// From the highest packet received downwards.
    pub runs: Vec<OutcomeRun>,
}

impl ReportedOutcomes {
    /// Outcomes from a list of arrivals, whose `runs` are only arrived, marked and lost. Packets
    /// with fewer than `ndupack` later ones are open (RFC 5348 section 5.1), and so are all above.
    pub fn of_arrivals(by: NamedBy, runs: impl Iterator<Item = OutcomeRun>, ndupack: u32) -> Self {
        let mut runs: Vec<OutcomeRun> = runs.collect();
        let (mut later, mut open) = (0_u32, 0);
        for (at, run) in runs.iter().enumerate() {
            if later >= ndupack {
                break;
            }
            match run.outcome {
                PacketOutcome::Came | PacketOutcome::Marked => later = later.saturating_add(run.packets),
                _ => open = at + 1,
            }
        }
        for run in runs.iter_mut().take(open) {
            run.outcome = PacketOutcome::Open;
        }
        Self { by, runs }
    }

    /// The packets by number, where `highest` is the highest received.
    pub fn numbered(&self, highest: i64) -> NumberedOutcomes {
        let mut last = highest;
        let mut ranges = Vec::with_capacity(self.runs.len());
        let (mut below_open, mut settled) = (highest, None);
        for run in self.runs.iter().filter(|run| run.packets > 0) {
            let first = last.saturating_sub(i64::from(run.packets)).saturating_add(1);
            match (self.by, run.outcome) {
                (_, PacketOutcome::Open) => below_open = first.saturating_sub(1),
                (NamedBy::AckVector | NamedBy::Congestion | NamedBy::TransportWide, _) => {
                    settled = settled.or(Some(last))
                }
                // The packet after a declared loss arrived, otherwise it would be declared with it.
                // Later ones are not declared lost only because no interval can hold open packets.
                (NamedBy::LossIntervals, PacketOutcome::LostAmong(_)) => {
                    settled = settled.or(Some(last.saturating_add(1)))
                }
                (NamedBy::LossIntervals, _) => {}
            }
            ranges.push((first, run.outcome));
            last = first.saturating_sub(1);
        }
        ranges.reverse();
        NumberedOutcomes { ranges, settled: settled.unwrap_or(i64::MIN), below_open }
    }
}

/// First number and outcome of each run, ascending; the last one ends with the highest number.
#[derive(Debug, Serialize, Deserialize)]
pub struct NumberedOutcomes {
    ranges: Vec<(i64, PacketOutcome)>,
    /// Outcomes up to here are final.
    pub settled: i64,
    /// Up to here nothing is open, but may still be declared lost.
    pub below_open: i64,
}

impl NumberedOutcomes {
    /// Outcome of one packet; one below all named ones was reported before.
    pub fn of(&self, number: i64) -> PacketOutcome {
        let downstream = self.ranges.partition_point(|(first, _)| *first <= number);
        let Some((first, outcome)) = downstream.checked_sub(1).and_then(|at| self.ranges.get(at)) else {
            return PacketOutcome::Came;
        };
        match *outcome {
            PacketOutcome::LostAmong(lost) if number.saturating_sub(*first) < i64::from(lost.max(1)) => {
                PacketOutcome::Lost
            }
            PacketOutcome::LostAmong(_) => PacketOutcome::Came,
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(packets: u32, outcome: PacketOutcome) -> OutcomeRun {
        OutcomeRun { packets, outcome }
    }

    #[test]
    fn test_what_may_come_yet_is_open_and_so_is_all_above_it() {
        // 90 to 100: 100 arrived, 99 did not, 97 and 98 arrived, 96 did not, the rest arrived.
        let runs = [
            (1, PacketOutcome::Came),
            (1, PacketOutcome::Lost),
            (2, PacketOutcome::Marked),
            (1, PacketOutcome::Lost),
            (6, PacketOutcome::Came),
        ];
        let runs = runs.map(|(packets, outcome)| run(packets, outcome));
        let outcomes = ReportedOutcomes::of_arrivals(NamedBy::AckVector, runs.into_iter(), 3).numbered(100);
        let found: Vec<_> = (95..=100).map(|number| outcomes.of(number)).collect();
        let expected = [
            PacketOutcome::Came,
            PacketOutcome::Lost,
            PacketOutcome::Marked,
            PacketOutcome::Marked,
            PacketOutcome::Open,
            PacketOutcome::Open,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn test_of_a_part_with_losses_the_lowest_are_lost() {
        let runs = vec![
            run(2, PacketOutcome::Open),
            run(5, PacketOutcome::Came),
            run(4, PacketOutcome::LostAmong(2)),
            run(0, PacketOutcome::Lost),
        ];
        let outcomes = ReportedOutcomes { by: NamedBy::LossIntervals, runs }.numbered(20);
        let lost: Vec<_> = (0..=18).filter(|number| outcomes.of(*number) == PacketOutcome::Lost).collect();
        assert_eq!(lost, [10, 11]);
        assert_eq!((outcomes.of(19), outcomes.of(9)), (PacketOutcome::Open, PacketOutcome::Came));
    }

    proptest! {
        #[test]
        fn test_any_runs_and_numbers_are_taken(
            runs in proptest::collection::vec((any::<u32>(), 0_u8..5, any::<u32>()), 0..40),
            highest in any::<i64>(), numbers in proptest::collection::vec(any::<i64>(), 0..40), ndupack in 0_u32..5,
        ) {
            let outcome = |kind, lost| match kind {
                0 => PacketOutcome::Came,
                1 => PacketOutcome::Marked,
                2 => PacketOutcome::Lost,
                3 => PacketOutcome::LostAmong(lost),
                _ => PacketOutcome::Open,
            };
            let runs = runs.into_iter().map(|(packets, kind, lost)| run(packets, outcome(kind, lost)));
            let outcomes = ReportedOutcomes::of_arrivals(NamedBy::AckVector, runs, ndupack).numbered(highest);
            for number in numbers {
                prop_assert!(!matches!(outcomes.of(number), PacketOutcome::LostAmong(_)));
            }
        }
    }
}
