//! State of a flow's transport protocol.

use serde::{Deserialize, Serialize};

use super::dccp;
use super::delivery::{Deliveries, Delivery};
use super::numbered_datagrams::{NumberedDatagram, NumberingDetector};
use super::outstanding::Pool;
use super::quic::QuicFlow;
use super::rtp::RtpFlow;
use super::rtt_statistics::{LogHistogram, RttStatistics};
use super::rtt_statistics::{RoundTrip, RttMethod};
use super::seen::Seen;
use super::sequences::NumberedArrivals;
use super::tcp::ecn::Ecn;
use super::tcp::vantage::{Vantage, VantageEvidence};
use super::tcp::{Connection, ConnectionState};
use super::tfrc::TfrcFlow;
use super::tfrc_layout::LayoutFlow;
use super::volume::RareCounts;
use crate::packet::event::Packet;
use crate::packet::extras::PayloadHead;
use crate::packet::key::Side;
use crate::wire::probe::ProbeLayout;

/// State of TCP, or of others when it is needed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Transport {
    pub tcp: Option<Box<Connection>>,
    non_tcp: Option<Box<NonTcpState>>,
}

/// State that most flows, TCP in a capture, do not have.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NonTcpState {
    pub(super) rarities: [RareCounts; 2],
    /// Codepoints of the packets of each side.
    pub(super) ecn: [Ecn; 2],
    /// Of a packet of each side; 0 if unknown.
    pub(super) ttls: [u8; 2],
    /// Where other connections between the same hosts were captured.
    pub(super) place_of_hosts: VantageEvidence,
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
    pub(super) probing: Option<Box<[NumberingDetector; 2]>>,
}

impl Transport {
    pub(super) fn new(protocol: u8) -> Self {
        Self { tcp: (protocol == 6).then(Box::default), non_tcp: None }
    }

    /// State of other flows than TCP, if allocated.
    pub fn non_tcp(&self) -> Option<&NonTcpState> {
        self.non_tcp.as_deref()
    }

    /// The same, allocated on first use.
    pub fn non_tcp_mut(&mut self) -> &mut NonTcpState {
        self.non_tcp.get_or_insert_default()
    }

    pub fn non_tcp_if_any(&mut self) -> Option<&mut NonTcpState> {
        self.non_tcp.as_deref_mut()
    }

    pub fn dccp(&self) -> Option<&dccp::Connection> {
        self.non_tcp()?.dccp.as_deref()
    }

    /// TFRC's ends, if a simulator shows both.
    pub fn tfrc(&self) -> Option<&TfrcFlow> {
        self.non_tcp()?.tfrc.as_deref()
    }

    /// RTP and RTCP, if any datagram may be that.
    pub fn rtp(&self) -> Option<&RtpFlow> {
        self.non_tcp()?.rtp.as_deref()
    }

    /// QUIC, if it was recognised.
    pub fn quic(&self) -> Option<&QuicFlow> {
        self.non_tcp()?.quic.as_deref().filter(|quic| quic.is_recognised())
    }

    /// TFRC over UDP with a user-defined layout.
    pub fn layout_flow(&self) -> Option<&LayoutFlow> {
        self.non_tcp()?.layout_flow.as_deref()
    }

    /// The side that opened the conversation, if the trace shows it.
    pub(super) fn opener(&self) -> Option<Side> {
        match (&self.tcp, self.dccp()) {
            (Some(tcp), _) => tcp.opener(),
            (None, Some(dccp)) => dccp.opener(),
            (None, None) => self.quic().and_then(QuicFlow::client),
        }
    }

    /// State of the connection; None without one.
    pub(super) fn state(&self) -> Option<ConnectionState> {
        match (&self.tcp, self.dccp()) {
            (Some(tcp), _) => Some(tcp.state()),
            (None, dccp) => dccp.map(dccp::Connection::state),
        }
    }

