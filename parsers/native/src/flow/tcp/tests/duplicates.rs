//! Scripts of duplicates, reordered packets and spurious retransmissions.

use super::class::{Given, class_of, packet, stamped};
use super::{Script, header};
use crate::flow::tcp::classify::class::{Class, Evidence};
use crate::flow::tcp::half_connection::Sight;
use crate::packet::event::{Tcp, TcpFlags};
use crate::packet::ip_fields::IpFields;
use crate::packet::key::Side;

#[test]
fn test_a_packet_at_another_interface_is_no_copy_after_a_long_silence() {
    for (later_ms, is_copy) in [(1, true), (200_000, false)] {
        let mut script = Script::new();
        let at = |capture_point| {
            let ip = IpFields { ip_id: Some(7), ttl: 64, capture_point, ..IpFields::default() };
            Given { ip, ..Given::default() }
        };
        script.data_with(0, 1, 1000, at(0));
        let again = script.data_with(later_ms, 1, 1000, at(4));
        assert_eq!(again.is_copy(), is_copy, "{later_ms} ms");
    }
}

#[test]
fn test_a_duplicate_block_of_a_part_condemns_nothing() {
    let mut script = Script::new();
    script.window();
    script.sack(102, 1001, &[(2001, 3001)]);
    // A sender may join small segments when it retransmits them: only the second half arrived
    // twice.
    let finding = script.data(320, 1001, 2000).finding.unwrap();
    script.sack(370, 6001, &[(2001, 3001)]);
    assert_eq!(script.sender().verdict(finding.number), None);
    script.sack(371, 6001, &[(1001, 2001)]);
    assert_eq!(script.sender().verdict(finding.number), Some(Evidence::DuplicateSack));
}

#[test]
fn test_a_duplicate_block_right_behind_the_repair_is_of_a_copy() {
    for (doubled_ms, verdict) in [(171, None), (195, Some(Evidence::DuplicateSack))] {
        let mut script = Script::new();
        for step in 0..4 {
            script.data_with(10 * step, 1 + 1000 * step as u32, 1000, stamped(100 + step as u32, 0));
        }
        for step in 0..3 {
            script.ack_with(50 + 10 * step, 1001 + 1000 * step as u32, stamped(9, 100 + step as u32));
        }
        let lost = Given { sack: &[(4001, 5001)], ..stamped(9, 102) };
        script.data_with(75, 4001, 1000, stamped(104, 9));
        script.ack_with(119, 3001, lost);
        let finding = script.data_with(120, 3001, 1000, stamped(150, 9)).finding.unwrap();
        script.ack_with(170, 5001, stamped(10, 150));
        script.ack_with(doubled_ms, 5001, Given { sack: &[(3001, 4001)], ..stamped(10, 150) });
        assert_eq!(script.sender().verdict(finding.number), verdict, "{doubled_ms} ms");
    }
}

#[test]
fn test_a_copy_of_a_repair_behind_another_repair_is_known_by_its_echo() {
    for (echo, verdict) in [(150, None), (149, Some(Evidence::DuplicateSack))] {
        let mut script = Script::new();
        for step in 0..4 {
            script.data_with(10 * step, 1 + 1000 * step as u32, 1000, stamped(100 + step as u32, 0));
        }
        for step in 0..3 {
            script.ack_with(50 + 10 * step, 1001 + 1000 * step as u32, stamped(9, 100 + step as u32));
        }
        for segment in 0..3 {
            script.data_with(75, 4001 + 1000 * segment, 1000, stamped(104, 9));
        }
        let lost = Given { sack: &[(4001, 5001), (6001, 7001)], ..stamped(9, 102) };
        script.ack_with(119, 3001, lost);
        script.data_with(120, 3001, 1000, stamped(149, 9));
        let finding = script.data_with(121, 5001, 1000, stamped(150, 9)).finding.unwrap();
        script.ack_with(170, 5001, stamped(10, 149));
        script.ack_with(171, 7001, stamped(10, echo));
        script.ack_with(172, 7001, Given { sack: &[(5001, 6001)], ..stamped(10, echo) });
        assert_eq!(script.sender().verdict(finding.number), verdict, "echo {echo}");
    }
}

#[test]
fn test_an_acknowledgement_that_comes_too_soon_is_not_for_what_was_sent_again() {
    for (acknowledged_ms, verdict) in [(210, Some(Evidence::Time)), (250, None)] {
        let mut script = Script::new();
        for step in 0..4 {
            script.data(10 * step, 1 + 1000 * step as u32, 1000);
            script.ack(50 + 10 * step, 1001 + 1000 * step as u32);
        }
        script.data(101, 4001, 1000);
        script.data(102, 5001, 1000);
        for time in 150..153 {
            script.ack(time, 4001);
        }
        let finding = script.data(200, 4001, 1000).finding.unwrap();
        script.ack(acknowledged_ms, 6001);
        assert_eq!(script.sender().verdict(finding.number), verdict);
    }
}

