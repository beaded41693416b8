//! The classic pcap format (draft-ietf-opsawg-pcap): a file header of 24 bytes, then records.

use super::{Counters, Interface, MAX_RECORD, Records, Resolution, u32_at};
use crate::error::{Hint, ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::packet::link_type::LinkType;
use crate::packet::record::Record;

pub(super) const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Byte order, time unit and record header, which follow from the magic number.
#[derive(Clone, Copy)]
struct Variant {
    big_endian: bool,
    /// Nanoseconds in the unit of a time's second field.
    unit_ns: u32,
    /// Bytes of a record header: Kuznetzov's variant of the 1990s has eight more.
    header_length: usize,
}

impl Variant {
    fn of(magic: [u8; 4]) -> Option<Self> {
        let known = |number: u32| {
            let (unit_ns, extra) = match number {
                0xa1b2_c3d4 => (1_000, 0),
                0xa1b2_3c4d => (1, 0),
                0xa1b2_cd34 => (1_000, 8),
                _ => return None,
            };
            Some((unit_ns, extra))
        };
        let little = known(u32::from_le_bytes(magic)).map(|found| (false, found));
        let big = || known(u32::from_be_bytes(magic)).map(|found| (true, found));
        let (big_endian, (unit_ns, extra)) = little.or_else(big)?;
        Some(Self { big_endian, unit_ns, header_length: RECORD_HEADER + extra })
    }
}

/// Whether a file that begins with these bytes is a pcap file.
pub fn is_magic(magic: [u8; 4]) -> bool {
    Variant::of(magic).is_some()
}

/// Reads records one after the other.
pub struct PcapReader {
    input: Input,
    variant: Variant,
    interface: [Interface; 1],
    /// Length of the record returned last; it is skipped at the next call.
    current: usize,
}

impl Records for PcapReader {
    #[inline(always)]
    fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.input.consume(self.current);
        self.current = 0;
        let header = match self.whole_record() {
            Some(header) => header,
            None => match self.refill()? {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        self.current = self.header_length() + header.captured as usize;
        let fraction_ns = i64::from(header.fraction) * i64::from(self.variant.unit_ns);
        Ok(Some(Record {
            time_ns: i64::from(header.seconds) * 1_000_000_000 + fraction_ns,
            interface: 0,
            link_type: self.interface[0].link_type,
            data: self.input.ahead(self.header_length()..self.current),
            // Some writers set the wire length to zero or below the captured length.
            wire_bytes: header.wire_bytes.max(header.captured),
        }))
    }

    fn is_at_hand(&mut self) -> bool {
        self.input.consume(std::mem::take(&mut self.current));
        self.whole_record().is_some()
    }
}

impl PcapReader {
    /// Read the file header.
    pub fn open(mut input: Input) -> Result<Self, ReadError> {
        let bytes = input.peek(FILE_HEADER)?;
        let Some(header) = bytes.first_chunk::<FILE_HEADER>() else {
            return Err(ReadError::cut(0, "file header", bytes.len(), FILE_HEADER));
        };
        let [m0, m1, m2, m3, ..] = *header;
        let Some(variant) = Variant::of([m0, m1, m2, m3]) else {
            return Err(ReadError::at(ProblemKind::NotACapture, 0, "not a pcap file"));
        };
        let field = |at: usize| u32_at(header, at, variant.big_endian);
        let version = if variant.big_endian { field(4) >> 16 } else { field(4) & 0xffff };
        if version != 2 {
            return Err(ReadError::at(
                ProblemKind::Unsupported,
                4,
                format!("pcap version {version}, expected 2"),
            ));
        }
        // The upper bits of the link type are the length of the frame check sequence, which is not
        // needed: the IP header has the packet's length.
        let link_type = LinkType::from_number(field(20) & 0x03ff_ffff);
        let interface = Interface {
            name: None,
            link_type,
            snap_length: field(16),
            is_filtered: false,
            counters: Counters::default(),
            time: Resolution { per_second: u64::from(1_000_000_000 / variant.unit_ns), offset_s: 0 },
        };
        if let LinkType::Unknown(number) = link_type {
            return Err(ReadError::at(
                ProblemKind::Unsupported,
                20,
                format!("link type {number} is not decoded"),
            )
            .hint(Hint::LinkTypes));
        }
        input.consume(FILE_HEADER);
        Ok(Self { input, variant, interface: [interface], current: 0 })
    }

    /// The one interface of a pcap file.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interface
    }

    #[inline(always)]
    fn header_length(&self) -> usize {
        self.variant.header_length
    }

    /// The header of the next record, if the whole record is in the window.
    #[inline(always)]
    fn whole_record(&self) -> Option<RecordHeader> {
        let window = self.input.window();
        let header = RecordHeader::read(window.first_chunk()?, self.variant.big_endian);
        let fits = self.header_length() + header.captured as usize <= window.len();
        (fits && header.captured <= MAX_RECORD).then_some(header)
    }

    /// Bring the next record into the window; None at the end of the file.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Result<Option<RecordHeader>, ReadError> {
        let need = self.header_length();
        let bytes = self.input.peek(need)?;
        let have = bytes.len();
        let Some(header) = bytes.first_chunk().filter(|_| have >= need) else {
            return if have == 0 { Ok(None) } else { Err(self.input.cut("record header", need)) };
        };
        let header = RecordHeader::read(header, self.variant.big_endian);
        if header.captured > MAX_RECORD {
            return Err(ReadError::at(
                ProblemKind::Corrupt,
                self.input.offset(),
                format!("record length {}, expected at most {MAX_RECORD}", header.captured),
            ));
        }
        let need = need + header.captured as usize;
        let have = self.input.peek(need)?.len();
        if have < need {
            return Err(self.input.cut("record", need));
        }
        Ok(Some(header))
    }
}

