//! When flows are over.

pub mod idle_times;
pub(crate) mod nameless_file;
pub(super) mod neighbours;
pub mod packed_flows;
pub mod settled_flows;

use std::collections::HashMap;
use std::io;

use super::flow_places::{FLOWS, FLOWS_IN_TURNS, flow_at, group_of, groups_of, index_in_group};
use super::flow_table::FlowTable;
use super::rtp::RtpFlow;
use super::tcp::ConnectionState;
use super::tfrc::TfrcFlow;
use super::{Flow, NonTcpState, Origin};
use crate::packet::key::{FlowKey, Side};
use idle_times::{IdleKind, IdleTimes, Silence};
use neighbours::FlowSet;
use packed_flows::Packing;
use settled_flows::{SettledFlow, decode};

/// Encoded states of a group that wait to be put away.
const MAX_STATES: usize = 1 << 16;

/// Nodes beyond which the memory of a pool is given back instead of to the next group: those of a few segments of
/// each flow take less.
const MOST_SPARE: u32 = 1 << 10;

/// Silence after which flows are packed if there are more than [`MANY_UNPACKED`].
const MOMENT_NS: i64 = 500_000_000;
const MANY_UNPACKED: u32 = 200_000;

/// Flows that left, by number, as far as they were read.
pub type LoadedFlows = HashMap<u32, SettledFlow>;

named_enum! {
    /// How a flow ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlowEnd {
        /// Not before the trace.
        Open = "open",
        /// Both sides closed it.
        Closed = "closed",
        Reset = "reset",
        /// Without a packet for longer than the time-out.
        Idle = "idle",
        /// A SYN began another connection between the same ports.
        Replaced = "replaced",
    }
}

impl Flow {
    /// What stands for a flow that left.
    pub(super) fn vacant() -> Self {
        Self::new(FlowKey::default(), Side::Low, Origin::default())
    }

    /// Time of its last packet; None without one.
    pub fn last_ns(&self) -> Option<i64> {
        let [low, high] = &self.directions;
        Some(low.end_ns.max(high.end_ns)).filter(|&last_ns| last_ns != i64::MIN)
    }

    /// Forget what only further packets would need.
    fn forget_followers(&mut self) {
        let Some(state) = self.transport.non_tcp_if_any() else { return };
        let NonTcpState {
            rarities: _,
            ecn: _,
            ttls: _,
            place_of_hosts: _,
            quic,
            dccp,
            tfrc,
            rtp,
            layout_flow,
            deliveries,
            probing,
        } = state;
        (*dccp, *tfrc, *rtp, *layout_flow, *deliveries, *probing) = (None, None, None, None, None, None);
        quic.iter_mut().for_each(|quic| quic.forget_handshake());
    }

    /// Whether either side sent data.
    pub(super) fn has_payload(&self) -> bool {
        self.directions.iter().any(|direction| direction.payload_bytes > 0)
    }

    /// For how long it may be silent.
    fn silence(&self, idle: &IdleTimes) -> Option<Silence> {
        Some(Silence { last_ns: self.last_ns()?, quiet_ns: idle.of(IdleKind::of(self)) })
    }

    /// How it ended in a trace that goes on until `end_ns`.
    pub fn end(&self, idle: &IdleTimes, end_ns: i64) -> Option<FlowEnd> {
        let due_ns = self.silence(idle)?.due_ns();
        Some(match self.transport.state() {
            Some(ConnectionState::Closed) => FlowEnd::Closed,
            Some(ConnectionState::Reset | ConnectionState::Refused) => FlowEnd::Reset,
            _ if self.is_replaced => FlowEnd::Replaced,
            _ if due_ns < end_ns => FlowEnd::Idle,
            _ => FlowEnd::Open,
        })
    }

    /// Whether nothing that may still come is of interest to it: reports and other captures are of media and of
    /// numbered packets.
    fn may_leave(&self) -> bool {
        let has_media = |rtp: &RtpFlow| rtp.has_media() || rtp.is_only_rtcp();
        let transport = &self.transport;
        transport.dccp().is_none()
            && !transport.rtp().is_some_and(has_media)
            && transport.layout_flow().is_none()
    }

