//! The order in which a host sent its packets, by their IPv4 identifications.
//!
//! Most hosts count them up, per connection, per destination or all together. Then a packet that
//! comes late and has a lower one was overtaken, a packet with the same one was doubled, and a
//! retransmission has a higher one: nothing else tells these apart for certain.

/// Steps back that are still the same count. A longer one means that the host counts otherwise.
const MAX_BACK: i16 = 1_024;

/// When a packet was sent, compared to the one sent last of those seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// After it.
    Newer,
    /// It is that packet.
    Same,
    /// Before it.
    Older,
    /// The identifications do not tell.
    Unknown,
}

/// The identifications of one side's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    newest: u16,
    ups: u32,
    downs: u32,
    repeats: u32,
}

impl Order {
    /// Take in the next packet's identification. Where it is 0 the host does not count (RFC 6864
    /// section 4.1).
    #[inline(always)]
    pub fn note(&mut self, ip_id: Option<u16>) {
        let Some(ip_id) = ip_id else { return };
        let step = ip_id.wrapping_sub(self.newest) as i16;
        if step > 0 && ip_id != 0 {
            self.ups = self.ups.saturating_add(1);
            self.newest = ip_id;
        } else {
            self.note_unusual(ip_id, step);
        }
    }

    #[inline(never)]
    fn note_unusual(&mut self, ip_id: u16, step: i16) {
        if ip_id == 0 {
            return;
        }
        if self.ups == 0 && self.downs == 0 {
            self.ups = 1;
            self.newest = ip_id;
        } else if step == 0 {
            self.repeats = self.repeats.saturating_add(1);
        } else {
            self.downs = self.downs.saturating_add(1);
            if step < -MAX_BACK {
                self.newest = ip_id;
            }
        }
    }

    /// Whether identifications grow from packet to packet: a host that draws them at random goes
    /// back as often as forth, one that always sends the same only repeats. Where the capture
    /// doubles every packet every second one repeats.
    fn is_counting(&self) -> bool {
        self.ups > self.downs.saturating_mul(3)
            && self.repeats <= self.ups.saturating_mul(3).saturating_add(4)
    }

    /// The age of a packet that was not taken in yet.
    pub fn age(&self, ip_id: Option<u16>) -> Age {
        let Some(ip_id) = ip_id.filter(|&ip_id| ip_id != 0 && self.is_counting()) else {
            return Age::Unknown;
        };
        match ip_id.wrapping_sub(self.newest) as i16 {
            1.. => Age::Newer,
            0 => Age::Same,
            _ => Age::Older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(ids: &[u16]) -> Order {
        let mut order = Order::default();
        ids.iter().for_each(|&id| order.note(Some(id)));
        order
    }

    #[test]
    fn test_a_host_that_counts_tells_the_order_across_the_wrap() {
        let order = order_of(&[0, 65_534, 65_535, 1, 2]);
        assert_eq!(order.age(Some(3)), Age::Newer);
        assert_eq!(order.age(Some(2)), Age::Same);
        assert_eq!(order.age(Some(65_535)), Age::Older);
    }

    #[test]
    fn test_a_host_that_does_not_count_tells_nothing() {
        assert_eq!(order_of(&[9; 20]).age(Some(9)), Age::Unknown);
        assert_eq!(order_of(&[5, 60_000, 900, 33_000, 7, 48_000, 3]).age(Some(4)), Age::Unknown);
        assert_eq!(order_of(&[0, 0]).age(Some(0)), Age::Unknown);
        assert_eq!(Order::default().age(None), Age::Unknown);
    }

    #[test]
    fn test_a_capture_that_doubles_every_packet_leaves_the_order() {
        assert_eq!(order_of(&[40_000, 40_000, 40_001, 40_001, 40_002]).age(Some(40_002)), Age::Same);
    }
}
