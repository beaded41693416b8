//! One RTP source as the capture shows it: sequence numbers, clock, and receivers' reports.

use serde::{Deserialize, Serialize};

use super::super::sequences::{NumberArrival, Sequences};
use super::loss_bursts::LossBursts;
use super::media_clock::MediaClock;
use super::media_intervals::{MediaIntervals, MediaTotals};
use super::media_packet::MediaPacket;
use super::send_times::SendTimes;
use super::sent_packets::{ReceiveProgress, SentPackets};
use crate::flow::tfrc::from_capture::packet_outcomes::{PacketOutcome, ReportedOutcomes};
use crate::packet::seq::distance;
use crate::wire::rtcp::{ReportBlock, SenderInfo};
use crate::wire::rtp::Header;

const NUMBER_BITS: u32 = 16;
/// Packets by which a sender's count may exceed those that a capture from the beginning shows: the first ones lost,
/// and the latest still in a queue before it.
const NOT_SEEN: u64 = 100;

/// Losses by a receiver's reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedLoss {
    /// Packets that it missed, less duplicates.
    pub lost: i64,
    /// Packets that it expected.
    pub expected: u64,
}

impl ReportedLoss {
    /// The share that was lost; None if nothing was expected, or less than was lost: from before the capture.
    pub fn ratio(&self) -> Option<f64> {
        let lost = self.lost.max(0).unsigned_abs();
        (self.expected > 0 && lost <= self.expected).then(|| lost as f64 / self.expected as f64)
    }
}

/// Contents of the previous report, and the state of the capture then.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PreviousReport {
    reporter: u32,
    highest: u32,
    cumulative_lost: i32,
    time_ns: i64,
    packets: u64,
    payload_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct MediaSource {
    pub ssrc: u32,
    /// Payload type of its first packet.
    pub payload_type: u8,
    /// Its sequence numbers at the capture point.
    pub sequences: Sequences,
    /// Frames of the packets received, each once.
    pub received_bytes: u64,
    /// Payload of their datagrams.
    pub payload_bytes: u64,
    /// Times of the first and the latest packet.
    pub times_ns: (i64, i64),
    pub clock: MediaClock,
    /// Packets that it reports as sent, and the time of that report.
    pub sender_packets: Option<u32>,
    pub reports: u64,
    /// The latest report block on it.
    pub last_report: Option<ReportBlock>,
    before: Option<PreviousReport>,
    /// Whether it began before the capture: its sender counts more packets, or its receiver more losses, than were
    /// sent since.
    began_before: bool,
    /// The first report of the receiver that reports.
    first_report: Option<PreviousReport>,
    /// What the receiver lost more than the capture shows at its first report in a stretch of numbers, by stretch.
    beyond_first: Option<(u64, i64)>,
    reported_loss: Option<ReportedLoss>,
    pub bursts: LossBursts,
    /// Its intervals, if they are collected.
    pub intervals: Option<Box<MediaIntervals>>,
    /// Whether a receiver reports losses of captured packets.
    pub lost_behind: bool,
    /// Whether a receiver identifies them.
    pub names_losses: bool,
    /// Its packets, if there are reports on each.
    pub sent: Option<Box<SentPackets>>,
    /// How far those reports have come.
    pub progress: ReceiveProgress,
    /// Clock of TFRC's sender.
    pub tfrc_times: SendTimes,
}

impl MediaSource {
    /// A source whose first packet is `seen`, not counted yet.
    pub fn new(seen: &MediaPacket, given_rate: Option<u32>, wants_intervals: bool) -> Self {
        let Header { ssrc, payload_type, .. } = seen.header;
        Self {
            ssrc,
            payload_type,
            sequences: Sequences::new(NUMBER_BITS),
            received_bytes: 0,
            payload_bytes: 0,
            times_ns: (seen.time_ns, seen.time_ns),
            clock: MediaClock::new(payload_type, given_rate),
            sender_packets: None,
            reports: 0,
            last_report: None,
            before: None,
            began_before: false,
            first_report: None,
            beyond_first: None,
            reported_loss: None,
            bursts: LossBursts::default(),
            intervals: wants_intervals.then(Box::default),
            lost_behind: false,
            names_losses: false,
            sent: None,
            progress: ReceiveProgress::default(),
            tfrc_times: SendTimes::default(),
        }
    }

    pub fn on_packet(&mut self, seen: &MediaPacket) {
        let Header { sequence, payload_type, timestamp, .. } = seen.header;
        self.times_ns.1 = self.times_ns.1.max(seen.time_ns);
        let before = self.sequences.highest_in_run().zip(Some(self.sequences.stretch()));
        // Timestamps are sampling times: packets of one picture share one, so they give no order.
        if self.sequences.take(sequence.into(), 0) != NumberArrival::New {
            return;
        }
        self.note_order(sequence, before);
        self.received_bytes += u64::from(seen.wire_bytes);
        self.payload_bytes += u64::from(seen.payload_bytes);
        self.clock.on_packet(payload_type, timestamp, seen.time_ns);
        if let Some(intervals) = &mut self.intervals {
            let jitter_ms = self.clock.jitter().and_then(|jitter| jitter.ms());
            let since_ns = seen.time_ns.saturating_sub(self.times_ns.0);
            let &Sequences { received, reordered, .. } = &self.sequences;
            let totals = MediaTotals { sent: self.sequences.sent(), received, reordered };
            intervals.record(since_ns, totals, jitter_ms);
        }
        if let Some(sent) = &mut self.sent {
            sent.add(sequence, seen);
        }
        if let Some(times) = seen.rtt_send_time {
            self.tfrc_times.add(times, sequence, seen.time_ns);
        }
    }

