//! Flows that have been silent for a while: encoded, and compressed some together, until they speak again.

use std::collections::HashMap;
use std::sync::OnceLock;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde::{Deserialize, Serialize};

use super::idle_times::{IdleKind, IdleTimes, Silence};
use super::settled_flows::encode;
use crate::flow::Flow;
use crate::flow::flow_places::FLOWS;

/// When flows are packed that may go on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Packing {
    /// Flows up to which none is packed.
    pub few: u32,
    /// Silence after which one is.
    pub silence_ns: i64,
}

impl Default for Packing {
    fn default() -> Self {
        Self { few: 16_384, silence_ns: 2_000_000_000 }
    }
}

/// Bytes of states that are compressed together: most of what neighbours consist of is the same, but one that
/// speaks again needs them all.
const BLOCK_BYTES: usize = 2_048;

/// A packed flow: what a sweep needs, and where its state is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PackedFlow {
    last_ns: i64,
    /// Where it begins in its block.
    at: u32,
    block: u8,
    kind: IdleKind,
}

/// States that are compressed together.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Block {
    packed: Box<[u8]>,
    /// How many it had at first, and how many of them are still packed.
    flows: u8,
    left: u8,
}

impl Block {
    /// Whether it may hold as much as it says: a byte of LZ4 is at most 255 of what was packed.
    fn is_sound(&self) -> bool {
        let size = self.packed.first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
        size as usize <= 255 * self.packed.len()
    }
}

/// Neighbours that are packed, or were: their places are those in the order of packing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PackedFlows {
    flows: Vec<PackedFlow>,
    blocks: Vec<Block>,
    /// The block of the flow that was taken last, and its states: others of it often follow.
    #[serde(skip)] // made again when needed
    opened: Option<(u8, Vec<u8>)>,
    /// Those that were looked at, by place.
    #[serde(skip)] // made again when needed
    read: OnceLock<Box<[OnceLock<Box<Flow>>]>>,
}

impl PackedFlows {
    /// How many there are or were.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Whether what was read back from a checkpoint fits together.
    pub fn is_sound(&self) -> bool {
        let has_block = |flow: &PackedFlow| usize::from(flow.block) < self.blocks.len();
        self.flows.len() <= FLOWS
            && self.blocks.len() <= FLOWS
            && self.flows.iter().all(has_block)
            && self.blocks.iter().all(Block::is_sound)
    }

    /// Since when the flow at a place has been silent.
    pub fn silence(&self, place: usize, idle: &IdleTimes) -> Silence {
        let PackedFlow { last_ns, kind, .. } = self.flows[place];
        Silence { last_ns, quiet_ns: idle.of(kind) }
    }

    /// The flow at a place, which stays packed.
    pub fn get(&self, place: usize) -> &Flow {
        let read = self.read.get_or_init(|| self.flows.iter().map(|_| OnceLock::new()).collect());
        read[place].get_or_init(|| Box::new(self.unpacked(place)))
    }

    /// A copy of the flow at a place.
    pub fn unpacked(&self, place: usize) -> Flow {
        let PackedFlow { at, block, .. } = self.flows[place];
        decoded(&self.states(block), at)
    }

    /// Take the flow at a place out.
    pub fn take(&mut self, place: usize) -> Flow {
        let PackedFlow { at, block: number, .. } = self.flows[place];
        let states = match self.opened.take() {
            Some((opened, states)) if opened == number => states,
            _ => self.states(number),
        };
        let flow = decoded(&states, at);
        let block = &mut self.blocks[usize::from(number)];
        block.left = block.left.saturating_sub(1);
        if block.left == 0 {
            block.packed = Box::default();
        } else {
            self.opened = Some((number, states));
        }
        flow
    }

    /// The encoded flows of a block. What was packed can be unpacked; a checkpoint has a checksum.
    fn states(&self, block: u8) -> Vec<u8> {
        decompress_size_prepended(&self.blocks[usize::from(block)].packed).unwrap_or_default()
    }
}

fn decoded(states: &[u8], at: u32) -> Flow {
    let found = postcard::take_from_bytes(states.get(at as usize..).unwrap_or_default());
    found.map_or_else(|_| Flow::vacant(), |(flow, _)| flow)
}

/// Packs flows some together.
#[derive(Default)]
pub struct Packer {
    packed: PackedFlows,
    /// The block that is being filled, and its encoded flows.
    open: Option<u8>,
    states: Vec<u8>,
    /// Where the blocks are that were taken over.
    moved: HashMap<u8, u8>,
}

impl Packer {
    /// Pack a flow whose last packet is of this time; returns its place.
    pub fn push(&mut self, flow: &Flow, last_ns: i64) -> u8 {
        let at = self.states.len() as u32;
        // A vector takes everything.
        if encode(flow, &mut self.states).is_err() {
            self.states.truncate(at as usize);
        }
        let block = self.open.unwrap_or_else(|| self.add_block(Block::default()));
        self.open = Some(block);
        let Block { flows, left, .. } = &mut self.packed.blocks[usize::from(block)];
        (*flows, *left) = (*flows + 1, *left + 1);
        let place = self.add(PackedFlow { last_ns, at, block, kind: IdleKind::of(flow) });
        if self.states.len() >= BLOCK_BYTES {
            self.close_block();
        }
        place
    }

    /// Take over the flow at a `place` of those that were packed before; returns its new one.
    pub fn take_over(&mut self, others: &mut PackedFlows, place: usize) -> u8 {
        let flow = others.flows[place];
        let block = &mut others.blocks[usize::from(flow.block)];
        if !self.moved.contains_key(&flow.block) {
            if block.left < block.flows / 2 {
                return self.push(&others.take(place), flow.last_ns);
            }
            let moved = self.add_block(std::mem::take(block));
            self.moved.insert(flow.block, moved);
        }
        self.add(PackedFlow { block: self.moved[&flow.block], ..flow })
    }

    /// Those that were packed; None if none was.
    pub fn finish(mut self) -> Option<Box<PackedFlows>> {
        self.close_block();
        let Self { mut packed, .. } = self;
        packed.flows.shrink_to_fit();
        packed.blocks.shrink_to_fit();
        (packed.count() > 0).then(|| Box::new(packed))
    }

    fn add(&mut self, flow: PackedFlow) -> u8 {
        self.packed.flows.push(flow);
        (self.packed.count() - 1) as u8
    }

    fn add_block(&mut self, block: Block) -> u8 {
        self.packed.blocks.push(block);
        (self.packed.blocks.len() - 1) as u8
    }

    /// Compress what was encoded.
    fn close_block(&mut self) {
        if let Some(block) = self.open.take() {
            let packed = compress_prepend_size(&self.states).into_boxed_slice();
            self.packed.blocks[usize::from(block)].packed = packed;
            self.states.clear();
        }
    }
}
