//! The names of columns and their meaning.

use crate::packet::logged_variables::Unit;

/// The most columns; a hostile line could name thousands.
const MAX_COLUMNS: usize = 64;
/// Thresholds from here on mean that none is set yet (RFC 5681: arbitrarily high): 2^31 - 1 in
/// Linux, 2^32 - 1 in ns-3.
const NO_THRESHOLD: f64 = 2_147_483_647.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    Time,
    /// Number or name of the flow.
    Flow,
    /// Sender, with or without port.
    Src,
    /// Receiver, with or without port.
    Dst,
    SrcPort,
    DstPort,
    Variable(Variable),
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    pub name: &'static str,
    pub unit: Unit,
    /// Factor from the column's unit to `unit`.
    scale: f64,
    /// Whether the column's name has no unit.
    pub is_guess: bool,
}

impl Variable {
    /// A column's value in `unit`; None if the value means "none".
    pub fn value(&self, value: f64) -> Option<f64> {
        let is_none = self.name == "ssthresh" && value >= NO_THRESHOLD;
        (!is_none).then_some(value * self.scale)
    }
}

/// The separator of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    Byte(u8),
    #[default]
    Space,
}

impl Separator {
    fn of(line: &[u8]) -> Self {
        [b',', b';', b'\t'].into_iter().find(|byte| line.contains(byte)).map_or(Self::Space, Self::Byte)
    }

    pub fn split(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        let is_between = move |byte: &u8| match self {
            Self::Byte(separator) => *byte == separator,
            Self::Space => byte.is_ascii_whitespace(),
        };
        let trimmed = line.trim_ascii();
        trimmed
            .split(is_between)
            .filter(move |text| matches!(self, Self::Byte(_)) || !text.is_empty())
            .map(<[u8]>::trim_ascii)
    }
}

/// Names in lower case; `curcwnd` and others without separators are those of web100.
const VARIABLES: [(&[&str], &str, Unit); 20] = [
    (&["cwnd", "snd_cwnd", "congestion_window"], "cwnd", Unit::Packets),
    (&["ssthresh", "ssth", "snd_ssthresh"], "ssthresh", Unit::Packets),
    (&["curcwnd"], "cwnd", Unit::Bytes),
    (&["curssthresh"], "ssthresh", Unit::Bytes),
    (&["rtt", "samplertt"], "rtt", Unit::Ms),
    (&["srtt", "smoothed_rtt", "smoothedrtt"], "srtt", Unit::Ms),
    (&["rttvar", "mdev"], "rttvar", Unit::Ms),
    (&["minrtt", "min_rtt"], "minrtt", Unit::Ms),
    (&["rto", "currto"], "rto", Unit::Ms),
    (&["inflight", "in_flight", "unacked"], "unacked", Unit::Packets),
    (
        &["retransmits", "retrans", "total_retrans", "nrexmitpack", "pktsretrans"],
        "retransmits",
        Unit::Packets,
    ),
    (&["lost", "lost_packets"], "lost_packets", Unit::Packets),
    (&["mss", "curmss"], "mss", Unit::Bytes),
    (&["bytes_acked"], "bytes_acked", Unit::Bytes),
    (&["snd_wnd", "rwnd", "currwinrcvd"], "snd_wnd", Unit::Bytes),
    (&["pacing_rate"], "pacing_rate", Unit::Bps),
    (&["delivery_rate"], "delivery_rate", Unit::Bps),
    (&["throughput"], "throughput", Unit::Bps),
    (&["goodput"], "goodput", Unit::Bps),
    (&["jitter"], "jitter", Unit::Ms),
];

