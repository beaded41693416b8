//! One direction in rounds of one round-trip time: how the flight grew, and what limited it.
//!
//! A round lasts from an acknowledgement to that of the highest number sent then, which is how a
//! sender counts round trips too (RFC 9438 section 4.2, Linux's `delivered` rounds). The largest
//! flight of a round is a lower bound of the congestion window; where neither the application nor
//! the receiver held the sender back it is the window itself, to a segment.
//!
//! The times of the three limits are those of RFC 4898 (`tcpEStatsPerfSndLimTimeRwin`, `...Cwnd`,
//! `...Snd`), with its `Snd` called application: a capture does not see a full send buffer.

pub(crate) mod flight;

use std::num::NonZeroI64;

/// Growth of the flight from one round to the next that is slow start: RFC 5681 doubles it, or with
/// delayed acknowledgements makes it half as large again.
const SLOW_START_GROWTH: (u64, u64) = (3, 2);

/// A flight within this share of the receive window fills it.
const WINDOW_TOLERANCE: u32 = 10;

/// Shortest full-sized segment: what a sender must assume without an MSS option (RFC 9293 section
/// 3.7.1).
const SHORTEST_FULL_SIZE: u32 = 536;

/// How the sender's window was moving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Growing by half or more in a round.
    SlowStart,
    /// Growing less, or not at all.
    CongestionAvoidance,
    /// Something lost is sent again, until all that was outstanding then is acknowledged (RFC 6582,
    /// RFC 6675).
    Recovery,
    /// The same after a retransmission timeout (RFC 6298).
    Timeout,
}

impl Phase {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
        }
    }
}

/// Why the sender did not send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It had nothing more.
    Application,
    /// The receive window was full.
    Receiver,
    /// Neither: its congestion window.
    Network,
}

impl Limit {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Receiver => "receiver",
            Self::Network => "network",
        }
    }
}

/// What made the sender send something again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairCause {
    /// Acknowledgements that told of a loss.
    Recovery,
    /// Their absence.
    Timeout,
}

/// The end of a round, as the acknowledgement that ends it shows it.
#[derive(Clone, Copy, Debug)]
pub struct RoundEnd {
    /// When it was seen.
    pub time_ns: i64,
    /// The receive window that the sender had until then; None if its scale is not known.
    pub window: Option<u32>,
    /// The one that it announces; None as above.
    pub next_window: Option<u32>,
    /// Payload of a full-sized segment (RFC 1122's Eff.snd.MSS).
    pub full_size: u32,
    /// What was on its way when it came; None without SACK, where a recovery does not show it.
    pub in_flight: Option<u32>,
    /// The RTT that the acknowledgement tells, if any.
    pub rtt_ns: Option<u64>,
}

/// What was sent in a round.
#[derive(Clone, Copy, Debug)]
pub struct SentInRound {
    /// Largest flight.
    pub flight: u32,
    /// Payload of the newest data.
    pub last_payload: u32,
}

impl SentInRound {
    /// The receiver had no room for another segment, or nearly.
    fn fills_window(&self, close: &RoundEnd) -> bool {
        let Some(window) = close.window else { return false };
        let margin = close.full_size.max(window / WINDOW_TOLERANCE);
        self.flight.saturating_add(margin) > window
    }

    /// The newest segment is a whole one, or before segmentation offload several.
    fn is_whole(&self, close: &RoundEnd) -> bool {
        self.last_payload.checked_rem(close.full_size) == Some(0)
    }
}

/// One round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// When it began.
    pub start_ns: i64,
    /// How long it lasted.
    pub duration_ns: i64,
    /// Its largest flight.
    pub flight: u32,
    /// The receive window at its end; None if the scale is not known.
    pub window: Option<u32>,
    /// Bytes acknowledged in it.
    pub delivered: u32,
    /// The RTT that its last acknowledgement tells.
    pub rtt_ns: Option<u64>,
    /// Why the flight was not larger.
    pub limit: Limit,
    /// What the window was doing; None where something else limited the flight.
    pub phase: Option<Phase>,
    /// The flight at its end, if that is the end of a recovery; None without SACK.
    pub last_flight: Option<u32>,
}

