//! Packets without addresses and content: what replaces addresses is given, and bytes that are not known to
//! be harmless headers become zeros.

use super::layers::headers_only::HeadersOnly;
pub use super::layers::headers_only::{Addresses, Unwritable};
use super::layers::{Next, TunnelPorts};
use super::{Bytes, link, radiotap, wifi};
use crate::packet::frame::FrameKind;
use crate::packet::link_type::LinkType;
use crate::packet::record::Record;

/// The captured bytes of a packet with other addresses, zeros for its content, and right checksums.
pub fn anonymized(
    record: &Record<'_>,
    ports: &TunnelPorts,
    addresses: &mut dyn Addresses,
) -> Result<Vec<u8>, Unwritable> {
    let bytes = Bytes { captured: record.data, on_wire: record.wire_bytes };
    let mut kept = HeadersOnly::new(record.data, ports, addresses);
    if let Some((next, bytes)) = link_header(record.link_type, bytes, &mut kept)? {
        kept.follow(next, bytes)?;
    }
    Ok(kept.into_bytes())
}

/// Keep a link header without its addresses, and return what follows; None if nothing does.
fn link_header<'a>(
    link_type: LinkType,
    bytes: Bytes<'a>,
    kept: &mut HeadersOnly<'_>,
) -> Result<Option<(Next, Bytes<'a>)>, Unwritable> {
    match link_type {
        LinkType::Ethernet => return Ok(Some((Next::Ethernet, bytes))),
        LinkType::Wifi | LinkType::WifiRadiotap => return Ok(frame(link_type, bytes, kept)),
        LinkType::Sll => {
            kept.keep(0..6);
            kept.address_of_length(6..14, 5);
            kept.keep(14..16);
        }
        LinkType::Sll2 => {
            kept.keep(0..12);
            kept.address_of_length(12..20, 11);
        }
        // None of their fields names a host.
        LinkType::Raw
        | LinkType::Ipv4
        | LinkType::Ipv6
        | LinkType::Null
        | LinkType::Loop
        | LinkType::Ppp
        | LinkType::PppHdlc
        | LinkType::PppEthernet
        | LinkType::PppWithDirection
        | LinkType::PppWithDirectionAsAddress
        | LinkType::CiscoHdlc
        | LinkType::CiscoHdlcWithDirection
        | LinkType::FrameRelay
        | LinkType::FrameRelayWithDirection
        | LinkType::AtmLlc
        | LinkType::Mpls
        | LinkType::Enc
        | LinkType::NetAnalyzer
        | LinkType::Mpacket => {}
        _ => return Err(Unwritable::LinkType(link_type)),
    }
    let Ok(link) = link::decode(link_type, bytes) else { return Ok(None) };
    if !matches!(link_type, LinkType::Sll | LinkType::Sll2) {
        kept.keep(0..link.header);
    }
    Ok(Some((link.next, bytes.after(link.header))))
}

