//! One test of iperf3: its streams and their intervals.

use super::model::{Protocol, Start, StreamInterval};
use crate::packet::address::HostPort;
use crate::packet::event::Endpoints;
use crate::packet::logged_variables::{SampleList, Unit, VariableSample};

/// The most intervals kept before the start is read: tools that sort keys put it last.
const MAX_WAITING: usize = 1 << 16;

struct Stream {
    socket: i64,
    ends: Option<(HostPort, HostPort)>,
    retransmits: f64,
}

/// Results shared by all tests of a file.
#[derive(Default)]
pub struct FileFindings {
    pub samples: SampleList,
    /// Intervals of streams that are missing in the start.
    pub unknown_intervals: u64,
    /// Whether the start was given in whole seconds.
    pub is_coarse: bool,
    /// Errors that iperf3 itself reports.
    pub errors: Vec<String>,
}

/// One test while it is read.
#[derive(Default)]
pub struct TestRun {
    start: Option<Start>,
    streams: Vec<Stream>,
    waiting: Vec<StreamInterval>,
}

impl TestRun {
    /// Add the streams, and the intervals that were read before them.
    pub fn begin(&mut self, start: Start, findings: &mut FileFindings) {
        findings.is_coarse |= start.timestamp.timemillisecs.is_none();
        self.streams = start
            .connected
            .iter()
            .map(|stream| Stream { socket: stream.socket, ends: stream.ends(), retransmits: 0.0 })
            .collect();
        self.start = Some(start);
        for interval in std::mem::take(&mut self.waiting) {
            self.on_interval(&interval, findings);
        }
    }

    /// Add one stream's interval.
    pub fn on_interval(&mut self, interval: &StreamInterval, findings: &mut FileFindings) {
        let Some(start) = &self.start else {
            match self.waiting.len() < MAX_WAITING {
                true => self.waiting.push(*interval),
                false => findings.unknown_intervals += 1,
            }
            return;
        };
        let stream = self.streams.iter_mut().find(|stream| stream.socket == interval.socket);
        let known = stream.and_then(|stream| {
            let time_ns = time_ns(start, interval)?;
            let is_sender = interval.sender.unwrap_or_else(|| sends(start));
            let endpoints = endpoints(stream, start, is_sender)?;
            stream.retransmits += interval.retransmits.unwrap_or(0.0);
            Some((time_ns, is_sender, endpoints, stream.retransmits))
        });
        let Some((time_ns, is_sender, endpoints, retransmits)) = known else {
            findings.unknown_intervals += 1;
            return;
        };
        for (name, unit, value) in variables(interval, is_sender, retransmits) {
            if let Some(value) = value {
                findings.samples.add(VariableSample { endpoints, time_ns, name, unit, value });
            }
        }
    }

    pub fn end(self, findings: &mut FileFindings) {
        findings.unknown_intervals += self.waiting.len() as u64;
    }
}

/// The variables of an interval. What both ends measure has two names: bytes written by the
/// sender's application need not have arrived.
fn variables(
    interval: &StreamInterval,
    is_sender: bool,
    retransmits: f64,
) -> [(&'static str, Unit, Option<f64>); 10] {
    let rate = if is_sender { "throughput" } else { "goodput" };
    let ms = |microseconds: Option<f64>| microseconds.map(|value| value / 1e3);
    [
        (rate, Unit::Bps, interval.bits_per_second),
        ("cwnd", Unit::Bytes, interval.snd_cwnd),
        ("snd_wnd", Unit::Bytes, interval.snd_wnd),
        ("srtt", Unit::Ms, ms(interval.rtt)),
        ("rttvar", Unit::Ms, ms(interval.rttvar)),
        ("retransmits", Unit::Packets, interval.retransmits.map(|_| retransmits)),
        ("interval_retransmits", Unit::Packets, interval.retransmits),
        ("jitter", Unit::Ms, interval.jitter_ms),
        ("lost_packets", Unit::Packets, interval.lost_packets),
        ("packets", Unit::Packets, interval.packets),
    ]
}

/// Whether this end sends, for releases whose intervals omit it.
fn sends(start: &Start) -> bool {
    start.connecting_to.is_some() == (start.test_start.reverse == 0)
}

fn endpoints(stream: &Stream, start: &Start, is_sender: bool) -> Option<Endpoints> {
    let protocol = match start.test_start.protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Other => return None,
    };
    let (local, remote) = stream.ends?;
    let (from, to) = if is_sender { (local, remote) } else { (remote, local) };
    from.sending_to(to, protocol)
}

/// The end of an interval since the epoch.
fn time_ns(start: &Start, interval: &StreamInterval) -> Option<i64> {
    let clock = &start.timestamp;
    let start_ns = match clock.timemillisecs {
        Some(ms) => ms.checked_mul(1_000_000)?,
        None => clock.timesecs.checked_mul(1_000_000_000)?,
    };
    let omitted = if interval.omitted { 0.0 } else { start.test_start.omit };
    let offset_ns = ((interval.end + omitted) * 1e9).round();
    (offset_ns.abs() < 1e18).then(|| start_ns.checked_add(offset_ns as i64)).flatten()
}
