//! What a flow shows of the bottleneck of its path: capacity, buffer and the discipline of its queue.
//!
//! While a queue stands, the bottleneck never idles, and what it delivers is its capacity (at the IP layer,
//! RFC 5136 section 2.3), unless others take a part of it: then the rate varies. Where the queue drops at its
//! tail, losses come at one delay, the longest that there is: buffer over capacity.

use super::cause::Cause;
use super::interval::{Interval, quantile};
use super::ledger::{Stretch, is_held_by};
use super::path::{Cut, CutReason, Path, QUEUE_NS};
use super::policer::policer_rate;
use super::waits::Waits;

/// Full segments, and time, over which a rate is taken: acknowledgements are for some segments, and timers
/// are coarse.
const BLOCK_SEGMENTS: i64 = 32;
const BLOCK_NS: i64 = 100_000_000;
/// Such rates that tell whether they vary.
const BLOCKS: usize = 4;
/// The part by which the rate of a flow that is alone varies at most (quartiles).
const STEADY: f64 = 0.05;
/// Share of rates on either side that is left out of the interval of a capacity, and its least error.
const TAIL: f64 = 0.1;
const CAPACITY_ERROR: f64 = 0.005;
/// Losses or marks from which a discipline is told.
const DROPS: usize = 4;
const EARLY_DROPS: usize = 6;
/// Delays within this part of their middle, or a packet, are one level; half of all losses come at it.
const LEVEL: f64 = 0.08;
const PACKETS: f64 = 1.2;
/// Losses at longer delays than those of a full queue: one of so many.
const LONGER: usize = 20;
/// A full queue drops at its longest delay: this part of it, for delayed acknowledgements.
const LONGEST: f64 = 0.95;
/// By how much timestamps, which date data away from their sender, make a queue look shorter: two usual ticks.
const STAMP_ERROR_NS: f64 = 2_000_000.0;
/// CoDel drops first when the delay was above its target for an interval of 100 ms (RFC 8289 section 4.2), and
/// what is left of its queue is short.
const CODEL_NS: (f64, f64) = (90e6, 400e6);
const CODEL_QUEUE_NS: f64 = 50e6;
/// Losses that a queue explains come above this share of the round-trip times since the last, on average; by
/// chance they come above half of them.
const ABOVE: f64 = 0.8;

named_enum! {
    /// Why a fact is not told.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Untold {
        /// Round-trip times were never longer for long while the path limited the flow.
        NoQueue = "no_queue",
        /// A queue stood, but for too short a time.
        FewRounds = "few_rounds",
        /// The rate varied while a queue stood: others take a part of it, or the capacity varies.
        RateVaries = "rate_varies",
        /// Less than four losses or marks.
        FewLosses = "few_losses",
        /// Delays at losses fit no discipline.
        DelaysVary = "delays_vary",
        /// Losses come before the buffer is full.
        EarlyDrops = "early_drops",
        /// Losses come with a queue, or rates between them differ.
        NoPolicer = "no_policer",
    }
}

named_enum! {
    /// How a queue chooses what it drops.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Discipline {
        /// What finds it full.
        TailDrop = "tail_drop",
        /// What comes before it is full: active queue management (RFC 7567).
        Aqm = "aqm",
    }
}

type Told<T> = Result<T, Untold>;

/// What a direction shows of its bottleneck. Rates are in bit/s, all at the IP layer.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    pub capacity: Told<Interval>,
    /// Bytes.
    pub buffer: Told<Interval>,
    /// Delay of the full buffer.
    pub buffer_ns: Option<f64>,
    pub discipline: Told<Discipline>,
    pub policer: Told<Interval>,
}

impl Bottleneck {
    /// What the waits of a direction and its causes show.
    pub fn of(waits: &Waits, stretches: &[Stretch]) -> Self {
        let (full_size, packet) = waits.packet();
        let on_wire = f64::from(packet) / f64::from(full_size.max(1));
        let path = &waits.path;
        let rates = standing_rates(path, stretches, i64::from(full_size));
        let capacity = capacity(&rates).map(|rate| rate.times(8.0 * on_wire));
        let packet_ns = capacity.map_or(0.0, |rate| f64::from(packet) * 8e9 / rate.value);
        let error_ns = if waits.is_estimated { STAMP_ERROR_NS } else { 0.0 };
        let drops = Drops::of(path, error_ns);
        let level = drops.level(packet_ns);
        let discipline = drops.discipline(level, packet_ns, capacity.err());
        let buffer_ns = level
            .filter(|_| discipline == Ok(Discipline::TailDrop))
            .map(|level| Interval { high: level.high + error_ns, ..level });
        let buffer = match (discipline, buffer_ns, capacity) {
            (Err(untold), ..) | (_, Some(_), Err(untold)) => Err(untold),
            (_, Some(delay_ns), Ok(rate)) => Ok(held_bytes(delay_ns, rate, f64::from(packet))),
            (_, None, _) => Err(Untold::EarlyDrops),
        };
        let policer = policer_rate(path).ok_or(Untold::NoPolicer);
        Self {
            capacity,
            buffer,
            buffer_ns: buffer_ns.map(|level| level.value),
            discipline,
            policer: policer.map(|rate| rate.times(8.0 * on_wire)),
        }
    }
}

