//! Packets for Python, batch by batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arguments::{Progress, PythonCompiler, SourceArgument, Sources};
use super::check_cancelled;
use super::settings::Settings;
use super::summaries::{problems_to_python, sources_to_python};
use super::table::Table;
use crate::input::filter::Compiler;
use crate::join::order::{Group, Open};
use crate::pass::joined::JoinedGroup;
use crate::pass::{Analysis as Core, Options};
use crate::tables::packets::{NodeNames, PacketRow, PacketRows};

/// Packets of one trace, batch by batch.
#[pyclass(module = "tfrctrace.parsers._native")]
pub(super) struct PacketReader {
    core: Core,
    sources: Sources,
    /// None after the end. The lock is never contended: it only makes the class shareable.
    reading: Mutex<Option<PlannedReading>>,
    compiler: Option<PythonCompiler>,
}

#[pymethods]
impl PacketReader {
    #[new]
    #[pyo3(signature = (sources, settings, *, first_flow = 1, progress = None))]
    fn new(
        py: Python<'_>,
        sources: Vec<SourceArgument>,
        settings: Settings,
        first_flow: u32,
        progress: Option<Py<Progress>>,
    ) -> PyResult<Self> {
        let Settings { options, filter } = settings;
        let progress = progress.map_or_else(Arc::default, |progress| Arc::clone(&progress.get().shared));
        let sources = Sources::new(sources, &options, progress);
        // The table of packets shows every layer.
        let mut core = Core::new(Options { layer: None, vantage: None, ..options });
        let max_flows = core.options.max_flows;
        let plan = py.detach(|| sources.plan(as_compiler(filter.as_ref()), max_flows));
        let plan = plan.map_err(|words| exception(filter.as_ref(), words))?;
        core.carried.problems.extend(plan.problems);
        let reading = PlannedReading {
            groups: plan.groups.into(),
            current: None,
            packets_before: 0,
            first_flow,
            node_names: NodeNames::default(),
        };
        Ok(Self { core, sources, reading: Mutex::new(Some(reading)), compiler: filter })
    }

    #[pyo3(signature = (rows = 65_536))]
    fn next_batch(&mut self, py: Python<'_>, rows: usize) -> PyResult<Option<Table>> {
        Ok(self.next_rows(py, rows)?.map(|rows| Table::of(Box::new(rows))))
    }

    /// Number of flows so far.
    #[getter]
    fn flow_count(&self) -> usize {
        self.core.carried.flows.len()
    }

    /// As of an analysis; known at the end.
    #[getter]
    fn cut_flows(&self) -> (usize, usize) {
        self.core.results.cut_flows.count()
    }

    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        sources_to_python(py, &self.core.carried.sources)
    }

    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        problems_to_python(py, &self.core.carried.problems, 1)
    }
}

impl PacketReader {
    fn next_rows(&mut self, py: Python<'_>, rows: usize) -> PyResult<Option<Vec<PacketRow>>> {
        let slot = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(reading) = slot else {
            return Ok(None);
        };
        let (core, sources, compiler) = (&mut self.core, &self.sources, self.compiler.as_ref());
        let batch = py
            .detach(|| {
                reading.next_packets(core, &|number| sources.open(number), as_compiler(compiler), rows.max(1))
            })
            .map_err(|words| exception(compiler, words))?;
        if batch.is_empty() {
            *slot = None;
            self.core.finish();
            check_cancelled(&self.core.carried.problems)?;
            return Ok(None);
        }
        Ok(Some(batch))
    }
}

fn as_compiler(compiler: Option<&PythonCompiler>) -> Option<&dyn Compiler> {
    compiler.map(|compiler| compiler as &dyn Compiler)
}

fn exception(compiler: Option<&PythonCompiler>, words: String) -> PyErr {
    match compiler {
        Some(compiler) => compiler.exception(words),
        None => PyRuntimeError::new_err(words),
    }
}

/// Files that are read one packet after the other.
struct PlannedReading {
    groups: VecDeque<Group>,
    current: Option<JoinedGroup>,
    packets_before: u64,
    first_flow: u32,
    node_names: NodeNames,
}

impl PlannedReading {
    /// The next `n` packets; fewer only at the end.
    fn next_packets(
        &mut self,
        core: &mut Core,
        open: Open<'_>,
        compiler: Option<&dyn Compiler>,
        n: usize,
    ) -> Result<Vec<PacketRow>, String> {
        let first_flow = self.first_flow;
        let mut rows = Vec::with_capacity(n.min(65_536));
        while rows.len() < n {
            let Some(mut group) = self.current.take().or_else(|| self.next_group(core)) else { break };
            let (most, node_names) = (n - rows.len(), &mut self.node_names);
            let is_taken =
                group.take_some(core, open, compiler, most, |item, extras, found, (core, reading)| {
                    let flows = &core.carried.flows;
                    let mut shown = PacketRows { first_flow, flows, reading, node_names: &mut *node_names };
                    rows.push(shown.row(item, extras, found));
                })?;
            match is_taken {
                true => self.current = Some(group),
                false => self.packets_before = group.close(core),
            }
        }
        Ok(rows)
    }

    fn next_group(&mut self, core: &mut Core) -> Option<JoinedGroup> {
        Some(JoinedGroup::begin(core, self.groups.pop_front()?, self.packets_before))
    }
}
