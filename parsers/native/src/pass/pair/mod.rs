//! Two captures of one path: the meaning of each packet, seen at one or both, for its flow.
//!
//! A packet counts for its flow at the capture that it passes first; at the second it has arrived.
//! So the capture nearer to a sender acts as the source in a simulator's trace, and the other one
//! as the destination. Hosts without a packet in both captures are processed as in a single
//! capture.
//!
//! `two_readings.rs` reads the two captures, `pair_packets.rs` gives each packet its meaning; the
//! state is here.

mod pair_packets;
#[cfg(test)]
mod tests;
mod two_readings;

use super::BoundedSamples;
use crate::error::{Hint, ProblemKind, ReadError};
use crate::flow::Found;
use crate::flow::delivery::Delivery;
use crate::flow::numbered_datagrams::NumberingDetector;
use crate::packet::event::{Endpoints, Packet};
use crate::packet::extras::PayloadHead;
use crate::packet::key::Side;
use crate::pair::Tap;
use crate::pair::by_side::BySide;
use crate::pair::clock::{Clock, Estimate};
use crate::pair::first_reading::FirstReading;
use crate::pair::outside_loss::OutsideLoss;
use crate::pair::routes::{Evidence, Routes};
use crate::pair::unmatched::{PacketAtCapture, PathEnd, UnmatchedPackets};
use crate::plural::counted;

/// Packets with the same time in both captures that show that one is a copy.
const LEAST_COPIES: usize = 20;

/// Outcome of a packet between the captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairOutcome {
    /// Both captures have it.
    Arrived,
    /// It passed the first and not the second.
    Lost,
    /// Missing at the second capture, which was not running when it should have come.
    Unknown,
    /// The second missed it: its receiver acknowledged data that only the first has.
    Missed,
    /// It reached the second again.
    Duplicate,
    /// Only the second has it: the first missed it, or it was made in between.
    Unsent,
}

impl PairOutcome {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
            Self::Missed => "missed",
            Self::Duplicate => "duplicate",
            Self::Unsent => "unsent",
        }
    }
}

/// A packet between the captures.
#[derive(Clone, Copy, Debug)]
pub struct Transit {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent it.
    pub side: Side,
    pub fate: PairOutcome,
    /// Time and number at the capture that it passes first, if captured there.
    pub near: Option<(i64, u64)>,
    /// Time and number at the other, on the first capture's clock.
    pub far: Option<(i64, u64)>,
    pub payload_bytes: u32,
}

/// State of the two captures, and of the packets between them.
pub struct CapturePair {
    routes: Routes,
    surveys: [FirstReading; 2],
    /// The clock correction used for times.
    pub clock: Clock,
    /// Clock estimate from the packets; None without any.
    pub estimate: Option<Estimate>,
    /// Whether the user gave the offset.
    pub is_given: bool,
    /// Packets in both captures.
    pub met: u64,
    waiting: UnmatchedPackets,
    outside: OutsideLoss,
    /// First and last time of each, on the first one's clock.
    spans_ns: [(i64, i64); 2],
    /// The longest delay of any packet.
    longest_ns: i64,
    /// Numbers of datagrams at the capture that they pass first.
    numbering: BySide<NumberingDetector>,
    /// When the first and the last packet of each flow and direction that arrived were sent.
    arrived_ns: BySide<(i64, i64)>,
    /// Packets that each capture missed while it was running.
    missed: [u64; 2],
    /// Whether all packets have the same time in both.
    are_copies: bool,
    /// Every packet, if wanted.
    pub transits: BoundedSamples<Transit>,
}

impl CapturePair {
    fn new(
        mut surveys: [FirstReading; 2],
        given_offset_ns: Option<i64>,
        transits: BoundedSamples<Transit>,
    ) -> Self {
        let [first, second] = &surveys;
        let common = first.sample.common(&second.sample);
        let routes = Routes::learn(&common);
        let estimate = Estimate::from_packets(&common, &routes);
        let is_at_once = common.iter().all(|(first, second)| first.time_ns == second.time_ns);
        let are_copies = is_at_once && common.len() >= LEAST_COPIES;
        let given = given_offset_ns.map(|offset_ns| Clock { offset_ns, ..Clock::default() });
        let clock = given.or(estimate.map(|estimate| estimate.clock)).unwrap_or_default();
        let span = |survey: &FirstReading| survey.span_ns.unwrap_or_default();
        let (start_ns, end_ns) = span(second);
        let spans_ns = [span(first), (clock.to_first(start_ns), clock.to_first(end_ns))];
        surveys.iter_mut().for_each(FirstReading::forget_sample);
        Self {
            routes,
            surveys,
            clock,
            estimate,
            is_given: given.is_some(),
            met: 0,
            waiting: UnmatchedPackets::default(),
            outside: OutsideLoss::default(),
            spans_ns,
            longest_ns: 0,
            numbering: BySide::default(),
            arrived_ns: BySide::default(),
            missed: [0; 2],
            are_copies,
            transits,
        }
    }

