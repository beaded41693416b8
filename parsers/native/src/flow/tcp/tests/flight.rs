//! Scripts of flights, and the rounds expected from them.

use proptest::prelude::*;

use crate::flow::tcp::ecn::RoundMarks;
use crate::flow::tcp::recovery::recovery_state::RecoveryState;
use crate::flow::tcp::rounds::flight::Flight;
use crate::flow::tcp::rounds::{RepairCause, Round, RoundEnd, Rounds};
use crate::flow::tcp::{Connection, HalfConnection};

const MS: i64 = 1_000_000;
const SEGMENT: i64 = 1_000;

/// A sender of full segments and the acknowledgements that it receives.
struct Sender {
    flight: Flight,
    next: i64,
    acknowledged: i64,
    window: Option<u32>,
    rounds: Vec<Round>,
}

impl Sender {
    fn new() -> Self {
        Self {
            flight: Flight::default(),
            next: 0,
            acknowledged: 0,
            window: Some(1 << 30),
            rounds: Vec::new(),
        }
    }

    fn send(&mut self, time_ms: i64, payload: i64) {
        self.next += payload;
        self.flight.on_sent(payload, payload as u32, self.next, time_ms * MS);
    }

    fn send_segments(&mut self, time_ms: i64, n: i64) {
        (0..n).for_each(|_| self.send(time_ms, SEGMENT));
    }

    fn retransmit(&mut self, time_ms: i64, repair: RepairCause) {
        self.flight.note(self.next - self.acknowledged);
        self.flight.on_repair(repair, self.next, time_ms * MS);
    }

    fn acknowledge(&mut self, time_ms: i64, bytes: i64) {
        self.flight.note(self.next - self.acknowledged);
        self.acknowledged += bytes;
        let time_ns = time_ms * MS;
        if self.flight.on_progress(bytes, self.acknowledged, time_ns) {
            let (window, full_size) = (self.window, SEGMENT as u32);
            let close = RoundEnd {
                time_ns,
                window,
                full_size,
                in_flight: None,
                rtt_ns: None,
                marks: RoundMarks::default(),
            };
            let ends = (self.acknowledged, self.next);
            self.rounds.extend(self.flight.end_round(ends, self.next - self.acknowledged, close));
        }
    }

    /// Send `n` segments, each acknowledged after 100 ms.
    fn round_trip(&mut self, time_ms: i64, n: i64) {
        self.send_segments(time_ms, n);
        (0..n).for_each(|_| self.acknowledge(time_ms + 100, SEGMENT));
    }

    fn repairs(&self) -> Vec<Option<RepairCause>> {
        self.rounds.iter().map(|round| round.repair).collect()
    }

    /// Whether each round filled the receive window, and whether no data was waiting after it.
    fn edges(&self) -> Vec<(bool, bool)> {
        self.rounds.iter().map(|round| (round.fills_window, round.is_data_limited)).collect()
    }
}

#[test]
fn test_a_round_ends_when_what_was_next_at_its_begin_is_acknowledged() {
    let mut sender = Sender::new();
    sender.send_segments(0, 4);
    sender.acknowledge(100, SEGMENT);
    assert_eq!(sender.rounds.len(), 1, "the first segment was the next one when sending began");
    sender.send_segments(100, 2);
    sender.acknowledge(110, 2 * SEGMENT);
    assert_eq!(sender.rounds.len(), 1);
    sender.acknowledge(120, SEGMENT);
    let round = sender.rounds[1];
    assert_eq!((round.start_ns, round.duration_ns), (100 * MS, 20 * MS));
    assert_eq!((round.flight, round.delivered), (5_000, 3_000));
}

#[test]
fn test_the_mean_flight_is_weighted_by_time_and_leaves_silence_out() {
    let mut sender = Sender::new();
    sender.send(0, 1_000);
    sender.send(50, 1_000);
    sender.acknowledge(100, 2_000);
    sender.send(900, 4_000);
    let mean = sender.flight.mean_bytes(4_000, 1_000 * MS).unwrap();
    // 1000 for 50 ms, 2000 for 50 ms, 4000 for 100 ms
    assert!((mean - 2_750.0).abs() < 0.1, "{mean}");
    assert_eq!(sender.flight.max_bytes(4_000), Some(4_000));
}

#[test]
fn test_slow_start_ends_where_the_flight_grows_by_less_than_half() {
    let mut sender = Sender::new();
    for (round, n) in [2, 4, 8, 16, 17, 18].into_iter().enumerate() {
        sender.send_segments(100 * round as i64, n);
        sender.acknowledge(100 * (round as i64 + 1), n * SEGMENT);
    }
    assert_eq!(sender.flight.rounds().unwrap().slow_start_exit(), Some((400 * MS, 16_000)));
    assert_eq!(sender.flight.max_cwnd(0), Some(18_000));
}

#[test]
fn test_a_recovery_lasts_until_what_was_outstanding_is_acknowledged() {
    let mut sender = Sender::new();
    sender.send_segments(0, 10);
    sender.retransmit(100, RepairCause::Recovery);
    sender.send_segments(110, 2);
    sender.retransmit(120, RepairCause::Recovery);
    sender.acknowledge(200, 10 * SEGMENT);
    let rounds = sender.flight.rounds().unwrap();
    assert_eq!((rounds.recoveries(), rounds.timeouts()), ((1, 100 * MS), (0, 0)));
    assert_eq!(rounds.slow_start_exit(), Some((100 * MS, 10_000)));
    // Two of the twelve segments of the largest flight may be in place of lost ones.
    assert_eq!((sender.flight.max_bytes(0), sender.flight.max_cwnd(0)), (Some(12_000), None));
    sender.acknowledge(210, 2 * SEGMENT);
    assert_eq!(sender.repairs(), [Some(RepairCause::Recovery), None]);
}

