//! EtherTypes of packets and of headers that carry them.

pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;
pub const ARP: u16 = 0x0806;
pub const BRIDGED_ETHERNET: u16 = 0x6558;
/// 802.1Q, 802.1ad and its predecessors.
pub const CUSTOMER_TAG: u16 = 0x8100;
pub const SERVICE_TAGS: [u16; 3] = [0x88a8, 0x9100, 0x9200];
pub const PPPOE_SESSION: u16 = 0x8864;
pub const PPP: u16 = 0x880b;
pub const MPLS: [u16; 2] = [0x8847, 0x8848];
pub const NSH: u16 = 0x894f;
pub const PBB: u16 = 0x88e7;
pub const MACSEC: u16 = 0x88e5;
/// Cisco's FabricPath.
pub const FABRIC_PATH: u16 = 0x8903;
/// Port extension, IEEE 802.1BR, and Cisco's VN-tag before it.
pub const E_TAG: u16 = 0x893f;
pub const VN_TAG: u16 = 0x8926;
/// Cisco MetaData, which carries a security group tag.
pub const METADATA: u16 = 0x8909;
/// Of Marvell's switches, as Linux sets it: two bytes, then the tag that others put in the place of an EtherType.
pub const EDSA: u16 = 0xdada;
/// Below this the field is an 802.3 length.
pub const FIRST: u16 = 0x0600;
