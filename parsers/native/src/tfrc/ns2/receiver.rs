//! ns-2's sink: loss events by the sender's clock, intervals counted from report to report.

use std::collections::VecDeque;

use super::gaps::{ArrivalKind, Gaps};
use super::history::History;
use super::parameters::Algorithm;
use super::receive_rate::ReceiveRate;
use super::{Feedback, Header, Parameters, p_of};
use crate::tfrc::receive_record::{Arrival, Loss};

/// The most loss events between two reports; ns-2 reports at each, so that more are not possible in
/// its trace.
const MAX_UNCOUNTED: usize = 1024;

/// Result of an arrival at the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArrivalOutcome {
    /// Lost packets that it revealed, or itself if it was marked.
    pub lost: u64,
    /// The first packet of a loss event that it revealed, and its (would-be) send time.
    pub event: Option<(i64, f64)>,
}

/// The sink of one flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    parameters: Parameters,
    gaps: Gaps,
    rate: ReceiveRate,
    /// The header of the newest packet that was no duplicate.
    header: Header,
    last_arrival: f64,
    last_report: f64,
    newest: f64,
    /// When the current loss event began, by the sender's clock; ns-2 begins at 0.
    last_loss: f64,
    last_loss_round: Option<u64>,
    has_losses: bool,
    /// p of the first loss, which is reported at once.
    first_p: Option<f64>,
    /// Loss events that began since the last report: their first packets.
    begun: VecDeque<i64>,
    /// The first packet not counted into an interval.
    uncounted: i64,
    history: History,
    /// Packets found lost or marked since the last report.
    unreported: u64,
    /// Loss events so far.
    pub loss_events: u64,
    /// Kept for its memory.
    losses: Vec<Loss>,
}

