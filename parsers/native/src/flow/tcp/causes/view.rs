//! What a sender had seen when it sent: packets in its order, by the clock of the capture.
//!
//! Between an acknowledgement that passes a capture away from the sender and the data that it lets go, a
//! round trip to the sender goes by. So acknowledgements are kept until they have reached the sender: the
//! shortest such round trip later. Data are dated back by the queue that they crossed ([`SenderClock`]).
//! The echoes of timestamps (RFC 7323) tell which acknowledgements the sender had.

use std::collections::VecDeque;

use super::host_queue::HostQueue;
use super::moment::saturated;
use super::nearest::Nearest;
use super::sender_clock::SenderClock;
use super::sender_rounds::{SenderRound, SenderRounds};
use super::{Event, Hops, Moment, Waits};
use crate::flow::tcp::half_connection::AT_SENDER_NS;
use crate::packet::sender_stamp::Stamp as SenderStamp;
use crate::packet::seq::SeqNumber;

/// Data follow an acknowledgement at once if it may have taken so much longer to the sender than the
/// fastest: a part (1/n) of the round-trip time to the sender, within these bounds.
const JITTER_NS: (i64, i64) = (5_000_000, 15_000_000);
const JITTER_PART: i64 = 2;
/// An echo that does not change for so long is that of the last segment before a gap (RFC 7323 section
/// 4.3): it does not tell what arrived since.
const UNECHOED_NS: i64 = 1_000_000_000;
/// Acknowledgements on the way to one sender that are kept, and those for which there is room from the start.
const ON_THE_WAY: usize = 4_096;
const USUALLY_ON_THE_WAY: usize = 2;

/// The value and the echo of a timestamp option.
pub type Stamp = Option<(u32, u32)>;

/// A packet of the other side on its way to the sender, dated when it arrives at the earliest.
#[derive(Debug)]
struct OnTheWay {
    moment: Moment,
    value: Option<u32>,
}

impl OnTheWay {
    /// By how much an echo is newer; None without timestamps.
    fn echoed_by(&self, echo: Option<u32>) -> Option<i32> {
        Some(SeqNumber(echo?).since(SeqNumber(self.value?)))
    }
}

/// What the sender has of the acknowledgements.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    delivered: i64,
    /// The part of it that it has for certain.
    certain: i64,
    /// When the newest could have come.
    earliest_ns: i64,
    window_end: Option<i64>,
}

/// The packets of a connection as one side saw them.
#[derive(Debug, Default)]
pub struct View {
    pub waits: Waits,
    /// Of a sender that the capture was away from, once the flow has ended.
    pub rounds: Vec<SenderRound>,
    wants_rounds: bool,
    pub hops: Hops,
    /// Round-trip time between capture and sender, if it is known; 0 at the sender.
    near_ns: Option<i64>,
    nearest: Nearest,
    host_queue: HostQueue,
    /// What happens between capture and sender, once it is known to be away.
    away: Option<Box<Away>>,
}

/// What happens between the capture and a sender that is away from it.
#[derive(Debug, Default)]
struct Away {
    rounds: Option<Box<SenderRounds>>,
    on_the_way: VecDeque<OnTheWay>,
    clock: SenderClock,
    /// Queue that the newest data had crossed.
    queue_ns: i64,
    /// When the sender saw the newest packet.
    seen_ns: i64,
    /// Position after the highest that it sent.
    next: i64,
    echo: Option<u32>,
    arrived: Option<Arrived>,
}

impl View {
    /// Before the first packet.
    pub fn new(wants_rounds: bool) -> Self {
        Self { wants_rounds, ..Self::default() }
    }

    /// What is kept: waits, laps, cuts and rounds so far, and acknowledgements on their way.
    pub fn kept(&self) -> usize {
        self.waits.kept() + self.away.as_ref().map_or(0, |away| away.kept())
    }

    /// Whether the capture shows how far away the sender is.
    pub fn is_known(&self) -> bool {
        self.near_ns.is_some()
    }

    /// Whether the sender is that far away, or its own queue that long, that its view is an estimate.
    pub fn is_away(&self) -> bool {
        self.waits.is_behind_queue || self.near_ns.is_some_and(|ns| ns > 0)
    }

