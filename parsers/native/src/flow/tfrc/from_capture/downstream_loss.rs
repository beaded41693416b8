//! Losses behind the capture, as far as reports tell of them.
//!
//! A capture at the sender shows every packet and no loss. Reports may name what was lost (Ack Vector,
//! Loss Intervals: [`ReportedOutcomes`]); then nothing has to be guessed. If they do not, a report still names the
//! receive rate since the one before and the highest packet that came; that rate times the time between
//! them is bytes, and what is missing to those that were sent was lost. The time between two reports
//! where they were made shows twice: between the packets that they name, if these took equally long, and
//! between the reports themselves, if those did. Packets come in whole numbers, so the better one of the
//! two is that which gives one. Which packets were lost does not show: those are taken that the receiver
//! could just declare lost when it reported.

use std::collections::VecDeque;

use super::packet_outcomes::{PacketOutcome, ReportedOutcomes};
use super::receiver_side::ReceiverSide;
use crate::flow::tfrc::{PacketRef, TfrcSamples};
use crate::tfrc::DataPacket;
use crate::tfrc::profile::ReceiverProfile;

/// Packets that wait for a report to cover them, 72 bytes each. CCID 3 reports about once per
/// round-trip time; of a longer flight the oldest are taken to have arrived.
const WAITING: usize = 1 << 12;

/// Packets that may be imagined for each that passes. Receivers that report once in a while need a few;
/// one that leaves a long flight open in each of many reports would make all of it be imagined each time.
const IMAGINED: usize = 64;
/// Arrivals that are copied in the time in which one packet is imagined.
const COPIED: usize = 16;

/// Numbers of packets that are this close to a whole one are that one.
const WHOLE: f64 = 0.2;

/// How losses are known where a report names none: in tables.
const BY_RATE: &str = "receive_rate";

/// The receiver behind the capture.
#[derive(Debug)]
pub struct DownstreamReceiver {
    /// As it would be with the losses that follow from the reports.
    settled: ReceiverSide,
    /// The same with the packets that came by the latest report, but may yet be lost; None if none
    /// may, or if reports leave so much open so often that it is not looked at.
    pub(super) latest: Option<Box<ReceiverSide>>,
    ndupack: usize,
    waiting: VecDeque<(i64, DataPacket)>,
    /// Packets at the front of those that a report has covered, and left open.
    counted: usize,
    /// Packets that may still be imagined.
    imaginable: usize,
    /// When the last report was made: by the packet that it names, and by itself, each earlier or later
    /// by the time that its way takes.
    covered: Option<(f64, f64)>,
    /// A packet that some report before has named, and behind which losses show by now.
    mark: i64,
    /// Loss event rate that the last report named.
    p: Option<f64>,
    /// Whether the sender says which packets have no data, so that the receiver takes none of them for a
    /// loss (RFC 4340 section 7.7.1).
    counts_ndp: bool,
    /// By what the latest report tells of losses; None as long as none does.
    known_by: Option<&'static str>,
}

/// What a report tells.
#[derive(Clone, Copy, Debug)]
pub struct ReportContents<'a> {
    /// The highest packet that came.
    pub number: i64,
    /// Bytes per second.
    pub x_recv: Option<f64>,
    pub p: Option<f64>,
    pub time: f64,
    /// How long the receiver waited with it.
    pub elapsed: f64,
    /// What became of single packets.
    pub fates: Option<&'a ReportedOutcomes>,
}

impl DownstreamReceiver {
    pub fn new(profile: &ReceiverProfile) -> Self {
        Self {
            settled: ReceiverSide::new(profile, true),
            latest: None,
            ndupack: profile.ndupack as usize,
            waiting: VecDeque::new(),
            counted: 0,
            imaginable: 0,
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

    /// Loss event rate, and what tells of losses; None if nothing does.
    pub fn p(&mut self, time: f64) -> Option<(f64, &'static str)> {
        let known_by = self.known_by?;
        Some((self.latest.as_deref_mut().unwrap_or(&mut self.settled).p(time)?, known_by))
    }

    /// Loss intervals in packets, the open one first.
    pub fn intervals(&self) -> impl Iterator<Item = f64> {
        self.latest().intervals()
    }

    /// Loss events; None if nothing tells of losses.
    pub fn loss_events(&self) -> Option<u64> {
        self.known_by.and(self.settled.loss_events())
    }

    /// Hand out the loss event that is still open: no more packets come.
    pub fn finish(&self, at: PacketRef, samples: &mut TfrcSamples) {
        self.settled.finish(at, samples);
    }

    /// A packet passes the capture.
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
            self.settled.take(at, origin_ns, &oldest, samples);
        }
        self.counts_ndp |= packet.ndp > 0;
        self.waiting.push_back((number, packet));
        self.imaginable = (self.imaginable + IMAGINED).min(IMAGINED * WAITING);
    }

