//! Data that only some packets have, stored beside their batch.
//!
//! Most packets are TCP over Ethernet. With space in each for an 802.11 frame and the start of a
//! datagram, a batch would be a quarter larger, and reading some percent slower. So a packet has an
//! index into these lists instead.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::packet::dccp::DccpHeader;
use crate::packet::event::{ExtraIndex, Sack};
use crate::packet::frame::Frame;
use crate::packet::opening::Opening;
use crate::packet::tunnel::Tunnel;

/// The first bytes of a datagram's payload, as far as they were captured: traffic generators
/// number and date their datagrams there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PayloadHead {
    bytes: [u8; Self::MOST],
    length: u8,
}

impl PayloadHead {
    /// Bytes that are kept.
    pub const MOST: usize = 32;

    /// The beginning of `payload`.
    #[inline]
    pub fn new(payload: &[u8]) -> Self {
        let mut bytes = [0; Self::MOST];
        let length = payload.len().min(Self::MOST);
        bytes[..length].copy_from_slice(&payload[..length]);
        Self { bytes, length: length as u8 }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Data reported as received beyond the acknowledgement (RFC 2018), and perhaps duplicates (RFC
/// 2883).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// Limit of blocks: the longest header holds no more.
    pub const MOST: usize = 4;

    /// Add a block from its first number to its end (exclusive). Blocks beyond the limit are
    /// dropped.
    pub fn add(&mut self, start: u32, end: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (start, end);
            self.count += 1;
        }
    }

    /// The blocks, in the order of the option.
    pub fn blocks(&self) -> &[(u32, u32)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or_default()
    }
}

/// Byte counters of accurate ECN (RFC 9768 section 3.2.3), modulo 2^24; those left out have not
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EcnByteCounters {
    pub ect0: Option<u32>,
    pub ce: Option<u32>,
    pub ect1: Option<u32>,
}

/// The lists of one batch, at most one entry in each for every packet.
#[derive(Clone, Debug, Default)]
pub struct PacketExtras {
    heads: Vec<PayloadHead>,
    /// For datagrams longer than a head, in order: end of their payloads in `payloads`.
    longer: Vec<(ExtraIndex, usize)>,
    payloads: Vec<u8>,
    frames: Vec<Frame>,
    tunnels: Vec<Tunnel>,
    sacks: Vec<SackBlocks>,
    ecn_counters: Vec<EcnByteCounters>,
    openings: Vec<Opening>,
    /// Each with the end of its options in `options`.
    dccp: Vec<(DccpHeader, usize)>,
    options: Vec<u8>,
}

impl PacketExtras {
    /// Forget the last batch.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.longer.clear();
        self.payloads.clear();
        self.frames.clear();
        self.tunnels.clear();
        self.sacks.clear();
        self.ecn_counters.clear();
        self.openings.clear();
        self.dccp.clear();
        self.options.clear();
    }

    /// Keep how a datagram's payload begins.
    pub fn add_head(&mut self, head: PayloadHead) -> Option<ExtraIndex> {
        self.heads.push(head);
        at_the_end(self.heads.len())
    }

    /// How the payload begins of the packet with this index; empty if that is unknown.
    pub fn head(&self, index: Option<ExtraIndex>) -> PayloadHead {
        index.and_then(|index| self.heads.get(position(index))).copied().unwrap_or_default()
    }

    /// Keep more of the datagram whose head was added last.
    pub fn add_longer(&mut self, head: Option<ExtraIndex>, payload: &[u8]) {
        if let Some(head) = head {
            self.payloads.extend_from_slice(payload);
            self.longer.push((head, self.payloads.len()));
        }
    }

    /// The stored payload of the datagram with this index: its head, or more.
    pub fn payload(&self, index: Option<ExtraIndex>) -> &[u8] {
        let Some(index) = index else { return &[] };
        let head = || self.heads.get(position(index)).map_or(&[][..], PayloadHead::bytes);
        let Ok(at) = self.longer.binary_search_by_key(&index, |(head, _)| *head) else { return head() };
        let end_of = |at: usize| self.longer.get(at).map_or(0, |(_, end)| *end);
        let start = at.checked_sub(1).map_or(0, end_of);
        self.payloads.get(start..end_of(at)).unwrap_or_default()
    }

    pub fn add_frame(&mut self, frame: Frame) -> Option<ExtraIndex> {
        self.frames.push(frame);
        at_the_end(self.frames.len())
    }

    /// Keep what carried a packet.
    pub fn add_tunnel(&mut self, tunnel: Tunnel) -> Option<ExtraIndex> {
        self.tunnels.push(tunnel);
        at_the_end(self.tunnels.len())
    }

    /// What carried the packet with this index.
    pub fn tunnel(&self, index: Option<ExtraIndex>) -> Option<&Tunnel> {
        self.tunnels.get(position(index?))
    }

    /// Keep the blocks of an acknowledgement.
    pub fn add_sack(&mut self, blocks: SackBlocks) -> Option<ExtraIndex> {
        self.sacks.push(blocks);
        at_the_end(self.sacks.len())
    }

    /// Drop the blocks that were added last, if `sack` has some.
    pub fn take_back_sack(&mut self, sack: Sack) {
        if sack.blocks().is_some() {
            self.sacks.pop();
        }
    }

    /// The blocks of a segment with these options.
    #[inline(always)]
    pub fn sack(&self, sack: Sack) -> &[(u32, u32)] {
        let kept = sack.blocks().and_then(|index| self.sacks.get(position(index)));
        kept.map_or(&[], SackBlocks::blocks)
    }

    pub fn add_ecn_counters(&mut self, counters: EcnByteCounters) -> Option<ExtraIndex> {
        self.ecn_counters.push(counters);
        at_the_end(self.ecn_counters.len())
    }

    pub fn add_opening(&mut self, opening: Opening) -> Option<ExtraIndex> {
        self.openings.push(opening);
        at_the_end(self.openings.len())
    }

    /// What the segment with this index completes.
    #[inline]
    pub fn opening(&self, index: Option<ExtraIndex>) -> Option<&Opening> {
        self.openings.get(position(index?))
    }

    /// The ECN counters of the segment with this index.
    pub fn ecn_counters(&self, index: Option<ExtraIndex>) -> Option<EcnByteCounters> {
        self.ecn_counters.get(position(index?)).copied()
    }

    /// The frame that carried the packet with this index.
    pub fn frame(&self, index: ExtraIndex) -> Option<&Frame> {
        self.frames.get(position(index))
    }

    /// Keep a DCCP header and its options.
    pub fn add_dccp(&mut self, header: DccpHeader, options: &[u8]) -> Option<ExtraIndex> {
        self.options.extend_from_slice(options);
        self.dccp.push((header, self.options.len()));
        at_the_end(self.dccp.len())
    }

    /// The DCCP header of the packet with this index, and its options.
    pub fn dccp(&self, index: ExtraIndex) -> Option<(&DccpHeader, &[u8])> {
        let (header, end) = self.dccp.get(position(index))?;
        let start = position(index).checked_sub(1).and_then(|before| self.dccp.get(before));
        let options = self.options.get(start.map_or(0, |&(_, end)| end)..*end)?;
        Some((header, options))
    }
}

fn at_the_end(length: usize) -> Option<ExtraIndex> {
    u32::try_from(length).ok().and_then(NonZeroU32::new)
}

fn position(index: ExtraIndex) -> usize {
    index.get() as usize - 1
}
