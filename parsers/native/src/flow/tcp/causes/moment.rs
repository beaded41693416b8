//! What one packet shows of the data of one side.

use super::super::classify::class::Class;
use super::super::ecn::RoundMarks;
use super::super::{Connection, HalfConnection, Outcome};
use crate::flow::rtt_statistics::RttMethod;
use crate::packet::event::{Family, Packet, Tcp, TcpFlags};
use crate::packet::key::Side;

/// Bytes of the headers of IP without options (RFC 791 section 3.1, RFC 8200 section 3).
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;

/// What a packet is for the data of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// New data of the side.
    Data { is_pushed: bool, cuts_window: bool },
    /// Data that were sent before.
    Repair { is_timeout: bool },
    /// The other side acknowledges, perhaps nothing new.
    Acknowledgement { carries_data: bool, echoes_mark: bool },
    /// Nothing of these.
    Other,
}

/// State of the data of a side after a packet.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Number of the packet in its source.
    pub number: u64,
    pub time_ns: i64,
    /// When it can have been at the sender at the earliest: at the pace of the path, not of its jitter.
    pub earliest_ns: i64,
    pub event: Event,
    /// Bytes of its payload, and of its headers of TCP and IP.
    pub payload: u32,
    pub headers: u32,
    /// Position after the highest sent.
    pub next: i64,
    /// Position up to which all is acknowledged.
    pub acknowledged: i64,
    /// Bytes acknowledged, also by SACK.
    pub delivered: i64,
    /// End of the receive window; None if its scale is unknown.
    pub window_end: Option<i64>,
    /// Payload of a full-sized segment.
    pub full_size: u32,
    /// Round-trip time of the acknowledged data, if it gives one.
    pub rtt_ns: Option<u64>,
    /// By how much the flight may be larger or smaller.
    pub flight_error: u32,
    /// Whether the side opened the connection.
    pub is_opener: bool,
    /// Congestion marks so far.
    pub marks: RoundMarks,
}

impl Moment {
    /// What a packet from `from` shows of the data of `side`, after its connection processed it and
    /// returned `outcome`. None if its TCP header is not whole.
    pub fn of(
        connection: &Connection,
        side: Side,
        (from, packet): (Side, &Packet),
        outcome: &Outcome,
    ) -> Option<Self> {
        let (tcp, payload) = (packet.network.tcp()?, packet.network.payload_bytes?);
        let half = connection.half(side);
        let window_end = half.acknowledged.window_end;
        let event = match side == from {
            true => data_event(tcp, payload, half, outcome),
            false => acknowledgement_event(tcp, payload),
        };
        Some(Self {
            number: packet.number,
            time_ns: packet.time_ns,
            earliest_ns: packet.time_ns,
            event,
            payload,
            headers: headers(packet),
            next: half.sent.next,
            acknowledged: half.acknowledged.position,
            delivered: half.delivered(),
            window_end: Some(window_end).filter(|&end| end != i64::MAX),
            full_size: half.full_size(connection.half(side.other())),
            rtt_ns: outcome.rtt.filter(|rtt| rtt.method == RttMethod::Ack && side != from).map(|rtt| rtt.ns),
            flight_error: 0,
            is_opener: connection.opener() == Some(side),
            marks: half.marks(connection.half(side.other())),
        })
    }

    /// Bytes in flight.
    pub fn flight(&self) -> i64 {
        self.next - self.delivered
    }
}

/// Bytes of the headers of TCP and IP, whose options are rare.
fn headers(packet: &Packet) -> u32 {
    let ip = if packet.network.endpoints.family == Family::V6 { IPV6_HEADER } else { IPV4_HEADER };
    ip + u32::from(packet.network.header_bytes)
}

fn data_event(tcp: &Tcp, payload: u32, half: &HalfConnection, outcome: &Outcome) -> Event {
    match outcome.finding.map(|finding| finding.class) {
        Some(class) if class.is_retransmission() => Event::Repair { is_timeout: class == Class::Rto },
        Some(Class::Unseen) => Event::Repair { is_timeout: half.repairs_by_timeout() },
        Some(Class::Reordered) => Event::Other,
        _ if payload > 0 && outcome.new_bytes > 0 => {
            Event::Data { is_pushed: tcp.flags.has(TcpFlags::PSH), cuts_window: tcp.flags.has(TcpFlags::CWR) }
        }
        _ => Event::Other,
    }
}

fn acknowledgement_event(tcp: &Tcp, payload: u32) -> Event {
    let flags = tcp.flags;
    if !flags.has(TcpFlags::ACK) || flags.has(TcpFlags::SYN | TcpFlags::RST) {
        return Event::Other;
    }
    Event::Acknowledgement { carries_data: payload > 0, echoes_mark: flags.has(TcpFlags::ECE) }
}

/// A number of bytes in 32 bits.
pub fn saturated(bytes: i64) -> u32 {
    bytes.clamp(0, i64::from(u32::MAX)) as u32
}
