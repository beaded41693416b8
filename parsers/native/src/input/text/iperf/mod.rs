//! The text output of iperf: iperf 2's reports, plain and enhanced (`-e`), and iperf3's text, which
//! has the same form. iperf3's `--json` has more and is read as a document.

mod banner;
mod report;

use std::collections::VecDeque;

use super::{LineFormat, NameTable, Outcome, date, number};
use crate::packet::address;
use crate::packet::address::HostPort;
use crate::packet::event::Packet;
use crate::packet::logged_variables::{SampleList, Unit, VariableSample};
use banner::Banner;
use report::{Columns, Report};

const EXPECTED: &str = "expected `local ... connected with ...` or a report with its interval";
const UNKNOWN: &str = "expected `local ... connected with ...` of this test in a line before";
/// The most tests at one time; a server numbers on, so beyond this the oldest is forgotten.
const MAX_TESTS: usize = 256;

/// Whether a line looks like output of iperf.
pub fn recognises(line: &[u8]) -> bool {
    let Some((id, rest)) = bracketed(line) else { return false };
    id.trim_ascii() == b"ID"
        || connected(rest).is_some()
        || report::read(role(rest).1, Columns::Plain).is_some()
}

/// One test: a TCP connection or a UDP stream.
#[derive(Clone, Copy)]
struct Test {
    local: HostPort,
    remote: HostPort,
    /// Whether this end sends; None if the log does not show it.
    is_sender: Option<bool>,
    /// Its start since the epoch, if the log has it.
    start_ns: Option<i64>,
    /// End of the last interval: a later interval that starts at 0 is the total.
    last_end_ns: i64,
    retransmits: f64,
}

/// Reader of the log.
#[derive(Default)]
pub struct Iperf {
    banner: Banner,
    columns: Columns,
    /// With their numbers; the newest is last.
    tests: VecDeque<(u64, Test)>,
    samples: SampleList,
    has_dates: bool,
    lacks_dates: bool,
    places: NameTable,
}

impl LineFormat for Iperf {
    fn read(&mut self, _number: u64, line: &[u8], _packet: &mut Packet) -> Outcome {
        let Some((id, rest)) = bracketed(line) else {
            // Greetings, buffer sizes and rulers, which also show which end this is.
            self.banner.on_line(line);
            return Outcome::Other;
        };
        if id.trim_ascii() == b"ID" {
            self.columns = Columns::of(rest);
            return Outcome::Other;
        }
        let Some(id) = test_number(id) else {
            // `[SUM]` follows from the other lines.
            return Outcome::Other;
        };
        if let Some(ends) = connected(rest) {
            self.open(id, ends, rest);
            return Outcome::Other;
        }
        let (role, rest) = role(rest);
        match report::read(rest, self.columns) {
            Some(report) => self.on_report(id, role, &report),
            None if rest.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) => {
                Outcome::Wrong(EXPECTED)
            }
            // `Server Report:`, `Sent 629 datagrams`, `MSS size 1448 bytes`
            None => Outcome::Other,
        }
    }

    fn places(&self) -> &NameTable {
        &self.places
    }

    fn take_samples(&mut self) -> Vec<VariableSample> {
        self.samples.take()
    }

    fn caveats(&self) -> Vec<String> {
        let undated = self
            .lacks_dates
            .then(|| "iperf does not log the start time: times count from the start of each test".to_owned());
        let coarse = self.has_dates.then(|| {
            "iperf logs the start of a test in whole seconds: times may be up to a second early".to_owned()
        });
        undated.into_iter().chain(coarse).chain(self.samples.caveat()).collect()
    }
}

impl Iperf {
    fn open(&mut self, id: u64, (local, remote): (HostPort, HostPort), line: &[u8]) {
        let is_sender = self.banner.is_sender(local.port, line);
        let start_ns = start_ns(line);
        let test = Test { local, remote, is_sender, start_ns, last_end_ns: 0, retransmits: 0.0 };
        self.tests.retain(|(known, _)| *known != id);
        if self.tests.len() == MAX_TESTS {
            self.tests.pop_front();
        }
        self.tests.push_back((id, test));
    }