    /// Where the data of `side` were captured, and the confidence from 0 to 1. None if unknown.
    pub fn vantage(&self, side: Side) -> Option<(Vantage, f64)> {
        match (&self.tcp, self.dccp(), self.layout_flow()) {
            (Some(tcp), _, _) => tcp.vantage(side),
            (None, Some(dccp), _) => dccp.vantage(side),
            (None, None, Some(layout_flow)) => layout_flow.vantage(side),
            (None, None, None) => {
                let (vantage, confidence) = self.numbered()?.vantage(side)?;
                Some((self.unless_numbers_are_missing(side, vantage), confidence))
            }
        }
    }

    /// Whether the vantage applies to this flow.
    pub fn has_vantage(&self) -> bool {
        self.tcp.is_some()
            || self.dccp().is_some()
            || self.layout_flow().is_some()
            || self.numbered().is_some()
    }

    /// This place, or one on the way: what is missing at a capture near the sender was lost between the two.
    fn unless_numbers_are_missing(&self, side: Side, vantage: Vantage) -> Vantage {
        let sender = match vantage {
            Vantage::Sender => side,
            Vantage::Receiver => side.other(),
            Vantage::Middle => return vantage,
        };
        let is_missing = self.numbered_arrivals(sender).is_some_and(|found| found.lost > found.pending);
        if is_missing { Vantage::Middle } else { vantage }
    }

    /// State of a flow whose packets are counted by their numbers.
    fn numbered(&self) -> Option<&NonTcpState> {
        let is_numbered = |side| self.numbered_arrivals(side).is_some();
        self.non_tcp().filter(|_| [Side::Low, Side::High].into_iter().any(is_numbered))
    }

    /// What packet numbers show so far of losses of `side` before the capture; None without numbers, and where
    /// the trace shows both ends.
    pub fn numbered_arrivals(&self, side: Side) -> Option<NumberedArrivals> {
        let state = self.non_tcp()?;
        if let Some(deliveries) = &state.deliveries {
            let &Delivery { received, lost, counted, .. } = deliveries.of(side);
            return counted.map(|counted| NumberedArrivals {
                received,
                lost,
                pending: 0,
                reordered: counted.reordered,
            });
        }
        if let Some(dccp) = &state.dccp {
            return Some(dccp.half(side).arrivals());
        }
        match state.rtp.as_deref().filter(|rtp| rtp.has_media()) {
            Some(rtp) => Some(rtp.direction(side).arrivals()),
            None => state.probing.as_deref()?[side as usize].arrivals(),
        }
    }

    /// The same of numbers in payloads that may still prove to be none.
    pub fn supposed_arrivals(&self, side: Side) -> Option<NumberedArrivals> {
        let supposed = || self.non_tcp()?.probing.as_deref()?[side as usize].supposed_arrivals();
        self.numbered_arrivals(side).or_else(supposed)
    }

    /// Whether payloads of either side may have numbers.
    pub fn may_be_numbered(&self) -> bool {
        let probing = self.non_tcp().and_then(|state| state.probing.as_deref());
        probing.is_some_and(|both| both.iter().any(|one| one.supposed_arrivals().is_some()))
    }

    /// What the packets of both sides tell of the place of the capture: signs of a connection, and the TTLs of others.
    pub fn signs_of_place(&self) -> (VantageEvidence, [u8; 2]) {
        let of_connection = self.tcp.as_deref().map(Connection::signs_of_place);
        (of_connection.unwrap_or_default(), self.non_tcp().map_or([0; 2], |state| state.ttls))
    }

    /// Take what other flows between the same hosts tell of the place of the capture.
    pub fn set_place_of_hosts(&mut self, signs: VantageEvidence, ttls: [u8; 2]) {
        if let Some(state) = self.non_tcp_if_any() {
            state.place_of_hosts = signs;
            for (own, of_others) in state.ttls.iter_mut().zip(ttls).filter(|(own, _)| **own == 0) {
                *own = of_others;
            }
        }
    }

    /// Evaluate packet numbers. Call once, after the last packet.
    pub fn finish(&mut self) {
        if let Some(state) = self.non_tcp_if_any() {
            state.finish();
        }
    }

