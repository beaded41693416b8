//! Sequence numbers as on the wire, from those that tcpdump printed.
//!
//! tcpdump remembers the numbers of the first packet with an acknowledgement of each connection,
//! and again with each SYN that has one. It prints that packet with the numbers of the wire; later
//! ones count from the remembered numbers: the packet's own number for the side that sent it, and
//! one below the acknowledged number for the other side. With a SYN remembered, data begin at 1.
//! Packets without acknowledgement always have the numbers of the wire, and with `-S` all have.
//!
//! No line shows whether its numbers are relative. Of the two readings, one is usually near the
//! connection's position in the stream and the other far away: that decides for the whole text.
//! Until then, the nearer one counts.

use std::mem;

use hashbrown::HashMap;

use super::tcp::Header;
use crate::packet::event::TcpFlags;
use crate::packet::key::{FlowKey, Side};
use crate::packet::seq::SeqNumber;

/// Connections in each of two generations: when the younger one is full, the older one is
/// forgotten.
const GENERATION: usize = 1 << 15;

/// A reading at most this far from the expected number is near.
const NEAR: u64 = 1 << 26;
/// A reading at least this far from it is not.
const FAR: u64 = 1 << 28;

/// The state of a connection, by [`Side`].
#[derive(Clone, Copy, Debug, Default)]
struct Conversation {
    /// The base of relative numbers; None before the first packet with an acknowledgement.
    bases: Option<[u32; 2]>,
    /// One above the highest number sent, or acknowledged before any was sent.
    next: [Option<u32>; 2],
}

/// Numbers of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// None if unknown: a bare acknowledgement is printed without.
    pub seq: Option<u32>,
    /// 0 without the flag.
    pub ack: u32,
}

impl Numbers {
    /// Offset of the printed acknowledgement and SACK blocks from the wire's.
    #[inline]
    pub fn ack_offset(self, header: &Header) -> u32 {
        self.ack.wrapping_sub(header.ack.unwrap_or(self.ack))
    }
}

/// The place of a connection; valid until its generation is forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationIndex {
    /// Counted from 1, so that the default is no place.
    generation: u64,
    at: usize,
}

/// Connections and where they are in the list.
#[derive(Debug, Default)]
struct Generation {
    places: HashMap<FlowKey, usize>,
    list: Vec<Conversation>,
}

#[derive(Debug, Default)]
pub struct Conversations {
    younger: Generation,
    older: Generation,
    /// Generations forgotten so far.
    forgotten: u64,
    /// Whether all numbers of the text are those of the wire; None until that is clear.
    is_absolute: Option<bool>,
}

impl Conversations {
    /// The connection at `place`, if that is still valid.
    #[inline(always)]
    pub fn still(&mut self, place: ConversationIndex) -> Option<ConversationIndex> {
        if self.younger.list.len() >= GENERATION {
            self.older = mem::take(&mut self.younger);
            self.forgotten += 1;
        }
        Some(place).filter(|place| place.generation == self.forgotten + 1)
    }

    /// The place of the connection `key`.
    #[inline(never)]
    pub fn place(&mut self, key: FlowKey) -> ConversationIndex {
        // Makes room if needed.
        self.still(ConversationIndex::default());
        let Self { younger, older, .. } = self;
        let Generation { places, list } = younger;
        let at = *places.entry(key).or_insert_with(|| {
            let known = older.places.remove(&key).and_then(|at| older.list.get(at));
            list.push(known.copied().unwrap_or_default());
            list.len() - 1
        });
        ConversationIndex { generation: self.forgotten + 1, at }
    }

    /// The numbers of a packet that `side` sent on the connection at `place`, which must be valid.
    #[inline]
    pub fn resolve(&mut self, place: ConversationIndex, side: Side, header: &Header) -> Numbers {
        let (mine, theirs) = (side as usize, side.other() as usize);
        let Self { younger, is_absolute, .. } = self;
        let conversation = &mut younger.list[place.at];
        let (seq, ack) = (header.seq, header.ack.unwrap_or(0));
        let numbers = match conversation.bases {
            Some(bases) if conversation.is_relative(bases, side, header, is_absolute) => Numbers {
                seq: seq.map(|seq| seq.wrapping_add(bases[mine])).or(conversation.next[mine]),
                ack: ack.wrapping_add(bases[theirs]),
            },
            _ => {
                let seq = seq.or(conversation.next[mine]);
                if header.flags.has(TcpFlags::ACK) {
                    let mut bases = [0; 2];
                    bases[mine] = seq.unwrap_or(0);
                    bases[theirs] = ack.wrapping_sub(1);
                    conversation.bases = Some(bases);
                }
                Numbers { seq, ack }
            }
        };
        conversation.advance(side, header, numbers);
        numbers
    }
}

