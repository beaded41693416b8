//! A packet of which only headers are kept, without addresses, through all encapsulations.
//!
//! The copy begins as zeros, so that what no line here keeps is nowhere in it.

use std::ops::Range;

use super::super::ether_type::{ARP, IPV4, IPV6, MACSEC, NSH};
use super::super::icmp::Echo;
use super::super::{Bytes, ip, u16_at, udp};
use super::udp_port::{TunnelPorts, UdpTunnel};
use super::{MOST_HEADERS, Next, Step, ether, ip_protocol, ppp};
use crate::packet::event::{Layer, Network};
use crate::packet::link_type::LinkType;
use crate::packet::tunnel::Tunnel;

const GRE: u8 = 47;
const ESP: u8 = 50;
const AH: u8 = 51;
const SCTP: u8 = 132;

/// Replaces addresses: MACs of 6 bytes, IPv4's of 4 and IPv6's of 16.
pub trait Addresses: Send {
    /// Write the replacement of an address in its place.
    fn replace(&mut self, address: &mut [u8]);
}

/// Why a packet cannot be anonymized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// Its link header may name hosts, and is not rewritten.
    LinkType(LinkType),
    /// A routing header of IPv6 lists addresses.
    RoutingHeader,
    /// Teredo's indications have addresses.
    Teredo,
}

impl Unwritable {
    pub fn words(self) -> String {
        match self {
            Self::LinkType(link_type @ LinkType::Unknown(_)) => link_type.name(),
            Self::LinkType(link_type) => format!("link type {}", link_type.name()),
            Self::RoutingHeader => "IPv6 routing header".into(),
            Self::Teredo => "Teredo with an origin".into(),
        }
    }
}

/// A checksum that is computed once what it covers is written.
struct Checksum {
    at: usize,
    covered: Range<usize>,
    /// Sum over the pseudo-header.
    start: u64,
}

/// The copy of a packet.
pub struct HeadersOnly<'a> {
    original: &'a [u8],
    copy: Vec<u8>,
    ports: &'a TunnelPorts,
    addresses: &'a mut dyn Addresses,
    /// The innermost IP header so far.
    network: Network,
    /// Sum over its addresses, in the copy.
    address_sum: u64,
    /// Where its packet ends, as it says.
    end: usize,
    /// From the outside.
    checksums: Vec<Checksum>,
}

impl<'a> HeadersOnly<'a> {
    pub fn new(original: &'a [u8], ports: &'a TunnelPorts, addresses: &'a mut dyn Addresses) -> Self {
        Self {
            original,
            copy: vec![0; original.len()],
            ports,
            addresses,
            network: Network::default(),
            address_sum: 0,
            end: 0,
            checksums: Vec::new(),
        }
    }

    /// The copy, with right checksums: those inside first.
    pub fn into_bytes(mut self) -> Vec<u8> {
        for Checksum { at, covered, start } in self.checksums.iter().rev() {
            let end = covered.end.min(self.copy.len());
            let sum = !ip::folded_sum(*start, self.copy.get(covered.start..end).unwrap_or_default());
            if let Some(field) = self.copy.get_mut(*at..at + 2) {
                // UDP's 0 says that there is none (RFC 768); for the others both are zero.
                field.copy_from_slice(&if sum == 0 { u16::MAX } else { sum }.to_be_bytes());
            }
        }
        self.copy
    }

    /// Keep bytes as they are, as far as they were captured.
    pub fn keep(&mut self, range: Range<usize>) {
        let end = range.end.min(self.original.len());
        if let (Some(from), Some(to)) =
            (self.original.get(range.start..end), self.copy.get_mut(range.start..end))
        {
            to.copy_from_slice(from);
        }
    }

    /// Keep the replacement of an address; nothing of one that was not captured whole.
    pub fn address(&mut self, range: Range<usize>) {
        if range.end <= self.original.len() {
            self.keep(range.clone());
            self.addresses.replace(&mut self.copy[range]);
        }
    }

    /// The same of a MAC in a longer field, if the byte at `length_at` says that it is one.
    pub fn address_of_length(&mut self, field: Range<usize>, length_at: usize) {
        if self.original.get(length_at) == Some(&6) {
            self.address(field.start..field.start + 6);
        }
    }

