//! The source and destination nodes of packets. A trace shows each packet at every hop and marks no
//! ends: an `r` at a router looks like one at the destination.
//!
//! - An address is at home at the node from which its packets leave first. Address resolution shows
//!   it even earlier.
//! - A node that forwards packets to an address is not its home.
//! - So an arrival is the last one at the address's home, or, if the address never sends, at a node
//!   that does not forward. Until either is known, the packet has to wait (see
//!   [`super::pending_packets`]).
//!
//! If nodes are missing in a trace, packets may come to a node before any leaves it, or with a time to
//! live that a router has lowered: then that node is not their address's home. Otherwise the first and
//! last of the rest take their roles.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use hashbrown::HashMap;

use crate::packet::event::{Address, Endpoints, Family, PathPoint};
use crate::packet::key::{Notation, address_text};

/// The most addresses and roles; a hostile trace could have one on each line.
const MAX_KNOWN: usize = 1 << 18;
/// Times to live of packets that some routers passed on: ns-3 starts at 64.
const FORWARDED_TTLS: RangeInclusive<u8> = 56..=63;
/// The most addresses in a caveat.
const NAMED: usize = 3;

/// An address of either family as one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Host {
    is_v6: bool,
    address: Address,
}

impl Host {
    fn new(family: Family, address: Address) -> Self {
        Self { is_v6: family == Family::V6, address }
    }

    fn text(self) -> String {
        let family = if self.is_v6 { Family::V6 } else { Family::V4 };
        address_text(self.address, family, Notation::default())
    }

    /// Whether it is a group address, which has no home.
    fn is_group(self) -> bool {
        match self.is_v6 {
            true => self.address >> 120 == 0xff,
            false => self.address >> 28 == 0xe || self.address == u128::from(u32::MAX),
        }
    }
}

/// Is this node the destination of the packet that arrived?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoleQuestion {
    node: u32,
    host: Host,
}

