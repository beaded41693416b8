//! A group of neighbouring flows with everything that they need, so that groups are independent.

use serde::{Deserialize, Serialize};

use super::ends::idle_times::IdleTimes;
use super::ends::neighbours::Neighbours;
use super::ends::settled_flows::SettledNeighbours;
use super::flow_places::{FLOWS, index_in_group};
use super::intervals::{Cuts, Intervals, Piece};
use super::outstanding::{NODES_PER_PACKET, Pool};
use super::queued_packet::QueuedPacket;
use super::tcp::Outcome;
use super::{Flow, Found};
use crate::packet::extras::PacketExtras;
use crate::packet::key::Side;
use crate::packet::plain::PlainSegment;

/// Packets in a buffer; a group has as many buffers as it needs.
pub const BUFFER: usize = 64;

/// Queued packets, in order.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Time of the first one.
    since_ns: i64,
    packets: Vec<QueuedPacket>,
}

impl Buffer {
    const NONE: Self = Self { since_ns: 0, packets: Vec::new() };

    /// A buffer with capacity for [`BUFFER`] packets.
    pub fn with_room() -> Self {
        Self { since_ns: 0, packets: Vec::with_capacity(BUFFER) }
    }

    /// Start with `first`, captured at `time_ns`.
    pub fn begin(&mut self, time_ns: i64, first: QueuedPacket) {
        self.since_ns = time_ns;
        self.packets.push(first);
    }

    /// Add a packet captured at `time_ns`; false if the buffer is full, and for times before the
    /// first or four seconds after it.
    #[inline(always)]
    fn push(&mut self, time_ns: i64, mut packet: QueuedPacket) -> bool {
        let later_ns = u32::try_from(time_ns.wrapping_sub(self.since_ns));
        match later_ns {
            Ok(later_ns) if self.packets.len() < self.packets.capacity() => {
                packet.later_ns = later_ns;
                self.packets.push(packet);
                true
            }
            _ => false,
        }
    }

    fn has_room(&self) -> bool {
        self.packets.capacity() > 0
    }
}

/// Flows of consecutive numbers.
#[derive(Debug, Serialize, Deserialize)]
pub struct FlowGroup {
    pub flows: Neighbours,
    pool: Pool,
    /// Queued packets in order: full buffers, and the one being filled.
    #[serde(skip)] // empty between two files, as are the next two
    full: Vec<Buffer>,
    #[serde(skip)]
    filling: Buffer,
    /// Their SACK blocks, in the same order.
    #[serde(skip)]
    sacks: Vec<(u32, u32)>,
    /// State of flows that left.
    pub settled: SettledNeighbours,
    /// Cuts the flows' counters into intervals, if wanted.
    intervals: Option<Box<Intervals>>,
}

impl FlowGroup {
    /// A group of no flows, to be cut like this.
    pub fn new(pool: Pool, cuts: Option<Cuts>) -> Self {
        Self {
            flows: Neighbours::new(),
            pool,
            full: Vec::new(),
            filling: Buffer::NONE,
            sacks: Vec::new(),
            settled: SettledNeighbours::default(),
            intervals: cuts.map(|cuts| Box::new(Intervals::new(cuts))),
        }
    }

    /// Whether what was read back from a checkpoint fits together, with so many bytes of flows that left.
    pub fn is_sound(&self, settled_bytes: u64) -> bool {
        let chunks = &self.settled.chunks;
        self.flows.is_sound() && chunks.iter().all(|chunk| chunk.is_within(settled_bytes))
    }

    /// Add a flow, while so many others are followed.
    pub fn open(&mut self, flow: Flow, others: usize) {
        self.flows.open(flow);
        if let Some(intervals) = &mut self.intervals {
            intervals.open(others);
        }
    }

    /// The next packet of the flow at `index` is of `time_ns`: end its interval if that is another,
    /// and return whether it was.
    #[inline(always)]
    pub fn reach(&mut self, index: usize, time_ns: i64) -> bool {
        match &mut self.intervals {
            Some(intervals) => intervals.reach(index, self.flows.at_mut(index), time_ns),
            None => false,
        }
    }

    /// The next packet of the flow at `index` is a segment of `side` with data: its number and payload.
    #[inline(always)]
    pub fn note_data(&mut self, index: usize, side: Side, time_ns: i64, data: (u32, u32)) {
        if let Some(intervals) = &mut self.intervals {
            intervals.note_data(index, self.flows.at(index), side, time_ns, data);
        }
    }

    /// End the last interval of all flows, which end by a silence of `idle` or with the trace.
    pub fn finish_intervals(&mut self, idle: &IdleTimes, end_ns: i64) {
        for index in self.flows.indices() {
            self.finish_interval(index, idle, end_ns);
        }
    }

