//! Any bytes as what iperf 2 prints.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/iperf`, then
//! `cargo +nightly fuzz run iperf fuzz/corpus/iperf ../../tests/data/logs`: what it finds goes to the
//! first folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "iperf"));
});
