//! The plain segments of a batch, flow by flow.
//!
//! What follows a packet depends on the packets of its flow, not on those between: in the order of
//! the file no branch can be predicted as soon as connections mix, and the state of each has to be
//! fetched again. So a batch is decoded, its segments are grouped here, and then followed. Each
//! flow gets its segments in order, and flows are independent: the result is the same.

use crate::flow::Found;
use crate::packet::key::Side;

/// Marks the end of a run.
const NONE: u16 = u16::MAX;

/// The first and the last segment of a flow that wait, by index in the batch.
#[derive(Clone, Copy, Debug)]
struct Run {
    flow: u32,
    first: u16,
    last: u16,
}

impl Run {
    const EMPTY: Self = Self { flow: 0, first: NONE, last: NONE };
}

/// A segment that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The next one of its flow, or [`NONE`].
    next: u16,
    side: Side,
}

/// Segments that wait, grouped by flow.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// At the place of the last bits of the flow's number, or at the next ones that were free.
    runs: Vec<Run>,
    /// Places of the runs, in order of their first segment.
    places: Vec<u16>,
    /// By index in the batch; meaningless for packets that do not wait.
    waiting: Vec<Waiting>,
}

impl Runs {
    /// Prepare for a batch of so many packets.
    pub fn begin(&mut self, packets: usize) {
        if self.runs.len() < 2 * packets {
            self.runs.resize((2 * packets).next_power_of_two(), Run::EMPTY);
        }
        if self.waiting.len() < packets {
            self.waiting.resize(packets, Waiting { next: NONE, side: Side::Low });
        }
    }

    /// Add the segment at `index` of the batch to the run of its flow.
    #[inline(always)]
    pub fn add(&mut self, index: usize, found: Found) {
        let Found { flow, side } = found;
        let places = self.runs.len();
        let mut place = flow as usize % places;
        while self.runs[place].first != NONE && self.runs[place].flow != flow {
            place = (place + 1) % places;
        }
        let run = &mut self.runs[place];
        if run.first == NONE {
            (run.flow, run.first) = (flow, index as u16);
            self.places.push(place as u16);
        } else {
            self.waiting[usize::from(run.last)].next = index as u16;
        }
        run.last = index as u16;
        self.waiting[index] = Waiting { next: NONE, side };
    }

    /// The run of the flow that waits longest but `taken`: the flow, and the index of its first segment.
    #[inline(always)]
    pub fn take(&self, taken: usize) -> Option<(u32, usize)> {
        let run = self.runs[usize::from(*self.places.get(taken)?)];
        Some((run.flow, usize::from(run.first)))
    }

    /// The segment at `index`: the side that sent it, and the index of the next one of its flow.
    #[inline(always)]
    pub fn step(&self, index: usize) -> Option<(Side, usize)> {
        self.waiting.get(index).map(|waiting| (waiting.side, usize::from(waiting.next)))
    }

    /// Forget the runs, which were all taken.
    pub fn clear(&mut self) {
        for place in self.places.drain(..) {
            self.runs[usize::from(place)] = Run::EMPTY;
        }
    }
}
