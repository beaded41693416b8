//! Ethernet frames where nothing says that they are.

use super::super::ether_type::{ARP, CUSTOMER_TAG, FIRST, IPV4, IPV6, MPLS, PPPOE_SESSION, SERVICE_TAGS};
use super::super::{Bytes, u16_at};

const ETHERNET: usize = 14;

/// Whether bytes without a type before them are an Ethernet frame, by its EtherType and what follows.
pub(super) fn is_frame(bytes: Bytes<'_>) -> bool {
    let Some(header) = bytes.captured.first_chunk::<{ ETHERNET + 1 }>() else { return false };
    let version = header[ETHERNET] >> 4;
    match u16_at(header, 12) {
        IPV4 => version == 4,
        IPV6 => version == 6,
        ARP | CUSTOMER_TAG | PPPOE_SESSION | 0x8863 | 0x88cc => true,
        other => SERVICE_TAGS.contains(&other) || MPLS.contains(&other) || is_spanning_tree(header, other),
    }
}

/// A bridge's message: an 802.3 length, and LLC's number of the protocol.
fn is_spanning_tree(header: &[u8; ETHERNET + 1], length: u16) -> bool {
    (3..FIRST).contains(&length) && header[ETHERNET] == 0x42
}
