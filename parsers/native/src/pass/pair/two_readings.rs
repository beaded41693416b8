//! Two readings of all captures: one for clocks and routes, one for the packets.

use std::ffi::OsString;
use std::sync::Arc;

use super::{CapturePair, Transit};
use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::input::bytes::Progress;
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::packet::key::Side;
use crate::pair::first_reading::FirstReading;
use crate::pair::merge::for_each_packet;
use crate::pair::{MOST_CAPTURES, Tap};
use crate::pass::{Analysis, BoundedSamples};

impl Analysis {
    /// Read captures of the same path or network as one trace, each twice. Their problems go to
    /// `problems`; the error is the filter's, worded by libpcap. The second of two clocks is ahead by
    /// `given_offset_ns` if given, otherwise its offset is estimated; more captures have one clock.
    pub fn read_pair(
        &mut self,
        sources: &[OsString],
        given_offset_ns: Option<i64>,
        compiler: Option<&dyn Compiler>,
        progress: &Arc<Progress>,
    ) -> Result<(), String> {
        let (format, most_bytes) = (self.options.format, self.options.max_decompressed_bytes);
        let tunnel_ports = self.options.tunnel_ports.clone();
        let open = |tap: Tap| {
            let mut reading = Reading::open(&sources[tap.index()], format, most_bytes, progress);
            reading.find_tunnels_at(&tunnel_ports);
            reading
        };
        self.read_pair_from(sources.len(), &open, given_offset_ns, compiler)
    }

    /// Read captures that are opened elsewhere, each twice.
    pub fn read_pair_from(
        &mut self,
        captures: usize,
        open: &dyn Fn(Tap) -> Reading,
        given_offset_ns: Option<i64>,
        compiler: Option<&dyn Compiler>,
    ) -> Result<(), String> {
        let taps = || (0..captures.min(MOST_CAPTURES)).map(|tap| Tap(tap as u8));
        let mut readings: Vec<_> = taps().map(open).collect();
        if !readings.iter().all(Reading::is_capture) {
            self.refuse(readings);
            return Ok(());
        }
        let max_flows = self.options.max_flows;
        let survey = |reading| FirstReading::read(reading, compiler, max_flows, captures);
        let surveys = readings.iter_mut().map(survey).collect::<Result<Vec<_>, _>>()?;
        let transits = BoundedSamples::new(self.options.collects("transits"), self.options.max_samples);
        let mut pairing = CapturePair::new(surveys, given_offset_ns, transits);
        if !pairing.has_common_packets() {
            let names: Vec<_> = readings.iter().map(|reading| reading.source().to_owned()).collect();
            self.refuse(readings);
            self.report_no_common_packets(&names, &pairing);
            return Ok(());
        }
        drop(readings);
        let mut readings: Vec<_> = taps().map(open).collect();
        if let Some(stretch) = self.options.stretch {
            pairing.keep_to(stretch);
            for (at, reading) in readings.iter_mut().enumerate() {
                // The ends are of the first clock.
                let own = if at == 0 { stretch } else { stretch.map(|ns| pairing.clock.to_second(ns)) };
                reading.keep_to(Some(own));
            }
        }
        let mut summaries: Vec<_> =
            readings.iter().map(|reading| SourceSummary::new(reading.source())).collect();
        let clock = pairing.clock;
        for_each_packet(&mut readings, compiler, &clock, &mut summaries, |tap, packet, extras, summary| {
            self.links.capture = tap.0;
            self.take_paired(&mut pairing, tap, packet, extras, summary);
        })?;
        while let Some(alone) = pairing.waiting.take_oldest() {
            self.give_up(&mut pairing, alone);
        }
        pairing.finish_hops();
        if !pairing.has_delays() {
            for deliveries in self.flows.iter_mut().filter_map(|flow| {
                flow.transport.non_tcp_if_any().and_then(|others| others.deliveries.as_deref_mut())
            }) {
                deliveries.of_mut(Side::Low).forget_delays();
                deliveries.of_mut(Side::High).forget_delays();
            }
        }
        let sent_ns = |transit: &Transit| transit.near.or(transit.far).map(|place| place.0);
        pairing.transits.kept.sort_by_key(sent_ns);
        if let Some(error) = pairing.caveat() {
            let source = readings[1].source().to_owned();
            self.problems.push(Problem { source, flows: Vec::new(), packet: None, packets_before: 0, error });
        }
        for tap in taps() {
            if let Some(error) = pairing.losses_of(tap) {
                let source = readings[tap.index()].source().to_owned();
                self.problems.push(Problem {
                    source,
                    packet: None,
                    packets_before: 0,
                    flows: Vec::new(),
                    error,
                });
            }
        }
        for (reading, summary) in readings.into_iter().zip(summaries) {
            self.close(reading, summary);
        }
        self.pairing = Some(Box::new(pairing));
        Ok(())
    }

    /// Report why there is no pair: an input could not be read, or is no capture.
    fn refuse(&mut self, readings: Vec<Reading>) {
        for reading in readings {
            let mut summary = SourceSummary::new(reading.source());
            let is_capture = reading.is_capture();
            let source = reading.source().to_owned();
            let mut problems = reading.finish(&mut summary);
            problems.retain(|problem| problem.error.kind != ProblemKind::NoPackets);
            if !is_capture && !problems.iter().any(|problem| problem.error.kind.is_error()) {
                let message = format!("a pair needs captures, and this is a {} trace", summary.format);
                let error = ReadError::whole(ProblemKind::Unsupported, message).hint(Hint::PairOfSimulation);
                problems.push(Problem { source, flows: Vec::new(), packet: None, packets_before: 0, error });
            }
            self.problems.extend(problems);
        }
    }

    /// Report that the captures have no packet in common.
    fn report_no_common_packets(&mut self, names: &[String], pairing: &CapturePair) {
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
        let source = names.get(place).cloned().unwrap_or_default();
        let error = ReadError::whole(ProblemKind::NotAPair, message).hint(Hint::PacketsChanged);
        self.problems.push(Problem { source, flows: Vec::new(), packet: None, packets_before: 0, error });
    }
}
