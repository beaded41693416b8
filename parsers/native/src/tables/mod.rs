//! Rows into Arrow columns, a batch at a time.
//!
//! Names, types and order are those of `parsers/schema/`, which also says what each column means and
//! when it is null; a test holds the two together.

pub mod csv_json;
pub mod flows;
pub mod packets;
pub mod replay;
mod retransmissions;
pub mod rounds;
pub mod rtp;
pub mod rtt_buckets;
pub mod tcp_details;
pub mod tfrc;
pub mod time_series;
pub mod transits;
pub mod wifi_links;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

/// A table that is made batch by batch, when somebody asks.
pub trait Rows: Send + Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows `start..end`, which must exist.
    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError>;

    /// Names and types.
    fn schema(&self) -> Result<SchemaRef, ArrowError> {
        Ok(self.batch(0, 0)?.schema())
    }
}

/// The columns of a batch under construction.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn push(&mut self, name: &str, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
    }

    fn u32<V: Into<Option<u32>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<UInt32Array>()));
    }

    fn u64<V: Into<Option<u64>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<UInt64Array>()));
    }

    fn i64<V: Into<Option<i64>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<Int64Array>()));
    }

    fn f64<V: Into<Option<f64>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<Float64Array>()));
    }

    fn text<S: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = Option<S>>) {
        self.push(name, Arc::new(values.collect::<StringArray>()));
    }

    fn finish(self, rows: usize) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(self.fields)), self.arrays, &options)
    }
}
