//! Two readings of two captures: one for the clocks, one for the packets.

use std::ffi::OsStr;
use std::sync::Arc;

use super::{CapturePair, Transit};
use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::input::bytes::Progress;
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::packet::key::Side;
use crate::pair::Tap;
use crate::pair::first_reading::FirstReading;
use crate::pair::merge::for_each_packet;
use crate::pass::{Analysis, BoundedSamples};

impl Analysis {
    /// Read two captures of the same path as one trace, each twice. Their problems go to
    /// `problems`; the error is the filter's, worded by libpcap. The second clock is ahead by
    /// `given_offset_ns` if given, otherwise its offset is estimated.
    pub fn read_pair(
        &mut self,
        sources: [&OsStr; 2],
        given_offset_ns: Option<i64>,
        compiler: Option<&dyn Compiler>,
        progress: &Arc<Progress>,
    ) -> Result<(), String> {
        let (format, most_bytes) = (self.options.format, self.options.max_decompressed_bytes);
        let open = |tap: Tap| Reading::open(sources[tap as usize], format, most_bytes, progress);
        self.read_pair_from(&open, given_offset_ns, compiler)
    }

    /// Read captures that are opened elsewhere, each twice.
    pub fn read_pair_from(
        &mut self,
        open: &dyn Fn(Tap) -> Reading,
        given_offset_ns: Option<i64>,
        compiler: Option<&dyn Compiler>,
    ) -> Result<(), String> {
        let mut readings = Tap::BOTH.map(open);
        if !readings.iter().all(Reading::is_capture) {
            self.refuse(readings);
            return Ok(());
        }
        let [first, second] = &mut readings;
        let max_flows = self.options.max_flows;
        let surveys = [
            FirstReading::read(first, compiler, max_flows)?,
            FirstReading::read(second, compiler, max_flows)?,
        ];
        let transits = BoundedSamples::new(self.options.collects("transits"), self.options.max_samples);
        let mut pairing = CapturePair::new(surveys, given_offset_ns, transits);
        if pairing.estimate.is_none() {
            let names = [0, 1].map(|tap: usize| readings[tap].source().to_owned());
            self.refuse(readings);
            self.report_no_common_packets(names, &pairing);
            return Ok(());
        }
        let mut readings = Tap::BOTH.map(open);
        let mut summaries = [0, 1].map(|tap: usize| SourceSummary::new(readings[tap].source()));
        let clock = pairing.clock;
        for_each_packet(&mut readings, compiler, &clock, &mut summaries, |tap, packet, extras, summary| {
            self.links.capture = tap as u8;
            self.take_paired(&mut pairing, tap, packet, extras, summary);
        })?;
        while let Some(alone) = pairing.waiting.take_oldest() {
            self.give_up(&mut pairing, alone);
        }
        if !pairing.has_delays() {
            for deliveries in self
                .flows
                .iter_mut()
                .filter_map(|flow| flow.non_tcp_if_any().and_then(|others| others.deliveries.as_deref_mut()))
            {
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
        for tap in Tap::BOTH {
            if let Some(error) = pairing.losses_of(tap) {
                let source = readings[tap as usize].source().to_owned();
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
    fn refuse(&mut self, readings: [Reading; 2]) {
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
    fn report_no_common_packets(&mut self, [first, second]: [String; 2], pairing: &CapturePair) {
        let counts = [pairing.surveys[0].packets, pairing.surveys[1].packets];
        let (source, message) = match counts {
            [packets, others] if packets > 0 && others > 0 => {
                let which =
                    format!("{packets} TCP, UDP and DCCP packets is among the {others} of the other capture");
                (first, format!("none of its {which}"))
            }
            [0, _] => (first, "there are no TCP, UDP or DCCP packets in it".to_owned()),
            _ => (second, "there are no TCP, UDP or DCCP packets in it".to_owned()),
        };
        let error = ReadError::whole(ProblemKind::NotAPair, message).hint(Hint::PacketsChanged);
        self.problems.push(Problem { source, flows: Vec::new(), packet: None, packets_before: 0, error });
    }
}
