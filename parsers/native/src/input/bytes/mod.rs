//! From a path or a pipe to a window of uncompressed bytes.
//!
//! [`Input::open`] recognises the compression from the first bytes. A reader then asks for the next
//! `n` bytes with [`Input::peek`] and passes on with [`Input::consume`]; records are slices of the
//! window and are never copied. Behind the window are a few recycled chunks, filled ahead by a
//! thread if the input is compressed, so memory does not depend on the size of the input.

mod chunks;
pub mod compress;
mod decompress;
mod digests;
mod expansion;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{ProblemKind, ReadError};
use chunks::{Chunks, NextChunk};
pub use decompress::Compression;
pub use digests::{Digests, digest_of};
use expansion::ExpansionBound;

/// Bytes that one chunk holds: small enough to stay in a core's second-level cache.
const CHUNK: usize = 256 * 1024;

/// Counters that another thread may read during an analysis, and a flag to cancel it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read from disk or pipe, before decompression.
    pub bytes_read: AtomicU64,
    pub packets: AtomicU64,
    /// Set to stop at the next chunk.
    pub cancelled: AtomicBool,
    /// Digests of the files that were read, if they are wanted.
    pub digests: Option<Digests>,
}

/// A window on the uncompressed bytes of one source.
///
/// Invariant: `position <= end <= window.len()`.
pub struct Input {
    chunks: Chunks,
    window: Vec<u8>,
    position: usize,
    end: usize,
    /// Offset in the uncompressed input of `window[0]`; below zero for the first chunk's headroom.
    base: i64,
    ended: Option<Option<ReadError>>,
    compression: Compression,
}

impl Input {
    /// Open `source` (a path, or `-` for standard input) and look at its first bytes.
    pub fn open(
        source: &OsStr,
        max_decompressed_bytes: Option<u64>,
        progress: &Arc<Progress>,
    ) -> Result<Self, ReadError> {
        let raw: Box<dyn Read + Send> = match (source == "-", &progress.digests) {
            (true, _) => Box::new(io::stdin()),
            (false, None) => Box::new(open_file(source)?),
            (false, Some(digests)) => Box::new(digests.watch(source, open_file(source)?)),
        };
        Self::from_reader(raw, max_decompressed_bytes, progress)
    }

    pub fn from_reader(
        raw: Box<dyn Read + Send>,
        max_decompressed_bytes: Option<u64>,
        progress: &Arc<Progress>,
    ) -> Result<Self, ReadError> {
        let packed = Arc::new(AtomicU64::new(0));
        let counted =
            CountingReader { inner: raw, bytes: Arc::clone(&packed), progress: Arc::clone(progress) };
        let (compression, reader) = decompress::recognise(Box::new(counted))
            .map_err(|error| ReadError::io(ProblemKind::ReadFailed, &error))?;
        let bound = ExpansionBound { most: max_decompressed_bytes, packed };
        Ok(Self {
            chunks: Chunks::new(reader, compression, bound, Arc::clone(progress)),
            window: Vec::new(),
            position: 0,
            end: 0,
            base: 0,
            ended: None,
            compression,
        })
    }

    /// Let a thread read what comes next, compressed or not.
    pub fn read_ahead(&mut self) {
        self.chunks.read_ahead();
    }

    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Offset of the window's start in the uncompressed input.
    pub fn offset(&self) -> u64 {
        (self.base + self.position as i64) as u64
    }

    /// The next bytes: at least `n`, or all that are left. An error after them is returned once
    /// they are consumed.
    #[inline(always)]
    pub fn peek(&mut self, n: usize) -> Result<&[u8], ReadError> {
        if self.end - self.position < n {
            self.refill(n)?;
        }
        Ok(&self.window[self.position..self.end])
    }

    /// The bytes of the last [`Input::peek`].
    #[inline(always)]
    pub fn window(&self) -> &[u8] {
        &self.window[self.position..self.end]
    }

    /// A part of the window, which must be long enough.
    #[inline(always)]
    pub fn ahead(&self, part: Range<usize>) -> &[u8] {
        &self.window[self.position + part.start..self.position + part.end]
    }

