//! Losses downstream of the capture, inferred from reports.
//!
//! A capture at the sender shows every packet and no loss. If reports name the lost packets (Ack
//! Vector, Loss Intervals: [`ReportedOutcomes`]), nothing has to be inferred. Otherwise a report
//! still has the receive rate since the one before and the highest packet received; that rate times
//! the time between them is the bytes received, and the rest of the bytes sent was lost. The time
//! between two reports at the receiver can be taken from the packets that they name, if these took
//! equally long, or from the reports themselves, if those did. Packets are whole, so the better one
//! of the two is that which gives a whole number. Which packets were lost is unknown: those are
//! taken that the receiver could just declare lost when it reported.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::packet_outcomes::{NamedBy, PacketOutcome, ReportedOutcomes};
use super::receiver_side::ReceiverSide;
use crate::flow::tfrc::{PacketRef, TfrcSamples};
use crate::tfrc::DataPacket;
use crate::tfrc::profile::ReceiverProfile;

/// Limit of packets waiting for a report, 72 bytes each. CCID 3 reports about once per round-trip
/// time; in a longer flight the oldest count as arrived.
const WAITING: usize = 1 << 12;

/// Packets that may be simulated for each that passes. Receivers that report rarely need a few; one
/// that leaves a long flight open in each of many reports would require simulating all of it each
/// time.
const IMAGINED: usize = 64;
/// Arrivals copied in the time of simulating one packet.
const COPIED: usize = 16;

/// Tolerance for taking a number of packets as whole.
const WHOLE: f64 = 0.2;

/// How a report gives losses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum KnownBy {
    Outcomes(NamedBy),
    /// They are inferred from its receive rate, as it names none.
    ReceiveRate,
}

impl KnownBy {
    /// Its name in tables.
    fn name(self) -> &'static str {
        match self {
            Self::Outcomes(by) => by.name(),
            Self::ReceiveRate => "receive_rate",
        }
    }
}

/// The receiver downstream of the capture.
#[derive(Debug, Serialize, Deserialize)]
pub struct DownstreamReceiver {
    /// Its state with the losses that follow from the reports.
    settled: ReceiverSide,
    /// The same with the packets that arrived by the latest report, but may yet be lost; None if
    /// there are none, or if reports leave so much open so often that this is skipped.
    pub(super) latest: Option<Box<ReceiverSide>>,
    ndupack: usize,
    waiting: VecDeque<(i64, DataPacket)>,
    /// Packets at the front of those that a report has covered, and left open.
    counted: usize,
    /// Packets that may still be simulated.
    simulation_budget: usize,
    /// Time of the last report: from the packet that it names, and from itself, each earlier or
    /// later by the transit time.
    covered: Option<(f64, f64)>,
    /// A packet named by an earlier report; losses after it are visible by now.
    mark: i64,
    /// Loss event rate in the last report.
    p: Option<f64>,
    /// Whether the sender marks packets without data, so that the receiver takes none of them for a
    /// loss (RFC 4340 section 7.7.1).
    counts_ndp: bool,
    /// How the latest report gives losses; None as long as none does.
    known_by: Option<KnownBy>,
}

/// Contents of a report.
#[derive(Clone, Copy, Debug)]
pub struct ReportContents<'a> {
    /// The highest packet received.
    pub number: i64,
    /// Bytes per second.
    pub x_recv: Option<f64>,
    pub p: Option<f64>,
    pub time: f64,
    /// How long the receiver held it.
    pub elapsed: f64,
    /// Outcomes of single packets.
    pub outcomes: Option<&'a ReportedOutcomes>,
}

impl DownstreamReceiver {
    pub fn new(profile: &ReceiverProfile) -> Self {
        Self {
            settled: ReceiverSide::new(profile, true),
            latest: None,
            ndupack: profile.ndupack as usize,
            waiting: VecDeque::new(),
            counted: 0,
            simulation_budget: 0,
            covered: None,
            mark: i64::MIN,
            p: None,
            counts_ndp: false,
            known_by: None,
        }
    }

    fn latest(&self) -> &ReceiverSide {
        self.latest.as_deref().unwrap_or(&self.settled)
    }

    /// Loss event rate, and how losses are known; None if they are not.
    pub fn p(&mut self, time: f64) -> Option<(f64, &'static str)> {
        let known_by = self.known_by?;
        Some((self.latest.as_deref_mut().unwrap_or(&mut self.settled).p(time)?, known_by.name()))
    }

    /// Loss intervals in packets, the open one first.
    pub fn intervals(&self) -> impl Iterator<Item = f64> {
        self.latest().intervals()
    }

    /// Loss events; None if losses are unknown.
    pub fn loss_events(&self) -> Option<u64> {
        self.known_by.and(self.settled.loss_events())
    }

    /// Emit the loss event that is still open, after the last packet.
    pub fn finish(&self, at: PacketRef, samples: &mut TfrcSamples) {
        self.settled.finish(at, samples);
    }

