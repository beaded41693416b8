//! Captures of one path or network: the meaning of each packet, seen at one or more, for its flow.
//!
//! A packet counts for its flow at the capture that it passes first; at the last it has arrived.
//! So the capture nearer to a sender acts as the source in a simulator's trace, and the other one
//! as the destination. Hosts without a packet in two captures are processed as in a single
//! capture.
//!
//! `two_readings.rs` reads the captures twice, `pair_packets.rs` gives each packet its meaning; the
//! state is here.

mod pair_packets;
#[cfg(test)]
mod tests;
pub(super) mod two_readings;

use crate::error::{Hint, ProblemKind, ReadError};
use crate::flow::Found;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::delivery::Delivery;
use crate::flow::numbered_datagrams::NumberingDetector;
use crate::input::stretch::Stretch;
use crate::packet::event::{Endpoints, Packet};
use crate::packet::extras::PayloadHead;
use crate::packet::key::Side;
use crate::pair::by_side::BySide;
use crate::pair::clock::{Clock, Estimate};
use crate::pair::first_reading::FirstReading;
use crate::pair::hops::Hops;
use crate::pair::network_routes::{NetworkRoutes, Route};
use crate::pair::outside_loss::OutsideLoss;
use crate::pair::routes::{Evidence, Routes};
use crate::pair::unmatched::{PacketAtCapture, PathEnd, UnmatchedPackets};
use crate::pair::{RouteEnds, Tap};
use crate::plural::counted;

/// Packets with the same time in both captures that show that one is a copy.
const LEAST_COPIES: usize = 20;

