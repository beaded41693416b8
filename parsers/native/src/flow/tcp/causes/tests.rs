//! Senders written out packet by packet: what holds them back is known.

use super::View;
use super::cause::{Cause, Sign};
use super::ledger::{Stretch, hidden, ledger};
use super::moment::{Event, Moment};
use super::sender_rounds::SenderRound;
use super::waits::Waits;
use crate::flow::tcp::ecn::RoundMarks;
use crate::flow::tcp::rounds::Round;

const MS: i64 = 1_000_000;
const MSS: i64 = 1_000;

/// A connection of which one side sends, seen at it.
struct Sender {
    waits: Waits,
    next: i64,
    delivered: i64,
    window: i64,
}

impl Sender {
    fn new(window: i64) -> Self {
        let mut sender = Self { waits: Waits::default(), next: 1, delivered: 1, window };
        sender.show(0, Event::Other, 0, None);
        sender
    }

    fn show(&mut self, time_ms: i64, event: Event, payload: i64, rtt_ms: Option<i64>) {
        self.waits.on_packet(time_ms * MS);
        self.waits.on_moment(&Moment {
            number: 1,
            time_ns: time_ms * MS,
            earliest_ns: time_ms * MS,
            event,
            payload: payload as u32,
            headers: 52,
            next: self.next,
            acknowledged: self.delivered,
            delivered: self.delivered,
            window_end: Some(self.delivered + self.window),
            full_size: MSS as u32,
            rtt_ns: rtt_ms.map(|ms| (ms * MS) as u64),
            flight_error: 0,
            is_opener: true,
            marks: RoundMarks::default(),
        });
    }

    fn send(&mut self, time_ms: i64, payload: i64, is_pushed: bool) {
        self.next += payload;
        self.show(time_ms, Event::Data { is_pushed, cuts_window: false }, payload, None);
    }

    /// A short write, whose end is pushed.
    fn write_once(&mut self) {
        self.send(10, MSS / 2, true);
        self.acknowledge(70, MSS / 2, 60);
    }

    fn acknowledge(&mut self, time_ms: i64, bytes: i64, rtt_ms: i64) {
        self.delivered += bytes;
        let event = Event::Acknowledgement { carries_data: false, echoes_mark: false };
        self.show(time_ms, event, 0, Some(rtt_ms));
    }

    fn hear(&mut self, time_ms: i64) {
        let event = Event::Acknowledgement { carries_data: true, echoes_mark: false };
        self.show(time_ms, event, 0, None);
    }

    fn ledger(mut self) -> Vec<Stretch> {
        self.waits.finish();
        let stretches = ledger(&self.waits);
        assert!(stretches.windows(2).all(|pair| pair[0].end_ns < pair[1].end_ns), "{stretches:?}");
        stretches
    }
}

/// Milliseconds of a cause.
fn time_of(stretches: &[Stretch], cause: Cause) -> i64 {
    let starts = std::iter::once(0).chain(stretches.iter().map(|stretch| stretch.end_ns));
    let lasts = starts.zip(stretches).filter(|(_, stretch)| stretch.cause == cause);
    lasts.map(|(start_ns, stretch)| (stretch.end_ns - start_ns) / MS).sum()
}

#[test]
fn test_an_application_that_writes_full_segments_at_times_waits_for_itself() {
    let mut sender = Sender::new(60 * MSS);
    for write in 0..50 {
        let now_ms = 100 + 100 * write;
        for segment in 1..=10 {
            sender.send(now_ms, MSS, segment == 10);
        }
        for pair in 0..5 {
            sender.acknowledge(now_ms + 20 + pair, 2 * MSS, 20 + pair);
        }
    }
    let found = sender.ledger();
    assert_eq!(time_of(&found, Cause::Handshake), 100);
    assert_eq!(time_of(&found, Cause::Application), 4_924);
    assert_eq!(found.last().map(|last| last.end_ns), Some((100 + 49 * 100 + 24) * MS));
}

