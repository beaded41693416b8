//! The waits of a sender as causes: each stretch of its life has one.
//!
//! In this order: the receive window, the repair of losses, and missing data are what a single wait
//! shows. Whether missing data were the application's or had no room in the send buffer, and whether
//! a wait for the window was one, several waits decide together. What limited the window follows
//! from the path ([`super::network`]).

use std::num::NonZeroI64;

use super::cause::{Cause, Sign};
use super::network::{Found, Network};
use super::waits::{Span, Wait, Waits};

/// Waits for data that are judged together, and the longest time that they may take.
const TOGETHER: u32 = 48;
const TOGETHER_NS: i64 = 8_000_000_000;
/// A full send buffer is refilled by acknowledgements: so much more time than with writes of themselves.
const REFILLS_TO_WRITES: i64 = 3;
/// Flight below this part of the largest one since the window was last reduced, or after so long a wait began
/// anew (RFC 5681 section 4.1, with the shortest timer of Linux).
const BELOW_EARLIER: f64 = 0.75;
const RESTART_NS: i64 = 200_000_000;
/// A steady rate without a queue may be that of the receiver, if it holds the sender back for this part (1/n).
const EDGE_PART: i64 = 8;
/// Waits for data below this part of the time are not the application's: timers are coarse, and an
/// acknowledgement may be late. Away from the sender, how late is not known either.
const CHANCE: f64 = 0.15;
const CHANCE_AWAY: f64 = 0.3;

/// A stretch of a flow's life, up to a time.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    pub end_ns: i64,
    pub cause: Cause,
    pub sign: Sign,
    pub second: Option<Cause>,
    /// Largest flight in it, by how much that may be wrong (None if all is), and the receive window then.
    pub flight: u32,
    pub flight_error: Option<u32>,
    pub window: Option<u32>,
    /// Shortest round-trip time around it.
    pub rtt_ns: Option<NonZeroI64>,
}

impl Stretch {
    /// Whether both have the same cause, for the same reason.
    pub fn is_alike(&self, other: &Self) -> bool {
        (self.cause, self.sign, self.second) == (other.cause, other.sign, other.second)
    }

    /// Add the next one.
    pub fn extend(&mut self, next: &Self) {
        self.end_ns = next.end_ns;
        self.flight = self.flight.max(next.flight);
        self.flight_error = self.flight_error.max(next.flight_error);
        self.window = next.window.or(self.window);
    }
}

/// Whether causes of one kind hold a flow back all the time from `begin_ns` to `end_ns`.
pub fn is_held_by(kind: fn(Cause) -> bool, stretches: &[Stretch], (begin_ns, end_ns): (i64, i64)) -> bool {
    let first = stretches.partition_point(|stretch| stretch.end_ns <= begin_ns);
    let last = stretches.partition_point(|stretch| stretch.end_ns < end_ns);
    let during = stretches.get(first..=last.min(stretches.len().saturating_sub(1)));
    during.is_some_and(|during| during.iter().all(|stretch| kind(stretch.cause)))
}

/// The causes of a flow of which nothing can be told but when its first data were sent.
pub fn hidden(waits: &Waits, sign: Sign) -> Vec<Stretch> {
    let unknown = |span: &Span, cause, sign| Stretch {
        end_ns: span.end_ns,
        cause,
        sign,
        second: None,
        flight: span.flight,
        flight_error: None,
        window: span.window,
        rtt_ns: None,
    };
    let mut stretches: Vec<Stretch> = Vec::new();
    for span in &waits.spans {
        match stretches.last_mut().filter(|last| last.cause == Cause::Unknown) {
            Some(last) => last.end_ns = span.end_ns,
            None if span.wait == Wait::Opening => {
                stretches.push(unknown(span, Cause::Handshake, Sign::NoDataYet));
            }
            None => stretches.push(unknown(span, Cause::Unknown, sign)),
        }
    }
    stretches
}

