//! The details of TCP connections as a table.

use std::io;

use super::column::column;
use super::flows::FlowRow;
use super::shown::Shown;
use super::{Column, PassTable, Row};
use crate::flow::tcp::details::ConnectionDetails;
use crate::pass::Analysis;

/// The table of details: two rows for each TCP connection of a capture, `fwd` then `rev`.
pub(super) struct Details {
    /// The flows with details.
    flows: Vec<u32>,
}

/// A row of the table of flows, with its details.
pub struct DetailRow<'a> {
    flow: FlowRow<'a>,
    details: &'a ConnectionDetails,
}

impl DetailRow<'_> {
    fn mean_segment_bytes(&self) -> Option<f64> {
        let direction = self.flow.direction;
        let bytes = self.flow.payload_bytes()?;
        (direction.data_packets > 0).then(|| bytes as f64 / direction.data_packets as f64)
    }

    fn mean_window_bytes(&self) -> Option<f64> {
        let connection = self.flow.connection?;
        let (side, other) = (self.flow.side, self.flow.side.other());
        let factor = connection.half(side).scaled(1, connection.half(other))?;
        Some(self.details.mean_window()? * f64::from(factor))
    }

    fn with_syn(&self, value: bool) -> Option<u32> {
        (self.details.syns > 0).then_some(value.into())
    }

    /// Bytes between SYN and FIN that are not in the capture.
    fn missed_bytes(&self) -> Option<u64> {
        self.details.stream_bytes()?.checked_sub(self.flow.unique_bytes()?)
    }
}

impl PassTable for Details {
    type Row<'a> = DetailRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let has_some =
            |flow: &u32| analysis.results.details.as_ref().is_some_and(|all| all.get(*flow).is_some());
        Ok(Self { flows: (0..analysis.carried.flows.len() as u32).filter(has_some).collect() })
    }

    fn len(&self, _: &Analysis) -> usize {
        2 * self.flows.len()
    }

    fn flow(&self, _: &Analysis, row: usize) -> Option<u32> {
        self.flows.get(row / 2).copied()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<DetailRow<'a>> {
        let &number = self.flows.get(row / 2)?;
        let flow = FlowRow::at(shown, 2 * number as usize + row % 2, first_flow);
        let details = shown.analysis.results.details.as_ref()?.get(number)?.get(flow.side as usize)?;
        Some(DetailRow { flow, details })
    }
}

fn of_data(bytes: u32) -> Option<u32> {
    (bytes > 0).then_some(bytes)
}

impl<'a> Row<'a> for DetailRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[Self::PACKETS, Self::SIZES, Self::ACKNOWLEDGEMENTS];
}

