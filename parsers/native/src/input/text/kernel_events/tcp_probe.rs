//! The event `tcp:tcp_probe`, at each segment that a socket receives.

use crate::input::text::number;
use crate::packet::address;
use crate::packet::event::Endpoints;
use crate::packet::key::TCP;
use crate::packet::logged_variables::Unit;

const NAME: &[u8] = b": tcp_probe:";
/// The threshold of a connection that has none yet.
const NO_THRESHOLD: f64 = 2_147_483_647.0;

/// Field, name here, unit, and what the number is divided by.
const FIELDS: [(&[u8], &str, Unit, f64); 5] = [
    (b"snd_cwnd", "cwnd", Unit::Packets, 1.0),
    (b"ssthresh", "ssthresh", Unit::Packets, 1.0),
    (b"snd_wnd", "snd_wnd", Unit::Bytes, 1.0),
    (b"rcv_wnd", "rcv_wnd", Unit::Bytes, 1.0),
    // In microseconds.
    (b"srtt", "srtt", Unit::Ms, 1e3),
];

/// Time, direction in which the socket sends, and fields of an event.
pub fn event(line: &[u8]) -> Option<(i64, Endpoints, &[u8])> {
    let at = memchr::memmem::find(line, NAME)?;
    let fields = line.get(at + NAME.len()..)?;
    let time = line.get(..at)?.rsplit(u8::is_ascii_whitespace).next()?;
    let local = address::end_with_port(field(fields, b"src")?)?;
    let remote = address::end_with_port(field(fields, b"dest")?)?;
    Some((number::time_ns(time)?, local.sending_to(remote, TCP)?, fields))
}

/// Whether a line is another event: it has a processor in brackets and a time.
pub fn is_other_event(line: &[u8]) -> bool {
    line.contains(&b'[') && memchr::memmem::find(line, b": ").is_some() || line.starts_with(b"cpus=")
}

/// Pass name, unit and value of each known variable to `found`.
pub fn for_each_variable(fields: &[u8], mut found: impl FnMut(&'static str, Unit, f64)) {
    for (field_name, name, unit, scale) in FIELDS {
        if let Some(value) = field(fields, field_name).and_then(number::real)
            && !(name == "ssthresh" && value >= NO_THRESHOLD)
        {
            found(name, unit, value / scale);
        }
    }
    if let (Some(next), Some(acknowledged)) = (sequence(fields, b"snd_nxt"), sequence(fields, b"snd_una")) {
        found("bytes_in_flight", Unit::Bytes, f64::from(next.wrapping_sub(acknowledged)));
    }
}

/// The value of `name=value`.
fn field<'a>(fields: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut words = fields.split(u8::is_ascii_whitespace);
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix(b"="))
}

/// A sequence number in hexadecimal digits.
fn sequence(fields: &[u8], name: &[u8]) -> Option<u32> {
    let digits = field(fields, name)?;
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
