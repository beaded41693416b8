//! What limits the congestion window of a sender, as round-trip times, losses and marks show it.

use std::ops::Range;

use super::cause::{Cause, Sign};
use super::growth::{FULL_ROUNDS, GROWTH};
use super::interval::Interval;
use super::pace::Clock;
use super::path::{Cut, CutReason, Lap, Path, is_longer};
use super::policer::policer_rate;

/// Round trips, and time, over which a rate is taken: shorter ones depend on where segments fall.
const BLOCK_LAPS: usize = 8;
const BLOCK_NS: i64 = 500_000_000;
/// The capacity: this quantile of the rates of all blocks.
const CAPACITY_QUANTILE: f64 = 0.9;
/// With a queue, a flow that is alone has the rate of the path. A rate this far below the capacity, or
/// rates that vary so much over the blocks around, are those of a shared bottleneck.
const SHARED: f64 = 0.75;
const UNSTEADY: f64 = 0.2;
const AROUND: usize = 6;
/// Alone, a flow gets the same rate whatever it has in the queue; beside others its rate grows with its part
/// of the queue: by this power of its flight, and as closely (correlation), over so many laps with a queue.
const OF_FLIGHT: f64 = 0.3;
const AS_CLOSELY: f64 = 0.6;
const OF_FLIGHT_LAPS: f64 = 16.0;
/// Rates of blocks are the same within this part (quartiles).
const SAME: f64 = 0.01;
/// Least spread of the logarithm of a flight that tells.
const VARIES: f64 = 0.03;
/// A window that is not this much larger than so many blocks, and so long, before does not grow back from a loss:
/// BBR, Vegas or a receiver hold it where it is.
const GROWING: f64 = 1.02;
/// The same of a sender that paces: BBR probes with 5/4 of its rate (draft-ietf-ccwg-bbr section 5.3.3.6).
const PROBING: f64 = 1.3;
const STANDING_BLOCKS: usize = 4;
const STANDING_NS: i64 = 4_000_000_000;
/// A rate within this part of the capacity is steady.
const STEADY: f64 = 0.85;

/// A cause, the sign that decided, and what else it may be.
pub type Found = (Cause, Sign, Option<Cause>);

/// Some laps in a row.
struct Block {
    end_ns: i64,
    /// Bytes in a second.
    rate: f64,
    has_queue: bool,
    /// Whether losses were repaired for most of it.
    is_repair: bool,
    /// Shortest round-trip time.
    rtt_ns: i64,
    /// Its laps, and whether most of them were paced.
    laps: Range<usize>,
    is_paced: bool,
    /// Most data in flight.
    flight: f64,
    of_flight: Moments,
    /// Whether the rate grows with the part of the queue: in the blocks around, or in all if those do not tell.
    competes: bool,
}

/// Sums over laps with a queue of the logarithms of flight (x) and rate (y).
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Moments {
    /// Of laps with a queue, which round-trip times above a base show.
    fn of(laps: &[Lap], base_ns: i64) -> Self {
        let is_told = |lap: &&Lap| lap.bytes > 0 && !lap.is_repairing && is_longer(lap.rtt_ns, base_ns);
        let told = laps.iter().filter(is_told).filter_map(|lap| Some((lap.flight?.0, lap.rate())));
        told.fold(Self::default(), |sums, (flight, rate)| {
            let (x, y) = (f64::from(flight.max(1)).ln(), rate.ln());
            sums.plus(&Self { count: 1.0, x, y, xx: x * x, xy: x * y, yy: y * y })
        })
    }

    fn sum(blocks: &[Block]) -> Self {
        blocks.iter().fold(Self::default(), |sums, block| sums.plus(&block.of_flight))
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            x: self.x + other.x,
            y: self.y + other.y,
            xx: self.xx + other.xx,
            xy: self.xy + other.xy,
            yy: self.yy + other.yy,
        }
    }

    /// By which power of the flight the rate grows; None if the flight hardly varies, or if they seldom agree.
    fn power(&self) -> Option<f64> {
        let about = |square: f64, one: f64, other: f64| square - one * other / self.count;
        let (xx, xy, yy) =
            (about(self.xx, self.x, self.x), about(self.xy, self.x, self.y), about(self.yy, self.y, self.y));
        let varies = self.count >= OF_FLIGHT_LAPS && xx > VARIES * VARIES * self.count;
        let power = xy / xx;
        (varies && (power < OF_FLIGHT / 2.0 || xy > AS_CLOSELY * (xx * yy).sqrt())).then_some(power)
    }
}