impl RoleQuestion {
    /// Whether `node` is the destination of a packet with these endpoints.
    pub fn new(node: u32, endpoints: &Endpoints) -> Self {
        Self { node, host: Host::new(endpoints.family, endpoints.dst) }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Knowledge {
    home: Option<u32>,
    is_written_to: bool,
    is_reached: bool,
}

/// Nodes and addresses, as far as known.
#[derive(Debug, Default)]
pub struct NodeRoles {
    hosts: HashMap<Host, Knowledge>,
    /// Nodes that forward packets to an address.
    passing: HashSet<RoleQuestion>,
    /// Nodes that did not forward for so long that they are taken for the destination.
    keeping: HashSet<RoleQuestion>,
    /// Nodes that packets of an address came to before any left its home.
    came_in: HashSet<(u32, Host)>,
}

impl NodeRoles {
    /// A packet with this time to live leaves `node`, or enters its queue.
    pub fn on_outgoing(&mut self, node: u32, endpoints: &Endpoints, ttl: u8) -> PathPoint {
        let source = Host::new(endpoints.family, endpoints.src);
        let came_in = self.came_in.contains(&(node, source)) || FORWARDED_TTLS.contains(&ttl);
        let home = match self.known(source) {
            Some(Knowledge { home: None, .. }) if came_in => None,
            Some(knowledge) => Some(*knowledge.home.get_or_insert(node)),
            None => Some(node),
        };
        let to = RoleQuestion::new(node, endpoints);
        if home == Some(node) {
            if let Some(knowledge) = self.known(to.host) {
                knowledge.is_written_to = true;
            }
            return PathPoint::Source;
        }
        if self.passing.len() < MAX_KNOWN {
            self.passing.insert(to);
        }
        PathPoint::Between
    }

    /// A packet came to `node`, from another one.
    pub fn on_incoming(&mut self, node: u32, endpoints: &Endpoints) {
        let source = Host::new(endpoints.family, endpoints.src);
        if self.came_in.len() < MAX_KNOWN && self.known(source).is_none_or(|known| known.home.is_none()) {
            self.came_in.insert((node, source));
        }
    }

    /// `node` claims an address.
    pub fn on_announced(&mut self, node: u32, family: Family, address: Address) {
        if let Some(knowledge) = self.known(Host::new(family, address)) {
            knowledge.home.get_or_insert(node);
        }
    }

    /// The answer, if it is known.
    pub fn answer(&mut self, question: &RoleQuestion) -> Option<PathPoint> {
        let knowledge = self.hosts.get_mut(&question.host)?;
        let is_last = match knowledge.home {
            Some(home) => home == question.node,
            None if self.passing.contains(question) => false,
            None if self.keeping.contains(question) => true,
            None => return None,
        };
        knowledge.is_reached |= is_last;
        Some(if is_last { PathPoint::Destination } else { PathPoint::Between })
    }

    /// No contradiction for long: take the node for the destination until there is one.
    pub fn settle(&mut self, question: &RoleQuestion) -> PathPoint {
        if let Some(point) = self.answer(question) {
            return point;
        }
        if let Some(knowledge) = self.known(question.host) {
            knowledge.is_reached = true;
        }
        if self.keeping.len() < MAX_KNOWN {
            self.keeping.insert(*question);
        }
        PathPoint::Destination
    }

    /// A caveat about addresses that no packet reaches.
    pub fn caveat(&self) -> Option<String> {
        let is_unreached =
            |host: Host, it: &Knowledge| it.is_written_to && !it.is_reached && !host.is_group();
        let unreached = self.hosts.iter().filter(|(host, it)| is_unreached(**host, it));
        let mut unreached: Vec<Host> = unreached.map(|(host, _)| *host).collect();
        unreached.sort_unstable();
        let named: Vec<String> = unreached.iter().take(NAMED).map(|host| host.text()).collect();
        let more = match unreached.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "no packet arrives at {}{more}: all were lost, or the trace leaves the node out",
                named.join(", ")
            )
        })
    }

    /// The state of an address; None beyond the bound on addresses.
    fn known(&mut self, host: Host) -> Option<&mut Knowledge> {
        if self.hosts.len() >= MAX_KNOWN {
            return self.hosts.get_mut(&host);
        }
        Some(self.hosts.entry(host).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(src: u128, dst: u128) -> Endpoints {
        Endpoints { src, dst, ..Endpoints::default() }
    }

    #[test]
    fn test_the_first_node_with_an_address_is_its_home() {
        let mut roles = NodeRoles::default();
        assert_eq!(roles.on_outgoing(0, &endpoints(10, 20), 64), PathPoint::Source);
        let at_router = RoleQuestion::new(1, &endpoints(10, 20));
        assert_eq!(roles.answer(&at_router), None);
        assert_eq!(roles.on_outgoing(1, &endpoints(10, 20), 64), PathPoint::Between);
        assert_eq!(roles.answer(&at_router), Some(PathPoint::Between));
        let at_end = RoleQuestion::new(2, &endpoints(10, 20));
        assert_eq!(roles.answer(&at_end), None);
        assert_eq!(roles.on_outgoing(2, &endpoints(20, 10), 64), PathPoint::Source);
        assert_eq!(roles.answer(&at_end), Some(PathPoint::Destination));
        assert_eq!(
            roles.caveat(),
            Some("no packet arrives at 0.0.0.10: all were lost, or the trace leaves the node out".into())
        );
    }

    #[test]
    fn test_a_node_taken_for_the_destination_is_found_out() {
        let mut roles = NodeRoles::default();
        roles.on_outgoing(0, &endpoints(10, 20), 64);
        let question = RoleQuestion::new(1, &endpoints(10, 20));
        assert_eq!(roles.settle(&question), PathPoint::Destination);
        assert_eq!(roles.answer(&question), Some(PathPoint::Destination));
        roles.on_outgoing(1, &endpoints(10, 20), 64);
        assert_eq!(roles.answer(&question), Some(PathPoint::Between));
    }

    #[test]
    fn test_a_node_that_sends_to_all_hears_others_that_do() {
        let all = u128::from(u32::MAX);
        let mut roles = NodeRoles::default();
        roles.on_outgoing(0, &endpoints(10, all), 64);
        roles.on_outgoing(1, &endpoints(11, all), 64);
        assert_eq!(roles.settle(&RoleQuestion::new(1, &endpoints(10, all))), PathPoint::Destination);
        assert_eq!(roles.settle(&RoleQuestion::new(0, &endpoints(11, all))), PathPoint::Destination);
        assert_eq!(roles.caveat(), None);
    }

    #[test]
    fn test_a_node_that_packets_came_to_is_not_their_home() {
        let mut roles = NodeRoles::default();
        roles.on_incoming(1, &endpoints(10, 20));
        assert_eq!(roles.on_outgoing(1, &endpoints(10, 20), 64), PathPoint::Between);
        assert_eq!(roles.on_outgoing(1, &endpoints(20, 10), 63), PathPoint::Between, "a router passed it on");
        assert_eq!(roles.on_outgoing(1, &endpoints(1, 10), 64), PathPoint::Source);
    }

    #[test]
    fn test_knowledge_is_bounded() {
        let mut roles = NodeRoles::default();
        for address in 0..2 * MAX_KNOWN as u128 {
            roles.on_outgoing(0, &endpoints(1, address), 64);
            roles.on_outgoing(1, &endpoints(1, address), 64);
            roles.settle(&RoleQuestion::new(2, &endpoints(1, address)));
            roles.on_incoming(3, &endpoints(2 * MAX_KNOWN as u128 + address, 1));
        }
        assert!(roles.hosts.len() <= MAX_KNOWN && roles.passing.len() <= MAX_KNOWN);
        assert!(roles.keeping.len() <= MAX_KNOWN && roles.came_in.len() <= MAX_KNOWN);
    }
}
