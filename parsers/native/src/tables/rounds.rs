//! Flight, windows and rounds.

use super::column::column;
use super::flows::FlowRow;
use super::samples::SampleRow;
use super::{Column, Row};
use crate::flow::tcp::ecn::{EcnMode, RoundMarks};
use crate::flow::tcp::vantage::{Vantage, believed};
use crate::flow::tcp::{HalfConnection, Outcome, RepairCause, Round, Rounds};
use crate::flow::{Flow, Found};
use crate::packet::captured::Captured;
use crate::packet::key::Side;
use crate::pass::Analysis;
use crate::pass::collectors::PacketSample;

/// One round of data in flight.
#[derive(Clone, Copy, Debug)]
pub struct RoundSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent the data.
    pub side: Side,
    /// Number of the acknowledgement that ended it.
    pub packet: u64,
    pub round: Round,
}

impl PacketSample for RoundSample {
    const NAME: &'static str = "rounds";
    const IS_OF_ANSWER: bool = true;
    const IS_OF_ALL_FLOWS: bool = false;

    #[inline(always)]
    fn on_outcome(found: Found, packet: &Captured, outcome: &Outcome, mut add: impl FnMut(Self)) {
        if let Some(round) = outcome.round {
            add(Self { flow: found.flow, side: found.side.other(), packet: packet.number, round });
        }
    }

    fn place(&self) -> (u32, Side) {
        (self.flow, self.side)
    }
}

/// The congestion window is only visible where all of the flight is: at the sender, unless the vantage is
/// doubtful.
pub(super) fn sees_flight(analysis: &Analysis, flow: &Flow, side: Side) -> bool {
    believed(analysis.options.vantage_of(flow, side)).is_none_or(|vantage| vantage == Vantage::Sender)
}

impl<'a> FlowRow<'a> {
    /// The rounds, where the capture shows the congestion window.
    fn window_rounds(&self) -> Option<&'a Rounds> {
        self.rounds().filter(|_| sees_flight(&self.analysis, self.flow, self.side))
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
            "largest flight of a round without a retransmission in which data was waiting after the newest \
             segment, and the receive window had room: a lower bound of the largest congestion window, \
             and at the sender usually the window to a segment",
        )
        .null_when("no such round is over, captured away from the sender, or as max_flight_bytes")
        .u64(|row| row.window_rounds()?.max_cwnd().map(u64::from)),
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

impl<'a> Row<'a> for SampleRow<'a, RoundSample> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow)),
        column("direction", "", "direction of the data").name(|row| Some(row.direction)),
        column("time_ns", "ns", "when the round began").i64(|row| Some(row.sample.round.start_ns)),
        column("packet", "", "number in the source of the acknowledgement that ended it")
            .u64(|row| Some(row.sample.packet)),
        column("duration_ms", "ms", "how long it lasted").f64(|row| Some(ms(row.sample.round.duration_ns))),
        column("flight_bytes", "bytes", "most data outstanding in it, as max_flight_bytes of the flow")
            .u64(|row| Some(row.sample.round.flight.into())),
        column("window_bytes", "bytes", "receive window at its end, scaled")
            .null_when("the scale is not known (no SYN)")
            .u64(|row| row.sample.round.window.map(u64::from)),
        column(
            "cwnd_bytes",
            "bytes",
            "estimated congestion window: flight_bytes where data was waiting after the newest segment and \
             the receive window had room; of a recovery with SACK, which makes it smaller, the flight at \
             its end",
        )
        .null_when(
            "no data was waiting, the receive window had room for less than a full segment or a tenth of it, \
             a recovery goes on or has no SACK, after a timeout, or captured away from the sender",
        )
        .u64(|row| row.of_window()?.cwnd().map(u64::from)),
        column("delivered_bytes", "bytes", "data acknowledged in it")
            .u64(|row| Some(row.sample.round.delivered.into())),
        column("rtt_ms", "ms", "RTT sample of the acknowledgement that ended it")
            .null_when("it gave none")
            .f64(|row| row.sample.round.rtt_ns.map(|ns| ns as f64 / 1e6)),
        column(
            "ect_packets",
            "",
            "packets of an ECN-capable transport sent from the end of the round before to its end, marked ones \
             included",
        )
        .null_when("the trace shows no IP headers")
        .u64(|row| Some(row.marks()?.ect_packets)),
        column("ect1_packets", "", "of them with ECT(1)")
            .null_when("as ect_packets")
            .u64(|row| Some(row.marks()?.ect1_packets)),
        column("ce_packets", "", "of them with a congestion mark that they had at the capture")
            .null_when("as ect_packets")
            .u64(|row| Some(row.marks()?.ce_packets)),
        column(
            "ece_packets",
            "",
            "acknowledgements that echoed a mark (ECE), up to the one that ended the round",
        )
        .null_when("as ect_packets, or the flags are a counter (accurate ECN)")
        .u64(|row| Some(row.echoed()?.ece_packets)),
        column(
            "reported_ce_packets",
            "",
            "packets with a congestion mark by the counter of the other side (accurate ECN), up to the \
             acknowledgement that ended the round",
        )
        .null_when("as reported_ce_packets of the flow")
        .u64(|row| row.sample.round.marks.reported_ce_packets),
        column(
            "repair",
            "",
            "why data had been retransmitted, until all that was outstanding then is acknowledged: `recovery` \
             (acknowledgements reported a loss) or `timeout`",
        )
        .null_when("nothing was repaired, or captured at the receiver")
        .name(|row| row.repair().map(RepairCause::name)),
    ]];
}

impl SampleRow<'_, RoundSample> {
    fn marks(&self) -> Option<&RoundMarks> {
        let flow = self.analysis.flow(self.sample.flow);
        flow.marks(self.sample.side).map(|_| &self.sample.round.marks)
    }

    /// The marks, where ECE echoes them (RFC 3168 section 6.1.3).
    fn echoed(&self) -> Option<&RoundMarks> {
        let connection = self.analysis.flow(self.sample.flow).transport.tcp.as_deref()?;
        self.marks().filter(|_| connection.ecn_mode() != Some(EcnMode::Accurate))
    }

    /// What is repaired, where the capture shows retransmissions.
    fn repair(&self) -> Option<RepairCause> {
        let flow = self.analysis.flow(self.sample.flow);
        let vantage = self.analysis.options.vantage_of(flow, self.sample.side);
        self.sample.round.repair.filter(|_| vantage.is_none_or(|(place, _)| place != Vantage::Receiver))
    }

    /// The round, where the capture shows the congestion window.
    fn of_window(&self) -> Option<&Round> {
        let flow = self.analysis.flow(self.sample.flow);
        sees_flight(&self.analysis, flow, self.sample.side).then_some(&self.sample.round)
    }
}

pub(super) fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}