/// The path of a direction, judged.
pub struct Network<'a> {
    path: &'a Path,
    /// When slow start ended.
    exit_ns: i64,
    capacity: f64,
    blocks: Vec<Block>,
    /// What each cut of the window means.
    cuts: Vec<Found>,
}

impl<'a> Network<'a> {
    pub fn of(path: &'a Path) -> Self {
        let first_cut_ns = path.cuts.first().map_or(i64::MAX, |cut| cut.time_ns);
        let exit_ns = first_cut_ns.min(full_at(&path.laps).unwrap_or(i64::MAX));
        let mut network = Self { path, exit_ns, capacity: 0.0, blocks: Vec::new(), cuts: Vec::new() };
        network.blocks = network.blocks();
        network.find_competition();
        network.capacity =
            quantile(network.blocks.iter().map(|block| block.rate).collect(), CAPACITY_QUANTILE);
        let is_policed = policer_rate(path).is_some();
        let loses_at_rises = path.loses_at_rises();
        let has_queue = |cut: &Cut| loses_at_rises || path.has_queue(cut.rtt_ns);
        network.cuts = path.cuts.iter().map(|cut| network.meaning(cut, is_policed, has_queue(cut))).collect();
        network
    }

    fn meaning(&self, cut: &Cut, is_policed: bool, has_queue: bool) -> Found {
        match cut.reason {
            CutReason::Mark => (Cause::Mark, Sign::EchoedMark, Some(Cause::Bottleneck)),
            _ if is_policed => (Cause::Policer, Sign::EqualRates, Some(Cause::Loss)),
            _ if has_queue => {
                let index = self.blocks.partition_point(|block| block.end_ns <= cut.time_ns);
                let competes = self.blocks.get(index).is_some_and(|block| block.competes);
                let is_later = cut.time_ns > self.exit_ns;
                let is_shared = competes || (is_later && self.rate_before(cut) < SHARED * self.capacity);
                let cause = if is_shared { Cause::SharedBottleneck } else { Cause::Bottleneck };
                (cause, Sign::LossWithQueue, Some(Cause::Loss))
            }
            _ if self.path.hides_queues => (Cause::Unknown, Sign::NoSign, Some(Cause::Loss)),
            _ => (Cause::Loss, Sign::LossWithoutQueue, Some(Cause::Policer)),
        }
    }

    /// Highest rate of the laps before a cut.
    fn rate_before(&self, cut: &Cut) -> f64 {
        let last = self.path.laps.partition_point(|lap| lap.end_ns <= cut.time_ns);
        let laps = self.path.laps.get(last.saturating_sub(FULL_ROUNDS as usize)..last).unwrap_or_default();
        laps.iter().map(Lap::rate).fold(0.0, f64::max)
    }

    /// What the last cut before a time means.
    pub fn cut_before(&self, time_ns: i64) -> Option<Cause> {
        let count = self.path.cuts.partition_point(|cut| cut.time_ns < time_ns);
        Some(self.cuts.get(count.checked_sub(1)?)?.0).filter(|&cause| cause != Cause::Unknown)
    }

    /// Whether nothing reduced the window in a stretch of time.
    pub fn is_quiet(&self, since_ns: i64, until_ns: i64) -> bool {
        let before = |time_ns| self.path.cuts.partition_point(|cut| cut.time_ns < time_ns);
        before(since_ns) == before(until_ns)
    }

    /// Shortest round-trip time around a time.
    pub fn rtt_at(&self, time_ns: i64) -> Option<i64> {
        let index = self.path.laps.partition_point(|lap| lap.end_ns < time_ns);
        let lap = self.path.laps.get(index).or(self.path.laps.last())?;
        Some(lap.rtt_ns)
    }

