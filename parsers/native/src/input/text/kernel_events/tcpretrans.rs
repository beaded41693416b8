//! Lines of bcc's `tcpretrans`: `01:55:05 0      4  10.0.0.1:22    R> 10.0.0.2:34619   ESTABLISHED`.

use crate::input::text::date;
use crate::packet::address;
use crate::packet::event::Endpoints;
use crate::packet::key::TCP;

/// A segment that was sent again, or one that probes for a lost tail.
pub struct Retransmission {
    /// Since midnight.
    pub time_ns: i64,
    pub endpoints: Endpoints,
    pub is_probe: bool,
}

/// The line that names the columns, and the one before it.
pub fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"Tracing retransmits")
        || line.starts_with(b"TIME") && memchr::memmem::find(line, b"T> RADDR").is_some()
}

pub fn event(line: &[u8]) -> Option<Retransmission> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let time_ns = date::clock_ns(words.next()?)?;
    let _process = words.next()?;
    words.next().filter(|version| matches!(*version, b"4" | b"6"))?;
    let local = address::end_with_port(words.next()?)?;
    let is_probe = match words.next()? {
        b"R>" => false,
        b"L>" => true,
        _ => return None,
    };
    let remote = address::end_with_port(words.next()?)?;
    Some(Retransmission { time_ns, endpoints: local.sending_to(remote, TCP)?, is_probe })
}
