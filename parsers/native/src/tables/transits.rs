//! Packets between two captures, as a table; and what a row of flows says of the two captures.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::{Columns, Rows};
use crate::flow::direction_name;
use crate::input::source_summary::SourceSummary;
use crate::packet::event::Endpoints;
use crate::pair::Tap;
use crate::pass::{Analysis, CapturePair, Transit};

/// The table of packets between two captures, in the order in which they were sent.
pub struct TransitRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl TransitRows {
    fn all(&self) -> &[Transit] {
        self.analysis.pairing.as_ref().map_or(&[], |pairing| &pairing.transits.kept)
    }
}

impl Rows for TransitRows {
    fn len(&self) -> usize {
        self.all().len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.all().get(start..end).unwrap_or_default();
        let has_delays = self.analysis.pairing.as_ref().is_some_and(|pairing| pairing.has_delays());
        let forward = |flow: u32| self.analysis.flows.get(flow).forward();
        let delay_ns = |row: &Transit| {
            let (near, far) = row.near.zip(row.far).filter(|_| has_delays)?;
            Some(far.0.saturating_sub(near.0))
        };
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.flow + self.first_flow));
        columns
            .text("direction", rows.iter().map(|row| direction_name(row.side, forward(row.flow))).map(Some));
        columns.text("fate", rows.iter().map(|row| Some(row.fate.name())));
        columns.i64("sent_ns", rows.iter().map(|row| row.near.map(|near| near.0)));
        columns.i64("received_ns", rows.iter().map(|row| row.far.map(|far| far.0)));
        columns.i64("delay_ns", rows.iter().map(delay_ns));
        columns.u64("sent_packet", rows.iter().map(|row| row.near.map(|near| near.1)));
        columns.u64("received_packet", rows.iter().map(|row| row.far.map(|far| far.1)));
        columns.u32("payload_bytes", rows.iter().map(|row| row.payload_bytes));
        columns.finish(rows.len())
    }
}

/// Which capture packets between `endpoints` pass first, and how far their delays can be trusted.
pub(super) fn note_on_pair(
    pairing: &CapturePair,
    endpoints: &Endpoints,
    sources: &[SourceSummary],
) -> Vec<String> {
    let name = |tap: Tap| sources.get(tap as usize).map_or("", |source| source.source.as_str());
    let mut notes = Vec::new();
    if let Some((first, evidence)) = pairing.first_tap(endpoints) {
        let (near, far) = (name(first), name(first.other()));
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
