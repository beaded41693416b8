//! The usual lines of wired links: twelve fields with one blank between each.
//!
//! Read byte by byte, such a line costs most in branches that cannot be predicted: where does this
//! number end? So a number of up to eight digits is read as one word, the last fields are found
//! from the line's end, and the text before them, which is the same for all packets of a flow on a
//! link, is cached with its meaning. Other lines are left to [`wired`], which reads all.

use memchr::memchr;

use super::fields::Fields;
use super::line_packet::LinePacket;
use super::wired::{self, Route};
use crate::input::text::ForwardedPacket;
use crate::input::text::number::{TO_NS, leading_digits};

/// No line of twelve fields is shorter: the search for its end starts here.
const SHORTEST: usize = 24;
/// The longest line that is read here.
const LONGEST: usize = 128;
/// The sequence number and the packet's number are within this many bytes of the end.
const TAIL: usize = 24;
/// The longest route that is cached.
const ROUTE: usize = 63;
/// Bytes of a word.
const WORD: usize = 8;
/// The same byte eight times is this times the byte.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x80 * EACH;
/// Routes that are cached, as a power of two: 140 kB.
const ROUTE_BITS: u32 = 9;
/// Letters of events: they differ in the lowest two bits.
const LETTERS: usize = 4;

/// `EVENT TIME ROUTE SEQ UID`, where the route is anything between two blanks.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    letter: u8,
    time_ns: i64,
    route: &'a [u8],
    sequence: i64,
    pub uid: u64,
    /// Length with the end.
    pub bytes: usize,
}

impl<'a> Line<'a> {
    /// The line that `window` begins with, if its end is in the window. An end before the shortest
    /// length is not found: it is then inside of the route, where [`WiredFastPath::find`] rejects
    /// it.
    #[inline(always)]
    pub fn first_of(window: &'a [u8]) -> Option<Self> {
        let most = window.get(..LONGEST).unwrap_or(window);
        let length = SHORTEST + memchr(b'\n', most.get(SHORTEST..)?)?;
        let line = most.get(..length)?;
        let [letter, b' ', ..] = *line else { return None };
        let (time_ns, start) = time_ns(line)?;
        if !line.get(start)?.is_ascii_digit() {
            return None;
        }
        let (end, between) = last_blanks(line)?;
        let sequence = decimal(line, end + 1, between)?;
        let uid = decimal(line, between + 1, length)? as u64;
        Some(Self { letter, time_ns, route: line.get(start..end)?, sequence, uid, bytes: length + 1 })
    }
}

/// The time after the letter, and where the route begins.
#[inline(always)]
fn time_ns(line: &[u8]) -> Option<(i64, usize)> {
    const START: usize = 2;
    let (seconds, digits) = leading_digits(line.get(START..)?.first_chunk()?);
    let point = START + digits;
    let (fraction, decimals) = leading_digits(line.get(point + 1..)?.first_chunk()?);
    let end = point + 1 + decimals;
    if line.get(point) == Some(&b'.') && line.get(end) == Some(&b' ') && digits > 0 && decimals > 0 {
        return Some(((seconds * 1_000_000_000 + fraction * TO_NS.get(decimals)?) as i64, end + 1));
    }
    let text = line.get(START..)?;
    let length = memchr(b' ', text)?;
    Some((Fields::new(text.get(..length)?).time_ns()?, START + length + 1))
}

/// The positions of the last two blanks. None if a FullTcp header may be between them.
#[inline(always)]
fn last_blanks(line: &[u8]) -> Option<(usize, usize)> {
    let tail = line.last_chunk::<TAIL>()?;
    let (words, _) = tail.as_chunks::<WORD>();
    let found = words.iter().rev().fold(0, |found, word| found << WORD | blanks(*word));
    let last = found.checked_ilog2()?;
    let before = (found ^ 1 << last).checked_ilog2()?;
    let third = (found ^ 1 << last ^ 1 << before).checked_ilog2();
    if third.is_some_and(|at| tail.get(at as usize + 1..).is_some_and(|field| field.starts_with(b"0x"))) {
        return None;
    }
    let start = line.len() - TAIL;
    Some((start + before as usize, start + last as usize))
}

/// The number that stands in `line` from `start` to `end`.
#[inline(always)]
fn decimal(line: &[u8], start: usize, end: usize) -> Option<i64> {
    match Word::of(line, start, end).and_then(Word::number) {
        Some(number) => Some(i64::from(number)),
        None => Fields::new(line.get(start..end)?).signed(),
    }
}

#[derive(Debug, Default)]
pub struct WiredFastPath {
    /// Each at the place of its hash, where it replaces an older one.
    routes: Vec<KnownRoute>,
}

/// A route and its text.
#[derive(Clone, Copy, Debug)]
struct KnownRoute {
    text: [u8; ROUTE],
    length: u8,
    route: Route,
    passed: [Option<NodePassed>; LETTERS],
}

/// A line with this letter shows a packet of this route at an intermediate node.
#[derive(Clone, Copy, Debug)]
struct NodePassed {
    letter: u8,
    passing: ForwardedPacket,
}

