//! What a replay needs of each direction, in little memory: beyond a bound it goes to a temporary file.
//!
//! Each direction has chains of chunks in the file, and buffers of what was not yet written.

pub mod records;

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::flow::ends::nameless_file::nameless_file;
use crate::flow::flow_places::{FLOWS, index_by_group, index_in_group};
use crate::flow::tcp::Outcome;
use crate::flow::{Flow, Found};
use crate::packet::event::Packet;
use crate::packet::extras::PacketExtras;
use crate::packet::key::Side;
use crate::packet::plain::PlainSegment;
use records::{Spooled, SpooledPacket, SpooledRound, SpooledRoundTrip};

/// No chunk comes before.
const NO_CHUNK: u64 = u64::MAX;

/// Place of the chunk before, and bytes of this one.
const CHUNK_HEADER: usize = 16;

/// A file without a name, made when something is written; spools share it.
#[derive(Debug)]
pub struct SpoolFile {
    folder: PathBuf,
    file: Option<File>,
    written: u64,
}

impl SpoolFile {
    /// A file of `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, file: None, written: 0 }
    }

    /// Append what the chains give.
    fn append<'a>(&mut self, buffers: impl Iterator<Item = Buffer<'a>>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(nameless_file(&self.folder)?),
        };
        file.seek(SeekFrom::Start(self.written))?;
        let mut out = io::BufWriter::with_capacity(1 << 20, file);
        for (last_chunk, buffer) in buffers.filter(|(_, buffer)| !buffer.is_empty()) {
            let bytes = std::mem::take(buffer);
            out.write_all(&last_chunk.to_le_bytes())?;
            out.write_all(&(bytes.len() as u64).to_le_bytes())?;
            out.write_all(&bytes)?;
            *last_chunk = self.written;
            self.written += (CHUNK_HEADER + bytes.len()) as u64;
        }
        out.flush()
    }

    /// What the chain whose last chunk is at `chunk` has in the file.
    fn read(&self, mut chunk: u64) -> io::Result<Vec<u8>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut chunks = Vec::new();
        while chunk != NO_CHUNK {
            let mut numbers = [[0; 8]; 2];
            file.read_exact_at(numbers.as_flattened_mut(), chunk)?;
            let [before, bytes] = numbers.map(u64::from_le_bytes);
            chunks.push((chunk + CHUNK_HEADER as u64, bytes as usize));
            chunk = before;
        }
        let mut all = vec![0; chunks.iter().map(|(_, bytes)| bytes).sum()];
        let mut rest = &mut all[..];
        for (start, bytes) in chunks.into_iter().rev() {
            let (chunk, after) = rest.split_at_mut(bytes);
            file.read_exact_at(chunk, start)?;
            rest = after;
        }
        Ok(all)
    }
}

/// Place of a chain's last chunk, and what was not yet written.
type Buffer<'a> = (&'a mut u64, &'a mut Vec<u8>);

/// Records of one kind of one direction.
#[derive(Debug)]
struct Chain<T: Spooled> {
    count: usize,
    last_chunk: u64,
    buffer: Vec<u8>,
    before: T::Before,
}

impl<T: Spooled> Default for Chain<T> {
    fn default() -> Self {
        Self { count: 0, last_chunk: NO_CHUNK, buffer: Vec::new(), before: T::Before::default() }
    }
}

impl<T: Spooled> Chain<T> {
    /// Keep a record; return how many bytes it took.
    fn add(&mut self, record: &T) -> usize {
        let start = self.buffer.len();
        record.write(&mut self.before, &mut self.buffer);
        self.count += 1;
        self.buffer.len() - start
    }

    fn buffer(&mut self) -> Buffer<'_> {
        (&mut self.last_chunk, &mut self.buffer)
    }

    fn read(&self, file: &SpoolFile) -> io::Result<SpooledRows<T>> {
        let mut bytes = file.read(self.last_chunk)?;
        bytes.extend_from_slice(&self.buffer);
        Ok(SpooledRows { bytes, count: self.count, cursor: Mutex::default() })
    }
}

/// One direction of a flow.
#[derive(Debug, Default)]
struct Direction {
    packets: Chain<SpooledPacket>,
    is_simulated: bool,
    of_tcp: Option<Box<TcpChains>>,
}

#[derive(Debug, Default)]
struct TcpChains {
    round_trips: Chain<SpooledRoundTrip>,
    rounds: Chain<SpooledRound>,
}