/// The causes of a flow, in order; they cover its life.
pub fn ledger(waits: &Waits) -> Vec<Stretch> {
    let (mut first, mut start_ns) = (0, waits.start_ns.unwrap_or(0));
    let mut ledger = Ledger {
        stretches: Vec::new(),
        network: Network::of(&waits.path),
        chance: if waits.is_estimated { CHANCE_AWAY } else { CHANCE },
        // Linux keeps few data of a connection in that queue (TCP small queues): more leave when it has sent some.
        has_refills: !waits.is_behind_queue
            && waits.releases_refills()
            && Sums::of(&waits.spans, start_ns).are_refills(),
        may_be_paced_writes: waits.may_be_paced_writes(),
        most_flight: 0,
    };
    while first < waits.spans.len() {
        let group = together(&waits.spans[first..], start_ns);
        ledger.judge(group, start_ns);
        first += group.len();
        start_ns = group.last().map_or(start_ns, |span| span.end_ns);
    }
    ledger.stretches
}

/// The next waits that are judged together.
fn together(spans: &[Span], start_ns: i64) -> &[Span] {
    let mut missing = 0;
    let mut before_ns = start_ns;
    for (index, span) in spans.iter().enumerate() {
        let is_long = span.end_ns.saturating_sub(start_ns) > TOGETHER_NS;
        missing += if span.wait.is_for_data() { span.count } else { 0 };
        // A long wait is judged alone.
        if is_long && index > 0 && span.end_ns.saturating_sub(before_ns) > TOGETHER_NS / 2 {
            return &spans[..index];
        }
        if is_long || missing >= TOGETHER {
            return &spans[..=index];
        }
        before_ns = span.end_ns;
    }
    spans
}

/// What several waits show together, in nanoseconds.
#[derive(Default)]
struct Sums {
    /// Without data but with data in flight, until data came of themselves, and until they came with
    /// an acknowledgement that let others pass.
    writes: i64,
    refills: i64,
    /// Both, and by chance.
    missing: i64,
    window: i64,
    /// The part of it at the edge of the receive window.
    receiver: i64,
    idle: i64,
    /// When they began, and the largest flight in them.
    start_ns: i64,
    most_flight: u32,
}

impl Sums {
    fn of(group: &[Span], start_ns: i64) -> Self {
        let add = |sum: &mut i64, ns| *sum = sum.saturating_add(ns);
        let most_flight = group.iter().map(|span| span.flight).max().unwrap_or(0);
        let mut sums = Self { start_ns, most_flight, ..Self::default() };
        let mut before_ns = start_ns;
        for span in group {
            let ns = span.end_ns.saturating_sub(before_ns);
            before_ns = span.end_ns;
            match span.wait {
                Wait::Data => add(&mut sums.writes, ns),
                Wait::Refill | Wait::RefillOfMore => add(&mut sums.refills, ns),
                Wait::Window | Wait::Receiver => add(&mut sums.window, ns),
                Wait::Idle | Wait::Answer => add(&mut sums.idle, ns),
                _ => {}
            }
            if span.wait == Wait::Receiver {
                add(&mut sums.receiver, ns);
            }
            if span.wait.is_for_data() {
                add(&mut sums.missing, ns);
            }
        }
        sums
    }

    fn are_refills(&self) -> bool {
        self.refills > 0 && self.refills / REFILLS_TO_WRITES >= self.writes
    }

    /// Whether missing data are too rare to mean something.
    fn is_chance(&self, chance: f64) -> bool {
        self.idle == 0 && (self.missing as f64) < chance * (self.missing as f64 + self.window as f64)
    }
}

struct Ledger<'a> {
    stretches: Vec<Stretch>,
    network: Network<'a>,
    /// Part of the time below which waits for data mean nothing.
    chance: f64,
    /// Whether refills prevail in the whole flow: the ticks of an application may agree with
    /// acknowledgements for a while.
    has_refills: bool,
    /// Whether a steady rate may be that of an application.
    may_be_paced_writes: bool,
    /// Largest flight that the window has let pass.
    most_flight: u32,
}

