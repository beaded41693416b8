//! Passes what flows counted in intervals to their groups.

pub(super) mod dns_queries;
pub(super) mod echo_requests;

use crate::flow::Found;
use crate::flow::intervals::{Count, Duration, Piece};
use crate::flow::tcp::vantage::{BELIEVED, Vantage};
use crate::flow::transits::PathOutcome;
use crate::pass::Analysis;

impl Analysis {
    /// The next packet of `flow` is of `time_ns`: if its interval ended, group what it counted.
    #[inline(always)]
    pub(in crate::pass) fn reach(&mut self, flow: u32, time_ns: i64) {
        if self.groups.is_some() && self.flows.reach(flow, time_ns) {
            self.group_pieces(flow);
        }
    }

    /// The same for a packet with this TCP header and payload.
    #[inline(always)]
    pub(in crate::pass) fn reach_segment(&mut self, found: Found, time_ns: i64, seq: u32, payload: u32) {
        if self.groups.is_some() {
            self.reach(found.flow, time_ns);
            if payload > 0 {
                self.flows.note_data(found, time_ns, seq);
            }
        }
    }

    /// Group what queued packets counted in intervals that ended.
    pub(in crate::pass) fn group_settled(&mut self) {
        if self.backlog.has_settled() {
            self.group_all_pieces();
        }
    }

    /// Group what flows counted in intervals that ended.
    pub(in crate::pass) fn group_all_pieces(&mut self) {
        if self.groups.is_some() {
            for flow in self.flows.neighbourhoods() {
                self.group_pieces(flow);
            }
        }
    }

    /// Group the rest of a flow that leaves.
    pub(in crate::pass) fn group_rest(&mut self, flow: u32) {
        if self.groups.is_some() {
            self.flows.finish_interval(flow);
            self.group_pieces(flow);
        }
    }

    /// Group the rest, after the last packet.
    pub(in crate::pass) fn finish_groups(&mut self) {
        if self.groups.is_none() {
            return;
        }
        for flow in self.flows.neighbourhoods() {
            self.flows.group_mut(flow).finish_intervals();
            self.group_pieces(flow);
        }
        self.finish_dns();
        self.finish_echoes();
    }

    /// Group what became of packets between their ends, by the time at which they were sent.
    pub(in crate::pass) fn group_outcomes(&mut self) {
        let Some(groups) = &mut self.groups else { return };
        for outcome in self.path_outcomes.drain(..) {
            let PathOutcome { found: Found { flow, side }, sent_ns, received_ns, is_segment } = outcome;
            groups.change((flow, self.flows.get(flow)), side, sent_ns, |row| {
                row.counts.change(Count::PathPackets, 1);
                match received_ns {
                    Some(received_ns) => {
                        row.add_duration(Duration::Delay, received_ns.saturating_sub(sent_ns))
                    }
                    None => {
                        row.counts.change(Count::PathLost, 1);
                        row.counts.change(Count::LostBehind, is_segment.into());
                    }
                }
            });
        }
    }

    /// Group what the neighbours of `flow` counted.
    #[inline(never)]
    fn group_pieces(&mut self, flow: u32) {
        let Some(mut groups) = self.groups.take() else { return };
        for (number, mut piece) in self.flows.take_pieces(flow) {
            self.hide_unseen(number, &mut piece);
            groups.take(&piece, (number, self.flows.get(number)));
        }
        self.groups = Some(groups);
    }

    /// Leave out counts that are not visible where the flow was captured, as far as that is known.
    fn hide_unseen(&self, number: u32, piece: &mut Piece) {
        let counts = &mut piece.counts;
        let flow = self.flows.get(number);
        let vantage = self.vantage(flow, piece.side).filter(|(_, confidence)| *confidence >= BELIEVED);
        let data_packets = counts.get(Count::TcpDataPackets);
        let vantage = vantage.map(|(vantage, _)| vantage);
        if vantage == Some(Vantage::Sender) {
            counts.clear(Count::LostBefore);
            counts.clear(Count::ReorderedPackets);
        } else {
            counts.change(Count::ArrivalsShown, data_packets);
        }
        if vantage.is_some_and(|vantage| vantage != Vantage::Sender) {
            counts.clear(Count::NetworkLimitedNs);
        }
        if vantage == Some(Vantage::Receiver) {
            counts.clear(Count::LostBehind);
        } else {
            counts.change(Count::LossesShown, data_packets);
        }
    }
}
