//! The pcapng format (draft-ietf-opsawg-pcapng): sections of blocks, each section in its own byte
//! order, each interface with its own link type, snap length and time resolution.

use super::{Counters, Interface, MAX_RECORD, Records, Resolution, u32_at};
use crate::error::{ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::packet::link_type::LinkType;
use crate::packet::record::Record;

pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const OBSOLETE_PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub const INTERFACE_STATISTICS: u32 = 5;
pub const ENHANCED_PACKET: u32 = 6;

/// The longest block that is parsed; libpcap's own bound. Parsed blocks are read whole.
const MAX_BLOCK: u32 = 16 << 20;
/// A file may declare any number of interfaces; each costs memory.
const MAX_INTERFACES: usize = 65_536;
/// How far ahead the first time is looked for if packets without one come first.
const LOOK_AHEAD: usize = 64 << 10;
/// Names longer than this are cut.
const MAX_NAME: usize = 256;

// Options of the blocks that are parsed.
const END_OF_OPTIONS: u16 = 0;
pub const IF_NAME: u16 = 2;
pub const IF_TSRESOL: u16 = 9;
const IF_FILTER: u16 = 11;
const IF_TSOFFSET: u16 = 14;
const ISB_STARTTIME: u16 = 2;
const ISB_ENDTIME: u16 = 3;
const ISB_IFRECV: u16 = 4;
pub const ISB_IFDROP: u16 = 5;
const ISB_FILTERACCEPT: u16 = 6;
const ISB_OSDROP: u16 = 7;

/// Reads blocks in order and returns packets.
pub struct PcapngReader {
    input: Input,
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Interfaces of earlier sections: numbers in this section start here.
    section_base: usize,
    current: usize,
    /// The time of the last packet that has one.
    latest_ns: Option<i64>,
}

/// The fields of a packet block before its data.
struct PacketHeader {
    interface: u32,
    /// None in a simple packet block.
    ticks: Option<u64>,
    captured: u32,
    wire_bytes: u32,
    /// Where the packet begins in the block.
    data: usize,
}

impl PacketHeader {
    #[inline(always)]
    fn enhanced(header: &[u8; 28], big_endian: bool) -> Self {
        let high = u32_at(header, 12, big_endian);
        let low = u32_at(header, 16, big_endian);
        Self {
            interface: u32_at(header, 8, big_endian),
            ticks: Some(u64::from(high) << 32 | u64::from(low)),
            captured: u32_at(header, 20, big_endian),
            wire_bytes: u32_at(header, 24, big_endian),
            data: 28,
        }
    }
}

impl Records for PcapngReader {
    #[inline(always)]
    fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.input.consume(self.current);
        self.current = 0;
        if let Some((packet, length)) = self.whole_packet() {
            return self.record(packet, length).map(Some);
        }
        loop {
            let Some((kind, length)) = self.block_header()? else {
                return Ok(None);
            };
            let packet = match kind {
                ENHANCED_PACKET => self.enhanced_packet(length)?,
                SIMPLE_PACKET => self.simple_packet(length)?,
                OBSOLETE_PACKET => self.obsolete_packet(length)?,
                _ => {
                    self.other_block(kind, length)?;
                    continue;
                }
            };
            return self.record(packet, length).map(Some);
        }
    }

    fn is_at_hand(&mut self) -> bool {
        self.input.consume(std::mem::take(&mut self.current));
        self.whole_packet().is_some()
    }
}

/// A whole block as it is in the file, and the packet in it, if it has one.
pub struct Block<'a> {
    pub kind: u32,
    pub bytes: &'a [u8],
    pub big_endian: bool,
    pub packet: Option<Record<'a>>,
    /// Where the options of a packet begin; None if it cannot have any.
    pub options_at: Option<usize>,
}

