//! Simulates both ends of a flow whose reports a trace does not show: its data drive a receiver,
//! whose reports reach a sender after the given reverse delay.

use std::collections::{HashMap, VecDeque};

use super::reverse_delay::{ObservedReport, Passage, ReverseDelay};
use super::rfc_parameters::EndParameters;
use super::sender_variant::{Rules, SenderVariant};
use super::{nanoseconds, seconds};
use crate::tfrc::ns2;
use crate::tfrc::receiver::{Feedback, Receiver};
use crate::tfrc::{DataPacket, Report};

/// Bytes of a report of ns-2's sink by default (`packetSize_`).
const REPORT_BYTES: u32 = 40;

#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Sequence number from any origin.
    pub number: u64,
    /// When it was sent.
    pub sent_ns: i64,
    /// When it arrived; None if it did not.
    pub arrived_ns: Option<i64>,
    pub bytes: u32,
    /// Whether it was marked congestion experienced.
    pub is_marked: bool,
}

/// Packet events in order of time.
#[derive(Clone, Copy, Debug)]
struct Event {
    time_ns: i64,
    /// A packet captured once is sent first, and arrives at the same time.
    is_sent: bool,
    packet: usize,
}

/// A report in flight.
#[derive(Clone, Copy, Debug)]
struct ReportInFlight {
    made: f64,
    /// Transit time of the packet that it answers.
    forward: f64,
    /// How long it takes itself, if the trace shows that.
    took: Option<f64>,
    report: Report,
}

/// Header of a data packet.
#[derive(Clone, Copy, Debug, Default)]
struct DataHeader {
    header: ns2::Header,
    rtt: Option<f64>,
    wants_report: bool,
}

/// How reports get back to the sender.
#[derive(Clone, Debug, Default)]
pub struct ReturnPath {
    /// Delay in seconds where nothing else is known.
    pub least: f64,
    /// When each of the trace's own reports was made and when it arrived (None: never), in order of the first.
    pub reports_ns: Vec<(i64, Option<i64>)>,
    /// Whether ns-2's own agent sends the flow: in slow start it sends a packet at each report, which reveals
    /// the delay of those that the trace does not show.
    pub reveals_arrivals: bool,
}

impl ReturnPath {
    fn delay(&self, start_ns: i64) -> ReverseDelay {
        let observed = self.reports_ns.iter().map(|(made_ns, arrived_ns)| {
            let made = seconds(*made_ns, start_ns);
            let took = arrived_ns.map(|arrived_ns| (seconds(arrived_ns, start_ns) - made).max(0.0));
            ObservedReport { made, took }
        });
        ReverseDelay::new(self.least, observed.collect())
    }
}

/// Reports of a receiver of `packets` (in send order, the first at time 0) as they reach a sender with these
/// rules.
pub fn simulate(ends: &EndParameters, packets: &[Packet], path: &ReturnPath) -> Vec<(i64, Report)> {
    let Some(start_ns) = packets.first().map(|packet| packet.sent_ns) else { return Vec::new() };
    let mut events = Vec::with_capacity(2 * packets.len());
    for (packet, at) in packets.iter().zip(0..) {
        events.push(Event { time_ns: packet.sent_ns, is_sent: true, packet: at });
        events.extend(packet.arrived_ns.map(|time_ns| Event { time_ns, is_sent: false, packet: at }));
    }
    events.sort_by_key(|event| (event.time_ns, !event.is_sent));
    let mut flow = Flow {
        start_ns,
        reveals_arrivals: path.reveals_arrivals,
        way_back: path.delay(start_ns),
        machine: SenderVariant::new(&ends.rules, 0.0),
        receiver: ReceiverVariant::new(ends, rounding(packets)),
        captured: HashMap::new(),
        forward: 0.0,
        under_way: VecDeque::new(),
        made: Vec::new(),
        delivered: Vec::new(),
        last_delivered: 0.0,
        timer_set: 0.0,
        p: 0.0,
        has_reported: false,
    };
    for event in &events {
        let time = seconds(event.time_ns, start_ns);
        flow.report_until(time);
        flow.deliver_until(time);
        flow.expire(time);
        if let Some(packet) = packets.get(event.packet) {
            if event.is_sent {
                flow.send(event.packet, packet, time)
            } else {
                flow.arrive(event.packet, packet, time)
            }
        }
    }
    flow.delivered
}

/// How far times that the trace rounds may be off: wired traces have microseconds, others nanoseconds.
fn rounding(packets: &[Packet]) -> f64 {
    let is_whole = |time_ns: i64| time_ns % 1000 == 0;
    let has_microseconds =
        packets.iter().all(|packet| is_whole(packet.sent_ns) && packet.arrived_ns.is_none_or(is_whole));
    if has_microseconds { ns2::PRINTED } else { 0.0 }
}

