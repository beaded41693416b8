//! The text of a TCP header.
//!
//! Since version 4: `Flags [P.], cksum 0x1c2d (correct), seq 1:38, ack 1, win 63, urg 1, options
//! [nop,nop,TS val 1 ecr 2], length 37: HTTP`. Before: `P 1:38(37) ack 1 win 63 urg 1
//! <nop,nop,timestamp 1 2> (DF)`. With `-q`: `tcp 37`.

use super::scan::{number, number_after, split_at_byte, split_at_words};
use super::tcp_options;
use super::tcp_options::Options;
use crate::packet::event::TcpFlags;

pub const PSH: u16 = 0x008;

/// The printed fields of a header. Sequence numbers are as printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// Whether more than the length of the payload is printed (not with `-q`).
    pub is_whole: bool,
    /// Not printed for segments that occupy no sequence number.
    pub seq: Option<u32>,
    /// Not printed without the flag.
    pub ack: Option<u32>,
    pub flags: TcpFlags,
    pub window: u16,
    /// The options that are used, and the length of all.
    pub options: Options,
    pub payload: Option<u32>,
    /// Whether the snap length cut the header.
    pub is_cut: bool,
}

/// Read a header of any version.
#[inline]
pub fn read(text: &[u8]) -> Option<Header> {
    if let Some(text) = text.strip_prefix(b"Flags [") {
        return fields(text);
    }
    other_forms(text)
}

#[inline(never)]
fn other_forms(text: &[u8]) -> Option<Header> {
    if let Some((payload, _)) = number_after(text, b"tcp ") {
        return Some(Header { payload: Some(payload), ..Header::default() });
    }
    if text.starts_with(b"[|tcp]") || text.starts_with(b" [|tcp]") {
        return Some(Header { is_cut: true, ..Header::default() });
    }
    old(text)
}

/// Version 4, from the flags on.
#[inline]
fn fields(text: &[u8]) -> Option<Header> {
    let (letters, rest) = split_at_byte(text, b']')?;
    let mut header = Header { is_whole: true, flags: flags(letters)?, ..Header::default() };
    let mut rest = rest;
    while let Some(field) = rest.strip_prefix(b", ") {
        let after = match field.first() {
            Some(b's') => sequence(field, &mut header),
            Some(b'a') => number_after(field, b"ack ").map(|(ack, after)| {
                header.ack = Some(ack);
                after
            }),
            Some(b'w') => window(field, &mut header),
            Some(b'u') => number_after(field, b"urg ").map(|(_, after)| after),
            Some(b'o') => {
                field.strip_prefix(b"options [").map(|list| tcp_options::read(list, &mut header.options))
            }
            Some(b'c') => split_at_byte(field, b')').map(|(_, after)| after),
            Some(b'l') => {
                header.payload = Some(number_after(field, b"length ")?.0);
                return Some(header);
            }
            _ => None,
        };
        let Some(after) = after else { break };
        rest = after;
    }
    accept_cut(text, header)
}

/// A header whose end is missing: cut by the snap length, or with invalid options. Otherwise the
/// line itself was cut, and nothing of it can be trusted.
#[cold]
fn accept_cut(text: &[u8], mut header: Header) -> Option<Header> {
    header.is_cut = memchr::memmem::find(text, b"[|tcp]").is_some();
    let is_bad = memchr::memmem::find(text, b"[bad ").is_some();
    // Only segments with payload have a range of numbers.
    if header.ack.is_some() && header.seq.is_none() {
        header.payload = Some(0);
    }
    (header.is_cut || is_bad).then_some(header)
}

/// `seq 1:38` or, without payload, `seq 1`.
#[inline]
fn sequence<'a>(field: &'a [u8], header: &mut Header) -> Option<&'a [u8]> {
    let (seq, rest) = number_after(field, b"seq ")?;
    header.seq = Some(seq);
    let (end, rest) = match rest.strip_prefix(b":") {
        Some(rest) => number(rest)?,
        None => (seq, rest),
    };
    header.payload = Some(end.wrapping_sub(seq));
    Some(rest)
}

