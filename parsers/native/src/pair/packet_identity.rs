//! The identity of a packet at different points of its path.
//!
//! Fields that routers change (TTL, checksums, ECN, the link layer) are excluded. A TCP segment is
//! identified by its start and not by its length: with segmentation offload, one segment at one
//! point is several at the other.

use std::hash::{Hash, Hasher};

use crate::packet::event::{Network, TcpFlags, Transport};
use crate::packet::extras::{PacketExtras, PayloadHead};
use crate::packet::key::FlowKey;

/// The most pieces of one segment: 64 kB at the smallest MSS of IPv4 (RFC 9293 section 3.7.1), and
/// no more for the length in a hostile header.
const MOST_PIECES: u32 = 128;

/// A number that is the same for a packet at both captures, and nearly always another for another
/// packet. `head` is the beginning of a datagram's payload. None if too little of the packet was
/// captured.
pub fn identity(network: &Network, head: PayloadHead) -> Option<u64> {
    piece_identity(network, head, 0, 0)
}

/// The identity of an ICMP error, which belongs to the flow of the packet that it quotes, but in
/// the other direction. `head` is the beginning of the quoted transport header.
pub fn error_identity(network: &Network, head: PayloadHead) -> u64 {
    let mut hasher = StableHasher::default();
    (FlowKey::of(&network.endpoints), network.ip_id, head.bytes()).hash(&mut hasher);
    hasher.finish()
}

/// The beginning of a datagram's payload, or of the transport header that an ICMP error quotes;
/// empty for other packets.
pub fn payload_head(network: &Network, extras: &PacketExtras) -> PayloadHead {
    match network.transport {
        Transport::Udp | Transport::IcmpError => extras.head(network.head),
        _ => PayloadHead::default(),
    }
}

/// A TCP segment or datagram as it was on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub identity: u64,
    /// Its part of the payload.
    pub payload_bytes: u32,
}

/// The packets on the wire of `network`: several if it is a TCP segment of more than `wire_payload`
/// bytes, else itself. None if too little of it was captured.
pub fn pieces(
    network: &Network,
    head: PayloadHead,
    wire_payload: Option<u32>,
) -> impl Iterator<Item = Piece> {
    let payload = network.payload_bytes.unwrap_or(0);
    let is_tcp = network.transport == Transport::Tcp;
    let step = wire_payload.filter(|_| is_tcp).unwrap_or(payload).max(payload / MOST_PIECES).max(1);
    let network = *network;
    (0..payload.div_ceil(step).max(1)).filter_map(move |number| {
        let offset = number.saturating_mul(step);
        let payload_bytes = payload.saturating_sub(offset).min(step);
        Some(Piece { identity: piece_identity(&network, head, number, offset)?, payload_bytes })
    })
}

/// The identity of the piece that begins `offset` bytes into the payload, after `number` others.
fn piece_identity(network: &Network, head: PayloadHead, number: u32, offset: u32) -> Option<u64> {
    let payload = network.payload_bytes?;
    let (key, side) = FlowKey::of(&network.endpoints);
    let mut hasher = StableHasher::default();
    (key, side as u8).hash(&mut hasher);
    match network.transport {
        Transport::Tcp => {
            let tcp = &network.tcp;
            // Offload numbers the packets that it cuts consecutively; for a host that sends 0 they
            // all have 0.
            let ip_id = network.ip_id.map(|id| if id == 0 { 0 } else { id.wrapping_add(number as u16) });
            (ip_id, tcp.seq.wrapping_add(offset), tcp.ack, tcp.options.timestamp).hash(&mut hasher);
            if payload == 0 {
                // Of a segment in pieces, only the last has FIN and PSH.
                (tcp.flags.0 & (TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST), tcp.window).hash(&mut hasher);
            } else {
                1_u8.hash(&mut hasher);
            }
        }
        Transport::Udp => (network.ip_id, payload, head.bytes()).hash(&mut hasher),
        // DCCP numbers every packet (RFC 4340 section 7).
        Transport::Dccp => network.sequence.hash(&mut hasher),
        Transport::LaterFragment => {
            network.fragment.map(|fragment| (fragment.id, fragment.offset)).hash(&mut hasher);
        }
        _ => return None,
    }
    Some(hasher.finish())
}