impl Direction {
    fn buffers(&mut self) -> impl Iterator<Item = Buffer<'_>> {
        let of_tcp = self.of_tcp.as_deref_mut();
        let of_tcp = of_tcp.map(|chains| [chains.round_trips.buffer(), chains.rounds.buffer()]);
        std::iter::once(self.packets.buffer()).chain(of_tcp.into_iter().flatten())
    }
}

/// The directions of a flow, as far as they have records.
#[derive(Debug, Default)]
struct Directions([Option<Box<Direction>>; 2]);

impl Directions {
    #[inline]
    fn of_mut(&mut self, side: Side) -> &mut Direction {
        self.0[side as usize].get_or_insert_default()
    }

    /// Keep a packet of `side`; return how many bytes it took.
    #[inline]
    fn add_packet(&mut self, side: Side, packet: &SpooledPacket) -> usize {
        let direction = self.of_mut(side);
        direction.is_simulated |= packet.is_simulated();
        direction.packets.add(packet)
    }

    /// Keep what a packet of `side` showed of the other direction; return how many bytes that took.
    #[inline]
    fn add_answers(&mut self, side: Side, time_ns: i64, outcome: &Outcome) -> usize {
        let round_trip = outcome.rtt.map(|rtt| rtt.ns).filter(|&rtt_ns| rtt_ns > 0);
        if round_trip.is_none() && outcome.round.is_none() {
            return 0;
        }
        let chains = self.of_mut(side.other()).of_tcp.get_or_insert_default();
        let round_trip = round_trip.map(|rtt_ns| SpooledRoundTrip { time_ns, rtt_ns });
        let round = outcome
            .round
            .map(|round| SpooledRound { start_ns: round.start_ns, is_data_limited: round.is_data_limited });
        round_trip.map_or(0, |one| chains.round_trips.add(&one))
            + round.map_or(0, |one| chains.rounds.add(&one))
    }
}

/// The directions of a group of flows.
pub struct SpoolOfGroup<'a>(&'a mut [Directions]);

impl SpoolOfGroup<'_> {
    /// Keep a plain segment that its flow has taken, and what it showed; return how many bytes that took.
    #[inline(always)]
    pub fn add(&mut self, found: Found, segment: &PlainSegment, flow: &Flow, outcome: &Outcome) -> usize {
        let directions = &mut self.0[index_in_group(found.flow)];
        let answers = directions.add_answers(found.side, segment.time_ns, outcome);
        answers
            + plain_packet(found, segment, flow)
                .map_or(0, |packet| directions.add_packet(found.side, &packet))
    }
}

/// What is kept of a plain segment that its flow has taken.
#[inline(always)]
fn plain_packet(found: Found, segment: &PlainSegment, flow: &Flow) -> Option<SpooledPacket> {
    let connection = flow.transport.tcp.as_ref().filter(|_| segment.payload > 0);
    let position = connection.and_then(|tcp| tcp.half(found.side).sent.position(segment.tcp.seq));
    (segment.payload > 0).then(|| SpooledPacket::of_plain(segment, position))
}

/// The directions of the flows of one pass.
#[derive(Debug)]
pub struct Spool {
    /// Group by group.
    directions: Vec<Directions>,
    buffered: usize,
    most_buffered: usize,
    file: Arc<Mutex<SpoolFile>>,
    /// Why the file could not be written; then nothing more is kept.
    error: Option<io::Error>,
}

impl Spool {
    /// A spool that keeps at most `most_buffered` bytes in memory, and the rest in `file`.
    pub fn new(file: &Arc<Mutex<SpoolFile>>, most_buffered: usize) -> Self {
        Self { directions: Vec::new(), buffered: 0, most_buffered, file: Arc::clone(file), error: None }
    }

    /// The error that stopped it, if there was one.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Keep a packet of the flow and side.
    #[inline]
    pub fn add_packet(&mut self, found: Found, packet: &SpooledPacket) {
        let bytes = self.directions_mut(found.flow).add_packet(found.side, packet);
        self.count_buffered(bytes);
    }

    /// Keep what a replay needs of a packet that its flow has taken.
    #[cold]
    #[inline(never)]
    pub fn add_taken(&mut self, found: Found, packet: &Packet, extras: &PacketExtras, flow: &Flow) {
        if let Some(spooled) = SpooledPacket::of(packet, extras, found, flow) {
            self.add_packet(found, &spooled);
        }
    }

    /// The same of a plain segment.
    #[inline(always)]
    pub fn add_plain(&mut self, found: Found, segment: &PlainSegment, flow: &Flow) {
        if let Some(packet) = plain_packet(found, segment, flow) {
            self.add_packet(found, &packet);
        }
    }