/// A sender whose segments leave so many at a time, every 10 ms, the last of them pushed; acknowledgements come
/// between.
fn paced(segments: i64) -> Vec<Stretch> {
    let mut sender = Sender::new(600 * MSS);
    for turn in 0..200 {
        (1..=segments).for_each(|segment| sender.send(50 + 10 * turn, MSS, segment == segments));
        if turn >= 10 {
            sender.acknowledge(55 + 10 * turn, segments * MSS, 105);
        }
    }
    sender.ledger()
}

#[test]
fn test_a_pushed_segment_ends_a_write_only_if_it_left_alone() {
    assert_eq!(time_of(&paced(2), Cause::Application), 0);
    assert!(time_of(&paced(1), Cause::Application) > 1_500);
}

#[test]
fn test_data_up_to_the_edge_of_the_window_wait_for_the_receiver() {
    let mut sender = Sender::new(8 * MSS);
    (0..8).for_each(|_| sender.send(50, MSS, false));
    for round in 1..100 {
        for pair in 0..4 {
            sender.acknowledge(50 + 50 * round + pair, 2 * MSS, 50);
            (0..2).for_each(|_| sender.send(50 + 50 * round + pair, MSS, false));
        }
    }
    let found = sender.ledger();
    assert_eq!(found.iter().map(|one| one.cause).collect::<Vec<_>>(), [Cause::Handshake, Cause::Receiver]);
    assert_eq!((found[1].sign, found[1].flight, found[1].window), (Sign::WindowEdge, 8_000, Some(8_000)));
}

#[test]
fn test_data_that_come_in_steps_with_acknowledgements_wait_for_the_send_buffer() {
    let mut sender = Sender::new(90 * MSS);
    (0..12).for_each(|_| sender.send(50, MSS, false));
    for round in 1..100 {
        let now_ms = 50 + 50 * round;
        for pair in 0..6 {
            sender.acknowledge(now_ms + 8 * pair, MSS, 50);
        }
        (0..6).for_each(|_| sender.send(now_ms + 40, MSS, false));
    }
    let found = sender.ledger();
    assert!(time_of(&found, Cause::SendBuffer) > 4_700, "{found:?}");
    assert_eq!(found.last().map(|last| last.second), Some(Some(Cause::Application)));
}

#[test]
fn test_a_window_that_grows_before_any_loss_is_in_slow_start() {
    let mut sender = Sender::new(1_000 * MSS);
    (0..2).for_each(|_| sender.send(50, MSS, false));
    for round in 1..8 {
        let flight = 1 << round;
        for segment in 0..flight {
            sender.acknowledge(50 + 50 * round + segment / 8, MSS, 50);
            (0..2).for_each(|_| sender.send(50 + 50 * round + segment / 8, MSS, false));
        }
    }
    let found = sender.ledger();
    assert_eq!(found.iter().map(|one| one.cause).collect::<Vec<_>>(), [Cause::Handshake, Cause::SlowStart]);
}

#[test]
fn test_the_opener_waits_for_the_answer_of_the_server() {
    let mut sender = Sender::new(60 * MSS);
    for request in 0..10 {
        let now_ms = 100 + 400 * request;
        sender.send(now_ms, 300, true);
        sender.acknowledge(now_ms + 20, 300, 20);
        sender.hear(now_ms + 300);
    }
    let found = sender.ledger();
    assert_eq!(time_of(&found, Cause::Server), 3_000);
    assert_eq!(time_of(&found, Cause::Application), 900);
}

