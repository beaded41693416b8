//! Detects packets seen before: duplicates made by the network or the capture, and reordered
//! packets.

use std::cmp::Ordering;

use super::class::{Class, Classification, Evidence};
use super::ip_id_order::RelativeAge;
use super::{OVERTAKEN_NS, Placement};
use crate::flow::outstanding::Pool;
use crate::flow::tcp::Segment;
use crate::flow::tcp::half_connection::{Acknowledged, HalfConnection};
use crate::packet::event::TcpFlags;

/// When a repeating packet was sent, relative to those already seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A duplicate of a packet already seen.
    Copy(Evidence),
    /// Sent before the newest packet; may be a duplicate.
    Older(Evidence),
    /// Sent before the newest packet, and not seen yet.
    Overtaken(Evidence),
    /// Sent after every packet seen.
    Newer,
    Unknown,
}

impl Origin {
    /// Evidence that a packet without data is a duplicate.
    pub fn of_copy(self) -> Option<Evidence> {
        match self {
            Self::Copy(evidence) | Self::Older(evidence) => Some(evidence),
            Self::Overtaken(_) | Self::Newer | Self::Unknown => None,
        }
    }
}

impl HalfConnection {
    /// Whether the capture already saw this packet at another interface: the same identification
    /// or, where hosts do not count identifications, nothing new in the packet.
    #[cold]
    pub(crate) fn is_copy(&self, segment: &Segment<'_>, other: &HalfConnection) -> bool {
        if self.sent.stream.is_none() {
            return false;
        }
        match self.origin(segment) {
            Origin::Copy(_) | Origin::Older(Evidence::IpId) => return true,
            Origin::Newer | Origin::Overtaken(_) => return false,
            Origin::Older(_) | Origin::Unknown => {}
        }
        let header = segment.tcp;
        // A SYN announces no receive window, and many hosts give a SYN/ACK the identification 0.
        let is_syn = header.flags.has(TcpFlags::SYN);
        let says_nothing_new =
            header.ack == other.acknowledged.number && (is_syn || Some(header.window) == self.windows.last());
        self.has_seen(segment) && (segment.payload > 0 || says_nothing_new)
    }

    /// Whether the capture already saw all sequence numbers of a segment.
    pub(crate) fn has_seen(&self, segment: &Segment<'_>) -> bool {
        let header = segment.tcp;
        let controls = [TcpFlags::SYN, TcpFlags::FIN].map(|flag| i64::from(header.flags.has(flag)));
        let units = i64::from(segment.payload) + controls.iter().sum::<i64>();
        self.sent.position(header.seq).is_some_and(|position| position + units <= self.sent.next)
    }

    /// Count a duplicate made by the capture.
    #[cold]
    pub(crate) fn find_copy(&mut self, segment: &Segment<'_>) -> Classification {
        if segment.ip.ttl.checked_add(1) == Some(self.on_wire.ttl) {
            self.recovery_mut().rare_counts_mut().is_forwarded = true;
        }
        self.count_capture_duplicate(Evidence::Interface)
    }

    #[cold]
    pub(crate) fn count_capture_duplicate(&mut self, evidence: Evidence) -> Classification {
        let class = Class::CaptureDuplicate;
        let number = self.recovery_mut().count(class, 1);
        Classification { class, evidence, number }
    }