impl Ledger<'_> {
    fn judge(&mut self, group: &[Span], start_ns: i64) {
        let sums = Sums::of(group, start_ns);
        let mut since_ns = start_ns;
        for span in group {
            let found = self.shown_alone(span).or_else(|| self.shown_together(span, &sums));
            match found {
                Some(found) => self.add(span, span.end_ns, found),
                // It may have been the receive window.
                None if span.window.is_none() => {
                    self.add(span, span.end_ns, (Cause::Unknown, Sign::UnknownWindow, None));
                }
                None => self.limit_of_window(span, since_ns, &sums),
            }
            self.note_flight(span, since_ns);
            since_ns = span.end_ns;
        }
    }

    fn note_flight(&mut self, span: &Span, since_ns: i64) {
        let is_idle = matches!(span.wait, Wait::Idle | Wait::Answer);
        self.most_flight = if is_idle && span.end_ns.saturating_sub(since_ns) > RESTART_NS {
            0
        } else if self.network.is_quiet(since_ns, span.end_ns) {
            self.most_flight.max(span.flight)
        } else {
            span.flight
        };
    }

    /// What a single wait shows.
    fn shown_alone(&self, span: &Span) -> Option<Found> {
        let losses = || self.network.cut_before(span.end_ns);
        Some(match span.wait {
            Wait::Opening => (Cause::Handshake, Sign::NoDataYet, None),
            Wait::Answer => (Cause::Server, Sign::Request, Some(Cause::Application)),
            Wait::Idle => (Cause::Application, Sign::NothingInFlight, None),
            Wait::Receiver => (Cause::Receiver, Sign::WindowEdge, None),
            Wait::ClosedWindow => (Cause::Receiver, Sign::ClosedWindow, None),
            Wait::Recovery => (Cause::Recovery, Sign::Retransmission, losses()),
            Wait::Timeout => (Cause::Timeout, Sign::RetransmissionTimer, losses()),
            Wait::Outage => (Cause::Outage, Sign::NoAnswer, Some(Cause::Timeout)),
            Wait::Data | Wait::DataWithAck | Wait::Refill | Wait::RefillOfMore | Wait::Window => return None,
        })
    }

    /// What a wait for data or for the window shows among its neighbours; None if that is the window.
    fn shown_together(&self, span: &Span, sums: &Sums) -> Option<Found> {
        let is_below = |most: u32| f64::from(span.flight) < BELOW_EARLIER * f64::from(most);
        let is_quiet = self.network.is_quiet(sums.start_ns, span.end_ns);
        let send_buffer = (Cause::SendBuffer, Sign::Refills, Some(Cause::Application));
        let is_send_buffer = self.has_refills && sums.idle == 0 && sums.are_refills();
        let is_missing = sums.missing.saturating_add(sums.idle) > sums.window;
        match span.wait {
            Wait::Window if is_send_buffer && is_missing && !is_below(sums.most_flight) => Some(send_buffer),
            Wait::Window if is_missing && is_quiet && is_below(self.most_flight) => {
                Some((Cause::Application, Sign::FlightBelowEarlier, None))
            }
            Wait::Window => None,
            _ if sums.is_chance(self.chance) => None,
            _ if is_send_buffer => Some(send_buffer),
            // There were more data, so the window had shrunk: CDG and others back off without a loss.
            Wait::RefillOfMore => None,
            Wait::Data => Some((Cause::Application, Sign::Write, None)),
            _ => Some((Cause::Application, Sign::UnusedRoom, Some(Cause::SendBuffer))),
        }
    }

    /// Divide a wait for the window where what limits it changes.
    fn limit_of_window(&mut self, span: &Span, since_ns: i64, sums: &Sums) {
        let mut at_ns = since_ns;
        while at_ns < span.end_ns {
            let (until_ns, mut found) = self.network.limit_at(at_ns);
            if found.1 == Sign::SteadyRate && sums.receiver > sums.window / EDGE_PART {
                found = (Cause::Unknown, Sign::WindowEdge, Some(Cause::Receiver));
            } else if found.1 == Sign::SteadyRate && self.may_be_paced_writes {
                found = (Cause::Unknown, Sign::SteadyRate, Some(Cause::Bottleneck));
            }
            at_ns = until_ns.min(span.end_ns).max(at_ns.saturating_add(1));
            self.add(span, at_ns, found);
        }
    }

    fn add(&mut self, span: &Span, end_ns: i64, (cause, sign, second): Found) {
        let Span { flight, window, .. } = *span;
        let flight_error = Some(span.flight_error);
        let mut stretch = Stretch { end_ns, cause, sign, second, flight, flight_error, window, rtt_ns: None };
        if let Some(last) = self.stretches.last_mut().filter(|last| last.is_alike(&stretch)) {
            return last.extend(&stretch);
        }
        stretch.rtt_ns = self.network.rtt_at(end_ns).and_then(NonZeroI64::new);
        self.stretches.push(stretch);
    }
}