    /// Note whether a new packet leaves a gap or fills one; `before` are the highest number and the stretch before it.
    fn note_order(&mut self, sequence: u16, before: Option<(i64, u64)>) {
        let Some((highest, _)) = before.filter(|&(_, stretch)| stretch == self.sequences.stretch()) else {
            return;
        };
        let number = highest + distance(sequence.into(), highest as u64, NUMBER_BITS);
        match self.sequences.highest_in_run() {
            Some(now) if now > highest => self.bursts.on_gap(highest, now),
            _ => self.bursts.on_late(number),
        }
    }

    /// Packets that did not reach the capture point.
    pub fn lost(&self) -> u64 {
        self.sequences.sent().saturating_sub(self.sequences.received)
    }

    /// Record a report that names packets of it.
    pub fn on_named(&mut self, named: Option<&(u16, ReportedOutcomes)>) {
        self.names_losses |= named.is_some();
        let has_losses =
            |outcomes: &ReportedOutcomes| outcomes.runs.iter().any(|run| run.outcome == PacketOutcome::Lost);
        self.lost_behind |= named.is_some_and(|(_, outcomes)| has_losses(outcomes));
    }

    /// Record a sender report of the source.
    pub fn on_sender_report(&mut self, info: &SenderInfo) {
        self.sender_packets = Some(info.packets);
        let is_first_run = self.sequences.stretch() == 0;
        self.began_before |= is_first_run && u64::from(info.packets) > self.sequences.sent() + NOT_SEEN;
        self.clock.on_sender_report(info.timestamp, info.ntp);
    }

    /// Record a report of `reporter` at `time_ns`. Returns the rate at which it received payload
    /// since its last report, in bytes per second: its packets at the mean size of those captured
    /// meanwhile.
    pub fn on_report(&mut self, reporter: u32, block: &ReportBlock, time_ns: i64) -> Option<f64> {
        self.reports += 1;
        self.last_report = Some(*block);
        let now = PreviousReport {
            reporter,
            highest: block.highest,
            cumulative_lost: block.cumulative_lost,
            time_ns,
            packets: self.sequences.received,
            payload_bytes: self.payload_bytes,
        };
        self.note_losses(&now);
        let before = self.before.replace(now).filter(|before| before.reporter == reporter)?;
        let expected = i64::from(now.highest.wrapping_sub(before.highest) as i32);
        let lost = i64::from(now.cumulative_lost.wrapping_sub(before.cumulative_lost));
        let packets = now.packets.checked_sub(before.packets).filter(|&packets| packets > 0)?;
        let mean_bytes = now.payload_bytes.saturating_sub(before.payload_bytes) as f64 / packets as f64;
        let elapsed = time_ns.saturating_sub(before.time_ns) as f64 / 1e9;
        let received = u32::try_from(expected.saturating_sub(lost)).ok()?;
        (elapsed > 0.0).then(|| f64::from(received) * mean_bytes / elapsed)
    }

    /// Losses by the receiver's latest report: of all packets, or if the source began before the capture of those
    /// since the receiver's first report.
    pub fn reported_loss(&self) -> Option<ReportedLoss> {
        self.reported_loss
    }

    fn note_losses(&mut self, now: &PreviousReport) {
        let highest = self.sequences.highest_in_run();
        let ahead = highest.map_or(0, |highest| distance(highest as u64, now.highest.into(), NUMBER_BITS));
        // Numbers up to the reported one that the capture has not seen are missing in it, too.
        let unseen = ahead.saturating_neg().clamp(0, NOT_SEEN as i64);
        let beyond = i64::from(now.cumulative_lost) - self.lost() as i64 - unseen;
        let stretch = self.sequences.stretch();
        // The receiver counts from before the capture if it missed more than was sent since then.
        self.began_before |= self.first_report.is_none()
            && i64::from(now.cumulative_lost) > self.sequences.sent() as i64 + unseen;
        let &mut first = self.first_report.get_or_insert(*now);
        let known = self.beyond_first.filter(|&(of, _)| of == stretch);
        let (_, beyond_then) = *self.beyond_first.insert(known.unwrap_or((stretch, beyond)));
        // What a gap of the capture hides is in the receiver's count.
        let lost_before = if self.began_before || stretch > 0 { beyond_then.max(0) } else { 0 };
        self.lost_behind |= beyond > lost_before;
        if first.reporter != now.reporter {
            return;
        }
        self.reported_loss = if self.began_before {
            let lost = i64::from(now.cumulative_lost.wrapping_sub(first.cumulative_lost));
            Some(ReportedLoss { lost, expected: now.highest.wrapping_sub(first.highest).into() })
        } else {
            let sent = self.sequences.sent().saturating_sub(ahead.max(0).unsigned_abs());
            Some(ReportedLoss { lost: now.cumulative_lost.into(), expected: sent })
        };
    }
}
