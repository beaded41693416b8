//! One direction in rounds of one round-trip time: how the flight grew.
//!
//! A round lasts from an acknowledgement to that of the highest number sent then, as a sender
//! counts round trips (RFC 9438 section 4.2, Linux's `delivered` rounds). The largest flight of a
//! round is a lower bound of the congestion window; where it does not fill the receive window and more
//! data was waiting, it is the window itself, to a segment. Why a sender was no faster is not a matter of
//! single rounds: [`super::causes`].

pub(crate) mod flight;

use std::num::NonZeroI64;

use serde::{Deserialize, Serialize};

use super::ecn::RoundMarks;

/// Growth of the flight from one round to the next in slow start: RFC 5681 doubles it, or with
/// delayed acknowledgements grows it by half.
const SLOW_START_GROWTH: (u64, u64) = (3, 2);

/// A flight within this fraction (1/n) of the receive window fills it.
const WINDOW_TOLERANCE: u32 = 10;

/// Shortest full-sized segment: the default without an MSS option (RFC 9293 section 3.7.1).
const SHORTEST_FULL_SIZE: u32 = 536;

named_enum! {
    /// Cause of a retransmission.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RepairCause {
        /// Acknowledgements that reported a loss (RFC 6582, RFC 6675).
        Recovery = "recovery",
        /// A retransmission timer (RFC 6298).
        Timeout = "timeout",
    }
}

/// The end of a round, as its last acknowledgement shows it.
#[derive(Clone, Copy, Debug)]
pub struct RoundEnd {
    pub time_ns: i64,
    /// The receive window that the sender had until then; None if its scale is unknown.
    pub window: Option<u32>,
    /// Payload of a full-sized segment (RFC 1122's Eff.snd.MSS).
    pub full_size: u32,
    /// Bytes in flight when it arrived; None in a recovery without SACK.
    pub in_flight: Option<u32>,
    /// RTT of the acknowledgement, if any.
    pub rtt_ns: Option<u64>,
    /// Marks since the last round.
    pub marks: RoundMarks,
}

/// Data sent in a round.
#[derive(Clone, Copy, Debug)]
pub struct SentInRound {
    pub flight: u32,
    pub last_payload: u32,
}

impl SentInRound {
    /// Whether the receiver had no space for another segment, or nearly none.
    fn fills_window(&self, close: &RoundEnd) -> bool {
        let Some(window) = close.window else { return false };
        let margin = close.full_size.max(window / WINDOW_TOLERANCE);
        self.flight.saturating_add(margin) > window
    }