/// Keep the header of an 802.11 frame without its addresses, and that of its radio.
fn frame<'a>(link_type: LinkType, bytes: Bytes<'a>, kept: &mut HeadersOnly<'_>) -> Option<(Next, Bytes<'a>)> {
    let preamble = match link_type {
        LinkType::WifiRadiotap => radiotap::decode(bytes).ok()?,
        _ => radiotap::Preamble::default(),
    };
    let start = preamble.header;
    kept.keep(0..start);
    let frame = bytes.after(start);
    let header = wifi::Header::read(frame).ok()?;
    // Frame control and duration.
    kept.keep(start..start + 4);
    let addresses = match header.frame.kind {
        FrameKind::Control => 1 + usize::from(header.frame.transmitter.is_some()),
        _ => 3,
    };
    for at in (start + 4..).step_by(6).take(addresses) {
        kept.address(at..at + 6);
    }
    if header.frame.kind == FrameKind::Control {
        return None;
    }
    // Sequence control, and what follows it in data frames.
    kept.keep(start + 22..start + 24);
    if header.length >= 30 && header.has_four_addresses() {
        kept.address(start + 24..start + 30);
        kept.keep(start + 30..start + header.length);
    } else {
        kept.keep(start + 24..start + header.length);
    }
    if header.frame.kind != FrameKind::Data {
        return None;
    }
    let length = if preamble.is_padded { header.length.next_multiple_of(4) } else { header.length };
    wifi::starts_with_snap(frame.after(length)).then(|| (Next::EtherType(0), frame.after(length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ip;
    use proptest::prelude::*;

    /// Addresses with every bit turned.
    struct Turned;

    impl Addresses for Turned {
        fn replace(&mut self, address: &mut [u8]) {
            address.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Ethernet, IPv4, UDP to VXLAN's port, VXLAN, Ethernet, IPv6 and TCP with a payload of 9s.
    const PACKET: [u8; 138] = {
        let mut bytes = [9; 138];
        let headers: [u8; 130] = [
            2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, // Ethernet
            0x45, 0, 0, 124, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4, 124 bytes
            0x30, 0x39, 0x12, 0xb5, 0, 104, 0xaa, 0xaa, // UDP, 104 bytes
            8, 0, 0, 0, 0, 0, 7, 0, // VXLAN
            2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4, 0x86, 0xdd, // Ethernet
            0x60, 0, 0, 0, 0, 34, 6, 64, // IPv6, 34 bytes
            0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
            0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
            0x14, 0x51, 0x30, 0x39, 0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x18, 1, 0, 0xbb, 0xbb, 0, 0, // TCP
            30, 4, 7, 7, // an option of Multipath TCP
            9, 9,
        ];
        let mut at = 0;
        while at < headers.len() {
            bytes[at] = headers[at];
            at += 1;
        }
        bytes
    };

    fn rewritten(link_type: LinkType, data: &[u8]) -> Result<Vec<u8>, Unwritable> {
        let wire_bytes = data.len() as u32;
        let record = Record { time_ns: 0, interface: 0, link_type, data, wire_bytes };
        anonymized(&record, &TunnelPorts::default(), &mut Turned)
    }

    #[test]
    fn test_addresses_inside_and_outside_of_a_tunnel_are_replaced_and_the_content_is_gone() {
        let bytes = rewritten(LinkType::Ethernet, &PACKET).unwrap();
        let turned =
            |range: std::ops::Range<usize>| PACKET[range].iter().map(|byte| !byte).collect::<Vec<u8>>();
        for addresses in [0..12, 26..34, 50..62, 72..104] {
            assert_eq!(bytes[addresses.clone()], turned(addresses));
        }
        // Ports and numbers stay, options with addresses and the payload do not.
        assert_eq!(bytes[104..120], PACKET[104..120]);
        assert_eq!(bytes[124..], [[1; 4].as_slice(), &[0; 10]].concat());
        assert_eq!(ip::folded_sum(0, &bytes[14..34]), u16::MAX);
        let tcp = u64::from(ip::folded_sum(0, &bytes[72..104])) + 6 + 34;
        assert_eq!(ip::folded_sum(tcp, &bytes[104..]), u16::MAX);
        let udp = u64::from(ip::folded_sum(0, &bytes[26..34])) + 17 + 104;
        assert_eq!(ip::folded_sum(udp, &bytes[34..]), u16::MAX);
    }

    #[test]
    fn test_a_link_type_whose_header_is_not_rewritten_is_refused() {
        let refused = rewritten(LinkType::Pflog, &PACKET).unwrap_err();
        assert_eq!(refused.words(), "link type packet filter log");
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_rewritten_in_their_length(
            changes in proptest::collection::vec((0_usize..138, any::<u8>()), 0..8),
            length in 0_usize..=138,
            number in 0_u32..300,
        ) {
            let mut data = PACKET;
            changes.into_iter().for_each(|(at, byte)| data[at] = byte);
            for link_type in [LinkType::Ethernet, LinkType::from_number(number)] {
                if let Ok(bytes) = rewritten(link_type, &data[..length]) {
                    prop_assert_eq!(bytes.len(), length);
                }
            }
        }
    }
}
