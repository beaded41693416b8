//! Flight, windows and rounds.

use std::io;

use super::column::column;
use super::explained::explained;
use super::flows::FlowRow;
use super::round_samples::RoundSample;
use super::samples::{Sample, SampleRow};
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::tcp::causes::{Cause, Clock, ExplainedDirection, Lap, View};
use crate::flow::tcp::ecn::{EcnMode, RoundMarks};
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tcp::{HalfConnection, RepairCause, Round, Rounds};
use crate::pass::Analysis;

impl<'a> FlowRow<'a> {
    /// The rounds, where the capture shows the congestion window.
    fn window_rounds(&self) -> Option<&'a Rounds> {
        self.rounds().filter(|_| self.analysis.options.shows_flight(self.flow, self.side))
    }

    /// Why the congestion window is null.
    pub(super) fn note_on_window(&self) -> Option<&'static str> {
        let hides_window = self.rounds().is_some() && self.window_rounds().is_none();
        hides_window.then_some("captured away from the sender: its congestion window cannot be seen")
    }

    /// The rounds, where the capture shows retransmissions.
    fn repaired_rounds(&self) -> Option<&'a Rounds> {
        self.half_connection_unless(Vantage::Receiver).and_then(|_| self.rounds())
    }

    /// The half-connection, if its sequence numbers count bytes.
    fn in_bytes(&self) -> Option<&'a HalfConnection> {
        self.half.filter(|_| !self.counts_packets())
    }

    fn rounds(&self) -> Option<&'a Rounds> {
        self.in_bytes()?.rounds()
    }

    /// A window announced by this side, in bytes.
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

impl<'a> FlowRow<'a> {
    pub(super) const FLIGHT: &'a [Column<Self>] = &[
        column(
            "max_flight_bytes",
            "bytes",
            "most data (SYN, FIN) outstanding at one time, as seen at the capture (FlightSize, RFC \
             5681 section 2, less what SACK blocks acknowledge)",
        )
        .null_when("no data, not TCP, as payload_bytes, or sequence numbers count packets")
        .u64(|row| row.in_bytes()?.max_flight_bytes().map(u64::from)),
        column("mean_flight_bytes", "bytes", "mean over the time in which data was outstanding")
            .null_when("as max_flight_bytes, or no time went by")
            .f64(FlowRow::mean_flight_bytes),
        column(
            "cwnd_max_bytes",
            "bytes",
            "largest congestion window, as far as it was used: max_flight_bytes, if that was reached while no \
             loss was being repaired; a lower bound where something else limited the flight",
        )
        .null_when(
            "the flight was largest in a recovery, where lost data count until they are acknowledged; captured \
             away from the sender; or as max_flight_bytes",
        )
        .u64(|row| row.window_rounds().and(row.in_bytes())?.max_cwnd_bytes().map(u64::from)),
        column(
            "receive_window_min_bytes",
            "bytes",
            "smallest receive window that this side announced, scaled; SYN and RST do not count",
        )
        .null_when("the scale is not known (no SYN), or as max_flight_bytes")
        .u64(|row| row.window(|range| range.0)),
        column("receive_window_max_bytes", "bytes", "largest, likewise")
            .null_when("as receive_window_min_bytes")
            .u64(|row| row.window(|range| range.1)),
        column("zero_window_ms", "ms", "time for which the receive window of this side was 0")
            .null_when("as duplicate_acks")
            .f64(FlowRow::zero_window_ms),
        column(
            "rounds",
            "",
            "rounds of data: from an acknowledgement to that of the highest number sent then, or \
             from the first data after silence to its acknowledgement",
        )
        .null_when("as max_flight_bytes")
        .u64(|row| Some(row.rounds()?.count.into())),
        column(
            "slow_start_exit_ms",
            "ms",
            "from the first data until the flight stopped growing by half or more in a round, or \
             until a retransmission",
        )
        .null_when("it did not, or as cwnd_max_bytes")
        .f64(|row| Some(ms(row.window_rounds()?.slow_start_exit()?.0))),
        column("slow_start_exit_bytes", "bytes", "the flight then")
            .null_when("as slow_start_exit_ms")
            .u64(|row| Some(row.window_rounds()?.slow_start_exit()?.1.into())),
        column(
            "recovery_episodes",
            "",
            "periods with retransmissions but no timeout, each until all that was outstanding at its \
             start is acknowledged (RFC 6582)",
        )
        .null_when("captured at the receiver, or as max_flight_bytes")
        .u64(|row| Some(row.repaired_rounds()?.recoveries().0.into())),
        column("recovery_ms", "ms", "time in completed recoveries")
            .null_when("as recovery_episodes")
            .f64(|row| Some(ms(row.repaired_rounds()?.recoveries().1))),
        column("rto_episodes", "", "recoveries after retransmission timeouts")
            .null_when("as recovery_episodes")
            .u64(|row| Some(row.repaired_rounds()?.timeouts().0.into())),
        column("rto_ms", "ms", "time in completed recoveries after timeouts")
            .null_when("as recovery_episodes")
            .f64(|row| Some(ms(row.repaired_rounds()?.timeouts().1))),
        column("idle_max_ms", "ms", "longest time between data in which nothing was outstanding")
            .null_when("as max_flight_bytes")
            .f64(|row| Some(ms(row.rounds()?.longest_idle_ns))),
        column(
            "delayed_ack_ratio",
            "",
            "data packets for each pure acknowledgement of the other side; 2 where it acknowledges \
             every second (RFC 5681 section 4.2)",
        )
        .null_when("no data or no pure acknowledgement, or as payload_bytes")
        .f64(FlowRow::delayed_ack_ratio),
        column(
            "delayed_ack_samples",
            "",
            "rtt_samples that seem to have waited for a delayed-acknowledgement timer: less than two \
             full segments, nothing else outstanding, a pure acknowledgement, 40 ms or more above \
             the smallest RTT until then",
        )
        .null_when("as max_flight_bytes")
        .u64(|row| Some(row.rounds().and(row.half)?.delayed_acks().into())),
    ];
}

