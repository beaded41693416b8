use super::*;
use crate::flow::quic::spin::SpinVerdict;
use crate::testing::vectors::{from_hex, vectors};

const CLIENT: Side = Side::High;
const SERVER: Side = Side::Low;
const MS: i64 = 1_000_000;

struct Capture {
    flow: QuicFlow,
    hellos: ClientHellos,
}

impl Capture {
    fn new() -> Self {
        Self { flow: QuicFlow::default(), hellos: ClientHellos::default() }
    }

    fn take(&mut self, side: Side, time_ns: i64, payload: &[u8]) -> Findings {
        let datagram = Datagram { time_ns, payload, length: payload.len() };
        self.flow.take((0, side), &datagram, &mut self.hellos)
    }

    /// A handshake with a capture 10 ms before the server.
    fn shake_hands(&mut self, rtt_ns: i64) {
        self.take(CLIENT, 0, &long_header(0, "0102030405060708", "a1a2"));
        self.take(SERVER, 10 * MS, &long_header(0, "a1a2", "b1b2b3b4"));
        self.take(CLIENT, rtt_ns, &long_header(2, "b1b2b3b4", "a1a2"));
        assert_eq!(self.flow.handshake_rtt_ns(), Some(rtt_ns as u64));
    }
}

fn packet_of(vector: usize) -> Vec<u8> {
    from_hex(vectors("quic_initial.json")[vector]["packet"].as_str().unwrap())
}