/// Size of a buffer in which the last accepted packet waits for a time: less than a packet of what it waited for
/// had left, and less than another one had room beside it.
fn held_bytes(delay_ns: Interval, rate: Interval, packet: f64) -> Interval {
    let bytes = |ns: f64, rate: f64| ns * rate / 8e9;
    Interval {
        low: bytes(delay_ns.low, rate.low),
        value: bytes(delay_ns.value, rate.value) + packet,
        high: bytes(delay_ns.high, rate.high) + 2.0 * packet,
    }
}

fn capacity(rates: &[f64]) -> Told<Interval> {
    let steady = Interval::of_quartiles(rates).ok_or(Untold::NoQueue)?;
    if rates.len() < BLOCKS {
        return Err(Untold::FewRounds);
    }
    if steady.width() > STEADY {
        return Err(Untold::RateVaries);
    }
    let most = Interval::of_quantiles(rates, TAIL).ok_or(Untold::NoQueue)?;
    Ok(most.widened(CAPACITY_ERROR))
}

/// Payload rates while a queue stood, sorted.
fn standing_rates(path: &Path, stretches: &[Stretch], full_size: i64) -> Vec<f64> {
    let (mut bytes, mut ns) = (0_i64, 0_i64);
    let mut rates = Vec::new();
    for lap in &path.laps {
        let is_of_path = || is_held_by(Cause::is_of_path, stretches, (lap.start_ns(), lap.end_ns));
        if lap.is_repairing || path.delay_ns(lap.rtt_ns) <= QUEUE_NS || !is_of_path() {
            continue;
        }
        bytes = bytes.saturating_add(lap.bytes.into());
        ns = ns.saturating_add(lap.duration_ns);
        if bytes >= BLOCK_SEGMENTS.saturating_mul(full_size) && ns >= BLOCK_NS {
            rates.push(bytes as f64 * 1e9 / ns as f64);
            (bytes, ns) = (0, 0);
        }
    }
    rates.sort_by(f64::total_cmp);
    rates
}

/// Delays of a queue at which it dropped or marked.
struct Drops {
    /// Sorted.
    delays_ns: Vec<f64>,
    /// Median part of the longest delay since the cut before.
    of_longest: f64,
    /// Median time for which the delay had been above CoDel's target.
    above_target_ns: f64,
    /// Mean share of the laps since the cut before that were shorter.
    above: f64,
    marks: usize,
    has_queue: bool,
}