/// Units at the end of a column's name, with what they are converted to.
const UNITS: [(&str, Unit, f64); 15] = [
    ("bytes", Unit::Bytes, 1.0),
    ("packets", Unit::Packets, 1.0),
    ("pkts", Unit::Packets, 1.0),
    ("segments", Unit::Packets, 1.0),
    ("seconds", Unit::Ms, 1e3),
    ("ms", Unit::Ms, 1.0),
    ("us", Unit::Ms, 1e-3),
    ("ns", Unit::Ms, 1e-6),
    ("s", Unit::Ms, 1e3),
    ("kbps", Unit::Bps, 1e3),
    ("mbps", Unit::Bps, 1e6),
    ("gbps", Unit::Bps, 1e9),
    ("bit/s", Unit::Bps, 1.0),
    ("bits_per_second", Unit::Bps, 1.0),
    ("bps", Unit::Bps, 1.0),
];

/// The columns that a line names: a time and at least one variable. None if it is no such line.
pub fn named(line: &[u8]) -> Option<(Vec<Column>, Separator)> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = line.strip_prefix(b"#").unwrap_or(line);
    // Most lines are numbers; names begin with a letter.
    line.trim_ascii_start().first().filter(|byte| byte.is_ascii_alphabetic() || **byte == b'"')?;
    let separator = Separator::of(line);
    let columns: Vec<Column> = separator.split(line).take(MAX_COLUMNS).map(meaning).collect();
    let has_variable = columns.iter().any(|column| matches!(column, Column::Variable(_)));
    (has_variable && columns.contains(&Column::Time)).then_some((columns, separator))
}

/// The columns of a line of numbers without names.
pub fn nameless(line: &[u8]) -> Option<Vec<Column>> {
    let value = Column::Variable(Variable { name: "value", unit: Unit::One, scale: 1.0, is_guess: false });
    let mut words = Separator::Space.split(line);
    let words = [words.next(), words.next(), words.next(), words.next()];
    let is_number = |word: &&[u8]| crate::input::text::number::real(word).is_some();
    if !words.iter().flatten().all(is_number) {
        return None;
    }
    match words.iter().flatten().count() {
        2 => Some(vec![Column::Time, value]),
        3 => Some(vec![Column::Flow, Column::Time, value]),
        _ => None,
    }
}

fn meaning(name: &[u8]) -> Column {
    let Ok(name) = std::str::from_utf8(name) else { return Column::Other };
    let name = name.trim_matches('"').to_ascii_lowercase();
    match name.as_str() {
        "time" | "time_s" | "t" | "timestamp" | "seconds" | "sec" => Column::Time,
        "flow" | "fid" | "flow_id" | "connection" | "conn" => Column::Flow,
        "src" | "source" | "saddr" | "src_ip" | "local" => Column::Src,
        "dst" | "destination" | "daddr" | "dst_ip" | "peer" | "remote" => Column::Dst,
        "sport" | "src_port" | "srcport" => Column::SrcPort,
        "dport" | "dst_port" | "dstport" => Column::DstPort,
        name => variable(name).map_or(Column::Other, Column::Variable),
    }
}

/// `cwnd`, `cwnd_bytes`, `cwnd [bytes]`, `srtt(us)`
fn variable(name: &str) -> Option<Variable> {
    if let Some((name, unit)) = known(name) {
        let is_window = matches!(name, "cwnd" | "ssthresh" | "unacked");
        let is_guess = (is_window && unit == Unit::Packets) || unit == Unit::Ms;
        return Some(Variable { name, unit, scale: 1.0, is_guess });
    }
    let bare = name.trim_end_matches([']', ')']);
    UNITS.iter().find_map(|(suffix, unit, scale)| {
        let base = bare.strip_suffix(suffix)?;
        let base = base.strip_suffix(['_', '[', '(', ' '])?.trim_end_matches([' ', '_']);
        let (name, usual) = known(base)?;
        // A window may be counted in packets or bytes, but not in units of time.
        let fits = usual == *unit
            || matches!((usual, unit), (Unit::Packets, Unit::Bytes) | (Unit::Bytes, Unit::Packets));
        fits.then_some(Variable { name, unit: *unit, scale: *scale, is_guess: false })
    })
}

fn known(name: &str) -> Option<(&'static str, Unit)> {
    let (_, name, unit) = VARIABLES.iter().find(|(names, ..)| names.contains(&name))?;
    Some((name, *unit))
}