    /// Whether the newest segment is full-sized or, before segmentation offload, several.
    fn is_whole(&self, close: &RoundEnd) -> bool {
        self.last_payload.checked_rem(close.full_size) == Some(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    pub start_ns: i64,
    pub duration_ns: i64,
    pub flight: u32,
    /// The receive window at its end; None if the scale is unknown.
    pub window: Option<u32>,
    /// Bytes acknowledged in it.
    pub delivered: u32,
    /// RTT of its last acknowledgement.
    pub rtt_ns: Option<u64>,
    /// Whether the receive window had no room for another full segment, or nearly none.
    pub fills_window: bool,
    /// Whether the newest segment was not full, so that no data was waiting after it.
    pub is_data_limited: bool,
    /// Why data was retransmitted, if not all that was outstanding then had been acknowledged.
    pub repair: Option<RepairCause>,
    /// The flight at its end, if that is the end of a recovery; None without SACK.
    pub last_flight: Option<u32>,
    pub marks: RoundMarks,
}

impl Round {
    /// The congestion window, if it was the limit. A recovery reduces it from its first
    /// acknowledgement to the last (RFC 6937): only the window at its end is known, if SACK shows
    /// what is missing. After a timeout, lost data and data in flight cannot be separated.
    pub fn cwnd(&self) -> Option<u32> {
        match self.repair {
            _ if self.fills_window || self.is_data_limited => None,
            Some(RepairCause::Timeout) => None,
            Some(RepairCause::Recovery) => self.last_flight,
            None => Some(self.flight),
        }
    }

    /// The congestion window at least. Lost data are in the flight until they are acknowledged, so that it may be
    /// above a window that a recovery made smaller.
    pub fn least_cwnd(&self) -> Option<u32> {
        self.repair.map_or(Some(self.flight), |_| self.cwnd())
    }
}

/// A period of retransmissions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RepairEpisode {
    repair: RepairCause,
    /// Acknowledging this ends it (RFC 6582's `recover`).
    until: i64,
    since_ns: i64,
}

/// Repairs in one direction: most flows end before they need it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Repairs {
    episode: Option<RepairEpisode>,
    /// Number of episodes started by acknowledgements, and total time of those that ended.
    recoveries: (u32, i64),
    /// The same for those that a timeout started or took over.
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

/// Past rounds of one direction, in 80 bytes: there are many flows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rounds {
    /// Start of the round or of the silence.
    since_ns: i64,
    first_data_ns: i64,
    /// Time in rounds, without silence between them.
    pub busy_ns: i64,
    /// Longest time without outstanding data between data.
    pub longest_idle_ns: i64,
    /// When the flight first stopped growing as in slow start, and the flight until then.
    slow_start_exit_ns: Option<NonZeroI64>,
    slow_start_exit_flight: u32,
    repairs: Option<Box<Repairs>>,
    /// Acknowledged position at the start of the round: the lower half, as rounds are shorter than
    /// that.
    since_position: u32,
    /// Flight of the last round that shows the window; 0 if none since the last episode.
    last_flight: u32,
    pub count: u32,
    pub max_flight: u32,
    /// Largest flight while nothing was repaired.
    pub max_unrepaired: u32,
    /// Data segments without RTT sample; a saturated count is a lower bound.
    pub unwatched: u32,
    /// Payload of the newest data at the end of the last round, saturated.
    last_payload: u16,
}

impl Rounds {
    /// Start with the first data.
    pub fn new(time_ns: i64) -> Self {
        Self {
            since_ns: time_ns,
            first_data_ns: time_ns,
            busy_ns: 0,
            longest_idle_ns: 0,
            slow_start_exit_ns: None,
            slow_start_exit_flight: 0,
            repairs: None,
            since_position: 0,
            last_flight: 0,
            count: 0,
            max_flight: 0,
            max_unrepaired: 0,
            unwatched: 0,
            last_payload: 0,
        }
    }

    /// When the flight first stopped growing as in slow start, in ns since the first data, and the
    /// flight until then.
    pub fn slow_start_exit(&self) -> Option<(i64, u32)> {
        let since_ns = elapsed_ns(self.first_data_ns, self.slow_start_exit_ns?.get());
        Some((since_ns, self.slow_start_exit_flight))
    }

    /// Number of episodes started by acknowledgements, and total time of those that ended, in ns.
    pub fn recoveries(&self) -> (u32, i64) {
        self.repairs.as_ref().map_or((0, 0), |repairs| repairs.recoveries)
    }

    /// The same for those that a timeout started or took over.
    pub fn timeouts(&self) -> (u32, i64) {
        self.repairs.as_ref().map_or((0, 0), |repairs| repairs.timeouts)
    }

    fn episode(&self) -> Option<RepairEpisode> {
        self.repairs.as_ref()?.episode
    }

    /// Start of the round or of the silence.
    pub fn since_ns(&self) -> i64 {
        self.since_ns
    }

    /// Where the current episode ends.
    pub fn end_of_repair(&self) -> Option<i64> {
        self.episode().map(|episode| episode.until)
    }

    /// Begin a round with data from `position` on after silence.
    pub fn begin(&mut self, position: i64, time_ns: i64) {
        let idle_ns = elapsed_ns(self.since_ns, time_ns);
        self.longest_idle_ns = self.longest_idle_ns.max(idle_ns);
        self.since_ns = time_ns;
        self.since_position = position as u32;
    }

