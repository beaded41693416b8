//! Packets in 802.11 frames.

use crate::flow::{FlowTable, Found};
use crate::input::source_summary::SourceSummary;
use crate::packet::event::{Packet, Transport};
use crate::packet::frame::Frame;
use crate::pass::state::{Carried, Results};
use crate::pass::wifi_links::LinkSample;

/// Pass a frame to its link; returns whether it is a retransmission of a captured frame.
#[cold]
pub(in crate::pass) fn take(
    packet: &Packet,
    frame: &Frame,
    carried: &mut Carried,
    results: &mut Results,
) -> bool {
    let &Packet { time_ns, number, .. } = packet;
    let is_repeat = carried.links.on_frame(packet, frame);
    if let Some(groups) = &mut carried.groups {
        groups.groups.take_frame(frame, time_ns);
    }
    results.link_samples.offer(LinkSample { time_ns, packet: number, frame: *frame, is_repeat });
    is_repeat
}

/// A packet in a frame that the capture had shown before: its acknowledgement was lost on the
/// air. To the flow it is no packet, let alone a retransmission.
#[cold]
pub(in crate::pass) fn take_repeat(
    packet: &Packet,
    flows: &mut FlowTable,
    summary: &mut SourceSummary,
) -> Option<Found> {
    let network = &packet.network;
    let is_error = network.transport == Transport::IcmpError;
    if !packet.is_ip || is_error || !network.has_flows() {
        return None;
    }
    summary.repeated_packets += 1;
    let found = flows.find_in_lane(network).filter(|_| network.has_ports)?;
    flows.get_mut(found.flow).on_repeated_frame(found.side);
    Some(found)
}
