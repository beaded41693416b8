//! Places a segment in its stream if it is not simply the next.

use super::Placement;
use crate::flow::holes::{FilledHoles, HoleOpening};
use crate::flow::outstanding::Pool;
use crate::flow::tcp::half_connection::{FIRST_SEEN, HalfConnection};
use crate::flow::tcp::kinship::NEAR;
use crate::flow::tcp::recovery::recovery_state::Leap;
use crate::flow::tcp::{Outcome, Segment};
use crate::packet::event::TcpFlags;
use crate::packet::seq::{SeqNumber, Unwrapper};

impl HalfConnection {
    /// Place anything but the next data or a bare acknowledgement at the next sequence number.
    #[inline(never)]
    pub(crate) fn place_unusual(&mut self, segment: &Segment<'_>, pool: &mut Pool, outcome: &mut Outcome) {
        let flags = segment.tcp.flags;
        let syn = i64::from(flags.has(TcpFlags::SYN));
        let Some(stream) = self.sent.stream else {
            return self.begin(segment, syn, pool, outcome);
        };
        let position = stream.position(SeqNumber(segment.tcp.seq), self.sent.next);
        if syn > 0 && self.sent.unique_bytes == 0 && !self.is_near(position, position) {
            // What came before it was of another connection, or a reset with a number of its own (RFC 9293
            // section 3.10.7.1).
            return self.begin(segment, syn, pool, outcome);
        }
        outcome.position = position;
        let start = position + syn;
        let end = start + i64::from(segment.payload);
        let occupied = end + i64::from(flags.has(TcpFlags::FIN));
        // The payload of a reset is not stream data (RFC 9293 section 3.5.3), and a bare
        // acknowledgement occupies no sequence number.
        if flags.has(TcpFlags::RST) {
            return;
        }
        if occupied > position {
            self.confirm_leap(position, pool);
            if !self.is_near(start, end) && !self.has_acknowledged_near(start) {
                return self.leap((start, occupied), segment, outcome);
            }
            self.place_elsewhere((start, end, occupied), segment, pool, outcome);
            if let Some(finding) = outcome.finding.filter(|finding| finding.class.is_retransmission()) {
                self.on_repair(finding.class, segment.time_ns);
            }
        } else if self.is_before_next(start) && flags.has(TcpFlags::ACK) {
            outcome.finding = Some(self.classify_probe(segment));
        }
    }

    #[cold]
    fn begin(&mut self, segment: &Segment<'_>, syn: i64, pool: &mut Pool, outcome: &mut Outcome) {
        // Without a SYN the first byte seen is position 1, as if a SYN preceded it.
        let base = SeqNumber(segment.tcp.seq.wrapping_sub(1 - syn as u32));
        let position = 1 - syn;
        outcome.position = position;
        (self.sent.stream, self.sent.start, self.sent.next) =
            (Some(Unwrapper::new(base)), position, position);
        self.acknowledged.position = position;
        self.acknowledged.window_end = i64::MAX;
        self.acknowledged.progress_ns = segment.time_ns;
        self.on_wire.capture_point = segment.ip.capture_point;
        self.on_wire.ttl = segment.ip.ttl;
        if syn == 0 {
            self.on_wire.assume_usual_length();
        }
        if segment.tcp.flags.has(TcpFlags::RST) {
            return;
        }
        outcome.new_bytes = segment.payload;
        self.sent.unique_bytes += u64::from(segment.payload);
        let fin = i64::from(segment.tcp.flags.has(TcpFlags::FIN));
        let occupied = 1 + i64::from(segment.payload) + fin;
        self.sent.segments = u32::from(segment.payload > 0);
        if occupied > position {
            self.advance(occupied, segment.payload, segment.time_ns, pool);
        }
    }

    /// Whether `start..end` is not far from the data seen.
    fn is_near(&self, start: i64, end: i64) -> bool {
        start <= self.sent.next + NEAR && end >= self.sent.start - NEAR
    }

    /// Whether the other side's last acknowledgement is not far from `position`.
    fn has_acknowledged_near(&self, position: i64) -> bool {
        let acknowledged = self.sent.position(self.acknowledged.number);
        acknowledged.is_some_and(|acknowledged| (acknowledged - position).abs() <= NEAR)
    }

    /// Keep data far from all seen until something else shows that the stream is there: a damaged or forged
    /// segment may have any number.
    #[cold]
    fn leap(&mut self, (start, occupied): (i64, i64), segment: &Segment<'_>, outcome: &mut Outcome) {
        let (payload, after) = (segment.payload, self.sent.next);
        let leap = Leap { start, occupied, after, payload, opening: self.opening_by(segment) };
        self.recovery_mut().set_leap(Some(leap));
        outcome.new_bytes = payload;
        self.sent.unique_bytes += u64::from(payload);
        self.sent.segments = self.sent.segments.saturating_add(u32::from(payload > 0));
    }

