//! The tables: each column is declared once, with its name, type, unit, meaning, when it is null,
//! and how it is filled.
//!
//! Python reads the declarations from here (`parsers/schema.py`), and makes the documentation and
//! the JSON schema of them.

mod bottlenecks;
mod cause_sums;
mod causes;
mod column;
mod explained;
pub mod files;
mod flows;
mod groups;
mod hops;
pub mod largest;
mod losses;
pub mod packets;
pub mod replay;
mod retransmissions;
mod round_samples;
mod rounds;
mod rtp;
mod rtt;
mod samples;
mod sequence_tiles;
mod shown;
pub mod spooled;
mod tcp_details;
mod tfrc;
mod time_series;
mod transits;
mod variables;
mod wifi_links;

use std::collections::HashSet;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::flow::tfrc::LossEventSample;
use crate::flow::tfrc::findings::FindingSample;
use crate::pass::collectors::{FlowSamples, NewCollector, PacketSample};
use crate::pass::{Analysis, Options, RttSample, Transit};
use crate::tfrc::replay::drive_sender::ReplayStep;
use column::record_batch;
pub use column::{ChosenColumns, Column, Description, Filled, Row};
pub use explained::explain;
pub use groups::group_rows;
use samples::{SampleRow, Samples};
use shown::Shown;

/// The rows of a pass, with flows numbered from this number.
type RowsOf = fn(&Arc<Analysis>, u32) -> Box<dyn Rows>;

/// A table of the core.
pub struct Table {
    pub name: &'static str,
    /// Meaning of one row.
    pub row: &'static str,
    columns: fn() -> Vec<(Description, DataType)>,
    empty: fn() -> Box<dyn Rows>,
    rows: Option<RowsOf>,
    /// What collects its samples, if packets of TCP give them.
    collector: Option<NewCollector>,
}

/// All tables, in the order of the documentation.
pub const TABLES: &[Table] = &[
    Table::of_pass::<flows::Flows>("flows", "each flow and direction"),
    Table::of_pass::<tcp_details::Details>("tcp", "each TCP connection of a capture and direction"),
    Table::of_rows::<packets::PacketRow>("packets", "each packet"),
    Table::of_pass::<time_series::TimeBins>(
        "bins",
        "each bin of time with packets or round-trip times of a direction",
    ),
    Table::of_packets::<RttSample>("rtt", "each RTT sample"),
    Table::of_pass::<rtt::RttBuckets>(
        "rtt_buckets",
        "each bucket of round-trip times that has samples, of a flow and direction",
    ),
    Table::of_pass::<groups::GroupTable>(
        "groups",
        "each direction of a group of flows, in each interval with packets",
    ),
    Table::of_pass::<groups::GroupBuckets>(
        "group_buckets",
        "each bucket of durations that has samples, of a direction of a group in an interval",
    ),
    Table::of_packets::<losses::LossSample>("losses", "each retransmitted, late or duplicate packet"),
    Table::of_collected::<round_samples::RoundSample, rounds::RoundTable>(
        "rounds",
        "each round of data in flight, a round-trip time long, as the sender saw it where the capture shows that",
    ),
    Table::of_pass::<causes::Causes>(
        "causes",
        "each stretch of a direction with data that one cause held back",
    ),
    Table::of_pass::<cause_sums::CauseSums>(
        "cause_sums",
        "each cause and sign that held a direction with data back, over all of its stretches",
    ),
    Table::of_pass::<bottlenecks::Bottlenecks>(
        "bottlenecks",
        "each direction of a TCP connection with data, with what it shows of the bottleneck of its path",
    ),
    Table::of_pass::<variables::Variables>(
        "variables",
        "each value that a sender logged itself, in a log or among the packets of a simulation",
    ),
    Table::of_pass::<tfrc::Feedback>(
        "feedback",
        "each report of a TFRC or RTP receiver, also if it never arrived",
    ),
    Table::of_pass::<Samples<LossEventSample>>("loss_events", "each loss event of TFRC"),
    Table::of_pass::<tfrc::LossIntervals>(
        "loss_intervals",
        "each loss interval that counts in a report of TFRC",
    ),
    Table::of_pass::<Samples<FindingSample>>(
        "findings",
        "each rule that a packet of TFRC or DCCP, or a sender of TCP, broke",
    ),
    Table::of_pass::<rtp::RtpSources>("rtp_sources", "each source of RTP"),
    Table::of_pass::<rtp::RtpIntervals>("rtp_intervals", "each second of a source of RTP"),
    Table::of_rows::<ReplayStep>("replay", "each step of a rate algorithm on a flow"),
    Table::of_pass::<wifi_links::Links>("links", "each pair of 802.11 stations and each direction"),
    Table::of_pass::<wifi_links::LinkSamples>("link_samples", "each 802.11 frame"),
    Table::of_pass::<Samples<Transit>>("transits", "each packet between two captures, in order of sending"),
    Table::of_pass::<hops::Hops>("hops", "each hop between captures of one network, of a flow and direction"),
];

