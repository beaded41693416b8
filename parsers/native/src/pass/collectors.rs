//! Samples of what packets do, collected beside the flows. A table says what it takes of a packet
//! ([`PacketSample`]), and is collected only if it is wanted.

use std::any::Any;
use std::fmt::Debug;

use super::chosen_flows::ChosenFlows;
use crate::flow::Found;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::rtt_statistics::RoundTrip;
use crate::flow::tcp::Outcome;
use crate::packet::captured::Captured;
use crate::packet::event::Packet;
use crate::packet::key::Side;

/// A sample that packets of TCP give.
pub trait PacketSample: Copy + Debug + Send + Sync + 'static {
    /// What is left out beyond the limit.
    const NAME: &'static str;
    /// Whether it is of the data that a packet answers; that shows also where the packet arrives.
    const IS_OF_ANSWER: bool;
    /// Whether it is collected of every flow, even if only some are sampled.
    const IS_OF_ALL_FLOWS: bool;

    /// Give the samples of a packet, in order, to `add`.
    fn on_outcome(found: Found, packet: &Captured, outcome: &Outcome, add: impl FnMut(Self));

    /// Its flow, from 0, and direction.
    fn place(&self) -> (u32, Side);
}

/// The samples of one table, whichever.
pub trait Collector: Any + Debug + Send + Sync {
    /// Collect the samples of a packet; only of what it answers unless it is counted. It has a turn if packets are not
    /// followed in the order of the file.
    fn on_outcome(
        &mut self,
        found: Found,
        packet: &Captured,
        outcome: &Outcome,
        turn: Option<u16>,
        is_counted: bool,
    );

    /// Add the samples that came out of turn, here and at other threads, in order.
    fn merge(&mut self, others: &mut [&mut dyn Collector]);

    /// What is left out beyond the limit, and how many of it.
    fn left_out(&self) -> (&'static str, u64);
}

/// Makes a collector of at most so many samples, of these flows if not of all.
pub type NewCollector = fn(usize, &ChosenFlows) -> Box<dyn Collector>;

/// The samples of one kind, of all flows or of some.
#[derive(Debug)]
pub struct FlowSamples<S> {
    samples: BoundedSamples<S>,
    of: ChosenFlows,
}

impl<S: PacketSample> FlowSamples<S> {
    /// Empty, for at most `limit` samples, of `chosen` flows if not of all.
    pub fn new(limit: usize, chosen: &ChosenFlows) -> Self {
        let of = if S::IS_OF_ALL_FLOWS { ChosenFlows::default() } else { chosen.clone() };
        Self { samples: BoundedSamples::new(true, limit), of }
    }

    fn add(&mut self, turn: Option<u16>, sample: S) {
        if self.of.has(sample.place().0) {
            self.samples.add_in_turn(turn, sample);
        }
    }
}

impl<S: PacketSample> Collector for FlowSamples<S> {
    #[inline]
    fn on_outcome(
        &mut self,
        found: Found,
        packet: &Captured,
        outcome: &Outcome,
        turn: Option<u16>,
        is_counted: bool,
    ) {
        if S::IS_OF_ANSWER || is_counted {
            S::on_outcome(found, packet, outcome, |sample| self.add(turn, sample));
        }
    }

    fn merge(&mut self, others: &mut [&mut dyn Collector]) {
        let others = others.iter_mut().map(|other| &mut **other as &mut dyn Any);
        let others = others.filter_map(|other| Some(&mut other.downcast_mut::<Self>()?.samples));
        self.samples.put_in_order(&mut others.collect::<Vec<_>>());
    }

    fn left_out(&self) -> (&'static str, u64) {
        (S::NAME, self.samples.left_out)
    }
}

/// The samples of all tables that are wanted, in the order of the file.
#[derive(Debug)]
pub struct PacketSamples {
    /// Place of the next packet, if packets are not followed in the order of the file.
    pub(super) turn: Option<u16>,
    collectors: Vec<Box<dyn Collector>>,
}

impl PacketSamples {
    /// Empty, for at most `limit` samples of each kind, of `chosen` flows if not of all.
    pub fn new(collectors: &[NewCollector], limit: usize, chosen: &ChosenFlows) -> Self {
        let collectors = collectors.iter().map(|new| new(limit, chosen));
        Self { turn: None, collectors: collectors.collect() }
    }

    /// Collect the samples of a packet.
    #[inline(always)]
    pub(super) fn collect(&mut self, found: Found, packet: &Captured, outcome: &Outcome, is_counted: bool) {
        for collector in &mut self.collectors {
            collector.on_outcome(found, packet, outcome, self.turn, is_counted);
        }
    }

    /// Add a sample that something else than a packet of TCP gave, if such samples are wanted.
    pub(super) fn offer<S: PacketSample>(&mut self, sample: S) {
        let turn = self.turn;
        if let Some(samples) = self.of_flows_mut::<S>() {
            samples.add(turn, sample);
        }
    }

    /// Add the samples that were collected out of turn, here and by the other threads, in order.
    pub fn put_in_order<'a>(&mut self, others: impl Iterator<Item = &'a mut Self>) {
        let mut others: Vec<_> = others.map(|other| other.collectors.iter_mut()).collect();
        for collector in &mut self.collectors {
            let parts = others.iter_mut().filter_map(Iterator::next);
            collector.merge(&mut parts.map(|part| &mut **part).collect::<Vec<_>>());
        }
    }

    /// The samples of a kind that were kept; none if they are not wanted.
    pub fn kept<S: PacketSample>(&self) -> &[S] {
        let mut collectors = self.collectors.iter().map(|collector| &**collector as &dyn Any);
        let samples = collectors.find_map(|collector| collector.downcast_ref::<FlowSamples<S>>());
        samples.map_or(&[], |of_flows| &of_flows.samples.kept)
    }

    /// The samples of a kind, if they are wanted.
    pub(crate) fn of_mut<S: PacketSample>(&mut self) -> Option<&mut BoundedSamples<S>> {
        Some(&mut self.of_flows_mut()?.samples)
    }

    fn of_flows_mut<S: PacketSample>(&mut self) -> Option<&mut FlowSamples<S>> {
        let mut collectors = self.collectors.iter_mut().map(|collector| &mut **collector as &mut dyn Any);
        collectors.find_map(|collector| collector.downcast_mut())
    }

    /// Samples beyond the limit, by kind.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.collectors.iter().map(|collector| collector.left_out())
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RttSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side whose data were acknowledged.
    pub side: Side,
    pub time_ns: i64,
    pub rtt: RoundTrip,
    /// Whether it seems to have waited for a delayed-acknowledgement timer.
    pub is_delayed_ack: bool,
    /// Number of the acknowledging packet.
    pub packet: u64,
}

impl RttSample {
    /// The round-trip time of the data of `data` that a packet of another protocol than TCP shows.
    pub(super) fn of_packet(data: Found, packet: &Packet, rtt: RoundTrip) -> Self {
        let Found { flow, side } = data;
        let &Packet { time_ns, number: packet, .. } = packet;
        Self { flow, side, time_ns, rtt, is_delayed_ack: false, packet }
    }
}
