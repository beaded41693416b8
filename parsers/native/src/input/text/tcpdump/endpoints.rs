//! `source > destination:`, with ports joined to the addresses by a dot.

use std::net::Ipv6Addr;

use super::absolute_sequence::{ConversationIndex, Conversations};
use super::scan::{number, split_at_byte, split_at_words};
use super::services;
use crate::input::text::NameTable;
use crate::packet::event::{Address, Endpoints, Family};
use crate::packet::key::Ipv4Ends;
use crate::packet::key::{FlowKey, Side};

const TCP: u8 = 6;
/// Cached ends of TCP: so many that a few connections rarely share a slot.
const RECENT: usize = 1024;

/// One of a packet's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PrintedEnd<'a> {
    family: Family,
    /// Undefined for a name.
    address: Address,
    /// Address or name as printed, without the port.
    host: &'a [u8],
    port: Option<u16>,
}

/// Read both ends into `endpoints` and return whether they have ports, and the text after them.
/// Names are added to `hosts`, and addresses too if the other end is a name.
#[inline]
pub fn read<'a>(
    text: &'a [u8],
    endpoints: &mut Endpoints,
    hosts: &mut NameTable,
) -> Option<(bool, &'a [u8])> {
    let (source, destination, rest) = both(text)?;
    endpoints.src_port = source.port.unwrap_or(0);
    endpoints.dst_port = destination.port.unwrap_or(0);
    if source.family == destination.family && source.family != Family::Name {
        endpoints.family = source.family;
        endpoints.src = source.address;
        endpoints.dst = destination.address;
    } else {
        endpoints.family = Family::Name;
        endpoints.src = index(source.host, hosts);
        endpoints.dst = index(destination.host, hosts);
    }
    Some((source.port.is_some() && destination.port.is_some(), rest))
}

/// What tcpdump prints first of IPv6 extension headers, after which ports may stand.
const EXTENSION_HEADERS: [&[u8]; 4] = [b"HBH ", b"DSTOPT ", b"RT6 ", b"frag (0|"];

/// The ports after extension headers, as in `RT6 (len=2, segleft=1) 5645 > 5642: `, and the text after
/// them.
pub fn behind_extension_headers(text: &[u8]) -> Option<((u16, u16), &[u8])> {
    if !EXTENSION_HEADERS.iter().any(|header| text.starts_with(header)) {
        return None;
    }
    let (before, after) = split_at_words(text, b" > ")?;
    let source = before.rsplit(|&byte| byte == b' ').next()?;
    let (source, b"") = number(source)? else { return None };
    let (destination, rest) = number(after)?;
    let ports = (u16::try_from(source).ok()?, u16::try_from(destination).ok()?);
    Some((ports, rest.strip_prefix(b": ")?))
}

#[inline]
fn both(text: &[u8]) -> Option<(PrintedEnd<'_>, PrintedEnd<'_>, &[u8])> {
    let (source, rest) = split_at_byte(text, b' ')?;
    let rest = rest.strip_prefix(b"> ")?;
    let (destination, rest) = split_at_byte(rest, b' ').unwrap_or((rest, b""));
    Some((end(source)?, end(destination.strip_suffix(b":")?)?, rest))
}

#[derive(Clone, Copy, Debug)]
pub struct KnownConnection {
    pub endpoints: Endpoints,
    /// The ends for a plain segment; defined for IPv4 only.
    pub ends: Ipv4Ends,
    pub side: Side,
    key: FlowKey,
}

/// A text, its endpoints, and the place of the connection.
type CachedEndpoints = (Vec<u8>, Option<KnownConnection>, ConversationIndex);

/// Recently printed ends. Most lines repeat some of them, and comparing a text costs a fraction of
/// parsing it.
#[derive(Debug)]
pub struct RecentEndpoints(Vec<CachedEndpoints>);

impl Default for RecentEndpoints {
    fn default() -> Self {
        Self(vec![(Vec::new(), None, ConversationIndex::default()); RECENT])
    }
}

impl RecentEndpoints {
    /// The ends in `text`, up to the blank after them, and the place of their connection. None
    /// unless both are addresses with ports. `hash` selects the slot: texts that share one are
    /// parsed each time.
    #[inline(always)]
    pub fn find(
        &mut self,
        text: &[u8],
        hash: u64,
        conversations: &mut Conversations,
    ) -> Option<(&KnownConnection, ConversationIndex)> {
        let (known_text, known, place) = self.0.get_mut((hash >> 32) as usize % RECENT)?;
        if known_text != text {
            *known = Some(KnownConnection::read(text)?);
            *place = ConversationIndex::default();
            known_text.clear();
            known_text.extend_from_slice(text);
        }
        let known = known.as_ref()?;
        *place = conversations.still(*place).unwrap_or_else(|| conversations.place(known.key));
        Some((known, *place))
    }
}

