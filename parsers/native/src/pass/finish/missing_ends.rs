//! Ends of paths that a simulator's trace does not show: the trace of one queue, of some nodes or of some
//! layers has no line where packets are sent, or none where they arrive; a capture of numbered packets has none
//! that arrived unless it was made at their receiver. What is not shown is not zero.

use std::collections::HashSet;

use crate::flow::delivery::Delivery;
use crate::flow::observation::MissingEnds;
use crate::flow::tcp::vantage::{Vantage, believed};
use crate::flow::{Flow, FlowTable};
use crate::input::source_summary::SourceSummary;
use crate::packet::event::{Address, NodeLayer, PathPoint};
use crate::packet::key::{Side, address_text};
use crate::pass::options::Options;

/// What the trace shows of nodes.
struct ShownEnds<'a> {
    /// Nodes that are the end of any path.
    nodes: HashSet<Address>,
    has_arrivals: bool,
    sources: &'a [SourceSummary],
    /// Names of nodes with any line, by source.
    names: HashSet<(u32, &'a str)>,
}

impl<'a> ShownEnds<'a> {
    fn of(flows: &FlowTable, sources: &'a [SourceSummary]) -> Self {
        let named = |(at, source): (u32, &'a SourceSummary)| {
            let shown = source.interfaces.iter().filter(|(_, packets)| *packets > 0);
            shown.filter_map(move |(interface, _)| Some((at, interface.name.as_deref()?)))
        };
        let names = (0..).zip(sources).flat_map(named).collect();
        let mut ends = Self { nodes: HashSet::new(), has_arrivals: false, sources, names };
        for flow in flows.here().map(|number| flows.get(number)) {
            let Some(both) = flow.deliveries() else { continue };
            for side in [Side::Low, Side::High] {
                let delivery = both.of(side);
                ends.nodes.extend((delivery.sent > 0).then(|| address(flow, side)));
                ends.nodes.extend((delivery.received > 0).then(|| address(flow, side.other())));
                ends.has_arrivals |= delivery.received > 0;
            }
        }
        ends
    }

    /// Ends that are missing of the path of the packets of `side`.
    fn missing(&self, flow: &Flow, side: Side) -> MissingEnds {
        let Some(both) = flow.deliveries() else { return MissingEnds::default() };
        let (delivery, answered) = (both.of(side), both.of(side.other()));
        let was_seen = delivery.is_counted() || delivery.dropped > 0;
        if !was_seen && both.observation.counted_at(side) != Some(PathPoint::Between) {
            // Nothing was sent, unless the packets of the other side must have been answered.
            let may_be_silent = flow.key().protocol() == 17 || answered.received == 0;
            let is_silent = may_be_silent && self.shows(flow, address(flow, side), answered);
            return if is_silent { MissingEnds::default() } else { MissingEnds::BOTH };
        }
        // That nothing arrived is known where arrivals are shown, or where all was dropped or went no
        // further than to a node on the way.
        let would_show = self.has_arrivals && self.shows(flow, address(flow, side.other()), delivery);
        let dropped = delivery.dropped - delivery.dropped_unsent;
        let is_all_lost = delivery.sent > 0 && dropped + delivery.stranded >= delivery.sent;
        MissingEnds {
            sender: delivery.sent == 0 || self.is_behind_gateway(flow, side),
            receiver: (delivery.received == 0 && !would_show && !is_all_lost)
                || self.is_behind_gateway(flow, side.other()),
        }
    }

    /// Whether the trace shows `node` as an end; where agents' lines are shown any line of it will do.
    fn shows(&self, flow: &Flow, node: Address, delivery: &Delivery) -> bool {
        self.nodes.contains(&node) || (delivery.layer == Some(NodeLayer::Agent) && self.has_lines(flow, node))
    }

    /// Whether the packets of `side` reach the nodes of the trace by a radio that it does not show.
    fn is_behind_gateway(&self, flow: &Flow, side: Side) -> bool {
        let source = self.sources.get(flow.source as usize);
        source.is_some_and(|source| source.addresses_behind_gateways.contains(&address(flow, side)))
    }

    /// Whether the trace has any line of the node whose number an address is.
    fn has_lines(&self, flow: &Flow, node: Address) -> bool {
        let Some(source) = self.sources.get(flow.source as usize) else { return false };
        let name = address_text(node, flow.key().family(), source.notation());
        self.names.contains(&(flow.source, name.as_str()))
    }
}

fn address(flow: &Flow, side: Side) -> Address {
    flow.key().end(side).0
}

/// Find out whether packets that are counted by their numbers may all have been lost after the capture.
pub(super) fn find_hidden_arrivals(flow: &mut Flow, options: &Options) {
    for side in [Side::Low, Side::High] {
        let is_hidden = flow.delivery(side).is_some_and(|delivery| {
            delivery.counted.is_some() && !shows_numbered_arrivals(flow, side, delivery, options)
        });
        if is_hidden {
            flow.deliveries_mut().of_mut(side).missing.receiver = true;
        }
    }
}

/// Whether a capture of numbered packets shows arrivals: they came whole, and it was made at the receiver, or within its host; numbers
/// are missing, so that it was at least not made at the sender; or the receiver reports no further loss.
fn shows_numbered_arrivals(flow: &Flow, side: Side, delivery: &Delivery, options: &Options) -> bool {
    match believed(options.vantage_of(flow, side)) {
        _ if flow.numbers_first_fragments(side) => false,
        Some(Vantage::Sender) => false,
        Some(Vantage::Receiver) => true,
        Some(Vantage::Middle) | None => {
            let is_within_host = address(flow, side) == address(flow, side.other());
            let reported = flow.transport.rtp().and_then(|rtp| rtp.direction(side).reported_loss());
            delivery.lost > 0 || is_within_host || reported.is_some()
        }
    }
}

/// Find out which ends a simulator's trace does not show.
pub(super) fn find_missing_ends(flows: &mut FlowTable, sources: &[SourceSummary]) {
    let ends = ShownEnds::of(flows, sources);
    for flow in flows.iter_mut().filter(|flow| flow.is_simulated()) {
        let missing = [Side::Low, Side::High].map(|side| (side, ends.missing(flow, side)));
        for (side, missing) in missing {
            flow.deliveries_mut().of_mut(side).missing = missing;
        }
    }
}
