//! Any bytes as a file: recognised, decompressed, decoded, given to flows, turned into tables.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/capture`, then
//! `cargo +nightly fuzz run capture fuzz/corpus/capture ../../tests/data/captures`: what it finds goes
//! to the first folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes(bytes.to_vec()));
});