impl Round {
    /// The congestion window, if that was the limit. A recovery makes it smaller from its first
    /// acknowledgement to the last (RFC 6937): known is the window at its end, if SACK tells what is
    /// missing. After a timeout what was lost and what is on its way cannot be told apart.
    pub fn cwnd(&self) -> Option<u32> {
        match (self.limit, self.phase) {
            (Limit::Application | Limit::Receiver, _) | (_, Some(Phase::Timeout)) => None,
            (Limit::Network, Some(Phase::Recovery)) => self.last_flight,
            (Limit::Network, _) => Some(self.flight),
        }
    }
}

/// Where the time of a flow went: between the first data and the last acknowledgement of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// By what limited the flow, silence included.
    ns: [i64; 3],
    /// Nothing outstanding.
    silent_ns: i64,
}

impl Times {
    fn whole_ns(&self) -> i64 {
        self.ns.iter().fold(0, |sum, &part| sum.saturating_add(part))
    }

    /// With data outstanding.
    pub fn rounds_ns(&self) -> i64 {
        self.whole_ns().saturating_sub(self.silent_ns)
    }

    /// Share of the whole that `limit` has; None before the first round is over.
    pub fn share(&self, limit: Limit) -> Option<f64> {
        let whole_ns = self.whole_ns();
        (whole_ns > 0).then(|| self.ns[limit as usize] as f64 / whole_ns as f64)
    }

    fn add(&mut self, limit: Limit, ns: i64) {
        let part = &mut self.ns[limit as usize];
        *part = part.saturating_add(ns);
    }
}

/// A stretch in which something is sent again.
#[derive(Clone, Copy, Debug)]
struct RepairEpisode {
    repair: RepairCause,
    /// Acknowledging this ends it (RFC 6582's `recover`).
    until: i64,
    since_ns: i64,
}

/// What was repaired in one direction: most flows are over before they need it.
#[derive(Debug, Default)]
struct Repairs {
    /// The one that is going on.
    episode: Option<RepairEpisode>,
    /// Number of episodes that acknowledgements began, and the time in those that are over.
    recoveries: (u32, i64),
    /// The same of those that a timeout began, or came to.
    timeouts: (u32, i64),
}

impl Repairs {
    fn tally(&mut self, repair: RepairCause) -> &mut (u32, i64) {
        match repair {
            RepairCause::Recovery => &mut self.recoveries,
            RepairCause::Timeout => &mut self.timeouts,
        }
    }
}

/// The rounds of one direction so far, in 104 bytes: there are many flows.
#[derive(Debug)]
pub struct Rounds {
    /// When the round began, or the silence.
    since_ns: i64,
    first_data_ns: i64,
    /// Where the time went.
    pub times: Times,
    /// Longest time without outstanding data between data.
    pub longest_idle_ns: i64,
    /// When the flight first stopped growing as in slow start, and the flight until then.
    slow_start_exit_ns: Option<NonZeroI64>,
    slow_start_exit_flight: u32,
    repairs: Option<Box<Repairs>>,
    /// What was acknowledged when the round began: its lower half, as rounds are shorter than that.
    since_position: u32,
    /// Flight and phase of the last round that only the network limited; none since the last episode
    /// if 0.
    last_flight: u32,
    /// Rounds that are over.
    pub count: u32,
    /// Largest flight of them.
    pub max_flight: u32,
    /// Largest flight of those that only the network limited; 0 if there was none.
    max_cwnd: u32,
    /// Data segments whose RTT is not looked for; at its maximum there may be more.
    pub unwatched: u32,
    /// Payload of the newest data when the last round ended, or the largest number.
    last_payload: u16,
    last_phase: Phase,
    /// Whether the receive window was closed when the silence began.
    is_closed: bool,
}

