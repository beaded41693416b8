//! The only file that names PyO3, with those below it: what `_native.pyi` promises, and nothing else.
#![allow(missing_docs)]

mod arguments;
mod layout;
mod names;
mod packets;
mod replay;
mod summaries;
mod table;

use std::ffi::OsString;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::{Problem, ProblemKind};
use crate::flow::bins::BinWidth;
use crate::input::bytes;
use crate::input::filter::Compiler;
use crate::input::source::Source;
use crate::pass::{Analysis as Core, Options};
use crate::tables::flows::FlowRows;
use crate::tables::rounds::RoundRows;
use crate::tables::rtp::RtpSourceRows;
use crate::tables::rtt_buckets::RttBucketRows;
use crate::tables::tcp_details::DetailRows;
use crate::tables::tfrc::{FeedbackRows, FindingRows, LossEventRows, LossIntervalRows};
use crate::tables::time_series::{BinRows, LossRows, RttRows, VariableRows};
use crate::tables::transits::TransitRows;
use crate::tables::wifi_links::{LinkRows, LinkSampleRows};
use arguments::{Progress, PythonCompiler, SourceArgument};
use layout::{GivenLayout, layouts};
use names::{format_by_name, layer_by_name, parameters, profile_by_name, vantage_by_name};
use packets::PacketReader;
use summaries::{clock_to_python, problems_to_python, sources_to_python};
use table::Table;

/// The result of one pass.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
struct Analysis {
    core: Arc<Core>,
    first_flow: u32,
}

