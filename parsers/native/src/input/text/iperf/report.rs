//! A line with the figures of one interval:
//! `1.0000-2.0000 sec   176 KBytes  1.44 Mbits/sec   3.529 ms 5/155 (3.2%) ...`.

use crate::input::text::number;

/// The columns after the rate, by the line with their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// None that is read.
    #[default]
    Plain,
    /// Jitter, lost and total datagrams.
    Jitter,
    /// Number of datagrams (iperf3).
    Datagrams,
    /// Retransmissions and window (iperf3).
    Retransmits,
    /// Writes, retransmissions, window and round-trip time (iperf 2).
    Enhanced,
}

impl Columns {
    /// The columns of a line of names.
    pub fn of(names: &[u8]) -> Self {
        let has = |name: &[u8]| memchr::memmem::find(names, name).is_some();
        match () {
            () if has(b"Jitter") => Self::Jitter,
            () if has(b"Total Datagrams") => Self::Datagrams,
            () if has(b"Rtry") => Self::Enhanced,
            () if has(b"Retr") => Self::Retransmits,
            () => Self::Plain,
        }
    }

    /// Whether only UDP has these.
    pub fn are_of_udp(self) -> bool {
        matches!(self, Self::Jitter | Self::Datagrams)
    }
}

/// The figures of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Start of the interval in the test.
    pub start_ns: i64,
    pub end_ns: i64,
    /// Application bytes written or read.
    pub rate_bps: Option<f64>,
    /// Of RFC 3550.
    pub jitter_ms: Option<f64>,
    pub lost_packets: Option<f64>,
    /// Datagrams sent, as far as this end knows.
    pub packets: Option<f64>,
    /// Segments retransmitted in the interval.
    pub retransmits: Option<f64>,
    pub cwnd_bytes: Option<f64>,
    pub rtt_ms: Option<f64>,
    pub rttvar_ms: Option<f64>,
    /// Whether iperf3 marks the line as the sender's.
    pub is_of_sender: bool,
}

/// Read the text after the test's number; None if it is no interval with a rate.
pub fn read(text: &[u8], columns: Columns) -> Option<Report> {
    let (start_ns, end_ns, rest) = interval(text)?;
    let mut words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).peekable();
    let _transferred = (words.next()?, words.next()?);
    let rate_bps = rate_bps(words.next()?, words.next()?);
    let is_of_sender = rest.trim_ascii_end().ends_with(b"sender");
    let mut report = Report { start_ns, end_ns, rate_bps, is_of_sender, ..Report::default() };
    match columns {
        Columns::Plain => {}
        Columns::Jitter => {
            let value = words.next().and_then(not_negative);
            if words.next() == Some(b"ms") {
                report.jitter_ms = value;
                (report.lost_packets, report.packets) = share(words.next(), words.next());
            }
        }
        Columns::Datagrams => report.packets = words.next().and_then(not_negative),
        Columns::Retransmits => {
            report.retransmits = words.next().and_then(not_negative);
            report.cwnd_bytes = words.next().zip(words.next()).and_then(|(value, unit)| amount(value, unit));
        }
        Columns::Enhanced => {
            let _writes = words.next();
            report.retransmits = words.next().and_then(not_negative);
            report.enhance(words.next().unwrap_or_default(), words.next());
        }
    }
    Some(report)
}

impl Report {
    /// `87K/412(31) us`: window, round-trip time, its variation.
    fn enhance(&mut self, text: &[u8], unit: Option<&[u8]>) {
        let Some(slash) = memchr::memchr(b'/', text) else { return };
        let (window, times) = text.split_at(slash);
        self.cwnd_bytes = window.strip_suffix(b"K").and_then(not_negative).map(|value| value * 1024.0);
        if unit != Some(b"us") {
            return;
        }
        let times = times.get(1..).unwrap_or_default();
        let bracket = memchr::memchr(b'(', times).unwrap_or(times.len());
        let (rtt, variation) = times.split_at(bracket);
        self.rtt_ms = not_negative(rtt).map(|microseconds| microseconds / 1e3);
        let variation = variation.get(1..).and_then(|text| text.strip_suffix(b")"));
        self.rttvar_ms = variation.and_then(not_negative).map(|microseconds| microseconds / 1e3);
    }
}

/// `1.0000-2.0000 sec`, in old releases ` 1.0- 2.0 sec`, and the text after it.
fn interval(text: &[u8]) -> Option<(i64, i64, &[u8])> {
    let text = text.trim_ascii_start();
    let dash = memchr::memchr(b'-', text)?;
    let start_ns = number::time_ns(text.get(..dash)?)?;
    let rest = text.get(dash + 1..)?.trim_ascii_start();
    let end = rest.iter().position(u8::is_ascii_whitespace)?;
    let end_ns = number::time_ns(rest.get(..end)?)?;
    let rest = rest.get(end..)?.trim_ascii_start().strip_prefix(b"sec")?;
    Some((start_ns, end_ns, rest))
}

/// Lost and total: `17/159`, in old releases `0/  893`.
fn share(word: Option<&[u8]>, next: Option<&[u8]>) -> (Option<f64>, Option<f64>) {
    let word = word.unwrap_or_default();
    let Some(slash) = memchr::memchr(b'/', word) else { return (None, None) };
    let (lost, all) = word.split_at(slash);
    let all = match all.get(1..) {
        Some([]) | None => next.unwrap_or_default(),
        Some(all) => all,
    };
    (not_negative(lost), not_negative(all))
}

fn not_negative(text: &[u8]) -> Option<f64> {
    number::real(text).filter(|value| *value >= 0.0)
}

/// A number with its unit, in bits or bytes: bits are counted in thousands, bytes in 1024s.
fn amount(value: &[u8], unit: &[u8]) -> Option<f64> {
    let value = not_negative(value)?;
    let (prefix, base) = match unit {
        [prefix @ .., b'b', b'i', b't', b's'] => (prefix, 1000.0_f64),
        [prefix @ .., b'B', b'y', b't', b'e', b's'] => (prefix, 1024.0),
        _ => return None,
    };
    let power = match prefix {
        b"" => 0,
        b"K" => 1,
        b"M" => 2,
        b"G" => 3,
        b"T" => 4,
        _ => return None,
    };
    Some(value * base.powi(power))
}

/// `1.52 Mbits/sec`, or with `--format M` `0.19 MBytes/sec`.
fn rate_bps(value: &[u8], unit: &[u8]) -> Option<f64> {
    let unit = unit.strip_suffix(b"/sec")?;
    let bits = if unit.ends_with(b"Bytes") { 8.0 } else { 1.0 };
    amount(value, unit).map(|amount| amount * bits)
}
