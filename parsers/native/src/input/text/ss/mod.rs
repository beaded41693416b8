//! Samples of `ss -ti`, Linux's view into its sockets, as a loop in a shell writes them into a file.
//!
//! A socket is one line (`ss -tiO`) or two, the second indented. The time of a sample is in a line
//! before (`date +%s.%N`, ISO 8601, either after a `#`), or at the start of each line (`ts`). Each
//! socket's variables belong to the direction in which it sends.

mod info;
mod time;

use super::{LineFormat, NameTable, Outcome};
use crate::packet::address;
use crate::packet::event::{Endpoints, Packet};
use crate::packet::logged_variables::{SampleList, VariableSample};
use time::Clock;

const EXPECTED: &str = "expected a socket as `ss -tin` prints it, with numeric addresses";
const NO_SOCKET: &str = "expected the socket's addresses in a line before its variables";

/// Whether a line looks like output of `ss -ti`.
pub fn recognises(line: &[u8]) -> bool {
    let (_, rest) = time::split(line);
    let is_socket = || next_word(rest).is_some_and(|(word, _)| is_state(word)) && socket(rest).is_some();
    is_header(rest) || is_socket() || info::is_info(rest)
}

/// Reader of the log.
#[derive(Default)]
pub struct Ss {
    clock: Clock,
    /// The socket whose variables come next, with its endpoints if it is a TCP connection.
    socket: Option<Option<Endpoints>>,
    samples: SampleList,
    places: NameTable,
}

impl LineFormat for Ss {
    fn read(&mut self, _number: u64, line: &[u8], _packet: &mut Packet) -> Outcome {
        let (time, rest) = time::split(line);
        if let Some(time_ns) = time {
            self.clock.set(time_ns);
        }
        if rest.trim_ascii().is_empty() {
            return Outcome::Other;
        }
        if is_header(rest) {
            self.clock.on_header();
            self.socket = None;
            return Outcome::Other;
        }
        if let Some((endpoints, after)) = socket(rest) {
            self.clock.on_socket(endpoints.as_ref());
            self.socket = Some(endpoints);
            return if info::is_info(after) { self.take_info(after) } else { Outcome::Other };
        }
        if info::is_info(rest) {
            return self.take_info(rest);
        }
        // The indented line of other sockets, or output of `--processes` and `--memory`.
        match rest.first() {
            Some(b' ' | b'\t') if self.socket.is_some() => Outcome::Other,
            _ => Outcome::Wrong(EXPECTED),
        }
    }

    fn places(&self) -> &NameTable {
        &self.places
    }

    fn take_samples(&mut self) -> Vec<VariableSample> {
        self.samples.take()
    }

    fn caveats(&self) -> Vec<String> {
        self.clock.caveat().into_iter().chain(self.samples.caveat()).collect()
    }
}

impl Ss {
    fn take_info(&mut self, text: &[u8]) -> Outcome {
        let Some(endpoints) = self.socket.take() else {
            return Outcome::Wrong(NO_SOCKET);
        };
        if let Some(endpoints) = endpoints {
            let time_ns = self.clock.time_ns();
            info::for_each_variable(text, |name, unit, value| {
                self.samples.add(VariableSample { endpoints, time_ns, name, unit, value });
            });
        }
        Outcome::Other
    }
}

/// The line that names the columns.
fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let starts = [&b"State"[..], b"Netid", b"Recv-Q"].iter().any(|word| line.starts_with(word));
    starts && memchr::memmem::find(line, b"Address:Port").is_some()
}

fn is_state(word: &[u8]) -> bool {
    const STATES: [&[u8]; 11] = [
        b"ESTAB", b"SYN-SENT", b"SYN-RECV", b"FIN-WAIT-1", b"FIN-WAIT-2", b"TIME-WAIT", b"CLOSE-WAIT",
        b"LAST-ACK", b"CLOSING", b"LISTEN", b"tcp",
    ];
    STATES.contains(&word)
}

/// Addresses of a socket's line, and the text after them. There are no endpoints if it is no TCP
/// connection, such as a listening socket.
fn socket(line: &[u8]) -> Option<(Option<Endpoints>, &[u8])> {
    let mut rest = line;
    let mut is_tcp = true;
    // Before both queues: protocol and state, unless the command fixed them.
    let local = loop {
        let (word, after) = next_word(rest)?;
        if word.iter().all(u8::is_ascii_digit) {
            let (send_queue, after) = next_word(after)?;
            if !send_queue.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let (local, after) = next_word(after)?;
            rest = after;
            break local;
        }
        is_tcp &= word != b"udp" && word != b"UNCONN";
        // `ESTAB`, `FIN-WAIT-1`, `u_str`: anything longer is another text.
        if word.len() > 12 {
            return None;
        }
        rest = after;
    };
    let (peer, after) = next_word(rest)?;
    memchr::memchr(b':', local)?;
    memchr::memchr(b':', peer)?;
    let ends = address::end_with_port(local).zip(address::end_with_port(peer));
    if ends.is_none() && !peer.ends_with(b":*") {
        return None;
    }
    let endpoints = ends.filter(|_| is_tcp).and_then(|(local, peer)| local.sending_to(peer, 6));
    Some((endpoints, after))
}

/// The next word and the text after it.
fn next_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    text.split_at_checked(end).filter(|(word, _)| !word.is_empty())
}

#[cfg(test)]
mod tests;
