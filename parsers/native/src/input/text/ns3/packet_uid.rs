//! One number for a packet at all its hops, different from those of all other packets of its flow,
//! retransmissions included.
//!
//! ns-3 numbers IPv4 packets for each pair of addresses and protocol, retransmissions anew, with 16
//! bits: these are continued beyond 65,535, and together with the TCP sequence numbers they are the
//! identity. IPv6 packets have no number: those with equal printed fields (a TCP retransmission
//! without timestamps, datagrams without `SeqTsHeader`) are matched in order, sent to arrived or
//! dropped. Counts are then right, delays only while none is lost.

use hashbrown::HashMap;

use crate::packet::event::{Endpoints, Event, Family, Network, NodeLayer, Packet, PathPoint, Sighting};

/// The most pairs of addresses, and packets of IPv6.
const MAX_KNOWN: usize = 1 << 16;

/// The scope of one counter of IPv4 identifications.
type CounterScope = (u32, u32, u8);

/// Packets with equal fields.
#[derive(Clone, Copy, Debug)]
struct SimilarPackets {
    sent: u64,
    gone: u64,
    /// The layers at which sendings and arrivals are counted: a trace may show both at several.
    layers: [Option<NodeLayer>; 2],
}

#[derive(Debug, Default)]
pub struct PacketUids {
    counters: HashMap<CounterScope, u64>,
    alike: HashMap<u64, SimilarPackets>,
    has_lookalikes: bool,
}

impl PacketUids {
    /// The identity of a packet at a known point of its path.
    #[inline]
    pub fn of(&mut self, packet: &Packet, is_retry: bool) -> u64 {
        let network = &packet.network;
        match network.ip_id {
            Some(id) => mix(self.continued(&network.endpoints, id), network),
            None => self.in_order(packet, is_retry),
        }
    }

    /// The identification extended to 64 bits: the number nearest to the last one.
    fn continued(&mut self, endpoints: &Endpoints, id: u16) -> u64 {
        let numbered = (endpoints.src as u32, endpoints.dst as u32, endpoints.protocol);
        if self.counters.len() >= MAX_KNOWN && !self.counters.contains_key(&numbered) {
            return u64::from(id);
        }
        // Far from zero, so that a number slightly before the first does not become negative.
        let last = self.counters.entry(numbered).or_insert(1 << 32 | u64::from(id));
        let step = i64::from(id.wrapping_sub(*last as u16) as i16);
        let number = last.wrapping_add_signed(step);
        *last = number.max(*last);
        number
    }

    /// The index of a packet among those with equal fields.
    fn in_order(&mut self, packet: &Packet, is_retry: bool) -> u64 {
        let Some(sighting) = &packet.sighting else { return 0 };
        let key = mix(key_of(&packet.network.endpoints), &packet.network);
        if self.alike.len() >= MAX_KNOWN {
            // This is rare, and the oldest left the network long ago.
            self.alike.clear();
        }
        let alike = self.alike.entry(key).or_insert(SimilarPackets { sent: 0, gone: 0, layers: [None; 2] });
        let is_counted = |of: &mut Option<NodeLayer>| *of.get_or_insert(sighting.layer) == sighting.layer;
        let [sent_at, gone_at] = &mut alike.layers;
        let number = match (packet.event, sighting.point) {
            (Some(Event::Sent | Event::Enqueued), PathPoint::Source) => {
                alike.sent += u64::from(is_counted(sent_at) && !is_retry || alike.sent == 0);
                alike.sent
            }
            (Some(Event::Received), PathPoint::Destination) => {
                alike.gone = (alike.gone + u64::from(is_counted(gone_at))).min(alike.sent);
                alike.gone
            }
            (Some(Event::Dropped), _) => {
                alike.gone = (alike.gone + 1).min(alike.sent);
                alike.gone
            }
            _ => return Sighting::NO_IDENTITY,
        };
        self.has_lookalikes |= number > 1;
        key ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// A caveat about packets that cannot be distinguished.
    pub fn caveat(&self) -> Option<String> {
        self.has_lookalikes.then(|| {
            "IPv6 packets that look the same were matched in order: their delays are wrong where any was lost"
                .to_owned()
        })
    }
}

fn key_of(endpoints: &Endpoints) -> u64 {
    let Endpoints { src, dst, src_port, dst_port, .. } = *endpoints;
    debug_assert!(endpoints.family == Family::V6);
    let folded = src ^ dst.rotate_left(29);
    let ports = u64::from(src_port) << 16 | u64::from(dst_port);
    scramble((folded >> 64) as u64 ^ scramble(folded as u64 ^ ports))
}

/// Hash the fields that a packet keeps at all hops, from `start`.
fn mix(start: u64, network: &Network) -> u64 {
    let Some(tcp) = network.tcp() else {
        return scramble(start ^ scramble(network.sequence.map_or(0, |number| number.wrapping_add(1))));
    };
    let (sent, echoed) = tcp.options.timestamp.unwrap_or_default();
    let numbers = u64::from(tcp.seq) << 32 | u64::from(tcp.ack);
    let times = u64::from(sent) << 32 | u64::from(echoed);
    let payload = u64::from(network.payload_bytes.unwrap_or(0));
    let rest = payload << 32 | u64::from(tcp.flags.0) << 16 | u64::from(tcp.window);
    scramble(start ^ scramble(numbers ^ scramble(times ^ scramble(rest))))
}

/// Spread every bit over the whole word (the finisher of SplitMix64).
fn scramble(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::{Code, Transport};

    fn v4(id: u16) -> Packet {
        let mut packet = Packet::default();
        packet.network.ip_id = Some(id);
        packet
    }

    fn v6(event: Event, point: PathPoint) -> Packet {
        let mut packet = Packet { event: Some(event), ..Packet::default() };
        packet.sighting = Some(Sighting {
            layer: NodeLayer::Link,
            point,
            identity: 0,
            reason: Code::default(),
            agent: None,
        });
        packet.network.endpoints.family = Family::V6;
        packet.network.transport = Transport::Udp;
        packet
    }

    #[test]
    fn test_numbers_of_16_bits_are_continued() {
        let mut identities = PacketUids::default();
        let mut all: Vec<u64> = (0..200_000_u32).map(|n| identities.of(&v4(n as u16), false)).collect();
        // the last ones at the next hop
        let again: Vec<u64> = (190_000..200_000_u32).map(|n| identities.of(&v4(n as u16), false)).collect();
        assert_eq!(all[190_000..], again);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 200_000);
    }

    #[test]
    fn test_packets_without_number_are_matched_in_order() {
        let mut identities = PacketUids::default();
        let mut of = |event, point| identities.of(&v6(event, point), false);
        let sent: Vec<u64> = (0..3).map(|_| of(Event::Enqueued, PathPoint::Source)).collect();
        assert!(sent[0] != sent[1] && sent[1] != sent[2]);
        assert_eq!(of(Event::Received, PathPoint::Destination), sent[0]);
        assert_eq!(of(Event::Dropped, PathPoint::Between), sent[1]);
        assert_eq!(of(Event::Received, PathPoint::Destination), sent[2]);
        assert_eq!(of(Event::Received, PathPoint::Destination), sent[2]);
        assert!(identities.caveat().is_some());
    }

    #[test]
    fn test_a_repetition_on_the_air_is_the_same_packet() {
        let mut identities = PacketUids::default();
        let packet = v6(Event::Sent, PathPoint::Source);
        let first = identities.of(&packet, false);
        assert_eq!(identities.of(&packet, true), first);
        assert_ne!(identities.of(&packet, false), first);
    }
}
