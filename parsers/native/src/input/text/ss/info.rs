//! The variables of one socket: `cubic wscale:7,7 rto:204 rtt:0.5/0.25 cwnd:10 pacing_rate 12Mbps`.

use crate::input::text::number;
use crate::packet::logged_variables::Unit;

/// The form of a value's text.
#[derive(Clone, Copy)]
enum ValueForm {
    Plain,
    /// The second of two numbers with a slash.
    Second,
    /// A rate with its unit: `1.2Mbps`.
    Rate,
}

/// Variable in the text, name here, unit and form. `rtt` is smoothed (RFC 6298), with its variation
/// after the slash; `retrans` has the segments in flight now and the sum since the connection
/// began.
const VARIABLES: [(&[u8], &str, Unit, ValueForm); 17] = [
    (b"cwnd", "cwnd", Unit::Packets, ValueForm::Plain),
    (b"ssthresh", "ssthresh", Unit::Packets, ValueForm::Plain),
    (b"rtt", "srtt", Unit::Ms, ValueForm::Plain),
    (b"rtt", "rttvar", Unit::Ms, ValueForm::Second),
    (b"minrtt", "minrtt", Unit::Ms, ValueForm::Plain),
    (b"rto", "rto", Unit::Ms, ValueForm::Plain),
    (b"mss", "mss", Unit::Bytes, ValueForm::Plain),
    (b"unacked", "unacked", Unit::Packets, ValueForm::Plain),
    (b"retrans", "retransmits", Unit::Packets, ValueForm::Second),
    (b"bytes_sent", "bytes_sent", Unit::Bytes, ValueForm::Plain),
    (b"bytes_acked", "bytes_acked", Unit::Bytes, ValueForm::Plain),
    (b"bytes_retrans", "bytes_retrans", Unit::Bytes, ValueForm::Plain),
    (b"notsent", "notsent", Unit::Bytes, ValueForm::Plain),
    (b"snd_wnd", "snd_wnd", Unit::Bytes, ValueForm::Plain),
    (b"send", "send_rate", Unit::Bps, ValueForm::Rate),
    (b"pacing_rate", "pacing_rate", Unit::Bps, ValueForm::Rate),
    (b"delivery_rate", "delivery_rate", Unit::Bps, ValueForm::Rate),
];

/// Whether a text holds variables of a connection: each has a window.
pub fn is_info(text: &[u8]) -> bool {
    memchr::memmem::find(text, b" cwnd:").is_some()
}

/// Pass name, unit and value of each known variable to `found`.
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
        // The field is missing before the first retransmission.
        found("retransmits", Unit::Packets, 0.0);
    }
}

fn is_rate(word: &[u8]) -> bool {
    VARIABLES.iter().any(|(known, _, _, form)| matches!(form, ValueForm::Rate) && *known == word)
}

fn value_of(text: &[u8], form: ValueForm) -> Option<f64> {
    let slash = memchr::memchr(b'/', text);
    match form {
        ValueForm::Plain => number::real(text.get(..slash.unwrap_or(text.len()))?),
        ValueForm::Second => number::real(text.get(slash? + 1..)?),
        ValueForm::Rate => rate_bps(text),
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
