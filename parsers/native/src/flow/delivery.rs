//! Fate of packets between their two ends, where a trace shows both.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::observation::{MissingEnds, Observation};
use super::rtt_statistics::{LogHistogram, RttStatistics};
use crate::packet::event::{Agent, Code, Network, NodeLayer, Numbering};
use crate::packet::flow_totals::FlowTotals;
use crate::packet::key::Side;
use crate::wire::probe::{ProbeLayout, SenderClock};

/// Kinds of drops counted separately in one direction.
const MAX_DROP_KINDS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    pub layer: NodeLayer,
    /// Empty if the trace gives no reason.
    pub reason: Code,
    pub count: u64,
}

/// Sequence numbers that count the packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Numbers {
    /// In the payload of datagrams.
    Payload(ProbeLayout),
    /// DCCP sequence numbers, which count packets of every type.
    Dccp,
    Rtp,
}

/// Source of the counts if not simulator events: sequence numbers of the packets that passed the
/// capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedCounts {
    pub by: Numbers,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Restarts of the numbering.
    pub restarts: u64,
    /// Whether sender and capture seem to share a clock; otherwise only jitter is known.
    pub has_delays: bool,
    /// What the sender states of its clock.
    pub clock: SenderClock,
}

/// Delivery of one direction. Each packet counts once, however often it was seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Delivery {
    /// Layer at which its first packet was seen sent; packets are counted at this layer.
    pub layer: Option<NodeLayer>,
    pub sent: u64,
    pub received: u64,
    /// Wire bytes of the packets received.
    pub received_bytes: u64,
    /// Packets of `received` whose transmission is not in the trace.
    pub unsent: u64,
    /// Packets that arrived and that one of two captures missed while it was running.
    pub missed: Option<u64>,
    /// Repeated arrivals of packets.
    pub duplicates: u64,
    /// Packets that were dropped somewhere and never arrived.
    pub dropped: u64,
    /// Packets of `dropped` whose transmission is not in the trace.
    pub dropped_unsent: u64,
    /// While none was received: packets sent whose last line is their arrival at a node on the way.
    pub stranded: u64,
    /// Packets that never arrived, including dropped ones but not those of `in_flight`.
    pub lost: u64,
    /// Segments lost upstream of the nearer of two captures, if known from their timestamps.
    pub lost_before: Option<u64>,
    /// Segments lost downstream of the farther of two captures.
    pub lost_behind: Option<u64>,
    /// Packets in flight at the end of the trace: sent less than the longest delay before it.
    pub in_flight: u64,
    /// All drops in the trace, including those of packets that arrived in the end.
    pub drops: Vec<Drops>,
    /// Delays of the packets received.
    pub delay: RttStatistics,
    pub delay_sketch: LogHistogram,
    /// Packets that seem to arrive before they were sent.
    pub negative_delays: u64,
    /// Payload bytes, each sequence number counted once, where sequence numbers count packets.
    pub unique_bytes: u64,
    /// Retransmitted payload bytes, where sequence numbers count packets.
    pub repeated_bytes: u64,
    jitter: Jitter,
    /// Totals of another program, instead of packets.
    pub totals: Option<Box<FlowTotals>>,
    /// Set if all this comes from packet numbers. [`Delivery::layer`] is None then.
    pub counted: Option<NumberedCounts>,
    /// What happens at these ends is not known: their counts are no measurements.
    pub missing: MissingEnds,
}

/// Change of the transit time from one arrival to the next: interarrival jitter (RFC 3550 section
/// 6.4.1), a decaying mean, and the plain mean (the delay variation of RFC 3393 section 4.6 with
/// consecutive packets as selection function).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Jitter {
    last_transit_ns: Option<i64>,
    estimate_ns: f64,
    /// Sum of all |D|, in ns; saturates at 584 years.
    sum_ns: u64,
    count: u64,
}

impl Jitter {
    /// Add the transit time of the next packet that arrived. Only differences count, so the clocks
    /// of the ends need not agree.
    pub fn add(&mut self, transit_ns: i64) {
        self.add_within(transit_ns, u64::MAX);
    }

