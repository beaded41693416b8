//! Scripts of repeated and late segments, and the classes that the RFCs give them.

use super::{MS, Script, header};
use crate::flow::tcp::classify::class::{Class, Evidence};
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tcp::*;
use crate::packet::event::{Sack, TcpOptions};
use proptest::prelude::*;

/// Optional fields of a test segment of either side.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    pub(crate) sack: &'a [(u32, u32)],
    pub(crate) timestamp: Option<(u32, u32)>,
    pub(crate) ip: IpFields,
}

impl Script {
    pub(crate) fn data_with(&mut self, time_ms: i64, seq: u32, payload: u32, given: Given<'_>) -> Outcome {
        self.take_with(Side::Low, time_ms, payload, Tcp { seq, ..header(TcpFlags::ACK) }, given)
    }

    pub(crate) fn ack_with(&mut self, time_ms: i64, ack: u32, given: Given<'_>) -> Outcome {
        self.take_with(Side::High, time_ms, 0, Tcp { ack, ..header(TcpFlags::ACK) }, given)
    }

    pub(crate) fn sack(&mut self, time_ms: i64, ack: u32, sack: &[(u32, u32)]) -> Outcome {
        self.ack_with(time_ms, ack, Given { sack, ..Given::default() })
    }

    pub(crate) fn take_with(
        &mut self,
        side: Side,
        time_ms: i64,
        payload: u32,
        tcp: Tcp,
        given: Given<'_>,
    ) -> Outcome {
        let mut tcp = tcp;
        tcp.options.timestamp = given.timestamp;
        let (sack, ip) = (given.sack, given.ip);
        let segment =
            Segment { time_ns: time_ms * MS, tcp: &tcp, payload, sack, ecn_counters: None, ip: &ip };
        let mut outcome = Outcome::default();
        self.take(side, &segment, &mut outcome);
        outcome
    }

    /// Five segments after an acknowledged one: the round-trip time is 50 ms.
    pub(crate) fn window(&mut self) {
        self.data(0, 1, 1000);
        self.ack(50, 1001);
        for segment in 0..5 {
            self.data(51 + segment, 1001 + 1000 * segment as u32, 1000);
        }
    }

    fn count(&self, class: Class) -> u32 {
        self.sender().classes().of(class)
    }
}

pub(crate) fn class_of(outcome: Outcome) -> Option<(Class, Evidence)> {
    outcome.finding.map(|finding| (finding.class, finding.evidence))
}

pub(crate) fn packet(ip_id: u16) -> Given<'static> {
    Given { ip: IpFields { ip_id: Some(ip_id), ttl: 64, ..IpFields::default() }, ..Given::default() }
}

pub(crate) fn stamped(value: u32, echo: u32) -> Given<'static> {
    Given { timestamp: Some((value, echo)), ..Given::default() }
}

#[test]
fn test_duplicate_acks_make_a_fast_retransmission_and_partial_ones_another() {
    let mut script = Script::new();
    script.window();
    for time in 102..105 {
        script.ack(time, 1001);
    }
    assert_eq!(class_of(script.data(106, 1001, 1000)), Some((Class::Fast, Evidence::DuplicateAcks)));
    script.ack(156, 3001);
    // RFC 6582 section 3.2: a partial acknowledgement.
    assert_eq!(class_of(script.data(157, 3001, 1000)), Some((Class::Fast, Evidence::Recovery)));
    script.ack(207, 6001);
    assert_eq!((script.sender().lost_after().segments(), script.sender().loss_events()), (2, Some(1)));
}

#[test]
fn test_holes_between_blocks_are_repaired_by_sack() {
    let mut script = Script::new();
    script.window();
    script.sack(102, 1001, &[(2001, 3001)]);
    script.sack(103, 1001, &[(4001, 5001), (2001, 3001)]);
    assert_eq!(class_of(script.data(104, 1001, 1000)), Some((Class::Fast, Evidence::Sack)));
    assert_eq!(class_of(script.data(104, 3001, 1000)), Some((Class::Sack, Evidence::Recovery)));
}

