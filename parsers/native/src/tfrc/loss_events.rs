//! Groups losses into loss events: those within one round-trip time are one (section 5.2).

use serde::{Deserialize, Serialize};

use super::EPS_T;
use super::receive_record::{Arrival, Loss};

/// Limit of events that one run of lost packets may be split into; later losses belong to the last.
const MAX_SPLITS: usize = 4096;
/// Window counters further apart than this are more than a round-trip time apart (RFC 4342
/// section 10.2).
const QUARTERS: u8 = 4;

/// Rule that separates two loss events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventRule {
    /// More than a round-trip time between their first losses (section 5.2).
    #[default]
    Time,
    /// CCID 3's window counters (RFC 4342 section 10.2): for a receiver that knows no RTT.
    Ccval,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossEvent {
    /// The first packet lost or marked.
    pub start: i64,
    /// When that would have come.
    pub time: f64,
    /// Packets lost or marked in it.
    pub packets: u64,
    /// The packet before it and that one's window counter.
    before: Arrival,
    /// Whether a packet arrived that is more than a round-trip time later by its window counter.
    is_closed: bool,
}

/// The loss events of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LossEvents {
    rule: EventRule,
    pub current: Option<LossEvent>,
    pub count: u64,
    /// Lost packets that would have started an event of their own, had not one run held too many.
    pub unsplit: u64,
}

impl LossEvents {
    pub fn new(rule: EventRule) -> Self {
        Self { rule, ..Self::default() }
    }

    /// Record a packet, lost or not: its window counter may close the current event.
    pub fn on_arrival(&mut self, arrival: Arrival) {
        if let Some(event) = &mut self.current {
            event.is_closed |= is_apart(arrival.ccval, event.before.ccval);
        }
    }

    /// Packets were declared lost while `rtt` was the round-trip time. Events that end with it go to
    /// `ended`, one for each event that begins, but for the first ever.
    pub fn on_loss(&mut self, loss: &Loss, rtt: f64, ended: &mut Vec<LossEvent>) {
        let mut number = loss.first;
        for _ in 0..MAX_SPLITS {
            if self.begins(number, loss.time_of(number), loss.before, rtt) {
                self.begin(number, loss.time_of(number), loss.before, ended);
            }
            let next = self.next_start(number, loss, rtt);
            let same = next.unwrap_or(loss.last.saturating_add(1)).saturating_sub(number);
            self.add(same.unsigned_abs());
            match next {
                Some(next) => number = next,
                None => return,
            }
        }
        let rest = loss.last.saturating_sub(number).unsigned_abs() + 1;
        self.unsplit = self.unsplit.saturating_add(rest);
        self.add(rest);
    }

    /// Record a marked packet.
    pub fn on_mark(&mut self, arrival: Arrival, before: Arrival, rtt: f64, ended: &mut Vec<LossEvent>) {
        if self.begins(arrival.number, arrival.time, before, rtt) {
            self.begin(arrival.number, arrival.time, before, ended);
        }
        self.add(1);
    }

    fn begins(&self, number: i64, time: f64, before: Arrival, rtt: f64) -> bool {
        let Some(event) = &self.current else { return true };
        match self.rule {
            EventRule::Time => time - event.time > rtt + EPS_T,
            EventRule::Ccval => {
                before.number > event.before.number
                    && number > event.start
                    && (event.is_closed || is_apart(before.ccval, event.before.ccval))
            }
        }
    }

    fn begin(&mut self, start: i64, time: f64, before: Arrival, ended: &mut Vec<LossEvent>) {
        self.count += 1;
        ended.extend(self.current);
        self.current = Some(LossEvent { start, time, packets: 0, before, is_closed: false });
    }

    fn add(&mut self, packets: u64) {
        if let Some(event) = &mut self.current {
            event.packets = event.packets.saturating_add(packets);
        }
    }

    /// The next packet of `loss` after `number` that begins an event. All packets of a run have the
    /// same predecessor, hence the same window counter.
    fn next_start(&self, number: i64, loss: &Loss, rtt: f64) -> Option<i64> {
        let event = self.current.filter(|_| self.rule == EventRule::Time)?;
        loss.first_later(event.time + rtt + EPS_T, number.saturating_add(1))
    }
}

fn is_apart(later: u8, earlier: u8) -> bool {
    later.wrapping_sub(earlier) & 15 > QUARTERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(number: i64, time: f64, ccval: u8) -> Arrival {
        Arrival { number, time, ccval, ndp: 0 }
    }

    fn loss(first: i64, last: i64, before: Arrival, after: Arrival) -> Loss {
        Loss { first, last, before, after }
    }

    #[test]
    fn test_window_counters_separate_events_without_a_round_trip_time() {
        let mut events = LossEvents::new(EventRule::Ccval);
        let mut ended = Vec::new();
        events.on_loss(&loss(2, 2, at(1, 0.1, 0), at(3, 0.3, 1)), 0.0, &mut ended);
        // Less than a round-trip time later: the counter has advanced by 3.
        events.on_arrival(at(4, 0.4, 3));
        events.on_loss(&loss(5, 6, at(4, 0.4, 3), at(7, 0.7, 4)), 0.0, &mut ended);
        assert_eq!((events.count, ended.len()), (1, 0));
        events.on_arrival(at(8, 0.8, 5));
        events.on_loss(&loss(9, 9, at(8, 0.8, 5), at(10, 1.0, 6)), 0.0, &mut ended);
        assert_eq!((events.count, ended[0].packets), (2, 3));
        assert_eq!(events.current.map(|event| event.start), Some(9));
    }

    #[test]
    fn test_a_run_has_only_so_many_events() {
        let mut events = LossEvents::new(EventRule::Time);
        let mut ended = Vec::new();
        let far = 1 << 40;
        events.on_loss(&loss(1, far - 1, at(0, 0.0, 0), at(far, 1e12, 0)), 1e-3, &mut ended);
        assert_eq!(events.count, MAX_SPLITS as u64);
        let ended: u64 = ended.iter().map(|event| event.packets).sum();
        assert_eq!(ended + events.current.unwrap().packets, far as u64 - 1);
        assert_eq!(events.unsplit, far as u64 - 1 - MAX_SPLITS as u64);
    }

    proptest! {
        /// The same as looking at each lost packet by itself.
        #[test]
        fn test_skipping_finds_the_events_that_walking_does(
            packets in 1_i64..400, spacing in 0.0001..0.1_f64, rtt in 0.0..0.5_f64,
        ) {
            let last = packets + 1;
            let run = loss(1, packets, at(0, 0.0, 0), at(last, spacing * last as f64, 0));
            let mut events = LossEvents::new(EventRule::Time);
            let mut ended = Vec::new();
            events.on_loss(&run, rtt, &mut ended);
            let mut starts: Vec<i64> = Vec::new();
            for number in 1..=packets {
                let begins = |&start: &i64| run.time_of(number) - run.time_of(start) > rtt + EPS_T;
                if starts.last().is_none_or(begins) {
                    starts.push(number);
                }
            }
            ended.extend(events.current);
            let found: Vec<i64> = ended.iter().map(|event| event.start).collect();
            prop_assert_eq!(found, starts);
            prop_assert_eq!(ended.iter().map(|event| event.packets).sum::<u64>(), packets as u64);
        }
    }
}
