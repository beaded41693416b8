//! Reports that a TFRC receiver would have sent on a TCP connection: in rounds of one round-trip
//! time, with losses at known times and positions, grouped into loss events (RFC 5348 section 5.2)
//! and averaged (section 5.4).

use crate::tfrc::EPS_T;
use crate::tfrc::loss_intervals::LossHistory;
use crate::tfrc::profile::ReceiverProfile;

/// A captured data packet; times are seconds.
#[derive(Clone, Copy, Debug)]
pub struct SentSegment {
    pub time: f64,
    pub bytes: f64,
    /// Position of its end in the stream, in packets.
    pub end: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When the loss was known.
    pub time: f64,
    /// Position of its start in the stream, in packets.
    pub packet: f64,
}

/// A round-trip time sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it was taken.
    pub time: f64,
    /// Its value, above 0.
    pub rtt: f64,
}

/// Records of one direction in a capture, each in order of time.
#[derive(Clone, Debug, Default)]
pub struct ObservedDirection {
    pub sent: Vec<SentSegment>,
    /// Those that were lost.
    pub losses: Vec<Loss>,
    /// Round-trip times; at least one.
    pub samples: Vec<Sample>,
    /// Whether packets were captured where they arrive, not a round-trip time before their report.
    pub is_at_receiver: bool,
}

/// A report on one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundReport {
    /// When it would have reached the sender.
    pub time: f64,
    /// The round-trip time of the round.
    pub rtt: f64,
    /// Receive rate, bytes per second.
    pub x_recv: f64,
    /// Loss event rate; 0 before the first loss event.
    pub p: f64,
}

/// The reports of such a receiver on all rounds in which data arrived, for packets of `s` bytes.
pub fn round_reports(observed: &ObservedDirection, s: f64, profile: &ReceiverProfile) -> Vec<RoundReport> {
    let (Some(first), Some(sample)) = (observed.sent.first(), observed.samples.first()) else {
        return Vec::new();
    };
    let mut rounds = Rounds { observed, next_sample: 0, rtt: sample.rtt, time: first.time };
    let mut arrivals = ReportedArrivals { sent: &observed.sent, next: 0, highest: 0.0 };
    let mut events = Events::new(s, profile);
    let mut reports = Vec::new();
    let mut has_skipped = false;
    while let Some(next) = arrivals.sent.get(arrivals.next) {
        let (end, rtt) = rounds.next();
        // Data reported now were sent a round-trip time ago, unless they were captured at the
        // receiver.
        let away = if observed.is_at_receiver { 0.0 } else { rtt };
        if next.time > end - away && !has_skipped {
            rounds.skip_to(next.time + away - rtt);
            has_skipped = true;
            continue;
        }
        has_skipped = false;
        // Each round takes a packet, however times are rounded, so that there are no more rounds than those.
        let x_recv = arrivals.take_until((end - away).max(next.time)) / rtt;
        events.take_until(end, &observed.losses, rtt);
        let p = events.p(arrivals.highest);
        events.highest_x_recv = events.highest_x_recv.max(x_recv);
        reports.push(RoundReport { time: end, rtt, x_recv, p });
    }
    reports
}

/// Consecutive rounds, each as long as the median of the samples in it.
struct Rounds<'a> {
    observed: &'a ObservedDirection,
    next_sample: usize,
    rtt: f64,
    time: f64,
}

impl Rounds<'_> {
    /// End and duration of the next round.
    fn next(&mut self) -> (f64, f64) {
        let samples = self.observed.samples.get(self.next_sample..).unwrap_or_default();
        let until = self.time + self.rtt;
        let inside = samples.iter().take_while(|sample| sample.time <= until).count();
        self.next_sample = self.next_sample.saturating_add(inside);
        let mut rtts: Vec<f64> = samples.iter().take(inside).map(|sample| sample.rtt).collect();
        rtts.sort_by(f64::total_cmp);
        self.rtt = rtts.get(inside / 2).copied().unwrap_or(self.rtt);
        self.time += self.rtt;
        (self.time, self.rtt)
    }

    /// Nothing arrived for a while: begin the next round at `time`.
    fn skip_to(&mut self, time: f64) {
        self.time = self.time.max(time);
    }
}

/// Packets that arrived, and the reported part of them.
struct ReportedArrivals<'a> {
    sent: &'a [SentSegment],
    next: usize,
    /// The highest position in the stream.
    highest: f64,
}

impl ReportedArrivals<'_> {
    /// The bytes of the next packets up to `time`.
    fn take_until(&mut self, time: f64) -> f64 {
        let mut bytes = 0.0;
        while let Some(sent) = self.sent.get(self.next).filter(|sent| sent.time <= time) {
            bytes += sent.bytes;
            self.highest = self.highest.max(sent.end);
            self.next += 1;
        }
        bytes
    }
}

/// Losses, the reported part of them, and the history of their events.
struct Events {
    s: f64,
    profile: ReceiverProfile,
    history: LossHistory,
    current: Option<Loss>,
    next: usize,
    highest_x_recv: f64,
}

impl Events {
    fn new(s: f64, profile: &ReceiverProfile) -> Self {
        let history = LossHistory::new(profile.averaging);
        Self { s, profile: *profile, history, current: None, next: 0, highest_x_recv: 0.0 }
    }