#[inline]
fn window<'a>(field: &'a [u8], header: &mut Header) -> Option<&'a [u8]> {
    let (window, rest) = number_after(field, b"win ")?;
    header.window = u16::try_from(window).ok()?;
    Some(rest)
}

/// Letters in either form; `none` if there are none.
#[inline]
fn flags(letters: &[u8]) -> Option<TcpFlags> {
    if letters == b"none" {
        return Some(TcpFlags(0));
    }
    let mut flags = 0;
    for letter in letters {
        flags |= match letter {
            b'F' => TcpFlags::FIN,
            b'S' => TcpFlags::SYN,
            b'R' => TcpFlags::RST,
            b'P' => PSH,
            b'.' => TcpFlags::ACK,
            b'U' => 0x020,
            b'E' => 0x040,
            b'W' => 0x080,
            b'e' => 0x100,
            _ => return None,
        };
    }
    Some(TcpFlags(flags))
}

/// Versions before 4: `.` is no flag, and the acknowledgement is its own flag.
fn old(text: &[u8]) -> Option<Header> {
    let (letters, rest) = split_at_byte(text, b' ')?;
    let letters = letters.strip_suffix(b",").unwrap_or(letters);
    let mut header = Header { is_whole: true, payload: Some(0), ..Header::default() };
    if letters.is_empty() || letters.len() > 7 {
        return None;
    }
    if letters != b"." {
        header.flags = flags(letters).filter(|flags| !flags.has(TcpFlags::ACK))?;
    }
    // A checksum of -v, in either spelling, comes first.
    let rest =
        match rest.starts_with(b"[tcp sum") || rest.starts_with(b"[bad tcp") || rest.starts_with(b"cksum") {
            true => split_at_words(rest, b"] ").or_else(|| split_at_words(rest, b"), "))?.1,
            false => rest,
        };
    let rest = old_sequence(rest, &mut header).unwrap_or(rest);
    let rest = match number_after(rest, b"ack ") {
        Some((ack, after)) => {
            header.ack = Some(ack);
            header.flags = TcpFlags(header.flags.0 | TcpFlags::ACK);
            after.strip_prefix(b" ").unwrap_or(after)
        }
        None => rest,
    };
    let Some(rest) = window(rest, &mut header) else {
        header.is_cut = memchr::memmem::find(rest, b"[|tcp]").is_some();
        return (header.is_cut && header.seq.is_some()).then_some(header);
    };
    if let Some((_, list)) = split_at_byte(rest, b'<') {
        tcp_options::read(list, &mut header.options);
    }
    Some(header)
}

