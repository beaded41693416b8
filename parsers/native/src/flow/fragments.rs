//! Fragments after the first have no ports: they find their flow by the datagram's identification.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::Found;
use crate::packet::encapsulation::Lane;
use crate::packet::event::{Endpoints, Family, Fragment, Network, Packet, Tcp, Transport};
use crate::packet::tunnel::OuterFragment;

/// Limit of datagrams with further fragments expected. A first fragment older than this many others
/// lost the rest, or the capture is hostile.
const MAX_DATAGRAMS: usize = 4_096;
/// Limit of fragments that wait for their first one.
const MAX_EARLY: usize = 1_024;
/// Time that a fragment waits for its first one (RFC 1122 section 3.3.2).
const MAX_WAIT_NS: i64 = 60_000_000_000;

/// RFC 791: addresses, protocol and identification together identify a datagram; the same addresses may be in
/// several tunnels.
type DatagramKey = (Family, u8, u128, u128, u32, Lane);

/// Facts of the first fragment that later ones need.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct First {
    found: Found,
    /// For TCP, the sequence number of the datagram's first byte.
    seq_of_first_byte: Option<u32>,
    inside: Option<InnerHeader>,
}

/// Of a packet in a tunnel whose outer packet is in fragments, what identifies it: the outer header, which is all that
/// later fragments have, is that of another packet.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct InnerHeader {
    lane: Lane,
    ip_id: Option<u16>,
    ttl: u8,
    /// Whether the first fragment repeats a packet that was captured at another place.
    is_copy: bool,
}

/// The flow of a later fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub found: Found,
    /// Whether the packet that it is a part of was counted at another place.
    pub is_copy: bool,
}

#[derive(Default, Serialize, Deserialize)]
pub struct Fragments {
    datagrams: HashMap<DatagramKey, First>,
    order: VecDeque<DatagramKey>,
    /// Fragments that came before their first one, in order.
    #[serde(skip)] // forgotten at the end of a file
    early: VecDeque<(DatagramKey, Packet)>,
}

impl Fragments {
    /// The flows of datagrams whose later fragments may come.
    pub fn flows(&self) -> impl Iterator<Item = u32> {
        self.datagrams.values().map(|first| first.found.flow)
    }

    /// Remember a first fragment, whose transport header belongs to flow `found`; or that of the packet `outer`
    /// around it, and whether it `is_copy` of what was captured at another place.
    pub fn remember(
        &mut self,
        network: &Network,
        outer: Option<&OuterFragment>,
        found: Found,
        is_copy: bool,
    ) {
        let Some(key) = first_key(network, outer) else {
            return;
        };
        let before = u32::from(network.header_bytes) + outer.map_or(0, |outer| outer.before);
        let is_tcp = network.transport == Transport::Tcp;
        let seq_of_first_byte = is_tcp.then(|| network.tcp.seq.wrapping_sub(before));
        // A second capture of the outer fragments says nothing of the first.
        let is_copy =
            self.datagrams.get(&key).and_then(|first| first.inside).map_or(is_copy, |inside| inside.is_copy);
        let &Network { lane, ip_id, ttl, .. } = network;
        let inside = outer.map(|_| InnerHeader { lane, ip_id, ttl, is_copy });
        if self.datagrams.insert(key, First { found, seq_of_first_byte, inside }).is_some() {
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
    pub fn take_early(&mut self, first: &Packet, outer: Option<&OuterFragment>) -> Vec<Packet> {
        let mut found = Vec::new();
        if let Some(wanted) = first_key(&first.network, outer).filter(|_| !self.early.is_empty()) {
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
    pub fn resolve(&self, network: &mut Network) -> Option<Resolved> {
        let first = self.datagrams.get(&key_of(network)?)?;
        if let Some(inside) = first.inside {
            (network.lane, network.ip_id, network.ttl) = (inside.lane, inside.ip_id, inside.ttl);
        }
        if let Some(seq_of_first_byte) = first.seq_of_first_byte {
            let offset = network.fragment.map_or(0, |fragment| fragment.offset);
            network.transport = Transport::Tcp;
            network.tcp = Tcp {
                seq: seq_of_first_byte.wrapping_add(offset),
                // A window of 0 would close the one that was announced.
                window: u16::MAX,
                ..Tcp::default()
            };
        }
        Some(Resolved { found: first.found, is_copy: first.inside.is_some_and(|inside| inside.is_copy) })
    }
}

fn key_of(network: &Network) -> Option<DatagramKey> {
    Some(datagram_key(&network.endpoints, network.fragment?, network.lane))
}

/// The key of the datagram whose first fragment `network` is, or of the one around it.
fn first_key(network: &Network, outer: Option<&OuterFragment>) -> Option<DatagramKey> {
    match outer {
        Some(outer) => Some(datagram_key(&outer.endpoints, outer.fragment, outer.lane)),
        None => key_of(network),
    }
}

fn datagram_key(ends: &Endpoints, fragment: Fragment, lane: Lane) -> DatagramKey {
    (ends.family, ends.protocol, ends.src, ends.dst, fragment.id, lane)
}