impl WiredFastPath {
    /// The cache place of the line's route, which is added if needed. None if the route has too
    /// many or too few fields.
    #[inline(always)]
    pub fn find(&mut self, line: &Line<'_>) -> Option<usize> {
        let place = place_of(line.route)?;
        let is_known = self.routes.get(place).is_some_and(|known| known.text() == line.route);
        if !is_known {
            self.learn(place, line.route)?;
        }
        Some(place)
    }

    #[cold]
    fn learn(&mut self, place: usize, text: &[u8]) -> Option<()> {
        let mut fields = Fields::new(text);
        let route = Route::read(&mut fields)?;
        if !fields.is_empty() || memchr(b'\n', text).is_some() {
            return None;
        }
        let mut known =
            KnownRoute { text: [0; ROUTE], length: text.len() as u8, route, passed: [None; LETTERS] };
        known.text.get_mut(..text.len())?.copy_from_slice(text);
        if self.routes.is_empty() {
            // Empty places have no text, and no line has an empty route.
            self.routes.resize(1 << ROUTE_BITS, KnownRoute { length: 0, ..known });
        }
        *self.routes.get_mut(place)? = known;
        Some(())
    }

    /// Write the packet of a line with a known route into `seen`. If the line is of another form,
    /// nothing is changed.
    #[inline(always)]
    pub fn fill(&self, route: usize, line: &Line<'_>, seen: &mut LinePacket) -> Option<()> {
        let event = wired::event(line.letter)?;
        self.routes.get(route)?.route.fill(event, line.time_ns, seen);
        seen.sequence = Some(line.sequence);
        seen.uid = line.uid;
        Some(())
    }

    /// Remember that lines with this letter and route show packets at an intermediate node.
    pub fn remember(&mut self, route: usize, line: &Line<'_>, passing: ForwardedPacket) {
        let known = self.routes.get_mut(route);
        if let Some(slot) = known.and_then(|known| known.passed.get_mut(slot(line.letter))) {
            *slot = Some(NodePassed { letter: line.letter, passing });
        }
    }

    /// The packet of a line, if lines of its kind show packets at an intermediate node.
    #[inline(always)]
    pub fn passing(&self, route: usize, line: &Line<'_>) -> Option<ForwardedPacket> {
        let passed = (*self.routes.get(route)?.passed.get(slot(line.letter))?)?;
        (passed.letter == line.letter).then_some(ForwardedPacket { time_ns: line.time_ns, ..passed.passing })
    }
}

