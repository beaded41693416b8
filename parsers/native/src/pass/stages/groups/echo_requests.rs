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
use crate::wire::probe::ProbeEcho;

const UDP: u8 = 17;
/// The most requests of a kind that wait for their replies; the oldest is given up as unanswered.
const MOST: usize = 1 << 16;
/// How long copies of a packet may be under way: the maximum segment lifetime of RFC 9293 section 3.4.2.
const LIFETIME_NS: i64 = 120_000_000_000;
/// The most exchanges of UDP whose requests count.
const MOST_REPLYING: usize = 1 << 14;

/// Who exchanges requests and replies: protocol, and the one that asks and the other, each with its port or the
/// identifier of ICMP.
pub(super) type Exchange = (u8, (Address, u16), (Address, u16));

/// A request by its exchange, its number, and what its reply repeats besides: programs use a number again.
type EchoKey = (Exchange, u32, Option<u64>);

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

/// Requests that wait for their replies.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Waiting {
    requests: HashMap<EchoKey, Request>,
    /// Keys and numbers, the oldest first; of answered requests, too.
    order: VecDeque<(EchoKey, u64)>,
}

impl Waiting {
    /// Keep a request, and give those that get no reply any more: one that asked the same long before, and the
    /// oldest of too many. Of copies the first counts.
    fn add(&mut self, key: EchoKey, request: Request) -> [Option<(Exchange, Request)>; 2] {
        let before = self.requests.get(&key).copied();
        if before.is_some_and(|before| request.time_ns.saturating_sub(before.time_ns) <= LIFETIME_NS) {
            return [None, None];
        }
        self.requests.insert(key, request);
        self.order.push_back((key, request.number));
        let oldest = if self.order.len() > MOST { self.take_oldest() } else { None };
        [before.map(|before| (key.0, before)), oldest]
    }

    /// Take the oldest one; None if it does not wait any more.
    fn take_oldest(&mut self) -> Option<(Exchange, Request)> {
        let (key, number) = self.order.pop_front()?;
        let is_waiting = self.requests.get(&key).is_some_and(|request| request.number == number);
        is_waiting.then(|| self.requests.remove(&key))?.map(|request| (key.0, request))
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct EchoRequests {
    /// Of ICMP. Probes that are never answered must not push them out.
    pings: Waiting,
    /// Of UDP.
    probes: Waiting,
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
            let key = ((protocol, far, near), echo.sequence.into(), echo.data);
            self.on_reply(key, packet.time_ns, groups);
        } else {
            let key = ((protocol, near, far), echo.sequence.into(), echo.data);
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
        let ProbeEcho { is_reply, number, repeated } = echo;
        if is_reply {
            self.on_reply(((protocol, far, near), number, repeated), time_ns, groups);
        } else {
            let request = Request::of(network, (time_ns, packet), source);
            self.on_request(((protocol, near, far), number, repeated), request, groups);
        }
    }

    fn waiting(&mut self, (protocol, ..): Exchange) -> &mut Waiting {
        if protocol == UDP { &mut self.probes } else { &mut self.pings }
    }

    fn on_request(&mut self, key: EchoKey, request: Request, groups: &mut Groups) {
        for (exchange, given_up) in self.waiting(key.0).add(key, request).into_iter().flatten() {
            self.give_up(exchange, &given_up, groups);
        }
    }

    /// Count the request that is answered.
    fn on_reply(&mut self, key: EchoKey, time_ns: i64, groups: &mut Groups) {
        let Some(request) = self.waiting(key.0).requests.remove(&key) else { return };
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

    /// Count a request as unanswered, if a reply may be expected.
    fn give_up(&self, exchange: Exchange, request: &Request, groups: &mut Groups) {
        if self.counts(exchange) {
            count(request, None, groups);
        }
    }

    /// Count requests that were never answered, after the last packet.
    pub fn finish(&mut self, groups: &mut Groups) {
        for mut waiting in [std::mem::take(&mut self.pings), std::mem::take(&mut self.probes)] {
            while !waiting.order.is_empty() {
                if let Some((exchange, request)) = waiting.take_oldest() {
                    self.give_up(exchange, &request, groups);
                }
            }
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

    const PING: u8 = 1;

    fn groups() -> Groups {
        Groups::new(Grouping { by: GroupBy::Link, every: IntervalWidth::Whole, max_rows: 100 })
    }

    /// A request of host `asker` at `time_ns`, the packet `number` of the source.
    fn request(protocol: u8, asker: u128, (time_ns, number): (i64, u64)) -> (Exchange, Request) {
        let endpoints =
            Endpoints { family: Family::V4, protocol, src: asker, dst: 2, src_port: 862, dst_port: 862 };
        let request = Request { time_ns, endpoints, dscp: None, number, source: 0 };
        ((protocol, (asker, 862), (2, 862)), request)
    }

    #[test]
    fn test_beyond_a_bound_no_part_of_an_exchange_counts() {
        let (mut groups, mut echoes) = (groups(), EchoRequests::default());
        for one in 0..MOST_REPLYING as u128 + 7 {
            let (exchange, _) = request(UDP, one, (0, 0));
            for number in [0, 1] {
                let (_, request) = request(UDP, one, (0, number.into()));
                echoes.on_request((exchange, number, None), request, &mut groups);
            }
            echoes.on_reply((exchange, 0, None), 1_000, &mut groups);
        }
        echoes.finish(&mut groups);
        let exchanges = MOST_REPLYING as i64;
        assert_eq!(totals(&groups), (2 * exchanges, exchanges));
    }

    #[test]
    fn test_probes_that_nobody_answers_push_no_ping_out() {
        let (mut groups, mut echoes) = (groups(), EchoRequests::default());
        let (pinging, ping) = request(PING, 1, (0, 0));
        echoes.on_request((pinging, 0, None), ping, &mut groups);
        for number in 0..=MOST as u32 {
            let (exchange, probe) = request(UDP, 1, (1, u64::from(number) + 1));
            echoes.on_request((exchange, number, None), probe, &mut groups);
        }
        echoes.on_reply((pinging, 0, None), 1_000_000, &mut groups);
        echoes.finish(&mut groups);
        assert_eq!(totals(&groups), (1, 0));
    }

    #[test]
    fn test_the_time_to_a_reply_begins_with_the_request_that_it_answers() {
        // (protocol, what the first request and the second one have written, when the second one is asked and answered)
        let cases = [
            (PING, (Some(10), Some(11)), 1_000_000_000),
            (PING, (None, None), LIFETIME_NS + 1),
            (UDP, (Some(7), Some(8)), 1_000_000_000),
        ];
        for (protocol, (first, second), asked_ns) in cases {
            let (mut groups, mut echoes) = (groups(), EchoRequests::default());
            for (time_ns, number, repeated) in
                [(0, 0, first), (asked_ns, 1, second), (asked_ns + 1_000, 2, second)]
            {
                let (exchange, request) = request(protocol, 1, (time_ns, number));
                echoes.on_request((exchange, 5, repeated), request, &mut groups);
            }
            let (exchange, _) = request(protocol, 1, (0, 0));
            echoes.on_reply((exchange, 5, second), asked_ns + 2_000_000, &mut groups);
            echoes.finish(&mut groups);
            assert_eq!(totals(&groups), (2, 1), "{protocol} {first:?}");
            let row = groups.row(0).unwrap();
            let time_ns = row.durations(Duration::Echo).unwrap().percentile(1.0).unwrap();
            assert!(time_ns.abs_diff(2_000_000) < 20_000, "{time_ns}");
        }
    }
}
