//! Packets whose point on their path is not known yet, and those after them: order matters to
//! connections, so all wait for the first.

use std::collections::VecDeque;

use super::node_roles::{NodeRoles, RoleQuestion};
use crate::packet::event::{Packet, PathPoint};

/// The most packets that wait; then the first gets the likeliest answer.
const MAX_WAITING: usize = 4096;
/// How long a packet waits. A router forwards at once, or after address resolution, which takes
/// milliseconds even with a lost request.
const MAX_WAIT_NS: i64 = 1_000_000_000;

/// A packet and the question that is open.
#[derive(Clone, Copy, Debug)]
pub struct HeldPacket {
    pub packet: Packet,
    pub question: Option<RoleQuestion>,
    /// Whether it is a retransmission of the link.
    pub is_retry: bool,
}

impl HeldPacket {
    fn answer(&mut self, point: PathPoint) {
        if let Some(sighting) = &mut self.packet.sighting {
            sighting.point = point;
        }
        self.question = None;
    }
}

#[derive(Debug, Default)]
pub struct PendingPackets {
    queue: VecDeque<HeldPacket>,
    latest_ns: i64,
}

impl PendingPackets {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Add the next packet, and return the first if its question is answered by now.
    pub fn pass(&mut self, held: HeldPacket, roles: &mut NodeRoles) -> Option<HeldPacket> {
        self.latest_ns = self.latest_ns.max(held.packet.time_ns);
        self.queue.push_back(held);
        self.first(roles, false)
    }

    /// The first packet, if its question is answered, or `is_over`: no line follows.
    pub fn first(&mut self, roles: &mut NodeRoles, is_over: bool) -> Option<HeldPacket> {
        let first = self.queue.front()?;
        let point = match &first.question {
            None => None,
            Some(question) => {
                let waited_ns = self.latest_ns.saturating_sub(first.packet.time_ns);
                let gives_up = is_over || waited_ns > MAX_WAIT_NS || self.queue.len() > MAX_WAITING;
                Some(if gives_up { roles.settle(question) } else { roles.answer(question)? })
            }
        };
        let mut held = self.queue.pop_front()?;
        if let Some(point) = point {
            held.answer(point);
        }
        Some(held)
    }
}
