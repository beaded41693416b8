//! Data packets kept by flow and direction, in little memory: beyond a bound they go to a temporary file.
//!
//! Each direction has a chain of chunks in the file, and a buffer of what was not yet written. Numbers are kept
//! as differences from the packet before, in as few bytes as they need.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::flow::ends::nameless_file::nameless_file;
use crate::packet::event::{Event, NodeLayer, PathPoint};

/// Bytes in the buffers of all directions after which they are written to the file.
pub const BUFFERED_BYTES: usize = 48 << 20;

/// No chunk comes before.
const NO_CHUNK: u64 = u64::MAX;

/// Place of the chunk before, and bytes of this one.
const CHUNK_HEADER: usize = 16;

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

/// Packets by flow and direction.
pub struct PacketSpool {
    directions: Vec<[Direction; 2]>,
    buffered: usize,
    most_buffered: usize,
    folder: PathBuf,
    file: Option<File>,
    written: u64,
}

impl PacketSpool {
    /// A spool that keeps at most `most_buffered` bytes in memory, and the rest in a file of `folder` without a
    /// name.
    pub fn new(folder: PathBuf, most_buffered: usize) -> Self {
        Self { directions: Vec::new(), buffered: 0, most_buffered, folder, file: None, written: 0 }
    }

    /// Add a packet of the flow with this index.
    pub fn add(&mut self, flow: usize, is_reverse: bool, packet: &SpooledPacket) -> io::Result<()> {
        if flow >= self.directions.len() {
            self.directions.resize_with(flow + 1, Default::default);
        }
        let Some(directions) = self.directions.get_mut(flow) else { return Ok(()) };
        let [forward, reverse] = directions;
        let direction = if is_reverse { reverse } else { forward };
        self.buffered += direction.add(packet);
        if self.buffered > self.most_buffered { self.write_buffers() } else { Ok(()) }
    }

    /// How many packets the direction has.
    pub fn count(&self, flow: usize, is_reverse: bool) -> usize {
        self.direction(flow, is_reverse).map_or(0, |direction| direction.count)
    }

    /// Whether a simulator shows any packet of the direction.
    pub fn is_simulated(&self, flow: usize, is_reverse: bool) -> bool {
        self.direction(flow, is_reverse).is_some_and(|direction| direction.is_simulated)
    }

    /// The packets of a direction, in the order in which they were added.
    pub fn packets(&mut self, flow: usize, is_reverse: bool) -> io::Result<SpooledPackets> {
        let Some(direction) = self.direction(flow, is_reverse) else { return Ok(SpooledPackets::default()) };
        let (count, buffer, mut chunk) = (direction.count, direction.buffer.clone(), direction.last_chunk);
        let mut parts = vec![buffer];
        while let Some(file) = self.file.as_mut().filter(|_| chunk != NO_CHUNK) {
            let mut header = [0; CHUNK_HEADER];
            file.seek(SeekFrom::Start(chunk))?;
            file.read_exact(&mut header)?;
            let number = u128::from_le_bytes(header);
            let mut bytes = vec![0; (number >> u64::BITS) as usize];
            file.read_exact(&mut bytes)?;
            parts.push(bytes);
            chunk = number as u64;
        }
        parts.reverse();
        Ok(SpooledPackets { bytes: parts.concat().into(), count, cursor: Mutex::default() })
    }

    fn direction(&self, flow: usize, is_reverse: bool) -> Option<&Direction> {
        let [forward, reverse] = self.directions.get(flow)?;
        Some(if is_reverse { reverse } else { forward })
    }