impl Rounds {
    /// The first data are sent.
    pub fn new(time_ns: i64) -> Self {
        Self {
            since_ns: time_ns,
            first_data_ns: time_ns,
            times: Times::default(),
            longest_idle_ns: 0,
            slow_start_exit_ns: None,
            slow_start_exit_flight: 0,
            repairs: None,
            since_position: 0,
            last_flight: 0,
            count: 0,
            max_flight: 0,
            max_cwnd: 0,
            unwatched: 0,
            last_payload: 0,
            last_phase: Phase::SlowStart,
            is_closed: false,
        }
    }

    /// Largest flight of the rounds that only the network limited.
    pub fn max_cwnd(&self) -> Option<u32> {
        (self.max_cwnd > 0).then_some(self.max_cwnd)
    }

    /// When the flight first stopped growing as in slow start, in ns since the first data, and the
    /// flight until then.
    pub fn slow_start_exit(&self) -> Option<(i64, u32)> {
        let since_ns = elapsed_ns(self.first_data_ns, self.slow_start_exit_ns?.get());
        Some((since_ns, self.slow_start_exit_flight))
    }

    /// Number of episodes that acknowledgements began, and the time in those that are over, in ns.
    pub fn recoveries(&self) -> (u32, i64) {
        self.repairs.as_ref().map_or((0, 0), |repairs| repairs.recoveries)
    }

    /// The same of those that a timeout began, or came to.
    pub fn timeouts(&self) -> (u32, i64) {
        self.repairs.as_ref().map_or((0, 0), |repairs| repairs.timeouts)
    }

    fn episode(&self) -> Option<RepairEpisode> {
        self.repairs.as_ref()?.episode
    }

    /// When the round or the silence began.
    pub fn since_ns(&self) -> i64 {
        self.since_ns
    }

    /// Where the episode ends that is going on.
    pub fn end_of_repair(&self) -> Option<i64> {
        self.episode().map(|episode| episode.until)
    }

    /// Data from `position` on after silence.
    pub fn begin(&mut self, position: i64, time_ns: i64) {
        let idle_ns = elapsed_ns(self.since_ns, time_ns);
        self.times.add(if self.is_closed { Limit::Receiver } else { Limit::Application }, idle_ns);
        self.times.silent_ns = self.times.silent_ns.saturating_add(idle_ns);
        self.longest_idle_ns = self.longest_idle_ns.max(idle_ns);
        self.since_ns = time_ns;
        self.since_position = position as u32;
    }

    /// A round is over; silence follows if nothing is outstanding.
    pub fn end(&mut self, acknowledged: i64, is_empty: bool, sent: SentInRound, close: &RoundEnd) -> Round {
        let limit = self.limit(is_empty, sent, close);
        self.last_payload = in_short(sent.last_payload);
        let phase = self.phase(limit, sent.flight);
        let is_repaired = self.end_of_repair().is_some_and(|until| acknowledged >= until);
        let round = Round {
            start_ns: self.since_ns,
            duration_ns: elapsed_ns(self.since_ns, close.time_ns),
            flight: sent.flight,
            window: close.window,
            delivered: (acknowledged as u32).wrapping_sub(self.since_position),
            rtt_ns: close.rtt_ns,
            limit,
            phase,
            last_flight: close.in_flight.filter(|_| is_repaired),
        };
        self.count = self.count.saturating_add(1);
        self.max_flight = self.max_flight.max(round.flight);
        if phase != Some(Phase::Recovery) {
            self.max_cwnd = self.max_cwnd.max(round.cwnd().unwrap_or(0));
        }
        self.times.add(limit, round.duration_ns);
        if is_repaired {
            self.end_episode(close.time_ns);
        }
        self.is_closed = is_empty && close.next_window.is_some_and(|window| window < close.full_size);
        self.since_ns = close.time_ns;
        self.since_position = acknowledged as u32;
        round
    }

