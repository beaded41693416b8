//! Untrusted JSON as a stream: memory holds at most one number or text of it.

use std::io::{self, Read};

use crate::error::{Hint, ProblemKind, ReadError};
use crate::input::bytes::Input;

/// The most bytes of JSON that are read.
const MAX_BYTES: u64 = 256 << 20;
/// The longest number or text; the parser keeps it in memory.
const MAX_TOKEN: usize = 64 * 1024;
/// Precedes each text of a sequence (RFC 7464): to the parser white space.
pub const RECORD_SEPARATOR: u8 = 0x1e;
/// The deepest nesting of lists and objects; the parser keeps one byte for each.
const MAX_DEPTH: usize = 64;

/// Make a visitor the seed of a value that this method of a deserializer reads.
macro_rules! seed_with {
    ($visitor:ident, $method:ident) => {
        impl<'de> serde::de::DeserializeSeed<'de> for $visitor<'_> {
            type Value = ();

            fn deserialize<D: serde::de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$method(self)
            }
        }
    };
}
pub(super) use seed_with;

/// Passes an input's bytes to the parser, within bounds on memory.
pub struct BoundedReader {
    input: Input,
    passed: u64,
    depth: usize,
    token: usize,
    in_text: bool,
    is_escaped: bool,
    error: Option<ReadError>,
}

impl BoundedReader {
    /// Read `input`, without its byte order mark.
    pub fn new(mut input: Input) -> Result<Self, ReadError> {
        if input.peek(3)?.starts_with(b"\xef\xbb\xbf") {
            input.consume(3);
        }
        let guarded =
            Self { input, passed: 0, depth: 0, token: 0, in_text: false, is_escaped: false, error: None };
        Ok(guarded)
    }

    /// The error that ended reading: the reader's, else the parser's.
    pub fn explain(&mut self, error: &serde_json::Error) -> ReadError {
        if let Some(error) = self.error.take() {
            return error;
        }
        let words = error.to_string();
        // The parser appends the position, which the error has as a field.
        let words = words.split(" at line ").next().unwrap_or(&words);
        let (kind, message) = if error.is_eof() {
            (ProblemKind::Truncated, "the file ends inside a JSON document".to_owned())
        } else {
            (ProblemKind::Corrupt, format!("this is not the JSON that was expected: {words}"))
        };
        let mut explained = ReadError::at(kind, self.input.offset(), message).hint(Hint::DocumentCut);
        explained.line = Some(error.line() as u64);
        explained
    }

    /// Check the bounds for the next byte.
    fn look_at(&mut self, byte: u8) -> Result<(), ReadError> {
        self.token += 1;
        if self.in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if !byte.is_ascii_alphanumeric() && !matches!(byte, b'.' | b'-' | b'+') {
                self.token = 0;
            }
        }
        let complaint = if self.token > MAX_TOKEN {
            "a number or text is longer than 65536 bytes"
        } else if self.depth > MAX_DEPTH {
            "lists and objects are nested deeper than 64"
        } else {
            return Ok(());
        };
        Err(ReadError::at(ProblemKind::Corrupt, self.input.offset(), complaint))
    }

    fn next_byte(&mut self) -> Result<Option<u8>, ReadError> {
        if self.passed >= MAX_BYTES {
            let message = "only the first 256 MiB of a JSON log are read";
            return Err(ReadError::at(ProblemKind::SampleLimit, self.input.offset(), message));
        }
        if self.input.window().is_empty() {
            self.input.peek(1)?;
        }
        let Some(&byte) = self.input.window().first() else { return Ok(None) };
        self.look_at(byte)?;
        self.input.consume(1);
        self.passed += 1;
        let is_separator = byte == RECORD_SEPARATOR && !self.in_text;
        Ok(Some(if is_separator { b' ' } else { byte }))
    }
}

impl Read for BoundedReader {
    /// One byte at a time, so that the parser's position in the input is known.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(slot) = buffer.first_mut() else { return Ok(0) };
        match self.next_byte() {
            Ok(Some(byte)) => {
                *slot = byte;
                Ok(1)
            }
            Ok(None) => Ok(0),
            Err(error) => {
                let words = io::Error::other(error.message.clone());
                self.error = Some(error);
                Err(words)
            }
        }
    }
}
