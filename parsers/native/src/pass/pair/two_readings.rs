//! Two readings of all captures: one for clocks and routes, one for the packets.

use super::{CapturePair, Transit};
use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::flow::FlowTable;
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::packet::key::Side;
use crate::pair::first_reading::FirstReading;
use crate::pair::merge::for_each_packet;
use crate::pair::{MOST_CAPTURES, Tap};
use crate::pass::state::Analysis;

/// The captures of a path or network while they are read again, and the pass that their packets are of.
pub(super) struct PairedReading<'a> {
    pub analysis: &'a mut Analysis,
    pub pairing: CapturePair,
}

/// Read captures that are opened elsewhere, each twice. An error is the filter's, worded by libpcap.
pub(in crate::pass) fn read_captures(
    analysis: &mut Analysis,
    captures: usize,
    open: &dyn Fn(Tap) -> Reading,
    given_offset_ns: Option<i64>,
    compiler: Option<&dyn Compiler>,
) -> Result<(), String> {
    let taps = || (0..captures.min(MOST_CAPTURES)).map(|tap| Tap(tap as u8));
    let mut readings: Vec<_> = taps().map(open).collect();
    let problems = &mut analysis.carried.problems;
    if !readings.iter().all(Reading::is_capture) {
        refuse(readings, problems);
        return Ok(());
    }
    let options = &analysis.options;
    let survey = |reading| FirstReading::read(reading, compiler, options.max_flows, captures);
    let surveys = readings.iter_mut().map(survey).collect::<Result<Vec<_>, _>>()?;
    let mut pairing = CapturePair::new(surveys, given_offset_ns, options.samples_of("transits"));
    if !pairing.has_common_packets() {
        let names: Vec<_> = readings.iter().map(|reading| reading.source().to_owned()).collect();
        refuse(readings, problems);
        problems.push(no_common_packets(&names, &pairing));
        return Ok(());
    }
    drop(readings);
    let mut readings: Vec<_> = taps().map(open).collect();
    if let Some(stretch) = options.stretch {
        pairing.keep_to(stretch);
        for (at, reading) in readings.iter_mut().enumerate() {
            // The ends are of the first clock.
            let of_clock = if at == 0 { stretch } else { stretch.map(|ns| pairing.clock.to_second(ns)) };
            reading.keep_to(Some(of_clock));
        }
    }
    PairedReading { analysis, pairing }.read(readings, compiler)
}

impl PairedReading<'_> {
    /// Pass the packets of all captures to their flows.
    fn read(mut self, mut readings: Vec<Reading>, compiler: Option<&dyn Compiler>) -> Result<(), String> {
        let mut summaries: Vec<_> =
            readings.iter().map(|reading| SourceSummary::new(reading.source())).collect();
        let clock = self.pairing.clock;
        for_each_packet(&mut readings, compiler, &clock, &mut summaries, |tap, packet, extras, summary| {
            self.analysis.carried.links.capture = tap.0;
            self.take_paired(tap, packet, extras, summary);
        })?;
        while let Some(alone) = self.pairing.waiting.take_oldest() {
            self.give_up(alone);
        }
        let Self { analysis, mut pairing } = self;
        pairing.finish_hops();
        if !pairing.has_delays() {
            forget_delays(&mut analysis.carried.flows);
        }
        let sent_ns = |transit: &Transit| transit.near.or(transit.far).map(|place| place.0);
        pairing.transits.kept.sort_by_key(sent_ns);
        let caveat = pairing.caveat().map(|error| (1, error));
        let losses =
            (0..readings.len()).filter_map(|capture| Some((capture, pairing.losses_of(Tap(capture as u8))?)));
        analysis.carried.problems.extend(
            caveat
                .into_iter()
                .chain(losses)
                .map(|(capture, error)| Problem::of_source(readings[capture].source(), error)),
        );
        for (reading, summary) in readings.into_iter().zip(summaries) {
            analysis.close(reading, summary);
        }
        analysis.results.pairing = Some(Box::new(pairing));
        Ok(())
    }
}

fn forget_delays(flows: &mut FlowTable) {
    let others = flows.iter_mut().filter_map(|flow| flow.transport.non_tcp_if_any());
    for deliveries in others.filter_map(|others| others.deliveries.as_deref_mut()) {
        deliveries.of_mut(Side::Low).forget_delays();
        deliveries.of_mut(Side::High).forget_delays();
    }
}

/// Report why there is no pair: an input could not be read, or is no capture.
fn refuse(readings: Vec<Reading>, found: &mut Vec<Problem>) {
    for reading in readings {
        let mut summary = SourceSummary::new(reading.source());
        let is_capture = reading.is_capture();
        let source = reading.source().to_owned();
        let mut problems = reading.finish(&mut summary);
        problems.retain(|problem| problem.error.kind != ProblemKind::NoPackets);
        if !is_capture && !problems.iter().any(|problem| problem.error.kind.is_error()) {
            let message = format!("a pair needs captures, and this is a {} trace", summary.format);
            let error = ReadError::whole(ProblemKind::Unsupported, message).hint(Hint::PairOfSimulation);
            problems.push(Problem::of_source(&source, error));
        }
        found.extend(problems);
    }
}

/// The captures have no packet in common.
fn no_common_packets(names: &[String], pairing: &CapturePair) -> Problem {
    let counts: Vec<_> = pairing.surveys.iter().map(|survey| survey.packets).collect();
    let empty = counts.iter().position(|&packets| packets == 0).filter(|_| counts.len() == 2);
    let (place, message) = match (empty, counts.as_slice()) {
        (Some(place), _) => (place, "there are no TCP, UDP or DCCP packets in it".to_owned()),
        (None, [packets, others]) => {
            let which =
                format!("{packets} TCP, UDP and DCCP packets is among the {others} of the other capture");
            (0, format!("none of its {which}"))
        }
        (None, _) => {
            let (packets, captures) = (counts.iter().sum::<u64>(), counts.len());
            let message = format!(
                "none of the {packets} TCP, UDP and DCCP packets is in two of the {captures} captures"
            );
            (0, message)
        }
    };
    let source = names.get(place).map_or("", String::as_str);
    let error = ReadError::whole(ProblemKind::NotAPair, message).hint(Hint::PacketsChanged);
    Problem::of_source(source, error)
}