    /// Keep what a packet of the flow and side showed of the other direction.
    #[inline]
    pub fn add_answers(&mut self, found: Found, time_ns: i64, outcome: &Outcome) {
        let bytes = self.directions_mut(found.flow).add_answers(found.side, time_ns, outcome);
        self.count_buffered(bytes);
    }

    /// The directions of each of the first `groups` of flows, to be filled by one thread each.
    pub fn by_group(&mut self, groups: usize) -> impl Iterator<Item = SpoolOfGroup<'_>> {
        if self.directions.len() < groups * FLOWS {
            self.directions.resize_with(groups * FLOWS, Directions::default);
        }
        self.directions.chunks_mut(FLOWS).map(SpoolOfGroup)
    }

    /// How many packets a direction has.
    pub fn count(&self, flow: u32, side: Side) -> usize {
        self.direction(flow, side).map_or(0, |direction| direction.packets.count)
    }

    /// Whether a simulator shows any packet of the direction.
    pub fn is_simulated(&self, flow: u32, side: Side) -> bool {
        self.direction(flow, side).is_some_and(|direction| direction.is_simulated)
    }

    /// The packets of a direction in the order of the trace.
    pub fn packets(&self, flow: u32, side: Side) -> io::Result<SpooledRows<SpooledPacket>> {
        self.read(self.direction(flow, side).map(|direction| &direction.packets))
    }

    /// The round-trip times of its acknowledgements.
    pub fn round_trips(&self, flow: u32, side: Side) -> io::Result<SpooledRows<SpooledRoundTrip>> {
        let of_tcp = self.direction(flow, side).and_then(|direction| direction.of_tcp.as_deref());
        self.read(of_tcp.map(|chains| &chains.round_trips))
    }

    /// Its rounds.
    pub fn rounds(&self, flow: u32, side: Side) -> io::Result<SpooledRows<SpooledRound>> {
        let of_tcp = self.direction(flow, side).and_then(|direction| direction.of_tcp.as_deref());
        self.read(of_tcp.map(|chains| &chains.rounds))
    }

    fn read<T: Spooled>(&self, chain: Option<&Chain<T>>) -> io::Result<SpooledRows<T>> {
        chain.map_or_else(|| Ok(SpooledRows::default()), |chain| chain.read(&self.file()))
    }

    fn file(&self) -> MutexGuard<'_, SpoolFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn direction(&self, flow: u32, side: Side) -> Option<&Direction> {
        self.directions.get(index_by_group(flow))?.0[side as usize].as_deref()
    }

    #[inline]
    fn directions_mut(&mut self, flow: u32) -> &mut Directions {
        let index = index_by_group(flow);
        if index >= self.directions.len() {
            self.directions.resize_with(index + 1, Directions::default);
        }
        &mut self.directions[index]
    }

    /// Count bytes that were added, and write all if there are too many.
    pub fn count_buffered(&mut self, bytes: usize) {
        self.buffered += bytes;
        if self.buffered > self.most_buffered {
            self.write_buffers();
        }
    }

    #[cold]
    fn write_buffers(&mut self) {
        self.buffered = 0;
        if self.error.is_none() {
            let directions = self.directions.iter_mut().flat_map(|both| &mut both.0).flatten();
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            self.error = file.append(directions.flat_map(|direction| direction.buffers())).err();
        }
        if self.error.is_some() {
            self.directions.clear();
        }
    }
}

/// The records of one kind of one direction, decoded as they are asked for.
pub struct SpooledRows<T: Spooled> {
    bytes: Vec<u8>,
    count: usize,
    cursor: Mutex<Cursor<T>>,
}

impl<T: Spooled> Default for SpooledRows<T> {
    fn default() -> Self {
        Self { bytes: Vec::new(), count: 0, cursor: Mutex::default() }
    }
}

impl<T: Spooled> SpooledRows<T> {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Records `start..end`; quick if they follow those of the last call.
    pub fn range(&self, start: usize, end: usize) -> Vec<T> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor.records > start {
            *cursor = Cursor::default();
        }
        while cursor.records < start && cursor.next(&self.bytes).is_some() {}
        (start..end.min(self.count)).map_while(|_| cursor.next(&self.bytes)).collect()
    }
}

struct Cursor<T: Spooled> {
    place: usize,
    records: usize,
    before: T::Before,
}

impl<T: Spooled> Default for Cursor<T> {
    fn default() -> Self {
        Self { place: 0, records: 0, before: T::Before::default() }
    }
}

