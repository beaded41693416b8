//! Packets to flows: the conversation and direction of a packet, and the state of its flow.

pub mod bins;
pub mod bounded_samples;
pub mod dccp;
pub mod delivery;
pub mod ends;
mod flow_batches;
mod flow_group;
pub mod flow_places;
mod flow_table;
mod fragments;
pub(crate) mod holes;
pub mod intervals;
mod lanes;
pub mod numbered_datagrams;
pub mod observation;
pub mod outstanding;
mod queued_packet;
pub mod quic;
mod ring_index;
pub mod rtp;
pub mod rtt_statistics;
pub mod sequences;
pub mod tcp;
pub mod tfrc;
pub mod tfrc_layout;
pub mod transits;
mod tunnelled_flows;

use serde::{Deserialize, Serialize};

use crate::packet::dccp::DccpHeader;
use crate::packet::event::{Network, Numbering, Packet, TcpFlags, Transport};
use crate::packet::extras::{PacketExtras, PayloadHead};
use crate::packet::flow_totals::FlowTotals;
use crate::packet::ip_fields::IpFields;
use crate::packet::key::{FlowKey, KeptKey, Side};
use crate::packet::plain::PlainSegment;
use crate::wire::probe::ProbeLayout;
use dccp::ccid::CcidAssumptions;
use delivery::{Deliveries, Delivery};
pub use flow_batches::FlowBatches;
pub use flow_group::FlowGroup;
pub use flow_table::{FlowTable, Found, LOOK_UPS};
pub use fragments::{Fragments, Resolved};
use numbered_datagrams::{NumberedDatagram, NumberingDetector};
use outstanding::Pool;
use queued_packet::QueuedPacket;
use quic::QuicFlow;
use rtp::RtpFlow;
use rtt_statistics::{LogHistogram, RttStatistics};
use tcp::ecn::Ecn;
use tcp::vantage::Vantage;
use tcp::{Connection, HalfConnection, Outcome, Segment, Sight};
use tfrc::{TfrcFlow, TfrcSamples};
use tfrc_layout::LayoutFlow;

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
    const UNSEEN: Self = Self {
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
    fn count(&mut self, time_ns: i64, wire_bytes: u32, payload: Option<u32>) {
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
}

/// Limit of totals: packets counted one by one cannot add as much again.
const MAX_REPORTED_TOTAL: u64 = u64::MAX / 2;

/// Value of [`Flow::interface`] if there is none.
const NO_INTERFACE: u16 = u16::MAX;

/// Where the first packet of a flow was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    source: u32,
    interface: u16,
}

impl Origin {
    /// A source, and an interface or node of it.
    pub fn new(source: u32, interface: u32) -> Self {
        Self { source, interface: u16::try_from(interface).unwrap_or(NO_INTERFACE) }
    }

    /// A source of totals, which no interface showed.
    pub fn of_totals(source: u32) -> Self {
        Self { source, interface: NO_INTERFACE }
    }
}

/// Value of [`Flow::dscp`] while no packet shows its codepoint.
const NO_DSCP: u8 = u8::MAX;

#[derive(Debug, Serialize, Deserialize)]
pub struct Flow {
    key: KeptKey,
    /// The side of the first packet.
    first: Side,
    /// Codepoints as returned by [`Flow::dscp`], or [`NO_DSCP`].
    dscp: [u8; 2],
    /// Whether a later flow has its five-tuple.
    is_replaced: bool,
    /// Index of the source of its first packet.
    pub source: u32,
    /// As returned by [`Flow::interface`], or [`NO_INTERFACE`].
    interface: u16,
    directions: [Direction; 2],
    pub tcp: Option<Box<Connection>>,
    /// State of flows other than TCP, allocated when needed.
    non_tcp: Option<Box<NonTcpState>>,
}