#[test]
fn test_silence_for_a_timeout_and_what_follows_is_of_the_timeout() {
    let mut script = Script::new();
    script.window();
    let timeout = Some((Class::Rto, Evidence::Timer));
    assert_eq!(class_of(script.data(320, 1001, 1000)), timeout);
    assert_eq!(class_of(script.data(870, 1001, 1000)), timeout);
    script.ack(920, 2001);
    assert_eq!(class_of(script.data(921, 2001, 1000)), Some((Class::Rto, Evidence::Recovery)));
    let rare_counts = script.sender().rare_counts();
    assert_eq!((rare_counts.timeouts, rare_counts.timeouts_in_a_row, script.count(Class::Rto)), (2, 2, 3));
}

#[test]
fn test_a_lost_retransmission_ends_the_recovery_of_a_timeout() {
    let mut script = Script::new();
    script.window();
    script.sack(102, 1001, &[(5001, 6001)]);
    assert_eq!(class_of(script.data(320, 1001, 1000)), Some((Class::Rto, Evidence::Timer)));
    script.sack(370, 2001, &[(5001, 6001)]);
    assert_eq!(class_of(script.data(371, 2001, 1000)), Some((Class::Rto, Evidence::Recovery)));
    script.data(372, 6001, 1000);
    // What was sent after the retransmission arrived before it (RFC 8985 section 6.2).
    script.sack(422, 2001, &[(5001, 7001)]);
    assert_eq!(class_of(script.data(423, 2001, 1000)), Some((Class::Fast, Evidence::SentBefore)));
    assert_eq!(class_of(script.data(423, 3001, 1000)), Some((Class::Sack, Evidence::Recovery)));
}

#[test]
fn test_of_retransmissions_with_one_time_a_later_one_reports_the_loss_of_an_earlier_one() {
    let mut script = Script::new();
    script.window();
    script.sack(102, 1001, &[(2001, 3001)]);
    script.sack(103, 1001, &[(4001, 5001), (2001, 3001)]);
    script.data(104, 1001, 1000);
    script.data(104, 3001, 1000);
    // Linux sends it again as soon as what it sent after it has arrived, and counts no timeout.
    script.sack(154, 1001, &[(2001, 5001)]);
    assert_eq!(class_of(script.data(155, 1001, 1000)), Some((Class::Sack, Evidence::Recovery)));
    assert_eq!(script.sender().rare_counts().timeouts, 0);
}

#[test]
fn test_late_blocks_for_data_sent_once_end_the_recovery_of_a_timeout() {
    let mut script = Script::new();
    script.window();
    assert_eq!(class_of(script.data(320, 1001, 1000)), Some((Class::Rto, Evidence::Timer)));
    // RFC 5682 section 3.1: the block is for data that the timeout did not repeat.
    script.sack(371, 2001, &[(5001, 6001)]);
    assert_eq!(class_of(script.data(372, 2001, 1000)), Some((Class::Fast, Evidence::Sack)));
}

#[test]
fn test_a_paced_sender_repairs_a_reported_loss_late() {
    let paced = |time| {
        let mut script = Script::new();
        script.window();
        script.sack(102, 1001, &[(2001, 5001)]);
        class_of(script.data(time, 1001, 1000))
    };
    // The timer of a round trip of 50 ms expires after 250 ms.
    assert_eq!(paced(300), Some((Class::Fast, Evidence::Sack)));
    assert_eq!(paced(306), Some((Class::Rto, Evidence::Timer)));
}

