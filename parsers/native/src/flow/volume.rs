//! How much one side of a flow sent.

use serde::{Deserialize, Serialize};

use crate::packet::flow_totals::FlowTotals;

/// Limit of totals: packets counted one by one cannot add as much again.
const MAX_REPORTED_TOTAL: u64 = u64::MAX / 2;

/// Volume of one direction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Direction {
    pub packets: u64,
    /// Their frames on the wire.
    pub wire_bytes: u64,
    pub payload_bytes: u64,
    pub data_packets: u64,
    /// Largest payload of a packet.
    pub largest_payload: u32,
    /// Earliest time; meaningless without packets.
    pub start_ns: i64,
    pub end_ns: i64,
    /// Packets with unknown payload because a header was cut; a saturated count is a lower bound.
    pub cut_packets: u32,
}

/// Counters of one direction that are mostly 0, in saturating 32 bits.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RareCounts {
    /// Packets that were fragments.
    pub fragments: u32,
    /// ICMP errors that quote this direction.
    pub icmp_errors: u32,
    /// 802.11 retransmissions of frames already captured with packets of this direction; not among
    /// its packets.
    pub repeated_frames: u32,
    /// Duplicates of this direction's packets at another interface; not among its packets.
    pub copies: u32,
}

impl Direction {
    pub(super) const UNSEEN: Self = Self {
        packets: 0,
        wire_bytes: 0,
        payload_bytes: 0,
        data_packets: 0,
        largest_payload: 0,
        start_ns: i64::MAX,
        end_ns: i64::MIN,
        cut_packets: 0,
    };

    #[inline(always)]
    pub(super) fn count(&mut self, time_ns: i64, wire_bytes: u32, payload: Option<u32>) {
        // Not `min` and `max`, which store an unchanged value too.
        if time_ns < self.start_ns {
            self.start_ns = time_ns;
        }
        if time_ns > self.end_ns {
            self.end_ns = time_ns;
        }
        self.packets += 1;
        self.wire_bytes += u64::from(wire_bytes);
        match payload {
            Some(payload) => {
                self.payload_bytes += u64::from(payload);
                self.data_packets += u64::from(payload > 0);
                if payload > self.largest_payload {
                    self.largest_payload = payload;
                }
            }
            None => self.cut_packets = self.cut_packets.saturating_add(1),
        }
    }

    /// Add another program's totals.
    pub(super) fn add_totals(&mut self, totals: &FlowTotals) {
        if let Some((start_ns, end_ns)) = totals.sent_ns {
            self.start_ns = self.start_ns.min(start_ns);
            self.end_ns = self.end_ns.max(end_ns);
        }
        // A document may contain any number; packets of another source may follow.
        let sum = |known: u64, reported: u64| known.saturating_add(reported).min(MAX_REPORTED_TOTAL);
        self.packets = sum(self.packets, totals.sent.0);
        self.wire_bytes = sum(self.wire_bytes, totals.sent.1);
        // Totals do not separate payload from headers.
        let packets = u32::try_from(totals.sent.0).unwrap_or(u32::MAX);
        self.cut_packets = self.cut_packets.saturating_add(packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_packets_may_follow_totals_of_any_size() {
        let mut direction = Direction::UNSEEN;
        let totals = FlowTotals { sent: (u64::MAX, u64::MAX), ..FlowTotals::default() };
        direction.add_totals(&totals);
        direction.add_totals(&totals);
        direction.count(0, 60, Some(0));
        assert_eq!(direction.packets, MAX_REPORTED_TOTAL + 1);
    }
}