    /// Cut the flows whose interval ended after `ended.0`, and at `ended.1` at the latest. They stay in it: what
    /// becomes known before their next packet counts there.
    pub fn cut_ended(&mut self, ended: (i64, i64)) {
        let Some(intervals) = &mut self.intervals else { return };
        for index in
            self.flows.indices().filter(|&index| intervals.has_ended(index, ended)).collect::<Vec<_>>()
        {
            intervals.cut(index, self.flows.at_mut(index));
        }
    }

    /// What the flows counted in intervals that ended.
    pub fn take_pieces(&mut self) -> Vec<Piece> {
        self.intervals.as_mut().map_or_else(Vec::new, |intervals| std::mem::take(&mut intervals.pieces))
    }

    /// End the last interval of the flow at `index`.
    pub fn finish_interval(&mut self, index: usize, idle: &IdleTimes, end_ns: i64) {
        if let Some(intervals) = &mut self.intervals {
            let flow = self.flows.at(index);
            let silence = self.flows.silence(index, idle);
            let until_ns = silence.map_or(end_ns, |silence| silence.due_ns().min(end_ns));
            intervals.finish(index, flow, until_ns);
        }
    }

    /// Take the flow at `index`, which is over, out.
    pub fn settle_flow(&mut self, index: usize) -> Flow {
        let mut flow = self.flows.remove(index);
        if let Some(connection) = flow.transport.tcp.as_deref_mut() {
            connection.leave(&mut self.pool);
        }
        flow
    }

    /// Give back memory that flows which are over needed; returns the pool if none is left.
    pub fn shrink(&mut self) -> Option<Pool> {
        if !self.flows.shrink() {
            return None;
        }
        // They hold nothing, but each of a hundred thousand groups after a flow that stays a kilobyte.
        (self.full, self.sacks, self.intervals) = (Vec::new(), Vec::new(), None);
        Some(std::mem::replace(&mut self.pool, Pool::with_room(0)))
    }

    /// Pool of unacknowledged data.
    #[inline(always)]
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The most packets that are queued.
    pub fn queued(&self) -> usize {
        self.buffers() * BUFFER
    }

    /// Pool nodes that the queued packets and one more can need.
    #[inline(always)]
    pub fn needed_room(&self) -> u32 {
        (self.queued() + 1) as u32 * NODES_PER_PACKET
    }

    /// Pack flows whose last packet came before this time.
    pub fn pack(&mut self, before_ns: i64) {
        self.flows.pack(before_ns);
        if self.flows.are_packed() {
            self.pool.shrink();
        }
    }

    /// Forget the requests and the data that wait for an answer.
    pub fn forget_waiting(&mut self) {
        if let Some(intervals) = &mut self.intervals {
            intervals.forget_waiting();
        }
    }

    /// Change all flows; those that are packed stay so.
    pub fn change_all(&mut self, change: impl Fn(&mut Flow, &mut Pool)) {
        let packed = self.flows.unpack_all();
        for index in self.flows.indices() {
            let (flow, pool) = self.flow_and_pool(index);
            change(flow, pool);
        }
        if packed.count() > 0 {
            self.flows.arrange(&packed);
        }
    }

    /// A flow of the group.
    #[inline(always)]
    pub fn flow(&self, flow: u32) -> &Flow {
        self.flows.at(index_in_group(flow))
    }

    /// Pass a plain segment to its flow.
    #[inline(always)]
    pub fn on_plain(
        &mut self,
        found: Found,
        segment: &PlainSegment,
        extras: &PacketExtras,
        outcome: &mut Outcome,
    ) {
        let index = index_in_group(found.flow);
        if let Some(intervals) = &mut self.intervals {
            let flow = self.flows.at_mut(index);
            intervals.reach(index, flow, segment.time_ns);
            if segment.payload > 0 {
                let data = (segment.tcp.seq, segment.payload);
                intervals.note_data(index, flow, found.side, segment.time_ns, data);
            }
        }
        self.flows.at_mut(index).on_plain(found.side, segment, extras, &mut self.pool, outcome);
    }

    /// The flow at `index` in the group, and the pool.
    #[inline(always)]
    pub fn flow_and_pool(&mut self, place: usize) -> (&mut Flow, &mut Pool) {
        (self.flows.at_mut(place), &mut self.pool)
    }

    /// Queue a packet captured at `time_ns` if the buffer has space; its SACK blocks follow if it
    /// has some.
    #[inline(always)]
    pub fn set_aside(&mut self, time_ns: i64, packet: QueuedPacket) -> bool {
        self.filling.push(time_ns, packet)
    }

    /// Keep the SACK blocks of the packet queued last.
    pub fn set_sack_aside(&mut self, blocks: &[(u32, u32)]) {
        self.sacks.extend_from_slice(blocks);
    }

    /// Use `buffer` for the next packets.
    pub fn begin_buffer(&mut self, buffer: Buffer) {
        let full = std::mem::replace(&mut self.filling, buffer);
        if full.has_room() {
            self.full.push(full);
        }
    }

    pub fn buffers(&self) -> usize {
        self.full.len() + usize::from(self.filling.has_room())
    }

