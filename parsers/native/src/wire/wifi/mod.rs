//! 802.11 frames (IEEE 802.11-2020 chapter 9): transmitter, receiver, and the packet inside.

use super::ether_type::{IPV4, IPV6};
use super::layers::{self, Next, TunnelPorts, llc};
use super::link_header::{need, stop};
use super::radiotap::Preamble;
use super::{Bytes, prism, radiotap};
use crate::packet::event::{Packet, Reason, Stop};
use crate::packet::extras::PacketExtras;
use crate::packet::frame::{Frame, FrameKind, FrameNumber, Radio, Station};
use crate::packet::link_type::LinkType;

/// Bytes of the check sequence at the end.
const CHECK_SEQUENCE: u32 = 4;
/// LLC and SNAP headers before an EtherType (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// Addresses and length before each packet of an A-MSDU.
const SUBFRAME: usize = 14;
/// The longest packet; where a frame carries only its beginning, the IP header has its length.
const LONGEST_PACKET: u32 = 65_535;

/// To and from the distribution system.
const BOTH_WAYS: u8 = 3;
const MORE_PARTS: u8 = 0x04;
const RETRY: u8 = 0x08;
const PROTECTED: u8 = 0x40;
/// In data frames with QoS and in management frames: four bytes of HT control follow the header.
const HT_CONTROL: u8 = 0x80;
/// In the second byte of QoS control, between mesh stations.
const MESH_CONTROL_PRESENT: u8 = 0x01;

/// Whether packets of this type are 802.11 frames.
pub fn is_wifi(link_type: LinkType) -> bool {
    matches!(link_type, LinkType::Wifi | LinkType::WifiPrism | LinkType::WifiRadiotap | LinkType::WifiAvs)
}

/// Decode a frame into `packet`: its link, and the first IP packet inside.
pub fn decode(
    link_type: LinkType,
    bytes: Bytes<'_>,
    packet: &mut Packet,
    extras: &mut PacketExtras,
    ports: &TunnelPorts,
) {
    let mut seen = None;
    let body = frame(link_type, bytes, &mut seen);
    packet.frame = seen.and_then(|frame| extras.add_frame(frame));
    packet.stop = match body {
        Ok(body) => {
            let (is_ip, unread) = layers::decode(body.next, body.bytes, &mut packet.network, extras, ports);
            packet.is_ip = is_ip;
            unread.or_else(|| body.has_more.then(|| stop(Reason::Aggregate)))
        }
        Err(reason) => Some(reason),
    };
}

/// A network header and the bytes after it.
struct NetworkBody<'a> {
    next: Next,
    bytes: Bytes<'a>,
    /// Whether more packets follow in the same frame.
    has_more: bool,
}

fn frame<'a>(
    link_type: LinkType,
    bytes: Bytes<'a>,
    seen: &mut Option<Frame>,
) -> Result<NetworkBody<'a>, Stop> {
    let preamble = match link_type {
        LinkType::WifiRadiotap => radiotap::decode(bytes)?,
        LinkType::WifiPrism | LinkType::WifiAvs => prism::decode(bytes)?,
        _ => Preamble::default(),
    };
    let mut bytes = bytes.after(preamble.header);
    if preamble.is_damaged {
        // In a damaged frame even the addresses may be wrong.
        return Err(stop(Reason::BadChecksum));
    }
    let header = Header::read(bytes)?;
    *seen = Some(Frame { bytes: bytes.on_wire, radio: preamble.radio, ..header.frame });
    if header.frame.kind != FrameKind::Data {
        return Err(stop(Reason::Frame(header.frame.kind)));
    }
    if preamble.has_check_sequence {
        bytes.on_wire = bytes.on_wire.saturating_sub(CHECK_SEQUENCE);
    }
    let length = if preamble.is_padded { header.length.next_multiple_of(4) } else { header.length };
    body(bytes, length, &header)
}

/// The MAC header of a frame.
pub(super) struct Header {
    pub(super) frame: Frame,
    pub(super) length: usize,
    /// The second byte of frame control.
    flags: u8,
    /// Whether the body is an aggregate of packets.
    is_aggregate: bool,
    /// Whether the body is a fragment of a packet other than the first.
    is_later_part: bool,
    /// Whether a mesh control field may precede the packet: others than mesh stations use its bit too.
    may_have_mesh_control: bool,
}