    /// What limits the window at a time, and until when.
    pub fn limit_at(&self, time_ns: i64) -> (i64, Found) {
        let until_ns = if time_ns < self.exit_ns {
            let (stands_ns, grows_ns) =
                self.path.growth.standing_after(time_ns).unwrap_or((i64::MAX, i64::MAX));
            if time_ns < stands_ns {
                return (self.exit_ns.min(stands_ns), (Cause::SlowStart, Sign::NoCutYet, None));
            }
            grows_ns.min(self.exit_ns)
        } else {
            i64::MAX
        };
        let index = self.blocks.partition_point(|block| block.end_ns <= time_ns);
        let Some(block) = self.blocks.get(index) else {
            return (until_ns, self.last_cut(time_ns).unwrap_or((Cause::Unknown, Sign::NoSign, None)));
        };
        let cuts = self.path.cuts.partition_point(|cut| cut.time_ns <= time_ns);
        let next_cut_ns = self.path.cuts.get(cuts).map_or(i64::MAX, |cut| cut.time_ns);
        (until_ns.min(block.end_ns).min(next_cut_ns), self.limit_in(index, time_ns))
    }

    fn last_cut(&self, time_ns: i64) -> Option<Found> {
        let count = self.path.cuts.partition_point(|cut| cut.time_ns <= time_ns);
        self.cuts.get(count.checked_sub(1)?).copied()
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut rest = self.path.laps.as_slice();
        while let Some(lap) = rest.first() {
            let begin_ns = lap.start_ns();
            let is_enough = |(index, lap): (usize, &Lap)| {
                index + 1 >= BLOCK_LAPS && lap.end_ns.saturating_sub(begin_ns) >= BLOCK_NS
            };
            let count = 1 + rest.iter().enumerate().position(is_enough).unwrap_or(rest.len() - 1);
            let (laps, after) = rest.split_at(count);
            rest = after;
            let first = blocks.last().map_or(0, |block: &Block| block.laps.end);
            let bytes: f64 = laps.iter().map(|lap| f64::from(lap.bytes)).sum();
            let ns: f64 = laps.iter().map(|lap| lap.duration_ns as f64).sum();
            let repair_ns: f64 =
                laps.iter().filter(|lap| lap.is_repairing).map(|lap| lap.duration_ns as f64).sum();
            let queued = laps.iter().filter(|lap| self.path.has_queue(lap.rtt_ns)).count();
            let paced = laps.iter().filter(|lap| matches!(lap.clock, Some(Clock::Pace(_)))).count();
            let end_ns = laps.last().map_or(0, |lap| lap.end_ns);
            let flight = laps.iter().filter_map(|lap| lap.flight).max().map_or(0.0, |most| f64::from(most.0));
            blocks.push(Block {
                end_ns,
                rate: bytes * 1e9 / ns.max(1.0),
                has_queue: 2 * queued > count,
                is_repair: 2.0 * repair_ns > ns,
                rtt_ns: laps.iter().map(|lap| lap.rtt_ns).min().unwrap_or(0),
                laps: first..first + count,
                is_paced: 2 * paced > count,
                flight,
                of_flight: Moments::default(),
                competes: false,
            });
        }
        blocks
    }

    /// Whether rates with a queue are not those of a flow that is alone, around a block.
    fn is_shared(&self, index: usize) -> bool {
        let rates: Vec<f64> = self
            .around(index)
            .iter()
            .filter(|block| block.has_queue && !block.is_repair)
            .map(|block| block.rate)
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        rates.len() > 1 && (mean < SHARED * self.capacity || spread(&rates) > UNSTEADY)
    }

    fn find_competition(&mut self) {
        for index in 0..self.blocks.len() {
            let base_ns = self.base_around(index);
            let laps = self.path.laps.get(self.blocks[index].laps.clone()).unwrap_or_default();
            self.blocks[index].of_flight = Moments::of(laps, base_ns);
        }
        let whole = Moments::sum(&self.blocks).power();
        for index in 0..self.blocks.len() {
            let around = self.around(index);
            let power = Moments::sum(around).power().or(whole);
            self.blocks[index].competes = power.is_some_and(|power| power > OF_FLIGHT) && varies(around);
        }
    }

