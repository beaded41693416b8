//! Round-trip times: every sample in order of arrival, and in buckets.

use std::io;

use super::column::column;
use super::flows::FlowRow;
use super::samples::SampleRow;
use super::shown::{Shown, each_flow};
use super::{Column, PassTable, Row};
use crate::flow::Found;
use crate::flow::rtt_statistics::Bucket;
use crate::flow::tcp::Outcome;
use crate::packet::captured::Captured;
use crate::packet::key::Side;
use crate::pass::collectors::PacketSample;
use crate::pass::{Analysis, RttSample};

impl PacketSample for RttSample {
    const NAME: &'static str = "RTT samples";
    const IS_OF_ANSWER: bool = true;
    const IS_OF_ALL_FLOWS: bool = false;

    #[inline(always)]
    fn on_outcome(found: Found, packet: &Captured, outcome: &Outcome, mut add: impl FnMut(Self)) {
        if let Some(rtt) = outcome.rtt {
            add(RttSample {
                flow: found.flow,
                side: found.side.other(),
                time_ns: packet.time_ns,
                rtt,
                is_delayed_ack: outcome.is_delayed_ack,
                packet: packet.number,
            });
        }
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

impl<'a> Row<'a> for SampleRow<'a, RttSample> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data that was acknowledged")
            .name(|row| Some(row.direction)),
        column("time_ns", "ns", "when the acknowledgement was seen").i64(|row| Some(row.sample.time_ns)),
        column("rtt_ns", "ns", "time since the data was seen")
            .i64(|row| i64::try_from(row.sample.rtt.ns).ok()),
        column(
            "method",
            "",
            "how it was measured: `ack` (Karn's rule); else `sack` (data sent once that a SACK block is the \
             first to report); else `timestamp` (echo, RFC 7323: longer than the path by up to a tick of the \
             sender's clock); `report` (RTCP's echo) or `spin` (QUIC's spin bit)",
        )
        .name(|row| Some(row.sample.rtt.method.name())),
        column(
            "delayed_ack",
            "",
            "1 if the acknowledgement seems to have waited for a delayed-acknowledgement timer, as \
             counted in the table of flows",
        )
        .u32(|row| Some(row.sample.is_delayed_ack.into())),
        column("packet", "", "number of the acknowledging packet").u64(|row| Some(row.sample.packet)),
    ]];
}

/// The buckets of the percentiles, which can be summed over flows and traces.
pub(super) struct RttBuckets {
    buckets: Vec<BucketRow>,
}

/// A non-empty bucket of a direction of a flow.
#[derive(Clone, Copy)]
pub struct BucketRow {
    flow: u32,
    direction: &'static str,
    bucket: Bucket,
}

impl PassTable for RttBuckets {
    type Row<'a> = BucketRow;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let mut buckets = Vec::new();
        each_flow(analysis, |shown, number| {
            let row = 2 * number as usize;
            for of in [row, row + 1].map(|row| FlowRow::at(shown, row, 0)) {
                let found = of.rtt().map(|(_, sketch)| sketch.buckets()).unwrap_or_default();
                let (flow, direction) = (of.number, of.direction_name());
                buckets.extend(found.into_iter().map(|bucket| BucketRow { flow, direction, bucket }));
            }
        })?;
        Ok(Self { buckets })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.buckets.len()
    }

    fn row<'a>(&'a self, _: Shown<'a>, row: usize, first_flow: u32) -> Option<BucketRow> {
        let bucket = *self.buckets.get(row)?;
        Some(BucketRow { flow: bucket.flow + first_flow, ..bucket })
    }
}

impl<'a> Row<'a> for BucketRow {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "`fwd` or `rev`: whose data were acknowledged")
            .name(|row| Some(row.direction)),
        column("from_ns", "ns", "shortest round-trip time of the bucket: bounds double every 64 buckets")
            .u64(|row| Some(row.bucket.from)),
        column("to_ns", "ns", "longest round-trip time of the bucket").u64(|row| Some(row.bucket.to)),
        column("samples", "", "samples in it, the same that `rtt_samples` of flows counts")
            .u64(|row| Some(row.bucket.count.into())),
    ]];
}
