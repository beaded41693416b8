//! The order in which a host sent its packets, from their IPv4 identifications.
//!
//! Most hosts count them up, per connection, per destination or globally. Then a late packet with a
//! lower identification was reordered, one with an equal identification is a duplicate, and a
//! retransmission has a higher one. Others draw them at random (RFC 6864 section 4.1 permits any where
//! fragmentation is not): a host counts only where consecutive packets have shown it.

use serde::{Deserialize, Serialize};

/// Largest step within the same count, ahead or back. Random identifications are that near once in 32 packets.
const MAX_STEP: i16 = 1_024;
/// Near steps that show a count: random identifications begin with them once in 1,024 flows.
const ENOUGH: u16 = 2;

/// When a packet was sent, relative to those seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelativeAge {
    /// Sent after all of them.
    Newer,
    /// One of those seen.
    Seen,
    /// Sent before the newest, and not seen yet.
    Overtaken,
    /// Sent so long before the newest that it is unknown whether it was seen.
    Old,
    /// The identifications show no order.
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct IpIdOrder {
    /// Bit n: whether identification `newest - n` was seen.
    seen: u64,
    newest: u16,
    /// Steps of at most [`MAX_STEP`].
    near: u16,
    /// Longer ones.
    far: u16,
    repeats: u16,
}

impl IpIdOrder {
    /// Record the next packet's identification. A host that sends 0 does not count (RFC 6864
    /// section 4.1).
    #[inline(always)]
    pub fn note(&mut self, ip_id: Option<u16>) {
        let Some(ip_id) = ip_id.filter(|&ip_id| ip_id != 0) else { return };
        let step = ip_id.wrapping_sub(self.newest);
        // Few packets go to other hosts between two of one flow.
        if (1..64).contains(&step) && self.near < u16::MAX {
            self.near += 1;
            self.move_to(ip_id, self.seen << step);
        } else {
            self.note_unusual(ip_id, step as i16);
        }
    }

    #[inline(never)]
    fn note_unusual(&mut self, ip_id: u16, step: i16) {
        if self.near.max(self.far) == u16::MAX {
            // Only the ratio of the counts matters.
            (self.near, self.far, self.repeats) = (self.near / 2, self.far / 2, self.repeats / 2);
        }
        if self.seen == 0 {
            self.move_to(ip_id, 0);
        } else if step == 0 || (step < 0 && self.has_seen(step)) {
            self.repeats = self.repeats.saturating_add(1);
        } else if !(-MAX_STEP..=MAX_STEP).contains(&step) {
            self.far += 1;
            self.move_to(ip_id, 0);
        } else {
            self.near += 1;
            match step {
                1.. => self.move_to(ip_id, self.seen.checked_shl(step as u32).unwrap_or(0)),
                _ => self.seen |= bit(step).unwrap_or(0),
            }
        }
    }

    /// Make `ip_id` the newest; `seen` has the bits of those before it.
    #[inline(always)]
    fn move_to(&mut self, ip_id: u16, seen: u64) {
        (self.newest, self.seen) = (ip_id, seen | 1);
    }

    /// Whether identifications are a count.
    fn is_counting(&self) -> bool {
        self.near >= ENOUGH && self.near / 3 >= self.far && self.is_changing()
    }

    /// Whether identifications differ from packet to packet, not only repeat. If the capture
    /// duplicates every packet, every second one repeats.
    fn is_changing(&self) -> bool {
        let changes = self.near.saturating_add(self.far);
        self.repeats <= changes.saturating_mul(3).saturating_add(4)
    }

    /// Whether the identification `step` (not positive) from the newest was seen.
    fn has_seen(&self, step: i16) -> bool {
        bit(step).is_some_and(|bit| self.seen & bit != 0)
    }

    /// The age of a packet not recorded yet.
    pub fn age(&self, ip_id: Option<u16>) -> RelativeAge {
        let Some(ip_id) = ip_id.filter(|&ip_id| ip_id != 0) else { return RelativeAge::Unknown };
        let step = ip_id.wrapping_sub(self.newest) as i16;
        if !self.is_counting() {
            // Random ones repeat once in 65,536 packets.
            let is_same = step == 0 && self.seen != 0 && self.is_changing();
            return if is_same { RelativeAge::Seen } else { RelativeAge::Unknown };
        }
        match step {
            1.. => RelativeAge::Newer,
            _ if self.has_seen(step) => RelativeAge::Seen,
            _ if bit(step).is_some() => RelativeAge::Overtaken,
            _ => RelativeAge::Old,
        }
    }
}

