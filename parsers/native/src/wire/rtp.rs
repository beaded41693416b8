//! RTP headers (RFC 3550 section 5.1) and their extensions (RFC 8285).

use serde::{Deserialize, Serialize};

use super::{u16_at, u32_at};

/// Bytes of the header without contributing sources and extension.
const FIXED: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Set on packets at a boundary of the media's framing, such as the last one of a picture.
    pub marker: bool,
    /// Format of the media.
    pub payload_type: u8,
    /// Advances by one with each packet of the source.
    pub sequence: u16,
    /// Sampling instant, in ticks of the media's clock.
    pub timestamp: u32,
    pub ssrc: u32,
    /// Where the extension begins, if there is one.
    extension: Option<usize>,
}

/// The kind of a datagram by its first two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// RTP's version and a payload type of media.
    Rtp,
    /// A packet type of RTCP: types of 64 to 95 with the marker are no media (RFC 5761 section 4).
    Rtcp,
}

/// The kind of a datagram; None if it is neither RTP nor RTCP.
#[inline]
pub fn kind(payload: &[u8]) -> Option<DatagramKind> {
    let [first, second, ..] = *payload else { return None };
    match (first >> 6, second) {
        (2, 192..=223) => Some(DatagramKind::Rtcp),
        (2, _) => Some(DatagramKind::Rtp),
        _ => None,
    }
}

/// Where the extension of the header ends; None without one.
pub fn extension_end(payload: &[u8]) -> Option<usize> {
    let start = header(payload)?.extension?;
    let words = payload.get(start..)?.first_chunk::<4>().map(|fixed| usize::from(u16_at(fixed, 2)))?;
    Some(start + 4 + 4 * words)
}

/// The header at the beginning of a datagram; None if it is invalid or cut.
pub fn header(payload: &[u8]) -> Option<Header> {
    let fixed = payload.first_chunk::<FIXED>().filter(|_| kind(payload) == Some(DatagramKind::Rtp))?;
    let sources = usize::from(fixed[0] & 0x0f);
    Some(Header {
        marker: fixed[1] & 0x80 != 0,
        payload_type: fixed[1] & 0x7f,
        sequence: u16_at(fixed, 2),
        timestamp: u32_at(fixed, 4),
        ssrc: u32_at(fixed, 8),
        extension: (fixed[0] & 0x10 != 0).then_some(FIXED + 4 * sources),
    })
}

impl Header {
    /// The extension elements of `payload`, which begins with this header; none if their form is
    /// not of RFC 8285.
    pub fn elements<'a>(&self, payload: &'a [u8]) -> ExtensionElements<'a> {
        let extension = self.extension.and_then(|start| payload.get(start..)).unwrap_or_default();
        let Some((fixed, after)) = extension.split_first_chunk::<4>() else {
            return ExtensionElements::default();
        };
        let length = 4 * usize::from(u16_at(fixed, 2));
        let form = match u16_at(fixed, 0) {
            0xbede => Form::OneByte,
            0x1000..=0x100f => Form::TwoBytes,
            _ => return ExtensionElements::default(),
        };
        ExtensionElements { form, rest: after.get(..length).unwrap_or(after) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    /// Four bits of identifier, four of length less one (RFC 8285 section 4.2).
    #[default]
    OneByte,
    /// A byte of each (section 4.3).
    TwoBytes,
}

/// Elements of an extension: identifier and data. A cut element is left out.
#[derive(Clone, Debug, Default)]
pub struct ExtensionElements<'a> {
    form: Form,
    rest: &'a [u8],
}

impl<'a> Iterator for ExtensionElements<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&first, after) = self.rest.split_first()?;
            if first == 0 {
                // Padding, which has no length.
                self.rest = after;
                continue;
            }
            let (id, length, after) = match self.form {
                // Section 4.2: identifier 15 ends the extension.
                Form::OneByte if first >> 4 == 15 => return None,
                Form::OneByte => (first >> 4, usize::from(first & 0x0f) + 1, after),
                Form::TwoBytes => {
                    let (&length, after) = after.split_first()?;
                    (first, usize::from(length), after)
                }
            };
            let (data, rest) = after.split_at_checked(length)?;
            self.rest = rest;
            return Some((id, data));
        }
    }
}

