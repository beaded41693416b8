//! Neighbouring flows, with all that they need: a group is taken care of without looking at others.

use super::Flow;
use super::sendings::{NODES_PER_PACKET, Pool};
use super::tcp::Outcome;
use super::waiting::Waiting;
use crate::asides::SackBlocks;

/// Flows in a group, as a power of two: with what waits for acknowledgements 400 kB, which the
/// second-level cache holds.
pub const GROUP_BITS: u32 = 8;

/// Flows in a group.
const FLOWS: usize = 1 << GROUP_BITS;

/// Packets in a buffer; a group has as many buffers as it needs.
pub const BUFFER: usize = 64;

/// Flows of consecutive numbers.
#[derive(Debug)]
pub struct Group {
    flows: Vec<Flow>,
    /// What waits for acknowledgements.
    pool: Pool,
    /// Packets that wait to be taken in, in order: full buffers, and the one being filled.
    full: Vec<Vec<Waiting>>,
    filling: Vec<Waiting>,
    /// The SACK blocks of those that have some, in the same order.
    sacks: Vec<SackBlocks>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            // Address space only: memory is taken page by page as flows are opened.
            flows: Vec::with_capacity(FLOWS),
            pool: Pool::with_room(0),
            full: Vec::new(),
            filling: Vec::new(),
            sacks: Vec::new(),
        }
    }
}

impl Group {
    /// Its flows.
    #[inline(always)]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The same, to be changed.
    #[inline(always)]
    pub fn flows_mut(&mut self) -> &mut [Flow] {
        &mut self.flows
    }

    /// A further flow.
    pub fn open(&mut self, flow: Flow) {
        self.flows.push(flow);
    }

    /// What waits for acknowledgements.
    #[inline(always)]
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Nodes of the pool that the packets set aside and one more can need.
    #[inline(always)]
    pub fn needed_room(&self) -> u32 {
        (self.buffers() * BUFFER + 1) as u32 * NODES_PER_PACKET
    }

    /// The flow at `place` and the pool.
    #[inline(always)]
    pub fn flow_and_pool(&mut self, place: usize) -> (&mut Flow, &mut Pool) {
        (&mut self.flows[place], &mut self.pool)
    }

    /// Set a packet aside, if the buffer has room for it; its SACK blocks follow if it has some.
    #[inline(always)]
    pub fn set_aside(&mut self, packet: Waiting) -> bool {
        let has_room = self.filling.len() < self.filling.capacity();
        if has_room {
            self.filling.push(packet);
        }
        has_room
    }

    /// Keep the SACK blocks of the packet that was set aside last.
    pub fn set_sack_aside(&mut self, blocks: SackBlocks) {
        self.sacks.push(blocks);
    }

    /// Take `buffer` for the packets that come now.
    pub fn begin_buffer(&mut self, buffer: Vec<Waiting>) {
        let full = std::mem::replace(&mut self.filling, buffer);
        if full.capacity() > 0 {
            self.full.push(full);
        }
    }

    /// Buffers in use.
    pub fn buffers(&self) -> usize {
        self.full.len() + usize::from(self.filling.capacity() > 0)
    }

    /// Give the packets that wait to their flows.
    pub fn settle(&mut self) {
        // Nothing is collected while packets are set aside, so nobody asks what they were.
        let mut outcome = Outcome::default();
        let mut sacks = self.sacks.iter();
        for buffer in self.full.iter_mut().chain([&mut self.filling]) {
            for packet in buffer.iter() {
                let sack = if packet.has_sack() { sacks.next() } else { None };
                let sack = sack.map_or(&[][..], SackBlocks::blocks);
                if let Some(flow) = self.flows.get_mut(packet.place()) {
                    flow.on_waiting(packet, sack, &mut self.pool, &mut outcome);
                }
            }
            buffer.clear();
        }
        self.sacks = Vec::new();
    }

    /// Give up the buffers, which must be empty.
    pub fn give_up_buffers(&mut self, spare: &mut Vec<Vec<Waiting>>) {
        spare.append(&mut self.full);
        let filling = std::mem::take(&mut self.filling);
        if filling.capacity() > 0 {
            spare.push(filling);
        }
    }
}