impl Drops {
    /// Of delays with such an error.
    fn of(path: &Path, error_ns: f64) -> Self {
        let base_ns = path.base_rtt_ns().unwrap_or(0);
        let delay_ns = |cut: &Cut| (cut.rtt_ns - base_ns).max(0) as f64;
        let sorted = |value: &dyn Fn(&Cut) -> f64| {
            let mut values: Vec<f64> = path.timed_cuts().map(value).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let median = |value: &dyn Fn(&Cut) -> f64| quantile(&sorted(value), 0.5).unwrap_or(0.0);
        Self {
            delays_ns: sorted(&delay_ns),
            of_longest: median(&|cut| (delay_ns(cut) + error_ns) / (cut.most_rtt_ns - base_ns).max(1) as f64),
            above_target_ns: median(&|cut| cut.above_target_ns.map_or(f64::MAX, |ns| ns as f64)),
            above: mean_above(path),
            marks: path.timed_cuts().filter(|cut| cut.reason == CutReason::Mark).count(),
            has_queue: path.has_queue(median(&|cut| cut.rtt_ns as f64) as i64),
        }
    }

    /// The delay at which half of the losses come; None if there is none.
    fn level(&self, packet_ns: f64) -> Option<Interval> {
        let count = self.delays_ns.len().div_ceil(2).max(DROPS);
        let narrowest = self.delays_ns.windows(count).min_by(|one, other| {
            let width = |window: &[f64]| window.last().unwrap_or(&0.0) - window.first().unwrap_or(&0.0);
            width(one).total_cmp(&width(other))
        })?;
        let level = Interval::of_quantiles(narrowest, 0.0)?;
        let width = level.high - level.low;
        (width <= (LEVEL * level.value).max(PACKETS * packet_ns)).then_some(level)
    }

    /// Whether nothing waits longer than a level: few losses come at a delay that is more than a packet above.
    fn is_longest(&self, level: Interval, packet_ns: f64) -> bool {
        let most = level.high + (LEVEL * level.value).max(PACKETS * packet_ns);
        let longer = self.delays_ns.len() - self.delays_ns.partition_point(|&ns| ns <= most);
        LONGER * longer <= self.delays_ns.len()
    }

    fn discipline(
        &self,
        level: Option<Interval>,
        packet_ns: f64,
        no_capacity: Option<Untold>,
    ) -> Told<Discipline> {
        let count = self.delays_ns.len();
        if count < DROPS {
            return Err(Untold::FewLosses);
        }
        if !self.has_queue {
            return Err(Untold::NoQueue);
        }
        // Only active queue management marks (RFC 7567 section 2).
        if self.marks >= DROPS && 2 * self.marks >= count {
            return Ok(Discipline::Aqm);
        }
        if self.of_longest >= LONGEST {
            let is_full =
                level.is_some_and(|level| self.is_longest(level, packet_ns)) && 10 * self.marks < count;
            return if is_full { Ok(Discipline::TailDrop) } else { Err(Untold::DelaysVary) };
        }
        // Others, or a capacity that varies, change the delay too.
        if let Some(untold) = no_capacity {
            return Err(untold);
        }
        let is_late = (CODEL_NS.0..=CODEL_NS.1).contains(&self.above_target_ns);
        let is_codel = is_late && quantile(&self.delays_ns, 0.5).is_some_and(|ns| ns <= CODEL_QUEUE_NS);
        // RED and PIE drop by chance, at delays above most others. So does a CoDel among short delays, and a RED may
        // look like CoDel: which of them it is, is not told.
        let is_early = count >= EARLY_DROPS && self.above >= ABOVE;
        if is_codel || is_early { Ok(Discipline::Aqm) } else { Err(Untold::DelaysVary) }
    }
}

/// Mean share of the laps between cuts that were shorter than the round-trip time of the cut after them.
fn mean_above(path: &Path) -> f64 {
    let (mut sum, mut count, mut first) = (0.0, 0.0, 0);
    for cut in path.timed_cuts() {
        let last = path.laps.partition_point(|lap| lap.end_ns <= cut.time_ns);
        let laps = path.laps.get(first..last).unwrap_or_default();
        first = last;
        if !laps.is_empty() {
            let below = laps.iter().filter(|lap| lap.rtt_ns < cut.rtt_ns).count();
            sum += below as f64 / laps.len() as f64;
            count += 1.0;
        }
    }
    sum / f64::max(count, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    fn discipline(delays_ms: &[f64]) -> Told<Discipline> {
        discipline_with_marks(delays_ms, 0)
    }

    fn discipline_with_marks(delays_ms: &[f64], marks: usize) -> Told<Discipline> {
        let mut delays_ns: Vec<f64> = delays_ms.iter().map(|ms| ms * MS).collect();
        delays_ns.sort_by(f64::total_cmp);
        let drops =
            Drops { delays_ns, of_longest: 1.0, above_target_ns: 0.0, above: 1.0, marks, has_queue: true };
        drops.discipline(drops.level(MS), MS, None)
    }

    #[test]
    fn test_a_queue_in_which_data_wait_longer_than_at_most_losses_was_not_full_then() {
        assert_eq!(discipline(&[20.0; 12]), Ok(Discipline::TailDrop));
        assert_eq!(discipline(&[&[20.0; 10][..], &[26.0; 2]].concat()), Err(Untold::DelaysVary));
        // Random losses come before it is full.
        assert_eq!(discipline(&[&[20.0; 10][..], &[5.0; 2]].concat()), Ok(Discipline::TailDrop));
    }

    #[test]
    fn test_a_queue_that_marks_is_managed_whatever_its_delays() {
        assert_eq!(discipline_with_marks(&[20.0; 12], 12), Ok(Discipline::Aqm));
        assert_eq!(discipline_with_marks(&[5.0, 8.0, 13.0, 20.0, 40.0], 4), Ok(Discipline::Aqm));
        // Elsewhere, or by chance: most of what is lost meets a full queue.
        assert_eq!(discipline_with_marks(&[20.0; 12], 1), Ok(Discipline::TailDrop));
        assert_eq!(discipline_with_marks(&[20.0; 12], 4), Err(Untold::DelaysVary));
    }

    #[test]
    fn test_a_buffer_has_room_for_less_than_two_packets_more_than_the_last_one_waited_for() {
        let exact = |value| Interval { low: value, value, high: value };
        // Five packets of 1000 bytes wait for four to five of their times.
        let found = held_bytes(exact(4.5 * MS), exact(8e6), 1_000.0);
        assert_eq!((found.low, found.value, found.high), (4_500.0, 5_500.0, 6_500.0));
    }
}
