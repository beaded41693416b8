//! Packet counters of a TCP connection, as `tcptrace -l` reports them.
//!
//! Counting costs some time per packet, so they are collected on request, beside the flows.
//! `docs/tcptrace.md` maps tcptrace's fields to columns.

mod transmissions;

use crate::flow::tcp::{Connection, Outcome};
use crate::packet::event::{Packet, Tcp, TcpFlags};
use crate::packet::key::Side;
use transmissions::SegmentPool;
pub use transmissions::Transmissions;

/// Duplicate acknowledgements that trigger a fast retransmission (RFC 5681 section 3.2).
const TRIPLE: u32 = 3;

/// Packet counters of one direction. Every counter saturates.
#[derive(Debug, Default)]
pub struct ConnectionDetails {
    pub ack_packets: u32,
    /// Acknowledgements without data or control flags.
    pub pure_acks: u32,
    pub sack_packets: u32,
    /// Packets whose first SACK block reports a duplicate (RFC 2883).
    pub dsack_packets: u32,
    pub max_sack_blocks: u8,
    /// Data packets with the PSH flag.
    pub pushed_packets: u32,
    pub syns: u32,
    pub fins: u32,
    pub resets: u32,
    pub urgent_packets: u32,
    pub permits_sack: bool,
    pub offers_timestamps: bool,
    /// Shortest payload of a data packet; 0 before the first.
    pub shortest_payload: u32,
    /// Payload bytes and packets sent for the first time before the peer first acknowledged data.
    initial_window: (u64, u32),
    /// Packets with payload cut by the snap length, and bytes cut.
    pub truncated: (u32, u64),
    pub longest_gap_ns: i64,
    /// Third duplicate acknowledgements while data were outstanding.
    pub triple_duplicates: u32,
    /// Sum of the unscaled windows (without SYN and RST), and their number.
    window_sum: (u64, u64),
    /// Times of the first and last data.
    data_ns: Option<(i64, i64)>,
    last_ns: Option<i64>,
    /// Whether the peer acknowledged data.
    is_answered: bool,
    last_ack: Acknowledgement,
    end: Option<i64>,
    /// Data not acknowledged yet.
    pub transmissions: Transmissions,
}

impl ConnectionDetails {
    /// Mean of the announced windows, unscaled.
    pub fn mean_window(&self) -> Option<f64> {
        let (sum, packets) = self.window_sum;
        (packets > 0).then(|| sum as f64 / packets as f64)
    }

    /// Time from the first to the last data, in ns.
    pub fn data_time_ns(&self) -> Option<i64> {
        self.data_ns.map(|(first_ns, last_ns)| last_ns.saturating_sub(first_ns))
    }

    /// Bytes between SYN and FIN; None unless both were seen.
    pub fn stream_bytes(&self) -> Option<u64> {
        let end = self.end.filter(|_| self.syns > 0)?;
        // Position 0 is the SYN's.
        u64::try_from(end.checked_sub(1)?).ok()
    }

    /// Payload bytes and packets sent before the peer first acknowledged data; None if the capture
    /// began later.
    pub fn initial_window(&self) -> Option<(u64, u32)> {
        (self.syns > 0).then_some(self.initial_window)
    }

    fn count(&mut self, packet: &Packet, tcp: &Tcp, payload: u32) {
        let has = |flag: u16| u32::from(tcp.flags.has(flag));
        let is_control = tcp.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let is_ack = tcp.flags.has(TcpFlags::ACK);
        let is_pure = is_ack && payload == 0 && !is_control;
        for (counter, n) in [
            (&mut self.ack_packets, u32::from(is_ack)),
            (&mut self.pure_acks, u32::from(is_pure)),
            (&mut self.pushed_packets, has(TcpFlags::PSH) * u32::from(payload > 0)),
            (&mut self.syns, has(TcpFlags::SYN)),
            (&mut self.fins, has(TcpFlags::FIN)),
            (&mut self.resets, has(TcpFlags::RST)),
            (&mut self.urgent_packets, has(TcpFlags::URG)),
        ] {
            *counter = counter.saturating_add(n);
        }
        if tcp.flags.has(TcpFlags::SYN) {
            self.permits_sack |= tcp.options.sack.is_permitted();
            self.offers_timestamps |= tcp.options.timestamp.is_some();
        } else if !tcp.flags.has(TcpFlags::RST) {
            self.window_sum.0 = self.window_sum.0.saturating_add(u64::from(tcp.window));
            self.window_sum.1 += 1;
        }
        if let Some(last_ns) = self.last_ns {
            self.longest_gap_ns = self.longest_gap_ns.max(packet.time_ns.saturating_sub(last_ns));
        }
        self.last_ns = Some(packet.time_ns);
    }

