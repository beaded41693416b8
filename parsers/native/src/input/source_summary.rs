//! The counts of one source: every packet is counted somewhere.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::input::capture::Interface;
use crate::input::sender_clocks::ClockFindings;
use crate::input::text::ForwardedCounts;
use crate::input::time_order::TimeOrder;
use crate::packet::batch::{Batch, Item};
use crate::packet::event::{Address, Layer, Packet, Stop, Transport};
use crate::packet::key::Notation;

/// The most kinds of stops that are counted separately; a hostile capture could have one per
/// packet.
const MAX_STOPS: usize = 64;

/// Counts of one source. `packets` is the sum of TCP, UDP, DCCP, TFRC, other IP, non-IP and undecoded ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceSummary {
    /// As the user named it.
    pub source: String,
    /// Name of the format, or empty.
    pub format: Cow<'static, str>,
    /// `gzip`, `zstd`, `lz4`, `xz`, `bzip2` or empty.
    pub compression: Cow<'static, str>,
    /// Each with the number of packets captured there.
    pub interfaces: Vec<(Interface, u64)>,
    /// Earliest time; means nothing without packets.
    pub start_ns: i64,
    pub end_ns: i64,
    pub packets: u64,
    /// Packets that the filter rejected.
    pub filtered_packets: u64,
    /// Packets outside of the stretch of time that is read.
    pub outside_packets: u64,
    /// IP packets of protocol TCP.
    pub tcp_packets: u64,
    /// IP packets of protocol UDP.
    pub udp_packets: u64,
    /// IP packets of other protocols.
    pub other_ip_packets: u64,
    /// ARP and the like.
    pub non_ip_packets: u64,
    /// Packets whose IP header could not be read.
    pub undecoded_packets: u64,
    /// TCP and UDP packets of flows beyond the bound on their number.
    pub untracked_packets: u64,
    /// TCP and UDP packets that could not be assigned to a flow: their ports were cut off, or they
    /// are fragments whose first is missing in the capture.
    pub portless_packets: u64,
    /// TCP and UDP packets in repeated 802.11 frames, which flows do not count again.
    pub repeated_packets: u64,
    /// Where decoding stopped, how often, and in which packet first.
    pub stops: Vec<(Stop, u64, u64)>,
    pub other_stops: u64,
    /// Steps of the clock between packets.
    pub time_order: TimeOrder,
    /// What the timestamps of senders show of the clock.
    pub clock: ClockFindings,
    pub lines: u64,
    /// Lines that are understood but hold no packet.
    pub other_lines: u64,
    pub bad_lines: u64,
    /// Names by address, where addresses are indices.
    pub hosts: Option<Vec<String>>,
    /// Whether node numbers are written as domain, cluster and node.
    pub has_hierarchical_addresses: bool,
    /// Nodes that the trace shows only after the gateway to which a radio brings their packets.
    pub addresses_behind_gateways: HashSet<Address>,
    /// IP packets of protocol DCCP.
    pub dccp_packets: u64,
    /// Data packets and reports of a simulator's TFRC.
    pub tfrc_packets: u64,
    pub wire_bytes: u64,
    pub captured_bytes: u64,
    interface_packets: Vec<u64>,
}

