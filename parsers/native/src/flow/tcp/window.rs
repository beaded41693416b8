//! The receive windows that one side announces.

use serde::{Deserialize, Serialize};

use crate::packet::event::TcpFlags;

/// Time with a closed window.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ClosedWindow {
    /// Packets that announce it.
    packets: u32,
    /// Start of the current closure.
    since_ns: Option<i64>,
    /// Total before the current closure.
    total_ns: i64,
}

/// Unscaled receive windows, without those of SYN (which are not scaled, RFC 7323 section 2.2) and
/// RST (which announces none).
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Windows {
    /// Window of the last segment.
    last: Option<u16>,
    /// Smallest and largest; meaningless without a last one.
    range: (u16, u16),
    closed: Option<Box<ClosedWindow>>,
}

impl Windows {
    /// Record a segment of this side, after all other processing.
    #[inline(always)]
    pub fn on_segment(&mut self, flags: TcpFlags, window: u16, time_ns: i64) {
        if !self.repeats(window) {
            self.on_change(flags, window, time_ns);
        }
    }

    /// Whether a segment with this window changes nothing: it is open and unchanged.
    #[inline(always)]
    pub fn repeats(&self, window: u16) -> bool {
        Some(window) == self.last && window != 0
    }

    #[inline(never)]
    fn on_change(&mut self, flags: TcpFlags, window: u16, time_ns: i64) {
        // Without flags it has no header: a later fragment, or data of a simulation.
        if flags == TcpFlags(0) || flags.has(TcpFlags::RST) {
            return;
        }
        if window == 0 {
            let closed = self.closed.get_or_insert_default();
            closed.packets = closed.packets.saturating_add(1);
        }
        if flags.has(TcpFlags::SYN) {
            return;
        }
        if let Some(closed) = &mut self.closed {
            closed.on_change(window, time_ns);
        }
        let (low, high) = self.range().unwrap_or((window, window));
        self.range = (low.min(window), high.max(window));
        self.last = Some(window);
    }

    /// Window of the last segment that announced one.
    #[inline(always)]
    pub fn last(&self) -> Option<u16> {
        self.last
    }

    pub fn range(&self) -> Option<(u16, u16)> {
        self.last.map(|_| self.range)
    }

    /// Packets that announce a window of 0, SYN included.
    pub fn closed_packets(&self) -> u32 {
        self.closed.as_ref().map_or(0, |closed| closed.packets)
    }

    /// Time with a window of 0 until `end_ns`, in ns.
    pub fn closed_ns(&self, end_ns: i64) -> i64 {
        self.closed.as_ref().map_or(0, |closed| {
            let still_ns = closed.since_ns.map_or(0, |since_ns| end_ns.saturating_sub(since_ns).max(0));
            closed.total_ns.saturating_add(still_ns)
        })
    }
}

impl ClosedWindow {
    fn on_change(&mut self, window: u16, time_ns: i64) {
        if window == 0 {
            self.since_ns.get_or_insert(time_ns);
        } else if let Some(since_ns) = self.since_ns.take() {
            self.total_ns = self.total_ns.saturating_add(time_ns.saturating_sub(since_ns).max(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announce(windows: &mut Windows, time_ns: i64, flags: u16, window: u16) {
        windows.on_segment(TcpFlags(flags), window, time_ns);
    }

    #[test]
    fn test_windows_of_syn_and_rst_are_no_receive_windows() {
        let mut windows = Windows::default();
        announce(&mut windows, 0, TcpFlags::SYN, 65_535);
        assert_eq!((windows.range(), windows.last()), (None, None));
        announce(&mut windows, 1, TcpFlags::ACK, 700);
        announce(&mut windows, 2, TcpFlags::ACK, 500);
        announce(&mut windows, 3, TcpFlags::RST, 0);
        announce(&mut windows, 4, 0, 65_535);
        assert_eq!((windows.range(), windows.last()), (Some((500, 700)), Some(500)));
        assert_eq!((windows.closed_packets(), windows.closed_ns(9)), (0, 0));
    }

    #[test]
    fn test_a_window_is_closed_from_the_first_zero_to_the_next_other_number() {
        let mut windows = Windows::default();
        for (time_ns, window) in [(0, 9), (10, 0), (15, 0), (30, 4), (50, 0)] {
            announce(&mut windows, time_ns, TcpFlags::ACK, window);
        }
        assert_eq!(windows.closed_packets(), 3);
        assert_eq!(windows.closed_ns(60), 20 + 10);
    }
}