/// State that most flows, TCP in a capture, do not have.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NonTcpState {
    rarities: [RareCounts; 2],
    /// Codepoints of the packets of each side.
    ecn: [Ecn; 2],
    pub dccp: Option<Box<dccp::Connection>>,
    /// TFRC's ends, if a simulator shows both.
    pub tfrc: Option<Box<TfrcFlow>>,
    /// RTP and RTCP, if any datagram may be that.
    pub rtp: Option<Box<RtpFlow>>,
    /// QUIC, if any datagram may be that.
    pub quic: Option<Box<QuicFlow>>,
    /// TFRC over UDP with a user-defined layout.
    pub layout_flow: Option<Box<LayoutFlow>>,
    /// Delivery of its packets, if the trace shows both ends.
    pub deliveries: Option<Box<Deliveries>>,
    /// Detectors of numbered datagrams, for each side; only for UDP.
    probing: Option<Box<[NumberingDetector; 2]>>,
}

impl NonTcpState {
    /// The capture has a gap here: numbers that it does not show were not lost.
    pub fn leave_gap(&mut self) {
        if let Some(connection) = &mut self.dccp {
            connection.leave_gap();
        }
        if let Some(rtp) = &mut self.rtp {
            rtp.leave_gap();
        }
        self.probing.iter_mut().flat_map(|both| both.iter_mut()).for_each(NumberingDetector::leave_gap);
    }
}

impl Flow {
    /// A flow whose first packet came from `first`, and was read at `origin`.
    pub fn new(key: FlowKey, first: Side, origin: Origin) -> Self {
        let is_tcp = key.protocol() == 6;
        Self {
            key: key.into(),
            first,
            dscp: [0; 2],
            is_replaced: false,
            source: origin.source,
            interface: origin.interface,
            directions: [Direction::UNSEEN; 2],
            tcp: is_tcp.then(Box::default),
            non_tcp: None,
        }
    }

    #[inline(always)]
    pub fn key(&self) -> FlowKey {
        self.key.whole()
    }

    /// The state of other flows than TCP, allocated on first use.
    pub fn non_tcp_mut(&mut self) -> &mut NonTcpState {
        self.non_tcp.get_or_insert_default()
    }

    /// The same, if allocated.
    pub fn non_tcp_if_any(&mut self) -> Option<&mut NonTcpState> {
        self.non_tcp.as_deref_mut()
    }

    pub fn dccp(&self) -> Option<&dccp::Connection> {
        self.non_tcp.as_ref()?.dccp.as_deref()
    }

    /// TFRC's ends, if a simulator shows both.
    pub fn tfrc(&self) -> Option<&TfrcFlow> {
        self.non_tcp.as_ref()?.tfrc.as_deref()
    }

    /// RTP and RTCP, if any datagram may be that.
    pub fn rtp(&self) -> Option<&RtpFlow> {
        self.non_tcp.as_ref()?.rtp.as_deref()
    }

    /// QUIC, if it was recognised.
    pub fn quic(&self) -> Option<&QuicFlow> {
        self.non_tcp.as_ref()?.quic.as_deref().filter(|quic| quic.is_recognised())
    }

    /// TFRC over UDP with a user-defined layout.
    pub fn layout_flow(&self) -> Option<&LayoutFlow> {
        self.non_tcp.as_ref()?.layout_flow.as_deref()
    }

    /// Delivery of its packets, if the trace shows both ends.
    pub fn deliveries(&self) -> Option<&Deliveries> {
        self.non_tcp.as_ref()?.deliveries.as_deref()
    }

    /// The side that opened the conversation: that of the SYN, else of the first packet.
    pub fn forward(&self) -> Side {
        let opener = match (&self.tcp, self.dccp()) {
            (Some(tcp), _) => tcp.opener(),
            (None, Some(dccp)) => dccp.opener(),
            (None, None) => self.quic().and_then(QuicFlow::client),
        };
        opener.unwrap_or(self.first)
    }

    /// Where the data of `side` were captured, and the confidence from 0 to 1. None if unknown.
    pub fn vantage(&self, side: Side) -> Option<(Vantage, f64)> {
        match (&self.tcp, self.dccp(), self.layout_flow()) {
            (Some(tcp), _, _) => tcp.vantage(side),
            (None, Some(dccp), _) => dccp.vantage(side),
            (None, None, Some(layout_flow)) => layout_flow.vantage(side),
            (None, None, None) => None,
        }
    }

    /// Whether the vantage applies to this flow.
    pub fn has_vantage(&self) -> bool {
        self.tcp.is_some() || self.dccp().is_some() || self.layout_flow().is_some()
    }