    /// Take what a packet shows; `is_own` if the sender sent it. `near_ns` is the round-trip time between
    /// capture and sender, as far as it is known.
    pub fn on_moment(&mut self, moment: Moment, is_own: bool, stamp: Stamp, near_ns: Option<i64>) {
        self.nearest.on_packet(moment.time_ns, stamp, is_own);
        let near_ns = near_ns.map(|ns| self.nearest.bound(ns));
        self.near_ns = near_ns.map(|ns| if ns < AT_SENDER_NS { 0 } else { ns });
        if is_own {
            self.waits.path.hides_queues |= stamp.is_none() && self.is_away();
        }
        let waited = stamp.and_then(|stamp| self.waited(&moment, is_own, stamp));
        let is_away = self.is_away();
        let waits = &mut self.waits;
        waits.on_packet(moment.time_ns);
        let Some(near_ns) = self.near_ns.filter(|_| is_away) else {
            if let Some(away) = &mut self.away {
                away.let_all_arrive(waits);
            }
            waits.is_estimated = false;
            return waits.on_moment(&moment);
        };
        let away = self.away.get_or_insert_with(|| {
            let on_the_way = VecDeque::with_capacity(USUALLY_ON_THE_WAY);
            Box::new(Away { on_the_way, ..Away::default() })
        });
        if !waits.is_estimated {
            away.clock = waited.map_or_else(SenderClock::default, SenderClock::dated);
            waits.is_estimated = true;
            waits.path.forget_rtts();
            away.rounds = self.wants_rounds.then(Box::default);
        }
        if is_own {
            away.on_own(waits, moment, stamp, near_ns);
        } else {
            away.on_other(waits, moment, stamp, near_ns);
        }
    }

    /// The timestamp of data that waited beside the capture, and when they were made at the latest, if it is the first
    /// that shows it.
    fn waited(&mut self, moment: &Moment, is_own: bool, (value, echo): (u32, u32)) -> Option<SenderStamp> {
        if self.waits.is_behind_queue || self.near_ns != Some(0) {
            return None;
        }
        match moment.event {
            Event::Data { .. } | Event::Repair { .. } if is_own => {
                let waited_ns = self.host_queue.on_data(moment.time_ns, echo)?;
                self.waits.is_behind_queue = true;
                Some(SenderStamp { time_ns: moment.time_ns.saturating_sub(waited_ns), value })
            }
            Event::Acknowledgement { .. } if !is_own => {
                self.host_queue.on_acknowledgement(moment.time_ns, value);
                None
            }
            _ => None,
        }
    }

    /// The flow ends.
    pub fn finish(&mut self) {
        if let Some(mut away) = self.away.take() {
            away.let_all_arrive(&mut self.waits);
            if let Some(seen) = away.rounds {
                self.rounds = seen.rounds;
                self.rounds.shrink_to_fit();
            }
        }
        self.waits.finish();
    }
}

impl Away {
    fn kept(&self) -> usize {
        self.rounds.as_ref().map_or(0, |seen| seen.rounds.len()) + self.on_the_way.len()
    }

    fn show(&mut self, waits: &mut Waits, moment: &Moment) {
        if let Some(rounds) = &mut self.rounds {
            rounds.on_moment(moment);
        }
        waits.on_moment(moment);
    }

    /// A packet of the other side passes the capture.
    fn on_other(&mut self, waits: &mut Waits, mut moment: Moment, stamp: Stamp, near_ns: i64) {
        let time_ns = moment.time_ns;
        let rtt_ns = near_ns.saturating_add(self.queue_ns).unsigned_abs();
        moment.rtt_ns = moment.rtt_ns.map(|ns| ns.saturating_add(rtt_ns));
        moment.time_ns = time_ns.saturating_add(near_ns);
        moment.earliest_ns = moment.time_ns;
        self.on_the_way.push_back(OnTheWay { moment, value: stamp.map(|(value, _)| value) });
        if self.on_the_way.len() > ON_THE_WAY {
            self.let_first_arrive(waits, time_ns, false);
        }
    }

