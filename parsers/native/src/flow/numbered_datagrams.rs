//! Datagrams numbered by traffic generators, probes and media: detected, counted, timed.
//!
//! Any payload may look like a number and a time once. A flow counts as a generator's only if its
//! first datagrams agree on one layout: nearly consecutive numbers, times that advance as the
//! capture's clock does. This is checked again at its end.

use serde::{Deserialize, Serialize};

use super::delivery::{Delivery, NumberedCounts, Numbers};
use super::sequences::{NumberArrival, NumberedArrivals, Sequences};
use crate::packet::event::Packet;
use crate::packet::extras::PayloadHead;
use crate::wire::probe::{ProbeEcho, ProbeLayout, SenderClock, Stamp};

/// Datagrams that must agree.
const AGREEING: usize = 8;
/// Limit of datagrams without a number at the start: greetings such as iperf3's.
const MOST_GREETINGS: u8 = 4;
/// Largest difference between the numbers of the first datagrams.
const WIDEST_START: u64 = 64;
/// Largest plausible spread of delays; queues of seconds exist.
const DELAY_SPREAD_NS: i64 = 2_000_000_000;
/// Largest plausible median delay; a larger one means that the clocks differ.
const LARGEST_DELAY_MS: f64 = 60_000.0;
/// The ECN field of a marked packet (RFC 3168).
const CONGESTION_EXPERIENCED: u8 = 3;
/// iperf 2 sends its last number negative; one that differs more than this from the highest is
/// something else.
const NEAR_THE_END: i64 = 64;

/// Detection state of the datagrams of one direction.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NumberingDetector {
    state: State,
}

#[derive(Debug, Serialize, Deserialize)]
enum State {
    /// Number of datagrams so far, none of them numbered.
    Undecided(u8),
    /// The first datagrams, as long as they agree.
    Watching(Vec<TimedDatagram>),
    Counting(Box<Count>),
    Plain,
}

impl Default for State {
    fn default() -> Self {
        Self::Undecided(0)
    }
}

/// The relevant facts of a datagram.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TimedDatagram {
    head: PayloadHead,
    time_ns: i64,
    packet: u64,
    wire_bytes: u32,
    payload_bytes: u32,
    is_marked: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct NumberedDatagram {
    /// The low bits of the number.
    pub number: u64,
    /// Number of these bits.
    pub bits: u32,
    pub time_ns: i64,
    /// When it was sent by the clock of the sender, and what that states of it.
    pub sent_ns: i64,
    pub clock: SenderClock,
    /// Its number in the source.
    pub packet: u64,
    pub payload_bytes: u32,
    /// Whether it is marked congestion experienced (RFC 3168).
    pub is_marked: bool,
    /// Its number compared with those before.
    pub arrival: NumberArrival,
    /// Restarts of the numbering so far.
    pub restarts: u64,
    /// The probe that it is, or answers.
    pub echo: Option<ProbeEcho>,
}

impl NumberingDetector {
    /// The capture has a gap here.
    pub fn leave_gap(&mut self) {
        if let State::Counting(count) = &mut self.state {
            count.sequences.leave_gap();
        }
    }

    /// Process a datagram whose payload begins with `head`. `forced` is the user's layout; `follow`
    /// receives each datagram that has a number.
    pub fn on_datagram(
        &mut self,
        packet: &Packet,
        head: PayloadHead,
        forced: Option<ProbeLayout>,
        follow: &mut dyn FnMut(&NumberedDatagram),
    ) {
        let seen = TimedDatagram {
            head,
            time_ns: packet.time_ns,
            packet: packet.number,
            wire_bytes: packet.wire_bytes,
            payload_bytes: packet.network.payload_bytes.unwrap_or(0),
            is_marked: packet.network.ecn == CONGESTION_EXPERIENCED,
        };
        match &mut self.state {
            State::Counting(count) => count.on_datagram(&seen, follow),
            State::Watching(first) => {
                // the first packets of SRT may be of iperf 2, too, which has no control packets
                let is_beside = |layout: ProbeLayout| layout.is_beside(&head);
                if ProbeLayout::is_control(&head) || agreed_layout(first).is_some_and(is_beside) {
                    return;
                }
                first.push(seen);
                self.decide(follow);
            }
            State::Undecided(greetings) => match forced {
                Some(layout) => {
                    let mut count = Count::new(layout, true);
                    count.on_datagram(&seen, follow);
                    self.state = State::Counting(Box::new(count));
                }
                None if ProbeLayout::is_control(&head) => {}
                None if agreed_layout(&[seen]).is_some() => self.state = State::Watching(vec![seen]),
                None if *greetings < MOST_GREETINGS => *greetings += 1,
                None => self.state = State::Plain,
            },
            State::Plain => {}
        }
    }

