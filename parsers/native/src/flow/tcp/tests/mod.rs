//! Scripts of segments, and the results expected from them.

#[cfg(test)]
mod class;
#[cfg(test)]
mod duplicates;
#[cfg(test)]
mod flight;
#[cfg(test)]
mod upstream_loss;

use super::half_connection::{AT_SENDER_NS, MAX_OUTSTANDING};
use super::*;
use crate::flow::rtt_statistics::RttMethod;
use crate::packet::event::TcpOptions;
use proptest::prelude::*;

pub(super) const MS: i64 = 1_000_000;

/// A connection driven by hand: `Low` sends the data.
pub(super) struct Script {
    pub(super) connection: Connection,
    pool: Pool,
}

impl Script {
    pub(super) fn new() -> Self {
        Self { connection: Connection::default(), pool: Pool::default() }
    }

    pub(super) fn give(&mut self, side: Side, time_ms: i64, payload: u32, tcp: Tcp) -> Outcome {
        let mut outcome = Outcome::default();
        let segment = Segment {
            time_ns: time_ms * MS,
            tcp: &tcp,
            payload,
            sack: &[],
            ecn_counters: None,
            ip: &IpFields::default(),
        };
        self.take(side, &segment, &mut outcome);
        outcome
    }

    pub(super) fn take(&mut self, side: Side, segment: &Segment<'_>, outcome: &mut Outcome) {
        self.connection.on_segment(side, segment, &mut self.pool, outcome);
    }

    pub(super) fn data(&mut self, time_ms: i64, seq: u32, payload: u32) -> Outcome {
        self.give(Side::Low, time_ms, payload, Tcp { seq, ..header(TcpFlags::ACK) })
    }

    pub(super) fn ack(&mut self, time_ms: i64, ack: u32) -> Outcome {
        self.give(Side::High, time_ms, 0, Tcp { ack, ..header(TcpFlags::ACK) })
    }

    pub(super) fn flags(&mut self, side: Side, time_ms: i64, flags: u16, seq: u32, ack: u32) -> Outcome {
        self.give(side, time_ms, 0, Tcp { seq, ack, ..header(flags) })
    }

    /// A handshake of 20 ms; both sides start at 0.
    pub(super) fn open(&mut self) {
        self.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
        self.flags(Side::High, 10, TcpFlags::SYN | TcpFlags::ACK, 0, 1);
        self.flags(Side::Low, 20, TcpFlags::ACK, 1, 1);
    }

    pub(super) fn sender(&self) -> &HalfConnection {
        self.connection.half(Side::Low)
    }

    fn state(&self) -> ConnectionState {
        self.connection.state()
    }
}

pub(super) fn header(flags: u16) -> Tcp {
    Tcp { flags: TcpFlags(flags), window: 100, ..Tcp::default() }
}

fn by_ack(rtt_ns: u64) -> Option<RoundTrip> {
    Some(RoundTrip::new(rtt_ns, RttMethod::Ack))
}

#[test]
fn test_each_acknowledgement_of_new_data_gives_an_rtt() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.data(1, 1001, 1000);
    assert_eq!(script.ack(50, 1001).rtt, by_ack(50_000_000));
    assert_eq!(script.ack(51, 2001).rtt, by_ack(50_000_000));
    script.data(52, 2001, 1000);
    assert_eq!(script.ack(103, 3001).rtt, by_ack(51_000_000));
}

#[test]
fn test_an_acknowledgement_inside_a_segment_gives_none() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    assert_eq!(script.ack(50, 501).rtt, None);
}

#[test]
fn test_retransmitted_data_give_no_rtt_by_karns_rule() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.ack(50, 1001);
    for segment in 0..5 {
        script.data(51 + segment, 1001 + 1000 * segment as u32, 1000);
    }
    for time in 102..106 {
        script.ack(time, 1001);
    }
    let again = script.data(106, 1001, 1000);
    assert_eq!((again.new_bytes, again.repeated_bytes), (0, 1000));
    assert_eq!(script.ack(156, 6001).rtt, None);
    assert_eq!(script.connection.half(Side::Low).acknowledged.duplicates, 4);
    assert_eq!(script.sender().tally().retransmitted_packets, 1);
}

