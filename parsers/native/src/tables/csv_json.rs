//! Rows as text: fields of CSV (RFC 4180), and objects of JSON.
//!
//! 100,000 flows have tens of millions of values: as Python objects, or as the columns of a whole
//! table, they would take more memory than the flows themselves.

use std::num::NonZeroUsize;
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType};
use serde::Serialize;

use super::Rows;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// A line for each row; null is an empty field, an empty text is quoted.
    Csv,
    /// An object for each row, with a comma and a line feed between them, all ASCII. Numbers are
    /// written as by Python's `json`.
    Json,
}

/// Rows `start..end` of `rows`, which must exist, made by as many threads as there are processors.
pub fn written(rows: &dyn Rows, start: usize, end: usize, form: RowFormat) -> Result<Vec<u8>, ArrowError> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let share = (end - start).div_ceil(threads).max(1);
    thread::scope(|scope| {
        let part = |first: usize| {
            let work = move || of_batch(&rows.batch(first, end.min(first + share))?, form);
            thread::Builder::new().name("writing".into()).spawn_scoped(scope, work)
        };
        let parts: Vec<_> = (start..end).step_by(share).map(part).collect();
        let mut all = Vec::new();
        for part in parts {
            let text =
                part?.join().map_err(|_| ArrowError::ComputeError("rows could not be written".into()))?;
            if form == RowFormat::Json && !all.is_empty() {
                all.extend(b",\n");
            }
            all.append(&mut text?);
        }
        Ok(all)
    })
}

/// All rows of `batch`.
fn of_batch(batch: &RecordBatch, form: RowFormat) -> Result<Vec<u8>, ArrowError> {
    let columns = batch.columns().iter().map(|array| Column::of(array)).collect::<Result<Vec<_>, _>>()?;
    let mut out = Vec::new();
    match form {
        RowFormat::Csv => {
            for row in 0..batch.num_rows() {
                for (at, column) in columns.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    column.write_csv(row, &mut out)?;
                }
                out.push(b'\n');
            }
        }
        RowFormat::Json => {
            let names = names(batch);
            for row in 0..batch.num_rows() {
                if row > 0 {
                    out.extend(b",\n");
                }
                out.push(b'{');
                for (column, name) in columns.iter().zip(&names) {
                    out.extend(name);
                    column.write_json(row, &mut out)?;
                }
                out.push(b'}');
            }
        }
    }
    Ok(out)
}

/// The text before the value of each column in a JSON object.
fn names(batch: &RecordBatch) -> Vec<Vec<u8>> {
    let before = |(at, field): (usize, &std::sync::Arc<arrow_schema::Field>)| {
        let mut name = if at > 0 { b", ".to_vec() } else { Vec::new() };
        json_text(field.name(), &mut name);
        name.extend(b": ");
        name
    };
    batch.schema().fields().iter().enumerate().map(before).collect()
}

/// A column by its type: those that `tables/mod.rs` makes.
enum Column<'a> {
    U32(&'a UInt32Array),
    U64(&'a UInt64Array),
    I64(&'a Int64Array),
    F64(&'a Float64Array),
    Text(&'a StringArray),
}

impl<'a> Column<'a> {
    fn of(array: &'a dyn Array) -> Result<Self, ArrowError> {
        Ok(match array.data_type() {
            DataType::UInt32 => Self::U32(array.as_primitive::<UInt32Type>()),
            DataType::UInt64 => Self::U64(array.as_primitive::<UInt64Type>()),
            DataType::Int64 => Self::I64(array.as_primitive::<Int64Type>()),
            DataType::Float64 => Self::F64(array.as_primitive::<Float64Type>()),
            DataType::Utf8 => Self::Text(array.as_string()),
            other => return Err(ArrowError::SchemaError(format!("{other} is not written"))),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::U32(array) => array.is_null(row),
            Self::U64(array) => array.is_null(row),
            Self::I64(array) => array.is_null(row),
            Self::F64(array) => array.is_null(row),
            Self::Text(array) => array.is_null(row),
        }
    }

    fn write_csv(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if self.is_null(row) {
            return Ok(());
        }
        match self {
            Self::F64(array) => number(array.value(row), out),
            Self::Text(array) => {
                csv_text(array.value(row), out);
                Ok(())
            }
            _ => self.write_integer(row, out),
        }
    }

    fn write_json(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if self.is_null(row) {
            out.extend(b"null");
            return Ok(());
        }
        match self {
            Self::F64(array) => json_float(array.value(row), out),
            Self::Text(array) => {
                json_text(array.value(row), out);
                Ok(())
            }
            _ => self.write_integer(row, out),
        }
    }

    fn write_integer(&self, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Self::U32(array) => number(array.value(row), out),
            Self::U64(array) => number(array.value(row), out),
            Self::I64(array) => number(array.value(row), out),
            Self::F64(_) | Self::Text(_) => Ok(()),
        }
    }
}

/// The shortest digits that are read back as the same number.
fn number(value: impl Serialize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    serde_json::to_writer(out, &value).map_err(|error| ArrowError::from_external_error(Box::new(error)))
}

/// A number as written by Python: other programs write those below 0.0001 differently.
fn json_float(value: f64, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    if !value.is_finite() {
        // A bug here; write null instead.
        return Err(ArrowError::ComputeError(format!("{value} is no number that JSON has")));
    }
    if value == 0.0 || value.abs() >= 1e-4 {
        return number(value, out);
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once("e-").unwrap_or((&text, "0"));
    out.extend(format!("{digits}e-{exponent:0>2}").bytes());
    Ok(())
}

/// Quoted only if needed, because awk and cut do not parse quotes.
fn csv_text(text: &str, out: &mut Vec<u8>) {
    let needs_quotes =
        text.is_empty() || text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
    if !needs_quotes {
        return out.extend(text.bytes());
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// All but ASCII is escaped, so that no control sequence reaches a terminal.
fn json_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for letter in text.chars() {
        match letter {
            '"' => out.extend(b"\\\""),
            '\\' => out.extend(b"\\\\"),
            '\n' => out.extend(b"\\n"),
            '\r' => out.extend(b"\\r"),
            '\t' => out.extend(b"\\t"),
            '\x08' => out.extend(b"\\b"),
            '\x0c' => out.extend(b"\\f"),
            ' '..='~' => out.push(letter as u8),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.extend(format!("\\u{unit:04x}").bytes());
                }
            }
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn as_json(value: f64) -> String {
        let mut out = Vec::new();
        json_float(value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn test_numbers_look_as_in_python() {
        // Printed by `json.dumps` of Python 3.11.
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.0001, "0.0001"),
            (0.000_099_99, "9.999e-05"),
            (1e-5, "1e-05"),
            (-1.5e-7, "-1.5e-07"),
            (5e-324, "5e-324"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1.0 / 3.0, "0.3333333333333333"),
        ] {
            assert_eq!(as_json(value), text);
        }
        assert!(json_float(f64::NAN, &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn test_what_is_written_is_read_back(value in any::<f64>().prop_filter("finite", |v| v.is_finite()), text: String) {
            prop_assert_eq!(as_json(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
            let mut out = Vec::new();
            json_text(&text, &mut out);
            prop_assert!(out.is_ascii());
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
