//! Classifies segments that repeat others or arrive late.
//!
//! The checks run in order of certainty: a duplicate of an earlier packet (identification,
//! timestamp); a probe (window); a retransmission by timer or by acknowledgements (RFC 5681, RFC
//! 6298, RFC 6675, RFC 8985).

pub mod class;
pub(crate) mod duplicates;
pub(crate) mod ip_id_order;
pub(crate) mod placement;

use self::class::{Class, Classification, Evidence};
use self::duplicates::Origin;
use self::ip_id_order::RelativeAge;
use super::Segment;
use super::half_connection::{HalfConnection, Sight};
use super::recovery::recovery_state::{NEVER, RecoveryEpisode, RecoveryStart, RecoveryState, Retransmission};
use crate::flow::holes::HoleOpening;
use crate::flow::outstanding::Pool;
use crate::packet::event::TcpFlags;
use crate::packet::seq::SeqNumber;

/// A sender responds to an acknowledgement within this time, plus the path to it and back.
const ANSWER_NS: i64 = 10_000_000;
/// Without a known round-trip time, a reordered packet arrives within this time.
const OVERTAKEN_NS: i64 = 3_000_000;

/// A sender that answers at once does so within this time, beyond the way to it and back: the time to wake
/// up a machine, not a timer.
const PROMPT_NS: i64 = 500_000;

/// `DupThresh` of RFC 6675 section 2.
const DUPLICATES: u16 = 3;

/// No host sends a keep-alive sooner; one byte repeated sooner is data.
const KEEP_ALIVE_NS: i64 = 1_000_000_000;

/// Position of a data segment that is not the next in its stream.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    pub start: i64,
    /// End of the segment, exclusive.
    pub end: i64,
    /// Whether no later data were sent.
    pub is_last: bool,
    pub repeated: u32,
    /// New bytes below the highest position seen.
    pub late: u32,
    /// When the hole that it fills opened.
    pub opening: Option<HoleOpening>,
}

impl HalfConnection {
    /// Classify a segment with repeated or late data.
    pub(super) fn classify(
        &mut self,
        placed: &Placement,
        segment: &Segment<'_>,
        pool: &Pool,
    ) -> Classification {
        let (class, evidence) = match placed.opening {
            _ if placed.repeated > 0 => self.class_of_repeated(placed, segment, pool),
            opening => self.class_of_late(opening, segment),
        };
        let bytes = if placed.repeated > 0 { placed.repeated } else { placed.late };
        let segments = self.packets_of(bytes);
        let number = self.recovery_mut().count(class, segments);
        match class {
            Class::Reordered => self.note_reordering(placed.opening, segment),
            Class::Unseen => {
                self.note_upstream_recovery(placed, segment.time_ns, pool);
                self.note_lost_before(placed, segment, (number, segments));
            }
            _ if class.is_retransmission() => {
                self.note_retransmission(class, placed, segment, pool, (number, segments));
            }
            _ => {}
        }
        if placed.repeated == 0 {
            let late = &mut self.recovery_mut().rare_counts_mut().out_of_order_packets;
            *late = late.saturating_add(1);
        }
        Classification { class, evidence, number }
    }

    /// Classify a SYN or FIN whose sequence number was seen before.
    pub(super) fn classify_control(
        &mut self,
        segment: &Segment<'_>,
        end: i64,
        pool: &Pool,
    ) -> Option<Classification> {
        let flags = segment.tcp.flags;
        let is_syn = flags.has(TcpFlags::SYN);
        let syn_acks = u16::from(self.syn_acks);
        let of_its_kind =
            if flags.has(TcpFlags::ACK) { syn_acks } else { self.syns.saturating_sub(syn_acks) };
        if is_syn && of_its_kind == 1 {
            // In a simultaneous open, a SYN/ACK has the sequence number of the SYN (RFC 9293
            // section 3.5, figure 7), and data may have arrived before it.
            return None;
        }
        let (class, evidence) = match self.origin(segment).of_copy() {
            Some(evidence) => (Class::NetworkDuplicate, evidence),
            None if self.is_last_at_once(end, segment.time_ns, pool) => {
                (Class::NetworkDuplicate, Evidence::Time)
            }
            None => (if is_syn { Class::Syn } else { Class::Fin }, Evidence::Flags),
        };
        if is_syn && class == Class::NetworkDuplicate {
            // The handshake still shows its round-trip time.
            self.syns = self.syns.saturating_sub(1);
            self.syn_acks = self.syn_acks.saturating_sub(u8::from(flags.has(TcpFlags::ACK)));
        }
        let number = self.recovery_mut().count(class, 1);
        Some(Classification { class, evidence, number })
    }