    /// Keep the headers of `bytes` and of what is inside.
    pub fn follow(&mut self, mut next: Next, mut bytes: Bytes<'a>) -> Result<(), Unwritable> {
        for _ in 0..MOST_HEADERS {
            let tunnel = &mut Tunnel::default();
            let after = match next {
                Next::EtherType(ether_type @ (IPV4 | IPV6)) => self.ip(ether_type, bytes)?,
                Next::EtherType(ARP) => self.arp(bytes),
                // Its channel's identifier has a MAC.
                Next::EtherType(MACSEC) => None,
                Next::EtherType(ether_type) => {
                    let most = if ether_type == NSH { 8 } else { usize::MAX };
                    self.step(bytes, ether::header(ether_type, bytes, tunnel, Layer::Link), most)
                }
                Next::Ethernet => self.ethernet(bytes),
                Next::Ppp => self.step(bytes, ppp::header(bytes, Layer::Link), usize::MAX),
                Next::Ip => ether::ip(bytes, Layer::Link).ok(),
                Next::Protocol(protocol) => self.transport(protocol, bytes)?,
            };
            let Some(after) = after else { return Ok(()) };
            (next, bytes) = after;
        }
        Ok(())
    }

    /// Where `bytes` begin in the packet.
    fn at(&self, bytes: Bytes<'_>) -> usize {
        let (start, whole) = (bytes.captured.as_ptr() as usize, self.original.as_ptr() as usize);
        match start.checked_sub(whole) {
            Some(at) if !bytes.captured.is_empty() && at <= self.original.len() => at,
            _ => self.original.len(),
        }
    }

    /// Keep a header, or the `most` first bytes of it, and go to what follows.
    fn step(&mut self, bytes: Bytes<'a>, step: Step<'a>, most: usize) -> Option<(Next, Bytes<'a>)> {
        let (next, after) = step.ok()?;
        let start = self.at(bytes);
        self.keep(start..self.at(after).min(start.saturating_add(most)));
        Some((next, after))
    }

    fn ethernet(&mut self, bytes: Bytes<'a>) -> Option<(Next, Bytes<'a>)> {
        let at = self.at(bytes);
        let after = ether::ethernet(bytes).ok()?;
        self.address(at..at + 6);
        self.address(at + 6..at + 12);
        self.keep(at + 12..at + 14);
        Some(after)
    }

    /// ARP of IPv4 over MACs (RFC 826); of others only what it is.
    fn arp(&mut self, bytes: Bytes<'a>) -> Option<(Next, Bytes<'a>)> {
        const USUAL: [u8; 4] = [8, 0, 6, 4];
        let at = self.at(bytes);
        self.keep(at..at + 8);
        if bytes.captured.get(2..6) == Some(&USUAL) {
            for (start, length) in [(8, 6), (14, 4), (18, 6), (24, 4)] {
                self.address(at + start..at + start + length);
            }
        }
        None
    }

    fn ip(&mut self, ether_type: u16, bytes: Bytes<'a>) -> Result<Option<(Next, Bytes<'a>)>, Unwritable> {
        self.network.clear();
        let Ok((length, on_wire)) = ip::headers(ether_type, bytes, &mut self.network) else {
            return Ok(None);
        };
        let at = self.at(bytes);
        let addresses = if ether_type == IPV4 { at + 12..at + 20 } else { at + 8..at + 40 };
        let half = addresses.len() / 2;
        self.keep(at..addresses.start);
        self.address(addresses.start..addresses.start + half);
        self.address(addresses.start + half..addresses.end);
        if ether_type == IPV4 {
            self.ipv4_rest(at, length);
        } else {
            self.extension_headers(at, length)?;
        }
        let written = self.copy.get(addresses).unwrap_or_default();
        self.address_sum = ip::folded_sum(0, written).into();
        let said = ip::length(bytes).and_then(|total| total.checked_sub(length)).unwrap_or(0);
        let has_length = u16_at(bytes.captured, if ether_type == IPV4 { 2 } else { 4 }) != 0;
        self.end = at + length + if has_length { said } else { on_wire as usize };
        let after = Bytes { on_wire, ..bytes.after(length) };
        Ok(Some((Next::Protocol(self.network.endpoints.protocol), after)))
    }