    /// Process the losses up to `time`.
    fn take_until(&mut self, time: f64, losses: &[Loss], rtt: f64) {
        while let Some(loss) = losses.get(self.next).filter(|loss| loss.time <= time) {
            self.next += 1;
            if self.current.is_some_and(|event| loss.time - event.time <= rtt + EPS_T) {
                continue;
            }
            let interval = match self.current {
                Some(event) => (loss.packet - event.packet).max(1.0),
                None => self.first_interval(rtt),
            };
            self.history.close(interval);
            self.current = Some(*loss);
        }
    }

    /// The synthetic interval before the first loss event (section 6.3.1).
    fn first_interval(&self, rtt: f64) -> f64 {
        let x_target = self.highest_x_recv.max(self.s / (2.0 * rtt));
        self.profile.first_interval(self.s, rtt, x_target)
    }

    /// The loss event rate when packets up to `highest` arrived.
    fn p(&mut self, highest: f64) -> f64 {
        let open = self.current.map_or(0.0, |event| (highest - event.packet).max(0.0) + 1.0);
        self.history.mean(open, true).map_or(0.0, |mean| mean.p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrc::equation::Equation;
    use proptest::prelude::*;

    fn reports_of(observed: &ObservedDirection, s: f64) -> Vec<RoundReport> {
        round_reports(observed, s, &ReceiverProfile::rfc5348())
    }

    /// 100 packets of 1000 bytes a second for 4 s, and a round-trip time of 100 ms.
    fn observed(losses: &[(f64, f64)]) -> ObservedDirection {
        let sent =
            (0..400).map(|n| SentSegment { time: f64::from(n) * 0.01, bytes: 1000.0, end: f64::from(n + 1) });
        ObservedDirection {
            sent: sent.collect(),
            losses: losses.iter().map(|&(time, packet)| Loss { time, packet }).collect(),
            samples: vec![Sample { time: 0.1, rtt: 0.1 }],
            is_at_receiver: false,
        }
    }

    #[test]
    fn test_a_round_reports_what_was_sent_a_round_trip_time_before() {
        let reports = reports_of(&observed(&[]), 1000.0);
        assert!((reports[0].time - 0.1).abs() < 1e-9 && (reports[0].x_recv - 10_000.0).abs() < 1e-6);
        assert!(reports[1..].iter().all(|report| (report.x_recv - 100_000.0).abs() < 10_001.0));
        let bytes: f64 = reports.iter().map(|report| report.x_recv * report.rtt).sum();
        assert!((bytes - 400_000.0).abs() < 1e-3);
        let at_receiver = ObservedDirection { is_at_receiver: true, ..observed(&[]) };
        assert!(reports_of(&at_receiver, 1000.0)[0].x_recv > 90_000.0);
    }

    #[test]
    fn test_losses_within_a_round_trip_time_are_one_event_and_intervals_are_packets() {
        let losses = [(1.0, 100.0), (1.05, 105.0), (2.0, 200.0), (3.0, 300.0)];
        let reports = reports_of(&observed(&losses), 1000.0);
        assert!(reports.iter().filter(|report| report.time < 0.99).all(|report| report.p == 0.0));
        let third = reports.iter().find(|report| report.time > 3.05).unwrap();
        // Two intervals of 100 packets, and the first that stands for 100 packets/s (section 6.3.1).
        let first = Equation::default().inverse(1000.0, 0.1, 0.4, 100_000.0).unwrap();
        let mean = (200.0 + 1.0 / first.p) / 3.0;
        assert!((1.0 / third.p / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn test_silence_makes_no_rounds() {
        let mut silent = observed(&[]);
        silent.sent.push(SentSegment { time: 1e6, bytes: 1000.0, end: 401.0 });
        let reports = reports_of(&silent, 1000.0);
        assert!(reports.len() < 45 && (reports[reports.len() - 1].time - 1e6 - 0.1).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn test_p_is_a_share_and_no_byte_is_reported_twice(
            gaps in proptest::collection::vec((0.0..2.0_f64, 1.0..9000.0_f64), 1..60),
            losses in proptest::collection::vec((0.0..100.0_f64, any::<f64>()), 0..20),
            samples in proptest::collection::vec((0.0..100.0_f64, 1e-6..5.0_f64), 1..20),
            is_at_receiver: bool,
        ) {
            let mut time = 0.0;
            let sent: Vec<SentSegment> = gaps.into_iter().map(|(gap, bytes)| {
                time += gap;
                SentSegment { time, bytes, end: time }
            }).collect();
            let mut losses: Vec<Loss> = losses.into_iter().map(|(time, packet)| Loss { time, packet }).collect();
            losses.sort_by(|one, other| one.time.total_cmp(&other.time));
            let mut samples: Vec<Sample> = samples.into_iter().map(|(time, rtt)| Sample { time, rtt }).collect();
            samples.sort_by(|one, other| one.time.total_cmp(&other.time));
            let total: f64 = sent.iter().map(|sent| sent.bytes).sum();
            let count = sent.len();
            let reports = reports_of(&ObservedDirection { sent, losses, samples, is_at_receiver }, 1460.0);
            prop_assert!(reports.len() <= count);
            prop_assert!(reports.iter().all(|report| (0.0..=1.0).contains(&report.p)));
            let reported: f64 = reports.iter().map(|report| report.x_recv * report.rtt).sum();
            prop_assert!((reported / total - 1.0).abs() < 1e-6);
        }
    }
}
