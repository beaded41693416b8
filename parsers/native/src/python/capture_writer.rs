//! Captures that are written: pieces of bytes for Python, which writes them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::arguments::{Progress, PythonCompiler, SourceArgument, Sources};
use super::settings::Settings;
use super::summaries::{problems_to_python, sources_to_python};
use crate::error::Problem;
use crate::input::bytes::Compression;
use crate::input::bytes::compress::Compressor;
use crate::input::export::{CaptureForm, CaptureWriter as Writer};
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::reading::copying::Wanted;
use crate::input::source_summary::SourceSummary;
use crate::join::order::Group;
use crate::wire::anonymize::Addresses;

/// Bytes that are returned at a time, if no packets are named.
const PIECE: usize = 1 << 20;
/// Replacements that are kept; the packets of a capture are between few hosts.
const MOST_ADDRESSES: usize = 65_536;

/// Writes the packets of one trace after the other.
#[pyclass(module = "tfrctrace.parsers._native")]
pub(super) struct CaptureWriter {
    /// The lock is never contended: it only makes the class shareable.
    state: Mutex<State>,
    raised: Raised,
}

struct State {
    writer: Writer,
    trace: Option<OpenTrace>,
    problems: Vec<Problem>,
    summaries: Vec<SourceSummary>,
}

/// A trace that is copied, file by file.
struct OpenTrace {
    sources: Sources,
    compiler: Option<PythonCompiler>,
    files: VecDeque<usize>,
    current: Option<Reading>,
    packets_before: u64,
}

#[pymethods]
impl CaptureWriter {
    #[new]
    #[pyo3(signature = (form, compression = "", *, replace = None, section_comment = None))]
    fn new(
        form: &str,
        compression: &str,
        replace: Option<Py<PyAny>>,
        section_comment: Option<String>,
    ) -> PyResult<Self> {
        let unknown =
            || PyValueError::new_err(format!("`{form}` and `{compression}` are no form of a capture"));
        let form = CaptureForm::by_name(form).ok_or_else(unknown)?;
        let compression = Compression::by_name(compression).ok_or_else(unknown)?;
        let compressor = Compressor::to(compression).map_err(PyRuntimeError::new_err)?;
        let raised = Raised::default();
        let addresses = replace.map(|callable| {
            let (known, raised) = (HashMap::new(), Arc::clone(&raised));
            Box::new(PythonAddresses { callable, known, raised }) as Box<dyn Addresses>
        });
        let writer = Writer::new(form, compressor, addresses, section_comment);
        let state = State { writer, trace: None, problems: Vec::new(), summaries: Vec::new() };
        Ok(Self { state: Mutex::new(state), raised })
    }

    /// Begin a trace.
    #[pyo3(signature = (sources, settings, *, progress = None))]
    fn open(
        &mut self,
        py: Python<'_>,
        sources: Vec<SourceArgument>,
        settings: Settings,
        progress: Option<Py<Progress>>,
    ) -> PyResult<()> {
        let Settings { options, filter: compiler } = settings;
        let progress = progress.map_or_else(Arc::default, |progress| Arc::clone(&progress.get().shared));
        let sources = Sources::new(sources, &options, progress);
        let plan = py.detach(|| sources.plan(as_compiler(compiler.as_ref()), options.max_flows));
        let plan = plan.map_err(|words| exception(compiler.as_ref(), words))?;
        let mut files = VecDeque::with_capacity(plan.groups.len());
        for Group { members, .. } in plan.groups {
            let [member] = members[..] else {
                let message = "the joined captures overlap; `mergecap` puts their packets in order";
                return Err(PyValueError::new_err(message));
            };
            files.push_back(member.file);
        }
        self.state().trace = Some(OpenTrace { sources, compiler, files, current: None, packets_before: 0 });
        Ok(())
    }

