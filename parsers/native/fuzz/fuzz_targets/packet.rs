//! Any bytes as the packets of a capture, so that the fuzzer need not find the file format first.
//!
//! The first byte chooses the link type; the rest is cut into packets at the bytes' own word.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes, check_tables, pcap_of_packets};

fuzz_target!(|bytes: &[u8]| {
    let Some((&link_type, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut packets = Vec::new();
    while let Some((&length, behind)) = rest.split_first() {
        let (packet, behind) = behind.split_at(usize::from(length).min(behind.len()));
        packets.push(packet);
        rest = behind;
    }
    check_tables(analyse_bytes(pcap_of_packets(u32::from(link_type), &packets)));
});
