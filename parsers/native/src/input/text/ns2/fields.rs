//! Splitting a line of ns-2: fields between blanks, numbers, addresses, tags with values.

use crate::input::text::number;
use crate::input::text::number::TO_NS;

/// A decimal number of at most this many digits cannot overflow.
const SAFE_DIGITS: usize = 18;
/// Seconds below this cannot overflow in nanoseconds.
const MAX_SECONDS: u64 = 999_999_999;
/// Parts of the longest address: domain, cluster, node and port.
const MAX_PARTS: usize = 4;

/// One end of a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEnd {
    /// The node's address: a number, or domain, cluster and node packed into one like in ns-2.
    pub address: u32,
    /// None if the agent is connected to nothing.
    pub port: Option<u16>,
    /// Whether it was written as domain, cluster and node.
    pub is_dotted: bool,
}

impl PathEnd {
    /// A node's number and a port.
    #[inline(always)]
    pub fn flat(node: i64, port: i64) -> Option<Self> {
        Some(Self { address: flat(node)?, port: u16::try_from(port).ok(), is_dotted: false })
    }
}

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    #[inline(always)]
    pub fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }

    #[inline(always)]
    fn next(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// The rest without leading blanks.
    #[inline(always)]
    pub fn rest(&mut self) -> &'a [u8] {
        while self.next() == Some(b' ') {
            self.at += 1;
        }
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Whether no field is left.
    #[inline(always)]
    pub fn is_empty(&mut self) -> bool {
        self.rest().is_empty()
    }

    #[inline(always)]
    pub fn field(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let length = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).filter(|field| !field.is_empty())
    }

    /// The next field, if it is `expected`; else the position stays.
    pub fn skip(&mut self, expected: &[u8]) -> Option<()> {
        let mut ahead = *self;
        (ahead.field()? == expected).then(|| *self = ahead)
    }

    /// The next field without its brackets, if it has them; blanks inside belong to it.
    pub fn bracketed(&mut self) -> Option<&'a [u8]> {
        let inner = self.rest().strip_prefix(b"[")?;
        let length = memchr::memchr(b']', inner)?;
        self.at += length + 2;
        inner.get(..length)
    }

    /// The next digits, as a number; the rest of the field stays.
    #[inline(always)]
    fn digits(&mut self) -> Option<u64> {
        let start = self.at;
        let mut value: u64 = 0;
        while let Some(digit) = self.next().map(|byte| byte.wrapping_sub(b'0'))
            && digit <= 9
        {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        (1..=SAFE_DIGITS).contains(&(self.at - start)).then_some(value)
    }

    #[inline(always)]
    fn signed_digits(&mut self) -> Option<i64> {
        if self.next() == Some(b'-') {
            self.at += 1;
            return self.digits().map(|value| -(value as i64));
        }
        self.digits().map(|value| value as i64)
    }

    /// Whether the position is at the end of a field.
    #[inline(always)]
    fn is_at_end(&self) -> bool {
        matches!(self.next(), None | Some(b' '))
    }

    /// A decimal number without sign.
    #[inline(always)]
    pub fn decimal(&mut self) -> Option<u64> {
        self.rest();
        self.digits().filter(|_| self.is_at_end())
    }

    /// A decimal number that may be negative.
    #[inline(always)]
    pub fn signed(&mut self) -> Option<i64> {
        self.rest();
        self.signed_digits().filter(|_| self.is_at_end())
    }

    /// A decimal number of 32 bits.
    #[inline(always)]
    pub fn small(&mut self) -> Option<u32> {
        u32::try_from(self.decimal()?).ok()
    }

    /// A time in seconds, as nanoseconds.
    #[inline(always)]
    pub fn time_ns(&mut self) -> Option<i64> {
        self.rest();
        let mut ahead = *self;
        match ahead.plain_time_ns().filter(|_| ahead.is_at_end()) {
            Some(time_ns) => {
                *self = ahead;
                Some(time_ns)
            }
            None => number::time_ns(self.field()?),
        }
    }

    /// The usual time: few seconds, and at most nine digits after the point.
    #[inline(always)]
    fn plain_time_ns(&mut self) -> Option<i64> {
        let seconds = self.digits().filter(|&seconds| seconds <= MAX_SECONDS)?;
        let mut ns = 0;
        if self.next() == Some(b'.') {
            self.at += 1;
            let start = self.at;
            ns = self.digits()?.checked_mul(*TO_NS.get(self.at - start)?)?;
        }
        Some((seconds * 1_000_000_000 + ns) as i64)
    }

    /// An address with its port: `2.0`, `1.0.3.0`, `4194307:0`.
    #[inline(always)]
    pub fn end(&mut self) -> Option<PathEnd> {
        self.rest();
        let mut ahead = *self;
        let first = ahead.signed_digits()?;
        // Nearly all are a node and a port.
        if matches!(ahead.next(), Some(b'.' | b':')) {
            ahead.at += 1;
            if let Some(port) = ahead.signed_digits().filter(|_| ahead.is_at_end()) {
                *self = ahead;
                return PathEnd::flat(first, port);
            }
        }
        self.long_end()
    }

    #[inline(never)]
    fn long_end(&mut self) -> Option<PathEnd> {
        let mut parts = [0_i64; MAX_PARTS];
        let mut count = 0;
        loop {
            *parts.get_mut(count)? = self.signed_digits()?;
            count += 1;
            match self.next() {
                Some(b'.' | b':') => self.at += 1,
                _ => break,
            }
        }
        let (port, node) = parts.get(..count)?.split_last()?;
        let address = match *node {
            [domain, cluster] => hierarchical(domain, cluster, 0)?,
            [domain, cluster, node] => hierarchical(domain, cluster, node)?,
            _ => return None,
        };
        let port = u16::try_from(*port).ok();
        self.is_at_end().then_some(PathEnd { address, port, is_dotted: true })
    }

    /// The next tag, without its dash, and its value. Values in braces may hold blanks.
    #[inline]
    pub fn tag(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let tag = self.field()?.strip_prefix(b"-")?;
        let [b'{', inner @ ..] = self.rest() else {
            return Some((tag, self.field()?));
        };
        let length = memchr::memchr(b'}', inner)?;
        self.at += length + 2;
        Some((tag, inner.get(..length)?))
    }
}

