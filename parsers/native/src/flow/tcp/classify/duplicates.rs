//! Whether a packet was seen before: a copy that the network or the capture made, or a packet that
//! others overtook.

use std::cmp::Ordering;

use super::Placement;
use super::class::{Class, Classification, Evidence};
use super::ip_id_order::RelativeAge;
use crate::flow::outstanding::Pool;
use crate::flow::tcp::Segment;
use crate::flow::tcp::half_connection::HalfConnection;
use crate::packet::event::TcpFlags;

/// What a packet that repeats another says of when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is a packet that was seen.
    Copy(Evidence),
    /// Before the newest; it may have been seen.
    Older(Evidence),
    /// Before the newest, and it was not seen.
    Overtaken(Evidence),
    /// After all that were seen.
    Newer,
    /// Nothing.
    Unknown,
}

impl Origin {
    /// By what a packet without data is taken for a copy.
    pub fn of_copy(self) -> Option<Evidence> {
        match self {
            Self::Copy(evidence) | Self::Older(evidence) => Some(evidence),
            Self::Overtaken(_) | Self::Newer | Self::Unknown => None,
        }
    }
}

impl HalfConnection {
    /// Whether the capture saw this packet before, at another interface: one with the same
    /// identification, or, where hosts do not count, one that says nothing new.
    #[cold]
    pub(crate) fn is_copy(&self, segment: &Segment<'_>, acknowledged: &HalfConnection) -> bool {
        if self.stream.is_none() {
            return false;
        }
        match self.order.age(segment.carrier.ip_id) {
            RelativeAge::Seen | RelativeAge::Old => return true,
            RelativeAge::Newer | RelativeAge::Overtaken => return false,
            RelativeAge::Unknown => {}
        }
        let header = segment.tcp;
        // A SYN announces no receive window, and many hosts give a SYN/ACK the identification 0.
        let is_syn = header.flags.has(TcpFlags::SYN);
        let says_nothing_new =
            header.ack == acknowledged.last_ack && (is_syn || Some(header.window) == self.windows.last());
        let syn = i64::from(is_syn);
        let fin = i64::from(header.flags.has(TcpFlags::FIN));
        let end = self.position(header.seq).map(|at| at + syn + i64::from(segment.payload) + fin);
        end.is_some_and(|end| end <= self.next) && (segment.payload > 0 || says_nothing_new)
    }

    /// Count a copy that the capture made.
    #[cold]
    pub(crate) fn find_copy(&mut self, segment: &Segment<'_>) -> Classification {
        let class = Class::CaptureDuplicate;
        let is_forwarded = segment.carrier.ttl.checked_add(1) == Some(self.ttl);
        let trouble = self.recovery_mut();
        if is_forwarded {
            trouble.rare_counts_mut().is_forwarded = true;
        }
        let number = trouble.count(class, 1);
        Classification { class, evidence: Evidence::Interface, number }
    }

    /// When a packet was sent, as far as it says so.
    pub(crate) fn origin(&self, segment: &Segment<'_>) -> Origin {
        match self.order.age(segment.carrier.ip_id) {
            RelativeAge::Seen => return Origin::Copy(Evidence::IpId),
            RelativeAge::Old => return Origin::Older(Evidence::IpId),
            RelativeAge::Overtaken => return Origin::Overtaken(Evidence::IpId),
            RelativeAge::Newer => return Origin::Newer,
            RelativeAge::Unknown => {}
        }
        match segment.tcp.options.timestamp.and_then(|stamp| self.stamp_order(stamp)) {
            Some(Ordering::Less) => Origin::Older(Evidence::Timestamp),
            Some(Ordering::Greater) => Origin::Newer,
            Some(Ordering::Equal) | None => Origin::Unknown,
        }
    }

    /// Whether a segment comes again so soon that its sender cannot know yet what became of it: less than
    /// half a round trip. With SACK nobody repeats what was sent after the newest that the receiver told of
    /// (RFC 8985 section 6.2), unless a timer ran out; without SACK a partial acknowledgement may well ask
    /// for what was sent just now (RFC 6582). The timestamp is the same, or it would be known.
    pub(crate) fn is_too_soon_for_another(
        &self,
        placed: &Placement,
        segment: &Segment<'_>,
        pool: &Pool,
    ) -> bool {
        let is_acknowledged = placed.start < self.acknowledged;
        if self.refuses_sack || is_acknowledged || segment.tcp.options.timestamp.is_none() {
            return false;
        }
        let trouble = self.trouble.as_deref();
        let is_after_timeout =
            trouble.and_then(|trouble| trouble.episode).is_some_and(|episode| episode.is_timeout);
        let sent_ns = trouble
            .and_then(|trouble| trouble.resent_ns(placed.start))
            .or_else(|| self.outstanding.sent_ns(placed.end as u32, pool));
        let since_ns = sent_ns.map(|sent_ns| segment.time_ns.saturating_sub(sent_ns));
        !is_after_timeout
            && since_ns.zip(self.path_ns()).is_some_and(|(since_ns, path_ns)| since_ns < path_ns / 2)
    }

    /// Whether a segment has the timestamp and the echo with which the same data were sent last, and that so lately
    /// that nobody can have repeated them since: the clocks behind timestamps may tick slowly (RFC 7323 section 5.4).
    pub(crate) fn is_with_same_stamp(
        &mut self,
        placed: &Placement,
        segment: &Segment<'_>,
        pool: &Pool,
    ) -> bool {
        let Some(stamp) = segment.tcp.options.timestamp.filter(|&stamp| self.last_stamp() == Some(stamp))
        else {
            return false;
        };
        let Some(path_ns) = self.path_ns() else { return false };
        let original_ns = self.outstanding.sent_ns(placed.end as u32, pool);
        let (acknowledged, progress_ns, next) = (self.acknowledged, self.progress_ns, self.next);
        let trouble = self.recovery_mut();
        let from = trouble.stamped_from(next);
        let again = trouble.last_resent(placed.start);
        let is_same = match again {
            Some(resent) => resent.timestamp == Some(stamp.0),
            None => placed.start >= from,
        };
        // Of what is acknowledged it is not known any more when it was sent.
        let (sent_ns, longest_ns) = match again.map(|resent| resent.time_ns).or(original_ns) {
            Some(sent_ns) => (sent_ns, path_ns),
            None if placed.end <= acknowledged => (progress_ns, path_ns / 2),
            None => return false,
        };
        is_same && segment.time_ns.saturating_sub(sent_ns) < longest_ns
    }
}