/// The flow as it goes on: data to the receiver, reports back.
struct Flow {
    start_ns: i64,
    reveals_arrivals: bool,
    way_back: ReverseDelay,
    machine: SenderVariant,
    receiver: ReceiverVariant,
    /// Headers of packets in flight; those of lost packets stay.
    captured: HashMap<usize, DataHeader>,
    /// Transit time of the newest packet that arrived.
    forward: f64,
    under_way: VecDeque<ReportInFlight>,
    /// Kept for its memory.
    made: Vec<GeneratedReport>,
    /// Reports with the time at which they reached the sender, in ns.
    delivered: Vec<(i64, Report)>,
    last_delivered: f64,
    timer_set: f64,
    p: f64,
    /// Whether the sender has had a report since its last timeout.
    has_reported: bool,
}

impl Flow {
    fn send(&mut self, at: usize, packet: &Packet, time: f64) {
        self.deliver_answered(time);
        let header = match &mut self.machine {
            SenderVariant::Ns2(sender) => sender.on_data(time, packet.bytes),
            SenderVariant::Rfc(..) => ns2::Header::default(),
        };
        if packet.arrived_ns.is_some() {
            let captured = DataHeader { header, rtt: self.machine.r(), wants_report: !self.has_reported };
            self.captured.insert(at, captured);
        }
    }

    fn arrive(&mut self, at: usize, packet: &Packet, time: f64) {
        let Some(captured) = self.captured.remove(&at) else { return };
        self.forward = time - seconds(packet.sent_ns, self.start_ns);
        let mut made = std::mem::take(&mut self.made);
        self.receiver.on_packet(packet, time, &captured, &mut made);
        made.drain(..).for_each(|made| self.send_back(made));
        self.made = made;
    }

    /// Expire the receiver's timer if due before `time`.
    fn report_until(&mut self, time: f64) {
        while let Some(made) = self.receiver.on_time(time) {
            self.send_back(made);
        }
    }

    fn send_back(&mut self, GeneratedReport { time, p, x_recv, losses }: GeneratedReport) {
        let took = match self.way_back.passage(time) {
            Passage::Lost => return,
            Passage::Takes(took) => Some(took),
            Passage::Unknown => None,
        };
        let report = Report { x_recv, p, losses, ..Report::default() };
        self.under_way.push_back(ReportInFlight { made: time, forward: self.forward, took, report });
    }

    /// Deliver reports due before `time`, but for those whose arrival packets reveal.
    fn deliver_until(&mut self, time: f64) {
        while let Some(next) = self.under_way.front().copied() {
            // One does not overtake another.
            let took = next.took.unwrap_or(self.way_back.usual()).max(self.last_delivered - next.made);
            let due = next.made + took;
            if due > time {
                return;
            }
            if !self.is_answered(&next, due) {
                self.deliver(&next, took);
            } else if !(self.way_back.is_too_long(time - next.made) && self.holds_up_others(time)) {
                return;
            }
            self.under_way.pop_front();
        }
    }

    /// Whether a report after the next one would have arrived that no packet reveals: the next one is lost.
    fn holds_up_others(&self, time: f64) -> bool {
        let usual = self.way_back.usual();
        self.under_way.iter().any(|later| later.made + usual <= time && !self.is_answered(later, time))
    }

    /// A packet that is sent before its turn answers a report that just arrived.
    fn deliver_answered(&mut self, time: f64) {
        let is_answer = match &mut self.machine {
            SenderVariant::Ns2(sender) => self.reveals_arrivals && sender.is_out_of_turn(time),
            SenderVariant::Rfc(..) => false,
        };
        while let Some(next) = self.under_way.front().copied().filter(|next| is_answer && next.made < time) {
            if !self.is_answered(&next, time) {
                return;
            }
            self.under_way.pop_front();
            let is_last = self.under_way.front().is_none_or(|later| later.made >= time);
            if is_last || !self.way_back.is_too_long(time - next.made) {
                self.way_back.record(time - next.made);
                return self.deliver(&next, time - next.made);
            }
        }
    }

    /// Whether a packet shows when this report arrives.
    fn is_answered(&self, report: &ReportInFlight, time: f64) -> bool {
        match &self.machine {
            SenderVariant::Ns2(sender) => {
                let is_revealed = self.reveals_arrivals && report.took.is_none();
                is_revealed && report.report.p <= 0.0 && sender.answers_reports(time)
            }
            SenderVariant::Rfc(..) => false,
        }
    }

