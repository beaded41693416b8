//! A captured RTP packet.

use serde::{Deserialize, Serialize};

use crate::wire::rtp::{Header, RttSendTime};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MediaPacket {
    pub header: Header,
    pub time_ns: i64,
    pub packet: u64,
    pub wire_bytes: u32,
    /// Payload of its datagram.
    pub payload_bytes: u32,
    /// Whether it is marked congestion experienced.
    pub is_marked: bool,
    /// TFRC's element of the header extension.
    pub rtt_send_time: Option<RttSendTime>,
    /// Two-byte elements, one of which may be a transport-wide number.
    pub pairs: [Option<(u8, u16)>; 2],
}