    fn limit(&self, is_empty: bool, sent: SentInRound, close: &RoundEnd) -> Limit {
        let is_whole = sent.is_whole(close) || (!is_empty && self.is_usual(sent.last_payload));
        if sent.fills_window(close) {
            Limit::Receiver
        } else if is_whole || self.episode().is_some() {
            Limit::Network
        } else {
            // A partial segment leaves only if nothing waits behind it.
            Limit::Application
        }
    }

    /// Whether segments are of this size again and again: a path may take only shorter ones than the
    /// MSS allows, and simulators announce none.
    fn is_usual(&self, payload: u32) -> bool {
        payload >= SHORTEST_FULL_SIZE && in_short(payload) == self.last_payload
    }

    /// The phase of a round. What something else limited does not tell how the window grew.
    fn phase(&mut self, limit: Limit, flight: u32) -> Option<Phase> {
        match self.episode().map(|episode| episode.repair) {
            Some(RepairCause::Recovery) => Some(Phase::Recovery),
            Some(RepairCause::Timeout) => Some(Phase::Timeout),
            None => (limit == Limit::Network).then(|| self.grow(flight)),
        }
    }

    /// The phase of a round that only the network limited.
    fn grow(&mut self, flight: u32) -> Phase {
        let (times, of) = SLOW_START_GROWTH;
        let grew = u64::from(flight) * of >= u64::from(self.last_flight) * times;
        if self.last_flight > 0 {
            self.last_phase = if grew { Phase::SlowStart } else { Phase::CongestionAvoidance };
        }
        if self.last_phase == Phase::CongestionAvoidance {
            self.leave_slow_start(self.last_flight, self.since_ns);
        }
        self.last_flight = flight;
        self.last_phase
    }

    /// The flight does not grow as in slow start any more, as seen at `time_ns`.
    fn leave_slow_start(&mut self, flight: u32, time_ns: i64) {
        if self.slow_start_exit_ns.is_none() {
            // Simulations begin at 0, but not with the end of slow start.
            self.slow_start_exit_ns = NonZeroI64::new(time_ns);
            self.slow_start_exit_flight = flight;
        }
    }

    /// Something is sent again while `next` is the highest number sent.
    pub fn on_repair(&mut self, repair: RepairCause, flight: u32, next: i64, time_ns: i64) {
        let before = self.episode().map(|episode| episode.repair);
        if before == Some(RepairCause::Timeout) || before == Some(repair) {
            return;
        }
        if before.is_some() {
            // The timeout came to a recovery that got stuck.
            self.end_episode(time_ns);
        }
        self.leave_slow_start(flight, time_ns);
        let repairs = self.repairs.get_or_insert_default();
        repairs.episode = Some(RepairEpisode { repair, until: next, since_ns: time_ns });
        let episodes = &mut repairs.tally(repair).0;
        *episodes = episodes.saturating_add(1);
    }

    fn end_episode(&mut self, time_ns: i64) {
        let Some(repairs) = &mut self.repairs else { return };
        let Some(RepairEpisode { repair, since_ns, .. }) = repairs.episode.take() else { return };
        let lasted_ns = &mut repairs.tally(repair).1;
        *lasted_ns = lasted_ns.saturating_add(elapsed_ns(since_ns, time_ns));
        // Half the flight after a recovery, one segment after a timeout: growth is counted anew.
        self.last_flight = 0;
        self.last_phase = match repair {
            RepairCause::Recovery => Phase::CongestionAvoidance,
            RepairCause::Timeout => Phase::SlowStart,
        };
    }
}

/// A payload in as many bits as IP has for it, jumbograms aside.
fn in_short(payload: u32) -> u16 {
    u16::try_from(payload).unwrap_or(u16::MAX)
}

/// Nanoseconds that went by; 0 if the capture's clock went backwards.
fn elapsed_ns(since: i64, until: i64) -> i64 {
    until.saturating_sub(since).max(0)
}
