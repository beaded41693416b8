//! Whether a segment from another tunnel belongs to a connection with its five-tuple.

use super::{Connection, Segment};
use crate::packet::event::TcpFlags;
use crate::packet::key::Side;

/// How far from the expected a number may be: what is in flight, or missing in the capture.
pub(super) const NEAR: i64 = 1 << 20;

/// From the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinship {
    None,
    /// It follows what its side has sent: the path has changed.
    Continues,
    /// It is the first of its side, and acknowledges what the other one has sent.
    Answers,
    /// The capture already showed it at another place.
    Copy,
}

impl Connection {
    /// How a segment from `side` is related to this connection.
    pub fn kinship(&self, side: Side, segment: &Segment<'_>) -> Kinship {
        let (mine, other) = (self.half(side), self.half(side.other()));
        let header = segment.tcp;
        let is_near = |position: Option<i64>, next: i64| {
            position.is_some_and(|position| (-NEAR..=NEAR).contains(&(position - next)))
        };
        let is_copy = mine.on_wire.capture_point != segment.ip.capture_point
            && is_near(mine.sent.position(header.seq), mine.sent.next)
            && mine.has_seen(segment)
            && self.is_copy(side, segment);
        let acknowledges =
            header.flags.has(TcpFlags::ACK) && is_near(other.sent.position(header.ack), other.sent.next);
        let follows =
            mine.sent.position(header.seq).is_some_and(|at| (0..NEAR).contains(&(at - mine.sent.next)));
        let is_syn = header.flags.has(TcpFlags::SYN);
        match () {
            () if is_copy => Kinship::Copy,
            () if mine.sent.stream.is_none() && acknowledges => Kinship::Answers,
            () if follows && !is_syn && (other.sent.stream.is_none() || acknowledges) => Kinship::Continues,
            () => Kinship::None,
        }
    }
}
