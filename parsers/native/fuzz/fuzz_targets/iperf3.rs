//! Any bytes as iperf3's JSON.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/iperf3`, then
//! `cargo +nightly fuzz run iperf3 fuzz/corpus/iperf3 ../../tests/data/logs`: what it finds goes to the
//! first folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "iperf3"));
});