    fn decide(&mut self, follow: &mut dyn FnMut(&NumberedDatagram)) {
        let State::Watching(first) = &self.state else { return };
        match agreed_layout(first) {
            None => self.state = State::Plain,
            Some(layout) if first.len() == AGREEING => {
                let mut count = Count::new(layout, false);
                first.iter().for_each(|seen| count.on_datagram(seen, follow));
                self.state = State::Counting(Box::new(count));
            }
            Some(_) => {}
        }
    }

    /// The number of a datagram just processed, if its layout is known by then; the one that ends
    /// an iperf 2 test has none.
    pub fn number_of(&self, head: &PayloadHead) -> Option<u64> {
        let layout = match &self.state {
            State::Counting(count) => Some(count.layout),
            State::Watching(first) => agreed_layout(first),
            State::Undecided(_) | State::Plain => None,
        }?;
        layout.read(head).filter(|stamp| !is_negative(layout, *stamp)).map(|stamp| stamp.number)
    }

    /// Whether a datagram that begins with `head` ends a test of iperf 2: it carries no data.
    pub fn is_end(&self, head: &PayloadHead) -> bool {
        let State::Counting(count) = &self.state else { return false };
        count.layout.read(head).is_some_and(|stamp| count.is_end(stamp))
    }

    /// What the numbers show so far of losses.
    pub fn arrivals(&self) -> Option<NumberedArrivals> {
        let State::Counting(count) = &self.state else { return None };
        count.shows_losses().then(|| count.sequences.arrivals())
    }

    /// The same if they prove to be numbers of the sender.
    pub fn supposed_arrivals(&self) -> Option<NumberedArrivals> {
        let State::Counting(count) = &self.state else { return None };
        Some(count.sequences.arrivals())
    }

    /// Delivery of the datagrams, if they were numbered to the end.
    pub fn finish(&mut self) -> Option<Delivery> {
        match std::mem::take(&mut self.state) {
            State::Counting(count) if count.shows_losses() => Some(count.into_delivery()),
            _ => None,
        }
    }
}

/// The layout that all these datagrams may have.
fn agreed_layout(seen: &[TimedDatagram]) -> Option<ProbeLayout> {
    ProbeLayout::ALL.into_iter().find(|&layout| agree(layout, seen))
}

fn agree(layout: ProbeLayout, seen: &[TimedDatagram]) -> bool {
    let mut stamps = [Stamp { number: 0, sent_ns: 0, clock: SenderClock::Unstated }; AGREEING];
    for (stamp, seen) in stamps.iter_mut().zip(seen) {
        match layout.read(&seen.head) {
            Some(read) if !is_negative(layout, read) && layout.may_arrive(read.sent_ns, seen.time_ns) => {
                *stamp = read;
            }
            _ => return false,
        }
    }
    let Some((stamps, (first, last))) = stamps.get_mut(..seen.len()).zip(seen.first().zip(seen.last()))
    else {
        return false;
    };
    let elapsed_ns = last.time_ns.saturating_sub(first.time_ns);
    stamps.sort_unstable_by_key(|stamp| (stamp.number, stamp.sent_ns));
    let (mut numbers, mut times) = (1, 1);
    for pair in stamps.windows(2) {
        let [before, after] = pair else { continue };
        // A higher number was sent later; a duplicate in the capture has neither.
        if after.sent_ns < before.sent_ns {
            return false;
        }
        numbers += usize::from(after.number > before.number);
        times += usize::from(after.sent_ns > before.sent_ns);
    }
    let Some((lowest, highest)) = stamps.first().zip(stamps.last()) else { return false };
    let sending_ns = highest.sent_ns.saturating_sub(lowest.sent_ns);
    highest.number - lowest.number < WIDEST_START
        && 2 * numbers >= seen.len()
        && (!layout.has_clock() || 2 * times >= seen.len() && is_paced_alike(sending_ns, elapsed_ns))
}