    /// The next piece; None at the end of the trace. With `numbers`, all bytes up to the last of these packets.
    #[pyo3(signature = (numbers = None, comments = Vec::new()))]
    fn copy<'py>(
        &mut self,
        py: Python<'py>,
        numbers: Option<Vec<u64>>,
        comments: Vec<Option<String>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let raised = Arc::clone(&self.raised);
        let state = self.state();
        let Some(mut trace) = state.trace.take() else { return Ok(None) };
        let outcome = py.detach(|| match &numbers {
            None => trace.copy_accepted(state),
            Some(numbers) => trace.copy_numbered(state, numbers, &comments),
        });
        let goes_on = outcome.map_err(|words| exception(trace.compiler.as_ref(), words))?;
        if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        if goes_on {
            state.trace = Some(trace);
        }
        let bytes = state.writer.take();
        Ok((goes_on || !bytes.is_empty()).then(|| PyBytes::new(py, &bytes)))
    }

    /// End the file, and return its last bytes.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.state().writer.finish().map_err(PyRuntimeError::new_err)?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn sources<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        sources_to_python(py, &self.state().summaries)
    }

    #[getter]
    fn problems<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        problems_to_python(py, &self.state().problems, 1)
    }

    #[getter]
    fn counts<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = &self.state().writer.counts;
        let dict = PyDict::new(py);
        dict.set_item("written", counts.written)?;
        dict.set_item("dropped", counts.dropped.clone())?;
        dict.set_item("without_comment", counts.without_comment)?;
        dict.set_item("skipped_blocks", counts.skipped_blocks)?;
        Ok(dict)
    }
}

impl CaptureWriter {
    fn state(&mut self) -> &mut State {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTrace {
    /// Copy what the filter lets through until a piece is full; false at the end.
    fn copy_accepted(&mut self, state: &mut State) -> Result<bool, String> {
        let compiler = self.compiler.take();
        let wanted = &mut Wanted::Accepted { compiler: as_compiler(compiler.as_ref()), most_bytes: PIECE };
        let outcome = self.copy(state, wanted);
        self.compiler = compiler;
        outcome
    }

    /// Copy the packets with these numbers, which ascend; without any, go to the end, which is false.
    fn copy_numbered(
        &mut self,
        state: &mut State,
        numbers: &[u64],
        comments: &[Option<String>],
    ) -> Result<bool, String> {
        let numbers = if numbers.is_empty() { &[u64::MAX] } else { numbers };
        self.copy(state, &mut Wanted::Numbered { numbers, comments })
    }

    fn copy(&mut self, state: &mut State, wanted: &mut Wanted<'_>) -> Result<bool, String> {
        loop {
            let next = match self.current.take() {
                Some(reading) => Some(reading),
                None => self.next(&mut state.writer)?,
            };
            let Some(mut reading) = next else { return Ok(false) };
            if reading.copy_some(wanted, &mut state.writer)? {
                self.current = Some(reading);
                return Ok(true);
            }
            reading.end_copy(&mut state.writer)?;
            self.packets_before += reading.packets();
            let mut summary = SourceSummary::new(reading.source());
            state.problems.extend(reading.finish(&mut summary));
            state.summaries.push(summary);
        }
    }

    /// Begin the next file; None after the last.
    fn next(&mut self, writer: &mut Writer) -> Result<Option<Reading>, String> {
        let Some(file) = self.files.pop_front() else { return Ok(None) };
        let mut reading = self.sources.open(file);
        reading.number_after(self.packets_before);
        reading.begin_copy(writer)?;
        Ok(Some(reading))
    }
}

type Raised = Arc<Mutex<Option<PyErr>>>;

/// A callable of Python that replaces addresses. Its exception is kept until the core has returned.
struct PythonAddresses {
    callable: Py<PyAny>,
    known: HashMap<Vec<u8>, Vec<u8>>,
    raised: Raised,
}

impl Addresses for PythonAddresses {
    fn replace(&mut self, address: &mut [u8]) {
        if !self.known.contains_key(address) {
            let replaced = Python::attach(|py| {
                let replaced = self.callable.call1(py, (PyBytes::new(py, address),))?;
                replaced.extract::<Vec<u8>>(py)
            });
            if self.known.len() >= MOST_ADDRESSES {
                self.known.clear();
            }
            let replaced = replaced.unwrap_or_else(|error| {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                vec![0; address.len()]
            });
            self.known.insert(address.to_vec(), replaced);
        }
        match self.known.get(address) {
            Some(replaced) if replaced.len() == address.len() => address.copy_from_slice(replaced),
            _ => address.fill(0),
        }
    }
}

fn as_compiler(compiler: Option<&PythonCompiler>) -> Option<&dyn Compiler> {
    compiler.map(|compiler| compiler as &dyn Compiler)
}

fn exception(compiler: Option<&PythonCompiler>, words: String) -> PyErr {
    compiler
        .map_or_else(|| PyValueError::new_err(words.clone()), |compiler| compiler.exception(words.clone()))
}
