//! What is kept of a direction, each kind with its form in bytes: numbers are differences from the record of
//! the kind before, in as few bytes as they need.

use crate::flow::{Flow, Found};
use crate::packet::event::{Event, NodeLayer, Packet, PathPoint, Sighting};
use crate::packet::extras::PacketExtras;
use crate::packet::plain::PlainSegment;

/// A kind of record.
pub trait Spooled: Copy + Send + Sync + 'static {
    /// Numbers of the record before.
    type Before: Copy + Default + Send + Sync;

    fn write(&self, before: &mut Self::Before, out: &mut Vec<u8>);

    /// The next record; None if there is none.
    fn read(rest: &mut &[u8], before: &mut Self::Before) -> Option<Self>;
}

/// A packet with payload, as a replay needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpooledPacket {
    pub time_ns: i64,
    pub payload_bytes: u32,
    /// Position in the stream of TCP.
    pub seq_rel: Option<i64>,
    pub sequence: Option<u64>,
    pub ecn: Option<u8>,
    pub event: Option<Event>,
    pub sighting: Option<SpooledSighting>,
}

/// Where a simulator shows the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpooledSighting {
    pub layer: NodeLayer,
    pub point: PathPoint,
    pub uid: Option<u64>,
}

impl SpooledPacket {
    /// What is kept of a packet that its `flow` has taken; None without payload.
    pub fn of(packet: &Packet, extras: &PacketExtras, found: Found, flow: &Flow) -> Option<Self> {
        let network = &packet.network;
        let half = || flow.transport.tcp.as_ref().map(|connection| connection.half(found.side));
        let number = || flow.transport.number_of(found.side, &extras.head(network.head));
        Some(Self {
            time_ns: packet.time_ns,
            payload_bytes: network.payload_bytes.filter(|&bytes| bytes > 0)?,
            seq_rel: network.tcp().and_then(|tcp| half()?.sent.position(tcp.seq)),
            sequence: network.sequence.or_else(number),
            ecn: packet.is_ip.then_some(network.ecn),
            event: packet.event,
            sighting: packet.sighting.map(|sighting| SpooledSighting {
                layer: sighting.layer,
                point: sighting.point,
                uid: Some(sighting.identity).filter(|&uid| uid != Sighting::NO_IDENTITY),
            }),
        })
    }

    /// The same of a plain segment with payload, at its position in the stream.
    pub fn of_plain(segment: &PlainSegment, position: Option<i64>) -> Self {
        Self {
            time_ns: segment.time_ns,
            payload_bytes: segment.payload,
            seq_rel: position,
            sequence: None,
            ecn: Some(segment.ip.ecn),
            event: None,
            sighting: None,
        }
    }

    /// Whether a simulator shows which packet it is.
    pub fn is_simulated(&self) -> bool {
        self.sighting.is_some_and(|sighting| sighting.uid.is_some())
    }
}

/// A round-trip time, by an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpooledRoundTrip {
    pub time_ns: i64,
    pub rtt_ns: u64,
}

/// A round of data in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpooledRound {
    pub start_ns: i64,
    pub is_data_limited: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct PacketBefore {
    time_ns: u64,
    seq_rel: u64,
    sequence: u64,
    uid: u64,
}

const HAS_SEQ_REL: u8 = 1;
const HAS_SEQUENCE: u8 = 2;
const HAS_ECN: u8 = 4;
const HAS_EVENT: u8 = 8;
const HAS_SIGHTING: u8 = 16;
const HAS_UID: u8 = 32;

impl Spooled for SpooledPacket {
    type Before = PacketBefore;

