//! Transport feedback for congestion control (RFC 4585): TFRC's, RFC 8888's, and the transport-wide
//! one of draft-holmer-rmcat-transport-wide-cc-extensions-01, which browsers use.

use super::super::{u16_at, u32_at};

/// TFRC's feedback (draft-ietf-avt-tfrc-profile-10). Times are in units of the implementation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TfrcReport {
    pub sender: u32,
    pub media: u32,
    /// Send time of the last packet received, as written by its sender.
    pub echoed_send_time: u32,
    /// How long ago it arrived.
    pub delay: u32,
    /// Bytes per second.
    pub x_recv: u32,
    pub p: f64,
}

impl TfrcReport {
    /// Read the body of the packet.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let body: &[u8; 24] = body.try_into().ok()?;
        Some(Self {
            sender: u32_at(body, 0),
            media: u32_at(body, 4),
            echoed_send_time: u32_at(body, 8),
            delay: u32_at(body, 12),
            x_recv: u32_at(body, 16),
            p: f64::from(u32_at(body, 20)) / f64::from(u32::MAX),
        })
    }
}

/// Congestion control feedback: the arrivals of each packet of several sources (RFC 8888 section
/// 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion<'a> {
    pub sender: u32,
    /// Time of the report: the middle of an NTP time, in 65536ths of a second.
    pub time: u32,
    sources: &'a [u8],
}

impl<'a> Congestion<'a> {
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        let (sender, after) = body.split_first_chunk::<4>()?;
        let (sources, time) = after.split_last_chunk::<4>()?;
        let report = Self { sender: u32_at(sender, 0), time: u32_at(time, 0), sources };
        let last = report.sources().last();
        // A wrong count leaves bytes over, or exceeds them.
        let rest = last.map_or(sources, |source| source.rest);
        rest.is_empty().then_some(report)
    }

    pub fn sources(&self) -> impl Iterator<Item = SourceReport<'a>> {
        let mut rest = self.sources;
        std::iter::from_fn(move || {
            let source = SourceReport::read(rest)?;
            rest = source.rest;
            Some(source)
        })
    }
}

/// The arrivals of a range of packets of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceReport<'a> {
    pub ssrc: u32,
    first: u16,
    metrics: &'a [u8],
    rest: &'a [u8],
}

/// A receiver's report on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    pub sequence: u16,
    pub is_received: bool,
    /// Codepoint of ECN (RFC 3168) with which it arrived.
    pub ecn: u8,
    /// How long before the report it arrived, in 1024ths of a second; None if too long or unknown.
    pub age: Option<u16>,
}

impl<'a> SourceReport<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, after) = bytes.split_first_chunk::<8>()?;
        let count = usize::from(u16_at(fixed, 6));
        let metrics = after.get(..2 * count)?;
        // Padded to whole words.
        let rest = after.get(count.next_multiple_of(2) * 2..)?;
        Some(Self { ssrc: u32_at(fixed, 0), first: u16_at(fixed, 4), metrics, rest })
    }

    pub fn packets(&self) -> impl Iterator<Item = PacketReport> {
        let metrics = self.metrics.chunks_exact(2).filter_map(<[u8]>::first_chunk::<2>);
        (0_u16..).zip(metrics).map(|(index, metric)| {
            let metric = u16::from_be_bytes(*metric);
            let age = metric & 0x1fff;
            let is_received = metric & 0x8000 != 0;
            PacketReport {
                sequence: self.first.wrapping_add(index),
                is_received,
                ecn: if is_received { (metric >> 13 & 3) as u8 } else { 0 },
                age: (is_received && age < 0x1ffe).then_some(age),
            }
        })
    }
}

/// Transport-wide feedback: which packets of all sources together arrived, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportWide<'a> {
    pub sender: u32,
    /// One of the sources.
    pub media: u32,
    /// Number of the report, which reveals missing ones.
    pub number: u8,
    /// The first packet of the report.
    pub first: u16,
    /// Packets in the report.
    pub count: u16,
    /// In units of 64 ms, by the receiver's clock.
    reference: i32,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

/// Units of arrival times in a second.
pub const TICKS_PER_SECOND: f64 = 4000.0;
/// Units of arrival times in one of the reference time.
const TICKS_PER_REFERENCE: i64 = 256;

/// A packet that arrived: its transport-wide number and time, in units of 0.25 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub number: u16,
    pub ticks: i64,
}