#[test]
fn test_a_repair_is_a_recovery_with_the_cause_of_its_losses() {
    let mut sender = Sender::new(600 * MSS);
    (0..20).for_each(|_| sender.send(50, MSS, false));
    for segment in 0..10 {
        sender.acknowledge(100 + segment, MSS, 100);
    }
    sender.show(120, Event::Repair { is_timeout: false }, MSS, None);
    sender.acknowledge(220, 10 * MSS, 100);
    sender.send(221, MSS, false);
    let found = sender.ledger();
    let repair = found.iter().find(|one| one.cause == Cause::Recovery).copied();
    assert_eq!(repair.map(|one| (one.end_ns, one.second)), Some((220 * MS, Some(Cause::Loss))));
}

#[test]
fn test_where_round_trip_times_lack_a_queue_losses_without_one_tell_nothing() {
    let mut sender = Sender::new(600 * MSS);
    sender.waits.path.hides_queues = true;
    (0..20).for_each(|_| sender.send(50, MSS, false));
    (0..10).for_each(|segment| sender.acknowledge(100 + segment, MSS, 100));
    sender.show(120, Event::Repair { is_timeout: false }, MSS, None);
    sender.acknowledge(220, 10 * MSS, 100);
    sender.send(221, MSS, false);
    sender.acknowledge(330, MSS, 100);
    let found = sender.ledger();
    let repair = found.iter().find(|one| one.cause == Cause::Recovery).map(|one| one.second);
    assert_eq!((repair, time_of(&found, Cause::Loss)), (Some(None), 0));
}

#[test]
fn test_without_timestamps_round_trip_times_lack_the_queue_before_a_capture() {
    let hides = |has_stamps| view_of_a_window_limited_sender(10, has_stamps).waits.path.hides_queues;
    assert_eq!([true, false].map(hides), [false, true]);
}

#[test]
fn test_silence_before_a_repair_by_timer_is_a_timeout() {
    let mut sender = Sender::new(600 * MSS);
    (0..4).for_each(|_| sender.send(50, MSS, true));
    sender.acknowledge(100, MSS, 50);
    sender.show(400, Event::Repair { is_timeout: true }, MSS, None);
    sender.acknowledge(450, 3 * MSS, 50);
    let found = sender.ledger();
    assert_eq!(time_of(&found, Cause::Timeout), 350);
}

#[test]
fn test_timeouts_in_a_row_that_nothing_answers_are_an_outage() {
    let mut sender = Sender::new(600 * MSS);
    (0..4).for_each(|_| sender.send(50, MSS, true));
    sender.acknowledge(100, MSS, 50);
    for now_ms in [400, 1_000, 2_200] {
        sender.show(now_ms, Event::Repair { is_timeout: true }, MSS, None);
    }
    sender.acknowledge(2_250, MSS, 50);
    sender.show(2_251, Event::Repair { is_timeout: true }, MSS, None);
    sender.show(2_252, Event::Repair { is_timeout: true }, MSS, None);
    sender.acknowledge(2_300, 2 * MSS, 50);
    let found = sender.ledger();
    assert_eq!(time_of(&found, Cause::Outage), 2_150);
    assert_eq!(time_of(&found, Cause::Timeout), 50);
}