impl Header {
    pub(super) fn read(bytes: Bytes<'_>) -> Result<Self, Stop> {
        let start = need(bytes, 2)?;
        let (control, flags) = (start[0], start[1]);
        if control & 3 != 0 {
            return Err(stop(Reason::Malformed));
        }
        let subtype = control >> 4;
        match control >> 2 & 3 {
            0 => Self::management(bytes, flags),
            1 => Self::control(bytes, flags, subtype),
            2 => Self::data(bytes, flags, subtype),
            _ => Err(stop(Reason::Frame(FrameKind::Extension))),
        }
    }

    fn management(bytes: Bytes<'_>, flags: u8) -> Result<Self, Stop> {
        let header = need(bytes, 24)?;
        let place = FrameNumber { traffic: FrameNumber::NO_TRAFFIC, sequence: sequence(header) };
        let frame = Frame {
            transmitter: Some(station(header, 10)),
            bssid: Some(station(header, 16)),
            place: Some(place).filter(|_| part(header) == 0),
            ..plain(FrameKind::Management, flags, header)
        };
        Ok(Self::of(frame, flags, 24))
    }

    fn control(bytes: Bytes<'_>, flags: u8, subtype: u8) -> Result<Self, Stop> {
        const PS_POLL: u8 = 10;
        let header = need(bytes, 10)?;
        let mut frame = plain(FrameKind::Control, flags, header);
        // Trigger, beamforming, block acknowledgements, PS-Poll, RTS, end of contention-free time.
        if matches!(subtype, 2 | 4 | 5 | 8..=11 | 14 | 15) {
            let mut transmitter = station(need(bytes, 16)?, 10);
            // A set group bit in a transmitter's address announces its bandwidth.
            transmitter[0] &= !1;
            frame.transmitter = Some(transmitter);
        }
        if subtype == PS_POLL {
            frame.bssid = Some(frame.receiver);
        }
        Ok(Self::of(frame, flags, 10))
    }

    fn data(bytes: Bytes<'_>, flags: u8, subtype: u8) -> Result<Self, Stop> {
        const TO_NETWORK: u8 = 1;
        const FROM_NETWORK: u8 = 2;
        let has_qos = subtype & 8 != 0;
        let direction = flags & (TO_NETWORK | FROM_NETWORK);
        let addresses = if direction == TO_NETWORK | FROM_NETWORK { 30 } else { 24 };
        let quality_of_service = if has_qos { 2 } else { 0 };
        let ht_control = if has_qos && flags & HT_CONTROL != 0 { 4 } else { 0 };
        let length = addresses + quality_of_service + ht_control;
        let header = need(bytes, length)?;
        let quality = if has_qos { header.get(addresses).copied() } else { None };
        let traffic = quality.map_or(FrameNumber::NO_TRAFFIC, |quality| quality & 0x0f);
        let place = FrameNumber { traffic, sequence: sequence(header) };
        let bssid = match direction {
            0 => Some(station(header, 16)),
            TO_NETWORK => Some(station(header, 4)),
            FROM_NETWORK => Some(station(header, 10)),
            _ => None,
        };
        let kind = if subtype & 4 != 0 { FrameKind::NullData } else { FrameKind::Data };
        let frame = Frame {
            transmitter: Some(station(header, 10)),
            bssid,
            place: Some(place).filter(|_| part(header) == 0),
            ..plain(kind, flags, header)
        };
        let is_aggregate = quality.is_some_and(|quality| quality & 0x80 != 0);
        let qos_high = header.get(addresses + 1).copied().filter(|_| has_qos);
        let may_have_mesh_control =
            direction & FROM_NETWORK != 0 && qos_high.is_some_and(|high| high & MESH_CONTROL_PRESENT != 0);
        let is_later_part = part(header) > 0;
        Ok(Self { is_aggregate, is_later_part, may_have_mesh_control, ..Self::of(frame, flags, length) })
    }