    /// Index of the interface or node at which its first packet was captured.
    pub fn interface(&self) -> Option<u32> {
        (self.interface != NO_INTERFACE).then_some(self.interface.into())
    }

    /// The differentiated services codepoint of the first packet of `side` with a nonzero one, else
    /// 0. None if packets do not show theirs.
    pub fn dscp(&self, side: Side) -> Option<u8> {
        Some(self.dscp[side as usize]).filter(|&dscp| dscp != NO_DSCP)
    }

    /// Record the codepoint of a packet of `side`. Packets with 0 may be skipped.
    #[cold]
    #[inline(never)]
    pub fn note_dscp(&mut self, side: Side, dscp: Option<u8>) {
        match dscp {
            Some(dscp) if matches!(self.dscp[side as usize], 0 | NO_DSCP) => self.dscp[side as usize] = dscp,
            Some(_) => {}
            None => self.dscp = self.dscp.map(|known| if known == 0 { NO_DSCP } else { known }),
        }
    }

    pub fn direction(&self, side: Side) -> &Direction {
        &self.directions[side as usize]
    }

    /// Rare counters of the packets of `side`.
    pub fn rarities(&self, side: Side) -> RareCounts {
        self.non_tcp.as_ref().map_or_else(RareCounts::default, |non_tcp| non_tcp.rarities[side as usize])
    }

    /// Codepoints of congestion notification in the packets of `side`, of other flows than TCP.
    pub fn ecn(&self, side: Side) -> Ecn {
        self.non_tcp.as_ref().map_or_else(Ecn::default, |state| state.ecn[side as usize])
    }

    /// Codepoints in the packets of `side`; None if no transport header was whole, or the trace shows no IP headers.
    pub fn marks(&self, side: Side) -> Option<Ecn> {
        if let Some(connection) = self.tcp.as_deref() {
            let is_whole = connection.was_seen() && self.direction(side).cut_packets == 0;
            let half = Some(connection.half(side)).filter(|half| is_whole && half.shows_ip_header());
            return half.map(HalfConnection::ecn);
        }
        // A text without IP headers has neither a TTL nor a codepoint of services.
        let shows_ip_headers = self.deliveries().is_none() || self.is_numbered();
        self.dscp(side).filter(|_| shows_ip_headers).map(|_| self.ecn(side))
    }

    fn note_codepoint(&mut self, side: Side, codepoint: u8) {
        if codepoint != 0 {
            self.non_tcp_mut().ecn[side as usize].note_codepoint(codepoint);
        }
    }

    fn rare_mut(&mut self, side: Side) -> &mut RareCounts {
        &mut self.non_tcp_mut().rarities[side as usize]
    }

    /// Process a packet from `side` and write its result to `outcome`, which must be clear.
    #[inline(always)]
    pub fn on_packet(
        &mut self,
        side: Side,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let mut is_counted = true;
        if network.dscp != Some(0) {
            self.note_dscp(side, network.dscp);
        }
        match (network.payload_bytes, &mut self.tcp) {
            (Some(payload), Some(connection)) if network.transport == Transport::Tcp => {
                let segment = Segment {
                    time_ns: packet.time_ns,
                    tcp: &network.tcp,
                    payload,
                    sack: extras.sack(network.tcp.options.sack),
                    ecn_counters: extras.ecn_counters(network.head),
                    ip: &IpFields::of(packet),
                };
                is_counted = connection.on_segment(side, &segment, pool, outcome);
            }
            // Every datagram is new as far as its header shows.
            (Some(payload), None) => {
                outcome.new_bytes = payload;
                self.note_codepoint(side, network.ecn);
                if network.transport == Transport::Dccp {
                    self.on_dccp(side, packet, extras, pool, outcome);
                }
            }
            _ => {}
        }
        if !is_counted {
            return self.on_copy(side);
        }
        self.directions[side as usize].count(packet.time_ns, packet.wire_bytes, network.payload_bytes);
        if network.fragment.is_some() {
            let count = &mut self.rare_mut(side).fragments;
            *count = count.saturating_add(1);
        }
    }

    /// Count a duplicate of a packet of `side` at another interface. It was on the wire once.
    #[cold]
    pub fn on_copy(&mut self, side: Side) {
        let count = &mut self.rare_mut(side).copies;
        *count = count.saturating_add(1);
    }

