//! Two captures of one path: what each packet, seen at one or both, means to its flow.
//!
//! A packet counts for its flow where it passes first; where it passes next it has arrived. So the
//! capture that is nearer to a sender plays the part that a simulator's trace gives to the source,
//! and the other one that of the destination. Hosts of which no packet is in both captures are
//! followed as in a single capture.

use std::ffi::OsStr;
use std::sync::Arc;

use hashbrown::HashMap;

use super::{Analysis, Samples};
use crate::asides::{Asides, Head};
use crate::error::{Problem, ProblemKind, ReadError};
use crate::event::{Endpoints, Network, Packet, TcpFlags, Transport};
use crate::filter::Compiler;
use crate::flow::Found;
use crate::flow::delivery::Delivery;
use crate::flow::key::Side;
use crate::input::Progress;
use crate::pair::Tap;
use crate::pair::clock::{Clock, Estimate};
use crate::pair::identity::{payload_head, pieces};
use crate::pair::merge::for_each_packet;
use crate::pair::outside::Outside;
use crate::pair::routes::{Evidence, Routes};
use crate::pair::survey::{Survey, wire_payload};
use crate::pair::waiting::{End, Passing, Sight, Waiting};
use crate::reading::Reading;
use crate::summary::SourceSummary;

/// What became of a packet between the captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Both captures have it.
    Arrived,
    /// It passed the first on its way and not the second.
    Lost,
    /// Like lost, but the second capture was not running when it should have come.
    Unknown,
    /// It came to the second once more.
    Duplicate,
    /// Only the second has it: the first missed it, or it was made in between.
    Unsent,
}

impl Fate {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
            Self::Duplicate => "duplicate",
            Self::Unsent => "unsent",
        }
    }
}

/// One packet on its way between the captures.
#[derive(Clone, Copy, Debug)]
pub struct Transit {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent it.
    pub side: Side,
    /// What became of it.
    pub fate: Fate,
    /// Time and number of the packet at the capture that it passes first, if it has it.
    pub near: Option<(i64, u64)>,
    /// The same at the other, by the first capture's clock.
    pub far: Option<(i64, u64)>,
    /// Its payload.
    pub payload_bytes: u32,
}

/// What is known of the two captures, and of the packets between them.
pub struct Pairing {
    routes: Routes,
    surveys: [Survey; 2],
    /// The clock by which times were told.
    pub clock: Clock,
    /// What the packets say of it; None if there are none.
    pub estimate: Option<Estimate>,
    /// Whether the user gave the offset.
    pub is_given: bool,
    /// Packets that both captures have.
    pub met: u64,
    waiting: Waiting,
    outside: Outside,
    /// First and last time of each, by the first one's clock.
    spans_ns: [(i64, i64); 2],
    /// The longest delay of any packet.
    longest_ns: i64,
    /// When the first and the last packet of each flow and direction that arrived were sent.
    arrived_ns: HashMap<(u32, bool), (i64, i64)>,
    /// Every packet, if wanted.
    pub transits: Samples<Transit>,
}

impl Pairing {
    fn new(surveys: [Survey; 2], given_offset_ns: Option<i64>, transits: Samples<Transit>) -> Self {
        let [first, second] = &surveys;
        let common = first.sample.common(&second.sample);
        let routes = Routes::learn(&common);
        let estimate = Estimate::from_packets(&common, &routes);
        let given = given_offset_ns.map(|offset_ns| Clock { offset_ns, ..Clock::default() });
        let clock = given.or(estimate.map(|estimate| estimate.clock)).unwrap_or_default();
        let span = |survey: &Survey| survey.span_ns.unwrap_or_default();
        let (start_ns, end_ns) = span(second);
        let spans_ns = [span(first), (clock.to_first(start_ns), clock.to_first(end_ns))];
        Self {
            routes,
            surveys,
            clock,
            estimate,
            is_given: given.is_some(),
            met: 0,
            waiting: Waiting::default(),
            outside: Outside::default(),
            spans_ns,
            longest_ns: 0,
            arrived_ns: HashMap::new(),
            transits,
        }
    }

    /// Whether delays are known, and not only how they change.
    pub fn has_delays(&self) -> bool {
        self.is_given || self.estimate.is_some_and(|estimate| estimate.has_delays())
    }

    /// The capture that packets between `endpoints` pass first, and how that is known.
    pub fn first_tap(&self, endpoints: &Endpoints) -> Option<(Tap, Evidence)> {
        self.routes.first_tap(endpoints)
    }