    /// Classify a segment without data whose sequence number is one below the next.
    pub(super) fn classify_probe(&mut self, segment: &Segment<'_>) -> Classification {
        let (class, evidence) = match self.origin(segment).of_copy() {
            Some(evidence) => (Class::NetworkDuplicate, evidence),
            None => (self.kind_of_probe(), Evidence::Window),
        };
        let number = self.recovery_mut().count(class, 1);
        Classification { class, evidence, number }
    }

    /// Whether all data are acknowledged and `position` is one before the next.
    pub(super) fn is_before_next(&self, position: i64) -> bool {
        position == self.next - 1 && self.acknowledged == self.next
    }

    pub(super) fn is_window_closed(&self) -> bool {
        self.window_end <= self.acknowledged
    }

    /// Whether a segment begins with the byte of the last probe, and otherwise data
    /// beyond all seen: the sender goes on from SND.UNA, whether or not the probe's byte fitted
    /// (RFC 9293 section 3.8.6.1).
    pub(super) fn is_probe_with_more(&self, placed: &Placement) -> bool {
        let probe_end = self.recovery.as_ref().and_then(|_| self.rare_counts().last_probe_end);
        let after_first = placed.start + 1;
        let repeats_the_first = placed.repeated == 1 && placed.late == 0 && placed.end > after_first;
        repeats_the_first && probe_end == Some(after_first)
    }

    /// A sender that probed for window has data to send. If it probes again, it has not received
    /// the window update.
    fn kind_of_probe(&mut self) -> Class {
        let last_probe_end = self.rare_counts().last_probe_end;
        if !self.is_window_closed() && last_probe_end != Some(self.next) {
            return Class::KeepAlive;
        }
        let next = self.next;
        self.recovery_mut().rare_counts_mut().last_probe_end = Some(next);
        Class::ZeroWindowProbe
    }

    fn class_of_repeated(
        &mut self,
        placed: &Placement,
        segment: &Segment<'_>,
        pool: &Pool,
    ) -> (Class, Evidence) {
        match self.origin(segment) {
            Origin::Copy(evidence) => return (Class::NetworkDuplicate, evidence),
            // If its data arrived before, it is a duplicate of a retransmission.
            Origin::Older(evidence) | Origin::Overtaken(evidence)
                if self.recovery_mut().retract_loss(placed.start, placed.end, evidence) =>
            {
                return (Class::Reordered, evidence);
            }
            Origin::Older(evidence) => return (Class::NetworkDuplicate, evidence),
            Origin::Unknown if self.is_with_same_stamp(placed, segment, pool) => {
                return (Class::NetworkDuplicate, Evidence::Timestamp);
            }
            Origin::Unknown
                if self.is_too_soon_for_another(placed, segment, pool)
                    || (placed.repeated == segment.payload
                        && self.is_last_at_once(placed.end, segment.time_ns, pool)) =>
            {
                return (Class::NetworkDuplicate, Evidence::Time);
            }
            Origin::Overtaken(_) | Origin::Newer | Origin::Unknown => {}
        }
        let idle_ns = segment.time_ns.saturating_sub(self.progress_ns);
        if segment.payload == 1 && self.is_before_next(placed.start) && idle_ns >= KEEP_ALIVE_NS {
            return (self.kind_of_probe(), Evidence::Window);
        }
        if self.is_window_closed() && placed.start >= self.acknowledged {
            return (Class::ZeroWindowProbe, Evidence::Window);
        }
        self.class_of_retransmission(placed, segment.time_ns, pool)
    }

