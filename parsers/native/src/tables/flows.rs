//! The table of flows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::transits::note_on_pair;
use super::{Columns, Rows, retransmissions, rounds, tfrc};
use crate::flow::dccp::Connection as DccpConnection;
use crate::flow::delivery::{Delivery, NumberedCounts, Numbers};
use crate::flow::rtt_statistics::{LogHistogram, RttRange, RttStatistics};
use crate::flow::tcp::rtt::RttTotals;
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tcp::{Connection, HalfConnection};
use crate::flow::tfrc::TfrcSummary;
use crate::flow::tfrc_layout::LayoutFlow;
use crate::flow::{Direction, Flow, direction_name};
use crate::input::source_summary::SourceSummary;
use crate::packet::event::{Numbering, PROTOCOL_TFRC};
use crate::packet::key::{Notation, Side, address_text};
use crate::pass::Analysis;
use crate::plural;

/// The table of flows: two rows each, `fwd` then `rev`. Flows are numbered from `first_flow`.
pub struct FlowRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

/// One row of it.
pub(super) struct FlowRow<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) number: u32,
    first_flow: u32,
    pub(super) notation: Notation<'a>,
    pub(super) flow: &'a Flow,
    pub(super) side: Side,
    pub(super) direction: &'a Direction,
    pub(super) half: Option<&'a HalfConnection>,
    /// What its samples come to.
    round_trips: Option<Cow<'a, RttTotals>>,
    pub(super) connection: Option<&'a Connection>,
    /// Where the capture was taken, and how sure that is.
    pub(super) tap: Option<(Vantage, f64)>,
}

impl<'a> FlowRow<'a> {
    pub(super) fn at(analysis: &'a Analysis, row: usize, first_flow: u32) -> Self {
        let flows = &analysis.flows;
        let index = (row / 2) as u32;
        let flow = flows.get(index);
        let forward = flow.forward();
        let side = if row.is_multiple_of(2) { forward } else { forward.other() };
        let direction = flow.direction(side);
        let connection = flow.tcp.as_deref();
        // What the sequence numbers say is not known where packets lack them.
        let is_cut = direction.cut_packets > 0;
        let read = connection.filter(|tcp| tcp.was_seen() && !is_cut);
        let half = read.map(|tcp| tcp.half(side));
        let round_trips = half.map(|half| half.round_trips.measured());
        let source = analysis.sources.get(flow.source as usize);
        let notation = source.map(SourceSummary::notation).unwrap_or_default();
        let tap = analysis
            .vantage(flow, side)
            .filter(|_| read.is_some() || flow.tcp.is_none() && flow.has_vantage());
        let number = index + first_flow;
        Self {
            analysis,
            number,
            first_flow,
            notation,
            flow,
            side,
            direction,
            half,
            round_trips,
            connection,
            tap,
        }
    }