#[test]
fn test_a_recovery_that_ends_unfinished_starts_the_next() {
    let mut script = Script::new();
    script.window();
    script.sack(103, 1001, &[(4001, 5001), (2001, 3001)]);
    assert_eq!(class_of(script.data(104, 1001, 1000)), Some((Class::Fast, Evidence::Sack)));
    for (time, seq) in [(105, 6001), (106, 7001), (107, 8001)] {
        script.data(time, seq, 1000);
    }
    script.sack(152, 1001, &[(7001, 8001), (4001, 5001), (2001, 3001)]);
    assert_eq!(class_of(script.data(153, 6001, 1000)), Some((Class::Sack, Evidence::Recovery)));
    // The recovery ends, and its last retransmission is on its way: the next lasts until 9001.
    script.sack(160, 6001, &[(7001, 8001)]);
    script.data(162, 9001, 1000);
    script.data(163, 10_001, 1000);
    script.sack(210, 8001, &[(10_001, 11_001)]);
    assert_eq!(class_of(script.data(211, 8001, 1000)), Some((Class::Fast, Evidence::Recovery)));
    script.sack(260, 9001, &[(10_001, 11_001)]);
    assert_eq!(class_of(script.data(261, 9001, 1000)), Some((Class::Fast, Evidence::Sack)));
}

#[test]
fn test_the_last_segment_again_after_two_round_trips_is_a_probe() {
    let mut script = Script::new();
    script.window();
    assert_eq!(class_of(script.data(165, 5001, 1000)), Some((Class::TailLossProbe, Evidence::Timer)));
    // The next timer is the retransmission timer (RFC 8985 section 7.3).
    assert_eq!(class_of(script.data(450, 1001, 1000)), Some((Class::Rto, Evidence::Timer)));
}

#[test]
fn test_what_was_acknowledged_already_was_not_needed() {
    let mut script = Script::new();
    script.window();
    script.ack(101, 6001);
    let finding = script.data(250, 5001, 1000).finding.unwrap();
    assert_eq!(script.sender().verdict(finding.number), Some(Evidence::Acknowledged));
    assert_eq!((script.sender().tally().spurious, script.sender().lost_after().segments()), (1, 0));
}

#[test]
fn test_a_duplicate_block_condemns_the_retransmission() {
    let mut script = Script::new();
    script.window();
    for time in 102..105 {
        script.sack(time, 1001, &[(2001, 3001)]);
    }
    let finding = script.data(106, 1001, 1000).finding.unwrap();
    script.ack(110, 6001);
    // RFC 2883 section 4.1.
    script.sack(156, 6001, &[(1001, 2001)]);
    assert_eq!(script.sender().verdict(finding.number), Some(Evidence::DuplicateSack));
    assert_eq!(script.sender().lost_after().count(), 0);
}

#[test]
fn test_without_sack_an_older_echo_proves_all_that_it_covers() {
    let mut script = Script::new();
    for (side, time_ms, flags) in
        [(Side::Low, 0, TcpFlags::SYN), (Side::High, 50, TcpFlags::SYN | TcpFlags::ACK)]
    {
        script.take_with(side, time_ms, 0, Tcp { ack: 1, ..header(flags) }, stamped(time_ms as u32, 0));
    }
    for segment in 0..4 {
        script.data_with(51 + segment, 1 + 1000 * segment as u32, 1000, stamped(51, 50));
    }
    // The first was lost; the timer expired, and data that had arrived are retransmitted too.
    script.data_with(400, 1, 1000, stamped(400, 50));
    let second = script.data_with(440, 1001, 1000, stamped(440, 50)).finding.unwrap();
    let third = script.data_with(441, 2001, 1000, stamped(441, 50)).finding.unwrap();
    script.ack_with(492, 4001, stamped(450, 440));
    let verdicts = [second, third].map(|finding| script.sender().verdict(finding.number));
    assert_eq!(verdicts, [None, Some(Evidence::Timestamp)]);
}

#[test]
fn test_eifel_knows_the_acknowledgement_of_the_original_by_its_echo() {
    let mut script = Script::new();
    script.data_with(0, 1, 1000, stamped(100, 0));
    script.ack_with(50, 1001, stamped(9, 100));
    script.data_with(51, 1001, 1000, stamped(151, 9));
    let finding = script.data_with(400, 1001, 1000, stamped(500, 9)).finding.unwrap();
    script.ack_with(420, 2001, stamped(10, 151));
    assert_eq!(script.sender().verdict(finding.number), Some(Evidence::Timestamp));
}

