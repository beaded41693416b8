//! The only file that names PyO3, with those below it: what `_native.pyi` promises, and nothing else.
#![allow(missing_docs)]

mod layouts;
mod replay;

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::analysis::{Analysis as Core, Options, Pairing};
use crate::batch::{Batch, Item};
use crate::bins::BinWidth;
use crate::capture::LinkType;
use crate::columns::Rows;
use crate::columns::details::DetailRows;
use crate::columns::flows::FlowRows;
use crate::columns::links::{LinkRows, LinkSampleRows};
use crate::columns::packets::{PacketRow, PacketRows};
use crate::columns::rounds::RoundRows;
use crate::columns::rtp::RtpSourceRows;
use crate::columns::samples::{BinRows, LossRows, RttRows, VariableRows};
use crate::columns::tfrc::{FeedbackRows, FindingRows, LossEventRows, LossIntervalRows};
use crate::columns::transits::TransitRows;
use crate::dissection::Dissection;
use crate::error::{Problem, ProblemKind};
use crate::event::NodeLayer;
use crate::filter::{Compiler, Instruction};
use crate::flow::tcp::vantage::Vantage;
use crate::input;
use crate::reading::Reading;
use crate::source::{InputFormat, Source};
use crate::summary::SourceSummary;
use crate::tfrc::ns2::Parameters;
use crate::tfrc::profile::Profile;
use layouts::{GivenLayout, layouts};

/// Rows in one batch of a stream: large enough to be quick, small enough that a table of any
/// length passes in little memory.
const BATCH_ROWS: usize = 16_384;

fn arrow_error(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A table that polars takes over through the Arrow C stream interface.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
struct Table {
    rows: Arc<dyn Rows>,
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    #[getter]
    fn columns(&self) -> PyResult<Vec<String>> {
        let schema = self.rows.schema().map_err(arrow_error)?;
        Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows a producer to answer with its own schema.
        let _ = requested_schema;
        let schema = self.rows.schema().map_err(arrow_error)?;
        let stream = BatchStream { rows: Arc::clone(&self.rows), schema, next: 0 };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(stream)), c"arrow_array_stream")
    }

    #[pyo3(signature = (start = 0, stop = None))]
    fn rows<'py>(&self, py: Python<'py>, start: usize, stop: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let stop = stop.unwrap_or(usize::MAX).min(self.rows.len());
        let batch = self.rows.batch(start.min(stop), stop).map_err(arrow_error)?;
        rows_to_python(py, &batch)
    }
}

struct BatchStream {
    rows: Arc<dyn Rows>,
    schema: SchemaRef,
    next: usize,
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next;
        let end = (start + BATCH_ROWS).min(self.rows.len());
        self.next = end;
        (start < end).then(|| self.rows.batch(start, end))
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn rows_to_python<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let schema = batch.schema();
    for row in 0..batch.num_rows() {
        let dict = PyDict::new(py);
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            dict.set_item(field.name(), cell(py, column, row)?)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// One value; the types are those that `columns` makes.
fn cell<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    if column.is_null(row) {
        return Ok(None);
    }
    let value = match column.data_type() {
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Utf8 => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        other => {
            return Err(PyRuntimeError::new_err(format!("no Python value for {other}")));
        }
    };
    Ok(Some(value))
}

/// Counters of a running analysis.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
struct Progress {
    shared: Arc<input::Progress>,
}

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Self {
        Self { shared: Arc::default() }
    }

    #[getter]
    fn bytes_read(&self) -> u64 {
        self.shared.bytes_read.load(Ordering::Relaxed)
    }

    #[getter]
    fn packets(&self) -> u64 {
        self.shared.packets.load(Ordering::Relaxed)
    }

    fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }
}

/// A filter compiler that is a Python callable. The exception it raised waits until the core has
/// returned.
struct PythonCompiler {
    callable: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl PythonCompiler {
    fn new(callable: Py<PyAny>) -> Self {
        Self { callable, raised: Mutex::new(None) }
    }

    /// The exception behind `words`, which the core passed on.
    fn exception(&self, words: String) -> PyErr {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| PyValueError::new_err(words))
    }
}

impl Compiler for PythonCompiler {
    fn compile(&self, link_type: u32, snap_length: u32) -> Result<Vec<Instruction>, String> {
        let program = Python::attach(|py| {
            let program = self.callable.call1(py, (link_type, snap_length))?;
            program.extract::<Vec<(u16, u8, u8, u32)>>(py)
        });
        match program {
            Ok(program) => {
                Ok(program.into_iter().map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect())
            }
            Err(error) => {
                let words = error.to_string();
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(words)
            }
        }
    }
}

