//! Any bytes as FlowMonitor's XML.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/flowmon`, then put the uncompressed documents of
//! `../../tests/data/ns3` there and call `cargo +nightly fuzz run flowmon`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "flowmon"));
});
