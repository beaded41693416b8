//! What flows are grouped by, and the group of a flow.

use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::packet::event::{Address, Endpoints, Family};
use crate::packet::frame::{Frame, Station, station_text};
use crate::packet::key::{Notation, Side, address_text};

/// What the flows of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupBy {
    /// The input: all flows of a trace.
    Link,
    /// One end.
    Host,
    /// The network of one end, by the length of its prefix for IPv4 and IPv6.
    Prefix(u8, u8),
    /// The port of the server.
    Port,
    /// The differentiated services codepoint of a direction.
    Dscp,
    /// Nothing: each flow is a group.
    Flow,
    /// A station of 802.11: frames that it sent, or that were for it.
    Station,
    /// A network of 802.11.
    Bssid,
    /// A channel of 802.11, in MHz.
    Channel,
}

/// The two directions of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupDirection {
    /// By the group, or from the side that opened the flow.
    Out = 0,
    In = 1,
}

impl GroupBy {
    /// What `name` groups by; networks have prefixes of these lengths (IPv4, IPv6).
    pub fn named(name: &str, (v4, v6): (u8, u8)) -> Option<Self> {
        Some(match name {
            "link" => Self::Link,
            "host" => Self::Host,
            "prefix" => Self::Prefix(v4, v6),
            "port" => Self::Port,
            "dscp" => Self::Dscp,
            "flow" => Self::Flow,
            "station" => Self::Station,
            "bssid" => Self::Bssid,
            "channel" => Self::Channel,
            _ => return None,
        })
    }

    /// Whether a group is an end of flows, so that packets are sent or received by it.
    fn is_end(self) -> bool {
        matches!(self, Self::Host | Self::Prefix(..) | Self::Port | Self::Station)
    }

    /// Name of a direction in tables.
    pub fn direction_name(self, direction: GroupDirection) -> &'static str {
        match (self.is_end(), direction) {
            (true, GroupDirection::Out) => "sent",
            (true, GroupDirection::In) => "received",
            (false, GroupDirection::Out) => "fwd",
            (false, GroupDirection::In) => "rev",
        }
    }

    /// The groups that packets of `side` count for: a packet between two hosts is sent by one and
    /// received by the other.
    pub(super) fn groups_of(
        self,
        (number, flow): (u32, &Flow),
        side: Side,
    ) -> [Option<(GroupKey, GroupDirection)>; 2] {
        let way = |is_out| if is_out { GroupDirection::Out } else { GroupDirection::In };
        let way_of_flow = way(side == flow.forward());
        let one = |key| [Some((key, way_of_flow)), None];
        match self {
            Self::Link => one(GroupKey::Link),
            Self::Station | Self::Bssid | Self::Channel => [None, None],
            Self::Flow => one(GroupKey::Flow(number)),
            Self::Dscp => {
                one(flow.dscp(side).map_or(GroupKey::Unknown, |dscp| GroupKey::Number(dscp.into())))
            }
            Self::Port => {
                let server = server(flow);
                let port = flow.key().end(server).1;
                [Some((GroupKey::Number(port.into()), way(side == server))), None]
            }
            Self::Host | Self::Prefix(..) => {
                let key = flow.key();
                self.ends(key.family(), [key.end(side).0, key.end(side.other()).0], flow.source)
            }
        }
    }

    /// The groups of a packet of no flow, in the direction `way` of those that are no end.
    pub(crate) fn groups_of_packet(
        self,
        endpoints: &Endpoints,
        dscp: Option<u8>,
        way: GroupDirection,
        source: u32,
    ) -> [Option<(GroupKey, GroupDirection)>; 2] {
        let Endpoints { family, src, dst, .. } = *endpoints;
        let one = |key| [Some((key, way)), None];
        match self {
            Self::Link => one(GroupKey::Link),
            Self::Dscp => one(dscp.map_or(GroupKey::Unknown, |dscp| GroupKey::Number(dscp.into()))),
            Self::Host | Self::Prefix(..) => self.ends(family, [src, dst], source),
            Self::Port | Self::Flow | Self::Station | Self::Bssid | Self::Channel => [None, None],
        }
    }

    /// The groups of a frame of 802.11.
    pub(super) fn groups_of_frame(self, frame: &Frame) -> [Option<(GroupKey, GroupDirection)>; 2] {
        let out = |key| Some((key, GroupDirection::Out));
        match self {
            Self::Station => [
                frame.transmitter.and_then(|station| out(GroupKey::Station(station))),
                Some((GroupKey::Station(frame.receiver), GroupDirection::In)),
            ],
            Self::Bssid => [out(frame.bssid.map_or(GroupKey::Unknown, GroupKey::Station)), None],
            Self::Channel => {
                let mhz = frame.radio.channel_mhz;
                [out(mhz.map_or(GroupKey::Unknown, |mhz| GroupKey::Number(mhz.get().into()))), None]
            }
            _ => [None, None],
        }
    }

    /// The groups of a packet from the first address to the second.
    fn ends(
        self,
        family: Family,
        [from, to]: [Address; 2],
        source: u32,
    ) -> [Option<(GroupKey, GroupDirection)>; 2] {
        let of = |address: Address| match (family, self) {
            (Family::Name, _) => GroupKey::Name(source, address),
            (Family::Node, _) => GroupKey::Node(source, address),
            (Family::V4, Self::Prefix(v4, _)) => GroupKey::Address(false, address & !lower_bits(32, v4)),
            (Family::V6, Self::Prefix(_, v6)) => GroupKey::Address(true, address & !lower_bits(128, v6)),
            (Family::V4 | Family::V6, _) => GroupKey::Address(family == Family::V6, address),
        };
        [Some((of(from), GroupDirection::Out)), Some((of(to), GroupDirection::In))]
    }
}

