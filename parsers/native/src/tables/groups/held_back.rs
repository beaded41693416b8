//! Time of the flows of a group by what held them back.

use std::io;

use super::GroupTableRow;
use crate::flow::intervals::Count;
use crate::flow::tcp::causes::Cause;
use crate::groups::Groups;
use crate::pass::Analysis;
use crate::tables::causes::Causes;
use crate::tables::column::column;
use crate::tables::shown::each_flow;
use crate::tables::{Column, PassTable};

/// Nanoseconds of each cause.
type ByCause = [u64; Cause::ALL.len()];

/// The causes of the flows of each row, by its number; None for one without any.
pub(super) struct HeldBack {
    rows: Vec<Option<Box<ByCause>>>,
}

impl HeldBack {
    /// None if causes were not collected.
    pub fn of(analysis: &Analysis, groups: &Groups) -> io::Result<Option<Self>> {
        if analysis.results.ledgers.is_none() {
            return Ok(None);
        }
        let causes = Causes::new(analysis)?;
        let mut stretches = causes.rows.iter().peekable();
        let mut rows: Vec<Option<Box<ByCause>>> = (0..groups.len()).map(|_| None).collect();
        each_flow(analysis, |shown, number| {
            while let Some(of) = stretches.next_if(|of| of.flow == number) {
                let (flow, cause) = ((number, shown.flow(number)), of.stretch.cause);
                let times_ns = (of.start_ns, of.stretch.end_ns);
                groups.each_overlap(flow, of.side, times_ns, |row, ns| {
                    let held = rows.get_mut(row as usize).map(|held| held.get_or_insert_default());
                    if let Some(held_ns) = held.and_then(|held| held.get_mut(cause as usize)) {
                        *held_ns = held_ns.saturating_add(ns);
                    }
                });
            }
        })?;
        Ok(Some(Self { rows }))
    }
}

impl<'a> GroupTableRow<'a> {
    fn held_ns(&self, cause: Cause) -> Option<u64> {
        let own = self.held?.rows.get(self.number as usize)?;
        let ns = own.as_ref().and_then(|own| own.get(cause as usize).copied());
        ns.or_else(|| self.of_tcp(Count::TcpPackets).and(Some(0)))
    }

    pub(super) const HELD_BACK: &'a [Column<Self>] = &[
        column(
            "handshake_ns",
            "ns",
            "time in which the set-up of its connection held back a flow with data in this direction \
             (`cause` of causes), summed over flows; silence counts in intervals with packets of the group",
        )
        .null_when("causes were not asked for, or as tcp_data_packets")
        .u64(|row| row.held_ns(Cause::Handshake)),
        column("application_ns", "ns", "likewise, its application")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Application)),
        column("server_ns", "ns", "likewise, the other side, which had not answered")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Server)),
        column("receiver_ns", "ns", "likewise, the receive window")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Receiver)),
        column("send_buffer_ns", "ns", "likewise, its send buffer")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::SendBuffer)),
        column("slow_start_ns", "ns", "likewise, its window in slow start")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::SlowStart)),
        column("bottleneck_ns", "ns", "likewise, the rate of the path, which it took alone")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Bottleneck)),
        column("shared_bottleneck_ns", "ns", "likewise, the rate of the path, which others took too")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::SharedBottleneck)),
        column("policer_ns", "ns", "likewise, a policer")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Policer)),
        column("loss_ns", "ns", "likewise, its window after losses that no queue explains")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Loss)),
        column("mark_ns", "ns", "likewise, its window after congestion marks (ECN)")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Mark)),
        column("recovery_ns", "ns", "likewise, the repair of losses")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Recovery)),
        column("timeout_ns", "ns", "likewise, a retransmission timer, or the repair after it")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Timeout)),
        column("outage_ns", "ns", "likewise, a path on which nothing passed")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Outage)),
        column("unknown_ns", "ns", "likewise, what the capture does not show")
            .null_when("as handshake_ns")
            .u64(|row| row.held_ns(Cause::Unknown)),
    ];
}
