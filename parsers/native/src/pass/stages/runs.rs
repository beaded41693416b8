//! The plain segments of some batches, flow by flow.
//!
//! What follows a packet depends on the packets of its flow, not on those between: in the order of
//! the file no branch can be predicted as soon as connections mix, and the state of each has to be
//! fetched again. So packets are decoded, segments are grouped here, and then followed, by several
//! threads at a time. Each flow gets its segments in order, and flows are independent: the result is
//! the same.

use crate::flow::Found;
use crate::packet::key::Side;

/// Marks the end of a run.
const NONE: u16 = u16::MAX;

/// The flow of a place that was not taken.
const NO_FLOW: u32 = u32::MAX;

/// The first and the last segment of a flow that wait, by index.
#[derive(Clone, Copy, Debug)]
struct Run {
    flow: u32,
    first: u16,
    last: u16,
    /// Segments that wait, or waited.
    segments: u16,
}

impl Run {
    const EMPTY: Self = Self { flow: NO_FLOW, first: NONE, last: NONE, segments: 0 };
}

/// A segment that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The next one of its flow, or [`NONE`].
    next: u16,
    side: Side,
}

/// Where the runs of a group of flows are, in the order of the first segment.
#[derive(Clone, Debug, Default)]
pub(in crate::pass) struct RunsOfGroup(Vec<u16>);

impl RunsOfGroup {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Segments that wait, grouped by flow. An index is one among all packets of the batches.
#[derive(Debug, Default)]
pub(in crate::pass) struct Runs {
    /// At the place of the last bits of the flow's number, or at the next ones that were free.
    runs: Vec<Run>,
    /// By place of the group.
    groups: Vec<RunsOfGroup>,
    /// By index; meaningless for packets that do not wait.
    waiting: Vec<Waiting>,
    /// How many runs there are.
    count: usize,
}

impl Runs {
    /// The most packets.
    pub const MOST: usize = 1 << 15;

    /// Prepare for so many packets, at most [`Runs::MOST`].
    pub fn begin(&mut self, packets: usize) {
        if self.runs.len() < 2 * packets {
            self.runs.resize((2 * packets).next_power_of_two(), Run::EMPTY);
        }
        if self.waiting.len() < packets {
            self.waiting.resize(packets, Waiting { next: NONE, side: Side::Low });
        }
    }

    /// Whether no segment waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// By place of the group.
    pub fn groups(&self) -> &[RunsOfGroup] {
        &self.groups
    }

    /// The place of the run of a flow, or the one where it would be.
    #[inline(always)]
    fn place(&self, flow: u32) -> usize {
        let places = self.runs.len();
        let mut place = flow as usize % places;
        while self.runs[place].flow != flow && self.runs[place].flow != NO_FLOW {
            place = (place + 1) % places;
        }
        place
    }

    /// Add the segment at `index` to the run of its flow, which is in the group at place `group`.
    #[inline(always)]
    pub fn add(&mut self, index: usize, found: Found, group: impl FnOnce() -> usize) {
        let Found { flow, side } = found;
        let place = self.place(flow);
        if self.runs[place].flow == NO_FLOW {
            self.begin_run(place, flow, group());
        }
        let run = &mut self.runs[place];
        run.segments += 1;
        if run.first == NONE {
            run.first = index as u16;
        } else {
            self.waiting[usize::from(run.last)].next = index as u16;
        }
        run.last = index as u16;
        self.waiting[index] = Waiting { next: NONE, side };
    }

    #[inline(never)]
    fn begin_run(&mut self, place: usize, flow: u32, group: usize) {
        if group >= self.groups.len() {
            self.groups.resize(group + 1, RunsOfGroup::default());
        }
        self.groups[group].0.push(place as u16);
        self.runs[place].flow = flow;
        self.count += 1;
    }

    /// The segments of a flow that wait, and do not from now on.
    pub fn take(&mut self, flow: u32) -> Segments<'_> {
        let mut next = NONE;
        if !self.is_empty() {
            let place = self.place(flow);
            next = std::mem::replace(&mut self.runs[place].first, NONE);
        }
        Segments { waiting: &self.waiting, next }
    }

    /// How many segments of the group at place `group` wait, or waited before those of their flow were taken alone.
    pub fn segments(&self, group: usize) -> usize {
        let places = self.groups.get(group).into_iter().flat_map(|group| &group.0);
        places.map(|&place| usize::from(self.runs[usize::from(place)].segments)).sum()
    }

    /// The flows of a group, and the segments of each that wait.
    pub fn of_group<'a>(&'a self, group: &'a RunsOfGroup) -> impl Iterator<Item = (u32, Segments<'a>)> {
        group.0.iter().map(|&place| {
            let run = self.runs[usize::from(place)];
            (run.flow, Segments { waiting: &self.waiting, next: run.first })
        })
    }

    /// Forget all, after all were followed.
    pub fn clear(&mut self) {
        for group in &mut self.groups {
            for place in group.0.drain(..) {
                self.runs[usize::from(place)] = Run::EMPTY;
            }
        }
        self.count = 0;
    }
}

/// The segments of a flow that wait: the index of each, and the side that sent it.
pub(in crate::pass) struct Segments<'a> {
    waiting: &'a [Waiting],
    next: u16,
}

impl Iterator for Segments<'_> {
    type Item = (usize, Side);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, Side)> {
        let index = usize::from(self.next);
        let waiting = self.waiting.get(index)?;
        self.next = waiting.next;
        Some((index, waiting.side))
    }
}
