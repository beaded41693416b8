//! Delays of test packets of OWAMP, TWAMP and STAMP from their sender to the capture, by the times that they carry.
//!
//! A delay is known if the sender says that its clock is synchronised, within an error (RFC 4656 section 4.1.2). By any
//! clock its variation is known: how far it is above the least one (RFC 5481 section 4.2), without the drift of the clock,
//! which is the slope of the hull below all delays (`pair/convex_hull.rs`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::echo_requests::Exchange;
use crate::flow::intervals::Duration;
use crate::flow::numbered_datagrams::NumberedDatagram;
use crate::flow::sequences::NumberArrival;
use crate::groups::{GroupDirection, Groups};
use crate::packet::event::{Endpoints, Network};
use crate::pair::clock::LARGEST_DRIFT;
use crate::pair::convex_hull::{LowerHull, Point};
use crate::wire::probe::{ProbeEcho, SenderClock};

/// The most delays of a sender, and of all, that wait for those after them to show the least one.
const MOST_OF_ONE: usize = 4096;
const MOST_WAITING: usize = 1 << 20;
/// The most senders, and points of a hull; a hull with more begins anew.
const MOST_SENDERS: usize = 1 << 14;
const MOST_POINTS: usize = 1024;
/// A delay that differs more from the one before is that of a clock that was set; queues of seconds exist.
const LARGEST_CHANGE_NS: u64 = 2_000_000_000;
/// A longer one is that of clocks that differ.
const LARGEST_DELAY_NS: u64 = 60_000_000_000;

/// Who sends test packets to whom, and their codepoint.
type SenderKey = (Exchange, Option<u8>);

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OnewayDelays {
    senders: BTreeMap<SenderKey, Sender>,
    waiting: usize,
}

impl OnewayDelays {
    /// Process a numbered datagram if it is a test packet with a time.
    pub fn on_numbered(
        &mut self,
        numbered: &NumberedDatagram,
        network: &Network,
        source: u32,
        groups: &mut Groups,
    ) {
        let &NumberedDatagram { time_ns, sent_ns, clock, arrival, echo: Some(echo), .. } = numbered else {
            return;
        };
        if clock == SenderClock::Unstated || arrival != NumberArrival::New {
            return;
        }
        let &Network { endpoints, dscp, .. } = network;
        let Endpoints { protocol, src, dst, src_port, dst_port, .. } = endpoints;
        let key = ((protocol, (src, src_port), (dst, dst_port)), dscp);
        if self.senders.len() >= MOST_SENDERS && !self.senders.contains_key(&key) {
            return;
        }
        let sender = self.senders.entry(key).or_insert_with(|| Sender::new(endpoints, dscp, source, echo));
        let delay_ns = time_ns.saturating_sub(sent_ns);
        let is_set =
            sender.delays.last().is_some_and(|last| last.value_ns.abs_diff(delay_ns) > LARGEST_CHANGE_NS);
        if is_set || sender.delays.len() >= MOST_OF_ONE {
            self.waiting -= sender.settle(groups);
        }
        if is_set {
            sender.lowest = LowerHull::default();
        }
        sender.note_clock(clock);
        sender.delays.push(Point { time_ns, value_ns: delay_ns });
        self.waiting += 1;
        if self.waiting >= MOST_WAITING {
            self.settle_all(groups);
        }
    }

    /// Count all that waits.
    pub fn settle_all(&mut self, groups: &mut Groups) {
        for sender in self.senders.values_mut() {
            sender.settle(groups);
        }
        self.waiting = 0;
    }
}

/// The test packets of a sender.
#[derive(Debug, Serialize, Deserialize)]
struct Sender {
    endpoints: Endpoints,
    dscp: Option<u8>,
    source: u32,
    is_reply: bool,
    /// Delays that were not counted yet, by the time of capture.
    delays: Vec<Point>,
    /// Hull below all delays that were counted.
    lowest: LowerHull,
    /// The largest error that is stated with the delays that wait; None if one of them has no synchronised clock.
    error_ns: Option<u64>,
    /// Whether delays were less than 0 by more than the error: the clocks do not agree.
    is_wrong: bool,
}

impl Sender {
    fn new(endpoints: Endpoints, dscp: Option<u8>, source: u32, echo: ProbeEcho) -> Self {
        let (is_reply, delays, lowest) = (echo.is_reply, Vec::new(), LowerHull::default());
        Self { endpoints, dscp, source, is_reply, delays, lowest, error_ns: None, is_wrong: false }
    }

    fn note_clock(&mut self, clock: SenderClock) {
        self.error_ns = match clock {
            SenderClock::Within { error_ns } if self.delays.is_empty() => Some(error_ns),
            SenderClock::Within { error_ns } => self.error_ns.map(|largest_ns| largest_ns.max(error_ns)),
            _ => None,
        };
    }

    /// Count the delays that wait, and return how many there were.
    fn settle(&mut self, groups: &mut Groups) -> usize {
        let mut delays = std::mem::take(&mut self.delays);
        delays.sort_unstable_by_key(|delay| (delay.time_ns, delay.value_ns));
        let hull = LowerHull::of(self.lowest.points().iter().chain(&delays).copied());
        let drift = hull.slope().filter(|slope| slope.abs() <= LARGEST_DRIFT).unwrap_or(0.0);
        let least_ns = hull.height(drift).unwrap_or(0.0);
        let has_delays = self.has_delays(&delays);
        let way = if self.is_reply { GroupDirection::In } else { GroupDirection::Out };
        for &Point { time_ns, value_ns } in &delays {
            let variation_ns = value_ns as f64 - drift * time_ns as f64 - least_ns;
            let keys = groups.grouping.by.groups_of_packet(&self.endpoints, self.dscp, way, self.source);
            groups.change_keys(keys, time_ns, |row| {
                row.add_duration(Duration::OnewayVariation, variation_ns.max(0.0) as i64);
                if has_delays {
                    row.add_duration(Duration::OnewayDelay, value_ns.max(0));
                }
            });
        }
        self.lowest = if hull.points().len() > MOST_POINTS { LowerHull::default() } else { hull };
        delays.len()
    }

    /// Whether the error that the sender states is less than the delays.
    fn has_delays(&mut self, delays: &[Point]) -> bool {
        let Some(error_ns) = self.error_ns else { return false };
        self.is_wrong |=
            delays.iter().any(|delay| delay.value_ns < 0 && delay.value_ns.unsigned_abs() > error_ns);
        let mut in_order: Vec<_> = delays.iter().map(|delay| delay.value_ns).collect();
        in_order.sort_unstable();
        let median_ns = in_order.get(in_order.len() / 2).and_then(|&ns| u64::try_from(ns).ok());
        !self.is_wrong && median_ns.is_some_and(|ns| (error_ns..LARGEST_DELAY_NS).contains(&ns))
    }
}