    pub(super) fn direction_name(&self) -> &'static str {
        direction_name(self.side, self.flow.forward())
    }

    pub(super) fn seen<T>(&self, value: T) -> Option<T> {
        (self.direction.packets > 0).then_some(value)
    }

    pub(super) fn address(&self, side: Side) -> String {
        address_text(self.flow.key().end(side).0, self.flow.key().family(), self.notation)
    }

    pub(super) fn port(&self, side: Side) -> u32 {
        u32::from(self.flow.key().end(side).1)
    }

    pub(super) fn duration_s(&self) -> Option<f64> {
        self.seen(()).map(|()| self.direction.end_ns.saturating_sub(self.direction.start_ns) as f64 / 1e9)
    }

    pub(super) fn payload_bytes(&self) -> Option<u64> {
        (self.direction.cut_packets == 0).then_some(self.direction.payload_bytes)
    }

    /// Bits per second of `bytes` over the direction's own active time.
    pub(super) fn rate_bps(&self, bytes: u64) -> Option<f64> {
        let duration_ns = self.direction.end_ns.saturating_sub(self.direction.start_ns);
        (duration_ns > 0).then(|| bytes as f64 * 8.0 * 1e9 / duration_ns as f64)
    }

    pub(super) fn goodput_bps(&self) -> Option<f64> {
        let bytes = match self.connection {
            Some(_) => self.unique_bytes()?,
            None => self.payload_bytes()?,
        };
        self.rate_bps(bytes)
    }

    pub(super) fn transport(&self) -> &'static str {
        match self.flow.key().protocol() {
            6 => "tcp",
            33 => "dccp",
            PROTOCOL_TFRC => "tfrc",
            _ if self.flow.layout_flow().is_some_and(LayoutFlow::has_tfrc) => "tfrc",
            _ => match self.flow.rtp() {
                Some(rtp) if rtp.has_media() => "rtp",
                Some(rtp) if rtp.is_only_rtcp() => "rtcp",
                _ => "udp",
            },
        }
    }

    pub(super) fn dccp(&self) -> Option<&'a DccpConnection> {
        self.flow.dccp()
    }

    pub(super) fn delivery(&self) -> Option<&'a Delivery> {
        self.flow.delivery(self.side)
    }

    /// A simulator shows both ends of a path; numbers in the payload do not tell where they were seen.
    pub(super) fn vantage(&self) -> Option<&'static str> {
        if self.flow.shows_both_ends() {
            return Some("both");
        }
        self.tap.map(|(vantage, _)| vantage.name())
    }

    /// Sequence numbers that count packets say nothing of bytes.
    pub(super) fn counts_packets(&self) -> bool {
        self.flow.deliveries().is_some_and(|both| both.numbering == Numbering::Packets)
    }

    pub(super) fn unique_bytes(&self) -> Option<u64> {
        if self.counts_packets() {
            return self.delivery().map(|delivery| delivery.unique_bytes);
        }
        self.half.map(|half| half.unique_bytes)
    }

    pub(super) fn retransmitted_bytes(&self) -> Option<u64> {
        if self.counts_packets() {
            return self.delivery().map(|delivery| delivery.repeated_bytes);
        }
        self.half.map(|half| half.tally().retransmitted_bytes)
    }

    /// Not known if no header of the connection was whole.
    pub(super) fn state(&self) -> Option<&'static str> {
        if let Some(dccp) = self.dccp() {
            return Some(dccp.state().name());
        }
        self.connection.filter(|tcp| tcp.was_seen() && !self.counts_packets()).map(|tcp| tcp.state().name())
    }

    /// RTT of this direction's packets by their acknowledgement.
    pub(super) fn rtt(&self) -> Option<(&RttStatistics, &LogHistogram)> {
        match (&self.round_trips, self.dccp()) {
            (Some(measured), _) => Some((&measured.by_ack, &measured.sketch)),
            (None, Some(dccp)) => {
                let half = dccp.half(self.side);
                Some((&half.rtt, &half.rtt_sketch))
            }
            (None, None) => {
                let of_rtp = || self.flow.rtp()?.direction(self.side).rtt.as_deref();
                let of_layout = || self.flow.layout_flow()?.half(self.side).rtt.as_deref();
                of_layout().or_else(of_rtp).map(|(rtt, sketch)| (rtt, sketch))
            }
        }
    }

    pub(super) fn percentile_ms(&self, share: f64) -> Option<f64> {
        let (rtt, sketch) = self.rtt()?;
        sketch.percentile_ms(share, &rtt.range)
    }

    pub(super) fn timestamp_rtt(&self) -> Option<&RttRange> {
        self.half.filter(|half| half.has_timestamps)?;
        self.round_trips.as_ref().map(|measured| &measured.by_echo)
    }

    pub(super) fn handshake_rtt_ms(&self) -> Option<f64> {
        let handshake_rtt_ns = match self.dccp() {
            Some(dccp) => dccp.handshake_rtt_ns,
            None => self.connection?.handshake_rtt_ns(),
        };
        Some(handshake_rtt_ns? as f64 / 1e6)
    }

    pub(super) fn syn_rtt_ms(&self) -> Option<f64> {
        Some(self.connection?.syn_rtt_ns(self.side)? as f64 / 1e6)
    }

    /// TFRC's ends of this direction's data.
    pub(super) fn tfrc(&self) -> Option<TfrcSummary> {
        self.flow.tfrc()?.summary(self.side)
    }

    pub(super) fn shows_arrivals(&self) -> bool {
        self.analysis.shows_arrivals(self.flow, self.side)
    }

    pub(super) fn notes(&self) -> Option<String> {
        let mut notes: Vec<String> = Vec::new();
        let direction = self.direction;
        let other = self.flow.direction(self.side.other());
        if direction.packets == 0 {
            notes.push("no packet of this direction in the capture".into());
        } else if other.packets == 0 && self.connection.is_some() {
            notes.push("only this direction in the capture: no RTT".into());
        }
        if let Some(pairing) = &self.analysis.pairing
            && self.vantage().is_some()
        {
            notes.extend(note_on_pair(
                pairing,
                &self.flow.key().endpoints(self.side),
                &self.analysis.sources,
            ));
        }
        if self.delivery().is_some_and(|delivery| delivery.totals.is_some()) {
            notes.push("from totals, not from packets".into());
        } else if let Some(counted) = self.delivery().and_then(|delivery| delivery.counted) {
            notes.push(note_on_numbers(&counted));
        } else if direction.cut_packets > 0 {
            let packets = plural::counted(direction.cut_packets, "packet[s]");
            notes.push(format!("the transport header of {packets} was cut off or damaged: payload unknown"));
        }
        let n = self.flow.rarities(self.side).copies;
        if n > 0 {
            notes.push(plural::counted(n, "packet[s] shown again at another interface, and counted once"));
        }
        // Where headers were cut the SYN may have been among them.
        let all_read = direction.cut_packets == 0 && other.cut_packets == 0;
        if let Some(connection) = self.connection
            && connection.opener().is_none()
            && all_read
            && !self.counts_packets()
        {
            notes.push("no SYN in the capture: began before it".into());
        }
        if let Some(half) = self.half {
            self.note_on_half(half, &mut notes);
        }
        if let Some(dccp) = self.dccp() {
            notes.extend(dccp.half(self.side).findings());
        }
        if let Some(rtp) = self.flow.rtp() {
            notes.extend(rtp.direction(self.side).notes());
        }
        if let Some(layout_flow) = self.flow.layout_flow() {
            notes.extend(layout_flow.half(self.side).notes());
        }
        if let Some(ends) = self.flow.tfrc() {
            notes.extend(ends.notes(self.side));
            if self.tfrc().is_some() && self.vantage().is_none() && self.shows_arrivals() {
                notes.push("the place of the capture is not known: p leaves out losses behind it".into());
            }
        }
        if let Some(lender) = self.analysis.lender(self.flow, self.side) {
            let (flow, rtt_ms) = (lender.flow + self.first_flow, lender.rtt_ms);
            notes.push(format!(
                "no loss events: round-trip time unknown; flow {flow} between the same hosts has \
                 `rtt={rtt_ms:.3}ms`"
            ));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    pub(super) fn note_on_half(&self, half: &HalfConnection, notes: &mut Vec<String>) {
        notes.extend(self.note_on_vantage().map(str::to_owned));
        notes.extend(self.note_on_limits().map(str::to_owned));
        if half.mss.is_some_and(|mss| self.direction.largest_payload > u32::from(mss)) {
            notes.push(format!(
                "packets of up to {} bytes of payload: captured before segmentation offload cut them, \
                 so packets are fewer than on the wire",
                self.direction.largest_payload
            ));
        }
        if half.lost_track_of_holes() {
            notes.push("too many gaps to remember: late packets may be taken for retransmissions".into());
        }
        if half.unwatched() > 0 {
            notes.push(format!(
                "too much in flight: {} gave no RTT",
                plural::counted(half.unwatched(), "segment[s]")
            ));
        }
    }
}

/// What sent, received and lost packets are of, where their payload tells.
fn note_on_numbers(counted: &NumberedCounts) -> String {
    let whose = match counted.by {
        Numbers::Payload(layout) => format!("sequence numbers in the payload ({})", layout.name()),
        Numbers::Dccp => "sequence numbers, which count packets of every type".into(),
        Numbers::Rtp => "RTP's sequence numbers".into(),
    };
    let mut note = format!("sent, received and lost by {whose}, where the capture was taken");
    if counted.restarts > 0 {
        note.push_str(&format!("; the numbers began anew {}", plural::counted(counted.restarts, "time[s]")));
    }
    if !counted.has_delays && matches!(counted.by, Numbers::Payload(_)) {
        note.push_str("; no delay, because the sender's clock is not the capture's");
    }
    note
}

impl Rows for FlowRows {
    fn len(&self) -> usize {
        2 * self.analysis.flows.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows: Vec<FlowRow<'_>> =
            (start..end).map(|row| FlowRow::at(&self.analysis, row, self.first_flow)).collect();
        let mut columns = Columns::default();
        self.identity(&rows, &mut columns);
        volume(&rows, &mut columns);
        reconstruction(&rows, &mut columns);
        retransmissions::classes(&rows, &mut columns);
        round_trips(&rows, &mut columns);
        rounds::of_flows(&rows, &mut columns);
        delivery(&rows, &mut columns);
        tfrc::flow_columns(&rows, &mut columns);
        columns.u64("ip_fragments", rows.iter().map(|row| u64::from(row.flow.rarities(row.side).fragments)));
        columns.u64("icmp_errors", rows.iter().map(|row| u64::from(row.flow.rarities(row.side).icmp_errors)));
        columns.text("notes", rows.iter().map(FlowRow::notes));
        columns.finish(rows.len())
    }
}

impl FlowRows {
    fn identity(&self, rows: &[FlowRow<'_>], columns: &mut Columns) {
        let source = |row: &FlowRow<'_>| {
            self.analysis.sources.get(row.flow.source as usize).map(|source| source.source.as_str())
        };
        let no_text = || rows.iter().map(|_| None::<&str>);
        columns.u32("flow", rows.iter().map(|row| row.number));
        columns.text("direction", rows.iter().map(FlowRow::direction_name).map(Some));
        columns.text("transport", rows.iter().map(FlowRow::transport).map(Some));
        columns.text("label", no_text());
        columns.text("src", rows.iter().map(|row| row.address(row.side)).map(Some));
        columns.u32("src_port", rows.iter().map(|row| row.port(row.side)));
        columns.text("dst", rows.iter().map(|row| row.address(row.side.other())).map(Some));
        columns.u32("dst_port", rows.iter().map(|row| row.port(row.side.other())));
        columns.text("source", rows.iter().map(source));
        columns.text("vantage", rows.iter().map(FlowRow::vantage));
        columns.f64("vantage_confidence", rows.iter().map(|row| row.tap.map(|tap| tap.1)));
        columns.text("state", rows.iter().map(FlowRow::state));
        let ccid = |row: &FlowRow<'_>| row.dccp().and_then(|dccp| dccp.half(row.side).ccid).map(u32::from);
        columns.u32("ccid", rows.iter().map(ccid));
        columns.u32("service_code", rows.iter().map(|row| row.dccp().and_then(|dccp| dccp.service_code)));
    }
}

fn volume(rows: &[FlowRow<'_>], columns: &mut Columns) {
    columns.i64("start_ns", rows.iter().map(|row| row.seen(row.direction.start_ns)));
    columns.i64("end_ns", rows.iter().map(|row| row.seen(row.direction.end_ns)));
    columns.f64("duration_s", rows.iter().map(FlowRow::duration_s));
    columns.u64("packets", rows.iter().map(|row| row.direction.packets));
    columns.u64("wire_bytes", rows.iter().map(|row| row.direction.wire_bytes));
    columns.u64("payload_bytes", rows.iter().map(FlowRow::payload_bytes));
    columns.u64("unique_bytes", rows.iter().map(FlowRow::unique_bytes));
    columns.f64("throughput_bps", rows.iter().map(|row| row.rate_bps(row.direction.wire_bytes)));
    columns.f64("goodput_bps", rows.iter().map(FlowRow::goodput_bps));
    let data_packets = |row: &FlowRow<'_>| row.payload_bytes().map(|_| row.direction.data_packets);
    columns.u64("data_packets", rows.iter().map(data_packets));
}

fn reconstruction(rows: &[FlowRow<'_>], columns: &mut Columns) {
    let mut counts = |name: &str, value: fn(&HalfConnection) -> u64| {
        columns.u64(name, rows.iter().map(|row| row.half.map(value)));
    };
    counts("retransmitted_packets", |half| half.tally().retransmitted_packets.into());
    columns.u64("retransmitted_bytes", rows.iter().map(FlowRow::retransmitted_bytes));
    let mut counts = |name: &str, value: fn(&HalfConnection) -> u64| {
        columns.u64(name, rows.iter().map(|row| row.half.map(value)));
    };
    counts("out_of_order_packets", |half| half.rare_counts().out_of_order_packets.into());
    counts("duplicate_acks", |half| half.duplicate_acks.into());
    counts("zero_windows", |half| half.windows.closed_packets().into());
    let missing_bytes =
        |row: &FlowRow<'_>| row.half.filter(|_| !row.counts_packets()).map(HalfConnection::missing_bytes);
    columns.u64("missing_bytes", rows.iter().map(missing_bytes));
    let mss = |row: &FlowRow<'_>| row.connection.and_then(|tcp| tcp.half(row.side).mss).map(u32::from);
    columns.u32("mss", rows.iter().map(mss));
    columns.f64("handshake_rtt_ms", rows.iter().map(FlowRow::handshake_rtt_ms));
    columns.f64("syn_rtt_ms", rows.iter().map(FlowRow::syn_rtt_ms));
    columns.f64("sender_rtt_p50_ms", rows.iter().map(|row| row.half?.sender_rtt_ms()));
}

fn round_trips(rows: &[FlowRow<'_>], columns: &mut Columns) {
    let rtt = |row: &FlowRow<'_>, value: fn(&RttRange) -> Option<f64>| {
        row.rtt().and_then(|(rtt, _)| value(&rtt.range))
    };
    let echo = |row: &FlowRow<'_>, value: fn(&RttRange) -> Option<f64>| row.timestamp_rtt().and_then(value);
    columns.u64("rtt_samples", rows.iter().map(|row| row.rtt().map(|(rtt, _)| rtt.range.count())));
    columns.f64("rtt_min_ms", rows.iter().map(|row| rtt(row, RttRange::min_ms)));
    columns.f64("rtt_mean_ms", rows.iter().map(|row| rtt(row, RttRange::mean_ms)));
    columns.f64("rtt_p50_ms", rows.iter().map(|row| row.percentile_ms(0.50)));
    columns.f64("rtt_p95_ms", rows.iter().map(|row| row.percentile_ms(0.95)));
    columns.f64("rtt_p99_ms", rows.iter().map(|row| row.percentile_ms(0.99)));
    columns.f64("rtt_max_ms", rows.iter().map(|row| rtt(row, RttRange::max_ms)));
    columns.f64("rtt_std_ms", rows.iter().map(|row| row.rtt().and_then(|(rtt, _)| rtt.std_ms())));
    let echo_count = |row: &FlowRow<'_>| row.timestamp_rtt().map(RttRange::count);
    columns.u64("ts_rtt_samples", rows.iter().map(echo_count));
    columns.f64("ts_rtt_min_ms", rows.iter().map(|row| echo(row, RttRange::min_ms)));
    columns.f64("ts_rtt_mean_ms", rows.iter().map(|row| echo(row, RttRange::mean_ms)));
    columns.f64("ts_rtt_max_ms", rows.iter().map(|row| echo(row, RttRange::max_ms)));
}

fn delivery(rows: &[FlowRow<'_>], columns: &mut Columns) {
    let mut counts = |name: &str, value: fn(&Delivery) -> u64| {
        columns.u64(name, rows.iter().map(|row| row.delivery().map(value)));
    };
    counts("sent_packets", |delivery| delivery.sent);
    counts("received_packets", |delivery| delivery.received);
    counts("received_bytes", |delivery| delivery.received_bytes);
    counts("dropped_packets", |delivery| delivery.dropped);
    counts("lost_packets", |delivery| delivery.lost);
    counts("in_flight_packets", |delivery| delivery.in_flight);
    counts("duplicate_packets", |delivery| delivery.duplicates);
    let outside =
        |value: fn(&Delivery) -> Option<u64>| rows.iter().map(move |row| row.delivery().and_then(value));
    columns.u64("lost_before_packets", outside(|delivery| delivery.lost_before));
    columns.u64("lost_behind_packets", outside(|delivery| delivery.lost_behind));
    let mut values = |name: &str, value: fn(&Delivery) -> Option<f64>| {
        columns.f64(name, rows.iter().map(|row| row.delivery().and_then(value)));
    };
    values("pdr", Delivery::ratio);
    values("plr", |delivery| delivery.ratio().map(|ratio| 1.0 - ratio));
    values("delay_min_ms", |delivery| delivery.delay_range_ms().map(|range| range.0));
    values("delay_mean_ms", Delivery::delay_mean_ms);
    values("delay_p50_ms", |delivery| delivery.delay_percentile_ms(0.50));
    values("delay_p95_ms", |delivery| delivery.delay_percentile_ms(0.95));
    values("delay_p99_ms", |delivery| delivery.delay_percentile_ms(0.99));
    values("delay_max_ms", |delivery| delivery.delay_range_ms().map(|range| range.1));
    values("jitter_ms", Delivery::jitter_ms);
    values("delay_variation_ms", Delivery::delay_variation_ms);
    let reasons = |row: &FlowRow<'_>| row.delivery().and_then(Delivery::drop_words);
    columns.text("drop_reasons", rows.iter().map(reasons));
    columns.u32("flow_id", rows.iter().map(|row| row.flow.deliveries().and_then(|both| both.flow_id)));
    columns.text("agent", rows.iter().map(|row| row.flow.deliveries()?.agent(row.side)));
    columns.u32("dscp", rows.iter().map(|row| row.seen(u32::from(row.flow.dscp(row.side)?))));
}
