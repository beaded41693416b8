//! The usual line, read in one go: a time, two ends with ports, and a TCP header with no options
//! but a timestamp and SACK blocks. Other lines are left to the rest of this folder, which gives
//! the same result for the usual ones.
//!
//! Such a line has a dozen numbers, and these take the time. So it is read from an array of known
//! size, in which no step has to check for the end of the text.

use super::scan::SECOND;
use super::tcp::{Header, PSH};
use super::tcp_options::{BLOCK_BYTES, MAX_BYTES, Options, SACK_BYTES, TIMESTAMP_BYTES};
use super::timestamp;
use super::timestamp::Stamp;
use crate::input::text::number::{POWERS, digit_count, leading_digits};
use crate::packet::event::{Sack, TcpFlags};
use crate::packet::extras::SackBlocks;

/// The bytes of a line up to its length end before this index, one below a power of two.
const LAST: usize = 255;
/// Bytes that must be in the window: no step reads more than this beyond [`LAST`].
const ROOM: usize = 512;
/// Longer than two IPv6 addresses with ports, in whole words.
const MOST_ENDS: usize = 104;
/// The line must end within this many bytes after the length of the payload.
const MOST_WORDS: usize = 1024;

pub struct Line<'a> {
    pub stamp: Stamp,
    /// `source > destination: `, not read yet.
    pub ends: &'a [u8],
    /// A hash of the ends, without a secret key.
    pub hash: u64,
    pub header: Header,
    /// Its SACK blocks, `{1:2}{3:4}`, not read yet; empty if it has none.
    pub blocks: &'a [u8],
    /// Length with the end.
    pub bytes: usize,
}

/// The text of the last line's second, which most following lines share: `1795247606.`, and its ns.
#[derive(Debug)]
pub struct CachedSecond {
    text: [u8; 11],
    ns: i64,
}

impl Default for CachedSecond {
    fn default() -> Self {
        Self { text: *b"0000000000.", ns: 0 }
    }
}

/// Read the line that `window` begins with; None if it is of another form or may not be whole in
/// the window.
#[inline(always)]
pub fn read<'a>(window: &'a [u8], second: &mut CachedSecond) -> Option<Line<'a>> {
    let bytes: &[u8; ROOM] = window.first_chunk()?;
    let mut scan = Scan { bytes, at: 0 };
    let stamp = match scan.stamp(second) {
        Some(stamp) => stamp,
        None => {
            let (stamp, rest) = timestamp::read(window)?;
            scan.at = window.len() - rest.len();
            stamp
        }
    };
    if !scan.eat(b"IP ") {
        scan.expect(b"IP6 ")?;
    }
    let start = scan.at;
    let hash = scan.ends()?;
    let end = scan.at;
    let (header, (first, last)) = scan.header()?;
    // Beyond it the indices would be wrong.
    if scan.at > LAST {
        return None;
    }
    let words = window.get(scan.at..)?;
    let length = match words.first()? {
        b'\n' => 0,
        _ => memchr::memchr(b'\n', words.get(..MOST_WORDS).unwrap_or(words))?,
    };
    Some(Line {
        stamp,
        ends: window.get(start..end)?,
        hash,
        header,
        blocks: window.get(first..last)?,
        bytes: scan.at + length + 1,
    })
}

impl CachedSecond {
    fn of(text: &[u8; 11]) -> Option<Self> {
        let (upper, lower) = text.split_first_chunk()?;
        let ((upper, 8), &[tens @ b'0'..=b'9', ones @ b'0'..=b'9', b'.']) = (leading_digits(upper), lower)
        else {
            return None;
        };
        let seconds = upper as i64 * 100 + i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
        // All of it has to fit.
        let end_ns = (seconds + 1).checked_mul(SECOND)?;
        Some(Self { text: *text, ns: end_ns - SECOND })
    }
}

/// A place in a text of a known size.
struct Scan<'a> {
    bytes: &'a [u8; ROOM],
    at: usize,
}