    /// Whether a late segment was reordered or retransmitted.
    fn class_of_late(&self, opening: Option<HoleOpening>, segment: &Segment<'_>) -> (Class, Evidence) {
        let class = |is_sent_again| if is_sent_again { Class::Unseen } else { Class::Reordered };
        let ip = segment.ip;
        let opened = opening.unwrap_or_default();
        if self.order.age(ip.ip_id) != RelativeAge::Unknown {
            // Sent after the packet that opened the hole?
            let is_newer = |(id, opened): (u16, u16)| id.wrapping_sub(opened) as i16 > 0;
            return (class(ip.ip_id.zip(opened.ip_id).is_none_or(is_newer)), Evidence::IpId);
        }
        let times = segment.tcp.options.timestamp.map(|(sent, _)| sent).zip(opened.timestamp);
        let later = times.map_or(0, |(sent, opened)| SeqNumber(sent).since(SeqNumber(opened)));
        if later != 0 {
            return (class(later > 0), Evidence::Timestamp);
        }
        // A host repeats nothing within a round trip; equal timestamps mean that its clock ticks
        // slowly.
        let shares = if times.is_some() { 1 } else { 2 };
        let within = self.path_ns().map_or(OVERTAKEN_NS, |rtt_ns| rtt_ns / shares);
        (class(segment.time_ns.saturating_sub(opened.time_ns) > within), Evidence::Time)
    }

    /// The round-trip time of the whole path, as far as it is known.
    pub(super) fn path_ns(&self) -> Option<i64> {
        let handshake_ns = i64::from(self.handshake_us.1) * 1_000;
        let repair_ns = self.upstream_loss().and_then(|upstream_loss| upstream_loss.repair.smoothed_ns());
        let known =
            [handshake_ns, self.round_trips.timer().smoothed_ns().unwrap_or(0), repair_ns.unwrap_or(0)];
        let longest_ns = known.into_iter().fold(0, i64::max);
        (longest_ns > 0).then_some(longest_ns)
    }

    /// A segment within this time after an acknowledgement may be a response to it.
    pub(super) fn latest_answer_ns(&self) -> i64 {
        let near_ns = i64::from(self.handshake_us.0) * 1_000;
        near_ns.saturating_add(near_ns / 2).saturating_add(ANSWER_NS)
    }

    /// The latest answer of a sender that answers at once. A simulated agent takes no time.
    fn prompt_answer_ns(&self) -> i64 {
        let near_ns = i64::from(self.handshake_us.0) * 1_000;
        if self.is_simulated() { 0 } else { near_ns.saturating_add(near_ns / 2).saturating_add(PROMPT_NS) }
    }

    /// Silence after which a timeout is assumed to retransmit the first unacknowledged segment: 0.7
    /// of the timeout. Without SACK only a timer retransmits without a cue, and no timeout is below
    /// a round trip (RFC 6298 equation 2.3), so a round trip is enough where the capture sees the
    /// sender's silence.
    fn earliest_timeout_ns(&self, near_ns: i64) -> i64 {
        let usual_ns = self.round_trips.timer().timeout_ns() / 10 * 7;
        match self.path_ns() {
            Some(path_ns) if self.refuses_sack && near_ns < path_ns / 4 => usual_ns.min(path_ns),
            _ => usual_ns,
        }
    }

