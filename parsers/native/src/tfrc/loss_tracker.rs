//! From arrivals to loss intervals: the receive record, the loss events and the history together.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::loss_events::{LossEvent, LossEvents};
use super::loss_intervals::LossHistory;
use super::profile::{FirstInterval, LateArrival, ReceiverProfile};
use super::receive_record::{Arrival, ArrivalKind, Loss, ReceiveRecord};

/// Arrivals that a late packet may be inserted before; a later one is ignored.
const REFILLED: usize = 1024;

/// State at the arrival of a packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ArrivalContext {
    pub rtt: f64,
    /// Receive rate that determines the first loss interval, and its packet size.
    pub x_target: f64,
    pub s: f64,
    /// Whether the packet was marked.
    pub ce: bool,
}

/// The loss intervals of one direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LossTracker {
    profile: ReceiverProfile,
    pub record: ReceiveRecord,
    pub events: LossEvents,
    history: LossHistory,
    previous: Arrival,
    /// Kept for their memory.
    losses: Vec<Loss>,
    ended: Vec<LossEvent>,
}

impl LossTracker {
    pub fn new(profile: &ReceiverProfile) -> Self {
        Self {
            profile: *profile,
            record: ReceiveRecord::new(profile.ndupack),
            events: LossEvents::new(profile.event_rule),
            history: LossHistory::new(profile.averaging),
            previous: Arrival::default(),
            losses: Vec::new(),
            ended: Vec::new(),
        }
    }

    pub fn on_arrival(&mut self, arrival: Arrival, now: &ArrivalContext) -> ArrivalKind {
        self.ended.clear();
        let kind = self.record.on_arrival(arrival, &mut self.losses);
        let mut losses = std::mem::take(&mut self.losses);
        for loss in losses.drain(..) {
            self.on_loss(&loss, now);
        }
        self.losses = losses;
        if matches!(kind, ArrivalKind::New | ArrivalKind::Reordered) {
            if now.ce {
                self.on_mark(arrival, now);
            }
            self.events.on_arrival(arrival);
            self.previous = arrival;
        }
        kind
    }

    /// Events that the latest packet ended.
    pub fn ended(&self) -> &[LossEvent] {
        &self.ended
    }

    fn on_loss(&mut self, loss: &Loss, now: &ArrivalContext) {
        let (before, known) = (self.events.current, self.ended.len());
        self.events.on_loss(loss, now.rtt, &mut self.ended);
        self.on_events(before, known, now);
    }

    fn on_mark(&mut self, arrival: Arrival, now: &ArrivalContext) {
        let (before, known) = (self.events.current, self.ended.len());
        self.events.on_mark(arrival, self.previous, now.rtt, &mut self.ended);
        self.on_events(before, known, now);
    }

    /// Close the intervals of the events that ended, the first `known` of which are done.
    fn on_events(&mut self, before: Option<LossEvent>, known: usize, now: &ArrivalContext) {
        let Some(current) = self.events.current else { return };
        if before.is_none() {
            let start = self.ended.get(known).map_or(current.start, |event| event.start);
            let first = self.first_interval(start, now);
            self.history.close(first);
        }
        for (at, event) in self.ended.iter().enumerate().skip(known) {
            let next = self.ended.get(at.saturating_add(1)).unwrap_or(&current);
            let packets = next.start.saturating_sub(event.start).max(0) as f64;
            let is_short = self.profile.short_intervals && next.time - event.time <= 2.0 * now.rtt;
            // RFC 4828 section 3.3: a short interval of N packets with K lost counts N/K.
            self.history.close(if is_short { packets / event.packets.max(1) as f64 } else { packets });
        }
    }

    /// The synthetic interval before the first loss event (section 6.3.1).
    fn first_interval(&self, start: i64, now: &ArrivalContext) -> f64 {
        match self.profile.first_interval {
            FirstInterval::Equation(_) => {
                let ArrivalContext { rtt, s, x_target, .. } = *now;
                self.profile.first_interval(s, rtt, x_target)
            }
            FirstInterval::Count => start.saturating_sub(self.record.first().unwrap_or(start)) as f64,
            FirstInterval::Given(interval) => interval,
        }
    }

    /// I_0: packets since the current event began; None before the first one.
    pub fn open_interval(&self) -> Option<f64> {
        let start = self.events.current?.start;
        Some(self.record.highest().saturating_sub(start).saturating_add(1).max(0) as f64)
    }

    /// Closed intervals, the newest first.
    pub fn closed_intervals(&self) -> &[f64] {
        self.history.closed()
    }

    /// The loss event rate at `time`; 0 before the first loss event.
    pub fn p(&mut self, time: f64, rtt: f64) -> f64 {
        let (Some(open), Some(event)) = (self.open_interval(), self.events.current) else { return 0.0 };
        let is_short = self.profile.short_intervals && time - event.time <= 2.0 * rtt;
        self.history.mean(open, !is_short).map_or(0.0, |mean| mean.p)
    }
}

/// A tracker that revokes a loss when the packet arrives late, if its profile does so, as if it had
/// waited. It keeps the recent arrivals and the state before them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefillingTracker {
    pub now: LossTracker,
    /// The state before the kept arrivals; None if late packets are ignored.
    then: Option<Box<LossTracker>>,
    recent: VecDeque<(Arrival, ArrivalContext)>,
}

impl RefillingTracker {
    pub fn new(profile: &ReceiverProfile) -> Self {
        let now = LossTracker::new(profile);
        let refills = profile.late_arrival == LateArrival::Fill;
        Self { then: refills.then(|| Box::new(now.clone())), now, recent: VecDeque::new() }
    }

    pub fn on_arrival(&mut self, arrival: Arrival, now: &ArrivalContext) -> ArrivalKind {
        let kind = self.now.on_arrival(arrival, now);
        let Some(then) = &mut self.then else { return kind };
        if self.recent.len() == REFILLED
            && let Some((oldest, at_the_time)) = self.recent.pop_front()
        {
            then.on_arrival(oldest, &at_the_time);
            then.record.release_below(then.record.highest().saturating_sub(REFILLED as i64));
        }
        self.recent.push_back((arrival, *now));
        if kind != ArrivalKind::Late {
            return kind;
        }
        self.refill(arrival.number)
    }

    /// Replay the recent arrivals with `number` as arriving. Filling its hole moves the declaration
    /// of others, so further packets may turn out to be late.
    fn refill(&mut self, number: i64) -> ArrivalKind {
        let Some(then) = &mut self.then else { return ArrivalKind::Late };
        let mut late = Some(number);
        let mut kind = ArrivalKind::Late;
        while let Some(number) = late.take() {
            then.record.withhold(number);
            let mut now = (**then).clone();
            for (arrival, at_the_time) in &self.recent {
                kind = now.on_arrival(*arrival, at_the_time);
                if kind == ArrivalKind::Late && arrival.number != number {
                    late = late.or(Some(arrival.number));
                }
            }
            self.now = now;
        }
        kind
    }
}
