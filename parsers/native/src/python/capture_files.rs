//! Capture files without an analysis: what one holds, which time it covers, and its digest.

use std::ffi::OsString;
use std::fs::File;
use std::io::Cursor;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::summaries::source_to_python;
use crate::input::bytes::{Input, Progress, digest_of};
use crate::input::capture::last_records::{LastRecords, last_records};
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::packet::batch::Batch;

/// Packets that are decoded at either end.
const PEEK: usize = 16;

/// The summary of the first packets of a trace, the time of the last packet, and whether that is whole.
/// None for both where only reading all would show them.
#[pyfunction]
pub(super) fn capture_extent<'py>(
    py: Python<'py>,
    path: OsString,
) -> PyResult<(Bound<'py, PyDict>, Option<i64>, Option<bool>)> {
    let (head, end) = py.detach(|| {
        let progress = Arc::new(Progress::default());
        let head = first_packets(Reading::open(&path, None, None, &progress), "");
        let is_plain = head.packets > 0 && head.compression.is_empty();
        let end = is_plain.then(|| File::open(&path).ok()).flatten();
        (head, end.and_then(|mut file| last_records(&mut file).ok().flatten()))
    });
    let is_whole = end.as_ref().map(|end| end.is_whole);
    let end_ns = end.and_then(|end| py.detach(|| end_of(end)));
    Ok((source_to_python(py, &head)?, end_ns, is_whole))
}

/// The XXH64 of a file, as `Progress.digest` has it of a file that was read whole.
#[pyfunction]
pub(super) fn file_digest(py: Python<'_>, path: OsString) -> PyResult<String> {
    let digest = py.detach(|| digest_of(&path))?;
    Ok(format!("{:016x}", digest.xxh64))
}

fn first_packets(mut reading: Reading, source: &str) -> SourceSummary {
    let mut summary = SourceSummary::new(source);
    // Nothing can be refused without a filter.
    let _ = reading.fill(&mut Batch::new(PEEK), None);
    reading.finish(&mut summary);
    summary
}

fn end_of(end: LastRecords) -> Option<i64> {
    let progress = Arc::new(Progress::default());
    let input = Input::from_reader(Box::new(Cursor::new(end.capture)), None, &progress);
    let mut reading = Reading::with_input("", input, None, &progress);
    let mut summary = SourceSummary::new("");
    reading.for_each_batch(None, |_| {}).ok()?;
    reading.finish(&mut summary);
    (summary.packets > 0).then_some(summary.end_ns)
}
