//! Time of the flows of a group by what held them back.

use std::io;

use super::GroupTableRow;
use crate::flow::intervals::{Count, IntervalWidth};
use crate::flow::tcp::causes::Cause;
use crate::groups::Groups;
use crate::pass::Analysis;
use crate::tables::Column;

use crate::tables::column::column;
use crate::tables::explained::{explained, explained_of};
use crate::tables::shown::each_flow;

/// Nanoseconds of each cause.
type ByCause = [u64; Cause::ALL.len()];

/// The causes of the flows of a row.
#[derive(Default)]
struct Held {
    ns: ByCause,
    /// How many more stretches than in the row before hold for its whole interval.
    begun: [i32; Cause::ALL.len()],
}

/// The causes of the flows of each row, by its number; None for one without any.
pub(super) struct HeldBack {
    rows: Vec<Option<Box<Held>>>,
}

impl HeldBack {
    /// None if causes were not collected.
    pub fn of(analysis: &Analysis, groups: &Groups) -> io::Result<Option<Self>> {
        if analysis.results.ledgers.is_none() {
            return Ok(None);
        }
        let mut held = Self { rows: (0..groups.len()).map(|_| None).collect() };
        let every = groups.grouping.every;
        let all = explained(analysis)?;
        each_flow(analysis, |shown, flow| {
            for of in explained_of(all, flow) {
                for (start_ns, stretch) in of.stretches() {
                    let times_ns = (start_ns, stretch.end_ns);
                    groups.each_overlap((flow, shown.flow(flow)), of.side, times_ns, |rows| {
                        held.add(rows, times_ns, stretch.cause, every);
                    });
                }
            }
        })?;
        if let IntervalWidth::Ns(width) = every {
            groups.lanes().for_each(|lane| held.add_whole(lane, width));
        }
        Ok(Some(held))
    }

    /// Add a stretch to the rows of a lane that it shares time with.
    fn add(
        &mut self,
        rows: &[(i64, u32)],
        (start_ns, end_ns): (i64, i64),
        cause: Cause,
        every: IntervalWidth,
    ) {
        let IntervalWidth::Ns(width) = every else {
            rows.iter().for_each(|&(_, row)| self.add_ns(row, cause, end_ns.abs_diff(start_ns)));
            return;
        };
        let mut add_part = |&(from_ns, row): &(i64, u32)| {
            let until_ns = from_ns.saturating_add(width).min(end_ns);
            self.add_ns(row, cause, until_ns.abs_diff(from_ns.max(start_ns)));
        };
        match rows {
            [] => {}
            [only] => add_part(only),
            [first, between @ .., last] => {
                add_part(first);
                add_part(last);
                // It holds for all intervals between them.
                if let Some(&(_, begin)) = between.first() {
                    self.change_begun(begin, cause, 1);
                    self.change_begun(last.1, cause, -1);
                }
            }
        }
    }

    fn held_mut(&mut self, row: u32) -> Option<&mut Held> {
        self.rows.get_mut(row as usize).map(|held| &mut **held.get_or_insert_default())
    }

    fn add_ns(&mut self, row: u32, cause: Cause, ns: u64) {
        if let Some(held_ns) = self.held_mut(row).and_then(|held| held.ns.get_mut(cause as usize)) {
            *held_ns = held_ns.saturating_add(ns);
        }
    }

    fn change_begun(&mut self, row: u32, cause: Cause, by: i32) {
        if let Some(begun) = self.held_mut(row).and_then(|held| held.begun.get_mut(cause as usize)) {
            *begun += by;
        }
    }

    /// Add the stretches that hold for whole intervals to the rows of a lane.
    fn add_whole(&mut self, lane: &[(i64, u32)], width: i64) {
        let mut holding = [0_i32; Cause::ALL.len()];
        for &(_, row) in lane {
            let is_held = holding.iter().any(|&stretches| stretches > 0);
            let held = match self.rows.get_mut(row as usize) {
                Some(held) if is_held => held.get_or_insert_default(),
                Some(Some(held)) => held,
                _ => continue,
            };
            for ((holding, begun), ns) in holding.iter_mut().zip(held.begun).zip(&mut held.ns) {
                *holding += begun;
                *ns =
                    ns.saturating_add(u64::from(holding.unsigned_abs()).saturating_mul(width.unsigned_abs()));
            }
        }
    }
}

impl<'a> GroupTableRow<'a> {
    fn held_ns(&self, cause: Cause) -> Option<u64> {
        let own = self.held?.rows.get(self.number as usize)?;
        let ns = own.as_ref().and_then(|own| own.ns.get(cause as usize).copied());
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
