//! The tiles of time-sequence graphs as rows.

use std::io;

use super::column::column;
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::direction_name;
use crate::flow::tcp::sequence_graph::Tile;
use crate::pass::Analysis;

/// The rows: tiles of each graph, level by level.
pub(super) struct SequenceTiles;

/// A tile, with its flow.
pub struct TileRow<'a> {
    flow: u32,
    direction: &'static str,
    tile: &'a Tile,
}

fn tiles(analysis: &Analysis) -> &[(u32, Tile)] {
    analysis.results.graphs.as_ref().map_or(&[], |graphs| &graphs.tiles)
}

impl PassTable for SequenceTiles {
    type Row<'a> = TileRow<'a>;

    fn new(_: &Analysis) -> io::Result<Self> {
        Ok(Self)
    }

    fn len(&self, analysis: &Analysis) -> usize {
        tiles(analysis).len()
    }

    fn flow(&self, analysis: &Analysis, row: usize) -> Option<u32> {
        tiles(analysis).get(row).map(|(flow, _)| *flow)
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<TileRow<'a>> {
        let (flow, tile) = tiles(shown.analysis).get(row)?;
        let direction = direction_name(tile.side, shown.flow(*flow).forward());
        Some(TileRow { flow: flow + first_flow, direction, tile })
    }
}

impl<'a> Row<'a> for TileRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data").name(|row| Some(row.direction)),
        column("level", "", "0 for points, more for summaries").u32(|row| Some(row.tile.level)),
        column("count", "", "points or summaries in it").u32(|row| Some(row.tile.count)),
        column("start_ns", "ns", "time of its first packet").i64(|row| Some(row.tile.start_ns)),
        column("end_ns", "ns", "time of its last packet").i64(|row| Some(row.tile.end_ns)),
        column("tile", "", "its content").bytes(|row| Some(&row.tile.deflated)),
    ]];
}