#[test]
fn test_a_block_that_comes_too_soon_is_not_for_what_was_sent_again() {
    for (reported_ms, verdict) in [(210, Some(Evidence::Time)), (250, None), (190, None)] {
        let mut script = Script::new();
        for step in 0..4 {
            script.data(10 * step, 1 + 1000 * step as u32, 1000);
            script.ack(50 + 10 * step, 1001 + 1000 * step as u32);
        }
        for step in 0..4 {
            script.data(101, 4001 + 1000 * step, 1000);
        }
        script.sack(151, 4001, &[(6001, 7001)]);
        script.data(200, 4001, 1000);
        let finding = script.data(200, 5001, 1000).finding.unwrap();
        // At 190 ms the capture's clock was set back.
        script.sack(reported_ms, 4001, &[(5001, 8001)]);
        assert_eq!(script.sender().verdict(finding.number), verdict, "{reported_ms} ms");
    }
}

#[test]
fn test_what_was_reported_before_is_no_sign_when_it_is_reported_again() {
    let mut script = Script::new();
    for step in 0..4 {
        script.data(10 * step, 1 + 1000 * step as u32, 1000);
        script.ack(50 + 10 * step, 1001 + 1000 * step as u32);
    }
    for step in 0..4 {
        script.data(101, 4001 + 1000 * step, 1000);
    }
    script.sack(151, 4001, &[(6001, 7001)]);
    let finding = script.data(500, 6001, 1000).finding.unwrap();
    script.sack(510, 4001, &[(6001, 8001)]);
    assert_eq!(script.sender().verdict(finding.number), None);
}

#[test]
fn test_a_retransmission_that_was_overtaken_is_no_copy() {
    let mut script = Script::new();
    for (id, seq) in [(10, 1), (11, 1001), (12, 2001), (14, 3001), (15, 4001)] {
        script.data_with(i64::from(id), seq, 1000, packet(id));
    }
    let again = script.data_with(18, 1001, 1000, packet(13)).finding.unwrap();
    assert!(again.class.is_retransmission());
    let copy = script.data_with(19, 1001, 1000, packet(13));
    assert_eq!(class_of(copy), Some((Class::NetworkDuplicate, Evidence::IpId)));
}

#[test]
fn test_a_copy_of_a_repair_is_not_its_original() {
    let mut script = Script::new();
    for (id, seq) in [(10, 1), (12, 2001), (13, 3001), (14, 1001)] {
        script.data_with(i64::from(id), seq, 1000, packet(id));
    }
    let copy = script.data_with(15, 1001, 1000, packet(14));
    assert_eq!(class_of(copy), Some((Class::NetworkDuplicate, Evidence::IpId)));
    assert_eq!(script.sender().lost_before().segments(), 1);
}

#[test]
fn test_without_identifications_echo_and_time_reveal_a_copy() {
    let mut script = Script::new();
    script.data_with(0, 1, 1000, stamped(100, 5));
    script.ack_with(50, 1001, stamped(9, 100));
    script.data_with(51, 1001, 1000, stamped(151, 5));
    script.data_with(51, 2001, 1000, stamped(151, 9));
    let older = script.data_with(52, 1001, 1000, stamped(151, 5));
    assert_eq!(class_of(older), Some((Class::NetworkDuplicate, Evidence::Timestamp)));
    let soon = script.data_with(56, 2001, 1000, stamped(151, 9));
    assert_eq!(class_of(soon), Some((Class::NetworkDuplicate, Evidence::Time)));
    let again = script.data_with(156, 2001, 1000, stamped(151, 9)).finding.unwrap();
    assert!(again.class.is_retransmission());
}

#[test]
fn test_the_newest_stamp_reveals_a_copy_of_what_was_sent_with_it() {
    let mut script = Script::new();
    script.data_with(0, 1, 1000, stamped(100, 5));
    script.ack_with(50, 1001, stamped(9, 100));
    script.data_with(51, 1001, 1000, stamped(151, 5));
    // From here on the data sent with the newest timestamp are tracked.
    script.data_with(52, 1001, 1000, stamped(151, 5));
    script.data_with(60, 2001, 1000, stamped(160, 5));
    script.data_with(60, 3001, 1000, stamped(160, 5));
    script.ack_with(61, 4001, stamped(20, 160));
    // They are acknowledged, and the sender cannot know it yet.
    for (time_ms, seq) in [(75, 2001), (76, 3001)] {
        let copy = script.data_with(time_ms, seq, 1000, stamped(160, 5));
        assert_eq!(class_of(copy), Some((Class::NetworkDuplicate, Evidence::Timestamp)), "{seq}");
    }
    // The data before them had another timestamp.
    let again = script.data_with(77, 1001, 1000, stamped(160, 5)).finding.unwrap();
    assert!(again.class.is_retransmission());
    let copy = script.data_with(79, 1001, 1000, stamped(160, 5));
    assert_eq!(class_of(copy), Some((Class::NetworkDuplicate, Evidence::Timestamp)));
    // A clock that ticks slowly.
    let again = script.data_with(110, 3001, 1000, stamped(160, 5)).finding.unwrap();
    assert!(again.class.is_retransmission());
}

