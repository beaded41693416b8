//! Where flows of numbered packets were captured, by other flows between the same two hosts: packets of one side
//! alone tell nothing, the handshake of a connection does.

use std::collections::HashMap;
use std::io;

use super::borrowed_rtt::{HostPair, hosts_of};
use crate::flow::tcp::vantage::VantageEvidence;
use crate::flow::{Flow, FlowTable};
use crate::packet::key::Side;

/// Give each numbered flow the signs of all flows between its hosts.
pub(super) fn find_places(flows: &mut FlowTable) -> io::Result<()> {
    let in_need: Vec<u32> = flows.here().filter(|&number| is_in_need(flows.get(number))).collect();
    let mut signs: HashMap<HostPair, (VantageEvidence, [u8; 2])> =
        in_need.iter().map(|&number| (hosts_of(flows.get(number)), Default::default())).collect();
    if signs.is_empty() {
        return Ok(());
    }
    flows.for_each(|_, flow| {
        if let Some((of_connections, ttls)) = signs.get_mut(&hosts_of(flow)) {
            let (of_connection, of_flow) = flow.transport.signs_of_place();
            of_connections.add_all(of_connection);
            for (known, ttl) in ttls.iter_mut().zip(of_flow).filter(|(known, _)| **known == 0) {
                *known = ttl;
            }
        }
    })?;
    for number in in_need {
        let flow = flows.get_mut(number);
        if let Some(&(of_connections, ttls)) = signs.get(&hosts_of(flow)) {
            flow.transport.set_place_of_hosts(of_connections, ttls);
        }
    }
    Ok(())
}

/// Within one host no side is nearer.
fn is_in_need(flow: &Flow) -> bool {
    let [low, high] = [Side::Low, Side::High].map(|side| flow.key().end(side).0);
    flow.is_numbered() && low != high
}
