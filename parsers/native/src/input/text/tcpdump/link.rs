//! The text between the time and the IP header: interface and direction of a cooked capture, and
//! with `-e` the link header.

use super::scan::{number_after, number_behind, split_at_byte, split_at_words, trim_start};
use crate::packet::event::{Event, Family};

/// The protocol after the link header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPayload {
    /// IPv4 or IPv6, as named by the line.
    Ip(Family),
    /// Not named: versions 3 print the addresses at once.
    Unnamed,
    /// Not IP, with this EtherType; 0 if that is not printed.
    Other(u32),
}

/// The printed fields of the link.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Name of the interface.
    pub interface: Option<&'a [u8]>,
    pub event: Option<Event>,
    /// Length of the frame.
    pub frame_bytes: Option<u32>,
    pub kind: LinkPayload,
}

impl Link<'_> {
    fn bare(kind: LinkPayload) -> Self {
        Self { interface: None, event: None, frame_bytes: None, kind }
    }
}

/// Read up to the IP header. With `has_time` the line is that of a packet in any case; without it
/// must look like one.
#[inline]
pub fn read(text: &[u8], has_time: bool) -> Option<(Link<'_>, &[u8])> {
    if let Some((kind, rest)) = named(text) {
        return Some((Link::bare(kind), rest));
    }
    with_header(text, has_time)
}

/// `IP `, `IP6 ` or another protocol's name.
#[inline]
fn named(text: &[u8]) -> Option<(LinkPayload, &[u8])> {
    if let Some(rest) = text.strip_prefix(b"IP ") {
        return (!rest.starts_with(b"(0x")).then_some((LinkPayload::Ip(Family::V4), rest));
    }
    if let Some(rest) = text.strip_prefix(b"IP6 ") {
        return (!rest.starts_with(b"(0x")).then_some((LinkPayload::Ip(Family::V6), rest));
    }
    let is_arp = text.starts_with(b"ARP, ") || text.starts_with(b"arp ");
    is_arp.then_some((LinkPayload::Other(0x0806), text))
}

#[inline(never)]
fn with_header(text: &[u8], has_time: bool) -> Option<(Link<'_>, &[u8])> {
    if let Some((link, rest)) = cooked(text) {
        return Some((link, rest));
    }
    if let Some((frame_bytes, kind, rest)) = header(text) {
        return Some((Link { frame_bytes, ..Link::bare(kind) }, rest));
    }
    if let Some((kind, rest)) = pppoe(text) {
        return Some((Link::bare(kind), rest));
    }
    if is_between_ends(text) {
        return Some((Link::bare(LinkPayload::Unnamed), text));
    }
    has_time.then(|| (Link::bare(LinkPayload::Other(0)), text))
}

/// Cooked v2: `eth0  In  IP ...`, with -e `eth0  In  ifindex 2 mac ethertype ...`. Cooked v1, only
/// with -e: ` In mac ethertype ...`.
pub fn cooked(text: &[u8]) -> Option<(Link<'_>, &[u8])> {
    let text = trim_start(text);
    let (first, rest) = split_at_byte(text, b' ')?;
    let (interface, event, rest) = match direction(first) {
        Some(event) => (None, event, rest),
        None => {
            let (second, rest) = split_at_byte(trim_start(rest), b' ')?;
            (Some(first), direction(second)?, rest)
        }
    };
    let rest = trim_start(rest);
    let (frame_bytes, kind, rest) = match named(rest) {
        Some((kind, rest)) => (None, kind, rest),
        None => header(rest).unwrap_or_else(|| without_length(rest)),
    };
    Some((Link { interface, event, frame_bytes, kind }, rest))
}

/// With -e and -q only an address stands before the packet: `ifindex 2 mac (tos ...`, `mac a > b: ...`.
fn without_length(text: &[u8]) -> (Option<u32>, LinkPayload, &[u8]) {
    let rest = number_after(text, b"ifindex ").map_or(text, |(_, rest)| trim_start(rest));
    match split_at_byte(rest, b' ') {
        Some((mac, rest)) if is_mac(mac) && (rest.starts_with(b"(") || is_between_ends(rest)) => {
            (None, LinkPayload::Unnamed, rest)
        }
        _ => (None, LinkPayload::Other(0), text),
    }
}

/// Received for this host, by broadcast or by multicast; sent; for another host.
fn direction(word: &[u8]) -> Option<Option<Event>> {
    match word {
        b"In" | b"B" | b"M" => Some(Some(Event::Received)),
        b"Out" => Some(Some(Event::Sent)),
        b"P" => Some(None),
        _ => None,
    }
}

