//! A record of a capture file.

use super::link_type::LinkType;

/// One captured packet, a slice of the input's window.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub time_ns: i64,
    /// Index into the reader's interfaces.
    pub interface: usize,
    pub link_type: LinkType,
    /// The captured bytes, at most `wire_bytes`.
    pub data: &'a [u8],
    /// Bytes of the frame on the wire.
    pub wire_bytes: u32,
}