impl<'a> DetailRow<'a> {
    const PACKETS: &'a [Column<Self>] = &[
        column("flow", "", "number of the conversation").u32(|row| Some(row.flow.number)),
        column("direction", "", "`fwd` or `rev`").name(|row| Some(row.flow.direction_name())),
        column("ack_packets", "", "packets with the ACK flag")
            .u64(|row| Some(row.details.ack_packets.into())),
        column("pure_acks", "", "ACK packets with neither payload nor SYN, FIN or RST")
            .u64(|row| Some(row.details.pure_acks.into())),
        column("sack_packets", "", "packets with SACK blocks (RFC 2018)")
            .u64(|row| Some(row.details.sack_packets.into())),
        column("dsack_packets", "", "SACK packets whose first block reports a duplicate (RFC 2883)")
            .u64(|row| Some(row.details.dsack_packets.into())),
        column("max_sack_blocks", "", "most blocks in one packet")
            .u64(|row| Some(row.details.max_sack_blocks.into())),
        column("pushed_packets", "", "data packets with the PSH flag")
            .u64(|row| Some(row.details.pushed_packets.into())),
        column("syn_packets", "", "packets with SYN").u64(|row| Some(row.details.syns.into())),
        column("fin_packets", "", "packets with FIN").u64(|row| Some(row.details.fins.into())),
        column("rst_packets", "", "packets with RST").u64(|row| Some(row.details.resets.into())),
        column("urgent_packets", "", "packets with the URG flag")
            .u64(|row| Some(row.details.urgent_packets.into())),
        column("window_scale", "bits", "shift of the windows that the SYN announced")
            .null_when("it had none")
            .u32(|row| row.flow.half?.options.window_scale.map(u32::from)),
        column("offers_timestamps", "", "1 if the SYN had timestamps (RFC 7323)")
            .null_when("no SYN")
            .u32(|row| row.with_syn(row.details.offers_timestamps)),
        column("permits_sack", "", "1 if the SYN permits SACK (RFC 2018)")
            .null_when("no SYN")
            .u32(|row| row.with_syn(row.details.permits_sack)),
    ];

    const SIZES: &'a [Column<Self>] = &[
        column("min_segment_bytes", "bytes", "shortest payload of a data packet")
            .null_when("no data")
            .u32(|row| of_data(row.details.shortest_payload)),
        column("mean_segment_bytes", "bytes", "their mean payload")
            .null_when("no data, or as payload_bytes")
            .f64(DetailRow::mean_segment_bytes),
        column("max_segment_bytes", "bytes", "longest")
            .null_when("no data")
            .u32(|row| of_data(row.flow.direction.largest_payload)),
        column(
            "mean_window_bytes",
            "bytes",
            "mean of the receive windows in packets of this side, scaled; SYN and RST do not count",
        )
        .null_when("no such packet, or the scale is not known")
        .f64(DetailRow::mean_window_bytes),
        column(
            "initial_window_bytes",
            "bytes",
            "payload sent before the other side acknowledged any of it, repetitions not counted (RFC 5681's \
             initial window, if there was that much to send)",
        )
        .null_when("no SYN")
        .u64(|row| Some(row.details.initial_window()?.0)),
        column("initial_window_packets", "", "data packets that carried it")
            .null_when("no SYN")
            .u64(|row| Some(row.details.initial_window()?.1.into())),
        column("stream_bytes", "bytes", "sequence numbers from SYN to FIN")
            .null_when("one of them was not seen")
            .u64(|row| row.details.stream_bytes()),
        column("missed_bytes", "bytes", "bytes of the stream that no captured packet has")
            .null_when("as stream_bytes")
            .u64(DetailRow::missed_bytes),
        column("truncated_packets", "", "data packets whose payload the snap length cut")
            .u64(|row| Some(row.details.truncated.0.into())),
        column("truncated_bytes", "bytes", "payload that it cut").u64(|row| Some(row.details.truncated.1)),
        column("data_time_s", "s", "from the first to the last data packet")
            .null_when("no data")
            .f64(|row| row.details.data_time_ns().map(|ns| ns as f64 / 1e9)),
        column("gap_max_ms", "ms", "longest time between packets of this direction")
            .f64(|row| row.flow.seen(row.details.longest_gap_ns as f64 / 1e6)),
    ];

    const ACKNOWLEDGEMENTS: &'a [Column<Self>] = &[
        column("cumulative_acks", "", "segments of this direction acknowledged together with later ones")
            .u64(|row| Some(row.details.transmissions.cumulative.into())),
        column(
            "post_loss_acks",
            "",
            "acknowledgements of a segment that was seen before an older one was retransmitted or \
             came late",
        )
        .u64(|row| Some(row.details.transmissions.post_loss.into())),
        column(
            "triple_duplicate_acks",
            "",
            "times this side repeated an acknowledgement for the third time while data was \
             outstanding (RFC 5681 section 3.2)",
        )
        .u64(|row| Some(row.details.triple_duplicates.into())),
        column("max_retransmissions", "", "most retransmissions of one segment")
            .u64(|row| Some(row.details.transmissions.max_repeats.into())),
        column("retransmission_min_ms", "ms", "shortest time from one transmission of a segment to the next")
            .null_when("no segment was retransmitted before it was acknowledged")
            .f64(|row| row.details.transmissions.intervals.range.min_ms()),
        column("retransmission_mean_ms", "ms", "mean of them")
            .null_when("as retransmission_min_ms")
            .f64(|row| row.details.transmissions.intervals.range.mean_ms()),
        column("retransmission_max_ms", "ms", "longest")
            .null_when("as retransmission_min_ms")
            .f64(|row| row.details.transmissions.intervals.range.max_ms()),
        column("retransmission_std_ms", "ms", "sample standard deviation")
            .null_when("fewer than two were retransmitted")
            .f64(|row| row.details.transmissions.intervals.sample_std_ms()),
        column(
            "ambiguous_acks",
            "",
            "acknowledgements of segments that were sent more than once, which give no RTT (Karn's \
             rule)",
        )
        .u64(|row| Some(row.details.transmissions.ambiguous.range.count())),
        column(
            "ambiguous_rtt_min_ms",
            "ms",
            "shortest time from the last transmission of such a segment to its acknowledgement",
        )
        .null_when("no such acknowledgement")
        .f64(|row| row.details.transmissions.ambiguous.range.min_ms()),
        column("ambiguous_rtt_mean_ms", "ms", "mean of them")
            .null_when("as ambiguous_rtt_min_ms")
            .f64(|row| row.details.transmissions.ambiguous.range.mean_ms()),
        column("ambiguous_rtt_max_ms", "ms", "longest")
            .null_when("as ambiguous_rtt_min_ms")
            .f64(|row| row.details.transmissions.ambiguous.range.max_ms()),
        column("ambiguous_rtt_std_ms", "ms", "sample standard deviation")
            .null_when("fewer than two")
            .f64(|row| row.details.transmissions.ambiguous.sample_std_ms()),
        column(
            "unwatched_segments",
            "",
            "segments not followed to their acknowledgement because 65,536 others of the direction \
             were outstanding, or 1,048,576 of all; and packets that repeat more than 1,024 at once",
        )
        .u64(|row| Some(row.details.transmissions.unwatched.into())),
    ];
}