/// Data of a sender 40 ms before the capture, which a queue delays from the tenth round on; with `has_stamps`
/// their timestamps show when they left.
fn view_of_a_window_limited_sender(queue_ms: i64, has_stamps: bool) -> View {
    let mut view = View::new(true);
    let (near_ns, window) = (Some(40 * MS), 8 * MSS);
    let moment = |time_ms: i64, event, next, delivered| Moment {
        number: 1,
        time_ns: time_ms * MS,
        earliest_ns: time_ms * MS,
        event,
        payload: MSS as u32,
        headers: 52,
        next,
        acknowledged: delivered,
        delivered,
        window_end: Some(delivered + window),
        full_size: MSS as u32,
        rtt_ns: matches!(event, Event::Acknowledgement { .. }).then_some(10 * MS as u64),
        flight_error: 0,
        is_opener: true,
        marks: RoundMarks::default(),
    };
    let mut sent_ms = 0;
    for round in 0..100 {
        // Ten milliseconds from the capture to the receiver and back, and forty to the sender and back.
        let (queue_ms, first) = (if round < 10 { 0 } else { queue_ms }, 1 + round * window);
        let data_ms = sent_ms + queue_ms;
        let stamp = |value: i64, echo: i64| has_stamps.then_some((value as u32, echo as u32));
        let newest = stamp(1_000 + sent_ms, 5_000 + round);
        for segment in 1..=8 {
            let data = Event::Data { is_pushed: segment == 8, cuts_window: false };
            view.on_moment(moment(data_ms, data, first + segment * MSS, first), true, newest, near_ns);
        }
        let end = first + window;
        let ack = Event::Acknowledgement { carries_data: false, echoes_mark: false };
        let answer = stamp(5_001 + round, 1_000 + sent_ms);
        view.on_moment(moment(data_ms + 10, ack, end, end), false, answer, near_ns);
        sent_ms = data_ms + 50;
    }
    view.finish();
    view
}

#[test]
fn test_away_from_the_sender_acknowledgements_count_when_they_reach_it() {
    for (queue_ms, has_stamps) in [(0, false), (0, true), (30, true)] {
        let view = view_of_a_window_limited_sender(queue_ms, has_stamps);
        let found = ledger(&view.waits);
        let causes: Vec<_> = found.iter().map(|one| (one.cause, one.flight)).collect();
        assert_eq!(causes, [(Cause::Receiver, 8_000)], "{queue_ms} {found:?}");
        // Without an echo, the newest acknowledgement may come after the data.
        assert_eq!(found[0].flight_error, Some(if has_stamps { 0 } else { 8_000 }));
        assert_eq!(view.waits.path.base_rtt_ns(), Some(50 * MS));
    }
}

#[test]
fn test_away_from_the_sender_rounds_are_those_that_it_saw() {
    for queue_ms in [0, 30] {
        let view = view_of_a_window_limited_sender(queue_ms, true);
        let rounds = view.rounds.as_slice();
        assert_eq!(rounds.len(), 100);
        for &SenderRound { round, flight_error, .. } in rounds {
            assert_eq!((round.flight, round.delivered, flight_error), (8_000, 8_000, 0));
        }
        // Ten milliseconds at the capture are fifty at the sender, and the queue before the capture, to ticks.
        let Round { duration_ns, rtt_ns, .. } = rounds[50].round;
        let expected_ms = 50 + queue_ms;
        let is_near = |ns: i64| (ns / MS - expected_ms).abs() <= 2;
        assert!(is_near(duration_ns), "{duration_ns}");
        assert!(rtt_ns.is_some_and(|ns| is_near(ns as i64)), "{rtt_ns:?}");
    }
}

#[test]
fn test_what_cannot_be_seen_is_unknown_with_its_reason() {
    let mut sender = Sender::new(60 * MSS);
    for now_ms in [100, 200, 300] {
        sender.send(now_ms, MSS, true);
    }
    sender.waits.finish();
    let found = hidden(&sender.waits, Sign::AwayFromSender);
    let found: Vec<_> = found.iter().map(|one| (one.end_ns / MS, one.cause, one.sign)).collect();
    let unknown = (300, Cause::Unknown, Sign::AwayFromSender);
    assert_eq!(found, [(100, Cause::Handshake, Sign::NoDataYet), unknown]);
}

#[test]
fn test_a_clock_that_steps_back_leaves_no_overlap() {
    let mut sender = Sender::new(60 * MSS);
    for now_ms in [100, 300, 200, 50, 400, 350] {
        sender.send(now_ms, MSS, true);
        sender.acknowledge(now_ms - 10, MSS, 5);
    }
    assert!(sender.waits.has_stepped);
    assert_eq!(sender.ledger().last().map(|last| last.end_ns), Some(400 * MS));
}

