//! The buckets of the percentiles of groups.

use std::io;

use super::GroupTableRow;
use crate::flow::intervals::Duration;
use crate::flow::rtt_statistics::{Bucket, LogHistogram};
use crate::pass::Analysis;
use crate::tables::column::column;
use crate::tables::shown::Shown;
use crate::tables::{Column, PassTable, Row};

/// Name of round-trip times among the durations.
const RTT: &str = "rtt";

/// All durations, in the order of the table.
fn measures() -> Vec<&'static str> {
    let mut names: Vec<_> = Duration::ALL.iter().map(|what| what.name()).chain([RTT]).collect();
    names.sort_unstable();
    names
}

/// The buckets of the percentiles of groups, which can be summed.
pub(in crate::tables) struct GroupBuckets {
    buckets: Vec<(u32, &'static str, Bucket)>,
}

impl PassTable for GroupBuckets {
    type Row<'a> = GroupBucketRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut buckets = Vec::new();
        let Some(groups) = analysis.carried.groups().filter(|_| analysis.results.has_times) else {
            return Ok(Self { buckets });
        };
        let measures = measures();
        for number in groups.in_order() {
            let Some(row) = groups.row(number) else { continue };
            for &measure in &measures {
                let what = Duration::by_name(measure);
                let samples = what.map_or(Some(&row.rtt), |what| row.durations(what));
                let of_row = samples.map(LogHistogram::buckets).unwrap_or_default();
                buckets.extend(of_row.into_iter().map(|bucket| (number, measure, bucket)));
            }
        }
        Ok(Self { buckets })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.buckets.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<GroupBucketRow<'a>> {
        let &(number, measure, bucket) = self.buckets.get(row)?;
        Some(GroupBucketRow { row: GroupTableRow::at(shown.analysis, number, first_flow)?, measure, bucket })
    }
}

pub(in crate::tables) struct GroupBucketRow<'a> {
    row: GroupTableRow<'a>,
    measure: &'static str,
    bucket: Bucket,
}

impl<'a> Row<'a> for GroupBucketRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("group", "", "name of the group")
            .null_when("the packets do not show it")
            .text(|row| row.row.group()),
        column("direction", "", "direction of the group").name(|row| Some(row.row.direction())),
        column("start_ns", "ns", "start of the interval; without intervals, the first packet")
            .i64(|row| Some(row.row.row.start_ns)),
        column("measure", "", "what the samples are").one_of(measures).name(|row| Some(row.measure)),
        column("from_ns", "ns", "smallest duration of the bucket").u64(|row| Some(row.bucket.from)),
        column("to_ns", "ns", "largest duration of the bucket").u64(|row| Some(row.bucket.to)),
        column("samples", "", "samples in it").u64(|row| Some(row.bucket.count.into())),
    ]];
}
