//! The clock of a capture beside those of the senders in it, as their TCP timestamps show them (RFC 7323).
//!
//! A clock that is set leaves a silence, or times that go back; afterwards the timestamps of both ends of a
//! connection say that another time has passed than the clock says. One end alone may have slept, or its
//! packets may have waited in a queue; and any sender whose timestamps agree with the clock shows that it was
//! a silence. A clock that drifts has another rate than the timestamps of both ends. While a step is suspected,
//! packets are looked at only of directions whose clock is known and that have not judged it yet.

use std::collections::VecDeque;

use hashbrown::HashMap;

use serde::{Deserialize, Serialize};

use crate::packet::batch::{Batch, Item};
use crate::packet::event::{Endpoints, Tcp, TcpFlags, Transport};
use crate::packet::sender_stamp::{Stamp, nearest_tick_ns};

/// The smallest step that is believed: queues delay timestamps, too.
const SMALLEST_STEP_NS: i64 = 300_000_000;
/// What a path may add between two packets, and how far both clocks may run apart (1/n).
const JITTER_NS: i64 = 100_000_000;
const SKEW: i64 = 1_000;
/// The shortest time, and the fewest ticks, that show how long a tick is, within this part (1/n).
const TELLING_NS: i64 = 200_000_000;
const TELLING_TICKS: i64 = 10;
const TICK_DOUBT: i64 = 10;
/// Packets that were held up together follow each other at once; later ones show that a step is one.
const LATER_NS: i64 = 10_000_000;
/// Directions whose clocks are known, and every how many packets one is looked at while nothing is suspected.
const SLOTS: usize = 1_024;
const EVERY: u64 = 31;
const BUSY_NS: u64 = 10_000_000;
/// Suspected steps, and packets after which one is given up.
const SUSPECTS: usize = 64;
const PATIENCE: u64 = 2_048;
/// Steps that are listed, and votes on one that are kept.
const LISTED: usize = 32;
const VOTES: usize = 64;
/// Connections that show a drift: how long they last, how many are kept, how many are enough, and how many
/// parts per million they must show.
const LONG_NS: i64 = 600_000_000_000;
const KEPT_RATES: usize = 4_096;
const ENOUGH_RATES: usize = 3;
const LEAST_PPM: f64 = 100.0;

/// A step of the clock that the timestamps of both ends of a connection show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenStep {
    /// Number of the first packet after it.
    pub packet: u64,
    /// Time of the last packet before it, and of the first after it.
    pub before_ns: i64,
    pub after_ns: i64,
    /// How far the clock was set ahead; negative if it was set back.
    pub step_ns: i64,
}

/// How much faster the clock runs than those of senders.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Drift {
    pub ppm: f64,
    pub connections: usize,
}

/// What is known of the clock of a source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockFindings {
    /// The first ones.
    pub steps: Vec<ProvenStep>,
    pub drift: Option<Drift>,
}

/// The two ends of a packet, as numbers that differ by chance only.
#[derive(Clone, Copy)]
struct Ends {
    /// Those of both directions.
    connection: u64,
    /// This direction.
    direction: u64,
}

impl Ends {
    /// Where the track of this direction is: all bits of a product decide the highest ones.
    fn slot(direction: u64) -> usize {
        (direction >> (u64::BITS - SLOTS.ilog2())) as usize
    }