/// Whether the sender's clock advanced like the capture's, within the spread of delays.
fn is_paced_alike(sending_ns: i64, elapsed_ns: i64) -> bool {
    let difference_ns = sending_ns.saturating_sub(elapsed_ns).saturating_abs();
    difference_ns <= DELAY_SPREAD_NS.saturating_add(elapsed_ns.saturating_abs() / 4)
}

fn is_negative(layout: ProbeLayout, stamp: Stamp) -> bool {
    layout == ProbeLayout::Iperf2 && (stamp.number as u32 as i32) < 0
}

/// The datagrams of a generator.
#[derive(Debug, Serialize, Deserialize)]
struct Count {
    layout: ProbeLayout,
    /// Whether the user gave the layout.
    is_forced: bool,
    sequences: Sequences,
    delivery: Delivery,
    /// Datagrams without a number.
    unread: u64,
    /// Latest send time, unwrapped.
    clock_ns: Option<i64>,
    /// Send and capture times of the first datagram, and of the latest.
    first: Option<(i64, i64)>,
    latest: (i64, i64),
    /// The least that the sender states of its clock.
    clock: SenderClock,
    /// Whether these are replies, all with the numbers of the probes: a gap may be one of either way.
    repeats_numbers: bool,
}

impl Count {
    fn new(layout: ProbeLayout, is_forced: bool) -> Self {
        Self {
            layout,
            is_forced,
            sequences: Sequences::new(layout.number_bits()),
            delivery: Delivery::default(),
            unread: 0,
            clock_ns: None,
            first: None,
            latest: (0, 0),
            clock: SenderClock::default(),
            repeats_numbers: false,
        }
    }

    fn on_datagram(&mut self, seen: &TimedDatagram, follow: &mut dyn FnMut(&NumberedDatagram)) {
        if self.layout.is_beside(&seen.head) {
            return;
        }
        let Some(stamp) = self.layout.read(&seen.head) else {
            self.unread += 1;
            return;
        };
        if self.is_end(stamp) {
            return;
        }
        let stamp = self.unwrapped(stamp);
        let &TimedDatagram { time_ns, packet, payload_bytes, is_marked, .. } = seen;
        let (number, bits) = (stamp.number, self.layout.number_bits());
        let arrival = self.sequences.take(stamp.number, stamp.sent_ns);
        let restarts = self.sequences.stretch();
        let echo = self.layout.echo(&seen.head);
        if let Some(ProbeEcho { is_reply: true, number: of, .. }) = echo {
            self.repeats_numbers = u64::from(of) == number && (self.first.is_none() || self.repeats_numbers);
        }
        self.clock = self.clock.max(stamp.clock);
        follow(&NumberedDatagram {
            number,
            bits,
            time_ns,
            sent_ns: stamp.sent_ns,
            clock: stamp.clock,
            packet,
            payload_bytes,
            is_marked,
            arrival,
            restarts,
            echo,
        });
        let times = (stamp.sent_ns, seen.time_ns);
        match arrival {
            NumberArrival::New => {
                self.first.get_or_insert(times);
                self.latest = times;
                self.delivery.received_bytes += u64::from(seen.wire_bytes);
                if !self.layout.has_clock() {
                    return;
                }
                if self.layout.has_wall_clock() {
                    self.delivery.on_delay(stamp.sent_ns, seen.time_ns);
                } else {
                    self.delivery.on_transit(stamp.sent_ns, seen.time_ns);
                }
            }
            NumberArrival::Duplicate | NumberArrival::Unconfirmed => {}
        }
    }

    /// The same with the time of a narrow clock unwrapped: the value nearest to the latest.
    fn unwrapped(&mut self, stamp: Stamp) -> Stamp {
        let Some(period_ns) = self.layout.clock_period_ns() else { return stamp };
        let latest_ns = self.clock_ns.unwrap_or(stamp.sent_ns);
        let ahead_ns = stamp.sent_ns.saturating_sub(latest_ns).rem_euclid(period_ns);
        let ahead_ns = if ahead_ns > period_ns / 2 { ahead_ns - period_ns } else { ahead_ns };
        let sent_ns = latest_ns.saturating_add(ahead_ns);
        self.clock_ns = Some(sent_ns);
        Stamp { sent_ns, ..stamp }
    }

