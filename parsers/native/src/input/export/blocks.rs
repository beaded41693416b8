//! Blocks of pcapng (draft-ietf-opsawg-pcapng section 4), little-endian, and comments in those of others.

use crate::input::capture::Interface;
use crate::input::capture::pcapng::{
    ENHANCED_PACKET, IF_NAME, IF_TSRESOL, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, ISB_IFDROP,
    SECTION_HEADER,
};
use crate::packet::record::Record;

const COMMENT: u16 = 1;
const END_OF_OPTIONS: u16 = 0;
/// A comment's length has two bytes.
const LONGEST: usize = u16::MAX as usize;

/// A section header of unknown length.
pub fn section(comment: Option<&str>) -> Vec<u8> {
    let magic = 0x1a2b_3c4d_u32.to_le_bytes();
    let version = [1, 0, 0, 0];
    block(SECTION_HEADER, &[&magic, &version, &[0xff; 8], &comment_options(comment)])
}

/// The description of an interface whose times are microseconds or nanoseconds.
pub fn interface_description(interface: &Interface, name: Option<&str>) -> Vec<u8> {
    let link_type = (interface.link_type.number() & 0xffff).to_le_bytes();
    let resolution = if interface.has_microseconds() { 6 } else { 9 };
    let mut options = name.map(|name| option(IF_NAME, name.as_bytes())).unwrap_or_default();
    options.extend(option(IF_TSRESOL, &[resolution]));
    options.extend(option(END_OF_OPTIONS, &[]));
    block(INTERFACE_DESCRIPTION, &[&link_type, &interface.snap_length.to_le_bytes(), &options])
}

/// A packet, with its time in units of its interface.
pub fn enhanced_packet(record: &Record<'_>, ticks: i64, comment: Option<&str>) -> Vec<u8> {
    let ticks = ticks as u64;
    let fields = [
        record.interface as u32,
        (ticks >> 32) as u32,
        ticks as u32,
        record.data.len() as u32,
        record.wire_bytes,
    ];
    let header: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    block(ENHANCED_PACKET, &[&header, &padded(record.data), &comment_options(comment)])
}

/// How many packets an interface has lost until a time.
pub fn interface_statistics(interface: u32, ticks: i64, dropped: u64) -> Vec<u8> {
    let ticks = ticks as u64;
    let fields = [interface, (ticks >> 32) as u32, ticks as u32];
    let header: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    let options = [option(ISB_IFDROP, &dropped.to_le_bytes()), option(END_OF_OPTIONS, &[])].concat();
    block(INTERFACE_STATISTICS, &[&header, &options])
}

/// A block whose options begin at `options_at`, with a comment after these; None if they are damaged.
pub fn with_comment(block: &[u8], options_at: usize, big_endian: bool, comment: &str) -> Option<Vec<u8>> {
    let options = block.get(options_at..block.len().checked_sub(4)?)?;
    let u16_at = |at: usize| {
        let bytes = [*options.get(at)?, *options.get(at + 1)?];
        Some(if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let mut at = 0;
    while at < options.len() && u16_at(at)? != END_OF_OPTIONS {
        at += 4 + usize::from(u16_at(at + 2)?).next_multiple_of(4);
    }
    if at > options.len() {
        return None;
    }
    let comment = cut(comment);
    let number = |value: u16| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut bytes = block[..options_at + at].to_vec();
    bytes.extend(number(COMMENT));
    bytes.extend(number(comment.len() as u16));
    bytes.extend(padded(comment.as_bytes()));
    bytes.extend([0; 4]);
    let length = bytes.len() as u32 + 4;
    let length = if big_endian { length.to_be_bytes() } else { length.to_le_bytes() };
    bytes.extend(length);
    bytes[4..8].copy_from_slice(&length);
    Some(bytes)
}

fn comment_options(comment: Option<&str>) -> Vec<u8> {
    let Some(comment) = comment else { return Vec::new() };
    [option(COMMENT, cut(comment).as_bytes()), option(END_OF_OPTIONS, &[])].concat()
}

/// As much of a comment as an option holds.
fn cut(comment: &str) -> &str {
    let end = (0..=comment.len().min(LONGEST)).rev().find(|&end| comment.is_char_boundary(end));
    &comment[..end.unwrap_or(0)]
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = code.to_le_bytes().to_vec();
    bytes.extend((value.len() as u16).to_le_bytes());
    bytes.extend(padded(value));
    bytes
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}

fn block(kind: u32, parts: &[&[u8]]) -> Vec<u8> {
    let length = 12 + parts.iter().map(|part| part.len()).sum::<usize>() as u32;
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(length.to_le_bytes());
    parts.iter().for_each(|part| bytes.extend(*part));
    bytes.extend(length.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_comment_follows_other_options_of_either_byte_order() {
        let other = [option(2, b"abc"), option(END_OF_OPTIONS, &[])].concat();
        let packet = block(ENHANCED_PACKET, &[&[0; 20], &[9; 4], &other]);
        let commented = with_comment(&packet, 32, false, "seen").unwrap();
        assert_eq!(
            commented,
            block(ENHANCED_PACKET, &[&[0; 20], &[9; 4], &option(2, b"abc"), &option(1, b"seen"), &[0; 4]])
        );
        let mut damaged = packet.clone();
        damaged[34] = 200;
        assert_eq!(with_comment(&damaged, 32, false, "seen"), None);
    }
}
