//! Groups of flows by interval of time: integers that add up over flows, files and machines.
//!
//! Flows cut their counters into intervals ([`crate::flow::intervals`]); each piece is added to the
//! rows of its groups here. Memory grows with the rows only, and their number has a bound.

mod key;

use hashbrown::HashMap;

use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::flow::intervals::{Count, Counts, Duration, IntervalWidth, Piece};
use crate::flow::rtt_statistics::LogHistogram;
use crate::packet::frame::Frame;
use crate::packet::key::Side;
pub use key::{GroupBy, GroupDirection, GroupKey};

/// Rows that are moved at a time when the table grows.
const CHUNK: usize = 1_024;

/// What is grouped, how, and within which bound.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Grouping {
    pub by: GroupBy,
    pub every: IntervalWidth,
    pub max_rows: usize,
}

/// One direction of a group in one interval.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct GroupRow {
    /// Index of the group.
    pub group: u32,
    pub is_in: bool,
    /// Start of the interval, or the first packet if there is only one interval.
    pub start_ns: i64,
    pub end_ns: i64,
    pub counts: Counts,
    /// Round-trip times between the capture and the receiver.
    pub rtt: LogHistogram,
    /// Whether it was released before.
    pub is_released: bool,
    /// Whether it is new or changed since.
    is_changed: bool,
    /// Other durations.
    durations: Option<Box<[LogHistogram; Duration::ALL.len()]>>,
}

/// Rows of one direction of a group, in the order of their intervals.
type Lane = Vec<(i64, u32)>;

#[derive(Debug, Serialize, Deserialize)]
pub struct Groups {
    pub grouping: Grouping,
    indices: HashMap<GroupKey, u32>,
    keys: Vec<GroupKey>,
    lanes: Vec<[Lane; 2]>,
    chunks: Vec<Vec<GroupRow>>,
    rows: usize,
    /// Rows that are new or changed since they were released.
    changed: Vec<u32>,
    /// Rows that begin before it left.
    left_before_ns: i64,
    /// Changes of rows that had left.
    pub late: u64,
    /// Packets that fell into no row because of the limit.
    pub left_out: u64,
}

impl Groups {
    pub fn new(grouping: Grouping) -> Self {
        Self {
            grouping,
            indices: HashMap::new(),
            keys: Vec::new(),
            lanes: Vec::new(),
            chunks: Vec::new(),
            rows: 0,
            changed: Vec::new(),
            left_before_ns: i64::MIN,
            late: 0,
            left_out: 0,
        }
    }

    /// Add what flow `number` counted in an interval.
    pub fn on_piece(&mut self, piece: &Piece, (number, flow): (u32, &Flow)) {
        let direction = flow.direction(piece.side);
        let is_whole = self.grouping.every == IntervalWidth::Whole;
        for (key, way) in self.grouping.by.groups_of((number, flow), piece.side).into_iter().flatten() {
            let Some(row) = self.row_mut(key, way, piece.start_ns) else {
                self.left_out = self.left_out.saturating_add_signed(piece.counts.get(Count::Packets));
                continue;
            };
            row.counts += &piece.counts;
            row.rtt.merge(&piece.rtt);
            if let Some((what, samples)) = &piece.samples
                && let Some(known) = row.durations.get_or_insert_default().get_mut(*what as usize)
            {
                known.merge(samples);
            }
            if is_whole && direction.packets > 0 {
                row.start_ns = row.start_ns.min(direction.start_ns);
                row.end_ns = row.end_ns.max(direction.end_ns);
            }
        }
    }

    /// Change the rows of a packet that `side` of flow `number` sent at `time_ns`.
    pub fn change(
        &mut self,
        (number, flow): (u32, &Flow),
        side: Side,
        time_ns: i64,
        change: impl Fn(&mut GroupRow),
    ) {
        let start_ns = self.grouping.every.start_ns(time_ns);
        for (key, way) in self.grouping.by.groups_of((number, flow), side).into_iter().flatten() {
            if let Some(row) = self.row_mut(key, way, start_ns) {
                change(row);
            }
        }
    }

    /// Change the rows of a packet of no flow: of `keys` at `time_ns`.
    pub fn change_keys(
        &mut self,
        keys: [Option<(GroupKey, GroupDirection)>; 2],
        time_ns: i64,
        change: impl Fn(&mut GroupRow),
    ) {
        let start_ns = self.grouping.every.start_ns(time_ns);
        let is_whole = self.grouping.every == IntervalWidth::Whole;
        for (key, way) in keys.into_iter().flatten() {
            let Some(row) = self.row_mut(key, way, start_ns) else {
                self.left_out = self.left_out.saturating_add(1);
                continue;
            };
            if is_whole {
                row.start_ns = row.start_ns.min(time_ns);
                row.end_ns = row.end_ns.max(time_ns);
            }
            change(row);
        }
    }

