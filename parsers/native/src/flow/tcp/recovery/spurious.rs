//! Detects spurious retransmissions from the acknowledgements after them.

use super::episode::RecoveryEpisode;
use super::recovery_state::RecoveryState;
use super::retransmission::{Acknowledgement, SpuriousRetransmission};
use super::scoreboard::Scoreboard;
use crate::flow::tcp::classify::class::Evidence;
use crate::packet::seq::SeqNumber;

/// Limit of spurious retransmissions kept for the table of losses. Those beyond are only counted.
const MAX_VERDICTS: usize = 4_096;

impl RecoveryState {
    /// Evidence that retransmission `number` was spurious.
    pub fn verdict(&self, number: u32) -> Option<Evidence> {
        self.verdicts().iter().find(|verdict| verdict.number == number).map(|verdict| verdict.evidence)
    }

    /// The receiver reported `start..end` as a duplicate: its retransmissions were spurious, the
    /// newest first. A retransmission of more data must be duplicated entirely.
    pub fn on_duplicate_sack(&mut self, (start, end): (i64, i64), answer: &Acknowledgement) {
        let Acknowledgement { time_ns, earliest_ns, .. } = *answer;
        let mut left = end.saturating_sub(start);
        let mut found = Vec::new();
        for resent in self.resent.iter_mut().rev() {
            let length = resent.end - resent.start;
            let overlap =
                (resent.end.min(end) - resent.start.max(start)).min(length - i64::from(resent.doubled));
            if overlap <= 0 || left <= 0 {
                continue;
            }
            left -= overlap;
            // Not more than a payload.
            resent.doubled += overlap as u32;
            // The retransmission arrived first, and the report follows so soon that it is rather
            // for a network duplicate (RFC 3708 section 2) than for the original. No RFC defines
            // how soon; `docs/tcp.md` gives the effect of an eighth of a round trip.
            let is_of_copy =
                resent.arrived_ns < time_ns && time_ns.saturating_sub(resent.arrived_ns) < earliest_ns / 4;
            if i64::from(resent.doubled) == length && resent.spurious.is_none() && !is_of_copy {
                found.extend(resent.mark_spurious(Evidence::DuplicateSack));
            }
        }
        self.record(&found);
        self.end_if_needless(time_ns);
    }

    /// Whether the first acknowledgement of a retransmission was for the original: it echoes an
    /// older timestamp (Eifel detection algorithm, RFC 3522 section 3.2), or arrives sooner than a
    /// round trip to the receiver.
    pub(crate) fn judge_acknowledged(&mut self, answer: &Acknowledgement) {
        let mut found = Vec::new();
        let mut head = None;
        for resent in self.resent.iter_mut().filter(|resent| !resent.is_acknowledged) {
            if resent.end > answer.position {
                continue;
            }
            resent.is_acknowledged = true;
            self.awaited -= 1;
            self.delivered_ns = self.delivered_ns.max(resent.time_ns);
            let age =
                answer.echo.zip(resent.timestamp).map(|(echo, sent)| SeqNumber(echo).since(SeqNumber(sent)));
            if age == Some(0) && (resent.is_head || answer.is_late_enough_for(resent)) {
                resent.arrived_ns = answer.time_ns;
            }
            if resent.is_concluded() {
                continue;
            }
            // Without SACK a timeout repeats a whole window, and an echo from before the
            // retransmission of a segment shows that the original arrived, unless it arrived before
            // the head. With SACK, blocks would have reported it earlier.
            if (resent.is_head || !answer.has_sack) && age.is_some_and(|age| age < 0) {
                head = head.or(resent.is_head.then_some(resent.start));
                found.extend(resent.mark_spurious(Evidence::Timestamp));
            } else if answer.is_too_soon_for(resent) {
                found.extend(resent.mark_spurious(Evidence::Time));
            }
        }
        self.record(&found);
        if let (Some(head), Some(echo)) = (head, answer.echo)
            && self.is_older_than_repeats(head, echo)
        {
            self.undo();
        }
    }

    /// Whether an echo is older than the first retransmission of `position`: a sender keeps the timestamp of
    /// the first (`RetransmitTS` of RFC 3522 section 3.2), not of later ones.
    fn is_older_than_repeats(&self, position: i64, echo: u32) -> bool {
        let first = self.resent.iter().find(|resent| resent.start <= position && position < resent.end);
        let sent = first.and_then(|resent| resent.timestamp);
        sent.is_none_or(|sent| SeqNumber(echo).since(SeqNumber(sent)) < 0)
    }

    /// `start..end`, sent at `sent_ns`, arrived; `arrived` is all data that did. Later retransmissions of it
    /// were not needed if the arrival `is_final`: not at a capture beyond which packets may still be lost.
    pub(crate) fn on_arrival(
        &mut self,
        (start, end): (i64, i64),
        sent_ns: i64,
        arrived: &Scoreboard,
        is_final: bool,
    ) {
        let mut found = Vec::new();
        let later = self.resent.iter_mut().rev().take_while(|resent| resent.time_ns > sent_ns);
        for resent in later.filter(|resent| resent.start < end && start < resent.end) {
            if arrived.has(resent.start, resent.end) {
                resent.shows_arrivals = is_final;
                found.extend(is_final.then(|| resent.mark_spurious(Evidence::Arrived)).flatten());
            }
        }
        self.record(&found);
    }

