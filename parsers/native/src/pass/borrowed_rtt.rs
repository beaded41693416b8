//! Round-trip times of TCP connections, for flows between the same two hosts that have none.
//!
//! They are only suggested: another connection may take another path and other queues.

use std::collections::{HashMap, HashSet};

use super::Analysis;
use crate::flow::Flow;
use crate::packet::event::{Address, Family};
use crate::packet::key::Side;

type HostPair = (Family, Address, Address);

/// A connection with a known round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttSource {
    pub flow: u32,
    /// RTT of the whole path.
    pub rtt_ms: f64,
    samples: u64,
}

/// For each pair of hosts that needs one, the connection with the most samples.
pub(super) type RttSources = HashMap<HostPair, RttSource>;

impl Analysis {
    /// The connection whose round-trip time may apply to the data of `side`, if it is unknown
    /// otherwise.
    pub fn lender(&self, flow: &Flow, side: Side) -> Option<RttSource> {
        let lender = self.lenders.get(&hosts_of(flow))?;
        self.lacks_rtt(flow, side).then_some(*lender)
    }

    /// Whether losses of `side` belong to no event because the RTT is unknown.
    fn lacks_rtt(&self, flow: &Flow, side: Side) -> bool {
        match flow.transport.tfrc() {
            Some(ends) => ends.lacks_rtt(side),
            // Without an RTT, numbered datagrams are not followed at all.
            None => {
                let is_counted = flow.delivery(side).is_some_and(|delivery| delivery.counted.is_some());
                is_counted && flow.transport.dccp().is_none() && self.options.rtt_s.is_none()
            }
        }
    }

    /// Find the connections with an RTT. Call once, after the last packet.
    pub(super) fn find_rtt_sources(&mut self) {
        let lacks_rtt =
            |flow: &Flow| [Side::Low, Side::High].into_iter().any(|side| self.lacks_rtt(flow, side));
        let here = self.flows.here().map(|number| self.flows.get(number));
        let in_need: HashSet<HostPair> = here.filter(|flow| lacks_rtt(flow)).map(hosts_of).collect();
        if in_need.is_empty() {
            return;
        }
        let mut lenders = RttSources::new();
        let found = self.flows.for_each(|number, flow| {
            let lender = as_rtt_source(number, flow).filter(|_| in_need.contains(&hosts_of(flow)));
            if let Some(lender) = lender {
                let best = lenders.entry(hosts_of(flow)).or_insert(lender);
                if best.samples < lender.samples {
                    *best = lender;
                }
            }
        });
        self.note_unread(found);
        self.lenders = lenders;
    }
}

fn hosts_of(flow: &Flow) -> HostPair {
    let key = flow.key();
    (key.family(), key.end(Side::Low).0, key.end(Side::High).0)
}

/// Away from the sender, samples cover a part of the path, and only the handshake covers all of it;
/// at the sender samples are longer, because they include queueing.
fn as_rtt_source(number: u32, flow: &Flow) -> Option<RttSource> {
    let connection = flow.transport.tcp.as_deref()?;
    let medians = [Side::Low, Side::High].map(|side| {
        let measured = connection.half(side).path.round_trips.measured();
        let range = &measured.by_ack.range;
        Some((measured.sketch.percentile_ms(0.5, range)?, range.count()))
    });
    let handshake_ms = connection.handshake_rtt_ns().map(|ns| ns as f64 / 1e6);
    let medians_ms = medians.iter().flatten().map(|median| median.0);
    let rtt_ms = medians_ms.chain(handshake_ms).max_by(f64::total_cmp)?;
    let samples = medians.iter().flatten().map(|median| median.1).sum();
    Some(RttSource { flow: number, rtt_ms, samples })
}
