//! Any bytes as an ns-3 ASCII trace: lines are read, ends of paths found, packets identified.
//!
//! `cd parsers/native && mkdir -p fuzz/corpus/ns3`, then put the uncompressed traces of
//! `../../tests/data/ns3` there and call `cargo +nightly fuzz run ns3`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes_as, check_tables};

fuzz_target!(|bytes: &[u8]| {
    check_tables(analyse_bytes_as(bytes.to_vec(), "ns3"));
});