    /// Whether this datagram ends a test of iperf 2. It carries no data, and may be retransmitted.
    fn is_end(&self, stamp: Stamp) -> bool {
        let last = i64::from(stamp.number as u32 as i32).saturating_neg();
        let highest = self.sequences.highest().unwrap_or(0);
        is_negative(self.layout, stamp) && highest.saturating_sub(last).saturating_abs() <= NEAR_THE_END
    }

    /// Whether the flow still looks like a generator's.
    fn is_credible(&self) -> bool {
        let Some(first) = self.first else { return false };
        let sending_ns = self.latest.0.saturating_sub(first.0);
        let elapsed_ns = self.latest.1.saturating_sub(first.1);
        let odd = self.unread + self.sequences.strange;
        let is_paced = !self.layout.has_clock() || is_paced_alike(sending_ns, elapsed_ns);
        self.is_forced || (odd <= self.sequences.received / 8 && is_paced)
    }

    /// Whether gaps in the numbers are losses before the capture.
    fn shows_losses(&self) -> bool {
        self.is_credible() && !self.repeats_numbers
    }

    fn into_delivery(self) -> Delivery {
        let Self { layout, sequences, mut delivery, clock, .. } = self;
        delivery.sent = sequences.sent();
        delivery.received = sequences.received;
        delivery.lost = delivery.sent.saturating_sub(delivery.received);
        delivery.duplicates = sequences.duplicates;
        let has_delays = clock != SenderClock::Free && has_plausible_delays(&delivery);
        if !has_delays {
            delivery.forget_delays();
        }
        let Sequences { reordered, restarts, .. } = sequences;
        delivery.counted =
            Some(NumberedCounts { by: Numbers::Payload(layout), reordered, restarts, has_delays, clock });
        delivery
    }
}

