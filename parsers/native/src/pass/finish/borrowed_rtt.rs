//! Round-trip times of TCP connections, for flows between the same two hosts that have none.
//!
//! They are only suggested: another connection may take another path and other queues.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::flow::delivery::Delivery;
use crate::flow::{Flow, FlowTable};
use crate::packet::event::{Address, Family};
use crate::packet::key::Side;
use crate::pass::options::Options;

pub(super) type HostPair = (Family, Address, Address);

/// A connection with a known round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttSource {
    pub flow: u32,
    /// RTT of the whole path.
    pub rtt_ms: f64,
    samples: u64,
}

/// For each pair of hosts that needs one, the connection with the most samples.
#[derive(Default)]
pub struct RttSources(HashMap<HostPair, RttSource>);

impl RttSources {
    /// Find the connections with an RTT, after the last packet.
    pub(super) fn find(flows: &FlowTable, options: &Options) -> (Self, io::Result<()>) {
        let lacks_rtt =
            |flow: &Flow| [Side::Low, Side::High].into_iter().any(|side| lacks_rtt(flow, side, options));
        let here = flows.here().map(|number| flows.get(number));
        let in_need: HashSet<HostPair> = here.filter(|flow| lacks_rtt(flow)).map(hosts_of).collect();
        let mut sources = Self::default();
        if in_need.is_empty() {
            return (sources, Ok(()));
        }
        let read = flows.for_each(|number, flow| {
            let source = as_rtt_source(number, flow).filter(|_| in_need.contains(&hosts_of(flow)));
            if let Some(source) = source {
                let best = sources.0.entry(hosts_of(flow)).or_insert(source);
                if best.samples < source.samples {
                    *best = source;
                }
            }
        });
        (sources, read)
    }

    /// The connection whose round-trip time may apply to the data of `side`, if it is unknown otherwise.
    pub fn source_for(&self, flow: &Flow, side: Side, options: &Options) -> Option<RttSource> {
        let source = self.0.get(&hosts_of(flow))?;
        lacks_rtt(flow, side, options).then_some(*source)
    }
}

/// Whether losses of `side` belong to no event because the RTT is unknown.
fn lacks_rtt(flow: &Flow, side: Side, options: &Options) -> bool {
    match flow.transport.tfrc() {
        Some(ends) => ends.lacks_rtt(side),
        // Without an RTT, numbered datagrams are not followed at all.
        None => {
            let is_counted = flow
                .delivery(side)
                .and_then(Delivery::at_receiver)
                .is_some_and(|delivery| delivery.counted.is_some());
            is_counted && flow.transport.dccp().is_none() && options.rtt_s.is_none()
        }
    }
}

pub(super) fn hosts_of(flow: &Flow) -> HostPair {
    let key = flow.key();
    (key.family(), key.end(Side::Low).0, key.end(Side::High).0)
}

/// Away from the sender, samples cover a part of the path, and only the handshake covers all of it;
/// at the sender samples are longer, because they include queueing.
fn as_rtt_source(number: u32, flow: &Flow) -> Option<RttSource> {
    let connection = flow.transport.tcp.as_deref()?;
    let medians = [Side::Low, Side::High].map(|side| {
        let measured = connection.half(side).path.round_trips.measured();
        let range = &measured.all.range;
        Some((measured.sketch.percentile_ms(0.5, range)?, range.count()))
    });
    let handshake_ms = connection.handshake_rtt_ns().map(|ns| ns as f64 / 1e6);
    let medians_ms = medians.iter().flatten().map(|median| median.0);
    let rtt_ms = medians_ms.chain(handshake_ms).max_by(f64::total_cmp)?;
    let samples = medians.iter().flatten().map(|median| median.1).sum();
    Some(RttSource { flow: number, rtt_ms, samples })
}
