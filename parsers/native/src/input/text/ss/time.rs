//! The times of samples.

use crate::input::text::{date, number};
use crate::packet::event::Endpoints;

/// Seconds since the epoch have this many digits since 2001; fewer could be a socket's queue.
const EPOCH_DIGITS: usize = 10;

/// The time at the start of a line, and the rest of the line, which is empty for a comment.
pub fn split(line: &[u8]) -> (Option<i64>, &[u8]) {
    if let Some(comment) = line.strip_prefix(b"#") {
        return (leading(comment.trim_ascii_start(), 1).map(|(time_ns, _)| time_ns), b"");
    }
    match leading(line, EPOCH_DIGITS) {
        Some((time_ns, length)) => (Some(time_ns), line.get(length..).unwrap_or_default()),
        None => (None, line),
    }
}

/// A time in the first word or two, and its length. A number without a point is one if it has at
/// least `digits`.
fn leading(text: &[u8], digits: usize) -> Option<(i64, usize)> {
    text.first().filter(|byte| byte.is_ascii_digit())?;
    let end = word_end(text, 0);
    let word = text.get(..end)?;
    let is_plain = word.len() >= digits || word.contains(&b'.');
    let time_ns = if is_plain { number::time_ns(word) } else { None };
    if let Some(time_ns) = time_ns.or_else(|| date::iso_ns(word)) {
        return Some((time_ns, end));
    }
    let end = word_end(text, end + 1);
    Some((date::iso_ns(text.get(..end)?)?, end))
}

/// The end of the word that begins at `start`.
fn word_end(text: &[u8], start: usize) -> usize {
    let word = text.get(start..).unwrap_or_default();
    word.iter().position(u8::is_ascii_whitespace).map_or(text.len(), |length| start + length)
}

/// The time of the sockets that follow; without times, samples are counted.
#[derive(Default)]
pub struct Clock {
    time_ns: Option<i64>,
    samples: i64,
    has_headers: bool,
    /// First socket of the sample: the next sample begins with it, if there are no headers.
    first: Option<Endpoints>,
    was_needed: bool,
}

impl Clock {
    /// Set the time of the next sockets.
    pub fn set(&mut self, time_ns: i64) {
        self.time_ns = Some(time_ns);
    }

    /// The line of column names begins a new sample.
    pub fn on_header(&mut self) {
        self.has_headers = true;
        self.samples += 1;
    }

    /// A socket is listed.
    pub fn on_socket(&mut self, socket: Option<&Endpoints>) {
        if self.has_headers || self.time_ns.is_some() {
            return;
        }
        if self.first.is_none() || self.first.as_ref() == socket {
            self.samples += 1;
            self.first = self.first.or(socket.copied());
        }
    }

    pub fn time_ns(&mut self) -> i64 {
        self.time_ns.unwrap_or_else(|| {
            self.was_needed = true;
            self.samples.saturating_mul(1_000_000_000)
        })
    }

    /// A caveat about the times.
    pub fn caveat(&self) -> Option<String> {
        self.was_needed
            .then(|| "there are no times in it: its samples are numbered, as if one second apart".into())
    }
}