    /// Options of IPv4 may record addresses: they become "no operation". Then the checksum.
    fn ipv4_rest(&mut self, at: usize, length: usize) {
        const NO_OPERATION: u8 = 1;
        let end = (at + length).min(self.copy.len());
        self.copy[at + 10..at + 12].fill(0);
        self.copy[at + 20..end].fill(NO_OPERATION);
        let sum = !ip::folded_sum(0, &self.copy[at..end]);
        self.copy[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }

    /// Of options of IPv6 the length is kept; their zeros are padding (RFC 8200 section 4.2).
    fn extension_headers(&mut self, at: usize, length: usize) -> Result<(), Unwritable> {
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        let (mut next, mut header, end) = (self.original[at + 6], at + 40, at + length);
        while header < end {
            let (kept, bytes) = match (next, self.original.get(header + 1)) {
                (ROUTING, _) => return Err(Unwritable::RoutingHeader),
                (FRAGMENT, _) => (8, 8),
                (AH, Some(&words)) => (12, (usize::from(words) + 2) * 4),
                (_, Some(&words)) => (2, (usize::from(words) + 1) * 8),
                (_, None) => return Ok(()),
            };
            self.keep(header..header + kept);
            next = self.original[header];
            header += bytes;
        }
        Ok(())
    }

    fn transport(&mut self, protocol: u8, bytes: Bytes<'a>) -> Result<Option<(Next, Bytes<'a>)>, Unwritable> {
        const CHECKSUM_PRESENT: u8 = 0x80;
        let at = self.at(bytes);
        if self.network.fragment.is_some_and(|fragment| fragment.offset > 0) {
            return Ok(None);
        }
        match protocol {
            ip::TCP => self.tcp(bytes),
            ip::UDP => return self.datagram(bytes),
            ip::DCCP => self.dccp(bytes),
            ip::ICMP | ip::ICMPV6 => self.icmp(protocol, bytes)?,
            // Ports and tag; without a checksum, as RFC 9653 has it.
            SCTP => self.keep(at..at + 8),
            _ => {
                let tunnel = &mut Tunnel::default();
                let Some(step) = ip_protocol::header(protocol, bytes, &self.network, tunnel) else {
                    return Ok(None);
                };
                let most = match protocol {
                    ESP => 8,
                    AH => 12,
                    _ => usize::MAX,
                };
                let after = self.step(bytes, step, most);
                if protocol == GRE
                    && bytes.captured.first().is_some_and(|flags| flags & CHECKSUM_PRESENT != 0)
                {
                    self.checksum(at + 4, at, bytes.on_wire, None);
                }
                return Ok(after);
            }
        }
        Ok(None)
    }

    /// Bytes of the innermost IP packet from `at` on.
    fn left(&self, at: usize) -> u32 {
        self.end.saturating_sub(at) as u32
    }

    /// Have a checksum computed over `length` bytes from `start`, and over a pseudo-header with a protocol.
    fn checksum(&mut self, at: usize, start: usize, length: u32, protocol: Option<u8>) {
        let pseudo =
            protocol.map_or(0, |protocol| self.address_sum + u64::from(protocol) + u64::from(length));
        if let Some(field) = self.copy.get_mut(at..at + 2) {
            field.fill(0);
            self.checksums.push(Checksum { at, covered: start..start + length as usize, start: pseudo });
        }
    }

    /// Of a fragment the checksum is not known: it covers all fragments.
    fn checksum_of_whole(&mut self, at: usize, start: usize, protocol: u8) {
        match self.network.fragment {
            None => self.checksum(at, start, self.left(start), Some(protocol)),
            Some(_) => self.copy.get_mut(at..at + 2).into_iter().for_each(|field| field.fill(0)),
        }
    }

    fn tcp(&mut self, bytes: Bytes<'_>) {
        let at = self.at(bytes);
        self.keep(at..at + 20);
        let length = bytes.captured.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4);
        let end = length.min(bytes.captured.len());
        if let Some(options) = bytes.captured.get(20..end) {
            self.tcp_options(at + 20, options);
        }
        self.checksum_of_whole(at + 16, at, ip::TCP);
    }

    /// Keep options with numbers: segment size, window scale, SACK, timestamps, accurate ECN. Others may have
    /// addresses (RFC 8684), cookies or keys, and become "no operation".
    fn tcp_options(&mut self, start: usize, options: &[u8]) {
        const NO_OPERATION: u8 = 1;
        let mut at = 0;
        while let Some(&kind) = options.get(at).filter(|&&kind| kind != 0) {
            let length = match (kind, options.get(at + 1)) {
                (NO_OPERATION, _) => 1,
                (_, Some(&length)) if length >= 2 => usize::from(length),
                _ => return,
            };
            let place = start + at..start + (at + length).min(options.len());
            if matches!(kind, 2..=5 | 8 | 172 | 174) {
                self.keep(place);
            } else {
                self.copy[place].fill(NO_OPERATION);
            }
            at += length;
        }
    }

