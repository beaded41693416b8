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
mod seen;
pub mod sequences;
pub mod tcp;
pub mod tfrc;
pub mod tfrc_layout;
pub mod transits;
mod transport;
mod tunnelled_flows;
mod volume;

use serde::{Deserialize, Serialize};

use crate::packet::event::{Network, Packet};
use crate::packet::flow_totals::FlowTotals;
use crate::packet::key::{FlowKey, KeptKey, Side};
use crate::packet::opening::Opening;
use delivery::{Deliveries, Delivery};
pub use flow_batches::FlowBatches;
pub use flow_group::FlowGroup;
pub use flow_table::{FlowTable, Found, LOOK_UPS};
pub use fragments::{Fragments, Resolved};
pub use seen::Seen;
use tcp::ecn::Ecn;
pub use transport::{NonTcpState, Transport};
pub use volume::Direction;
use volume::RareCounts;

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

/// A conversation: who takes part, how much they sent, and the state of their transport.
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
    pub transport: Transport,
}

impl Flow {
    /// A flow whose first packet came from `first`, and was read at `origin`.
    pub fn new(key: FlowKey, first: Side, origin: Origin) -> Self {
        Self {
            key: key.into(),
            first,
            dscp: [0; 2],
            is_replaced: false,
            source: origin.source,
            interface: origin.interface,
            directions: [Direction::UNSEEN; 2],
            transport: Transport::new(key.protocol()),
        }
    }

    #[inline(always)]
    pub fn key(&self) -> FlowKey {
        self.key.whole()
    }

    /// The side that opened the conversation: that of the SYN, else of the first packet.
    pub fn forward(&self) -> Side {
        self.transport.opener().unwrap_or(self.first)
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

    /// Record what the client of a TCP connection sent first.
    #[cold]
    pub fn note_opening(&mut self, opening: &Opening) {
        if let Some(connection) = &mut self.transport.tcp {
            connection.note_opening(opening);
        }
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
        self.transport.non_tcp().map_or_else(RareCounts::default, |state| state.rarities[side as usize])
    }

    /// Codepoints in the packets of `side`; None if no transport header was whole, or the trace shows no IP headers.
    pub fn marks(&self, side: Side) -> Option<Ecn> {
        if let Some(connection) = &self.transport.tcp {
            let is_whole = connection.was_seen() && self.direction(side).cut_packets == 0;
            let half = Some(connection.half(side)).filter(|half| is_whole && half.shows_ip_header());
            return half.map(|half| half.ecn());
        }
        // A text without IP headers has neither a TTL nor a codepoint of services.
        let ecn = self.transport.ecn(side);
        let shows_ip_headers =
            self.dscp(side).is_some() && (self.deliveries().is_none() || self.is_numbered());
        (shows_ip_headers || ecn.ect_packets() > 0).then_some(ecn)
    }

    /// Delivery of its packets, if the trace shows both ends.
    pub fn deliveries(&self) -> Option<&Deliveries> {
        self.transport.non_tcp()?.deliveries.as_deref()
    }

    /// The same, allocated on first use.
    pub fn deliveries_mut(&mut self) -> &mut Deliveries {
        self.transport.non_tcp_mut().deliveries.get_or_insert_default()
    }

    /// Delivery of the packets of `side`, if known: numbers in payloads cover one direction,
    /// simulator events and totals both.
    pub fn delivery(&self, side: Side) -> Option<&Delivery> {
        let delivery = self.deliveries()?.of(side);
        (delivery.counted.is_some() || !self.is_numbered()).then_some(delivery)
    }

    /// Whether delivery is known from numbers in the payloads of either direction.
    pub fn is_numbered(&self) -> bool {
        self.deliveries().is_some_and(Deliveries::is_numbered)
    }

    /// Whether numbers of `side` stand in the first of several fragments: of datagrams that lost another one, no number
    /// is missing.
    pub fn numbers_first_fragments(&self, side: Side) -> bool {
        self.transport.numbered_arrivals(side).is_some() && self.rarities(side).fragments > 0
    }

    /// Whether the trace shows packets at several points of their path.
    pub fn shows_path(&self) -> bool {
        self.deliveries().is_some() && !self.is_numbered()
    }

    /// Whether the trace shows packets of `side` where they are sent and where they arrive.
    pub fn shows_both_ends(&self, side: Side) -> bool {
        self.shows_path() && self.deliveries().is_some_and(|both| !both.of(side).missing.any())
    }

    fn rare_mut(&mut self, side: Side) -> &mut RareCounts {
        &mut self.transport.non_tcp_mut().rarities[side as usize]
    }

    fn count_fragment(&mut self, side: Side) {
        increase(&mut self.rare_mut(side).fragments);
    }

    /// Count an ICMP error that quotes a packet of `side`.
    pub fn on_icmp_error(&mut self, side: Side) {
        increase(&mut self.rare_mut(side).icmp_errors);
    }

    /// Count an 802.11 retransmission of a frame of `side` already counted.
    pub fn on_repeated_frame(&mut self, side: Side) {
        increase(&mut self.rare_mut(side).repeated_frames);
    }

    /// Count a duplicate of a packet of `side` at another interface. It was on the wire once.
    #[cold]
    pub fn on_copy(&mut self, side: Side) {
        increase(&mut self.rare_mut(side).copies);
    }

    /// Add another program's totals of the packets of `side`.
    pub fn on_totals(&mut self, side: Side, totals: &FlowTotals) {
        self.note_dscp(side, None);
        self.directions[side as usize].add_totals(totals);
        self.deliveries_mut().of_mut(side).on_totals(totals);
    }

    /// Whether a packet cannot belong to this flow although it has its five-tuple.
    pub fn is_over_before(&self, side: Side, packet: &Packet, network: &Network) -> bool {
        let (Some(tcp), Some(connection)) = (network.tcp(), &self.transport.tcp) else {
            return false;
        };
        connection.is_over_before(side, packet.time_ns, tcp)
    }
}

fn increase(count: &mut u32) {
    *count = count.saturating_add(1);
}

/// Names of the directions of a flow.
pub const FORWARD: &str = "fwd";
pub const REVERSE: &str = "rev";

/// Name of a direction (`fwd`, `rev`), given the side that opened the flow.
pub fn direction_name(side: Side, forward: Side) -> &'static str {
    if side == forward { FORWARD } else { REVERSE }
}
