//! RTCP: reports of RTP's receivers and senders (RFC 3550 section 6), several packets to a
//! datagram.

pub mod extended;
pub mod feedback;

use serde::{Deserialize, Serialize};

use super::{u16_at, u32_at};
use extended::Blocks;
use feedback::{Congestion, TfrcReport, TransportWide};

/// Bytes of a datagram that are read; reports fit into a packet of any link.
pub const MOST: usize = 4096;
/// Bytes of a report block.
const BLOCK: usize = 24;

/// One receiver's report on one source (section 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportBlock {
    pub ssrc: u32,
    /// Share lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Packets expected less packets received, duplicates included: negative with many of these.
    pub cumulative_lost: i32,
    /// The highest sequence number received, below the count of wraps.
    pub highest: u32,
    /// Interarrival jitter in ticks of the media's clock.
    pub jitter: u32,
    /// The middle of the NTP time of the last sender report; 0 before the first.
    pub last_sr: u32,
    /// Time since it arrived, in 65536ths of a second.
    pub delay_since_last_sr: u32,
}

impl ReportBlock {
    fn read(bytes: &[u8; BLOCK]) -> Self {
        // 24 bits with a sign.
        let cumulative_lost = (u32_at(bytes, 4) << 8) as i32 >> 8;
        Self {
            ssrc: u32_at(bytes, 0),
            fraction_lost: bytes[4],
            cumulative_lost,
            highest: u32_at(bytes, 8),
            jitter: u32_at(bytes, 12),
            last_sr: u32_at(bytes, 16),
            delay_since_last_sr: u32_at(bytes, 20),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportBlocks<'a>(&'a [u8]);

impl ReportBlocks<'_> {
    pub fn iter(&self) -> impl Iterator<Item = ReportBlock> {
        self.0.chunks_exact(BLOCK).filter_map(<[u8]>::first_chunk).map(ReportBlock::read)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// Wall clock: seconds since 1900 and their 2^32nds.
    pub ntp: u64,
    /// The same instant by the media's clock.
    pub timestamp: u32,
    pub packets: u32,
    pub octets: u32,
}

impl SenderInfo {
    /// The part of the NTP time that report blocks echo.
    pub fn middle_ntp(&self) -> u32 {
        (self.ntp >> 16) as u32
    }
}

/// One packet of a compound.
#[derive(Clone, Debug, PartialEq)]
pub enum Rtcp<'a> {
    /// SR: its source, and what that received itself.
    SenderReport(u32, SenderInfo, ReportBlocks<'a>),
    /// RR: from a source that only receives.
    ReceiverReport(u32, ReportBlocks<'a>),
    /// XR (RFC 3611): its source and blocks.
    Extended(u32, Blocks<'a>),
    /// Generic negative acknowledgement (RFC 4585 section 6.2.1): its source, and the number of
    /// packets.
    Nack(u32, u32),
    Tfrc(TfrcReport),
    /// Congestion control feedback (RFC 8888).
    Congestion(Congestion<'a>),
    /// Transport-wide congestion control feedback.
    TransportWide(TransportWide<'a>),
    /// A packet of another type, or feedback of another format.
    Other,
}

/// A packet whose content contradicts its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Bit of a packet's first byte.
const PADDING: u8 = 0x20;
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const TRANSPORT_FEEDBACK: u8 = 205;
const EXTENDED_REPORT: u8 = 207;

/// Formats of transport feedback.
const NACK: u8 = 1;
const TFRC: u8 = 2;
const CONGESTION: u8 = 11;
const TRANSPORT_WIDE: u8 = 15;

/// What the lengths in a datagram that begins like RTCP say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A sound compound packet (RFC 3550 appendix A.2).
    Compound,
    /// As that, but for a few bytes too short for a header: some senders do not pad their last packet.
    Ragged,
    /// Its last packet would be longer than the datagram.
    Overlong,
    /// No packet of RTCP follows where the lengths lead: it is encrypted, or of another protocol.
    Unreadable,
}

/// The form of a datagram of `on_wire` bytes, of which `payload` was captured. In a compound packet each packet has
/// RTCP's version and a type of it, padding ends only the last one, and their lengths end exactly at the end of the
/// datagram.
///
/// Only the first eight bytes of an encrypted one can be read, and an index and a check value end it (RFC 3711 section
/// 3.4, RFC 7714 section 9), so that no header is where its lengths lead.
pub fn form(payload: &[u8], on_wire: usize) -> Form {
    let (mut at, mut has_padding) = (0, false);
    while let Some(rest) = payload.get(at..).filter(|rest| rest.len() >= 4) {
        if has_padding || super::rtp::kind(rest) != Some(super::rtp::DatagramKind::Rtcp) {
            return Form::Unreadable;
        }
        has_padding = rest[0] & PADDING != 0;
        at += 4 + 4 * usize::from(u16_at(rest, 2));
    }
    // Beyond the snap length more packets may follow, of whole words too.
    let is_cut = payload.len() < on_wire;
    match at {
        0 => Form::Unreadable,
        _ if at > on_wire => Form::Overlong,
        _ if at == on_wire || is_cut && on_wire.is_multiple_of(4) => Form::Compound,
        _ if !is_cut && on_wire - at < 4 => Form::Ragged,
        _ => Form::Unreadable,
    }
}

/// The packets of a datagram; [`Malformed`] for one that cannot be read, and for a last one with a
/// wrong length.
pub fn packets(payload: &[u8]) -> impl Iterator<Item = Result<Rtcp<'_>, Malformed>> {
    Packets { rest: payload }.map(|packet| packet.and_then(|(head, body)| read(head, body)).ok_or(Malformed))
}

/// The packets' first bytes, and their bodies; None for an incomplete one, which is the last.
struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Packets<'a> {
    type Item = Option<([u8; 2], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let packet = self.split();
        if packet.is_none() {
            self.rest = &[];
        }
        Some(packet)
    }
}

impl<'a> Packets<'a> {
    fn split(&mut self) -> Option<([u8; 2], &'a [u8])> {
        let (head, after) = self.rest.split_first_chunk::<4>()?;
        if super::rtp::kind(self.rest) != Some(super::rtp::DatagramKind::Rtcp) {
            return None;
        }
        let (body, rest) = after.split_at_checked(4 * usize::from(u16_at(head, 2)))?;
        self.rest = rest;
        // Padding ends the last packet of a compound, and its last byte is its length.
        let padding = match body.last() {
            Some(&last) if head[0] & PADDING != 0 => usize::from(last),
            _ => 0,
        };
        Some(([head[0], head[1]], body.get(..body.len().checked_sub(padding)?)?))
    }
}

fn read([first, packet_type]: [u8; 2], body: &[u8]) -> Option<Rtcp<'_>> {
    // The number of blocks, or the format of feedback.
    let count = first & 0x1f;
    let ssrc = || body.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
    let blocks = |at: usize| body.get(at..at + BLOCK * usize::from(count)).map(ReportBlocks);
    match packet_type {
        SENDER_REPORT => {
            let fixed = body.first_chunk::<24>()?;
            let info = SenderInfo {
                ntp: u64::from(u32_at(fixed, 4)) << 32 | u64::from(u32_at(fixed, 8)),
                timestamp: u32_at(fixed, 12),
                packets: u32_at(fixed, 16),
                octets: u32_at(fixed, 20),
            };
            Some(Rtcp::SenderReport(u32_at(fixed, 0), info, blocks(24)?))
        }
        RECEIVER_REPORT => Some(Rtcp::ReceiverReport(ssrc()?, blocks(4)?)),
        EXTENDED_REPORT => Some(Rtcp::Extended(ssrc()?, Blocks::new(body.get(4..)?))),
        TRANSPORT_FEEDBACK => read_feedback(count, body),
        _ => Some(Rtcp::Other),
    }
}

fn read_feedback(format: u8, body: &[u8]) -> Option<Rtcp<'_>> {
    match format {
        NACK => {
            let (fixed, entries) = body.split_first_chunk::<8>()?;
            // Each entry is a packet and a bit for each of the sixteen after it.
            let packets = |entry: &[u8; 4]| 1 + u16_at(entry, 2).count_ones();
            let entries = entries.chunks_exact(4).filter_map(<[u8]>::first_chunk);
            Some(Rtcp::Nack(u32_at(fixed, 4), entries.map(packets).sum()))
        }
        TFRC => TfrcReport::read(body).map(Rtcp::Tfrc),
        CONGESTION => Congestion::read(body).map(Rtcp::Congestion),
        TRANSPORT_WIDE => TransportWide::read(body).map(Rtcp::TransportWide),
        _ => Some(Rtcp::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A receiver report with one block and a BYE: the words in order.
    fn compound() -> Vec<u8> {
        let words: [u32; 10] = [
            0x81c9_0007, 0x0102_0304, 0x0506_0708, 0x40ff_fffe, 70_000, 33, 0x8000_0001, 65_536, 0x81cb_0001,
            0x0102_0304,
        ];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn test_a_receiver_report_among_others() {
        let bytes = compound();
        let found: Vec<_> = packets(&bytes).collect();
        let Ok(Rtcp::ReceiverReport(0x0102_0304, blocks)) = &found[0] else { panic!("{found:?}") };
        let expected = ReportBlock {
            ssrc: 0x0506_0708,
            fraction_lost: 64,
            cumulative_lost: -2,
            highest: 70_000,
            jitter: 33,
            last_sr: 0x8000_0001,
            delay_since_last_sr: 65_536,
        };
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [expected]);
        assert_eq!(found[1..], [Ok(Rtcp::Other)]);
        assert!(form(&bytes, bytes.len()) == Form::Compound);
    }

    #[test]
    fn test_an_encrypted_compound_is_none() {
        // What RFC 3711 section 3.4 leaves readable, then encrypted bytes, index with the E flag and 80 bits of check
        // value; with GCM (RFC 7714) 128 bits before the index, so that it has whole words.
        let plain = compound();
        for trailer in [14, 20] {
            let mut bytes = plain.clone();
            bytes[8..].iter_mut().for_each(|byte| *byte ^= 0xa7);
            bytes.extend([0x5a; 20].iter().take(trailer));
            for cut in 36..=bytes.len() {
                assert!(form(&bytes[..cut], bytes.len()) == Form::Unreadable, "{trailer} {cut}");
            }
            // A report alone: what follows it is no packet.
            let alone =
                [&plain[..32], &[0x80, 0, 0, 1, 0x5a, 0xa5, 0x5a, 0xa5, 0x5a, 0xa5, 0x5a, 0xa5, 0x5a, 0xa5]]
                    .concat();
            assert!(form(&alone, alone.len()) == Form::Unreadable);
        }
    }

    #[test]
    fn test_padding_ends_only_the_last_packet() {
        let mut bytes = compound();
        bytes[32] |= PADDING;
        bytes[39] = 4;
        assert_eq!(form(&bytes, 40), Form::Compound);
        bytes[0] |= PADDING;
        assert_eq!(form(&bytes, 40), Form::Unreadable);
    }

    #[test]
    fn test_a_sender_report_has_both_clocks() {
        let words: [u32; 7] = [0x80c8_0006, 1, 0xe000_0001, 0x8000_0000, 160, 9, 1440];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let Some(Ok(Rtcp::SenderReport(1, info, blocks))) = packets(&bytes).next() else { panic!() };
        assert_eq!((info.middle_ntp(), info.timestamp, info.packets), (0x0001_8000, 160, 9));
        assert_eq!(blocks.iter().count(), 0);
    }

    #[test]
    fn test_lengths_that_lie_are_malformed() {
        let bytes = compound();
        for cut in 1..bytes.len() {
            assert_eq!(form(&bytes[..cut], cut) == Form::Compound, cut == 32, "{cut}");
            assert!(cut == 32 || packets(&bytes[..cut]).last() == Some(Err(Malformed)), "{cut}");
        }
        let mut many = bytes.clone();
        many[0] = 0x9f;
        assert_eq!(packets(&many).next(), Some(Err(Malformed)));
        let mut padded = bytes;
        (padded[32], padded[39]) = (0xa1, 9);
        assert_eq!(packets(&padded).last(), Some(Err(Malformed)));
    }

    proptest! {
        #[test]
        fn test_no_bytes_panic_and_packets_end(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
            types in proptest::collection::vec((0_usize..30, 192_u8..224, 0_u8..10), 0..4),
        ) {
            for (word, packet_type, length) in types {
                if let Some(head) = bytes.get_mut(4 * word..4 * word + 4) {
                    head.copy_from_slice(&[head[0] & 0x3f | 0x80, packet_type, 0, length]);
                }
            }
            for packet in packets(&bytes).flatten() {
                match packet {
                    Rtcp::SenderReport(_, _, blocks) | Rtcp::ReceiverReport(_, blocks) => {
                        prop_assert!(blocks.iter().count() <= 31);
                    }
                    Rtcp::Extended(_, blocks) => prop_assert!(blocks.count() <= bytes.len()),
                    Rtcp::Congestion(report) => {
                        for source in report.sources() {
                            prop_assert!(source.packets().count() <= 1 << 14);
                        }
                    }
                    Rtcp::TransportWide(report) => prop_assert!(report.arrivals().count() <= bytes.len()),
                    _ => {}
                }
            }
        }
    }
}
