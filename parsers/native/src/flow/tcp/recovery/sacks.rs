//! Acknowledgements during recovery: SACK blocks (RFC 2018), D-SACK (RFC 2883).

use super::spurious::Acknowledgement;
use crate::flow::tcp::Segment;
use crate::flow::tcp::classify::ip_id_order::RelativeAge;
use crate::flow::tcp::half_connection::HalfConnection;

/// RTT samples needed to know the smallest: a single one may include a delayed-acknowledgement
/// timer.
const MIN_SAMPLES: u64 = 3;

impl HalfConnection {
    /// Process `segment` from `acknowledger`, which advances the acknowledgement from `before` to
    /// `position`.
    #[inline(never)]
    pub(crate) fn on_acknowledgement_in_recovery(
        &mut self,
        (before, position): (i64, i64),
        acknowledger: &HalfConnection,
        segment: &Segment<'_>,
    ) {
        let (acknowledged, next) = (self.acknowledged, self.next);
        let blocks = self.blocks_of(segment);
        let answer = Acknowledgement {
            position: acknowledged,
            time_ns: segment.time_ns,
            echo: segment.tcp.options.timestamp.map(|(_, echo)| echo),
            earliest_ns: self.earliest_ack_ns(acknowledger),
            has_sack: !self.refuses_sack,
        };
        let is_copy = acknowledger.order.age(segment.ip.ip_id) == RelativeAge::Seen;
        let recovery = self.recovery_mut();
        recovery.last_ack_ns = segment.time_ns;
        let is_spurious_timeout =
            answer.has_sack && recovery.shows_spurious_timeout(before, position, &blocks);
        recovery.note_missed(before, segment.time_ns);
        if position > before {
            recovery.on_progress(&answer);
        }
        if is_spurious_timeout {
            recovery.undo_timeout();
        }
        recovery.has_sack |= !segment.sack.is_empty();
        for (at, block) in blocks.iter().enumerate() {
            let Some((start, end)) = *block else { continue };
            // RFC 2883 section 4: the first block, below the acknowledgement or within the second.
            let is_within =
                |other: &Option<(i64, i64)>| other.is_some_and(|other| other.0 <= start && end <= other.1);
            if at == 0 && (end <= position || is_within(&blocks[1])) {
                if !is_copy {
                    recovery.on_duplicate_sack((start, end), &answer);
                }
            } else if start >= acknowledged && end <= next {
                recovery.judge_sacked((start, end), &answer);
                recovery.sacked.add(start, end);
            }
        }
        if position > before && recovery.has_sack {
            recovery.continue_unfinished(segment.time_ns, next);
        }
        recovery.is_over = recovery.is_settled();
    }

    fn blocks_of(&self, segment: &Segment<'_>) -> [Option<(i64, i64)>; 4] {
        let mut blocks = [None; 4];
        for (block, (start, end)) in blocks.iter_mut().zip(segment.sack) {
            let ends = self.position(*start).zip(self.position(*end));
            *block = ends.filter(|(start, end)| start < end);
        }
        blocks
    }

    /// An acknowledgement of `acknowledger` sooner than this after a packet is not for it: half of
    /// the shortest round trip to it, from data or SYN. 0 if unknown.
    fn earliest_ack_ns(&self, acknowledger: &HalfConnection) -> i64 {
        if self.round_trips.count() < MIN_SAMPLES {
            return 0;
        }
        let shortest_ns = i64::try_from(self.round_trips.min_ns()).unwrap_or(i64::MAX);
        let of_syn_ns = Some(i64::from(acknowledger.handshake_us.0) * 1_000).filter(|&syn_ns| syn_ns > 0);
        of_syn_ns.map_or(shortest_ns, |syn_ns| syn_ns.min(shortest_ns)) / 2
    }
}
