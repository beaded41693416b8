//! Tables as the bytes of files.

pub mod arrow_ipc;
pub mod csv_json;
pub mod parquet;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use crate::tables::Rows;

/// A file of a table that is being written; its bytes are handed out as they come.
pub trait TableFile: Sized {
    type Error: ToString + Send;

    /// Add rows; return the bytes of the file that are complete.
    fn write(&mut self, rows: &Arc<dyn Rows>) -> Result<Vec<u8>, Self::Error>;

    /// End the file; return the rest of it.
    fn finish(self) -> Result<Vec<u8>, Self::Error>;
}

/// The same columns, text of any width as plain text, which every reader has.
fn with_plain_text(schema: &Schema) -> SchemaRef {
    let plain = |field: &Arc<Field>| match field.data_type() {
        DataType::LargeUtf8 | DataType::Utf8View => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8))
        }
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(plain).collect::<Fields>()))
}
