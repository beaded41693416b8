//! The variables of one socket: `cubic wscale:7,7 rto:204 rtt:0.5/0.25 cwnd:10 pacing_rate 12Mbps`.

use crate::input::text::number;
use crate::packet::logged_variables::Unit;

/// What a value's text is.
#[derive(Clone, Copy)]
enum Form {
    /// A number.
    Plain,
    /// Two numbers with a slash, of which the second is wanted.
    Second,
    /// A rate with its unit: `1.2Mbps`.
    Rate,
}

/// Variable in the text, its name here, unit and form. `rtt` is smoothed (RFC 6298), with its variation
/// behind the slash; `retrans` tells what is in flight now and the sum since the connection began.
const VARIABLES: [(&[u8], &str, Unit, Form); 17] = [
    (b"cwnd", "cwnd", Unit::Packets, Form::Plain),
    (b"ssthresh", "ssthresh", Unit::Packets, Form::Plain),
    (b"rtt", "srtt", Unit::Ms, Form::Plain),
    (b"rtt", "rttvar", Unit::Ms, Form::Second),
    (b"minrtt", "minrtt", Unit::Ms, Form::Plain),
    (b"rto", "rto", Unit::Ms, Form::Plain),
    (b"mss", "mss", Unit::Bytes, Form::Plain),
    (b"unacked", "unacked", Unit::Packets, Form::Plain),
    (b"retrans", "retransmits", Unit::Packets, Form::Second),
    (b"bytes_sent", "bytes_sent", Unit::Bytes, Form::Plain),
    (b"bytes_acked", "bytes_acked", Unit::Bytes, Form::Plain),
    (b"bytes_retrans", "bytes_retrans", Unit::Bytes, Form::Plain),
    (b"notsent", "notsent", Unit::Bytes, Form::Plain),
    (b"snd_wnd", "snd_wnd", Unit::Bytes, Form::Plain),
    (b"send", "send_rate", Unit::Bps, Form::Rate),
    (b"pacing_rate", "pacing_rate", Unit::Bps, Form::Rate),
    (b"delivery_rate", "delivery_rate", Unit::Bps, Form::Rate),
];

/// Whether a text holds variables of a connection: each has a window.
pub fn is_info(text: &[u8]) -> bool {
    memchr::memmem::find(text, b" cwnd:").is_some()
}

/// Hand over name, unit and value of each variable that is known here.
pub fn for_each_variable(text: &[u8], mut found: impl FnMut(&'static str, Unit, f64)) {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut was_resent = false;
    while let Some(word) = words.next() {
        let colon = memchr::memchr(b':', word);
        let (name, value) = match colon {
            Some(at) => (word.get(..at).unwrap_or_default(), word.get(at + 1..).unwrap_or_default()),
            // `pacing_rate 12Mbps`: the value is the next word.
            None if is_rate(word) => (word, words.next().unwrap_or_default()),
            None => continue,
        };
        was_resent |= name == b"retrans";
        for (_, name, unit, form) in VARIABLES.iter().filter(|(known, ..)| *known == name) {
            if let Some(value) = value_of(value, *form) {
                found(name, *unit, value);
            }
        }
    }
    if !was_resent {
        // Nothing is written while nothing was sent again.
        found("retransmits", Unit::Packets, 0.0);
    }
}

fn is_rate(word: &[u8]) -> bool {
    VARIABLES.iter().any(|(known, _, _, form)| matches!(form, Form::Rate) && *known == word)
}

fn value_of(text: &[u8], form: Form) -> Option<f64> {
    let slash = memchr::memchr(b'/', text);
    match form {
        Form::Plain => number::real(text.get(..slash.unwrap_or(text.len()))?),
        Form::Second => number::real(text.get(slash? + 1..)?),
        Form::Rate => rate_bps(text),
    }
    .filter(|value| *value >= 0.0)
}

/// `3138510bps`, or with one decimal in older releases `3.1Mbps`.
fn rate_bps(text: &[u8]) -> Option<f64> {
    let number = text.strip_suffix(b"bps")?;
    let (digits, scale) = match number.split_last()? {
        (b'K', digits) => (digits, 1e3),
        (b'M', digits) => (digits, 1e6),
        (b'G', digits) => (digits, 1e9),
        (b'T', digits) => (digits, 1e12),
        _ => (number, 1.0),
    };
    Some(number::real(digits)? * scale)
}
