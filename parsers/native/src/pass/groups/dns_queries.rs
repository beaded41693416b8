//! Queries of DNS and their answers, over UDP.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::flow::Found;
use crate::flow::intervals::{Count, Counts, Duration, Piece};
use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::pass::Analysis;
use crate::wire::dns::{DnsHeader, PORT};

/// The most queries that wait for their answers; the oldest is given up as unanswered.
const MOST: usize = 1 << 16;

/// A query by its flow and identifier.
type QueryKey = (u32, u16);

/// A query without an answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Query {
    time_ns: i64,
    side: Side,
    /// Number of its packet.
    number: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::pass) struct DnsQueries {
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
}

impl Analysis {
    /// Look for a query or an answer in a datagram that begins with `payload`.
    pub(in crate::pass) fn take_dns(&mut self, found: Found, packet: &Packet, payload: &[u8]) {
        let ends = packet.network.endpoints;
        let is_of_server = ends.src_port == PORT;
        if is_of_server == (ends.dst_port == PORT) {
            return;
        }
        let Some(header) = DnsHeader::of(payload).filter(|header| header.is_answer == is_of_server) else {
            return;
        };
        let key = (found.flow, header.id);
        let queries = &mut self.dns_queries;
        if header.is_answer {
            if let Some(query) = queries.waiting.remove(&key) {
                self.count_dns(key, query, Some((packet.time_ns, header)));
            }
        } else if !queries.waiting.contains_key(&key) {
            let query = Query { time_ns: packet.time_ns, side: found.side, number: packet.number };
            if let Some((key, query)) = queries.add(key, query) {
                self.count_dns(key, query, None);
            }
        }
    }

    /// Count queries of flows that are over, which waited for longer than these, as unanswered.
    pub(in crate::pass) fn give_up_queries(&mut self, over: &[u32]) {
        if over.is_empty() || self.dns_queries.waiting.is_empty() {
            return;
        }
        let over: HashSet<u32> = over.iter().copied().collect();
        let mut given_up: Vec<_> =
            self.dns_queries.waiting.extract_if(|(flow, _), _| over.contains(flow)).collect();
        given_up.sort_unstable_by_key(|(_, query)| query.number);
        for (key, query) in given_up {
            self.count_dns(key, query, None);
        }
    }

    /// Count queries that were never answered, after the last packet.
    pub(in crate::pass) fn finish_dns(&mut self) {
        let DnsQueries { waiting, order } = std::mem::take(&mut self.dns_queries);
        for (key, number) in order {
            if let Some(query) = waiting.get(&key).filter(|query| query.number == number) {
                self.count_dns(key, *query, None);
            }
        }
    }

    /// Count a query in its interval, with its answer if there is one.
    fn count_dns(&mut self, (flow, _): QueryKey, query: Query, answer: Option<(i64, DnsHeader)>) {
        let Some(groups) = &mut self.groups else { return };
        let mut counts = Counts::default();
        counts.add(Count::DnsQueries, 1_u64);
        counts.add(Count::DnsUnanswered, u64::from(answer.is_none()));
        counts.add(Count::DnsFailures, u64::from(answer.is_some_and(|(_, header)| header.is_failure())));
        let start_ns = groups.grouping.every.start_ns(query.time_ns);
        let mut piece = Piece::of_counts(0, query.side, start_ns, counts);
        if let Some(Ok(time_ns)) = answer.map(|(at, _)| u64::try_from(at.saturating_sub(query.time_ns))) {
            piece = piece.with(Duration::Dns, time_ns);
        }
        groups.take(&piece, (flow, self.flows.get(flow)));
    }
}