    /// Process a packet from `side` with a time that the capture already showed; `outcome`, which
    /// must be clear, gets its class. Returns false, and does nothing, if the flow does not have it.
    pub fn on_packet_again(
        &mut self,
        side: Side,
        packet: &Packet,
        extras: &PacketExtras,
        outcome: &mut Outcome,
    ) -> bool {
        let Direction { start_ns, end_ns, .. } = self.directions[side as usize];
        if !(start_ns..=end_ns).contains(&packet.time_ns) {
            return false;
        }
        let network = &packet.network;
        if let (Some(connection), Some(payload)) = (&mut self.tcp, network.payload_bytes) {
            let segment = Segment {
                time_ns: packet.time_ns,
                tcp: &network.tcp,
                payload,
                sack: extras.sack(network.tcp.options.sack),
                ecn_counters: extras.ecn_counters(network.head),
                ip: &IpFields::of(packet),
            };
            if !connection.on_segment_again(side, &segment, outcome) {
                return false;
            }
        }
        self.on_copy(side);
        true
    }

    /// Look for a number in the payload of a datagram from `side` that begins with `head`. `forced`
    /// is the user's layout; `follow` receives each datagram that has a number.
    pub fn on_datagram(
        &mut self,
        side: Side,
        packet: &Packet,
        head: PayloadHead,
        forced: Option<ProbeLayout>,
        mut follow: impl FnMut(&mut Option<Box<TfrcFlow>>, &NumberedDatagram),
    ) {
        if self.rtp().is_some_and(RtpFlow::has_media) {
            return;
        }
        let NonTcpState { probing, tfrc, .. } = self.non_tcp_mut();
        let mut follow = |numbered: &NumberedDatagram| follow(tfrc, numbered);
        probing.get_or_insert_default()[side as usize].take(packet, head, forced, &mut follow);
    }

    /// Process the DCCP header of a packet from `side`; `outcome` gets the RTT.
    #[inline(never)]
    fn on_dccp(
        &mut self,
        side: Side,
        packet: &Packet,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        if let Some((header, options)) = packet.network.head.and_then(|aside| extras.dccp(aside)) {
            let connection = self.non_tcp_mut().dccp.get_or_insert_default();
            outcome.ack_rtt_ns = connection.on_packet(side, packet, header, options, pool);
        }
    }

    /// Pass the DCCP header of the packet just processed, sent by `side`, to the TFRC ends that it
    /// concerns. Returns the round-trip time from its window counter in seconds.
    pub fn follow_tfrc(
        &mut self,
        place: (u32, Side),
        packet: &Packet,
        header: (&DccpHeader, &[u8]),
        assumed: CcidAssumptions,
        samples: &mut TfrcSamples,
    ) -> Option<f64> {
        let NonTcpState { dccp, tfrc, .. } = self.non_tcp_if_any()?;
        dccp.as_deref_mut()?.follow_tfrc(place, packet, header, assumed, tfrc, samples)
    }

    /// Set the delivery of the packets of both sides.
    fn set_deliveries(&mut self, deliveries: [(Side, Option<Delivery>); 2]) {
        let known = self.deliveries_mut();
        for (side, delivery) in deliveries {
            if let Some(delivery) = delivery {
                *known.of_mut(side) = delivery;
            }
        }
    }

    /// Evaluate packet numbers. Call once, after the last packet.
    pub fn finish(&mut self) {
        if let Some(state) = self.non_tcp_if_any() {
            state.quic = state.quic.take().filter(|quic| quic.is_recognised());
        }
        // If another source has shown both ends, that is better than numbers.
        if let Some(connection) = self.dccp().filter(|_| self.deliveries().is_none()) {
            let deliveries = [Side::Low, Side::High].map(|side| (side, connection.half(side).delivery()));
            self.set_deliveries(deliveries);
        }
        if let Some(rtp) = self.rtp().filter(|rtp| rtp.has_media() && self.deliveries().is_none()) {
            let deliveries = [Side::Low, Side::High].map(|side| (side, rtp.delivery(side)));
            self.set_deliveries(deliveries);
            return;
        }
        let Some(non_tcp) = self.non_tcp_if_any() else { return };
        let Some(mut probing) = non_tcp.probing.take() else { return };
        if non_tcp.deliveries.is_some() {
            // Another source has shown both ends, which is better.
            return;
        }
        for side in [Side::Low, Side::High] {
            match (probing[side as usize].finish(), &mut non_tcp.tfrc) {
                (Some(found), _) => *non_tcp.deliveries.get_or_insert_default().of_mut(side) = found,
                // The supposed numbers were none.
                (None, Some(tfrc)) => tfrc.forget_inferred(side),
                (None, None) => {}
            }
        }
    }