    /// The retransmission of `start..end` at `sent_ns` reached a receiver that had the data.
    pub(crate) fn on_needless_arrival(&mut self, (start, end): (i64, i64), sent_ns: i64) {
        let mut of_time = self.resent.iter_mut().rev().filter(|resent| resent.time_ns == sent_ns);
        let found = of_time.find(|resent| start <= resent.start && resent.end <= end);
        if let Some(verdict) = found.and_then(|resent| resent.mark_spurious(Evidence::Arrived)) {
            self.record(&[verdict]);
        }
    }

    /// A SACK block reports `start..end` for the first time: if sooner than its retransmission can
    /// have arrived, it is for the original.
    pub(crate) fn judge_sacked(&mut self, (start, end): (i64, i64), answer: &Acknowledgement) {
        let mut found = Vec::new();
        // The newest are last, so mostly none is checked.
        let newest = self.resent.iter_mut().rev().take_while(|resent| answer.is_too_soon_for(resent));
        for resent in newest.filter(|resent| start <= resent.start && resent.end <= end) {
            if resent.spurious.is_none() && !self.sacked.has(resent.start, resent.end) {
                found.extend(resent.mark_spurious(Evidence::Time));
            }
        }
        self.record(&found);
    }

    /// Whether a timeout was spurious by F-RTO (RFC 5682 section 2.1): the second acknowledgement
    /// in a row advances while only the head was retransmitted.
    pub(crate) fn judge_forward_rto(&mut self) {
        let Some(episode) = self.episode else { return };
        let is_open = episode.is_timeout() && episode.ended_ns().is_none();
        if !is_open || (episode.sent, episode.progressed) != (1, 1) {
            return;
        }
        if let Some(head) = self.resent.last_mut()
            && head.is_head
            && !head.is_concluded()
        {
            let verdict = head.mark_spurious(Evidence::ForwardRto);
            self.record(verdict.as_slice());
            self.undo_timeout();
        }
    }

    /// A sender that learns that every retransmission of a recovery was a duplicate ends the
    /// recovery (RFC 3708 section 3, which Linux follows whether or not a network duplicated them).
    fn end_if_needless(&mut self, time_ns: i64) {
        let Some(episode) = &mut self.episode else { return };
        let mut of_episode = self.resent.iter().rev().take(episode.sent_in_all());
        if episode.sent > 0 && of_episode.all(|resent| i64::from(resent.doubled) >= resent.end - resent.start)
        {
            episode.end(time_ns);
        }
    }

    /// Whether the acknowledgement of data up to `position`, with `blocks`, is the first of data sent
    /// once and before a timeout after which only the head was retransmitted: these data were late
    /// and not lost (F-RTO with SACK, RFC 5682 section 3.1).
    pub(crate) fn shows_spurious_timeout(
        &self,
        before: i64,
        position: i64,
        blocks: &[Option<(i64, i64)>],
    ) -> bool {
        let is_open = |episode: &RecoveryEpisode| episode.ended_ns().is_none() && episode.sent == 1;
        let Some(episode) = self.episode.filter(|episode| episode.has_f_rto() && is_open(episode)) else {
            return false;
        };
        let is_original = |end: i64| end <= episode.until && self.resent_ns(end - 1).is_none();
        let sacked = self.sacked.end().unwrap_or(position);
        let highest = blocks.iter().flatten().map(|block| block.1).max().unwrap_or(sacked);
        (position > before && !self.sacked.has(position - 1, position) && is_original(position))
            || (highest > sacked && is_original(highest))
    }

    /// A sender that detects a spurious timeout ends the recovery (RFC 4015).
    pub(crate) fn undo_timeout(&mut self) {
        self.episode = self.episode.filter(|episode| !episode.is_timeout());
    }

    /// The same for a spurious retransmission; a recovery that acknowledgements started goes on while
    /// retransmissions are in flight.
    fn undo(&mut self) {
        match self.episode {
            Some(episode) if !episode.is_timeout() && self.awaited > 0 => {}
            _ => self.episode = None,
        }
    }

    /// Count and keep spurious retransmissions.
    pub(crate) fn record(&mut self, verdicts: &[SpuriousRetransmission]) {
        for verdict in verdicts {
            if verdict.is_known {
                let mut known = self.spurious_mut().iter_mut().rev();
                if let Some(known) = known.find(|known| known.number == verdict.number) {
                    known.evidence = verdict.evidence;
                }
                continue;
            }
            self.tally.spurious = self.tally.spurious.saturating_add(verdict.segments);
            if self.verdicts().len() < MAX_VERDICTS {
                self.spurious_mut().push(*verdict);
            }
        }
    }
}
