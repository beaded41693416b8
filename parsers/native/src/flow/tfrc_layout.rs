//! TFRC over UDP with a user-defined layout: from datagrams to TFRC's ends.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::rtt_statistics::{LogHistogram, RttStatistics};
use super::tcp::vantage::{Vantage, VantageEvidence};
use super::tfrc::RttBy;
use crate::packet::key::Side;
use crate::plural::all_counted;
use crate::tfrc::round_trip::r_sample;
use crate::wire::tfrc_layout::{DataValues, Layout, ReportValues};

/// Limit of packets waiting for their echo, 24 bytes each; older ones give no RTT. A report comes
/// about once per round-trip time, so this is the longest flight that is measured.
const WAITING: usize = 4096;
/// Echoes needed to locate the capture.
const MIN_SAMPLES: u64 = 3;
/// Clock error tolerated where elapsed times have no unit, seconds.
const LEAST_STEP: f64 = 1e-6;

/// A data packet that a report may name.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SentData {
    number: u64,
    send_time: Option<u64>,
    time_ns: i64,
}

/// What a report refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EchoedPacket {
    /// Number of the packet that it names.
    pub number: Option<u64>,
    /// Time since that passed, less the time it was held, in seconds, and how it was matched.
    pub sample: Option<(f64, RttBy)>,
    /// Whether the capture does not show the packet.
    pub is_unseen: bool,
    /// Whether it was held longer than the time since its packet.
    pub is_impossible: bool,
}

/// Echo times from the capture on, with the whole round-trip time at that time. Queues change both
/// alike, so their ratio locates the capture.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Turnaround {
    echoes: u64,
    /// Sums in seconds.
    away: f64,
    whole: f64,
}

impl Turnaround {
    fn add(&mut self, away: f64, whole: Option<f64>) {
        if whole.is_none() && away > 0.0 {
            return;
        }
        self.echoes += 1;
        self.away += away;
        self.whole += whole.unwrap_or(0.0);
    }

    /// The share of the path downstream of the capture. None without a sum.
    fn share(&self) -> Option<f64> {
        let is_known = self.echoes >= MIN_SAMPLES && (self.whole > 0.0 || self.away == 0.0);
        is_known.then(|| self.away / self.whole.max(f64::MIN_POSITIVE))
    }
}

/// What one side sent, and the reports on it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LayoutHalf {
    waiting: VecDeque<SentData>,
    /// The latest round-trip time in the data, seconds.
    reported_rtt: Option<f64>,
    /// The latest from an echo, seconds.
    echo_rtt: Option<f64>,
    turnaround: Turnaround,
    /// Echo times, and their percentiles.
    pub rtt: Option<Box<(RttStatistics, LogHistogram)>>,
    ttl: u8,
    has_data: bool,
    /// Restarts of its numbering.
    pub restarts: u64,
    /// Its datagrams that are too short for their kind.
    pub misfits: u64,
    /// Its datagrams that are neither data nor reports.
    pub others: u64,
}

impl LayoutHalf {
    /// Record a datagram of this side.
    pub fn on_datagram(&mut self, ttl: u8) {
        if self.ttl == 0 {
            self.ttl = ttl;
        }
    }

    pub fn on_data(&mut self, values: &DataValues, time_ns: i64) {
        self.has_data = true;
        self.reported_rtt = values.rtt.or(self.reported_rtt);
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(SentData {
            number: values.stamp.number,
            send_time: values.send_time,
            time_ns,
        });
    }

    /// Process a report on data of this side.
    pub fn on_report(&mut self, layout: &Layout, report: &ReportValues, time_ns: i64) -> EchoedPacket {
        let mask = layout.echo_mask();
        let echoes = |sent: &&SentData| {
            sent.send_time.zip(report.time_echo).is_some_and(|(one, other)| one & mask == other & mask)
        };
        let is_named = |sent: &&SentData| Some(sent.number) == report.sequence;
        let newest = || self.waiting.iter().rev();
        let (found, method) = match report.time_echo {
            Some(_) => (newest().find(echoes), RttBy::Timestamp),
            None => (newest().find(is_named), RttBy::Ack),
        };
        let is_unseen = found.is_none() && (report.time_echo.is_some() || report.sequence.is_some());
        let number = report.sequence.or(found.map(|sent| sent.number));
        let Some(found) = found else { return EchoedPacket { number, is_unseen, ..EchoedPacket::default() } };
        let away = time_ns.saturating_sub(found.time_ns) as f64 / 1e9;
        let elapsed = report.elapsed.unwrap_or(0.0);
        let sample = r_sample(away, 0.0, elapsed);
        // At the receiver nothing is left, or less, as elapsed times are rounded.
        let is_impossible = elapsed - away > layout.elapsed_step().max(LEAST_STEP);
        if !is_impossible {
            self.turnaround.add(sample.unwrap_or(0.0), self.reported_rtt);
        }
        if let Some(rtt) = sample {
            self.on_echo(rtt);
        }
        EchoedPacket { number, sample: sample.map(|rtt| (rtt, method)), is_unseen, is_impossible }
    }

    fn on_echo(&mut self, rtt: f64) {
        self.echo_rtt = Some(rtt);
        let rtt_ns = (rtt * 1e9).round() as u64;
        let (statistics, sketch) = &mut **self.rtt.get_or_insert_default();
        statistics.add(rtt_ns);
        sketch.add(rtt_ns);
    }

    /// Round-trip time of the whole path from the data, seconds.
    pub fn reported_rtt(&self) -> Option<f64> {
        self.reported_rtt
    }

    /// Round-trip time that groups losses into events, seconds: the sender's, else `given`, else
    /// the echo time from here.
    pub fn grouping_rtt(&self, given: Option<f64>) -> Option<f64> {
        self.reported_rtt.or(given).or(self.echo_rtt)
    }

    /// Notes on this side as text.
    pub fn notes(&self) -> Vec<String> {
        let counts = [
            (
                self.misfits,
                "datagram[s] [is|are] too short for [its|their] layout, or [its|their] time is out of range",
            ),
            (self.others, "datagram[s] [is|are] neither data nor report[s] by the layout"),
        ];
        let mut notes: Vec<_> = all_counted(counts).collect();
        if self.has_data && self.reported_rtt.is_none() {
            notes.push(
                "no round-trip time in the data: losses are grouped by the assumed `rtt=TIME`, else by the \
                 echo times from the capture on"
                    .into(),
            );
        }
        notes
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LayoutFlow {
    halves: [LayoutHalf; 2],
}

impl LayoutFlow {
    pub fn half(&self, side: Side) -> &LayoutHalf {
        &self.halves[side as usize]
    }

    pub fn half_connection_mut(&mut self, side: Side) -> &mut LayoutHalf {
        &mut self.halves[side as usize]
    }

    /// Whether either side sent data by the layout.
    pub fn has_tfrc(&self) -> bool {
        self.halves.iter().any(|half| half.has_data)
    }

    /// Where the data of `side` were captured, and the confidence from 0 to 1. None if unknown.
    pub fn vantage(&self, side: Side) -> Option<(Vantage, f64)> {
        let mut signs = VantageEvidence::default();
        signs.add_hops([Side::Low, Side::High].map(|side| self.half(side).ttl));
        for side in [Side::Low, Side::High] {
            if let Some(share) = self.half(side).turnaround.share() {
                signs.add_turnaround(side, share);
            }
        }
        signs.conclusion(side)
    }
}