    /// A report passes. The answer is the payload that it covers.
    pub fn on_report(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        told: ReportContents<'_>,
        samples: &mut TfrcSamples,
    ) -> u64 {
        let packets = self.waiting.iter().take_while(|(waiting, _)| *waiting <= told.number).count();
        let new = self.waiting.iter().take(packets).skip(self.counted);
        let bytes = new.map(|(_, packet)| u64::from(packet.bytes)).sum();
        if let Some(x_recv) = told.x_recv {
            self.settled.state.set_x_recv(x_recv);
        }
        match told.fates {
            Some(fates) => self.take_named(at, origin_ns, (packets, told), fates, samples),
            None => self.take_by_rate(at, origin_ns, (packets, bytes, told), samples),
        }
        self.p = told.p;
        bytes
    }

    /// Of the next `packets` the report names which came.
    fn take_named(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        (packets, told): (usize, ReportContents<'_>),
        fates: &ReportedOutcomes,
        samples: &mut TfrcSamples,
    ) {
        self.known_by = Some(fates.by.name());
        // What is named is decided: no later packets have to be waited for.
        self.settled.state.tracker.now.record.declare_at_once();
        let named = fates.numbered(told.number);
        let known = named.settled.max(self.mark.min(named.below_open));
        if told.number.saturating_sub(self.mark) >= self.ndupack as i64 {
            self.mark = told.number;
        }
        let settled = self.waiting.iter().take(packets).take_while(|(number, _)| *number <= known).count();
        for (number, packet) in self.waiting.drain(..settled) {
            self.covered = Some((packet.time + told.elapsed, told.time));
            let fate = named.of(number);
            if fate != PacketOutcome::Lost || self.counts_ndp && packet.bytes == 0 {
                let packet = DataPacket { ce: packet.ce || fate == PacketOutcome::Marked, ..packet };
                self.settled.take(at, origin_ns, &packet, samples);
            }
        }
        self.counted = packets.saturating_sub(settled);
        self.latest = self.imagine();
    }

    /// The receiver with the packets that are covered and open; None if that was too much work.
    fn imagine(&mut self) -> Option<Box<ReceiverSide>> {
        let work = self.counted + self.settled.state.remembered() / COPIED;
        self.imaginable = self.imaginable.checked_sub(work)?;
        let mut latest = Box::new(self.settled.clone());
        for (_, packet) in self.waiting.iter().take(self.counted) {
            latest.imagine(packet);
        }
        Some(latest)
    }

    /// Of the next `packets`, which have so many bytes, the receive rate tells how many came.
    fn take_by_rate(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        (packets, bytes, told): (usize, u64, ReportContents<'_>),
        samples: &mut TfrcSamples,
    ) {
        let lost = self.lost(packets, bytes, told);
        let end = packets.saturating_sub(1).saturating_sub(self.ndupack.saturating_sub(1)).max(lost);
        for (at_waiting, (_, packet)) in self.waiting.drain(..packets).enumerate() {
            self.covered = Some((packet.time + told.elapsed, told.time));
            if at_waiting + lost < end || at_waiting >= end {
                self.settled.take(at, origin_ns, &packet, samples);
            }
        }
        (self.counted, self.latest) = (0, None);
    }

    /// Of the next `packets`, which have so many bytes, how many were lost if the rest came at the rate
    /// that is told. The one that the report names came.
    fn lost(&mut self, packets: usize, bytes: u64, told: ReportContents<'_>) -> usize {
        let data = self.waiting.iter().take(packets).filter(|(_, packet)| packet.bytes > 0).count();
        if data == 0 || bytes == 0 {
            return 0;
        }
        if told.p == Some(0.0) {
            self.known_by = Some(BY_RATE);
            return 0;
        }
        let last = packets.checked_sub(1).and_then(|last| self.waiting.get(last));
        let (Some(x_recv), Some(since), Some((_, last))) = (told.x_recv, self.covered, last) else {
            return 0;
        };
        self.known_by = Some(BY_RATE);
        let missing = |time: f64| (bytes as f64 - x_recv * time) * data as f64 / bytes as f64;
        let error = |missing: &f64| (missing - missing.round().max(0.0)).abs();
        let candidates = [told.time - since.1, last.time + told.elapsed - since.0].map(missing);
        // Reports that a queue has pushed together have no time between them, and yet a packet came.
        let came = |missing: &f64| data as f64 - missing >= 1.0 - WHOLE;
        let best =
            candidates.into_iter().filter(came).min_by(|one, other| error(one).total_cmp(&error(other)));
        let is_early = told.time - since.1 < self.settled.state.rtt();
        match best {
            // That rate is of a whole round-trip time (RFC 5348 section 6.2), of which most was before.
            // Such a report is made because p has risen, and then there is a loss.
            Some(best) if is_early && error(&best) > WHOLE => usize::from(told.p > self.p).min(packets - 1),
            // A float beyond the range of integers saturates.
            Some(best) => (best.round().max(0.0) as usize).min(packets - 1),
            None => 0,
        }
    }
}
