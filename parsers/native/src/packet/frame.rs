//! An 802.11 frame, as far as links between stations are concerned.

use std::num::{NonZeroU16, NonZeroU32};

/// An address of the MAC layer.
pub type Station = [u8; 6];

/// What a frame is for (IEEE 802.11-2020 section 9.2.4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// It carries a packet, or a part of one.
    Data,
    /// A data frame without data: it only tells that a station sleeps or wakes.
    NullData,
    /// Beacons, association and the like.
    Management,
    /// Acknowledgements, reservations and the like.
    Control,
    /// DMG beacons and what else is to come.
    Extension,
}

impl FrameKind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::NullData => "null data",
            Self::Management => "management",
            Self::Control => "control",
            Self::Extension => "extension",
        }
    }
}

/// What the receiving radio wrote down beside a frame. Only what it told is there.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// What it is for.
    pub kind: FrameKind,
    /// Whether its transmitter says that it sent it before.
    pub is_retry: bool,
    /// Who sent it over the air. Acknowledgements do not tell.
    pub transmitter: Option<Station>,
    /// Who is to receive it from the air.
    pub receiver: Station,
    /// The network it belongs to, if it tells.
    pub bssid: Option<Station>,
    /// Its place in the numbering, if it begins a packet; control frames have none.
    pub place: Option<FrameNumber>,
    /// Its bytes on the air, without what the capture puts before them.
    pub bytes: u32,
    /// What the radio tells.
    pub radio: Radio,
}