    /// Count a frame of 802.11 for its stations, its network or its channel.
    pub fn take_frame(&mut self, frame: &Frame, time_ns: i64) {
        self.change_keys(self.grouping.by.groups_of_frame(frame), time_ns, |row| {
            let counts = &mut row.counts;
            counts.change(Count::WifiFrames, 1);
            counts.change(Count::WifiBytes, frame.bytes.into());
            counts.change(Count::WifiRetries, frame.is_retry.into());
            if let Some(kbps) = frame.radio.rate_kbps {
                counts.change(Count::WifiTimedFrames, 1);
                counts
                    .change(Count::WifiAirtimeNs, i64::from(frame.bytes) * 8_000_000 / i64::from(kbps.get()));
            }
            if let Some(dbm) = frame.radio.signal_dbm {
                counts.change(Count::WifiSignalSamples, 1);
                counts.change(Count::WifiSignalSum, dbm.into());
            }
        });
    }

    /// Give the rows of `side` of a flow whose intervals share time with a stretch: by lane, each with its start.
    pub fn each_overlap(
        &self,
        (number, flow): (u32, &Flow),
        side: Side,
        (start_ns, end_ns): (i64, i64),
        mut give: impl FnMut(&[(i64, u32)]),
    ) {
        if end_ns <= start_ns {
            return;
        }
        for (key, way) in self.grouping.by.groups_of((number, flow), side).into_iter().flatten() {
            let lane =
                self.indices.get(&key).and_then(|&group| self.lanes.get(group as usize)?.get(way as usize));
            let Some(lane) = lane else { continue };
            let IntervalWidth::Ns(width) = self.grouping.every else {
                give(lane);
                continue;
            };
            let first = lane.partition_point(|&(from_ns, _)| from_ns.saturating_add(width) <= start_ns);
            let rest = &lane[first..];
            give(&rest[..rest.partition_point(|&(from_ns, _)| from_ns < end_ns)]);
        }
    }

    /// The rows of each direction of each group in the order of their intervals.
    pub fn lanes(&self) -> impl Iterator<Item = &[(i64, u32)]> {
        self.lanes.iter().flatten().map(Vec::as_slice)
    }

    fn row_mut(&mut self, key: GroupKey, way: GroupDirection, start_ns: i64) -> Option<&mut GroupRow> {
        if start_ns < self.left_before_ns {
            self.late += 1;
            return None;
        }
        let group = match self.indices.get(&key) {
            Some(&group) => group,
            None if self.rows >= self.grouping.max_rows => return None,
            None => self.open(key),
        };
        let lane = &mut self.lanes.get_mut(group as usize)?[way as usize];
        // Mostly the last one.
        let place = match lane.last() {
            Some(last) if last.0 == start_ns => Ok(lane.len() - 1),
            Some(last) if last.0 < start_ns => Err(lane.len()),
            _ => lane.binary_search_by_key(&start_ns, |entry| entry.0),
        };
        let number = match place {
            Ok(place) => lane[place].1,
            Err(_) if self.rows >= self.grouping.max_rows => return None,
            Err(place) => {
                let number = self.rows as u32;
                lane.insert(place, (start_ns, number));
                if self.rows.is_multiple_of(CHUNK) {
                    self.chunks.push(Vec::with_capacity(CHUNK));
                }
                let (start_ns, end_ns) = match self.grouping.every {
                    IntervalWidth::Whole => (i64::MAX, i64::MIN),
                    IntervalWidth::Ns(width) => (start_ns, start_ns.saturating_add(width)),
                };
                let is_in = way == GroupDirection::In;
                let row = GroupRow { group, is_in, start_ns, end_ns, ..GroupRow::default() };
                self.chunks.last_mut()?.push(row);
                self.rows += 1;
                number
            }
        };
        let row = self.chunks.get_mut(number as usize / CHUNK)?.get_mut(number as usize % CHUNK)?;
        if !std::mem::replace(&mut row.is_changed, true) {
            self.changed.push(number);
        }
        Some(row)
    }

