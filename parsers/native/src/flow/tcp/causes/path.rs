//! What the path did to a sender's data: laps of one round-trip time, and cuts of its window.

use super::growth::Growth;
use super::moment::saturated;
use super::pace::{Clock, Pace};
use super::{Event, Moment, push};

/// Why a sender reduced its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    Loss,
    Timeout,
    /// The receiver echoed a mark.
    Mark,
}

/// A queue lengthens the round trip by this part of the base, and by this time.
const QUEUE_PART: f64 = 0.1;
pub const QUEUE_NS: f64 = 2_000_000.0;
/// Losses that tell, and the part of the longest delay since the loss before at which a queue drops.
const RISES: usize = 4;
const END_OF_RISE: f64 = 0.6;
/// Delay of a queue at which CoDel begins to drop (RFC 8289 section 4.3).
const CODEL_TARGET_NS: i64 = 5_000_000;

/// A reduction of the window.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub time_ns: i64,
    pub reason: CutReason,
    /// Round-trip time of the newest data before it, and the shortest one of the lap before it.
    pub rtt_ns: i64,
    pub least_rtt_ns: i64,
    /// Longest round-trip time since the cut before.
    pub most_rtt_ns: i64,
    /// When the newest data before the lost or marked ones were sent, and the position after them.
    pub sent_ns: i64,
    pub sent: i64,
    /// How long the delay of the queue had been above the target of CoDel; None if always.
    pub above_target_ns: Option<i64>,
}

/// A time of one round trip.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    pub end_ns: i64,
    pub duration_ns: i64,
    /// Bytes delivered in it.
    pub bytes: u32,
    /// Shortest round-trip time in it.
    pub rtt_ns: i64,
    /// Whether losses were repaired in it.
    pub is_repairing: bool,
    /// Most data in flight after new data were sent, and by how much that may be wrong; None if none were.
    pub flight: Option<(u32, u32)>,
    /// What let its data go; None if there were few.
    pub clock: Option<Clock>,
}

impl Lap {
    pub fn start_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.duration_ns)
    }

    /// Bytes in a second.
    pub fn rate(&self) -> f64 {
        f64::from(self.bytes) * 1e9 / self.duration_ns as f64
    }
}

/// The newest data with a round-trip time.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    rtt_ns: i64,
    acked_ns: i64,
    /// Position after them.
    end: i64,
}

/// Whether a round-trip time is longer than a base by a queue.
pub fn is_longer(rtt_ns: i64, base_ns: i64) -> bool {
    (rtt_ns - base_ns) as f64 > QUEUE_NS.max(QUEUE_PART * base_ns as f64)
}

/// Laps and cuts of a direction, in order.
#[derive(Debug, Default)]
pub struct Path {
    pub laps: Vec<Lap>,
    pub cuts: Vec<Cut>,
    /// Until the first cut.
    pub growth: Growth,
    /// Whether round-trip times lack the queue before the capture: it is away from a sender without timestamps.
    pub hides_queues: bool,
    base_rtt_ns: Option<i64>,
    lap_start_ns: Option<i64>,
    lap_delivered: i64,
    lap_rtt_ns: Option<i64>,
    lap_flight: Option<(u32, u32)>,
    /// None before data.
    pace: Option<Box<Pace>>,
    newest: Newest,
    /// Longest round-trip time since the last cut.
    most_rtt_ns: i64,
    /// When the delay of the queue was last below the target of CoDel.
    below_target_ns: Option<i64>,
    was_repairing: bool,
    is_lap_repairing: bool,
    /// Whether the receiver echoed a mark since the last cut.
    is_marked: bool,
}

impl Path {
    /// The lap at a time.
    pub fn lap_at(&self, time_ns: i64) -> Option<&Lap> {
        let index = self.laps.partition_point(|lap| lap.end_ns <= time_ns);
        self.laps.get(index).filter(|lap| lap.start_ns() <= time_ns)
    }

    /// The shortest round-trip time so far.
    pub fn base_rtt_ns(&self) -> Option<i64> {
        self.base_rtt_ns
    }

    /// Whether a round-trip time tells of a queue.
    pub fn has_queue(&self, rtt_ns: i64) -> bool {
        is_longer(rtt_ns, self.base_rtt_ns.unwrap_or(0))
    }

    /// How much longer a round-trip time is than the shortest one.
    pub fn delay_ns(&self, rtt_ns: i64) -> f64 {
        rtt_ns.saturating_sub(self.base_rtt_ns.unwrap_or(0)) as f64
    }

    /// Whether losses come at the ends of rises of the delay, though these are a small part of the round trip.
    pub fn loses_at_rises(&self) -> bool {
        let losses: Vec<&Cut> = self.timed_cuts().filter(|cut| cut.reason != CutReason::Mark).collect();
        let is_at_end = |cut: &&&Cut| {
            let (delay_ns, most_ns) = (self.delay_ns(cut.rtt_ns), self.delay_ns(cut.most_rtt_ns));
            delay_ns > QUEUE_NS && delay_ns >= END_OF_RISE * most_ns
        };
        losses.len() >= RISES && 4 * losses.iter().filter(is_at_end).count() >= 3 * losses.len()
    }

