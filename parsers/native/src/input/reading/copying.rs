//! Records of a source that are copied as they are, instead of being decoded.

use std::sync::atomic::Ordering;

use super::{Reading, accepts};
use crate::error::{ProblemKind, ReadError};
use crate::input::capture::{Capture, Piece};
use crate::input::export::CaptureWriter;
use crate::input::filter::Compiler;
use crate::input::source::Source;
use crate::packet::record::Record;

/// Which packets are copied.
pub enum Wanted<'a> {
    /// Those that the filter and the stretch of time let through, until so many bytes wait.
    Accepted { compiler: Option<&'a dyn Compiler>, most_bytes: usize },
    /// Those with these numbers, which ascend, each with a comment or without.
    Numbered { numbers: &'a [u64], comments: &'a [Option<String>] },
}

impl Reading {
    /// Copy packets to `writer`, and what is between them; false at the end of the source.
    pub fn copy_some(&mut self, wanted: &mut Wanted<'_>, writer: &mut CaptureWriter) -> Result<bool, String> {
        let mut opened = self.opened.take();
        let before = self.number;
        let outcome = match &mut opened {
            Some(Source::Capture(capture)) => self.copy_from(capture, wanted, writer),
            Some(source) => {
                let message = format!("this is {}, and only captures have records to copy", source.format());
                self.error = Some(ReadError::whole(ProblemKind::Unsupported, message));
                Ok(false)
            }
            None => Ok(false),
        };
        self.opened = opened;
        self.progress.packets.fetch_add(self.number - before, Ordering::Relaxed);
        outcome
    }

    /// Begin this source in `writer`.
    pub fn begin_copy(&self, writer: &mut CaptureWriter) -> Result<(), String> {
        match &self.opened {
            Some(Source::Capture(capture)) => writer.begin(capture.format(), &self.tunnel_ports),
            _ => Ok(()),
        }
    }

    /// End it there.
    pub fn end_copy(&self, writer: &mut CaptureWriter) -> Result<(), String> {
        match &self.opened {
            Some(Source::Capture(capture)) => writer.end(capture.interfaces()),
            _ => Ok(()),
        }
    }

    fn copy_from(
        &mut self,
        capture: &mut Capture,
        wanted: &mut Wanted<'_>,
        writer: &mut CaptureWriter,
    ) -> Result<bool, String> {
        loop {
            if wanted.is_done(writer) {
                return Ok(true);
            }
            writer.declare(capture.interfaces())?;
            let piece = match capture.next_piece(&mut writer.counts.skipped_blocks) {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(false),
                Err(error) => {
                    self.error = Some(error);
                    return Ok(false);
                }
            };
            let record = match &piece {
                Piece::Record(record) => *record,
                Piece::Block(block) => match block.packet {
                    Some(record) => record,
                    None => {
                        writer.other_block(block)?;
                        continue;
                    }
                },
            };
            self.number += 1;
            if let Some(comment) = self.choose(wanted, &record)? {
                self.counted.packets += 1;
                writer.packet(&piece, record, comment)?;
            }
        }
    }

    /// Whether the record with the last number is wanted, and its comment.
    fn choose<'b>(
        &mut self,
        wanted: &mut Wanted<'b>,
        record: &Record<'_>,
    ) -> Result<Option<Option<&'b str>>, String> {
        match wanted {
            Wanted::Accepted { compiler, .. } => {
                if self.clipper.as_mut().is_some_and(|clipper| clipper.leaves_out(record.time_ns)) {
                    return Ok(None);
                }
                let is_accepted = match compiler {
                    Some(compiler) => accepts(&mut self.filters, *compiler, record)?,
                    None => true,
                };
                self.filtered += u64::from(!is_accepted);
                Ok(is_accepted.then_some(None))
            }
            Wanted::Numbered { numbers, comments } => {
                let Some((&number, later)) = numbers.split_first() else { return Ok(None) };
                if self.numbered_after + self.number < number {
                    return Ok(None);
                }
                let comment = comments.first().and_then(Option::as_deref);
                (*numbers, *comments) = (later, comments.get(1..).unwrap_or_default());
                Ok(Some(comment))
            }
        }
    }
}

impl Wanted<'_> {
    fn is_done(&self, writer: &mut CaptureWriter) -> bool {
        match self {
            Self::Accepted { most_bytes, .. } => writer.waiting() >= *most_bytes,
            Self::Numbered { numbers, .. } => numbers.is_empty(),
        }
    }
}
