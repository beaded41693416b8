//! Arguments from Python: sources, a filter compiler, and the progress.

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::input::bytes;
use crate::input::filter::{Compiler, Instruction};
use crate::input::reading::Reading;
use crate::input::source::InputFormat;
use crate::input::stretch::Stretch;
use crate::join::order::{Group, Plan, plan};
use crate::pass::Options;
use crate::wire::layers::TunnelPorts;

/// Counters of a running analysis.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
pub(super) struct Progress {
    pub(super) shared: Arc<bytes::Progress>,
}

#[pymethods]
impl Progress {
    #[new]
    #[pyo3(signature = (*, digests = false))]
    fn new(digests: bool) -> Self {
        let digests = digests.then(bytes::Digests::default);
        Self { shared: Arc::new(bytes::Progress { digests, ..bytes::Progress::default() }) }
    }

    /// How many bytes of a file were read, and their XXH64.
    fn digest(&self, path: OsString) -> Option<(u64, String)> {
        let digest = self.shared.digests.as_ref()?.of(&path)?;
        Some((digest.bytes, format!("{:016x}", digest.xxh64)))
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

/// A Python callable that compiles filters. Its exception is kept until the core has returned.
pub(super) struct PythonCompiler {
    callable: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl PythonCompiler {
    pub(super) fn new(callable: Py<PyAny>) -> Self {
        Self { callable, raised: Mutex::new(None) }
    }

    /// The exception that `words` stand for, which the core returned.
    pub(super) fn exception(&self, words: String) -> PyErr {
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

/// A source: a path, a name with a path, or a name with an open file.
#[derive(FromPyObject)]
pub(super) enum SourceArgument {
    Path(OsString),
    Named(String, OsString),
    File(String, PythonFile),
}

impl SourceArgument {
    /// Whether it can be opened several times: it is a file, and no pipe.
    fn can_be_read_twice(&self) -> bool {
        match self {
            Self::Path(path) | Self::Named(_, path) => {
                !std::fs::metadata(path).is_ok_and(|found| !found.is_file())
            }
            Self::File(..) => false,
        }
    }

    fn open(
        self,
        format: Option<InputFormat>,
        max_decompressed_bytes: Option<u64>,
        progress: &Arc<bytes::Progress>,
    ) -> Reading {
        match self {
            Self::Path(path) => Reading::open(&path, format, max_decompressed_bytes, progress),
            Self::Named(name, path) => {
                let input = bytes::Input::open(&path, max_decompressed_bytes, progress);
                Reading::with_input(&name, input, format, progress)
            }
            Self::File(name, file) => {
                let input = bytes::Input::from_reader(Box::new(file), max_decompressed_bytes, progress);
                Reading::with_input(&name, input, format, progress)
            }
        }
    }
}

/// The sources of one trace.
pub(super) struct Sources {
    /// None if it can be read only once, and was.
    arguments: Vec<Mutex<Option<SourceArgument>>>,
    format: Option<InputFormat>,
    max_decompressed_bytes: Option<u64>,
    tunnel_ports: TunnelPorts,
    stretch: Option<Stretch>,
    progress: Arc<bytes::Progress>,
}

impl Sources {
    pub(super) fn new(
        arguments: Vec<SourceArgument>,
        options: &Options,
        progress: Arc<bytes::Progress>,
    ) -> Self {
        let (format, max_decompressed_bytes) = (options.format, options.max_decompressed_bytes);
        let arguments = arguments.into_iter().map(|argument| Mutex::new(Some(argument))).collect();
        let tunnel_ports = options.tunnel_ports.clone();
        Self { arguments, format, max_decompressed_bytes, tunnel_ports, stretch: options.stretch, progress }
    }

    pub(super) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Open a source by its number.
    pub(super) fn open(&self, number: usize) -> Reading {
        let mut slot = self.arguments[number].lock().unwrap_or_else(PoisonError::into_inner);
        let argument = match &*slot {
            Some(SourceArgument::Path(path)) => SourceArgument::Path(path.clone()),
            Some(SourceArgument::Named(name, path)) => SourceArgument::Named(name.clone(), path.clone()),
            _ => slot.take().unwrap_or_else(|| SourceArgument::Path(OsString::new())),
        };
        let mut reading = argument.open(self.format, self.max_decompressed_bytes, &self.progress);
        reading.find_tunnels_at(&self.tunnel_ports);
        reading.keep_to(self.stretch);
        reading
    }

    /// How they are read as one trace: in the order given if they can be read only once.
    pub(super) fn plan(&self, compiler: Option<&dyn Compiler>, max_flows: u32) -> Result<Plan, String> {
        let can_be_read_twice = |slot: &Mutex<Option<SourceArgument>>| {
            let argument = slot.lock().unwrap_or_else(PoisonError::into_inner);
            argument.as_ref().is_some_and(SourceArgument::can_be_read_twice)
        };
        if self.arguments.len() > 1 && self.arguments.iter().all(can_be_read_twice) {
            return plan(self.arguments.len(), &|number| self.open(number), compiler, max_flows);
        }
        let groups = (0..self.arguments.len()).map(|number| Group::of(number, None)).collect();
        Ok(Plan { groups, ..Plan::default() })
    }
}

/// A file object of Python.
pub(super) struct PythonFile(Py<PyAny>);

impl<'py> FromPyObject<'_, 'py> for PythonFile {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.getattr("read")?;
        Ok(Self(object.to_owned().unbind()))
    }
}

/// What an exception says; the type of one from the system says nothing more.
fn words_of(error: &PyErr, py: Python<'_>) -> String {
    match error.is_instance_of::<PyOSError>(py) {
        true => error.value(py).to_string(),
        false => error.to_string(),
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
        .map_err(|error: PyErr| std::io::Error::other(Python::attach(|py| words_of(&error, py))))
    }
}
