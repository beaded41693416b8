//! Which class a segment is of that repeats others or is late.
//!
//! The questions come in the order of how certain their answers are: is it the same packet as one
//! before (identification, timestamp); is it a probe (window); was it sent by a timer or because of
//! acknowledgements (RFC 5681, RFC 6298, RFC 6675, RFC 8985)?

pub mod class;
pub(crate) mod duplicates;
pub(crate) mod ip_id_order;
pub(crate) mod placement;

use self::class::{Class, Classification, Evidence};
use self::duplicates::Origin;
use self::ip_id_order::RelativeAge;
use super::Segment;
use super::half_connection::{HalfConnection, Sight};
use super::recovery::recovery_state::{NEVER, RecoveryEpisode, RecoveryState, Retransmission};
use crate::flow::holes::HoleOpening;
use crate::flow::outstanding::Pool;
use crate::packet::event::TcpFlags;
use crate::packet::seq::SeqNumber;

/// A sender answers an acknowledgement within this, beyond the way to it and back.
const ANSWER_NS: i64 = 10_000_000;
/// Without a round-trip time, what was overtaken comes within this.
const OVERTAKEN_NS: i64 = 3_000_000;

/// A sender that answers at once does so within this, beyond the way to it and back: what wakes up a
/// machine, not a timer.
const PROMPT_NS: i64 = 500_000;

/// No host asks sooner whether the other side lives; one byte sent again sooner is data.
const KEEP_ALIVE_NS: i64 = 1_000_000_000;

/// Where a segment with data lies that is not simply the next.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// Its first position.
    pub start: i64,
    /// The one behind its last.
    pub end: i64,
    /// Whether nothing was sent behind it.
    pub is_last: bool,
    /// Bytes seen before.
    pub repeated: u32,
    /// Bytes not seen before, below the highest seen.
    pub late: u32,
    /// When the hole opened that it falls into.
    pub opening: Option<HoleOpening>,
}