    /// Move on by `n` bytes of the window.
    #[inline(always)]
    pub fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.position);
        self.position += n;
    }

    /// Return the next `n` bytes of the window and move after them.
    #[inline(always)]
    pub fn take(&mut self, n: usize) -> &[u8] {
        let start = self.position;
        self.consume(n);
        &self.window[start..self.position]
    }

    /// Move on by `n` bytes that need not be in the window; false if the input ends before.
    pub fn skip(&mut self, mut n: u64) -> Result<bool, ReadError> {
        loop {
            let step = (self.window().len() as u64).min(n);
            self.consume(step as usize);
            n -= step;
            if n == 0 {
                return Ok(true);
            }
            if self.peek(1)?.is_empty() {
                return Ok(false);
            }
        }
    }

    /// Join what is left of the window with the next chunks until it has `n` bytes.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, n: usize) -> Result<(), ReadError> {
        while self.end - self.position < n {
            if let Some(error) = &self.ended {
                // The bytes before the error are good: return them first.
                return match error {
                    Some(error) if self.position == self.end => Err(error.clone()),
                    _ => Ok(()),
                };
            }
            match self.chunks.next() {
                NextChunk::Chunk(chunk) => self.append(chunk),
                NextChunk::End => self.ended = Some(None),
                NextChunk::Failed(error) => self.ended = Some(Some(error)),
            }
        }
        Ok(())
    }

    /// The input ends inside of `what`, which begins here and has `need` bytes.
    #[cold]
    pub fn cut(&self, what: &str, need: usize) -> ReadError {
        self.cut_at(self.offset(), what, self.window().len(), need)
    }

    /// The same of what began at `start`, of which there are `have` bytes.
    #[cold]
    pub fn cut_at(&self, start: u64, what: &str, have: usize, need: usize) -> ReadError {
        let cut = ReadError::cut(start, what, have, need);
        match &self.ended {
            // If decompression failed, its error is the cause of the cut.
            Some(Some(error)) => ReadError { byte: cut.byte, ..error.clone() },
            _ => cut,
        }
    }

    fn append(&mut self, mut chunk: chunks::Chunk) {
        let left = self.end - self.position;
        let offset = self.base + self.position as i64;
        if left <= chunk.head {
            // The usual case: the rest of a record goes in front of the chunk, nothing else moves.
            let start = chunk.head - left;
            chunk.bytes[start..chunk.head].copy_from_slice(&self.window[self.position..self.end]);
            let spent = std::mem::replace(&mut self.window, chunk.bytes);
            self.chunks.recycle(spent);
            self.position = start;
            self.end = chunk.end;
        } else {
            let mut joined = Vec::with_capacity(left + chunk.end - chunk.head);
            joined.extend_from_slice(&self.window[self.position..self.end]);
            joined.extend_from_slice(&chunk.bytes[chunk.head..chunk.end]);
            self.chunks.recycle(chunk.bytes);
            self.end = joined.len();
            self.window = joined;
            self.position = 0;
        }
        self.base = offset - self.position as i64;
    }
}

fn open_file(path: &OsStr) -> Result<File, ReadError> {
    let cannot = |error: io::Error| ReadError::io(ProblemKind::CannotOpen, &error);
    let file = File::open(path).map_err(cannot)?;
    if file.metadata().map_err(cannot)?.is_dir() {
        return Err(ReadError::whole(
            ProblemKind::CannotOpen,
            "this is a directory, expected a capture file",
        ));
    }
    Ok(file)
}

struct CountingReader {
    inner: Box<dyn Read + Send>,
    /// Bytes read of this source alone.
    bytes: Arc<AtomicU64>,
    progress: Arc<Progress>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        self.progress.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: Vec<u8>) -> Input {
        Input::from_reader(Box::new(io::Cursor::new(bytes)), None, &Arc::new(Progress::default())).unwrap()
    }

    #[test]
    fn test_a_window_spans_chunks() {
        let bytes: Vec<u8> = (0..3 * CHUNK).map(|i| (i % 251) as u8).collect();
        let mut input = input(bytes.clone());
        input.peek(CHUNK).unwrap();
        input.consume(CHUNK - 7);
        assert_eq!(input.peek(20).unwrap()[..20], bytes[CHUNK - 7..CHUNK + 13]);
        assert_eq!(input.offset(), (CHUNK - 7) as u64);
    }

    #[test]
    fn test_a_request_longer_than_a_chunk_is_joined() {
        let bytes: Vec<u8> = (0..4 * CHUNK).map(|i| (i % 253) as u8).collect();
        let mut input = input(bytes.clone());
        input.peek(1).unwrap();
        input.consume(3);
        let n = 2 * CHUNK + 1;
        assert_eq!(input.peek(n).unwrap()[..n], bytes[3..3 + n]);
    }

    #[test]
    fn test_at_the_end_peek_gives_what_is_left() {
        let mut input = input(vec![1, 2, 3]);
        assert_eq!(input.peek(10).unwrap(), [1, 2, 3]);
        input.consume(3);
        assert!(input.peek(1).unwrap().is_empty());
    }

    #[test]
    fn test_skip_passes_over_chunks_and_reports_the_end() {
        let mut input = input(vec![0; 2 * CHUNK + 5]);
        assert!(input.skip(2 * CHUNK as u64).unwrap());
        assert_eq!(input.peek(5).unwrap().len(), 5);
        assert!(!input.skip(6).unwrap());
    }
}
