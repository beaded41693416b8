//! A packet queued for its flow, in short form.

use super::Found;
use super::flow_places::index_in_group;
use crate::packet::event::{Packet, Tcp, TcpFlags, TcpOptions, Transport};
use crate::packet::ip_fields::IpFields;
use crate::packet::key::Side;
use crate::packet::plain::PlainSegment;

/// Bit of [`QueuedPacket::bits`], beside the TCP flags: the packet comes from [`Side::High`].
const FROM_HIGH: u16 = 1 << 15;
/// Bit: there is a timestamp option.
const HAS_TIMESTAMP: u16 = 1 << 14;
/// Bit: there is an IPv4 identification.
const HAS_IP_ID: u16 = 1 << 13;
/// Position of the ECN bits.
const ECN_SHIFT: u32 = 11;
/// Position of the number of SACK blocks, which are stored beside the packets.
const SACK_SHIFT: u32 = 9;
/// Limit of SACK blocks. Beside a timestamp there are not more (RFC 2018 section 3).
const MAX_SACK: usize = 3;
const FLAGS: u16 = 0x01ff;

/// Everything that a flow needs of a packet of the usual kind, in 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    /// Capture time, after the first packet of its buffer.
    pub later_ns: u32,
    seq: u32,
    ack: u32,
    timestamp: (u32, u32),
    window: u16,
    bits: u16,
    payload: u16,
    ip_id: u16,
    /// [`IpFields::capture_point`].
    capture_point: u8,
    ttl: u8,
    /// Wire bytes of its frame that are not payload.
    headers: u8,
    /// The flow's index in its group.
    flow_index: u8,
}

impl QueuedPacket {
    /// Short form of a packet with so many SACK blocks, if it fits without these and the time.
    #[inline(always)]
    pub fn of(packet: &Packet, found: Found, sack_blocks: usize) -> Option<Self> {
        let network = &packet.network;
        let is_short = match network.transport {
            // There is no space for ECN counters; the other options are on SYN only, and a SYN needs
            // the flow's state at once.
            Transport::Tcp => !network.tcp.flags.has(TcpFlags::SYN) && network.head.is_none(),
            Transport::Udp => true,
            _ => false,
        };
        if !is_short || network.fragment.is_some() || packet.stop.is_some() {
            return None;
        }
        let ip = IpFields::of(packet);
        let lengths = (packet.wire_bytes, network.payload_bytes?);
        Self::new(lengths, &network.tcp, ip, (found, sack_blocks))
    }

    /// The same for a plain segment.
    #[inline(always)]
    pub fn of_plain(segment: &PlainSegment, found: Found, sack_blocks: usize) -> Option<Self> {
        let lengths = (segment.wire_bytes, segment.payload);
        Self::new(lengths, &segment.tcp, segment.ip, (found, sack_blocks))
    }

    #[inline(always)]
    fn new(
        (wire_bytes, payload): (u32, u32),
        tcp: &Tcp,
        ip: IpFields,
        (found, sack_blocks): (Found, usize),
    ) -> Option<Self> {
        if sack_blocks > MAX_SACK {
            return None;
        }
        let bit = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
        let bits = bit(found.side == Side::High, FROM_HIGH)
            | bit(tcp.options.timestamp.is_some(), HAS_TIMESTAMP)
            | bit(ip.ip_id.is_some(), HAS_IP_ID)
            | (sack_blocks as u16) << SACK_SHIFT;
        Some(Self {
            later_ns: 0,
            seq: tcp.seq,
            ack: tcp.ack,
            timestamp: tcp.options.timestamp.unwrap_or_default(),
            window: tcp.window,
            bits: bits | u16::from(ip.ecn & 3) << ECN_SHIFT | (tcp.flags.0 & FLAGS),
            payload: u16::try_from(payload).ok()?,
            ip_id: ip.ip_id.unwrap_or_default(),
            capture_point: u8::try_from(ip.capture_point).ok()?,
            ttl: ip.ttl,
            headers: u8::try_from(wire_bytes.checked_sub(payload)?).ok()?,
            flow_index: index_in_group(found.flow) as u8,
        })
    }

    /// Index of its flow in the group.
    #[inline(always)]
    pub fn flow_index(&self) -> usize {
        usize::from(self.flow_index)
    }

    #[inline(always)]
    pub fn side(&self) -> Side {
        if self.bits & FROM_HIGH != 0 { Side::High } else { Side::Low }
    }

    #[inline(always)]
    pub fn payload(&self) -> u32 {
        u32::from(self.payload)
    }

    /// Its frame on the wire.
    #[inline(always)]
    pub fn wire_bytes(&self) -> u32 {
        u32::from(self.payload) + u32::from(self.headers)
    }

    /// Number of its SACK blocks.
    #[inline(always)]
    pub fn sack_blocks(&self) -> usize {
        usize::from(self.bits >> SACK_SHIFT) & MAX_SACK
    }

    /// Its IP header fields.
    #[inline(always)]
    pub fn ip(&self) -> IpFields {
        let ip_id = (self.bits & HAS_IP_ID != 0).then_some(self.ip_id);
        let ecn = (self.bits >> ECN_SHIFT & 3) as u8;
        IpFields { ip_id, ttl: self.ttl, ecn, capture_point: self.capture_point.into(), is_cut: false }
    }

    /// Its TCP header; meaningless if the flow is not TCP.
    #[inline(always)]
    pub fn tcp(&self) -> Tcp {
        let has_timestamp = self.bits & HAS_TIMESTAMP != 0;
        Tcp {
            seq: self.seq,
            ack: self.ack,
            flags: TcpFlags(self.bits & FLAGS),
            window: self.window,
            options: TcpOptions {
                timestamp: has_timestamp.then_some(self.timestamp),
                ..TcpOptions::default()
            },
        }
    }
}
