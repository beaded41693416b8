//! Link types of captured packets.

use serde::{Deserialize, Serialize};

/// The link types that are decoded, by their LINKTYPE_ number
/// (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkType {
    /// BSD loopback: four bytes of address family in the writer's byte order.
    Null,
    /// Ethernet II and 802.3, with or without VLAN tags.
    Ethernet,
    TokenRing,
    /// IPv4 or IPv6 after 16 bytes with the direction.
    Slip,
    /// PPP, with or without address and control bytes.
    Ppp,
    Fddi,
    /// PPP in HDLC-like framing, or Cisco HDLC.
    PppHdlc,
    /// From the header of a PPPoE session on.
    PppEthernet,
    /// LLC over ATM (RFC 2684).
    AtmLlc,
    /// The same after four bytes of Sun's.
    SunAtm,
    /// Cisco HDLC, or PPP in HDLC-like framing.
    CiscoHdlc,
    CiscoHdlcWithDirection,
    /// IPv4 or IPv6 by their version nibble.
    Raw,
    FrameRelay,
    FrameRelayWithDirection,
    /// OpenBSD loopback: as Null, in network byte order.
    Loop,
    /// OpenBSD's IPsec interface.
    Enc,
    /// BSD's packet filter log.
    Pflog,
    Sll,
    /// 802.11 frames alone.
    Wifi,
    /// 802.11 frames after a Prism or AVS header.
    WifiPrism,
    /// 802.11 frames after a radiotap header.
    WifiRadiotap,
    /// 802.11 frames after an AVS header.
    WifiAvs,
    JuniperEthernet,
    JuniperPppoe,
    JuniperPpp,
    JuniperFrameRelay,
    JuniperHdlc,
    /// Juniper's service interfaces: only packets without a link header.
    JuniperServices,
    /// PPP whose first byte is the direction.
    PppWithDirectionAsAddress,
    /// A header with the link type of each packet, as Wi-Fi tools wrote it.
    Ppi,
    /// A record of Endace's with the link type of each packet.
    Erf,
    /// PPP after one byte of direction.
    PppWithDirection,
    Mpls,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Linux's netfilter log.
    Nflog,
    NetAnalyzer,
    /// IP over InfiniBand, from the global routing header on.
    IpOverInfiniband,
    /// A header of Apple's with the link type of each packet.
    Pktap,
    /// Ethernet with its preamble.
    Mpacket,
    /// Linux cooked capture, version 2.
    Sll2,
    /// Ethernet with a tag of a switch chip after the addresses.
    BroadcomTag,
    BroadcomTagBefore,
    DsaTag,
    EtherTypeDsaTag,
    /// No bytes at all: the packets of a text trace.
    None,
    /// Any other, by number: its packets are counted, not decoded.
    Unknown(u32),
}

