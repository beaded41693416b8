//! Rounds of a direction as its sender saw them, from a capture elsewhere.

use super::moment::saturated;
use super::{Event, Moment, push};
use crate::flow::tcp::ecn::RoundMarks;
use crate::flow::tcp::rounds::flight::Flight;
use crate::flow::tcp::rounds::{RepairCause, Round, RoundEnd};

/// A round, the number of the acknowledgement that ended it, and by how much its flight may be wrong.
#[derive(Clone, Copy, Debug)]
pub struct SenderRound {
    pub packet: u64,
    pub round: Round,
    pub flight_error: u32,
}

/// The rounds so far, of moments in the order in which the sender saw them.
#[derive(Debug, Default)]
pub struct SenderRounds {
    pub rounds: Vec<SenderRound>,
    flight: Flight,
    /// Position after the highest sent; None before the first data.
    next: Option<i64>,
    acknowledged: i64,
    delivered: i64,
    /// Whether bytes beyond the acknowledged position were delivered.
    has_sack: bool,
    /// Most data in flight in this round, and by how much that may be wrong.
    most: (u32, u32),
    /// Marks up to the last round.
    marks: RoundMarks,
}

impl SenderRounds {
    pub fn on_moment(&mut self, moment: &Moment) {
        match moment.event {
            Event::Acknowledgement { .. } => self.on_acknowledgement(moment),
            Event::Repair { is_timeout } => {
                self.on_sent(moment);
                let cause = if is_timeout { RepairCause::Timeout } else { RepairCause::Recovery };
                self.flight.note(moment.flight());
                self.flight.on_repair(cause, moment.next, moment.time_ns);
            }
            Event::Data { .. } => self.on_sent(moment),
            Event::Other => {}
        }
    }

    fn on_sent(&mut self, moment: &Moment) {
        let payload = i64::from(moment.payload);
        let next = *self.next.get_or_insert_with(|| {
            let first = moment.next.saturating_sub(payload);
            (self.acknowledged, self.delivered) = (first, first);
            first
        });
        if moment.next > next {
            self.flight.on_sent(moment.next - next, moment.payload, moment.next, moment.time_ns);
            self.next = Some(moment.next);
            self.most = self.most.max((saturated(moment.flight()), moment.flight_error));
        }
    }

    fn on_acknowledgement(&mut self, moment: &Moment) {
        let Some(next) = self.next else { return };
        let in_flight = next.saturating_sub(self.delivered);
        let bytes = moment.delivered.saturating_sub(self.delivered).max(0);
        self.delivered = self.delivered.saturating_add(bytes);
        self.has_sack |= moment.delivered > moment.acknowledged;
        if bytes > 0 || moment.acknowledged > self.acknowledged {
            self.flight.note(in_flight);
        }
        if moment.acknowledged <= self.acknowledged {
            return self.flight.on_sacked(bytes, moment.time_ns);
        }
        self.acknowledged = moment.acknowledged.min(next);
        if self.flight.on_progress(bytes, self.acknowledged, moment.time_ns) {
            self.end_round(moment, (in_flight, next));
        }
    }

    fn end_round(&mut self, moment: &Moment, (in_flight, next): (i64, i64)) {
        let close = RoundEnd {
            time_ns: moment.time_ns,
            window: moment.window_end.map(|end| saturated(end.saturating_sub(self.acknowledged))),
            full_size: moment.full_size,
            in_flight: self.has_sack.then_some(saturated(in_flight)),
            rtt_ns: moment.rtt_ns,
            marks: self.marks.advance(moment.marks),
        };
        let (_, flight_error) = std::mem::take(&mut self.most);
        let outstanding = next.saturating_sub(self.delivered);
        let round = self.flight.end_round((self.acknowledged, next), outstanding, close);
        if let Some(round) = round {
            push(&mut self.rounds, SenderRound { packet: moment.number, round, flight_error });
        }
    }
}