    fn count_data(&mut self, packet: &Packet, payload: u32, new_bytes: u32) {
        let missing = packet.wire_bytes.saturating_sub(packet.captured_bytes).min(payload);
        if missing > 0 {
            self.truncated.0 = self.truncated.0.saturating_add(1);
            self.truncated.1 = self.truncated.1.saturating_add(u64::from(missing));
        }
        let shortest = if self.shortest_payload == 0 { payload } else { self.shortest_payload };
        self.shortest_payload = shortest.min(payload);
        let time_ns = packet.time_ns;
        let (first_ns, last_ns) = self.data_ns.unwrap_or((time_ns, time_ns));
        self.data_ns = Some((first_ns.min(time_ns), last_ns.max(time_ns)));
        if !self.is_answered && new_bytes > 0 {
            self.initial_window.0 = self.initial_window.0.saturating_add(u64::from(new_bytes));
            self.initial_window.1 = self.initial_window.1.saturating_add(1);
        }
    }

    fn count_sack(&mut self, sack: &[(u32, u32)], ack: u32) {
        let Some(&first) = sack.first() else { return };
        self.sack_packets = self.sack_packets.saturating_add(1);
        self.max_sack_blocks = self.max_sack_blocks.max(sack.len() as u8);
        let is_below = |number: u32, other: u32| (number.wrapping_sub(other) as i32) < 0;
        // RFC 2883 section 4: the first block is covered by the acknowledgement or by the second
        // block.
        let is_covered = |second: &(u32, u32)| !is_below(first.0, second.0) && !is_below(second.1, first.1);
        if is_below(first.0, ack) || sack.get(1).is_some_and(is_covered) {
            self.dsack_packets = self.dsack_packets.saturating_add(1);
        }
    }

    fn note_acknowledgement(&mut self, tcp: &Tcp, is_pure: bool) {
        let last = &mut self.last_ack;
        if last.number != tcp.ack {
            *last = Acknowledgement { number: tcp.ack, window: tcp.window, repeats: 0 };
        } else if is_pure && last.window == tcp.window {
            last.repeats = last.repeats.saturating_add(1);
            let is_third = last.repeats == TRIPLE;
            self.triple_duplicates = self.triple_duplicates.saturating_add(u32::from(is_third));
        }
        last.window = tcp.window;
    }
}

#[derive(Debug, Default)]
struct Acknowledgement {
    number: u32,
    window: u16,
    /// Its duplicates (RFC 5681 section 2).
    repeats: u32,
}

/// The details of every connection, indexed by flow number; None for flows without TCP.
#[derive(Debug, Default)]
pub struct DetailsByFlow {
    flows: Vec<Option<Box<[ConnectionDetails; 2]>>>,
    room: SegmentPool,
}

impl DetailsByFlow {
    /// Details of both sides of `flow`.
    pub fn get(&self, flow: u32) -> Option<&[ConnectionDetails; 2]> {
        self.flows.get(flow as usize)?.as_deref()
    }

    /// Count a packet from `side` of `flow`, after its connection processed it and returned
    /// `outcome`.
    pub fn on_segment(
        &mut self,
        (flow, side): (u32, Side),
        connection: &Connection,
        packet: &Packet,
        sack: &[(u32, u32)],
        outcome: &Outcome,
    ) {
        let network = &packet.network;
        let (Some(tcp), Some(payload)) = (network.tcp(), network.payload_bytes) else { return };
        let index = flow as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, || None);
        }
        let Self { flows, room } = self;
        let Some(both) = flows.get_mut(index).map(|both| both.get_or_insert_default()) else { return };
        let [low, high] = &mut **both;
        let (mine, theirs) = match side {
            Side::Low => (low, high),
            Side::High => (high, low),
        };
        mine.count(packet, tcp, payload);
        mine.count_sack(sack, tcp.ack);
        if payload > 0 {
            mine.count_data(packet, payload, outcome.new_bytes);
        }
        let start = outcome.position;
        let syn = i64::from(tcp.flags.has(TcpFlags::SYN));
        let fin = i64::from(tcp.flags.has(TcpFlags::FIN));
        let end = start + syn + i64::from(payload) + fin;
        if end > start && !tcp.flags.has(TcpFlags::RST) {
            mine.transmissions.on_sent((start, end), packet.time_ns, room);
        }
        if fin > 0 {
            mine.end = Some(end - 1);
        }
        if tcp.flags.has(TcpFlags::ACK)
            && let Some(position) = connection.half(side.other()).sent.position(tcp.ack)
        {
            // The SYN alone is not data.
            theirs.is_answered |= position > 1;
            let is_pure = payload == 0 && fin + syn == 0 && !tcp.flags.has(TcpFlags::RST);
            mine.note_acknowledgement(tcp, is_pure && theirs.transmissions.is_waiting());
            theirs.transmissions.on_acknowledged(position, packet.time_ns, room);
        }
    }
}
