//! Any bytes as 802.11 frames, so that the fuzzer need not find a link type that has them.
//!
//! The first byte selects the header before a frame; the rest is cut into frames at lengths taken
//! from the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes, check_tables, pcap_of_packets, split_at_lengths};

/// Frames alone, with a Prism, a radiotap and an AVS header.
const LINK_TYPES: [u32; 4] = [105, 119, 127, 163];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let link_type = LINK_TYPES[usize::from(choice) % LINK_TYPES.len()];
    check_tables(analyse_bytes(pcap_of_packets(link_type, &split_at_lengths(rest))));
});
