//! Tables of the core for Polars, without a copy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::tables::files::csv_json::{RowFormat, safe_cell, written};
use crate::tables::largest::{Over, largest_flows};
use crate::tables::{RowRange, Rows, SelectedColumns};

/// Rows in one batch of a stream: large enough to be quick, small enough that a table of any
/// length passes in little memory.
const BATCH_ROWS: usize = 16_384;

pub(super) fn arrow_error(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A table that Polars reads through the Arrow C stream interface.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
pub(super) struct Table {
    rows: Arc<dyn Rows>,
}

impl Table {
    pub(super) fn of(rows: Box<dyn Rows>) -> Self {
        Self { rows: rows.into() }
    }

    pub(super) fn shared_rows(&self) -> Arc<dyn Rows> {
        Arc::clone(&self.rows)
    }
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

    fn select(&self, columns: Vec<String>) -> Self {
        Self { rows: Arc::new(SelectedColumns::new(Arc::clone(&self.rows), columns)) }
    }

    fn slice(&self, start: usize, stop: usize) -> Self {
        Self { rows: Arc::new(RowRange::new(Arc::clone(&self.rows), start, stop)) }
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

    #[pyo3(signature = (column, limit, *, total))]
    fn largest_flows(
        &self,
        py: Python<'_>,
        column: &str,
        limit: usize,
        total: bool,
    ) -> PyResult<Vec<(f64, usize, usize)>> {
        let over = if total { Over::Sum } else { Over::Max };
        let found = py.detach(|| largest_flows(&*self.rows, column, over, limit)).map_err(arrow_error)?;
        Ok(found.into_iter().map(|(value, rows)| (value, rows.start, rows.end)).collect())
    }

    #[pyo3(signature = (start = 0, stop = None))]
    fn rows<'py>(&self, py: Python<'py>, start: usize, stop: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let stop = stop.unwrap_or(usize::MAX).min(self.rows.len());
        let batch = self.rows.batch(start.min(stop), stop).map_err(arrow_error)?;
        rows_to_python(py, &batch)
    }

    #[pyo3(signature = (start = 0, stop = None, *, raw = false))]
    fn csv<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: Option<usize>,
        raw: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.written(py, start, stop, RowFormat::Csv { raw })?))
    }

    #[pyo3(signature = (start = 0, stop = None))]
    fn json(&self, py: Python<'_>, start: usize, stop: Option<usize>) -> PyResult<String> {
        Ok(String::from_utf8(self.written(py, start, stop, RowFormat::Json)?)?)
    }
}

impl Table {
    fn written(
        &self,
        py: Python<'_>,
        start: usize,
        stop: Option<usize>,
        form: RowFormat,
    ) -> PyResult<Vec<u8>> {
        let stop = stop.unwrap_or(usize::MAX).min(self.rows.len());
        py.detach(|| written(&*self.rows, start.min(stop), stop, form)).map_err(arrow_error)
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

/// `text` as a cell of CSV that neither a spreadsheet nor a terminal obeys.
#[pyfunction]
pub fn safe_csv_cell(text: &str) -> String {
    safe_cell(text).into_owned()
}