/// `1:38(37) `.
fn old_sequence<'a>(text: &'a [u8], header: &mut Header) -> Option<&'a [u8]> {
    let (seq, rest) = number(text)?;
    let (_, rest) = number_after(rest, b":")?;
    let (payload, rest) = number_after(rest, b"(")?;
    let rest = rest.strip_prefix(b")")?;
    header.seq = Some(seq);
    header.payload = Some(payload);
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(text: &str) -> Header {
        read(text.as_bytes()).unwrap()
    }

    #[test]
    fn test_data_with_a_timestamp() {
        let header = header(
            "Flags [P.], seq 1:38, ack 9, win 63, options [nop,nop,TS val 148502442 ecr 3547307099], length 37",
        );
        assert_eq!((header.seq, header.ack, header.payload), (Some(1), Some(9), Some(37)));
        assert_eq!((header.flags.letters().as_str(), header.window), ("PA", 63));
        assert_eq!(header.options.known.timestamp, Some((148_502_442, 3_547_307_099)));
        assert_eq!(header.options.bytes, 12);
    }

    #[test]
    fn test_checksums_urgent_pointers_and_what_an_application_says_are_passed_over() {
        for text in [
            "Flags [P.U], cksum 0x17ba (incorrect -> 0x2e80), seq 1:38, ack 9, win 63, urg 3, length 37",
            "Flags [P.], cksum 0x17ba (correct), seq 1:38, ack 9, win 63, length 37: HTTP: GET /, length 9",
            "Flags [.], seq 1:38, ack 9, win 63, options [unknown-19 0x0102,mptcp 12 dss ack 7], length 37",
        ] {
            let header = header(text);
            assert_eq!((header.seq, header.ack, header.payload), (Some(1), Some(9), Some(37)), "{text}");
            assert_eq!(header.window, 63);
        }
    }

    #[test]
    fn test_every_flag() {
        for (letters, flags) in
            [("S", 2), ("S.", 18), ("FP.", 25), ("R", 4), ("SEW", 194), ("none", 0), (".", 16)]
        {
            let text = format!("Flags [{letters}], seq 5, win 1, length 0");
            assert_eq!(header(&text).flags.0, flags, "{letters}");
        }
        assert!(read(b"Flags [X], seq 5, win 1, length 0").is_none());
    }

    #[test]
    fn test_a_bare_acknowledgement_has_no_number() {
        let header = header("Flags [.], ack 1449, win 67, options [nop,nop,sack 1 {2897:4345}], length 0");
        assert_eq!((header.seq, header.ack, header.payload), (None, Some(1449), Some(0)));
    }

    #[test]
    fn test_cut_headers() {
        let syn = header("Flags [S], seq 2237556518, win 64240, options [ [|tcp]");
        assert!(syn.is_cut);
        assert_eq!((syn.seq, syn.payload), (Some(2_237_556_518), Some(0)));
        let data = header("Flags [.], seq 1:1449, ack 1, win 63, options [nop,nop, [|tcp]");
        assert_eq!((data.is_cut, data.payload), (true, Some(1448)));
        let none = header(" [|tcp]");
        assert_eq!((none.is_cut, none.is_whole, none.payload), (true, false, None));
    }

    #[test]
    fn test_the_length_alone() {
        let header = header("tcp 1448");
        assert_eq!((header.is_whole, header.payload), (false, Some(1448)));
    }

    #[test]
    fn test_versions_before_4() {
        let syn = header("S 123:123(0) win 8192 <mss 1460,nop,wscale 0,nop,nop,timestamp 7 0> (DF)");
        assert_eq!((syn.seq, syn.ack, syn.payload), (Some(123), None, Some(0)));
        assert_eq!((syn.flags.0, syn.window), (TcpFlags::SYN, 8192));
        assert_eq!((syn.options.known.mss, syn.options.known.timestamp), (Some(1460), Some((7, 0))));
        let ack = header(". ack 1 win 8760");
        assert_eq!((ack.seq, ack.ack, ack.flags.0), (None, Some(1), TcpFlags::ACK));
        let data = header("P 1:513(512) ack 1 win 8760 (DF)");
        assert_eq!((data.seq, data.payload, data.flags.0), (Some(1), Some(512), 0x18));
        let checked = header("P [tcp sum ok] 1:513(512) ack 1 win 8760");
        assert_eq!((checked.seq, checked.payload), (Some(1), Some(512)));
        let checked = header("F, cksum 0x1234 (correct), 1:1(0) ack 1 win 8760");
        assert_eq!((checked.seq, checked.flags.0), (Some(1), 0x11));
        for text in ["12345+ A? example.com. (29)", "S", "S x", "", ". win", "NTPv4, Client, length 48"] {
            assert!(read(text.as_bytes()).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_a_header_or_not(bytes: Vec<u8>, tail in "[0-9a-z:,. \\[\\](){}<>|-]{0,80}") {
            let _ = read(&bytes);
            let _ = read(format!("Flags [{tail}").as_bytes());
            let _ = read(format!("Flags [P.], {tail}").as_bytes());
            let _ = read(format!("P {tail}").as_bytes());
        }
    }
}
