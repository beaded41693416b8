//! Passes datagrams to what their payload is of: a layout of the user, QUIC, RTP, or numbers.

mod quic;
mod tfrc_layout;

use crate::flow::dccp::ccid::{CcidAssumptions, EndsAndSamples};
use crate::flow::{Found, NonTcpState};
use crate::packet::event::{Endpoints, Packet};
use crate::packet::extras::PacketExtras;
use crate::pass::datagram_layout::DatagramLayout;
use crate::pass::options::Options;
use crate::pass::state::{Carried, Results};

/// What datagrams change.
pub(in crate::pass::stages) struct Datagrams<'a> {
    pub options: &'a Options,
    pub carried: &'a mut Carried,
    pub results: &'a mut Results,
}

impl Datagrams<'_> {
    /// Pass a DCCP packet to the TFRC ends that it concerns.
    #[inline(never)]
    pub fn follow_dccp(&mut self, found: Found, packet: &Packet, extras: &PacketExtras) {
        let Some(header) = packet.network.head.and_then(|index| extras.dccp(index)) else { return };
        let Found { flow, side } = found;
        let vantage =
            self.options.vantage_of(self.carried.flows.get(flow), side.other()).map(|(vantage, _)| vantage);
        let assumed = CcidAssumptions { profile: self.options.tfrc_profile, vantage };
        let state = self.carried.flows.get_mut(flow).transport.non_tcp_if_any();
        let Some(NonTcpState { dccp: Some(dccp), tfrc, .. }) = state else { return };
        let ends = EndsAndSamples { ends: tfrc, samples: &mut self.results.tfrc };
        dccp.follow_tfrc((flow, side), packet, header, assumed, ends);
    }

    /// Examine the payload of a datagram.
    #[inline(never)]
    pub fn take_datagram(&mut self, found: Found, packet: &Packet, extras: &PacketExtras) {
        let index = packet.network.head;
        let head = extras.head(index);
        if let Some(groups) = &mut self.carried.groups {
            groups.on_datagram(found, packet, head.bytes(), &mut self.carried.flows);
        }
        let Endpoints { src_port, dst_port, .. } = packet.network.endpoints;
        let is_meant = |(port, _): &&(u16, DatagramLayout)| [src_port, dst_port].contains(port);
        let forced = match self.options.dissect.iter().find(is_meant).copied() {
            Some((_, DatagramLayout::Numbers(layout))) => Some(layout),
            Some((port, DatagramLayout::Tfrc(layout))) => {
                return self.take_layout(found, packet, extras, (port, &layout));
            }
            Some((_, DatagramLayout::Rtp(given))) => {
                return self.take_rtp(found, packet, extras.payload(index), Some(given));
            }
            None => {
                let payload = extras.payload(index);
                if self.take_quic(found, packet, payload) {
                    return;
                }
                self.take_rtp(found, packet, payload, None);
                None
            }
        };
        let follower = self.follower(found);
        let samples = &mut self.results.tfrc;
        let Carried { flows, groups, source, .. } = &mut *self.carried;
        let flow = flows.get_mut(found.flow);
        flow.transport.non_tcp_mut().on_datagram(found.side, packet, head, forced, |tfrc, numbered| {
            follower.follow_numbered(tfrc, numbered, samples);
            if let Some(groups) = groups {
                groups.on_numbered(numbered, &packet.network, *source);
            }
        });
    }
}
