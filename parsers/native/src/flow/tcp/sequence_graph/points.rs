//! The points of a time-sequence graph: each segment of the sender and each acknowledgement of the receiver.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::columns::{Columns, Tile};
use crate::flow::tcp::classify::class::Class;
use crate::packet::event::TcpFlags;
use crate::packet::key::Side;

/// Bits of a kind: the lowest four are the class of a segment, from 1, or 0.
const ACKNOWLEDGEMENT: u8 = 0x10;
const SYN: u8 = 0x20;
const FIN: u8 = 0x40;
const RST: u8 = 0x80;

/// Marks a round-trip time that did not begin with a point of the same tile.
const ELSEWHERE: u64 = 1;

/// The first sequence number of a SACK block and the one after it, as positions.
type Block = (i64, i64);

/// A segment, or an acknowledgement.
#[derive(Debug)]
pub(super) struct Point {
    pub time_ns: i64,
    pub packet: u64,
    pub flags: TcpFlags,
    /// Data of the sender in flight after it (RFC 5681 section 2, less what SACK blocks acknowledge).
    pub flight_bytes: i64,
    pub content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Segment { position: i64, bytes: u32, class: Option<Class> },
    Acknowledgement { position: i64, window: Option<u32>, sacked: SmallVec<[Block; 4]>, rtt_ns: Option<i64> },
}

impl Point {
    fn kind(&self) -> u8 {
        let controls = [(TcpFlags::SYN, SYN), (TcpFlags::FIN, FIN), (TcpFlags::RST, RST)];
        let flags = controls.into_iter().filter(|(flag, _)| self.flags.has(*flag));
        let kind = match &self.content {
            Content::Segment { class, .. } => class.map_or(0, |class| class as u8 + 1),
            Content::Acknowledgement { .. } => ACKNOWLEDGEMENT,
        };
        flags.fold(kind, |kind, (_, bit)| kind | bit)
    }

    fn segment(&self) -> Option<(i64, u32)> {
        match self.content {
            Content::Segment { position, bytes, .. } => Some((position, bytes)),
            Content::Acknowledgement { .. } => None,
        }
    }

    fn acknowledgement(&self) -> Option<(i64, Option<u32>, &[Block])> {
        match &self.content {
            Content::Segment { .. } => None,
            Content::Acknowledgement { position, window, sacked, .. } => Some((*position, *window, sacked)),
        }
    }

    fn rtt_ns(&self) -> Option<i64> {
        match self.content {
            Content::Segment { .. } => None,
            Content::Acknowledgement { rtt_ns, .. } => rtt_ns,
        }
    }
}

/// Of each acknowledgement, where the segment is whose round-trip time it gives: 0 if it gives none, [`ELSEWHERE`], or
/// 1 more than the number of points from there to here. The times of both points give the round-trip time.
fn answered(points: &[Point]) -> Vec<(&Point, u64)> {
    let mut sent = HashMap::new();
    let mut answered = Vec::new();
    for (place, point) in points.iter().enumerate() {
        if point.segment().is_some() {
            sent.insert(point.time_ns, place);
            continue;
        }
        let sent_ns = point.rtt_ns().map(|rtt_ns| point.time_ns.wrapping_sub(rtt_ns));
        answered.push((
            point,
            match sent_ns.map(|sent_ns| sent.get(&sent_ns)) {
                None => 0,
                Some(None) => ELSEWHERE,
                Some(Some(segment)) => (place - segment) as u64 + ELSEWHERE,
            },
        ));
    }
    answered
}

/// The tile of `points`, of which there is at least one.
pub(super) fn tile(points: &[Point], side: Side) -> Tile {
    let times = || points.iter().map(|point| point.time_ns);
    let (start_ns, end_ns) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let segments = || points.iter().filter_map(Point::segment);
    let acknowledgements = || points.iter().filter_map(Point::acknowledgement);
    let rtts = || points.iter().filter_map(Point::rtt_ns);
    let mut columns = Columns::new(start_ns, times().chain(rtts()));
    columns.raw(points.iter().map(Point::kind));
    columns.times(times());
    columns.steps(points.iter().map(|point| point.packet as i64));
    // From the end of the data before: 0 in a stream without losses.
    let mut end = 0;
    columns.signed(segments().map(|(position, bytes)| {
        position.wrapping_sub(std::mem::replace(&mut end, position.wrapping_add(bytes.into())))
    }));
    columns.steps(segments().map(|(_, bytes)| bytes.into()));
    columns.steps(acknowledgements().map(|(position, _, _)| position));
    // 0 if the scale is not known.
    columns.steps(acknowledgements().map(|(_, window, _)| window.map_or(0, |window| 1 + i64::from(window))));
    columns.numbers(acknowledgements().map(|(_, _, sacked)| sacked.len() as u64));
    let blocks = || {
        acknowledgements().flat_map(|(position, _, sacked)| sacked.iter().map(move |block| (position, block)))
    };
    columns.steps(blocks().map(|(position, &(start, _))| start.wrapping_sub(position)));
    columns.numbers(blocks().map(|(_, &(start, end))| end.saturating_sub(start).unsigned_abs()));
    columns.steps(points.iter().map(|point| point.flight_bytes));
    let answered = answered(points);
    columns.numbers(answered.iter().map(|&(_, back)| back));
    let elsewhere = answered.iter().filter(|(_, back)| *back == ELSEWHERE);
    columns.times_from(0, elsewhere.filter_map(|(point, _)| point.rtt_ns()));
    Tile { side, level: 0, count: points.len() as u32, start_ns, end_ns, deflated: columns.deflated() }
}
