//! The spin bit (RFC 9000 section 17.4): a server returns the client's value, the client inverts the server's, so that
//! each value lasts a round trip. Numbers of packets are encrypted, so edges are told from reordered packets by time
//! (RFC 9312 section 3.8.2).

use serde::{Deserialize, Serialize};

use crate::flow::rtt_statistics::{LogHistogram, RttStatistics};
use crate::packet::key::Side;

/// A value lasts at least a quarter of the shortest of the last round trips. A shorter one is of a late packet.
const OF_RECENT: u64 = 4;
/// Before there are such, a tenth of the handshake's, which may have waited for the server to compute.
const OF_HANDSHAKE: u64 = 10;
/// The last round trips.
const RECENT: usize = 8;
/// Packets of a direction before it is known to be constant.
const MOST_CONSTANT: u64 = 16;
/// Edges before they are known not to follow each other.
const LEAST_EDGES: u32 = 12;
/// Round trips before they are believed.
const LEAST_SAMPLES: u64 = 3;
/// A round trip that is so much longer than the shortest, and half of which nothing was sent, waited for data.
const WAITED: u64 = 2;

named_enum! {
    /// What the bit of a direction shows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SpinVerdict {
        /// Round-trip times.
        Plausible = "plausible",
        /// Mostly the time between the packets of an application with little to send.
        ApplicationLimited = "application_limited",
        /// Nothing: the edges of both directions do not follow each other.
        Random = "random",
        /// Nothing: it never changes.
        Constant = "constant",
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SpinDirection {
    packets: u64,
    value: bool,
    first_ns: i64,
    last_ns: i64,
    /// Time of the last edge.
    edge_ns: Option<i64>,
    /// Longest time without a packet since then.
    silence_ns: u64,
    edges: u32,
    /// Packets with the last value after an edge.
    pub late_packets: u64,
    /// Edges that waited for data.
    waited: u64,
    recent_ns: [u64; RECENT],
    /// From edge to edge: the whole path.
    pub rtt: Option<Box<(RttStatistics, LogHistogram)>>,
}

impl SpinDirection {
    fn samples(&self) -> u64 {
        self.rtt.as_ref().map_or(0, |rtt| rtt.0.range.count())
    }

    /// The time after an edge in which there is no other.
    fn hold_ns(&self, handshake_rtt_ns: Option<u64>) -> u64 {
        match self.recent_ns.iter().filter(|rtt_ns| **rtt_ns > 0).min() {
            Some(shortest) => shortest / OF_RECENT,
            None => handshake_rtt_ns.unwrap_or(0) / OF_HANDSHAKE,
        }
    }

    fn add_round_trip(&mut self, rtt_ns: u64, handshake_rtt_ns: Option<u64>) {
        let shortest_ns = self.rtt.as_ref().map_or(rtt_ns, |rtt| rtt.0.range.min_ns());
        let shortest_ns = shortest_ns.min(handshake_rtt_ns.unwrap_or(rtt_ns));
        self.waited += u64::from(has_waited(rtt_ns, self.silence_ns, shortest_ns));
        self.recent_ns[self.samples() as usize % RECENT] = rtt_ns.max(1);
        let (statistics, sketch) = &mut **self.rtt.get_or_insert_default();
        statistics.add(rtt_ns);
        sketch.add(rtt_ns);
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Spin {
    directions: [SpinDirection; 2],
    /// The side of the last edge.
    last_edge: Option<Side>,
    /// Edges that follow one of the other side, to the value that it calls for.
    following: u32,
    /// Shortest time from an edge of each side to that of the other.
    shortest_ns: [Option<u64>; 2],
}

impl Spin {
    pub fn direction(&self, side: Side) -> &SpinDirection {
        &self.directions[side as usize]
    }

    /// Process a short header of `side`; `first_rtts_ns` are the round-trip times of each side's first packets. Returns
    /// the side whose edge it answers and the time since then, if the bit shows round-trip times.
    pub fn on_short_header(
        &mut self,
        (side, client): (Side, Option<Side>),
        value: bool,
        time_ns: i64,
        first_rtts_ns: [Option<u64>; 2],
    ) -> Option<(Side, u64)> {
        let [low, high] = first_rtts_ns;
        let handshake_rtt_ns = low.zip(high).map(|(low, high)| low + high);
        let direction = &mut self.directions[side as usize];
        let mut answer = None;
        if direction.packets > 0 {
            direction.silence_ns = direction.silence_ns.max(elapsed(time_ns, direction.last_ns));
        }
        if direction.packets == 0 {
            (direction.value, direction.first_ns) = (value, time_ns);
        } else if value != direction.value {
            let hold_ns = direction.hold_ns(handshake_rtt_ns);
            if direction.edge_ns.is_some_and(|edge_ns| elapsed(time_ns, edge_ns) < hold_ns) {
                direction.late_packets += 1;
            } else {
                answer = self.on_edge((side, client), value, time_ns, first_rtts_ns);
                self.directions[side as usize].silence_ns = 0;
            }
        }
        let direction = &mut self.directions[side as usize];
        direction.packets += 1;
        direction.last_ns = direction.last_ns.max(time_ns);
        answer
    }

    fn on_edge(
        &mut self,
        (side, client): (Side, Option<Side>),
        value: bool,
        time_ns: i64,
        first_rtts_ns: [Option<u64>; 2],
    ) -> Option<(Side, u64)> {
        let is_answer = self.calls_for(value, side, client);
        self.following += u32::from(is_answer && self.last_edge == Some(side.other()));
        self.last_edge = Some(side);
        let direction = &mut self.directions[side as usize];
        direction.edges = direction.edges.saturating_add(1);
        direction.value = value;
        let before_ns = direction.edge_ns.replace(time_ns);
        if let Some(before_ns) = before_ns {
            let [low, high] = first_rtts_ns;
            let handshake_rtt_ns = low.zip(high).map(|(low, high)| low + high);
            direction.add_round_trip(elapsed(time_ns, before_ns), handshake_rtt_ns);
        }
        let first_ns = first_rtts_ns[side.other() as usize];
        self.answer((side, client), (value, time_ns), before_ns, first_ns)
    }

    /// The time since the edge of the other side that an edge follows.
    fn answer(
        &mut self,
        (side, client): (Side, Option<Side>),
        (value, time_ns): (bool, i64),
        before_ns: Option<i64>,
        first_rtt_ns: Option<u64>,
    ) -> Option<(Side, u64)> {
        let answered = side.other();
        let other = &self.directions[answered as usize];
        let edge_ns =
            other.edge_ns.filter(|edge_ns| before_ns.is_none_or(|before_ns| before_ns < *edge_ns))?;
        if client.is_none() || !self.calls_for(value, side, client) {
            return None;
        }
        let rtt_ns = elapsed(time_ns, edge_ns);
        let shortest_ns = &mut self.shortest_ns[answered as usize];
        let shortest_ns = *shortest_ns.insert(shortest_ns.or(first_rtt_ns).unwrap_or(rtt_ns).min(rtt_ns));
        let silence_ns = elapsed(time_ns, self.direction(side).last_ns);
        let has_waited = has_waited(rtt_ns, silence_ns, shortest_ns);
        let verdict = self.verdict(side)?;
        let is_believed = matches!(verdict, SpinVerdict::Plausible | SpinVerdict::ApplicationLimited);
        (is_believed && !has_waited).then_some((answered, rtt_ns))
    }

    /// Whether the last value of the other side calls for `value` of `side`: the client inverts, the server returns.
    fn calls_for(&self, value: bool, side: Side, client: Option<Side>) -> bool {
        let other = self.direction(side.other());
        client.is_none_or(|client| (value == other.value) == (client != side))
    }

    /// What the bit of a direction shows; None if too little was sent to know.
    pub fn verdict(&self, side: Side) -> Option<SpinVerdict> {
        let [low, high] = &self.directions;
        let direction = self.direction(side);
        if low.edges + high.edges == 0 {
            return (direction.packets >= MOST_CONSTANT).then_some(SpinVerdict::Constant);
        }
        if self.is_random(direction) {
            return Some(SpinVerdict::Random);
        }
        let samples = direction.samples();
        if samples < LEAST_SAMPLES {
            return None;
        }
        let is_limited = 2 * direction.waited > samples;
        Some(if is_limited { SpinVerdict::ApplicationLimited } else { SpinVerdict::Plausible })
    }

    /// Edges of one direction follow those of the other. If only one direction was captured, a value lasts for several
    /// packets.
    fn is_random(&self, direction: &SpinDirection) -> bool {
        let [low, high] = &self.directions;
        let edges = low.edges.saturating_add(high.edges);
        if low.packets > 0 && high.packets > 0 {
            return edges >= LEAST_EDGES && u64::from(self.following) * 4 < u64::from(edges) * 3;
        }
        direction.edges >= LEAST_EDGES && u64::from(direction.edges) * 4 > direction.packets
    }
}

/// Whether a time is much longer than the shortest one, and nothing was sent for most of it.
fn has_waited(rtt_ns: u64, silence_ns: u64, shortest_ns: u64) -> bool {
    rtt_ns > WAITED.saturating_mul(shortest_ns) && silence_ns > rtt_ns / 2
}

/// Nanoseconds from `before_ns` to `time_ns`; 0 if the clock stepped back.
fn elapsed(time_ns: i64, before_ns: i64) -> u64 {
    u64::try_from(time_ns.saturating_sub(before_ns)).unwrap_or(0)
}