    fn on_report(&mut self, id: u64, role: Option<bool>, report: &Report) -> Outcome {
        let is_udp = self.banner.is_udp || self.columns.are_of_udp();
        let Some((_, test)) = self.tests.iter_mut().rev().find(|(known, _)| *known == id) else {
            return Outcome::Wrong(UNKNOWN);
        };
        let is_total = report.start_ns == 0 && test.last_end_ns > 0;
        test.last_end_ns = report.end_ns;
        let is_sender = role.unwrap_or_else(|| test.is_sender(report));
        // A UDP sender gets the receiver's counts at the end: only these are new in the totals.
        let is_answer = is_sender && report.jitter_ms.is_some() && !report.is_of_sender;
        if is_total && !is_answer {
            return Outcome::Other;
        }
        let (from, to) = if is_sender { (test.local, test.remote) } else { (test.remote, test.local) };
        let Some(endpoints) = from.sending_to(to, if is_udp { 17 } else { 6 }) else {
            return Outcome::Wrong(EXPECTED);
        };
        test.retransmits += report.retransmits.unwrap_or(0.0);
        let time_ns = test.start_ns.unwrap_or(0).saturating_add(report.end_ns);
        match test.start_ns {
            Some(_) => self.has_dates = true,
            None => self.lacks_dates = true,
        }
        let rate = if is_sender && !is_answer { "throughput" } else { "goodput" };
        let variables = [
            (rate, Unit::Bps, report.rate_bps),
            ("cwnd", Unit::Bytes, report.cwnd_bytes),
            ("srtt", Unit::Ms, report.rtt_ms),
            ("rttvar", Unit::Ms, report.rttvar_ms),
            ("retransmits", Unit::Packets, report.retransmits.map(|_| test.retransmits)),
            ("interval_retransmits", Unit::Packets, report.retransmits),
            ("jitter", Unit::Ms, report.jitter_ms),
            ("lost_packets", Unit::Packets, report.lost_packets),
            ("packets", Unit::Packets, report.packets),
        ];
        for (name, unit, value) in variables {
            if let Some(value) = value {
                self.samples.add(VariableSample { endpoints, time_ns, name, unit, value });
            }
        }
        Outcome::Other
    }
}

impl Test {
    /// Whether this end sends; a guess if the log does not show it.
    fn is_sender(&self, report: &Report) -> bool {
        self.is_sender.unwrap_or_else(|| {
            report.jitter_ms.is_none() && !banner::DEFAULT_PORTS.contains(&self.local.port)
        })
    }
}

/// The text in the brackets at the start of a line, and the text after them.
fn bracketed(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.trim_ascii_start().strip_prefix(b"[")?;
    let end = memchr::memchr(b']', rest)?;
    Some((rest.get(..end)?, rest.get(end + 1..)?))
}

/// The number of a test; `*1` is the reverse direction of the connection.
fn test_number(id: &[u8]) -> Option<u64> {
    let id = id.trim_ascii();
    number::decimal(id.strip_prefix(b"*").unwrap_or(id))
}

/// `[TX-C]` or `[RX-C]` before the interval of a test in both directions: whether this end sends.
fn role(text: &[u8]) -> (Option<bool>, &[u8]) {
    match bracketed(text) {
        Some((role, rest)) if role.starts_with(b"TX") => (Some(true), rest),
        Some((role, rest)) if role.starts_with(b"RX") => (Some(false), rest),
        _ => (None, text),
    }
}

/// Both ends in `local 10.0.0.1 port 5001 connected with 10.0.0.2 port 47302`.
fn connected(text: &[u8]) -> Option<(HostPort, HostPort)> {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.by_ref().find(|word| *word == b"local")?;
    let local = end(&mut words)?;
    let is_connected = words.next()? == b"connected" && matches!(words.next()?, b"with" | b"to");
    let remote = end(&mut words)?;
    is_connected.then_some((local, remote))
}

/// `10.0.0.1 port 5001`
fn end<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Option<HostPort> {
    let address = words.next()?;
    let port = words.next().filter(|word| *word == b"port").and_then(|_| words.next())?;
    address::end(address, u16::try_from(number::decimal(port)?).ok()?)
}

/// The date of `connected with ... on 2026-11-21 07:54:00 (UTC)`. Other zones are written by name,
/// which does not give their offset.
fn start_ns(line: &[u8]) -> Option<i64> {
    let at = memchr::memmem::rfind(line, b" on ")?;
    let date = line.get(at + 4..)?;
    let zone_at = memchr::memmem::find(date, b" (UTC)").or_else(|| memchr::memmem::find(date, b" (GMT)"))?;
    date::iso_ns(date.get(..zone_at)?)
}

#[cfg(test)]
mod tests;
