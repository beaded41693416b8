//! Whether data wait between their sender and a capture beside it: in the queue of its own interface.
//!
//! A capture stands behind that queue. Data that do not echo (RFC 7323 section 4.3) an acknowledgement that had
//! passed the capture before were made before it came, so they have waited since.

use crate::packet::sender_stamp::Stamp;
use crate::packet::seq::SeqNumber;

/// A shorter wait is that of a busy host.
const LEAST_WAIT_NS: i64 = 2_000_000;
/// Acknowledgements, less those that data echoed at once, that data have waited for so long after.
const LEAST_WAITS: u8 = 4;
/// An echo that does not change for so long is that of the last segment before a gap.
const UNECHOED_NS: i64 = 1_000_000_000;

/// What timestamps show of the queue of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostQueue {
    /// The first acknowledgement that the newest data did not echo.
    unechoed: Option<Stamp>,
    /// How long the newest data that do not echo it had waited at least.
    waited_ns: i64,
    /// What the newest data echo.
    echo: Option<u32>,
    waits: u8,
}

impl HostQueue {
    /// Data with this echo pass the capture: how long those before them had waited, once it is clear that data wait.
    pub fn on_data(&mut self, time_ns: i64, echo: u32) -> Option<i64> {
        self.echo = Some(echo);
        let unechoed = self.unechoed?;
        if SeqNumber(echo).since(SeqNumber(unechoed.value)) < 0 {
            self.waited_ns = time_ns.saturating_sub(unechoed.time_ns);
            return None;
        }
        self.unechoed = None;
        let waited_ns = std::mem::take(&mut self.waited_ns);
        if !(LEAST_WAIT_NS..UNECHOED_NS).contains(&waited_ns) {
            self.waits = self.waits.saturating_sub(1);
            return None;
        }
        self.waits = self.waits.saturating_add(1);
        (self.waits >= LEAST_WAITS).then_some(waited_ns)
    }

    /// An acknowledgement with this timestamp passes the capture.
    pub fn on_acknowledgement(&mut self, time_ns: i64, value: u32) {
        let is_new = |echo| SeqNumber(value).since(SeqNumber(echo)) > 0;
        if self.unechoed.is_none() && self.echo.is_some_and(is_new) {
            self.unechoed = Some(Stamp { time_ns, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// What is found of data every 10 ms of which each waits for `queue_ms`, and is acknowledged 1 ms later.
    fn found(queue_ms: i64) -> Option<i64> {
        let mut queue = HostQueue::default();
        let mut found = None;
        for number in 0..50 {
            let passed_ms = 10 * number;
            // What the receiver had sent when they were made: it acknowledges at 1, 11, 21, ...
            let echo = (passed_ms - queue_ms - 1).div_euclid(10) * 10 + 1;
            found = queue.on_data(passed_ms * MS, echo as u32).or(found);
            queue.on_acknowledgement((passed_ms + 1) * MS, (passed_ms + 1) as u32);
        }
        found
    }

    #[test]
    fn test_data_that_do_not_echo_what_has_passed_waited_since() {
        assert_eq!(found(0), None);
        assert_eq!(found(30).map(|ns| ns / MS), Some(29));
        assert_eq!(found(1), None);
    }

    #[test]
    fn test_an_application_that_writes_seldom_waits_in_no_queue() {
        let mut queue = HostQueue::default();
        for number in 0..50_u32 {
            // It writes 90 ms after the last acknowledgement, which its data echo.
            let time_ms = 100 * number;
            assert_eq!(queue.on_data(i64::from(time_ms) * MS, time_ms.saturating_sub(90)), None);
            queue.on_acknowledgement(i64::from(time_ms + 10) * MS, time_ms + 10);
        }
    }
}