    /// The rows that begin before `before_ns` and are new or changed since they were released, by interval,
    /// group and direction. Those that remain are released once they change.
    pub fn released(&mut self, before_ns: i64) -> Vec<u32> {
        let changed = std::mem::take(&mut self.changed);
        let is_before = |&number: &u32| self.row(number).is_some_and(|row| row.start_ns < before_ns);
        let (mut released, changed): (Vec<u32>, Vec<u32>) = changed.into_iter().partition(is_before);
        self.changed = changed;
        released.sort_by_key(|&number| self.row(number).map(|row| (row.start_ns, self.key(row), row.is_in)));
        released
    }

    /// Note that these rows were released.
    pub fn note_released(&mut self, numbers: &[u32]) {
        for &number in numbers {
            let chunk = self.chunks.get_mut(number as usize / CHUNK);
            if let Some(row) = chunk.and_then(|chunk| chunk.get_mut(number as usize % CHUNK)) {
                (row.is_released, row.is_changed) = (true, false);
            }
        }
    }

    /// If there are more than twice `most` rows, let the oldest go that begin before `before_ns` and were released,
    /// interval by interval, until `most` are left.
    pub fn leave(&mut self, before_ns: i64, most: usize) {
        if self.rows <= most.saturating_mul(2) {
            return;
        }
        let mut starts: Vec<i64> = self.chunks.iter().flatten().map(|row| row.start_ns).collect();
        starts.sort_unstable();
        let kept_from_ns = starts[starts.len() - most.max(1)].min(before_ns);
        let old = std::mem::replace(self, Self::new(self.grouping));
        (self.late, self.left_out) = (old.late, old.left_out);
        for row in old.chunks.into_iter().flatten().filter(|row| row.start_ns >= kept_from_ns) {
            let key = old.keys[row.group as usize];
            let way = if row.is_in { GroupDirection::In } else { GroupDirection::Out };
            if let Some(kept) = self.row_mut(key, way, row.start_ns) {
                *kept = GroupRow { group: kept.group, ..row };
            }
        }
        let mut changed = std::mem::take(&mut self.changed);
        changed.retain(|&number| self.row(number).is_some_and(|row| row.is_changed));
        self.changed = changed;
        self.left_before_ns = kept_from_ns;
    }

    fn open(&mut self, key: GroupKey) -> u32 {
        let group = self.keys.len() as u32;
        self.indices.insert(key, group);
        self.keys.push(key);
        self.lanes.push([Lane::new(), Lane::new()]);
        group
    }

    /// Whether what was read back from a checkpoint fits together.
    pub fn is_sound(&self) -> bool {
        let rows = |lane: &Lane| lane.iter().all(|&(_, number)| self.row(number).is_some());
        let (last, whole) =
            self.chunks.split_last().map_or((0, &[][..]), |(last, whole)| (last.len(), whole));
        whole.iter().all(|chunk| chunk.len() == CHUNK)
            && self.rows == CHUNK * whole.len() + last
            && self.lanes.len() == self.keys.len()
            && self.lanes.iter().flatten().all(rows)
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn key(&self, row: &GroupRow) -> GroupKey {
        self.keys.get(row.group as usize).copied().unwrap_or(GroupKey::Unknown)
    }

    pub fn row(&self, number: u32) -> Option<&GroupRow> {
        self.chunks.get(number as usize / CHUNK)?.get(number as usize % CHUNK)
    }

    /// The numbers of all rows, by group, interval and direction.
    pub fn in_order(&self) -> Vec<u32> {
        let mut groups: Vec<(GroupKey, &[Lane; 2])> = self.keys.iter().copied().zip(&self.lanes).collect();
        groups.sort_unstable_by_key(|(key, _)| *key);
        let mut numbers = Vec::with_capacity(self.rows);
        for (_, [out, back]) in groups {
            let mut back = back.iter().peekable();
            for &(start_ns, number) in out {
                while let Some((_, earlier)) = back.next_if(|entry| entry.0 < start_ns) {
                    numbers.push(*earlier);
                }
                numbers.push(number);
            }
            numbers.extend(back.map(|entry| entry.1));
        }
        numbers
    }
}

impl GroupRow {
    /// Add a duration; one that is negative is none.
    pub fn add_duration(&mut self, what: Duration, duration_ns: i64) {
        if let (Ok(duration_ns), Some(samples)) =
            (u64::try_from(duration_ns), self.durations.get_or_insert_default().get_mut(what as usize))
        {
            samples.add(duration_ns);
        }
    }

    /// Samples of a duration, if there are any.
    pub fn durations(&self, what: Duration) -> Option<&LogHistogram> {
        self.durations.as_ref()?.get(what as usize).filter(|samples| !samples.is_empty())
    }
}