/// As Linux takes them (`tcp_sacktag_one`, `tcp_clean_rtx_queue`).
#[test]
fn test_data_sent_once_give_an_rtt_when_a_sack_block_is_the_first_to_report_them() {
    let mut script = Script::new();
    for segment in 0..6 {
        script.data(i64::from(segment), 1 + 1000 * segment, 1000);
    }
    let by_sack = |ms: u64| Some(RoundTrip::new(ms * 1_000_000, RttMethod::Sack));
    assert_eq!(script.sack(51, 1, &[(1001, 2001)]).rtt, by_sack(50));
    assert_eq!(script.sack(53, 1, &[(1001, 3001)]).rtt, by_sack(51));
    assert_eq!(script.sack(54, 1, &[(1001, 3001)]).rtt, None, "reported before");
    assert_eq!(script.sack(55, 1, &[(1001, 3501)]).rtt, None, "inside a segment");
    script.data(56, 1, 1000);
    script.data(57, 5001, 1000);
    assert_eq!(script.sack(58, 1, &[(1001, 5001)]).rtt, None, "a probe was sent beyond it");
    script.data(60, 6001, 1000);
    assert_eq!(script.sack(112, 1, &[(6001, 7001), (1001, 5001)]).rtt, by_sack(52));
    assert_eq!(script.ack(120, 7001).rtt, None, "reported before, or sent twice");
    let all = &script.sender().path.round_trips.measured().all;
    assert_eq!((all.range.count(), all.range.max_ns()), (3, Some(52_000_000)));
}

#[test]
fn test_data_reported_by_a_sack_block_give_no_rtt_again_when_a_late_segment_arrives() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.data(1, 1001, 1000);
    script.sack(51, 1, &[(1001, 2001)]);
    assert_eq!(script.ack(90, 2001).rtt, None);
}

#[test]
fn test_data_sent_after_a_retransmission_give_an_rtt_again() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.data(300, 1, 1000);
    assert_eq!(script.ack(350, 1001).rtt, None);
    script.data(360, 1001, 1000);
    assert_eq!(script.ack(400, 2001).rtt, by_ack(40_000_000));
}

#[test]
fn test_a_late_segment_is_out_of_order_and_not_repeated() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.ack(50, 1001);
    script.data(51, 2001, 1000);
    assert_eq!(script.sender().missing_bytes(), 1000);
    let late = script.data(52, 1001, 1000);
    assert!(late.out_of_order);
    assert_eq!((late.new_bytes, late.repeated_bytes), (1000, 0));
    assert_eq!(script.sender().missing_bytes(), 0);
    assert_eq!(script.ack(103, 3001).rtt, None);
}

#[test]
fn test_a_partial_retransmission_is_new_behind_what_was_seen() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    let partial = script.data(150, 1, 2000);
    assert_eq!((partial.new_bytes, partial.repeated_bytes), (1000, 1000));
    assert_eq!(script.ack(250, 2001).rtt, None);
    assert_eq!(script.sender().sent.unique_bytes, 2000);
}

#[test]
fn test_the_stream_goes_on_across_the_wrap() {
    let mut script = Script::new();
    let before = u32::MAX - 499;
    script.data(0, before, 1000);
    let behind = script.data(1, 500, 1000);
    assert_eq!((behind.new_bytes, behind.repeated_bytes), (1000, 0));
    assert_eq!(behind.position, 1001);
    let again = script.data(2, before, 1000);
    assert_eq!(again.repeated_bytes, 1000);
    assert_eq!(script.ack(30, 1500).rtt, None);
}

#[test]
fn test_the_handshake_takes_from_syn_to_final_ack() {
    let mut script = Script::new();
    script.open();
    assert_eq!(script.connection.handshake_rtt_ns(), Some(20_000_000));
    assert_eq!(script.state(), ConnectionState::Established);
    assert_eq!(script.connection.opener(), Some(Side::Low));
}

