//! Fragments after the first have no ports: they find their flow by the datagram's identification.

use std::collections::{HashMap, VecDeque};

use super::Found;
use crate::packet::event::{Endpoints, Family, Network, Packet, Tcp, Transport};

/// Limit of datagrams with further fragments expected. A first fragment older than this many others
/// lost the rest, or the capture is hostile.
const MAX_DATAGRAMS: usize = 4_096;
/// Limit of fragments that wait for their first one.
const MAX_EARLY: usize = 1_024;
/// Time that a fragment waits for its first one (RFC 1122 section 3.3.2).
const MAX_WAIT_NS: i64 = 60_000_000_000;

/// RFC 791: addresses, protocol and identification together identify a datagram.
type DatagramKey = (Family, u8, u128, u128, u32);

/// Facts of the first fragment that later ones need.
#[derive(Clone, Copy)]
struct First {
    found: Found,
    /// For TCP, the sequence number of the datagram's first byte.
    seq_of_first_byte: u32,
}

#[derive(Default)]
pub struct Fragments {
    datagrams: HashMap<DatagramKey, First>,
    order: VecDeque<DatagramKey>,
    /// Fragments that came before their first one, in order.
    early: VecDeque<(DatagramKey, Packet)>,
}

impl Fragments {
    /// Remember a first fragment, whose transport header belongs to flow `found`.
    pub fn remember(&mut self, network: &Network, found: Found) {
        let Some(key) = key_of(network) else {
            return;
        };
        let seq_of_first_byte = match network.transport {
            Transport::Tcp => network.tcp.seq.wrapping_sub(u32::from(network.header_bytes)),
            _ => 0,
        };
        if self.datagrams.insert(key, First { found, seq_of_first_byte }).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MAX_DATAGRAMS
            && let Some(oldest) = self.order.pop_front()
        {
            self.datagrams.remove(&oldest);
        }
    }

    /// Keep a later fragment whose first one has not come yet.
    pub fn keep_early(&mut self, packet: &Packet) {
        let Some(key) = key_of(&packet.network) else { return };
        if self.early.len() >= MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back((key, *packet));
    }

    /// Take the later fragments that came before `first`.
    pub fn take_early(&mut self, first: &Packet) -> Vec<Packet> {
        let mut found = Vec::new();
        if let Some(wanted) = key_of(&first.network).filter(|_| !self.early.is_empty()) {
            self.early.retain(|(key, packet)| {
                let is_wanted = *key == wanted;
                if is_wanted && first.time_ns.saturating_sub(packet.time_ns) <= MAX_WAIT_NS {
                    found.push(*packet);
                }
                !is_wanted
            });
        }
        found
    }

    /// Forget fragments that still wait, at the end of a source.
    pub fn forget_early(&mut self) {
        self.early.clear();
    }

    /// The flow of a later fragment, and for TCP a header with the sequence number of its bytes.
    pub fn resolve(&self, network: &mut Network) -> Option<Found> {
        let first = self.datagrams.get(&key_of(network)?)?;
        if network.endpoints.protocol == 6 {
            let offset = network.fragment.map_or(0, |fragment| fragment.offset);
            network.transport = Transport::Tcp;
            network.tcp = Tcp {
                seq: first.seq_of_first_byte.wrapping_add(offset),
                // A window of 0 would count as announced.
                window: u16::MAX,
                ..Tcp::default()
            };
        }
        Some(first.found)
    }
}

fn key_of(network: &Network) -> Option<DatagramKey> {
    let Endpoints { family, protocol, src, dst, .. } = network.endpoints;
    Some((family, protocol, src, dst, network.fragment?.id))
}