    /// Delivery of the packets of `side`, if known: numbers in payloads cover one direction,
    /// simulator events and totals both.
    pub fn delivery(&self, side: Side) -> Option<&Delivery> {
        let delivery = self.deliveries()?.of(side);
        (delivery.counted.is_some() || !self.is_numbered()).then_some(delivery)
    }

    /// The number in the payload of a datagram of `side` that begins with `head`, if it has one.
    pub fn number_of(&self, side: Side, head: &PayloadHead) -> Option<u64> {
        self.non_tcp.as_ref()?.probing.as_deref()?[side as usize].number_of(head)
    }

    /// Whether delivery is known from numbers in the payloads of either direction.
    pub fn is_numbered(&self) -> bool {
        let is_numbered = |deliveries: &Deliveries| {
            [Side::Low, Side::High].into_iter().any(|side| deliveries.of(side).counted.is_some())
        };
        self.deliveries().is_some_and(is_numbered)
    }

    /// Whether the trace shows packets at several points of their path.
    pub fn shows_path(&self) -> bool {
        self.deliveries().is_some() && !self.is_numbered()
    }

    /// Whether the trace shows packets of `side` where they are sent and where they arrive.
    pub fn shows_both_ends(&self, side: Side) -> bool {
        self.shows_path() && self.deliveries().is_some_and(|both| !both.of(side).missing.any())
    }

    /// Count an 802.11 retransmission of a frame of `side` already counted.
    pub fn on_repeated_frame(&mut self, side: Side) {
        let count = &mut self.rare_mut(side).repeated_frames;
        *count = count.saturating_add(1);
    }

    /// Add another program's totals of the packets of `side`.
    pub fn on_totals(&mut self, side: Side, totals: &FlowTotals) {
        self.note_dscp(side, None);
        let direction = &mut self.directions[side as usize];
        if let Some((start_ns, end_ns)) = totals.sent_ns {
            direction.start_ns = direction.start_ns.min(start_ns);
            direction.end_ns = direction.end_ns.max(end_ns);
        }
        // A document may contain any number; packets of another source may follow.
        let sum = |known: u64, reported: u64| known.saturating_add(reported).min(MAX_REPORTED_TOTAL);
        direction.packets = sum(direction.packets, totals.sent.0);
        direction.wire_bytes = sum(direction.wire_bytes, totals.sent.1);
        // Totals do not separate payload from headers.
        let packets = u32::try_from(totals.sent.0).unwrap_or(u32::MAX);
        direction.cut_packets = direction.cut_packets.saturating_add(packets);
        self.deliveries_mut().of_mut(side).on_totals(totals);
    }

    /// Delivery of its packets, mutable.
    pub fn deliveries_mut(&mut self) -> &mut Deliveries {
        self.non_tcp_mut().deliveries.get_or_insert_default()
    }

    /// Process a packet of `side` seen where it was sent, in a trace that shows several points of its path.
    pub fn on_sent(
        &mut self,
        side: Side,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        if self.watched() == Some(side) {
            return self.on_passed(side, packet, network, extras, pool, outcome);
        }
        self.directions[side as usize].count(packet.time_ns, packet.wire_bytes, network.payload_bytes);
        self.note_identity(side, packet, network);
        outcome.new_bytes = network.payload_bytes.unwrap_or(0);
    }

    /// Process a packet of `side` that a simulator shows on its way alone.
    pub fn on_passed(
        &mut self,
        side: Side,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        self.directions[side as usize].count(packet.time_ns, packet.wire_bytes, network.payload_bytes);
        self.note_identity(side, packet, network);
        self.watch(side, packet, network, extras, pool, outcome);
    }

