//! QUIC's headers: what all versions have in common (RFC 8999), and the packets of versions 1 (RFC 9000), 2 (RFC
//! 9369) and of the draft that was deployed before them.

pub mod frames;
pub mod initial;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rest::Rest;
use super::u32_at;

/// Bit of the first byte: the header is long.
const LONG: u8 = 0x80;
/// Bit of the first byte that is always set (RFC 9000 section 17).
const FIXED: u8 = 0x40;
/// Bit of the first byte of a short header (RFC 9000 section 17.4).
const SPIN: u8 = 0x20;
/// Version of a packet that lists versions (RFC 8999 section 6).
const NEGOTIATION: u32 = 0;

named_enum! {
    /// A version whose packets are read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Version {
        V1 = "1",
        V2 = "2",
        Draft29 = "draft-29",
    }
}

impl Version {
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }

    fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 0x6b33_43cf,
            Self::Draft29 => 0xff00_001d,
        }
    }

    /// The kind of a packet whose first byte is `first`. Version 2 numbers them anew (RFC 9369 section 3.2).
    fn kind(self, first: u8) -> Kind {
        const KINDS: [Kind; 4] = [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry];
        let number = usize::from(first >> 4 & 3);
        match self {
            Self::V1 | Self::Draft29 => KINDS[number],
            Self::V2 => KINDS[(number + 3) % 4],
        }
    }
}

/// Kind of a packet with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ConnectionId {
    bytes: [u8; Self::MOST],
    length: u8,
}

impl ConnectionId {
    /// Most bytes in these versions.
    pub const MOST: usize = 20;

    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self { length: bytes.len() as u8, ..Self::default() };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What the long headers of all versions begin with.
#[derive(Clone, Copy, Debug)]
pub struct LongHeader {
    pub version: u32,
    pub destination: ConnectionId,
    pub source: ConnectionId,
    /// Bytes up to the end of the source's identifier.
    length: usize,
}

impl LongHeader {
    fn of(bytes: &[u8]) -> Option<Self> {
        let fixed = bytes.first_chunk::<5>().filter(|fixed| fixed[0] & LONG != 0)?;
        let mut rest = Rest(bytes.get(5..)?);
        let destination = ConnectionId::new(rest.behind_length()?)?;
        let source = ConnectionId::new(rest.behind_length()?)?;
        Some(Self { version: u32_at(fixed, 1), destination, source, length: bytes.len() - rest.0.len() })
    }
}

/// A packet with the long header of a known version.
#[derive(Clone, Copy, Debug)]
pub struct LongPacket<'a> {
    pub version: Version,
    pub kind: Kind,
    pub header: LongHeader,
    /// From its first byte to its end, as far as it was captured.
    pub bytes: &'a [u8],
    /// Where the packet number is, in a packet that has one.
    number_at: usize,
    /// Whether all of it was captured.
    pub is_whole: bool,
}

/// A packet of a datagram.
#[derive(Clone, Copy, Debug)]
pub enum QuicPacket<'a> {
    Long(LongPacket<'a>),
    /// Versions that a server supports.
    VersionNegotiation(LongHeader),
    /// The long header of a version that is not read.
    OtherVersion(LongHeader),
    /// A short header.
    Short(ShortHeader<'a>),
}

/// A short header, of which all but two bits and the destination is encrypted.
#[derive(Clone, Copy, Debug)]
pub struct ShortHeader<'a> {
    pub spin: bool,
    /// Whether the fixed bit is set.
    pub is_fixed: bool,
    /// From the destination's identifier on.
    after: &'a [u8],
}

impl ShortHeader<'_> {
    pub fn is_to(&self, destination: &ConnectionId) -> bool {
        self.after.starts_with(destination.bytes())
    }

    /// The first bytes as the identifier of the destination, whose length only the ends know.
    pub fn destination(&self, length: usize) -> Option<ConnectionId> {
        ConnectionId::new(self.after.get(..length)?)
    }
}