    /// The shortest round-trip time around a block: of a path that became longer, the one since then.
    fn base_around(&self, index: usize) -> i64 {
        let shortest = |blocks: &[Block]| blocks.iter().map(|block| block.rtt_ns).min().unwrap_or(0);
        let (before, after) = (&self.blocks[..=index], &self.blocks[index..]);
        let before = &before[before.len().saturating_sub(AROUND)..];
        shortest(before).max(shortest(&after[..after.len().min(AROUND)]))
    }

    /// Blocks around one.
    fn around(&self, index: usize) -> &[Block] {
        let until = (index + AROUND).min(self.blocks.len());
        self.blocks.get(index.saturating_sub(AROUND)..until).unwrap_or_default()
    }

    /// Whether its window has stood for long since the last cut.
    fn stands(&self, index: usize, time_ns: i64) -> bool {
        let long_ago = time_ns.saturating_sub(STANDING_NS);
        let last = self.blocks.partition_point(|block| block.end_ns <= long_ago);
        let before = last.min(index.saturating_sub(STANDING_BLOCKS - 1)).checked_sub(1);
        let (Some(before), Some(block)) =
            (before.and_then(|before| self.blocks.get(before)), self.blocks.get(index))
        else {
            return false;
        };
        let growing = if block.is_paced { PROBING } else { GROWING };
        self.is_quiet(before.end_ns, time_ns) && block.flight < growing * before.flight
    }

    fn limit_in(&self, index: usize, time_ns: i64) -> Found {
        let block = self.blocks.get(index);
        let has_queue = block.is_some_and(|block| block.has_queue);
        let rate = block.map_or(0.0, |block| block.rate);
        let shared = |sign| (Cause::SharedBottleneck, sign, Some(Cause::Bottleneck));
        let alone = |sign| (Cause::Bottleneck, sign, Some(Cause::SharedBottleneck));
        let is_paced = block.is_some_and(|block| block.is_paced);
        let may_stand = |cut: &Found| cut.0 == Cause::Loss || is_paced || (!has_queue && cut.0.is_of_queue());
        let cut = self.last_cut(time_ns).filter(|cut| !may_stand(cut) || !self.stands(index, time_ns));
        match cut {
            // Growing back from a cut bears the cut's cause.
            Some(cut) if matches!(cut.0, Cause::Mark | Cause::Policer) => cut,
            Some(cut) if !has_queue && cut.0 == Cause::Loss => cut,
            _ if block.is_some_and(|block| block.competes) => shared(Sign::RateOfFlight),
            Some(cut) if !has_queue => cut,
            _ if has_queue && self.is_shared(index) => shared(Sign::RateBelowCapacity),
            _ if has_queue => alone(Sign::QueueGrows),
            _ if rate >= STEADY * self.capacity => alone(Sign::SteadyRate),
            _ => (Cause::Unknown, Sign::NoSign, None),
        }
    }
}

/// When the rate had not grown for some laps.
fn full_at(laps: &[Lap]) -> Option<i64> {
    let (mut most, mut stalled) = (0.0_f64, 0);
    for lap in laps {
        if lap.rate() >= GROWTH * most {
            (most, stalled) = (lap.rate(), 0);
            continue;
        }
        stalled += 1;
        if stalled == FULL_ROUNDS {
            return Some(lap.end_ns);
        }
    }
    None
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// Whether rates of blocks with a queue differ.
fn varies(blocks: &[Block]) -> bool {
    let mut rates: Vec<f64> = blocks.iter().filter(|block| block.has_queue).map(|block| block.rate).collect();
    rates.sort_by(f64::total_cmp);
    Interval::of_quartiles(&rates).is_none_or(|rate| rate.width() > SAME)
}

/// Coefficient of variation.
fn spread(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    variance.sqrt() / mean
}
