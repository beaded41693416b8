//! Pairs of captures of any packets: nothing panics, and what was sent is accounted for.

use proptest::prelude::*;

use crate::testing::{analyse_captures_of_bytes, analyse_pair_of_bytes, check_tables, pcap_of_packets};

/// LINKTYPE_RAW: IP without a frame around it.
const RAW_IP: u32 = 101;

/// What a packet varies: direction, identification, time to live, number, acknowledgement, flags, payload.
type Any = (bool, u8, u8, u8, u8, u8, u8);

fn packet((is_back, id, ttl, seq, ack, flags, payload): Any) -> Vec<u8> {
    let length = 40 + payload;
    let (src, dst) = if is_back { (2, 1) } else { (1, 2) };
    let mut bytes = vec![0x45, 0, 0, length, 0, id, 0x40, 0, ttl, 6, 0, 0, 10, 0, 0, src, 10, 0, 0, dst];
    bytes.extend([0, src, 0, dst, 0, 0, 0, seq, 0, 0, 0, ack, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    bytes.resize(usize::from(length), 0);
    bytes
}

fn any_packet() -> impl Strategy<Value = Any> {
    let flags = prop_oneof![8 => Just(0x10_u8), 1 => any::<u8>()];
    (any::<bool>(), 0_u8..60, 60_u8..65, 0_u8..100, 0_u8..100, flags, 0_u8..40)
}

fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    pcap_of_packets(RAW_IP, &packets.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn test_what_passes_one_capture_is_accounted_for(
        sent in proptest::collection::vec(any_packet(), 1..80),
        fates in proptest::collection::vec((0_u8..10, 0_usize..6), 80),
    ) {
        let near: Vec<Vec<u8>> = sent.iter().copied().map(packet).collect();
        // Some are lost, some come twice, some late.
        let mut far: Vec<(usize, Vec<u8>)> = Vec::new();
        for (at, (bytes, (fate, late))) in near.iter().zip(fates).enumerate() {
            let copies = match fate { 0 => 0, 1 => 2, _ => 1 };
            far.extend((0..copies).map(|copy| (at + late * copy, bytes.clone())));
        }
        far.sort_by_key(|(at, _)| *at);
        let far: Vec<Vec<u8>> = far.into_iter().map(|(_, bytes)| bytes).collect();
        check_tables(analyse_pair_of_bytes([capture(&near), capture(&far)]));
    }

    #[test]
    fn test_captures_of_a_network_are_read(
        sent in proptest::collection::vec(any_packet(), 1..60),
        seen in proptest::collection::vec(0_u32..64, 60),
        captures in 3_usize..6,
    ) {
        let of_capture = |place: usize| {
            let is_there = |at: usize| seen[at] >> place & 1 == 0;
            let packets = sent.iter().enumerate().filter(|(at, _)| is_there(*at));
            capture(&packets.map(|(_, &fields)| packet(fields)).collect::<Vec<_>>())
        };
        let bytes: Vec<_> = (0..captures).map(of_capture).collect();
        check_tables(analyse_captures_of_bytes(&bytes));
    }

    #[test]
    fn test_captures_that_were_tampered_with_are_read(
        sent in proptest::collection::vec(any_packet(), 1..30),
        harm in proptest::collection::vec((any::<bool>(), 24_usize..2_000, any::<u8>()), 1..40),
    ) {
        let whole = capture(&sent.into_iter().map(packet).collect::<Vec<_>>());
        let mut both = [whole.clone(), whole];
        for (is_second, at, byte) in harm {
            if let Some(there) = both[usize::from(is_second)].get_mut(at) {
                *there = byte;
            }
        }
        check_tables(analyse_pair_of_bytes(both));
    }
}
