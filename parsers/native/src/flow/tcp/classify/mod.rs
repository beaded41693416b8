//! Classifies segments that repeat others or arrive late.
//!
//! The checks run in order of certainty: a duplicate of an earlier packet (identification,
//! timestamp); a probe (window); a retransmission by timer or by acknowledgements (RFC 5681, RFC
//! 6298, RFC 6675, RFC 8985).

pub mod class;
mod duplicates;
pub(crate) mod ip_id_order;
mod late;
mod placement;
mod situation;

use self::class::{Class, Classification, Evidence};
use self::duplicates::Origin;
use self::situation::Situation;
use super::Segment;
use super::half_connection::{HalfConnection, Sight, Syns};
use super::recovery::episode::{RecoveryEpisode, RecoveryStart};
use super::recovery::recovery_state::RecoveryState;
use super::recovery::retransmission::{NEVER, Retransmission};
use crate::flow::holes::HoleOpening;
use crate::flow::outstanding::Pool;
use crate::packet::event::TcpFlags;

/// Without a known round-trip time, a reordered packet arrives within this time.
const OVERTAKEN_NS: i64 = 3_000_000;

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
        let segments = self.on_wire.packets_of(bytes);
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
        let Syns { count, syn_acks, .. } = self.syns;
        let of_its_kind = if flags.has(TcpFlags::ACK) { syn_acks } else { count.saturating_sub(syn_acks) };
        if is_syn && of_its_kind == 1 {
            // In a simultaneous open, a SYN/ACK has the sequence number of the SYN (RFC 9293
            // section 3.5, figure 7), and data may have arrived before it.
            return None;
        }
        let origin = self.origin(segment);
        // A host answers each SYN (RFC 9293 section 3.10.7.4), however soon the next one comes.
        let is_answer = is_syn && flags.has(TcpFlags::ACK) && self.syns.are_answers();
        let (class, evidence) = match origin.of_copy() {
            Some(evidence) => (Class::NetworkDuplicate, evidence),
            None if origin == Origin::Unknown
                && !is_answer
                && self.is_last_at_once(end, segment.time_ns, pool) =>
            {
                (Class::NetworkDuplicate, Evidence::Time)
            }
            None => (if is_syn { Class::Syn } else { Class::Fin }, Evidence::Flags),
        };
        if is_syn && class == Class::NetworkDuplicate {
            // The handshake still shows its round-trip time.
            self.syns.count = count.saturating_sub(1);
            self.syns.syn_acks = syn_acks.saturating_sub(u8::from(flags.has(TcpFlags::ACK)));
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
        position == self.sent.next - 1 && self.acknowledged.position == self.sent.next
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
        if !self.acknowledged.is_window_closed() && last_probe_end != Some(self.sent.next) {
            return Class::KeepAlive;
        }
        let next = self.sent.next;
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
        let idle_ns = segment.time_ns.saturating_sub(self.acknowledged.progress_ns);
        if segment.payload == 1 && self.is_before_next(placed.start) && idle_ns >= KEEP_ALIVE_NS {
            return (self.kind_of_probe(), Evidence::Window);
        }
        if self.acknowledged.is_window_closed() && placed.start >= self.acknowledged.position {
            return (Class::ZeroWindowProbe, Evidence::Window);
        }
        self.class_of_retransmission(placed, segment.time_ns, pool)
    }

    fn class_of_retransmission(&mut self, placed: &Placement, now_ns: i64, pool: &Pool) -> (Class, Evidence) {
        let without = RecoveryState::default();
        let recovery = self.recovery.as_deref().unwrap_or(&without);
        let situation = Situation { half: self, recovery, placed, now_ns, pool };
        let expired = situation.expired_timer();
        let is_prompt = situation.is_prompt();
        let (class, evidence) = expired.unwrap_or_else(|| situation.other_cause());
        let next = self.sent.next;
        let recovery = self.recovery_mut();
        if expired.is_none() {
            recovery.promptness.note(is_prompt);
        }
        match (class, evidence) {
            (Class::TailLossProbe, _) => recovery.has_probed = true,
            (Class::Rto, Evidence::Timer) => recovery.on_timeout(next),
            (_, Evidence::Recovery | Evidence::Nothing) => {}
            _ => recovery.episode = Some(RecoveryEpisode::new(next, RecoveryStart::Acknowledgements)),
        }
        (class, evidence)
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
        let original_ns = self.sent.outstanding.sent_ns(placed.end as u32, pool);
        let (acknowledged, rtt_ns) = (self.acknowledged.position, self.path_ns().unwrap_or(0));
        let has_arrived = self.has_arrived(placed.start, placed.end);
        let is_final = self.is_simulated();
        // Packets that passed the farther capture of a pair may have been lost after it.
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
}
