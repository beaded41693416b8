//! Chunks of the uncompressed input. A compressed input is decompressed by a thread that fills
//! chunks while the reader empties others.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::expansion::ExpansionBound;
use super::{CHUNK, Compression, Progress};
use crate::error::{Hint, ProblemKind, ReadError};

/// Free bytes in front of a chunk's data, for the rest of a record that began in the previous
/// chunk. As large as the longest pcap record.
const HEADROOM: usize = 264 * 1024;

/// The data start at a multiple of this.
const PAGE: usize = 4_096;

/// Filled chunks in the queue. With the one in use and the one being filled there are four.
const WAITING: usize = 2;

/// A buffer whose data are `bytes[head..end]`.
pub struct Chunk {
    pub bytes: Vec<u8>,
    pub head: usize,
    pub end: usize,
}

pub enum NextChunk {
    Chunk(Chunk),
    End,
    Failed(ReadError),
}

/// The source of chunks. Plain and short inputs are read by the caller; the thread starts with the
/// second chunk.
pub struct Chunks {
    state: State,
    /// Whether a thread reads ahead even if nothing needs decompressing.
    is_eager: bool,
    /// A recycled buffer, used while no thread reads ahead.
    spare: Vec<u8>,
}

enum State {
    Fresh(ChunkFiller),
    Ahead { filled: Receiver<NextChunk>, spent: Sender<Vec<u8>> },
    Ended,
}

impl Chunks {
    pub fn new(
        reader: Box<dyn Read + Send>,
        compression: Compression,
        bound: ExpansionBound,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            state: State::Fresh(ChunkFiller { reader, compression, bound, total: 0, progress, failed: None }),
            is_eager: false,
            spare: Vec::new(),
        }
    }

    /// Always read ahead: for readers that take longer over a chunk than copying it takes.
    pub fn read_ahead(&mut self) {
        self.is_eager = true;
    }

    /// The next chunk; after the end, the end.
    pub fn next(&mut self) -> NextChunk {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => NextChunk::End,
            State::Fresh(mut filler) => {
                let is_whole = self.is_eager || !filler.is_plain();
                let filled = filler.fill_guarded(std::mem::take(&mut self.spare), is_whole);
                match &filled {
                    NextChunk::Chunk(chunk)
                        if (filler.is_plain() && !self.is_eager) || chunk.end - chunk.head < CHUNK =>
                    {
                        self.state = State::Fresh(filler);
                    }
                    NextChunk::Chunk(_) => self.state = read_ahead(filler),
                    NextChunk::End | NextChunk::Failed(_) => {}
                }
                filled
            }
            State::Ahead { filled, spent } => {
                // A closed channel means the thread ended after it had sent its last message.
                let next = filled.recv().unwrap_or(NextChunk::End);
                if matches!(next, NextChunk::Chunk(_)) {
                    self.state = State::Ahead { filled, spent };
                }
                next
            }
        }
    }

    /// Give back a buffer that is no longer needed.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        match &self.state {
            // The thread may have ended already; then the buffer is simply freed.
            State::Ahead { spent, .. } => drop(spent.send(bytes)),
            State::Fresh(_) | State::Ended => self.spare = bytes,
        }
    }
}

/// Let a thread go on with `filler`. Without one (a limit of processes or memory) the caller goes on.
fn read_ahead(filler: ChunkFiller) -> State {
    let (filled_sender, filled): (SyncSender<NextChunk>, _) = sync_channel(WAITING);
    let (spent, spent_receiver) = channel::<Vec<u8>>();
    // given to the thread once there is one: a closure that is not started is lost
    let (filler_sender, filler_receiver) = channel::<ChunkFiller>();
    let work = move || {
        let Ok(mut filler) = filler_receiver.recv() else { return };
        loop {
            let buffer = spent_receiver.try_recv().unwrap_or_default();
            let filled = filler.fill_guarded(buffer, true);
            let last = !matches!(filled, NextChunk::Chunk(_));
            // A failed send means that the reader is gone.
            if filled_sender.send(filled).is_err() || last {
                return;
            }
        }
    };
    if thread::Builder::new().name("read-ahead".into()).spawn(work).is_err() {
        return State::Fresh(filler);
    }
    match filler_sender.send(filler) {
        Ok(()) => State::Ahead { filled, spent },
        Err(unsent) => State::Fresh(unsent.0),
    }
}