impl LinkType {
    /// Numbers, types and names shown to users. Of several numbers the first is the usual one.
    const KNOWN: &[(u32, Self, &str)] = &[
        (0, Self::Null, "BSD loopback"),
        (1, Self::Ethernet, "Ethernet"),
        (6, Self::TokenRing, "token ring"),
        (8, Self::Slip, "SLIP"),
        (9, Self::Ppp, "PPP"),
        (10, Self::Fddi, "FDDI"),
        (50, Self::PppHdlc, "PPP in HDLC framing"),
        (51, Self::PppEthernet, "PPPoE"),
        (100, Self::AtmLlc, "LLC over ATM"),
        (101, Self::Raw, "raw IP"),
        // BSDs wrote these before LINKTYPE_RAW.
        (12, Self::Raw, "raw IP"),
        (14, Self::Raw, "raw IP"),
        (104, Self::CiscoHdlc, "Cisco HDLC"),
        (105, Self::Wifi, "802.11"),
        (107, Self::FrameRelay, "Frame Relay"),
        (108, Self::Loop, "OpenBSD loopback"),
        (109, Self::Enc, "OpenBSD IPsec"),
        (113, Self::Sll, "Linux cooked v1"),
        (117, Self::Pflog, "packet filter log"),
        (119, Self::WifiPrism, "802.11 with Prism header"),
        (123, Self::SunAtm, "SunATM"),
        (127, Self::WifiRadiotap, "802.11 with radiotap header"),
        (130, Self::JuniperServices, "Juniper services"),
        (131, Self::JuniperServices, "Juniper services"),
        (132, Self::JuniperServices, "Juniper services"),
        (133, Self::JuniperServices, "Juniper services"),
        (134, Self::JuniperServices, "Juniper services"),
        (135, Self::JuniperServices, "Juniper services"),
        (136, Self::JuniperServices, "Juniper services"),
        (137, Self::JuniperServices, "Juniper services"),
        (163, Self::WifiAvs, "802.11 with AVS header"),
        (166, Self::PppWithDirectionAsAddress, "PPP of pppd"),
        (167, Self::JuniperPppoe, "Juniper PPPoE"),
        (178, Self::JuniperEthernet, "Juniper Ethernet"),
        (179, Self::JuniperPpp, "Juniper PPP"),
        (180, Self::JuniperFrameRelay, "Juniper Frame Relay"),
        (181, Self::JuniperHdlc, "Juniper HDLC"),
        (192, Self::Ppi, "PPI"),
        (197, Self::Erf, "ERF"),
        (204, Self::PppWithDirection, "PPP with direction"),
        (205, Self::CiscoHdlcWithDirection, "Cisco HDLC with direction"),
        (206, Self::FrameRelayWithDirection, "Frame Relay with direction"),
        (219, Self::Mpls, "MPLS"),
        (228, Self::Ipv4, "raw IPv4"),
        (229, Self::Ipv6, "raw IPv6"),
        (239, Self::Nflog, "netfilter log"),
        (240, Self::NetAnalyzer, "netANALYZER"),
        (242, Self::IpOverInfiniband, "IP over InfiniBand"),
        (258, Self::Pktap, "PKTAP"),
        // Apple's programs wrote it so before it had a number.
        (149, Self::Pktap, "PKTAP"),
        (274, Self::Mpacket, "Ethernet mPackets"),
        (276, Self::Sll2, "Linux cooked v2"),
        (281, Self::BroadcomTag, "Ethernet with Broadcom tag"),
        (282, Self::BroadcomTagBefore, "Ethernet after Broadcom tag"),
        (284, Self::DsaTag, "Ethernet with DSA tag"),
        (285, Self::EtherTypeDsaTag, "Ethernet with EtherType DSA tag"),
    ];

    /// The type for a number in a file.
    pub fn from_number(number: u32) -> Self {
        let known = Self::KNOWN.iter().find(|(known, ..)| *known == number);
        known.map_or(Self::Unknown(number), |&(_, link_type, _)| link_type)
    }

    pub fn number(self) -> u32 {
        match self {
            Self::None => u32::MAX,
            Self::Unknown(number) => number,
            _ => self.known().map_or(u32::MAX, |known| known.0),
        }
    }

    /// The name shown to users.
    pub fn name(self) -> String {
        match self {
            Self::None => "text".into(),
            Self::Unknown(number) => format!("link type {number}"),
            _ => self.known().map_or_else(String::new, |known| known.2.into()),
        }
    }

    fn known(self) -> Option<&'static (u32, Self, &'static str)> {
        Self::KNOWN.iter().find(|(_, known, _)| *known == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_each_type_has_its_number_and_name() {
        for &(number, link_type, name) in LinkType::KNOWN {
            assert_eq!((LinkType::from_number(number), link_type.name().as_str()), (link_type, name));
            assert_eq!(LinkType::from_number(link_type.number()), link_type);
        }
        assert_eq!(LinkType::from_number(147), LinkType::Unknown(147));
        assert_eq!(LinkType::Unknown(147).name(), "link type 147");
    }
}