    /// It arrives after this transit time.
    fn deliver(&mut self, report: &ReportInFlight, took: f64) {
        let time = report.made + took;
        self.expire(time);
        let r_sample = Some(report.forward + took).filter(|sample| *sample > 0.0);
        let report = Report { time, r_sample, ..report.report };
        self.machine.on_report(&report, self.p);
        (self.timer_set, self.p, self.has_reported) = (time, report.p, true);
        self.last_delivered = time;
        self.delivered.push((nanoseconds(time, self.start_ns), report));
    }

    /// The sender's timer matters to the receiver: ns-2's asks for a report after it.
    fn expire(&mut self, time: f64) {
        for _ in 0..super::drive_sender::MOST_EXPIRIES {
            let Some((due, _)) = self.machine.expire(time, self.timer_set, |_, _| false) else { return };
            self.timer_set = due;
            self.has_reported = false;
        }
    }
}

/// A report as its receiver makes it.
struct GeneratedReport {
    time: f64,
    p: f64,
    x_recv: f64,
    /// Reported only by ns-2.
    losses: u64,
}

impl From<Feedback> for GeneratedReport {
    fn from(Feedback { time, p, x_recv, .. }: Feedback) -> Self {
        Self { time, p, x_recv, losses: 0 }
    }
}

/// A receiver of any kind.
enum ReceiverVariant {
    Rfc(Box<Receiver>, Vec<Feedback>),
    Ns2(Box<Ns2End>),
}

impl ReceiverVariant {
    fn new(ends: &EndParameters, rounded: f64) -> Self {
        match &ends.rules {
            Rules::Rfc(_) => Self::Rfc(Box::new(Receiver::new(&ends.receiver)), Vec::new()),
            Rules::Ns2(parameters) => Self::Ns2(Box::new(Ns2End {
                receiver: ns2::Receiver::new(parameters),
                per_round: parameters.num_feedback,
                rounded,
                last_report: 0.0,
                timer: f64::INFINITY,
                has_data: false,
                bytes: 0,
            })),
        }
    }

    /// A packet arrives, after [`ReceiverVariant::on_time`] was asked for all before; the reports that it causes go to `made`.
    fn on_packet(
        &mut self,
        packet: &Packet,
        time: f64,
        captured: &DataHeader,
        made: &mut Vec<GeneratedReport>,
    ) {
        match self {
            Self::Rfc(receiver, due) => {
                let data = DataPacket {
                    seq: packet.number,
                    time,
                    sent_time: None,
                    rtt: captured.rtt,
                    ccval: 0,
                    ce: packet.is_marked,
                    bytes: packet.bytes,
                    ndp: 0,
                };
                receiver.on_data(&data, due);
                made.extend(due.drain(..).map(GeneratedReport::from));
            }
            Self::Ns2(end) => made.extend(end.on_packet(packet, time, captured)),
        }
    }

    /// The report that was due before `time`, if no packet asked for it.
    fn on_time(&mut self, time: f64) -> Option<GeneratedReport> {
        match self {
            // The next packet triggers it and gives its round-trip time.
            Self::Rfc(..) => None,
            Self::Ns2(end) => end.on_time(time),
        }
    }
}

/// ns-2's sink with the rules by which it reports.
struct Ns2End {
    receiver: ns2::Receiver,
    /// Reports per round-trip time.
    per_round: f64,
    /// How far rounding in the trace may move the time between two events, in seconds: in slow start reports
    /// are due exactly when a packet arrives.
    rounded: f64,
    last_report: f64,
    /// When it reports even if no packet asks it to.
    timer: f64,
    /// Whether a packet has come since its timer made a report. One that made a report itself counts, too: ns-2
    /// asks whether the last arrival was before the last report.
    has_data: bool,
    /// Payload of the newest packet.
    bytes: u32,
}

impl Ns2End {
    /// One and a half of the time between reports after the last attempt, whether there were data or not.
    fn on_time(&mut self, time: f64) -> Option<GeneratedReport> {
        let due = self.timer;
        if due >= time {
            return None;
        }
        if std::mem::take(&mut self.has_data) {
            return Some(self.report(due));
        }
        let period = self.period();
        self.timer = due + ((time - due) / period).ceil() * period;
        None
    }

    /// Infinite until a packet has carried a round-trip time.
    fn period(&self) -> f64 {
        let rtt = self.receiver.rtt();
        if rtt > 0.0 { 1.5 * rtt / self.per_round } else { f64::INFINITY }
    }

    fn on_packet(&mut self, packet: &Packet, time: f64, captured: &DataHeader) -> Option<GeneratedReport> {
        let number = i64::try_from(packet.number).unwrap_or(i64::MAX);
        let had_losses = self.receiver.loss_events > 0;
        let arrived = self.receiver.on_data(number, time, &captured.header, packet.is_marked);
        (self.has_data, self.bytes) = (true, packet.bytes);
        let rtt = self.receiver.rtt();
        let begins = arrived.event.is_some() || (arrived.lost > 0 && !had_losses);
        let is_due = time - self.last_report >= rtt / self.per_round - self.rounded;
        (captured.wants_report || begins || is_due).then(|| self.report(time))
    }

