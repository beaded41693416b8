//! The only file that names PyO3, with those below it: what `_native.pyi` promises, and nothing else.
#![allow(missing_docs)]

mod arguments;
mod capture_files;
mod capture_writer;
mod chains;
mod files;
mod layout;
mod names;
mod packets;
mod replay;
mod settings;
mod spool;
mod summaries;
mod table;

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use arrow_schema::DataType;

use crate::error::{Problem, ProblemKind};
use crate::input::bytes;
use crate::input::filter::Compiler;
use crate::input::source::Source;
use crate::pass::release::release_rest;
use crate::pass::{Analysis as Core, Options, TakeRows};
use crate::tables::{Description, TABLES, Table as CoreTable, explain, group_rows, sequence_tiles};
use arguments::{Progress, PythonCompiler, SourceArgument, Sources};
use capture_writer::CaptureWriter;
use packets::PacketReader;
use settings::Settings;
use spool::{DirectionSpool, FilledSpool, SpoolFile};
use summaries::{clock_to_python, problems_to_python, sources_to_python};
use table::{Table, arrow_error};

/// The result of one pass.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
struct Analysis {
    core: Arc<Core>,
    spool: Option<Arc<FilledSpool>>,
    first_flow: u32,
}

#[pymethods]
impl Analysis {
    /// A table by its name; empty if it was not collected.
    fn table(&self, name: &str) -> PyResult<Table> {
        let rows = CoreTable::by_name(name).and_then(|table| table.rows(&self.core, self.first_flow));
        rows.map(Table::of).ok_or_else(|| PyValueError::new_err(format!("a pass has no table `{name}`")))
    }

    /// The tiles of its time-sequence graphs.
    fn sequence_tiles(&self) -> Table {
        Table::of(sequence_tiles(&self.core, self.first_flow))
    }

    #[getter]
    fn clock<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let pairing = self.core.results.pairing.as_ref().filter(|pairing| pairing.network.is_none());
        pairing.map(|pairing| clock_to_python(py, pairing)).transpose()
    }

    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        sources_to_python(py, &self.core.carried.sources)
    }

    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        problems_to_python(py, &self.core.carried.problems, self.first_flow)
    }

    /// Flows that began before the stretch of time, and those that went on after it.
    #[getter]
    fn cut_flows(&self) -> (usize, usize) {
        self.core.results.cut_flows.count()
    }

    /// What was kept for a replay.
    #[getter]
    fn spool(&self) -> Option<DirectionSpool> {
        let filled = self.spool.as_ref().map(Arc::clone)?;
        Some(DirectionSpool { filled, first_flow: self.first_flow })
    }

    /// The same result with its flows numbered from `first_flow`.
    fn numbered_from(&self, first_flow: u32) -> Self {
        Self { core: Arc::clone(&self.core), spool: self.spool.clone(), first_flow }
    }
}

/// Where what a pass does not keep goes.
#[derive(FromPyObject)]
enum Destination {
    /// What a replay needs of each direction.
    Spool(Py<SpoolFile>),
    /// Rows of groups, to a callable.
    Rows(Py<PyAny>),
}

#[pyfunction]
#[pyo3(signature = (sources, settings, *, collect = HashSet::new(), bin_ns = None, into = None, progress = None))]
fn analyse(
    py: Python<'_>,
    sources: Vec<SourceArgument>,
    settings: Settings,
    collect: HashSet<String>,
    bin_ns: Option<i64>,
    into: Option<Destination>,
    progress: Option<Py<Progress>>,
) -> PyResult<Analysis> {
    let Settings { options, filter } = settings.collecting(collect, bin_ns)?;
    let read_options = options.clone();
    run(py, options, filter, progress, |core, compiler, progress| {
        match into {
            Some(Destination::Spool(file)) => core.spool_into(file.get().spool()),
            Some(Destination::Rows(callable)) => {
                core.release_groups(released_to(callable, Arc::clone(progress)));
            }
            None => {}
        }
        let sources = Sources::new(sources, &read_options, Arc::clone(progress));
        let plan = sources.plan(compiler, read_options.max_flows)?;
        core.read_planned(plan, &|number| sources.open(number), compiler)
    })
}

#[pyfunction]
#[pyo3(signature = (sources, settings, *, collect = HashSet::new(), bin_ns = None, clock_offset_ns = None, progress = None))]
fn analyse_pair(
    py: Python<'_>,
    sources: Vec<OsString>,
    settings: Settings,
    collect: HashSet<String>,
    bin_ns: Option<i64>,
    clock_offset_ns: Option<i64>,
    progress: Option<Py<Progress>>,
) -> PyResult<Analysis> {
    let Settings { options, filter } = settings.collecting(collect, bin_ns)?;
    run(py, options, filter, progress, |core, compiler, progress| {
        core.read_pair(&sources, clock_offset_ns, compiler, progress)
    })
}

/// Earliest and latest time of a packet of one trace; unless `whole`, only the first packet of each source is
/// read.
#[pyfunction]
#[pyo3(signature = (sources, settings, *, whole, progress = None))]
fn time_span(
    py: Python<'_>,
    sources: Vec<SourceArgument>,
    settings: Settings,
    whole: bool,
    progress: Option<Py<Progress>>,
) -> Option<(i64, i64)> {
    let progress = progress.map_or_else(Arc::default, |progress| Arc::clone(&progress.get().shared));
    py.detach(|| {
        let numbers = 0..sources.len();
        let sources = Sources::new(sources, &settings.options, progress);
        let spans = numbers.filter_map(|number| sources.open(number).time_span(whole));
        spans.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    })
}

