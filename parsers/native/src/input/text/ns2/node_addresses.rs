//! Which node has which address.
//!
//! In most simulations both are one number. With hierarchical addresses they differ, and no line
//! maps one to the other: the mapping is learnt from events that only happen at the ends of a path.

use std::collections::{HashMap, HashSet};

use super::line_packet::LinePacket;
use crate::packet::event::{Event, NodeLayer};

/// The most addresses, and nodes with a radio.
const MAX_KNOWN: usize = 1 << 16;
/// Addresses from here on belong to no node: broadcast and multicast.
const FIRST_GROUP: u32 = 0x7fff_ffff;
/// Addresses from here on have a domain or a cluster.
const FIRST_LONG: u32 = 1 << 11;

/// Nodes and their addresses, as far as known.
#[derive(Debug, Default)]
pub struct NodeAddresses {
    nodes: HashMap<u32, u32>,
    /// The first address found at each node.
    first_addresses: HashMap<u32, u32>,
    /// Nodes that seem to have several addresses, or send what others sent before: packets come to
    /// them from stations whose lines the trace lacks.
    gateways: HashSet<u32>,
    /// Nodes whose packets may leave by radio.
    radios: HashSet<u32>,
    /// The newest packet seen so far: numbers are given in order.
    newest: Option<u64>,
    /// Node and packet of the last line, if it was an arrival over a link.
    arrived: Option<(u32, u64)>,
    is_hierarchical: bool,
}

impl NodeAddresses {
    /// Whether addresses differ from the numbers of their nodes.
    #[inline(always)]
    pub fn is_hierarchical(&self) -> bool {
        self.is_hierarchical
    }

    /// Whether `address` is at `node`; None if unknown.
    #[inline(always)]
    pub fn is_at(&self, address: u32, node: u32) -> Option<bool> {
        if !self.is_hierarchical {
            return Some(address == node);
        }
        self.nodes.get(&address).map(|&known| known == node)
    }

    /// Addresses found at nodes that only forward their packets.
    pub fn behind_gateways(&self) -> Vec<u32> {
        let after = self.nodes.iter().filter(|(_, node)| self.gateways.contains(node));
        after.map(|(&address, _)| address).collect()
    }

    /// Whether packets may leave `node` by radio.
    pub fn has_radio(&self, node: u32) -> bool {
        self.radios.contains(&node)
    }

    /// Learn from a line before it is evaluated. Return an address whose node became known.
    #[inline(always)]
    pub fn learn(&mut self, seen: &LinePacket) -> Option<u32> {
        let (src, dst) = seen.ends?;
        let is_new = self.on_packet(seen.uid);
        if !self.is_hierarchical {
            self.is_hierarchical =
                src.is_dotted || dst.is_dotted || is_elsewhere(seen, src.address, dst.address);
        }
        if self.is_hierarchical {
            self.learn_node_address(seen, src.address, dst.address, is_new)
        } else {
            None
        }
    }

    /// Take the number of a packet: all there is to learn from one at an intermediate node while
    /// addresses are numbers of nodes. Return whether it is a new packet.
    #[inline(always)]
    pub fn on_packet(&mut self, uid: u64) -> bool {
        let is_new = self.newest.is_none_or(|newest| uid > newest);
        if is_new {
            self.newest = Some(uid);
        }
        is_new
    }

    #[inline(never)]
    fn learn_node_address(&mut self, seen: &LinePacket, src: u32, dst: u32, is_new: bool) -> Option<u32> {
        let arrived = self.arrived.take();
        match (seen.layer, seen.event) {
            (NodeLayer::Agent, Event::Sent) => self.set(src, seen.node),
            (NodeLayer::Agent, Event::Received) if dst < FIRST_GROUP => self.set(dst, seen.node),
            // Nothing shows a packet before the queue of its source's link.
            (NodeLayer::Link, Event::Enqueued) if is_new => self.set_sender(src, seen.node),
            (NodeLayer::Link, Event::Enqueued) => {
                let came_by_link = arrived == Some((seen.node, seen.uid));
                match self.is_at(src, seen.node) {
                    Some(false) if !came_by_link => self.add_radio(seen.node),
                    // Its sender numbered it before others: it was on its way.
                    Some(true) if !came_by_link => self.add_gateway(seen.node),
                    _ => {}
                }
                None
            }
            (NodeLayer::Link, Event::Received) => {
                self.arrived = Some((seen.node, seen.uid));
                None
            }
            (NodeLayer::Link, _) => None,
            _ => {
                self.add_radio(seen.node);
                None
            }
        }
    }

    /// Assume that `address` is at `node`, as no line contradicts it.
    pub fn conclude(&mut self, address: u32, node: u32) {
        self.set(address, node);
    }

    /// The same for a packet that begins its way at `node`, as far as the trace shows: a node has one
    /// address.
    fn set_sender(&mut self, address: u32, node: u32) -> Option<u32> {
        if self.first_addresses.len() < MAX_KNOWN
            && *self.first_addresses.entry(node).or_insert(address) != address
        {
            self.add_gateway(node);
        }
        self.set(address, node)
    }

    /// Return the address if its node was unknown.
    fn set(&mut self, address: u32, node: u32) -> Option<u32> {
        if self.nodes.get(&address) == Some(&node) {
            return None;
        }
        if self.nodes.len() < MAX_KNOWN || self.nodes.contains_key(&address) {
            self.nodes.insert(address, node);
            return Some(address);
        }
        None
    }

    fn add_gateway(&mut self, node: u32) {
        if self.gateways.len() < MAX_KNOWN {
            self.gateways.insert(node);
        }
    }

    fn add_radio(&mut self, node: u32) {
        if self.radios.len() < MAX_KNOWN {
            self.radios.insert(node);
        }
    }
}

/// Addresses whose packets are shown where they are sent.
#[derive(Debug, Default)]
pub struct ShownSources {
    known: HashSet<u32>,
    /// The last one found, of which many lines in a row may be.
    last: Option<u32>,
}

impl ShownSources {
    /// Note that a packet is seen at its source.
    #[inline(always)]
    pub fn add(&mut self, seen: &LinePacket) {
        let source = seen.ends.map(|(src, _)| src.address);
        if self.last != source
            && let Some(source) = source
            && (self.known.len() < MAX_KNOWN || self.known.contains(&source))
        {
            self.known.insert(source);
            self.last = Some(source);
        }
    }

    /// Whether the source of a packet is among them.
    #[inline(always)]
    pub fn has(&mut self, seen: &LinePacket) -> bool {
        let Some((source, _)) = seen.ends else { return false };
        if self.last != Some(source.address) && self.known.contains(&source.address) {
            self.last = Some(source.address);
        }
        self.last == Some(source.address)
    }
}

/// Whether an agent's address differs from its node's number, as only hierarchical ones do.
#[inline(always)]
fn is_elsewhere(seen: &LinePacket, src: u32, dst: u32) -> bool {
    let own = match (seen.layer, seen.event) {
        (NodeLayer::Agent, Event::Sent) => src,
        (NodeLayer::Agent, Event::Received) => dst,
        _ => return false,
    };
    own != seen.node && (FIRST_LONG..FIRST_GROUP).contains(&own)
}
