//! A capture that was appended to itself: from some record on, its packets come again, with their
//! times. They were on the wire once.

use serde::{Deserialize, Serialize};

use super::collect::Captured;
use super::{Analysis, is_flow};
use crate::error::{Problem, ProblemKind, ReadError};
use crate::flow::Seen;
use crate::input::source_summary::SourceSummary;
use crate::packet::batch::Batch;
use crate::packet::event::Packet;
use crate::packet::extras::PacketExtras;
use crate::pair::packet_identity::{identity, payload_head};
use crate::plural::counted;

/// What distinguishes the first packet of a source: its time, its length, and its identity.
type FirstPacket = (i64, u32, Option<u64>);

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct AppendedCapture {
    first: Option<FirstPacket>,
    /// Latest time before the first packet came again, until that time is passed.
    until_ns: Option<i64>,
    /// Packets that came again.
    packets: u64,
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
    fn is_repeating(&mut self, packet: &Packet, extras: &PacketExtras, latest_ns: i64) -> bool {
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
}

fn description(packet: &Packet, extras: &PacketExtras) -> FirstPacket {
    let head = payload_head(&packet.network, extras);
    (packet.time_ns, packet.wire_bytes, identity(&packet.network, head))
}

impl Analysis {
    /// Take a batch in which packets may come again.
    #[cold]
    pub(super) fn take_batch_in_doubt(&mut self, batch: &Batch, summary: &mut SourceSummary) {
        self.backlog.settle_all(&mut self.flows, &self.threads);
        let extras = batch.extras();
        let mut latest_ns = batch.latest_before_step_back_ns().unwrap_or(i64::MIN);
        for item in batch.items() {
            let packet = item.to_packet();
            let is_known =
                self.appended.is_repeating(&packet, extras, latest_ns) && self.take_again(&packet, extras);
            if !is_known {
                self.take(&packet, extras, summary);
            }
            latest_ns = latest_ns.max(packet.time_ns);
        }
    }

    /// Count a packet of a time that the capture already showed as a duplicate, if its flow has it.
    fn take_again(&mut self, packet: &Packet, extras: &PacketExtras) -> bool {
        let network = &packet.network;
        let is_whole = packet.is_ip && packet.sighting.is_none() && packet.frame.is_none();
        if !is_whole || !is_flow(network) {
            return false;
        }
        let Some(found) = self.flows.find_in_lane(network) else { return false };
        self.outcome.clear();
        let flow = self.flows.get_mut(found.flow);
        let is_known = flow.on_again(&Seen { side: found.side, packet, network, extras }, &mut self.outcome);
        if is_known {
            self.appended.packets += 1;
            // A duplicate of another protocol is nothing but counted: no bin and no table takes it.
            if self.collects && self.outcome.is_copy() {
                self.collect(found, &Captured::of(packet, network));
            }
            if self.spool.is_some() {
                self.spool_packet(found, packet, extras);
            }
        }
        is_known
    }

    /// End a source: report the packets that came again.
    pub(super) fn finish_appended(&mut self, source: &str) {
        let AppendedCapture { packets, .. } = std::mem::take(&mut self.appended);
        if packets == 0 {
            return;
        }
        let message = format!(
            "the capture was appended to itself: {} came again with the same times, and count as duplicates",
            counted(packets, "packet[s]")
        );
        self.problems.push(Problem {
            source: source.to_owned(),
            flows: Vec::new(),
            packet: None,
            packets_before: 0,
            error: ReadError::whole(ProblemKind::Imprecise, message),
        });
    }
}
