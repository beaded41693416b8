//! Fields of a printed header, from left to right.

use memchr::memchr;

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// The text that was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Move after the next `word`; None, without moving, if there is none.
    #[inline]
    pub fn after(&mut self, word: &[u8]) -> Option<&mut Self> {
        let &first = word.first()?;
        let mut text = self.rest;
        loop {
            text = text.get(memchr(first, text)?..)?;
            if let Some(after) = text.strip_prefix(word) {
                self.rest = after;
                return Some(self);
            }
            text = text.get(1..)?;
        }
    }

    /// Whether `word` comes next; if so, move after it.
    #[inline]
    pub fn passes(&mut self, word: &[u8]) -> bool {
        let after = self.rest.strip_prefix(word);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let mut value: u64 = 0;
        let mut length = 0;
        while let Some(digit) =
            self.rest.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|&it| it < 10)
        {
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
            length += 1;
        }
        self.rest = self.rest.get(length..)?;
        (length > 0).then_some(value)
    }

    /// The next number, of a field of fewer bits.
    #[inline]
    pub fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number().and_then(|value| T::try_from(value).ok())
    }

    /// The text before the next `end`; move after that.
    #[inline]
    pub fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        let at = memchr(end, self.rest)?;
        let text = self.rest.get(..at)?;
        self.rest = self.rest.get(at + 1..)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_fields_are_found_in_order() {
        let mut scanner = Scanner::new(b"tos 0x0 ttl 64 id 7 flags [none] length: 56 a > b)");
        assert_eq!(scanner.after(b"ttl ").and_then(Scanner::number), Some(64));
        assert_eq!(scanner.after(b" id ").and_then(Scanner::small::<u16>), Some(7));
        assert!(scanner.after(b"ttl ").is_none());
        assert_eq!(scanner.after(b"flags [").and_then(|it| it.until(b']')), Some(&b"none"[..]));
        assert!(scanner.passes(b" length: ") && !scanner.passes(b"length"));
        assert_eq!(scanner.small::<u8>(), Some(56));
        assert_eq!(scanner.rest(), b" a > b)");
    }

    #[test]
    fn test_numbers_out_of_range_are_none() {
        assert_eq!(Scanner::new(b"99999999999999999999").number(), None);
        assert_eq!(Scanner::new(b"65536").small::<u16>(), None);
        assert_eq!(Scanner::new(b"x").number(), None);
    }
}
