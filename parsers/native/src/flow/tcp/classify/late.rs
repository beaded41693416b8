//! Late data: reordered, or lost upstream of the capture point and retransmitted.

use super::class::{Class, Evidence};
use super::ip_id_order::RelativeAge;
use super::{OVERTAKEN_NS, Placement};
use crate::flow::holes::HoleOpening;
use crate::flow::outstanding::Pool;
use crate::flow::tcp::Segment;
use crate::flow::tcp::half_connection::{HalfConnection, elapsed};
use crate::flow::tcp::recovery::episode::{RecoveryEpisode, RecoveryStart};
use crate::flow::tcp::recovery::upstream_loss::RepairedLoss;
use crate::packet::seq::SeqNumber;

impl HalfConnection {
    /// Whether a late segment was reordered or retransmitted.
    pub(super) fn class_of_late(
        &self,
        opening: Option<HoleOpening>,
        segment: &Segment<'_>,
    ) -> (Class, Evidence) {
        let class = |is_sent_again| if is_sent_again { Class::Unseen } else { Class::Reordered };
        let ip = segment.ip;
        let opened = opening.unwrap_or_default();
        // Sent after the packet that opened the hole? Not every host counts its identifications.
        let times = segment.tcp.options.timestamp.map(|(sent, _)| sent).zip(opened.timestamp);
        let later = times.map_or(0, |(sent, opened)| SeqNumber(sent).since(SeqNumber(opened)));
        if later != 0 {
            return (class(later > 0), Evidence::Timestamp);
        }
        if self.order.age(ip.ip_id) != RelativeAge::Unknown {
            let is_newer = |(id, opened): (u16, u16)| id.wrapping_sub(opened) as i16 > 0;
            return (class(ip.ip_id.zip(opened.ip_id).is_none_or(is_newer)), Evidence::IpId);
        }
        // A host repeats nothing within a round trip; equal timestamps mean that its clock ticks
        // slowly.
        let shares = if times.is_some() { 1 } else { 2 };
        let within = self.path_ns().map_or(OVERTAKEN_NS, |rtt_ns| rtt_ns / shares);
        (class(segment.time_ns.saturating_sub(opened.time_ns) > within), Evidence::Time)
    }

    pub(super) fn note_reordering(&mut self, opening: Option<HoleOpening>, segment: &Segment<'_>) {
        let Some(opening) = opening else { return };
        let packets = self.sent.segments.saturating_sub(opening.segments);
        let rare_counts = self.recovery_mut().rare_counts_mut();
        // RFC 4737 section 4.2: reordering extent and late time.
        rare_counts.reordered_by_packets = rare_counts.reordered_by_packets.max(packets);
        let late_ns = segment.time_ns.saturating_sub(opening.time_ns);
        rare_counts.reordered_by_ns = rare_counts.reordered_by_ns.max(late_ns);
    }

    /// A retransmission of data lost upstream may start a recovery like one seen twice: by timeout
    /// if the sender was silent long enough, else by acknowledgements.
    pub(super) fn note_upstream_recovery(&mut self, placed: &Placement, now_ns: i64, pool: &Pool) {
        let is_head = placed.start <= self.acknowledged.position;
        let timeout_ns = self.earliest_upstream_timeout_ns();
        let answer_ns = self.path.latest_answer_ns();
        let (next, progress_ns) = (self.sent.next, self.acknowledged.progress_ns);
        let newest_ns = self.sent.outstanding.newest_ns(pool).unwrap_or(progress_ns);
        let recovery = self.recovery_mut();
        let since = |event_ns: i64| now_ns.saturating_sub(event_ns);
        let is_answer = since(recovery.last_ack_ns.max(progress_ns).max(newest_ns)) <= answer_ns;
        // Duplicate acknowledgements do not restart the timer (RFC 6298 section 5.3).
        let is_due = timeout_ns.is_some_and(|timeout_ns| since(progress_ns) >= timeout_ns);
        if is_head && !is_answer && is_due {
            recovery.on_timeout(next);
            recovery.episode = recovery.episode.map(RecoveryEpisode::without_f_rto);
        } else if recovery.episode.is_none_or(|episode| episode.ended_ns().is_some()) {
            recovery.episode = Some(RecoveryEpisode::new(next, RecoveryStart::Acknowledgements));
        }
    }

    /// Silence after which a timer retransmits data lost upstream of the capture. None if unknown.
    pub(super) fn earliest_upstream_timeout_ns(&self) -> Option<i64> {
        self.path_ns().map(|path_ns| self.path.earliest_upstream_timeout_ns(path_ns))
    }

    /// Count a loss, and keep it until the original may arrive.
    pub(super) fn note_lost_before(
        &mut self,
        placed: &Placement,
        segment: &Segment<'_>,
        (number, segments): (u32, u32),
    ) {
        let lost_ns = placed.opening.map_or(segment.time_ns, |opening| opening.time_ns);
        if let Some(repair_ns) = elapsed(lost_ns, segment.time_ns) {
            self.recovery_mut().upstream_loss_mut().repair.note(repair_ns);
        }
        let rtt_ns = self.path_ns().unwrap_or(0);
        let upstream_loss = self.recovery_mut().upstream_loss_mut();
        upstream_loss.events.note(lost_ns, rtt_ns, segments);
        let (Placement { start, end, .. }, time_ns) = (*placed, segment.time_ns);
        upstream_loss.remember(RepairedLoss { start, end, segments, time_ns, number });
    }
}
