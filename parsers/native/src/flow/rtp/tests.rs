use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

/// A packet of `ssrc`, 20 ms after the one with the number before.
fn packet(ssrc: u32, number: u32) -> Vec<u8> {
    let mut bytes = vec![0x80, 96];
    bytes.extend((number as u16).to_be_bytes());
    bytes.extend((number * 960).to_be_bytes());
    bytes.extend(ssrc.to_be_bytes());
    bytes.extend(b"media");
    bytes
}

fn seen_at(payload: &[u8], time_ns: i64) -> MediaPacket {
    seen(&Packet { time_ns, wire_bytes: 100, ..Packet::default() }, payload).unwrap()
}

/// Numbers of one source in the order of their arrival.
fn taken(numbers: &[u32]) -> (RtpDirection, Vec<u16>) {
    let (mut direction, mut followed) = (RtpDirection::default(), Vec::new());
    for (at, number) in (0..).zip(numbers) {
        let seen = seen_at(&packet(7, *number), at * 20 * MS);
        direction.on_packet(&seen, None, false, |_, seen| followed.push(seen.header.sequence));
    }
    (direction, followed)
}

#[test]
fn test_a_source_is_believed_after_six_packets_and_counted_from_the_first() {
    let (direction, followed) = taken(&[65_534, 65_535, 65_536, 65_538, 65_537]);
    assert!(!direction.has_media() && followed.is_empty());
    let (direction, followed) = taken(&[65_534, 65_535, 65_536, 65_538, 65_537, 65_540, 65_540]);
    let delivery = direction.delivery().unwrap();
    assert_eq!((delivery.sent, delivery.received, delivery.lost, delivery.duplicates), (7, 6, 1, 1));
    assert_eq!(delivery.counted.map(|counted| counted.reordered), Some(1));
    assert_eq!(followed, [65_534, 65_535, 0, 2, 1, 4, 4]);
}

#[test]
fn test_several_sources_are_distinguished_and_bounded() {
    let mut direction = RtpDirection::default();
    let sources = MOST_SOURCES as u32 + 2;
    for number in 0..8 {
        // Four at a time, the limit of candidates.
        for ssrc in 0..4 {
            direction.on_packet(&seen_at(&packet(ssrc, number), 0), None, false, |_, _| {});
        }
    }
    for ssrc in 4..sources {
        for number in 0..8 {
            direction.on_packet(&seen_at(&packet(ssrc, number), 0), None, false, |_, _| {});
        }
    }
    assert_eq!(direction.sources().len(), MOST_SOURCES);
    assert_eq!(direction.strange, 2 * 8);
    assert_eq!(direction.delivery().unwrap().received, 8 * MOST_SOURCES as u64);
}

#[test]
fn test_intervals_are_counted_if_they_are_wanted_and_from_the_first_packet() {
    for is_wanted in [false, true] {
        let mut direction = RtpDirection::default();
        for number in 0..8 {
            direction.on_packet(&seen_at(&packet(7, number), 0), None, is_wanted, |_, _| {});
        }
        let intervals = direction.main_source().and_then(|source| source.intervals.as_ref());
        assert_eq!(intervals.map(|intervals| intervals.all()[0].received), is_wanted.then_some(8));
    }
}

#[test]
fn test_other_protocols_are_not_taken_for_it() {
    // A counter and a constant, but nothing of the first bits; nothing that counts; a random time.
    let makers: [&dyn Fn(u32) -> Vec<u8>; 3] = [
        &|number| [0x4000_0000 | number, number * 960, 7, 0].map(u32::to_be_bytes).concat(),
        &|number| [0x8060_0000, number, 7, 0].map(u32::to_be_bytes).concat(),
        &|number| {
            [0x8060_0000 | number, number.wrapping_mul(0x9e37_79b9), 7, 0].map(u32::to_be_bytes).concat()
        },
    ];
    for make in makers {
        let mut direction = RtpDirection::default();
        for number in 0..100 {
            let packet = Packet { time_ns: i64::from(number) * MS, ..Packet::default() };
            if let Some(seen) = seen(&packet, &make(number)) {
                direction.on_packet(&seen, None, false, |_, _| {});
            }
        }
        assert!(!direction.has_media());
        assert!(direction.candidates.len() <= MOST_CANDIDATES);
    }
}

#[test]
fn test_the_users_word_counts_from_the_first_packet() {
    let mut direction = RtpDirection::default();
    let given = Some(GivenRtp { clock_rate: Some(48_000) });
    assert_eq!(direction.on_packet(&seen_at(&packet(7, 3), 0), given, false, |_, _| {}), Some(7));
    assert_eq!(direction.main_source().and_then(|source| source.clock.rate()), Some((48_000, RateBy::User)));
}

proptest! {
    #[test]
    fn test_no_packet_is_lost_and_no_bound_is_passed(
        packets in proptest::collection::vec((0_u32..8, any::<u16>(), any::<u32>(), any::<i64>()), 0..300),
        in_order: bool,
    ) {
        let mut direction = RtpDirection::default();
        for (at, (ssrc, number, timestamp, time_ns)) in (0..).zip(&packets) {
            let mut payload = packet(*ssrc, if in_order { at } else { u32::from(*number) });
            payload[4..8].copy_from_slice(&timestamp.to_be_bytes());
            let time_ns = if in_order { i64::from(at) } else { *time_ns };
            direction.on_packet(&seen_at(&payload, time_ns), None, false, |_, _| {});
        }
        let of_sources: u64 = direction.sources().iter().map(|source| {
            let numbers = &source.sequences;
            numbers.received + numbers.duplicates + numbers.strange
        }).sum();
        let waiting: usize = direction.candidates.iter().map(|candidate| candidate.seen.len()).sum();
        let counted = of_sources + direction.strange + waiting as u64;
        // One number far from the others may wait for its confirmation in each source.
        let jumps = direction.sources().len() as u64;
        prop_assert!(counted <= packets.len() as u64 && counted + jumps >= packets.len() as u64);
        prop_assert!(direction.sources().len() <= MOST_SOURCES);
    }
}
