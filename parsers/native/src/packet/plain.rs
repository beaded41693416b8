//! A TCP segment in compact form, for the most frequent case.
//!
//! Nine packets in ten are whole TCP segments over IPv4 and Ethernet. A [`Packet`] has space for
//! all others: more than twice the memory, which the thread that follows flows has to fetch from
//! the processor of the one that reads.

use crate::packet::event::{Endpoints, Family, Network, Packet, Tcp, Transport};
use crate::packet::ip_fields::IpFields;
use crate::packet::key::{Ipv4Ends, TCP};

/// A TCP segment over IPv4: no fragment, no DSCP, headers captured whole, no SYN, no options but a timestamp
/// and SACK blocks, no event and no 802.11 frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainSegment {
    /// Number in the source, from 1.
    pub number: u64,
    pub time_ns: i64,
    pub ends: Ipv4Ends,
    /// Bytes of the frame on the wire.
    pub wire_bytes: u32,
    /// Index of the interface it was seen at.
    pub interface: u16,
    /// Bytes in the file.
    pub captured_bytes: u16,
    /// Bytes of the TCP header.
    pub header_bytes: u8,
    /// Bytes of TCP payload.
    pub payload: u32,
    pub tcp: Tcp,
    /// Its IP header fields: [`IpFields::of`].
    pub ip: IpFields,
}

impl PlainSegment {
    #[inline(always)]
    pub fn endpoints(&self) -> Endpoints {
        Endpoints {
            family: Family::V4,
            protocol: TCP,
            src: (self.ends.addresses >> 32).into(),
            dst: (self.ends.addresses as u32).into(),
            src_port: (self.ends.ports >> 16) as u16,
            dst_port: self.ends.ports as u16,
        }
    }

    /// A text without IP headers does not show it.
    #[inline(always)]
    pub fn dscp(&self) -> Option<u8> {
        self.ip.ip_id.map(|_| 0)
    }

    /// The same in general form.
    pub fn to_packet(&self) -> Packet {
        Packet {
            number: self.number,
            time_ns: self.time_ns,
            interface: self.interface.into(),
            captured_bytes: self.captured_bytes.into(),
            wire_bytes: self.wire_bytes,
            is_ip: true,
            network: Network {
                endpoints: self.endpoints(),
                has_ports: true,
                ip_id: self.ip.ip_id,
                ttl: self.ip.ttl,
                ecn: self.ip.ecn,
                dscp: self.dscp(),
                transport: Transport::Tcp,
                tcp: self.tcp,
                header_bytes: self.header_bytes,
                payload_bytes: Some(self.payload),
                ..Network::default()
            },
            ..Packet::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::key::{FlowKey, LookupKey};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn test_both_directions_are_sought_as_their_key_is(
            src: u32, dst: u32, src_port: u16, dst_port: u16, is_same: bool,
        ) {
            let dst = if is_same { src } else { dst };
            let forth = Endpoints {
                family: Family::V4, protocol: TCP, src: src.into(), dst: dst.into(), src_port, dst_port,
            };
            let back = Endpoints { src: forth.dst, dst: forth.src, src_port: dst_port, dst_port: src_port, ..forth };
            for endpoints in [forth, back] {
                let (key, side) = FlowKey::of(&endpoints);
                let (ends, sorted_side) = Ipv4Ends::of(&endpoints).sorted();
                prop_assert_eq!(side, sorted_side);
                prop_assert!(matches!(key.sought(), LookupKey::Plain(sought) if sought == ends));
            }
            let datagram = Endpoints { protocol: 17, ..forth };
            prop_assert!(matches!(FlowKey::of(&datagram).0.sought(), LookupKey::Datagrams(_)));
        }
    }

    #[test]
    fn test_it_is_less_than_half_a_packet() {
        assert!(2 * size_of::<PlainSegment>() < size_of::<Packet>());
    }
}