    /// The sender sent a packet, with what had arrived.
    fn on_own(&mut self, waits: &mut Waits, mut moment: Moment, stamp: Stamp, near_ns: i64) {
        let time_ns = moment.time_ns;
        let jitter_ns = (near_ns / JITTER_PART).clamp(JITTER_NS.0, JITTER_NS.1);
        let sent_ns = stamp.map_or(time_ns, |(value, _)| self.clock.sent_ns(time_ns, value));
        self.queue_ns = time_ns.saturating_sub(sent_ns);
        moment.time_ns = sent_ns.max(self.seen_ns);
        self.let_arrive(waits, moment.time_ns, stamp.map(|(_, echo)| echo), jitter_ns);
        (self.next, self.seen_ns) = (moment.next, moment.time_ns);
        if let Some(arrived) = self.arrived {
            moment.delivered = arrived.delivered;
            moment.window_end = arrived.window_end;
            let until_ns = moment.time_ns.saturating_add(jitter_ns);
            // Times and values grow: of many on the way not each is looked at for every packet.
            let perhaps = self.on_the_way.partition_point(|first| {
                first.moment.time_ns <= until_ns && first.value.is_none_or(|value| Some(value) == self.echo)
            });
            let last = perhaps.checked_sub(1).and_then(|last| self.on_the_way.get(last));
            let most = last.map_or(arrived.delivered, |last| arrived.delivered.max(last.moment.delivered));
            moment.flight_error = saturated(most.saturating_sub(arrived.certain));
        }
        self.show(waits, &moment);
    }

    /// What has reached the sender when it sends a packet with this echo.
    fn let_arrive(&mut self, waits: &mut Waits, now_ns: i64, echo: Option<u32>, jitter_ns: i64) {
        let delay_ns = self.delay_ns(now_ns, echo);
        if let Some(arrived) = &mut self.arrived
            && now_ns.saturating_sub(arrived.earliest_ns) >= jitter_ns
        {
            arrived.certain = arrived.delivered;
        }
        while let Some(first) = self.on_the_way.front() {
            let earliest_ns = first.moment.time_ns;
            let late_ns = now_ns.saturating_sub(earliest_ns);
            let (has_arrived, is_certain) = match first.echoed_by(echo) {
                Some(1..) => (true, true),
                // The first of a tick is echoed; others may have come since.
                Some(0) => (late_ns >= 0 || echo != self.echo, echo != self.echo),
                Some(_) => (late_ns >= UNECHOED_NS, false),
                None => (late_ns >= 0, false),
            };
            if !has_arrived {
                break;
            }
            if first.value == echo {
                self.echo = echo;
            }
            let is_at_once = late_ns <= delay_ns.saturating_add(jitter_ns);
            let time_ns = if is_at_once { now_ns } else { earliest_ns.saturating_add(delay_ns) };
            self.let_first_arrive(waits, time_ns, is_certain);
        }
    }

    /// By how much acknowledgements are late: the next would be there, but is not echoed.
    fn delay_ns(&self, now_ns: i64, echo: Option<u32>) -> i64 {
        if echo.is_none() {
            return 0;
        }
        let mut due = self.on_the_way.iter().take_while(|next| next.moment.time_ns <= now_ns);
        let missing = due.find(|next| next.echoed_by(echo).is_some_and(|since| since < 0));
        let late_ns = missing.map_or(0, |next| now_ns.saturating_sub(next.moment.time_ns));
        if late_ns < UNECHOED_NS { late_ns } else { 0 }
    }

    fn let_all_arrive(&mut self, waits: &mut Waits) {
        while let Some(first) = self.on_the_way.front() {
            self.let_first_arrive(waits, first.moment.time_ns.min(waits.last_ns()), false);
        }
    }

    fn let_first_arrive(&mut self, waits: &mut Waits, time_ns: i64, is_certain: bool) {
        let Some(OnTheWay { mut moment, .. }) = self.on_the_way.pop_front() else { return };
        self.seen_ns = self.seen_ns.max(time_ns);
        let earliest_ns = moment.time_ns;
        (moment.time_ns, moment.next) = (self.seen_ns, self.next);
        let (before, certain) = self
            .arrived
            .map_or((moment.delivered, moment.delivered), |arrived| (arrived.delivered, arrived.certain));
        let delivered = before.max(moment.delivered);
        let certain = if is_certain { delivered } else { certain };
        self.arrived = Some(Arrived { delivered, certain, earliest_ns, window_end: moment.window_end });
        moment.delivered = delivered;
        self.show(waits, &moment);
    }
}