impl KnownRoute {
    #[inline(always)]
    fn text(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// The slot of an event's letter.
#[inline(always)]
fn slot(letter: u8) -> usize {
    usize::from(letter) % LETTERS
}

/// The cache place of a route: links differ at the beginning, flows at the end.
#[inline(always)]
fn place_of(text: &[u8]) -> Option<usize> {
    /// The golden ratio's fraction: its product's upper bits depend on all bits below.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let first = u64::from_le_bytes(*text.first_chunk()?);
    let last = u64::from_le_bytes(*text.last_chunk()?);
    let mixed = (first ^ last.rotate_left(29)).wrapping_mul(MIX);
    Some((mixed >> (u64::BITS - ROUTE_BITS)) as usize)
}

/// Up to eight bytes of text, not none.
#[derive(Clone, Copy)]
struct Word {
    /// The last byte of the text is the highest; bytes below the first are undefined.
    bytes: u64,
    length: usize,
}

impl Word {
    /// The text in `line` from `start` to `end`.
    #[inline(always)]
    fn of(line: &[u8], start: usize, end: usize) -> Option<Self> {
        let length = end.checked_sub(start).filter(|length| (1..=WORD).contains(length))?;
        let bytes = line.get(..end)?.last_chunk::<WORD>()?;
        Some(Self { bytes: u64::from_le_bytes(*bytes), length })
    }

    /// All bits of the text's bytes.
    #[inline(always)]
    fn mask(self) -> u64 {
        u64::MAX << (8 * (WORD - self.length))
    }

    /// The decimal number that the text is: pairs of digits, of pairs, and of these in three steps.
    #[inline(always)]
    fn number(self) -> Option<u32> {
        let digits = (self.bytes ^ (u64::from(b'0') * EACH)) & self.mask();
        // The highest bit is set for each byte above 9.
        if (digits.wrapping_add(0x76 * EACH) | digits) & HIGH != 0 {
            return None;
        }
        let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
        let outer = (pairs & 0xff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
        let inner = (pairs >> 16 & 0xff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
        Some((outer.wrapping_add(inner) >> 32) as u32)
    }
}

/// The highest bit of each byte of `word` that is `byte`.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    let different = word ^ (u64::from(byte) * EACH);
    !(((different & !HIGH) + !HIGH) | different) & HIGH
}

/// A bit for each byte of `word` that is a blank.
#[inline(always)]
fn blanks(word: [u8; WORD]) -> u64 {
    /// Brings bit 8 i to bit 56 + i.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    (equal(u64::from_le_bytes(word), b' ') >> 7).wrapping_mul(GATHER) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The result of the general reader.
    fn read_any(line: &[u8]) -> Option<LinePacket> {
        let mut seen = LinePacket::default();
        let mut fields = Fields::new(line.get(2..)?);
        let time_ns = fields.time_ns()?;
        wired::read(line[0], time_ns, &mut fields, &mut seen).ok().map(|()| seen)
    }

    fn read_plain(line: &[u8]) -> Option<LinePacket> {
        let mut seen = LinePacket { ttl: 7, ..LinePacket::default() };
        let mut reader = WiredFastPath::default();
        let text = [line, b"\n+ 0 2 0 tcp 40 ------- 0 2.0 3.0 0 0\n"].concat();
        let line = Line::first_of(&text).filter(|read| read.bytes == line.len() + 1)?;
        let route = reader.find(&line)?;
        reader.fill(route, &line, &mut seen)?;
        // A cached line gives the same as the general reader.
        let first = format!("{seen:?}");
        assert_eq!(reader.find(&line), Some(route));
        reader.fill(route, &line, &mut seen)?;
        assert_eq!(format!("{seen:?}"), first);
        Some(seen)
    }

    #[test]
    fn test_most_lines_are_plain() {
        for line in [
            "+ 0.0004 4 0 tcp 1040 ------- 2 4.0 5.0 0 1",
            "r 44.6634 1 9 tcpFriend 1040 ---A--N 4 8.0 19.12 27894 111579",
            "- 1234.56789 12 9 cbr 500 ------- 0 6.0 7.0 99999999 10000000",
            "d 10 12 9 ack 40 ------- 0 6.0 7.0 9999 12345678",
            "+ 0.0004 4 0 message 1040 ------- -2 1.0.4.0 5.-1 -1 1234567890",
            "+ 12345678.123456789 4 0 tcp 1040 ------- 2 4.0 5.0 0 1",
        ] {
            let plain = read_plain(line.as_bytes()).unwrap();
            assert_eq!(format!("{plain:?}"), format!("{:?}", read_any(line.as_bytes()).unwrap()), "{line}");
        }
    }

    #[test]
    fn test_what_does_not_fit_is_left() {
        for line in [
            "",
            "+ 0 2 0 cbr 500",
            "+ 0.0004 4 0 tcp 1040 ------- 2 4.0 5.0 0 1 ",
            "+ 0.0004  4 0 tcp 1040 ------- 2 4.0 5.0 0 1",
            "+ 0.0004 4 0 tcp 1040 ------- 2 4.0 5.0 0  1",
            "+ 0.0004 4 0 tcp 1040 ------- 2 4.0 5.0 0 1\r",
            "+ 0.0004 4 0 tcp 1040 ------- 2 4.0 5.0 0 1 0 0x0 0 0",
            "+ 0.0004 4 0 t\ncp 1040 ------- 2 4.0 5.0 0 1",
            "+ 0.0004 4 0 tcp 1040 ------- 2 4.0 5. 0 1",
            "s 0.0004 4 0 tcp 1040 ------- 2 4.0 5.0 0 1",
        ] {
            assert!(read_plain(line.as_bytes()).is_none(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn test_a_plain_line_is_read_as_any_other(
            start in "[+rd-] [0-9]{1,4}(\\.[0-9]{0,7})?",
            places in "( [0-9]{1,9}){2} (tcp|ack|cbr|tcpFriend) [0-9]{1,5} [-AEN]{7}",
            rest in " -?[0-9]{1,3}( [0-9]{1,5}[.:][0-9]{1,6}){2}( -?[0-9]{1,10}){2}",
            damage in proptest::option::of((0_usize..60, "[ -~]")),
        ) {
            let mut line = format!("{start}{places}{rest}").into_bytes();
            if let Some((at, byte)) = damage && let Some(damaged) = line.get_mut(at) {
                *damaged = byte.as_bytes()[0];
            }
            if let Some(plain) = read_plain(&line) {
                prop_assert_eq!(format!("{:?}", plain), format!("{:?}", read_any(&line).unwrap()));
            }
        }

        #[test]
        fn test_numbers_and_blanks_are_those_of_the_standard_library(text in "[ -~]{8}", length in 1_usize..=8) {
            let bytes: [u8; 8] = text.as_bytes().try_into().unwrap();
            let expected = (0..8).filter(|at| bytes[*at] == b' ').map(|at| 1 << at).sum::<u64>();
            prop_assert_eq!(blanks(bytes), expected);
            let word = Word::of(&bytes, 8 - length, 8).unwrap();
            let is_number = bytes[8 - length..].iter().all(u8::is_ascii_digit);
            prop_assert_eq!(word.number(), is_number.then(|| text[8 - length..].parse().unwrap()));
        }

        #[test]
        fn test_any_number_of_eight_digits_is_read(number in 0_u32..100_000_000) {
            let line = format!("        {number}");
            let word = Word::of(line.as_bytes(), 8, line.len()).unwrap();
            prop_assert_eq!(word.number(), Some(number));
        }

        #[test]
        fn test_any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_plain(&bytes);
        }
    }
}
