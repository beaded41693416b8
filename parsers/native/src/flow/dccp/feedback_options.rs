//! The options of one packet that matter to TFRC. Sections are of RFC 4342 unless another is named.

use crate::flow::tfrc::ReportedInterval;
use crate::flow::tfrc::from_capture::packet_outcomes::{
    NamedBy, OutcomeRun, PacketOutcome, ReportedOutcomes,
};
use crate::tfrc::loss_intervals::{Averaging, LossHistory};
use crate::wire::dccp::options::{DccpOption, LossInterval, options};

/// Limit of loss intervals kept of a report: an option holds no more.
const INTERVALS: usize = 28;
/// The option Data Dropped (RFC 4340 section 11.7).
const DATA_DROPPED: u8 = 40;

#[derive(Default)]
pub(super) struct FeedbackOptions {
    pub timestamp: Option<u32>,
    pub echo: Option<(u32, Option<u32>)>,
    pub elapsed: Option<u32>,
    pub estimate: Option<u32>,
    pub loss_event_rate: Option<u32>,
    pub receive_rate: Option<u32>,
    pub intervals: Vec<ReportedInterval>,
    /// Outcomes of single packets.
    pub outcomes: Option<ReportedOutcomes>,
    pub bad: u32,
    pub drops_data: bool,
    /// Packets without data immediately before it.
    pub ndp: u64,
    /// Packets at the end that no interval covers, and the intervals' packets.
    skip: u8,
    parts: Vec<LossInterval>,
}

impl FeedbackOptions {
    /// Decode the options after a header. A packet is lost when `ndupack` later ones have arrived.
    pub fn read(after: &[u8], ndupack: u32) -> Self {
        let mut feedback = Self::default();
        let mut vector = Vec::new();
        for option in options(after) {
            match option {
                DccpOption::Timestamp(timestamp) => feedback.timestamp = Some(timestamp),
                DccpOption::TimestampEcho(timestamp, elapsed) => feedback.echo = Some((timestamp, elapsed)),
                DccpOption::NdpCount(count) => feedback.ndp = count,
                DccpOption::ElapsedTime(elapsed) => feedback.elapsed = Some(elapsed),
                DccpOption::RttEstimate(us) => feedback.estimate = Some(us),
                DccpOption::LossEventRate(inverse) => feedback.loss_event_rate = Some(inverse),
                DccpOption::ReceiveRate(rate) => feedback.receive_rate = Some(rate),
                DccpOption::LossIntervals(list) => {
                    feedback.skip = list.skip;
                    feedback.parts = list.iter().take(INTERVALS).collect();
                    let packets = feedback.parts.iter().map(|part| f64::from(part.lossless + part.loss));
                    feedback.intervals =
                        packets.map(|packets| ReportedInterval { packets, lost: None }).collect();
                }
                DccpOption::DroppedPackets(dropped) => feedback.take_dropped(dropped),
                // One vector may need several options (RFC 4340 section 11.4.1).
                DccpOption::AckVector { runs, .. } => vector.extend(runs),
                DccpOption::Malformed(_) => feedback.bad = feedback.bad.saturating_add(1),
                DccpOption::Other(DATA_DROPPED) => feedback.drops_data = true,
                _ => {}
            }
        }
        feedback.outcomes = feedback.by_vector(&vector, ndupack).or_else(|| feedback.by_intervals());
        feedback
    }

    /// Packets lost or marked in each interval (RFC 5622 section 8.7); the option follows that with
    /// the intervals.
    fn take_dropped(&mut self, dropped: &[u8]) {
        for (interval, bytes) in self.intervals.iter_mut().zip(dropped.chunks_exact(3)) {
            interval.lost =
                bytes.iter().try_fold(0_u32, |sum, byte| sum.checked_mul(256)?.checked_add((*byte).into()));
        }
    }

    /// Outcomes in an Ack Vector: two bits of state, six of the run length less one.
    fn by_vector(&mut self, vector: &[u8], ndupack: u32) -> Option<ReportedOutcomes> {
        let run = |byte: &u8| {
            let outcome = match byte >> 6 {
                0 => PacketOutcome::Came,
                1 => PacketOutcome::Marked,
                3 => PacketOutcome::Lost,
                // Reserved.
                _ => return None,
            };
            Some(OutcomeRun { packets: u32::from(byte & 0x3f) + 1, outcome })
        };
        let runs: Option<Vec<OutcomeRun>> = vector.iter().map(run).collect();
        self.bad = self.bad.saturating_add(u32::from(runs.is_none()));
        let runs = runs.filter(|runs| !runs.is_empty())?;
        Some(ReportedOutcomes::of_arrivals(NamedBy::AckVector, runs.into_iter(), ndupack))
    }