    /// When a packet was sent, as far as its headers show. The value of its timestamp comes first:
    /// whether a host counts its identifications is only concluded.
    pub(crate) fn origin(&self, segment: &Segment<'_>) -> Origin {
        let order = segment.tcp.options.timestamp.and_then(|stamp| self.options.stamp_order(stamp));
        let [by_value, by_echo] = order.unwrap_or([Ordering::Equal; 2]);
        // The newest timestamp is that of data: a bare acknowledgement and its copy may have a newer one.
        let is_numbered = segment.payload > 0 || segment.tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN);
        if by_value == Ordering::Greater && is_numbered {
            return Origin::Newer;
        }
        match (self.order.age(segment.ip.ip_id), by_value.then(by_echo)) {
            (RelativeAge::Seen, _) => Origin::Copy(Evidence::IpId),
            (RelativeAge::Old, _) => Origin::Older(Evidence::IpId),
            (RelativeAge::Overtaken, _) => Origin::Overtaken(Evidence::IpId),
            (RelativeAge::Newer, _) if by_value != Ordering::Less => Origin::Newer,
            (_, Ordering::Less) => Origin::Older(Evidence::Timestamp),
            (_, Ordering::Greater) if is_numbered => Origin::Newer,
            (_, Ordering::Greater | Ordering::Equal) => Origin::Unknown,
        }
    }

    /// Whether numbers up to `end` repeat the last packet of their side so soon that it is a
    /// duplicate: less than half a round trip later, or before any initial timeout (RFC 6298 section
    /// 2.1). Acknowledgements never ask for what was sent just now, because nothing was sent after it.
    /// Simulators duplicate nothing, and number their packets.
    pub(crate) fn is_last_at_once(&self, end: i64, time_ns: i64, pool: &Pool) -> bool {
        if self.is_simulated() {
            return false;
        }
        let last_resent = self.recovery.as_ref().and_then(|recovery| recovery.resent.last());
        let sent_ns = match (self.sent.outstanding.newest_ns(pool), last_resent) {
            (newest_ns, Some(resent)) if newest_ns <= Some(resent.time_ns) => {
                (end == resent.end).then_some(resent.time_ns)
            }
            (newest_ns, _) => newest_ns.filter(|_| end == self.sent.next),
        };
        let longest_ns = self.path_ns().map_or(OVERTAKEN_NS, |path_ns| path_ns / 2);
        sent_ns.is_some_and(|sent_ns| (0..longest_ns).contains(&time_ns.saturating_sub(sent_ns)))
    }

    /// Whether a segment repeats so soon (less than half a round trip) that its sender cannot know
    /// the fate of the original. With SACK, no sender repeats data sent after the newest SACKed
    /// segment (RFC 8985 section 6.2) unless a timer expires; without SACK, a partial
    /// acknowledgement may request data sent just now (RFC 6582). The timestamps are equal here,
    /// otherwise the order is known.
    pub(crate) fn is_too_soon_for_another(
        &self,
        placed: &Placement,
        segment: &Segment<'_>,
        pool: &Pool,
    ) -> bool {
        let is_acknowledged = placed.start < self.acknowledged.position;
        if self.options.refuses_sack || is_acknowledged || segment.tcp.options.timestamp.is_none() {
            return false;
        }
        let recovery = self.recovery.as_deref();
        let is_after_timeout =
            recovery.and_then(|recovery| recovery.episode).is_some_and(|episode| episode.is_timeout());
        let sent_ns = recovery
            .and_then(|recovery| recovery.resent_ns(placed.start))
            .or_else(|| self.sent.outstanding.sent_ns(placed.end as u32, pool));
        let since_ns = sent_ns.map(|sent_ns| segment.time_ns.saturating_sub(sent_ns));
        !is_after_timeout
            && since_ns.zip(self.path_ns()).is_some_and(|(since_ns, path_ns)| since_ns < path_ns / 2)
    }

    /// Whether a segment has the timestamp and echo of the previous transmission of the same data,
    /// so soon after it that nobody can have retransmitted: timestamp clocks may tick slowly (RFC
    /// 7323 section 5.4).
    pub(crate) fn is_with_same_stamp(
        &mut self,
        placed: &Placement,
        segment: &Segment<'_>,
        pool: &Pool,
    ) -> bool {
        let Some(stamp) =
            segment.tcp.options.timestamp.filter(|&stamp| self.options.last_stamp() == Some(stamp))
        else {
            return false;
        };
        let Some(path_ns) = self.path_ns() else { return false };
        let original_ns = self.sent.outstanding.sent_ns(placed.end as u32, pool);
        let Acknowledged { position: acknowledged, progress_ns, .. } = self.acknowledged;
        let next = self.sent.next;
        let recovery = self.recovery_mut();
        let from = recovery.stamped_from(next);
        let again = recovery.last_resent(placed.start);
        let is_same = match again {
            Some(resent) => resent.timestamp == Some(stamp.0),
            None => placed.start >= from,
        };
        // The send time of acknowledged data is no longer known.
        let (sent_ns, longest_ns) = match again.map(|resent| resent.time_ns).or(original_ns) {
            Some(sent_ns) => (sent_ns, path_ns),
            None if placed.end <= acknowledged => (progress_ns, path_ns / 2),
            None => return false,
        };
        is_same && segment.time_ns.saturating_sub(sent_ns) < longest_ns
    }
}
