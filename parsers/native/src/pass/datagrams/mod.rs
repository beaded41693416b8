//! Passes datagrams to what their payload is of: a layout of the user, QUIC, RTP, or numbers.

mod quic;
mod tfrc_layout;

use super::Analysis;
use super::datagram_layout::DatagramLayout;
use crate::flow::Found;
use crate::packet::event::{Endpoints, Packet};
use crate::packet::extras::PacketExtras;

impl Analysis {
    /// Examine the payload of a datagram.
    #[inline(never)]
    pub(super) fn take_datagram(&mut self, found: Found, packet: &Packet, extras: &PacketExtras) {
        let aside = packet.network.head;
        let head = extras.head(aside);
        if self.groups.is_some() {
            self.take_dns(found, packet, head.bytes());
        }
        let Endpoints { src_port, dst_port, .. } = packet.network.endpoints;
        let is_meant = |(port, _): &&(u16, DatagramLayout)| [src_port, dst_port].contains(port);
        let forced = match self.options.dissect.iter().find(is_meant).copied() {
            Some((_, DatagramLayout::Numbers(layout))) => Some(layout),
            Some((port, DatagramLayout::Tfrc(layout))) => {
                return self.take_layout(found, packet, extras, (port, &layout));
            }
            Some((_, DatagramLayout::Rtp(given))) => {
                return self.take_rtp(found, packet, extras.payload(aside), Some(given));
            }
            None => {
                let payload = extras.payload(aside);
                if self.take_quic(found, packet, payload) {
                    return;
                }
                self.take_rtp(found, packet, payload, None);
                None
            }
        };
        let follower = self.follower(found);
        let samples = &mut self.tfrc;
        let flow = self.flows.get_mut(found.flow);
        flow.transport.non_tcp_mut().on_datagram(found.side, packet, head, forced, |tfrc, numbered| {
            follower.follow_numbered(tfrc, numbered, samples);
        });
    }
}
