//! Link types of captured packets.

/// The link types that are decoded, by their LINKTYPE_ number
/// (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// BSD loopback: four bytes of address family in the writer's byte order.
    Null,
    /// Ethernet II and 802.3, with or without VLAN tags.
    Ethernet,
    /// PPP, with or without address and control bytes.
    Ppp,
    /// PPP in HDLC-like framing, or Cisco HDLC.
    PppHdlc,
    /// Cisco HDLC, or PPP in HDLC-like framing.
    CiscoHdlc,
    /// IPv4 or IPv6 by their version nibble.
    Raw,
    /// OpenBSD loopback: as Null, in network byte order.
    Loop,
    Sll,
    /// 802.11 frames alone.
    Wifi,
    /// 802.11 frames after a Prism or AVS header.
    WifiPrism,
    /// 802.11 frames after a radiotap header.
    WifiRadiotap,
    /// 802.11 frames after an AVS header.
    WifiAvs,
    /// PPP after one byte of direction.
    PppWithDirection,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Linux cooked capture, version 2.
    Sll2,
    /// No bytes at all: the packets of a text trace.
    None,
    /// Any other, by number: its packets are counted, not decoded.
    Unknown(u32),
}

impl LinkType {
    /// The type for a number in a file. BSDs wrote 12 and 14 for raw IP before LINKTYPE_RAW.
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            9 => Self::Ppp,
            50 => Self::PppHdlc,
            104 => Self::CiscoHdlc,
            12 | 14 | 101 => Self::Raw,
            105 => Self::Wifi,
            108 => Self::Loop,
            113 => Self::Sll,
            119 => Self::WifiPrism,
            127 => Self::WifiRadiotap,
            163 => Self::WifiAvs,
            204 => Self::PppWithDirection,
            228 => Self::Ipv4,
            229 => Self::Ipv6,
            276 => Self::Sll2,
            other => Self::Unknown(other),
        }
    }

    pub fn number(self) -> u32 {
        match self {
            Self::Null => 0,
            Self::Ethernet => 1,
            Self::Ppp => 9,
            Self::PppHdlc => 50,
            Self::CiscoHdlc => 104,
            Self::Raw => 101,
            Self::Wifi => 105,
            Self::Loop => 108,
            Self::Sll => 113,
            Self::WifiPrism => 119,
            Self::WifiRadiotap => 127,
            Self::WifiAvs => 163,
            Self::PppWithDirection => 204,
            Self::Ipv4 => 228,
            Self::Ipv6 => 229,
            Self::Sll2 => 276,
            Self::None => u32::MAX,
            Self::Unknown(number) => number,
        }
    }

    /// The name shown to users.
    pub fn name(self) -> String {
        match self {
            Self::Null => "BSD loopback".into(),
            Self::Ethernet => "Ethernet".into(),
            Self::Ppp => "PPP".into(),
            Self::PppHdlc => "PPP in HDLC framing".into(),
            Self::CiscoHdlc => "Cisco HDLC".into(),
            Self::Raw => "raw IP".into(),
            Self::Loop => "OpenBSD loopback".into(),
            Self::Sll => "Linux cooked v1".into(),
            Self::Wifi => "802.11".into(),
            Self::WifiPrism => "802.11 with Prism header".into(),
            Self::WifiRadiotap => "802.11 with radiotap header".into(),
            Self::WifiAvs => "802.11 with AVS header".into(),
            Self::PppWithDirection => "PPP with direction".into(),
            Self::Ipv4 => "raw IPv4".into(),
            Self::Ipv6 => "raw IPv6".into(),
            Self::Sll2 => "Linux cooked v2".into(),
            Self::None => "text".into(),
            Self::Unknown(number) => format!("link type {number}"),
        }
    }
}