/// A clock of whole milliseconds does not see how long a host takes that the capture is at.
#[test]
fn test_a_handshake_without_time_is_near_and_one_not_seen_is_unknown() {
    let mut script = Script::new();
    assert_eq!(script.connection.half(Side::Low).near_ns(), None);
    script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
    script.flags(Side::High, 20, TcpFlags::SYN | TcpFlags::ACK, 0, 1);
    script.flags(Side::Low, 20, TcpFlags::ACK, 1, 1);
    let [low, high] = [Side::Low, Side::High].map(|side| script.connection.half(side));
    assert!(low.near_ns().is_some_and(|ns| ns < AT_SENDER_NS), "{:?}", low.near_ns());
    assert_eq!(high.near_ns(), Some(20 * MS));
}

#[test]
fn test_a_repeated_syn_leaves_the_handshake_unknown() {
    let mut script = Script::new();
    script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
    script.flags(Side::Low, 1000, TcpFlags::SYN, 0, 0);
    script.flags(Side::High, 1010, TcpFlags::SYN | TcpFlags::ACK, 0, 1);
    script.flags(Side::Low, 1020, TcpFlags::ACK, 1, 1);
    assert_eq!(script.connection.handshake_rtt_ns(), None);
    assert_eq!(script.state(), ConnectionState::Established);
}

#[test]
fn test_states_follow_the_flags() {
    let mut script = Script::new();
    script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
    assert_eq!(script.state(), ConnectionState::Attempted);
    script.flags(Side::High, 1, TcpFlags::RST | TcpFlags::ACK, 0, 1);
    assert_eq!(script.state(), ConnectionState::Refused);

    let mut script = Script::new();
    script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
    script.flags(Side::Low, 1000, TcpFlags::SYN, 0, 0);
    assert_eq!(script.state(), ConnectionState::Attempted);
    // what it acknowledges the capture does not have
    script.flags(Side::Low, 1020, TcpFlags::ACK, 1, 1);
    assert_eq!(script.state(), ConnectionState::Established);

    let mut script = Script::new();
    script.open();
    script.flags(Side::Low, 30, TcpFlags::FIN | TcpFlags::ACK, 1, 1);
    assert_eq!(script.state(), ConnectionState::HalfClosed);
    script.flags(Side::High, 31, TcpFlags::FIN | TcpFlags::ACK, 1, 2);
    assert_eq!(script.state(), ConnectionState::Closed);

    let mut script = Script::new();
    script.data(0, 7, 10);
    assert_eq!(script.state(), ConnectionState::Midstream);
    script.flags(Side::High, 1, TcpFlags::RST, 0, 0);
    assert_eq!(script.state(), ConnectionState::Reset);
}

#[test]
fn test_the_number_of_a_reset_before_the_handshake_is_of_no_stream() {
    let mut script = Script::new();
    script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
    // RFC 9293 section 3.10.7.1: it answers with number 0.
    script.flags(Side::High, 5, TcpFlags::RST | TcpFlags::ACK, 0, 1);
    script.flags(Side::High, 10, TcpFlags::SYN | TcpFlags::ACK, 1_616_457_233, 1);
    script.flags(Side::Low, 20, TcpFlags::ACK, 1, 1_616_457_234);
    let answerer = script.connection.half(Side::High);
    assert_eq!((answerer.missing_bytes(), answerer.gap_bytes()), (0, 0));
}

#[test]
fn test_a_segment_far_from_the_others_shows_no_missing_data() {
    for far in [1_911_349_326, 3_000_000_000] {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.data(1, far, 12);
        script.data(2, 1001, 1000);
        assert_eq!((script.sender().missing_bytes(), script.sender().sent.unique_bytes), (0, 2_012), "{far}");
        assert_eq!(script.sender().max_flight_bytes(), Some(2_000));
    }
}

#[test]
fn test_a_stream_that_goes_on_far_away_or_is_acknowledged_there_has_missing_data() {
    let far = 400_000_001;
    for (is_continued, missing) in [(true, 399_999_000), (false, 399_999_000)] {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.data(100, far, 1000);
        let later =
            if is_continued { script.data(101, far + 1000, 1000) } else { script.ack(120, far + 1000) };
        assert_eq!(later.rtt.map(|rtt| rtt.ns), (!is_continued).then_some(20_000_000));
        assert_eq!(script.sender().missing_bytes(), missing);
    }
}