/// A packet of version 1 without contents.
fn long_header(kind: u8, destination: &str, source: &str) -> Vec<u8> {
    let mut packet = vec![0xc0 | kind << 4, 0, 0, 0, 1];
    for id in [destination, source].map(from_hex) {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet.extend(if kind == 0 { vec![0, 20] } else { vec![20] });
    packet.extend([0; 20]);
    packet
}

fn short_header(spin: bool) -> Vec<u8> {
    [&[0x40 | u8::from(spin) << 5][..], &[0; 30]].concat()
}

#[test]
fn test_the_handshake_of_the_rfc() {
    let mut capture = Capture::new();
    assert!(!capture.flow.is_recognised());
    let first = capture.take(CLIENT, 0, &packet_of(0));
    assert!(capture.flow.is_recognised() && first.answers.is_empty());
    assert_eq!((capture.flow.client(), capture.flow.version()), (Some(CLIENT), Some(Version::V1)));
    assert_eq!(capture.flow.hello().unwrap().server_name.as_deref(), Some("example.com"));

    // It acknowledges packet 0, and the client's in the RFC has number 2: only the other side's answer counts.
    let second = capture.take(SERVER, 20 * MS, &packet_of(1));
    assert!(second.answers.is_empty());
    // Both ends' identifiers, and none before a server answers: the client's is empty.
    let id = |hex: &str| ConnectionId::new(&from_hex(hex)).unwrap();
    assert!(first.ids.is_empty());
    assert_eq!(second.ids.as_slice(), [(SERVER, id("f067a5502a4262b5")), (CLIENT, id(""))]);
    let third = capture.take(CLIENT, 25 * MS, &long_header(2, "f067a5502a4262b5", ""));
    let expected = Answer { side: SERVER, rtt_ns: 5_000_000, by: AnswerBy::Handshake };
    assert_eq!(third.answers.as_slice(), [expected]);
    assert_eq!(capture.flow.handshake_rtt_ns(), None);
}

#[test]
fn test_what_looks_like_quic_is_none_without_an_answer() {
    let mut capture = Capture::new();
    for _ in 0..MOST_STRANGE / 4 {
        assert!(!capture.flow.is_hopeless());
        capture.take(CLIENT, 0, &long_header(0, "0102030405060708", "a1a2"));
        capture.take(SERVER, 1, &short_header(true));
        // For another identifier, and in another version.
        capture.take(SERVER, 1, &long_header(0, "a1a3", "b1b2"));
        let mut other = long_header(0, "a1a2", "b1b2");
        other[1..5].copy_from_slice(&0xff00_001d_u32.to_be_bytes());
        capture.take(SERVER, 2, &other);
    }
    assert!(capture.flow.is_hopeless() && !capture.flow.is_recognised());
}

#[test]
fn test_an_answer_is_enough_where_packets_were_cut() {
    let mut capture = Capture::new();
    capture.take(CLIENT, 0, &long_header(0, "0102030405060708", "a1a2"));
    let found = capture.take(SERVER, 30 * MS, &long_header(0, "a1a2", "b1b2b3b4"));
    assert!(capture.flow.is_recognised() && capture.flow.hello().is_none());
    assert_eq!(capture.flow.client(), Some(CLIENT));
    assert_eq!(
        found.answers.as_slice(),
        [Answer { side: CLIENT, rtt_ns: 30_000_000, by: AnswerBy::Handshake }]
    );
    capture.take(CLIENT, 31 * MS, &long_header(2, "b1b2b3b4", "a1a2"));
    assert_eq!(capture.flow.handshake_rtt_ns(), Some(31_000_000));
}

#[test]
fn test_a_retry_packet_proves_itself() {
    let mut capture = Capture::new();
    // That of RFC 9001 answers the first packet there, whose source is empty.
    let first = long_header(0, "8394c8f03e515708", "");
    capture.take(CLIENT, 0, &first);
    let found = capture.take(SERVER, 7 * MS, &packet_of(4));
    assert!(capture.flow.is_recognised());
    assert_eq!(capture.flow.direction(SERVER).kinds.retry, 1);
    assert_eq!(
        found.answers.as_slice(),
        [Answer { side: CLIENT, rtt_ns: 7_000_000, by: AnswerBy::Handshake }]
    );
    // Not so one of another connection.
    let mut capture = Capture::new();
    capture.take(CLIENT, 0, &long_header(0, "8394c8f03e515709", ""));
    capture.take(SERVER, 7 * MS, &packet_of(4));
    assert!(!capture.flow.is_recognised());
}

#[test]
fn test_a_list_of_versions_is_an_answer() {
    let mut first = long_header(0, "0102030405060708", "a1a2");
    first[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
    let list = |ids: &str| [vec![0x80, 0, 0, 0, 0], from_hex(ids), vec![0, 0, 0, 1]].concat();
    for (ids, is_quic) in [("02a1a2080102030405060708", true), ("02a1a3080102030405060708", false)] {
        let mut capture = Capture::new();
        capture.take(CLIENT, 0, &first);
        capture.take(SERVER, MS, &list(ids));
        assert_eq!(capture.flow.is_recognised(), is_quic, "{ids}");
    }
}

#[test]
fn test_a_spinning_bit_shows_both_parts_of_the_path() {
    // The capture is 10 ms before the server and 30 ms behind the client, and a packet comes each millisecond.
    let mut capture = Capture::new();
    capture.shake_hands(40 * MS);
    for step in 50..850_i64 {
        let late = step % 40 == 2;
        for (side, delay) in [(CLIENT, 0), (SERVER, 10)] {
            let value = (step - delay - i64::from(late) * 4).div_euclid(40) % 2 == 1;
            let found = capture.take(side, step * MS, &short_header(value));
            for answer in found.answers {
                let expected = if answer.side == CLIENT { 10_000_000 } else { 30_000_000 };
                assert_eq!((answer.rtt_ns, answer.by), (expected, AnswerBy::SpinBit), "{step}");
            }
        }
    }
    let spin = capture.flow.spin().unwrap();
    for side in [CLIENT, SERVER] {
        assert_eq!(spin.verdict(side), Some(SpinVerdict::Plausible));
        let (rtt, _) = &**spin.direction(side).rtt.as_ref().unwrap();
        assert_eq!((rtt.range.min_ms(), rtt.range.max_ms()), (Some(40.0), Some(40.0)));
    }
    assert!(spin.direction(CLIENT).late_packets >= 15);
}

#[test]
fn test_other_bits_show_nothing() {
    let verdict_of = |packets: i64, value: &dyn Fn(i64, Side) -> bool| {
        let mut capture = Capture::new();
        capture.shake_hands(40 * MS);
        for step in 50..50 + packets {
            for side in [CLIENT, SERVER] {
                capture.take(side, step * MS, &short_header(value(step, side)));
            }
        }
        capture.flow.spin().unwrap().verdict(CLIENT)
    };
    // As SplitMix does it.
    fn mixed(step: i64, side: Side) -> u64 {
        let state = ((step * 2 + i64::from(side == CLIENT)) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
    assert_eq!(verdict_of(20, &|_, _| true), Some(SpinVerdict::Constant));
    assert_eq!(verdict_of(8, &|_, _| true), None);
    assert_eq!(verdict_of(400, &|step, side| mixed(step, side) >> 40 & 1 == 1), Some(SpinVerdict::Random));
}

#[test]
fn test_an_application_with_little_to_say_is_known() {
    // A request each second, answered after 40 ms.
    let mut capture = Capture::new();
    capture.shake_hands(40 * MS);
    for second in 1..20 {
        let value = second % 2 == 1;
        let at = second * 1000 * MS;
        capture.take(CLIENT, at, &short_header(!value));
        capture.take(SERVER, at + 40 * MS, &short_header(!value));
        capture.take(CLIENT, at + 41 * MS, &short_header(value));
    }
    let spin = capture.flow.spin().unwrap();
    assert_eq!(spin.verdict(CLIENT), Some(SpinVerdict::ApplicationLimited));
}
