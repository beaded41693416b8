//! What a replay takes of one direction from the spool of a pass.

use std::io;

use super::column::{column, record_batch};
use super::shown::each_flow;
use super::{ChosenColumns, Column, Filled, Row, Rows};
use crate::packet::event::Event;
use crate::packet::key::Side;
use crate::pass::Analysis;
use crate::pass::spool::SpooledRows;
use crate::pass::spool::records::{Spooled, SpooledPacket, SpooledRound, SpooledRoundTrip};

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

impl<'a> Row<'a> for SpooledRoundTrip {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("time_ns", "ns", "as in the table of RTT samples, like the other")
            .i64(|row| Some(row.time_ns)),
        column("rtt_ns", "ns", "").u64(|row| Some(row.rtt_ns)),
    ]];
}

impl<'a> Row<'a> for SpooledRound {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("time_ns", "ns", "as in the table of rounds").i64(|row| Some(row.start_ns)),
        column("is_data_limited", "", "whether no data was waiting after the newest segment: 1 or 0")
            .u32(|row| Some(row.is_data_limited.into())),
    ]];
}

impl<T: Spooled + for<'a> Row<'a>> Rows for SpooledRows<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn batch_of(&self, start: usize, end: usize, wanted: ChosenColumns<'_>) -> Filled {
        record_batch(&self.range(start, end), wanted)
    }
}

/// Which side of a flow sends forward, and of which sides the capture shows all of their flights.
#[derive(Clone, Copy, Debug)]
pub struct FlowSides {
    pub forward: Side,
    sees_flight: [bool; 2],
}

impl FlowSides {
    /// Those of all flows.
    pub fn of_all(analysis: &Analysis) -> io::Result<Vec<Self>> {
        let mut sides = Vec::with_capacity(analysis.carried.flows.len());
        each_flow(analysis, |shown, number| {
            let flow = shown.flow(number);
            let sees_flight = [Side::Low, Side::High].map(|side| analysis.options.shows_flight(flow, side));
            sides.push(Self { forward: flow.forward(), sees_flight });
        })?;
        Ok(sides)
    }

    pub fn sees_flight(self, side: Side) -> bool {
        self.sees_flight[side as usize]
    }
}
