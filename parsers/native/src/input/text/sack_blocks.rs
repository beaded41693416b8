//! SACK blocks of printed lines, until they are stored beside a batch.
//!
//! A format may hold packets back, and returns them in the order of their lines. So the blocks wait
//! in the same order, and a mark in the packet shows whether it has some.

use std::collections::VecDeque;

use super::number::decimal;
use crate::packet::event::{Packet, Sack};
use crate::packet::extras::SackBlocks;

/// Blocks of packets that are held back, and so as bounded as these.
#[derive(Debug, Default)]
pub struct PrintedBlocks(VecDeque<SackBlocks>);

impl PrintedBlocks {
    /// Keep the blocks of the packet being read, which is marked.
    pub fn push(&mut self, blocks: SackBlocks) {
        self.0.push_back(blocks);
    }

    /// Whether no packet that is held back has blocks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The blocks of the marked packet that is returned.
    pub fn take(&mut self) -> Option<SackBlocks> {
        self.0.pop_front()
    }
}

/// Whether the packet that is returned has blocks.
#[inline(always)]
pub fn has_blocks(packet: &Packet) -> bool {
    packet.network.tcp.options.sack == Sack::PRINTED
}

/// Read blocks such as `{1:2}{3:4}`, with `between` between the ends, and add `offset` to the
/// numbers.
pub fn read(text: &[u8], [open, between, close]: [u8; 3], offset: u32) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    let mut rest = text;
    while let Some((&first, block)) = rest.split_first()
        && first == open
        && let Some(end) = memchr::memchr(close, block)
        && let Some((block, after)) = block.split_at_checked(end)
    {
        let mut ends = block.split(|&byte| byte == between).map(number);
        if let (Some(Some(start)), Some(Some(end))) = (ends.next(), ends.next()) {
            blocks.add(start.wrapping_add(offset), end.wrapping_add(offset));
        }
        rest = after.get(1..).unwrap_or_default();
    }
    blocks
}

fn number(text: &[u8]) -> Option<u32> {
    decimal(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_blocks_of_both_forms() {
        let blocks = |text: &[u8], form, offset| read(text, form, offset).blocks().to_vec();
        assert_eq!(blocks(b"{1:2}{3:4}],", *b"{:}", 10), [(11, 12), (13, 14)]);
        assert_eq!(blocks(b"[7,9])", *b"[,]", 0), [(7, 9)]);
        assert_eq!(blocks(b"{1:2}{3:", *b"{:}", 0), [(1, 2)]);
        assert_eq!(blocks(b"{1:2}{x:4}{4294967296:1}{5:6}", *b"{:}", 0), [(1, 2), (5, 6)]);
        assert_eq!(blocks(b"", *b"{:}", 0), []);
    }

    proptest! {
        #[test]
        fn test_any_text_gives_no_more_blocks_than_a_header_has(text: Vec<u8>, offset: u32) {
            let blocks = read(&text, *b"{:}", offset);
            prop_assert!(blocks.blocks().len() <= SackBlocks::MOST);
        }
    }
}
