use super::*;
use proptest::prelude::*;

const MS: i64 = 1_000_000;

#[derive(Default)]
struct Script {
    connection: Connection,
    pool: Pool,
}

impl Script {
    fn give(&mut self, side: Side, time_ms: i64, header: DccpHeader, options: &[u8]) -> Option<u64> {
        let packet = Packet { time_ns: time_ms * MS, wire_bytes: 100, ..Packet::default() };
        self.connection.on_packet(side, &packet, &header, options, &mut self.pool)
    }

    fn data(&mut self, time_ms: i64, seq: u64) {
        self.give(Side::Low, time_ms, header(DccpType::Data, seq, None), &[]);
    }

    fn ack(&mut self, time_ms: i64, seq: u64, ack: u64, options: &[u8]) -> Option<u64> {
        self.give(Side::High, time_ms, header(DccpType::Ack, seq, Some(ack)), options)
    }

    fn lost(&self) -> u64 {
        self.connection.half(Side::Low).delivery().unwrap().lost
    }
}

fn header(kind: DccpType, seq: u64, ack: Option<u64>) -> DccpHeader {
    DccpHeader {
        kind,
        ccval: 0,
        coverage: 0,
        is_short: false,
        seq,
        ack,
        service_code: None,
        reset_code: None,
    }
}

#[test]
fn test_an_rtt_is_without_the_time_that_the_receiver_held_the_acknowledgement() {
    let mut script = Script::default();
    script.data(0, 7);
    script.data(5, 8);
    // Elapsed time of 2,000 units: 20 ms
    let rtt_ns = script.ack(75, 1, 8, &[43, 4, 0x07, 0xd0]);
    assert_eq!(rtt_ns, Some(50_000_000));
    assert_eq!(script.ack(76, 2, 8, &[]), None, "acknowledged before");
}

#[test]
fn test_an_elapsed_time_longer_than_the_packet_was_away_gives_no_rtt() {
    let mut script = Script::default();
    script.data(0, 7);
    assert_eq!(script.ack(10, 1, 7, &[43, 4, 0x07, 0xd0]), None);
    assert_eq!(script.connection.half(Side::Low).impossible_elapsed_times, 1);
}

#[test]
fn test_gaps_in_the_numbers_are_packets_that_did_not_come() {
    let mut script = Script::default();
    [10, 11, 14, 13].iter().for_each(|&seq| script.data(0, seq));
    assert_eq!(script.lost(), 1);
}

#[test]
fn test_short_numbers_go_on_where_long_ones_ended() {
    let mut script = Script::default();
    let last_of_24_bits = 0x1234_56ff_ffff;
    script.data(0, last_of_24_bits);
    let short = DccpHeader { is_short: true, ..header(DccpType::Data, 0, None) };
    script.give(Side::Low, 1, short, &[]);
    let short_ack = DccpHeader { is_short: true, ..header(DccpType::Ack, 5, Some(0)) };
    assert_eq!(script.give(Side::High, 31, short_ack, &[]), Some(30_000_000));
    assert_eq!(script.connection.half(Side::Low).sequences.highest(), Some(last_of_24_bits as i64 + 1));
    assert_eq!(script.lost(), 0);
}

#[test]
fn test_the_handshake_gives_service_rtt_and_congestion_control() {
    let mut script = Script::default();
    let request = DccpHeader { service_code: Some(42), ..header(DccpType::Request, 1, None) };
    script.give(Side::Low, 0, request, &[]);
    assert_eq!(script.connection.state(), ConnectionState::Attempted);
    // Confirm L and Confirm R: both half-connections use CCID 3.
    let confirms = [33, 4, 1, 3, 35, 4, 1, 3];
    script.give(Side::High, 20, header(DccpType::Response, 100, Some(1)), &confirms);
    assert_eq!(script.connection.state(), ConnectionState::Opening);
    script.give(Side::Low, 40, header(DccpType::Ack, 2, Some(100)), &[]);
    assert_eq!(script.connection.state(), ConnectionState::Established);
    assert_eq!(script.connection.handshake_rtt_ns, Some(40_000_000));
    assert_eq!(script.connection.service_code, Some(42));
    assert_eq!([Side::Low, Side::High].map(|side| script.connection.half(side).ccid), [Some(3); 2]);
    assert_eq!(script.connection.opener(), Some(Side::Low));
}

#[test]
fn test_a_request_sent_twice_gives_no_handshake_rtt() {
    let mut script = Script::default();
    script.give(Side::Low, 0, header(DccpType::Request, 1, None), &[]);
    script.give(Side::Low, 1000, header(DccpType::Request, 2, None), &[]);
    script.give(Side::High, 1020, header(DccpType::Response, 100, Some(2)), &[]);
    script.give(Side::Low, 1040, header(DccpType::Ack, 3, Some(100)), &[]);
    assert_eq!(script.connection.state(), ConnectionState::Established);
    assert_eq!(script.connection.handshake_rtt_ns, None);
}

#[test]
fn test_how_a_connection_ends() {
    let reset = |code| DccpHeader { reset_code: Some(code), ..header(DccpType::Reset, 9, Some(1)) };
    let mut refused = Script::default();
    refused.give(Side::Low, 0, header(DccpType::Request, 1, None), &[]);
    refused.give(Side::High, 1, reset(3), &[]);
    assert_eq!(refused.connection.state(), ConnectionState::Refused);
    let mut closed = Script::default();
    closed.data(0, 1);
    assert_eq!(closed.connection.state(), ConnectionState::Midstream);
    closed.give(Side::Low, 1, header(DccpType::Close, 2, Some(5)), &[]);
    assert_eq!(closed.connection.state(), ConnectionState::HalfClosed);
    closed.give(Side::High, 2, reset(CLOSED), &[]);
    assert_eq!(closed.connection.state(), ConnectionState::Closed);
}

proptest! {
    #[test]
    fn test_no_packets_panic_and_all_are_counted(
        packets in proptest::collection::vec(
            (any::<bool>(), 0_u8..10, any::<bool>(), 0_u64..1 << 48, any::<Option<u64>>(), any::<i64>(),
             proptest::collection::vec(any::<u8>(), 0..12)),
            0..60,
        ),
    ) {
        let mut script = Script::default();
        for (is_high, kind, is_short, seq, ack, time_ns, options) in &packets {
            let side = if *is_high { Side::High } else { Side::Low };
            let header = DccpHeader {
                is_short: *is_short,
                ..header(DccpType::from_number(*kind).unwrap(), *seq, *ack)
            };
            let packet = Packet { time_ns: *time_ns, ..Packet::default() };
            script.connection.on_packet(side, &packet, &header, options, &mut script.pool);
        }
        for half in &script.connection.halves {
            prop_assert!(half.outstanding.count() <= MAX_OUTSTANDING);
        }
    }
}