impl<T: Spooled> Cursor<T> {
    fn next(&mut self, bytes: &[u8]) -> Option<T> {
        let mut rest = bytes.get(self.place..)?;
        let record = T::read(&mut rest, &mut self.before)?;
        self.place = bytes.len() - rest.len();
        self.records += 1;
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::fs;

    use super::records::SpooledSighting;
    use super::*;
    use crate::flow::rtt_statistics::{RoundTrip, RttMethod};
    use crate::flow::tcp::Round;
    use crate::flow::tcp::ecn::RoundMarks;
    use crate::packet::event::{Event, NodeLayer, PathPoint};

    fn spool(folder: PathBuf, most_buffered: usize) -> Spool {
        Spool::new(&Arc::new(Mutex::new(SpoolFile::new(folder))), most_buffered)
    }

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

    fn round_trip() -> impl Strategy<Value = SpooledRoundTrip> {
        (any::<i64>(), any::<u64>()).prop_map(|(time_ns, rtt_ns)| SpooledRoundTrip { time_ns, rtt_ns })
    }

    fn ended(round: SpooledRound) -> Round {
        Round {
            start_ns: round.start_ns,
            duration_ns: 0,
            flight: 0,
            window: None,
            delivered: 0,
            rtt_ns: None,
            fills_window: false,
            is_data_limited: round.is_data_limited,
            repair: None,
            last_flight: None,
            marks: RoundMarks::default(),
        }
    }

    fn round() -> impl Strategy<Value = SpooledRound> {
        (any::<i64>(), any::<bool>())
            .prop_map(|(start_ns, is_data_limited)| SpooledRound { start_ns, is_data_limited })
    }

    /// The records come back whole, in pieces, from the start again, and from any place.
    fn check<T: Spooled + PartialEq + std::fmt::Debug>(read: &SpooledRows<T>, own: &[T], step: usize) {
        assert_eq!(read.len(), own.len());
        let pieces: Vec<_> =
            (0..own.len()).step_by(step).flat_map(|start| read.range(start, start + step)).collect();
        assert_eq!(pieces, own);
        assert_eq!(read.range(0, own.len()), own);
        assert_eq!(read.range(step, own.len()), own.get(step..).unwrap_or_default());
    }

    proptest! {
        #[test]
        fn test_records_come_back_in_order_whatever_is_kept_in_memory(
            records in proptest::collection::vec(
                (0..3_u32, any::<bool>(), packet(), proptest::option::of(round_trip()), proptest::option::of(round())),
                0..60,
            ),
            most_buffered in 0..300usize,
            step in 1..7usize,
        ) {
            let mut spool = spool(std::env::temp_dir(), most_buffered);
            let side = |is_high| if is_high { Side::High } else { Side::Low };
            let mut kept: [[(Vec<_>, Vec<_>, Vec<_>); 2]; 3] = Default::default();
            for &(flow, is_high, packet, round_trip, round) in &records {
                let own = &mut kept[flow as usize][usize::from(is_high)];
                let side = side(is_high);
                spool.add_packet(Found { flow, side }, &packet);
                let outcome = Outcome {
                    rtt: round_trip.map(|one| RoundTrip::new(one.rtt_ns, RttMethod::Ack)),
                    round: round.map(ended),
                    ..Outcome::default()
                };
                let time_ns = round_trip.map_or(0, |one| one.time_ns);
                spool.add_answers(Found { flow, side: side.other() }, time_ns, &outcome);
                own.0.push(packet);
                own.1.extend(round_trip.filter(|one| one.rtt_ns > 0));
                own.2.extend(round);
            }
            for (flow, is_high) in (0..3).flat_map(|flow| [(flow, false), (flow, true)]) {
                let (packets, round_trips, rounds) = &kept[flow as usize][usize::from(is_high)];
                check(&spool.packets(flow, side(is_high)).unwrap(), packets, step);
                check(&spool.round_trips(flow, side(is_high)).unwrap(), round_trips, step);
                check(&spool.rounds(flow, side(is_high)).unwrap(), rounds, step);
                prop_assert_eq!(spool.count(flow, side(is_high)), packets.len());
            }
        }
    }

    #[test]
    fn test_a_folder_that_is_not_there_is_an_error() {
        let mut spool = spool(PathBuf::from("/nowhere"), 0);
        let segment = PlainSegment { payload: 1, ..PlainSegment::default() };
        let found = Found { flow: 0, side: Side::Low };
        spool.add_packet(found, &SpooledPacket::of_plain(&segment, None));
        spool.add_packet(found, &SpooledPacket::of_plain(&segment, None));
        assert_eq!(spool.take_error().unwrap().kind(), io::ErrorKind::NotFound);
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
