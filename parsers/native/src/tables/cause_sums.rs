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
    /// By flow, side and time of the first stretch.
    rows: Vec<CauseSum>,
}

/// The stretches of a direction that have the same cause, sign and second cause.
#[derive(Clone, Copy)]
pub struct CauseSum {
    flow: u32,
    direction: &'static str,
    base_rtt_ns: Option<i64>,
    start_ns: i64,
    duration_ns: u64,
    longest_ns: u64,
    stretches: u32,
    /// The first one, with the largest flight and window of all.
    stretch: Stretch,
}

impl CauseSum {
    fn of(stretch: Stretch, start_ns: i64, of: &ExplainedDirection) -> Self {
        let ExplainedDirection { flow, name: direction, base_rtt_ns, .. } = *of;
        let (duration_ns, longest_ns, stretches) = (0, 0, 0);
        Self { flow, direction, base_rtt_ns, start_ns, duration_ns, longest_ns, stretches, stretch }
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
    type Row<'a> = CauseSum;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut rows = Vec::new();
        for of in explained(analysis)? {
            let first = rows.len();
            for (start_ns, stretch) in of.stretches() {
                let like = rows[first..].iter().position(|row: &CauseSum| row.is_like(&stretch));
                let place = first + like.unwrap_or(rows.len() - first);
                if place == rows.len() {
                    rows.push(CauseSum::of(stretch, start_ns, of));
                }
                rows[place].add(&stretch, start_ns);
            }
        }
        Ok(Self { rows })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.rows.len()
    }

    fn row<'a>(&'a self, _: Shown<'a>, row: usize, first_flow: u32) -> Option<CauseSum> {
        let row = *self.rows.get(row)?;
        Some(CauseSum { flow: row.flow + first_flow, ..row })
    }
}

impl<'a> Row<'a> for CauseSum {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data that were held back").name(|row| Some(row.direction)),
        column("cause", "", "what held the sender back")
            .one_of(|| Cause::ALL.map(Cause::name).to_vec())
            .name(|row| Some(row.stretch.cause.name())),
        column("sign", "", "the sign that decided, or why the cause is unknown")
            .one_of(|| Sign::ALL.map(Sign::name).to_vec())
            .name(|row| Some(row.stretch.sign.name())),
        column("second_cause", "", "as in causes")
            .null_when("nothing else is near")
            .name(|row| row.stretch.second.map(Cause::name)),
        column("start_ns", "ns", "when the first of these stretches began").i64(|row| Some(row.start_ns)),
        column("duration_ns", "ns", "how long they last together").u64(|row| Some(row.duration_ns)),
        column("longest_ns", "ns", "how long the longest of them lasts").u64(|row| Some(row.longest_ns)),
        column("stretches", "", "how many there are").u32(|row| Some(row.stretches)),
        column("flight_bytes", "bytes", "most data in flight, after a packet was sent")
            .u64(|row| Some(row.stretch.flight.into())),
        column("window_bytes", "bytes", "largest receive window, scaled")
            .null_when("the scale is not known (no SYN), or no data yet")
            .u64(|row| row.stretch.window.map(u64::from)),
        column("base_rtt_ms", "ms", "shortest round-trip time between sender and receiver")
            .null_when("no RTT sample, or the cause is unknown for the whole flow")
            .f64(|row| row.base_rtt_ns.map(ms)),
    ]];
}