/// The data that a TFRC sender adds to each packet, in units of the implementation: the element
/// `urn:ietf:params:rtp-hdrext:rtt-sendts` (draft-ietf-avt-tfrc-profile-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RttSendTime {
    /// The sender's round-trip time; 0 before it has one. 24 bits.
    pub rtt: u32,
    pub send_time: u32,
}

impl RttSendTime {
    /// The element with these data; None if their length is wrong.
    pub fn from_data(data: &[u8]) -> Option<Self> {
        let data: &[u8; 7] = data.try_into().ok()?;
        Some(Self { rtt: u32_at(data, 0) >> 8, send_time: u32_at(data, 3) })
    }
}

/// Ticks per second of the payload types whose clock RFC 3551 section 6 fixes.
pub fn static_clock_rate(payload_type: u8) -> Option<u32> {
    match payload_type {
        // G722 samples at 16 kHz, but its clock is 8 kHz by a historical error.
        0 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 13 | 15 | 18 => Some(8_000),
        6 => Some(16_000),
        16 => Some(11_025),
        17 => Some(22_050),
        10 | 11 => Some(44_100),
        14 | 25 | 26 | 28 | 31..=34 => Some(90_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::vectors::{from_hex, vectors};
    use crate::wire::udp::kept_bytes;
    use proptest::prelude::*;

    fn packet(first: u8, after: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first, 0x80 | 96, 0x12, 0x34, 0, 0, 0, 9, 1, 2, 3, 4];
        bytes.extend(after);
        bytes
    }

    #[test]
    fn test_a_header_with_sources_and_extensions_of_both_forms() {
        let one_byte = [0xbe, 0xde, 0, 2, 0x31, 0xaa, 0xbb, 0, 0x40, 7, 0, 0];
        let bytes = packet(0x92, &[&[0; 8][..], &one_byte, b"media"].concat());
        let found = header(&bytes).unwrap();
        assert_eq!((found.marker, found.payload_type, found.sequence), (true, 96, 0x1234));
        assert_eq!((found.timestamp, found.ssrc), (9, 0x0102_0304));
        let elements: Vec<_> = found.elements(&bytes).collect();
        assert_eq!(elements, [(3, &[0xaa, 0xbb][..]), (4, &[7][..])]);
        assert_eq!(kept_bytes(&bytes), Some(12 + 8 + 12));

        let two_bytes = [0x10, 0, 0, 2, 200, 2, 0xaa, 0xbb, 0, 7, 1, 9];
        let bytes = packet(0x90, &two_bytes);
        let elements: Vec<_> = header(&bytes).unwrap().elements(&bytes).collect();
        assert_eq!(elements, [(200, &[0xaa, 0xbb][..]), (7, &[9][..])]);
    }

    #[test]
    fn test_what_is_rtcp_or_of_another_version_is_no_header() {
        assert_eq!(kind(&[0x80, 200]), Some(DatagramKind::Rtcp));
        assert_eq!(kind(&[0x80, 0x80 | 96]), Some(DatagramKind::Rtp));
        assert_eq!(kind(&[0x16, 0xfe]), None);
        let mut bytes = packet(0x80, &[]);
        bytes[1] = 201;
        assert_eq!(header(&bytes), None);
        assert_eq!(header(&packet(0x80, &[])[..11]), None);
    }

    #[test]
    fn test_round_trip_and_send_time_are_those_of_the_vectors() {
        for vector in vectors("rtp_tfrc_wire.json") {
            let data = from_hex(vector["ext_hex"].as_str().unwrap());
            let found = RttSendTime::from_data(&data).unwrap();
            assert_eq!(u64::from(found.rtt), vector["expect"]["ext_rtt_us"], "{vector}");
            assert_eq!(u64::from(found.send_time), vector["expect"]["ext_send_ts_us"], "{vector}");
        }
    }

    proptest! {
        #[test]
        fn test_no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), is_rtp: bool) {
            if let (true, Some(first)) = (is_rtp, bytes.first_mut()) {
                *first = *first & 0x3f | 0x80;
            }
            let kept = kept_bytes(&bytes);
            prop_assert!(kept.is_none_or(|kept| kept <= bytes.len()));
            if let Some(header) = header(&bytes) {
                let data: usize = header.elements(&bytes).map(|(_, data)| data.len()).sum();
                prop_assert!(data <= bytes.len());
            }
        }
    }
}
