//! Packets at intermediate nodes of a simulated network.
//!
//! Most lines of a trace are of these: a trace shows a packet three times on each link. They count
//! for the source but not for a flow, so they are counted where they are read.

use crate::input::time_order::TimeOrder;

/// A TCP, UDP or TFRC packet at an intermediate node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardedPacket {
    pub time_ns: i64,
    pub interface: u32,
    /// Bytes of the packet.
    pub bytes: u32,
    pub protocol: u8,
}

/// Their counts for [`SourceSummary`](crate::input::source_summary::SourceSummary).
#[derive(Clone, Debug)]
pub struct ForwardedCounts {
    pub packets: u64,
    pub tcp_packets: u64,
    pub udp_packets: u64,
    pub bytes: u64,
    /// Earliest time; means nothing without packets.
    pub start_ns: i64,
    pub end_ns: i64,
    pub by_interface: Vec<u64>,
    /// Steps of the clock between all packets, returned ones included.
    pub time_order: TimeOrder,
}

impl Default for ForwardedCounts {
    fn default() -> Self {
        Self {
            packets: 0,
            tcp_packets: 0,
            udp_packets: 0,
            bytes: 0,
            start_ns: i64::MAX,
            end_ns: i64::MIN,
            by_interface: Vec::new(),
            time_order: TimeOrder::default(),
        }
    }
}

impl ForwardedCounts {
    /// Take the time of a packet that is returned, and so counted elsewhere.
    #[inline(always)]
    pub fn on_given(&mut self, line: u64, time_ns: i64) {
        self.time_order.check(line, time_ns);
    }

    #[inline(always)]
    pub fn count(&mut self, line: u64, passing: ForwardedPacket) {
        let ForwardedPacket { time_ns, interface, bytes, protocol } = passing;
        self.on_given(line, time_ns);
        self.start_ns = self.start_ns.min(time_ns);
        self.end_ns = self.end_ns.max(time_ns);
        self.packets += 1;
        self.tcp_packets += u64::from(protocol == 6);
        self.udp_packets += u64::from(protocol == 17);
        self.bytes += u64::from(bytes);
        match self.by_interface.get_mut(interface as usize) {
            Some(count) => *count += 1,
            None => self.first_of_interface(interface as usize),
        }
    }

    #[cold]
    fn first_of_interface(&mut self, interface: usize) {
        self.by_interface.resize(interface + 1, 0);
        self.by_interface[interface] = 1;
    }
}
