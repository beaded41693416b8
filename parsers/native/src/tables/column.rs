//! The declaration of a column, and the Arrow column that it makes of rows.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

/// The documentation of a column.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Unique in its table, with the unit where that is not obvious.
    pub name: &'static str,
    /// Empty for counts, ratios and text.
    pub unit: &'static str,
    meaning: &'static str,
    values: Option<fn() -> Vec<&'static str>>,
    /// Empty if the value is always known.
    pub null_when: &'static str,
}

/// Begin the declaration of a column.
pub(super) const fn column(name: &'static str, unit: &'static str, meaning: &'static str) -> Description {
    Description { name, unit, meaning, values: None, null_when: "" }
}

impl Description {
    pub(super) const fn null_when(mut self, null_when: &'static str) -> Self {
        self.null_when = null_when;
        self
    }

    /// List the values in the meaning.
    pub(super) const fn one_of(mut self, values: fn() -> Vec<&'static str>) -> Self {
        self.values = Some(values);
        self
    }

    /// The meaning, with all values that a name can have.
    pub fn meaning(&self) -> String {
        let Some(values) = self.values else { return self.meaning.to_owned() };
        let quoted: Vec<String> = values().into_iter().map(|value| format!("`{value}`")).collect();
        format!("{}: {}", self.meaning, quoted.join(", "))
    }

    pub(super) const fn u32<R>(self, fill: fn(&R) -> Option<u32>) -> Column<R> {
        Column { description: self, fill: Fill::U32(fill) }
    }

    pub(super) const fn u64<R>(self, fill: fn(&R) -> Option<u64>) -> Column<R> {
        Column { description: self, fill: Fill::U64(fill) }
    }

    pub(super) const fn i64<R>(self, fill: fn(&R) -> Option<i64>) -> Column<R> {
        Column { description: self, fill: Fill::I64(fill) }
    }

    pub(super) const fn f64<R>(self, fill: fn(&R) -> Option<f64>) -> Column<R> {
        Column { description: self, fill: Fill::F64(fill) }
    }

    /// Text borrowed from the row.
    pub(super) const fn name<R>(self, fill: fn(&R) -> Option<&str>) -> Column<R> {
        Column { description: self, fill: Fill::Name(fill) }
    }

    /// Text created for the column.
    pub(super) const fn text<R>(self, fill: fn(&R) -> Option<String>) -> Column<R> {
        Column { description: self, fill: Fill::Text(fill) }
    }
}

/// A column of rows `R`: its documentation, and its value in a row.
pub struct Column<R> {
    pub(super) description: Description,
    fill: Fill<R>,
}

/// The value in a row, by type.
enum Fill<R> {
    U32(fn(&R) -> Option<u32>),
    U64(fn(&R) -> Option<u64>),
    I64(fn(&R) -> Option<i64>),
    F64(fn(&R) -> Option<f64>),
    Name(fn(&R) -> Option<&str>),
    Text(fn(&R) -> Option<String>),
}

impl<R> Column<R> {
    pub(super) fn data_type(&self) -> DataType {
        match self.fill {
            Fill::U32(_) => DataType::UInt32,
            Fill::U64(_) => DataType::UInt64,
            Fill::I64(_) => DataType::Int64,
            Fill::F64(_) => DataType::Float64,
            Fill::Name(_) | Fill::Text(_) => DataType::Utf8,
        }
    }

    fn array(&self, rows: &[R]) -> ArrayRef {
        match self.fill {
            Fill::U32(fill) => Arc::new(rows.iter().map(fill).collect::<UInt32Array>()),
            Fill::U64(fill) => Arc::new(rows.iter().map(fill).collect::<UInt64Array>()),
            Fill::I64(fill) => Arc::new(rows.iter().map(fill).collect::<Int64Array>()),
            Fill::F64(fill) => Arc::new(rows.iter().map(fill).collect::<Float64Array>()),
            Fill::Name(fill) => Arc::new(rows.iter().map(fill).collect::<StringArray>()),
            Fill::Text(fill) => Arc::new(rows.iter().map(fill).collect::<StringArray>()),
        }
    }
}

/// A row, with all columns of its table.
pub trait Row<'a>: Sized + 'a {
    /// In the order of the table, in groups.
    const COLUMNS: &'a [&'a [Column<Self>]];
}

/// Fill the columns whose names are `wanted` with `rows`.
pub(super) fn record_batch<'a, R: Row<'a>>(
    rows: &[R],
    wanted: &dyn Fn(&str) -> bool,
) -> Result<RecordBatch, ArrowError> {
    let columns = || R::COLUMNS.iter().copied().flatten().filter(|column| wanted(column.description.name));
    let fields: Vec<Field> =
        columns().map(|column| Field::new(column.description.name, column.data_type(), true)).collect();
    let arrays = columns().map(|column| column.array(rows)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}
