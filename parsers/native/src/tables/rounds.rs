//! Flight, windows and rounds as columns.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::flows::FlowRow;
use super::retransmissions::BELIEVED;
use super::{Columns, Rows};
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tcp::{HalfConnection, Limit, Rounds};
use crate::flow::{Flow, direction_name};
use crate::packet::key::Side;
use crate::pass::{Analysis, RoundSample};

/// Why the flight was not larger shows only where all of it does: at the sender, unless that is doubtful.
fn sees_limits(analysis: &Analysis, flow: &Flow, side: Side) -> bool {
    let vantage = analysis.vantage(flow, side).filter(|(_, confidence)| *confidence >= BELIEVED);
    vantage.is_none_or(|(vantage, _)| vantage == Vantage::Sender)
}

impl<'a> FlowRow<'a> {
    /// The rounds, where they show what limited them.
    fn limited_rounds(&self) -> Option<&'a Rounds> {
        self.rounds().filter(|_| sees_limits(self.analysis, self.flow, self.side))
    }

    /// Why limits and phases are null.
    pub(super) fn note_on_limits(&self) -> Option<&'static str> {
        let hides_limits = self.rounds().is_some() && self.limited_rounds().is_none();
        hides_limits.then_some("captured away from the sender: what limited it cannot be seen")
    }

    /// The rounds, where they show what was sent again.
    fn repaired_rounds(&self) -> Option<&'a Rounds> {
        self.half_connection_unless(Vantage::Receiver).and_then(|_| self.rounds())
    }

    /// What this side sent, if its sequence numbers count bytes.
    fn in_bytes(&self) -> Option<&'a HalfConnection> {
        self.half.filter(|_| !self.counts_packets())
    }

    fn rounds(&self) -> Option<&'a Rounds> {
        self.in_bytes()?.rounds()
    }

    /// A window that this side announced, in bytes.
    fn window(&self, choose: fn((u16, u16)) -> u16) -> Option<u64> {
        let half = self.in_bytes()?;
        let other = self.connection?.half(self.side.other());
        half.scaled(choose(half.windows.range()?), other).map(u64::from)
    }

    fn mean_flight_bytes(&self) -> Option<f64> {
        self.in_bytes()?.mean_flight_bytes(self.connection?.end_ns())
    }

    fn zero_window_ms(&self) -> Option<f64> {
        Some(self.half?.windows.closed_ns(self.connection?.end_ns()) as f64 / 1e6)
    }

    /// Data packets for each pure acknowledgement of the other side.
    fn delayed_ack_ratio(&self) -> Option<f64> {
        let other = self.flow.direction(self.side.other());
        let acknowledger = self.connection?.half(self.side.other());
        let packets = self.payload_bytes().map(|_| self.direction.data_packets)?;
        let pure_acks = other
            .packets
            .checked_sub(other.data_packets + u64::from(acknowledger.bare_controls))
            .filter(|&acks| acks > 0 && packets > 0 && other.cut_packets == 0)
            .filter(|_| acknowledger.bare_controls < u16::MAX)?;
        Some(packets as f64 / pure_acks as f64)
    }
}

/// The columns of flows that tell of flight, windows and rounds.
pub(super) fn of_flows(rows: &[FlowRow<'_>], columns: &mut Columns) {
    columns.u64("max_flight_bytes", rows.iter().map(|row| row.in_bytes()?.max_flight_bytes().map(u64::from)));
    columns.f64("mean_flight_bytes", rows.iter().map(FlowRow::mean_flight_bytes));
    columns.u64("cwnd_max_bytes", rows.iter().map(|row| row.limited_rounds()?.max_cwnd().map(u64::from)));
    columns.u64("receive_window_min_bytes", rows.iter().map(|row| row.window(|range| range.0)));
    columns.u64("receive_window_max_bytes", rows.iter().map(|row| row.window(|range| range.1)));
    columns.f64("zero_window_ms", rows.iter().map(FlowRow::zero_window_ms));
    columns.u64("rounds", rows.iter().map(|row| row.rounds().map(|rounds| u64::from(rounds.count))));
    let exit = |row: &FlowRow<'_>| row.limited_rounds()?.slow_start_exit();
    columns.f64("slow_start_exit_ms", rows.iter().map(|row| exit(row).map(|exit| ms(exit.0))));
    columns.u64("slow_start_exit_bytes", rows.iter().map(|row| exit(row).map(|exit| u64::from(exit.1))));
    let mut episodes = |count: &str, time: &str, of: fn(&Rounds) -> (u32, i64)| {
        let repaired = |row: &FlowRow<'_>| row.repaired_rounds().map(of);
        columns.u64(count, rows.iter().map(|row| repaired(row).map(|(episodes, _)| u64::from(episodes))));
        columns.f64(time, rows.iter().map(|row| repaired(row).map(|(_, ns)| ms(ns))));
    };
    episodes("recovery_episodes", "recovery_ms", Rounds::recoveries);
    episodes("rto_episodes", "rto_ms", Rounds::timeouts);
    let mut share = |name: &str, limit: Limit| {
        columns.f64(name, rows.iter().map(|row| row.limited_rounds()?.times.share(limit)));
    };
    share("app_limited_share", Limit::Application);
    share("receiver_limited_share", Limit::Receiver);
    share("network_limited_share", Limit::Network);
    columns.f64("idle_max_ms", rows.iter().map(|row| row.rounds().map(|rounds| ms(rounds.longest_idle_ns))));
    columns.f64("delayed_ack_ratio", rows.iter().map(FlowRow::delayed_ack_ratio));
    let delayed_acks =
        |row: &FlowRow<'_>| row.rounds().and(row.half).map(|half| u64::from(half.delayed_acks()));
    columns.u64("delayed_ack_samples", rows.iter().map(delayed_acks));
}

/// The table of rounds, in order of their ends.
pub struct RoundRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for RoundRows {
    fn len(&self) -> usize {
        self.analysis.rounds.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.analysis.rounds.kept[start..end];
        let direction =
            |row: &RoundSample| direction_name(row.side, self.analysis.flows.get(row.flow).forward());
        let rounds = || rows.iter().map(|row| row.round);
        let limited = || {
            rows.iter().map(|row| {
                let flow = self.analysis.flows.get(row.flow);
                Some(row.round).filter(|_| sees_limits(&self.analysis, flow, row.side))
            })
        };
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.flow + self.first_flow));
        columns.text("direction", rows.iter().map(direction).map(Some));
        columns.i64("time_ns", rounds().map(|round| round.start_ns));
        columns.f64("duration_ms", rounds().map(|round| ms(round.duration_ns)));
        columns.u64("flight_bytes", rounds().map(|round| u64::from(round.flight)));
        columns.u64("window_bytes", rounds().map(|round| round.window.map(u64::from)));
        columns.u64("cwnd_bytes", limited().map(|round| round?.cwnd().map(u64::from)));
        columns.u64("delivered_bytes", rounds().map(|round| u64::from(round.delivered)));
        columns.f64("rtt_ms", rounds().map(|round| round.rtt_ns.map(|ns| ns as f64 / 1e6)));
        columns.text("limit", limited().map(|round| round.map(|round| round.limit.name())));
        columns.text("phase", limited().map(|round| round?.phase.map(|phase| phase.name())));
        columns.finish(rows.len())
    }
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}
