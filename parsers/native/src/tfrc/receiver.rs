//! A receiver: loss event rate, receive rate, and when to report (section 6).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::loss_tracker::{ArrivalContext, RefillingTracker};
use super::profile::{FirstInterval, ReceiverProfile, Target};
use super::receive_record::{Arrival, ArrivalKind};
use super::segment_size::SegmentSize;
use super::sequence_unwrapper::Unwrapper;
use super::{DataPacket, EPS_T};

/// Limit of arrivals remembered for the receive rate of one round-trip time: with more in one, the
/// oldest are dropped and the rate is too low.
const REMEMBERED: usize = 1 << 14;

const LATEST: FirstInterval = FirstInterval::Equation(Target::Latest);

/// A report of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    pub time: f64,
    /// Receive rate in bytes per second.
    pub x_recv: f64,
    pub p: f64,
    /// The highest sequence number received.
    pub highest: i64,
}

/// The receiver of one direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Receiver {
    profile: ReceiverProfile,
    numbers: Unwrapper,
    pub tracker: RefillingTracker,
    rtt: Option<f64>,
    /// Arrivals of the last round-trip time with their bytes.
    recent: VecDeque<(f64, u32)>,
    recent_bytes: u64,
    /// Packets forgotten although less than a round-trip time old.
    pub crowded: u64,
    highest_x_recv: f64,
    /// The receive rate that the receiver itself names, if that is known.
    named_x_recv: Option<f64>,
    size: SegmentSize,
    reporting: Reporting,
}

/// State of the receiver's own reports.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Reporting {
    /// When the next is due; None before the first packet.
    timer: Option<f64>,
    /// When the last was made.
    last: Option<f64>,
    bytes: u64,
    p: f64,
}

impl Receiver {
    pub fn new(profile: &ReceiverProfile) -> Self {
        Self {
            profile: *profile,
            numbers: Unwrapper::new(profile.seq_bits),
            tracker: RefillingTracker::new(profile),
            rtt: None,
            recent: VecDeque::new(),
            recent_bytes: 0,
            crowded: 0,
            highest_x_recv: 0.0,
            named_x_recv: None,
            size: SegmentSize::default(),
            reporting: Reporting::default(),
        }
    }

    /// The round-trip time as far as the receiver knows it.
    pub fn rtt(&self) -> f64 {
        self.rtt.unwrap_or(self.profile.fallback_rtt)
    }

    /// Whether a packet has carried the round-trip time; otherwise the profile's fallback is used.
    pub fn knows_rtt(&self) -> bool {
        self.rtt.is_some()
    }

    pub fn s(&self) -> f64 {
        self.profile.s.or(self.size.s()).unwrap_or(0.0)
    }

    /// Loss event rate at `time`.
    pub fn p(&mut self, time: f64) -> f64 {
        let rtt = self.rtt();
        self.tracker.now.p(time, rtt)
    }

    /// The number of the packet `seq` without its wraps.
    pub fn extended(&self, seq: u64) -> i64 {
        self.numbers.peek(seq)
    }

    /// Bytes per second of the last round-trip time; None if the packets of that were too many.
    pub fn recent_rate(&self) -> Option<f64> {
        (self.crowded == 0).then(|| self.recent_bytes as f64 / self.rtt())
    }

    /// Number of remembered arrivals.
    pub fn remembered(&self) -> usize {
        self.recent.len()
    }

    /// Set the receive rate that the receiver itself reported: the first loss interval is computed
    /// from it, and not from arrivals.
    pub fn set_x_recv(&mut self, x_recv: f64) {
        let highest = self.named_x_recv.filter(|_| self.profile.first_interval != LATEST).unwrap_or(0.0);
        self.named_x_recv = Some(x_recv.max(highest));
    }

    /// Process a data packet. Reports not in the capture that were due before it or are due now go
    /// to `due` (section 6.1).
    pub fn on_data(&mut self, packet: &DataPacket, due: &mut Vec<Feedback>) -> ArrivalKind {
        due.extend(self.on_time(packet.time));
        if let Some(rtt) = packet.rtt.filter(|rtt| *rtt > 0.0 && rtt.is_finite()) {
            self.rtt = Some(rtt);
        }
        let now = self.circumstances(packet);
        let number = self.numbers.extend(packet.seq);
        let time = packet.sent_time.unwrap_or(packet.time);
        let kind =
            self.tracker.on_arrival(Arrival { number, time, ccval: packet.ccval, ndp: packet.ndp }, &now);
        if kind != ArrivalKind::Duplicate {
            self.count(packet);
        }
        let is_first = self.reporting.timer.is_none();
        if is_first || self.p(packet.time) > self.reporting.p {
            due.push(self.report(packet.time));
        }
        kind
    }

    /// The timer may have run out before `time` (section 6.2): the report that was due then.
    pub fn on_time(&mut self, time: f64) -> Option<Feedback> {
        let timer = self.reporting.timer.filter(|timer| *timer < time - EPS_T)?;
        if self.reporting.bytes > 0 {
            return Some(self.report(timer));
        }
        // Without data nothing is reported and the timer runs on, period after period.
        let periods = ((time - timer) / self.rtt()).floor() + 1.0;
        self.reporting.timer = Some(timer + periods * self.rtt());
        None
    }

