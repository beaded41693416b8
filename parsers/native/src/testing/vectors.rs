//! Expected numbers of formulas and decoders, from `tests/data/vectors`.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use serde_json::Value;

/// The vectors of one file there.
pub fn vectors(file: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/vectors");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Bytes written as pairs of hexadecimal digits.
pub fn from_hex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