/// A link header of -e: `mac > mac, ethertype IPv4 (0x0800), length 74: `, of PPP `IP (0x0021),
/// length 58: `, of BSD's loopback `AF IPv4 (2), length 64: `, of raw IP `ip: `. -q leaves numbers out.
fn header(text: &[u8]) -> Option<(Option<u32>, LinkPayload, &[u8])> {
    if let Some(rest) = text.strip_prefix(b"ip: ") {
        return Some((None, LinkPayload::Unnamed, rest));
    }
    let (words, rest) = split_at_words(text, b", length ")?;
    let looks_so = memchr::memmem::find(words, b"ethertype ").is_some()
        || memchr::memmem::find(words, b" > ").is_some_and(|at| is_mac(words.get(..at).unwrap_or_default()))
        || words.starts_with(b"AF ")
        || matches!(words, b"IPv4" | b"IPv6")
        || memchr::memmem::find(words, b" (0x").is_some();
    if !looks_so {
        return None;
    }
    let (length, rest) = number_after(rest, b"")?;
    let rest = rest.strip_prefix(b": ")?;
    let (kind, rest) = tagged(kind(words), rest);
    Some((Some(length), kind, rest))
}

fn is_mac(word: &[u8]) -> bool {
    word.len() == 17 && word.iter().all(|&byte| byte == b':' || byte.is_ascii_hexdigit())
}

/// The protocol that a link header names; its EtherType is in brackets.
fn kind(words: &[u8]) -> LinkPayload {
    let has = |word: &[u8]| memchr::memmem::find(words, word).is_some();
    if has(b"IPv4") || has(b"IP (0x0021)") {
        LinkPayload::Ip(Family::V4)
    } else if has(b"IPv6") || has(b"IP6 (0x0057)") {
        LinkPayload::Ip(Family::V6)
    } else if has(b"ARP") {
        LinkPayload::Other(0x0806)
    } else {
        LinkPayload::Other(0)
    }
}

/// Tags of 802.1Q, possibly several, and PPPoE.
fn tagged(kind_outside: LinkPayload, text: &[u8]) -> (LinkPayload, &[u8]) {
    let (mut found, mut rest) = (kind_outside, text);
    while let Some((words, after)) = tag(rest) {
        found = kind(words);
        rest = after;
    }
    pppoe(rest).unwrap_or((found, rest))
}

/// `vlan 42, p 1, ethertype IPv4 (0x0800), `, with -q `vlan 42, p 1, IPv4, `: what is inside.
fn tag(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = number_after(text, b"vlan ")?;
    let (_, rest) = number_after(rest, b", p ")?;
    let rest = rest.strip_prefix(b", DEI").unwrap_or(rest);
    split_at_words(rest.strip_prefix(b", ")?, b", ")
}

/// `PPPoE  [ses 0x1] IP ...`, with -e `PPPoE  [ses 0x1] IP (0x0021), length 58: ...`.
fn pppoe(text: &[u8]) -> Option<(LinkPayload, &[u8])> {
    let (_, rest) = split_at_words(text.strip_prefix(b"PPPoE ")?, b"] ")?;
    named(rest).or_else(|| {
        let (words, rest) = split_at_words(rest, b", length ")?;
        let (_, rest) = split_at_words(rest, b": ")?;
        Some((kind(words), rest))
    })
}

/// `a > b: `.
fn is_between_ends(text: &[u8]) -> bool {
    let ends = split_at_byte(text, b' ').and_then(|(_, rest)| split_at_byte(rest.strip_prefix(b"> ")?, b' '));
    ends.is_some_and(|(destination, _)| destination.ends_with(b":"))
}

