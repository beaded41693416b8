//! DCCP headers (RFC 4340 section 5).

pub mod notation;
pub mod options;

use super::{Bytes, ip, u16_at, u32_at};
use crate::packet::dccp::{DccpHeader, DccpType};
use crate::packet::event::{Layer, Network, Reason, Stop, Transport};
use crate::packet::extras::PacketExtras;

/// Bytes of the shortest header, the generic one with short sequence numbers.
const SHORT: usize = 12;
/// Bytes of the generic header with sequence numbers of 48 bits.
const LONG: usize = 16;

const MALFORMED: Stop = Stop { layer: Layer::Dccp, reason: Reason::Malformed };

/// UDP port that carries DCCP (RFC 6773).
pub(super) const UDP_PORT: u16 = 6511;

/// Decode the DCCP packet in a datagram's payload. Its ports are those of the flow; UDP's may be
/// changed by address translators. None leaves `network` unchanged: it is no DCCP packet.
pub(super) fn decode_in_udp(
    bytes: Bytes<'_>,
    network: &mut Network,
    extras: &mut PacketExtras,
) -> Option<Option<Stop>> {
    header(bytes).ok()?;
    network.endpoints.protocol = ip::DCCP;
    Some(decode(bytes, network, extras))
}

/// Decode a DCCP header into `network` and `extras`; a cut header keeps the ports and the captured
/// `options`.
pub(super) fn decode(bytes: Bytes<'_>, network: &mut Network, extras: &mut PacketExtras) -> Option<Stop> {
    let Some(ports) = bytes.captured.first_chunk::<4>() else {
        return Some(bytes.shortage(SHORT, Layer::Dccp));
    };
    network.endpoints.src_port = u16_at(ports, 0);
    network.endpoints.dst_port = u16_at(ports, 2);
    network.has_ports = true;
    match header(bytes) {
        Ok((header, length)) => {
            let end = length.min(bytes.captured.len());
            let options =
                bytes.captured.get(header.kind.fixed_bytes(header.is_short)..end).unwrap_or_default();
            network.transport = Transport::Dccp;
            network.header_bytes = u8::try_from(length).unwrap_or(u8::MAX);
            let after = bytes.on_wire.saturating_sub(length as u32);
            network.payload_bytes = Some(if header.kind.has_data() { after } else { 0 });
            network.sequence = Some(header.seq);
            network.head = extras.add_dccp(header, options);
            (end < length).then(|| bytes.shortage(length, Layer::Dccp))
        }
        Err(stop) => Some(stop),
    }
}

/// The header before the options, and the length of the whole header.
fn header(bytes: Bytes<'_>) -> Result<(DccpHeader, usize), Stop> {
    let captured = bytes.captured;
    let Some(generic) = captured.first_chunk::<SHORT>() else {
        return Err(bytes.shortage(SHORT, Layer::Dccp));
    };
    let is_short = generic[8] & 1 == 0;
    let kind = DccpType::from_number(generic[8] >> 1 & 0x0f).ok_or(MALFORMED)?;
    let length = usize::from(generic[4]) * 4;
    let fixed = kind.fixed_bytes(is_short);
    // RFC 4340 section 5.1: only these three types may have short numbers.
    let may_be_short = matches!(kind, DccpType::Data | DccpType::Ack | DccpType::DataAck);
    if length < fixed || length > bytes.on_wire as usize || (is_short && !may_be_short) {
        return Err(MALFORMED);
    }
    let Some(captured) = captured.get(..fixed) else {
        return Err(bytes.shortage(fixed, Layer::Dccp));
    };
    let (seq, after) = match captured.split_first_chunk::<LONG>() {
        Some((long, after)) if !is_short => (u48_at(long, 10), after),
        _ => (u64::from(u32_at(generic, 8) & 0xff_ffff), &captured[SHORT..]),
    };
    let (ack, after) = match (kind.has_ack(), is_short) {
        (false, _) => (None, after),
        (true, true) => (Some(u64::from(u32_at(after, 0) & 0xff_ffff)), &after[4..]),
        (true, false) => (Some(u48_at(after, 2)), &after[8..]),
    };
    let extra = after.first_chunk::<4>().map(|extra| u32::from_be_bytes(*extra));
    let header = DccpHeader {
        kind,
        ccval: generic[5] >> 4,
        coverage: generic[5] & 0x0f,
        is_short,
        seq,
        ack,
        service_code: extra.filter(|_| matches!(kind, DccpType::Request | DccpType::Response)),
        reset_code: extra.filter(|_| kind == DccpType::Reset).map(|extra| (extra >> 24) as u8),
    };
    Ok((header, length))
}

