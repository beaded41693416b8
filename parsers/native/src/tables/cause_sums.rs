//! The table of sums of causes: how long each held a direction back, without the stretches.

use std::io;

use super::column::column;
use super::explained::explained;
use super::rounds::ms;
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::tcp::causes::{Cause, ExplainedDirection, Sign, Stretch};
use crate::pass::Analysis;

pub(super) struct CauseSums {
    /// Row of the first sum of each direction, and the number of rows.
    firsts: Vec<usize>,
}

/// A sum of a direction, with the number of its flow.
pub struct CauseSumRow<'a> {
    flow: u32,
    of: &'a ExplainedDirection,
    sum: CauseSum,
}

/// The stretches of a direction that have the same cause, sign and second cause.
#[derive(Clone, Copy)]
struct CauseSum {
    start_ns: i64,
    duration_ns: u64,
    longest_ns: u64,
    stretches: u32,
    /// The first one, with the largest flight and window of all.
    stretch: Stretch,
}

impl CauseSum {
    /// The sums of a direction, by the time of their first stretch.
    fn all_of(direction: &ExplainedDirection) -> Vec<Self> {
        let mut sums = Vec::<Self>::new();
        for (start_ns, stretch) in direction.stretches() {
            let place = sums.iter().position(|sum| sum.is_like(&stretch)).unwrap_or_else(|| {
                sums.push(Self { start_ns, duration_ns: 0, longest_ns: 0, stretches: 0, stretch });
                sums.len() - 1
            });
            sums[place].add(&stretch, start_ns);
        }
        sums
    }

    fn is_like(&self, stretch: &Stretch) -> bool {
        let Stretch { cause, sign, second, .. } = self.stretch;
        (cause, sign, second) == (stretch.cause, stretch.sign, stretch.second)
    }

    fn add(&mut self, stretch: &Stretch, start_ns: i64) {
        // Times may be at both ends of 64 bits.
        let duration_ns = stretch.end_ns.wrapping_sub(start_ns).cast_unsigned();
        self.duration_ns = self.duration_ns.saturating_add(duration_ns);
        self.longest_ns = self.longest_ns.max(duration_ns);
        self.stretches = self.stretches.saturating_add(1);
        self.start_ns = self.start_ns.min(start_ns);
        self.stretch.flight = self.stretch.flight.max(stretch.flight);
        self.stretch.window = self.stretch.window.max(stretch.window);
    }
}

impl PassTable for CauseSums {
    type Row<'a> = CauseSumRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut firsts = vec![0];
        for of in explained(analysis)? {
            firsts.push(firsts.last().unwrap_or(&0) + CauseSum::all_of(of).len());
        }
        Ok(Self { firsts })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.firsts.last().copied().unwrap_or(0)
    }

    // Sums are made again for each of the few rows of a direction: kept, they would be as large as all stretches of
    // many short flows.
    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<CauseSumRow<'a>> {
        let index = self.firsts.partition_point(|&first| first <= row).checked_sub(1)?;
        let of = explained(shown.analysis).ok()?.get(index)?;
        let sum = *CauseSum::all_of(of).get(row - self.firsts.get(index)?)?;
        Some(CauseSumRow { flow: of.flow + first_flow, of, sum })
    }
}

impl<'a> Row<'a> for CauseSumRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data that were held back").name(|row| Some(row.of.name)),
        column("cause", "", "what held the sender back")
            .one_of(|| Cause::ALL.map(Cause::name).to_vec())
            .name(|row| Some(row.sum.stretch.cause.name())),
        column("sign", "", "the sign that decided, or why the cause is unknown")
            .one_of(|| Sign::ALL.map(Sign::name).to_vec())
            .name(|row| Some(row.sum.stretch.sign.name())),
        column("second_cause", "", "as in causes")
            .null_when("nothing else is near")
            .name(|row| row.sum.stretch.second.map(Cause::name)),
        column("start_ns", "ns", "when the first of these stretches began").i64(|row| Some(row.sum.start_ns)),
        column("duration_ns", "ns", "how long they last together").u64(|row| Some(row.sum.duration_ns)),
        column("longest_ns", "ns", "how long the longest of them lasts").u64(|row| Some(row.sum.longest_ns)),
        column("stretches", "", "how many there are").u32(|row| Some(row.sum.stretches)),
        column("flight_bytes", "bytes", "most data in flight, after a packet was sent")
            .u64(|row| Some(row.sum.stretch.flight.into())),
        column("window_bytes", "bytes", "largest receive window, scaled")
            .null_when("the scale is not known (no SYN), or no data yet")
            .u64(|row| row.sum.stretch.window.map(u64::from)),
        column("base_rtt_ms", "ms", "shortest round-trip time between sender and receiver")
            .null_when("no RTT sample, or the cause is unknown for the whole flow")
            .f64(|row| row.of.base_rtt_ns.map(ms)),
    ]];
}