impl SourceSummary {
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), start_ns: i64::MAX, end_ns: i64::MIN, ..Self::default() }
    }

    /// Count packets, which are numbered behind `numbered_after` others of the trace: where something is found
    /// is said by the source's own numbers. Returns the longest time from one packet to the next,
    /// as [`TimeOrder::check`] has it.
    pub fn count(&mut self, batch: &Batch, numbered_after: u64) -> u64 {
        // Sums stay in registers for the length of a batch.
        let (mut wire_bytes, mut captured_bytes, mut plain_segments) = (0, 0, 0);
        let (mut order, mut longest_ns) = (self.time_order, 0);
        // The interface of the previous packets.
        let (mut interface, mut in_a_row) = (0, 0);
        for item in batch.items() {
            let (number, time_ns, came_from) = match item {
                Item::Plain(segment) => {
                    plain_segments += 1;
                    wire_bytes += u64::from(segment.wire_bytes);
                    captured_bytes += u64::from(segment.captured_bytes);
                    (segment.number, segment.time_ns, u32::from(segment.interface))
                }
                Item::Other(packet) => {
                    wire_bytes += u64::from(packet.wire_bytes);
                    captured_bytes += u64::from(packet.captured_bytes);
                    self.count_kind(packet);
                    if let Some(stop) = packet.stop {
                        self.count_stop(stop, packet.number - numbered_after);
                    }
                    (packet.number, packet.time_ns, packet.interface)
                }
            };
            longest_ns = order.check(number - numbered_after, time_ns).max(longest_ns);
            if came_from != interface {
                self.count_interface(interface, std::mem::take(&mut in_a_row));
                interface = came_from;
            }
            in_a_row += 1;
        }
        self.count_interface(interface, in_a_row);
        self.time_order = order;
        self.packets += batch.len() as u64;
        self.wire_bytes += wire_bytes;
        self.captured_bytes += captured_bytes;
        self.tcp_packets += plain_segments;
        longest_ns
    }

    /// Extend the time of the source by that of a batch.
    pub fn extend_time(&mut self, batch: &Batch) {
        if let Some((start_ns, end_ns)) = batch.times_ns() {
            (self.start_ns, self.end_ns) = (self.start_ns.min(start_ns), self.end_ns.max(end_ns));
        }
    }

    /// Add the reader's counts to those of following flows.
    pub fn take_counts(&mut self, counted: Self) {
        *self = Self {
            untracked_packets: self.untracked_packets,
            portless_packets: self.portless_packets,
            repeated_packets: self.repeated_packets,
            ..counted
        };
    }

    #[inline(never)]
    fn count_interface(&mut self, interface: u32, packets: u64) {
        if packets == 0 {
            return;
        }
        let interface = interface as usize;
        if interface >= self.interface_packets.len() {
            self.interface_packets.resize(interface + 1, 0);
        }
        self.interface_packets[interface] += packets;
    }

    fn count_kind(&mut self, packet: &Packet) {
        if !packet.is_ip {
            return self.count_without_ip(packet);
        }
        match (packet.network.transport, packet.network.endpoints.protocol) {
            // An ICMP error: it has the five-tuple of the packet that it quotes.
            (Transport::IcmpError, _) => self.other_ip_packets += 1,
            (_, 6) => self.tcp_packets += 1,
            (_, 17) => self.udp_packets += 1,
            (_, 33) => self.dccp_packets += 1,
            (Transport::Tfrc | Transport::TfrcFeedback, _) => self.tfrc_packets += 1,
            _ => self.other_ip_packets += 1,
        }
    }

    #[cold]
    fn count_without_ip(&mut self, packet: &Packet) {
        match packet.stop {
            Some(Stop { layer: Layer::Link | Layer::Tunnel, reason }) if reason.is_without_ip() => {
                self.non_ip_packets += 1
            }
            _ => self.undecoded_packets += 1,
        }
    }

    #[inline(never)]
    fn count_stop(&mut self, stop: Stop, number: u64) {
        if let Some(entry) = self.stops.iter_mut().find(|entry| entry.0 == stop) {
            entry.1 += 1;
        } else if self.stops.len() < MAX_STOPS {
            self.stops.push((stop, 1, number));
        } else {
            self.other_stops += 1;
        }
    }

    /// Add packets that were counted while reading.
    pub fn add_forwarded(&mut self, passing: &ForwardedCounts) {
        if passing.packets == 0 {
            return;
        }
        self.packets += passing.packets;
        self.tcp_packets += passing.tcp_packets;
        self.udp_packets += passing.udp_packets;
        self.tfrc_packets += passing.packets - passing.tcp_packets - passing.udp_packets;
        self.wire_bytes += passing.bytes;
        self.captured_bytes += passing.bytes;
        self.start_ns = self.start_ns.min(passing.start_ns);
        self.end_ns = self.end_ns.max(passing.end_ns);
        // Only the reader sees all packets in order.
        self.time_order = passing.time_order;
        let nodes = self.interface_packets.len().max(passing.by_interface.len());
        self.interface_packets.resize(nodes, 0);
        for (count, more) in self.interface_packets.iter_mut().zip(&passing.by_interface) {
            *count += more;
        }
    }

    /// How the source's addresses are written.
    pub fn notation(&self) -> Notation<'_> {
        Notation {
            hosts: self.hosts.as_deref().unwrap_or_default(),
            is_hierarchical: self.has_hierarchical_addresses,
        }
    }

    /// Set what is known only at the end of the source.
    pub fn finish(&mut self, interfaces: &[Interface]) {
        let count = |at: usize| self.interface_packets.get(at).copied().unwrap_or(0);
        self.interfaces =
            interfaces.iter().enumerate().map(|(at, interface)| (interface.clone(), count(at))).collect();
    }
}