#[test]
fn test_f_rto_waits_for_two_acknowledgements_without_timestamps() {
    let mut script = Script::new();
    script.window();
    let finding = script.data(320, 1001, 1000).finding.unwrap();
    script.ack(330, 2001);
    assert_eq!(script.sender().verdict(finding.number), None);
    script.data(331, 6001, 1000);
    script.ack(332, 3001);
    assert_eq!(script.sender().verdict(finding.number), Some(Evidence::ForwardRto));
}

#[test]
fn test_identifications_distinguish_a_doubled_packet_and_an_overtaken_one() {
    let mut script = Script::new();
    for (id, seq) in [(10, 1), (11, 1001), (13, 3001), (14, 4001)] {
        script.data_with(i64::from(id), seq, 1000, packet(id));
    }
    let overtaken = script.data_with(18, 2001, 1000, packet(12));
    assert_eq!(class_of(overtaken), Some((Class::Reordered, Evidence::IpId)));
    let rare_counts = script.sender().rare_counts();
    assert_eq!((rare_counts.reordered_by_packets, rare_counts.reordered_by_ns), (2, 5_000_000));
    let doubled = script.data_with(19, 4001, 1000, packet(14));
    assert_eq!(class_of(doubled), Some((Class::NetworkDuplicate, Evidence::IpId)));
    assert_eq!(script.sender().lost_before().segments(), 0);
}

#[test]
fn test_a_late_segment_with_a_newer_identification_was_lost_before_the_capture() {
    let mut script = Script::new();
    for (id, seq) in [(10, 1), (12, 2001), (13, 3001)] {
        script.data_with(i64::from(id), seq, 1000, packet(id));
    }
    let late = script.data_with(14, 1001, 1000, packet(14));
    assert_eq!(class_of(late), Some((Class::Unseen, Evidence::IpId)));
    assert_eq!((script.sender().lost_before().segments(), script.sender().missing_bytes()), (1, 0));
    // The original was only slow.
    let original = script.data_with(15, 1001, 1000, packet(11));
    assert_eq!(class_of(original), Some((Class::Reordered, Evidence::IpId)));
    assert_eq!(script.sender().lost_before().segments(), 0);
}

#[test]
fn test_without_identifications_time_decides_what_was_overtaken() {
    for (late_ms, expected) in [(52, Class::Reordered), (120, Class::Unseen)] {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        script.ack(50, 1001);
        script.data(51, 2001, 1000);
        assert_eq!(class_of(script.data(late_ms, 1001, 1000)), Some((expected, Evidence::Time)));
    }
}

#[test]
fn test_a_copy_at_another_interface_is_nothing_to_the_connection() {
    let mut script = Script::new();
    for (id, seq) in [(10, 1), (11, 1001)] {
        let original = packet(id);
        script.data_with(i64::from(id), seq, 1000, original);
        let ip = IpFields { capture_point: 1, ttl: 63, ..original.ip };
        let copy = script.data_with(i64::from(id), seq, 1000, Given { ip, ..original });
        assert_eq!(
            (class_of(copy), copy.repeated_bytes),
            (Some((Class::CaptureDuplicate, Evidence::Interface)), 0)
        );
    }
    assert_eq!(script.sender().tally().retransmitted_packets, 0);
    assert_eq!(script.connection.vantage(Side::Low).map(|found| found.0), Some(Vantage::Middle));
}

#[test]
fn test_probes_are_recognised_by_the_window() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.ack(50, 1001);
    let alive = script.flags(Side::Low, 9_000, TcpFlags::ACK, 1000, 0);
    assert_eq!(class_of(alive), Some((Class::KeepAlive, Evidence::Window)));
    script.give(Side::High, 9_100, 0, Tcp { ack: 1001, window: 0, ..header(TcpFlags::ACK) });
    let probe = script.flags(Side::Low, 9_400, TcpFlags::ACK, 1000, 0);
    assert_eq!(class_of(probe), Some((Class::ZeroWindowProbe, Evidence::Window)));
    assert_eq!(script.sender().tally().retransmitted_packets, 0);
}