    /// If the last data are far from those before them, place them if the stream goes on near them, at
    /// `position`, or is acknowledged there; else forget them.
    #[inline(never)]
    pub(crate) fn confirm_leap(&mut self, position: i64, pool: &mut Pool) {
        let Some(leap) = self.recovery.as_ref().and_then(|recovery| recovery.leap()) else { return };
        self.recovery_mut().set_leap(None);
        if leap.after == self.sent.next && (position - leap.start).abs() <= NEAR {
            self.place_leap(leap, pool);
        }
    }

    fn place_leap(&mut self, leap: Leap, pool: &mut Pool) {
        let known = self.sent.start..self.sent.next;
        let holes = &mut self.recovery_mut().upstream_loss_mut().holes;
        if leap.start > known.end {
            holes.open(known.end, leap.start, leap.opening, pool);
            self.advance(leap.occupied, leap.payload, leap.opening.time_ns, pool);
        } else if leap.occupied < known.start {
            holes.open(leap.occupied, known.start, leap.opening, pool);
            self.sent.start = leap.start;
        }
    }

    /// Place a segment at the end of the stream, beyond it, or before it.
    fn place_elsewhere(
        &mut self,
        (start, end, occupied): (i64, i64, i64),
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let known = self.sent.start..self.sent.next;
        let older = (end.min(known.start) - start).max(0);
        if older > 0 {
            // Sent before the first segment of the capture.
            self.sent.start = start;
            if end < known.start {
                self.open_hole(end, known.start, segment, pool);
            }
        }
        let within = (start.max(known.start), end.min(known.end));
        let upstream_loss = self.recovery.as_mut().and_then(|recovery| recovery.upstream_loss.as_mut());
        let filled = upstream_loss.map_or_else(FilledHoles::default, |upstream_loss| {
            upstream_loss.holes.fill(within.0, within.1, pool)
        });
        let beyond = (end - start.max(known.end)).max(0);
        if start > known.end {
            self.open_hole(known.end, start, segment, pool);
        }
        // Each is part of the payload, so the sum fits.
        let late_bytes = older as u32 + filled.bytes as u32;
        outcome.new_bytes = late_bytes + beyond as u32;
        outcome.repeated_bytes = segment.payload - outcome.new_bytes;
        self.sent.unique_bytes += u64::from(outcome.new_bytes);
        outcome.out_of_order = late_bytes > 0 && outcome.repeated_bytes == 0;
        // Without a finding requested, it still holds that of the previous segment.
        outcome.finding = None;
        let (repeated, opening) = (outcome.repeated_bytes, filled.opening);
        let is_last = occupied >= known.end;
        let placed = Placement { start, end, is_last, repeated, late: late_bytes, opening };
        if self.is_probe_with_more(&placed) {
            // The window opened. The byte of the probe is no retransmission.
        } else if repeated > 0 || outcome.out_of_order {
            outcome.finding = Some(self.classify(&placed, segment, pool));
        } else if segment.payload == 0 && occupied <= known.end {
            outcome.finding = self.classify_control(segment, occupied, pool);
        }
        if segment.payload > 0 {
            self.sent.segments = self.sent.segments.saturating_add(1);
            self.note_size(segment.payload, end);
        }
        if occupied > known.end {
            self.advance(occupied, segment.payload, segment.time_ns, pool);
        }
        // The acknowledgement of a duplicated packet is for the first of both.
        if outcome.position < known.end && !outcome.is_network_duplicate() {
            let until = self.sent.next;
            self.recovery_mut().mark_ambiguous((outcome.position, occupied), until);
        }
    }

    /// Open a hole: `segment` shows that `start..end` was skipped.
    fn open_hole(&mut self, start: i64, end: i64, segment: &Segment<'_>, pool: &mut Pool) {
        let opening = self.opening_by(segment);
        // Until the first data of the capture are acknowledged, what a segment skips may be in flight.
        let is_sent_before = self.began_before_capture() && self.acknowledged.position <= FIRST_SEEN;
        let holes = &mut self.recovery_mut().upstream_loss_mut().holes;
        holes.open(start, end, opening, pool);
        if is_sent_before {
            holes.begin_after(end);
        }
    }

    fn opening_by(&self, segment: &Segment<'_>) -> HoleOpening {
        HoleOpening {
            time_ns: segment.time_ns,
            timestamp: segment.tcp.options.timestamp.map(|(value, _)| value),
            ip_id: segment.ip.ip_id,
            segments: self.sent.segments,
        }
    }
}