impl<'a> TransportWide<'a> {
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        let (fixed, after) = body.split_first_chunk::<16>()?;
        let count = u16_at(fixed, 10);
        let (chunks, deltas) = split_chunks(after, count)?;
        let report = Self {
            sender: u32_at(fixed, 0),
            media: u32_at(fixed, 4),
            first: u16_at(fixed, 8),
            count,
            reference: u32_at(fixed, 12) as i32 >> 8,
            number: fixed[15],
            chunks,
            deltas,
        };
        let mut arrivals = report.arrivals();
        arrivals.by_ref().for_each(drop);
        (!arrivals.is_malformed).then_some(report)
    }

    /// Each packet that arrived. Missing packets cost no time, however many a chunk claims.
    pub fn arrivals(&self) -> Arrivals<'a> {
        Arrivals {
            symbols: StatusSymbols { rest: self.chunks, chunk: 0, kind: Chunk::Run, left: 0 },
            deltas: self.deltas,
            next: self.first,
            left: self.count,
            ticks: i64::from(self.reference) * TICKS_PER_REFERENCE,
            is_malformed: false,
        }
    }
}

/// The chunks for `count` packets, and the bytes after them.
fn split_chunks(bytes: &[u8], count: u16) -> Option<(&[u8], &[u8])> {
    let (mut at, mut left) = (0, count);
    while left > 0 {
        let chunk = bytes.get(at..)?.first_chunk::<2>()?;
        left = left.saturating_sub(Chunk::of(u16::from_be_bytes(*chunk)).1);
        at += 2;
    }
    bytes.split_at_checked(at)
}

/// Iterator over [`TransportWide::arrivals`].
#[derive(Clone, Debug)]
pub struct Arrivals<'a> {
    symbols: StatusSymbols<'a>,
    deltas: &'a [u8],
    next: u16,
    /// Packets that are left.
    left: u16,
    ticks: i64,
    /// Whether a symbol is reserved, or has no delta.
    is_malformed: bool,
}

impl Arrivals<'_> {
    fn delta(&mut self, symbol: u16) -> Option<i64> {
        let delta = match symbol {
            1 => self.deltas.split_first().map(|(&delta, rest)| (i64::from(delta), rest)),
            2 => {
                let wide = self.deltas.split_first_chunk::<2>();
                wide.map(|(delta, rest)| (i64::from(i16::from_be_bytes(*delta)), rest))
            }
            _ => None,
        };
        self.is_malformed |= delta.is_none();
        let (delta, rest) = delta?;
        self.deltas = rest;
        Some(delta)
    }
}

impl Iterator for Arrivals<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        while self.left > 0 {
            let (symbol, packets) = self.symbols.next()?;
            let number = self.next;
            self.next = number.wrapping_add(packets);
            self.left = self.left.saturating_sub(packets);
            if symbol != NOT_RECEIVED {
                self.ticks += self.delta(symbol)?;
                return Some(Arrival { number, ticks: self.ticks });
            }
        }
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// One symbol repeated.
    Run,
    /// Fourteen symbols of a bit.
    Bits,
    /// Seven symbols of two bits.
    Pairs,
}

impl Chunk {
    /// The kind of a chunk, and its number of packets.
    fn of(chunk: u16) -> (Self, u16) {
        match chunk >> 14 {
            0 | 1 => (Self::Run, chunk & 0x1fff),
            2 => (Self::Bits, 14),
            _ => (Self::Pairs, 7),
        }
    }
}

/// Status symbol of a packet that did not arrive; 1 has a delta of one byte, 2 of two.
const NOT_RECEIVED: u16 = 0;

/// Status symbols, each with the number of packets in a row that share it: a run of missing packets
/// is one.
#[derive(Clone, Debug)]
struct StatusSymbols<'a> {
    rest: &'a [u8],
    chunk: u16,
    kind: Chunk,
    left: u16,
}

