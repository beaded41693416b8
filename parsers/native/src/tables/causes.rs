//! The table of causes: why the senders of TCP connections were no faster.

use std::io;

use super::column::column;
use super::explained::explained;
use super::rounds::ms;
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::tcp::causes::{Cause, ExplainedDirection, Sign, Stretch};
use crate::pass::Analysis;

pub(super) struct Causes {
    /// Row of the first stretch of each direction, and the number of rows.
    firsts: Vec<usize>,
}

/// A stretch of a direction, with the number of its flow.
pub struct CauseRow<'a> {
    flow: u32,
    of: &'a ExplainedDirection,
    start_ns: i64,
    stretch: Stretch,
}

impl PassTable for Causes {
    type Row<'a> = CauseRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut firsts = vec![0];
        for of in explained(analysis)? {
            firsts.push(firsts.last().unwrap_or(&0) + of.count());
        }
        Ok(Self { firsts })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.firsts.last().copied().unwrap_or(0)
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<CauseRow<'a>> {
        let index = self.firsts.partition_point(|&first| first <= row).checked_sub(1)?;
        let of = explained(shown.analysis).ok()?.get(index)?;
        let (start_ns, stretch) = of.stretch(row - self.firsts.get(index)?)?;
        Some(CauseRow { flow: of.flow + first_flow, of, start_ns, stretch })
    }
}

impl<'a> Row<'a> for CauseRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data that were held back").name(|row| Some(row.of.name)),
        column(
            "start_ns",
            "ns",
            "when the stretch began; the first of a direction with the flow's first packet",
        )
        .i64(|row| Some(row.start_ns)),
        column("end_ns", "ns", "when it ended, and the next began; the last with the flow's last packet")
            .i64(|row| Some(row.stretch.end_ns)),
        column("cause", "", "what held the sender back")
            .one_of(|| Cause::ALL.map(Cause::name).to_vec())
            .name(|row| Some(row.stretch.cause.name())),
        column("sign", "", "the sign that decided, or why the cause is unknown")
            .one_of(|| Sign::ALL.map(Sign::name).to_vec())
            .name(|row| Some(row.stretch.sign.name())),
        column("second_cause", "", "what it is if not `cause`; of a repair, what the losses came from")
            .null_when("nothing else is near")
            .name(|row| row.stretch.second.map(Cause::name)),
        column("flight_bytes", "bytes", "most data in flight in the stretch, after a packet was sent")
            .u64(|row| Some(row.stretch.flight.into())),
        column(
            "flight_error_bytes",
            "bytes",
            "by how much it may be larger or smaller: of these, an estimate away from the sender cannot tell \
             whether their acknowledgement had come; 0 at the sender",
        )
        .null_when("the cause is unknown for the whole flow")
        .u64(|row| row.stretch.flight_error.map(u64::from)),
        column("window_bytes", "bytes", "receive window at its newest data, scaled")
            .null_when("the scale is not known (no SYN), or no data yet")
            .u64(|row| row.stretch.window.map(u64::from)),
        column("rtt_ms", "ms", "shortest round-trip time of the lap at its end")
            .null_when("no lap of one round-trip time is over, or the cause is unknown for the whole flow")
            .f64(|row| row.stretch.rtt_ns.map(|ns| ms(ns.get()))),
        column("base_rtt_ms", "ms", "shortest round-trip time between sender and receiver")
            .null_when("no RTT sample, or the cause is unknown for the whole flow")
            .f64(|row| row.of.base_rtt_ns.map(ms)),
    ]];
}