impl Conversation {
    /// Whether the numbers of a packet count from `bases`. `is_absolute` is the text's verdict so
    /// far.
    #[inline(always)]
    fn is_relative(
        &self,
        bases: [u32; 2],
        side: Side,
        header: &Header,
        is_absolute: &mut Option<bool>,
    ) -> bool {
        let flags = header.flags;
        if !flags.has(TcpFlags::ACK) || flags.has(TcpFlags::SYN) {
            return false;
        }
        if let Some(so_far) = *is_absolute {
            let offsets = if so_far { [0; 2] } else { bases };
            // The other reading is not clear either.
            if self.distance(offsets, side, header) <= NEAR {
                return !so_far;
            }
        }
        let absolute = self.distance([0; 2], side, header);
        let relative = self.distance(bases, side, header);
        let (near, far) = (absolute.min(relative), absolute.max(relative));
        let is_clear = near <= NEAR && far >= FAR;
        // Small numbers are all near each other; of these the first exact match decides.
        let is_exact = is_absolute.is_none() && near == 0 && far > 0;
        if is_clear || is_exact {
            *is_absolute = Some(absolute < relative);
        }
        !is_absolute.unwrap_or(absolute < relative)
    }

    /// Distance of a packet's numbers from the expected ones if they count from `offsets`.
    #[inline(always)]
    fn distance(&self, offsets: [u32; 2], side: Side, header: &Header) -> u64 {
        let of = |side: usize, printed: Option<u32>| match (printed, self.next[side]) {
            (Some(printed), Some(expected)) => distance(printed.wrapping_add(offsets[side]), expected),
            _ => 0,
        };
        of(side as usize, header.seq) + of(side.other() as usize, header.ack)
    }

    /// Update the position of a direction by a packet of `side`.
    #[inline(always)]
    fn advance(&mut self, side: Side, header: &Header, numbers: Numbers) {
        let flags = header.flags;
        let is_syn = flags.has(TcpFlags::SYN);
        if let Some(seq) = numbers.seq
            && !flags.has(TcpFlags::RST)
        {
            let control = u32::from(is_syn) + u32::from(flags.has(TcpFlags::FIN));
            let end = seq.wrapping_add(header.payload.unwrap_or(0)).wrapping_add(control);
            let next = &mut self.next[side as usize];
            let is_other_connection = is_syn && *next != Some(end);
            if is_other_connection || next.is_none_or(|next| SeqNumber(end).since(SeqNumber(next)) > 0) {
                *next = Some(end);
            }
            if is_other_connection && !flags.has(TcpFlags::ACK) {
                self.next[side.other() as usize] = None;
            }
        }
        if flags.has(TcpFlags::ACK) {
            self.next[side.other() as usize].get_or_insert(numbers.ack);
        }
    }
}

