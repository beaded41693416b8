//! Any bytes as DCCP packets of one connection, headers and options, from either end, marked or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes, check_tables, pcap_of_packets, split_at_lengths};

/// Raw IPv4.
const LINK_TYPE: u32 = 228;
/// An IPv4 header with a length of 0, so that the record's length counts, and the ports.
const HEADERS: [u8; 24] = [
    0x45, 0, 0, 0, 0, 1, 0, 0, 64, 33, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x14, 0x51, 0x30, 0x39,
];

/// A packet whose first byte selects its sender and ECN mark.
fn packet(bytes: &[u8]) -> Vec<u8> {
    let (choice, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let mut headers = HEADERS;
    headers[1] = choice >> 1 & 3;
    if choice & 1 == 1 {
        headers[12..20].rotate_left(4);
        headers[20..24].rotate_left(2);
    }
    [&headers[..], rest].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let packets: Vec<Vec<u8>> = split_at_lengths(bytes).into_iter().map(packet).collect();
    let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    check_tables(analyse_bytes(pcap_of_packets(LINK_TYPE, &packets)));
});