impl KnownConnection {
    #[inline(never)]
    fn read(text: &[u8]) -> Option<Self> {
        let (source, destination, rest) = both(text)?;
        let is_whole = rest.is_empty() && text.ends_with(b" ") && memchr::memchr(b'\n', text).is_none();
        if !is_whole || source.family != destination.family || source.family == Family::Name {
            return None;
        }
        let endpoints = Endpoints {
            family: source.family,
            protocol: TCP,
            src: source.address,
            dst: destination.address,
            src_port: source.port?,
            dst_port: destination.port?,
        };
        let (key, side) = FlowKey::of(&endpoints);
        Some(Self { endpoints, ends: Ipv4Ends::of(&endpoints), side, key })
    }
}

#[cold]
fn index(host: &[u8], hosts: &mut NameTable) -> Address {
    Address::from(hosts.index(&String::from_utf8_lossy(host)))
}

#[inline]
fn end(token: &[u8]) -> Option<PrintedEnd<'_>> {
    if let Some((address, rest)) = ipv4(token) {
        let host = token.get(..token.len() - rest.len())?;
        let family = Family::V4;
        let address = Address::from(address);
        match rest.strip_prefix(b".") {
            None if rest.is_empty() => return Some(PrintedEnd { family, address, host, port: None }),
            None => return named(token),
            Some(port_text) => match port(port_text) {
                Some(port) => return Some(PrintedEnd { family, address, host, port: Some(port) }),
                None => return named(token),
            },
        }
    }
    match memchr::memchr(b':', token) {
        Some(_) => ipv6(token),
        None => named(token),
    }
}

#[inline]
fn port(text: &[u8]) -> Option<u16> {
    match number(text) {
        Some((port, b"")) => u16::try_from(port).ok(),
        Some(_) => None,
        None => services::port(text),
    }
}

/// Four numbers with dots between them.
#[inline]
fn ipv4(text: &[u8]) -> Option<(u32, &[u8])> {
    let mut address = 0;
    let mut rest = text;
    for at in 0..4 {
        if at > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let (octet, after) = number(rest)?;
        address = address << 8 | u32::from(u8::try_from(octet).ok()?);
        rest = after;
    }
    Some((address, rest))
}

/// Hexadecimal groups, possibly with an IPv4 address at the end and a port after it.
fn ipv6(token: &[u8]) -> Option<PrintedEnd<'_>> {
    let last_colon = memchr::memrchr(b':', token)?;
    let dots = memchr::memchr_iter(b'.', token.get(last_colon..)?).count();
    let (host, port) = match dots {
        0 | 3 => (token, None),
        _ => {
            let dot = memchr::memrchr(b'.', token)?;
            (token.get(..dot)?, Some(port(token.get(dot + 1..)?)?))
        }
    };
    let address: Ipv6Addr = std::str::from_utf8(host).ok()?.parse().ok()?;
    Some(PrintedEnd { family: Family::V6, address: address.to_bits(), host, port })
}

