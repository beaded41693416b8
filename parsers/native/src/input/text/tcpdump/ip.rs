//! The text of an IP header: with `-v` in brackets before the addresses, without it nothing.

use super::scan::{number, number_after, number_behind, split_at_byte, split_at_words, trim_start};
use crate::packet::event::{Family, Fragment, Network};

/// The fields of an IP header except its addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// The version, if the line names it.
    pub family: Option<Family>,
    /// Bytes of header and payload.
    pub total: Option<u32>,
    pub protocol: Option<u8>,
    /// Bytes of its length that the frame does not have.
    pub missing: u32,
    /// Whether there are options or extension headers, which shorten the payload.
    pub has_options: bool,
    ip_id: Option<u16>,
    ttl: u8,
    ecn: u8,
    dscp: Option<u8>,
    fragment: Option<Fragment>,
}

impl Header {
    /// A header of which at most the version is printed.
    pub fn of(family: Option<Family>) -> Self {
        Self { family, ..Self::default() }
    }

    /// Whether this is a fragment other than the first.
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset > 0)
    }

    /// Length of the header itself.
    pub fn bytes(&self) -> u32 {
        match self.family {
            Some(Family::V6) => 40,
            _ => 20,
        }
    }

    /// Bytes after the header, as far as they are in the frame.
    pub fn payload(&self) -> Option<u32> {
        self.total?.checked_sub(self.bytes())?.checked_sub(self.missing)
    }

    /// Copy the known fields to `network`.
    #[inline]
    pub fn fill(&self, network: &mut Network) {
        network.ip_id = self.ip_id;
        network.ttl = self.ttl;
        network.ecn = self.ecn;
        network.dscp = self.dscp;
        network.fragment = self.fragment;
    }

    /// Read the text before the addresses. The rest of an IPv4 header's line is empty: the
    /// addresses are on the next line.
    #[inline]
    pub fn read<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        match text.first() {
            Some(b'(' | b't' | b'[') => self.read_any(text),
            _ => Some(text),
        }
    }

    fn read_any<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        let text = self.missing_bytes(text)?;
        if let Some(words) = text.strip_prefix(b"(tos 0x") {
            return self.ipv4(words);
        }
        let Some(words) = text.strip_prefix(b"(") else {
            return Some(text);
        };
        self.ipv6(words)
    }

    /// Skip a remark that the frame is shorter than the packet: `truncated-ip - 54 bytes missing! `, since
    /// version 5 `[total length 85 > length 84] (invalid) `, of IPv6 `[header+payload length 105 > ...`.
    fn missing_bytes<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        if let Some((missing, rest)) = number_after(text, b"truncated-ip - ") {
            self.missing = missing;
            return rest.strip_prefix(b" bytes missing! ").or_else(|| rest.strip_prefix(b" bytes missing!"));
        }
        let total =
            number_after(text, b"[total length ").or_else(|| number_after(text, b"[header+payload length "));
        let Some((total, rest)) = total else { return Some(text) };
        let (in_frame, rest) = number_after(rest, b" > length ")?;
        self.missing = total.checked_sub(in_frame)?;
        rest.strip_prefix(b"] (invalid) ")
    }

    /// `0,ECT(0), ttl 63, id 50956, offset 0, flags [DF], proto TCP (6), length 53)`.
    fn ipv4<'a>(&mut self, words: &'a [u8]) -> Option<&'a [u8]> {
        self.family = Some(Family::V4);
        self.take_class(words);
        self.ttl = number_behind(words, b", ttl ").and_then(|ttl| u8::try_from(ttl).ok()).unwrap_or(0);
        let (_, rest) = split_at_words(words, b", id ")?;
        let (id, rest) = number(rest)?;
        self.ip_id = u16::try_from(id).ok();
        let (offset, rest) = number_after(rest, b", offset ")?;
        let (flags, rest) = split_at_byte(rest, b']')?;
        if offset > 0 || flags.contains(&b'+') {
            self.fragment = Some(Fragment { id: u32::from(self.ip_id?), offset });
        }
        self.protocol = number_behind(rest, b" (").and_then(|protocol| u8::try_from(protocol).ok());
        let (_, rest) = split_at_words(rest, b"), length").unwrap_or((b"", rest));
        let length = rest.strip_prefix(b":").unwrap_or(rest).strip_prefix(b" ")?;
        let (total, rest) = number(length)?;
        self.has_options = rest.starts_with(b", options (");
        // Segmentation offload leaves 0.
        self.total = Some(total).filter(|&total| total > 0);
        // With -g the addresses follow on the same line.
        let behind_options = || split_at_words(rest, b")) ").or_else(|| split_at_words(rest, b"!) "));
        let same_line = rest.strip_prefix(b") ").or_else(|| Some(behind_options()?.1));
        same_line.or_else(|| rest.ends_with(b")").then_some(b""))
    }

    fn take_class(&mut self, words: &[u8]) {
        let class = traffic_class(words);
        (self.ecn, self.dscp) = (class & 3, Some(class >> 2));
    }

    /// `class 0x02, flowlabel 0x30ac9, hlim 63, next-header TCP (6) payload length: 33) `; since version 5
    /// `next-header TCP (6), payload length 33) `, and after it the length that the header cannot have.
    fn ipv6<'a>(&mut self, words: &'a [u8]) -> Option<&'a [u8]> {
        self.family = Some(Family::V6);
        let (words, rest) = split_at_words(words, b"payload length")?;
        let (payload, rest) = number(trim_start(rest.strip_prefix(b":").unwrap_or(rest)))?;
        let rest = rest.strip_prefix(b") ")?;
        let (real, rest) = match number_after(rest, b"[real length ") {
            Some((real, after)) => (Some(real), after.strip_prefix(b", presumed BIG TCP] ")?),
            None => (None, rest),
        };
        // 0 is a jumbogram or due to segmentation offload.
        let printed =
            Some(payload).filter(|&payload| payload > 0).and_then(|payload| payload.checked_add(40));
        self.total = real.or(printed);
        if let Some(class) = words.strip_prefix(b"class 0x") {
            self.take_class(class);
        } else {
            // printed only if not 0
            self.dscp = Some(0);
        }
        self.ttl = number_behind(words, b"hlim ").and_then(|hops| u8::try_from(hops).ok()).unwrap_or(0);
        self.protocol = number_behind(words, b" (").and_then(|protocol| u8::try_from(protocol).ok());
        Some(rest)
    }
}

