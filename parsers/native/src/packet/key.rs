//! One key for both directions of a conversation.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::packet::event::{Address, Endpoints, Family};

pub const TCP: u8 = 6;

/// Family and protocol of [`FlowKey::rest`].
const IPV4_TCP: u64 = 6;
const IPV4_UDP: u64 = 17;

/// Sender and receiver, each pair in the order of the wire as one number: quick to read, compare and
/// mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipv4Ends {
    pub addresses: u64,
    pub ports: u32,
}

impl Ipv4Ends {
    /// Those of IPv4.
    #[inline(always)]
    pub fn of(endpoints: &Endpoints) -> Self {
        let Endpoints { src, dst, src_port, dst_port, .. } = *endpoints;
        Self {
            addresses: u64::from(src as u32) << 32 | u64::from(dst as u32),
            ports: u32::from(src_port) << 16 | u32::from(dst_port),
        }
    }

    /// Those of the flow, the lower end first, and which of them sent the packet: as
    /// [`FlowKey::of`](crate::packet::key::FlowKey::of) has it.
    #[inline(always)]
    pub fn sorted(self) -> (Self, Side) {
        let Self { addresses, ports } = self;
        let src = addresses >> 32 << 16 | u64::from(ports >> 16);
        let dst = addresses << 32 >> 16 | u64::from(ports & 0xffff);
        if src <= dst {
            (self, Side::Low)
        } else {
            (Self { addresses: addresses.rotate_left(32), ports: ports.rotate_left(16) }, Side::High)
        }
    }
}

/// The end of a key that a packet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The end with the lower address and port.
    Low = 0,
    High = 1,
}

impl Side {
    #[inline(always)]
    pub fn other(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }
}

/// A five-tuple without direction.
#[derive(Clone, Copy, Debug, Eq, Default, Serialize, Deserialize)]
pub struct FlowKey {
    low: [u64; 2],
    high: [u64; 2],
    /// Low port, high port, protocol, family.
    rest: u64,
}

impl FlowKey {
    /// The key of a packet's conversation, and the side that sent the packet.
    #[inline(always)]
    pub fn of(endpoints: &Endpoints) -> (Self, Side) {
        let Endpoints { family, protocol, src, dst, src_port, dst_port } = *endpoints;
        let src_is_low = match family {
            // Both in one comparison of machine words.
            Family::V4 => end_v4(src, src_port) <= end_v4(dst, dst_port),
            _ => (src, src_port) <= (dst, dst_port),
        };
        let (low, high, low_port, high_port, side) = if src_is_low {
            (src, dst, src_port, dst_port, Side::Low)
        } else {
            (dst, src, dst_port, src_port, Side::High)
        };
        let rest = rest_of((low_port, high_port), protocol, family);
        (Self { low: halves(low), high: halves(high), rest }, side)
    }

    /// The key for look-ups in the table of flows.
    #[inline(always)]
    pub fn sought(&self) -> LookupKey {
        let ends = || Ipv4Ends::of(&self.endpoints(Side::Low));
        // Family and protocol together.
        match self.rest >> 32 {
            IPV4_TCP => LookupKey::Plain(ends()),
            IPV4_UDP => LookupKey::Datagrams(ends()),
            _ => LookupKey::Other(*self),
        }
    }

    /// A few bits that differ between keys, for a cache. Not for a table: they are predictable.
    #[inline(always)]
    pub fn slot(&self) -> usize {
        let mixed = self.low[1] ^ self.high[1] ^ self.rest ^ self.rest >> 16;
        (mixed ^ mixed >> 8) as usize
    }

    /// Address and port of one end.
    pub fn end(&self, side: Side) -> (Address, u16) {
        let (words, port) = match side {
            Side::Low => (self.low, self.rest),
            Side::High => (self.high, self.rest >> 16),
        };
        (u128::from(words[0]) << 64 | u128::from(words[1]), port as u16)
    }

    /// The five-tuple of packets that `side` sends.
    pub fn endpoints(&self, side: Side) -> Endpoints {
        let ((src, src_port), (dst, dst_port)) = (self.end(side), self.end(side.other()));
        Endpoints { family: self.family(), protocol: self.protocol(), src, dst, src_port, dst_port }
    }

    pub fn protocol(&self) -> u8 {
        (self.rest >> 32) as u8
    }

    /// Kind of the addresses.
    pub fn family(&self) -> Family {
        match self.rest >> 40 {
            0 => Family::V4,
            1 => Family::V6,
            2 => Family::Node,
            _ => Family::Name,
        }
    }
}

/// A key in 16 bytes where that is enough, because every flow keeps its own: all addresses but IPv6's are of 32
/// bits.
#[derive(Debug, Serialize, Deserialize)]
pub enum KeptKey {
    /// Addresses, ports and protocol of the lower end and the other.
    Narrow {
        addresses: (u32, u32),
        ports: (u16, u16),
        protocol: u8,
        /// Kind of the addresses.
        family: Family,
    },
    Wide(Box<FlowKey>),
}

impl From<FlowKey> for KeptKey {
    fn from(key: FlowKey) -> Self {
        let [(low, low_port), (high, high_port)] = [key.end(Side::Low), key.end(Side::High)];
        match (u32::try_from(low), u32::try_from(high)) {
            (Ok(low), Ok(high)) => Self::Narrow {
                addresses: (low, high),
                ports: (low_port, high_port),
                protocol: key.protocol(),
                family: key.family(),
            },
            _ => Self::Wide(Box::new(key)),
        }
    }
}