impl HalfConnection {
    /// What a segment with repeated or late data is.
    pub(super) fn find(&mut self, placed: &Placement, segment: &Segment<'_>, pool: &Pool) -> Classification {
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

    /// A SYN or FIN whose number was seen before.
    pub(super) fn find_control(&mut self, segment: &Segment<'_>) -> Option<Classification> {
        let flags = segment.tcp.flags;
        let is_syn = flags.has(TcpFlags::SYN);
        let syn_acks = u16::from(self.syn_acks);
        let of_its_kind =
            if flags.has(TcpFlags::ACK) { syn_acks } else { self.syns.saturating_sub(syn_acks) };
        if is_syn && of_its_kind == 1 {
            // Where both sides open at once, a SYN/ACK has the number of the SYN (RFC 9293 section 3.5, figure
            // 7); and data may have overtaken it.
            return None;
        }
        let (class, evidence) = match self.origin(segment).of_copy() {
            Some(evidence) => (Class::NetworkDuplicate, evidence),
            None => (if is_syn { Class::Syn } else { Class::Fin }, Evidence::Flags),
        };
        let number = self.recovery_mut().count(class, 1);
        Some(Classification { class, evidence, number })
    }

    /// A segment without data whose number is one before the next.
    pub(super) fn find_probe(&mut self, segment: &Segment<'_>) -> Classification {
        let (class, evidence) = match self.origin(segment).of_copy() {
            Some(evidence) => (Class::NetworkDuplicate, evidence),
            None => (self.kind_of_probe(), Evidence::Window),
        };
        let number = self.recovery_mut().count(class, 1);
        Classification { class, evidence, number }
    }

    /// Whether everything is acknowledged and `position` is one before the next.
    pub(super) fn is_before_next(&self, position: i64) -> bool {
        position == self.next - 1 && self.acknowledged == self.next
    }

    pub(super) fn is_window_closed(&self) -> bool {
        self.window_end <= self.acknowledged
    }

    /// A sender that asked for room has something to send. If it asks again instead, it has not heard of the room
    /// that it has by now.
    fn kind_of_probe(&mut self) -> Class {
        let asked_at = self.rare_counts().asked_at;
        if !self.is_window_closed() && asked_at != Some(self.next) {
            return Class::KeepAlive;
        }
        let next = self.next;
        self.recovery_mut().rare_counts_mut().asked_at = Some(next);
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
            // If what it carries came already, that was a retransmission.
            Origin::Older(evidence) | Origin::Overtaken(evidence)
                if self.recovery_mut().forgive(placed.start, placed.end, evidence) =>
            {
                return (Class::Reordered, evidence);
            }
            Origin::Older(evidence) => return (Class::NetworkDuplicate, evidence),
            Origin::Unknown if self.is_with_same_stamp(placed, segment, pool) => {
                return (Class::NetworkDuplicate, Evidence::Timestamp);
            }
            Origin::Unknown if self.is_too_soon_for_another(placed, segment, pool) => {
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

    /// Whether a late segment was overtaken or sent again.
    fn class_of_late(&self, opening: Option<HoleOpening>, segment: &Segment<'_>) -> (Class, Evidence) {
        let class = |is_sent_again| if is_sent_again { Class::Unseen } else { Class::Reordered };
        let carrier = segment.carrier;
        let opened = opening.unwrap_or_default();
        if self.order.age(carrier.ip_id) != RelativeAge::Unknown {
            // Sent after the packet that passed it over?
            let is_newer = |(id, opened): (u16, u16)| id.wrapping_sub(opened) as i16 > 0;
            return (class(carrier.ip_id.zip(opened.ip_id).is_none_or(is_newer)), Evidence::IpId);
        }
        let times = segment.tcp.options.timestamp.map(|(sent, _)| sent).zip(opened.timestamp);
        let later = times.map_or(0, |(sent, opened)| SeqNumber(sent).since(SeqNumber(opened)));
        if later != 0 {
            return (class(later > 0), Evidence::Timestamp);
        }
        // A host repeats nothing within a round trip; if the timestamps do not tell more, its clock ticks slowly.
        let shares = if times.is_some() { 1 } else { 2 };
        let within = self.path_ns().map_or(OVERTAKEN_NS, |rtt_ns| rtt_ns / shares);
        (class(segment.time_ns.saturating_sub(opened.time_ns) > within), Evidence::Time)
    }

    /// The round-trip time of the whole path, as far as it shows here.
    pub(super) fn path_ns(&self) -> Option<i64> {
        let handshake_ns = i64::from(self.handshake_us.1) * 1_000;
        let repair_ns = self.unseen().and_then(|unseen| unseen.repair.smoothed_ns());
        let known =
            [handshake_ns, self.round_trips.timer().smoothed_ns().unwrap_or(0), repair_ns.unwrap_or(0)];
        let longest_ns = known.into_iter().fold(0, i64::max);
        (longest_ns > 0).then_some(longest_ns)
    }

    /// What comes within this after an acknowledgement may answer it.
    pub(super) fn latest_answer_ns(&self) -> i64 {
        let near_ns = i64::from(self.handshake_us.0) * 1_000;
        near_ns.saturating_add(near_ns / 2).saturating_add(ANSWER_NS)
    }

    /// The same of a sender that answers at once. A simulator's clock stands still meanwhile.
    fn prompt_answer_ns(&self) -> i64 {
        let near_ns = i64::from(self.handshake_us.0) * 1_000;
        if self.is_simulated() { 0 } else { near_ns.saturating_add(near_ns / 2).saturating_add(PROMPT_NS) }
    }

    /// After this much silence a timer repeats the first unacknowledged segment: 0.7 of the timeout. Without
    /// SACK nothing else does it that is not an answer, and no timeout is below a round trip (RFC 6298
    /// equation 2.3), so that this is enough where the capture sees the sender's silence.
    fn soonest_timeout_ns(&self, near_ns: i64) -> i64 {
        let usual_ns = self.round_trips.timer().timeout_ns() / 10 * 7;
        match self.path_ns() {
            Some(path_ns) if self.refuses_sack && near_ns < path_ns / 4 => usual_ns.min(path_ns),
            _ => usual_ns,
        }
    }

    fn class_of_retransmission(&mut self, placed: &Placement, now_ns: i64, pool: &Pool) -> (Class, Evidence) {
        let near_ns = i64::from(self.handshake_us.0) * 1_000;
        let timer = self.round_trips.timer();
        let Self { next, acknowledged, progress_ns, refuses_sack, ref outstanding, .. } = *self;
        let timeout_ns = self.soonest_timeout_ns(near_ns);
        let answer_ns = self.latest_answer_ns();
        let prompt_ns = self.prompt_answer_ns();
        let is_simulated = self.is_simulated();
        let is_near = self.path_ns().is_some_and(|path_ns| near_ns < path_ns / 4);
        let unheard_timeout_ns = self.soonest_unseen_timeout_ns();
        let newest_ns = outstanding.newest_ns(pool);
        let oldest_ns = outstanding.oldest_ns(pool);
        let trouble = self.trouble.get_or_insert_default();
        let since = |event_ns: i64| now_ns.saturating_sub(event_ns);
        let quiet_ns = since(trouble.heard_ns.max(progress_ns));
        let is_prompt = quiet_ns <= prompt_ns;
        let answers_at_once = trouble.promptness.is_prompt(is_simulated);
        let is_answer = if answers_at_once { is_prompt } else { quiet_ns <= answer_ns };
        let is_head = placed.start <= acknowledged && acknowledged < placed.end;
        let in_recovery = trouble.episode.is_some_and(|episode| match episode.ended_ns() {
            None => true,
            // The sender hears of it later than the capture point.
            Some(ended_ns) => {
                placed.start < episode.until && since(ended_ns) <= near_ns.saturating_add(near_ns / 2)
            }
        });
        // Nothing was heard since the tail was sent.
        let tail_ns =
            newest_ns.max(trouble.resent_ns(next - 1)).map_or(0, |sent| since(sent.max(progress_ns)));
        let head_ns =
            trouble.resent_ns(acknowledged).or(oldest_ns).map_or(0, |sent| since(sent.max(progress_ns)));
        // Due is the probe at the latest when the timer of the head is (RFC 8985 section 7.2).
        let is_probe = placed.is_last
            && !(refuses_sack || is_simulated)
            && !in_recovery
            && !trouble.has_probed
            && trouble.duplicate_acks == 0
            && trouble.sacked.is_empty()
            && (tail_ns >= timer.probe_ns(false) / 4 * 3 || (!is_head && head_ns >= timeout_ns))
            && !(is_head && tail_ns > timer.probe_ns(true).max(timer.timeout_ns()) / 2 * 3);
        if is_probe && acknowledged < placed.end {
            trouble.has_probed = true;
            return (Class::TailLossProbe, Evidence::Timer);
        }
        let is_again = in_recovery && trouble.has_resent_in_recovery(acknowledged);
        // Only what was sent later and arrives tells of a retransmission that it was lost (RFC 8985 section 6.2).
        // Away from the sender what it has not heard yet may have passed the capture, and the other way round.
        let is_untold = is_again && trouble.has_sack && is_near && {
            let newest = trouble.sacked.end().and_then(|end| outstanding.sent_ns(end as u32, pool));
            !trouble.has_arrived_since_resent(acknowledged, newest)
        };
        let is_timer = match (is_answer, refuses_sack) {
            // Agents of a simulator have no timer that is shorter.
            (false, _) if answers_at_once && is_simulated => true,
            (false, false) => head_ns >= timeout_ns || is_untold,
            (false, true) => head_ns >= timeout_ns || is_again,
            // Acknowledgements ask for a segment once in a recovery (RFC 6582 section 3.2).
            (true, true) => is_again,
            // SACK blocks do not set the timer anew (RFC 6298 section 5.3).
            (true, false) => {
                let is_due = is_untold || (is_again && head_ns >= timer.timeout_ns());
                is_due && !(is_simulated && answers_at_once)
            }
        };
        if is_head && is_timer {
            trouble.on_timeout(next);
            return (Class::Rto, Evidence::Timer);
        }
        trouble.promptness.note(is_prompt);
        if placed.end <= acknowledged && unheard_timeout_ns.is_some_and(|timeout_ns| quiet_ns >= timeout_ns) {
            // The acknowledgement was lost behind the capture.
            return (trouble.on_inferred(placed.is_last && !refuses_sack, next), Evidence::Timer);
        }
        if in_recovery && let Some(episode) = trouble.episode {
            let class = match (episode.is_timeout, trouble.has_sack) {
                (true, _) => Class::Rto,
                (false, true) => Class::Sack,
                (false, false) => Class::Fast,
            };
            return (class, Evidence::Recovery);
        }
        let last_ns =
            trouble.resent_ns(placed.start).or_else(|| outstanding.sent_ns(placed.end as u32, pool));
        let evidence = if trouble.sacked.has_beyond(placed.start) {
            Evidence::Sack
        } else if last_ns.is_some_and(|last_ns| last_ns < trouble.delivered_ns) {
            Evidence::SentBefore
        } else if trouble.duplicate_acks > 0 && is_head {
            Evidence::DuplicateAcks
        } else if placed.start < trouble.missed.0 && since(trouble.missed.1) <= answer_ns {
            // The sender had not heard yet that it was no loss.
            Evidence::DuplicateAcks
        } else {
            return (Class::Unexplained, Evidence::Nothing);
        };
        trouble.episode = Some(RecoveryEpisode::new(next, false));
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
        // What passed the other capture of a pair may have been lost behind it.
        let shows_arrivals = is_final || (self.sight == Sight::Pair && !has_arrived);
        let trouble = self.recovery_mut();
        let previous_ns = trouble.resent_ns(placed.start).or(original_ns).unwrap_or(time_ns);
        let is_acknowledged = placed.end <= acknowledged;
        trouble.remember(Retransmission {
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
        if let Some(episode) = trouble.episode.as_mut().filter(|_| class != Class::TailLossProbe) {
            episode.sent = episode.sent.saturating_add(1);
        }
        let tally = &mut trouble.tally;
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
    /// A timer repeats what is acknowledged: of the last segment the first is that of the probe.
    fn on_inferred(&mut self, may_be_probe: bool, next: i64) -> Class {
        if may_be_probe && !self.has_probed {
            self.has_probed = true;
            return Class::TailLossProbe;
        }
        self.on_timeout(next);
        Class::Rto
    }

    pub(super) fn on_timeout(&mut self, next: i64) {
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
        let in_a_row = self.timeouts_in_a_row;
        let rare_counts = self.rare_counts_mut();
        rare_counts.timeouts = rare_counts.timeouts.saturating_add(1);
        rare_counts.timeouts_in_a_row = rare_counts.timeouts_in_a_row.max(in_a_row);
        self.episode = Some(RecoveryEpisode::new(next, true));
    }
}
