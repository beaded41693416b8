//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use super::ether_type::{IPV4, IPV6};
use super::{Bytes, u16_at, u32_at};
use crate::packet::event::{Endpoints, Family, Fragment, Layer, Network, Reason, Stop};

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const DCCP: u8 = 33;
pub const ICMPV6: u8 = 58;

/// The most extension headers in a chain.
const MAX_EXTENSIONS: usize = 16;

/// Decode IP headers only: their length, and the bytes on the wire after them.
#[inline(always)]
pub fn headers(ether_type: u16, bytes: Bytes<'_>, network: &mut Network) -> Result<(usize, u32), Stop> {
    match ether_type {
        IPV4 => ipv4(bytes, network),
        IPV6 => ipv6(bytes, network),
        other => Err(Stop { layer: Layer::Link, reason: Reason::Unknown(u32::from(other)) }),
    }
}

/// Whether there is a whole header of a right version and length, without its extensions.
pub fn check(ether_type: u16, bytes: Bytes<'_>) -> Result<(), Stop> {
    let (version, shortest, layer) =
        if ether_type == IPV4 { (4, 20, Layer::Ipv4) } else { (6, 40, Layer::Ipv6) };
    let Some(header) = bytes.captured.get(..shortest) else { return Err(bytes.shortage(shortest, layer)) };
    let length = usize::from(header[0] & 0x0f) * 4;
    let total = match u32::from(u16_at(header, 2)) {
        0 => bytes.on_wire,
        total => total.min(bytes.on_wire),
    };
    let is_ipv4_damaged = version == 4 && (length < 20 || (total as usize) < length);
    if header[0] >> 4 != version || is_ipv4_damaged {
        return Err(Stop { layer, reason: Reason::Malformed });
    }
    Ok(())
}

#[inline(always)]
fn ipv4(bytes: Bytes<'_>, network: &mut Network) -> Result<(usize, u32), Stop> {
    const LAYER: Layer = Layer::Ipv4;
    let Some(header) = bytes.captured.first_chunk::<20>() else {
        return Err(bytes.shortage(20, LAYER));
    };
    let malformed = Stop { layer: LAYER, reason: Reason::Malformed };
    let length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || length < 20 {
        return Err(malformed);
    }
    ipv4_fields(header, network);
    let fragment = u16_at(header, 6);
    if fragment & 0x3fff != 0 {
        network.fragment =
            Some(Fragment { id: u32::from(u16_at(header, 4)), offset: u32::from(fragment & 0x1fff) * 8 });
    }
    // Segmentation offload may leave the length at 0: then the frame's is used.
    let total = match u32::from(u16_at(header, 2)) {
        0 => bytes.on_wire,
        total => total.min(bytes.on_wire),
    };
    match total.checked_sub(length as u32) {
        Some(payload) => Ok((length, payload)),
        None => Err(malformed),
    }
}

/// The fields that every IPv4 packet has.
#[inline(always)]
pub fn ipv4_fields(header: &[u8; 20], network: &mut Network) {
    network.endpoints.family = Family::V4;
    network.endpoints.protocol = header[9];
    network.endpoints.src = u128::from(u32_at(header, 12));
    network.endpoints.dst = u128::from(u32_at(header, 16));
    network.ip_id = Some(u16_at(header, 4));
    network.ttl = header[8];
    network.ecn = header[1] & 3;
    network.dscp = Some(header[1] >> 2);
}