    /// How far every delay may be off because nothing tells how the shortest round-trip time is
    /// shared between the directions. None if the user gave the offset, or nothing is known.
    pub fn uncertainty_ms(&self) -> Option<f64> {
        let (low_ns, high_ns) = self.estimate.filter(|_| !self.is_given)?.offset_bounds_ns;
        Some(high_ns?.saturating_sub(low_ns?) as f64 / 2e6)
    }

    /// What is to be said of the clocks as a reservation.
    fn remark(&self) -> Option<ReadError> {
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
            (message, "leave `--clock-offset` out to have it estimated")
        } else if !self.is_given && estimate.drift_bounds.is_none() {
            let message =
                "its clock did not run evenly against the other one: it was set, or adjusted, in between";
            (
                message.to_owned(),
                "delays may be wrong; read the parts before and after the step for themselves",
            )
        } else {
            return None;
        };
        Some(ReadError::whole(ProblemKind::Imprecise, message).hint(hint))
    }

    /// Whether the capture at the far end was running when a packet should have come there. So it was
    /// if one that was sent before it has come, and one that was sent after it.
    fn was_expected(&self, near: &Passing, delivery: &Delivery) -> bool {
        let (start_ns, end_ns) = self.spans_ns[near.tap.other() as usize];
        let arrived_ns = self.arrived_ns.get(&(near.flow, near.side == Side::High));
        let (earliest_ns, latest_ns) = arrived_ns.copied().unwrap_or((i64::MAX, i64::MIN));
        let longest = delivery.delay.range.max_ns().and_then(|longest| i64::try_from(longest).ok());
        let longest_ns = longest.unwrap_or(self.longest_ns);
        let has_begun = near.time_ns >= start_ns.min(earliest_ns);
        has_begun && near.time_ns <= end_ns.saturating_sub(longest_ns).max(latest_ns)
    }
}

impl Analysis {
    /// Read two captures of the same path as one trace, each twice. What is wrong with them goes to
    /// `problems`; an error is one of the filter, in libpcap's words. With `given_offset_ns` the
    /// second clock is ahead by so much, else the packets tell.
    pub fn read_pair(
        &mut self,
        sources: [&OsStr; 2],
        given_offset_ns: Option<i64>,
        compiler: Option<&dyn Compiler>,
        progress: &Arc<Progress>,
    ) -> Result<(), String> {
        let open = |source: &OsStr| {
            Reading::open(source, self.options.format, self.options.max_decompressed_bytes, progress)
        };
        let mut readings = sources.map(open);
        if !readings.iter().all(Reading::is_capture) {
            self.refuse(readings);
            return Ok(());
        }
        let [first, second] = &mut readings;
        let max_flows = self.options.max_flows;
        let surveys = [Survey::read(first, compiler, max_flows)?, Survey::read(second, compiler, max_flows)?];
        let transits = Samples::new(self.options.transits, self.options.max_samples);
        let mut pairing = Pairing::new(surveys, given_offset_ns, transits);
        if pairing.estimate.is_none() {
            self.refuse(readings);
            self.complain(sources[0], &pairing);
            return Ok(());
        }
        let mut readings = sources.map(open);
        let mut summaries = [0, 1].map(|tap: usize| SourceSummary::new(readings[tap].source()));
        let clock = pairing.clock;
        for_each_packet(&mut readings, compiler, &clock, &mut summaries, |tap, packet, asides, summary| {
            self.take_paired(&mut pairing, tap, packet, asides, summary);
        })?;
        while let Some(alone) = pairing.waiting.take_oldest() {
            self.give_up(&mut pairing, alone);
        }
        if !pairing.has_delays() {
            for deliveries in self.flows.iter_mut().filter_map(|flow| flow.deliveries.as_deref_mut()) {
                deliveries.of_mut(Side::Low).forget_delays();
                deliveries.of_mut(Side::High).forget_delays();
            }
        }
        let sent_ns = |transit: &Transit| transit.near.or(transit.far).map(|place| place.0);
        pairing.transits.kept.sort_by_key(sent_ns);
        if let Some(error) = pairing.remark() {
            let [_, source] = sources.map(|source| source.to_string_lossy().into_owned());
            self.problems.push(Problem { source, packet: None, packets_before: 0, error });
        }
        for (reading, summary) in readings.into_iter().zip(summaries) {
            self.close(reading, summary);
        }
        self.pairing = Some(Box::new(pairing));
        Ok(())
    }

