//! Passes datagrams with a user-defined layout to TFRC's ends.

use super::Datagrams;
use crate::flow::rtt_statistics::{RoundTrip, RttMethod};
use crate::flow::sequences::NumberArrival;
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tfrc::RttBy;
use crate::flow::tfrc::findings::{Finding, FindingKind};
use crate::flow::tfrc::from_capture::Reported;
use crate::flow::tfrc_layout::EchoedPacket;
use crate::flow::{Found, NonTcpState};
use crate::packet::event::{Endpoints, Packet};
use crate::packet::extras::PacketExtras;
use crate::tfrc::DataPacket;
use crate::wire::probe::ProbeLayout;
use crate::wire::tfrc_layout::{Content, DataValues, Layout, PortMatch, ReportValues};

impl Datagrams<'_> {
    /// Process a datagram from or to `port`, which has this layout.
    pub(super) fn take_layout(
        &mut self,
        found: Found,
        packet: &Packet,
        extras: &PacketExtras,
        (port, layout): (u16, &Layout),
    ) {
        let head = extras.head(packet.network.head);
        let Endpoints { src_port, dst_port, .. } = packet.network.endpoints;
        let way = PortMatch { is_from_port: src_port == port, is_to_port: dst_port == port };
        let half = self
            .carried
            .flows
            .get_mut(found.flow)
            .transport
            .non_tcp_mut()
            .layout_flow
            .get_or_insert_default()
            .half_connection_mut(found.side);
        half.on_datagram(packet.network.ttl);
        match layout.read(head.bytes(), way) {
            Content::Data(values) => self.take_layout_data(found, packet, extras, layout, &values),
            Content::Report(report) => self.take_layout_report(found, packet, layout, &report),
            Content::Misfit => half.misfits += 1,
            Content::Other => half.others += 1,
        }
    }

    fn take_layout_data(
        &mut self,
        found: Found,
        packet: &Packet,
        extras: &PacketExtras,
        layout: &Layout,
        values: &DataValues,
    ) {
        let follower = self.follower(found);
        let given_rtt = self.options.rtt_s;
        let flow = self.carried.flows.get_mut(found.flow);
        let mut counted = None;
        let numbers = Some(ProbeLayout::Own(layout.data.numbers));
        let head = extras.head(packet.network.head);
        let state = flow.transport.non_tcp_mut();
        state.on_datagram(found.side, packet, head, numbers, |_, numbered| counted = Some(*numbered));
        let Some(numbered) = counted else { return };
        let NonTcpState { layout_flow, tfrc, .. } = flow.transport.non_tcp_mut();
        let half = layout_flow.get_or_insert_default().half_connection_mut(found.side);
        let bytes = numbered.payload_bytes;
        let has_begun = values.stamp.number <= 1 || values.rtt.is_none() && layout.data.rtt.is_some();
        let setup = || follower.setup(numbered.bits, bytes, has_begun);
        let Some(ends) = tfrc.get_or_insert_default().captured(found.side, setup) else {
            return;
        };
        let at = follower.place(packet.time_ns, packet.number);
        if values.is_impossible {
            ends.on_finding(at, Finding::of(FindingKind::ImpossibleValue), &mut self.results.tfrc);
        }
        if numbered.arrival == NumberArrival::Unconfirmed {
            ends.on_finding(at, Finding::of(FindingKind::SequenceJump), &mut self.results.tfrc);
            return;
        }
        if std::mem::replace(&mut half.restarts, numbered.restarts) != numbered.restarts {
            ends.restart(at, &mut self.results.tfrc);
        }
        half.on_data(values, packet.time_ns);
        let rtt = half.grouping_rtt(given_rtt);
        let data =
            DataPacket { seq: numbered.number, rtt, ce: numbered.is_marked, bytes, ..DataPacket::default() };
        ends.on_data(at, &data, &mut self.results.tfrc);
    }

    fn take_layout_report(&mut self, found: Found, packet: &Packet, layout: &Layout, report: &ReportValues) {
        let of = Found { side: found.side.other(), ..found };
        let vantage =
            self.options.vantage_of(self.carried.flows.get(of.flow), of.side).map(|(vantage, _)| vantage);
        let follower = self.follower(of);
        let flow = self.carried.flows.get_mut(of.flow);
        let NonTcpState { layout_flow, tfrc, .. } = flow.transport.non_tcp_mut();
        let half = layout_flow.get_or_insert_default().half_connection_mut(of.side);
        let echoed = half.on_report(layout, report, packet.time_ns);
        let estimate = half.reported_rtt().map(|rtt| (rtt, RttBy::Estimate));
        let setup = || follower.setup(layout.data.numbers.number.bits(), 0, false);
        let Some(ends) = tfrc.get_or_insert_default().captured(of.side, setup) else {
            return;
        };
        let at = follower.place(packet.time_ns, packet.number);
        let EchoedPacket { number, sample, is_unseen, is_impossible } = echoed;
        let rare_counts = [
            (is_unseen, FindingKind::UnseenAcknowledged),
            (is_impossible, FindingKind::ImpossibleElapsedTime),
            (report.is_impossible, FindingKind::ImpossibleValue),
        ];
        for (_, kind) in rare_counts.into_iter().filter(|(is_so, _)| *is_so) {
            ends.on_finding(at, Finding::of(kind), &mut self.results.tfrc);
        }
        let reported = Reported {
            sequence: number,
            p: report.p,
            x_recv: report.x_recv,
            elapsed: report.elapsed,
            // Unless the data are captured where they are sent, an echo covers only a part of the
            // path.
            r_sample: match vantage {
                Some(Vantage::Sender) => sample.or(estimate),
                None => estimate.or(sample),
                Some(_) => estimate,
            },
            shows_sending: vantage == Some(Vantage::Sender),
            ..Reported::default()
        };
        ends.on_report(at, &reported, &mut self.results.tfrc);
        if let Some((rtt, _)) = sample {
            let rtt = RoundTrip::new((rtt * 1e9).round() as u64, RttMethod::Report);
            self.collect_answer_rtt(of, packet, rtt);
        }
    }
}