    /// Count a packet of `side` where it arrived: the trace does not show where it was sent.
    pub fn count_arrival(&mut self, side: Side, packet: &Packet) {
        let network = &packet.network;
        self.directions[side as usize].count(packet.time_ns, packet.wire_bytes, network.payload_bytes);
    }

    /// Process a packet seen at its destination. The connection is watched at one end, like a capture
    /// there: it sees its own packets when they leave and the other side's when they arrive.
    pub fn on_received(
        &mut self,
        side: Side,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        // Some traces show it on links only, and not where the packet was sent.
        self.note_identity(side, packet, network);
        if self.watched() == Some(side.other()) {
            self.watch(side, packet, network, extras, pool, outcome);
        } else {
            outcome.new_bytes = network.payload_bytes.unwrap_or(0);
        }
    }

    /// `payload` bytes of a segment, `offset` bytes into it, that the first side sent at `sent_ns` arrived.
    pub fn on_arrival(&mut self, side: Side, network: &Network, (offset, payload): (u32, u32), sent_ns: i64) {
        if side == self.first
            && has_data(network)
            && let Some(connection) = &mut self.tcp
        {
            let syn = u32::from(network.tcp.flags.has(TcpFlags::SYN));
            let seq = network.tcp.seq.wrapping_add(syn).wrapping_add(offset);
            connection.on_arrival(side, (seq, units_of(network, payload)), sent_ns);
        }
    }

    /// A segment that the first side sent at `sent_ns` reached a receiver that had its data.
    pub fn on_needless_arrival(&mut self, side: Side, network: &Network, sent_ns: i64) {
        if side == self.first
            && has_data(network)
            && let Some(connection) = &mut self.tcp
        {
            let units = network.payload_bytes.unwrap_or(0);
            connection.on_needless_arrival(side, (network.tcp.seq, units), sent_ns);
        }
    }

    /// Round-trip times by what receivers report, of other flows than TCP.
    pub fn rtt_of_reports(&self, side: Side) -> Option<(&RttStatistics, &LogHistogram)> {
        if let Some(dccp) = self.dccp() {
            let half = dccp.half(side);
            return Some((&half.rtt, &half.rtt_sketch));
        }
        let of_rtp = || self.rtp()?.direction(side).rtt.as_deref();
        let of_layout = || self.layout_flow()?.half(side).rtt.as_deref();
        let of_quic = || self.quic()?.direction(side).rtt.as_deref();
        of_layout().or_else(of_rtp).or_else(of_quic).map(|(rtt, sketch)| (rtt, sketch))
    }

    /// A segment with data that `side` sent at `sent_ns` did not arrive.
    pub fn on_loss(&mut self, side: Side, sent_ns: i64) {
        if let Some(connection) = &mut self.tcp {
            connection.on_loss(side, sent_ns);
        }
    }

    fn note_identity(&mut self, side: Side, packet: &Packet, network: &Network) {
        if network.dscp != Some(0) {
            self.note_dscp(side, network.dscp);
        }
        let agent = packet.sighting.and_then(|sighting| sighting.agent);
        self.deliveries_mut().note_identity(side, network, agent);
    }

    fn watch(
        &mut self,
        side: Side,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let payload = network.payload_bytes.unwrap_or(0);
        let is_at_sender = side == self.first && self.watched() == Some(side);
        let Some(connection) = self.tcp.as_mut().filter(|_| network.transport == Transport::Tcp) else {
            outcome.new_bytes = payload;
            if network.transport == Transport::Dccp {
                self.on_dccp(side, packet, extras, pool, outcome);
            }
            return;
        };
        let units = units_of(network, payload);
        let segment = Segment {
            time_ns: packet.time_ns,
            tcp: &network.tcp,
            payload: units,
            sack: extras.sack(network.tcp.options.sack),
            ecn_counters: extras.ecn_counters(network.head),
            ip: &IpFields::of(packet),
        };
        if is_at_sender {
            let sight = if packet.sighting.is_some() { Sight::Simulation } else { Sight::Pair };
            connection.note_sight(side, sight);
        }
        connection.on_segment(side, &segment, pool, outcome);
        if network.numbering == Numbering::Packets {
            // Rounds are in bytes.
            outcome.round = None;
            let bytes_of = |units: u32| if units > 0 { payload } else { 0 };
            outcome.new_bytes = bytes_of(outcome.new_bytes);
            outcome.repeated_bytes = bytes_of(outcome.repeated_bytes);
            let delivery = self.deliveries_mut().of_mut(side);
            delivery.unique_bytes += u64::from(outcome.new_bytes);
            delivery.repeated_bytes += u64::from(outcome.repeated_bytes);
        }
    }