    fn of(endpoints: &Endpoints) -> Self {
        let end = |address: u128, port: u16| {
            let folded =
                (address as u64) ^ ((address >> 64) as u64).rotate_left(17) ^ (u64::from(port) << 40);
            (folded ^ (folded >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        let (src, dst) = (end(endpoints.src, endpoints.src_port), end(endpoints.dst, endpoints.dst_port));
        let connection = src.wrapping_add(dst);
        let direction = (connection ^ src.rotate_left(23)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        Self { connection, direction }
    }
}

/// The timestamps of one direction since the last step.
#[derive(Clone, Copy, Default)]
struct Track {
    connection: u64,
    direction: u64,
    first: Stamp,
    last: Stamp,
    /// Which packet had the last one.
    position: u64,
    tick_ns: Option<i64>,
}

impl Track {
    /// Learn how long a tick is; returns whether this became known.
    fn learn_tick(&mut self) -> bool {
        if self.tick_ns.is_some() {
            return false;
        }
        let passed_ns = self.last.time_ns.saturating_sub(self.first.time_ns);
        let ticks = self.last.ticks_since(self.first);
        if passed_ns < TELLING_NS || ticks < TELLING_TICKS {
            return false;
        }
        let shown_ns = passed_ns / ticks;
        let tick_ns = nearest_tick_ns(shown_ns);
        self.tick_ns =
            (shown_ns.abs_diff(tick_ns) <= tick_ns.unsigned_abs() / TICK_DOUBT as u64).then_some(tick_ns);
        self.tick_ns.is_some()
    }

    /// The rate of the capture's clock beside this sender's, less 1, in parts per million.
    fn ppm(&self) -> Option<f64> {
        let passed_ns = self.last.time_ns.saturating_sub(self.first.time_ns);
        let ticked_ns = (self.last.ticks_since(self.first) * self.tick_ns?) as f64;
        (passed_ns >= LONG_NS && is_unambiguous(passed_ns, self.tick_ns?) && ticked_ns > 0.0)
            .then(|| (passed_ns as f64 / ticked_ns - 1.0) * 1e6)
    }
}

/// Whether timestamps of this tick tell how much of such a time has passed: they wrap.
fn is_unambiguous(passed_ns: i64, tick_ns: i64) -> bool {
    passed_ns.unsigned_abs() < tick_ns.unsigned_abs() << 30
}

/// How much more time passed by the clock than by the timestamps, and by how much that may be wrong.
fn excess_ns(from: Stamp, to: Stamp, tick_ns: i64) -> Option<(i64, i64)> {
    let passed_ns = to.time_ns.checked_sub(from.time_ns)?;
    let ticked_ns = to.ticks_since(from) * tick_ns;
    let doubt_ns = JITTER_NS + tick_ns + ticked_ns.abs() / SKEW;
    is_unambiguous(passed_ns, tick_ns).then(|| (passed_ns.saturating_sub(ticked_ns), doubt_ns))
}

/// What one direction says of a suspected step.
#[derive(Clone, Copy)]
struct Vote {
    ends: (u64, u64),
    step_ns: i64,
    /// The first timestamp after it, and its tick.
    since: Stamp,
    tick_ns: i64,
    /// Whether a later packet confirms it.
    is_firm: bool,
}

/// A silence, or a time that goes back, which may be a step.
struct Suspect {
    /// Which packet was the first after it.
    position: u64,
    /// As large as it may be: all of the silence.
    step: ProvenStep,
    votes: Vec<Vote>,
}

impl Suspect {
    /// Whether a later packet of this direction may confirm what it says.
    fn awaits(&self, direction: u64) -> bool {
        self.votes.iter().any(|vote| vote.ends.1 == direction && !vote.is_firm)
    }

    /// The step, if both ends of a connection agree on it.
    fn proven(&self) -> Option<ProvenStep> {
        let firm = || self.votes.iter().filter(|vote| vote.is_firm);
        let agreed = firm().find_map(|one| {
            firm().find_map(|other| {
                let are_ends = one.ends.0 == other.ends.0 && one.ends.1 != other.ends.1;
                let apart_ns = one.step_ns.abs_diff(other.step_ns);
                (are_ends && apart_ns <= JITTER_NS as u64).then(|| one.step_ns.midpoint(other.step_ns))
            })
        })?;
        Some(ProvenStep { step_ns: agreed, ..self.step })
    }
}

/// Watches the clock of one source.
pub struct SenderClocks {
    tracks: Vec<Track>,
    /// Tracks whose tick is known: two at least judge a step.
    known: usize,
    suspects: VecDeque<Suspect>,
    /// Of both directions of connections that last long: how long, and parts per million.
    rates: HashMap<u64, HashMap<u64, (i64, f64)>>,
    found: ClockFindings,
    position: u64,
    previous_ns: Option<i64>,
}

impl Default for SenderClocks {
    fn default() -> Self {
        Self {
            tracks: vec![Track::default(); SLOTS],
            known: 0,
            suspects: VecDeque::new(),
            rates: HashMap::new(),
            found: ClockFindings::default(),
            position: 0,
            previous_ns: None,
        }
    }
}

impl SenderClocks {
    /// Watch the packets of a batch, between which at most `longest_ns` pass, and note in it where the clock
    /// was found to step.
    pub fn watch(&mut self, batch: &mut Batch, longest_ns: u64, numbered_after: u64) {
        if self.suspects.is_empty() && longest_ns < BUSY_NS {
            return self.watch_some(batch);
        }
        let first = self.position;
        let mut steps = Vec::new();
        for item in batch.items() {
            self.position += 1;
            let time_ns = item.time_ns();
            let previous_ns = self.previous_ns.replace(time_ns).unwrap_or(time_ns);
            let moved_ns = time_ns.abs_diff(previous_ns);
            if moved_ns >= SMALLEST_STEP_NS as u64 && self.known > 1 {
                self.suspect(previous_ns, time_ns, item, numbered_after);
            }
            let is_due = moved_ns >= BUSY_NS || self.position.is_multiple_of(EVERY);
            if !is_due && self.suspects.is_empty() {
                continue;
            }
            if self.suspects.front().is_some_and(|oldest| self.position - oldest.position >= PATIENCE) {
                self.suspects.pop_front();
            }
            if let Some((ends, stamp)) = stamp_of(item)
                && (is_due || self.may_judge(ends.direction))
                && let Some(position) = self.take(ends, stamp)
            {
                steps.extend(position.checked_sub(first + 1).map(|index| index as usize));
            }
        }
        batch.note_clock_steps(steps);
    }

    /// Watch a batch in which nothing can be suspected: each `EVERY`th packet is enough.
    fn watch_some(&mut self, batch: &Batch) {
        let before = self.position;
        let unseen = EVERY - 1 - before % EVERY;
        for (index, item) in batch.items().enumerate().skip(unseen as usize).step_by(EVERY as usize) {
            self.position = before + index as u64 + 1;
            if let Some((ends, stamp)) = stamp_of(item) {
                self.take(ends, stamp);
            }
        }
        self.position = before + batch.len() as u64;
        self.previous_ns = batch.last_time_ns().or(self.previous_ns);
    }

    /// What was found, after the last packet.
    pub fn finish(&mut self) -> ClockFindings {
        self.forget_tracks();
        let mut rates: Vec<f64> = self.rates.values().filter_map(rate_of_both).collect();
        rates.sort_unstable_by(f64::total_cmp);
        let at = |part: usize| rates.get(rates.len() * part / 4).copied().unwrap_or(0.0);
        let ppm = at(2);
        let is_drift = rates.len() >= ENOUGH_RATES
            && ppm.abs() >= LEAST_PPM
            && [at(1), at(3)].into_iter().all(|quartile| quartile * ppm.signum() >= LEAST_PPM / 2.0);
        self.found.drift = is_drift.then_some(Drift { ppm, connections: rates.len() });
        std::mem::take(&mut self.found)
    }

    /// Whether a direction may say more of a suspected step than it has said.
    fn may_judge(&self, direction: u64) -> bool {
        let track = &self.tracks[Ends::slot(direction)];
        track.direction == direction
            && track.tick_ns.is_some()
            && (self.suspects.back().is_some_and(|newest| newest.position > track.position)
                || self.suspects.iter().any(|suspect| suspect.awaits(direction)))
    }

    #[cold]
    fn suspect(&mut self, before_ns: i64, after_ns: i64, item: Item<'_>, numbered_after: u64) {
        if self.suspects.len() >= SUSPECTS {
            self.suspects.pop_front();
        }
        let packet = match item {
            Item::Plain(segment) => segment.number,
            Item::Other(packet) => packet.number,
        };
        let step = ProvenStep {
            packet: packet.saturating_sub(numbered_after),
            before_ns,
            after_ns,
            step_ns: after_ns.saturating_sub(before_ns),
        };
        self.suspects.push_back(Suspect { position: self.position, step, votes: Vec::new() });
    }

    /// Take a timestamp; returns which packet is the first after a step that it proves.
    fn take(&mut self, ends: Ends, stamp: Stamp) -> Option<u64> {
        let track = &mut self.tracks[Ends::slot(ends.direction)];
        if track.direction != ends.direction {
            let fresh = Track {
                connection: ends.connection,
                direction: ends.direction,
                first: stamp,
                last: stamp,
                position: self.position,
                tick_ns: None,
            };
            let old = std::mem::replace(track, fresh);
            self.known -= usize::from(old.tick_ns.is_some());
            self.keep_rate(&old);
            return None;
        }
        if stamp.ticks_since(track.last) < 0 {
            return None;
        }
        let before = *track;
        let is_odd = self.vote(&before, stamp);
        let track = &mut self.tracks[Ends::slot(ends.direction)];
        (track.last, track.position) = (stamp, self.position);
        if is_odd {
            // what it shows of the rate is of no use
            track.first = stamp;
        }
        self.known += usize::from(track.learn_tick());
        self.decide()
    }

    /// Let a direction judge the suspected steps; returns whether its clock disagrees with the capture's.
    fn vote(&mut self, before: &Track, stamp: Stamp) -> bool {
        if self.suspects.is_empty() {
            return false;
        }
        let is_spanned = |suspect: &Suspect| suspect.position > before.position;
        for vote in self.suspects.iter_mut().filter(|one| !is_spanned(one)).flat_map(|one| &mut one.votes) {
            if vote.ends.1 == before.direction && stamp.time_ns.saturating_sub(vote.since.time_ns) >= LATER_NS
            {
                vote.is_firm |= excess_ns(vote.since, stamp, vote.tick_ns)
                    .is_some_and(|(excess_ns, doubt_ns)| excess_ns.abs() <= doubt_ns);
            }
        }
        let excess =
            before.tick_ns.and_then(|tick_ns| Some((excess_ns(before.last, stamp, tick_ns)?, tick_ns)));
        let (mut is_odd, mut acquitted) = (false, false);
        if let Some(((step_ns, doubt_ns), tick_ns)) = excess {
            acquitted = step_ns.abs() <= doubt_ns;
            is_odd = step_ns.abs() >= SMALLEST_STEP_NS + doubt_ns;
            let vote = Vote {
                ends: (before.connection, before.direction),
                step_ns,
                since: stamp,
                tick_ns,
                is_firm: false,
            };
            for suspect in self.suspects.iter_mut().filter(|one| is_odd && is_spanned(one)) {
                if suspect.step.step_ns >= step_ns.saturating_sub(doubt_ns) && suspect.votes.len() < VOTES {
                    suspect.votes.push(vote);
                }
            }
        }
        self.suspects.retain(|one| !(acquitted && is_spanned(one)));
        is_odd
    }

    /// Take the suspected step that is proven, if one is: returns which packet is the first after it.
    fn decide(&mut self) -> Option<u64> {
        let (position, step) = self
            .suspects
            .iter()
            .filter_map(|suspect| Some((suspect.position, suspect.proven()?)))
            .max_by_key(|(_, step)| step.after_ns.abs_diff(step.before_ns))?;
        self.suspects.clear();
        self.forget_tracks();
        if self.found.steps.len() < LISTED {
            self.found.steps.push(step);
        }
        Some(position)
    }

    fn forget_tracks(&mut self) {
        let mut tracks = std::mem::take(&mut self.tracks);
        tracks.iter().for_each(|track| self.keep_rate(track));
        tracks.fill(Track::default());
        self.tracks = tracks;
        self.known = 0;
    }

    /// Keep the rate of a direction that was followed for long.
    fn keep_rate(&mut self, track: &Track) {
        let Some(ppm) = track.ppm() else { return };
        if self.rates.len() < KEPT_RATES || self.rates.contains_key(&track.connection) {
            let lasted_ns = track.last.time_ns.saturating_sub(track.first.time_ns);
            let kept = self.rates.entry(track.connection).or_default().entry(track.direction).or_default();
            *kept = if lasted_ns > kept.0 { (lasted_ns, ppm) } else { *kept };
        }
    }
}

/// What both ends of a connection agree on: a longer path changes what one of them shows.
fn rate_of_both(ends: &HashMap<u64, (i64, f64)>) -> Option<f64> {
    let rates: Vec<f64> = ends.values().map(|(_, ppm)| *ppm).collect();
    let [one, other] = rates[..] else { return None };
    let rate = one.midpoint(other);
    ((one - other).abs() <= LEAST_PPM / 2.0 + rate.abs() / 4.0).then_some(rate)
}

/// The ends and the timestamp of a segment of an open connection.
#[inline]
fn stamp_of(item: Item<'_>) -> Option<(Ends, Stamp)> {
    let of = |tcp: &Tcp, time_ns: i64| {
        let (value, _) = tcp.options.timestamp.filter(|_| !tcp.flags.has(TcpFlags::SYN | TcpFlags::RST))?;
        Some(Stamp { time_ns, value })
    };
    match item {
        Item::Plain(segment) => {
            of(&segment.tcp, segment.time_ns).map(|stamp| (Ends::of(&segment.endpoints()), stamp))
        }
        Item::Other(packet) => {
            let network = &packet.network;
            let is_segment = packet.is_ip && network.has_ports && network.transport == Transport::Tcp;
            of(&network.tcp, packet.time_ns)
                .filter(|_| is_segment)
                .map(|stamp| (Ends::of(&network.endpoints), stamp))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::source_summary::SourceSummary;
    use crate::packet::event::{Family, Network, Packet, TcpOptions};
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    /// A segment of connection `number` at `time_ns`, with a timestamp of `true_ns` in ticks of 1 ms.
    fn segment(number: u16, is_back: bool, time_ns: i64, true_ns: i64) -> Packet {
        let (here, there) = ((1_u128, 5_000 + number), (2_u128, 22));
        let (src, dst) = if is_back { (there, here) } else { (here, there) };
        let endpoints = Endpoints {
            family: Family::V4,
            protocol: 6,
            src: src.0,
            dst: dst.0,
            src_port: src.1,
            dst_port: dst.1,
        };
        let value = (true_ns / 1_000_000) as u32;
        let options = TcpOptions { timestamp: Some((value, 0)), ..TcpOptions::default() };
        let tcp = Tcp { flags: TcpFlags(TcpFlags::ACK), options, ..Tcp::default() };
        let network =
            Network { endpoints, has_ports: true, transport: Transport::Tcp, tcp, ..Network::default() };
        Packet { time_ns, is_ip: true, network, ..Packet::default() }
    }

    fn findings(packets: &[Packet]) -> ClockFindings {
        watched(packets).finish()
    }

    fn watched(packets: &[Packet]) -> SenderClocks {
        let (mut clocks, mut counted) = (SenderClocks::default(), SourceSummary::new("capture"));
        let mut batch = Batch::new(100);
        for (first, packets) in packets.chunks(100).enumerate() {
            batch.clear();
            for (number, packet) in (first as u64 * 100 + 1..).zip(packets) {
                *batch.next_other().0 = Packet { number, ..*packet };
                batch.add_other();
            }
            let longest_ns = counted.count(&batch, 0);
            clocks.watch(&mut batch, longest_ns, 0);
        }
        clocks
    }

    /// What both directions of three connections say every `every_ns`; `clock` changes times after the middle.
    fn spoken(every_ns: i64, rounds: i64, clock: impl Fn(i64) -> i64) -> Vec<Packet> {
        let times = (0..rounds).flat_map(|round| (0..3).map(move |one| (round, one)));
        times
            .flat_map(|(round, one)| {
                let true_ns = round * every_ns + i64::from(one) * every_ns / 20;
                [(false, true_ns), (true, true_ns + every_ns / 100)]
                    .map(|(is_back, ns)| segment(one, is_back, clock(ns), ns))
            })
            .collect()
    }

    #[test]
    fn test_a_step_of_any_size_is_found_between_keepalives() {
        for every_ns in [S / 200, S / 50, S, 5 * S] {
            let middle_ns = 100 * every_ns;
            for step_ns in [2 * S, -2 * S, 40 * S, 3_600 * S] {
                let set = |ns: i64| if ns < middle_ns { ns } else { ns + step_ns };
                let found = findings(&spoken(every_ns, 200, set));
                let [step] = found.steps[..] else { panic!("{every_ns} {step_ns}: {found:?}") };
                assert!((step.step_ns - step_ns).abs() < S / 10, "{step:?}");
                assert_eq!(step.packet, 601, "{every_ns} {step_ns}");
            }
        }
    }

    #[test]
    fn test_silences_and_one_end_that_slept_are_no_steps() {
        let slept = |ns: i64| if ns < 100 * S { ns } else { ns + 50 * S };
        let silent = spoken(S, 200, |ns| ns).into_iter().map(|packet| {
            let true_ns = slept(packet.time_ns);
            segment(
                packet.network.endpoints.src_port.max(packet.network.endpoints.dst_port) - 5_000,
                packet.network.endpoints.src == 2,
                true_ns,
                true_ns,
            )
        });
        assert_eq!(findings(&silent.collect::<Vec<_>>()).steps, []);
        let one_slept = spoken(S, 200, |ns| ns).into_iter().map(|packet| {
            let is_back = packet.network.endpoints.src == 2;
            let port = packet.network.endpoints.src_port.max(packet.network.endpoints.dst_port);
            let ns = packet.time_ns;
            segment(port - 5_000, is_back, slept(ns), if is_back { ns } else { slept(ns) })
        });
        assert_eq!(findings(&one_slept.collect::<Vec<_>>()).steps, []);
    }

    #[test]
    fn test_a_silence_is_suspected_only_where_a_clock_is_known() {
        // 150 ms of packets are too few to tell how long a tick is
        let after_silence = |rounds: i64| {
            let mut packets = spoken(S / 200, rounds, |ns| ns);
            // others speak first, whose packets have no timestamp
            let time_ns = rounds * S / 200 + 10 * S;
            let mut other = segment(9, false, time_ns, time_ns);
            other.network.tcp.options.timestamp = None;
            packets.push(other);
            watched(&packets).suspects.len()
        };
        assert_eq!([30, 100].map(after_silence), [0, 1]);
    }

    #[test]
    fn test_a_suspected_step_costs_only_packets_of_clocks_that_may_judge_it() {
        let mut packets = spoken(S / 200, 100, |ns| ns);
        let silent_ns = 100 * S / 200 + 10 * S;
        // a connection that nobody knows speaks after the silence, its packets less than 1 ms apart
        let fresh = |one: i64| segment(9, false, silent_ns + one * S / 10_000, silent_ns + one * S / 10_000);
        packets.extend((0..1_000).map(fresh));
        let mut clocks = watched(&packets);
        let taken = clocks.tracks.iter().find(|track| track.last.time_ns > silent_ns).unwrap();
        assert_eq!((clocks.suspects.len(), taken.tick_ns), (1, None));
        assert!(!clocks.may_judge(taken.direction));
        // one that is known acquits the clock
        let time_ns = silent_ns + S;
        let known = segment(0, false, time_ns, time_ns);
        let (ends, stamp) = stamp_of(Item::Other(&known)).unwrap();
        assert!(clocks.may_judge(ends.direction));
        assert!(clocks.take(ends, stamp).is_none() && clocks.suspects.is_empty());
        // and a suspected step that nobody judges is given up
        packets.extend((1_000..3_000).map(fresh));
        assert_eq!(watched(&packets).suspects.len(), 0);
    }

    #[test]
    fn test_a_clock_that_drifts_has_another_rate_than_both_ends() {
        let drift = |ppm: i64| findings(&spoken(5 * S, 300, |ns| ns + ns / 1_000_000 * ppm)).drift;
        assert!((drift(400).unwrap().ppm - 400.0).abs() < 20.0);
        assert!((drift(-250).unwrap().ppm + 250.0).abs() < 20.0);
        assert!(drift(0).is_none() && drift(50).is_none());
    }

    proptest! {
        #[test]
        fn test_any_times_and_values_are_taken(times in prop::collection::vec(any::<(u16, bool, i64, i64)>(), 0..200)) {
            let packets: Vec<Packet> = times
                .iter()
                .map(|&(number, is_back, time_ns, true_ns)| segment(number % 4, is_back, time_ns, true_ns))
                .collect();
            findings(&packets);
        }
    }
}