/// A hash without a secret: both captures, and every run, must choose the same packets. So it is
/// predictable, however long it is, and a short one suffices: each word is multiplied in, and the
/// upper half of the product folded into the lower one.
#[derive(Debug, Default)]
struct StableHasher(u64);

/// Digits of the golden ratio: odd, with about as many ones as zeros.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Digits of pi, so that a word 0 changes the state.
const SEED: u64 = 0x243f_6a88_85a3_08d3;

impl Hasher for StableHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            self.write_u64(part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ SEED) * u128::from(FACTOR);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mut last = Self(self.0);
        last.write_u64(1);
        last.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::{Endpoints, Tcp};

    fn segment(seq: u32, ip_id: u16, payload_bytes: u32) -> Network {
        Network {
            endpoints: Endpoints {
                protocol: 6,
                src: 1,
                dst: 2,
                src_port: 7,
                dst_port: 8,
                ..Default::default()
            },
            has_ports: true,
            ip_id: Some(ip_id),
            transport: Transport::Tcp,
            tcp: Tcp { seq, ..Tcp::default() },
            payload_bytes: Some(payload_bytes),
            ..Network::default()
        }
    }

    fn all(network: &Network, wire_payload: Option<u32>) -> Vec<Piece> {
        pieces(network, PayloadHead::default(), wire_payload).collect()
    }

    #[test]
    fn test_a_segment_before_offload_is_the_packets_behind_it() {
        let whole = all(&segment(u32::MAX - 100, 65_535, 3_000), Some(1_448));
        let cut = [(u32::MAX - 100, 65_535, 1_448), (1_347, 0, 1_448), (2_795, 1, 104)];
        let wire: Vec<_> =
            cut.iter().flat_map(|&(seq, id, n)| all(&segment(seq, id, n), Some(1_448))).collect();
        assert_eq!(whole[0], wire[0]);
        assert_eq!(whole[2], wire[2]);
        assert_eq!(whole.iter().map(|piece| piece.payload_bytes).sum::<u32>(), 3_000);
    }

    #[test]
    fn test_what_routers_change_does_not_count_and_a_retransmission_does() {
        let sent = segment(1, 1, 100);
        let arrived = Network { ttl: 3, ecn: 3, ..sent };
        assert_eq!(identity(&sent, PayloadHead::default()), identity(&arrived, PayloadHead::default()));
        assert_ne!(
            identity(&sent, PayloadHead::default()),
            identity(&segment(1, 2, 100), PayloadHead::default())
        );
    }

    #[test]
    fn test_a_header_that_was_cut_has_no_identity() {
        let cut = Network { payload_bytes: None, ..segment(1, 1, 0) };
        assert_eq!(identity(&cut, PayloadHead::default()), None);
        let unread = Network { transport: Transport::Unread, ..segment(1, 1, 0) };
        assert_eq!(all(&unread, None), []);
    }

    #[test]
    fn test_identities_are_spread_evenly_and_none_is_that_of_another_packet() {
        // A million packets that differ in the lowest bits of a few fields, as those of captures do.
        let mut seen = std::collections::HashSet::new();
        let mut below_half = 0;
        for port in 0..16 {
            for at in 0..65_536_u32 {
                let mut packet = segment(at / 16 * 1_448, at as u16, 1_448);
                packet.endpoints.src_port = port;
                let identity = identity(&packet, PayloadHead::default()).unwrap();
                below_half += u32::from(identity >> 63 == 0);
                assert!(seen.insert(identity));
            }
        }
        let expected = 16 * 65_536 / 2;
        assert!(below_half.abs_diff(expected) < 4 * 512, "{below_half} of {expected}");
    }

    #[test]
    fn test_no_length_makes_many_pieces() {
        assert!(all(&segment(1, 1, u32::MAX), Some(1)).len() <= MOST_PIECES as usize + 1);
    }
}
