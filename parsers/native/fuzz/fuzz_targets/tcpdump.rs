//! Any bytes as a text that tcpdump printed.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/tcpdump`, then
//! `cargo +nightly fuzz run tcpdump fuzz/corpus/tcpdump ../../tests/data/texts/tcpdump`: what it finds
//! goes to the first folder. The texts there are compressed; so is what the fuzzer may find.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "tcpdump"));
});
