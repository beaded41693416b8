//! A stretch of time that is read: packets outside of it are counted and left out.

use std::collections::{HashMap, HashSet};

use crate::packet::event::{Packet, TcpFlags, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::key::FlowKey;
use crate::packet::record::Record;
use crate::wire;
use crate::wire::layers::TunnelPorts;

/// Flows outside of the stretch that are remembered: each takes some 50 bytes.
pub const REMEMBERED: usize = 1 << 20;

/// Times below this are of a simulation, which starts at 0.
const YEAR_NS: i64 = 365 * 86_400 * 1_000_000_000;

/// From one time until before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub since_ns: i64,
    pub until_ns: i64,
    /// Whether the times count from the first packet of a capture.
    pub is_from_first: bool,
}

impl Stretch {
    /// The part of a span from its first to its last packet that lies inside.
    pub fn clip(&self, (start_ns, end_ns): (i64, i64)) -> (i64, i64) {
        (start_ns.max(self.since_ns), end_ns.min(self.until_ns.saturating_sub(1)))
    }

    /// The stretch with other ends.
    pub fn map(self, time: impl Fn(i64) -> i64) -> Self {
        // The ends of time have no counterpart.
        let end = |time_ns| if time_ns == i64::MIN || time_ns == i64::MAX { time_ns } else { time(time_ns) };
        Self { since_ns: end(self.since_ns), until_ns: end(self.until_ns), ..self }
    }
}

/// Flows that have packets outside of the stretch.
#[derive(Debug, Default)]
pub struct OutsideFlows {
    before: HashSet<FlowKey>,
    /// Whether the first packet after the stretch may belong to a flow of it.
    after: HashMap<FlowKey, bool>,
    /// Whether there are more than are remembered.
    pub has_more: bool,
}

impl OutsideFlows {
    /// Add those of another source of the trace, which was read later.
    pub fn add(&mut self, later: Self) {
        if self.is_empty() {
            *self = later;
            return;
        }
        self.has_more |= later.has_more;
        later.before.into_iter().for_each(|key| self.add_before(key));
        later.after.into_iter().for_each(|(key, goes_on)| self.add_after(key, goes_on));
    }

    fn has_room(&mut self) -> bool {
        let has_room = self.before.len() + self.after.len() < REMEMBERED;
        self.has_more |= !has_room;
        has_room
    }

    fn add_before(&mut self, key: FlowKey) {
        if !self.before.contains(&key) && self.has_room() {
            self.before.insert(key);
        }
    }

    fn add_after(&mut self, key: FlowKey, goes_on: bool) {
        if !self.after.contains_key(&key) && self.has_room() {
            self.after.insert(key, goes_on);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Whether a flow of `key` may have packets outside.
    pub fn has(&self, key: &FlowKey) -> bool {
        self.before.contains(key) || self.after.contains_key(key)
    }

    /// Whether the next flow of `key`, in the order of first packets, began before the stretch.
    pub fn take_before(&mut self, key: &FlowKey) -> bool {
        self.before.remove(key)
    }

    /// Whether the last flow of `key` went on after the stretch.
    pub fn take_behind(&mut self, key: &FlowKey) -> bool {
        self.after.remove(key).unwrap_or(false)
    }
}

/// Leaves out the packets of a source that are outside of a stretch.
#[derive(Debug)]
pub struct Clipper {
    stretch: Stretch,
    /// Packets that were left out.
    pub packets: u64,
    pub flows: OutsideFlows,
    /// Memory for the packet that is left out.
    scratch: Box<(Packet, PacketExtras)>,
}

impl Clipper {
    pub fn new(stretch: Stretch) -> Self {
        Self { stretch, packets: 0, flows: OutsideFlows::default(), scratch: Box::default() }
    }

    /// Whether a packet of `time_ns`, the next of the source, is outside.
    #[inline(always)]
    pub fn leaves_out(&mut self, time_ns: i64) -> bool {
        if self.stretch.is_from_first {
            let zero_ns = if time_ns < YEAR_NS { 0 } else { time_ns };
            self.stretch.is_from_first = false;
            self.stretch = self.stretch.map(|offset_ns| offset_ns.saturating_add(zero_ns));
        }
        !self.contains(time_ns)
    }

    pub fn contains(&self, time_ns: i64) -> bool {
        self.stretch.since_ns <= time_ns && time_ns < self.stretch.until_ns
    }

    /// Count a packet of a capture outside, and remember its flow.
    #[inline(never)]
    pub fn leave_out_record(&mut self, record: &Record<'_>, tunnel_ports: &TunnelPorts) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (packet, extras) = &mut *scratch;
        extras.clear();
        wire::decode(record, 0, packet, extras, tunnel_ports);
        self.leave_out(packet);
        self.scratch = scratch;
    }

    /// The same for a decoded packet.
    pub fn leave_out(&mut self, packet: &Packet) {
        self.packets += 1;
        let network = &packet.network;
        let has_flow = match network.transport {
            Transport::IcmpError | Transport::LaterFragment => false,
            _ => packet.is_ip && network.has_ports,
        };
        if !has_flow {
            return;
        }
        let (key, _) = FlowKey::of(&network.endpoints);
        if packet.time_ns < self.stretch.since_ns {
            self.flows.add_before(key);
        } else {
            let is_new = network.transport == Transport::Tcp && network.tcp.flags.has(TcpFlags::SYN);
            self.flows.add_after(key, !is_new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::event::Endpoints;

    #[test]
    fn test_a_stretch_has_its_start_and_not_its_end() {
        let mut clipper = Clipper::new(Stretch { since_ns: 10, until_ns: 20, is_from_first: false });
        assert_eq!([9, 10, 19, 20].map(|time_ns| clipper.leaves_out(time_ns)), [true, false, false, true]);
    }

    #[test]
    fn test_flows_outside_are_remembered_up_to_a_bound() {
        let key = |number: u32, side: u16| {
            let src = number.into();
            FlowKey::of(&Endpoints { src, src_port: side, dst: 1, ..Endpoints::default() }).0
        };
        let mut flows = OutsideFlows::default();
        for number in 0..REMEMBERED as u32 / 2 {
            flows.add_before(key(number, 1));
            flows.add_after(key(number, 2), true);
        }
        flows.add_before(key(0, 1));
        assert!(!flows.has_more && flows.has(&key(0, 1)) && flows.has(&key(0, 2)));
        flows.add_after(key(0, 3), true);
        flows.add_before(key(0, 4));
        assert!(flows.has_more && !flows.has(&key(0, 3)) && !flows.has(&key(0, 4)));
        assert_eq!(flows.before.len() + flows.after.len(), REMEMBERED);
    }

    #[test]
    fn test_offsets_count_from_the_first_packet_of_a_capture_and_from_0_in_a_simulation() {
        for (first_ns, zero_ns) in [(2 * YEAR_NS, 2 * YEAR_NS), (5, 0)] {
            let mut clipper = Clipper::new(Stretch { since_ns: 10, until_ns: i64::MAX, is_from_first: true });
            assert!(clipper.leaves_out(first_ns));
            assert!(!clipper.leaves_out(zero_ns + 10) && !clipper.leaves_out(i64::MAX - 1));
        }
    }
}