#[test]
fn test_a_timeout_takes_over_from_a_recovery() {
    let mut sender = Sender::new();
    sender.send_segments(0, 10);
    sender.retransmit(100, RepairCause::Recovery);
    sender.retransmit(400, RepairCause::Timeout);
    sender.retransmit(900, RepairCause::Timeout);
    sender.acknowledge(1_000, 10 * SEGMENT);
    let rounds = sender.flight.rounds().unwrap();
    assert_eq!((rounds.recoveries(), rounds.timeouts()), ((1, 300 * MS), (1, 600 * MS)));
    assert_eq!(sender.repairs(), [Some(RepairCause::Timeout)]);
}

#[test]
fn test_what_is_sent_again_after_all_was_acknowledged_is_no_recovery() {
    let mut sender = Sender::new();
    sender.round_trip(0, 3);
    sender.retransmit(150, RepairCause::Timeout);
    sender.round_trip(200, 3);
    assert_eq!(sender.flight.rounds().unwrap().timeouts(), (0, 0));
}

#[test]
fn test_a_full_receive_window_hides_the_congestion_window() {
    let mut sender = Sender::new();
    sender.window = Some(4_500);
    sender.send_segments(0, 4);
    sender.acknowledge(100, 4 * SEGMENT);
    assert_eq!((sender.edges(), sender.rounds[0].cwnd()), (vec![(true, false)], None));
    assert_eq!(sender.rounds[0].least_cwnd(), Some(4_000));
}

#[test]
fn test_a_partial_segment_shows_that_the_application_had_no_more() {
    let mut sender = Sender::new();
    sender.send(0, 300);
    sender.acknowledge(100, 300);
    sender.send(400, 7_300);
    sender.acknowledge(500, 7_300);
    sender.send(500, 8_000);
    sender.acknowledge(600, 8_000);
    assert_eq!(sender.edges(), [(false, true), (false, true), (false, false)]);
    assert_eq!(sender.flight.rounds().unwrap().longest_idle_ns, 300 * MS);
}

#[test]
fn test_segments_shorter_than_the_mss_allows_are_whole_if_they_all_are() {
    let mut sender = Sender::new();
    for time_ms in [0, 100, 200] {
        (0..4).for_each(|_| sender.send(time_ms, 900));
        sender.acknowledge(time_ms + 100, 1_800);
    }
    assert_eq!(sender.edges(), [(false, true), (false, false)]);
}

#[test]
fn test_a_hundred_thousand_flows_fit_into_memory() {
    assert!(size_of::<Flight>() <= 32);
    assert!(size_of::<Rounds>() <= 80);
    assert!(size_of::<HalfConnection>() <= 368);
    assert!(size_of::<Connection>() <= 800);
    assert!(size_of::<RecoveryState>() <= 288);
}

#[test]
fn test_the_window_is_no_limit_where_its_scale_is_not_known() {
    let mut sender = Sender::new();
    sender.window = None;
    sender.round_trip(0, 4);
    assert_eq!((sender.rounds[0].fills_window, sender.rounds[0].cwnd()), (false, Some(4_000)));
}

proptest! {
    /// For any transmissions and acknowledgements at any times: rounds do not
    /// deliver more than was acknowledged, the mean does not exceed the maximum.
    #[test]
    fn test_no_flight_breaks_the_sums(
        steps in proptest::collection::vec((0_u8..5, 0_i64..5_000, -20_i64..200), 1..200),
    ) {
        let mut sender = Sender::new();
        let mut time_ms = 0_i64;
        let mut highest = 0;
        let mut is_forward = true;
        for (action, bytes, later_ms) in steps {
            time_ms += later_ms;
            is_forward &= later_ms >= 0;
            match action {
                0 | 1 => sender.send(time_ms, bytes + 1),
                2 => sender.acknowledge(time_ms, bytes.min(sender.next - sender.acknowledged)),
                3 => sender.retransmit(time_ms, RepairCause::Recovery),
                _ => sender.retransmit(time_ms, RepairCause::Timeout),
            }
            highest = highest.max(sender.next - sender.acknowledged);
        }
        let outstanding = sender.next - sender.acknowledged;
        let delivered: u64 = sender.rounds.iter().map(|round| u64::from(round.delivered)).sum();
        prop_assert!(delivered <= sender.acknowledged as u64);
        let Some(rounds) = sender.flight.rounds() else { return Ok(()) };
        prop_assert_eq!(rounds.count as usize, sender.rounds.len());
        prop_assert_eq!(sender.flight.max_bytes(outstanding), Some(highest as u32));
        if let Some(mean) = sender.flight.mean_bytes(outstanding, time_ms * MS) && is_forward {
            // Each time has an error of one tick of 1024 ns.
            prop_assert!(mean <= highest as f64 * 1.01, "{} of {}", mean, highest);
        }
    }
}