    /// [`Flow::on_packet`] for a plain segment.
    #[inline(always)]
    pub fn on_plain(
        &mut self,
        side: Side,
        plain: &PlainSegment,
        extras: &PacketExtras,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let segment = Segment {
            time_ns: plain.time_ns,
            tcp: &plain.tcp,
            payload: plain.payload,
            sack: extras.sack(plain.tcp.options.sack),
            ecn_counters: None,
            ip: &plain.ip,
        };
        self.on_segment(side, plain.wire_bytes, &segment, pool, outcome);
    }

    /// The same for a queued packet captured at `time_ns`.
    #[inline(always)]
    fn on_waiting(
        &mut self,
        packet: &QueuedPacket,
        time_ns: i64,
        sack: &[(u32, u32)],
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        let segment = Segment {
            time_ns,
            tcp: &packet.tcp(),
            payload: packet.payload(),
            sack,
            ecn_counters: None,
            ip: &packet.ip(),
        };
        self.on_segment(packet.side(), packet.wire_bytes(), &segment, pool, outcome);
    }

    #[inline(always)]
    fn on_segment(
        &mut self,
        side: Side,
        wire_bytes: u32,
        segment: &Segment<'_>,
        pool: &mut Pool,
        outcome: &mut Outcome,
    ) {
        // Not in a closure, which is not always inlined.
        let is_counted = match &mut self.tcp {
            Some(connection) => connection.on_segment(side, segment, pool, outcome),
            None => {
                self.note_codepoint(side, segment.ip.ecn);
                true
            }
        };
        if is_counted {
            self.directions[side as usize].count(segment.time_ns, wire_bytes, Some(segment.payload));
        } else {
            self.on_copy(side);
        }
    }

    /// Count an ICMP error that quotes a packet of `side`.
    pub fn on_icmp_error(&mut self, side: Side) {
        let count = &mut self.rare_mut(side).icmp_errors;
        *count = count.saturating_add(1);
    }

    /// Whether a packet cannot belong to this flow although it has its five-tuple.
    pub fn is_over_before(&self, side: Side, packet: &Packet, network: &Network) -> bool {
        let (Some(tcp), Some(connection)) = (network.tcp(), &self.tcp) else {
            return false;
        };
        connection.is_over_before(side, packet.time_ns, tcp)
    }
}

/// Names of the directions of a flow.
pub const FORWARD: &str = "fwd";
pub const REVERSE: &str = "rev";

/// Name of a direction (`fwd`, `rev`), given the side that opened the flow.
pub fn direction_name(side: Side, forward: Side) -> &'static str {
    if side == forward { FORWARD } else { REVERSE }
}

/// Whether a packet is a TCP segment with data.
fn has_data(network: &Network) -> bool {
    network.transport == Transport::Tcp && units_of(network, network.payload_bytes.unwrap_or(0)) > 0
}

/// Sequence space of a segment: bytes, or packets in traces that number these.
fn units_of(network: &Network, payload: u32) -> u32 {
    match network.numbering {
        Numbering::Bytes => payload,
        Numbering::Packets => u32::from(!network.tcp.flags.has(TcpFlags::ACK)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_packets_may_follow_totals_of_any_size() {
        let side = Side::Low;
        let mut flow = Flow::new(FlowKey::default(), side, Origin::default());
        let totals = FlowTotals { sent: (u64::MAX, u64::MAX), ..FlowTotals::default() };
        flow.on_totals(side, &totals);
        flow.on_totals(side, &totals);
        flow.directions[side as usize].count(0, 60, Some(0));
        assert_eq!(flow.direction(side).packets, MAX_REPORTED_TOTAL + 1);
    }
}
