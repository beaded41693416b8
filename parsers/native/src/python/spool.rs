//! What a replay needs of each direction, read one direction after the other.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use super::table::Table;
use crate::flow::REVERSE;
use crate::packet::key::Side;
use crate::pass::Analysis;
use crate::pass::spool::records::{Spooled, SpooledRound};
use crate::pass::spool::{Spool, SpoolFile as CoreFile, SpooledRows};
use crate::tables::Rows;
use crate::tables::spooled::FlowSides;

/// The file of the spools of several passes.
#[pyclass(frozen, module = "tfrctrace.parsers._native")]
pub(super) struct SpoolFile {
    file: Arc<Mutex<CoreFile>>,
    most_buffered: usize,
}

#[pymethods]
impl SpoolFile {
    #[new]
    fn new(folder: PathBuf, most_buffered: usize) -> Self {
        Self { file: Arc::new(Mutex::new(CoreFile::new(folder))), most_buffered }
    }
}

impl SpoolFile {
    pub(super) fn spool(&self) -> Spool {
        Spool::new(&self.file, self.most_buffered)
    }
}

/// The spool of a pass, with its flows.
pub(super) struct FilledSpool {
    spool: Spool,
    sides: Vec<FlowSides>,
}

impl FilledSpool {
    /// Take over the spool of a pass that is at its end; None if there is none.
    pub(super) fn of(analysis: &mut Analysis) -> io::Result<Option<Self>> {
        let Some(mut spool) = analysis.results.spool.take() else { return Ok(None) };
        match spool.take_error() {
            Some(error) => Err(error),
            None => Ok(Some(Self { spool, sides: FlowSides::of_all(analysis)? })),
        }
    }
}

#[pyclass(frozen, module = "tfrctrace.parsers._native")]
pub(super) struct DirectionSpool {
    pub(super) filled: Arc<FilledSpool>,
    pub(super) first_flow: u32,
}

#[pymethods]
impl DirectionSpool {
    #[getter]
    fn first_flow(&self) -> u32 {
        self.first_flow
    }

    fn count(&self, flow: u32, direction: &str) -> usize {
        self.place(flow, direction).map_or(0, |(flow, side, _)| self.filled.spool.count(flow, side))
    }

    fn is_simulated(&self, flow: u32, direction: &str) -> bool {
        self.place(flow, direction).is_some_and(|(flow, side, _)| self.filled.spool.is_simulated(flow, side))
    }

    fn packets(&self, py: Python<'_>, flow: u32, direction: &str) -> PyResult<Table> {
        self.table(py, flow, direction, |flow, side, _| self.filled.spool.packets(flow, side))
    }

    fn round_trips(&self, py: Python<'_>, flow: u32, direction: &str) -> PyResult<Table> {
        self.table(py, flow, direction, |flow, side, _| self.filled.spool.round_trips(flow, side))
    }

    fn rounds(&self, py: Python<'_>, flow: u32, direction: &str) -> PyResult<Table> {
        self.table(py, flow, direction, |flow, side, sides| match sides.sees_flight(side) {
            true => self.filled.spool.rounds(flow, side),
            false => Ok(SpooledRows::<SpooledRound>::default()),
        })
    }
}

impl DirectionSpool {
    /// The flow from 0, and the side that sends in the direction.
    fn place(&self, flow: u32, direction: &str) -> Option<(u32, Side, FlowSides)> {
        let flow = flow.checked_sub(self.first_flow)?;
        let sides = *self.filled.sides.get(flow as usize)?;
        let side = if direction == REVERSE { sides.forward.other() } else { sides.forward };
        Some((flow, side, sides))
    }

    fn table<T: Spooled>(
        &self,
        py: Python<'_>,
        flow: u32,
        direction: &str,
        read: impl FnOnce(u32, Side, FlowSides) -> io::Result<SpooledRows<T>> + Send,
    ) -> PyResult<Table>
    where
        SpooledRows<T>: Rows,
    {
        let rows = match self.place(flow, direction) {
            Some((flow, side, sides)) => py.detach(|| read(flow, side, sides)),
            None => Ok(SpooledRows::default()),
        };
        Ok(Table::of(Box::new(rows?)))
    }
}