#[test]
fn test_ports_used_again_begin_another_connection() {
    let mut script = Script::new();
    script.open();
    let over = |script: &Script, seq: u32| {
        let tcp = Tcp { seq, ..header(TcpFlags::SYN) };
        script.connection.is_over_before(Side::Low, 40 * MS, &tcp)
    };
    assert!(!over(&script, 0), "a repeated SYN is of this connection");
    assert!(over(&script, 77_777), "a number out of the window is not");
    script.flags(Side::High, 30, TcpFlags::RST, 1, 0);
    assert!(over(&script, 1), "after a reset any other number begins anew");
}

#[test]
fn test_the_first_echo_of_a_timestamp_gives_an_rtt_even_of_repeated_data() {
    let mut script = Script::new();
    let stamped = |seq, ack, value, echo| Tcp {
        seq,
        ack,
        options: TcpOptions { timestamp: Some((value, echo)), ..TcpOptions::default() },
        ..header(TcpFlags::ACK)
    };
    script.give(Side::Low, 0, 1000, stamped(1, 1, 100, 0));
    script.give(Side::Low, 300, 1000, stamped(1, 1, 400, 0));
    let acknowledged = script.give(Side::High, 350, 0, stamped(1, 1001, 9, 400));
    assert_eq!(acknowledged.rtt, Some(RoundTrip::new(50_000_000, RttMethod::Timestamp)));
    script.give(Side::Low, 360, 1000, stamped(1001, 1, 400, 9));
    let second_echo = script.give(Side::High, 900, 0, stamped(1, 2001, 10, 400));
    assert_eq!(second_echo.rtt, by_ack(540_000_000), "not by the timestamp, which was echoed before");
}

#[test]
fn test_an_acknowledgement_of_what_was_never_seen_does_not_block_later_ones() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.ack(10, 1_000_000_000);
    script.data(20, 1001, 1000);
    assert_eq!(script.ack(60, 2001).rtt, by_ack(40_000_000));
}

#[test]
fn test_segments_in_flight_beyond_the_bound_are_counted() {
    let mut script = Script::new();
    for segment in 0..MAX_OUTSTANDING as u32 + 5 {
        script.data(i64::from(segment), 1 + 10 * segment, 10);
    }
    assert_eq!(script.sender().unwatched(), 5);
}

#[test]
fn test_a_window_of_acknowledgements_keeps_memory_for_one_window() {
    let mut script = Script::new();
    for round in 0..10_000_u32 {
        script.data(i64::from(round), 1 + 100 * round, 100);
        if round >= 20 {
            let ack = script.ack(i64::from(round), 1 + 100 * (round - 19));
            assert_eq!(ack.rtt, by_ack(20_000_000));
        }
    }
    assert!(script.pool.size() <= 32);
}

/// With a hundred thousand connections each byte is a tenth of a megabyte.
#[test]
fn test_a_connection_takes_little_memory() {
    let of_trouble = (
        size_of::<super::recovery::recovery_state::RecoveryState>(),
        size_of::<super::recovery::retransmission::Retransmission>(),
    );
    assert_eq!((size_of::<HalfConnection>(), size_of::<Connection>(), of_trouble), (240, 528, (288, 72)));
}

/// A segment that continues its side's stream, or does not.
#[derive(Clone, Copy, Debug)]
struct Step {
    side: Side,
    later_ns: i64,
    /// Beyond the next sequence number of the side.
    jump: i32,
    payload: u32,
    flags: u16,
    /// How much more of the other side's data is acknowledged.
    acknowledged: u32,
    /// Whether a SACK block reports more beyond that.
    has_block: bool,
    window: u16,
    /// Ticks since its last timestamp; None omits the option.
    ticks: Option<u32>,
    /// Since its last identification; None omits it.
    ids: Option<u16>,
    capture_point: u16,
    ecn: u8,
}