/// The short header that a datagram begins with.
pub fn short_header(bytes: &[u8]) -> Option<ShortHeader<'_>> {
    let (&first, after) = bytes.split_first()?;
    let (spin, is_fixed) = (first & SPIN != 0, first & FIXED != 0);
    (first & LONG == 0).then_some(ShortHeader { spin, is_fixed, after })
}

/// Whether a datagram begins with the long header of a version whose packets are read.
pub fn is_known_long(payload: &[u8]) -> bool {
    let start = payload.first_chunk::<5>().filter(|start| start[0] & (LONG | FIXED) == LONG | FIXED);
    start.is_some_and(|start| Version::of(u32_at(start, 1)).is_some())
}

/// Whether the first datagram of a flow may be QUIC; `length` is that on the wire. Of another version it is as long as
/// a server wants it for an answer (RFC 9000 section 14.1).
#[inline]
pub fn may_begin(payload: &[u8], length: usize) -> bool {
    const LEAST_FIRST: usize = 1_200;
    let is_long = payload.first().is_some_and(|first| first & LONG != 0);
    is_long && (is_known_long(payload) || length >= LEAST_FIRST && LongHeader::of(payload).is_some())
}

/// The packets of a datagram of which `captured` is known, and which has `on_wire` bytes.
pub fn packets(captured: &[u8], on_wire: usize) -> Packets<'_> {
    Packets { captured, on_wire, destination: None }
}

/// Coalesced packets (RFC 9000 section 12.2).
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    captured: &'a [u8],
    on_wire: usize,
    /// Of the first packet: others have the same.
    destination: Option<ConnectionId>,
}

impl<'a> Iterator for Packets<'a> {
    type Item = QuicPacket<'a>;

    fn next(&mut self) -> Option<QuicPacket<'a>> {
        let bytes = std::mem::take(&mut self.captured);
        if let Some(short) = short_header(bytes) {
            // Behind other packets, bytes without the bit are padding.
            let is_packet = self.destination.is_none_or(|known| short.is_fixed && short.is_to(&known));
            return is_packet.then_some(QuicPacket::Short(short));
        }
        let header = LongHeader::of(bytes)?;
        if self.destination.is_some_and(|known| known != header.destination) {
            return None;
        }
        if header.version == NEGOTIATION {
            let versions = self.on_wire.checked_sub(header.length)?;
            let is_list = versions > 0 && versions.is_multiple_of(4);
            return is_list.then_some(QuicPacket::VersionNegotiation(header));
        }
        let Some(version) = Version::of(header.version) else {
            return Some(QuicPacket::OtherVersion(header));
        };
        let (packet, length) = self.long_packet(bytes, version, header)?;
        self.destination = Some(header.destination);
        self.captured = bytes.get(length..).unwrap_or_default();
        self.on_wire = self.on_wire.saturating_sub(length);
        Some(QuicPacket::Long(packet))
    }
}

impl Packets<'_> {
    /// The packet that `bytes` begin with, and its length on the wire.
    fn long_packet<'a>(
        &self,
        bytes: &'a [u8],
        version: Version,
        header: LongHeader,
    ) -> Option<(LongPacket<'a>, usize)> {
        let first = *bytes.first().filter(|first| **first & FIXED != 0)?;
        let kind = version.kind(first);
        let mut rest = Rest(bytes.get(header.length..)?);
        let mut length = self.on_wire;
        if kind == Kind::Initial {
            let token = rest.number();
            // A token that was cut hides how long the packet is.
            rest =
                Rest(token.and_then(|token| rest.0.get(usize::try_from(token).ok()?..)).unwrap_or_default());
        }
        if kind != Kind::Retry
            && let Some(payload) = rest.number()
        {
            length = (bytes.len() - rest.0.len()).checked_add(usize::try_from(payload).ok()?)?;
        }
        if length > self.on_wire {
            return None;
        }
        let number_at = bytes.len() - rest.0.len();
        let is_whole = length <= bytes.len();
        let bytes = bytes.get(..length).unwrap_or(bytes);
        Some((LongPacket { version, kind, header, bytes, number_at, is_whole }, length))
    }
}

#[cfg(test)]
mod tests;