    /// The cuts with a round-trip time of their own: before the others, nothing was timed since the last cut.
    pub fn timed_cuts(&self) -> impl Iterator<Item = &Cut> {
        let before = std::iter::once(None).chain(self.cuts.iter().map(|cut| Some(cut.sent)));
        self.cuts.iter().zip(before).filter(|(cut, before)| *before != Some(cut.sent)).map(|(cut, _)| cut)
    }

    /// The round-trip times so far were those of a part of the path.
    pub fn forget_rtts(&mut self) {
        (self.base_rtt_ns, self.lap_rtt_ns, self.newest, self.most_rtt_ns) =
            (None, None, Newest::default(), 0);
        self.below_target_ns = None;
    }

    /// The flow ends.
    pub fn finish(&mut self) {
        self.pace = None;
        self.growth.finish();
        self.laps.shrink_to_fit();
        self.cuts.shrink_to_fit();
    }

    pub fn on_moment(&mut self, moment: &Moment, is_repairing: bool) {
        if let Some(rtt_ns) = moment.rtt_ns.and_then(|ns| i64::try_from(ns).ok()).filter(|&ns| ns > 0) {
            self.on_rtt(rtt_ns, moment);
        }
        self.is_lap_repairing |= is_repairing;
        match moment.event {
            Event::Acknowledgement { echoes_mark, .. } => {
                self.is_marked |= echoes_mark;
                self.pace.iter_mut().for_each(|pace| pace.on_acknowledgement(moment.time_ns));
                if self.cuts.is_empty() {
                    self.growth.on_acknowledgement(moment.time_ns, moment.delivered, moment.next);
                }
                self.on_acknowledgement(moment);
            }
            Event::Repair { is_timeout } => {
                self.pace.iter_mut().for_each(|pace| pace.on_repair());
                if !self.was_repairing {
                    self.cut(moment, if is_timeout { CutReason::Timeout } else { CutReason::Loss });
                }
            }
            Event::Data { cuts_window, .. } => {
                self.pace.get_or_insert_default().on_data(moment.time_ns, moment.payload);
                if self.cuts.is_empty() {
                    self.growth.on_data(moment.time_ns, moment.flight(), moment.next);
                }
                let flight = (saturated(moment.flight()), moment.flight_error);
                self.lap_flight = self.lap_flight.max(Some(flight));
                // RFC 3168 section 6.1.2: the first new data after a reduction say so, whatever it was for.
                if cuts_window && self.is_marked && !is_repairing {
                    self.cut(moment, CutReason::Mark);
                }
            }
            Event::Other => {}
        }
        self.was_repairing = is_repairing;
    }

    fn on_rtt(&mut self, rtt_ns: i64, moment: &Moment) {
        let base_ns = self.base_rtt_ns.map_or(rtt_ns, |base| base.min(rtt_ns));
        self.base_rtt_ns = Some(base_ns);
        self.lap_rtt_ns = Some(self.lap_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        self.most_rtt_ns = self.most_rtt_ns.max(rtt_ns);
        self.newest = Newest { rtt_ns, acked_ns: moment.time_ns, end: moment.delivered };
        if rtt_ns.saturating_sub(base_ns) < CODEL_TARGET_NS {
            self.below_target_ns = Some(moment.time_ns);
        }
    }

    fn on_acknowledgement(&mut self, moment: &Moment) {
        let Some(start_ns) = self.lap_start_ns.filter(|_| moment.flight() > 0) else {
            // A lap has data in flight all the time.
            self.lap_start_ns = (moment.flight() > 0).then_some(moment.earliest_ns);
            self.begin_lap(moment);
            return;
        };
        let duration_ns = moment.earliest_ns.saturating_sub(start_ns);
        let Some(rtt_ns) = self.lap_rtt_ns.filter(|&ns| duration_ns >= ns.max(1)) else { return };
        let bytes = moment.delivered.saturating_sub(self.lap_delivered);
        let bytes = u32::try_from(bytes).unwrap_or_default();
        let is_repairing = self.is_lap_repairing;
        let (flight, clock) = (self.lap_flight, self.pace.as_mut().and_then(|pace| pace.end_lap()));
        let end_ns = moment.earliest_ns;
        push(&mut self.laps, Lap { end_ns, duration_ns, bytes, rtt_ns, is_repairing, flight, clock });
        self.lap_start_ns = Some(moment.earliest_ns);
        self.begin_lap(moment);
    }

    fn begin_lap(&mut self, moment: &Moment) {
        self.lap_delivered = moment.delivered;
        self.lap_rtt_ns = None;
        self.lap_flight = None;
        self.is_lap_repairing = self.was_repairing;
    }

    fn cut(&mut self, moment: &Moment, reason: CutReason) {
        let Newest { rtt_ns, acked_ns, end } = self.newest;
        let cut = Cut {
            time_ns: moment.time_ns,
            reason,
            rtt_ns,
            least_rtt_ns: self.laps.last().map_or(rtt_ns, |lap| lap.rtt_ns),
            most_rtt_ns: self.most_rtt_ns.max(rtt_ns),
            sent_ns: acked_ns.saturating_sub(rtt_ns),
            sent: end,
            above_target_ns: self.below_target_ns.map(|below_ns| acked_ns.saturating_sub(below_ns)),
        };
        push(&mut self.cuts, cut);
        self.is_marked = false;
        self.most_rtt_ns = 0;
    }
}
