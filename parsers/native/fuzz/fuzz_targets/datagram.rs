//! Any bytes as payloads of UDP datagrams of one flow, examined for numbers and times.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes, check_tables, pcap_of_packets, split_at_lengths};

/// Raw IPv4.
const LINK_TYPE: u32 = 228;
/// IPv4 and UDP headers with lengths of 0, so that the record's length counts.
const HEADERS: [u8; 28] = [
    0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x14, 0x51, 0x30, 0x39, 0, 0, 0, 0, // UDP
];

fuzz_target!(|bytes: &[u8]| {
    let datagrams: Vec<Vec<u8>> =
        split_at_lengths(bytes).into_iter().map(|payload| [&HEADERS[..], payload].concat()).collect();
    let packets: Vec<&[u8]> = datagrams.iter().map(Vec::as_slice).collect();
    check_tables(analyse_bytes(pcap_of_packets(LINK_TYPE, &packets)));
});