impl Receiver {
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            parameters: *parameters,
            gaps: Gaps::new(parameters.num_pkts as u32),
            rate: ReceiveRate::default(),
            header: Header::default(),
            last_arrival: 0.0,
            last_report: 0.0,
            newest: 0.0,
            last_loss: 0.0,
            last_loss_round: None,
            has_losses: false,
            first_p: None,
            begun: VecDeque::new(),
            uncounted: 0,
            history: History::new(parameters),
            unreported: 0,
            loss_events: 0,
            losses: Vec::new(),
        }
    }

    /// The newest packet's R.
    pub fn rtt(&self) -> f64 {
        self.header.rtt
    }

    /// Intervals as of the last report: the open one, then the closed ones, the newest first.
    pub fn intervals(&self) -> impl Iterator<Item = f64> {
        self.history.packets()
    }

    /// Process a data packet. Losses are those of the record; specific to ns-2 is when one begins a
    /// loss event, and that this uses the sender's clock.
    pub fn on_data(&mut self, number: i64, time: f64, header: &Header, is_marked: bool) -> ArrivalOutcome {
        self.rate.on_arrival();
        self.first_p = None;
        let arrival = Arrival { number, time: header.timestamp, ..Arrival::default() };
        let place = self.gaps.place(arrival);
        let mut arrived = ArrivalOutcome::default();
        if place != ArrivalKind::Old {
            self.header = *header;
            self.last_arrival = time;
            if is_marked {
                self.on_mark(number, header, &mut arrived);
            } else {
                self.rate.on_new(number, time);
            }
        }
        let mut losses = std::mem::take(&mut self.losses);
        self.gaps.check(arrival, self.header.rtt, arrived.event.is_some(), &mut losses);
        let is_marked_event = arrived.event.is_some();
        for loss in losses.drain(..) {
            self.on_loss(&loss, &mut arrived);
        }
        self.losses = losses;
        if let ArrivalKind::Highest { has_gap } = place {
            self.newest = time;
            let is_weighted = self.parameters.algo == Algorithm::Weighted;
            if is_weighted && !self.has_losses && (has_gap || is_marked_event) {
                self.on_first_loss(time);
            }
        }
        self.unreported = self.unreported.saturating_add(arrived.lost);
        arrived
    }

    fn on_mark(&mut self, number: i64, header: &Header, arrived: &mut ArrivalOutcome) {
        arrived.lost += 1;
        self.begin_event(number, header.timestamp, arrived);
        self.history.on_lost(1);
    }

    fn on_loss(&mut self, loss: &Loss, arrived: &mut ArrivalOutcome) {
        arrived.lost = arrived.lost.saturating_add(loss.packets());
        let mut number = loss.first;
        // After one event the round is not new any more; without that rule a run may begin several.
        while let Some(start) = loss.first_later(self.last_loss + self.header.rtt, number)
            && self.begun.len() < MAX_UNCOUNTED
            && self.begin_event(start, loss.time_of(start), arrived)
        {
            number = start.saturating_add(1);
        }
        self.history.on_lost(loss.packets());
    }

    /// Begin a loss event if `time` is more than R after the last one began and, with
    /// `PreciseLoss_`, the sender has been in a new round since; whether it began.
    fn begin_event(&mut self, number: i64, time: f64, arrived: &mut ArrivalOutcome) -> bool {
        let round = self.header.round_id;
        let is_new_round = self.last_loss_round.is_none_or(|last| round > last);
        let since = time - self.last_loss;
        if since <= self.header.rtt || (self.parameters.precise_loss && !is_new_round) {
            return false;
        }
        self.history.on_event(since, self.header.rtt);
        self.last_loss = time;
        self.last_loss_round = Some(round);
        self.loss_events += 1;
        arrived.event.get_or_insert((number, time));
        if self.begun.len() < MAX_UNCOUNTED {
            self.begun.push_back(number);
        }
        true
    }

    /// The first loss (`adjust_history`): the interval before it is computed from the receive rate,
    /// and the open one begins with the packets after the last report.
    fn on_first_loss(&mut self, time: f64) {
        self.has_losses = true;
        if !self.parameters.adjust_history_after_ss {
            return;
        }
        self.begun.clear();
        self.last_loss = self.header.timestamp;
        self.last_loss_round = Some(self.header.round_id);
        let Header { rtt, tzero, size, fsize, .. } = self.header;
        let p = p_of(self.x_recv_pps(time) * f64::from(size), rtt, tzero, fsize);
        self.history.begin((1.0 / p).trunc());
        self.first_p = Some(p);
    }

    fn x_recv_pps(&self, time: f64) -> f64 {
        self.rate.packets_per_second(time - self.last_report, self.header.rtt, self.newest)
    }

    /// A report of `bytes` is sent, as the trace shows.
    pub fn on_report(&mut self, time: f64, bytes: u32) -> Feedback {
        let p = match self.first_p.take() {
            Some(p) => p,
            None => self.loss_event_rate(time, bytes),
        };
        let feedback = Feedback {
            timestamp_echo: self.header.timestamp,
            hold: time - self.last_arrival,
            p,
            x_recv_pps: self.x_recv_pps(time),
            losses: self.unreported,
        };
        self.last_report = time;
        self.unreported = 0;
        self.rate.on_report();
        feedback
    }

    /// Count the packets since the last report into intervals: each includes the packet that ends it.
    fn loss_event_rate(&mut self, time: f64, report_bytes: u32) -> f64 {
        let highest = self.gaps.highest();
        let next = highest.saturating_add(1);
        for start in self.begun.drain(..) {
            // Packets counted before they were known to be lost no longer end an interval
            // (`last_sample`).
            if start < self.uncounted {
                continue;
            }
            self.history.extend(start.saturating_sub(self.uncounted) as f64 + 1.0);
            self.history.close(start);
            self.uncounted = start.saturating_add(1);
        }
        self.history.extend(next.saturating_sub(self.uncounted).max(0) as f64);
        self.uncounted = next.max(self.uncounted);
        self.history.on_report(time - self.last_loss, self.header.rtt);
        self.history.p(highest, &self.header, report_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header =
        Header { timestamp: 0.0, rtt: 0.1, tzero: 0.3, round_id: 0, rate: 1e5, size: 1000, fsize: 1000.0 };

    /// Packet `number` sent 10 ms after the one before, in `round`, and received 50 ms later.
    fn take(receiver: &mut Receiver, number: i64, round_id: u64, is_marked: bool) -> ArrivalOutcome {
        let timestamp = 1.0 + number as f64 * 0.01;
        receiver.on_data(number, timestamp + 0.05, &Header { timestamp, round_id, ..HEADER }, is_marked)
    }

    fn received(numbers: impl Iterator<Item = i64>) -> Receiver {
        let mut receiver = Receiver::new(&Parameters::default());
        numbers.for_each(|number| {
            take(&mut receiver, number, 1, false);
        });
        receiver
    }

    #[test]
    fn test_the_first_loss_is_reported_with_a_p_made_of_the_receive_rate() {
        let mut receiver = received(0..50);
        receiver.on_report(1.6, 40);
        let arrived = take(&mut receiver, 51, 1, false);
        assert_eq!((arrived.lost, arrived.event.map(|(start, _)| start)), (1, Some(50)));
        let first = receiver.on_report(1.61, 40).p;
        // Whole packets, as ns-2 counts, and an open interval that has not begun.
        assert_eq!(receiver.intervals().collect::<Vec<_>>(), [0.0, (1.0 / first).trunc()]);
    }

    #[test]
    fn test_a_loss_event_needs_a_new_round_and_closes_an_interval_with_its_packet() {
        let mut receiver = received((0..60).filter(|&number| number != 50));
        receiver.on_report(1.66, 40);
        assert_eq!(take(&mut receiver, 80, 1, false).event, None);
        assert_eq!(take(&mut receiver, 100, 2, false).event.map(|(start, _)| start), Some(81));
        receiver.on_report(2.1, 40);
        let intervals: Vec<f64> = receiver.intervals().collect();
        // From the report after packet 59 to packet 81, and from there to packet 100.
        assert_eq!(intervals[..2], [19.0, 82.0]);
        assert_eq!(receiver.loss_events, 2);
    }

    #[test]
    fn test_a_loss_that_was_reported_upon_before_it_was_known_ends_no_interval() {
        let mut receiver = Receiver::new(&Parameters { num_pkts: 3.0, ..Parameters::default() });
        for number in (0..82).filter(|number| ![50, 80].contains(number)) {
            take(&mut receiver, number, if number < 54 { 1 } else { 2 }, false);
        }
        receiver.on_report(1.87, 40);
        take(&mut receiver, 82, 2, false);
        assert_eq!(take(&mut receiver, 83, 2, false).event.map(|(start, _)| start), Some(80));
        receiver.on_report(1.89, 40);
        // The first one, which was made up, and the open one.
        assert_eq!(receiver.intervals().count(), 2);
    }

    #[test]
    fn test_a_marked_packet_is_a_loss_that_arrives() {
        let mut receiver = received(0..20);
        let arrived = take(&mut receiver, 20, 1, true);
        assert_eq!(arrived, ArrivalOutcome { lost: 1, event: Some((20, 1.2)) });
    }
}