    fn write(&self, before: &mut PacketBefore, out: &mut Vec<u8>) {
        let uid = self.sighting.and_then(|sighting| sighting.uid);
        let has = [
            (HAS_SEQ_REL, self.seq_rel.is_some()),
            (HAS_SEQUENCE, self.sequence.is_some()),
            (HAS_ECN, self.ecn.is_some()),
            (HAS_EVENT, self.event.is_some()),
            (HAS_SIGHTING, self.sighting.is_some()),
            (HAS_UID, uid.is_some()),
        ];
        out.push(has.into_iter().filter(|(_, is_there)| *is_there).map(|(bit, _)| bit).sum());
        write_difference(out, &mut before.time_ns, self.time_ns as u64);
        write_number(out, self.payload_bytes.into());
        if let Some(seq_rel) = self.seq_rel {
            write_difference(out, &mut before.seq_rel, seq_rel as u64);
        }
        if let Some(sequence) = self.sequence {
            write_difference(out, &mut before.sequence, sequence);
        }
        out.extend(self.ecn);
        out.extend(self.event.map(|event| event as u8));
        if let Some(sighting) = self.sighting {
            out.extend([sighting.layer as u8, sighting.point as u8]);
        }
        if let Some(uid) = uid {
            write_difference(out, &mut before.uid, uid);
        }
    }

    fn read(rest: &mut &[u8], before: &mut PacketBefore) -> Option<Self> {
        let has = read_byte(rest)?;
        let time_ns = read_difference(rest, &mut before.time_ns)? as i64;
        let payload_bytes = read_number(rest)? as u32;
        let mut seq_rel = None;
        if has & HAS_SEQ_REL != 0 {
            seq_rel = Some(read_difference(rest, &mut before.seq_rel)? as i64);
        }
        let mut sequence = None;
        if has & HAS_SEQUENCE != 0 {
            sequence = Some(read_difference(rest, &mut before.sequence)?);
        }
        let ecn = if has & HAS_ECN != 0 { Some(read_byte(rest)?) } else { None };
        let mut event = None;
        if has & HAS_EVENT != 0 {
            event = Some(*Event::ALL.get(usize::from(read_byte(rest)?))?);
        }
        let mut sighting = None;
        if has & HAS_SIGHTING != 0 {
            let layer = *NodeLayer::ALL.get(usize::from(read_byte(rest)?))?;
            let point = *PathPoint::ALL.get(usize::from(read_byte(rest)?))?;
            let mut uid = None;
            if has & HAS_UID != 0 {
                uid = Some(read_difference(rest, &mut before.uid)?);
            }
            sighting = Some(SpooledSighting { layer, point, uid });
        }
        Some(Self { time_ns, payload_bytes, seq_rel, sequence, ecn, event, sighting })
    }
}

impl Spooled for SpooledRoundTrip {
    type Before = [u64; 2];

    fn write(&self, [time_ns, rtt_ns]: &mut [u64; 2], out: &mut Vec<u8>) {
        write_difference(out, time_ns, self.time_ns as u64);
        write_difference(out, rtt_ns, self.rtt_ns);
    }

    fn read(rest: &mut &[u8], [time_ns, rtt_ns]: &mut [u64; 2]) -> Option<Self> {
        let time_ns = read_difference(rest, time_ns)? as i64;
        Some(Self { time_ns, rtt_ns: read_difference(rest, rtt_ns)? })
    }
}

impl Spooled for SpooledRound {
    type Before = u64;

    fn write(&self, start_ns: &mut u64, out: &mut Vec<u8>) {
        write_difference(out, start_ns, self.start_ns as u64);
        out.push(self.is_data_limited.into());
    }

    fn read(rest: &mut &[u8], start_ns: &mut u64) -> Option<Self> {
        let start_ns = read_difference(rest, start_ns)? as i64;
        Some(Self { start_ns, is_data_limited: read_byte(rest)? != 0 })
    }
}

/// Seven bits in each byte, the lowest first; the eighth bit says that more follow.
fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The difference from `before`, small numbers for small ones of either sign.
fn write_difference(out: &mut Vec<u8>, before: &mut u64, now: u64) {
    let difference = now.wrapping_sub(std::mem::replace(before, now)) as i64;
    write_number(out, (difference << 1 ^ difference >> 63) as u64);
}

fn read_byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

fn read_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = read_byte(rest)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn read_difference(rest: &mut &[u8], before: &mut u64) -> Option<u64> {
    let number = read_number(rest)?;
    let difference = (number >> 1) ^ (number & 1).wrapping_neg();
    *before = before.wrapping_add(difference);
    Some(*before)
}
