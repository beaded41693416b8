//! Rounds of data in flight: those that a capture shows, or, away from their senders, those that these saw.

use std::collections::HashMap;

use crate::flow::Found;
use crate::flow::tcp::causes::{ExplainedDirection, Ledgers, SenderRound};
use crate::flow::tcp::{Outcome, Round};
use crate::packet::captured::Captured;
use crate::packet::key::Side;
use crate::pass::Analysis;
use crate::pass::collectors::PacketSample;

/// One round of data in flight.
#[derive(Clone, Copy, Debug)]
pub struct RoundSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent the data.
    pub side: Side,
    /// Number of the acknowledgement that ended it.
    pub packet: u64,
    pub round: Round,
    /// By how much its flight may be wrong if it is an estimate of what its sender saw.
    pub flight_error: Option<u32>,
}

impl PacketSample for RoundSample {
    const NAME: &'static str = "rounds";
    const IS_OF_ANSWER: bool = true;
    const IS_OF_ALL_FLOWS: bool = false;

    #[inline(always)]
    fn on_outcome(found: Found, packet: &Captured, outcome: &Outcome, mut add: impl FnMut(Self)) {
        if let Some(round) = outcome.round {
            let (flow, side) = (found.flow, found.side.other());
            add(Self { flow, side, packet: packet.number, round, flight_error: None });
        }
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

/// Put what senders saw in the place of the rounds that captures away from them show, in order of their ends.
pub(super) fn put_rounds_of_senders(
    analysis: &mut Analysis,
    ledgers: &mut Ledgers,
    explained: &[ExplainedDirection],
) {
    let estimated = explained.iter().filter(|of| of.is_estimated && of.is_shown());
    // Rounds and causes may have been asked for of different flows.
    let mut are_sampled: HashMap<_, _> = estimated.map(|of| ((of.flow, of.side), false)).collect();
    if are_sampled.is_empty() {
        return;
    }
    let Some(samples) = analysis.results.samples.of_mut::<RoundSample>() else { return };
    samples.kept.retain(|sample| match are_sampled.get_mut(&sample.place()) {
        Some(is_sampled) => {
            *is_sampled = true;
            false
        }
        None => true,
    });
    for ((flow, side), _) in are_sampled.into_iter().filter(|&(_, is_sampled)| is_sampled) {
        let rounds = ledgers.take_rounds(flow, side).into_iter();
        samples.kept.extend(rounds.map(|SenderRound { packet, round, flight_error }| RoundSample {
            flow,
            side,
            packet,
            round,
            flight_error: Some(flight_error),
        }));
    }
    // By time, as packets are numbered in each source from the start.
    samples.kept.sort_unstable_by_key(|sample| {
        let end_ns = sample.round.start_ns.saturating_add(sample.round.duration_ns);
        (end_ns, sample.flow, sample.side as usize, sample.packet)
    });
}