struct ChunkFiller {
    reader: Box<dyn Read + Send>,
    compression: Compression,
    bound: ExpansionBound,
    total: u64,
    progress: Arc<Progress>,
    failed: Option<ReadError>,
}

impl ChunkFiller {
    /// Whether nothing needs decompressing, so that a thread would gain nothing.
    fn is_plain(&self) -> bool {
        self.compression == Compression::None
    }

    /// Fill `buffer`, and turn a panic inside a decompressor into an error of its input. Unless it has to be
    /// `is_whole`, a chunk is what one reading gives: a pipe may have no more for a while.
    fn fill_guarded(&mut self, buffer: Vec<u8>, is_whole: bool) -> NextChunk {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.fill(buffer, is_whole)));
        outcome.unwrap_or_else(|_| {
            NextChunk::Failed(ReadError::whole(
                ProblemKind::BadCompression,
                format!("the {} data are damaged", self.compression.name()),
            ))
        })
    }

    fn fill(&mut self, mut buffer: Vec<u8>, is_whole: bool) -> NextChunk {
        if let Some(error) = self.failed.take() {
            return NextChunk::Failed(error);
        }
        if self.progress.cancelled.load(Ordering::Relaxed) {
            return NextChunk::Failed(ReadError::whole(ProblemKind::Cancelled, "stopped"));
        }
        if buffer.len() != HEADROOM + PAGE + CHUNK {
            buffer = vec![0; HEADROOM + PAGE + CHUNK];
        }
        // Copying from the page cache takes twice the time on some processors (AMD Zen 3 and 4)
        // if it starts a few bytes into a page, which is where large allocations start.
        let head = HEADROOM + buffer[HEADROOM..].as_ptr().align_offset(PAGE).min(PAGE);
        let full = head + CHUNK;
        let mut end = head;
        while end < full {
            match self.reader.read(&mut buffer[end..full]) {
                Ok(0) => break,
                Ok(n) => {
                    end += n;
                    if !is_whole {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = Some(self.explain(&error));
                    break;
                }
            }
        }
        self.total += (end - head) as u64;
        if !self.is_plain()
            && let Some(beyond) = self.total.checked_sub(self.bound.now()).filter(|beyond| *beyond > 0)
        {
            end = end.saturating_sub(beyond as usize).max(head);
            self.failed = Some(self.limit_reached());
        }
        match (end == head, self.failed.take()) {
            (true, None) => NextChunk::End,
            (true, Some(error)) => NextChunk::Failed(error),
            (false, error) => {
                self.failed = error;
                NextChunk::Chunk(Chunk { bytes: buffer, head, end })
            }
        }
    }

    fn explain(&self, error: &io::Error) -> ReadError {
        let name = self.compression.name();
        match (self.compression, error.kind()) {
            (Compression::None, _) => ReadError::io(ProblemKind::ReadFailed, error),
            (_, io::ErrorKind::UnexpectedEof) => {
                ReadError::whole(ProblemKind::Truncated, format!("the {name} data end early"))
                    .hint(Hint::CutShort)
            }
            _ => {
                ReadError::whole(ProblemKind::BadCompression, format!("the {name} data are damaged: {error}"))
            }
        }
    }

    fn limit_reached(&self) -> ReadError {
        ReadError::whole(
            ProblemKind::DecompressionLimit,
            format!("{} ({})", self.bound.exceeded(), self.compression.name()),
        )
        .hint(Hint::DecompressionLimit)
    }
}
