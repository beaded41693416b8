//! Any bytes as payloads of UDP datagrams of one flow, from both sides in turn, after a start of
//! RTP.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tfrctrace_native::testing::{analyse_bytes, check_tables, pcap_of_packets, split_at_lengths};

/// Raw IPv4.
const LINK_TYPE: u32 = 228;
/// IPv4 and UDP headers with lengths of 0, so that the record's length counts; for both directions.
const HEADERS: [[u8; 28]; 2] = [
    [
        0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        0x14, 0x51, 0x30, 0x39, 0, 0, 0, 0, // UDP
    ],
    [
        0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, // IPv4
        0x30, 0x39, 0x14, 0x51, 0, 0, 0, 0, // UDP
    ],
];

fuzz_target!(|bytes: &[u8]| {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    // An accepted source, so that reports refer to it.
    for number in 0..6 {
        let media = [0x90, 96, 0, number, 0, 0, 0, 0, 1, 2, 3, 4, 0xbe, 0xde, 0, 1, 0x11, 0, number, 0];
        packets.push([&HEADERS[0][..], &media].concat());
    }
    for (turn, rest) in split_at_lengths(bytes).into_iter().enumerate() {
        let mut payload = rest.to_vec();
        if let Some(first) = payload.first_mut() {
            *first = *first & 0x3f | 0x80;
        }
        packets.push([&HEADERS[turn % 2][..], &payload].concat());
    }
    let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    check_tables(analyse_bytes(pcap_of_packets(LINK_TYPE, &packets)));
});