/// The rounds, with what tells what limited them.
#[derive(Default)]
pub(super) struct RoundTable {
    /// Whether the sender of each direction that is explained paces its data.
    paced: Vec<bool>,
}

/// A round, and its direction as its sender saw it.
pub struct RoundRow<'a> {
    of: SampleRow<'a, RoundSample>,
    explained: Option<(&'a ExplainedDirection, &'a View)>,
    is_paced: bool,
}

impl PassTable for RoundTable {
    type Row<'a> = RoundRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let Some(ledgers) = &analysis.results.ledgers else { return Ok(Self::default()) };
        let is_paced =
            |of: &ExplainedDirection| ledgers.get(of.flow, of.side).is_some_and(|view| of.is_paced(view));
        Ok(Self { paced: explained(analysis)?.iter().map(is_paced).collect() })
    }

    fn len(&self, analysis: &Analysis) -> usize {
        RoundSample::kept(analysis).len()
    }

    fn flow(&self, analysis: &Analysis, row: usize) -> Option<u32> {
        RoundSample::kept(analysis).get(row).map(|sample| sample.flow)
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<RoundRow<'a>> {
        let of = SampleRow::<RoundSample>::at(shown, row, first_flow)?;
        let RoundSample { flow, side, .. } = *of.sample;
        let all = explained(shown.analysis).ok()?;
        let first = all.partition_point(|of| of.flow < flow);
        let own =
            all.iter().enumerate().skip(first).take(2).find(|(_, of)| (of.flow, of.side) == (flow, side));
        let view = shown.analysis.results.ledgers.as_ref().and_then(|ledgers| ledgers.get(flow, side));
        let is_paced = own.is_some_and(|(index, _)| self.paced.get(index) == Some(&true));
        Some(RoundRow { of, explained: own.map(|(_, own)| own).zip(view), is_paced })
    }
}

