//! What decoders of link headers return and share.

use super::Bytes;
use super::layers::Next;
use crate::packet::event::{Event, Layer, Reason, Stop};

pub struct Link {
    pub next: Next,
    /// Bytes before it.
    pub header: usize,
    /// Direction, where the link header has one.
    pub event: Option<Event>,
}

pub fn plain(next: Next, header: usize) -> Link {
    Link { next, header, event: None }
}

/// The first `n` bytes, or the reason why they are missing.
#[inline(always)]
pub fn need(bytes: Bytes<'_>, n: usize) -> Result<&[u8], Stop> {
    bytes.captured.get(..n).ok_or_else(|| bytes.shortage(n, Layer::Link))
}

pub fn stop(reason: Reason) -> Stop {
    Stop { layer: Layer::Link, reason }
}