/// The number of 48 bits at `at`.
fn u48_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::dccp::DccpType;
    use crate::testing::vectors::{from_hex, vectors};
    use proptest::prelude::*;
    use serde_json::Value;

    fn decoded(bytes: &[u8], on_wire: u32) -> (Network, Option<DccpHeader>, Option<Stop>) {
        let (mut network, mut extras) = (Network::default(), PacketExtras::default());
        let stop = decode(Bytes { captured: bytes, on_wire }, &mut network, &mut extras);
        let header = network.head.and_then(|index| extras.dccp(index)).map(|(header, _)| *header);
        (network, header, stop)
    }

    #[test]
    fn test_headers_are_those_of_the_vectors() {
        for vector in vectors("dccp_headers.json") {
            let bytes = from_hex(vector["hex"].as_str().unwrap());
            let expected = &vector["expect"];
            let (network, header, stop) = decoded(&bytes, bytes.len() as u32);
            let header = header.unwrap();
            assert_eq!(stop, None, "{vector}");
            assert_eq!(Value::from(network.endpoints.src_port), expected["src_port"]);
            assert_eq!(Value::from(network.endpoints.dst_port), expected["dst_port"]);
            assert_eq!(Value::from(network.header_bytes), expected["header_len"]);
            assert_eq!(Value::from(header.ccval), expected["ccval"]);
            assert_eq!(Value::from(header.coverage), expected["cscov"]);
            assert_eq!(Value::from(header.kind.number()), expected["type"]);
            assert_eq!(Value::from(u8::from(!header.is_short)), expected["x"]);
            assert_eq!(Value::from(header.seq), expected["seq"]);
            assert_eq!(header.ack.map_or(Value::Null, Value::from), expected["ack"]);
        }
    }

    /// A Request with the service code 42 and four bytes of padding options.
    const REQUEST: [u8; 24] =
        [0x13, 0x89, 0x13, 0x8a, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 42, 0, 0, 0, 0];

    #[test]
    fn test_a_request_names_its_service() {
        let (network, header, stop) = decoded(&REQUEST, 34);
        let header = header.unwrap();
        assert_eq!((header.kind, header.seq, header.service_code), (DccpType::Request, 7, Some(42)));
        assert_eq!((network.payload_bytes, stop), (Some(10), None));
    }

    #[test]
    fn test_a_cut_header_keeps_what_was_captured() {
        let (network, header, stop) = decoded(&REQUEST[..20], 34);
        assert_eq!(header.unwrap().service_code, Some(42));
        assert_eq!(network.payload_bytes, Some(10));
        assert_eq!(stop, Some(Stop { layer: Layer::Dccp, reason: Reason::Cut }));
        let (network, header, _) = decoded(&REQUEST[..6], 34);
        assert!(network.has_ports && header.is_none());
    }

    #[test]
    fn test_lengths_that_lie_and_types_that_are_not_are_malformed() {
        for (at, byte) in [(4, 4), (4, 60), (8, 0), (8, 1 | 12 << 1)] {
            let mut bytes = REQUEST;
            bytes[at] = byte;
            assert_eq!(decoded(&bytes, 34).2, Some(MALFORMED), "byte {at} is {byte}");
        }
    }

    proptest! {
        #[test]
        fn test_no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), beyond in 0_u32..40) {
            let (network, header, stop) = decoded(&bytes, bytes.len() as u32 + beyond);
            prop_assert!(header.is_some() || stop.is_some());
            prop_assert_eq!(header.is_some(), network.transport == Transport::Dccp);
        }
    }
}
