//! Endace's extensible record format: records without a file header, which name their link type each.

use super::{Counters, Interface, Records, Resolution};
use crate::error::{ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::packet::link_type::LinkType;
use crate::packet::record::Record;

const HEADER: usize = 16;
const EXTENDED: u8 = 0x80;
/// Kinds of records.
const KINDS: std::ops::RangeInclusive<u8> = 1..=48;
/// Facts about the capture, without a time of their own if another program wrote them.
const FACTS: u8 = 27;
const PADDING: u8 = 48;
/// Records that are compared to recognise the format.
const COMPARED: usize = 4;
/// Seconds between two neighbouring records: the clock is one card's.
const LONGEST_STEP_S: u32 = 86_400;

/// Reads records one after the other.
pub struct ErfReader {
    input: Input,
    interface: [Interface; 1],
    current: usize,
}

#[derive(Clone, Copy)]
struct Header {
    /// Seconds and their binary fraction.
    time: u64,
    kind: u8,
    length: usize,
    wire_bytes: u32,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER>()?;
        let [t0, t1, t2, t3, t4, t5, t6, t7, kind, _, l0, l1, _, _, w0, w1] = *header;
        Some(Self {
            time: u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            kind,
            length: u16::from_be_bytes([l0, l1]).into(),
            wire_bytes: u16::from_be_bytes([w0, w1]).into(),
        })
    }

    fn is_possible(self) -> bool {
        KINDS.contains(&(self.kind & !EXTENDED)) && self.length >= HEADER && self.wire_bytes > 0
    }

    fn seconds(self) -> u32 {
        (self.time >> 32) as u32
    }

    fn time_ns(self) -> i64 {
        let fraction_ns = ((self.time & 0xffff_ffff) * 1_000_000_000) >> 32;
        i64::from(self.seconds()) * 1_000_000_000 + fraction_ns as i64
    }
}

/// Whether these first bytes of a file are records, which have no magic number: their lengths lead from one to
/// the next, and their times are near each other.
pub fn is_likely(mut bytes: &[u8]) -> bool {
    let mut before: Option<Header> = None;
    for _ in 0..COMPARED {
        let Some(header) = Header::read(bytes) else { break };
        let is_timed = header.kind & !EXTENDED != FACTS;
        let step = |before: Header| before.seconds().abs_diff(header.seconds());
        let is_far = before.is_some_and(|before| is_timed && step(before) > LONGEST_STEP_S);
        if !header.is_possible() || is_timed && header.seconds() == 0 || is_far {
            return false;
        }
        before = Some(header).filter(|_| is_timed).or(before);
        match bytes.get(header.length..) {
            Some(after) => bytes = after,
            None => return false,
        }
    }
    before.is_some()
}

impl ErfReader {
    pub fn open(input: Input) -> Self {
        let time = Resolution { per_second: 1_000_000_000, offset_s: 0 };
        let interface = Interface {
            name: None,
            link_type: LinkType::Erf,
            snap_length: 0,
            is_filtered: false,
            counters: Counters::default(),
            time,
        };
        Self { input, interface: [interface], current: 0 }
    }

    /// All records as one interface.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interface
    }
}

impl Records for ErfReader {
    fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            self.input.consume(self.current);
            self.current = 0;
            let bytes = self.input.peek(HEADER)?;
            let have = bytes.len();
            let Some(header) = Header::read(bytes) else {
                return if have == 0 { Ok(None) } else { Err(self.input.cut("record header", HEADER)) };
            };
            if header.length < HEADER {
                let message = format!("record length {}, expected at least {HEADER}", header.length);
                return Err(ReadError::at(ProblemKind::Corrupt, self.input.offset(), message));
            }
            let have = self.input.peek(header.length)?.len();
            if have < header.length {
                return Err(self.input.cut("record", header.length));
            }
            self.current = header.length;
            if matches!(header.kind & !EXTENDED, PADDING | FACTS) {
                continue;
            }
            return Ok(Some(Record {
                time_ns: header.time_ns(),
                interface: 0,
                link_type: LinkType::Erf,
                data: self.input.ahead(0..header.length),
                wire_bytes: header.wire_bytes.max(1),
            }));
        }
    }
}
