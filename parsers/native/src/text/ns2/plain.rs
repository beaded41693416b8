//! Lines of wired links as nearly all of them are: twelve fields with one blank between each.
//!
//! Read byte by byte, such a line costs most in branches that cannot be foreseen: where does this
//! number end? So all blanks are found first, eight bytes at a time, and a number of up to eight
//! digits is one word. What stands between the time and the sequence number is the same for all
//! packets of a flow on a link, and is remembered. What does not fit is left to [`wired`], which
//! reads any line.

use super::fields::{Fields, TO_NS};
use super::seen::Seen;
use super::wired::{self, Route};

/// The longest line whose blanks and end have a bit each.
const MAX_LINE: usize = 63;
/// `EVENT TIME FROM TO TYPE SIZE FLAGS FID SRC.PORT DST.PORT SEQ UID`.
const FIELDS: u32 = 12;
/// Bytes of a word.
const WORD: usize = 8;
/// The same byte eight times is this times the byte.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x80 * EACH;
/// Routes that are remembered, as a power of two: 60 kB.
const ROUTE_BITS: u32 = 9;

/// Reader of such lines.
#[derive(Debug, Default)]
pub struct Plain {
    /// Each at the place that its text is mixed to, in place of an older one.
    routes: Vec<Known>,
}

/// A route and its text.
#[derive(Clone, Copy, Debug)]
struct Known {
    text: [u8; MAX_LINE],
    length: u8,
    route: Route,
}

impl Plain {
    /// Read a line into `seen`. If it is of another form, nothing is changed.
    #[inline(always)]
    pub fn read(&mut self, line: &[u8], seen: &mut Seen) -> Option<()> {
        let [letter, b' ', ..] = line else { return None };
        let event = wired::event(*letter)?;
        let mut words = Words::of_line(line)?;
        words.bounds();
        let time_ns = words.time_ns()?;
        let route = self.route(words.all_but_two()?)?;
        let (sequence, uid) = (words.number()?, words.number()?);
        route.fill(event, time_ns, seen);
        seen.sequence = Some(sequence);
        seen.uid = uid as u64;
        Some(())
    }

    /// What `text` says, from `FROM` to `DST.PORT`.
    #[inline(always)]
    fn route(&mut self, text: &[u8]) -> Option<&Route> {
        let place = place_of(text)?;
        let is_known = self.routes.get(place).is_some_and(|known| known.text() == text);
        if !is_known {
            self.learn(place, text)?;
        }
        self.routes.get(place).map(|known| &known.route)
    }

    #[cold]
    fn learn(&mut self, place: usize, text: &[u8]) -> Option<()> {
        let mut fields = Fields::new(text);
        let route = Route::read(&mut fields)?;
        let mut known = Known { text: [0; MAX_LINE], length: text.len() as u8, route };
        known.text.get_mut(..text.len())?.copy_from_slice(text);
        if self.routes.is_empty() {
            // The others have no text, and no line is without.
            self.routes.resize(1 << ROUTE_BITS, Known { length: 0, ..known });
        }
        *self.routes.get_mut(place)? = known;
        fields.is_empty().then_some(())
    }
}

impl Known {
    #[inline(always)]
    fn text(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Where a route is remembered: links differ at the beginning, flows at the end.
#[inline(always)]
fn place_of(text: &[u8]) -> Option<usize> {
    /// The golden ratio's fraction: its product's upper bits depend on all bits below.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let first = u64::from_le_bytes(*text.first_chunk()?);
    let last = u64::from_le_bytes(*text.last_chunk()?);
    let mixed = (first ^ last.rotate_left(29)).wrapping_mul(MIX);
    Some((mixed >> (u64::BITS - ROUTE_BITS)) as usize)
}

/// The fields of a line that are left.
struct Words<'a> {
    line: &'a [u8],
    /// Where the next begins.
    start: usize,
    /// A bit for each byte behind a field that is left.
    ends: u64,
}

impl<'a> Words<'a> {
    /// The fields of `line`, if it is short and has as many as it should.
    #[inline(always)]
    fn of_line(line: &'a [u8]) -> Option<Self> {
        let last = line.last_chunk::<WORD>().filter(|_| line.len() <= MAX_LINE)?;
        let mut ends = 1 << line.len() | blanks(*last) << (line.len() - WORD);
        let (words, _) = line.as_chunks::<WORD>();
        for (at, word) in words.iter().enumerate() {
            ends |= blanks(*word) << (at * WORD);
        }
        (ends.count_ones() == FIELDS).then_some(Self { line, start: 0, ends })
    }

