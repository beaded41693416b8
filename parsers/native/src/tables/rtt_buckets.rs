//! Round-trip times in buckets: what their percentiles are read from, and what adds up over flows and traces.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::flows::FlowRow;
use super::{Columns, Rows};
use crate::flow::rtt_statistics::Bucket;
use crate::pass::Analysis;

/// The table of buckets that have samples, in order of flow, direction and time.
pub struct RttBucketRows {
    /// Number of the flow, its direction, and the bucket.
    rows: Vec<(u32, &'static str, Bucket)>,
}

impl RttBucketRows {
    /// All buckets of `analysis`, whose flows are numbered from `first_flow`.
    pub fn new(analysis: &Arc<Analysis>, first_flow: u32) -> Self {
        let mut rows = Vec::new();
        for row in 0..2 * analysis.flows.len() {
            let of = FlowRow::at(analysis, row, first_flow);
            let buckets = of.rtt().map(|(_, sketch)| sketch.buckets()).unwrap_or_default();
            rows.extend(buckets.into_iter().map(|bucket| (of.number, of.direction_name(), bucket)));
        }
        Self { rows }
    }
}

impl Rows for RttBucketRows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows.get(start..end).unwrap_or_default();
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.0));
        columns.text("direction", rows.iter().map(|row| Some(row.1)));
        columns.u64("from_ns", rows.iter().map(|row| row.2.from));
        columns.u64("to_ns", rows.iter().map(|row| row.2.to));
        columns.u64("samples", rows.iter().map(|row| u64::from(row.2.count)));
        columns.finish(rows.len())
    }
}
