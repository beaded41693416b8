//! Groups of flows by interval.

mod buckets;
mod held_back;
mod path;
mod wifi;

use std::io;

use crate::flow::intervals::{Count, Duration};
use crate::flow::rtt_statistics::LogHistogram;
use crate::groups::{GroupDirection, GroupKey, GroupRow, Groups};
use crate::input::source_summary::SourceSummary;
use crate::pass::Analysis;
use crate::tables::column::{Filled, column, record_batch};
use crate::tables::shown::Shown;
use crate::tables::{Column, PassTable, Row};
pub(super) use buckets::GroupBuckets;
use held_back::HeldBack;

/// The numbers of the rows, in the order of the table.
pub(in crate::tables) struct GroupTable {
    order: Vec<u32>,
    held: Option<HeldBack>,
}

impl PassTable for GroupTable {
    type Row<'a> = GroupTableRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let Some(groups) = analysis.carried.groups() else {
            return Ok(Self { order: Vec::new(), held: None });
        };
        Ok(Self { order: groups.in_order(), held: HeldBack::of(analysis, groups)? })
    }

    fn len(&self, _: &Analysis) -> usize {
        self.order.len()
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<GroupTableRow<'a>> {
        let row = GroupTableRow::at(shown.analysis, *self.order.get(row)?, first_flow)?;
        Some(GroupTableRow { held: self.held.as_ref(), ..row })
    }
}

/// These rows of groups.
pub fn group_rows(analysis: &Analysis, numbers: &[u32]) -> Filled {
    let row = |&number: &u32| GroupTableRow::at(analysis, number, 1);
    record_batch(&numbers.iter().filter_map(row).collect::<Vec<_>>(), &|_| true)
}

/// One direction of a group in one interval.
pub(in crate::tables) struct GroupTableRow<'a> {
    analysis: &'a Analysis,
    groups: &'a Groups,
    number: u32,
    row: &'a GroupRow,
    held: Option<&'a HeldBack>,
    first_flow: u32,
}

impl<'a> GroupTableRow<'a> {
    fn at(analysis: &'a Analysis, number: u32, first_flow: u32) -> Option<Self> {
        let groups = analysis.carried.groups()?;
        Some(Self { analysis, groups, number, row: groups.row(number)?, held: None, first_flow })
    }

    fn group(&self) -> Option<String> {
        let source = |number: u32| self.analysis.carried.sources.get(number as usize);
        match self.groups.key(self.row) {
            GroupKey::Link => self.analysis.first_source().map(str::to_owned),
            GroupKey::Flow(number) => Some((number + self.first_flow).to_string()),
            key => {
                let notation = source(key.source()).map(SourceSummary::notation).unwrap_or_default();
                key.name(self.groups.grouping.by, notation)
            }
        }
    }

    fn direction(&self) -> &'static str {
        let direction = if self.row.is_in { GroupDirection::In } else { GroupDirection::Out };
        self.groups.grouping.by.direction_name(direction)
    }

    /// A count of all packets. What was taken back of another interval is none.
    fn count(&self, count: Count) -> Option<u64> {
        Some(u64::try_from(self.row.counts.get(count)).unwrap_or_default())
    }

    /// A count of packets whose payload is known.
    fn of_payload(&self, count: Count) -> Option<u64> {
        let counts = &self.row.counts;
        self.count(count).filter(|_| counts.get(Count::CutPackets) < counts.get(Count::Packets).max(1))
    }

    /// A count of TCP.
    fn of_tcp(&self, count: Count) -> Option<u64> {
        self.if_any(Count::TcpPackets, count)
    }

    fn marks(&self, count: Count) -> Option<u64> {
        self.of_tcp(count).or_else(|| self.if_any(Count::EctPackets, count))
    }

    /// A count that is known if there are any packets of another. What became known later is there
    /// without.
    fn if_any(&self, shown: Count, count: Count) -> Option<u64> {
        self.count(count).filter(|&number| number > 0 || self.row.counts.get(shown) > 0)
    }

    fn goodput_bps(&self) -> Option<f64> {
        let duration_ns = self.row.end_ns.saturating_sub(self.row.start_ns);
        let bytes = self.of_payload(Count::GoodputBytes).filter(|_| duration_ns > 0)?;
        Some(bytes as f64 * 8.0 * 1e9 / duration_ns as f64)
    }

    fn tcp_data_segments(&self) -> Option<u64> {
        self.of_tcp(Count::TcpDataPackets)?;
        Some(u64::try_from(self.row.counts.tcp_data_segments()).unwrap_or_default())
    }

    fn retransmission_ratio(&self) -> Option<f64> {
        let segments = self.tcp_data_segments().filter(|&segments| segments > 0)?;
        Some(self.count(Count::RetransmittedSegments)? as f64 / segments as f64)
    }

    /// The samples of a histogram, if the trace has times.
    fn timed<'b>(&self, samples: &'b LogHistogram) -> Option<&'b LogHistogram> {
        Some(samples).filter(|_| self.analysis.results.has_times)
    }

    fn rtt(&self) -> Option<&LogHistogram> {
        self.timed(&self.row.rtt)
    }

    fn rtt_samples(&self) -> Option<u64> {
        let samples = self.rtt()?.count();
        (samples > 0 || self.row.counts.get(Count::TcpPackets) > 0).then_some(samples)
    }

    fn rtt_mean_ms(&self) -> Option<f64> {
        let samples = self.rtt()?.count();
        (samples > 0).then(|| self.row.counts.get(Count::RttSumNs) as f64 / samples as f64 / 1e6)
    }

    fn rtt_ms(&self, share: f64) -> Option<f64> {
        Some(self.rtt()?.percentile(share)? as f64 / 1e6)
    }

    fn samples(&self, what: Duration) -> Option<u64> {
        let samples = self.row.durations(what).map_or(0, LogHistogram::count);
        Some(samples).filter(|_| self.analysis.results.has_times)
    }

    fn percentile_ms(&self, what: Duration, share: f64) -> Option<f64> {
        Some(self.timed(self.row.durations(what)?)?.percentile(share)? as f64 / 1e6)
    }
}

