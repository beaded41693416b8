//! What is drawn of many points in one column of pixels, level by level.

use super::columns::{Columns, Tile};
use super::points::{Content, Point};
use crate::flow::tcp::classify::class::{Class, ClassCounts};
use crate::packet::key::Side;

/// Points that a summary of the lowest level sums up, and summaries that one of a higher level does.
pub(super) const POINTS: u32 = 32;
const SUMMARIES: u32 = 8;
/// Summaries in a tile: the highest level has one.
const IN_TILE: usize = 4_096;
/// More levels than a capture of 2^63 packets has.
const MOST_LEVELS: usize = 20;

/// From the lowest to the highest sequence number, if there is any.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: i64,
    high: i64,
}

impl Range {
    const EMPTY: Self = Self { low: i64::MAX, high: i64::MIN };

    fn include(&mut self, low: i64, high: i64) {
        self.low = self.low.min(low);
        self.high = self.high.max(high);
    }

    fn known(self) -> Option<Self> {
        (self.low <= self.high).then_some(self)
    }
}

/// What some points have in common.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    pub points: u32,
    start_ns: i64,
    end_ns: i64,
    first_packet: u64,
    /// Segments, those with a class, acknowledgements, edges of the receive window, SACK blocks, bytes in flight, and
    /// round-trip times in ns.
    ranges: [Range; 7],
    zero_windows: u32,
    classes: ClassCounts,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            points: 0,
            start_ns: i64::MAX,
            end_ns: i64::MIN,
            first_packet: u64::MAX,
            ranges: [Range::EMPTY; 7],
            zero_windows: 0,
            classes: ClassCounts::default(),
        }
    }
}

impl Summary {
    pub fn add(&mut self, point: &Point) {
        self.points += 1;
        self.start_ns = self.start_ns.min(point.time_ns);
        self.end_ns = self.end_ns.max(point.time_ns);
        self.first_packet = self.first_packet.min(point.packet);
        let [data, classified, acknowledged, edges, selectively, flight, rtt] = &mut self.ranges;
        flight.include(point.flight_bytes, point.flight_bytes);
        match &point.content {
            &Content::Segment { position, bytes, class } => {
                let end = position.saturating_add(bytes.into());
                data.include(position, end);
                if let Some(class) = class {
                    classified.include(position, end);
                    self.classes.add(class, 1);
                }
            }
            Content::Acknowledgement { position, window, sacked, rtt_ns } => {
                acknowledged.include(*position, *position);
                if let Some(window) = *window {
                    let edge = position.saturating_add(window.into());
                    edges.include(edge, edge);
                    self.zero_windows += u32::from(window == 0);
                }
                sacked.iter().for_each(|&(start, end)| selectively.include(start, end));
                rtt_ns.iter().for_each(|&rtt_ns| rtt.include(rtt_ns, rtt_ns));
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.points = self.points.saturating_add(other.points);
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.first_packet = self.first_packet.min(other.first_packet);
        for (range, more) in self.ranges.iter_mut().zip(other.ranges) {
            range.include(more.low, more.high);
        }
        self.zero_windows = self.zero_windows.saturating_add(other.zero_windows);
        for class in Class::ALL {
            self.classes.add(class, other.classes.of(class));
        }
    }
}

/// One level: summaries that are in no tile yet, and the one above them that is not complete.
#[derive(Debug, Default)]
struct Level {
    waiting: Vec<Summary>,
    above: Summary,
    merged: u32,
    /// Tiles that were written.
    pub tiles: usize,
}

impl Level {
    /// Add a summary; return a tile that is full, and the summary above that is complete.
    fn add(&mut self, summary: Summary) -> (Option<Vec<Summary>>, Option<Summary>) {
        self.above.merge(&summary);
        self.merged += 1;
        self.waiting.push(summary);
        let is_full = self.waiting.len() == IN_TILE;
        let full = is_full.then(|| std::mem::take(&mut self.waiting));
        (full, if self.merged == SUMMARIES { self.complete() } else { None })
    }

    fn complete(&mut self) -> Option<Summary> {
        let merged = std::mem::take(&mut self.merged);
        (merged > 0).then(|| std::mem::take(&mut self.above))
    }
}

/// All levels above the points.
#[derive(Debug, Default)]
pub(super) struct Levels(Vec<Level>);

impl Levels {
    /// Add the next summary of the lowest level, and give the tiles that are full to `write`.
    pub fn add(&mut self, summary: Summary, side: Side, write: &mut Vec<Tile>) {
        self.add_at(0, summary, side, write);
    }

    fn add_at(&mut self, lowest: usize, summary: Summary, side: Side, write: &mut Vec<Tile>) {
        let mut next = summary;
        for at in lowest..MOST_LEVELS {
            if at == self.0.len() {
                self.0.push(Level::default());
            }
            let level = &mut self.0[at];
            let (full, above) = level.add(next);
            if let Some(full) = full {
                level.tiles += 1;
                write.push(tile(&full, at as u32 + 1, side));
            }
            let Some(above) = above else { return };
            next = above;
        }
    }

    /// Write what waits. Levels above the first that is one tile are left out.
    pub fn finish(&mut self, side: Side, write: &mut Vec<Tile>) {
        for at in 0..MOST_LEVELS {
            let Some(level) = self.0.get_mut(at) else { return };
            if !level.waiting.is_empty() {
                level.tiles += 1;
                write.push(tile(&std::mem::take(&mut level.waiting), at as u32 + 1, side));
            }
            if level.tiles <= 1 {
                write.retain(|tile| tile.level as usize <= at + 1);
                return;
            }
            if let Some(above) = level.complete() {
                self.add_at(at + 1, above, side, write);
            }
        }
    }
}

/// The tile of `summaries`, of which there is at least one.
fn tile(summaries: &[Summary], level: u32, side: Side) -> Tile {
    let all = || summaries.iter();
    let start_ns = all().map(|one| one.start_ns).min().unwrap_or(0);
    let end_ns = all().map(|one| one.end_ns).max().unwrap_or(0);
    let mut columns = Columns::new(start_ns, all().flat_map(|one| [one.start_ns, one.end_ns]));
    columns.numbers(all().map(|one| one.points.into()));
    columns.times(all().map(|one| one.start_ns));
    columns.durations(all().map(|one| one.end_ns.saturating_sub(one.start_ns)));
    columns.steps(all().map(|one| one.first_packet as i64));
    for kind in 0..Summary::default().ranges.len() {
        let known = || all().filter_map(|one| one.ranges[kind].known());
        columns.raw(all().map(|one| u8::from(one.ranges[kind].known().is_some())));
        columns.steps(known().map(|range| range.low));
        columns.numbers(known().map(|range| range.high.saturating_sub(range.low).unsigned_abs()));
    }
    columns.numbers(all().map(|one| one.zero_windows.into()));
    for class in Class::ALL {
        columns.numbers(all().map(|one| one.classes.of(class).into()));
    }
    Tile { side, level, count: summaries.len() as u32, start_ns, end_ns, deflated: columns.deflated() }
}
