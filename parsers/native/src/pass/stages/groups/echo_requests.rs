//! ICMP echo requests and their replies (RFC 792, RFC 4443): what `ping` measures.

use std::collections::VecDeque;

use hashbrown::HashMap;

use serde::{Deserialize, Serialize};

use crate::flow::intervals::{Count, Duration};
use crate::groups::{GroupDirection, Groups};
use crate::packet::event::{Address, Endpoints, Packet};
use crate::packet::extras::PacketExtras;
use crate::wire::icmp::Echo;

/// The most requests that wait for their replies; the oldest is given up as unanswered.
const MOST: usize = 1 << 16;

/// Sender, target, identifier and sequence number.
type EchoKey = (Address, Address, u16, u16);

/// A request without a reply.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Request {
    time_ns: i64,
    endpoints: Endpoints,
    dscp: Option<u8>,
    number: u64,
    source: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct EchoRequests {
    waiting: HashMap<EchoKey, Request>,
    /// Keys and numbers, the oldest first; of answered requests, too.
    order: VecDeque<(EchoKey, u64)>,
}

impl EchoRequests {
    /// Keep a request; returns the one that is given up for it.
    fn add(&mut self, key: EchoKey, request: Request) -> Option<Request> {
        self.waiting.insert(key, request);
        self.order.push_back((key, request.number));
        if self.order.len() <= MOST { None } else { self.take_oldest() }
    }

    fn take_oldest(&mut self) -> Option<Request> {
        let (oldest, number) = self.order.pop_front()?;
        self.waiting.get(&oldest).filter(|request| request.number == number)?;
        self.waiting.remove(&oldest)
    }

    /// Look for a request or its reply in a packet of ICMP.
    pub fn on_icmp(&mut self, packet: &Packet, extras: &PacketExtras, source: u32, groups: &mut Groups) {
        let network = &packet.network;
        let Some(echo) = Echo::of(network.endpoints.protocol, extras.head(network.head).bytes()) else {
            return;
        };
        let (src, dst) = (network.endpoints.src, network.endpoints.dst);
        if echo.is_reply {
            if let Some(request) = self.waiting.remove(&(dst, src, echo.identifier, echo.sequence)) {
                count(&request, Some(packet.time_ns), groups);
            }
            return;
        }
        let key = (src, dst, echo.identifier, echo.sequence);
        if self.waiting.contains_key(&key) {
            return;
        }
        let request = Request {
            time_ns: packet.time_ns,
            endpoints: network.endpoints,
            dscp: network.dscp,
            number: packet.number,
            source,
        };
        if let Some(oldest) = self.add(key, request) {
            count(&oldest, None, groups);
        }
    }

    /// Count requests that were never answered, after the last packet.
    pub fn finish(&mut self, groups: &mut Groups) {
        while !self.order.is_empty() {
            if let Some(request) = self.take_oldest() {
                count(&request, None, groups);
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