impl<'a> Scan<'a> {
    #[inline(always)]
    fn next<const N: usize>(&self) -> &'a [u8; N] {
        const { assert!(N < ROOM - LAST) };
        let start = self.at & LAST;
        self.bytes.get(start..).and_then(|bytes| bytes.first_chunk()).unwrap_or(&[0; N])
    }

    /// Skip `words` if they come next.
    #[inline(always)]
    fn eat<const N: usize>(&mut self, words: &[u8; N]) -> bool {
        let is_next = self.next() == words;
        self.at += if is_next { N } else { 0 };
        is_next
    }

    /// Skip `words`, which must come next.
    #[inline(always)]
    fn expect<const N: usize>(&mut self, words: &[u8; N]) -> Option<()> {
        self.eat(words).then_some(())
    }

    #[inline(always)]
    fn number(&mut self) -> Option<u32> {
        match leading_digits(self.next()) {
            (value, count @ 1..8) => {
                self.at += count;
                Some(value as u32)
            }
            (upper, 8) => self.long_number(upper),
            _ => None,
        }
    }

    /// The first eight digits of a number are `upper`.
    #[inline(always)]
    fn long_number(&mut self, upper: u64) -> Option<u32> {
        self.at += 8;
        let value = match leading_digits(self.next()) {
            (_, 0) => upper,
            (lower, count @ 1..3) => {
                self.at += count;
                upper * POWERS.get(count)? + lower
            }
            _ => return None,
        };
        u32::try_from(value).ok()
    }

    #[inline(always)]
    fn pass_number(&mut self) -> Option<()> {
        match digit_count(self.next()) {
            0 => None,
            8 => self.number().map(|_| ()),
            count => {
                self.at += count;
                Some(())
            }
        }
    }

    /// `1795247606.956209 `, as printed by -tt since 2001; any other time is left to
    /// [`timestamp::read`].
    #[inline(always)]
    fn stamp(&mut self, second: &mut CachedSecond) -> Option<Stamp> {
        if self.next() != &second.text {
            *second = CachedSecond::of(self.next())?;
        }
        self.at += second.text.len();
        let (us, 6) = leading_digits(self.next()) else { return None };
        self.at += 6;
        self.expect(b" ")?;
        Some(Stamp::Epoch(second.ns + us as i64 * 1_000))
    }

    /// Skip both ends, up to the `F` of `Flags`, and return their hash. Numeric addresses have no
    /// upper-case `F`; lines with names that have one are read elsewhere.
    #[inline(always)]
    fn ends(&mut self) -> Option<u64> {
        const ONES: u64 = u64::MAX / 255;
        let mut hash: u64 = 0;
        let mut mix = |word: u64| hash = (hash.rotate_left(32) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in self.next::<MOST_ENDS>().as_chunks().0 {
            let word = u64::from_le_bytes(*word);
            // The lowest zero byte gets its highest bit set.
            let others = word ^ (ONES * u64::from(b'F'));
            let found = others.wrapping_sub(ONES) & !others & (ONES << 7);
            if found != 0 {
                let bits = found.trailing_zeros() & !7;
                mix(word & ((1 << bits) - 1));
                self.at += bits as usize / 8;
                return Some(hash);
            }
            mix(word);
            self.at += 8;
        }
        None
    }

    /// The header, from `Flags` to its length, and the range of its SACK blocks.
    #[inline(always)]
    fn header(&mut self) -> Option<(Header, (usize, usize))> {
        let flags = match self.eat(b"Flags [.], ") {
            true => TcpFlags(TcpFlags::ACK),
            false => self.expect(b"Flags [P.], ").map(|()| TcpFlags(PSH | TcpFlags::ACK))?,
        };
        let seq = if self.eat(b"seq ") { Some(self.sequence()?) } else { None };
        self.expect(b"ack ")?;
        let ack = self.number()?;
        self.expect(b", win ")?;
        let window = self.number()?;
        let (mut options, mut blocks) = (Options::default(), (0, 0));
        if self.eat(b", options [nop,nop,") {
            let has_timestamp = self.eat(b"TS val ");
            if has_timestamp {
                self.timestamp(&mut options)?;
            }
            if !has_timestamp || self.eat(b",nop,nop,") {
                blocks = self.blocks(&mut options)?;
            }
            self.expect(b"]")?;
        }
        self.expect(b", length ")?;
        let payload = self.number()?;
        let header = Header {
            is_whole: true,
            seq,
            ack: Some(ack),
            flags,
            window: u16::try_from(window).ok()?,
            options,
            payload: Some(payload),
            is_cut: false,
        };
        Some((header, blocks))
    }

    /// `1:38, ` or `1, `; the end follows from the length, too.
    #[inline(always)]
    fn sequence(&mut self) -> Option<u32> {
        let seq = self.number()?;
        if self.eat(b":") {
            self.pass_number()?;
        }
        self.expect(b", ")?;
        Some(seq)
    }

    /// Both numbers of a timestamp.
    #[inline(always)]
    fn timestamp(&mut self, options: &mut Options) -> Option<()> {
        let value = self.number()?;
        self.expect(b" ecr ")?;
        options.known.timestamp = Some((value, self.number()?));
        options.bytes = TIMESTAMP_BYTES;
        Some(())
    }

    /// `sack 2 {1:2}{3:4}`, as many as a header has room for: the range of the blocks.
    #[inline]
    fn blocks(&mut self, options: &mut Options) -> Option<(usize, usize)> {
        self.expect(b"sack ")?;
        self.pass_number()?;
        self.expect(b" ")?;
        let start = self.at;
        let mut count = 0;
        while self.eat(b"{") {
            self.number()?;
            self.expect(b":")?;
            self.number()?;
            self.expect(b"}")?;
            count += 1;
        }
        if !(1..=SackBlocks::MOST).contains(&count) {
            return None;
        }
        options.known.sack = Sack::PRINTED;
        options.bytes = (options.bytes + SACK_BYTES + BLOCK_BYTES * count as u32).min(MAX_BYTES);
        Some((start, self.at))
    }
}