/// A source: a path, or a name with an open file.
#[derive(FromPyObject)]
enum Given {
    Path(OsString),
    File(String, PythonFile),
}

impl Given {
    fn name(&self) -> String {
        match self {
            Self::Path(path) => path.to_string_lossy().into_owned(),
            Self::File(name, _) => name.clone(),
        }
    }

    fn open(
        self,
        format: Option<InputFormat>,
        max_decompressed_bytes: u64,
        progress: &Arc<input::Progress>,
    ) -> Reading {
        match self {
            Self::Path(path) => Reading::open(&path, format, max_decompressed_bytes, progress),
            Self::File(name, file) => {
                let input = input::Input::from_reader(Box::new(file), max_decompressed_bytes, progress);
                Reading::with_input(&name, input, format, progress)
            }
        }
    }
}

/// A file that Python reads.
struct PythonFile(Py<PyAny>);

impl<'py> FromPyObject<'_, 'py> for PythonFile {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.getattr("read")?;
        Ok(Self(object.to_owned().unbind()))
    }
}

impl std::io::Read for PythonFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        Python::attach(|py| {
            let read = self.0.call_method1(py, "read", (buffer.len(),))?;
            let bytes = read.bind(py).cast::<PyBytes>()?.as_bytes();
            let n = bytes.len().min(buffer.len());
            buffer[..n].copy_from_slice(&bytes[..n]);
            Ok(n)
        })
        .map_err(|error: PyErr| std::io::Error::other(error.to_string()))
    }
}

/// The result of one pass.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
struct Analysis {
    core: Arc<Core>,
    first_flow: u32,
}

impl Analysis {
    fn table(rows: impl Rows + 'static) -> Table {
        Table { rows: Arc::new(rows) }
    }
}