/// The side of the server: the one that did not open the flow; of the lower port if that is not
/// known.
fn server(flow: &Flow) -> Side {
    let opener = flow.transport.tcp.as_ref().and_then(|tcp| tcp.opener());
    let opener = opener.or_else(|| flow.transport.dccp().and_then(|dccp| dccp.opener()));
    let port = |side| flow.key().end(side).1;
    opener
        .map_or_else(|| if port(Side::Low) <= port(Side::High) { Side::Low } else { Side::High }, Side::other)
}

/// The bits of an address of `bits` that do not belong to its network.
fn lower_bits(bits: u32, length: u8) -> u128 {
    match bits.saturating_sub(length.into()) {
        128.. => u128::MAX,
        free => (1 << free) - 1,
    }
}

/// A group, in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GroupKey {
    Link,
    /// An address, or the first one of a network; whether it is one of IPv6.
    Address(bool, Address),
    /// A node of the simulation in this source.
    Node(u32, Address),
    /// A host known by name: the source that names it, and the index.
    Name(u32, Address),
    Number(u32),
    /// An address of 802.11.
    Station(Station),
    /// The flow of this number, from 0.
    Flow(u32),
    Unknown,
}

impl GroupKey {
    /// Its name; None if it has none of its own.
    pub fn name(self, by: GroupBy, notation: Notation<'_>) -> Option<String> {
        let text = |family, address| address_text(address, family, notation);
        Some(match self {
            Self::Link | Self::Flow(_) | Self::Unknown => return None,
            Self::Number(number) => number.to_string(),
            Self::Station(station) => station_text(station),
            Self::Node(_, node) => text(Family::Node, node),
            Self::Name(_, name) => text(Family::Name, name),
            Self::Address(is_v6, address) => {
                let (family, length) = match by {
                    GroupBy::Prefix(_, v6) if is_v6 => (Family::V6, Some(v6)),
                    GroupBy::Prefix(v4, _) => (Family::V4, Some(v4)),
                    _ if is_v6 => (Family::V6, None),
                    _ => (Family::V4, None),
                };
                let address = text(family, address);
                length.map_or_else(|| address.clone(), |length| format!("{address}/{length}"))
            }
        })
    }

    /// The source whose notation its name is in.
    pub fn source(self) -> u32 {
        match self {
            Self::Node(source, _) | Self::Name(source, _) => source,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_network_keeps_the_bits_of_its_prefix() {
        for (bits, length, expected) in
            [(32, 24, 0xff), (32, 32, 0), (32, 0, 0xffff_ffff), (128, 0, u128::MAX), (128, 128, 0)]
        {
            assert_eq!(lower_bits(bits, length), expected, "/{length}");
        }
    }
}
