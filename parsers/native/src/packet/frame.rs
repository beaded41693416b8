//! Fields of an 802.11 frame for statistics of links.

use serde::{Deserialize, Serialize};

use std::fmt::Write;
use std::num::{NonZeroU16, NonZeroU32};

/// An address of the MAC layer.
pub type Station = [u8; 6];

named_enum! {
    /// Type of a frame (IEEE 802.11-2020 section 9.2.4.1.3).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum FrameKind {
        /// It carries a packet, or a part of one.
        Data = "data",
        /// A data frame without data: it only signals that a station sleeps or wakes.
        NullData = "null data",
        /// Beacons, association and the like.
        Management = "management",
        /// Acknowledgements, reservations and the like.
        Control = "control",
        /// DMG beacons and future types.
        Extension = "extension",
    }
}

/// Values that the receiving radio recorded with a frame. Missing ones are None.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Radio {
    /// Rate of the frame's data, in kbit/s.
    pub rate_kbps: Option<NonZeroU32>,
    /// Strength of the signal.
    pub signal_dbm: Option<i8>,
    /// Strength of the noise.
    pub noise_dbm: Option<i8>,
    /// Centre of the primary channel.
    pub channel_mhz: Option<NonZeroU16>,
    /// The antenna that received.
    pub antenna: Option<u8>,
}

/// Where a frame stands in its transmitter's numbering. A repeated frame keeps its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameNumber {
    /// Traffic identifier: each has a numbering of its own; 16 for frames without one.
    pub traffic: u8,
    /// Sequence number, 12 bits.
    pub sequence: u16,
}

impl FrameNumber {
    /// Stands for the traffic identifier of frames that have none.
    pub const NO_TRAFFIC: u8 = 16;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: FrameKind,
    /// Whether the retry bit is set.
    pub is_retry: bool,
    /// The transmitter's address. Acknowledgements have none.
    pub transmitter: Option<Station>,
    pub receiver: Station,
    /// The network, if the frame names it.
    pub bssid: Option<Station>,
    /// Its place in the numbering, if it begins a packet; control frames have none.
    pub place: Option<FrameNumber>,
    /// Its bytes on the air, without the capture's header.
    pub bytes: u32,
    pub radio: Radio,
}

/// Six bytes in hexadecimal with colons between them.
pub fn station_text(station: Station) -> String {
    let mut text = String::with_capacity(17);
    for (at, byte) in station.iter().enumerate() {
        let colon = if at > 0 { ":" } else { "" };
        // Writing into a String cannot fail.
        let _ = write!(text, "{colon}{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_notation_of_a_station() {
        assert_eq!(station_text([0, 1, 0x2a, 0xff, 0x10, 9]), "00:01:2a:ff:10:09");
    }
}
