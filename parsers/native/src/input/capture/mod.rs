//! Capture files: bytes to records, one file per format.

mod erf;
pub mod last_records;
mod pcap;
pub mod pcapng;
mod snoop;

use serde::{Deserialize, Serialize};

use crate::error::{ProblemKind, ReadError};
use crate::input::bytes::Input;
pub use crate::packet::link_type::LinkType;
use crate::packet::record::Record;
use erf::ErfReader;
use pcap::PcapReader;
use pcapng::{Block, PcapngReader};
use snoop::SnoopReader;

/// The longest record accepted; libpcap's own bound (`MAXIMUM_SNAPLEN`).
pub const MAX_RECORD: u32 = 262_144;

/// One interface of a capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Interface {
    pub name: Option<String>,
    pub link_type: LinkType,
    /// Bytes kept of each packet; 0 means no limit.
    pub snap_length: u32,
    /// Whether it says that the capture had a filter.
    pub is_filtered: bool,
    pub counters: Counters,
    time: Resolution,
}

/// What the capturing program counted at an interface, if it says so.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// From when to when it captured.
    pub start_ns: Option<i64>,
    pub end_ns: Option<i64>,
    /// Packets that the interface received, and those of them that the filter of the capture let through.
    pub received: Option<u64>,
    pub accepted: Option<u64>,
    /// Packets lost.
    pub dropped: Option<u64>,
}

/// The finest unit of time that an interface can have without a nanosecond's.
const MICROSECONDS: u64 = 1_000_000;

impl Interface {
    /// A node or interface of a text trace.
    pub fn named(name: &str, link_type: LinkType) -> Self {
        let time = Resolution { per_second: 1_000_000_000, offset_s: 0 };
        Self {
            name: Some(name.to_owned()),
            link_type,
            snap_length: 0,
            is_filtered: false,
            counters: Counters::default(),
            time,
        }
    }

    /// Whether its times are whole microseconds.
    pub fn has_microseconds(&self) -> bool {
        MICROSECONDS.is_multiple_of(self.time.per_second)
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Resolution {
    /// Ticks in a second.
    per_second: u64,
    /// Whole seconds to add (pcapng `if_tsoffset`).
    offset_s: i64,
}

impl Resolution {
    /// Ticks since the epoch to nanoseconds, rounded down. Finer than a nanosecond loses the rest.
    #[inline(always)]
    fn to_ns(self, ticks: u64) -> i64 {
        let ns = match self.per_second {
            1_000_000_000 => ticks as i64,
            1_000_000 => (ticks as i64).wrapping_mul(1_000),
            per_second => {
                let seconds = ticks / per_second;
                let rest = u128::from(ticks % per_second);
                let rest_ns = rest * 1_000_000_000 / u128::from(per_second);
                (seconds as i64).wrapping_mul(1_000_000_000).wrapping_add(rest_ns as i64)
            }
        };
        ns.wrapping_add(self.offset_s.wrapping_mul(1_000_000_000))
    }
}

/// A capture file of any format.
pub enum Capture {
    Pcap(PcapReader),
    Pcapng(PcapngReader),
    Snoop(SnoopReader),
    Erf(ErfReader),
}

/// What a capture file consists of.
pub enum Piece<'a> {
    Record(Record<'a>),
    /// Of pcapng only, with a packet or without.
    Block(Block<'a>),
}

/// Bytes by which formats are recognised.
const START: usize = 4096;

/// The first bytes of `input`, as many as it takes to recognise a format: a pipe may have no more for a while.
pub fn first_bytes(input: &mut Input) -> Result<&[u8], ReadError> {
    let is_known = is_magic(input.peek(snoop::MAGIC.len())?);
    input.peek(if is_known { snoop::MAGIC.len() } else { START })
}

impl Capture {
    /// Recognise the format from the first bytes of `input`.
    pub fn open(mut input: Input) -> Result<Self, ReadError> {
        let first = first_bytes(&mut input)?;
        match *first {
            [] => Err(ReadError::whole(ProblemKind::Empty, "the file is empty, expected a capture")),
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => PcapngReader::open(input).map(Self::Pcapng),
            [a, b, c, d, ..] if pcap::is_magic([a, b, c, d]) => PcapReader::open(input).map(Self::Pcap),
            _ if first.starts_with(&snoop::MAGIC) => SnoopReader::open(input).map(Self::Snoop),
            _ if erf::is_likely(first) => Ok(Self::Erf(ErfReader::open(input))),
            _ => Err(not_a_capture(first.get(..4).unwrap_or(first))),
        }
    }

    /// The next packet with what the file has of it, or the next block without one; None at the end. `skipped`
    /// counts blocks that are too long.
    pub fn next_piece(&mut self, skipped: &mut u64) -> Result<Option<Piece<'_>>, ReadError> {
        match self {
            Self::Pcap(reader) => Ok(reader.next_record()?.map(Piece::Record)),
            Self::Pcapng(reader) => Ok(reader.next_block(skipped)?.map(Piece::Block)),
            Self::Snoop(reader) => Ok(reader.next_record()?.map(Piece::Record)),
            Self::Erf(reader) => Ok(reader.next_record()?.map(Piece::Record)),
        }
    }

    /// Its name.
    pub fn format(&self) -> &'static str {
        match self {
            Self::Pcap(_) => "pcap",
            Self::Pcapng(_) => "pcapng",
            Self::Snoop(_) => "snoop",
            Self::Erf(_) => "erf",
        }
    }

    /// The interfaces known so far; a pcapng file may add more on the way.
    pub fn interfaces(&self) -> &[Interface] {
        match self {
            Self::Pcap(reader) => reader.interfaces(),
            Self::Pcapng(reader) => reader.interfaces(),
            Self::Snoop(reader) => reader.interfaces(),
            Self::Erf(reader) => reader.interfaces(),
        }
    }
}

/// Whether a file that starts with these bytes is a capture.
pub fn is_magic(first: &[u8]) -> bool {
    match *first {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => true,
        _ if first.starts_with(&snoop::MAGIC) => true,
        [a, b, c, d, ..] => pcap::is_magic([a, b, c, d]),
        _ => false,
    }
}

/// Packets one after the other, whatever the format.
pub trait Records {
    /// The next packet, or None at the end.
    fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError>;

    /// Whether the next packet is known to be there, so that nobody waits for its source.
    fn is_at_hand(&mut self) -> bool {
        true
    }
}

/// A number of a header, in the byte order of its file.
#[inline(always)]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize, big_endian: bool) -> u32 {
    let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
}

/// Name the file's real format where it is easy to recognise.
fn not_a_capture(first: &[u8]) -> ReadError {
    let looks_like_text = first.iter().all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let message = match first {
        [b'P', b'K', ..] => "this is a zip archive, expected a capture",
        _ if looks_like_text => "this is text, expected a pcap or pcapng capture",
        _ => "this is neither pcap, pcapng, snoop nor ERF (nor gzip, zstd, lz4, xz or bzip2 of them)",
    };
    ReadError::at(ProblemKind::NotACapture, 0, message)
}