impl Table {
    const fn of_pass<T: PassTable>(name: &'static str, row: &'static str) -> Self {
        let rows = |analysis: &Arc<Analysis>, first_flow| -> Box<dyn Rows> {
            let table = T::new(analysis);
            Box::new(PassRows { analysis: Arc::clone(analysis), first_flow, table })
        };
        Self {
            name,
            row,
            columns: descriptions::<T::Row<'static>>,
            empty: empty::<T::Row<'static>>,
            rows: Some(rows),
            collector: None,
        }
    }

    /// A table of samples that packets of TCP give.
    const fn of_packets<S: PacketSample>(name: &'static str, row: &'static str) -> Self
    where
        for<'a> SampleRow<'a, S>: Row<'a>,
    {
        Self::of_collected::<S, Samples<S>>(name, row)
    }

    /// The same with more than the samples show.
    const fn of_collected<S: PacketSample, T: PassTable>(name: &'static str, row: &'static str) -> Self {
        let collector: NewCollector = |limit, chosen| Box::new(FlowSamples::<S>::new(limit, chosen));
        Self { collector: Some(collector), ..Self::of_pass::<T>(name, row) }
    }

    /// A table that does not come from an [`Analysis`].
    const fn of_rows<R: Row<'static>>(name: &'static str, row: &'static str) -> Self {
        Self { name, row, columns: descriptions::<R>, empty: empty::<R>, rows: None, collector: None }
    }

    /// The table without rows.
    pub fn empty(&self) -> Box<dyn Rows> {
        (self.empty)()
    }

    /// Find a table by its name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// The declarations and types of its columns, in order.
    pub fn columns(&self) -> Vec<(Description, DataType)> {
        (self.columns)()
    }

    /// Whether it is made from an [`Analysis`].
    pub fn is_of_pass(&self) -> bool {
        self.rows.is_some()
    }

    /// Its rows, with flows numbered from `first_flow`.
    pub fn rows(&self, analysis: &Arc<Analysis>, first_flow: u32) -> Option<Box<dyn Rows>> {
        self.rows.map(|rows| rows(analysis, first_flow))
    }
}

/// The tiles of the time-sequence graphs of a pass, with flows numbered from `first_flow`.
pub fn sequence_tiles(analysis: &Arc<Analysis>, first_flow: u32) -> Box<dyn Rows> {
    let table = sequence_tiles::SequenceTiles::new(analysis);
    Box::new(PassRows { analysis: Arc::clone(analysis), first_flow, table })
}

impl Options {
    /// The same, but these tables are collected.
    pub fn with_tables(self, names: HashSet<String>) -> Self {
        let wanted = TABLES.iter().filter(|table| names.contains(table.name));
        let collectors = wanted.filter_map(|table| table.collector).collect();
        Self { collect: names, collectors, ..self }
    }

    /// Collect these tables, with default options.
    pub fn collecting(tables: &[&str]) -> Self {
        Self::default().with_tables(tables.iter().map(|&name| name.to_owned()).collect())
    }
}

fn descriptions<R: Row<'static>>() -> Vec<(Description, DataType)> {
    let columns = R::COLUMNS.iter().copied().flatten();
    columns.map(|column| (column.description, column.data_type())).collect()
}

fn empty<R: Row<'static>>() -> Box<dyn Rows> {
    Box::new(NoRows::<R>(PhantomData))
}

/// A table that has columns only.
struct NoRows<R>(PhantomData<fn() -> R>);

