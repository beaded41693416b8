//! What a source shows of its own defects: packets that the capture lost, a clock that stepped,
//! packets that are of no flow. Every command reports them, because every pass does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::flow::{Flow, FlowTable};
use crate::input::sender_clocks::{Drift, ProvenStep};
use crate::input::source_summary::SourceSummary;
use crate::input::time_order::ClockSteps;
use crate::packet::event::{Layer, Numbering, Stop};
use crate::packet::key::Side;
use crate::plural::counted;

/// Steps back that need no step of the clock: captures on several queues write records out of order,
/// and simulators round their times.
const MOST_DISORDER_NS: u64 = 1_000_000;
/// Reasons and protocols that are named.
const NAMED: usize = 8;

/// Bytes that were acknowledged and not captured, in the flows of one source.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(in crate::pass) struct CaptureGaps {
    bytes: u64,
    /// These flows, from 0.
    flows: Vec<u32>,
}

/// The same by source.
pub(in crate::pass) type GapsOfSources = BTreeMap<u32, CaptureGaps>;

/// What the sources show of themselves, after the last one.
pub(super) fn source_problems(
    flows: &FlowTable,
    gaps: &mut GapsOfSources,
    sources: &[SourceSummary],
) -> Vec<Problem> {
    flows.here().for_each(|number| note_gaps(gaps, number, flows.get(number)));
    let mut found = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        for (interface, _) in &source.interfaces {
            if let Some(dropped) = interface.counters.dropped.filter(|&dropped| dropped > 0) {
                found.push(placed(source, capture_drops(dropped, interface.name.as_deref()), None));
            }
        }
        if let Some(mut gaps) = gaps.remove(&(at as u32)) {
            gaps.flows.sort_unstable();
            found.push(capture_gap(source, gaps));
        }
        let order = &source.time_order;
        if order.back.count > 0 {
            found.push(placed(source, clock_back(&order.back), Some(order.back.first)));
        }
        if order.ahead.count > 0 {
            found.push(placed(source, clock_ahead(&order.ahead), Some(order.ahead.first)));
        }
        let steps = source.clock.steps.iter();
        found.extend(steps.map(|step| placed(source, clock_step(step), Some(step.packet))));
        found.extend(source.clock.drift.map(|drift| placed(source, clock_drift(drift), None)));
        if flows.is_empty() && source.packets > 0 {
            found.push(placed(source, no_flow(source), None));
        } else if source.undecoded_packets > 0 {
            found.push(placed(source, undecoded(source), unreadable(source).map(|stop| stop.2).min()));
        }
    }
    found
}

/// Note the bytes that are missing in a flow, after its last packet.
pub(in crate::pass) fn note_gaps(gaps: &mut GapsOfSources, number: u32, flow: &Flow) {
    let bytes = gap_bytes(flow);
    if bytes > 0 {
        let of_source = gaps.entry(flow.source).or_default();
        of_source.bytes = of_source.bytes.saturating_add(bytes);
        of_source.flows.push(number);
    }
}

fn gap_bytes(flow: &Flow) -> u64 {
    let counts_packets = flow.deliveries().is_some_and(|both| both.numbering == Numbering::Packets);
    match &flow.transport.tcp {
        Some(tcp) if !counts_packets => {
            [Side::Low, Side::High].map(|side| tcp.half(side).gap_bytes()).iter().sum()
        }
        _ => 0,
    }
}

fn placed(source: &SourceSummary, mut error: ReadError, position: Option<u64>) -> Problem {
    let is_text = source.lines > 0;
    error.line = position.filter(|_| is_text);
    let packet = position.filter(|_| !is_text);
    Problem { packet, ..Problem::of_source(&source.source, error) }
}

fn capture_drops(dropped: u64, interface: Option<&str>) -> ReadError {
    let at = interface.map_or_else(String::new, |name| format!(" at `{name}`"));
    let message = format!("the capture dropped {}{at}", counted(dropped, "packet[s]"));
    ReadError::whole(ProblemKind::CaptureDrops, message).hint(Hint::CaptureDrops)
}

fn capture_gap(source: &SourceSummary, gaps: CaptureGaps) -> Problem {
    let bytes = counted(gaps.bytes, "byte[s] of TCP data [was|were]");
    let message = format!("{bytes} acknowledged but not captured");
    let error = ReadError::whole(ProblemKind::CaptureGap, message).hint(Hint::CaptureGap);
    Problem { flows: gaps.flows, ..placed(source, error, None) }
}

fn clock_back(steps: &ClockSteps) -> ReadError {
    let what = "packet[s] [has|have] a time before [its|their] predecessor's";
    let message = format!("{}, by up to {}", counted(steps.count, what), duration(steps.largest_ns));
    let (kind, hint) = if steps.largest_ns > MOST_DISORDER_NS {
        (ProblemKind::ClockBack, Hint::ClockBack)
    } else {
        (ProblemKind::OutOfOrder, Hint::OutOfOrder)
    };
    ReadError::whole(kind, message).hint(hint)
}