    /// Whether its state may be packed: it is silent since before this time, and its next packet looks it up.
    fn may_be_packed(&self, before_ns: i64) -> bool {
        self.last_ns().is_some_and(|last_ns| last_ns < before_ns) && !self.is_replaced && self.may_leave()
    }

    /// The same after it was evaluated, when it is known whether its packets were numbered.
    fn can_leave(&self) -> bool {
        let has = |tfrc: &TfrcFlow| [Side::Low, Side::High].into_iter().any(|side| tfrc.has(side));
        self.may_leave() && self.deliveries().is_none() && !self.transport.tfrc().is_some_and(has)
    }
}

/// What a sweep needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// Flows due before it are over.
    pub now_ns: i64,
    /// Flows due before it may be over at their next packet.
    pub next_ns: i64,
}

impl FlowTable {
    /// Whether `flow` is over before a packet of `time_ns`, which then is of another.
    #[inline(always)]
    pub(super) fn ends_before(&mut self, flow: u32, time_ns: i64) -> bool {
        (self.is_careful || self.is_doubtful(flow)) && self.has_ended_before(flow, time_ns)
    }

    /// Whether `flow` may be over before its next packet.
    #[inline(always)]
    pub fn is_doubtful(&self, flow: u32) -> bool {
        self.group(flow).flows.is_doubtful(index_in_group(flow))
    }

    #[inline(never)]
    fn has_ended_before(&mut self, flow: u32, time_ns: i64) -> bool {
        self.wake(flow);
        let is_over = self.is_over_at(flow, time_ns);
        // Whether it was is known afterwards too.
        self.group_mut(flow).flows.set_doubtful(index_in_group(flow), is_over);
        is_over
    }

    /// Whether a packet of `time_ns` cannot refer to a known flow.
    pub fn is_over_at(&self, flow: u32, time_ns: i64) -> bool {
        let is_over = |silence: Silence| silence.is_over_at(time_ns);
        !self.has(flow) || self.silence(flow).is_some_and(is_over)
    }

    /// Find the flows that are over, and mark those that may be before the next sweep.
    pub fn sweep(&mut self, sweep: Sweep) -> Vec<u32> {
        let mut over = Vec::new();
        for number in self.here().collect::<Vec<_>>() {
            let index = index_in_group(number);
            let flows = &self.group(number).flows;
            if flows.is_over(index) {
                continue;
            }
            let Some(silence) = self.silence(number) else { continue };
            // One that was replaced is not packed.
            let is_replaced = !flows.is_packed(index) && flows.at(index).is_replaced;
            if is_replaced || silence.is_over_at(sweep.now_ns) {
                over.push(number);
            } else if silence.due_ns() < sweep.next_ns && !flows.is_packed(index) {
                let key = flows.at(index).key();
                self.group_mut(number).flows.set_doubtful(index, true);
                self.forget_recent(number, &key);
            }
        }
        over
    }

    /// Since when a flow has been silent, packed or not.
    fn silence(&self, flow: u32) -> Option<Silence> {
        self.group(flow).flows.silence(index_in_group(flow), &self.idle)
    }