    /// Where the next field begins and ends.
    #[inline(always)]
    fn bounds(&mut self) -> (usize, usize) {
        let start = self.start;
        let end = self.ends.trailing_zeros() as usize;
        self.ends &= self.ends.wrapping_sub(1);
        self.start = end + 1;
        (start, end)
    }

    /// All fields but the last two, with the blanks between them.
    #[inline(always)]
    fn all_but_two(&mut self) -> Option<&'a [u8]> {
        let without_last = self.ends ^ 1_u64.checked_shl(self.ends.checked_ilog2()?)?;
        let before_two = without_last ^ 1_u64.checked_shl(without_last.checked_ilog2()?)?;
        let end = before_two.checked_ilog2()? as usize;
        let text = self.line.get(self.start..end)?;
        self.ends ^= before_two;
        self.start = end + 1;
        Some(text)
    }

    #[inline(always)]
    fn number(&mut self) -> Option<i64> {
        let (start, end) = self.bounds();
        match Word::of(self.line, start, end).and_then(Word::number) {
            Some(number) => Some(i64::from(number)),
            None => Fields::new(self.line.get(start..end)?).signed(),
        }
    }

    /// A time in seconds, as nanoseconds.
    #[inline(always)]
    fn time_ns(&mut self) -> Option<i64> {
        let (start, end) = self.bounds();
        let plain = Word::of(self.line, start, end).and_then(Word::time_ns);
        plain.or_else(|| Fields::new(self.line.get(start..end)?).time_ns())
    }
}

/// Up to eight bytes of text, not none.
#[derive(Clone, Copy)]
struct Word {
    /// The last byte of the text is the highest; what is below the first means nothing.
    bytes: u64,
    length: usize,
}

impl Word {
    /// What stands in `line` from `start` to `end`.
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
        // A byte above 9 sets its highest bit here, or has it.
        if (digits.wrapping_add(0x76 * EACH) | digits) & HIGH != 0 {
            return None;
        }
        let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
        let outer = (pairs & 0xff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
        let inner = (pairs >> 16 & 0xff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
        Some((outer.wrapping_add(inner) >> 32) as u32)
    }

    /// The time in seconds that the text is, as nanoseconds.
    #[inline(always)]
    fn time_ns(self) -> Option<i64> {
        let Some((seconds, fraction)) = self.split() else {
            return Some(i64::from(self.number()?) * 1_000_000_000);
        };
        let ns = u64::from(fraction.number()?) * TO_NS.get(fraction.length)?;
        Some(i64::from(seconds.number()?) * 1_000_000_000 + ns as i64)
    }

    /// What is before the first point and what is behind it, neither of them empty.
    #[inline(always)]
    fn split(self) -> Option<(Self, Self)> {
        let points = equal(self.bytes, b'.') & self.mask();
        if points == 0 {
            return None;
        }
        let at = points.trailing_zeros() as usize / 8;
        let after = WORD - 1 - at;
        let before = self.length - after - 1;
        let is_whole = before > 0 && after > 0;
        let behind = Self { length: after, ..self };
        is_whole.then(|| (Self { bytes: self.bytes << (8 * (after + 1)), length: before }, behind))
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

    /// What the reader of any line makes of it.
    fn read_any(line: &[u8]) -> Option<Seen> {
        let mut seen = Seen::default();
        let mut fields = Fields::new(line.get(2..)?);
        let time_ns = fields.time_ns()?;
        wired::read(line[0], time_ns, &mut fields, &mut seen).ok().map(|()| seen)
    }

    fn read_plain(line: &[u8]) -> Option<Seen> {
        let mut seen = Seen { ttl: 7, ..Seen::default() };
        let mut reader = Plain::default();
        reader.read(line, &mut seen)?;
        // What is remembered is the same as what was read.
        let first = format!("{seen:?}");
        reader.read(line, &mut seen)?;
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
            "+ 0.0004 4 0 tcp 1040 ------- 2 4.0 5.0 0 1 0 0x0 0 0",
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
