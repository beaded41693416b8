//! Passes datagrams that may be QUIC to their flows.

use super::Datagrams;
use crate::flow::quic::{AnswerBy, Datagram, Findings};
use crate::flow::rtt_statistics::{RoundTrip, RttMethod};
use crate::flow::{Found, NonTcpState};
use crate::packet::event::Packet;
use crate::wire::quic::may_begin;

impl Datagrams<'_> {
    /// Process a datagram that may be QUIC; returns whether its flow is QUIC.
    #[inline]
    pub(super) fn take_quic(&mut self, found: Found, packet: &Packet, payload: &[u8]) -> bool {
        let length = packet.network.payload_bytes.unwrap_or(0) as usize;
        let flow = self.carried.flows.get_mut(found.flow);
        let known = flow.transport.non_tcp_if_any().is_some_and(|state| state.quic.is_some());
        (known || may_begin(payload, length)) && self.follow_quic(found, packet, payload, length)
    }

    /// Apart, so that other datagrams do not pay for the room that it needs on the stack.
    #[inline(never)]
    fn follow_quic(&mut self, found: Found, packet: &Packet, payload: &[u8], length: usize) -> bool {
        let NonTcpState { quic, .. } = self.carried.flows.get_mut(found.flow).transport.non_tcp_mut();
        let quic = quic.get_or_insert_default();
        if quic.is_hopeless() {
            return false;
        }
        let datagram = Datagram { time_ns: packet.time_ns, payload, length };
        let findings = quic.on_datagram((found.flow, found.side), &datagram, &mut self.carried.client_hellos);
        let is_quic = quic.is_recognised();
        self.take_findings(found.flow, packet, findings);
        is_quic
    }

    fn take_findings(&mut self, flow: u32, packet: &Packet, findings: Findings) {
        for (side, id) in findings.ids {
            self.carried.flows.register_quic_id(Found { flow, side }, id);
        }
        for answer in findings.answers {
            let method = match answer.by {
                AnswerBy::Handshake => RttMethod::Ack,
                AnswerBy::SpinBit => RttMethod::SpinBit,
            };
            let rtt = RoundTrip::new(answer.rtt_ns, method);
            self.collect_answer_rtt(Found { flow, side: answer.side }, packet, rtt);
        }
    }
}