#[inline]
fn distance(number: u32, expected: u32) -> u64 {
    u64::from(SeqNumber(number).since(SeqNumber(expected)).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::Endpoints;
    use proptest::prelude::*;

    /// A packet of a connection with the numbers of the wire.
    #[derive(Clone, Copy, Debug)]
    struct AbsoluteNumbers {
        from: Side,
        flags: u16,
        seq: u32,
        ack: u32,
        payload: u32,
    }

    const ACK: u16 = TcpFlags::ACK;
    const SYN: u16 = TcpFlags::SYN;

    fn key_of(port: u16) -> FlowKey {
        let endpoints = Endpoints { src: 1, dst: 2, src_port: port, dst_port: 80, ..Endpoints::default() };
        FlowKey::of(&endpoints).0
    }

    fn resolve(conversations: &mut Conversations, key: FlowKey, side: Side, header: &Header) -> Numbers {
        let place = conversations.place(key);
        conversations.resolve(place, side, header)
    }

    /// tcpdump's output for the packets of one connection, relative or with -S.
    fn printed(packets: &[AbsoluteNumbers], is_absolute: bool) -> Vec<Header> {
        let mut bases: Option<[u32; 2]> = None;
        packets
            .iter()
            .map(|packet| {
                let (mine, theirs) = (packet.from as usize, packet.from.other() as usize);
                let flags = TcpFlags(packet.flags);
                let (mut seq, mut ack) = (packet.seq, packet.ack);
                match bases {
                    _ if is_absolute || !flags.has(ACK) => {}
                    Some(bases) if !flags.has(SYN) => {
                        seq = seq.wrapping_sub(bases[mine]);
                        ack = ack.wrapping_sub(bases[theirs]);
                    }
                    _ => {
                        let mut first = [0; 2];
                        first[mine] = seq;
                        first[theirs] = ack.wrapping_sub(1);
                        bases = Some(first);
                    }
                }
                let has_number = packet.payload > 0 || flags.has(SYN | TcpFlags::FIN | TcpFlags::RST);
                Header {
                    is_whole: true,
                    seq: has_number.then_some(seq),
                    ack: flags.has(ACK).then_some(ack),
                    flags,
                    payload: Some(packet.payload),
                    ..Header::default()
                }
            })
            .collect()
    }

    /// Opening, data both ways, a retransmission, and the end.
    fn connection(client: u32, server: u32) -> Vec<AbsoluteNumbers> {
        let (c, s) = (Side::Low, Side::High);
        let at = |from, flags, seq: u32, ack: u32, payload| {
            let (own, other) = if from == c { (client, server) } else { (server, client) };
            let ack = if flags & ACK == 0 { 0 } else { other.wrapping_add(ack) };
            AbsoluteNumbers { from, flags, seq: own.wrapping_add(seq), ack, payload }
        };
        vec![
            at(c, SYN, 0, 0, 0),
            at(s, SYN | ACK, 0, 1, 0),
            at(c, ACK, 1, 1, 0),
            at(c, ACK, 1, 1, 1448),
            at(c, ACK, 1449, 1, 1448),
            at(c, ACK, 2897, 1, 1448),
            at(s, ACK, 1, 1449, 0),
            at(s, ACK, 1, 1449, 0),
            at(c, ACK, 1449, 1, 1448),
            at(s, ACK, 1, 4345, 20),
            at(c, ACK, 4345, 21, 0),
            at(c, ACK | TcpFlags::FIN, 4345, 21, 0),
            at(s, ACK | TcpFlags::FIN, 21, 4346, 0),
            at(c, ACK, 4346, 22, 0),
        ]
    }

    /// Every known number must be the one of the wire.
    fn check(packets: &[AbsoluteNumbers], is_absolute: bool, conversations: &mut Conversations) -> usize {
        let mut known = 0;
        for (packet, header) in packets.iter().zip(printed(packets, is_absolute)) {
            let numbers = resolve(conversations, key_of(5), packet.from, &header);
            if let Some(seq) = numbers.seq {
                known += 1;
                assert_eq!((seq, numbers.ack), (packet.seq, packet.ack), "{packet:?} {header:?}");
            }
        }
        known
    }

    proptest! {
        #[test]
        fn test_relative_and_absolute_numbers_are_those_of_the_wire(client: u32, server: u32) {
            let packets = connection(client, server);
            for is_absolute in [false, true] {
                let known = check(&packets, is_absolute, &mut Conversations::default());
                prop_assert_eq!(known, packets.len());
            }
        }

        #[test]
        fn test_small_numbers_as_simulators_have_them(client in 0_u32..20_000, server in 0_u32..20_000) {
            let packets = connection(client, server);
            for is_absolute in [false, true] {
                check(&packets, is_absolute, &mut Conversations::default());
            }
        }

        #[test]
        fn test_a_connection_seen_from_its_middle(client: u32, server: u32, start in 3_usize..6) {
            // From the first data on: the acknowledgements reveal the other side's numbers.
            let packets = &connection(client, server)[start..];
            for is_absolute in [false, true] {
                let known = check(packets, is_absolute, &mut Conversations::default());
                prop_assert_eq!(known, packets.len());
            }
        }

        #[test]
        fn test_any_headers_are_taken(
            headers in proptest::collection::vec(
                (any::<bool>(), any::<Option<u32>>(), any::<Option<u32>>(), 0_u16..512, any::<Option<u32>>()),
                0..50,
            ),
        ) {
            let mut conversations = Conversations::default();
            for (is_low, seq, ack, flags, payload) in headers {
                let side = if is_low { Side::Low } else { Side::High };
                let header = Header { seq, ack, flags: TcpFlags(flags), payload, ..Header::default() };
                resolve(&mut conversations, key_of(5), side, &header);
            }
        }
    }

    #[test]
    fn test_the_same_ports_again() {
        for is_absolute in [false, true] {
            let mut packets = connection(1_000_000_000, 4_000_000_000);
            packets.extend(connection(3_123_456_789, 17));
            check(&packets, is_absolute, &mut Conversations::default());
        }
    }

    #[test]
    fn test_a_bare_acknowledgement_of_an_unknown_connection_has_no_number() {
        let header = Header { ack: Some(77), flags: TcpFlags(ACK), payload: Some(0), ..Header::default() };
        let numbers = resolve(&mut Conversations::default(), key_of(5), Side::Low, &header);
        assert_eq!(numbers, Numbers { seq: None, ack: 77 });
    }

    #[test]
    fn test_the_number_of_connections_is_bounded() {
        let mut conversations = Conversations::default();
        let header = Header { seq: Some(1), flags: TcpFlags(SYN), payload: Some(0), ..Header::default() };
        for number in 0..3 * GENERATION as u128 {
            let endpoints = Endpoints { src: number, dst: 1 << 20, src_port: 9, ..Endpoints::default() };
            let (key, side) = FlowKey::of(&endpoints);
            resolve(&mut conversations, key, side, &header);
        }
        assert!(conversations.younger.list.len() + conversations.older.list.len() <= 2 * GENERATION);
    }
}
