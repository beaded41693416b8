//! Fields of the IP header around a segment.

use super::event::{Event, Layer, Packet};

/// IP header fields of a segment's packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpFields {
    /// IPv4 identification: a packet that the network doubled keeps it, a retransmission does not.
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit; 0 is unknown.
    pub ttl: u8,
    /// The ECN bits (RFC 3168).
    pub ecn: u8,
    /// Interface, direction, and whether a tunnel carried it, in one number: a duplicate made by the
    /// capture has another one than the packet.
    pub capture_point: u16,
    /// Whether the snap length cut the TCP options.
    pub is_cut: bool,
}

impl IpFields {
    /// The fields of `packet`.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Self {
        let network = &packet.network;
        let capture_point = Self::capture_point(packet);
        let is_cut = packet.stop.is_some_and(|stop| stop.layer == Layer::Tcp);
        Self { ip_id: network.ip_id, ttl: network.ttl, ecn: network.ecn, capture_point, is_cut }
    }

    /// Stands for the place at which `packet` was captured.
    #[inline(always)]
    pub fn capture_point(packet: &Packet) -> u16 {
        let is_inside = u16::from(!packet.network.lane.is_outside());
        Self::capture_point_of(packet.interface, packet.event) | is_inside << 2
    }

    /// Stands for the interface at which a packet was captured, and the way through it.
    #[inline(always)]
    pub fn capture_point_of(interface: u32, event: Option<Event>) -> u16 {
        let way = match event {
            None => 0,
            Some(Event::Sent) => 1,
            Some(_) => 2,
        };
        (interface as u16) << 3 | way
    }
}
