//! For how long flows may be silent.

use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::flow::tcp::ConnectionState::{Attempted, Opening};
use crate::flow::tcp::TWO_MSL_NS;
use crate::input::time_order::MOST_IDLE_NS;

const MINUTE_NS: i64 = 60_000_000_000;

/// What decides for how long a flow may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdleKind {
    Datagrams,
    /// A connection that never opened, as far as the capture shows.
    HalfOpen,
    Established,
    Closed,
}

impl IdleKind {
    pub fn of(flow: &Flow) -> Self {
        match flow.transport.state() {
            None => Self::Datagrams,
            Some(state) if state.is_closed() => Self::Closed,
            // Data of either side show that the other answered, even if only one direction was captured.
            Some(Attempted | Opening) if !flow.has_payload() => Self::HalfOpen,
            Some(_) => Self::Established,
        }
    }
}

/// Silence in capture time after which a flow is over, as long as NATs keep one of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleTimes {
    /// RFC 4787 section 4.3, REQ-5: the recommended time.
    datagrams_ns: i64,
    /// RFC 5382 section 5, REQ-5: transitory connections.
    half_open_ns: i64,
    /// RFC 5382 section 5, REQ-5: established connections; of DCCP RFC 5597.
    established_ns: i64,
}

impl Default for IdleTimes {
    fn default() -> Self {
        Self { datagrams_ns: 5 * MINUTE_NS, half_open_ns: 4 * MINUTE_NS, established_ns: 124 * MINUTE_NS }
    }
}

impl IdleTimes {
    /// One time for all flows that are not closed.
    pub fn all(idle_ns: i64) -> Self {
        Self { datagrams_ns: idle_ns, half_open_ns: idle_ns, established_ns: idle_ns }
    }

    pub(super) fn of(&self, kind: IdleKind) -> i64 {
        match kind {
            IdleKind::Datagrams => self.datagrams_ns,
            IdleKind::HalfOpen => self.half_open_ns,
            IdleKind::Established => self.established_ns,
            // Two maximum segment lifetimes (RFC 9293 section 3.4.1).
            IdleKind::Closed => self.established_ns.min(TWO_MSL_NS),
        }
    }

    /// No silence that ends a flow is shorter.
    pub fn shortest_ns(&self) -> i64 {
        self.of(IdleKind::Closed).min(self.half_open_ns).min(self.datagrams_ns)
    }

    /// None is longer.
    pub fn longest_ns(&self) -> i64 {
        self.established_ns.max(self.half_open_ns).max(self.datagrams_ns)
    }
}

/// Since when a flow is silent, and for how long it may be.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    pub last_ns: i64,
    pub quiet_ns: i64,
}

impl Silence {
    /// The last time at which a packet is its own: what comes later belongs to another flow.
    pub fn due_ns(self) -> i64 {
        self.last_ns.saturating_add(self.quiet_ns)
    }

    /// Whether the flow is over before `time_ns`. A step of the clock is no silence.
    pub(super) fn is_over_at(self, time_ns: i64) -> bool {
        self.due_ns() < time_ns && time_ns.abs_diff(self.last_ns) <= MOST_IDLE_NS
    }
}
