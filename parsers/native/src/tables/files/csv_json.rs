//! Rows as text: fields of CSV (RFC 4180), and objects of JSON.
//!
//! 100,000 flows have tens of millions of values: as Python objects, or as the columns of a whole
//! table, they would take more memory than the flows themselves.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType};
use serde::Serialize;

use crate::tables::Rows;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// A line for each row; what is null is an empty field, an empty text is quoted.
    Csv {
        /// Text as it is, not as `safe_cell` has it.
        raw: bool,
    },
    /// An object for each row, with a comma and a line feed between them, all ASCII. Numbers look as
    /// Python's `json` writes them.
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
        RowFormat::Csv { raw } => {
            for row in 0..batch.num_rows() {
                for (at, column) in columns.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    column.write_csv(row, raw, &mut out)?;
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

    fn write_csv(&self, row: usize, raw: bool, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        if self.is_null(row) {
            return Ok(());
        }
        match self {
            Self::F64(array) => number(array.value(row), out),
            Self::Text(array) => {
                let text = array.value(row);
                csv_text(&if raw { text.into() } else { safe_cell(text) }, out);
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

/// `text` as a cell of CSV that neither a spreadsheet nor a terminal obeys.
///
/// An apostrophe stands before what a spreadsheet would run as a formula, but not before a number;
/// control characters, and those that turn the direction of writing or draw nothing, are escaped.
pub fn safe_cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    if !is_formula && !text.contains(is_invisible) {
        return text.into();
    }
    let mut safe = String::from(if is_formula { "'" } else { "" });
    for letter in text.chars() {
        match u32::from(letter) {
            _ if !is_invisible(letter) => safe.push(letter),
            code @ 0..0x100 => safe.push_str(&format!("\\x{code:02x}")),
            code @ 0x100..0x1_0000 => safe.push_str(&format!("\\u{code:04x}")),
            code => safe.push_str(&format!("\\U{code:08x}")),
        }
    }
    safe.into()
}

/// Whether a character is of the categories Cc, Cf, Co, Zl or Zp of Unicode.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

/// Quoted only if it has to be, as awk and cut like it.
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
