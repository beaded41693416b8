//! The text of TCP options: `nop,nop,TS val 1 ecr 2` or `nop,nop,timestamp 1 2`.

use super::scan::{number, number_after};
use crate::input::text::sack_blocks;
use crate::packet::event::{Sack, TcpOptions};
use crate::packet::extras::SackBlocks;

/// RFC 7323 section 2.3: a larger shift count must be taken for 14.
const MAX_WINDOW_SCALE: u32 = 14;
/// Bytes of a timestamp after two NOPs (RFC 7323 appendix A).
pub const TIMESTAMP_BYTES: u32 = 12;
/// Bytes of SACK blocks after two NOPs, without the blocks (RFC 2018 section 3).
pub const SACK_BYTES: u32 = 4;
pub const BLOCK_BYTES: u32 = 8;
/// The most bytes of options: a header is at most 60 bytes long.
pub const MAX_BYTES: u32 = 40;

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub known: TcpOptions,
    /// Length of all options in the header, as far as known.
    pub bytes: u32,
}

/// Read options up to the end of their list, and return the text after it.
#[inline]
pub fn read<'a>(list: &'a [u8], options: &mut Options) -> &'a [u8] {
    if let Some((timestamp, rest)) = timestamp_alone(list) {
        options.known.timestamp = timestamp.known.timestamp;
        options.bytes = timestamp.bytes;
        return rest;
    }
    one_by_one(list, options)
}

/// Read the most frequent list, a timestamp only; None for any other.
#[inline]
fn timestamp_alone(list: &[u8]) -> Option<(Options, &[u8])> {
    let (timestamp, rest) = two_numbers(list.strip_prefix(b"nop,nop,TS val ")?, b" ecr ")?;
    let known = TcpOptions { timestamp: Some(timestamp), ..TcpOptions::default() };
    Some((Options { known, bytes: TIMESTAMP_BYTES }, rest.strip_prefix(b"]")?))
}

#[inline(never)]
fn one_by_one<'a>(list: &'a [u8], options: &mut Options) -> &'a [u8] {
    let mut rest = list;
    let mut bytes: u32 = 0;
    loop {
        let end = end_of_option(rest);
        let (option, after) = rest.split_at_checked(end).unwrap_or((rest, b""));
        bytes = bytes.saturating_add(one(option.trim_ascii(), &mut options.known));
        let Some((b',', next)) = after.split_first() else {
            // The header ends at a multiple of four bytes.
            options.bytes = bytes.next_multiple_of(4).min(MAX_BYTES);
            return after.get(1..).unwrap_or_default();
        };
        rest = next;
    }
}

/// Length of the first option of `list`. Brackets inside belong to it: `mptcp 12 capable v0 flags [AH]
/// csum {0x1,0x2}`.
fn end_of_option(list: &[u8]) -> usize {
    let mut depth = 0;
    let is_end = |byte: &u8| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth > 0 => depth -= 1,
            b',' | b']' | b'>' => return depth == 0,
            _ => {}
        }
        false
    };
    list.iter().position(is_end).unwrap_or(list.len())
}

/// Read one option, and return its length in the header.
fn one(option: &[u8], known: &mut TcpOptions) -> u32 {
    if let Some((mss, _)) = number_after(option, b"mss ") {
        known.mss = u16::try_from(mss).ok();
        return 4;
    }
    if let Some((shift, _)) = number_after(option, b"wscale ") {
        known.window_scale = Some(shift.min(MAX_WINDOW_SCALE) as u8);
        return 3;
    }
    if let Some((bytes, _)) = number_after(option, b"mptcp ") {
        return bytes;
    }
    let newer = option.strip_prefix(b"TS val ").and_then(|text| two_numbers(text, b" ecr "));
    let timestamp =
        newer.or_else(|| option.strip_prefix(b"timestamp ").and_then(|text| two_numbers(text, b" ")));
    if let Some((timestamp, _)) = timestamp {
        known.timestamp = Some(timestamp);
        return 10;
    }
    match option {
        b"nop" | b"eol" => 1,
        b"sackOK" => {
            known.sack = Sack::PERMITTED;
            2
        }
        _ if option.starts_with(b"sack ") => {
            known.sack = Sack::PRINTED;
            2 + 8 * memchr::memchr_iter(b'{', option).count().min(4) as u32
        }
        _ => 0,
    }
}

/// The blocks in the options of a header that has some; `offset` is the difference of printed and
/// wire numbers.
pub fn sack_blocks(header: &[u8], offset: u32) -> SackBlocks {
    let option = memchr::memmem::find(header, b"sack ").and_then(|at| header.get(at..)).unwrap_or_default();
    let first = memchr::memchr(b'{', option).and_then(|at| option.get(at..)).unwrap_or_default();
    read_blocks(first, offset)
}

/// Read the blocks from the first one on.
pub fn read_blocks(blocks: &[u8], offset: u32) -> SackBlocks {
    sack_blocks::read(blocks, *b"{:}", offset)
}

#[inline(always)]
fn two_numbers<'a>(text: &'a [u8], between: &[u8]) -> Option<((u32, u32), &'a [u8])> {
    let (first, rest) = number(text)?;
    let (second, rest) = number(rest.strip_prefix(between)?)?;
    Some(((first, second), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_of(list: &str) -> (Options, &[u8]) {
        let mut options = Options::default();
        let rest = read(list.as_bytes(), &mut options);
        (options, rest)
    }

    #[test]
    fn test_options_of_a_syn() {
        let (options, rest) = options_of("mss 1460,sackOK,TS val 7 ecr 0,nop,wscale 10], length 0");
        assert_eq!((options.known.mss, options.known.window_scale), (Some(1460), Some(10)));
        assert_eq!((options.known.timestamp, options.bytes), (Some((7, 0)), 20));
        assert!(options.known.sack.is_permitted());
        assert_eq!(rest, b", length 0");
    }

    #[test]
    fn test_brackets_inside_an_option_do_not_end_the_list() {
        let (options, rest) = options_of(
            "nop,nop,TS val 1 ecr 2,mptcp 20 capable v0 flags [AH] csum {0x9c9e,0x967d}], length 0",
        );
        assert_eq!((options.known.timestamp, options.bytes), (Some((1, 2)), 32));
        assert_eq!(rest, b", length 0");
        let (options, rest) =
            options_of("mss 1460,sackOK,nop,wscale 8,mptcp 4 capable v1 flags [H]], length 0");
        assert_eq!((options.known.window_scale, options.bytes, rest), (Some(8), 16, &b", length 0"[..]));
    }

    #[test]
    fn test_length_counts_padding_and_blocks() {
        assert_eq!(options_of("nop,nop,sack 2 {1:2}{3:4}]").0.bytes, 20);
        assert_eq!(options_of("nop,nop,TS val 1 ecr 2,nop,nop,sack 1 {1:2}]").0.bytes, 24);
        assert_eq!(options_of("TS val 1 ecr 2,eol]").0.bytes, 12);
        assert_eq!(options_of("nop,nop,sack sack 1 {1:2} >").0.bytes, 12);
        assert_eq!(options_of(&"nop,".repeat(100)).0.bytes, 40);
    }

    #[test]
    fn test_a_shift_count_that_cannot_be_is_the_largest() {
        assert_eq!(options_of("wscale 200]").0.known.window_scale, Some(14));
    }

    #[test]
    fn test_a_list_that_is_cut() {
        let (options, rest) = options_of("nop,nop, [|tcp]");
        assert_eq!((options.bytes, rest), (4, &b""[..]));
        assert_eq!(options_of("").0.bytes, 0);
    }
}