    /// The same for a clock that may begin anew: a change of more than `most_ns` is none of the delay.
    #[inline]
    pub fn add_within(&mut self, transit_ns: i64, most_ns: u64) {
        let Some(last) = self.last_transit_ns.replace(transit_ns) else { return };
        let difference_ns = transit_ns.saturating_sub(last).unsigned_abs();
        if difference_ns <= most_ns {
            // J += (|D| - J) / 16
            self.estimate_ns += (difference_ns as f64 - self.estimate_ns) / 16.0;
            self.sum_ns = self.sum_ns.saturating_add(difference_ns);
            self.count += 1;
        }
    }

    /// J in ms; None with fewer than two packets.
    pub fn ms(&self) -> Option<f64> {
        (self.count > 0).then_some(self.estimate_ns / 1e6)
    }

    /// Mean of |D| in ms; None with fewer than two packets.
    pub fn mean_change_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e6)
    }
}

impl Delivery {
    /// Record a packet that was sent at `sent_ns`.
    pub fn on_delay(&mut self, sent_ns: i64, received_ns: i64) {
        let transit_ns = received_ns.saturating_sub(sent_ns);
        self.jitter.add(transit_ns);
        match u64::try_from(transit_ns) {
            Ok(delay_ns) => {
                self.delay.add(delay_ns);
                self.delay_sketch.add(delay_ns);
            }
            Err(_) => self.negative_delays += 1,
        }
    }

    /// Record a packet that was sent at `sent_ns` by the sender's own clock.
    pub fn on_transit(&mut self, sent_ns: i64, received_ns: i64) {
        self.jitter.add(received_ns.saturating_sub(sent_ns));
    }

    /// Discard delays because the clocks of the ends differ.
    pub fn forget_delays(&mut self) {
        self.delay = RttStatistics::default();
        self.delay_sketch = LogHistogram::default();
        self.negative_delays = 0;
    }

    /// Whether any packet was counted.
    pub fn is_counted(&self) -> bool {
        self.sent > 0 || self.received > 0
    }

    /// This, if the trace shows the sender.
    pub fn at_sender(&self) -> Option<&Self> {
        (!self.missing.sender).then_some(self)
    }

    /// This, if the trace shows the receiver.
    pub fn at_receiver(&self) -> Option<&Self> {
        (!self.missing.receiver).then_some(self)
    }

    /// This, if the trace shows both ends of the path.
    pub fn of_whole_path(&self) -> Option<&Self> {
        (!self.missing.any()).then_some(self)
    }

    /// Packets dropped, if the trace would show them.
    pub fn dropped_packets(&self) -> Option<u64> {
        // Neither numbers nor captures at both ends show where a packet was lost.
        let shows_drops = !self.missing.any() && self.counted.is_none() && self.missed.is_none();
        (self.dropped > 0 || shows_drops).then_some(self.dropped)
    }

    pub fn on_drop(&mut self, layer: NodeLayer, reason: Code, count: u64) {
        match self.drops.iter().position(|drops| drops.layer == layer && drops.reason == reason) {
            Some(at) => add(&mut self.drops[at].count, count),
            None if self.drops.len() < MAX_DROP_KINDS => self.drops.push(Drops { layer, reason, count }),
            // The last kind also counts all further ones.
            None => add(&mut self.drops[MAX_DROP_KINDS - 1].count, count),
        }
    }

    /// Set the totals of another program.
    pub fn on_totals(&mut self, totals: &FlowTotals) {
        add(&mut self.sent, totals.sent.0);
        add(&mut self.received, totals.received.0);
        add(&mut self.received_bytes, totals.received.1);
        let missing = totals.sent.0.saturating_sub(totals.received.0);
        let lost = totals.lost.unwrap_or(missing);
        add(&mut self.lost, lost);
        add(&mut self.in_flight, missing.saturating_sub(lost));
        for &(layer, reason, count) in &totals.drops {
            self.on_drop(layer, reason, count);
            add(&mut self.dropped, count);
        }
        self.totals = Some(Box::new(totals.clone()));
    }

