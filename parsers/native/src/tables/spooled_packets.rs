//! The data packets of one direction, as a replay takes them from its spool.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::column::{column, record_batch};
use super::{Column, Row, Rows};
use crate::packet::event::Event;
use crate::pass::packet_spool::{SpooledPacket, SpooledPackets};

impl<'a> Row<'a> for SpooledPacket {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("time_ns", "ns", "as in the table of packets, like all of these").i64(|row| Some(row.time_ns)),
        column("payload_bytes", "bytes", "").u32(|row| Some(row.payload_bytes)),
        column("sequence", "", "").u64(|row| row.sequence),
        column("seq_rel", "bytes", "").i64(|row| row.seq_rel),
        column("ecn", "", "").u32(|row| row.ecn.map(u32::from)),
        column("uid", "", "").u64(|row| row.sighting?.uid),
        column("event", "", "").name(|row| row.event.map(Event::name)),
        column("point", "", "").name(|row| Some(row.sighting?.point.name())),
        column("layer", "", "").name(|row| Some(row.sighting?.layer.name())),
    ]];
}

impl Rows for SpooledPackets {
    fn len(&self) -> usize {
        self.len()
    }

    fn batch_of(
        &self,
        start: usize,
        end: usize,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<RecordBatch, ArrowError> {
        record_batch(&self.range(start, end), wanted)
    }
}