impl<'a> GroupTableRow<'a> {
    const KEY: &'a [Column<Self>] = &[
        column("group", "", "name of the group: an address, a network, a port, an input ...")
            .null_when("the packets do not show it")
            .text(Self::group),
        column(
            "direction",
            "",
            "`sent` or `received` by a host, network or port; for other groups `fwd` from the side that \
             opened a flow, or `rev`",
        )
        .name(|row| Some(row.direction())),
        column("start_ns", "ns", "start of the interval; without intervals, the first packet")
            .i64(|row| Some(row.row.start_ns)),
        column("end_ns", "ns", "end of the interval; without intervals, the last packet")
            .i64(|row| Some(row.row.end_ns)),
    ];

    const VOLUME: &'a [Column<Self>] = &[
        column("packets", "", "packets of flows").u64(|row| row.count(Count::Packets)),
        column("wire_bytes", "bytes", "their frames as they were on the wire")
            .u64(|row| row.count(Count::WireBytes)),
        column("payload_bytes", "bytes", "their transport payload, retransmissions included")
            .null_when("the snap length cut the transport header of all packets")
            .u64(|row| row.of_payload(Count::PayloadBytes)),
        column("cut_packets", "", "packets whose payload is not known and missing in the sums of it")
            .u64(|row| row.count(Count::CutPackets)),
        column("data_packets", "", "packets that carry payload")
            .null_when("as payload_bytes")
            .u64(|row| row.of_payload(Count::DataPackets)),
        column("goodput_bytes", "bytes", "payload, each sequence number of TCP counted once")
            .null_when("as payload_bytes")
            .u64(|row| row.of_payload(Count::GoodputBytes)),
        column("goodput_bps", "bit/s", "goodput_bytes over the time from start_ns to end_ns")
            .null_when("as payload_bytes, or no time passed")
            .f64(Self::goodput_bps),
        column("promised_bps", "bit/s", "rate that the inventory promises to a site")
            .null_when("not grouped by site, or nothing promised")
            .f64(|_| None),
        column("promised_share", "", "goodput_bps of promised_bps")
            .null_when("as promised_bps")
            .f64(|_| None),
    ];

    const LOSSES: &'a [Column<Self>] = &[
        column("tcp_packets", "", "packets of TCP").u64(|row| row.count(Count::TcpPackets)),
        column("tcp_data_packets", "", "packets of TCP that carry payload")
            .null_when("no packets of TCP")
            .u64(|row| row.of_tcp(Count::TcpDataPackets)),
        column(
            "tcp_data_segments",
            "",
            "their segments as the wire carried them: a packet that offload cuts after the capture, or joined \
             before it, is several",
        )
        .null_when("as tcp_data_packets")
        .u64(Self::tcp_data_segments),
        column(
            "retransmitted_segments",
            "",
            "those of tcp_data_segments with bytes that the capture had already shown",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::RetransmittedSegments)),
        column(
            "retransmitted_packets",
            "",
            "data packets with at least one byte that the capture had already shown",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::RetransmittedPackets)),
        column("retransmitted_bytes", "bytes", "payload bytes already captured")
            .null_when("as tcp_data_packets")
            .u64(|row| row.of_tcp(Count::RetransmittedBytes)),
        column("retransmission_ratio", "", "retransmitted_segments of all tcp_data_segments")
            .null_when("no data packets of TCP")
            .f64(Self::retransmission_ratio),
        column(
            "spurious_retransmissions",
            "",
            "retransmissions that were not needed, in the interval in which they were sent",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::SpuriousRetransmissions)),
        column(
            "arrivals_shown",
            "",
            "data segments of TCP, and numbered packets, sent towards the capture, where it was not at their \
             sender, so that losses before it and reordering would be seen: those that arrived, and \
             lost_before_capture",
        )
        .null_when("neither packets of TCP nor numbered ones")
        .u64(|row| row.of_tcp(Count::ArrivalsShown).or_else(|| row.if_any(Count::NumberedPackets, Count::ArrivalsShown))),
        column(
            "lost_before_capture",
            "",
            "of arrivals_shown, lost before the capture: retransmitted later, or never seen",
        )
        .null_when("arrivals_shown is 0")
        .u64(|row| row.if_any(Count::ArrivalsShown, Count::LostBefore)),
        column(
            "numbered_packets",
            "",
            "packets of DCCP, RTP and UDP whose payload has numbers, each once: their gaps show losses before the \
             capture",
        )
        .u64(|row| row.count(Count::NumberedPackets)),
        column("reordered_packets", "", "packets that arrived at the capture after later ones")
            .null_when("as lost_before_capture")
            .u64(|row| row.if_any(Count::ArrivalsShown, Count::ReorderedPackets)),
        column(
            "losses_shown",
            "",
            "data segments of TCP that passed the capture, where it was not at their receiver, so that losses \
             beyond it would be seen",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::LossesShown)),
        column(
            "lost_behind_capture",
            "",
            "of losses_shown, segments that were retransmitted, less spurious retransmissions: lost beyond the \
             capture",
        )
        .null_when("losses_shown is 0")
        .u64(|row| row.if_any(Count::LossesShown, Count::LostBehind)),
        column(
            "fast_retransmissions",
            "",
            "of losses_shown, segments retransmitted because of acknowledgements, as fast_retransmissions of flows",
        )
            .null_when("as lost_behind_capture")
            .u64(|row| row.if_any(Count::LossesShown, Count::FastRetransmissions)),
        column("sack_retransmissions", "", "likewise, further ones of a recovery with SACK")
            .null_when("as lost_behind_capture")
            .u64(|row| row.if_any(Count::LossesShown, Count::SackRetransmissions)),
        column("rto_retransmissions", "", "likewise, by a timeout and in the recovery after it")
            .null_when("as lost_behind_capture")
            .u64(|row| row.if_any(Count::LossesShown, Count::RtoRetransmissions)),
        column("tail_loss_probes", "", "likewise, last segments to provoke an acknowledgement")
            .null_when("as lost_behind_capture")
            .u64(|row| row.if_any(Count::LossesShown, Count::TailLossProbes)),
        column("unexplained_retransmissions", "", "likewise, for a reason that the capture does not show")
            .null_when("as lost_behind_capture")
            .u64(|row| row.if_any(Count::LossesShown, Count::UnexplainedRetransmissions)),
        column(
            "capture_gap_bytes",
            "bytes",
            "sequence numbers that were acknowledged and never seen: the capture lost them, not the network",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::CaptureGapBytes)),
        column(
            "duplicate_acks",
            "",
            "acknowledgements that repeat number and window while data was outstanding",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::DuplicateAcks)),
        column("zero_windows", "", "packets that announce a receive window of 0")
            .null_when("as tcp_data_packets")
            .u64(|row| row.of_tcp(Count::ZeroWindows)),
        column("ect_packets", "", "packets of an ECN-capable transport, marked ones included")
            .null_when("no packets of TCP, and none of another transport that is capable")
            .u64(|row| row.marks(Count::EctPackets)),
        column("ect1_packets", "", "packets with ECT(1), which asks for the service of L4S (RFC 9331)")
            .null_when("as ect_packets")
            .u64(|row| row.marks(Count::Ect1Packets)),
        column("ce_packets", "", "packets that arrived at the capture with a congestion mark")
            .null_when("as ect_packets")
            .u64(|row| row.marks(Count::CePackets)),
    ];

    const ROUND_TRIPS: &'a [Column<Self>] = &[
        column(
            "rtt_samples",
            "",
            "round-trip times between the capture and the receiver of this direction, as rtt_samples of flows",
        )
        .null_when("neither samples nor packets of TCP, or all packets of the trace have the same time")
        .u64(Self::rtt_samples),
        column("rtt_sum_ns", "ns", "their sum")
            .null_when("as rtt_samples")
            .u64(|row| row.rtt_samples().and(row.count(Count::RttSumNs))),
        column("rtt_mean_ms", "ms", "their mean").null_when("no sample").f64(Self::rtt_mean_ms),
        column("rtt_min_ms", "ms", "smallest sample, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.rtt_ms(0.0)),
        column("rtt_p50_ms", "ms", "median, within 0.8 %").null_when("no sample").f64(|row| row.rtt_ms(0.50)),
        column("rtt_p95_ms", "ms", "95th percentile (nearest rank), within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.rtt_ms(0.95)),
        column("rtt_p99_ms", "ms", "99th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.rtt_ms(0.99)),
        column("rtt_max_ms", "ms", "largest sample, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.rtt_ms(1.0)),
    ];

    const CONNECTIONS: &'a [Column<Self>] = &[
        column(
            "connection_attempts",
            "",
            "TCP connections whose first SYN went this way in the interval; what became of them counts \
             here, too",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::ConnectionAttempts)),
        column("connections_established", "", "of them with SYN, SYN/ACK and the final ACK")
            .null_when("as tcp_data_packets")
            .u64(|row| row.of_tcp(Count::ConnectionsEstablished)),
        column("connections_refused", "", "of them answered by RST")
            .null_when("as tcp_data_packets")
            .u64(|row| row.of_tcp(Count::ConnectionsRefused)),
        column("connections_unanswered", "", "of them without an answer until the end of the trace")
            .null_when("as tcp_data_packets")
            .u64(|row| row.of_tcp(Count::ConnectionsUnanswered)),
        column("syn_retransmissions", "", "SYN retransmitted")
            .null_when("as tcp_data_packets")
            .u64(|row| row.of_tcp(Count::SynRetransmissions)),
        column("connect_samples", "", "durations of handshakes, from SYN to the final ACK")
            .null_when("all packets of the trace have the same time")
            .u64(|row| row.samples(Duration::Connect)),
        column("connect_p50_ms", "ms", "their median, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Connect, 0.50)),
        column("connect_p95_ms", "ms", "their 95th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Connect, 0.95)),
    ];
}

impl<'a> GroupTableRow<'a> {
    const ANSWERS: &'a [Column<Self>] = &[
        column(
            "response_samples",
            "",
            "answers of servers to requests that went this way: from the last byte of a request to the \
             first of the answer, seen at the capture; without requests that were repeated",
        )
        .null_when("as connect_samples")
        .u64(|row| row.samples(Duration::Response)),
        column(
            "response_p50_ms",
            "ms",
            "median of these times, within 0.8 %; it contains the RTT of the row",
        )
        .null_when("no sample")
        .f64(|row| row.percentile_ms(Duration::Response, 0.50)),
        column("response_p95_ms", "ms", "their 95th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Response, 0.95)),
        column(
            "requests",
            "",
            "requests of TCP that went this way in the interval: data of the side that opened the connection, up \
             to data or the end of the other side; what became of them counts here, too",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::Requests)),
        column(
            "requests_unanswered",
            "",
            "of them without data or the end of the other side for 10 s after their last byte",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::RequestsUnanswered)),
        column(
            "stalls",
            "",
            "data sent this way again for 10 s, from the interval on, none of which was acknowledged although \
             the window was open",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::Stalls)),
        column(
            "large_stalls",
            "",
            "of them those of segments above 1,000 bytes on connections that were established and had carried \
             no segment as large this way: smaller packets pass",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::LargeStalls)),
        column(
            "large_holes",
            "",
            "connections on which full segments of data that went this way are missing from the interval on: nothing \
             filled or acknowledged them, no segment as large came, and smaller ones behind them did; the sender \
             still spoke 10 s later. Large segments vanish before the capture",
        )
        .null_when("as tcp_data_packets")
        .u64(|row| row.of_tcp(Count::LargeHoles)),
        column(
            "dns_queries",
            "",
            "queries of DNS over UDP that went this way in the interval, repeated ones once; what became of \
             them counts here, too",
        )
        .u64(|row| row.count(Count::DnsQueries)),
        column("dns_failures", "", "of them answered by an error other than that the name does not exist")
            .u64(|row| row.count(Count::DnsFailures)),
        column("dns_unanswered", "", "of them without an answer until the end of the trace")
            .u64(|row| row.count(Count::DnsUnanswered)),
        column("dns_samples", "", "times from a query to its answer")
            .null_when("as connect_samples")
            .u64(|row| row.samples(Duration::Dns)),
        column("dns_p50_ms", "ms", "their median, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Dns, 0.50)),
        column("dns_p95_ms", "ms", "their 95th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(Duration::Dns, 0.95)),
    ];
}

impl<'a> Row<'a> for GroupTableRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[
        Self::KEY,
        Self::VOLUME,
        Self::LOSSES,
        Self::ROUND_TRIPS,
        Self::CONNECTIONS,
        Self::ANSWERS,
        Self::HELD_BACK,
        Self::PATH,
        Self::WIFI,
    ];
}