#[test]
fn test_the_byte_of_a_probe_is_no_retransmission_where_new_data_follow() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.give(Side::High, 50, 0, Tcp { ack: 1001, window: 0, ..header(TcpFlags::ACK) });
    script.data(300, 1001, 1);
    script.ack(350, 1001);
    let more = script.data(400, 1001, 500);
    assert_eq!((class_of(more), more.repeated_bytes, more.new_bytes), (None, 1, 499));
}

#[test]
fn test_the_byte_of_a_probe_is_repeated_where_a_hole_is_filled() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.give(Side::High, 50, 0, Tcp { ack: 1001, window: 0, ..header(TcpFlags::ACK) });
    script.data(300, 1001, 1);
    script.ack(350, 1001);
    script.data(400, 1101, 500);
    let late = script.data(500, 1001, 100);
    assert_eq!((late.repeated_bytes, late.new_bytes), (1, 99));
    assert!(class_of(late).is_some());
}

#[test]
fn test_a_full_window_is_counted_where_the_scale_is_known() {
    let mut script = Script::new();
    script.open();
    script.data(30, 1, 40);
    assert_eq!(script.sender().window_full(), 0);
    script.data(31, 41, 60);
    assert!(script.sender().knows_window_ends());
    assert_eq!(script.sender().window_full(), 1);
    // Retransmissions meanwhile do not reach its end, the last segment does.
    script.data(400, 1, 40);
    assert_eq!(script.sender().window_full(), 1);
    script.data(401, 41, 60);
    assert_eq!(script.sender().window_full(), 2);
}

#[test]
fn test_a_super_segment_counts_as_the_packets_of_the_wire() {
    let mut script = Script::new();
    let options = TcpOptions { mss: Some(1460), sack: Sack::PERMITTED, ..TcpOptions::default() };
    for (side, ack, flags) in [(Side::Low, 0, TcpFlags::SYN), (Side::High, 1, TcpFlags::SYN | TcpFlags::ACK)]
    {
        script.give(side, 0, 0, Tcp { ack, options, window: 60_000, ..header(flags) });
    }
    script.data(10, 1, 1460);
    script.data(10, 1461, 3 * 1460 + 1);
    assert_eq!((script.sender().rare_counts().super_segments, script.sender().data_segments()), (1, 5));
    script.data(1_500, 1461, 3 * 1460 + 1);
    assert_eq!((script.count(Class::TailLossProbe), script.count(Class::Rto)), (4, 0));
}

#[test]
fn test_what_was_acknowledged_and_never_seen_was_lost_by_the_capture() {
    let mut script = Script::new();
    script.open();
    script.data(20, 1, 1000);
    script.data(21, 2001, 1000);
    script.ack(50, 3001);
    assert_eq!((script.sender().gap_bytes(), script.sender().lost_before().segments()), (1000, 0));
}

#[test]
fn test_what_was_sent_before_the_capture_is_no_gap_of_it() {
    // The capture begins with a retransmission; three later segments are on their way, one is lost.
    for sack in [true, false] {
        let mut script = Script::new();
        script.data(0, 1, 1000);
        if sack {
            script.sack(40, 1, &[(3001, 4001)]);
            script.sack(50, 2001, &[(3001, 4001)]);
        } else {
            script.ack(50, 2001);
        }
        script.data(51, 2001, 1000);
        script.ack(100, 4001);
        script.data(101, 4001, 1000);
        script.ack(150, 5001);
        assert_eq!(script.sender().gap_bytes(), 0);
        // What the capture misses later is.
        script.data(151, 6001, 1000);
        script.ack(200, 7001);
        assert_eq!(script.sender().gap_bytes(), 1000);
    }
}