    /// Codepoints of congestion notification in the packets of `side`, of other flows than TCP.
    pub fn ecn(&self, side: Side) -> Ecn {
        self.non_tcp().map_or_else(Ecn::default, |state| state.ecn[side as usize])
    }

    pub(super) fn note_codepoint(&mut self, side: Side, codepoint: u8) {
        if codepoint != 0 {
            self.non_tcp_mut().ecn[side as usize].note_codepoint(codepoint);
        }
    }

    pub(super) fn note_ttl(&mut self, side: Side, ttl: u8) {
        if let Some(state) = self.non_tcp_if_any()
            && state.ttls[side as usize] == 0
        {
            state.ttls[side as usize] = ttl;
        }
    }

    /// A packet of `side` that left without a congestion mark arrived with one.
    pub(super) fn note_mark_on_way(&mut self, side: Side) {
        match &mut self.tcp {
            Some(connection) => connection.half_mut(side).note_mark_on_way(),
            None => self.non_tcp_mut().ecn[side as usize].note_mark_on_way(),
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

    /// The number in the payload of a datagram of `side` that begins with `head`, if it has one.
    pub fn number_of(&self, side: Side, head: &PayloadHead) -> Option<u64> {
        self.non_tcp()?.probing.as_deref()?[side as usize].number_of(head)
    }
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

    /// Process the DCCP header of a packet; returns the RTT.
    #[inline(never)]
    pub(super) fn on_dccp(&mut self, seen: &Seen<'_>, pool: &mut Pool) -> Option<RoundTrip> {
        let Seen { side, packet, extras, .. } = *seen;
        let (header, options) = packet.network.head.and_then(|index| extras.dccp(index))?;
        let rtt_ns = self.dccp.get_or_insert_default().on_packet(side, packet, header, options, pool)?;
        Some(RoundTrip::new(rtt_ns, RttMethod::Ack))
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
        let Self { rtp, probing, tfrc, .. } = self;
        if rtp.as_ref().is_some_and(|rtp| rtp.has_media()) {
            return;
        }
        let mut follow = |numbered: &NumberedDatagram| follow(tfrc, numbered);
        probing.get_or_insert_default()[side as usize].on_datagram(packet, head, forced, &mut follow);
    }

    fn finish(&mut self) {
        self.quic = self.quic.take().filter(|quic| quic.is_recognised());
        let both = [Side::Low, Side::High];
        let is_known = |state: &Self| state.deliveries.is_some();
        // If another source has shown both ends, that is better than numbers.
        if let Some(connection) = self.dccp.as_deref().filter(|_| !is_known(self)) {
            let deliveries = both.map(|side| connection.half(side).delivery());
            self.set_deliveries(deliveries);
        }
        if let Some(rtp) = self.rtp.as_deref().filter(|rtp| rtp.has_media() && !is_known(self)) {
            let deliveries = both.map(|side| rtp.delivery(side));
            return self.set_deliveries(deliveries);
        }
        let Some(mut probing) = self.probing.take().filter(|_| !is_known(self)) else { return };
        for side in both {
            match (probing[side as usize].finish(), &mut self.tfrc) {
                (Some(found), _) => *self.deliveries.get_or_insert_default().of_mut(side) = found,
                // The supposed numbers were none.
                (None, Some(tfrc)) => tfrc.forget_inferred(side),
                (None, None) => {}
            }
        }
    }

    /// Where numbered packets of `side` were captured, and the confidence from 0 to 1. None if unknown.
    fn vantage(&self, side: Side) -> Option<(Vantage, f64)> {
        let mut signs = self.place_of_hosts;
        signs.add_hops(self.ttls);
        signs.conclusion(side)
    }

    fn set_deliveries(&mut self, [low, high]: [Option<Delivery>; 2]) {
        let known = self.deliveries.get_or_insert_default();
        for (side, delivery) in [(Side::Low, low), (Side::High, high)] {
            if let Some(delivery) = delivery {
                *known.of_mut(side) = delivery;
            }
        }
    }
}