/// Whether both clocks seem to be one: most delays positive, the median not too large.
fn has_plausible_delays(delivery: &Delivery) -> bool {
    let median_ms = delivery.delay_percentile_ms(0.5);
    let mostly_positive = delivery.negative_delays <= delivery.received / 2;
    mostly_positive && median_ms.is_some_and(|median| median < LARGEST_DELAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn take(probing: &mut NumberingDetector, words: &[u32], time_ns: i64, forced: Option<ProbeLayout>) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let packet = Packet { time_ns, wire_bytes: 100, ..Packet::default() };
        probing.on_datagram(&packet, PayloadHead::new(&bytes), forced, &mut |_| {});
    }

    /// `number` of iperf 2, sent at a multiple of 10 ms.
    fn iperf2(number: u32) -> [u32; 4] {
        [number, 100 + number / 100, number % 100 * 10_000, 0]
    }

    fn arrival_ns(number: u32, delay_ms: i64) -> i64 {
        100_000 * MS + (i64::from(number) * 10 + delay_ms) * MS
    }

    #[test]
    fn test_an_iperf_2_test_is_recognised_and_counted() {
        let mut probing = NumberingDetector::default();
        for number in (0..500).filter(|number| number % 10 != 3) {
            take(&mut probing, &iperf2(number), arrival_ns(number, 20), None);
        }
        // The end, which was retransmitted.
        for _ in 0..2 {
            take(&mut probing, &[-500_i32 as u32, 105, 0, u32::MAX], arrival_ns(500, 20), None);
        }
        let found = probing.finish().unwrap();
        assert_eq!((found.sent, found.received, found.lost, found.duplicates), (500, 450, 50, 0));
        assert_eq!(found.delay_mean_ms(), Some(20.0));
        assert_eq!(found.jitter_ms(), Some(0.0));
        let counted = found.counted.unwrap();
        let found = (counted.by, counted.reordered, counted.has_delays);
        assert_eq!(found, (Numbers::Payload(ProbeLayout::Iperf2), 0, true));
    }

    #[test]
    fn test_iperf3_has_jitter_but_no_delay() {
        for is_wide in [false, true] {
            let mut probing = NumberingDetector::default();
            take(&mut probing, &[0x3938_3736], 0, None);
            for number in 1_u32..100 {
                let wobble = i64::from(number % 2) * 4;
                let mut words = vec![7_000, number * 1_000];
                words.extend(is_wide.then_some(0));
                words.extend([number, 0xabcd_ef01]);
                take(&mut probing, &words, (i64::from(number) + wobble) * MS, None);
            }
            let found = probing.finish().unwrap();
            let expected = if is_wide { ProbeLayout::Iperf3Wide } else { ProbeLayout::Iperf3 };
            assert_eq!(found.counted.unwrap().by, Numbers::Payload(expected));
            assert_eq!((found.sent, found.lost), (99, 0));
            assert_eq!(found.delay_mean_ms(), None);
            assert!((found.jitter_ms().unwrap() - 4.0).abs() < 0.1);
        }
    }

    #[test]
    fn test_delays_of_clocks_that_differ_are_not_reported() {
        let mut probing = NumberingDetector::default();
        for number in 0..20 {
            take(&mut probing, &iperf2(number), arrival_ns(number, -300_000), None);
        }
        let found = probing.finish().unwrap();
        assert_eq!((found.delay_mean_ms(), found.counted.unwrap().has_delays), (None, false));
        assert_eq!(found.jitter_ms(), Some(0.0));
    }

    #[test]
    fn test_other_protocols_are_not_taken_for_it() {
        // RTP: version, type and number; timestamp; source. NetFlow: version, uptime, seconds, number.
        let rtp = |n: u32| [0x8060_0000 | n, n * 160, 0x1234_5678, 0];
        let netflow = |n: u32| [0x0009_0005, n * 1000, 1_700_000_000 + n, n];
        let constant = |n: u32| [0, 0, n, n];
        let counters = |n: u32| [n, n, n, n];
        let makers: [&dyn Fn(u32) -> [u32; 4]; 4] = [&rtp, &netflow, &constant, &counters];
        for make in makers {
            let mut probing = NumberingDetector::default();
            for number in 0..100 {
                take(&mut probing, &make(number), i64::from(number) * 200 * MS, None);
            }
            assert!(probing.finish().is_none());
        }
    }

    #[test]
    fn test_acknowledgements_in_the_first_second_of_srt_are_beside_its_numbers() {
        // draft-sharabayko-srt-01 section 3.1, every 20 ms. Microseconds of the first second fit iperf 2, too.
        let mut probing = NumberingDetector::default();
        for number in (0..60_u32).filter(|number| number % 10 != 5) {
            let (sent_us, time_ns) = (number * 20_000, i64::from(number) * 20 * MS);
            take(&mut probing, &[7_000 + number, 0xe000_0001 + number, sent_us, 9], time_ns, None);
            take(&mut probing, &[0x8006_0000, number, sent_us + 100, 9], time_ns + MS / 10, None);
        }
        let found = probing.finish().unwrap();
        assert_eq!(found.counted.unwrap().by, Numbers::Payload(ProbeLayout::Srt));
        assert_eq!((found.received, found.lost), (54, 6));
    }

    #[test]
    fn test_the_users_word_counts_from_the_first_datagram() {
        let mut probing = NumberingDetector::default();
        for number in [4, 5, 7] {
            take(&mut probing, &iperf2(number), arrival_ns(number, 5), Some(ProbeLayout::Iperf2));
        }
        let found = probing.finish().unwrap();
        assert_eq!((found.sent, found.received, found.lost), (4, 3, 1));
    }

    proptest! {
        #[test]
        fn test_noise_is_never_taken_for_numbers(
            heads in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..5), 0..40),
            step_ns in 0_i64..2_000_000_000,
        ) {
            let mut probing = NumberingDetector::default();
            for (at, words) in heads.iter().enumerate() {
                take(&mut probing, words, at as i64 * step_ns, None);
            }
            prop_assert!(probing.finish().is_none());
        }

        #[test]
        fn test_no_times_and_numbers_panic(
            stamps in proptest::collection::vec((any::<[u32; 4]>(), any::<i64>()), 0..40),
            layout in prop::sample::select(ProbeLayout::ALL.to_vec()),
        ) {
            let mut probing = NumberingDetector::default();
            for (words, time_ns) in stamps {
                take(&mut probing, &words, time_ns, Some(layout));
            }
            probing.finish();
        }
    }
}