impl PcapngReader {
    /// The next block, of whatever kind; None at the end. Blocks of unknown kinds that are longer than a
    /// parsed block may be are passed over, and `skipped` counts them.
    pub fn next_block(&mut self, skipped: &mut u64) -> Result<Option<Block<'_>>, ReadError> {
        loop {
            self.input.consume(self.current);
            self.current = 0;
            let Some((kind, length)) = self.block_header()? else {
                return Ok(None);
            };
            let packet = match kind {
                ENHANCED_PACKET => self.enhanced_packet(length)?,
                SIMPLE_PACKET => self.simple_packet(length)?,
                OBSOLETE_PACKET => self.obsolete_packet(length)?,
                SECTION_HEADER | INTERFACE_DESCRIPTION | INTERFACE_STATISTICS => {
                    let length = self.note_block(kind, length)?;
                    return self.block(kind, length).map(Some);
                }
                _ if length > MAX_BLOCK => {
                    self.skip_block(length)?;
                    *skipped += 1;
                    continue;
                }
                _ => return self.block(kind, length).map(Some),
            };
            let start = packet.data;
            let Record { time_ns, interface, link_type, wire_bytes, data } = self.record(packet, length)?;
            let end = start + data.len();
            let (bytes, big_endian) = (&self.input.window()[..length as usize], self.big_endian);
            let packet = Record { time_ns, interface, link_type, wire_bytes, data: &bytes[start..end] };
            let options_at = (kind != SIMPLE_PACKET).then(|| start + (end - start).next_multiple_of(4));
            return Ok(Some(Block { kind, bytes, big_endian, packet: Some(packet), options_at }));
        }
    }

    /// A block without a packet, which the next call passes over.
    fn block(&mut self, kind: u32, length: u32) -> Result<Block<'_>, ReadError> {
        self.need(length, "block")?;
        self.current = length as usize;
        let (bytes, big_endian) = (&self.input.window()[..self.current], self.big_endian);
        Ok(Block { kind, bytes, big_endian, packet: None, options_at: None })
    }

    /// Start at the first section header.
    pub fn open(input: Input) -> Result<Self, ReadError> {
        let mut reader = Self {
            input,
            big_endian: false,
            interfaces: Vec::new(),
            section_base: 0,
            current: 0,
            latest_ns: None,
        };
        // The byte order follows from the first block, which is read like any other.
        let length = reader.note_section()?;
        reader.need(length, "block")?;
        Ok(reader)
    }

    /// The interfaces of all sections so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The usual block: an enhanced packet that is whole in the window. None for others and for
    /// invalid ones, which the general reader explains.
    #[inline(always)]
    fn whole_packet(&self) -> Option<(PacketHeader, u32)> {
        let window = self.input.window();
        let header = window.first_chunk::<28>()?;
        let kind = u32_at(header, 0, self.big_endian);
        let length = u32_at(header, 4, self.big_endian);
        let is_whole = kind == ENHANCED_PACKET
            && length >= 32
            && length.is_multiple_of(4)
            && self.last_length(window.get(..length as usize)?) == Some(length);
        is_whole.then(|| (PacketHeader::enhanced(header, self.big_endian), length))
    }

    /// Type and total length of the block at the window's start.
    #[inline(always)]
    fn block_header(&mut self) -> Result<Option<(u32, u32)>, ReadError> {
        let big_endian = self.big_endian;
        let bytes = self.input.peek(8)?;
        let Some(header) = bytes.first_chunk::<8>() else {
            let have = bytes.len();
            return if have == 0 { Ok(None) } else { Err(self.input.cut("block header", 8)) };
        };
        let kind = u32_at(header, 0, big_endian);
        let length = u32_at(header, 4, big_endian);
        if kind == SECTION_HEADER {
            // The length is in the byte order that this block declares.
            return Ok(Some((kind, 0)));
        }
        if length < 12 || length % 4 != 0 {
            let expected = if length < 12 { "at least 12" } else { "a multiple of 4" };
            return Err(self.corrupt(format!("block length {length}, expected {expected}")));
        }
        Ok(Some((kind, length)))
    }

    /// Make the whole block of `length` bytes part of the window.
    #[inline(always)]
    fn need(&mut self, length: u32, what: &str) -> Result<&[u8], ReadError> {
        let need = length as usize;
        if self.input.window().len() < need {
            if length > MAX_BLOCK {
                return Err(self.corrupt(format!("{what} of {length} bytes, expected at most {MAX_BLOCK}")));
            }
            if self.input.peek(need)?.len() < need {
                return Err(self.input.cut(what, need));
            }
        }
        let block = &self.input.window()[..need];
        match self.last_length(block) {
            Some(last) if last != length => Err(self.contradiction(length, last)),
            _ => Ok(block),
        }
    }

    /// The length at the end of a block, which repeats the one at its beginning.
    #[inline(always)]
    fn last_length(&self, block: &[u8]) -> Option<u32> {
        let &bytes = block.last_chunk::<4>()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn enhanced_packet(&mut self, length: u32) -> Result<PacketHeader, ReadError> {
        let big_endian = self.big_endian;
        let block = self.need(length, "packet block")?;
        let Some(header) = block.first_chunk::<28>().filter(|_| length >= 32) else {
            return Err(self.short_block("enhanced packet", length, 32));
        };
        Ok(PacketHeader::enhanced(header, big_endian))
    }

    /// The obsolete packet block: like the enhanced one, with a 16-bit interface and a drop count.
    fn obsolete_packet(&mut self, length: u32) -> Result<PacketHeader, ReadError> {
        let big_endian = self.big_endian;
        let mut packet = self.enhanced_packet(length)?;
        let word = packet.interface;
        packet.interface = if big_endian { word >> 16 } else { word & 0xffff };
        Ok(packet)
    }

    /// The time of the first enhanced packet block that is near; None if there is none.
    fn first_time_ahead(&mut self) -> Result<Option<i64>, ReadError> {
        let (big_endian, base) = (self.big_endian, self.section_base);
        let mut rest = self.input.peek(LOOK_AHEAD)?;
        while let Some(header) = rest.first_chunk::<28>() {
            let length = u32_at(header, 4, big_endian);
            if u32_at(header, 0, big_endian) == ENHANCED_PACKET {
                let packet = PacketHeader::enhanced(header, big_endian);
                let interface = self.interfaces.get(base + packet.interface as usize);
                return Ok(interface.zip(packet.ticks).map(|(interface, ticks)| interface.time.to_ns(ticks)));
            }
            match rest.get(length as usize..) {
                Some(after) if length >= 12 => rest = after,
                _ => break,
            }
        }
        Ok(None)
    }

    /// A simple packet block has no time and gets that of the packet before it, or of the next one if it
    /// comes first. It belongs to interface 0; its captured length is the
    /// lesser of the length on the wire and the snap length.
    fn simple_packet(&mut self, length: u32) -> Result<PacketHeader, ReadError> {
        let big_endian = self.big_endian;
        let snap_length = self.interfaces.get(self.section_base).map_or(0, |i| i.snap_length);
        let block = self.need(length, "packet block")?;
        let Some(header) = block.first_chunk::<12>().filter(|_| length >= 16) else {
            return Err(self.short_block("simple packet", length, 16));
        };
        let wire_bytes = u32_at(header, 8, big_endian);
        if self.latest_ns.is_none() {
            self.latest_ns = self.first_time_ahead()?;
        }
        let limit = if snap_length == 0 { u32::MAX } else { snap_length };
        Ok(PacketHeader {
            interface: 0,
            ticks: None,
            captured: wire_bytes.min(limit).min(length - 16),
            wire_bytes,
            data: 12,
        })
    }

    #[inline(always)]
    fn record(&mut self, packet: PacketHeader, length: u32) -> Result<Record<'_>, ReadError> {
        let end = packet.data + packet.captured as usize;
        if packet.captured > MAX_RECORD || end + 4 > length as usize {
            return Err(self.corrupt(format!("a packet of {} bytes in a block of {length}", packet.captured)));
        }
        let interface = self.section_base + packet.interface as usize;
        let Some(&Interface { time, link_type, .. }) = self.interfaces.get(interface) else {
            return Err(self.corrupt(format!(
                "a packet of interface {}, expected one of the {} declared",
                packet.interface,
                self.interfaces.len() - self.section_base
            )));
        };
        self.current = length as usize;
        if let Some(ticks) = packet.ticks {
            self.latest_ns = Some(time.to_ns(ticks));
        }
        Ok(Record {
            time_ns: self.latest_ns.unwrap_or_default(),
            interface,
            link_type,
            data: &self.input.window()[packet.data..end],
            wire_bytes: packet.wire_bytes.max(packet.captured),
        })
    }

    fn other_block(&mut self, kind: u32, length: u32) -> Result<(), ReadError> {
        let length = self.note_block(kind, length)?;
        self.skip_block(length)
    }

    /// Take what the block at the window's start says of sections and interfaces; returns its length.
    fn note_block(&mut self, kind: u32, length: u32) -> Result<u32, ReadError> {
        match kind {
            SECTION_HEADER => return self.note_section(),
            INTERFACE_DESCRIPTION => self.interface_description(length)?,
            INTERFACE_STATISTICS => self.interface_statistics(length)?,
            // Name resolution, secrets, custom blocks, and types defined later.
            _ => {}
        }
        Ok(length)
    }

    fn skip_block(&mut self, length: u32) -> Result<(), ReadError> {
        let start = self.input.offset();
        if self.input.skip(u64::from(length) - 4)? && self.input.peek(4)?.len() >= 4 {
            let last = self.last_length(&self.input.window()[..4]).filter(|&last| last != length);
            if let Some(last) = last {
                return Err(ReadError { byte: Some(start), ..self.contradiction(length, last) });
            }
            self.input.consume(4);
            return Ok(());
        }
        let have = self.input.offset() - start + self.input.window().len() as u64;
        Err(self.input.cut_at(start, "block", have as usize, length as usize))
    }

    /// Begin a section; returns the length of its header.
    fn note_section(&mut self) -> Result<u32, ReadError> {
        let bytes = self.input.peek(28)?;
        let Some(header) = bytes.first_chunk::<28>() else {
            return Err(self.input.cut("section header", 28));
        };
        self.big_endian = match &header[8..12] {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Err(self.corrupt("a section header without byte-order magic".into())),
        };
        let header = *header;
        let length = u32_at(&header, 4, self.big_endian);
        if length < 28 || length % 4 != 0 {
            return Err(self.corrupt(format!("section header length {length}, expected at least 28")));
        }
        let major = if self.big_endian {
            u16::from_be_bytes([header[12], header[13]])
        } else {
            u16::from_le_bytes([header[12], header[13]])
        };
        if major != 1 {
            return Err(ReadError::at(
                ProblemKind::Unsupported,
                self.input.offset(),
                format!("pcapng version {major}, expected 1"),
            ));
        }
        self.section_base = self.interfaces.len();
        Ok(length)
    }

    fn interface_description(&mut self, length: u32) -> Result<(), ReadError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(self.corrupt(format!("more than {MAX_INTERFACES} interfaces")));
        }
        let big_endian = self.big_endian;
        let block = self.need(length, "interface block")?;
        let Some(header) = block.first_chunk::<16>().filter(|_| length >= 20) else {
            return Err(self.short_block("interface", length, 20));
        };
        let link = u32_at(header, 8, big_endian);
        let mut interface = Interface {
            name: None,
            link_type: LinkType::from_number(if big_endian { link >> 16 } else { link & 0xffff }),
            snap_length: u32_at(header, 12, big_endian),
            is_filtered: false,
            counters: Counters::default(),
            time: Resolution { per_second: 1_000_000, offset_s: 0 },
        };
        for (code, value) in options(&block[16..length as usize - 4], big_endian) {
            match (code, value) {
                (IF_NAME, name) => {
                    let name = &name[..name.len().min(MAX_NAME)];
                    interface.name = Some(String::from_utf8_lossy(name).into_owned());
                }
                (IF_TSRESOL, &[resolution, ..]) => {
                    if let Some(per_second) = ticks_per_second(resolution) {
                        interface.time.per_second = per_second;
                    }
                }
                // The first byte says whether a text or a program follows.
                (IF_FILTER, filter) => interface.is_filtered = filter.len() > 1,
                (IF_TSOFFSET, value) => {
                    if let Some(&bytes) = value.first_chunk::<8>() {
                        interface.time.offset_s =
                            if big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) };
                    }
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Later statistics replace earlier ones. Packets lost by the interface and by the operating
    /// system are counted separately.
    fn interface_statistics(&mut self, length: u32) -> Result<(), ReadError> {
        let big_endian = self.big_endian;
        let section_base = self.section_base;
        let block = self.need(length, "statistics block")?;
        let Some(header) = block.first_chunk::<20>().filter(|_| length >= 24) else {
            return Err(self.short_block("statistics", length, 24));
        };
        let interface = section_base + u32_at(header, 8, big_endian) as usize;
        let mut told = Counters::default();
        // a time is two words, the higher one first, in ticks of its interface
        let (mut start, mut end) = (None, None);
        for (code, value) in options(&block[20..length as usize - 4], big_endian) {
            let Some(value) = value.first_chunk::<8>() else { continue };
            let ticks =
                u64::from(u32_at(value, 0, big_endian)) << 32 | u64::from(u32_at(value, 4, big_endian));
            let count = if big_endian { u64::from_be_bytes(*value) } else { u64::from_le_bytes(*value) };
            match code {
                ISB_STARTTIME => start = Some(ticks),
                ISB_ENDTIME => end = Some(ticks),
                ISB_IFRECV => told.received = Some(count),
                ISB_FILTERACCEPT => told.accepted = Some(count),
                ISB_IFDROP | ISB_OSDROP => {
                    told.dropped = Some(told.dropped.unwrap_or(0).saturating_add(count));
                }
                _ => {}
            }
        }
        if let Some(Interface { counters, time, .. }) = self.interfaces.get_mut(interface) {
            *counters = Counters {
                start_ns: start.map(|ticks| time.to_ns(ticks)).or(counters.start_ns),
                end_ns: end.map(|ticks| time.to_ns(ticks)).or(counters.end_ns),
                received: told.received.or(counters.received),
                accepted: told.accepted.or(counters.accepted),
                dropped: told.dropped.or(counters.dropped),
            };
        }
        Ok(())
    }

    #[cold]
    fn corrupt(&self, message: String) -> ReadError {
        ReadError::at(ProblemKind::Corrupt, self.input.offset(), message)
    }

    #[cold]
    fn contradiction(&self, first: u32, last: u32) -> ReadError {
        self.corrupt(format!("block length {first}, and {last} at the end of the block"))
    }

    #[cold]
    fn short_block(&self, what: &str, length: u32, expected: u32) -> ReadError {
        self.corrupt(format!("{what} block of {length} bytes, expected at least {expected}"))
    }
}

