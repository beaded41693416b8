//! The beginning of a stream, whose pieces come in any order.

use serde::{Deserialize, Serialize};

/// Pieces with gaps between them.
const MOST_PIECES: usize = 128;

/// Bytes of which some are missing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Pieces {
    bytes: Vec<u8>,
    /// Ranges that are there, in order and apart.
    known: Vec<(usize, usize)>,
}

impl Pieces {
    /// Add the piece at `start`, as far as it is before `most` bytes. What came first stays.
    pub fn add(&mut self, start: usize, data: &[u8], most: usize) {
        let data = data.get(..most.saturating_sub(start)).unwrap_or(data);
        let end = start.saturating_add(data.len());
        if data.is_empty() {
            return;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let mut at = start;
        for &(from, to) in self.known.iter().chain(&[(end, end)]) {
            let new = at..from.min(end);
            if !new.is_empty() {
                self.bytes[new.clone()].copy_from_slice(&data[new.start - start..new.end - start]);
            }
            at = at.max(to);
        }
        self.known.push((start, end));
        self.known.sort_unstable();
        self.known.dedup_by(|next, merged| {
            let touches = next.0 <= merged.1;
            if touches {
                merged.1 = merged.1.max(next.1);
            }
            touches
        });
        self.known.truncate(MOST_PIECES);
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Bytes of memory that it holds.
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(self.known.as_slice())
    }

    /// The bytes from the beginning without a gap.
    pub fn beginning(&self) -> &[u8] {
        match self.known.first() {
            Some(&(0, end)) => self.bytes.get(..end).unwrap_or_default(),
            _ => &[],
        }
    }
}