impl<R: Row<'static>> Rows for NoRows<R> {
    fn len(&self) -> usize {
        0
    }

    fn batch_of(&self, _: usize, _: usize, wanted: ChosenColumns<'_>) -> Filled {
        record_batch::<R>(&[], wanted)
    }
}

/// Rows that are made into record batches on demand.
pub trait Rows: Send + Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows `start..end`, which must exist, with the columns whose names are `wanted`.
    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled;

    /// Rows `start..end`, which must exist.
    fn batch(&self, start: usize, end: usize) -> Filled {
        self.batch_of(start, end, &|_| true)
    }

    fn schema(&self) -> Result<SchemaRef, ArrowError> {
        Ok(self.batch(0, 0)?.schema())
    }
}

/// How the rows of a table follow from an [`Analysis`].
trait PassTable: Send + Sync + 'static {
    type Row<'a>: Row<'a>;

    /// Prepare what the rows need.
    fn new(analysis: &Analysis) -> io::Result<Self>
    where
        Self: Sized;

    fn len(&self, analysis: &Analysis) -> usize;

    /// The flow, from 0, that a row needs.
    fn flow(&self, _: &Analysis, _row: usize) -> Option<u32> {
        None
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<Self::Row<'a>>;
}

struct PassRows<T> {
    analysis: Arc<Analysis>,
    first_flow: u32,
    /// An error where the flows that are over could not be read.
    table: io::Result<T>,
}

impl<T: PassTable> Rows for PassRows<T> {
    fn len(&self) -> usize {
        // One row that cannot be read says so.
        self.table.as_ref().map_or(1, |table| table.len(&self.analysis))
    }

    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled {
        let failed = |error: &io::Error| ArrowError::IoError(error.to_string(), error.kind().into());
        let table = self.table.as_ref().map_err(failed)?;
        let mut numbers = (start..end).filter_map(|row| table.flow(&self.analysis, row));
        let left = self.analysis.carried.flows.load(&mut numbers).map_err(|error| failed(&error))?;
        let row = |row| table.row(Shown::new(&self.analysis, &left), row, self.first_flow);
        record_batch(&(start..end).filter_map(row).collect::<Vec<_>>(), wanted)
    }
}

/// Rows that are in memory.
impl<R: Row<'static> + Send + Sync> Rows for Vec<R> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled {
        record_batch(self.get(start..end).unwrap_or_default(), wanted)
    }
}

/// Rows that were made.
impl Rows for RecordBatch {
    fn len(&self) -> usize {
        self.num_rows()
    }

    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled {
        let schema = self.schema();
        let columns = (0..self.num_columns()).filter(|&column| wanted(schema.field(column).name()));
        self.slice(start, end - start).project(&columns.collect::<Vec<_>>())
    }
}

/// Some columns of a table.
pub struct SelectedColumns {
    rows: Arc<dyn Rows>,
    names: Vec<String>,
}

impl SelectedColumns {
    /// The columns of `rows` that have these names, in the order of the table.
    pub fn new(rows: Arc<dyn Rows>, names: Vec<String>) -> Self {
        Self { rows, names }
    }
}

impl Rows for SelectedColumns {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled {
        self.rows.batch_of(start, end, &|name| wanted(name) && self.names.iter().any(|own| own == name))
    }
}

/// Some rows of a table.
pub struct RowRange {
    rows: Arc<dyn Rows>,
    start: usize,
    end: usize,
}

impl RowRange {
    /// Rows `start..end` of `rows`, as far as there are such.
    pub fn new(rows: Arc<dyn Rows>, start: usize, end: usize) -> Self {
        let end = end.min(rows.len());
        Self { start: start.min(end), end, rows }
    }
}

impl Rows for RowRange {
    fn len(&self) -> usize {
        self.end - self.start
    }

    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled {
        self.rows.batch_of(self.start + start, self.start + end, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_of_tables_and_columns_are_unique_and_explained() {
        let tables: HashSet<_> = TABLES.iter().map(|table| table.name).collect();
        assert_eq!(tables.len(), TABLES.len());
        for table in TABLES {
            let columns = table.columns();
            let names: HashSet<_> = columns.iter().map(|(column, _)| column.name).collect();
            assert_eq!(names.len(), columns.len(), "{}", table.name);
            assert!(columns.iter().all(|(column, _)| !column.meaning().is_empty()), "{}", table.name);
        }
    }
}