/// A node's number as ns-2 keeps it: 32 bits, printed as negative if the highest is set.
#[inline(always)]
fn flat(number: i64) -> Option<u32> {
    match u32::try_from(number) {
        Ok(address) => Some(address),
        Err(_) => i32::try_from(number).ok().map(i32::cast_unsigned),
    }
}

/// ns-2's default: 10 bits of domain, 11 of cluster, 11 of node.
fn hierarchical(domain: i64, cluster: i64, node: i64) -> Option<u32> {
    let is_good =
        (0..1 << 10).contains(&domain) && [cluster, node].iter().all(|part| (0..1 << 11).contains(part));
    is_good.then_some((domain << 22 | cluster << 11 | node) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn end(text: &str) -> Option<(u32, Option<u16>, bool)> {
        Fields::new(text.as_bytes()).end().map(|end| (end.address, end.port, end.is_dotted))
    }

    #[test]
    fn test_addresses_of_every_kind() {
        assert_eq!(end("2.0 3.0"), Some((2, Some(0), false)));
        assert_eq!(end("4194307:255"), Some((4_194_307, Some(255), false)));
        assert_eq!(end("1.0.3.7"), Some((4_194_307, Some(7), true)));
        assert_eq!(end("1.2.7"), Some((1 << 22 | 2 << 11, Some(7), true)));
        assert_eq!(end("-1:255"), Some((u32::MAX, Some(255), false)));
        assert_eq!(end("-1.-1"), Some((u32::MAX, None, false)));
        for text in ["", "2", "2.", ".0", "2.0x", "1.2.3.4.5", "4294967296.0", "1024.0.0.0", "1.0.2048.0"] {
            assert_eq!(end(text), None, "{text}");
        }
    }

    #[test]
    fn test_numbers_wherever_they_stand_in_a_line() {
        for text in ["0", "7", "1234567", "12345678", "123456789012345678"] {
            for line in [text.to_owned(), format!("{text} "), format!("{text} and more to come")] {
                assert_eq!(Fields::new(line.as_bytes()).decimal(), text.parse().ok(), "{line}");
                let after = format!("before {line}");
                let mut fields = Fields::new(after.as_bytes());
                assert_eq!((fields.field(), fields.decimal()), (Some(&b"before"[..]), text.parse().ok()));
            }
        }
        for text in ["", "x", "1x", "12345678x", "1:2", "1234567890123456789"] {
            assert_eq!(Fields::new(text.as_bytes()).decimal(), None, "{text}");
        }
    }

    #[test]
    fn test_fields_tags_and_brackets() {
        let mut fields = Fields::new(b"AGT  --- 7 -x {1 2} -k [a b] end");
        assert_eq!(fields.field(), Some(&b"AGT"[..]));
        assert_eq!(fields.skip(b"x"), None);
        assert_eq!(fields.skip(b"---"), Some(()));
        assert_eq!(fields.signed(), Some(7));
        assert_eq!(fields.tag(), Some((&b"x"[..], &b"1 2"[..])));
        assert_eq!(fields.field(), Some(&b"-k"[..]));
        assert_eq!(fields.bracketed(), Some(&b"a b"[..]));
        assert_eq!((fields.field(), fields.field()), (Some(&b"end"[..]), None));
    }

    proptest! {
        #[test]
        fn test_a_time_is_the_same_on_both_ways(text in "-?[0-9]{0,12}(\\.[0-9]{0,12})?(e-?[0-9])?") {
            prop_assert_eq!(Fields::new(text.as_bytes()).time_ns(), number::time_ns(text.as_bytes()));
        }

        #[test]
        fn test_fields_are_those_of_the_standard_library(text in "[ab0-9. -]{0,40}") {
            let mut fields = Fields::new(text.as_bytes());
            let mut found = Vec::new();
            while let Some(field) = fields.field() {
                found.push(std::str::from_utf8(field).unwrap());
            }
            prop_assert_eq!(found, text.split(' ').filter(|field| !field.is_empty()).collect::<Vec<_>>());
        }

        #[test]
        fn test_any_number_is_read(number: i64, before in "[a-z ]{0,9}", after in "( [a-z0-9]{0,9})?") {
            let number = number % 1_000_000_000_000_000_000;
            let line = format!("x{before} {number}{after}");
            let mut fields = Fields::new(line.as_bytes());
            for _ in 0..format!("x{before}").split(' ').filter(|field| !field.is_empty()).count() {
                fields.field();
            }
            prop_assert_eq!(fields.signed(), Some(number));
        }

        #[test]
        fn test_any_bytes_are_split_without_panic(bytes: Vec<u8>) {
            let whole = Fields::new(&bytes);
            let _ = (whole.clone().end(), whole.clone().signed(), whole.clone().tag(), whole.clone().bracketed());
        }
    }
}
