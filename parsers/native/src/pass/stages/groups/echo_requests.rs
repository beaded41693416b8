//! Echo requests and their replies: what `ping` (RFC 792, RFC 4443), TWAMP, STAMP and IRTT measure.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::flow::intervals::{Count, Duration};
use crate::flow::numbered_datagrams::NumberedDatagram;
use crate::flow::sequences::NumberArrival;
use crate::groups::{GroupDirection, Groups};
use crate::packet::event::{Address, Endpoints, Network, Packet};
use crate::packet::extras::PacketExtras;
use crate::wire::icmp::Echo;

const UDP: u8 = 17;
/// The most requests that wait for their replies; the oldest is given up as unanswered.
const MOST: usize = 1 << 16;
/// The most exchanges of UDP whose requests count.
const MOST_REPLYING: usize = 1 << 14;

/// Who exchanges requests and replies: protocol, and the one that asks and the other, each with its port or the
/// identifier of ICMP.
type Exchange = (u8, (Address, u16), (Address, u16));

/// A request by its exchange and its number.
type EchoKey = (Exchange, u32);

/// A request without a reply.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Request {
    time_ns: i64,
    endpoints: Endpoints,
    dscp: Option<u8>,
    number: u64,
    source: u32,
}

impl Request {
    /// The request with this time and number of a packet in the source.
    fn of(network: &Network, (time_ns, number): (i64, u64), source: u32) -> Self {
        let &Network { endpoints, dscp, .. } = network;
        Self { time_ns, endpoints, dscp, number, source }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct EchoRequests {
    waiting: HashMap<EchoKey, Request>,
    /// Keys and numbers, the oldest first; of answered requests, too.
    order: VecDeque<(EchoKey, u64)>,
    /// Exchanges of UDP in which a probe was answered. Those of OWAMP never are.
    replying: HashSet<Exchange>,
}

impl EchoRequests {
    /// Look for a request or its reply in a packet of ICMP.
    pub fn on_icmp(&mut self, packet: &Packet, extras: &PacketExtras, source: u32, groups: &mut Groups) {
        let network = &packet.network;
        let Endpoints { protocol, src, dst, .. } = network.endpoints;
        let Some(echo) = Echo::of(protocol, extras.head(network.head).bytes()) else { return };
        let (near, far) = ((src, echo.identifier), (dst, echo.identifier));
        if echo.is_reply {
            self.on_reply(((protocol, far, near), echo.sequence.into()), packet.time_ns, groups);
        } else {
            let key = ((protocol, near, far), echo.sequence.into());
            self.on_request(key, Request::of(network, (packet.time_ns, packet.number), source), groups);
        }
    }

    /// Process a numbered datagram if it is a probe or answers one.
    pub fn on_numbered(
        &mut self,
        numbered: &NumberedDatagram,
        network: &Network,
        source: u32,
        groups: &mut Groups,
    ) {
        let &NumberedDatagram { echo: Some(echo), time_ns, packet, arrival, .. } = numbered else { return };
        if arrival == NumberArrival::Duplicate {
            return;
        }
        let Endpoints { protocol, src, dst, src_port, dst_port, .. } = network.endpoints;
        let (near, far) = ((src, src_port), (dst, dst_port));
        if !echo.is_reply {
            let request = Request::of(network, (time_ns, packet), source);
            return self.on_request(((protocol, near, far), echo.number), request, groups);
        }
        self.on_reply(((protocol, far, near), echo.number), time_ns, groups);
    }

    /// Keep a request, and give up the oldest one if there are too many. Of copies the first counts.
    fn on_request(&mut self, key: EchoKey, request: Request, groups: &mut Groups) {
        if self.waiting.contains_key(&key) {
            return;
        }
        self.waiting.insert(key, request);
        self.order.push_back((key, request.number));
        if self.order.len() > MOST {
            self.give_up_oldest(groups);
        }
    }

    /// Count the request that is answered.
    fn on_reply(&mut self, key: EchoKey, time_ns: i64, groups: &mut Groups) {
        let Some(request) = self.waiting.remove(&key) else { return };
        if key.0.0 == UDP && self.replying.len() < MOST_REPLYING {
            self.replying.insert(key.0);
        }
        if self.counts(key.0) {
            count(&request, Some(time_ns), groups);
        }
    }

    /// Whether requests of an exchange count: of UDP only with all that becomes of them.
    fn counts(&self, exchange: Exchange) -> bool {
        exchange.0 != UDP || self.replying.contains(&exchange)
    }

    /// Count the oldest request as unanswered, if it still waits for a reply that may be expected.
    fn give_up_oldest(&mut self, groups: &mut Groups) {
        let Some((key, number)) = self.order.pop_front() else { return };
        if self.waiting.get(&key).is_none_or(|request| request.number != number) {
            return;
        }
        if let Some(request) = self.waiting.remove(&key)
            && self.counts(key.0)
        {
            count(&request, None, groups);
        }
    }

    /// Count requests that were never answered, after the last packet.
    pub fn finish(&mut self, groups: &mut Groups) {
        while !self.order.is_empty() {
            self.give_up_oldest(groups);
        }
    }
}

/// Count a request in its interval, with its reply if there is one.
fn count(request: &Request, replied_ns: Option<i64>, groups: &mut Groups) {
    let keys = groups.grouping.by.groups_of_packet(
        &request.endpoints,
        request.dscp,
        GroupDirection::Out,
        request.source,
    );
    groups.change_keys(keys, request.time_ns, |row| {
        row.counts.change(Count::EchoRequests, 1);
        match replied_ns {
            Some(time_ns) => row.add_duration(Duration::Echo, time_ns.saturating_sub(request.time_ns)),
            None => row.counts.change(Count::EchoUnanswered, 1),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::intervals::IntervalWidth;
    use crate::groups::{GroupBy, Grouping};
    use crate::packet::event::Family;

    fn totals(groups: &Groups) -> (i64, i64) {
        let rows = || (0..groups.len() as u32).filter_map(|number| groups.row(number));
        let of = |count| rows().map(|row| row.counts.get(count)).sum();
        (of(Count::EchoRequests), of(Count::EchoUnanswered))
    }

    #[test]
    fn test_beyond_a_bound_no_part_of_an_exchange_counts() {
        let mut groups =
            Groups::new(Grouping { by: GroupBy::Link, every: IntervalWidth::Whole, max_rows: 100 });
        let mut echoes = EchoRequests::default();
        for one in 0..MOST_REPLYING as u128 + 7 {
            let endpoints = Endpoints {
                family: Family::V4,
                protocol: UDP,
                src: one,
                dst: 2,
                src_port: 862,
                dst_port: 862,
            };
            let exchange = (UDP, (one, 862), (2, 862));
            for number in [0, 1] {
                let request = Request { time_ns: 0, endpoints, dscp: None, number: number.into(), source: 0 };
                echoes.on_request((exchange, number), request, &mut groups);
            }
            echoes.on_reply((exchange, 0), 1_000, &mut groups);
        }
        echoes.finish(&mut groups);
        let exchanges = MOST_REPLYING as i64;
        assert_eq!(totals(&groups), (2 * exchanges, exchanges));
    }
}