#[test]
fn test_times_at_both_ends_of_64_bits_do_no_harm() {
    let mut sender = Sender::new(60 * MSS);
    for time_ns in [i64::MIN, -1, 0, 1, i64::MAX - 1, i64::MAX, 5] {
        for event in [
            Event::Data { is_pushed: false, cuts_window: true },
            Event::Acknowledgement { carries_data: true, echoes_mark: false },
            Event::Repair { is_timeout: time_ns > 0 },
        ] {
            sender.next += MSS;
            let (next, delivered) = (sender.next, sender.next - MSS / 2);
            let rtt_ns = Some(u64::MAX >> (time_ns & 3));
            let (window_end, full_size) = (Some(i64::MAX - 1), 1);
            let payload = MSS as u32;
            let moment = Moment {
                number: 1,
                time_ns,
                earliest_ns: time_ns,
                event,
                payload,
                headers: 52,
                next,
                acknowledged: delivered,
                delivered,
                window_end,
                full_size,
                rtt_ns,
                flight_error: 0,
                is_opener: false,
                marks: RoundMarks::default(),
            };
            sender.waits.on_packet(time_ns);
            sender.waits.on_moment(&moment);
        }
    }
    assert_eq!(sender.ledger().last().map(|last| last.end_ns), Some(i64::MAX));
}

#[test]
fn test_a_window_reduced_without_an_echoed_mark_is_not_marked() {
    for (echoes_mark, marked) in [(false, 0), (true, 1)] {
        let mut sender = Sender::new(600 * MSS);
        (0..20).for_each(|_| sender.send(50, MSS, false));
        sender.delivered += 10 * MSS;
        let event = Event::Acknowledgement { carries_data: false, echoes_mark };
        sender.show(100, event, 0, Some(50));
        sender.next += MSS;
        // RFC 3168 section 6.1.2: CWR follows each reduction, also after a loss.
        sender.show(101, Event::Data { is_pushed: false, cuts_window: true }, MSS, None);
        assert_eq!(sender.waits.path.cuts.len(), marked);
    }
}

/// A sender whose window grows from 24 to 47 segments and back, over a path of 20 ms and a segment each ms; of others
/// some segments stand in its queue all the time.
fn beside(others: i64) -> Vec<Stretch> {
    let mut sender = Sender::new(600 * MSS);
    (0..24).for_each(|_| sender.send(50, MSS, false));
    sender.acknowledge(70, MSS, 20);
    sender.send(70, MSS, false);
    let (mut now_ms, mut window) = (71, 24);
    for round in 0..240 {
        let rtt_ms = window + others;
        for segment in 1..=window {
            let time_ms = now_ms + rtt_ms * segment / window;
            sender.acknowledge(time_ms, MSS, rtt_ms);
            // One more, or one less, at the end of a round.
            let more = if round / 23 % 2 == 0 { 2 } else { 0 };
            let count = if segment == window { more } else { 1 };
            (0..count).for_each(|_| sender.send(time_ms, MSS, false));
        }
        now_ms += rtt_ms;
        window += if round / 23 % 2 == 0 { 1 } else { -1 };
    }
    sender.ledger()
}

#[test]
fn test_a_rate_that_grows_with_the_part_of_the_queue_is_that_of_a_shared_bottleneck() {
    let (alone, shared) = (beside(0), beside(40));
    assert!(time_of(&alone, Cause::Bottleneck) > 8_000, "{alone:?}");
    assert_eq!(time_of(&alone, Cause::SharedBottleneck), 0);
    assert!(time_of(&shared, Cause::SharedBottleneck) > 17_000, "{shared:?}");
    assert_eq!(shared.last().map(|last| last.sign), Some(Sign::RateOfFlight));
}

