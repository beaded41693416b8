//! Queries of DNS and their answers, over UDP.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::flow::Found;
use crate::flow::intervals::{Count, Counts, Duration, IntervalWidth, Piece};
use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::wire::dns::{DnsHeader, PORT};

/// The most queries that wait for their answers; the oldest is given up as unanswered.
const MOST: usize = 1 << 16;

/// A query by its flow and identifier.
type QueryKey = (u32, u16);

/// A flow, and what a query of it counts.
type CountedQuery = (u32, Piece);

/// A query without an answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Query {
    time_ns: i64,
    side: Side,
    /// Number of its packet.
    number: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct DnsQueries {
    waiting: HashMap<QueryKey, Query>,
    /// Keys and numbers, the oldest first; of answered queries, too.
    order: VecDeque<(QueryKey, u64)>,
}

impl DnsQueries {
    /// The flows of queries that wait.
    pub fn flows(&self) -> impl Iterator<Item = u32> {
        self.waiting.keys().map(|(flow, _)| *flow)
    }

    /// Keep a query; returns the one that is given up for it.
    fn add(&mut self, key: QueryKey, query: Query) -> Option<(QueryKey, Query)> {
        self.waiting.insert(key, query);
        self.order.push_back((key, query.number));
        if self.order.len() <= MOST {
            return None;
        }
        let (oldest, number) = self.order.pop_front()?;
        let query = self.waiting.get(&oldest).copied().filter(|query| query.number == number)?;
        self.waiting.remove(&oldest);
        Some((oldest, query))
    }

    /// Look for a query or an answer in a datagram that begins with `payload`; returns what is counted of it.
    pub fn on_datagram(
        &mut self,
        found: Found,
        packet: &Packet,
        payload: &[u8],
        every: IntervalWidth,
    ) -> Option<CountedQuery> {
        let ends = packet.network.endpoints;
        let is_of_server = ends.src_port == PORT;
        if is_of_server == (ends.dst_port == PORT) {
            return None;
        }
        let header = DnsHeader::of(payload).filter(|header| header.is_answer == is_of_server)?;
        let key = (found.flow, header.id);
        if header.is_answer {
            let query = self.waiting.remove(&key)?;
            return Some(counted(key, query, Some((packet.time_ns, header)), every));
        }
        if self.waiting.contains_key(&key) {
            return None;
        }
        let query = Query { time_ns: packet.time_ns, side: found.side, number: packet.number };
        let (key, query) = self.add(key, query)?;
        Some(counted(key, query, None, every))
    }

    /// Give up the queries of flows that are over, which waited for longer than these.
    pub fn give_up(&mut self, over: &[u32], every: IntervalWidth) -> Vec<CountedQuery> {
        if over.is_empty() || self.waiting.is_empty() {
            return Vec::new();
        }
        let over: HashSet<u32> = over.iter().copied().collect();
        let mut given_up: Vec<_> = self.waiting.extract_if(|(flow, _), _| over.contains(flow)).collect();
        given_up.sort_unstable_by_key(|(_, query)| query.number);
        given_up.into_iter().map(|(key, query)| counted(key, query, None, every)).collect()
    }

    /// Give up all queries, after the last packet.
    pub fn give_up_all(&mut self, every: IntervalWidth) -> Vec<CountedQuery> {
        let Self { waiting, order } = std::mem::take(self);
        let unanswered = |(key, number): (QueryKey, u64)| {
            let query = waiting.get(&key).filter(|query| query.number == number)?;
            Some(counted(key, *query, None, every))
        };
        order.into_iter().filter_map(unanswered).collect()
    }
}

/// What a query counts in its interval, with its answer if there is one.
fn counted(
    (flow, _): QueryKey,
    query: Query,
    answer: Option<(i64, DnsHeader)>,
    every: IntervalWidth,
) -> CountedQuery {
    let mut counts = Counts::default();
    counts.add(Count::DnsQueries, 1_u64);
    counts.add(Count::DnsUnanswered, u64::from(answer.is_none()));
    counts.add(Count::DnsFailures, u64::from(answer.is_some_and(|(_, header)| header.is_failure())));
    let piece = Piece::of_counts(0, query.side, every.start_ns(query.time_ns), counts);
    let waited = answer.map(|(at, _)| u64::try_from(at.saturating_sub(query.time_ns)));
    match waited {
        Some(Ok(time_ns)) => (flow, piece.with(Duration::Dns, time_ns)),
        _ => (flow, piece),
    }
}
