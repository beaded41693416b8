//! Retransmissions after events that the capture did not see: losses upstream, acknowledgements
//! lost downstream.

use super::class::class_of;
use super::{Script, header};
use crate::flow::tcp::classify::class::{Class, Evidence};
use crate::flow::tcp::*;

impl Script {
    /// A connection whose path takes 60 ms, 10 ms of it downstream of the capture, and six segments
    /// of which the first and the fourth do not arrive.
    fn with_losses_before(&mut self) {
        self.flags(Side::Low, 0, TcpFlags::SYN, 0, 0);
        self.flags(Side::High, 10, TcpFlags::SYN | TcpFlags::ACK, 0, 1);
        self.flags(Side::Low, 60, TcpFlags::ACK, 1, 1);
        for segment in [1, 2, 4, 5] {
            self.data(61 + segment, 1 + 1000 * segment as u32, 1000);
        }
        self.ack(76, 1);
    }
}

#[test]
fn test_what_follows_a_timeout_whose_segment_was_lost_before_is_of_the_timeout() {
    let mut script = Script::new();
    script.with_losses_before();
    // The acknowledgement takes 25 ms to the sender, its timer 260 ms, the segment 25 ms to here.
    assert_eq!(class_of(script.data(386, 1, 1000)), Some((Class::Unseen, Evidence::Time)));
    script.ack(396, 3001);
    assert_eq!(class_of(script.data(447, 3001, 1000)).map(|found| found.0), Some(Class::Unseen));
    assert_eq!(class_of(script.data(448, 4001, 1000)), Some((Class::Rto, Evidence::Recovery)));
    assert_eq!((script.sender().rare_counts().timeouts, script.sender().tally().spurious), (1, 0));
}

#[test]
fn test_what_follows_a_recovery_that_began_with_a_loss_before_is_of_it() {
    let mut script = Script::new();
    script.with_losses_before();
    assert_eq!(class_of(script.data(127, 1, 1000)).map(|found| found.0), Some(Class::Unseen));
    script.sack(137, 3001, &[(4001, 5001)]);
    assert_eq!(class_of(script.data(188, 5001, 1000)), Some((Class::Sack, Evidence::Recovery)));
    assert_eq!(script.sender().rare_counts().timeouts, 0);
}

#[test]
fn test_a_timeout_is_one_though_the_acknowledgement_passed_the_capture() {
    for (refuses_sack, expected) in [(true, Class::Rto), (false, Class::TailLossProbe)] {
        let mut script = Script::new();
        script.open();
        script.connection.halves[Side::Low as usize].options.refuses_sack = refuses_sack;
        for segment in 0..3 {
            script.data(21 + segment, 1 + 1000 * segment as u32, 1000);
        }
        script.ack(35, 3001);
        assert_eq!(class_of(script.data(270, 2001, 1000)), Some((expected, Evidence::Timer)));
        // The next is by the retransmission timer.
        assert_eq!(class_of(script.data(800, 2001, 1000)), Some((Class::Rto, Evidence::Timer)));
        assert_eq!(script.sender().tally().spurious, 2);
    }
}

#[test]
fn test_f_rto_judges_nothing_of_a_timeout_whose_segment_was_lost_before() {
    let mut script = Script::new();
    script.with_losses_before();
    script.data(386, 1, 1000);
    script.ack(396, 3001);
    script.data(447, 3001, 1000);
    script.ack(457, 6001);
    script.data(510, 6001, 1000);
    script.ack(520, 7001);
    assert_eq!((script.sender().tally().spurious, script.sender().lost_before().segments()), (0, 2));
}

#[test]
fn test_who_asks_for_room_again_has_not_heard_of_it() {
    let mut script = Script::new();
    script.data(0, 1, 1000);
    script.ack(50, 1001);
    script.give(Side::High, 100, 0, Tcp { ack: 1001, window: 0, ..header(TcpFlags::ACK) });
    let probe = |script: &mut Script, time_ms| {
        class_of(script.flags(Side::Low, time_ms, TcpFlags::ACK, 1000, 0)).map(|found| found.0)
    };
    assert_eq!(probe(&mut script, 400), Some(Class::ZeroWindowProbe));
    script.ack(500, 1001);
    assert_eq!(probe(&mut script, 1_000), Some(Class::ZeroWindowProbe));
    script.data(1_100, 1001, 1000);
    script.ack(1_150, 2001);
    let alive = script.flags(Side::Low, 9_000, TcpFlags::ACK, 2000, 0);
    assert_eq!(class_of(alive).map(|found| found.0), Some(Class::KeepAlive));
}