named_enum! {
    /// Outcome of a packet between the captures.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PairOutcome {
        /// Both captures have it.
        Arrived = "arrived",
        /// It passed the first and not the second.
        Lost = "lost",
        /// Missing at the second capture, which was not running when it should have come.
        Unknown = "unknown",
        /// The second missed it: its receiver acknowledged data that only the first has.
        Missed = "missed",
        /// It reached the second again.
        Duplicate = "duplicate",
        /// Only the second has it: the first missed it, or it was made in between.
        Unsent = "unsent",
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

/// More than two captures of one clock.
#[derive(Default)]
pub struct CaptureNetwork {
    routes: NetworkRoutes,
    pub hops: Hops,
    /// The route of each direction of a flow that was seen.
    ways: BySide<Route>,
}

impl CaptureNetwork {
    /// The captures that a direction of a flow passes.
    pub fn way(&self, flow: u32, side: Side) -> Option<&Route> {
        self.ways.get(flow, side)
    }

    /// Problem of the clocks, if any.
    fn caveat(&self) -> Option<ReadError> {
        let (apart, packets) = (self.routes.apart, self.routes.packets);
        let (negative, timed) = self.hops.negative_delays();
        let what = if 2 * apart > packets {
            format!(
                "{apart} of {packets} packets have times in the captures that are more than a minute apart"
            )
        } else if negative > 0 {
            format!("{negative} of {timed} packets come to a capture before they were at the one before it")
        } else {
            return None;
        };
        Some(ReadError::whole(
            ProblemKind::Imprecise,
            format!("{what}: more than two captures need one clock"),
        ))
    }
}

/// State of the captures, and of the packets between them.
pub struct CapturePair {
    routes: Routes,
    /// Of more than two captures.
    pub network: Option<CaptureNetwork>,
    surveys: Vec<FirstReading>,
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
    spans_ns: Vec<(i64, i64)>,
    /// The longest delay of any packet.
    longest_ns: i64,
    /// Numbers of datagrams at the capture that they pass first.
    numbering: BySide<NumberingDetector>,
    /// When the first and the last packet of each flow and direction that arrived were sent.
    arrived_ns: BySide<(i64, i64)>,
    /// Packets that each capture missed while it was running.
    missed: Vec<u64>,
    /// Whether all packets have the same time in both.
    are_copies: bool,
    /// Every packet, if wanted.
    pub transits: BoundedSamples<Transit>,
}

impl CapturePair {
    fn new(
        mut surveys: Vec<FirstReading>,
        given_offset_ns: Option<i64>,
        transits: BoundedSamples<Transit>,
    ) -> Self {
        let common = match surveys.as_slice() {
            [first, second] => first.sample.common(&second.sample),
            _ => Vec::new(),
        };
        let network = (surveys.len() > 2).then(|| {
            let samples: Vec<_> = surveys.iter().map(|survey| &survey.sample).collect();
            CaptureNetwork { routes: NetworkRoutes::learn(&samples), ..CaptureNetwork::default() }
        });
        let routes = Routes::learn(&common, given_offset_ns);
        let estimate = Estimate::from_packets(&common, &routes);
        let is_at_once = common.iter().all(|(first, second)| first.time_ns == second.time_ns);
        let are_copies = is_at_once && common.len() >= LEAST_COPIES;
        let given_offset_ns = if network.is_some() { Some(0) } else { given_offset_ns };
        let given = given_offset_ns.map(|offset_ns| Clock { offset_ns, ..Clock::default() });
        let clock = given.or(estimate.map(|estimate| estimate.clock)).unwrap_or_default();
        let mut spans_ns: Vec<_> = surveys.iter().map(|survey| survey.span_ns.unwrap_or_default()).collect();
        for (start_ns, end_ns) in spans_ns.iter_mut().skip(1) {
            (*start_ns, *end_ns) = (clock.to_first(*start_ns), clock.to_first(*end_ns));
        }
        surveys.iter_mut().for_each(FirstReading::forget_sample);
        let missed = vec![0; surveys.len()];
        Self {
            routes,
            network,
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
            missed,
            are_copies,
            transits,
        }
    }

    /// Read only packets of `stretch`, as if the captures had run no longer.
    fn keep_to(&mut self, stretch: Stretch) {
        for span_ns in &mut self.spans_ns {
            *span_ns = stretch.clip(*span_ns);
        }
    }

    /// Whether packets were found that passed more than one capture.
    fn has_common_packets(&self) -> bool {
        self.network.as_ref().map_or(self.estimate.is_some(), |network| network.routes.packets > 0)
    }

    /// Whether a datagram ends a test of iperf 2: it is no data, and sent again until it is answered.
    fn is_end_of_test(
        &mut self,
        found: Found,
        end: Option<PathEnd>,
        packet: &Packet,
        head: PayloadHead,
    ) -> bool {
        let numbering = self.numbering.get_or_insert_with(found.flow, found.side, NumberingDetector::default);
        if end == Some(PathEnd::Near) {
            numbering.on_datagram(packet, head, None, &mut |_| ());
        }
        numbering.is_end(&head)
    }

    /// Whether delays are known, and not only how they change.
    pub fn has_delays(&self) -> bool {
        self.is_given || self.estimate.is_some_and(|estimate| estimate.has_delays())
    }

    /// The captures that packets between `endpoints` of a pair pass first and last, and how that is known.
    pub fn ends(&self, endpoints: &Endpoints) -> Option<(RouteEnds, Evidence)> {
        self.routes.ends(endpoints)
    }

    /// The captures that packets between `endpoints` pass; of more than two, all of their route.
    pub fn route(&self, endpoints: &Endpoints) -> Option<&Route> {
        self.network.as_ref()?.routes.route(endpoints)
    }

    /// The captures that packets between `endpoints` pass first and last, if these are two.
    fn route_ends(&self, endpoints: &Endpoints) -> Option<RouteEnds> {
        if self.network.is_none() {
            return self.ends(endpoints).map(|(ends, _)| ends);
        }
        match **self.route(endpoints)? {
            [near, .., far] => Some(RouteEnds { near, far }),
            _ => None,
        }
    }

    /// Possible error of every delay, because the split of the shortest round-trip time between the
    /// directions is unknown. None if the user gave the offset, or nothing is known.
    pub fn uncertainty_ms(&self) -> Option<f64> {
        let (low_ns, high_ns) = self.estimate.filter(|_| !self.is_given)?.offset_bounds_ns;
        Some(high_ns?.saturating_sub(low_ns?) as f64 / 2e6)
    }

    /// Count a packet that `tap` missed.
    fn note_missed(&mut self, tap: Tap, delivery: &mut Delivery) {
        self.missed[tap.index()] += 1;
        *delivery.missed.get_or_insert_default() += 1;
    }

    /// Whether the other capture was running for certain when a packet passed it that came at `time_ns`.
    fn was_running(&self, tap: Tap, time_ns: i64) -> bool {
        let (start_ns, end_ns) = self.spans_ns[tap.index()];
        time_ns >= start_ns.saturating_add(self.longest_ns) && time_ns <= end_ns
    }

    /// Packets that a capture itself lost, so that others of the path's losses may be its own.
    fn losses_of(&self, tap: Tap) -> Option<ReadError> {
        if self.network.is_some() {
            return None; // the hops count them
        }
        let missed = Some(self.missed[tap.index()]).filter(|&missed| missed > 0)?;
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
        if let Some(network) = &self.network {
            return network.caveat();
        }
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
        let (start_ns, end_ns) = self.spans_ns[near.other.index()];
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