/// Leading hexadecimal digits, at most two.
fn traffic_class(text: &[u8]) -> u8 {
    let digits = text.iter().take(2).map_while(|&byte| char::from(byte).to_digit(16));
    digits.fold(0, |value, digit| value << 4 | digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header_of(text: &str) -> (Header, String) {
        let mut header = Header::default();
        let rest = header.read(text.as_bytes()).unwrap();
        (header, String::from_utf8_lossy(rest).into_owned())
    }

    #[test]
    fn test_ipv4_of_every_kind() {
        let (header, rest) =
            header_of("(tos 0x2,ECT(0), ttl 63, id 50956, offset 0, flags [DF], proto TCP (6), length 53)");
        assert_eq!((header.ecn, header.ttl, header.ip_id), (2, 63, Some(50956)));
        assert_eq!(header.dscp, Some(0));
        assert_eq!((header.protocol, header.total, header.fragment), (Some(6), Some(53), None));
        assert_eq!(rest, "");
        let (header, _) = header_of(
            "(tos 0x0, ttl 64, id 2, offset 0, flags [none], proto TCP (6), length 1052, bad cksum 0 (->5fd6)!)",
        );
        assert_eq!((header.total, header.payload()), (Some(1052), Some(1032)));
        let (header, _) =
            header_of("(tos 0xbb,CE, ttl 64, id 2, offset 0, flags [none], proto TCP (6), length 60)");
        assert_eq!((header.dscp, header.ecn), (Some(46), 3));
        let (header, _) = header_of("(tos 0x0, id 7, offset 1480, flags [+], proto UDP (17), length 1500)");
        assert_eq!(header.fragment, Some(Fragment { id: 7, offset: 1480 }));
        assert!(header.is_later_fragment());
        let (header, _) = header_of(
            "truncated-ip - 54 bytes missing! (tos 0x0, ttl 64, id 2, offset 0, flags [DF], proto TCP (6), length 1052)",
        );
        assert_eq!((header.missing, header.payload()), (54, Some(978)));
        // Versions before 4 have a colon.
        let (header, _) =
            header_of("(tos 0x0, ttl  64, id 2, offset 0, flags [DF], proto: TCP (6), length: 1052)");
        assert_eq!(header.total, Some(1052));
    }

    #[test]
    fn test_ipv6_with_class() {
        let (header, rest) = header_of(
            "(class 0x02, flowlabel 0x30ac9, hlim 63, next-header TCP (6) payload length: 33) fd00::1.5 > fd00::2.6: x",
        );
        assert_eq!((header.ecn, header.ttl, header.protocol, header.total), (2, 63, Some(6), Some(73)));
        assert_eq!(rest, "fd00::1.5 > fd00::2.6: x");
        assert_eq!(header.dscp, Some(0));
        let (header, _) = header_of("(class 0x8a, hlim 63, next-header TCP (6) payload length: 33) a > b: x");
        assert_eq!((header.dscp, header.ecn), (Some(34), 2));
        let (header, _) = header_of("(hlim 63, next-header TCP (6) payload length: 33) a > b: x");
        assert_eq!((header.dscp, header.ecn), (Some(0), 0));
    }

    #[test]
    fn test_headers_of_version_5() {
        let (header, rest) =
            header_of("(hlim 64, next-header UDP (17), payload length 1208) ::1.5 > ::1.6: x");
        assert_eq!(
            (header.protocol, header.payload(), rest.as_str()),
            (Some(17), Some(1208), "::1.5 > ::1.6: x")
        );
        let (header, rest) = header_of(
            "(hlim 61, next-header TCP (6), payload length 0) [real length 80040, presumed BIG TCP] a > b: x",
        );
        assert_eq!((header.payload(), rest.as_str()), (Some(80_000), "a > b: x"));
        let (header, rest) = header_of(
            "[total length 85 > length 84] (invalid) (tos 0x0, ttl 64, id 6, offset 0, flags [none], proto UDP \
             (17), length 85)",
        );
        assert_eq!((header.payload(), rest.as_str()), (Some(64), ""));
        let (header, rest) = header_of("[header+payload length 105 > length 104] (invalid) a > b: x");
        assert_eq!((header.missing, rest.as_str()), (1, "a > b: x"));
    }

    #[test]
    fn test_addresses_on_the_same_line() {
        for end in ["", ", bad cksum 0 (->5fd6)!", ", options (RA)"] {
            let text = format!(
                "(tos 0x0, ttl 64, id 2, offset 0, flags [none], proto UDP (17), length 60{end}) a > b: x (5)"
            );
            let (header, rest) = header_of(&text);
            assert_eq!((header.total, rest.as_str()), (Some(60), "a > b: x (5)"));
        }
    }

    #[test]
    fn test_nothing_printed() {
        let (header, rest) = header_of("10.0.0.1 > 10.0.0.2: x");
        assert_eq!((header.total, header.protocol, header.dscp), (None, None, None));
        assert_eq!(rest, "10.0.0.1 > 10.0.0.2: x");
        let (header, rest) = header_of("truncated-ip - 10 bytes missing! 10.0.0.1 > 10.0.0.2: x");
        assert_eq!((header.missing, rest.as_str()), (10, "10.0.0.1 > 10.0.0.2: x"));
        assert!(Header::default().read(b"(tos 0x0, ttl 64, id 2, off").is_none());
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_a_header_or_not(bytes: Vec<u8>, tail in "[0-9a-z:,. \\[\\]()-]{0,80}") {
            let _ = Header::default().read(&bytes);
            let _ = Header::default().read(format!("(tos 0x{tail}").as_bytes());
            let _ = Header::default().read(format!("({tail}").as_bytes());
        }
    }
}
