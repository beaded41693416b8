//! The declaration of a column, and the Arrow column that it makes of rows.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
    new_null_array,
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

    /// Bytes borrowed from the row.
    pub(super) const fn bytes<R>(self, fill: fn(&R) -> Option<&[u8]>) -> Column<R> {
        Column { description: self, fill: Fill::Bytes(fill) }
    }

    /// Text borrowed from the row.
    pub(super) const fn name<R>(self, fill: fn(&R) -> Option<&str>) -> Column<R> {
        Column { description: self, fill: Fill::Name(fill) }
    }

    /// Text created for the column.
    pub(super) const fn text<R>(self, fill: fn(&R) -> Option<String>) -> Column<R> {
        Column { description: self, fill: Fill::Text(fill) }
    }

    /// Text created for the column, once for adjacent rows with few different keys. A row without a key has a
    /// text of its own.
    pub(super) const fn repeated_text<R>(
        self,
        key: fn(&R) -> Option<TextKey>,
        fill: fn(&R) -> Option<String>,
    ) -> Column<R> {
        Column { description: self, fill: Fill::RepeatedText(key, fill) }
    }
}

/// What a repeated text follows from: equal keys, equal texts.
pub(super) type TextKey = (u128, u32);

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
    Bytes(fn(&R) -> Option<&[u8]>),
    Name(fn(&R) -> Option<&str>),
    Text(fn(&R) -> Option<String>),
    RepeatedText(fn(&R) -> Option<TextKey>, fn(&R) -> Option<String>),
}

impl<R> Column<R> {
    pub(super) fn data_type(&self) -> DataType {
        match self.fill {
            Fill::U32(_) => DataType::UInt32,
            Fill::U64(_) => DataType::UInt64,
            Fill::I64(_) => DataType::Int64,
            Fill::F64(_) => DataType::Float64,
            Fill::Bytes(_) => DataType::Binary,
            Fill::Name(_) | Fill::Text(_) | Fill::RepeatedText(..) => DataType::Utf8,
        }
    }

    fn array(&self, rows: &[R]) -> ArrayRef {
        match self.fill {
            Fill::U32(fill) => numbers::<UInt32Type, R>(rows, fill),
            Fill::U64(fill) => numbers::<UInt64Type, R>(rows, fill),
            Fill::I64(fill) => numbers::<Int64Type, R>(rows, fill),
            Fill::F64(fill) => numbers::<Float64Type, R>(rows, fill),
            Fill::Bytes(fill) => Arc::new(rows.iter().map(fill).collect::<BinaryArray>()),
            Fill::Name(fill) => texts(&mut rows.iter().map(fill)),
            Fill::Text(fill) => texts(&mut rows.iter().map(fill)),
            Fill::RepeatedText(key, fill) => Arc::new(repeated_texts(rows, key, fill)),
        }
    }
}

/// A column of numbers. Most columns of a table of packets have one in each row, or in none.
fn numbers<T: ArrowPrimitiveType, R>(rows: &[R], fill: fn(&R) -> Option<T::Native>) -> ArrayRef {
    let mut values = Vec::with_capacity(rows.len());
    let mut unknown = 0;
    for row in rows {
        let value = fill(row);
        unknown += usize::from(value.is_none());
        values.push(value.unwrap_or_default());
    }
    let is_mixed = unknown > 0 && unknown < rows.len();
    let is_known = is_mixed.then(|| rows.iter().map(|row| fill(row).is_some()).collect());
    number_array::<T>(values, unknown, is_known)
}

/// The array of `values`, `unknown` of which are: all, or those that are not known by `is_known`. What is here is
/// not repeated for each kind of row.
fn number_array<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    unknown: usize,
    is_known: Option<Vec<bool>>,
) -> ArrayRef {
    match is_known {
        None if unknown > 0 => new_null_array(&T::DATA_TYPE, unknown),
        is_known => Arc::new(PrimitiveArray::<T>::new(values.into(), is_known.map(Into::into))),
    }
}

/// A column of texts; nearly free if no row has one.
fn texts<S: AsRef<str>>(rows: &mut dyn ExactSizeIterator<Item = Option<S>>) -> ArrayRef {
    let len = rows.len();
    let Some((at, first)) = (&mut *rows).enumerate().find(|(_, text)| text.is_some()) else {
        return new_null_array(&DataType::Utf8, len);
    };
    let mut texts = StringBuilder::with_capacity(len, 8 * len);
    texts.append_nulls(at);
    texts.append_option(first);
    rows.for_each(|text| texts.append_option(text));
    Arc::new(texts.finish())
}

/// Slots for texts that were made before; a power of two.
const KEPT_TEXTS: usize = 256;

fn repeated_texts<R>(
    rows: &[R],
    key: fn(&R) -> Option<TextKey>,
    fill: fn(&R) -> Option<String>,
) -> StringArray {
    let mut kept: [Option<(TextKey, Option<String>)>; KEPT_TEXTS] = [const { None }; KEPT_TEXTS];
    let mut texts = StringBuilder::with_capacity(rows.len(), 8 * rows.len());
    for row in rows {
        let Some(key) = key(row) else {
            texts.append_option(fill(row));
            continue;
        };
        let slot = &mut kept[slot_of(key)];
        let (_, text) = match slot.take() {
            Some(made) if made.0 == key => slot.insert(made),
            _ => slot.insert((key, fill(row))),
        };
        texts.append_option(text.as_deref());
    }
    texts.finish()
}

/// The slot of a key: the upper bits of a product depend on all bits of both (Fibonacci hashing).
fn slot_of((key, more): TextKey) -> usize {
    let folded = (key as u64) ^ ((key >> 64) as u64) ^ u64::from(more);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - KEPT_TEXTS.trailing_zeros())) as usize
}

/// A row, with all columns of its table.
pub trait Row<'a>: Sized + 'a {
    /// In the order of the table, in groups.
    const COLUMNS: &'a [&'a [Column<Self>]];
}

/// Whether a table shall have the column of this name.
pub type ChosenColumns<'a> = &'a dyn Fn(&str) -> bool;

/// Some columns of some rows.
pub type Filled = Result<RecordBatch, ArrowError>;

/// Fill the columns whose names are `wanted` with `rows`.
pub(super) fn record_batch<'a, R: Row<'a>>(rows: &[R], wanted: ChosenColumns<'_>) -> Filled {
    let columns = || R::COLUMNS.iter().copied().flatten().filter(|column| wanted(column.description.name));
    let fields: Vec<Field> =
        columns().map(|column| Field::new(column.description.name, column.data_type(), true)).collect();
    let arrays = columns().map(|column| column.array(rows)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}
