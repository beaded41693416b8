//! The way of packets past several captures of one clock: a row for each hop.

use std::io;

use super::column::column;
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::direction_name;
use crate::packet::key::Side;
use crate::pair::Tap;
use crate::pair::hops::Hop;
use crate::pass::Analysis;

/// A row for each hop of each direction, in the order of the flows and the way.
pub(super) struct Hops(Vec<(u32, Side, usize)>);

impl PassTable for Hops {
    type Row<'a> = HopRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut hops = Vec::new();
        let is_network = analysis.results.pairing.as_ref().is_some_and(|pairing| pairing.network.is_some());
        for flow in 0..if is_network { analysis.carried.flows.len() as u32 } else { 0 } {
            let forward = analysis.carried.flows.get(flow).forward();
            for side in [forward, forward.other()] {
                hops.extend((0..of_direction(analysis, flow, side).len()).map(|hop| (flow, side, hop)));
            }
        }
        Ok(Self(hops))
    }

    fn len(&self, _: &Analysis) -> usize {
        self.0.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<HopRow<'a>> {
        let &(flow, side, number) = self.0.get(row)?;
        let analysis = shown.analysis;
        let hop = of_direction(analysis, flow, side).get(number)?;
        let route = analysis.results.pairing.as_ref()?.network.as_ref()?.way(flow, side)?;
        let &[from, to] = route.get(number..=number + 1)? else { return None };
        Some(HopRow { analysis, flow, first_flow, side, number, from, to, hop })
    }
}

fn of_direction(analysis: &Analysis, flow: u32, side: Side) -> &[Hop] {
    analysis.results.hops().map_or(&[], |hops| hops.of(flow, side))
}

/// A hop of one direction.
pub(super) struct HopRow<'a> {
    analysis: &'a Analysis,
    flow: u32,
    first_flow: u32,
    side: Side,
    number: usize,
    from: Tap,
    to: Tap,
    hop: &'a Hop,
}

impl<'a> HopRow<'a> {
    fn direction(&self) -> &'static str {
        direction_name(self.side, self.analysis.carried.flows.get(self.flow).forward())
    }

    fn capture(&self, tap: Tap) -> &'a str {
        self.analysis.carried.sources.get(tap.index()).map_or("", |source| &source.source)
    }
}

impl<'a> Row<'a> for HopRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow + row.first_flow)),
        column("direction", "", "`fwd` or `rev`").name(|row| Some(row.direction())),
        column("hop", "", "number of the hop on the way from the sender, from 1")
            .u32(|row| u32::try_from(row.number + 1).ok()),
        column("from", "", "capture at its start").name(|row| Some(row.capture(row.from))),
        column("to", "", "capture at its end").name(|row| Some(row.capture(row.to))),
        column(
            "packets",
            "",
            "packets at its start: `arrived_packets`, `lost_packets` and `in_flight_packets`",
        )
        .u64(|row| Some(row.hop.packets())),
        column("arrived_packets", "", "packets that came to its end").u64(|row| Some(row.hop.arrived)),
        column("lost_packets", "", "packets that were seen at its start and nowhere beyond it")
            .u64(|row| Some(row.hop.lost)),
        column("in_flight_packets", "", "the same, while the capture at its end was not running for certain")
            .u64(|row| Some(row.hop.in_flight)),
        column("missed_packets", "", "packets of `arrived_packets` that only captures beyond its end have")
            .u64(|row| Some(row.hop.missed)),
        column("unsent_packets", "", "further packets, which no capture before its end has")
            .u64(|row| Some(row.hop.unsent)),
        column("duplicate_packets", "", "packets that came to its end once more")
            .u64(|row| Some(row.hop.duplicates)),
        column("delay_min_ms", "ms", "smallest delay from its start to its end")
            .null_when("no packet is in both captures")
            .f64(|row| row.hop.delay.range.min_ms()),
        column("delay_mean_ms", "ms", "mean of these delays")
            .null_when("as delay_min_ms")
            .f64(|row| row.hop.delay.range.mean_ms()),
        column("delay_p50_ms", "ms", "median, within 0.8 %")
            .null_when("as delay_min_ms")
            .f64(|row| row.hop.delay_sketch.percentile_ms(0.5, &row.hop.delay.range)),
        column("delay_p95_ms", "ms", "95th percentile (nearest rank), within 0.8 %")
            .null_when("as delay_min_ms")
            .f64(|row| row.hop.delay_sketch.percentile_ms(0.95, &row.hop.delay.range)),
        column("delay_max_ms", "ms", "largest of these delays")
            .null_when("as delay_min_ms")
            .f64(|row| row.hop.delay.range.max_ms()),
    ]];
}
