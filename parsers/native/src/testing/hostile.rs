//! Tampered captures: every bound holds, nothing panics, no packet is lost.

use std::path::Path;
use std::sync::LazyLock;

use crate::testing::{analyse_bytes, analyse_bytes_as, check_tables, pcap_of_packets, uncompressed};
use proptest::prelude::*;

/// Small real captures of each format. What cases share is read and decompressed once.
static CAPTURES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| files("captures").into_iter().filter(|bytes| bytes.len() < 40_000).collect());
static UNCOMPRESSED: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| CAPTURES.iter().map(|bytes| uncompressed(bytes)).collect());
static TEXTS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| files("texts/tcpdump").iter().map(|bytes| uncompressed(bytes)).collect());
static CALL: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/rtp");
    ["receiver", "sender"]
        .map(|end| uncompressed(&std::fs::read(folder.join(format!("gstreamer-{end}.pcap.gz"))).unwrap()))
});

/// All files of a folder of the test data.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
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

/// A DCCP packet between two hosts in IPv4, with options of CCID 3 among others.
fn dccp() -> impl Strategy<Value = Vec<u8>> {
    let option = (0_u8..200, proptest::collection::vec(any::<u8>(), 0..12), -1_i8..2);
    let number = prop_oneof![0_u64..40, any::<u64>()];
    let fields = (any::<bool>(), 0_u8..4, 0_u8..10, any::<u8>(), number.clone(), number, 0_usize..1400);
    (fields, proptest::collection::vec(option, 0..4)).prop_map(|(fields, options)| {
        let (is_back, ecn, kind, ccval, seq, ack, payload) = fields;
        let mut header = vec![0, ccval << 4, 0, 0, kind << 1 | 1, 0];
        header.extend(&seq.to_be_bytes()[2..]);
        if !matches!(kind, 0 | 2) {
            header.extend([0, 0]);
            header.extend(&ack.to_be_bytes()[2..]);
        }
        if matches!(kind, 0 | 1 | 7) {
            header.extend([0; 4]);
        }
        for (kind, data, lie) in options {
            header.extend([kind, (data.len() as u8 + 2).wrapping_add_signed(lie)]);
            header.extend(data);
        }
        header.resize((header.len() + 4).next_multiple_of(4) - 4, 0);
        let mut packet =
            vec![0x45, ecn, 0, 0, 0, 1, 0, 0, 64, 33, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 2, 2];
        if is_back {
            packet[12..20].rotate_left(4);
            packet[20..24].rotate_left(2);
        }
        header[0] = ((header.len() + 4) / 4) as u8;
        packet.extend(header);
        packet.resize(packet.len() + payload, 0);
        packet
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn test_dccp_packets_of_any_kind_keep_every_bound(packets in proptest::collection::vec(dccp(), 0..60)) {
        const RAW_IPV4: u32 = 228;
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        check_tables(analyse_bytes(pcap_of_packets(RAW_IPV4, &packets)));
    }

    #[test]
    fn test_tampered_captures_keep_every_bound(
        which: prop::sample::Index,
        changes in changes(40),
        cut: prop::sample::Index,
    ) {
        let mut bytes = which.get(&UNCOMPRESSED).clone();
        change(&mut bytes, &changes);
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        check_tables(analyse_bytes(bytes));
    }

    #[test]
    fn test_tampered_rtp_and_reports_keep_every_bound(
        is_sender: bool,
        changes in changes(40),
    ) {
        let mut bytes = CALL[usize::from(is_sender)].clone();
        change(&mut bytes, &changes);
        check_tables(analyse_bytes(bytes));
    }

    #[test]
    fn test_tampered_compressed_captures_keep_every_bound(
        which: prop::sample::Index,
        changes in changes(6),
    ) {
        let mut bytes = which.get(&CAPTURES).clone();
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
        let mut bytes = which.get(&TEXTS).clone();
        change(&mut bytes, &changes);
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        check_tables(analyse_bytes_as(bytes, "tcpdump"));
    }
}