#[test]
fn test_a_window_that_shrinks_while_there_are_data_is_not_the_application() {
    let mut sender = Sender::new(600 * MSS);
    sender.write_once();
    for burst in 0..6 {
        let mut now_ms = 100 + 4_000 * burst;
        (0..20).for_each(|_| sender.send(now_ms, MSS, false));
        for _ in 0..10 {
            now_ms += 60;
            // Ten acknowledgements let nothing go, the next two segments each.
            for segment in 0..20 {
                sender.acknowledge(now_ms + 2 * segment, MSS, 60);
                (0..2 * (segment / 10)).for_each(|_| sender.send(now_ms + 2 * segment, MSS, false));
            }
        }
        sender.send(now_ms + 40, MSS / 2, true);
        sender.acknowledge(now_ms + 100, 20 * MSS + MSS / 2, 60);
    }
    let found = sender.ledger();
    assert!(found.iter().all(|one| one.sign != Sign::UnusedRoom), "{found:?}");
    // Between bursts, and while their last segments are in flight.
    assert_eq!(time_of(&found, Cause::Application), 90 + 5 * (4_000 - 700) + 6 * 60);
}

#[test]
fn test_a_window_that_begins_anew_after_silence_is_not_the_application() {
    let mut sender = Sender::new(600 * MSS);
    for burst in 0..6 {
        let mut now_ms = 100 + 4_000 * burst;
        let mut window = 4;
        (0..window).for_each(|_| sender.send(now_ms, MSS, false));
        for _ in 0..4 {
            now_ms += 60;
            for segment in 0..window {
                sender.acknowledge(now_ms + segment / 4, MSS, 60);
                (0..2).for_each(|_| sender.send(now_ms + segment / 4, MSS, false));
            }
            window *= 2;
        }
        sender.send(now_ms + 20, MSS / 2, true);
        sender.acknowledge(now_ms + 80, window * MSS + MSS / 2, 60);
    }
    let found = sender.ledger();
    assert!(found.iter().all(|one| one.sign != Sign::FlightBelowEarlier), "{found:?}");
}

/// A sender that loses a segment without a queue, and sends some more in each later round trip of 50 ms, or not.
fn after_a_loss(growth: i64) -> Vec<Stretch> {
    let mut sender = Sender::new(9_000 * MSS);
    let mut window = 16;
    (0..window).for_each(|_| sender.send(50, MSS, false));
    for round in 1..400 {
        let now_ms = 50 + 50 * round;
        if round == 10 {
            sender.show(now_ms, Event::Repair { is_timeout: false }, MSS, None);
        }
        for segment in 0..window {
            sender.acknowledge(now_ms + segment / 4, MSS, 50);
            sender.send(now_ms + segment / 4, MSS, false);
        }
        (0..growth).for_each(|_| sender.send(now_ms + window / 4, MSS, false));
        window += growth;
    }
    sender.ledger()
}

#[test]
fn test_a_loss_explains_a_window_only_while_it_grows_back() {
    assert!(time_of(&after_a_loss(1), Cause::Loss) > 19_000);
    assert!(time_of(&after_a_loss(0), Cause::Loss) < 6_000);
}

#[test]
fn test_a_steady_rate_below_the_edge_of_the_receive_window_is_unknown_if_it_often_gets_there() {
    let mut sender = Sender::new(8 * MSS);
    sender.write_once();
    (0..8).for_each(|_| sender.send(100, MSS, false));
    for round in 0..400 {
        let now_ms = 100 + 40 * round;
        sender.acknowledge(now_ms + 20, 4 * MSS, 60);
        (0..4).for_each(|_| sender.send(now_ms + 40, MSS, false));
    }
    let found = sender.ledger();
    assert!(time_of(&found, Cause::Receiver) > 7_000, "{found:?}");
    assert_eq!(time_of(&found, Cause::Bottleneck), 0);
    let steady = (Cause::Unknown, Sign::WindowEdge, Some(Cause::Receiver));
    assert!(found.iter().any(|one| (one.cause, one.sign, one.second) == steady), "{found:?}");
}