#[pymethods]
impl Analysis {
    #[getter]
    fn flows(&self) -> Table {
        Self::table(FlowRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn bins(&self) -> Table {
        Self::table(BinRows::new(Arc::clone(&self.core), self.first_flow))
    }

    #[getter]
    fn rtt(&self) -> Table {
        Self::table(RttRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn losses(&self) -> Table {
        Self::table(LossRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn rounds(&self) -> Table {
        Self::table(RoundRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn tcp(&self) -> Table {
        Self::table(DetailRows::new(Arc::clone(&self.core), self.first_flow))
    }

    #[getter]
    fn feedback(&self) -> Table {
        Self::table(FeedbackRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn loss_events(&self) -> Table {
        Self::table(LossEventRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn loss_intervals(&self) -> Table {
        Self::table(LossIntervalRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn findings(&self) -> Table {
        Self::table(FindingRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn rtp_sources(&self) -> Table {
        Self::table(RtpSourceRows::new(Arc::clone(&self.core), self.first_flow))
    }

    #[getter]
    fn links(&self) -> Table {
        Self::table(LinkRows { analysis: Arc::clone(&self.core) })
    }

    #[getter]
    fn link_samples(&self) -> Table {
        Self::table(LinkSampleRows { analysis: Arc::clone(&self.core) })
    }

    #[getter]
    fn variables(&self) -> Table {
        Self::table(VariableRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
    }

    #[getter]
    fn transits(&self) -> Table {
        Self::table(TransitRows { analysis: Arc::clone(&self.core), first_flow: self.first_flow })
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
    sources: Vec<Given>,
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
    read: impl FnOnce(&mut Core, Option<&dyn Compiler>, &Arc<input::Progress>) -> Result<(), String> + Send,
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

/// Parameters of ns-2's TFRC agents, of which some are given.
fn parameters(given: &[(String, f64)]) -> PyResult<Parameters> {
    let mut parameters = Parameters::default();
    for (name, value) in given {
        if !parameters.set(name, *value) {
            return Err(PyValueError::new_err(format!("ns-2's TFRC has no parameter `{name}` of {value}")));
        }
    }
    Ok(parameters)
}

fn profile_by_name(name: &str) -> PyResult<Profile> {
    let found = Profile::ALL.into_iter().find(|profile| profile.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no profile of TFRC `{name}`")))
}

/// The profiles that `tfrc_profile` may name.
#[pyfunction]
fn tfrc_profiles() -> Vec<&'static str> {
    Profile::ALL.into_iter().map(Profile::name).collect()
}

/// The formats that `format` may name.
#[pyfunction]
fn input_formats() -> Vec<&'static str> {
    InputFormat::all().map(|(name, _)| name).collect()
}

/// Whether a file is of a known format by its content, be it damaged or not.
#[pyfunction]
fn is_trace(py: Python<'_>, path: OsString) -> PyResult<bool> {
    // Only the start is read, so no bound on the whole is needed.
    let opened = py.detach(|| input::Input::open(&path, u64::MAX, &Arc::default()));
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

/// The layers that `layer` may name.
#[pyfunction]
fn node_layers() -> Vec<&'static str> {
    NodeLayer::ALL.into_iter().map(NodeLayer::name).collect()
}

/// The parameters that `tfrc` may name.
#[pyfunction]
fn tfrc_parameters() -> Vec<&'static str> {
    Parameters::NAMES.to_vec()
}

/// Whether `tfrc` may have this.
#[pyfunction]
fn tfrc_takes(name: &str, value: f64) -> bool {
    Parameters::default().set(name, value)
}

/// The places that `vantage` may name.
#[pyfunction]
fn vantage_points() -> Vec<&'static str> {
    Vantage::ALL.into_iter().map(Vantage::name).collect()
}

/// The layouts that `dissect` may name.
#[pyfunction]
fn probe_layouts() -> Vec<&'static str> {
    Dissection::names().collect()
}

fn format_by_name(name: &str) -> PyResult<InputFormat> {
    InputFormat::by_name(name).ok_or_else(|| PyValueError::new_err(format!("no input format `{name}`")))
}

fn layer_by_name(name: &str) -> PyResult<NodeLayer> {
    let found = NodeLayer::ALL.into_iter().find(|layer| layer.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no layer `{name}`")))
}

fn vantage_by_name(name: &str) -> PyResult<Vantage> {
    let found = Vantage::ALL.into_iter().find(|vantage| vantage.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no vantage point `{name}`")))
}

fn check_cancelled(problems: &[Problem]) -> PyResult<()> {
    if problems.iter().any(|problem| problem.error.kind == ProblemKind::Cancelled) {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    Ok(())
}

/// Packets of one source, batch by batch.
#[pyclass(module = "tfrctrace.parsers._native")]
struct PacketReader {
    core: Core,
    summary: SourceSummary,
    /// None after the end. The lock is never contended: it only makes the class shareable.
    reading: Mutex<Option<Reading>>,
    compiler: Option<PythonCompiler>,
    first_flow: u32,
}

#[pymethods]
impl PacketReader {
    #[new]
    #[pyo3(signature = (
        source, *, format = None, filter = None, dissect = Vec::new(), max_flows = 1_000_000,
        max_decompressed_bytes = 64 << 30, progress = None,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        source: Given,
        format: Option<&str>,
        filter: Option<Py<PyAny>>,
        dissect: Vec<(u16, GivenLayout)>,
        max_flows: u32,
        max_decompressed_bytes: u64,
        progress: Option<Py<Progress>>,
    ) -> PyResult<Self> {
        let format = format.map(format_by_name).transpose()?;
        let dissect = layouts(&dissect)?;
        let core = Core::new(Options { dissect, max_flows, max_decompressed_bytes, ..Options::default() });
        let summary = SourceSummary::new(&source.name());
        let progress = progress.map_or_else(Arc::default, |progress| Arc::clone(&progress.get().shared));
        let reading = Mutex::new(Some(source.open(format, max_decompressed_bytes, &progress)));
        Ok(Self { core, summary, reading, compiler: filter.map(PythonCompiler::new), first_flow: 1 })
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
        Ok(Some(Table { rows: Arc::new(PacketRows { rows: batch, first_flow: self.first_flow }) }))
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

fn next_packets(
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
        let found = core.take(&packet, batch.asides(), summary);
        rows.push(PacketRow::new(packet, batch.asides(), found, &core.flows, reading));
    }
    Ok(rows)
}

fn sources_to_python<'py>(py: Python<'py>, sources: &[SourceSummary]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for source in sources {
        list.append(source_to_python(py, source)?)?;
    }
    Ok(list)
}

fn source_to_python<'py>(py: Python<'py>, source: &SourceSummary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let mut link_types: Vec<String> = Vec::new();
    let interfaces = PyList::empty(py);
    for (interface, packets) in &source.interfaces {
        let link_type = interface.link_type.name();
        let entry = PyDict::new(py);
        entry.set_item("name", &interface.name)?;
        entry.set_item("link_type", &link_type)?;
        entry.set_item("snap_length_bytes", interface.snap_length)?;
        entry.set_item("packets", packets)?;
        entry.set_item("dropped_packets", interface.dropped)?;
        interfaces.append(entry)?;
        if interface.link_type != LinkType::None && !link_types.contains(&link_type) {
            link_types.push(link_type);
        }
    }
    dict.set_item("source", &source.source)?;
    dict.set_item("format", source.format)?;
    dict.set_item("compression", source.compression)?;
    dict.set_item("link_types", link_types)?;
    dict.set_item("interfaces", interfaces)?;
    let seen = |time_ns: i64| (source.packets > 0).then_some(time_ns);
    dict.set_item("start_ns", seen(source.start_ns))?;
    dict.set_item("end_ns", seen(source.end_ns))?;
    for (name, count) in [
        ("packets", source.packets),
        ("filtered_packets", source.filtered_packets),
        ("tcp_packets", source.tcp_packets),
        ("udp_packets", source.udp_packets),
        ("dccp_packets", source.dccp_packets),
        ("tfrc_packets", source.tfrc_packets),
        ("other_ip_packets", source.other_ip_packets),
        ("non_ip_packets", source.non_ip_packets),
        ("undecoded_packets", source.undecoded_packets),
        ("untracked_packets", source.untracked_packets),
        ("portless_packets", source.portless_packets),
        ("repeated_packets", source.repeated_packets),
        ("out_of_order_times", source.out_of_order_times),
        ("lines", source.lines),
        ("other_lines", source.other_lines),
        ("bad_lines", source.bad_lines),
        ("wire_bytes", source.wire_bytes),
        ("captured_bytes", source.captured_bytes),
    ] {
        dict.set_item(name, count)?;
    }
    dict.set_item("decode_stops", stops_to_python(py, source)?)?;
    Ok(dict)
}

fn stops_to_python<'py>(py: Python<'py>, source: &SourceSummary) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let add = |layer: &str, reason: String, packets: u64, first: Option<u64>| -> PyResult<()> {
        let entry = PyDict::new(py);
        entry.set_item("layer", layer)?;
        entry.set_item("reason", reason)?;
        entry.set_item("packets", packets)?;
        entry.set_item("first_packet", first)?;
        list.append(entry)
    };
    for (stop, packets, first) in &source.stops {
        add(stop.layer.name(), stop.reason.words(stop.layer), *packets, Some(*first))?;
    }
    if source.other_stops > 0 {
        add("any", "of further kinds".into(), source.other_stops, None)?;
    }
    Ok(list)
}

/// What two captures tell of each other's clocks.
fn clock_to_python<'py>(py: Python<'py>, pairing: &Pairing) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let ppm = |drift: f64| drift * 1e6;
    let bounds_ns = pairing.estimate.map_or((None, None), |estimate| estimate.offset_bounds_ns);
    let drift_bounds = pairing.estimate.and_then(|estimate| estimate.drift_bounds);
    dict.set_item("is_given", pairing.is_given)?;
    dict.set_item("has_delays", pairing.has_delays())?;
    dict.set_item("reference_ns", pairing.clock.reference_ns)?;
    dict.set_item("offset_ns", pairing.clock.offset_ns)?;
    dict.set_item("offset_low_ns", bounds_ns.0)?;
    dict.set_item("offset_high_ns", bounds_ns.1)?;
    let drift = pairing.estimate.and_then(|estimate| estimate.drift).filter(|_| !pairing.is_given);
    dict.set_item("drift_ppm", drift.map(ppm))?;
    dict.set_item("drift_low_ppm", drift_bounds.map(|bounds| ppm(bounds.0)))?;
    dict.set_item("drift_high_ppm", drift_bounds.map(|bounds| ppm(bounds.1)))?;
    dict.set_item("packets", pairing.met)?;
    Ok(dict)
}

fn problems_to_python<'py>(py: Python<'py>, problems: &[Problem]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for problem in problems {
        let error = &problem.error;
        let dict = PyDict::new(py);
        dict.set_item("severity", if error.kind.is_error() { "error" } else { "warning" })?;
        dict.set_item("kind", error.kind.name())?;
        dict.set_item("source", &problem.source)?;
        dict.set_item("packet", problem.packet)?;
        dict.set_item("byte", error.byte)?;
        dict.set_item("line", error.line)?;
        dict.set_item("message", &error.message)?;
        dict.set_item("hint", error.hint)?;
        dict.set_item("packets_before", problem.packets_before)?;
        list.append(dict)?;
    }
    Ok(list)
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
    module.add_function(wrap_pyfunction!(input_formats, module)?)?;
    module.add_function(wrap_pyfunction!(node_layers, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_takes, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(vantage_points, module)?)?;
    module.add_function(wrap_pyfunction!(probe_layouts, module)?)?;
    replay::add(module)
}