fn step() -> impl Strategy<Value = Step> {
    // Mostly predicted headers.
    let usual =
        |usual: u32, others: Vec<u32>| prop_oneof![12 => Just(usual), 1 => prop::sample::select(others)];
    let flags = [TcpFlags::ACK | TcpFlags::PSH, TcpFlags::ACK | TcpFlags::ECE, TcpFlags::FIN | TcpFlags::ACK];
    let flags =
        [flags.as_slice(), &[TcpFlags::SYN, TcpFlags::RST, TcpFlags::SYN | TcpFlags::ACK, 0]].concat();
    let stream = (
        prop::sample::select(vec![Side::Low, Side::Low, Side::High]),
        prop::sample::select(vec![1_000_i64, 40_000_000, 300_000_000, 0, -5_000]),
        usual(0, vec![1_000, 3_000, (-1_000_i32) as u32, (-3_000_i32) as u32]),
        prop::sample::select(vec![1_000_u32, 1_000, 0, 300]),
        prop_oneof![9 => Just(TcpFlags::ACK), 1 => prop::sample::select(flags)],
        (usual(0, vec![1_000, 2_000, 5_000]), prop::bool::weighted(0.1)),
    );
    let around = (
        usual(100, vec![0, 90]),
        prop_oneof![9 => (0..2_u32).prop_map(Some), 1 => Just(None)],
        prop_oneof![9 => Just(Some(1_u16)), 1 => prop::sample::select(vec![None, Some(0), Some(70), Some(9_000)])],
        usual(0, vec![4]),
        usual(0, vec![3, 2]),
    );
    (stream, around).prop_map(|(stream, around)| {
        let (side, later_ns, jump, payload, flags, (acknowledged, has_block)) = stream;
        let (window, ticks, ids, capture_point, ecn) = around;
        let (window, capture_point, ecn) = (window as u16, capture_point as u16, ecn as u8);
        Step {
            side,
            later_ns,
            jump: jump as i32,
            payload,
            flags,
            acknowledged,
            has_block,
            window,
            ticks,
            ids,
            capture_point,
            ecn,
        }
    })
}

proptest! {
    /// Compare with a connection without header prediction.
    #[test]
    fn test_what_is_predicted_is_as_if_it_were_not(steps in proptest::collection::vec(step(), 1..120)) {
        let mut scripts = [Script::new(), Script::new()];
        let (mut now_ns, mut next) = (0, [u32::MAX - 9_000, 77]);
        let (mut ticks, mut ids) = ([500_u32, 900], [65_500_u16, 7]);
        let mut acks = [next[1], next[0]];
        for step in steps {
            let (this, other) = (step.side as usize, step.side.other() as usize);
            now_ns += step.later_ns;
            ticks[this] += step.ticks.unwrap_or(0);
            ids[this] = ids[this].wrapping_add(step.ids.unwrap_or(0));
            acks[this] = acks[this].wrapping_add(step.acknowledged);
            let seq = next[this].wrapping_add(step.jump as u32);
            if step.jump >= 0 {
                next[this] = seq.wrapping_add(step.payload);
            }
            let options = TcpOptions { timestamp: step.ticks.map(|_| (ticks[this], ticks[other])), ..TcpOptions::default() };
            let tcp = Tcp { seq, ack: acks[this], flags: TcpFlags(step.flags), window: step.window, options };
            let ip_id = step.ids.map(|_| ids[this]);
            let ip = IpFields { ip_id, ttl: 64, ecn: step.ecn, capture_point: step.capture_point, is_cut: false };
            let block = [(tcp.ack.wrapping_add(1_000), tcp.ack.wrapping_add(2_000))];
            let sack = if step.has_block { block.as_slice() } else { &[] };
            let segment = Segment { time_ns: now_ns, tcp: &tcp, payload: step.payload, sack, ecn_counters: None, ip: &ip };
            let [predicted, general] = &mut scripts;
            let mut outcomes = [Outcome::default(), Outcome::default()];
            predicted.take(step.side, &segment, &mut outcomes[0]);
            general.connection.on_other_segment(step.side, &segment, &mut general.pool, &mut outcomes[1]);
            prop_assert_eq!(outcomes[0], outcomes[1]);
            // Compare at each step: later segments may hide a difference.
            let [predicted, general] = [predicted, general].map(|script| format!("{:?}", script.connection));
            prop_assert_eq!(predicted, general);
        }
        let [predicted, general] = scripts.map(|script| format!("{:?}", script.pool));
        prop_assert_eq!(predicted, general);
    }
}
