//! Lines of the input's window, without copying.

use memchr::memchr;

use crate::error::ReadError;
use crate::input::bytes::Input;

const MAX_LINE: usize = 64 * 1024;
pub const TOO_LONG: &str = "longer than 65536 bytes, expected a line of a trace";

pub enum Line<'a> {
    /// A line without its end (`\n` or `\r\n`); the last need not have one.
    Text(&'a [u8]),
    /// A line that is too long, skipped.
    TooLong,
    End,
}

/// The lines of an input, numbered.
pub struct Lines {
    input: Input,
    number: u64,
}

impl Lines {
    /// The lines from the input's position on.
    pub fn new(mut input: Input) -> Self {
        // Parsing takes longer than reading and following flows, so neither must wait for the
        // other.
        input.read_ahead();
        Self { input, number: 0 }
    }

    /// Number of the last line returned, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of the next lines that are already in memory.
    #[inline(always)]
    pub fn window(&self) -> &[u8] {
        self.input.window()
    }

    /// Move on by `count` whole lines of the window, with their ends.
    #[inline(always)]
    pub fn pass(&mut self, count: u64, bytes: usize) {
        self.number += count;
        self.input.consume(bytes);
    }

    #[inline]
    pub fn next(&mut self) -> Result<Line<'_>, ReadError> {
        let found = match memchr(b'\n', self.input.window()) {
            Some(end) => Some((end, end + 1)),
            None => self.find_end()?,
        };
        let Some((length, with_end)) = found else {
            return Ok(Line::End);
        };
        self.number += 1;
        if length > MAX_LINE {
            self.skip_line()?;
            return Ok(Line::TooLong);
        }
        let line = self.input.take(with_end);
        let line = line.get(..length).unwrap_or_default();
        Ok(Line::Text(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Length of the next line without and with its end, when the window holds none; None at the
    /// end of the input.
    #[cold]
    #[inline(never)]
    fn find_end(&mut self) -> Result<Option<(usize, usize)>, ReadError> {
        let mut wanted = self.input.window().len() + 1;
        loop {
            let window = self.input.peek(wanted)?;
            let length = window.len();
            if let Some(end) = memchr(b'\n', window) {
                return Ok(Some((end, end + 1)));
            }
            if length > MAX_LINE {
                return Ok(Some((length, length)));
            }
            if length < wanted {
                // The rest is a last line without an end; an error after it is returned next time.
                return Ok((length > 0).then_some((length, length)));
            }
            wanted = length + 1;
        }
    }

    /// Skip the rest of a line of any length, a window at a time.
    #[cold]
    fn skip_line(&mut self) -> Result<(), ReadError> {
        loop {
            let window = self.input.peek(1)?;
            let (n, is_end) = match memchr(b'\n', window) {
                Some(end) => (end + 1, true),
                None => (window.len(), window.is_empty()),
            };
            self.input.consume(n);
            if is_end {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::bytes::Progress;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn opened(bytes: &[u8]) -> Lines {
        let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
        Lines::new(Input::from_reader(reader, None, &Arc::new(Progress::default())).unwrap())
    }

    fn lines_of(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
        let mut lines = opened(bytes);
        let mut all = Vec::new();
        loop {
            match lines.next().unwrap() {
                Line::Text(line) => all.push(Some(line.to_vec())),
                Line::TooLong => all.push(None),
                Line::End => return all,
            }
        }
    }

    #[test]
    fn test_ends_of_every_kind() {
        let expected: Vec<_> =
            ["a", "b", "", "c"].iter().map(|line| Some(line.as_bytes().to_vec())).collect();
        assert_eq!(lines_of(b"a\nb\r\n\nc"), expected);
        assert_eq!(lines_of(b""), Vec::<Option<Vec<u8>>>::new());
    }

    #[test]
    fn test_a_long_line_is_passed_over_and_the_next_is_found() {
        for length in [MAX_LINE, MAX_LINE + 1, 300_000, 3_000_000] {
            let mut bytes = b"first\n".to_vec();
            bytes.extend(std::iter::repeat_n(b'x', length));
            bytes.extend(b"\nlast\n");
            let lines = lines_of(&bytes);
            assert_eq!(lines.len(), 3, "{length}");
            assert_eq!(lines[1].is_some(), length <= MAX_LINE);
            assert_eq!(lines[2].as_deref(), Some(&b"last"[..]));
        }
    }

    proptest! {
        #[test]
        fn test_lines_are_those_of_the_standard_library(text in "[ab\\n]{0,200}", times in 1_usize..3000) {
            let text = text.repeat(times);
            let mut lines = opened(text.as_bytes());
            for line in text.lines() {
                prop_assert!(matches!(lines.next().unwrap(), Line::Text(found) if found == line.as_bytes()));
            }
            prop_assert!(matches!(lines.next().unwrap(), Line::End));
        }
    }
}