    /// Whether so many flows are not packed that those which are silent should be.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.unpacked() > self.most_unpacked
    }

    /// Pack flows that have been silent for a while. No packet of theirs may wait.
    pub fn pack(&mut self, now_ns: i64) {
        let Packing { few, silence_ns } = self.packing;
        let is_many = self.unpacked() > MANY_UNPACKED;
        let silence_ns = if is_many { silence_ns.min(MOMENT_NS) } else { silence_ns };
        for group in &mut self.groups {
            group.pack(now_ns.saturating_sub(silence_ns));
        }
        self.count_packed();
        self.forget_all_recent();
        let unpacked = self.unpacked();
        self.most_unpacked = unpacked.saturating_add(few.max(unpacked) / 2);
    }

    /// Count those that are packed.
    pub(super) fn count_packed(&mut self) {
        self.packed = self.groups.iter().map(|group| group.flows.packed() as u32).sum();
    }

    fn unpacked(&self) -> u32 {
        self.live.saturating_sub(self.packed)
    }

    /// Unpack a flow if it is packed, before packets of it are counted.
    #[inline(always)]
    pub fn wake(&mut self, flow: u32) {
        if self.group(flow).flows.is_packed(index_in_group(flow)) {
            self.unpack(flow);
        }
    }

    #[cold]
    #[inline(never)]
    fn unpack(&mut self, flow: u32) {
        self.group_mut(flow).flows.unpack(index_in_group(flow));
        self.packed = self.packed.saturating_sub(1);
    }

    /// The flows that are packed.
    pub fn packed(&self) -> Vec<u32> {
        let is_packed = |&flow: &u32| self.group(flow).flows.is_packed(index_in_group(flow));
        self.here().filter(is_packed).collect()
    }

    /// Evaluate what a flow that is over counted, if it can leave; returns whether it can.
    pub fn finish_leaving(&mut self, number: u32) -> bool {
        let flow = self.get_mut(number);
        if flow.may_leave() {
            flow.transport.finish();
        }
        flow.can_leave()
    }

    /// End the last interval of a flow that is over.
    pub fn finish_interval(&mut self, number: u32) {
        let idle = self.idle;
        self.group_mut(number).finish_interval(index_in_group(number), &idle, i64::MAX);
    }

    /// End the last interval of the neighbours of `number`, in a trace that goes on until `end_ns`.
    pub fn finish_intervals(&mut self, number: u32, end_ns: i64) {
        let idle = self.idle;
        self.group_mut(number).finish_intervals(&idle, end_ns);
    }

    pub fn is_careful(&self) -> bool {
        self.is_careful
    }

    /// Let no packet belong to a flow any more, and keep its state in little memory unless other flows may still
    /// refer to it.
    pub fn settle(&mut self, number: u32) {
        self.unregister(number);
        let index = index_in_group(number);
        let group = self.group_mut(number);
        group.flows.set_over(index);
        if group.flows.at(index).can_leave() {
            self.leave(number);
        }
    }

    fn leave(&mut self, number: u32) {
        let index = index_in_group(number);
        let mut flow = self.group_mut(number).settle_flow(index);
        flow.forget_followers();
        let tunnels = self.tunnelled.take_tunnels(number);
        SettledFlow { index: index as u8, flow, tunnels }.encode(&mut self.group_mut(number).settled.states);
        self.live -= 1;
    }

    /// Keep all flows in little memory, after the last packet and when all were evaluated.
    pub fn settle_rest(&mut self) {
        self.forget_keys();
        for number in self.here().collect::<Vec<_>>() {
            if self.get(number).can_leave() {
                self.leave(number);
            }
            if index_in_group(number) == FLOWS - 1 {
                self.shrink_group(self.place(number));
                self.spare_pools.clear();
            }
        }
        self.shrink();
    }

    /// Give back the memory of flows that left.
    pub fn shrink(&mut self) {
        (0..self.groups.len()).for_each(|place| self.shrink_group(place));
        let left = self.groups.iter().take_while(|group| group.flows.have_left()).count();
        self.before.extend(self.groups.drain(..left).map(|group| group.settled.chunks));
    }

    fn shrink_group(&mut self, place: usize) {
        let group = &mut self.groups[place];
        let pool = group.shrink();
        let is_quiet = pool.is_some() || group.flows.are_packed() && !group.settled.states.is_empty();
        if group.settled.states.len() >= MAX_STATES || is_quiet {
            let states = std::mem::take(&mut group.settled.states);
            group.settled.chunks.push(self.settled.put_away(&states));
        }
        if let Some(mut pool) = pool {
            let nodes = pool.size();
            self.room += pool.reset();
            if nodes <= MOST_SPARE {
                self.spare_pools.push(pool);
            }
        }
    }

    /// Why the states of flows that left could not be written to a file.
    pub fn spool_failure(&self) -> Option<&io::Error> {
        self.settled.failure()
    }

    /// Give all flows, in the order of their first packet, to `take`.
    pub fn for_each(&self, mut take: impl FnMut(u32, &Flow)) -> io::Result<()> {
        for first in (0..self.length).step_by(FLOWS_IN_TURNS as usize) {
            let behind = first.saturating_add(FLOWS_IN_TURNS).min(self.length);
            let mut left: Vec<Option<Flow>> = Vec::new();
            for group in group_of(first)..groups_of(behind) {
                self.read_group(group, &mut |settled| {
                    let place = (flow_at(group, settled.index.into()) - first) as usize;
                    left.resize_with(left.len().max(place + 1), || None);
                    left[place] = Some(settled.flow);
                })?;
            }
            for number in first..behind {
                match left.get_mut((number - first) as usize).and_then(Option::take) {
                    Some(flow) => take(number, &flow),
                    None => self.if_here(number).into_iter().for_each(|flow| take(number, flow)),
                }
            }
        }
        Ok(())
    }

    /// Read those of the `wanted` flows that left.
    pub fn load(&self, wanted: &mut dyn Iterator<Item = u32>) -> io::Result<LoadedFlows> {
        let mut loaded = LoadedFlows::default();
        if self.live() == self.len() {
            return Ok(loaded);
        }
        let mut groups: HashMap<usize, FlowSet> = HashMap::new();
        for number in wanted.filter(|&number| number < self.length) {
            if self.if_here(number).is_none() {
                groups.entry(group_of(number)).or_default().set(index_in_group(number), true);
            }
        }
        for (group, wanted) in groups {
            self.read_group(group, &mut |settled| {
                if wanted.has(settled.index.into()) {
                    loaded.insert(flow_at(group, settled.index.into()), settled);
                }
            })?;
        }
        Ok(loaded)
    }

    /// Give each flow of a group that left to `take`.
    fn read_group(&self, group: usize, take: &mut dyn FnMut(SettledFlow)) -> io::Result<()> {
        let before = self.before.get(group);
        let place = group.wrapping_sub(self.before.len());
        let settled = self.groups.get(place).map(|group| &group.settled);
        for &chunk in settled.map(|settled| &settled.chunks).or(before).into_iter().flatten() {
            self.settled.read(chunk, take)?;
        }
        settled.map_or(Ok(()), |settled| decode(&settled.states, take))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::flow_places::GROUPS_IN_TURNS;
    use crate::packet::key::Ipv4Ends;
    use crate::packet::plain::PlainSegment;

    #[test]
    fn test_flows_that_left_can_be_read_and_their_groups_take_no_memory() {
        let mut flows = FlowTable::new(u32::MAX, IdleTimes::default(), Packing::default(), None);
        // Of the last group, only the last flow stays.
        let last = 2 * FLOWS_IN_TURNS - 1;
        for host in 0..=last {
            let ends = Ipv4Ends { addresses: 1 << 63 | u64::from(host), ports: 3 << 16 | 4 };
            let found = flows.find_or_open_plain(&PlainSegment { ends, ..PlainSegment::default() }, host);
            assert_eq!(found.unwrap().flow, host);
        }
        (0..last).for_each(|flow| flows.settle(flow));
        flows.shrink();
        let groups = 2 * GROUPS_IN_TURNS;
        assert_eq!(
            (flows.groups.len(), flows.before.len(), flows.spare_pools.len()),
            (1, groups - 1, groups - 1)
        );
        assert_eq!((flows.live(), flows.if_here(0).is_none(), flows.is_over_at(0, 0)), (1, true, true));
        let mut sources = Vec::new();
        flows.for_each(|number, flow| sources.push((number, flow.source))).unwrap();
        assert_eq!(sources, (0..=last).map(|host| (host, host)).collect::<Vec<_>>());
        let loaded = flows.load(&mut [last, 700, 5].into_iter()).unwrap();
        assert_eq!((loaded.len(), loaded[&5].flow.source, loaded[&700].flow.source), (2, 5, 700));
        flows.settle(last);
        flows.shrink();
        assert_eq!((flows.groups.len(), flows.before.len(), flows.spare_pools.len()), (0, groups, groups));
    }
}
