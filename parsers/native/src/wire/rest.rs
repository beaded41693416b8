//! Bytes that a parser takes one after the other.

/// Bytes that are still to be read.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a>(pub &'a [u8]);

impl<'a> Rest<'a> {
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Bytes after one with their length.
    pub fn behind_length(&mut self) -> Option<&'a [u8]> {
        let length = self.integer(1)?;
        self.take(length)
    }

    /// An unsigned integer of so many bytes.
    pub fn integer(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// An integer of variable length (RFC 9000 section 16).
    pub fn number(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let whole = bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        Some(whole & (u64::MAX >> (66 - 8 * bytes.len())))
    }
}