/// The four fields of a record header.
struct RecordHeader {
    seconds: u32,
    fraction: u32,
    captured: u32,
    wire_bytes: u32,
}

impl RecordHeader {
    #[cold]
    fn turned_round(self) -> Self {
        let Self { seconds, fraction, captured, wire_bytes } = self;
        let [seconds, fraction, captured, wire_bytes] =
            [seconds, fraction, captured, wire_bytes].map(u32::swap_bytes);
        Self { seconds, fraction, captured, wire_bytes }
    }

    #[inline(always)]
    fn read(bytes: &[u8; RECORD_HEADER], big_endian: bool) -> Self {
        let field = |at| u32_at(bytes, at, false);
        let header =
            Self { seconds: field(0), fraction: field(4), captured: field(8), wire_bytes: field(12) };
        // Most files are little-endian: one branch instead of four.
        if big_endian { header.turned_round() } else { header }
    }
}

/// Seconds between two records in a row that are no coincidence of bytes.
const PLAUSIBLE_PAUSE_S: u32 = 7 * 86_400;

/// How the records of a file look, for a search of them among bytes.
pub(super) struct RecordLayout(Variant);

impl RecordLayout {
    /// That of the file that begins with `head`; None if it is no pcap file.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let header = head.first_chunk::<FILE_HEADER>()?;
        Variant::of(*header.first_chunk::<4>()?).map(Self)
    }

    /// The records that follow each other from each byte of `bytes` on, to their end.
    pub(super) fn rows(&self, bytes: &[u8]) -> Vec<Option<Row>> {
        let Self(Variant { big_endian, unit_ns, header_length }) = *self;
        let header = |at: usize| {
            let header = bytes.get(at..).and_then(<[u8]>::first_chunk::<RECORD_HEADER>)?;
            Some(RecordHeader::read(header, big_endian))
        };
        // From behind, so that records which many rows share are looked at once.
        let mut rows = vec![Some(Row { records: 0, is_whole: true }); bytes.len() + 1];
        for at in (0..bytes.len()).rev() {
            let Some(record) = header(at) else {
                rows[at] = Some(Row { records: 0, is_whole: false });
                continue;
            };
            let next = at + header_length + record.captured as usize;
            let is_near = |after: RecordHeader| record.seconds.abs_diff(after.seconds) <= PLAUSIBLE_PAUSE_S;
            // Zeros look like records without content.
            rows[at] = if !(1..=MAX_RECORD).contains(&record.captured)
                || record.fraction >= 1_000_000_000 / unit_ns
            {
                None
            } else if next > bytes.len() {
                Some(Row { records: 0, is_whole: false })
            } else {
                let after = rows[next].filter(|_| header(next).is_none_or(is_near));
                after.map(|row| Row { records: row.records + 1, ..row })
            };
        }
        rows
    }
}

/// Records, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub records: u32,
    /// Whether the last one is whole.
    pub is_whole: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::bytes::Progress;
    use std::io::Cursor;
    use std::sync::Arc;

    /// A little-endian microsecond file with one record of four bytes, as tcpdump writes it.
    fn little() -> Vec<u8> {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        file.extend([0; 8]);
        file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        file.extend([1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 60, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef]);
        file
    }

    fn open(bytes: Vec<u8>) -> Result<PcapReader, ReadError> {
        let progress = Arc::new(Progress::default());
        let input = Input::from_reader(Box::new(Cursor::new(bytes)), None, &progress).unwrap();
        PcapReader::open(input)
    }

    #[test]
    fn test_one_record() {
        let mut reader = open(little()).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(record.time_ns, 1_000_002_000);
        assert_eq!(record.wire_bytes, 60);
        assert_eq!(record.data, [0xde, 0xad, 0xbe, 0xef]);
        assert!(reader.next_record().unwrap().is_none());
    }

    #[test]
    fn test_big_endian_nanoseconds() {
        let mut file = vec![0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4];
        file.extend([0; 8]);
        file.extend([0, 4, 0, 0, 0, 0, 0, 1]);
        file.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7]);
        let mut reader = open(file).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!((record.time_ns, record.data), (1_000_000_002, &[7_u8][..]));
    }

    #[test]
    fn test_truncated_record_says_where() {
        let mut file = little();
        file.pop();
        let error = open(file).unwrap().next_record().unwrap_err();
        assert_eq!(error.kind, ProblemKind::Truncated);
        assert_eq!(error.byte, Some(24));
    }

    #[test]
    fn test_impossible_record_length() {
        let mut file = little();
        file[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = open(file).unwrap().next_record().unwrap_err();
        assert_eq!(error.kind, ProblemKind::Corrupt);
        assert_eq!(error.message, "record length 4294967295, expected at most 262144");
    }

    #[test]
    fn test_unknown_link_type_is_refused_by_number() {
        let mut file = little();
        file[20] = 147;
        let error = open(file).err().unwrap();
        assert_eq!(error.message, "link type 147 is not decoded");
    }
}