    /// Say why there is no pair: an input could not be read, or is no capture.
    fn refuse(&mut self, readings: [Reading; 2]) {
        for reading in readings {
            let mut summary = SourceSummary::new(reading.source());
            let is_capture = reading.is_capture();
            let source = reading.source().to_owned();
            let mut problems = reading.finish(&mut summary);
            problems.retain(|problem| problem.error.kind != ProblemKind::NoPackets);
            if !is_capture && !problems.iter().any(|problem| problem.error.kind.is_error()) {
                let message = format!("a pair is of captures, and this is a {} trace", summary.format);
                let hint = "leave `--pair` out: a simulator's trace shows both ends of a path by itself";
                let error = ReadError::whole(ProblemKind::Unsupported, message).hint(hint);
                problems.push(Problem { source, packet: None, packets_before: 0, error });
            }
            self.problems.extend(problems);
        }
    }

    /// Say that the captures have nothing in common.
    fn complain(&mut self, source: &OsStr, pairing: &Pairing) {
        let [first, second] = &pairing.surveys;
        let message = format!(
            "none of its {} TCP, UDP and DCCP packets is among the {} of the other capture",
            first.packets, second.packets
        );
        let hint = "a pair shows the same packets at two places; a NAT or tunnel in between changes them";
        let error = ReadError::whole(ProblemKind::NotAPair, message).hint(hint);
        let source = source.to_string_lossy().into_owned();
        self.problems.push(Problem { source, packet: None, packets_before: 0, error });
    }

    /// Give a packet of one of the captures to its flow.
    fn take_paired(
        &mut self,
        pairing: &mut Pairing,
        tap: Tap,
        packet: &Packet,
        asides: &Asides,
        summary: &mut SourceSummary,
    ) {
        while let Some(alone) = pairing.waiting.take_expired(packet.time_ns) {
            self.give_up(pairing, alone);
        }
        let network = &packet.network;
        let first_tap =
            pairing.first_tap(&network.endpoints).map(|(first, _)| first).filter(|_| packet.is_ip);
        let end = match first_tap {
            Some(first) if first == tap => End::Near,
            Some(_) => End::Far,
            None => return self.take_alone(tap, packet, asides, summary),
        };
        let has_identity = matches!(network.transport, Transport::Tcp | Transport::Udp | Transport::Dccp);
        if !has_identity || !super::is_flow(network) {
            // An error or later fragment counts where it passes first, as in a single capture.
            if end == End::Near {
                self.take_alone(tap, packet, asides, summary);
            }
            return;
        }
        if let Some(aside) = packet.frame
            && self.take_frame(packet, asides.frame(aside))
        {
            self.take_repeat(packet, summary);
            return;
        }
        let Some(found) = self.flows.find_or_open(packet, network, tap as u32) else {
            summary.untracked_packets += 1;
            return;
        };
        if network.fragment.is_some() && end == End::Near {
            self.fragments.remember(network, found);
        }
        self.pass(found, end, packet, asides);
        let is_tcp = network.transport == Transport::Tcp;
        let head = payload_head(network, asides);
        let is_again = self.match_pieces(pairing, found, (tap, end), packet, head);
        if is_tcp && !is_again {
            self.look_outside(pairing, found, end, network, asides);
        }
    }

    /// Give a packet that only one capture can have to its flow, as in a single capture.
    fn take_alone(&mut self, tap: Tap, packet: &Packet, asides: &Asides, summary: &mut SourceSummary) {
        let first = std::mem::replace(&mut self.source, tap as u32);
        self.take(packet, asides, summary);
        self.source = first;
    }

    /// Move the flow on, as at the end where it is watched.
    fn pass(&mut self, found: Found, end: End, packet: &Packet, asides: &Asides) {
        let Found { flow, side } = found;
        let network = &packet.network;
        let outcome = &mut self.outcome;
        outcome.clear();
        let (watched, pool) = self.flows.get_with_pool(flow);
        match end {
            End::Near => {
                watched.on_sent(side, packet, network, asides, pool, outcome);
                if self.collects {
                    self.collect(found, packet, network);
                }
            }
            End::Far => {
                watched.on_received(side, packet, network, asides, pool, outcome);
                if self.collects {
                    self.collect_rtt(found, packet);
                }
            }
        }
    }

    /// See what a segment tells of losses outside of the way between the captures.
    fn look_outside(
        &mut self,
        pairing: &mut Pairing,
        found: Found,
        end: End,
        network: &Network,
        asides: &Asides,
    ) {
        let Found { flow, side } = found;
        let outside = &mut pairing.outside;
        if end == End::Near {
            // Where this side's packets pass first those of the other side pass last.
            let blocks = asides.sack(network.tcp.options.sack);
            outside.on_acknowledgement(flow, side.other(), &network.tcp, blocks);
        }
        let delivery = self.flows.get_mut(flow).deliveries_mut().of_mut(side);
        let payload = network.payload_bytes.unwrap_or(0);
        if payload == 0 && !network.tcp.flags.has(TcpFlags::SYN) {
            return;
        }
        match end {
            End::Near => {
                let is_lost = outside.is_lost_before(flow, side, &network.tcp, payload);
                if network.tcp.options.timestamp.is_some() {
                    *delivery.lost_before.get_or_insert_default() += u64::from(is_lost);
                }
            }
            End::Far => {
                let is_lost = outside.is_lost_behind(flow, side, &network.tcp, payload);
                *delivery.lost_behind.get_or_insert_default() += u64::from(is_lost);
            }
        }
    }