impl<'a> Row<'a> for RoundRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.of.flow)),
        column("direction", "", "direction of the data").name(|row| Some(row.of.direction)),
        column("time_ns", "ns", "when the round began").i64(|row| Some(row.of.sample.round.start_ns)),
        column("packet", "", "number in the source of the acknowledgement that ended it")
            .u64(|row| Some(row.of.sample.packet)),
        column("duration_ms", "ms", "how long it lasted").f64(|row| Some(ms(row.of.sample.round.duration_ns))),
        column(
            "flight_bytes",
            "bytes",
            "most data outstanding in it: at the sender, or as max_flight_bytes of the flow if the capture does \
             not show how far away that is",
        )
        .u64(|row| Some(row.of.sample.round.flight.into())),
        column("window_bytes", "bytes", "receive window at its end, scaled")
            .null_when("the scale is not known (no SYN)")
            .u64(|row| row.of.sample.round.window.map(u64::from)),
        column(
            "cwnd_bytes",
            "bytes",
            "congestion window: flight_bytes of a round that it limited, by the table of causes; of a recovery \
             with SACK, which makes it smaller, the flight at its end",
        )
        .null_when(
            "something else limited the flight for a part of the round, or nothing tells what did; the sender \
             paces its data; a recovery goes on or has no SACK; after a timeout; or captured away from the sender",
        )
        .u64(|row| row.of_window()?.cwnd().filter(|_| row.is_limited_by_window()).map(u64::from)),
        column(
            "cwnd_least_bytes",
            "bytes",
            "lower bound of the congestion window, whatever limited the flight: what it let go, \
             sender_flight_bytes less flight_error_bytes",
        )
        .null_when("a recovery goes on or has no SACK, after a timeout, or as sender_flight_bytes")
        .u64(RoundRow::least_cwnd),
        column(
            "pacing_bps",
            "bit/s",
            "rate of payload at which the sender paces: median from each of its bursts to the next, in the time \
             of one round trip in the middle of the round",
        )
        .null_when(
            "acknowledgements let most of the bursts of the sender, or of this time, go; there are less than four, \
             or quartiles of their rates are over 30 % apart; the sender had no data; or captured away from it",
        )
        .u64(RoundRow::pacing_bps),
        column(
            "sender_flight_bytes",
            "bytes",
            "flight_bytes where it is that of the sender: captured there, or an estimate",
        )
        .null_when("the capture does not show how far away the sender is")
        .u64(|row| row.sender_flight().map(|(flight, _)| flight.into())),
        column("flight_error_bytes", "bytes", "by how much it may be larger or smaller; 0 at the sender")
            .null_when("as sender_flight_bytes")
            .u64(|row| row.sender_flight().map(|(_, error)| error.into())),
        column("delivered_bytes", "bytes", "data acknowledged in it")
            .u64(|row| Some(row.of.sample.round.delivered.into())),
        column("rtt_ms", "ms", "RTT sample of the acknowledgement that ended it")
            .null_when("it gave none")
            .f64(|row| row.of.sample.round.rtt_ns.map(|ns| ns as f64 / 1e6)),
        column(
            "ect_packets",
            "",
            "packets of an ECN-capable transport sent from the end of the round before to its end, marked ones \
             included",
        )
        .null_when("the trace shows no IP headers")
        .u64(|row| Some(row.marks()?.ect_packets.into())),
        column("ect1_packets", "", "of them with ECT(1)")
            .null_when("as ect_packets")
            .u64(|row| Some(row.marks()?.ect1_packets.into())),
        column("ce_packets", "", "of them with a congestion mark that they had at the capture")
            .null_when("as ect_packets")
            .u64(|row| Some(row.marks()?.ce_packets.into())),
        column(
            "ece_packets",
            "",
            "acknowledgements that echoed a mark (ECE), up to the one that ended the round",
        )
        .null_when("as ect_packets, or the flags are a counter (accurate ECN)")
        .u64(|row| Some(row.echoed()?.ece_packets.into())),
        column(
            "reported_ce_packets",
            "",
            "packets with a congestion mark by the counter of the other side (accurate ECN), up to the \
             acknowledgement that ended the round",
        )
        .null_when("as reported_ce_packets of the flow")
        .u64(|row| row.of.sample.round.marks.reported_ce_packets.map(u64::from)),
        column(
            "repair",
            "",
            "why data had been retransmitted, until all that was outstanding then is acknowledged: `recovery` \
             (acknowledgements reported a loss) or `timeout`",
        )
        .null_when("nothing was repaired, or captured at the receiver without sender_flight_bytes")
        .name(|row| row.repair().map(RepairCause::name)),
    ]];
}