#[test]
fn test_of_the_same_tick_and_within_a_round_trip_is_overtaken() {
    for (late_ms, stamp, expected) in [
        (99, (151, 9), (Class::Reordered, Evidence::Time)),
        (102, (151, 9), (Class::Unseen, Evidence::Time)),
        (52, (152, 9), (Class::Unseen, Evidence::Timestamp)),
    ] {
        let mut script = Script::new();
        script.data_with(0, 1, 1000, stamped(100, 5));
        script.ack_with(50, 1001, stamped(9, 100));
        script.data_with(51, 2001, 1000, stamped(151, 9));
        let late = script.data_with(late_ms, 1001, 1000, stamped(stamp.0, stamp.1));
        assert_eq!(class_of(late), Some(expected), "{late_ms} ms");
    }
}

#[test]
fn test_a_simulator_doubles_nothing() {
    for (sight, is_duplicate) in [(Sight::Alone, true), (Sight::Simulation, false)] {
        let mut script = Script::new();
        script.open();
        script.connection.half_mut(Side::Low).sight = sight;
        script.data(30, 1, 1000);
        let again = class_of(script.data(31, 1, 1000));
        assert_eq!(
            again.is_some_and(|(class, _)| class == Class::NetworkDuplicate),
            is_duplicate,
            "{sight:?}"
        );
    }
}

/// A SYN or its repetition, with a timestamp and an identification.
fn syn(
    script: &mut Script,
    side: Side,
    time_ms: i64,
    value: u32,
    ip_id: Option<u16>,
) -> Option<(Class, Evidence)> {
    let flags = if side == Side::Low { TcpFlags::SYN } else { TcpFlags::SYN | TcpFlags::ACK };
    let ip = IpFields { ip_id, ttl: 64, ..IpFields::default() };
    let given = Given { ip, ..stamped(value, 0) };
    class_of(script.take_with(side, time_ms, 0, Tcp { ack: 1, ..header(flags) }, given))
}

#[test]
fn test_a_newer_timestamp_is_of_a_retransmission_whatever_the_identification() {
    for ip_id in [None, Some(0), Some(39_000), Some(41_000), Some(40_000)] {
        let mut script = Script::new();
        syn(&mut script, Side::Low, 0, 500, Some(40_000));
        // Neighbour discovery held the first.
        let again = syn(&mut script, Side::Low, 0, 1_521, ip_id);
        assert_eq!(again, Some((Class::Syn, Evidence::Flags)), "{ip_id:?}");
    }
}

#[test]
fn test_each_of_two_syns_has_an_answer_and_a_third_answer_is_a_copy() {
    let mut script = Script::new();
    syn(&mut script, Side::Low, 0, 500, None);
    syn(&mut script, Side::Low, 0, 1_521, None);
    assert_eq!(syn(&mut script, Side::High, 1, 70, None), None);
    assert_eq!(syn(&mut script, Side::High, 1, 70, None), Some((Class::Syn, Evidence::Flags)));
    assert_eq!(syn(&mut script, Side::High, 1, 70, None), Some((Class::NetworkDuplicate, Evidence::Time)));
}

#[test]
fn test_the_answer_of_a_doubled_syn_is_doubled_with_it() {
    let mut script = Script::new();
    for _ in 0..2 {
        syn(&mut script, Side::Low, 0, 500, Some(40_000));
    }
    assert_eq!(syn(&mut script, Side::High, 1, 70, Some(0)), None);
    assert_eq!(syn(&mut script, Side::High, 1, 70, Some(0)), Some((Class::NetworkDuplicate, Evidence::Time)));
}

#[test]
fn test_data_with_a_random_identification_are_sent_again() {
    for ip_id in [1, 20_000, 39_999, 60_000] {
        let mut script = Script::new();
        script.open();
        script.data_with(21, 1, 1000, packet(40_000));
        let again = script.data_with(400, 1, 1000, packet(ip_id)).finding.map(|finding| finding.class);
        assert!(again.is_some_and(Class::is_retransmission), "{ip_id}: {again:?}");
    }
}