    /// Whether duplicate acknowledgements or SACK blocks report the first unacknowledged segment, of
    /// `length` bytes, lost (RFC 5681 section 3.2; `IsLost` of RFC 6675 section 4).
    fn is_reported_lost(&self, length: i64) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| {
            let sacked = i64::try_from(recovery.sacked.bytes()).unwrap_or(i64::MAX);
            recovery.duplicate_acks >= DUPLICATES || sacked > length * i64::from(DUPLICATES - 1)
        })
    }

    fn class_of_retransmission(&mut self, placed: &Placement, now_ns: i64, pool: &Pool) -> (Class, Evidence) {
        let near_ns = i64::from(self.handshake_us.0) * 1_000;
        let timer = self.round_trips.timer();
        let Self { next, acknowledged, progress_ns, refuses_sack, ref outstanding, .. } = *self;
        let is_near = self.path_ns().is_some_and(|path_ns| near_ns < path_ns / 4);
        let is_reported_lost = self.is_reported_lost(placed.end - placed.start);
        let earliest_timeout_ns = self.earliest_timeout_ns(near_ns);
        let answer_ns = self.latest_answer_ns();
        let prompt_ns = self.prompt_answer_ns();
        let is_simulated = self.is_simulated();
        let unheard_timeout_ns = self.earliest_upstream_timeout_ns();
        let newest_ns = outstanding.newest_ns(pool);
        let oldest_ns = outstanding.oldest_ns(pool);
        let recovery = self.recovery.get_or_insert_default();
        let since = |event_ns: i64| now_ns.saturating_sub(event_ns);
        let quiet_ns = since(recovery.last_ack_ns.max(progress_ns));
        let is_prompt = quiet_ns <= prompt_ns;
        let answers_at_once = recovery.promptness.is_prompt(is_simulated);
        let is_answer = if answers_at_once { is_prompt } else { quiet_ns <= answer_ns };
        let is_head = placed.start <= acknowledged && acknowledged < placed.end;
        let in_recovery = recovery.episode.is_some_and(|episode| match episode.ended_ns() {
            None => true,
            // The sender receives it later than the capture point.
            Some(ended_ns) => {
                placed.start < episode.until && since(ended_ns) <= near_ns.saturating_add(near_ns / 2)
            }
        });
        // The sender knows of the loss and repairs it when its pacing permits.
        let is_paced = is_near && is_reported_lost && !in_recovery && !answers_at_once;
        let timeout_ns = if is_paced { timer.timeout_ns() } else { earliest_timeout_ns };
        // No acknowledgement arrived since the tail was sent.
        let tail_ns =
            newest_ns.max(recovery.resent_ns(next - 1)).map_or(0, |sent| since(sent.max(progress_ns)));
        // A sender with probes restarts its timer with new data (RFC 8985 section 7.2).
        let restarted_ns = newest_ns.filter(|_| is_paced).unwrap_or(progress_ns).max(progress_ns);
        let head_ns =
            recovery.resent_ns(acknowledged).or(oldest_ns).map_or(0, |sent| since(sent.max(restarted_ns)));
        // The probe is due no later than the timer of the head (RFC 8985 section 7.2).
        let is_probe = placed.is_last
            && !refuses_sack
            && !is_simulated
            && !in_recovery
            && !recovery.has_probed
            && recovery.duplicate_acks == 0
            && recovery.sacked.is_empty()
            && (tail_ns >= timer.probe_ns(false) / 4 * 3 || (!is_head && head_ns >= timeout_ns))
            && !(is_head && tail_ns > timer.probe_ns(true).max(timer.timeout_ns()) / 2 * 3);
        if is_probe && acknowledged < placed.end {
            recovery.has_probed = true;
            return (Class::TailLossProbe, Evidence::Timer);
        }
        let is_again = in_recovery && recovery.has_resent_in_recovery(acknowledged);
        // A sender learns that a retransmission was lost only if later data arrive (RFC 8985 section 6.2). This
        // is checked near the sender only: elsewhere an acknowledgement may have passed the capture and not yet
        // have reached the sender.
        let sacked_ns = recovery.sacked.end().and_then(|end| outstanding.sent_ns(end as u32, pool));
        let is_unreported = is_again
            && recovery.has_sack
            && is_near
            && !recovery.has_arrived_since_resent(acknowledged, sacked_ns);
        let is_timer = match (is_answer, refuses_sack) {
            // Agents of a simulator have no shorter timer.
            (false, _) if answers_at_once && is_simulated => true,
            (false, false) => head_ns >= timeout_ns || is_unreported,
            (false, true) => head_ns >= timeout_ns || is_again,
            // Acknowledgements trigger a segment once in a recovery (RFC 6582 section 3.2).
            (true, true) => is_again,
            // SACK blocks do not restart the timer (RFC 6298 section 5.3).
            (true, false) => {
                let is_due = is_unreported || (is_again && !is_prompt && head_ns >= timer.timeout_ns());
                is_due && !(is_simulated && answers_at_once)
            }
        };
        if is_head && is_timer {
            recovery.on_timeout(next);
            return (Class::Rto, Evidence::Timer);
        }
        recovery.promptness.note(is_prompt);
        if placed.end <= acknowledged && unheard_timeout_ns.is_some_and(|timeout_ns| quiet_ns >= timeout_ns) {
            // The acknowledgement was lost downstream of the capture.
            return (recovery.on_inferred(placed.is_last && !refuses_sack, next), Evidence::Timer);
        }
        if in_recovery && let Some(episode) = recovery.episode {
            if episode.is_timeout()
                && recovery.has_sack
                && recovery.has_lost_in_recovery(placed.start, sacked_ns)
            {
                recovery.episode = Some(RecoveryEpisode::new(next, RecoveryStart::Acknowledgements));
                return (Class::Fast, Evidence::SentBefore);
            }
            let class = match (episode.start, recovery.has_sack) {
                _ if episode.is_timeout() => Class::Rto,
                (RecoveryStart::UnfinishedRecovery, _) if episode.sent == 0 => Class::Fast,
                (_, true) => Class::Sack,
                (_, false) => Class::Fast,
            };
            return (class, Evidence::Recovery);
        }
        let last_ns =
            recovery.resent_ns(placed.start).or_else(|| outstanding.sent_ns(placed.end as u32, pool));
        let evidence = if recovery.sacked.has_beyond(placed.start) {
            Evidence::Sack
        } else if last_ns.is_some_and(|last_ns| last_ns < recovery.delivered_ns) {
            Evidence::SentBefore
        } else if recovery.duplicate_acks > 0 && is_head {
            Evidence::DuplicateAcks
        } else if placed.start < recovery.missed.0 && since(recovery.missed.1) <= answer_ns {
            // The sender had not yet received the acknowledgement of the original.
            Evidence::DuplicateAcks
        } else {
            return (Class::Unexplained, Evidence::Nothing);
        };
        recovery.episode = Some(RecoveryEpisode::new(next, RecoveryStart::Acknowledgements));
        (Class::Fast, evidence)
    }

    fn note_retransmission(
        &mut self,
        class: Class,
        placed: &Placement,
        segment: &Segment<'_>,
        pool: &Pool,
        (number, segments): (u32, u32),
    ) {
        let time_ns = segment.time_ns;
        let original_ns = self.outstanding.sent_ns(placed.end as u32, pool);
        let (acknowledged, rtt_ns) = (self.acknowledged, self.path_ns().unwrap_or(0));
        let has_arrived = self.has_arrived(placed.start, placed.end);
        let is_final = self.is_simulated();
        // Packets that passed the farther capture of a pair may have been lost behind it.
        let shows_arrivals = is_final || (self.sight == Sight::Pair && !has_arrived);
        let recovery = self.recovery_mut();
        let previous_ns = recovery.resent_ns(placed.start).or(original_ns).unwrap_or(time_ns);
        let is_acknowledged = placed.end <= acknowledged;
        recovery.remember(Retransmission {
            start: placed.start,
            end: placed.end,
            time_ns,
            previous_ns,
            rtt_ns,
            timestamp: segment.tcp.options.timestamp.map(|(sent, _)| sent),
            is_head: placed.start <= acknowledged,
            segments,
            number,
            is_acknowledged,
            arrived_ns: NEVER,
            doubled: 0,
            shows_arrivals,
            spurious: match is_acknowledged {
                true => Some(Evidence::Acknowledged),
                false => (has_arrived && is_final).then_some(Evidence::Arrived),
            },
        });
        if let Some(episode) = recovery.episode.as_mut().filter(|_| class != Class::TailLossProbe) {
            episode.sent = episode.sent.saturating_add(1);
        }
        let tally = &mut recovery.tally;
        tally.retransmitted_packets = tally.retransmitted_packets.saturating_add(1);
        tally.retransmitted_bytes += u64::from(placed.repeated);
    }

    fn note_reordering(&mut self, opening: Option<HoleOpening>, segment: &Segment<'_>) {
        let Some(opening) = opening else { return };
        let packets = self.segments.saturating_sub(opening.segments);
        let rare_counts = self.recovery_mut().rare_counts_mut();
        // RFC 4737 section 4.2: reordering extent and late time.
        rare_counts.reordered_by_packets = rare_counts.reordered_by_packets.max(packets);
        let late_ns = segment.time_ns.saturating_sub(opening.time_ns);
        rare_counts.reordered_by_ns = rare_counts.reordered_by_ns.max(late_ns);
    }
}

impl RecoveryState {
    /// Infer a timeout for data already acknowledged; a first retransmission of the last segment is
    /// a tail loss probe.
    fn on_inferred(&mut self, may_be_probe: bool, next: i64) -> Class {
        if may_be_probe && !self.has_probed {
            self.has_probed = true;
            return Class::TailLossProbe;
        }
        self.on_timeout(next);
        Class::Rto
    }
}
