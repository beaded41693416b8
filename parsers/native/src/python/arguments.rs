//! What Python gives: sources, a filter compiler, and the progress that it watches.

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::input::bytes;
use crate::input::filter::{Compiler, Instruction};
use crate::input::reading::Reading;
use crate::input::source::InputFormat;

/// Counters of a running analysis.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
pub(super) struct Progress {
    pub(super) shared: Arc<bytes::Progress>,
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
pub(super) struct PythonCompiler {
    callable: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl PythonCompiler {
    pub(super) fn new(callable: Py<PyAny>) -> Self {
        Self { callable, raised: Mutex::new(None) }
    }

    /// The exception behind `words`, which the core passed on.
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

/// A source: a path, or a name with an open file.
#[derive(FromPyObject)]
pub(super) enum SourceArgument {
    Path(OsString),
    File(String, PythonFile),
}

impl SourceArgument {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.to_string_lossy().into_owned(),
            Self::File(name, _) => name.clone(),
        }
    }

    pub(super) fn open(
        self,
        format: Option<InputFormat>,
        max_decompressed_bytes: u64,
        progress: &Arc<bytes::Progress>,
    ) -> Reading {
        match self {
            Self::Path(path) => Reading::open(&path, format, max_decompressed_bytes, progress),
            Self::File(name, file) => {
                let input = bytes::Input::from_reader(Box::new(file), max_decompressed_bytes, progress);
                Reading::with_input(&name, input, format, progress)
            }
        }
    }
}

/// A file that Python reads.
pub(super) struct PythonFile(Py<PyAny>);

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
