//! The log of one connection: its ends, its clock, and the samples of its events.

use super::event::{Data, MARKS, METRICS};
use crate::input::text::date;
use crate::packet::address::HostPort;
use crate::packet::event::{Endpoints, Family};
use crate::packet::logged_variables::{SampleList, Unit, VariableSample};
use crate::wire::quic::ConnectionId;

/// UDP.
const PROTOCOL: u8 = 17;
/// Connections without addresses that are read of a file.
const MOST_NAMED: usize = 1 << 16;
/// Times of less are not dates (1973), whatever the file says.
const DATES_FROM_MS: f64 = 1e11;

/// Results of all traces of a file.
#[derive(Default)]
pub struct FileFindings {
    pub samples: SampleList,
    /// Client and server of each connection without addresses.
    pub hosts: Vec<String>,
    pub has_unknown_clock: bool,
    /// Connections beyond [`MOST_NAMED`].
    pub unread_connections: u64,
    /// Events without a time.
    pub unread_events: u64,
}

/// How times are written.
#[derive(Clone, Copy, Default, PartialEq)]
enum TimeFormat {
    /// Since the epoch, or since the reference.
    #[default]
    Absolute,
    /// Since the reference.
    Relative,
    /// Since the event before.
    Delta,
}

/// The log of a connection while it is read.
#[derive(Default)]
pub struct TraceLog {
    ends: Option<(HostPort, HostPort)>,
    id: Option<ConnectionId>,
    is_server: bool,
    format: TimeFormat,
    reference_ms: Option<f64>,
    /// Time of the last event.
    last_ms: f64,
    lost_packets: u64,
    /// The reference and the ends may follow the events.
    waiting: SampleList,
}

impl TraceLog {
    /// Set a field with a text that stands in `group`.
    pub fn set_field(&mut self, group: &str, key: &str, text: &str) {
        match (group, key) {
            ("vantage_point", "type") => self.is_server = text == "server",
            ("common_fields", "ODCID" | "group_id") => self.id = id_of(text).or(self.id),
            ("common_fields", "time_format") => {
                self.format = match text {
                    "relative" | "relative_to_epoch" => TimeFormat::Relative,
                    "delta" | "relative_to_previous_event" => TimeFormat::Delta,
                    _ => TimeFormat::Absolute,
                }
            }
            ("reference_time", "epoch" | "wall_clock_time") => {
                self.reference_ms =
                    date::iso_ns(text.as_bytes()).map(|ns| ns as f64 / 1e6).or(self.reference_ms);
            }
            _ => {}
        }
    }

    pub fn set_reference_ms(&mut self, reference_ms: f64) {
        self.reference_ms = Some(reference_ms);
    }

    /// Add an event.
    pub fn on_event(
        &mut self,
        time_ms: Option<f64>,
        name: Option<&str>,
        data: &Data,
        findings: &mut FileFindings,
    ) {
        let (Some(time_ms), Some(name)) = (time_ms.filter(|time_ms| time_ms.is_finite()), name) else {
            findings.unread_events += 1;
            return;
        };
        self.last_ms = if self.format == TimeFormat::Delta { self.last_ms + time_ms } else { time_ms };
        let name = name.rsplit(':').next().unwrap_or(name);
        match name.strip_prefix("recovery_").unwrap_or(name) {
            "metrics_updated" => {
                for ((_, name, unit), value) in METRICS.into_iter().zip(data.metrics) {
                    self.add(name, unit, value);
                }
            }
            "packet_lost" => {
                self.lost_packets += 1;
                self.add("lost_packets", Unit::Packets, Some(self.lost_packets as f64));
            }
            "packet_received" => {
                for ((_, name), value) in MARKS.into_iter().zip(data.marks) {
                    self.add(name, Unit::Packets, value);
                }
            }
            "connection_started" | "tuple_assigned" => {
                self.ends = self.ends.or(data.local.address().zip(data.remote.address()));
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &'static str, unit: Unit, value: Option<f64>) {
        if let Some(value) = value {
            // Completed at the end.
            let time_ns = ns_of(self.last_ms);
            self.waiting.add(VariableSample { endpoints: Endpoints::default(), time_ns, name, unit, value });
        }
    }

    /// Complete the samples.
    pub fn end(mut self, findings: &mut FileFindings) {
        findings.samples.note_left_out(&self.waiting);
        let samples = self.waiting.take();
        let Some(first) = samples.first() else { return };
        let is_dated = first.time_ns as f64 / 1e6 >= DATES_FROM_MS;
        let reference_ms = self.reference_ms.filter(|_| !is_dated);
        findings.has_unknown_clock |= reference_ms.is_none() && !is_dated;
        let reference_ns = ns_of(reference_ms.unwrap_or(0.0));
        let Some(endpoints) = self.endpoints(findings) else {
            findings.unread_connections += 1;
            return;
        };
        for sample in samples {
            let time_ns = sample.time_ns.saturating_add(reference_ns);
            findings.samples.add(VariableSample { endpoints, time_ns, ..sample });
        }
    }

    /// From this end to the other: its addresses, or the number of the connection, which names it. None if there
    /// are too many of those.
    fn endpoints(&self, findings: &mut FileFindings) -> Option<Endpoints> {
        if let Some((local, remote)) = self.ends
            && let Some(endpoints) = local.sending_to(remote, PROTOCOL)
        {
            return Some(endpoints);
        }
        let client = findings.hosts.len();
        if client >= 2 * MOST_NAMED {
            return None;
        }
        let id = self.id.map_or_else(|| "unknown".to_owned(), |id| id.to_string());
        findings.hosts.extend(["client", "server"].map(|role| format!("{role} of {id}")));
        let ends = (client as u128, client as u128 + 1);
        let (src, dst) = if self.is_server { (ends.1, ends.0) } else { ends };
        Some(Endpoints { family: Family::Name, protocol: PROTOCOL, src, dst, src_port: 0, dst_port: 0 })
    }
}

/// Nanoseconds of a time in ms: of a date in one step they would be rounded to 256.
fn ns_of(ms: f64) -> i64 {
    (ms.trunc() as i64).saturating_mul(1_000_000).saturating_add((ms.fract() * 1e6).round() as i64)
}

/// An identifier in hexadecimal digits.
fn id_of(text: &str) -> Option<ConnectionId> {
    let digits = text.as_bytes().chunks_exact(2);
    if !digits.remainder().is_empty() {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    ConnectionId::new(&digits.map(byte).collect::<Option<Vec<u8>>>()?)
}
