//! Any bytes as the table of packets in CSV.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/packets`, then
//! `cargo +nightly fuzz run packets fuzz/corpus/packets`: what it finds goes to the
//! first folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "packets"));
});
