//! Packets set aside until several of the same flows are there.
//!
//! The state of a flow is a dozen cache lines. With more flows than the caches hold, a packet of
//! another flow than the last waits for most of them: that was four fifths of the time with 100,000
//! flows. So packets are set aside in groups of neighbouring flows, and a group is taken in at one
//! go: its flows' state is then fetched once for several packets of each. Flows know nothing of each
//! other, and each gets its packets in order, so the result is the same.

use super::key::Side;
use super::sendings::Pool;
use super::tcp::{Carrier, Outcome};
use super::{FlowTable, Found};
use crate::event::{Packet, Tcp, TcpFlags, TcpOptions, Transport};

/// Flows in a group, as a power of two: with what waits for acknowledgements 400 kB, which the
/// second-level cache holds.
const GROUP_BITS: u32 = 8;
/// Packets in a buffer; a group has as many buffers as it needs.
const BUFFER: usize = 64;
/// Buffers of all groups together: 5 MB. With more, packets of the same flow come together more
/// often, but memory is bounded.
const MAX_BUFFERS: usize = 2_000;

/// In [`Aside::bits`], beside the TCP flags: the packet comes from [`Side::High`].
const FROM_HIGH: u16 = 1 << 15;
/// Likewise: there is a timestamp option.
const HAS_TIMESTAMP: u16 = 1 << 14;
/// Likewise: there is an IPv4 identification.
const HAS_IP_ID: u16 = 1 << 13;
/// Likewise: where the ECN bits are.
const ECN_SHIFT: u32 = 11;
/// The TCP flags.
const FLAGS: u16 = 0x01ff;

/// What a flow needs to know of a packet that can be set aside, in 40 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Aside {
    /// When it was seen.
    pub time_ns: i64,
    flow: u32,
    seq: u32,
    ack: u32,
    timestamp: (u32, u32),
    /// Its transport payload.
    pub payload: u16,
    window: u16,
    bits: u16,
    ip_id: u16,
    place: u16,
    /// The frame's bytes that are not payload.
    header_bytes: u8,
    ttl: u8,
}

impl Aside {
    /// `packet` in short form, if that holds all of it.
    #[inline(always)]
    fn of(packet: &Packet, found: Found) -> Option<Self> {
        let network = &packet.network;
        let tcp = &network.tcp;
        let carrier = Carrier::of(packet);
        let payload = network.payload_bytes?;
        let mut aside = Self {
            time_ns: packet.time_ns,
            flow: found.flow,
            seq: tcp.seq,
            ack: tcp.ack,
            timestamp: tcp.options.timestamp.unwrap_or_default(),
            // Super-segments and long headers are rare.
            payload: u16::try_from(payload).ok()?,
            window: tcp.window,
            bits: u16::from(carrier.ecn & 3) << ECN_SHIFT,
            ip_id: carrier.ip_id.unwrap_or_default(),
            place: carrier.place,
            header_bytes: u8::try_from(packet.wire_bytes.checked_sub(payload)?).ok()?,
            ttl: carrier.ttl,
        };
        aside.bits |= if found.side == Side::High { FROM_HIGH } else { 0 };
        aside.bits |= if carrier.ip_id.is_some() { HAS_IP_ID } else { 0 };
        match network.transport {
            // The other options are on SYN only, and a SYN asks for the flow's state at once.
            Transport::Tcp if !tcp.flags.has(TcpFlags::SYN) && tcp.options.sack.blocks().is_none() => {
                let stamped = if tcp.options.timestamp.is_some() { HAS_TIMESTAMP } else { 0 };
                aside.bits |= tcp.flags.0 & FLAGS | stamped;
            }
            Transport::Udp => {}
            _ => return None,
        }
        network.fragment.is_none().then_some(aside)
    }

    /// The side that sent it.
    #[inline(always)]
    pub fn side(&self) -> Side {
        if self.bits & FROM_HIGH != 0 { Side::High } else { Side::Low }
    }

    /// Its frame on the wire.
    #[inline(always)]
    pub fn wire_bytes(&self) -> u32 {
        u32::from(self.payload) + u32::from(self.header_bytes)
    }

    /// What the packet around the segment said.
    #[inline(always)]
    pub fn carrier(&self) -> Carrier {
        let ip_id = (self.bits & HAS_IP_ID != 0).then_some(self.ip_id);
        let ecn = (self.bits >> ECN_SHIFT & 3) as u8;
        Carrier { ip_id, ttl: self.ttl, ecn, place: self.place, is_cut: false }
    }

    /// Its TCP header; means nothing if the flow is not TCP.
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

/// The packets of neighbouring flows, in order.
#[derive(Debug, Default)]
struct Group {
    full: Vec<Vec<Aside>>,
    filling: Vec<Aside>,
}

/// All packets set aside.
#[derive(Debug, Default)]
pub struct Backlog {
    groups: Vec<Group>,
    /// Buffers taken from `spare` or made.
    in_use: usize,
    spare: Vec<Vec<Aside>>,
}

impl Backlog {
    /// Whether nothing is set aside.
    pub fn is_empty(&self) -> bool {
        self.in_use == 0
    }

    /// Set a packet of a known flow aside, if it is of the usual kind. Others must be given to their
    /// flow at once, after [`Backlog::settle`].
    #[inline(always)]
    pub fn set_aside(
        &mut self,
        packet: &Packet,
        found: Found,
        flows: &mut FlowTable,
        pool: &mut Pool,
    ) -> bool {
        let Some(aside) = Aside::of(packet, found) else {
            return false;
        };
        let group = (found.flow >> GROUP_BITS) as usize;
        match self.groups.get_mut(group) {
            Some(group) if group.filling.len() < group.filling.capacity() => group.filling.push(aside),
            _ => self.begin_buffer(group, aside, flows, pool),
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn begin_buffer(&mut self, group: usize, first: Aside, flows: &mut FlowTable, pool: &mut Pool) {
        if self.in_use == MAX_BUFFERS {
            self.settle_all(flows, pool);
        }
        if group >= self.groups.len() {
            self.groups.resize_with(group + 1, Group::default);
        }
        let mut buffer = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BUFFER));
        self.in_use += 1;
        buffer.push(first);
        let group = &mut self.groups[group];
        let full = std::mem::replace(&mut group.filling, buffer);
        if full.capacity() > 0 {
            group.full.push(full);
        }
    }

    /// Give all packets to their flows.
    pub fn settle_all(&mut self, flows: &mut FlowTable, pool: &mut Pool) {
        for group in 0..self.groups.len() {
            self.settle_group(group, flows, pool);
        }
    }

    /// Give `flow` what was set aside for it, and its neighbours theirs.
    pub fn settle(&mut self, flow: u32, flows: &mut FlowTable, pool: &mut Pool) {
        let group = (flow >> GROUP_BITS) as usize;
        if group < self.groups.len() {
            self.settle_group(group, flows, pool);
        }
    }

    fn settle_group(&mut self, group: usize, flows: &mut FlowTable, pool: &mut Pool) {
        let Group { full, filling } = std::mem::take(&mut self.groups[group]);
        // Nothing is collected while packets are set aside, so nobody asks what they were.
        let mut outcome = Outcome::default();
        for mut buffer in full.into_iter().chain((filling.capacity() > 0).then_some(filling)) {
            for aside in &buffer {
                flows.get_mut(aside.flow).on_aside(aside, pool, &mut outcome);
            }
            buffer.clear();
            self.in_use -= 1;
            self.spare.push(buffer);
        }
    }
}
