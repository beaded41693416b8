//! Packets between two captures, in order of sending; and the note on the pair in the table of
//! flows.

use super::column::column;
use super::samples::{Sample, SampleRow};
use super::{Column, Row};
use crate::input::source_summary::SourceSummary;
use crate::packet::event::Endpoints;
use crate::packet::key::Side;
use crate::pair::Tap;
use crate::pass::{Analysis, CapturePair, Transit};

impl Sample for Transit {
    fn kept(analysis: &Analysis) -> &[Self] {
        analysis.results.pairing.as_ref().map_or(&[], |pairing| &pairing.transits.kept)
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

impl<'a> Row<'a> for SampleRow<'a, Transit> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "`fwd` or `rev`").name(|row| Some(row.direction)),
        column(
            "fate",
            "",
            "`arrived` (in both captures), `lost` (between them), `duplicate` (arrived once more), \
             `missed` (acknowledged, though the other has not got it), `unsent` (only in the other), `unknown` (the other was not running when it should have \
             come)",
        )
        .name(|row| Some(row.sample.fate.name())),
        column(
            "sent_ns",
            "ns",
            "when it passed the capture nearer to its sender, by the clock of the first capture",
        )
        .null_when("`duplicate` or `unsent`")
        .i64(|row| Some(row.sample.near?.0)),
        column("received_ns", "ns", "when it passed the other, by the same clock")
            .null_when("`lost`, `missed` or `unknown`")
            .i64(|row| Some(row.sample.far?.0)),
        column("delay_ns", "ns", "from one to the other")
            .null_when("not `arrived`, or the offset is not known")
            .i64(|row| row.delay_ns()),
        column("sent_packet", "", "its number in the capture nearer to its sender")
            .null_when("as sent_ns")
            .u64(|row| Some(row.sample.near?.1)),
        column("received_packet", "", "its number in the other")
            .null_when("as received_ns")
            .u64(|row| Some(row.sample.far?.1)),
        column(
            "payload_bytes",
            "bytes",
            "transport payload; a segment that was several packets on the wire has a row for each",
        )
        .u32(|row| Some(row.sample.payload_bytes)),
    ]];
}

impl SampleRow<'_, Transit> {
    fn delay_ns(&self) -> Option<i64> {
        let (near, far) = self.sample.near.zip(self.sample.far)?;
        let has_delays = self.analysis.results.pairing.as_ref().is_some_and(|pairing| pairing.has_delays());
        has_delays.then(|| far.0.saturating_sub(near.0))
    }
}

/// The capture that packets between `endpoints` pass first, and the uncertainty of their delays.
pub(super) fn note_on_pair(
    pairing: &CapturePair,
    endpoints: &Endpoints,
    sources: &[SourceSummary],
) -> Vec<String> {
    let name = |tap: Tap| sources.get(tap.index()).map_or("", |source| source.source.as_str());
    let mut notes = Vec::new();
    if let Some(route) = pairing.route(endpoints) {
        notes.push(format!("passes {} captures, as the table `hops` shows", route.len()));
    } else if let Some((ends, evidence)) = pairing.ends(endpoints) {
        let (near, far) = (name(ends.near), name(ends.far));
        notes.push(format!("seen first in {near} and then in {far} ({})", evidence.words()));
    }
    if !pairing.has_delays() {
        notes.push(
            "no delay, because without packets of the other direction the offset of the clocks is not known"
                .into(),
        );
    } else if let Some(half_ms) = pairing.uncertainty_ms() {
        notes.push(format!("delays within {half_ms:.3} ms, as the path may not be the same both ways"));
    }
    notes
}
