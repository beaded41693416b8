//! A capture that was appended to itself: from some record on, its packets come again, with their
//! times. They were on the wire once.

use serde::{Deserialize, Serialize};

use crate::error::{Problem, ProblemKind, ReadError};
use crate::packet::batch::Batch;
use crate::packet::event::Packet;
use crate::packet::extras::PacketExtras;
use crate::pair::packet_identity::{identity, payload_head};
use crate::plural::counted;

/// What distinguishes the first packet of a source: its time, its length, and its identity.
type FirstPacket = (i64, u32, Option<u64>);

#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::pass) struct AppendedCapture {
    first: Option<FirstPacket>,
    /// Latest time before the first packet came again, until that time is passed.
    until_ns: Option<i64>,
    /// Packets that came again.
    pub packets: u64,
}

impl AppendedCapture {
    /// Whether packets of a batch may come again: times go back in it, or did so before.
    #[inline(always)]
    pub fn concerns(&self, batch: &Batch) -> bool {
        self.until_ns.is_some() || batch.latest_before_step_back_ns().is_some()
    }

    /// Remember the first packet of a source.
    pub fn begin(&mut self, batch: &Batch) {
        if self.first.is_none()
            && let Some(item) = batch.items().next()
        {
            self.first = Some(description(&item.to_packet(), batch.extras()));
        }
    }

    /// Whether the capture is at a time that it already showed, since its first packet came again.
    pub fn is_repeating(&mut self, packet: &Packet, extras: &PacketExtras, latest_ns: i64) -> bool {
        if self.until_ns.is_some_and(|until_ns| packet.time_ns > until_ns) {
            self.until_ns = None;
        }
        if self.until_ns.is_none()
            && packet.time_ns < latest_ns
            && self.first.is_some_and(|first| first.0 == packet.time_ns)
            && self.first == Some(description(packet, extras))
        {
            self.until_ns = Some(latest_ns);
        }
        self.until_ns.is_some()
    }

    /// End a source: report the packets that came again.
    pub fn finish(&mut self, source: &str) -> Option<Problem> {
        let Self { packets, .. } = std::mem::take(self);
        let message = format!(
            "the capture was appended to itself: {} came again with the same times, and count as duplicates",
            counted(packets, "packet[s]")
        );
        let error = ReadError::whole(ProblemKind::Imprecise, message);
        (packets > 0).then(|| Problem::of_source(source, error))
    }
}

fn description(packet: &Packet, extras: &PacketExtras) -> FirstPacket {
    let head = payload_head(&packet.network, extras);
    (packet.time_ns, packet.wire_bytes, identity(&packet.network, head))
}