/// Every table with its columns: name, what one row is, and name, type, unit, meaning and when null.
#[pyfunction]
fn tables() -> Vec<(&'static str, &'static str, Vec<ColumnTuple>)> {
    let column = |(column, data_type): (Description, DataType)| {
        let kind = match data_type {
            DataType::Utf8 => "string".to_owned(),
            number => format!("{number:?}").to_lowercase(),
        };
        (column.name, kind, column.unit, column.meaning(), column.null_when)
    };
    let columns = |table: &CoreTable| table.columns().into_iter().map(column).collect();
    TABLES.iter().map(|table| (table.name, table.row, columns(table))).collect()
}

/// A table by its name, without rows.
#[pyfunction]
fn empty_table(name: &str) -> PyResult<Table> {
    let table = CoreTable::by_name(name).map(|table| Table::of(table.empty()));
    table.ok_or_else(|| PyValueError::new_err(format!("there is no table `{name}`")))
}

/// Name, type, unit, meaning and when null.
type ColumnTuple = (&'static str, String, &'static str, String, &'static str);

/// Run `read` on a new analysis, without Python's lock.
fn run(
    py: Python<'_>,
    options: Options,
    filter: Option<PythonCompiler>,
    progress: Option<Py<Progress>>,
    read: impl FnOnce(&mut Core, Option<&dyn Compiler>, &Arc<bytes::Progress>) -> Result<(), String> + Send,
) -> PyResult<Analysis> {
    let progress = progress.map_or_else(Arc::default, |progress| Arc::clone(&progress.get().shared));
    let outcome = py.detach(|| {
        let mut core = Core::new(options);
        read(&mut core, filter.as_ref().map(|compiler| compiler as &dyn Compiler), &progress)?;
        core.finish();
        explain(&mut core);
        release_rest(&mut core);
        Ok((FilledSpool::of(&mut core), core))
    });
    let (spool, core) = outcome.map_err(|words: String| match &filter {
        Some(compiler) => compiler.exception(words),
        None => PyRuntimeError::new_err(words),
    })?;
    check_cancelled(&core.carried.problems)?;
    Ok(Analysis { core: Arc::new(core), spool: spool?.map(Arc::new), first_flow: 1 })
}

/// Calls `callable` with rows of groups, and whether each replaces one that was given before; if that raises, the
/// pass is cancelled.
fn released_to(callable: Py<PyAny>, progress: Arc<bytes::Progress>) -> TakeRows {
    Box::new(move |core, numbers| {
        let rows = group_rows(core, numbers);
        let row = |&number: &u32| core.carried.groups().and_then(|groups| groups.row(number));
        let revised: Vec<bool> = numbers.iter().filter_map(row).map(|row| row.is_released).collect();
        let called = Python::attach(|py| {
            let table = Table::of(Box::new(rows.map_err(arrow_error)?));
            callable.call1(py, (table, revised)).map(drop)
        });
        if called.is_err() {
            progress.cancelled.store(true, Ordering::Relaxed);
        }
    })
}

/// Whether a file's content is of a known format, even if it is damaged.
#[pyfunction]
fn is_trace(py: Python<'_>, path: OsString) -> PyResult<bool> {
    let opened = py.detach(|| bytes::Input::open(&path, None, &Arc::default()));
    match opened.and_then(|input| Source::open(input, None)) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind, ProblemKind::CannotOpen | ProblemKind::ReadFailed) => {
            Err(PyOSError::new_err(error.message))
        }
        Err(error) => Ok(match error.kind {
            ProblemKind::NotACapture | ProblemKind::Empty => false,
            // Anything may fail to decompress; other errors concern a place in a trace.
            ProblemKind::BadCompression | ProblemKind::Truncated => error.byte.is_some(),
            _ => true,
        }),
    }
}

fn check_cancelled(problems: &[Problem]) -> PyResult<()> {
    if problems.iter().any(|problem| problem.error.kind == ProblemKind::Cancelled) {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    Ok(())
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Table>()?;
    module.add_class::<Progress>()?;
    module.add_class::<Analysis>()?;
    module.add_class::<PacketReader>()?;
    module.add_class::<CaptureWriter>()?;
    module.add_class::<SpoolFile>()?;
    module.add_class::<DirectionSpool>()?;
    module.add_function(wrap_pyfunction!(analyse, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_pair, module)?)?;
    module.add_function(wrap_pyfunction!(chains::analyse_chain, module)?)?;
    module.add_function(wrap_pyfunction!(is_trace, module)?)?;
    module.add_function(wrap_pyfunction!(capture_files::capture_extent, module)?)?;
    module.add_function(wrap_pyfunction!(capture_files::file_digest, module)?)?;
    module.add_function(wrap_pyfunction!(time_span, module)?)?;
    module.add_function(wrap_pyfunction!(tables, module)?)?;
    module.add_function(wrap_pyfunction!(empty_table, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_arrow, module)?)?;
    module.add_function(wrap_pyfunction!(table::safe_csv_cell, module)?)?;
    names::add(module)?;
    replay::add(module)
}