/// Length of a non-IP frame, if the line ends with it.
pub fn other_bytes(text: &[u8]) -> u32 {
    number_behind(text, b", length ").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V4: LinkPayload = LinkPayload::Ip(Family::V4);
    const V6: LinkPayload = LinkPayload::Ip(Family::V6);

    #[test]
    fn test_every_link_header() {
        for (text, kind, frame_bytes) in [
            ("IP x", V4, None),
            ("IP6 x", V6, None),
            ("ip: x", LinkPayload::Unnamed, None),
            ("IP (0x0021), length 58: x", V4, Some(58)),
            ("AF IPv4 (2), length 64: x", V4, Some(64)),
            ("AF IPv6 (24), length 64: x", V6, Some(64)),
            ("62:64:d8:3d:3d:65 > aa:dc:7d:87:a2:35, ethertype IPv4 (0x0800), length 74: x", V4, Some(74)),
            ("62:64:d8:3d:3d:65 > aa:dc:7d:87:a2:35, IPv6, length 74: x", V6, Some(74)),
            (
                "62:64:d8:3d:3d:65 > aa:dc:7d:87:a2:35, ethertype 802.1Q-QinQ (0x88a8), length 118: vlan 100, p 0, \
                 ethertype 802.1Q (0x8100), vlan 42, p 1, ethertype IPv6 (0x86dd), x",
                V6,
                Some(118),
            ),
            (
                "62:64:d8:3d:3d:65 > ff:ff:ff:ff:ff:ff, ethertype ARP (0x0806), length 42: x",
                LinkPayload::Other(0x806),
                Some(42),
            ),
            ("IPv4, length 64: x", V4, Some(64)),
            (
                "62:64:d8:3d:3d:65 > aa:dc:7d:87:a2:35, 802.1Q-QinQ, length 82: vlan 100, p 0, DEI, 802.1Q, vlan 42, p 1, IPv4, x",
                V4,
                Some(82),
            ),
            ("PPPoE  [ses 0x11] IP x", V4, None),
            (
                "62:64:d8:3d:3d:65 > aa:dc:7d:87:a2:35, ethertype PPPoE S (0x8864), length 62: \
                 PPPoE  [ses 0x11] IP (0x0021), length 42: x",
                V4,
                Some(62),
            ),
            ("Out 16:90:58:b1:f8:1d ethertype IPv4 (0x0800), length 76: x", V4, Some(76)),
        ] {
            let (link, rest) = read(text.as_bytes(), false).unwrap();
            assert_eq!((link.kind, link.frame_bytes, rest), (kind, frame_bytes, &b"x"[..]), "{text}");
        }
    }

    #[test]
    fn test_interfaces_and_directions() {
        for (text, interface, event) in [
            ("ifb1  Out IP x", Some("ifb1"), Some(Event::Sent)),
            ("eth0  In  IP6 x", Some("eth0"), Some(Event::Received)),
            ("enp0s31f6 M   ARP, x", Some("enp0s31f6"), Some(Event::Received)),
            ("wlan0 P   IP x", Some("wlan0"), None),
            (
                "ifb0  Out ifindex 2 8a:6c:f6:84:7f:33 ethertype IPv4 (0x0800), length 80: x",
                Some("ifb0"),
                Some(Event::Sent),
            ),
            ("  M 8a:6c:f6:84:7f:33 ethertype IPv6 (0x86dd), length 132: x", None, Some(Event::Received)),
            (" In 8a:6c:f6:84:7f:33 ethertype ARP (0x0806), length 44: x", None, Some(Event::Received)),
        ] {
            let (link, _) = read(text.as_bytes(), false).unwrap();
            assert_eq!((link.interface, link.event), (interface.map(str::as_bytes), event), "{text}");
            assert_ne!(link.kind, LinkPayload::Unnamed);
        }
    }

    #[test]
    fn test_a_cooked_header_of_which_only_an_address_is_printed() {
        for text in [
            "ifb0  In  ifindex 2 16:90:58:b1:f8:1d 10.80.1.1.35094 > 10.80.2.2.5201: tcp 37",
            " In 16:90:58:b1:f8:1d 10.80.1.1.35094 > 10.80.2.2.5201: tcp 37",
        ] {
            let (link, rest) = read(text.as_bytes(), false).unwrap();
            assert_eq!((link.kind, link.event), (LinkPayload::Unnamed, Some(Event::Received)), "{text}");
            assert_eq!(rest, b"10.80.1.1.35094 > 10.80.2.2.5201: tcp 37");
        }
    }

    #[test]
    fn test_addresses_without_a_name_before_them() {
        let (link, rest) = read(b"10.0.0.1.1024 > 10.0.0.2.80: S 1:1(0) win 5", false).unwrap();
        assert_eq!((link.kind, rest.first()), (LinkPayload::Unnamed, Some(&b'1')));
    }

    #[test]
    fn test_what_else_has_a_time_is_a_packet() {
        for text in [
            "STP 802.1d, Config, length 35",
            " [|ip6]",
            "LLDP, length 60",
            "",
            "02:00:00:00:00:01 > 01:80:c2:00:00:00, LLC, dsap STP (0x42): STP",
        ] {
            assert!(read(text.as_bytes(), false).is_none(), "{text}");
            assert_eq!(read(text.as_bytes(), true).unwrap().0.kind, LinkPayload::Other(0), "{text}");
        }
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_a_link_or_not(bytes: Vec<u8>, has_time: bool) {
            let _ = read(&bytes, has_time);
        }
    }
}
