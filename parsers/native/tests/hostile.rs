//! Captures that somebody has tampered with: every bound holds, nothing panics, no packet is lost.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use proptest::prelude::*;
use tfrctrace_native::testing::{analyse_bytes, analyse_bytes_as, check_tables, pcap_of_packets};

/// A real capture of each format, small enough to be tampered with many times.
fn captures() -> Vec<Vec<u8>> {
    files("captures").into_iter().filter(|bytes| bytes.len() < 40_000).collect()
}

/// All files of a folder of the test data.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// The uncompressed bytes of a gzip file; others as they are.
fn uncompressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes);
    match std::io::Read::read_to_end(&mut decoder, &mut out) {
        Ok(_) => out,
        Err(_) => bytes.to_vec(),
    }
}

fn change(bytes: &mut [u8], changes: &[(prop::sample::Index, u8)]) {
    for (at, byte) in changes {
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
    }
}

fn changes(most: usize) -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn test_tampered_captures_keep_every_bound(
        which: prop::sample::Index,
        changes in changes(40),
        cut: prop::sample::Index,
    ) {
        let captures = captures();
        let mut bytes = uncompressed(&captures[which.index(captures.len())]);
        change(&mut bytes, &changes);
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        check_tables(analyse_bytes(bytes));
    }

    #[test]
    fn test_tampered_compressed_captures_keep_every_bound(
        which: prop::sample::Index,
        changes in changes(6),
    ) {
        let captures = captures();
        let mut bytes = captures[which.index(captures.len())].clone();
        change(&mut bytes, &changes);
        check_tables(analyse_bytes(bytes));
    }

    #[test]
    fn test_packets_of_noise_keep_every_bound(
        link_type in prop::sample::select(vec![
            0_u32, 1, 9, 50, 101, 105, 108, 113, 119, 127, 163, 204, 228, 229, 276,
        ]),
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 0..30),
    ) {
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        check_tables(analyse_bytes(pcap_of_packets(link_type, &packets)));
    }

    #[test]
    fn test_tampered_texts_of_tcpdump_keep_every_bound(
        which: prop::sample::Index,
        changes in changes(40),
        cut: prop::sample::Index,
    ) {
        let texts = files("texts/tcpdump");
        let mut bytes = uncompressed(&texts[which.index(texts.len())]);
        change(&mut bytes, &changes);
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        check_tables(analyse_bytes_as(bytes, "tcpdump"));
    }
}