    fn circumstances(&self, packet: &DataPacket) -> ArrivalContext {
        let (rtt, s) = (self.rtt(), self.s());
        let x_recv = self.named_x_recv.unwrap_or(match self.profile.first_interval {
            LATEST => self.recent_bytes as f64 / rtt,
            _ => self.highest_x_recv,
        });
        // Where the very first packets are lost nothing was received: half a packet per round-trip
        // time stands for that (section 6.3.1).
        let s = if s > 0.0 { s } else { f64::from(packet.bytes) };
        let x_target = if x_recv > 0.0 { x_recv } else { s / (2.0 * rtt) };
        ArrivalContext { rtt, s, x_target, ce: packet.ce }
    }

    /// A packet without payload has a number, and no part in rates and sizes.
    fn count(&mut self, packet: &DataPacket) {
        if packet.bytes == 0 {
            return;
        }
        self.size.on_packet(packet.bytes);
        self.reporting.bytes = self.reporting.bytes.saturating_add(u64::from(packet.bytes));
        self.recent.push_back((packet.time, packet.bytes));
        self.recent_bytes += u64::from(packet.bytes);
        let rtt = self.rtt();
        while let Some(&(time, bytes)) = self.recent.front() {
            let is_old = time <= packet.time - rtt;
            if !is_old && self.recent.len() <= REMEMBERED {
                break;
            }
            self.crowded += u64::from(!is_old);
            self.recent.pop_front();
            self.recent_bytes -= u64::from(bytes);
        }
        self.highest_x_recv = self.highest_x_recv.max(self.recent_bytes as f64 / rtt);
    }

    /// Report at `time`, and restart the timer.
    fn report(&mut self, time: f64) -> Feedback {
        let rtt = self.rtt();
        // Less than a round-trip time after the last report, the rate is that of a whole one.
        let x_recv = match self.reporting.last {
            Some(last) if time - last >= rtt => self.reporting.bytes as f64 / (time - last),
            _ => self.recent_bytes as f64 / rtt,
        };
        let p = self.p(time);
        self.reporting = Reporting { timer: Some(time + rtt), last: Some(time), bytes: 0, p };
        Feedback { time, x_recv, p, highest: self.tracker.now.record.highest() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(seq: u64, time: f64) -> DataPacket {
        DataPacket { seq, time, rtt: Some(0.1), bytes: 1000, ..DataPacket::default() }
    }

    #[test]
    fn test_reports_come_once_per_round_trip_time_and_at_once_with_a_loss_event() {
        let mut receiver = Receiver::new(&ReceiverProfile::rfc5348());
        let mut due = Vec::new();
        for seq in (0..60).filter(|&seq| seq != 43) {
            receiver.on_data(&packet(seq, seq as f64 * 0.01), &mut due);
        }
        let times: Vec<f64> = due.iter().map(|report| (report.time * 1e3).round()).collect();
        assert_eq!(times, [0.0, 100.0, 200.0, 300.0, 400.0, 460.0, 560.0]);
        let rates: Vec<f64> = due.iter().map(|report| report.x_recv.round()).collect();
        // Ten packets in each round-trip time; in that before the loss event's report one is missing.
        assert_eq!(rates, [10_000.0, 100_000.0, 100_000.0, 100_000.0, 100_000.0, 90_000.0, 100_000.0]);
        assert!(due[4].p == 0.0 && due[5].p > 0.0);
    }

    #[test]
    fn test_silence_makes_no_reports() {
        let mut receiver = Receiver::new(&ReceiverProfile::rfc5348());
        let mut due = Vec::new();
        receiver.on_data(&packet(0, 0.0), &mut due);
        receiver.on_data(&packet(1, 100.05), &mut due);
        assert_eq!(due.len(), 1);
        assert_eq!(receiver.on_time(100.2).map(|report| (report.time * 1e3).round()), Some(100_100.0));
    }

    proptest! {
        #[test]
        fn test_any_packets_are_taken(
            packets in proptest::collection::vec((any::<u64>(), any::<f64>(), any::<f64>(), any::<u8>(), any::<bool>()), 0..60),
            fills: bool,
        ) {
            let mut profile = if fills { ReceiverProfile::rfc5348() } else { ReceiverProfile::linux() };
            if fills {
                profile.late_arrival = super::super::profile::LateArrival::Fill;
            }
            let mut receiver = Receiver::new(&profile);
            let mut due = Vec::new();
            for (seq, time, rtt, ccval, ce) in packets {
                let packet = DataPacket { seq, time, sent_time: None, rtt: Some(rtt), ccval, ce, bytes: u32::MAX, ndp: seq };
                receiver.on_data(&packet, &mut due);
                let p = receiver.p(time);
                prop_assert!((0.0..=1.0).contains(&p));
            }
        }
    }
}
