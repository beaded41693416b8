//! Tables as files. Python writes the bytes, so a full disk or a closed pipe raises its own exception.

use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{Schema, SchemaRef};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use super::table::Table;
use crate::tables::files::TableFile;
use crate::tables::files::arrow_ipc::ArrowFile;
use crate::tables::files::parquet::ParquetFile;
use crate::tables::{ChosenColumns, Filled, Rows};

/// Write `tables` with the columns of `schema`, which is a table, too, as a Parquet file.
#[pyfunction]
pub(super) fn write_parquet(
    write: &Bound<'_, PyAny>,
    schema: &Bound<'_, PyAny>,
    tables: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let file = ParquetFile::new(Content::of(schema)?.schema()?.as_ref());
    write_file(file, write, tables)
}

/// Write them as an Arrow IPC file.
#[pyfunction]
pub(super) fn write_arrow(
    write: &Bound<'_, PyAny>,
    schema: &Bound<'_, PyAny>,
    tables: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let file = ArrowFile::new(Content::of(schema)?.schema()?.as_ref()).map_err(failed)?;
    write_file(file, write, tables)
}

fn write_file(
    mut file: impl TableFile + Send,
    write: &Bound<'_, PyAny>,
    tables: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = write.py();
    let pass_on = |bytes: Vec<u8>| -> PyResult<()> {
        if !bytes.is_empty() {
            write.call1((PyBytes::new(py, &bytes),))?;
        }
        py.check_signals()
    };
    for table in tables.try_iter()? {
        match Content::of(&table?)? {
            Content::Core(rows) => pass_on(py.detach(|| file.write(&rows)).map_err(failed)?)?,
            Content::Stream(mut batches) => {
                while let Some(batch) = py.detach(|| batches.next()) {
                    let rows: Arc<dyn Rows> = Arc::new(Batch(batch.map_err(failed)?));
                    pass_on(py.detach(|| file.write(&rows)).map_err(failed)?)?;
                }
            }
        }
    }
    pass_on(py.detach(|| file.finish()).map_err(failed)?)
}

fn failed(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// What a table of Python holds.
enum Content {
    Core(Arc<dyn Rows>),
    Stream(Box<RecordBatchStreamReader>),
}

impl Content {
    fn of(table: &Bound<'_, PyAny>) -> PyResult<Self> {
        match table.cast::<Table>() {
            Ok(table) => Ok(Self::Core(table.get().shared_rows())),
            Err(_) => Ok(Self::Stream(Box::new(stream_of(table)?))),
        }
    }

    fn schema(&self) -> PyResult<SchemaRef> {
        match self {
            Self::Core(rows) => rows.schema().map_err(failed),
            Self::Stream(batches) => Ok(batches.schema()),
        }
    }
}

/// Take over what `table` gives by the Arrow PyCapsule interface.
#[allow(unsafe_code)]
fn stream_of(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("not an Arrow stream"))?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a stream of the C interface, by the interface's definition; what
    // is left in the capsule is marked as released.
    unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) }.map_err(failed)
}

/// A record batch that is in memory.
struct Batch(RecordBatch);

impl Rows for Batch {
    fn len(&self) -> usize {
        self.0.num_rows()
    }

    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled {
        let schema: &Schema = self.0.schema_ref();
        let fields = schema.fields().iter().enumerate();
        let kept: Vec<usize> = fields.filter(|(_, field)| wanted(field.name())).map(|(at, _)| at).collect();
        Ok(self.0.project(&kept)?.slice(start, end - start))
    }
}
