//! Packets queued until several of the same flows are there.
//!
//! The state of a flow is a dozen cache lines. With more flows than the caches hold, a packet of
//! another flow than the last waits for most of them: four fifths of the time with 100,000 flows.
//! So packets are queued per group of neighbouring flows, and a group is processed at once: its
//! flows' state is fetched once for several packets of each. Flows are independent, and each gets
//! its packets in order, so the result is the same. Several threads can process groups at a time,
//! with the same result however many there are.

use super::flow_group::Buffer;
use super::queued_packet::QueuedPacket;
use super::{FlowTable, Found};
use crate::packet::batch::Item;
use crate::packet::extras::PacketExtras;
use crate::threads::Threads;

/// Buffers of all groups together that are always allowed: 4 MB.
const FEW_BUFFERS: usize = 2_000;
/// Limit of buffers of all groups: 13 MB, and half as much again if each packet has a SACK block.
/// More buffers would bring packets of one flow together more often, but memory is bounded.
const MAX_BUFFERS: usize = 6_400;
/// Flows per additional buffer: eight packets of each flow wait then.
const FLOWS_PER_BUFFER: usize = 8;

#[derive(Debug, Default)]
pub struct FlowBatches {
    /// Buffers in use by groups.
    in_use: usize,
    spare: Vec<Buffer>,
    /// Whether packets were processed since [`FlowBatches::has_settled`] was last called.
    has_settled: bool,
}

impl FlowBatches {
    /// Whether no packet is queued.
    pub fn is_empty(&self) -> bool {
        self.in_use == 0
    }

    /// Whether queued packets were processed since the last call.
    pub fn has_settled(&mut self) -> bool {
        std::mem::take(&mut self.has_settled)
    }

    /// Queue a packet of a known flow if it is of the usual kind. Others must go to their flow at
    /// once, after [`FlowBatches::settle`].
    #[inline(always)]
    pub fn set_aside(
        &mut self,
        item: Item<'_>,
        found: Found,
        extras: &PacketExtras,
        flows: &mut FlowTable,
        threads: &Threads,
    ) -> bool {
        let (sack, time_ns, waiting) = match item {
            Item::Plain(segment) => {
                let sack = extras.sack(segment.tcp.options.sack);
                (sack, segment.time_ns, QueuedPacket::of_plain(segment, found, sack.len()))
            }
            Item::Other(packet) => {
                // A queued packet has no field for it.
                if packet.network.dscp.is_some_and(|dscp| dscp != 0) {
                    flows.get_mut(found.flow).note_dscp(found.side, packet.network.dscp);
                }
                let sack = packet.network.tcp().map_or(&[][..], |tcp| extras.sack(tcp.options.sack));
                (sack, packet.time_ns, QueuedPacket::of(packet, found, sack.len()))
            }
        };
        let Some(waiting) = waiting else { return false };
        if !flows.group_mut(found.flow).set_aside(time_ns, waiting) {
            self.begin_buffer((time_ns, waiting), found.flow, flows, threads);
        }
        if !sack.is_empty() {
            flows.group_mut(found.flow).set_sack_aside(sack);
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn begin_buffer(
        &mut self,
        (time_ns, first): (i64, QueuedPacket),
        flow: u32,
        flows: &mut FlowTable,
        threads: &Threads,
    ) {
        if self.in_use >= (flows.live() / FLOWS_PER_BUFFER).clamp(FEW_BUFFERS, MAX_BUFFERS) {
            self.settle_all(flows, threads);
        }
        let mut buffer = self.spare.pop().unwrap_or_else(Buffer::with_room);
        self.in_use += 1;
        buffer.begin(time_ns, first);
        flows.group_mut(flow).begin_buffer(buffer);
    }

    /// Process all queued packets.
    pub fn settle_all(&mut self, flows: &mut FlowTable, threads: &Threads) {
        if self.is_empty() {
            return;
        }
        self.has_settled = true;
        flows.share_room(|_, group| group.queued());
        let mut states = vec![(); threads.count()];
        threads.share(flows.groups_mut().iter_mut(), &mut states, |group, ()| group.settle());
        for group in flows.groups_mut() {
            group.give_up_buffers(&mut self.spare);
        }
        self.in_use = 0;
    }

    /// Process the queued packets of `flow` and its neighbours.
    pub fn settle(&mut self, flow: u32, flows: &mut FlowTable) {
        let buffers = flows.group_mut(flow).buffers();
        if buffers > 0 {
            self.has_settled = true;
            flows.borrow_pool(flow);
            let group = flows.group_mut(flow);
            group.settle();
            group.give_up_buffers(&mut self.spare);
            flows.take_room_back(flow);
            self.in_use -= buffers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::ends::idle_times::IdleTimes;
    use crate::flow::ends::packed_flows::Packing;
    use crate::flow::flow_group::BUFFER;
    use crate::flow::flow_places::{FLOWS_IN_TURNS, index_in_group};
    use crate::packet::event::{Tcp, TcpFlags};
    use crate::packet::key::Ipv4Ends;
    use crate::packet::plain::PlainSegment;

    #[test]
    fn test_flows_that_ended_leave_room_for_later_ones() {
        let mut flows = FlowTable::new(u32::MAX, IdleTimes::default(), Packing::default(), None);
        let (mut backlog, threads) = (FlowBatches::default(), Threads::new(None));
        let tcp = Tcp { flags: TcpFlags(TcpFlags::ACK), ..Tcp::default() };
        for host in 0..6 * u64::from(FLOWS_IN_TURNS) {
            let ends = Ipv4Ends { addresses: 1 << 63 | host, ports: 3 << 16 | 4 };
            let segment = PlainSegment {
                number: 1,
                wire_bytes: 154,
                payload: 100,
                ends,
                tcp,
                ..PlainSegment::default()
            };
            let found = flows.find_or_open_plain(&segment, 0).unwrap();
            if index_in_group(found.flow) == 0 {
                for _ in 0..100 * BUFFER {
                    backlog.set_aside(
                        Item::Plain(&segment),
                        found,
                        &PacketExtras::default(),
                        &mut flows,
                        &threads,
                    );
                }
                backlog.settle(found.flow, &mut flows);
            }
            assert!(flows.get_with_pool(found.flow).1.room() > 0, "flow {host}");
        }
    }

    #[test]
    fn test_every_buffer_is_filled_before_the_next_one_begins() {
        let (mut backlog, mut flows) =
            (FlowBatches::default(), FlowTable::new(10, IdleTimes::default(), Packing::default(), None));
        let threads = Threads::new(None);
        let tcp = Tcp { flags: TcpFlags(TcpFlags::ACK), ..Tcp::default() };
        let ends = Ipv4Ends { addresses: 1 << 32 | 2, ports: 3 << 16 | 4 };
        let segment = PlainSegment { number: 1, wire_bytes: 54, ends, tcp, ..PlainSegment::default() };
        let found = flows.find_or_open_plain(&segment, 0).unwrap();
        // New ones, and those used before.
        for _ in 0..2 {
            for packets in 0..=BUFFER {
                assert_eq!(backlog.in_use, packets.div_ceil(BUFFER));
                assert!(backlog.set_aside(
                    Item::Plain(&segment),
                    found,
                    &PacketExtras::default(),
                    &mut flows,
                    &threads
                ));
            }
            assert_eq!(backlog.in_use, 2);
            backlog.settle_all(&mut flows, &threads);
        }
        assert_eq!(flows.get(found.flow).direction(found.side).packets, 2 * (BUFFER as u64 + 1));
    }
}
