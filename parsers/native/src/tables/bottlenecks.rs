//! The table of bottlenecks: what each direction of TCP with data shows of the bottleneck of its path.

use std::io;

use super::column::{Description, column};
use super::explained::explained;
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::tcp::causes::{Bottleneck, Discipline, Hops, Sign, Untold};
use crate::pass::Analysis;

pub(super) struct Bottlenecks {
    /// Places of the directions that have a ledger among those that are explained.
    places: Vec<usize>,
}

/// What a direction shows, or why it shows nothing.
pub struct BottleneckRow {
    flow: u32,
    direction: &'static str,
    found: Result<Bottleneck, Sign>,
    hops: Hops,
}

impl BottleneckRow {
    fn told<T>(&self, fact: impl FnOnce(&Bottleneck) -> Result<T, Untold>) -> Option<T> {
        fact(self.found.as_ref().ok()?).ok()
    }

    /// Why a fact is null.
    fn reason<T>(&self, fact: impl FnOnce(&Bottleneck) -> Result<T, Untold>) -> Option<&'static str> {
        match &self.found {
            Ok(found) => fact(found).err().map(Untold::name),
            Err(sign) => Some(sign.name()),
        }
    }
}

impl PassTable for Bottlenecks {
    type Row<'a> = BottleneckRow;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let Some(ledgers) = &analysis.results.ledgers else { return Ok(Self { places: Vec::new() }) };
        let directions = explained(analysis)?.iter().enumerate();
        let with_ledger = directions.filter(|(_, of)| ledgers.get(of.flow, of.side).is_some());
        Ok(Self { places: with_ledger.map(|(place, _)| place).collect() })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.places.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<BottleneckRow> {
        let of = explained(shown.analysis).ok()?.get(*self.places.get(row)?)?;
        let found = of.bottleneck(shown.analysis.results.ledgers.as_ref()?.get(of.flow, of.side)?);
        Some(BottleneckRow { flow: of.flow + first_flow, direction: of.name, found, hops: of.hops })
    }
}

/// Whole bytes.
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

const UNKNOWN_CAPACITY: &str = "capacity_reason says why";
const UNKNOWN_BUFFER: &str = "buffer_reason says why";
const UNKNOWN_POLICER: &str = "policer_reason says why";

/// Begin the declaration of the reason of a fact.
const fn reason(name: &'static str) -> Description {
    column(name, "", "why it is not known, a word of the page on causes or a sign of the table of causes")
        .null_when("it is known")
}

impl<'a> Row<'a> for BottleneckRow {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data").name(|row| Some(row.direction)),
        column(
            "capacity_bps",
            "bit/s",
            "rate of the bottleneck at the IP layer: median rate of delivery while a queue stood",
        )
        .null_when(UNKNOWN_CAPACITY)
        .f64(|row| row.told(|found| found.capacity).map(|rate| rate.value)),
        column("capacity_low_bps", "bit/s", "lower bound of it")
            .null_when(UNKNOWN_CAPACITY)
            .f64(|row| row.told(|found| found.capacity).map(|rate| rate.low)),
        column("capacity_high_bps", "bit/s", "upper bound of it")
            .null_when(UNKNOWN_CAPACITY)
            .f64(|row| row.told(|found| found.capacity).map(|rate| rate.high)),
        reason("capacity_reason").name(|row| row.reason(|found| found.capacity)),
        column(
            "buffer_bytes",
            "bytes",
            "buffer of the bottleneck: its delay when it is full, at its capacity",
        )
        .null_when(UNKNOWN_BUFFER)
        .u64(|row| row.told(|found| found.buffer).map(|bytes| whole(bytes.value))),
        column("buffer_low_bytes", "bytes", "lower bound of it")
            .null_when(UNKNOWN_BUFFER)
            .u64(|row| row.told(|found| found.buffer).map(|bytes| whole(bytes.low))),
        column("buffer_high_bytes", "bytes", "upper bound of it")
            .null_when(UNKNOWN_BUFFER)
            .u64(|row| row.told(|found| found.buffer).map(|bytes| whole(bytes.high))),
        column("buffer_ms", "ms", "delay of the full buffer")
            .null_when("the queue does not drop at its tail, or its discipline is not known")
            .f64(|row| row.found.ok()?.buffer_ns.map(|ns| ns / 1e6)),
        reason("buffer_reason").name(|row| row.reason(|found| found.buffer)),
        column("discipline", "", "how its queue chooses what it drops")
            .one_of(|| Discipline::ALL.map(Discipline::name).to_vec())
            .null_when("discipline_reason says why")
            .name(|row| row.told(|found| found.discipline).map(Discipline::name)),
        reason("discipline_reason").name(|row| row.reason(|found| found.discipline)),
        column("policer_bps", "bit/s", "rate of a policer at the IP layer: median rate between losses")
            .null_when(UNKNOWN_POLICER)
            .f64(|row| row.told(|found| found.policer).map(|rate| rate.value)),
        column("policer_low_bps", "bit/s", "lower bound of it")
            .null_when(UNKNOWN_POLICER)
            .f64(|row| row.told(|found| found.policer).map(|rate| rate.low)),
        column("policer_high_bps", "bit/s", "upper bound of it")
            .null_when(UNKNOWN_POLICER)
            .f64(|row| row.told(|found| found.policer).map(|rate| rate.high)),
        reason("policer_reason").name(|row| row.reason(|found| found.policer)),
        column(
            "path_changes",
            "",
            "how often the path before the capture changed: lasting changes of the TTL (hop limit) of its packets",
        )
        .null_when("fewer than 16 packets in a row have the same")
        .u32(|row| row.hops.is_known().then_some(row.hops.changes)),
        column("path_change_ns", "ns", "when the first of them was seen")
            .null_when("the path did not change, or that is not known")
            .i64(|row| row.hops.changed_ns),
    ]];
}
