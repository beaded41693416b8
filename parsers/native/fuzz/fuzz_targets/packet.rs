//! Any bytes as the packets of a capture, so that the fuzzer need not find the file format first.
//!
//! The first byte selects the link type; the rest is cut into packets at lengths taken from the
//! bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes, check_tables, pcap_of_packets, split_at_lengths};

fuzz_target!(|bytes: &[u8]| {
    let Some((&link_type, rest)) = bytes.split_first() else {
        return;
    };
    check_tables(analyse_bytes(pcap_of_packets(u32::from(link_type), &split_at_lengths(rest))));
});
