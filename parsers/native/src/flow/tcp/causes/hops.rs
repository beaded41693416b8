//! Changes of the path, as the time to live (or hop limit) of packets shows them.

/// Packets in a row that show a path: routers on the way answer SYNs, and others inject resets.
const PACKETS: u32 = 16;

/// The hops that packets of a side had left where they were captured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hops {
    known: Option<u8>,
    newest: u8,
    /// Packets in a row with the newest, and when the first of them was captured.
    count: u32,
    since_ns: i64,
    pub changes: u32,
    /// When the first packet after the first change was captured.
    pub changed_ns: Option<i64>,
}

impl Hops {
    /// Take a packet; `left` is 0 without an IP header.
    pub fn on_packet(&mut self, time_ns: i64, left: u8) {
        if left != self.newest {
            (self.newest, self.count, self.since_ns) = (left, 0, time_ns);
        }
        self.count = self.count.saturating_add(1);
        if left == 0 || self.count != PACKETS {
            return;
        }
        if self.known.is_some_and(|known| known != left) {
            self.changes = self.changes.saturating_add(1);
            self.changed_ns = self.changed_ns.or(Some(self.since_ns));
        }
        self.known = Some(left);
    }

    /// Whether a path is known.
    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hops(left: &[(u8, usize)]) -> Hops {
        let mut hops = Hops::default();
        let packets = left.iter().flat_map(|&(left, count)| std::iter::repeat_n(left, count));
        packets.enumerate().for_each(|(index, left)| hops.on_packet(index as i64, left));
        hops
    }

    #[test]
    fn test_a_lasting_change_counts_from_its_first_packet() {
        let found = hops(&[(64, 20), (63, 30), (64, 40)]);
        assert_eq!((found.changes, found.changed_ns), (2, Some(20)));
    }

    #[test]
    fn test_single_packets_with_other_hops_change_no_path() {
        let found = hops(&[(255, 1), (64, 20), (255, 1), (64, 20), (63, 15), (64, 20)]);
        assert_eq!((found.is_known(), found.changes, found.changed_ns), (true, 0, None));
        assert!(!hops(&[(0, 100)]).is_known());
    }
}