    fn of(frame: Frame, flags: u8, length: usize) -> Self {
        Self { frame, length, flags, is_aggregate: false, is_later_part: false, may_have_mesh_control: false }
    }

    /// Whether it names the stations at both ends of a path beside those of the hop.
    pub(super) fn has_four_addresses(&self) -> bool {
        self.flags & BOTH_WAYS == BOTH_WAYS
    }

    /// Length of the mesh control field (IEEE 802.11-2020 section 9.2.4.7.3) that `bytes` begin with:
    /// flags, time to live, sequence number, and up to two more addresses.
    fn mesh_control(&self, bytes: Bytes<'_>) -> usize {
        match bytes.captured.first() {
            Some(&mode @ 0..=2) if self.may_have_mesh_control => 6 + 6 * usize::from(mode),
            _ => 0,
        }
    }
}

/// The fields that every header has.
fn plain(kind: FrameKind, flags: u8, header: &[u8]) -> Frame {
    Frame {
        kind,
        is_retry: flags & RETRY != 0,
        transmitter: None,
        receiver: station(header, 4),
        bssid: None,
        place: None,
        bytes: 0,
        radio: Radio::default(),
    }
}

/// Find the packet in the body of a data frame, which begins at `at`.
fn body<'a>(mut bytes: Bytes<'a>, at: usize, header: &Header) -> Result<NetworkBody<'a>, Stop> {
    if header.is_later_part {
        return Err(stop(Reason::LaterPart));
    }
    let mesh_control = if header.is_aggregate { 0 } else { header.mesh_control(bytes.after(at)) };
    // Some drivers decrypt a frame and leave the bit set.
    let is_readable = bytes.after(at + mesh_control).captured.starts_with(&SNAP);
    if header.flags & PROTECTED != 0 && !is_readable {
        return Err(stop(Reason::Encrypted));
    }
    if header.is_aggregate {
        return first_of_aggregate(bytes.after(at), header);
    }
    if header.flags & MORE_PARTS != 0 {
        bytes.on_wire = bytes.on_wire.max(LONGEST_PACKET);
    }
    packet(bytes, at + mesh_control)
}

/// The packet after LLC and SNAP headers.
fn packet(bytes: Bytes<'_>, at: usize) -> Result<NetworkBody<'_>, Stop> {
    let (next, bytes) = llc(0, bytes.after(at))?;
    Ok(NetworkBody { next, bytes, has_more: false })
}

/// The first IP packet of an A-MSDU: a record holds one packet. A subframe's length leaves its mesh
/// control field out.
fn first_of_aggregate<'a>(mut bytes: Bytes<'a>, header: &Header) -> Result<NetworkBody<'a>, Stop> {
    loop {
        let start = need(bytes, SUBFRAME)?;
        let mesh_control = header.mesh_control(bytes.after(SUBFRAME));
        let length = mesh_control + usize::from(u16::from_be_bytes([start[12], start[13]]));
        let after = (SUBFRAME + length).next_multiple_of(4);
        let has_more = bytes.on_wire as usize > after + SUBFRAME;
        let subframe = bytes.after(SUBFRAME);
        let found = packet(Bytes { on_wire: subframe.on_wire.min(length as u32), ..subframe }, mesh_control);
        match found {
            Ok(body) if matches!(body.next, Next::EtherType(IPV4 | IPV6)) => {
                return Ok(NetworkBody { has_more, ..body });
            }
            found if !has_more || bytes.captured.len() <= after => return found,
            _ => bytes = bytes.after(after),
        }
    }
}

/// Whether a body begins with a packet that can be read.
pub(super) fn starts_with_snap(body: Bytes<'_>) -> bool {
    body.captured.starts_with(&SNAP)
}

/// The address at `at` of a header, which must be long enough.
fn station(header: &[u8], at: usize) -> Station {
    header.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
}

fn sequence_control(header: &[u8]) -> u16 {
    u16::from_le_bytes([header[22], header[23]])
}

fn sequence(header: &[u8]) -> u16 {
    sequence_control(header) >> 4
}

fn part(header: &[u8]) -> u16 {
    sequence_control(header) & 0x0f
}

#[cfg(test)]
mod tests;