fn clock_ahead(steps: &ClockSteps) -> ReadError {
    let message = format!(
        "the clock jumps ahead by up to {}, {}",
        duration(steps.largest_ns),
        counted(steps.count, "time[s]")
    );
    ReadError::whole(ProblemKind::ClockAhead, message).hint(Hint::ClockAhead)
}

fn clock_step(step: &ProvenStep) -> ReadError {
    let way = if step.step_ns < 0 { "back" } else { "ahead" };
    let message = format!(
        "by the TCP timestamps the clock was set {way} by {} here; no time is measured across",
        duration(step.step_ns.unsigned_abs())
    );
    ReadError::whole(ProblemKind::ClockStep, message).hint(Hint::ClockStep)
}

fn clock_drift(drift: Drift) -> ReadError {
    let how = if drift.ppm < 0.0 { "slow" } else { "fast" };
    let message = format!(
        "the clock runs {:.0} parts per million too {how}, by the TCP timestamps of both ends of {}",
        drift.ppm.abs(),
        counted(drift.connections as u64, "connection[s]")
    );
    ReadError::whole(ProblemKind::ClockDrift, message).hint(Hint::ClockDrift)
}

/// Packets of which no IP header could be read, with the reasons.
fn undecoded(source: &SourceSummary) -> ReadError {
    let reasons = unreadable(source).map(|(stop, packets, _)| (stop.reason.words(stop.layer), *packets));
    let message = format!(
        "no IP header could be read in {}{}",
        counted(source.undecoded_packets, "packet[s]"),
        most_frequent(reasons)
    );
    ReadError::whole(ProblemKind::Undecoded, message).hint(Hint::Undecoded)
}

fn unreadable(source: &SourceSummary) -> impl Iterator<Item = &(Stop, u64, u64)> {
    let is_below_transport = |layer| matches!(layer, Layer::Link | Layer::Ipv4 | Layer::Ipv6);
    source
        .stops
        .iter()
        .filter(move |(stop, ..)| is_below_transport(stop.layer) && !stop.reason.is_without_ip())
}

/// Packets of a source without a flow, by protocol.
fn no_flow(source: &SourceSummary) -> ReadError {
    let stops = source.stops.iter().map(|(stop, packets, _)| (stop.reason.words(stop.layer), *packets));
    let others = [
        ("further kinds", source.other_stops),
        ("TCP or UDP without ports", source.portless_packets),
        ("TCP or UDP beyond the limit of flows", source.untracked_packets),
    ];
    let kinds = stops.chain(others.into_iter().map(|(words, packets)| (words.to_owned(), packets)));
    let message = format!("no packet belongs to a flow{}", most_frequent(kinds));
    ReadError::whole(ProblemKind::NoFlow, message).hint(Hint::NoFlow)
}

/// The most frequent kinds of packets, as a list after a colon.
fn most_frequent(kinds: impl Iterator<Item = (String, u64)>) -> String {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (words, packets) in kinds.filter(|(_, packets)| *packets > 0) {
        *sums.entry(words).or_default() += packets;
    }
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest: u64 = sums.iter().skip(NAMED).map(|(_, packets)| packets).sum();
    sums.truncate(NAMED);
    sums.extend((rest > 0).then(|| ("others".to_owned(), rest)));
    let listed: Vec<String> = sums.iter().map(|(words, packets)| format!("{packets} {words}")).collect();
    if listed.is_empty() { String::new() } else { format!(": {}", listed.join(", ")) }
}

/// A step of the clock in the unit that suits it.
fn duration(ns: u64) -> String {
    const UNITS: [(f64, &str); 5] =
        [(365.0 * 86_400e9, "years"), (86_400e9, "days"), (1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let ns = ns as f64;
    let (scale, unit) = UNITS.into_iter().find(|(scale, _)| ns >= *scale).unwrap_or((1.0, "ns"));
    let value = ns / scale;
    let digits = if unit == "ns" || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_steps_are_written_in_the_unit_that_suits_them() {
        let year_ns = 365 * 86_400 * 1_000_000_000;
        let written = [7, 1_500, 2_000_000, 5_073_000_000, 90_000_000_000_000, 54 * year_ns].map(duration);
        assert_eq!(written, ["7 ns", "1.50 µs", "2.00 ms", "5.07 s", "1.04 days", "54.0 years"]);
    }

    #[test]
    fn test_the_most_frequent_kinds_come_first_and_the_rest_is_summed() {
        let kinds = (1..=10).map(|number| (format!("kind {number}"), number));
        let words = most_frequent(kinds.chain([("ARP".to_owned(), 5), ("ARP".to_owned(), 6)]));
        assert!(words.starts_with(": 11 ARP, 10 kind 10, ") && words.ends_with(", 6 others"), "{words}");
        assert_eq!(most_frequent(std::iter::empty()), "");
    }
}
