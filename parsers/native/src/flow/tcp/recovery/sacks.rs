//! Acknowledgements during recovery: SACK blocks (RFC 2018), D-SACK (RFC 2883).

use super::recovery_state::RecoveryState;
use super::retransmission::Acknowledgement;

impl RecoveryState {
    /// Process an acknowledgement that advances from `before` to `position`. Returns the end of the data that its
    /// SACK blocks report as the first, if they are the newest and were sent once.
    pub fn on_acknowledgement(
        &mut self,
        (before, position): (i64, i64),
        answer: &Acknowledgement,
    ) -> Option<i64> {
        let Acknowledgement { time_ns, blocks, next, .. } = *answer;
        self.last_ack_ns = time_ns;
        let is_spurious_timeout = answer.has_sack && self.shows_spurious_timeout(before, position, &blocks);
        self.note_missed(before, time_ns);
        if position > before {
            self.on_progress(answer);
        }
        if is_spurious_timeout {
            self.undo_timeout();
        }
        self.has_sack |= answer.has_blocks;
        let known = self.sacked.end();
        for (at, block) in blocks.iter().enumerate() {
            let Some((start, end)) = *block else { continue };
            // RFC 2883 section 4: the first block, below the acknowledgement or within the second.
            let is_within =
                |other: &Option<(i64, i64)>| other.is_some_and(|other| other.0 <= start && end <= other.1);
            if at == 0 && (end <= position || is_within(&blocks[1])) {
                if !answer.is_copy {
                    self.on_duplicate_sack((start, end), answer);
                }
            } else if start >= answer.position && end <= next && (at == 0 || !self.sacked.has(start, end)) {
                // All but the first block mostly repeat those of acknowledgements before (RFC 2018 section 4).
                self.judge_sacked((start, end), answer);
                self.sacked.add(start, end);
            }
        }
        if position > before && self.has_sack {
            self.continue_unfinished(time_ns, next);
        }
        self.is_over = self.is_settled();
        self.sacked.end().filter(|&end| Some(end) > known && self.is_sent_once(end))
    }
}
