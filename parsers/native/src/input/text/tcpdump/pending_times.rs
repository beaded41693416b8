//! Packets that wait until the meaning of their times is known.
//!
//! `-ttt` prints the time since the previous line, `-ttttt` that since the first line, and both
//! look the same. So the first packets are held back and compared. Times since the first line grow,
//! even where packets are not in order; differences go up and down, or stay the same with a steady
//! sender. So the times are differences if more than one in eight is smaller than its predecessor
//! and the later half is not after the earlier one, or if the last one is not larger than the
//! second. A shorter text that only grows is taken for times since the first.

use std::collections::VecDeque;

use super::timestamp::Clock;
use crate::packet::event::Packet;

const HELD: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMeaning {
    /// Since the previous line.
    Differences,
    /// Since the first line.
    SinceFirst,
}

/// Held packets, oldest first. Their times are as printed until their meaning is known.
#[derive(Debug, Default)]
pub struct PendingTimes {
    packets: VecDeque<Packet>,
    meaning: Option<TimeMeaning>,
    clock: Clock,
    sum_ns: i64,
}

impl PendingTimes {
    /// The meaning of the times; None if there were none.
    pub fn meaning(&self) -> Option<TimeMeaning> {
        self.meaning
    }

    /// Add `packet`, and take the first one out if its time is known.
    pub fn exchange(&mut self, packet: &mut Packet) -> bool {
        if self.meaning.is_some() {
            packet.time_ns = self.place(packet.time_ns);
        }
        self.packets.push_back(*packet);
        if self.packets.len() <= HELD {
            return false;
        }
        self.decide();
        self.pop(packet)
    }

    /// After the last line: the next held packet.
    pub fn pop(&mut self, packet: &mut Packet) -> bool {
        self.decide();
        let Some(first) = self.packets.pop_front() else { return false };
        *packet = first;
        true
    }

    fn decide(&mut self) {
        if self.meaning.is_some() || self.packets.is_empty() {
            return;
        }
        self.meaning = Some(meaning_of(&self.packets));
        let mut packets = std::mem::take(&mut self.packets);
        for packet in &mut packets {
            packet.time_ns = self.place(packet.time_ns);
        }
        self.packets = packets;
    }

    /// The time since the first line of a line that prints `time_ns`.
    fn place(&mut self, time_ns: i64) -> i64 {
        match self.meaning {
            Some(TimeMeaning::Differences) => {
                self.sum_ns = self.sum_ns.saturating_add(time_ns);
                self.sum_ns
            }
            // Hours are printed up to 23.
            _ => self.clock.unwrap(time_ns),
        }
    }
}

fn meaning_of(packets: &VecDeque<Packet>) -> TimeMeaning {
    let times = packets.iter().map(|packet| packet.time_ns);
    let falls = times.clone().zip(times.clone().skip(1)).filter(|(before, after)| after < before).count();
    // Neighbours may be out of order where the halves meet.
    let (half, margin) = (packets.len() / 2, packets.len() / 8);
    let halves_overlap = times.clone().skip(half).min() < times.clone().take(half - margin).max();
    let grows = packets.len() < 3 || times.clone().nth(1) < times.clone().next_back();
    match (falls * 8 > packets.len() && halves_overlap) || !grows {
        true => TimeMeaning::Differences,
        false => TimeMeaning::SinceFirst,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(times: impl IntoIterator<Item = i64>) -> (Vec<i64>, Option<TimeMeaning>) {
        let mut backlog = PendingTimes::default();
        let mut out = Vec::new();
        for time_ns in times {
            let mut packet = Packet { time_ns, ..Packet::default() };
            if backlog.exchange(&mut packet) {
                out.push(packet.time_ns);
            }
        }
        let mut packet = Packet::default();
        while backlog.pop(&mut packet) {
            out.push(packet.time_ns);
        }
        (out, backlog.meaning())
    }

    #[test]
    fn test_times_that_grow_are_since_the_first() {
        let times: Vec<i64> = (0..200).map(|at| at / 3 * 10).collect();
        assert_eq!(through(times.clone()), (times, Some(TimeMeaning::SinceFirst)));
    }

    #[test]
    fn test_times_that_fall_are_differences() {
        let times = (0..200).map(|at| if at == 0 { 0 } else { at * 7919 % 13 });
        let sums: Vec<i64> = times
            .clone()
            .scan(0, |sum, time| {
                *sum += time;
                Some(*sum)
            })
            .collect();
        assert_eq!(through(times), (sums, Some(TimeMeaning::Differences)));
    }

    #[test]
    fn test_times_of_a_steady_sender_are_differences() {
        let (out, meaning) = through((0..200).map(|at| i64::from(at > 0) * 5));
        assert_eq!((out.last(), meaning), (Some(&995), Some(TimeMeaning::Differences)));
    }

    #[test]
    fn test_one_step_back_is_no_difference() {
        let times: Vec<i64> = (0..100).map(|at| if at == 50 { 480 } else { at * 10 }).collect();
        assert_eq!(through(times.clone()), (times, Some(TimeMeaning::SinceFirst)));
    }

    #[test]
    fn test_exchanged_neighbours_are_no_differences() {
        let times: Vec<i64> = (0..200).map(|at| (at ^ 1) * 10).collect();
        assert_eq!(through(times.clone()), (times, Some(TimeMeaning::SinceFirst)));
    }

    #[test]
    fn test_nothing_and_one_packet() {
        assert_eq!(through([]), (vec![], None));
        assert_eq!(through([0]).0, [0]);
    }
}