impl RoundRow<'_> {
    fn marks(&self) -> Option<&RoundMarks> {
        let flow = self.of.analysis.flow(self.of.sample.flow);
        flow.marks(self.of.sample.side).map(|_| &self.of.sample.round.marks)
    }

    /// The marks, where ECE echoes them (RFC 3168 section 6.1.3).
    fn echoed(&self) -> Option<&RoundMarks> {
        let connection = self.of.analysis.flow(self.of.sample.flow).transport.tcp.as_deref()?;
        self.marks().filter(|_| connection.ecn_mode() != Some(EcnMode::Accurate))
    }

    /// What is repaired, where the capture shows retransmissions.
    fn repair(&self) -> Option<RepairCause> {
        let flow = self.of.analysis.flow(self.of.sample.flow);
        let vantage = self.of.analysis.options.vantage_of(flow, self.of.sample.side);
        let is_shown = self.of.sample.flight_error.is_some()
            || vantage.is_none_or(|(place, _)| place != Vantage::Receiver);
        self.of.sample.round.repair.filter(|_| is_shown)
    }

    /// The round, where the capture shows the congestion window.
    fn of_window(&self) -> Option<&Round> {
        let flow = self.of.analysis.flow(self.of.sample.flow);
        self.of.analysis.options.shows_flight(flow, self.of.sample.side).then_some(&self.of.sample.round)
    }
}

impl RoundRow<'_> {
    /// Whether the congestion window limited the flight all through the round. A pace keeps it below the window.
    fn is_limited_by_window(&self) -> bool {
        !self.is_paced && self.is_held_by(Cause::is_of_window)
    }

    fn pacing_bps(&self) -> Option<u64> {
        self.of_window()?;
        match self.lap()?.clock? {
            Clock::Pace(rate) if self.is_paced && self.is_held_by(Cause::has_data) => {
                Some(rate.saturating_mul(8))
            }
            _ => None,
        }
    }

    /// Whether causes of one kind held the sender back all through the round.
    fn is_held_by(&self, kind: fn(Cause) -> bool) -> bool {
        let Round { start_ns, duration_ns, .. } = self.of.sample.round;
        let times_ns = (start_ns, start_ns.saturating_add(duration_ns));
        self.explained.is_some_and(|(explained, _)| explained.is_held_by(kind, times_ns))
    }

    fn least_cwnd(&self) -> Option<u64> {
        let (_, error) = self.sender_flight()?;
        Some(self.of.sample.round.least_cwnd()?.saturating_sub(error).into())
    }

    /// Most data in flight at the sender, and by how much that may be wrong.
    fn sender_flight(&self) -> Option<(u32, u32)> {
        let error = self.of.sample.flight_error.or_else(|| self.of_window().map(|_| 0))?;
        Some((self.of.sample.round.flight, error))
    }

    /// The lap in the middle of the round, as the sender saw it.
    fn lap(&self) -> Option<&Lap> {
        let Round { start_ns, duration_ns, .. } = self.of.sample.round;
        let (_, view) = self.explained?;
        view.waits.path.lap_at(start_ns.saturating_add(duration_ns / 2))
    }
}

pub(super) fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}