#[test]
fn test_repeated_syn_and_fin_are_classes_of_their_own() {
    let mut script = Script::new();
    script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
    let syn = script.flags(Side::Low, 1_000, TcpFlags::SYN, 0, 0);
    script.flags(Side::Low, 2_000, TcpFlags::FIN | TcpFlags::ACK, 1, 0);
    let fin = script.flags(Side::Low, 2_300, TcpFlags::FIN | TcpFlags::ACK, 1, 0);
    assert_eq!(
        [syn, fin].map(|seen| class_of(seen).map(|found| found.0)),
        [Some(Class::Syn), Some(Class::Fin)]
    );
}

#[test]
fn test_a_simultaneous_open_repeats_no_syn() {
    let mut script = Script::new();
    let sides = [Side::Low, Side::High];
    let (syn, syn_ack) = (TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ACK);
    let opened = sides.map(|side| script.flags(side, 0, syn, 0, 0));
    let answered = sides.map(|side| script.flags(side, 50, syn_ack, 0, 1));
    let again = script.flags(Side::Low, 1_100, syn_ack, 0, 1);
    assert_eq!([opened, answered].as_flattened().iter().find_map(|seen| seen.finding), None);
    assert_eq!(class_of(again), Some((Class::Syn, Evidence::Flags)));
}

#[test]
fn test_a_syn_that_data_overtook_is_not_repeated() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    assert_eq!(class_of(script.flags(Side::Low, 1, TcpFlags::SYN | TcpFlags::ACK, 0, 1)), None);
}

#[test]
fn test_without_sack_silence_of_a_round_trip_is_a_timeout() {
    // ns-2 has a smallest timeout of 200 ms, not a smallest variation.
    for (sack, class) in [(false, Class::Rto), (true, Class::Fast)] {
        let mut script = Script::new();
        for (side, time_ms, flags) in
            [(Side::Low, 0, TcpFlags::SYN), (Side::High, 150, TcpFlags::SYN | TcpFlags::ACK)]
        {
            let mut tcp = Tcp { seq: 0, ack: 1, ..header(flags) };
            tcp.options.sack = if sack { Sack::PERMITTED } else { Sack::NONE };
            let ip = IpFields::default();
            let segment = Segment {
                time_ns: time_ms * MS,
                tcp: &tcp,
                payload: 0,
                sack: &[],
                ecn_counters: None,
                ip: &ip,
            };
            script.take(side, &segment, &mut Outcome::default());
        }
        script.flags(Side::Low, 151, TcpFlags::ACK, 1, 1);
        for segment in 0..6 {
            script.data(152 + segment, 1 + 1000 * segment as u32, 1000);
        }
        script.ack(302, 1001);
        for time in 303..306 {
            script.ack(time, 1001);
        }
        assert_eq!(class_of(script.data(306, 1001, 1000)), Some((Class::Fast, Evidence::DuplicateAcks)));
        script.ack(456, 3001);
        let again = class_of(script.data(656, 3001, 1000)).map(|found| found.0);
        assert_eq!(again, Some(class), "SACK: {sack}");
    }
}

#[test]
fn test_marks_of_congestion_are_counted() {
    let mut script = Script::new();
    let ecn = |ecn| Given { ip: IpFields { ecn, ..IpFields::default() }, ..Given::default() };
    script.data_with(0, 1, 1000, ecn(2));
    script.data_with(1, 1001, 1000, ecn(3));
    script.flags(Side::Low, 2, TcpFlags::ACK | TcpFlags::CWR, 2001, 0);
    script.flags(Side::Low, 3, TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR, 0, 0);
    let found = script.sender().ecn();
    let counts = (found.ect_packets(), found.ce_packets, found.ece_packets, found.cwr_packets);
    assert_eq!(counts, (2, 1, 0, 1));
}