    /// Outcomes in Loss Intervals: after the skipped packets, from the highest number down, each
    /// has the packets that arrived, then those of a loss event (section 8.6.1).
    fn by_intervals(&self) -> Option<ReportedOutcomes> {
        let parts = self.parts.iter().zip(&self.intervals).flat_map(|(part, interval)| {
            let lost = PacketOutcome::LostAmong(interval.lost.unwrap_or(1));
            [
                OutcomeRun { packets: part.lossless, outcome: PacketOutcome::Came },
                OutcomeRun { packets: part.loss, outcome: lost },
            ]
        });
        let skipped = OutcomeRun { packets: self.skip.into(), outcome: PacketOutcome::Open };
        let runs = std::iter::once(skipped).chain(parts).collect();
        (!self.parts.is_empty()).then_some(ReportedOutcomes { by: NamedBy::LossIntervals, runs })
    }

    /// Whether it is a report of CCID 3 or 4.
    pub fn is_report(&self) -> bool {
        self.loss_event_rate.is_some() || self.receive_rate.is_some() || !self.intervals.is_empty()
    }

    /// Loss event rate: the option's, else that of the intervals by their data packets (section
    /// 8.5).
    pub fn p(&self) -> Option<f64> {
        match self.loss_event_rate {
            Some(u32::MAX) => Some(0.0),
            Some(0) => None,
            Some(inverse) => Some(1.0 / f64::from(inverse)),
            None => {
                let lengths: Vec<f64> = self.parts.iter().map(|part| f64::from(part.data)).collect();
                let (open, closed) = lengths.split_first()?;
                let averaging = Averaging { discounting: None, ..Averaging::default() };
                let mut history = LossHistory::new(averaging);
                closed.iter().rev().for_each(|length| history.close(*length));
                Some(history.mean(*open, true).map_or(0.0, |mean| mean.p))
            }
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
    fn test_an_ack_vector_in_two_options_names_each_packet() {
        // RFC 4340 section 11.4: 11 received, 1 not, 2 marked, 1 not, 1 received.
        let feedback = FeedbackOptions::read(&[38, 4, 0x0a, 0xc0, 39, 5, 0x41, 0xc0, 0x00], 3);
        let outcomes = feedback.outcomes.unwrap();
        assert_eq!(outcomes.by, NamedBy::AckVector);
        let expected = [
            (11, PacketOutcome::Came),
            (1, PacketOutcome::Lost),
            (2, PacketOutcome::Marked),
            (1, PacketOutcome::Lost),
            (1, PacketOutcome::Came),
        ];
        assert_eq!(outcomes.runs, expected.map(|(packets, outcome)| run(packets, outcome)));
        let bad = FeedbackOptions::read(&[38, 3, 0x80], 3);
        assert_eq!((bad.bad, bad.outcomes), (1, None));
    }

    #[test]
    fn test_loss_intervals_name_what_came_and_where_losses_begin() {
        let mut bytes = vec![193, 3 + 18, 2];
        bytes.extend([0, 0, 9, 0x80, 0, 4, 0, 0, 12, 0, 0, 20, 0, 0, 1, 0, 0, 21]);
        bytes.extend([195, 5, 0, 0, 3]);
        let outcomes = FeedbackOptions::read(&bytes, 3).outcomes.unwrap();
        let expected = [
            (2, PacketOutcome::Open),
            (9, PacketOutcome::Came),
            (4, PacketOutcome::LostAmong(3)),
            (20, PacketOutcome::Came),
            (1, PacketOutcome::LostAmong(1)),
        ];
        assert_eq!(
            (outcomes.by, outcomes.runs),
            (NamedBy::LossIntervals, expected.map(|(n, outcome)| run(n, outcome)).into())
        );
    }

    #[test]
    fn test_a_rate_of_intervals_counts_data_packets() {
        // Two intervals of 100 numbers, of which 50 each are data.
        let interval = [0, 0, 99, 0, 0, 1, 0, 0, 50];
        let bytes = [&[193, 3 + 18, 0][..], &interval, &interval].concat();
        assert_eq!(FeedbackOptions::read(&bytes, 3).p(), Some(0.02));
    }

    proptest! {
        #[test]
        fn test_no_options_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), ndupack in 0_u32..5) {
            let feedback = FeedbackOptions::read(&bytes, ndupack);
            prop_assert!(feedback.p().is_none_or(|p| (0.0..=1.0).contains(&p)));
        }
    }
}