#[pymethods]
impl Analysis {
    #[getter]
    fn flows(&self) -> Table {
        Table::of(FlowRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn bins(&self) -> Table {
        Table::of(BinRows::new(Arc::clone(&self.core), self.first_flow))
    }

    #[getter]
    fn rtt(&self) -> Table {
        Table::of(RttRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn losses(&self) -> Table {
        Table::of(LossRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn rounds(&self) -> Table {
        Table::of(RoundRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn tcp(&self) -> Table {
        Table::of(DetailRows::new(Arc::clone(&self.core), self.first_flow))
    }

    #[getter]
    fn feedback(&self) -> Table {
        Table::of(FeedbackRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn loss_events(&self) -> Table {
        Table::of(LossEventRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn loss_intervals(&self) -> Table {
        Table::of(LossIntervalRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn findings(&self) -> Table {
        Table::of(FindingRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn rtt_buckets(&self) -> Table {
        Table::of(RttBucketRows::new(&self.core, self.first_flow))
    }

    #[getter]
    fn rtp_sources(&self) -> Table {
        Table::of(RtpSourceRows::new(Arc::clone(&self.core), self.first_flow))
    }

    #[getter]
    fn links(&self) -> Table {
        Table::of(LinkRows { analysis: Arc::clone(&self.core) })
    }

    #[getter]
    fn link_samples(&self) -> Table {
        Table::of(LinkSampleRows { analysis: Arc::clone(&self.core) })
    }

    #[getter]
    fn variables(&self) -> Table {
        Table::of(VariableRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn transits(&self) -> Table {
        Table::of(TransitRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn clock<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.core.pairing.as_ref().map(|pairing| clock_to_python(py, pairing)).transpose()
    }

    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        sources_to_python(py, &self.core.sources)
    }

    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        problems_to_python(py, &self.core.problems)
    }

    /// The same result with its flows numbered from `first_flow`.
    fn numbered_from(&self, first_flow: u32) -> Self {
        Self { core: Arc::clone(&self.core), first_flow }
    }
}

#[pyfunction]
#[pyo3(signature = (
    sources, *, format = None, layer = None, vantage = None, filter = None, bins = false, bin_ns = None, rtt = false, losses = false,
    rounds = false, tcp = false, links = false, feedback = false, loss_events = false, loss_intervals = false,
    findings = false, tfrc = Vec::new(), tfrc_profile = None, dissect = Vec::new(), rtt_s = None, max_flows = 1_000_000, max_samples = 10_000_000, max_decompressed_bytes = 64 << 30, progress = None,
))]
#[allow(clippy::too_many_arguments)]
fn analyse(
    py: Python<'_>,
    sources: Vec<SourceArgument>,
    format: Option<&str>,
    layer: Option<&str>,
    vantage: Option<&str>,
    filter: Option<Py<PyAny>>,
    bins: bool,
    bin_ns: Option<i64>,
    rtt: bool,
    losses: bool,
    rounds: bool,
    tcp: bool,
    links: bool,
    feedback: bool,
    loss_events: bool,
    loss_intervals: bool,
    findings: bool,
    tfrc: Vec<(String, f64)>,
    tfrc_profile: Option<&str>,
    dissect: Vec<(u16, GivenLayout)>,
    rtt_s: Option<f64>,
    max_flows: u32,
    max_samples: usize,
    max_decompressed_bytes: u64,
    progress: Option<Py<Progress>>,
) -> PyResult<Analysis> {
    let forced = format.map(format_by_name).transpose()?;
    let options = Options {
        bins: bin_width(bins, bin_ns)?,
        rtt,
        losses,
        rounds,
        details: tcp,
        links,
        transits: false,
        feedback,
        loss_events,
        loss_intervals,
        findings,
        tfrc: parameters(&tfrc)?,
        tfrc_profile: tfrc_profile.map(profile_by_name).transpose()?.unwrap_or_default(),
        dissect: layouts(&dissect)?,
        rtt_s,
        max_flows,
        max_samples,
        max_decompressed_bytes,
        layer: layer.map(layer_by_name).transpose()?,
        format: forced,
        vantage: vantage.map(vantage_by_name).transpose()?,
    };
    run(py, options, filter, progress, |core, compiler, progress| {
        for source in sources {
            core.read_from(source.open(forced, max_decompressed_bytes, progress), compiler)?;
        }
        Ok(())
    })
}

#[pyfunction]
#[pyo3(signature = (
    first, second, *, clock_offset_ns = None, filter = None, bins = false, bin_ns = None, rtt = false, losses = false,
    rounds = false, tcp = false, links = false, transits = false, max_flows = 1_000_000, max_samples = 10_000_000,
    max_decompressed_bytes = 64 << 30, progress = None,
))]
#[allow(clippy::too_many_arguments)]
fn analyse_pair(
    py: Python<'_>,
    first: OsString,
    second: OsString,
    clock_offset_ns: Option<i64>,
    filter: Option<Py<PyAny>>,
    bins: bool,
    bin_ns: Option<i64>,
    rtt: bool,
    losses: bool,
    rounds: bool,
    tcp: bool,
    links: bool,
    transits: bool,
    max_flows: u32,
    max_samples: usize,
    max_decompressed_bytes: u64,
    progress: Option<Py<Progress>>,
) -> PyResult<Analysis> {
    let options = Options {
        bins: bin_width(bins, bin_ns)?,
        rtt,
        losses,
        rounds,
        details: tcp,
        links,
        transits,
        max_flows,
        max_samples,
        max_decompressed_bytes,
        ..Options::default()
    };
    let sources = [first.as_os_str(), second.as_os_str()];
    run(py, options, filter, progress, |core, compiler, progress| {
        core.read_pair(sources, clock_offset_ns, compiler, progress)
    })
}

fn bin_width(bins: bool, bin_ns: Option<i64>) -> PyResult<Option<BinWidth>> {
    if bin_ns.is_some_and(|width| width <= 0) {
        return Err(PyValueError::new_err("bin_ns must be positive"));
    }
    let width = bin_ns.map_or(BinWidth::Adaptive, BinWidth::Fixed);
    Ok(bins.then_some(width))
}

/// Let a new core `read`, without Python's lock.
fn run(
    py: Python<'_>,
    options: Options,
    filter: Option<Py<PyAny>>,
    progress: Option<Py<Progress>>,
    read: impl FnOnce(&mut Core, Option<&dyn Compiler>, &Arc<bytes::Progress>) -> Result<(), String> + Send,
) -> PyResult<Analysis> {
    let progress = progress.map_or_else(Arc::default, |progress| Arc::clone(&progress.get().shared));
    let compiler = filter.map(PythonCompiler::new);
    let outcome = py.detach(|| {
        let mut core = Core::new(options);
        read(&mut core, compiler.as_ref().map(|compiler| compiler as &dyn Compiler), &progress)?;
        core.finish();
        Ok(core)
    });
    let core = outcome.map_err(|words: String| match &compiler {
        Some(compiler) => compiler.exception(words),
        None => PyRuntimeError::new_err(words),
    })?;
    check_cancelled(&core.problems)?;
    Ok(Analysis { core: Arc::new(core), first_flow: 1 })
}

/// Whether a file is of a known format by its content, be it damaged or not.
#[pyfunction]
fn is_trace(py: Python<'_>, path: OsString) -> PyResult<bool> {
    // Only the start is read, so no bound on the whole is needed.
    let opened = py.detach(|| bytes::Input::open(&path, u64::MAX, &Arc::default()));
    match opened.and_then(|input| Source::open(input, None)) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind, ProblemKind::CannotOpen | ProblemKind::ReadFailed) => {
            Err(PyOSError::new_err(error.message))
        }
        Err(error) => Ok(match error.kind {
            ProblemKind::NotACapture | ProblemKind::Empty => false,
            // What cannot be unpacked could be anything; else the error is about a place in a trace.
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
    module.add_function(wrap_pyfunction!(analyse, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_pair, module)?)?;
    module.add_function(wrap_pyfunction!(is_trace, module)?)?;
    names::add(module)?;
    replay::add(module)
}