/// A name: the text after its last dot is the port, if it is a number or a known service. Else it
/// stays part of the name, so that different ends stay different.
#[cold]
fn named(token: &[u8]) -> Option<PrintedEnd<'_>> {
    let is_name = !token.is_empty() && token.iter().all(|byte| byte.is_ascii_graphic() || *byte >= 0x80);
    if !is_name {
        return None;
    }
    let split = memchr::memrchr(b'.', token).and_then(|dot| {
        let host = token.get(..dot).filter(|host| !host.is_empty())?;
        Some((host, port(token.get(dot + 1..)?)?))
    });
    let (host, port) = match split {
        Some((host, port)) => (host, Some(port)),
        None => (token, None),
    };
    Some(PrintedEnd { family: Family::Name, address: 0, host, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends_of(text: &str) -> Option<(Endpoints, bool, Vec<String>)> {
        let (mut endpoints, mut hosts) = (Endpoints::default(), NameTable::default());
        let (has_ports, rest) = read(text.as_bytes(), &mut endpoints, &mut hosts)?;
        assert_eq!(rest, b"x");
        Some((endpoints, has_ports, hosts.iter().map(str::to_owned).collect()))
    }

    #[test]
    fn test_ipv4_with_and_without_ports() {
        let (endpoints, has_ports, _) = ends_of("10.0.0.1.40000 > 192.0.2.7.80: x").unwrap();
        assert!(has_ports);
        assert_eq!((endpoints.src, endpoints.dst), (0x0a00_0001, 0xc000_0207));
        assert_eq!((endpoints.src_port, endpoints.dst_port), (40_000, 80));
        let (endpoints, has_ports, _) = ends_of("10.0.0.1 > 192.0.2.7: x").unwrap();
        assert!(!has_ports);
        assert_eq!((endpoints.family, endpoints.dst), (Family::V4, 0xc000_0207));
        assert_eq!(ends_of("10.0.0.1.https > 192.0.2.7.9: x").unwrap().0.src_port, 443);
    }

    #[test]
    fn test_ipv6_with_and_without_ports() {
        let (endpoints, has_ports, _) = ends_of("fd00:9:1::1.36844 > 2001:db8::2.5201: x").unwrap();
        assert!(has_ports);
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().to_bits();
        assert_eq!((endpoints.src, endpoints.dst), (address("fd00:9:1::1"), address("2001:db8::2")));
        assert_eq!((endpoints.src_port, endpoints.dst_port), (36_844, 5_201));
        let (endpoints, has_ports, _) = ends_of(":: > ff02::16: x").unwrap();
        assert!(!has_ports);
        assert_eq!((endpoints.family, endpoints.dst), (Family::V6, address("ff02::16")));
        let (endpoints, has_ports, _) = ends_of("::ffff:10.0.0.1.80 > ::ffff:10.0.0.2.81: x").unwrap();
        assert!(has_ports);
        assert_eq!((endpoints.src, endpoints.src_port), (address("::ffff:10.0.0.1"), 80));
    }

    #[test]
    fn test_names_of_hosts_and_services() {
        let (endpoints, has_ports, hosts) = ends_of("alpha.lan.40000 > beta.http: x").unwrap();
        assert!(has_ports);
        assert_eq!((endpoints.family, endpoints.dst_port), (Family::Name, 80));
        assert_eq!(hosts, ["alpha.lan", "beta"]);
        let (endpoints, _, hosts) = ends_of("10.0.0.1.5 > beta.strange: x").unwrap();
        assert_eq!((endpoints.family, endpoints.dst_port), (Family::Name, 0));
        assert_eq!(hosts, ["10.0.0.1", "beta.strange"]);
    }

    #[test]
    fn test_ports_stand_behind_extension_headers() {
        for (text, expected) in [
            ("RT6 (len=2, [0]2200::210:2:0:0:4) 5645 > 5642: x", Some(((5645, 5642), &b"x"[..]))),
            ("HBH (jumbo: 80040)  41851 > 43913: x", Some(((41_851, 43_913), b"x"))),
            ("HBH ICMP6, multicast listener report", None),
            ("ICMP6, a 5 > 6: x", None),
            ("HBH 5 > 70000: x", None),
        ] {
            assert_eq!(behind_extension_headers(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn test_what_are_no_ends() {
        for text in ["", "a", "a b", "a > b", "a >  b: x", "10.0.0.1.5 < 10.0.0.2.6: x", ":x.1 > ::.2: x"] {
            assert_eq!(ends_of(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_ends_or_not(bytes: Vec<u8>, text in "[0-9a-f:. >]{0,60}") {
            let (mut endpoints, mut hosts) = (Endpoints::default(), NameTable::default());
            let _ = read(&bytes, &mut endpoints, &mut hosts);
            let _ = read(text.as_bytes(), &mut endpoints, &mut hosts);
        }

        #[test]
        fn test_addresses_are_those_of_the_standard_library(v4: u32, v6: u128, ports: (u16, u16)) {
            for (ip, family) in [
                (std::net::Ipv4Addr::from_bits(v4).to_string(), Family::V4),
                (Ipv6Addr::from_bits(v6).to_string(), Family::V6),
            ] {
                let (endpoints, has_ports, _) =
                    ends_of(&format!("{ip}.{} > {ip}.{}: x", ports.0, ports.1)).unwrap();
                let address = if family == Family::V4 { Address::from(v4) } else { v6 };
                prop_assert!(has_ports);
                prop_assert_eq!((endpoints.family, endpoints.src, endpoints.dst), (family, address, address));
                prop_assert_eq!((endpoints.src_port, endpoints.dst_port), ports);
            }
        }
    }
}
