//! Small parsers: each returns its value and the rest of the text.

use crate::input::text::number::{POWERS, leading_digits};

/// Nanoseconds of a second.
pub const SECOND: i64 = 1_000_000_000;

/// Leading decimal digits that fit in 32 bits.
#[inline(always)]
pub fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let (value, rest) = long_number(text)?;
    Some((u32::try_from(value).ok()?, rest))
}

/// Numbers of more digits may overflow.
const MAX_DIGITS: usize = 18;

/// Leading decimal digits, at most 18.
#[inline(always)]
pub fn long_number(text: &[u8]) -> Option<(u64, &[u8])> {
    // A line is full of short numbers: up to seven digits in one step, without a branch for each.
    match text.first_chunk().map(leading_digits) {
        Some((value, length @ 1..8)) => Some((value, text.get(length..)?)),
        // Sequence numbers and seconds have nine or ten digits.
        Some((upper, 8)) => eight_and_more(upper, text),
        _ => one_by_one(text),
    }
}

/// The first eight digits of `text` are `upper`.
#[inline]
fn eight_and_more(upper: u64, text: &[u8]) -> Option<(u64, &[u8])> {
    match text.get(8..)?.first_chunk().map(leading_digits) {
        Some((_, 0)) => Some((upper, text.get(8..)?)),
        Some((lower, digits @ 1..8)) => Some((upper * POWERS.get(digits)? + lower, text.get(8 + digits..)?)),
        _ => one_by_one(text),
    }
}

#[inline(never)]
fn one_by_one(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut value, mut length) = (0, 0);
    while let Some(digit) = text.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        if length == MAX_DIGITS {
            return None;
        }
        value = value * 10 + u64::from(digit);
        length += 1;
    }
    Some((value, text.get(length..)?)).filter(|_| length > 0)
}

/// The number after `words` at the beginning of `text`.
#[inline]
pub fn number_after<'a>(text: &'a [u8], words: &[u8]) -> Option<(u32, &'a [u8])> {
    number(text.strip_prefix(words)?)
}

/// The number after the first `words` anywhere in `text`.
pub fn number_behind(text: &[u8], words: &[u8]) -> Option<u32> {
    let (_, rest) = split_at_words(text, words)?;
    number(rest).map(|(value, _)| value)
}

/// The text before and after the first `words` in `text`.
#[inline]
pub fn split_at_words<'a>(text: &'a [u8], words: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, words)?;
    Some((text.get(..at)?, text.get(at + words.len()..)?))
}

/// The text before and after the first `byte` in `text`.
#[inline]
pub fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// `text` without leading blanks.
#[inline]
pub fn trim_start(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| byte == b' ').count();
    text.get(blanks..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn test_numbers_are_those_of_the_standard_library(digits in "[0-9]{0,22}", tail in "[^0-9]?.{0,12}") {
            let text = format!("{digits}{tail}");
            let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
            let expected = text[..end].parse::<u64>().ok().filter(|_| end <= MAX_DIGITS);
            let found = long_number(text.as_bytes());
            prop_assert_eq!(found, expected.map(|value| (value, &text.as_bytes()[end..])));
        }
    }

    #[test]
    fn test_numbers_and_what_is_left() {
        assert_eq!(number(b"12, ack"), Some((12, &b", ack"[..])));
        assert_eq!(number(b"4294967295"), Some((u32::MAX, &b""[..])));
        for text in ["", "x", "-1", "4294967296", "99999999999999999999999"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(number_after(b"win 63, x", b"win "), Some((63, &b", x"[..])));
        assert_eq!(number_behind(b"ARP, Reply, length 28", b", length "), Some(28));
    }

    #[test]
    fn test_splits() {
        assert_eq!(split_at_words(b"a > b", b" > "), Some((&b"a"[..], &b"b"[..])));
        assert_eq!(split_at_byte(b"ab", b'c'), None);
        assert_eq!(trim_start(b"   a "), b"a ");
    }
}