impl KeptKey {
    /// The key as it was.
    #[inline(always)]
    pub fn whole(&self) -> FlowKey {
        match *self {
            Self::Narrow { addresses: (low, high), ports: (low_port, high_port), protocol, family } => {
                FlowKey {
                    low: [0, low.into()],
                    high: [0, high.into()],
                    rest: rest_of((low_port, high_port), protocol, family),
                }
            }
            Self::Wide(ref key) => **key,
        }
    }
}

/// A key in the form of the table of flows: most flows are TCP or UDP over IPv4, for which 12 bytes
/// suffice.
#[derive(Clone, Copy, Debug)]
pub enum LookupKey {
    /// The ends of a flow over TCP and IPv4, the lower one first.
    Plain(Ipv4Ends),
    /// The same of a flow over UDP and IPv4.
    Datagrams(Ipv4Ends),
    Other(FlowKey),
}

impl Hash for LookupKey {
    /// Neither is sought where the other is.
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Plain(ends) | Self::Datagrams(ends) => {
                state.write_u64(ends.addresses);
                state.write_u32(ends.ports);
            }
            Self::Other(key) => key.hash(state),
        }
    }
}

impl PartialEq for FlowKey {
    /// Word by word and without branches: a key just made is still in registers, while a comparison
    /// of its bytes in memory waits until they are written there.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let low = (self.low[0] ^ other.low[0]) | (self.low[1] ^ other.low[1]);
        let high = (self.high[0] ^ other.high[0]) | (self.high[1] ^ other.high[1]);
        low | high | (self.rest ^ other.rest) == 0
    }
}

impl Hash for FlowKey {
    /// One round for IPv4, whose upper halves are all zero; three for IPv6.
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.low[1] << 32 ^ self.high[1] ^ self.low[1] >> 32);
        state.write_u64(self.rest);
        if self.low[0] | self.high[0] != 0 {
            for word in [self.low[0], self.low[1], self.high[0], self.high[1]] {
                state.write_u64(word);
            }
        }
    }
}

/// See [`FlowKey::rest`].
#[inline(always)]
fn rest_of((low_port, high_port): (u16, u16), protocol: u8, family: Family) -> u64 {
    u64::from(low_port) | u64::from(high_port) << 16 | u64::from(protocol) << 32 | (family as u64) << 40
}

#[inline(always)]
fn end_v4(address: Address, port: u16) -> u64 {
    (address as u64) << 16 | u64::from(port)
}

#[inline(always)]
fn halves(address: Address) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

/// How a source writes its addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notation<'a> {
    /// Names of addresses that are indices.
    pub hosts: &'a [String],
    /// Whether node numbers are written as domain, cluster and node.
    pub is_hierarchical: bool,
}

/// An address in its usual notation.
pub fn address_text(address: Address, family: Family, notation: Notation<'_>) -> String {
    match family {
        Family::V4 => std::net::Ipv4Addr::from_bits(address as u32).to_string(),
        Family::V6 => std::net::Ipv6Addr::from_bits(address).to_string(),
        // ns-2's address of all nodes, as it prints it.
        Family::Node if address == Address::from(u32::MAX) => "-1".to_owned(),
        // ns-2's default: 10 bits of domain, 11 of cluster, 11 of node.
        Family::Node if notation.is_hierarchical => {
            format!("{}.{}.{}", address >> 22, address >> 11 & 0x7ff, address & 0x7ff)
        }
        Family::Name => {
            let name = usize::try_from(address).ok().and_then(|index| notation.hosts.get(index));
            name.cloned().unwrap_or_else(|| address.to_string())
        }
        Family::Node => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_most_keys_are_kept_in_little_memory() {
        assert_eq!(size_of::<KeptKey>(), 16);
        for family in [Family::V4, Family::Node, Family::Name] {
            let (src, dst) = (u32::MAX.into(), 7);
            let (src_port, dst_port) = (u16::MAX, 9);
            let (key, _) = FlowKey::of(&Endpoints { family, protocol: 255, src, dst, src_port, dst_port });
            let kept = KeptKey::from(key);
            assert!(matches!(kept, KeptKey::Narrow { .. }) && kept.whole() == key);
        }
    }

    proptest! {
        #[test]
        fn test_both_directions_have_one_key_and_opposite_sides(
            src: u128, dst: u128, src_port: u16, dst_port: u16, protocol: u8,
        ) {
            let forth = Endpoints { family: Family::V6, protocol, src, dst, src_port, dst_port };
            let back = Endpoints { src: dst, dst: src, src_port: dst_port, dst_port: src_port, ..forth };
            let (key, side) = FlowKey::of(&forth);
            let (back_key, back_side) = FlowKey::of(&back);
            prop_assert_eq!(key, back_key);
            prop_assert!(side != back_side || (src, src_port) == (dst, dst_port));
            prop_assert_eq!(key.end(side), (src, src_port));
            prop_assert_eq!(key.endpoints(side), forth);
            prop_assert_eq!(key.endpoints(side.other()), back);
            prop_assert_eq!(KeptKey::from(key).whole(), key);
        }
    }
}