    /// Process a data packet that passes the capture.
    pub fn on_data(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        (number, packet): (i64, DataPacket),
        samples: &mut TfrcSamples,
    ) {
        if self.waiting.len() == WAITING
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            self.counted = self.counted.saturating_sub(1);
            self.settled.on_packet(at, origin_ns, &oldest, samples);
        }
        self.counts_ndp |= packet.ndp > 0;
        self.waiting.push_back((number, packet));
        self.simulation_budget = (self.simulation_budget + IMAGINED).min(IMAGINED * WAITING);
    }

    /// Process a report. Returns the payload that it covers.
    pub fn on_report(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        report: ReportContents<'_>,
        samples: &mut TfrcSamples,
    ) -> u64 {
        let packets = self.waiting.iter().take_while(|(waiting, _)| *waiting <= report.number).count();
        let new = self.waiting.iter().take(packets).skip(self.counted);
        let bytes = new.map(|(_, packet)| u64::from(packet.bytes)).sum();
        if let Some(x_recv) = report.x_recv {
            self.settled.state.set_x_recv(x_recv);
        }
        match report.outcomes {
            Some(outcomes) => self.take_named(at, origin_ns, (packets, report), outcomes, samples),
            None => self.take_by_rate(at, origin_ns, (packets, bytes, report), samples),
        }
        self.p = report.p;
        bytes
    }

    /// Process the next `packets`, whose outcomes the report names.
    fn take_named(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        (packets, report): (usize, ReportContents<'_>),
        outcomes: &ReportedOutcomes,
        samples: &mut TfrcSamples,
    ) {
        self.known_by = Some(KnownBy::Outcomes(outcomes.by));
        // Named outcomes are final: no later packets have to be awaited.
        self.settled.state.tracker.now.record.declare_at_once();
        let named = outcomes.numbered(report.number);
        let known = named.settled.max(self.mark.min(named.below_open));
        if report.number.saturating_sub(self.mark) >= self.ndupack as i64 {
            self.mark = report.number;
        }
        let settled = self.waiting.iter().take(packets).take_while(|(number, _)| *number <= known).count();
        for (number, packet) in self.waiting.drain(..settled) {
            self.covered = Some((packet.time + report.elapsed, report.time));
            let outcome = named.of(number);
            if outcome != PacketOutcome::Lost || self.counts_ndp && packet.bytes == 0 {
                let packet = DataPacket { ce: packet.ce || outcome == PacketOutcome::Marked, ..packet };
                self.settled.on_packet(at, origin_ns, &packet, samples);
            }
        }
        self.counted = packets.saturating_sub(settled);
        self.latest = self.simulate();
    }

    /// The receiver with the packets that are covered and open; None if that was too much work.
    fn simulate(&mut self) -> Option<Box<ReceiverSide>> {
        let work = self.counted + self.settled.state.remembered() / COPIED;
        self.simulation_budget = self.simulation_budget.checked_sub(work)?;
        let mut latest = Box::new(self.settled.clone());
        for (_, packet) in self.waiting.iter().take(self.counted) {
            latest.simulate(packet);
        }
        Some(latest)
    }

    /// Process the next `packets` with their bytes, some of which arrived according to the receive
    /// rate.
    fn take_by_rate(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        (packets, bytes, report): (usize, u64, ReportContents<'_>),
        samples: &mut TfrcSamples,
    ) {
        let lost = self.lost(packets, bytes, report);
        let end = packets.saturating_sub(1).saturating_sub(self.ndupack.saturating_sub(1)).max(lost);
        for (at_waiting, (_, packet)) in self.waiting.drain(..packets).enumerate() {
            self.covered = Some((packet.time + report.elapsed, report.time));
            if at_waiting + lost < end || at_waiting >= end {
                self.settled.on_packet(at, origin_ns, &packet, samples);
            }
        }
        (self.counted, self.latest) = (0, None);
    }

    /// How many of the next `packets` with their bytes were lost, if the rest arrived at the
    /// reported rate. The one that the report names arrived.
    fn lost(&mut self, packets: usize, bytes: u64, report: ReportContents<'_>) -> usize {
        let data = self.waiting.iter().take(packets).filter(|(_, packet)| packet.bytes > 0).count();
        if data == 0 || bytes == 0 {
            return 0;
        }
        if report.p == Some(0.0) {
            self.known_by = Some(KnownBy::ReceiveRate);
            return 0;
        }
        let last = packets.checked_sub(1).and_then(|last| self.waiting.get(last));
        let (Some(x_recv), Some(since), Some((_, last))) = (report.x_recv, self.covered, last) else {
            return 0;
        };
        self.known_by = Some(KnownBy::ReceiveRate);
        let missing = |time: f64| (bytes as f64 - x_recv * time) * data as f64 / bytes as f64;
        let error = |missing: &f64| (missing - missing.round().max(0.0)).abs();
        let candidates = [report.time - since.1, last.time + report.elapsed - since.0].map(missing);
        // Reports that a queue has pushed together have no time between them, and yet a packet
        // arrived.
        let came = |missing: &f64| data as f64 - missing >= 1.0 - WHOLE;
        let best =
            candidates.into_iter().filter(came).min_by(|one, other| error(one).total_cmp(&error(other)));
        let is_early = report.time - since.1 < self.settled.state.rtt();
        match best {
            // That rate is of a whole round-trip time (RFC 5348 section 6.2), most of which was
            // before. Such a report is made because p has risen, so there is a loss.
            Some(best) if is_early && error(&best) > WHOLE => usize::from(report.p > self.p).min(packets - 1),
            // A float beyond the range of integers saturates.
            Some(best) => (best.round().max(0.0) as usize).min(packets - 1),
            None => 0,
        }
    }
}