/// `if_tsresol`: a power of ten, or of two if the highest bit is set. None if it would not fit.
fn ticks_per_second(resolution: u8) -> Option<u64> {
    let exponent = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 { 10_u64.checked_pow(exponent) } else { 2_u64.checked_pow(exponent) }
}

/// The options of a block as (code, value); ends quietly at the first that does not fit.
fn options(mut bytes: &[u8], big_endian: bool) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let &[c0, c1, l0, l1] = bytes.first_chunk::<4>()?;
        let (code, length) = if big_endian {
            (u16::from_be_bytes([c0, c1]), u16::from_be_bytes([l0, l1]))
        } else {
            (u16::from_le_bytes([c0, c1]), u16::from_le_bytes([l0, l1]))
        };
        let value = bytes.get(4..4 + usize::from(length))?;
        let padded = 4 + usize::from(length).next_multiple_of(4);
        bytes = bytes.get(padded..).unwrap_or_default();
        (code != END_OF_OPTIONS).then_some((code, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::bytes::Progress;
    use std::io::Cursor;
    use std::sync::Arc;

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = 12 + body.len().next_multiple_of(4);
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((length as u32).to_le_bytes());
        bytes.extend(body);
        bytes.resize(length - 4, 0);
        bytes.extend((length as u32).to_le_bytes());
        bytes
    }

    fn section() -> Vec<u8> {
        let mut body = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
        body.extend([0xff; 8]);
        block(SECTION_HEADER, &body)
    }

    fn interface(options: &[u8]) -> Vec<u8> {
        block(INTERFACE_DESCRIPTION, &[&[1, 0, 0, 0, 0, 0, 4, 0], options].concat())
    }

    fn packet(interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
        let mut body = interface.to_le_bytes().to_vec();
        body.extend(((ticks >> 32) as u32).to_le_bytes());
        body.extend((ticks as u32).to_le_bytes());
        body.extend((data.len() as u32).to_le_bytes());
        body.extend(1500_u32.to_le_bytes());
        body.extend(data);
        block(ENHANCED_PACKET, &body)
    }

    fn open(bytes: Vec<u8>) -> Result<PcapngReader, ReadError> {
        let progress = Arc::new(Progress::default());
        let input = Input::from_reader(Box::new(Cursor::new(bytes)), None, &progress).unwrap();
        PcapngReader::open(input)
    }

    #[test]
    fn test_interfaces_have_their_own_clocks() {
        let nanoseconds = [9, 0, 1, 0, 9, 0, 0, 0];
        let binary = [9, 0, 1, 0, 0x80 | 20, 0, 0, 0];
        let file = [
            section(),
            interface(&[]),
            interface(&nanoseconds),
            interface(&binary),
            packet(0, 1_500_000, &[1]),
            packet(1, 1_500_000_000, &[2]),
            packet(2, 3 << 19, &[3]),
        ]
        .concat();
        let mut reader = open(file).unwrap();
        for byte in 1..=3_u8 {
            let record = reader.next_record().unwrap().unwrap();
            assert_eq!((record.time_ns, record.data), (1_500_000_000, &[byte][..]));
        }
        assert!(reader.next_record().unwrap().is_none());
    }

    #[test]
    fn test_a_second_section_has_interfaces_of_its_own() {
        let file =
            [section(), interface(&[]), packet(0, 1, &[1]), section(), interface(&[]), packet(0, 2, &[2])]
                .concat();
        let mut reader = open(file).unwrap();
        assert_eq!(reader.next_record().unwrap().unwrap().interface, 0);
        assert_eq!(reader.next_record().unwrap().unwrap().interface, 1);
    }

    #[test]
    fn test_a_block_too_short_to_be_one_is_corrupt() {
        let mut file = section();
        file.extend([6, 0, 0, 0, 3, 0, 0, 0]);
        let error = open(file).unwrap().next_record().unwrap_err();
        assert_eq!(error.message, "block length 3, expected at least 12");
        assert_eq!(error.byte, Some(28));
    }

    #[test]
    fn test_lengths_that_contradict_each_other_are_corrupt() {
        let kinds = [section(), interface(&[]), packet(0, 1, &[1]), block(0x0bad, &[0; 8])];
        for (number, kind) in kinds.iter().enumerate() {
            let mut file = section();
            if number > 1 {
                file.extend(interface(&[]));
            }
            let (start, length) = (file.len(), kind.len());
            file.extend(kind);
            let end = file.len();
            file[end - 4] ^= 0x40;
            let mut reader = open(file).unwrap();
            let error = reader.next_record().unwrap_err();
            let last = length ^ 0x40;
            assert_eq!(error.message, format!("block length {length}, and {last} at the end of the block"));
            assert_eq!(error.byte, Some(start as u64));
        }
    }

    #[test]
    fn test_a_packet_of_an_undeclared_interface_is_corrupt() {
        let file = [section(), packet(4, 0, &[1])].concat();
        let error = open(file).unwrap().next_record().unwrap_err();
        assert_eq!(error.kind, ProblemKind::Corrupt);
    }

    #[test]
    fn test_name_and_lost_packets_are_kept() {
        let name = [2, 0, 4, 0, b'e', b't', b'h', b'0'];
        let mut statistics = vec![0; 12];
        statistics.extend([5, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        let file = [section(), interface(&name), block(INTERFACE_STATISTICS, &statistics)].concat();
        let mut reader = open(file).unwrap();
        assert!(reader.next_record().unwrap().is_none());
        assert_eq!(reader.interfaces()[0].name.as_deref(), Some("eth0"));
        assert_eq!(reader.interfaces()[0].counters.dropped, Some(7));
    }

    #[test]
    fn test_an_interface_says_that_the_capture_had_a_filter() {
        // of dumpcap 4.0.17 with `-f "udp port 9"`: 0 for a text, and the text
        let of_dumpcap = [11, 0, 11, 0, 0, 0x75, 0x64, 0x70, 0x20, 0x70, 0x6f, 0x72, 0x74, 0x20, 0x39, 0];
        for (options, is_filtered) in
            [(&of_dumpcap[..], true), (&[11, 0, 1, 0, 0, 0, 0, 0], false), (&[], false)]
        {
            let mut reader = open([section(), interface(options)].concat()).unwrap();
            assert!(reader.next_record().unwrap().is_none());
            assert_eq!(reader.interfaces()[0].is_filtered, is_filtered);
        }
    }

    #[test]
    fn test_statistics_of_dumpcap_say_when_it_captured_and_what_came() {
        // of dumpcap 4.0.17, which said "Packets captured: 6"; by its times it ran for 4.96 s
        let of_dumpcap = [
            0, 0, 0, 0, 0x37, 0x61, 6, 0, 0x1c, 0x50, 0xf2, 0xe1, 1, 0, 0x1c, 0, 0x43, 0x6f, 0x75, 0x6e,
            0x74, 0x65, 0x72, 0x73, 0x20, 0x70, 0x72, 0x6f, 0x76, 0x69, 0x64, 0x65, 0x64, 0x20, 0x62, 0x79,
            0x20, 0x64, 0x75, 0x6d, 0x70, 0x63, 0x61, 0x70, 2, 0, 8, 0, 0x37, 0x61, 6, 0, 0xff, 0x9c, 0xa6,
            0xe1, 3, 0, 8, 0, 0x37, 0x61, 6, 0, 0xd8, 0x4f, 0xf2, 0xe1, 4, 0, 8, 0, 6, 0, 0, 0, 0, 0, 0, 0,
            5, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let file =
            [section(), interface(&[9, 0, 1, 0, 6, 0, 0, 0]), block(INTERFACE_STATISTICS, &of_dumpcap)];
        let mut reader = open(file.concat()).unwrap();
        assert!(reader.next_record().unwrap().is_none());
        let Counters { start_ns, end_ns, received, accepted, dropped } = reader.interfaces()[0].counters;
        assert_eq!((start_ns, end_ns), (Some(1_795_742_497_152_255_000), Some(1_795_742_502_113_240_000)));
        assert_eq!((received, accepted, dropped), (Some(6), None, Some(0)));
    }

    #[test]
    fn test_what_interface_and_system_lost_adds_up() {
        let mut statistics = vec![0; 12];
        for (code, lost) in [(ISB_IFDROP, 7_u8), (4, 100), (ISB_OSDROP, 3)] {
            statistics.extend([code as u8, 0, 8, 0, lost, 0, 0, 0, 0, 0, 0, 0]);
        }
        let file = [section(), interface(&[]), block(INTERFACE_STATISTICS, &statistics)].concat();
        let mut reader = open(file).unwrap();
        assert!(reader.next_record().unwrap().is_none());
        assert_eq!(reader.interfaces()[0].counters.dropped, Some(10));
    }
}