    fn write_buffers(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(nameless_file(&self.folder)?),
        };
        file.seek(SeekFrom::Start(self.written))?;
        let mut out = io::BufWriter::with_capacity(1 << 20, file);
        for direction in self.directions.iter_mut().flatten().filter(|one| !one.buffer.is_empty()) {
            let buffer = std::mem::take(&mut direction.buffer);
            let number = u128::from(direction.last_chunk) | (buffer.len() as u128) << u64::BITS;
            out.write_all(&number.to_le_bytes())?;
            out.write_all(&buffer)?;
            direction.last_chunk = self.written;
            self.written += (CHUNK_HEADER + buffer.len()) as u64;
        }
        self.buffered = 0;
        out.flush()
    }
}

/// One direction of a flow.
struct Direction {
    count: usize,
    is_simulated: bool,
    last_chunk: u64,
    buffer: Vec<u8>,
    before: Numbers,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            count: 0,
            is_simulated: false,
            last_chunk: NO_CHUNK,
            buffer: Vec::new(),
            before: Numbers::default(),
        }
    }
}

/// The numbers from which the next packet's are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
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

impl Direction {
    /// Keep a packet; return how many bytes it took.
    fn add(&mut self, packet: &SpooledPacket) -> usize {
        let start = self.buffer.len();
        let (out, before) = (&mut self.buffer, &mut self.before);
        let uid = packet.sighting.and_then(|sighting| sighting.uid);
        let has = [
            (HAS_SEQ_REL, packet.seq_rel.is_some()),
            (HAS_SEQUENCE, packet.sequence.is_some()),
            (HAS_ECN, packet.ecn.is_some()),
            (HAS_EVENT, packet.event.is_some()),
            (HAS_SIGHTING, packet.sighting.is_some()),
            (HAS_UID, uid.is_some()),
        ];
        out.push(has.into_iter().filter(|(_, is_there)| *is_there).map(|(bit, _)| bit).sum());
        write_difference(out, &mut before.time_ns, packet.time_ns as u64);
        write_number(out, packet.payload_bytes.into());
        if let Some(seq_rel) = packet.seq_rel {
            write_difference(out, &mut before.seq_rel, seq_rel as u64);
        }
        if let Some(sequence) = packet.sequence {
            write_difference(out, &mut before.sequence, sequence);
        }
        out.extend(packet.ecn);
        out.extend(packet.event.map(|event| event as u8));
        if let Some(sighting) = packet.sighting {
            out.extend([sighting.layer as u8, sighting.point as u8]);
        }
        if let Some(uid) = uid {
            write_difference(out, &mut before.uid, uid);
            self.is_simulated = true;
        }
        self.count += 1;
        self.buffer.len() - start
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

/// The packets of one direction, decoded as they are asked for.
#[derive(Default)]
pub struct SpooledPackets {
    bytes: Arc<[u8]>,
    count: usize,
    cursor: Mutex<Cursor>,
}

impl SpooledPackets {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Packets `start..end`; quick if they follow those of the last call.
    pub fn range(&self, start: usize, end: usize) -> Vec<SpooledPacket> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor.packets > start {
            *cursor = Cursor::default();
        }
        while cursor.packets < start && cursor.next(&self.bytes).is_some() {}
        (start..end.min(self.count)).map_while(|_| cursor.next(&self.bytes)).collect()
    }
}

#[derive(Default)]
struct Cursor {
    place: usize,
    packets: usize,
    before: Numbers,
}

impl Cursor {
    fn next(&mut self, bytes: &[u8]) -> Option<SpooledPacket> {
        let mut rest = bytes.get(self.place..)?;
        let has = read_byte(&mut rest)?;
        let before = &mut self.before;
        let time_ns = read_difference(&mut rest, &mut before.time_ns)? as i64;
        let payload_bytes = read_number(&mut rest)? as u32;
        let mut seq_rel = None;
        if has & HAS_SEQ_REL != 0 {
            seq_rel = Some(read_difference(&mut rest, &mut before.seq_rel)? as i64);
        }
        let mut sequence = None;
        if has & HAS_SEQUENCE != 0 {
            sequence = Some(read_difference(&mut rest, &mut before.sequence)?);
        }
        let ecn = if has & HAS_ECN != 0 { Some(read_byte(&mut rest)?) } else { None };
        let mut event = None;
        if has & HAS_EVENT != 0 {
            event = Some(*Event::ALL.get(usize::from(read_byte(&mut rest)?))?);
        }
        let mut sighting = None;
        if has & HAS_SIGHTING != 0 {
            let layer = *NodeLayer::ALL.get(usize::from(read_byte(&mut rest)?))?;
            let point = *PathPoint::ALL.get(usize::from(read_byte(&mut rest)?))?;
            let mut uid = None;
            if has & HAS_UID != 0 {
                uid = Some(read_difference(&mut rest, &mut before.uid)?);
            }
            sighting = Some(SpooledSighting { layer, point, uid });
        }
        self.place = bytes.len() - rest.len();
        self.packets += 1;
        Some(SpooledPacket { time_ns, payload_bytes, seq_rel, sequence, ecn, event, sighting })
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::fs;

    use super::*;

    fn packet() -> impl Strategy<Value = SpooledPacket> {
        let sighting = (0..NodeLayer::ALL.len(), 0..PathPoint::ALL.len(), any::<Option<u64>>()).prop_map(
            |(layer, point, uid)| SpooledSighting {
                layer: NodeLayer::ALL[layer],
                point: PathPoint::ALL[point],
                uid,
            },
        );
        let event = (0..Event::ALL.len()).prop_map(|event| Event::ALL[event]);
        (
            any::<i64>(),
            any::<u32>(),
            any::<Option<i64>>(),
            any::<Option<u64>>(),
            any::<Option<u8>>(),
            proptest::option::of(event),
            proptest::option::of(sighting),
        )
            .prop_map(|(time_ns, payload_bytes, seq_rel, sequence, ecn, event, sighting)| {
                SpooledPacket { time_ns, payload_bytes, seq_rel, sequence, ecn, event, sighting }
            })
    }

    proptest! {
        #[test]
        fn test_packets_come_back_in_order_whatever_is_kept_in_memory(
            packets in proptest::collection::vec((0..3usize, any::<bool>(), packet()), 0..60),
            most_buffered in 0..300usize,
            step in 1..7usize,
        ) {
            let mut spool = PacketSpool::new(std::env::temp_dir(), most_buffered);
            for (flow, is_reverse, packet) in &packets {
                spool.add(*flow, *is_reverse, packet).unwrap();
            }
            for (flow, is_reverse) in (0..3).flat_map(|flow| [(flow, false), (flow, true)]) {
                let own: Vec<_> = packets
                    .iter()
                    .filter(|(one, reverse, _)| (*one, *reverse) == (flow, is_reverse))
                    .map(|(_, _, packet)| *packet)
                    .collect();
                let read = spool.packets(flow, is_reverse).unwrap();
                prop_assert_eq!(read.len(), own.len());
                prop_assert_eq!(spool.count(flow, is_reverse), own.len());
                let pieces: Vec<_> =
                    (0..own.len()).step_by(step).flat_map(|start| read.range(start, start + step)).collect();
                prop_assert_eq!(&pieces, &own);
                // again from the start, and from any place
                prop_assert_eq!(read.range(0, own.len()), own.clone());
                prop_assert_eq!(&read.range(step, own.len()), own.get(step..).unwrap_or_default());
            }
        }
    }

    #[test]
    fn test_a_folder_that_is_not_there_is_an_error() {
        let mut spool = PacketSpool::new(PathBuf::from("/nowhere"), 0);
        let packet = SpooledPacket {
            time_ns: 1,
            payload_bytes: 1,
            seq_rel: None,
            sequence: None,
            ecn: None,
            event: None,
            sighting: None,
        };
        assert_eq!(spool.add(0, false, &packet).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn test_the_file_has_no_name() {
        let folder = std::env::temp_dir().join(format!("spool-test-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mut file = nameless_file(&folder).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
    }
}
