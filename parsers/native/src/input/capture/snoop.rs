//! Snoop files of Solaris (RFC 1761): a header of 16 bytes, then records, all big-endian.

use super::{Counters, Interface, MAX_RECORD, Records, Resolution, u32_at};
use crate::error::{Hint, ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::packet::link_type::LinkType;
use crate::packet::record::Record;

pub const MAGIC: [u8; 8] = *b"snoop\0\0\0";
const FILE_HEADER: usize = 16;
const RECORD_HEADER: usize = 24;
const VERSION: u32 = 2;

/// Reads records one after the other.
pub struct SnoopReader {
    input: Input,
    interface: [Interface; 1],
    /// Length of the record returned last; it is skipped at the next call.
    current: usize,
}

impl SnoopReader {
    /// Read the file header.
    pub fn open(mut input: Input) -> Result<Self, ReadError> {
        let bytes = input.peek(FILE_HEADER)?;
        let Some(header) = bytes.first_chunk::<FILE_HEADER>() else {
            return Err(ReadError::cut(0, "file header", bytes.len(), FILE_HEADER));
        };
        let (version, number) = (u32_at(header, 8, true), u32_at(header, 12, true));
        if version != VERSION {
            let message = format!("snoop version {version}, expected {VERSION}");
            return Err(ReadError::at(ProblemKind::Unsupported, 8, message));
        }
        let link_type = match number {
            // 802.3 and Ethernet.
            0 | 4 => LinkType::Ethernet,
            2 => LinkType::TokenRing,
            8 => LinkType::Fddi,
            18 => LinkType::SunAtm,
            26 => LinkType::IpOverInfiniband,
            _ => {
                let message = format!("link type {number} of snoop is not decoded");
                return Err(ReadError::at(ProblemKind::Unsupported, 12, message).hint(Hint::LinkTypes));
            }
        };
        input.consume(FILE_HEADER);
        let time = Resolution { per_second: 1_000_000, offset_s: 0 };
        let interface = Interface {
            name: None,
            link_type,
            snap_length: 0,
            is_filtered: false,
            counters: Counters::default(),
            time,
        };
        Ok(Self { input, interface: [interface], current: 0 })
    }

    /// The one interface of the file.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interface
    }
}

impl Records for SnoopReader {
    fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.input.consume(self.current);
        self.current = 0;
        let bytes = self.input.peek(RECORD_HEADER)?;
        let have = bytes.len();
        let Some(header) = bytes.first_chunk::<RECORD_HEADER>() else {
            return if have == 0 { Ok(None) } else { Err(self.input.cut("record header", RECORD_HEADER)) };
        };
        let field = |at| u32_at(header, at, true);
        let [wire_bytes, captured, length, dropped, seconds, microseconds] = [0, 4, 8, 12, 16, 20].map(field);
        let data_end = RECORD_HEADER as u64 + u64::from(captured);
        if captured > MAX_RECORD || u64::from(length) < data_end || length > 2 * MAX_RECORD {
            let message = format!("record of {length} bytes with a packet of {captured}");
            return Err(ReadError::at(ProblemKind::Corrupt, self.input.offset(), message));
        }
        let need = length as usize;
        let have = self.input.peek(need)?.len();
        // Padding at the very end is often left out.
        if have < data_end as usize {
            return Err(self.input.cut("record", need));
        }
        self.interface[0].counters.dropped = Some(dropped.into());
        self.current = need.min(have);
        Ok(Some(Record {
            time_ns: i64::from(seconds) * 1_000_000_000 + i64::from(microseconds) * 1_000,
            interface: 0,
            link_type: self.interface[0].link_type,
            data: self.input.ahead(RECORD_HEADER..data_end as usize),
            wire_bytes: wire_bytes.max(captured),
        }))
    }
}