    /// Whether a datagram ends a test of iperf 2: it is no data, and sent again until it is answered.
    fn is_end_of_test(&mut self, found: Found, end: PathEnd, packet: &Packet, head: PayloadHead) -> bool {
        let numbering = self.numbering.get_or_insert_with(found.flow, found.side, NumberingDetector::default);
        if end == PathEnd::Near {
            numbering.take(packet, head, None, &mut |_| ());
        }
        numbering.is_end(&head)
    }

    /// Whether delays are known, and not only how they change.
    pub fn has_delays(&self) -> bool {
        self.is_given || self.estimate.is_some_and(|estimate| estimate.has_delays())
    }

    /// The capture that packets between `endpoints` pass first, and how that is known.
    pub fn first_tap(&self, endpoints: &Endpoints) -> Option<(Tap, Evidence)> {
        self.routes.first_tap(endpoints)
    }

    /// Possible error of every delay, because the split of the shortest round-trip time between the
    /// directions is unknown. None if the user gave the offset, or nothing is known.
    pub fn uncertainty_ms(&self) -> Option<f64> {
        let (low_ns, high_ns) = self.estimate.filter(|_| !self.is_given)?.offset_bounds_ns;
        Some(high_ns?.saturating_sub(low_ns?) as f64 / 2e6)
    }

    /// Count a packet that `tap` missed.
    fn note_missed(&mut self, tap: Tap, delivery: &mut Delivery) {
        self.missed[tap as usize] += 1;
        *delivery.missed.get_or_insert_default() += 1;
    }

    /// Whether the other capture was running for certain when a packet passed it that came at `time_ns`.
    fn was_running(&self, tap: Tap, time_ns: i64) -> bool {
        let (start_ns, end_ns) = self.spans_ns[tap as usize];
        time_ns >= start_ns.saturating_add(self.longest_ns) && time_ns <= end_ns
    }

    /// Packets that a capture itself lost, so that others of the path's losses may be its own.
    fn losses_of(&self, tap: Tap) -> Option<ReadError> {
        let missed = Some(self.missed[tap as usize]).filter(|&missed| missed > 0)?;
        let all = self.met + self.missed.iter().sum::<u64>();
        let share = 100.0 * missed as f64 / all as f64;
        let message = format!(
            "misses {} of {all} that passed both places ({share:.2} %): the other capture or an acknowledgement has \
             them, so other losses may be the capture's, too",
            counted(missed, "packet[s]")
        );
        Some(ReadError::whole(ProblemKind::Imprecise, message).hint(Hint::CaptureLoss))
    }

    /// Problem of the clocks, if any.
    fn caveat(&self) -> Option<ReadError> {
        if self.are_copies {
            let message = "every packet has the same time in the other capture: one is a copy of the other";
            return Some(ReadError::whole(ProblemKind::Imprecise, message).hint(Hint::PairOfCopies));
        }
        let estimate = self.estimate?;
        let (low_ns, high_ns) = estimate.offset_bounds_ns;
        let bound =
            |bound_ns: Option<i64>| bound_ns.map_or("any".into(), |ns| format!("{:.3} ms", ns as f64 / 1e6));
        let is_impossible = low_ns.is_some_and(|low_ns| self.clock.offset_ns < low_ns)
            || high_ns.is_some_and(|high_ns| self.clock.offset_ns > high_ns);
        let (message, hint) = if self.is_given && is_impossible {
            let (low, high) = (bound(low_ns), bound(high_ns));
            let message = format!(
                "with a clock ahead by {} some packets arrive before they are sent; possible is {low} to {high}",
                bound(Some(self.clock.offset_ns))
            );
            (message, Hint::ImpossibleOffset)
        } else if !self.is_given && estimate.drift_bounds.is_none() {
            let message =
                "its clock drifted unevenly against the other one: it was set or adjusted during the capture";
            (message.to_owned(), Hint::ClockStep)
        } else {
            return None;
        };
        Some(ReadError::whole(ProblemKind::Imprecise, message).hint(hint))
    }

    /// Whether the capture at the far end was running when a packet should have come there: a
    /// packet sent before it has arrived, and one sent after it.
    fn was_expected(&self, near: &PacketAtCapture, delivery: &Delivery) -> bool {
        let (start_ns, end_ns) = self.spans_ns[near.tap.other() as usize];
        let arrived_ns = self.arrived_ns.get(near.flow, near.side);
        let (earliest_ns, latest_ns) = arrived_ns.copied().unwrap_or((i64::MAX, i64::MIN));
        let longest = delivery.delay.range.max_ns().and_then(|longest| i64::try_from(longest).ok());
        let longest_ns = longest.unwrap_or(self.longest_ns);
        let has_begun = near.time_ns >= start_ns.min(earliest_ns);
        has_begun && near.time_ns <= end_ns.saturating_sub(longest_ns).max(latest_ns)
    }

    /// Collect the outcome of a packet, if requested.
    fn keep(&mut self, fate: PairOutcome, near: Option<PacketAtCapture>, far: Option<PacketAtCapture>) {
        let Some(either) = near.or(far).filter(|_| self.transits.wanted) else { return };
        let place = |passing: PacketAtCapture| (passing.time_ns, passing.packet);
        self.transits.add(Transit {
            flow: either.flow,
            side: either.side,
            fate,
            near: near.map(place),
            far: far.map(place),
            payload_bytes: either.payload_bytes,
        });
    }
}