    pub fn delay_mean_ms(&self) -> Option<f64> {
        match &self.totals {
            Some(totals) => {
                let sum = totals.delay_sum_ns? as f64;
                (totals.received.0 > 0).then(|| sum / totals.received.0 as f64 / 1e6)
            }
            None => self.delay.range.mean_ms(),
        }
    }

    pub fn delay_range_ms(&self) -> Option<(f64, f64)> {
        match &self.totals {
            Some(totals) => totals.delay_range_ns.map(|(min, max)| (min as f64 / 1e6, max as f64 / 1e6)),
            None => self.delay.range.min_ms().zip(self.delay.range.max_ms()),
        }
    }

    /// Share of sent packets that arrived; None if nothing was sent early enough to arrive.
    pub fn ratio(&self) -> Option<f64> {
        let due = self.sent.saturating_sub(self.in_flight);
        let arrived = self.received.saturating_sub(self.unsent);
        (due > 0).then(|| arrived as f64 / due as f64)
    }

    /// Replace the jitter by that of another clock.
    pub fn set_jitter(&mut self, jitter: Jitter) {
        self.jitter = jitter;
    }

    pub fn jitter_ms(&self) -> Option<f64> {
        self.jitter.ms()
    }

    /// Mean change of the delay from one arrival to the next in ms (RFC 3393).
    pub fn delay_variation_ms(&self) -> Option<f64> {
        match &self.totals {
            Some(totals) => {
                // FlowMonitor's sum begins with the second packet that arrived.
                let changes = totals.received.0.checked_sub(1).filter(|&changes| changes > 0)?;
                Some(totals.jitter_sum_ns? as f64 / changes as f64 / 1e6)
            }
            None => self.jitter.mean_change_ms(),
        }
    }

    /// Delay in ms that this share of the packets does not exceed, within 0.8 %.
    pub fn delay_percentile_ms(&self, share: f64) -> Option<f64> {
        if let Some(totals) = &self.totals {
            return histogram_percentile_ms(&totals.delay_histogram, share);
        }
        let found = self.delay_sketch.percentile(share)? as f64 / 1e6;
        Some(found.clamp(self.delay.range.min_ms()?, self.delay.range.max_ms()?))
    }

    /// Drops by reason as text, most frequent first: `queue 34, routing NRTE 2`; None without
    /// drops.
    pub fn drop_words(&self) -> Option<String> {
        let mut drops = self.drops.clone();
        drops.sort_by_key(|drops| std::cmp::Reverse(drops.count));
        let words = |drops: &Drops| match drops.reason.text() {
            "" => format!("{} {}", drops.layer.name(), drops.count),
            reason => format!("{} {reason} {}", drops.layer.name(), drops.count),
        };
        (!drops.is_empty()).then(|| drops.iter().map(words).collect::<Vec<_>>().join(", "))
    }
}