    /// Process the queued packets, one flow after the other, so that the nearest cache holds its
    /// state for all its packets.
    pub fn settle(&mut self) {
        let Self { flows, pool, full, filling, sacks, intervals, .. } = self;
        // Nothing is collected while packets are queued, so their outcome is not needed.
        let mut outcome = Outcome::default();
        for turn in in_order_of_flow(full, filling) {
            let buffer = full.get(turn.buffer as usize).unwrap_or(filling);
            let Some(packet) = buffer.packets.get(usize::from(turn.at)) else { continue };
            let from = turn.sack as usize;
            let sack = sacks.get(from..from + packet.sack_blocks()).unwrap_or_default();
            let flow = flows.at_mut(packet.flow_index());
            let time_ns = buffer.since_ns.wrapping_add(packet.later_ns.into());
            if let Some(intervals) = intervals {
                intervals.reach(packet.flow_index(), flow, time_ns);
                if packet.payload() > 0 {
                    let data = (packet.tcp().seq, packet.payload());
                    intervals.note_data(packet.flow_index(), flow, packet.side(), time_ns, data);
                }
            }
            flow.on_waiting(packet, time_ns, sack, pool, &mut outcome);
        }
        for buffer in full.iter_mut().chain([filling]) {
            buffer.packets.clear();
        }
        self.sacks = Vec::new();
    }

    /// Return the buffers, which must be empty.
    pub fn give_up_buffers(&mut self, spare: &mut Vec<Buffer>) {
        spare.append(&mut self.full);
        let filling = std::mem::replace(&mut self.filling, Buffer::NONE);
        if filling.has_room() {
            spare.push(filling);
        }
    }
}

#[derive(Clone, Copy, Default)]
struct QueueEntry {
    buffer: u32,
    /// Index of its first SACK block.
    sack: u32,
    /// Its index in the buffer.
    at: u16,
}

/// The packets of these buffers, grouped by flow and in order.
fn in_order_of_flow(full: &[Buffer], filling: &Buffer) -> Vec<QueueEntry> {
    let buffers = || full.iter().chain([filling]);
    // A counting sort: packets per flow, start index of each flow, then all in order.
    let mut next = [0_u32; FLOWS];
    let mut count = 0;
    for packet in buffers().flat_map(|buffer| &buffer.packets) {
        next[packet.flow_index()] += 1;
        count += 1;
    }
    let mut before = 0;
    for place in &mut next {
        before += std::mem::replace(place, before);
    }
    let mut in_order_of_flow = vec![QueueEntry::default(); count];
    let mut sack = 0;
    for (number, buffer) in buffers().enumerate() {
        for (at, packet) in buffer.packets.iter().enumerate() {
            let place = &mut next[packet.flow_index()];
            if let Some(turn) = in_order_of_flow.get_mut(*place as usize) {
                *turn = QueueEntry { buffer: number as u32, sack, at: at as u16 };
            }
            *place += 1;
            sack += packet.sack_blocks() as u32;
        }
    }
    in_order_of_flow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::{Tcp, TcpFlags};
    use crate::packet::ip_fields::IpFields;

    /// A data segment from [`Side::Low`] with these SACK blocks.
    fn waiting(sack_blocks: usize, place: u16) -> Option<QueuedPacket> {
        let tcp = Tcp { flags: TcpFlags(TcpFlags::ACK), ..Tcp::default() };
        let ip = IpFields { capture_point: place, ..IpFields::default() };
        let segment = PlainSegment { wire_bytes: 154, payload: 100, tcp, ip, ..PlainSegment::default() };
        QueuedPacket::of_plain(&segment, Found { flow: 0, side: Side::Low }, sack_blocks)
    }

    #[test]
    fn test_a_packet_that_waits_takes_half_a_cache_line() {
        assert_eq!(size_of::<QueuedPacket>(), 32);
    }

    #[test]
    fn test_what_has_no_room_in_the_short_form_does_not_wait() {
        assert!(
            (0..=3).all(|blocks| waiting(blocks, 0).is_some_and(|packet| packet.sack_blocks() == blocks))
        );
        assert!(waiting(4, 0).is_none());
        assert!(waiting(0, 255).is_some() && waiting(0, 256).is_none());
    }

    #[test]
    fn test_a_buffer_holds_packets_of_four_seconds_from_its_first() {
        let packet = waiting(0, 0).unwrap();
        let mut buffer = Buffer::with_room();
        buffer.begin(i64::MAX - 5, packet);
        assert!(buffer.push(i64::MAX, packet) && !buffer.push(i64::MAX - 6, packet));
        let mut buffer = Buffer::with_room();
        buffer.begin(-3, packet);
        let last_ns = -3 + i64::from(u32::MAX);
        assert!(buffer.push(last_ns, packet) && !buffer.push(last_ns + 1, packet));
        assert_eq!(buffer.packets.last().map(|last| last.later_ns), Some(u32::MAX));
        assert!((3..=BUFFER).all(|_| buffer.push(0, packet)) && !buffer.push(0, packet));
    }
}