    fn dccp(&mut self, bytes: Bytes<'_>) {
        let at = self.at(bytes);
        let length = bytes.captured.get(4).map_or(0, |words| usize::from(*words) * 4);
        self.keep(at..at + length.clamp(12, bytes.on_wire.max(12) as usize));
        self.checksum_of_whole(at + 6, at, ip::DCCP);
    }

    fn datagram(&mut self, bytes: Bytes<'a>) -> Result<Option<(Next, Bytes<'a>)>, Unwritable> {
        let at = self.at(bytes);
        self.keep(at..at + 6);
        if let Some(header) = bytes.captured.first_chunk::<{ udp::HEADER }>()
            && header[6..] != [0, 0]
        {
            // That of a fragmented datagram is in its header, too.
            let length = match u32::from(u16_at(header, 4)) {
                0 => self.left(at),
                length => length,
            };
            self.checksum(at + 6, at, length, Some(ip::UDP));
        }
        let Some(carried) = self.ports.of_datagram(bytes) else { return Ok(None) };
        let payload = udp::payload(bytes);
        let step = carried.header(payload, &self.network, &mut Tunnel::default());
        let most = match (carried, &step) {
            (UdpTunnel::Teredo, Ok((_, after))) if self.at(*after) > self.at(payload) => {
                return Err(Unwritable::Teredo);
            }
            // Options of Geneve, and vectors of ESP, are anybody's.
            (UdpTunnel::Geneve | UdpTunnel::Esp, _) => 8,
            _ => usize::MAX,
        };
        Ok(self.step(payload, step, most))
    }

    fn icmp(&mut self, protocol: u8, bytes: Bytes<'a>) -> Result<(), Unwritable> {
        let at = self.at(bytes);
        let Some(&[kind, code, ..]) = bytes.captured.first_chunk::<8>() else { return Ok(()) };
        self.keep(at..at + 4);
        let pseudo = (protocol == ip::ICMPV6).then_some(protocol);
        match self.network.fragment {
            None => self.checksum(at + 2, at, self.left(at), pseudo),
            Some(_) => self.copy[at + 2..at + 4].fill(0),
        }
        let quoted = match (protocol, kind) {
            (ip::ICMP, 5) => {
                self.address(at + 4..at + 8);
                Some(IPV4)
            }
            (ip::ICMP, 3 | 4 | 11 | 12) => Some(IPV4),
            (ip::ICMPV6, 1..=4) => Some(IPV6),
            (ip::ICMPV6, 130..=132 | 135..=137) => {
                self.neighbour(at, kind, bytes);
                return Ok(());
            }
            _ => None,
        };
        if Echo::of(protocol, &[kind, code, 0, 0, 0, 0, 0, 0]).is_some() || (quoted.is_some() && kind != 5) {
            self.keep(at + 4..at + 8);
        }
        if let Some(ether_type) = quoted
            && let Some((Next::Protocol(inside), after)) = self.ip(ether_type, bytes.after(8))?
            && self.network.fragment.is_none_or(|fragment| fragment.offset == 0)
        {
            match inside {
                ip::TCP => self.tcp(after),
                ip::DCCP => self.dccp(after),
                // What it carries is not followed.
                ip::UDP => {
                    let at = self.at(after);
                    self.keep(at..at + 6);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Messages about neighbours and groups (RFC 4861, RFC 2710): one address, of redirects two, and options.
    fn neighbour(&mut self, at: usize, kind: u8, bytes: Bytes<'_>) {
        const REDIRECT: u8 = 137;
        const LISTENERS: std::ops::RangeInclusive<u8> = 130..=132;
        self.keep(at + 4..at + 8);
        self.address(at + 8..at + 24);
        let mut option = 24;
        if kind == REDIRECT {
            self.address(at + 24..at + 40);
            option = 40;
        }
        while !LISTENERS.contains(&kind)
            && let Some(&[option_kind, length]) =
                bytes.captured.get(option..).and_then(<[u8]>::first_chunk::<2>)
        {
            self.keep(at + option..at + option + 2);
            if matches!((option_kind, length), (1 | 2, 1)) {
                self.address(at + option + 2..at + option + 8);
            }
            option += 8 * usize::from(length.max(1));
        }
    }
}
