//! Any bytes as a log of TCP variables in columns.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/tcpvars`, then
//! `cargo +nightly fuzz run tcpvars fuzz/corpus/tcpvars ../../tests/data/logs`: what it finds goes to the
//! first folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "tcpvars"));
});
