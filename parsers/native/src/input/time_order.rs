//! Whether the times of a source run forward, from packet to packet.

use serde::{Deserialize, Serialize};

/// A step forward from one packet to the next that no idle link explains: a year.
pub const MOST_IDLE_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// A step of the clock between two packets that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSteps {
    pub count: u64,
    /// Number of the first packet after such a step; of a text its line.
    pub first: u64,
    pub largest_ns: u64,
}

impl ClockSteps {
    fn add(&mut self, number: u64, step_ns: u64) {
        if self.count == 0 {
            self.first = number;
        }
        self.count += 1;
        self.largest_ns = self.largest_ns.max(step_ns);
    }
}

/// The steps of a source's clock against the direction of time, and those too far ahead.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TimeOrder {
    /// Packets with a time before their predecessor's.
    pub back: ClockSteps,
    /// Packets more than a year after their predecessor.
    pub ahead: ClockSteps,
    previous_ns: Option<i64>,
}

impl TimeOrder {
    /// Compare the time of packet `number` with its predecessor's; returns how much later it is, and more than
    /// [`MOST_IDLE_NS`] if it is earlier.
    #[inline(always)]
    pub fn check(&mut self, number: u64, time_ns: i64) -> u64 {
        let previous_ns = self.previous_ns.unwrap_or(time_ns);
        self.previous_ns = Some(time_ns);
        let passed_ns = time_ns.wrapping_sub(previous_ns).cast_unsigned();
        if time_ns < previous_ns || passed_ns > MOST_IDLE_NS {
            self.add(number, previous_ns, time_ns);
            return u64::MAX;
        }
        passed_ns
    }

    #[cold]
    fn add(&mut self, number: u64, previous_ns: i64, time_ns: i64) {
        let steps = if time_ns < previous_ns { &mut self.back } else { &mut self.ahead };
        steps.add(number, time_ns.abs_diff(previous_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(times: &[i64]) -> TimeOrder {
        let mut order = TimeOrder::default();
        (1..).zip(times).for_each(|(number, &time_ns)| {
            order.check(number, time_ns);
        });
        order
    }

    #[test]
    fn test_steps_back_are_counted_with_the_first_and_the_largest() {
        let order = order_of(&[10, 20, 20, 15, 30, 3, 4]);
        assert_eq!(order.back, ClockSteps { count: 2, first: 4, largest_ns: 27 });
        assert_eq!(order.ahead, ClockSteps::default());
    }

    #[test]
    fn test_a_year_without_a_packet_is_a_step_of_the_clock() {
        let year = MOST_IDLE_NS.cast_signed();
        assert_eq!(order_of(&[0, year]).ahead.count, 0);
        assert_eq!(
            order_of(&[0, year + 1]).ahead,
            ClockSteps { count: 1, first: 2, largest_ns: MOST_IDLE_NS + 1 }
        );
        let ends = order_of(&[i64::MIN, i64::MAX, i64::MIN]);
        assert_eq!((ends.ahead.largest_ns, ends.back.largest_ns), (u64::MAX, u64::MAX));
    }
}
