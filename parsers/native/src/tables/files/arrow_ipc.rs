//! Tables as files of Arrow's IPC format, which Polars and pandas call Feather.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

use super::{TableFile, with_plain_text};
use crate::tables::Rows;

/// Rows of a record batch.
const BATCH_ROWS: usize = 32_768;

/// An Arrow file that is being written; its bytes are handed out as they come.
pub struct ArrowFile {
    schema: SchemaRef,
    writer: FileWriter<Vec<u8>>,
}

impl ArrowFile {
    /// Begin a file with the columns of `schema`.
    pub fn new(schema: &Schema) -> Result<Self, ArrowError> {
        let schema = with_plain_text(schema);
        Ok(Self { writer: FileWriter::try_new(Vec::new(), &schema)?, schema })
    }
}

impl TableFile for ArrowFile {
    type Error = ArrowError;

    fn write(&mut self, rows: &Arc<dyn Rows>) -> Result<Vec<u8>, ArrowError> {
        for start in (0..rows.len()).step_by(BATCH_ROWS) {
            let batch = rows.batch(start, rows.len().min(start + BATCH_ROWS))?;
            let columns = batch.columns().iter().map(plain_text).collect();
            self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?;
        }
        Ok(std::mem::take(self.writer.get_mut()))
    }

    fn finish(mut self) -> Result<Vec<u8>, ArrowError> {
        self.writer.finish()?;
        Ok(std::mem::take(self.writer.get_mut()))
    }
}

/// A column as [`with_plain_text`] declares it.
fn plain_text(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::LargeUtf8 => Arc::new(column.as_string::<i64>().iter().collect::<StringArray>()),
        DataType::Utf8View => Arc::new(column.as_string_view().iter().collect::<StringArray>()),
        _ => Arc::clone(column),
    }
}