fn ipv6(bytes: Bytes<'_>, network: &mut Network) -> Result<(usize, u32), Stop> {
    const LAYER: Layer = Layer::Ipv6;
    let Some(header) = bytes.captured.first_chunk::<40>() else {
        return Err(bytes.shortage(40, LAYER));
    };
    if header[0] >> 4 != 6 {
        return Err(Stop { layer: LAYER, reason: Reason::Malformed });
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        u128::from_be_bytes(octets)
    };
    network.endpoints.family = Family::V6;
    network.endpoints.src = address(8);
    network.endpoints.dst = address(24);
    network.ttl = header[7];
    network.ecn = (header[1] >> 4) & 3;
    network.dscp = Some((header[0] & 0x0f) << 2 | header[1] >> 6);
    let after = bytes.on_wire.saturating_sub(40);
    // 0 is a jumbogram (RFC 2675) or a super-segment: the frame's length is used.
    let payload = match u32::from(u16_at(header, 4)) {
        0 => after,
        payload => payload.min(after),
    };
    let (protocol, end) = extensions(bytes, header[6], network)?;
    network.endpoints.protocol = protocol;
    match payload.checked_sub((end - 40) as u32) {
        Some(payload) => Ok((end, payload)),
        None => Err(Stop { layer: LAYER, reason: Reason::Malformed }),
    }
}

/// Skip the extension headers: return the protocol after them, and its offset.
fn extensions(bytes: Bytes<'_>, mut next: u8, network: &mut Network) -> Result<(u8, usize), Stop> {
    const LAYER: Layer = Layer::Ipv6;
    let mut at = 40;
    for _ in 0..MAX_EXTENSIONS {
        // Hop-by-hop, routing, destination options, mobility, HIP, shim6; fragment; authentication.
        if !matches!(next, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140) {
            return Ok((next, at));
        }
        network.endpoints.protocol = next;
        let Some(header) = bytes.captured.get(at..at + 8) else {
            return Err(bytes.shortage(at + 8, LAYER));
        };
        let length = match next {
            44 => {
                let offset = u16_at(header, 2);
                network.fragment =
                    Some(Fragment { id: u32_at(header, 4), offset: u32::from(offset & 0xfff8) });
                8
            }
            51 => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        next = header[0];
        at += length;
        if network.fragment.is_some_and(|fragment| fragment.offset > 0) {
            // The bytes at a header's place are the middle of the datagram.
            return Ok((next, at));
        }
    }
    Err(Stop { layer: LAYER, reason: Reason::Malformed })
}

/// Whether bytes without a type before them are an IP packet: the length fits, and so does IPv4's checksum.
pub fn is_certainly(bytes: Bytes<'_>) -> bool {
    let Some(&first) = bytes.captured.first() else { return false };
    let fits = length(bytes).is_some_and(|length| length <= bytes.on_wire as usize);
    let header_bytes = usize::from(first & 0x0f) * 4;
    match (first >> 4, bytes.captured.get(..header_bytes)) {
        (4, Some(header)) if header_bytes >= 20 => fits && folded_sum(0, header) == u16::MAX,
        (6, _) => fits,
        _ => false,
    }
}

/// The length of an IP packet by its header.
pub fn length(bytes: Bytes<'_>) -> Option<usize> {
    let header = bytes.captured;
    match header.first()? >> 4 {
        4 if header.len() >= 20 => Some(u16_at(header, 2).into()),
        6 if header.len() >= 40 => Some(usize::from(u16_at(header, 4)) + 40),
        _ => None,
    }
}

/// Whether the checksum of a whole TCP segment or UDP datagram between `ends` is right.
pub fn has_right_checksum(protocol: u8, whole: &[u8], ends: &Endpoints) -> bool {
    let shortest = if protocol == TCP { 20 } else { 8 };
    let words = |address: u128| (0..8).map(move |at| (address >> (16 * at)) as u64 & 0xffff).sum::<u64>();
    let pseudo_header = words(ends.src) + words(ends.dst) + u64::from(protocol) + whole.len() as u64;
    whole.len() >= shortest && folded_sum(pseudo_header, whole) == u16::MAX
}

/// Ones' complement sum of 16-bit words (RFC 1071), which is all ones over data with its checksum.
pub fn folded_sum(start: u64, bytes: &[u8]) -> u16 {
    let mut words = bytes.chunks_exact(2);
    let sum = words.by_ref().fold(start, |sum, word| sum + u64::from(u16_at(word, 0)));
    let mut sum = words.remainder().iter().fold(sum, |sum, &last| sum + (u64::from(last) << 8));
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
