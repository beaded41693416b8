//! The table of retransmissions and late packets, in order of arrival.

use super::column::column;
use super::samples::SampleRow;
use super::{Column, Row};
use crate::flow::Found;
use crate::flow::tcp::Outcome;
use crate::flow::tcp::classify::class::{Class, Classification, Evidence};
use crate::packet::captured::Captured;
use crate::packet::key::Side;
use crate::pass::collectors::PacketSample;

/// One data packet that was not simply the next.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent it.
    pub side: Side,
    pub time_ns: i64,
    pub packet: u64,
    pub position: i64,
    pub payload_bytes: u32,
    /// Bytes of it captured before.
    pub repeated_bytes: u32,
    pub finding: Classification,
}

impl PacketSample for LossSample {
    const NAME: &'static str = "loss samples";
    const IS_OF_ANSWER: bool = false;
    const IS_OF_ALL_FLOWS: bool = true;

    #[inline(always)]
    fn on_outcome(found: Found, packet: &Captured, outcome: &Outcome, mut add: impl FnMut(Self)) {
        if let Some(finding) = outcome.finding {
            let Found { flow, side } = found;
            let &Captured { time_ns, number: packet, payload_bytes, .. } = packet;
            let &Outcome { position, repeated_bytes, .. } = outcome;
            add(Self { flow, side, time_ns, packet, position, payload_bytes, repeated_bytes, finding });
        }
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

impl<'a> Row<'a> for SampleRow<'a, LossSample> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data").name(|row| Some(row.direction)),
        column("time_ns", "ns", "when the packet was seen").i64(|row| Some(row.sample.time_ns)),
        column("packet", "", "its number in the source").u64(|row| Some(row.sample.packet)),
        column("seq_rel", "bytes", "its first sequence number, from the first of the direction")
            .i64(|row| Some(row.sample.position)),
        column("payload_bytes", "bytes", "its payload").u32(|row| Some(row.sample.payload_bytes)),
        column("repeated_bytes", "bytes", "bytes of it already captured")
            .u32(|row| Some(row.sample.repeated_bytes)),
        column("kind", "", "`retransmission` or `out_of_order`, as counted in the table of flows")
            .null_when("a control segment, a probe or a duplicate")
            .name(|row| row.kind()),
        column("class", "", "why it was retransmitted or late")
            .one_of(|| Class::ALL.map(Class::name).to_vec())
            .name(|row| Some(row.sample.finding.class.name())),
        column("evidence", "", "evidence for the class")
            .one_of(|| Evidence::OF_CLASSES.map(Evidence::name).to_vec())
            .name(|row| Some(row.sample.finding.evidence.name())),
        column("spurious", "", "evidence that the retransmission was spurious")
            .null_when("no such evidence")
            .one_of(|| Evidence::OF_SPURIOUS.map(Evidence::name).to_vec())
            .name(|row| row.spurious()),
    ]];
}

impl SampleRow<'_, LossSample> {
    fn kind(&self) -> Option<&'static str> {
        match self.sample.finding.class {
            class if class.is_retransmission() => Some("retransmission"),
            Class::Reordered | Class::Unseen => Some("out_of_order"),
            _ => None,
        }
    }

    fn spurious(&self) -> Option<&'static str> {
        let connection = self.analysis.flow(self.sample.flow).transport.tcp.as_deref()?;
        connection.half(self.sample.side).verdict(self.sample.finding.number).map(Evidence::name)
    }
}