    /// Look for what the packet was on the wire at the other capture; whether it had come there
    /// before.
    fn match_pieces(
        &mut self,
        pairing: &mut Pairing,
        found: Found,
        (tap, end): (Tap, End),
        packet: &Packet,
        head: Head,
    ) -> bool {
        let mut is_again = false;
        let Found { flow, side } = found;
        let network = &packet.network;
        let header_bytes = packet.wire_bytes.saturating_sub(network.payload_bytes.unwrap_or(0));
        let wire_payload = wire_payload(&pairing.surveys, network);
        for piece in pieces(network, head, wire_payload) {
            let passing = Passing {
                identity: piece.identity,
                end,
                tap,
                time_ns: packet.time_ns,
                flow,
                side,
                packet: packet.number,
                wire_bytes: header_bytes.saturating_add(piece.payload_bytes),
                payload_bytes: piece.payload_bytes,
            };
            match pairing.waiting.see(passing) {
                Sight::Waits => {}
                Sight::Meets(other) if end == End::Near => self.arrive(pairing, passing, other),
                Sight::Meets(other) => self.arrive(pairing, other, passing),
                Sight::Again => {
                    is_again = true;
                    self.flows.get_mut(flow).deliveries_mut().of_mut(side).duplicates += 1;
                    keep(&mut pairing.transits, Fate::Duplicate, None, Some(passing));
                }
            }
        }
        is_again
    }

    /// A packet passed both captures.
    fn arrive(&mut self, pairing: &mut Pairing, near: Passing, far: Passing) {
        let delivery = self.flows.get_mut(near.flow).deliveries_mut().of_mut(near.side);
        delivery.sent += 1;
        delivery.received += 1;
        delivery.received_bytes += u64::from(near.wire_bytes);
        delivery.on_delay(near.time_ns, far.time_ns);
        let delay_ns = far.time_ns.saturating_sub(near.time_ns);
        pairing.met += 1;
        pairing.longest_ns = pairing.longest_ns.max(delay_ns);
        let direction = (near.flow, near.side == Side::High);
        let (first_ns, last_ns) = pairing.arrived_ns.entry(direction).or_insert((i64::MAX, i64::MIN));
        (*first_ns, *last_ns) = (near.time_ns.min(*first_ns), near.time_ns.max(*last_ns));
        if let Some(bins) = &mut self.bins
            && let Ok(delay_ns) = u64::try_from(delay_ns)
            && pairing.has_delays()
        {
            bins.add_delay(near.flow, near.side, near.time_ns, delay_ns);
        }
        keep(&mut pairing.transits, Fate::Arrived, Some(near), Some(far));
    }

    /// A packet is in one of the captures only.
    fn give_up(&mut self, pairing: &mut Pairing, alone: Passing) {
        let delivery = self.flows.get_mut(alone.flow).deliveries_mut().of_mut(alone.side);
        if alone.end == End::Far {
            delivery.received += 1;
            delivery.unsent += 1;
            delivery.received_bytes += u64::from(alone.wire_bytes);
            keep(&mut pairing.transits, Fate::Unsent, None, Some(alone));
            return;
        }
        delivery.sent += 1;
        let fate = if pairing.was_expected(&alone, delivery) { Fate::Lost } else { Fate::Unknown };
        if fate == Fate::Lost {
            delivery.lost += 1;
            if let Some(bins) = &mut self.bins {
                bins.add_loss(alone.flow, alone.side, alone.time_ns);
            }
        } else {
            delivery.in_flight += 1;
        }
        keep(&mut pairing.transits, fate, Some(alone), None);
    }
}

fn keep(transits: &mut Samples<Transit>, fate: Fate, near: Option<Passing>, far: Option<Passing>) {
    let Some(either) = near.or(far).filter(|_| transits.wanted) else { return };
    let place = |passing: Passing| (passing.time_ns, passing.packet);
    transits.add(Transit {
        flow: either.flow,
        side: either.side,
        fate,
        near: near.map(place),
        far: far.map(place),
        payload_bytes: either.payload_bytes,
    });
}