/// Upper edge of the bin that holds the sample of nearest rank.
fn histogram_percentile_ms(bins: &[(i64, u64)], share: f64) -> Option<f64> {
    // A document may contain any number, in many bins.
    let count: u128 = bins.iter().map(|bin| u128::from(bin.1)).sum();
    let rank = ((share * count as f64).ceil() as u128).max(1);
    let mut seen = 0;
    for &(edge_ns, n) in bins {
        seen += u128::from(n);
        if seen >= rank {
            return Some(edge_ns as f64 / 1e6);
        }
    }
    None
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Deliveries {
    /// None for a side of whose packets nothing is known.
    sides: [Option<Box<Delivery>>; 2],
    /// The simulator's flow id of the first packet that has one.
    pub flow_id: Option<u32>,
    /// Agents of the two sides, from the first packet of each.
    agents: [Option<Agent>; 2],
    /// What the flow's sequence numbers count.
    pub numbering: Numbering,
    /// Where a simulator's trace shows the packets.
    pub observation: Observation,
}

impl Deliveries {
    /// Whether the trace shows drops of packets of `side`, and nothing else of them.
    pub fn has_only_drops(&self, side: Side) -> bool {
        let delivery = self.of(side);
        delivery.drops.iter().any(|drops| drops.count > 0) && delivery.totals.is_none()
    }

    /// Whether packets of either side were counted by their numbers.
    pub fn is_numbered(&self) -> bool {
        [Side::Low, Side::High].into_iter().any(|side| self.of(side).counted.is_some())
    }

    /// Record flow id, numbering and agent of a packet of `side`.
    pub fn note_identity(&mut self, side: Side, network: &Network, agent: Option<Agent>) {
        self.flow_id = self.flow_id.or(network.flow_id);
        self.numbering = network.numbering;
        let known = &mut self.agents[side as usize];
        *known = known.or(agent);
    }

    /// ns-2's name of the packet type of `side`.
    pub fn agent(&self, side: Side) -> Option<&'static str> {
        self.agents[side as usize].map(Agent::name)
    }

    /// Delivery of the packets that `side` sent.
    pub fn of(&self, side: Side) -> &Delivery {
        static UNKNOWN: LazyLock<Delivery> = LazyLock::new(Delivery::default);
        self.sides[side as usize].as_deref().unwrap_or(&UNKNOWN)
    }

    pub fn of_mut(&mut self, side: Side) -> &mut Delivery {
        self.sides[side as usize].get_or_insert_default()
    }
}

/// Add a count from a document, saturating.
fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_totals_of_a_document_may_be_any_numbers() {
        const MOST: u64 = u64::MAX;
        let drops = vec![(NodeLayer::Queue, Code::new(b"END"), MOST); 2];
        let totals = FlowTotals {
            sent: (MOST, MOST),
            received: (1, MOST),
            lost: Some(MOST),
            drops,
            ..FlowTotals::default()
        };
        let mut delivery = Delivery::default();
        delivery.on_totals(&totals);
        delivery.on_totals(&totals);
        assert_eq!(
            (delivery.sent, delivery.received, delivery.lost, delivery.dropped),
            (MOST, 2, MOST, MOST)
        );
        assert_eq!((delivery.drops[0].count, delivery.is_counted()), (MOST, true));
        let bins = [(1_000_000, 1), (2_000_000, MOST), (3_000_000, MOST)];
        assert_eq!(histogram_percentile_ms(&bins, 0.25), Some(2.0));
        assert_eq!(histogram_percentile_ms(&bins, 0.75), Some(3.0));
    }

    #[test]
    fn test_jitter_follows_the_equation_of_rfc_3550() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.ms(), None);
        for transit_ms in [10_i64, 14, 10, 10] {
            jitter.add(transit_ms * 1_000_000);
        }
        // J: 0 -> 4/16 -> 0.25 + 3.75/16 -> that * 15/16
        let expected = (0.25 + 3.75 / 16.0) * 15.0 / 16.0;
        assert!((jitter.ms().unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn test_the_delay_variation_is_the_mean_change() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.mean_change_ms(), None);
        for transit_ms in [10_i64, 14, 10, 10] {
            jitter.add(transit_ms * 1_000_000);
        }
        assert_eq!(jitter.mean_change_ms(), Some(8.0 / 3.0));
        // No sum is too large.
        jitter.add(i64::MAX);
        jitter.add(i64::MIN);
        jitter.add(i64::MAX);
        assert_eq!(jitter.sum_ns, u64::MAX);
    }

    #[test]
    fn test_kinds_of_drops_are_bounded_and_none_is_lost() {
        let mut delivery = Delivery::default();
        for kind in 0..100 {
            delivery.on_drop(NodeLayer::Mac, Code::new(format!("R{kind}").as_bytes()), 1);
        }
        assert_eq!(delivery.drops.len(), MAX_DROP_KINDS);
        assert_eq!(delivery.drops.iter().map(|drops| drops.count).sum::<u64>(), 100);
    }
}