#[test]
fn test_the_end_that_answers_at_once_is_where_the_capture_was_taken() {
    let mut script = Script::new();
    script.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
    script.flags(Side::High, 40, TcpFlags::SYN | TcpFlags::ACK, 0, 1);
    script.flags(Side::Low, 41, TcpFlags::ACK, 1, 1);
    let [low, high] =
        [Side::Low, Side::High].map(|side| script.connection.vantage(side).map(|found| found.0));
    assert_eq!((low, high), (Some(Vantage::Sender), Some(Vantage::Receiver)));
    assert_eq!(Script::new().connection.vantage(Side::Low), None);
}

/// Any segment: side, milliseconds since the last, number, acknowledgement, payload, flags, window,
/// timestamps, identification, interface, block.
type Any = (bool, u8, u32, u32, u8, u16, u16, Option<(u32, u32)>, Option<u16>, u16, Option<(u32, u32)>);

fn any_segment() -> impl Strategy<Value = Any> {
    let number = || prop_oneof![8 => 0_u32..400, 1 => any::<u32>()];
    let flags = prop_oneof![8 => Just(TcpFlags::ACK), 1 => 0_u16..512];
    let window = prop_oneof![3 => Just(100_u16), 1 => 0_u16..3];
    let block = proptest::option::weighted(0.3, (number(), number()));
    let stamps = proptest::option::of((number(), number()));
    let (payload, id) = (prop_oneof![Just(0_u8), Just(1), any::<u8>()], proptest::option::of(0_u16..90));
    (any::<bool>(), any::<u8>(), number(), number(), payload, flags, window, stamps, id, 0_u16..2, block)
}

proptest! {
    #[test]
    fn test_classes_partition_what_repeats_or_is_late(segments in proptest::collection::vec(any_segment(), 0..300)) {
        let mut script = Script::new();
        let (mut time_ms, mut found, mut retransmitted, mut late) = (0, 0, 0, 0);
        for (from_low, gap, seq, ack, payload, flags, window, timestamp, ip_id, capture_point, block) in segments {
            time_ms += i64::from(gap);
            let side = if from_low { Side::Low } else { Side::High };
            let sack = block.as_slice();
            let ip = IpFields { ip_id, ttl: 64, capture_point, ..IpFields::default() };
            let tcp = Tcp { seq, ack, window, ..header(flags) };
            let given = Given { sack, timestamp, ip };
            let probe_end = script.connection.half(side).rare_counts().last_probe_end;
            let outcome = script.take_with(side, time_ms, u32::from(payload), tcp, given);
            if outcome.repeated_bytes > 0 || outcome.out_of_order {
                // But the byte of a probe that is followed by more.
                let start = outcome.position + i64::from(flags & TcpFlags::SYN != 0);
                let goes_on = outcome.new_bytes > 0 && !outcome.out_of_order;
                let repeats_probe = outcome.repeated_bytes == 1 && probe_end == Some(start + 1);
                prop_assert!(outcome.finding.is_some() || (goes_on && repeats_probe));
            }
            let class = outcome.finding.map(|finding| finding.class);
            found += u32::from(class.is_some());
            retransmitted += u32::from(class.is_some_and(Class::is_retransmission));
            late += u32::from(outcome.out_of_order);
        }
        let halves = [Side::Low, Side::High].map(|side| script.connection.half(side));
        let sum = |count: fn(&HalfConnection) -> u32| halves.map(count).iter().sum::<u32>();
        prop_assert_eq!(sum(|half| half.tally().findings), found);
        prop_assert_eq!(sum(|half| half.tally().retransmitted_packets), retransmitted);
        prop_assert_eq!(sum(|half| half.rare_counts().out_of_order_packets), late);
        for side in [Side::Low, Side::High] {
            let half = script.connection.half(side);
            prop_assert!(half.lost_after().segments() <= half.classes().sum(&Class::RETRANSMISSIONS));
            prop_assert!(script.connection.vantage(side).is_none_or(|found| (0.0..=1.0).contains(&found.1)));
        }
    }
}
