//! Any bytes as a trace of ns-2, whatever they look like.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/ns2`, then
//! `cargo +nightly fuzz run ns2 fuzz/corpus/ns2`: a corpus of a few lines of each form is a good start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "ns2"));
});