impl Iterator for StatusSymbols<'_> {
    type Item = (u16, u16);

    fn next(&mut self) -> Option<(u16, u16)> {
        while self.left == 0 {
            let (chunk, rest) = self.rest.split_first_chunk::<2>()?;
            self.rest = rest;
            self.chunk = u16::from_be_bytes(*chunk);
            (self.kind, self.left) = Chunk::of(self.chunk);
        }
        if self.kind == Chunk::Run && self.chunk >> 13 == NOT_RECEIVED {
            return Some((NOT_RECEIVED, std::mem::take(&mut self.left)));
        }
        self.left -= 1;
        let symbol = match self.kind {
            Chunk::Run => self.chunk >> 13 & 3,
            Chunk::Bits => self.chunk >> self.left & 1,
            Chunk::Pairs => self.chunk >> (2 * self.left) & 3,
        };
        Some((symbol, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Malformed, Rtcp, packets};
    use super::*;
    use crate::testing::vectors::{from_hex, vectors};

    #[test]
    fn test_reports_of_tfrc_are_those_of_the_vectors() {
        for vector in vectors("rtp_tfrc_wire.json") {
            let bytes = from_hex(vector["rtcp_hex"].as_str().unwrap());
            let expected = &vector["expect"];
            let Some(Ok(Rtcp::Tfrc(report))) = packets(&bytes).next() else { panic!("{vector}") };
            assert_eq!(u64::from(report.sender), expected["sender_ssrc"]);
            assert_eq!(u64::from(report.media), expected["media_ssrc"]);
            assert_eq!(u64::from(report.echoed_send_time), expected["t_i_us"]);
            assert_eq!(u64::from(report.delay), expected["t_delay_us"]);
            assert_eq!(u64::from(report.x_recv), expected["x_recv_Bps"]);
            assert!((report.p - expected["p"].as_f64().unwrap()).abs() < 1e-14);
        }
    }

    fn feedback(format: u8, body: &[u8]) -> Vec<u8> {
        let words = (body.len() / 4) as u16;
        [&[0x80 | format, 205][..], &words.to_be_bytes(), body].concat()
    }

    #[test]
    fn test_congestion_feedback_names_each_packet_of_each_source() {
        #[rustfmt::skip]
        let body = [
            0, 0, 0, 1,
            0, 0, 0, 2, 0xff, 0xff, 0, 3, 0x80 | 0x60, 10, 0, 0, 0xbf, 0xfe, 0, 0,
            0, 0, 0, 3, 0, 9, 0, 0,
            0, 1, 0x80, 0,
        ];
        let bytes = feedback(11, &body);
        let Some(Ok(Rtcp::Congestion(report))) = packets(&bytes).next() else { panic!() };
        assert_eq!((report.sender, report.time), (1, 0x0001_8000));
        let sources: Vec<_> =
            report.sources().map(|source| (source.ssrc, source.packets().count())).collect();
        assert_eq!(sources, [(2, 3), (3, 0)]);
        let of_first: Vec<_> = report.sources().next().unwrap().packets().collect();
        let packet = |sequence, is_received, ecn, age| PacketReport { sequence, is_received, ecn, age };
        assert_eq!(
            of_first,
            [packet(0xffff, true, 3, Some(10)), packet(0, false, 0, None), packet(1, true, 1, None)]
        );
        let mut lying = bytes;
        lying[4 + 4 + 7] = 200;
        assert_eq!(packets(&lying).next(), Some(Err(Malformed)));
    }

    #[test]
    fn test_transport_wide_feedback_with_chunks_of_all_kinds() {
        #[rustfmt::skip]
        let body = [
            0, 0, 0, 1, 0, 0, 0, 2,
            0xff, 0xfe, 0, 12, // twelve packets from 65534 on
            0xff, 0xff, 0xff, 7, // reference time -1, report 7
            0x20, 2, // two of one byte
            0b1100_1000, 0b0000_0000, // two bits each: not, of two bytes, five not
            0b1011_0000, 0, // one bit each: of one byte, of one byte, not, ...
            4, 8, 0xff, 0xfc, 1, 0, // deltas, and nothing
        ];
        let bytes = feedback(15, &body);
        let Some(Ok(Rtcp::TransportWide(report))) = packets(&bytes).next() else { panic!() };
        assert_eq!((report.sender, report.media, report.number), (1, 2, 7));
        let came: Vec<_> = report.arrivals().map(|packet| (packet.number, packet.ticks)).collect();
        assert_eq!(came, [(65534, -252), (65535, -244), (1, -248), (7, -247), (8, -247)]);
        assert_eq!(report.count, 12);
        let mut short = bytes;
        short[4 + 11] = 200;
        assert_eq!(packets(&short).next(), Some(Err(Malformed)));
    }

    #[test]
    fn test_many_packets_that_did_not_come_cost_no_time() {
        let mut body = vec![0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
        // Eight runs of 8191 missing packets, and seven packets that arrived.
        body.extend([0x1f, 0xff].repeat(8));
        body.extend([0x20, 7, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
        let bytes = feedback(15, &body);
        let Some(Ok(Rtcp::TransportWide(report))) = packets(&bytes).next() else { panic!() };
        assert_eq!(
            report.arrivals().map(|packet| packet.number).collect::<Vec<_>>(),
            (65528..65535).collect::<Vec<_>>()
        );
        let symbols = StatusSymbols { rest: report.chunks, chunk: 0, kind: Chunk::Run, left: 0 };
        assert_eq!(symbols.count(), 8 + 7);
    }

    #[test]
    fn test_a_reserved_symbol_is_malformed() {
        let body = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, 1, 1, 1];
        assert_eq!(packets(&feedback(15, &body)).next(), Some(Err(Malformed)));
    }
}