/// The bit of [`IpIdOrder::seen`] for the identification `step` (not positive) from the newest.
fn bit(step: i16) -> Option<u64> {
    1_u64.checked_shl(step.unsigned_abs().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order_of(ids: &[u16]) -> IpIdOrder {
        let mut order = IpIdOrder::default();
        ids.iter().for_each(|&id| order.note(Some(id)));
        order
    }

    #[test]
    fn test_a_host_that_counts_shows_the_order_across_the_wrap() {
        let order = order_of(&[0, 65_534, 1, 2]);
        assert_eq!(order.age(Some(3)), RelativeAge::Newer);
        assert_eq!(order.age(Some(2)), RelativeAge::Seen);
        assert_eq!(order.age(Some(65_534)), RelativeAge::Seen);
        assert_eq!(order.age(Some(65_535)), RelativeAge::Overtaken);
        assert_eq!(order.age(Some(65_000)), RelativeAge::Old);
    }

    #[test]
    fn test_a_packet_that_was_overtaken_is_known_once_it_came() {
        let mut order = order_of(&[10, 11, 13, 14]);
        assert_eq!(order.age(Some(12)), RelativeAge::Overtaken);
        order.note(Some(12));
        assert_eq!(order.age(Some(12)), RelativeAge::Seen);
    }

    #[test]
    fn test_a_host_that_does_not_count_shows_nothing() {
        assert_eq!(order_of(&[9; 20]).age(Some(9)), RelativeAge::Unknown);
        assert_eq!(order_of(&[5, 60_000, 900, 33_000, 7, 48_000, 3]).age(Some(4)), RelativeAge::Unknown);
        assert_eq!(order_of(&[9_000, 30_000, 50_000]).age(Some(60_000)), RelativeAge::Unknown);
        assert_eq!(order_of(&[0, 0]).age(Some(0)), RelativeAge::Unknown);
        assert_eq!(IpIdOrder::default().age(None), RelativeAge::Unknown);
    }

    #[test]
    fn test_two_packets_do_not_show_a_count() {
        for second in [39_999, 40_001, 50_000] {
            assert_eq!(order_of(&[40_000]).age(Some(second)), RelativeAge::Unknown, "{second}");
        }
        assert_eq!(order_of(&[40_000]).age(Some(40_000)), RelativeAge::Seen);
    }

    #[test]
    fn test_a_capture_that_doubles_every_packet_leaves_the_order() {
        assert_eq!(order_of(&[40_000, 40_000, 40_001, 40_001, 40_002]).age(Some(40_002)), RelativeAge::Seen);
    }

    #[test]
    fn test_a_long_count_stays_a_count() {
        let mut order = IpIdOrder::default();
        (0..300_000_u32).for_each(|id| order.note(Some(id as u16)));
        (0..5_000_u16).for_each(|_| order.note(Some(37_000)));
        assert_eq!(order.age(Some(37_900)), RelativeAge::Newer);
    }

    proptest! {
        /// Compare with a list of all packets of a host that counts.
        #[test]
        fn test_what_is_seen_came(steps in proptest::collection::vec(-20_i16..25, 1..200)) {
            let mut order = order_of(&[30_000, 30_001, 30_002]);
            let mut came = vec![30_000_u16, 30_001, 30_002];
            for step in steps {
                let ip_id = order.newest.wrapping_add(step as u16);
                match order.age(Some(ip_id)) {
                    RelativeAge::Seen => prop_assert!(came.contains(&ip_id)),
                    RelativeAge::Overtaken => prop_assert!(!came.contains(&ip_id)),
                    RelativeAge::Newer => prop_assert!(step > 0),
                    RelativeAge::Old | RelativeAge::Unknown => {}
                }
                order.note(Some(ip_id));
                came.push(ip_id);
            }
        }
    }
}