    fn report(&mut self, time: f64) -> GeneratedReport {
        let feedback = self.receiver.on_report(time, REPORT_BYTES);
        self.last_report = time;
        self.timer = time + self.period();
        let ns2::Feedback { p, x_recv_pps, losses, .. } = feedback;
        GeneratedReport { time, p, x_recv: x_recv_pps * f64::from(self.bytes), losses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrc::replay::rfc_parameters::{ParameterProfile, Variant, ends};
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn reports(profile: ParameterProfile, packets: &[Packet], reverse: f64) -> Vec<(i64, Report)> {
        let ends = ends(profile, Variant::Tfrc, 1000.0, None, &[]).unwrap();
        simulate(&ends, packets, &ReturnPath { least: reverse, ..ReturnPath::default() })
    }

    /// A packet each 10 ms for 2 s that takes 30 ms, but for those that are lost.
    fn steady(lost: &[u64]) -> Vec<Packet> {
        let packet = |number: u64| Packet {
            number,
            sent_ns: number as i64 * 10 * MS,
            arrived_ns: (!lost.contains(&number)).then_some((number as i64 * 10 + 30) * MS),
            bytes: 1000,
            is_marked: false,
        };
        (0..200).map(packet).collect()
    }

    #[test]
    fn test_reports_come_once_a_round_trip_time_with_its_length_and_the_rate_that_arrived() {
        for profile in ParameterProfile::ALL {
            let reports = reports(profile, &steady(&[]), 0.02);
            let times: Vec<f64> = reports.iter().map(|(time_ns, _)| *time_ns as f64 / 1e9).collect();
            assert!((times[0] - 0.05).abs() < 1e-9, "{profile:?}");
            let later = reports.iter().filter(|(time_ns, _)| *time_ns > 1000 * MS);
            assert!((14..=22).contains(&later.clone().count()), "{profile:?} {}", later.clone().count());
            for (_, report) in later {
                assert!((report.r_sample.unwrap() - 0.05).abs() < 0.0101, "{profile:?}");
                assert!((report.x_recv / 100_000.0 - 1.0).abs() < 0.21, "{profile:?} {}", report.x_recv);
                assert_eq!(report.p, 0.0);
            }
        }
    }

    #[test]
    fn test_a_loss_is_reported_at_once_and_stays_a_loss() {
        for profile in ParameterProfile::ALL {
            let reports = reports(profile, &steady(&[100]), 0.02);
            let (first_ns, _) = reports.iter().find(|(_, report)| report.p > 0.0).unwrap();
            // Lost at 1.0 s; three later packets reveal it (ns-2's sink needs one), and it arrives
            // after 50 ms.
            assert!((1060 * MS..=1085 * MS).contains(first_ns), "{profile:?} {first_ns}");
            assert!(reports.last().unwrap().1.p > 0.0);
        }
    }

    #[test]
    fn test_packets_of_one_capture_have_the_round_trip_time_that_is_given() {
        let packets: Vec<Packet> = steady(&[])
            .into_iter()
            .map(|packet| Packet { arrived_ns: Some(packet.sent_ns), ..packet })
            .collect();
        let reports = reports(ParameterProfile::Rfc5348, &packets, 0.05);
        assert!(reports.len() > 35 && reports.iter().all(|(_, report)| report.r_sample == Some(0.05)));
    }

    proptest! {
        #[test]
        fn test_any_packets_are_taken(
            packets in proptest::collection::vec(
                (any::<u64>(), any::<i64>(), proptest::option::of(any::<i64>()), any::<u32>(), any::<bool>()), 0..40,
            ),
            mut reports_ns in proptest::collection::vec((any::<i64>(), proptest::option::of(any::<i64>())), 0..20),
            reverse in 0.0..10.0_f64, at in 0_usize..4, reveals_arrivals: bool,
        ) {
            let mut packets: Vec<Packet> = packets.into_iter().map(|(number, sent_ns, arrived_ns, bytes, is_marked)| {
                Packet { number, sent_ns, arrived_ns, bytes, is_marked }
            }).collect();
            packets.sort_by_key(|packet| packet.sent_ns);
            let ends = ends(ParameterProfile::ALL[at], Variant::Tfrc, 1000.0, None, &[]).unwrap();
            reports_ns.sort_unstable();
            let path = ReturnPath { least: reverse, reports_ns, reveals_arrivals };
            for (_, report) in simulate(&ends, &packets, &path) {
                prop_assert!((0.0..=1.0).contains(&report.p));
            }
        }
    }
}
