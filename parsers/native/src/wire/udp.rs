//! UDP headers (RFC 768).

use super::rtp::DatagramKind;
use super::{Bytes, dccp, quic, rtcp, rtp, u16_at};
use crate::packet::event::{Layer, Network, Reason, Stop, Transport};
use crate::packet::extras::{PacketExtras, PayloadHead};

pub const HEADER: usize = 8;
/// Bytes of a payload that are kept for the RTP header extension: real ones have some dozens.
const MOST_HEADER: usize = 256;
/// Bytes that are kept of a datagram of QUIC's handshake: Ethernet carries no more.
const MOST_HANDSHAKE: usize = 1_500;

/// Decode a UDP header into `network`; a cut header keeps the ports.
pub fn decode(bytes: Bytes<'_>, network: &mut Network, extras: &mut PacketExtras) -> Option<Stop> {
    let Some(ports) = bytes.captured.first_chunk::<4>() else {
        return Some(bytes.shortage(HEADER, Layer::Udp));
    };
    network.endpoints.src_port = u16_at(ports, 0);
    network.endpoints.dst_port = u16_at(ports, 2);
    network.has_ports = true;
    let Some(header) = bytes.captured.first_chunk::<HEADER>() else {
        return Some(bytes.shortage(HEADER, Layer::Udp));
    };
    let length = u32::from(u16_at(header, 4));
    let whole = bytes.on_wire.saturating_sub(HEADER as u32);
    network.header_bytes = HEADER as u8;
    network.transport = Transport::Udp;
    // A fragmented datagram's length is that of all fragments; 0 is a jumbogram or offload.
    network.payload_bytes = Some(match length.checked_sub(HEADER as u32) {
        Some(payload) => payload.min(whole),
        None if length == 0 => whole,
        None => {
            network.payload_bytes = None;
            network.head = None;
            return Some(Stop { layer: Layer::Udp, reason: Reason::Malformed });
        }
    });
    if [network.endpoints.src_port, network.endpoints.dst_port].contains(&dccp::UDP_PORT)
        && let Some(stop) = dccp::decode_in_udp(bytes.after(HEADER), network, extras)
    {
        return stop;
    }
    // Padding or a check sequence may follow the payload.
    let payload = bytes.captured.get(HEADER..).unwrap_or_default();
    let length = network.payload_bytes.map_or(0, |length| length as usize);
    let payload = payload.get(..length).unwrap_or(payload);
    network.head = extras.add_head(PayloadHead::new(payload));
    if let Some(kept) = kept_bytes(payload).filter(|&kept| kept > PayloadHead::MOST) {
        extras.add_longer(network.head, payload.get(..kept).unwrap_or(payload));
    }
    None
}

/// What follows a whole header.
pub fn payload(bytes: Bytes<'_>) -> Bytes<'_> {
    let length = bytes.captured.get(4..HEADER).map_or(0, |field| u32::from(u16_at(field, 0)));
    let after = bytes.after(HEADER);
    match length.checked_sub(HEADER as u32) {
        Some(payload) => Bytes { on_wire: payload.min(after.on_wire), ..after },
        None => after,
    }
}

/// How many bytes of a datagram's payload are kept beyond its head: all of RTCP and of QUIC's handshake, the extension
/// of RTP.
pub(super) fn kept_bytes(payload: &[u8]) -> Option<usize> {
    let wanted = match rtp::kind(payload) {
        Some(DatagramKind::Rtcp) => rtcp::MOST,
        Some(DatagramKind::Rtp) => rtp::extension_end(payload)?.min(MOST_HEADER),
        None if quic::is_known_long(payload) => MOST_HANDSHAKE,
        None => return None,
    };
    Some(wanted.min(payload.len()))
}
