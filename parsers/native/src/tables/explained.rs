//! What held each direction back, for all tables that tell it.

use std::io;

use super::round_samples::put_rounds_of_senders;
use super::shown::{Shown, each_flow};
use crate::flow::tcp::causes::{ExplainedDirection, Sign, View, tell_shared_queues};
use crate::flow::tcp::vantage::{BELIEVED, Vantage};
use crate::flow::{Flow, direction_name};
use crate::packet::event::Address;
use crate::packet::key::Side;
use crate::pass::Analysis;

/// Find what held each direction with data back, if that was collected, and give away from its sender the rounds that
/// this saw. To be called once, at the end of a pass.
pub fn explain(analysis: &mut Analysis) {
    let Some(mut ledgers) = analysis.results.ledgers.take() else { return };
    let mut all = Vec::new();
    let mut hosts = Vec::new();
    let read = each_flow(analysis, |shown, flow| {
        let forward = shown.flow(flow).forward();
        for side in [forward, forward.other()] {
            if let Some(view) = ledgers.get_mut(flow, side) {
                let place = (flow, side, direction_name(side, forward));
                let hides = hidden_by(shown, flow, side, view);
                let sees_flight = shown.options.shows_flight(shown.flow(flow), side);
                all.push(ExplainedDirection::of(view, place, hides, sees_flight));
                hosts.push(Hosts::of(shown.flow(flow), side));
            }
        }
    });
    tell_shared_queues_of_hosts(&mut all, hosts);
    put_rounds_of_senders(analysis, &mut ledgers, &all);
    ledgers.explained = read.map(|()| all);
    analysis.results.ledgers = Some(ledgers);
}

/// The hosts that a direction is between, in one source of packets, which has one clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hosts {
    source: u32,
    from: Address,
    to: Address,
}

impl Hosts {
    fn of(flow: &Flow, side: Side) -> Self {
        let [from, to] = [side, side.other()].map(|end| flow.key().end(end).0);
        Self { source: flow.source, from, to }
    }
}

/// Tell where directions between the same hosts shared a queue.
fn tell_shared_queues_of_hosts(all: &mut [ExplainedDirection], hosts: Vec<Hosts>) {
    let mut places: Vec<_> = all.iter_mut().zip(hosts).filter(|(of, _)| of.stands_in_queue()).collect();
    places.sort_by_key(|&(_, hosts)| hosts);
    for same in places.chunk_by_mut(|(_, one), (_, other)| one == other).filter(|same| same.len() > 1) {
        tell_shared_queues(&mut same.iter_mut().map(|(of, _)| &mut **of).collect::<Vec<_>>());
    }
}

/// What held each direction with data back, by flow; none if that was not collected.
pub(super) fn explained(analysis: &Analysis) -> io::Result<&[ExplainedDirection]> {
    let Some(ledgers) = &analysis.results.ledgers else { return Ok(&[]) };
    let found = ledgers.explained.as_ref();
    found.map(Vec::as_slice).map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Those of one flow.
pub(super) fn explained_of(all: &[ExplainedDirection], flow: u32) -> &[ExplainedDirection] {
    let first = all.partition_point(|of| of.flow < flow);
    let end = all.partition_point(|of| of.flow <= flow);
    all.get(first..end).unwrap_or_default()
}

/// Why the waits of a side show nothing, if so.
fn hidden_by(shown: Shown<'_>, number: u32, side: Side, view: &View) -> Option<Sign> {
    let flow = shown.flow(number);
    let half = flow.transport.tcp.as_deref()?.half(side);
    // A doubtful place is not taken for the sender's: from another one a wrong cause looks certain. But where
    // the sender's distance is known, the view is the sender's.
    let vantage = shown.options.vantage_of(flow, side);
    let is_seen_from = |(place, confidence)| match view.is_known() {
        true => place == Vantage::Sender || confidence < 1.0 || view.waits.is_estimated,
        false => place == Vantage::Sender && confidence >= BELIEVED,
    };
    if !vantage.is_none_or(is_seen_from) {
        Some(Sign::AwayFromSender)
    } else if half.gap_bytes() > 0 || half.ends_unseen() {
        Some(Sign::MissingData)
    } else if flow.direction(side.other()).packets == 0 {
        Some(Sign::NoAcknowledgements)
    } else {
        view.waits.has_stepped.then_some(Sign::ClockStep)
    }
}