    /// End a round; silence follows if nothing is outstanding.
    pub fn end(&mut self, acknowledged: i64, is_empty: bool, sent: SentInRound, close: &RoundEnd) -> Round {
        let repair = self.episode().map(|episode| episode.repair);
        let fills_window = sent.fills_window(close);
        let is_whole = sent.is_whole(close) || (!is_empty && self.is_usual(sent.last_payload));
        self.last_payload = to_u16_saturated(sent.last_payload);
        let is_repaired = self.end_of_repair().is_some_and(|until| acknowledged >= until);
        let round = Round {
            start_ns: self.since_ns,
            duration_ns: elapsed_ns(self.since_ns, close.time_ns),
            flight: sent.flight,
            window: close.window,
            delivered: (acknowledged as u32).wrapping_sub(self.since_position),
            rtt_ns: close.rtt_ns,
            fills_window,
            // A partial segment leaves only if no data wait after it.
            is_data_limited: !fills_window && !is_whole && repair.is_none(),
            repair,
            last_flight: close.in_flight.filter(|_| is_repaired),
            marks: close.marks,
        };
        self.count = self.count.saturating_add(1);
        self.max_flight = self.max_flight.max(round.flight);
        if repair.is_none() {
            self.max_unrepaired = self.max_unrepaired.max(round.flight);
            if let Some(cwnd) = round.cwnd() {
                self.grow(cwnd);
            }
        }
        self.busy_ns = self.busy_ns.saturating_add(round.duration_ns);
        if is_repaired {
            self.end_episode(close.time_ns);
        }
        self.since_ns = close.time_ns;
        self.since_position = acknowledged as u32;
        round
    }

    /// Whether segments of this size repeat: a path may allow only shorter ones than the MSS, and
    /// simulators announce none.
    fn is_usual(&self, payload: u32) -> bool {
        payload >= SHORTEST_FULL_SIZE && to_u16_saturated(payload) == self.last_payload
    }

    /// Take the flight of a round that shows the window.
    fn grow(&mut self, flight: u32) {
        let (times, of) = SLOW_START_GROWTH;
        if self.last_flight > 0 && u64::from(flight) * of < u64::from(self.last_flight) * times {
            self.leave_slow_start(self.last_flight, self.since_ns);
        }
        self.last_flight = flight;
    }

    /// Record that the flight stopped growing as in slow start, at `time_ns`.
    fn leave_slow_start(&mut self, flight: u32, time_ns: i64) {
        if self.slow_start_exit_ns.is_none() {
            // Simulations start at 0, but slow start does not end then.
            self.slow_start_exit_ns = NonZeroI64::new(time_ns);
            self.slow_start_exit_flight = flight;
        }
    }

    /// Record a retransmission while `next` is the highest number sent.
    pub fn on_repair(&mut self, repair: RepairCause, flight: u32, next: i64, time_ns: i64) {
        let before = self.episode().map(|episode| episode.repair);
        if before == Some(RepairCause::Timeout) || before == Some(repair) {
            return;
        }
        if before.is_some() {
            // A timeout in a recovery that stalled.
            self.end_episode(time_ns);
        }
        if before.is_none() {
            self.max_unrepaired = self.max_unrepaired.max(flight);
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
        // Half the flight after a recovery, one segment after a timeout: growth restarts.
        self.last_flight = 0;
    }
}

/// A payload in 16 bits, as in IP without jumbograms.
fn to_u16_saturated(payload: u32) -> u16 {
    u16::try_from(payload).unwrap_or(u16::MAX)
}

/// Elapsed nanoseconds; 0 if the capture's clock went backwards.
fn elapsed_ns(since: i64, until: i64) -> i64 {
    until.saturating_sub(since).max(0)
}
