//! Packets for Python, batch by batch.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arguments::{Progress, PythonCompiler, SourceArgument};
use super::check_cancelled;
use super::settings::Settings;
use super::summaries::{problems_to_python, sources_to_python};
use super::table::Table;
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::packet::batch::{Batch, Item};
use crate::pass::{Analysis as Core, Options};
use crate::tables::packets::PacketRow;

/// Packets of one source, batch by batch.
#[pyclass(module = "tfrctrace.parsers._native")]
pub(super) struct PacketReader {
    core: Core,
    summary: SourceSummary,
    /// None after the end. The lock is never contended: it only makes the class shareable.
    reading: Mutex<Option<Reading>>,
    compiler: Option<PythonCompiler>,
}

#[pymethods]
impl PacketReader {
    #[new]
    #[pyo3(signature = (source, settings, *, progress = None))]
    fn new(
        py: Python<'_>,
        source: SourceArgument,
        settings: Settings,
        progress: Option<Py<Progress>>,
    ) -> Self {
        let Settings { options, filter } = settings;
        let summary = SourceSummary::new(&source.name());
        let progress = progress.map_or_else(Arc::default, |progress| Arc::clone(&progress.get().shared));
        let reading = py.detach(|| source.open(options.format, options.max_decompressed_bytes, &progress));
        // The table of packets shows every layer.
        let core = Core::new(Options { layer: None, vantage: None, ..options });
        Self { core, summary, reading: Mutex::new(Some(reading)), compiler: filter }
    }

    #[pyo3(signature = (rows = 65_536))]
    fn next_batch(&mut self, py: Python<'_>, rows: usize) -> PyResult<Option<Table>> {
        let slot = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(reading) = slot else {
            return Ok(None);
        };
        let (core, summary, compiler) = (&mut self.core, &mut self.summary, &self.compiler);
        let batch = py
            .detach(|| next_packets(reading, core, summary, compiler.as_ref(), rows.max(1)))
            .map_err(|words| match compiler {
                Some(compiler) => compiler.exception(words),
                None => PyRuntimeError::new_err(words),
            })?;
        if batch.is_empty() {
            if let Some(reading) = slot.take() {
                self.core.close(reading, std::mem::take(summary));
            }
            self.core.finish();
            check_cancelled(&self.core.problems)?;
            return Ok(None);
        }
        Ok(Some(Table::of(Box::new(batch))))
    }

    /// Number of flows so far.
    #[getter]
    fn flow_count(&self) -> usize {
        self.core.flows.len()
    }

    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        sources_to_python(py, &self.core.sources)
    }

    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        problems_to_python(py, &self.core.problems)
    }
}

pub(super) fn next_packets(
    reading: &mut Reading,
    core: &mut Core,
    summary: &mut SourceSummary,
    compiler: Option<&PythonCompiler>,
    n: usize,
) -> Result<Vec<PacketRow>, String> {
    let compiler = compiler.map(|compiler| compiler as &dyn Compiler);
    let mut batch = Batch::new(n);
    reading.fill(&mut batch, compiler)?;
    let mut rows = Vec::with_capacity(batch.len());
    for packet in batch.items().map(Item::to_packet) {
        let found = core.take(&packet, batch.extras(), summary);
        rows.push(PacketRow::new(packet, batch.extras(), found, &core.flows, reading));
    }
    Ok(rows)
}
