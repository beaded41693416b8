//! Rows into Arrow columns, a batch at a time.
//!
//! Names, types and order are those of `schema.py`, which also says what each column means and
//! when it is null; a test holds the two together.

mod classes;
pub mod details;
pub mod links;
pub mod replay;
pub mod rounds;
pub mod rtp;
pub mod tfrc;
pub mod transits;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use crate::analysis::{Analysis, LossSample, RttSample};
use crate::asides::Asides;
use crate::bins::{Bin, Bins};
use crate::dccp;
use crate::event::{Address, Layer, Numbering, PROTOCOL_TFRC, Packet, Transport};
use crate::flow::dccp::Connection as DccpConnection;
use crate::flow::delivery::{Counted, Delivery, Numbers};
use crate::flow::key::{Notation, Side, address_text};
use crate::flow::laid_out::LaidOut;
use crate::flow::rtt::{RttRange, RttStatistics, Sketch};
use crate::flow::tcp::class::{Class, Evidence};
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tcp::{Connection, Half};
use crate::flow::tfrc::Summary;
use crate::flow::{Direction, Flow, FlowTable, Found, direction_name};
use crate::reading::Reading;
use crate::samples::VariableSample;
use crate::summary::SourceSummary;
use transits::note_on_pair;

/// A table that is made batch by batch, when somebody asks.
pub trait Rows: Send + Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows `start..end`, which must exist.
    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError>;

    /// Names and types.
    fn schema(&self) -> Result<SchemaRef, ArrowError> {
        Ok(self.batch(0, 0)?.schema())
    }
}

/// The columns of a batch under construction.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn push(&mut self, name: &str, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
    }

    fn u32<V: Into<Option<u32>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<UInt32Array>()));
    }

    fn u64<V: Into<Option<u64>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<UInt64Array>()));
    }

    fn i64<V: Into<Option<i64>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<Int64Array>()));
    }

    fn f64<V: Into<Option<f64>>>(&mut self, name: &str, values: impl Iterator<Item = V>) {
        self.push(name, Arc::new(values.map(Into::into).collect::<Float64Array>()));
    }

    fn text<S: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = Option<S>>) {
        self.push(name, Arc::new(values.collect::<StringArray>()));
    }

    fn finish(self, rows: usize) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(self.fields)), self.arrays, &options)
    }
}

/// The table of flows: two rows each, `fwd` then `rev`. Flows are numbered from `first_flow`.
pub struct FlowRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

/// One row of it.
struct FlowRow<'a> {
    analysis: &'a Analysis,
    number: u32,
    notation: Notation<'a>,
    flow: &'a Flow,
    side: Side,
    direction: &'a Direction,
    half: Option<&'a Half>,
    connection: Option<&'a Connection>,
    /// Where the capture was taken, and how sure that is.
    tap: Option<(Vantage, f64)>,
}

impl<'a> FlowRow<'a> {
    fn at(analysis: &'a Analysis, row: usize, first_flow: u32) -> Self {
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
        let source = analysis.sources.get(flow.source as usize);
        let notation = source.map(SourceSummary::notation).unwrap_or_default();
        let tap = analysis
            .vantage(flow, side)
            .filter(|_| read.is_some() || flow.tcp.is_none() && flow.has_vantage());
        Self { analysis, number: index + first_flow, notation, flow, side, direction, half, connection, tap }
    }

    fn direction_name(&self) -> &'static str {
        direction_name(self.side, self.flow.forward())
    }

    fn seen<T>(&self, value: T) -> Option<T> {
        (self.direction.packets > 0).then_some(value)
    }

    fn address(&self, side: Side) -> String {
        address_text(self.flow.key.end(side).0, self.flow.key.family(), self.notation)
    }

    fn port(&self, side: Side) -> u32 {
        u32::from(self.flow.key.end(side).1)
    }

    fn duration_s(&self) -> Option<f64> {
        self.seen(()).map(|()| self.direction.end_ns.saturating_sub(self.direction.start_ns) as f64 / 1e9)
    }

    fn payload_bytes(&self) -> Option<u64> {
        (self.direction.cut_packets == 0).then_some(self.direction.payload_bytes)
    }

    /// Bits per second of `bytes` over the direction's own active time.
    fn rate_bps(&self, bytes: u64) -> Option<f64> {
        let duration_ns = self.direction.end_ns.saturating_sub(self.direction.start_ns);
        (duration_ns > 0).then(|| bytes as f64 * 8.0 * 1e9 / duration_ns as f64)
    }

    fn goodput_bps(&self) -> Option<f64> {
        let bytes = match self.connection {
            Some(_) => self.unique_bytes()?,
            None => self.payload_bytes()?,
        };
        self.rate_bps(bytes)
    }

    fn transport(&self) -> &'static str {
        match self.flow.key.protocol() {
            6 => "tcp",
            33 => "dccp",
            PROTOCOL_TFRC => "tfrc",
            _ if self.flow.laid_out.as_deref().is_some_and(LaidOut::has_tfrc) => "tfrc",
            _ => match self.flow.rtp.as_deref() {
                Some(rtp) if rtp.has_media() => "rtp",
                Some(rtp) if rtp.is_only_rtcp() => "rtcp",
                _ => "udp",
            },
        }
    }

    fn dccp(&self) -> Option<&'a DccpConnection> {
        self.flow.dccp.as_deref()
    }

    fn delivery(&self) -> Option<&'a Delivery> {
        self.flow.delivery(self.side)
    }

    /// A simulator shows both ends of a path; numbers in the payload do not tell where they were seen.
    fn vantage(&self) -> Option<&'static str> {
        let is_of_both = self.flow.deliveries.is_some() && !self.flow.is_numbered();
        if is_of_both {
            return Some("both");
        }
        self.tap.map(|(vantage, _)| vantage.name())
    }

    /// Sequence numbers that count packets say nothing of bytes.
    fn counts_packets(&self) -> bool {
        self.flow.deliveries.as_ref().is_some_and(|both| both.numbering == Numbering::Packets)
    }

    fn unique_bytes(&self) -> Option<u64> {
        if self.counts_packets() {
            return self.delivery().map(|delivery| delivery.unique_bytes);
        }
        self.half.map(|half| half.unique_bytes)
    }

    fn retransmitted_bytes(&self) -> Option<u64> {
        if self.counts_packets() {
            return self.delivery().map(|delivery| delivery.repeated_bytes);
        }
        self.half.map(|half| half.tally().retransmitted_bytes)
    }

    /// Not known if no header of the connection was whole.
    fn state(&self) -> Option<&'static str> {
        if let Some(dccp) = self.dccp() {
            return Some(dccp.state().name());
        }
        self.connection.filter(|tcp| tcp.was_seen() && !self.counts_packets()).map(|tcp| tcp.state().name())
    }

    /// RTT of this direction's packets by their acknowledgement.
    fn rtt(&self) -> Option<(&'a RttStatistics, &'a Sketch)> {
        match (self.half, self.dccp()) {
            (Some(half), _) => Some((&half.rtt, &half.rtt_sketch)),
            (None, Some(dccp)) => {
                let half = dccp.half(self.side);
                Some((&half.rtt, &half.rtt_sketch))
            }
            (None, None) => {
                let of_rtp = || self.flow.rtp.as_deref()?.direction(self.side).rtt.as_deref();
                let of_layout = || self.flow.laid_out.as_deref()?.half(self.side).rtt.as_deref();
                of_layout().or_else(of_rtp).map(|(rtt, sketch)| (rtt, sketch))
            }
        }
    }

    fn percentile_ms(&self, share: f64) -> Option<f64> {
        let (rtt, sketch) = self.rtt()?;
        let found = sketch.percentile(share)? as f64 / 1e6;
        // The middle of a bucket may lie outside of what was measured; the ends are exact.
        Some(found.clamp(rtt.range.min_ms()?, rtt.range.max_ms()?))
    }

    fn timestamp_rtt(&self) -> Option<&'a RttRange> {
        self.half.filter(|half| half.has_timestamps).map(|half| &half.timestamp_rtt)
    }

    fn handshake_rtt_ms(&self) -> Option<f64> {
        let handshake_rtt_ns = match self.dccp() {
            Some(dccp) => dccp.handshake_rtt_ns,
            None => self.connection?.handshake_rtt_ns,
        };
        Some(handshake_rtt_ns? as f64 / 1e6)
    }

    fn syn_rtt_ms(&self) -> Option<f64> {
        Some(self.connection?.syn_rtt_ns(self.side)? as f64 / 1e6)
    }

    /// TFRC's ends of this direction's data.
    fn tfrc(&self) -> Option<Summary> {
        self.flow.tfrc.as_deref()?.summary(self.side)
    }

    fn shows_arrivals(&self) -> bool {
        self.analysis.shows_arrivals(self.flow, self.side)
    }

    fn notes(&self) -> Option<String> {
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
            notes.extend(note_on_pair(pairing, &self.flow.key.endpoints(self.side), &self.analysis.sources));
        }
        if self.delivery().is_some_and(|delivery| delivery.totals.is_some()) {
            notes.push("from totals, not from packets".into());
        } else if let Some(counted) = self.delivery().and_then(|delivery| delivery.counted) {
            notes.push(note_on_numbers(&counted));
        } else if direction.cut_packets > 0 {
            let n = direction.cut_packets;
            notes
                .push(format!("the transport header of {n} packets was cut off or damaged: payload unknown"));
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
        if let Some(rtp) = self.flow.rtp.as_deref() {
            notes.extend(rtp.direction(self.side).notes());
        }
        if let Some(laid_out) = self.flow.laid_out.as_deref() {
            notes.extend(laid_out.half(self.side).notes());
        }
        if let Some(ends) = self.flow.tfrc.as_deref() {
            notes.extend(ends.notes(self.side));
            if self.tfrc().is_some() && self.vantage().is_none() {
                notes.push("the place of the capture is not known: p leaves out losses behind it".into());
            }
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    fn note_on_half(&self, half: &Half, notes: &mut Vec<String>) {
        notes.extend(self.note_on_vantage().map(str::to_owned));
        notes.extend(self.note_on_limits().map(str::to_owned));
        if self.direction.copies > 0 {
            let n = self.direction.copies;
            notes.push(format!("{n} packets shown again at another interface, and counted once"));
        }
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
        if half.unwatched > 0 {
            notes.push(format!("too much in flight: {} segments gave no RTT", half.unwatched));
        }
    }
}

/// What sent, received and lost packets are of, where their payload tells.
fn note_on_numbers(counted: &Counted) -> String {
    let whose = match counted.by {
        Numbers::Payload(layout) => format!("sequence numbers in the payload ({})", layout.name()),
        Numbers::Dccp => "sequence numbers, which count packets of every type".into(),
        Numbers::Rtp => "RTP's sequence numbers".into(),
    };
    let mut note = format!("sent, received and lost by {whose}, where the capture was taken");
    if counted.restarts > 0 {
        note.push_str(&format!("; the numbers began anew {} times", counted.restarts));
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
        classes::classes(&rows, &mut columns);
        round_trips(&rows, &mut columns);
        rounds::of_flows(&rows, &mut columns);
        delivery(&rows, &mut columns);
        tfrc::flow_columns(&rows, &mut columns);
        columns.u64("ip_fragments", rows.iter().map(|row| u64::from(row.direction.fragments)));
        columns.u64("icmp_errors", rows.iter().map(|row| u64::from(row.direction.icmp_errors)));
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
    let mut counts = |name: &str, value: fn(&Half) -> u64| {
        columns.u64(name, rows.iter().map(|row| row.half.map(value)));
    };
    counts("retransmitted_packets", |half| half.tally().retransmitted_packets.into());
    columns.u64("retransmitted_bytes", rows.iter().map(FlowRow::retransmitted_bytes));
    let mut counts = |name: &str, value: fn(&Half) -> u64| {
        columns.u64(name, rows.iter().map(|row| row.half.map(value)));
    };
    counts("out_of_order_packets", |half| half.oddities().out_of_order_packets.into());
    counts("duplicate_acks", |half| half.duplicate_acks.into());
    counts("zero_windows", |half| half.windows.closed_packets().into());
    let missing_bytes =
        |row: &FlowRow<'_>| row.half.filter(|_| !row.counts_packets()).map(Half::missing_bytes);
    columns.u64("missing_bytes", rows.iter().map(missing_bytes));
    let mss = |row: &FlowRow<'_>| row.connection.and_then(|tcp| tcp.half(row.side).mss).map(u32::from);
    columns.u32("mss", rows.iter().map(mss));
    columns.f64("handshake_rtt_ms", rows.iter().map(FlowRow::handshake_rtt_ms));
    columns.f64("syn_rtt_ms", rows.iter().map(FlowRow::syn_rtt_ms));
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
    let reasons = |row: &FlowRow<'_>| row.delivery().and_then(Delivery::drop_words);
    columns.text("drop_reasons", rows.iter().map(reasons));
    columns.u32("flow_id", rows.iter().map(|row| row.flow.deliveries.as_ref().and_then(|both| both.flow_id)));
}

/// The table of bins, in order of flow, direction and time.
pub struct BinRows {
    analysis: Arc<Analysis>,
    first_flow: u32,
    /// Directions that have bins, each with its number of rows before.
    lanes: Vec<(u32, Side, usize)>,
    total: usize,
}

impl BinRows {
    /// The bins of `analysis`, flows numbered from `first_flow`.
    pub fn new(analysis: Arc<Analysis>, first_flow: u32) -> Self {
        let mut lanes = Vec::new();
        let mut total = 0;
        if let Some(bins) = &analysis.bins {
            for flow in 0..analysis.flows.len() as u32 {
                let forward = analysis.flows.get(flow).forward();
                for side in [forward, forward.other()] {
                    let n = bins.lane(flow, side).len();
                    if n > 0 {
                        lanes.push((flow, side, total));
                        total += n;
                    }
                }
            }
        }
        Self { analysis, first_flow, lanes, total }
    }

    fn row<'a>(&self, bins: &'a Bins, row: usize) -> Option<(u32, Side, &'a Bin)> {
        let lane = self.lanes.partition_point(|lane| lane.2 <= row).checked_sub(1)?;
        let &(flow, side, before) = self.lanes.get(lane)?;
        Some((flow, side, bins.lane(flow, side).get(row - before)?))
    }
}

impl Rows for BinRows {
    fn len(&self) -> usize {
        self.total
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let empty = Bins::new(crate::bins::BinWidth::Adaptive, 0);
        let bins = self.analysis.bins.as_ref().unwrap_or(&empty);
        let rows: Vec<_> = (start..end).filter_map(|row| self.row(bins, row)).collect();
        let forward = |flow: u32| self.analysis.flows.get(flow).forward();
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.0 + self.first_flow));
        columns.text("direction", rows.iter().map(|row| direction_name(row.1, forward(row.0))).map(Some));
        columns.i64("time_ns", rows.iter().map(|row| bins.start_ns(row.2.index)));
        columns.i64("width_ns", rows.iter().map(|_| bins.width_ns()));
        columns.u64("packets", rows.iter().map(|row| row.2.packets));
        columns.u64("wire_bytes", rows.iter().map(|row| row.2.wire_bytes));
        columns.u64("payload_bytes", rows.iter().map(|row| row.2.payload_bytes));
        columns.u64("unique_bytes", rows.iter().map(|row| row.2.unique_bytes));
        columns.u64("retransmitted_packets", rows.iter().map(|row| row.2.retransmitted_packets));
        columns.u64("rtt_samples", rows.iter().map(|row| row.2.rtt_samples));
        let ms = |bin: &Bin, ns: f64| (bin.rtt_samples > 0).then_some(ns / 1e6);
        columns.f64("rtt_min_ms", rows.iter().map(|row| ms(row.2, row.2.rtt_min_ns as f64)));
        let mean = |bin: &Bin| bin.rtt_sum_ns as f64 / bin.rtt_samples as f64;
        columns.f64("rtt_mean_ms", rows.iter().map(|row| ms(row.2, mean(row.2))));
        columns.f64("rtt_max_ms", rows.iter().map(|row| ms(row.2, row.2.rtt_max_ns as f64)));
        self.delays(&rows, &mut columns);
        columns.finish(rows.len())
    }
}

impl BinRows {
    fn delays(&self, rows: &[(u32, Side, &Bin)], columns: &mut Columns) {
        let is_known = self.analysis.pairing.is_some();
        let count = |n: u64| is_known.then_some(n);
        let ms = |bin: &Bin, ns: f64| (bin.delay_samples > 0).then_some(ns / 1e6);
        let mean = |bin: &Bin| bin.delay_sum_ns as f64 / bin.delay_samples as f64;
        columns.u64("delay_samples", rows.iter().map(|row| count(row.2.delay_samples)));
        columns.f64("delay_min_ms", rows.iter().map(|row| ms(row.2, row.2.delay_min_ns as f64)));
        columns.f64("delay_mean_ms", rows.iter().map(|row| ms(row.2, mean(row.2))));
        columns.f64("delay_max_ms", rows.iter().map(|row| ms(row.2, row.2.delay_max_ns as f64)));
        columns.u64("lost_packets", rows.iter().map(|row| count(row.2.lost_packets)));
    }
}

/// The table of RTT samples, in order of time of arrival.
pub struct RttRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for RttRows {
    fn len(&self) -> usize {
        self.analysis.rtt.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.analysis.rtt.kept[start..end];
        let direction =
            |row: &RttSample| direction_name(row.side, self.analysis.flows.get(row.flow).forward());
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.flow + self.first_flow));
        columns.text("direction", rows.iter().map(direction).map(Some));
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.i64("rtt_ns", rows.iter().map(|row| i64::try_from(row.rtt_ns).ok()));
        columns.text("method", rows.iter().map(|row| row.method.name()).map(Some));
        columns.u32("delayed_ack", rows.iter().map(|row| u32::from(row.is_delayed_ack)));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.finish(rows.len())
    }
}

/// The table of retransmissions and late arrivals, in order of arrival.
pub struct LossRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for LossRows {
    fn len(&self) -> usize {
        self.analysis.losses.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.analysis.losses.kept[start..end];
        let forward = |flow: u32| self.analysis.flows.get(flow).forward();
        let kind = |row: &LossSample| match row.finding.class {
            class if class.is_retransmission() => Some("retransmission"),
            Class::Reordered | Class::Unseen => Some("out_of_order"),
            _ => None,
        };
        let verdict = |row: &LossSample| {
            let connection = self.analysis.flows.get(row.flow).tcp.as_deref();
            connection.and_then(|tcp| tcp.half(row.side).verdict(row.finding.number)).map(Evidence::name)
        };
        let mut columns = Columns::default();
        columns.u32("flow", rows.iter().map(|row| row.flow + self.first_flow));
        columns
            .text("direction", rows.iter().map(|row| direction_name(row.side, forward(row.flow))).map(Some));
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.u64("packet", rows.iter().map(|row| row.packet));
        columns.i64("seq_rel", rows.iter().map(|row| row.position));
        columns.u32("payload_bytes", rows.iter().map(|row| row.payload_bytes));
        columns.u32("repeated_bytes", rows.iter().map(|row| row.repeated_bytes));
        columns.text("kind", rows.iter().map(kind));
        columns.text("class", rows.iter().map(|row| Some(row.finding.class.name())));
        columns.text("evidence", rows.iter().map(|row| Some(row.finding.evidence.name())));
        columns.text("spurious", rows.iter().map(verdict));
        columns.finish(rows.len())
    }
}

/// The table of variables, in order of the sources.
pub struct VariableRows {
    /// What is shown.
    pub analysis: Arc<Analysis>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for VariableRows {
    fn len(&self) -> usize {
        self.analysis.variables.kept.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.analysis.variables.kept[start..end];
        let flows = &self.analysis.flows;
        let found: Vec<Option<Found>> = rows.iter().map(|row| flows.find_endpoints(&row.endpoints)).collect();
        let direction = |found: &Option<Found>| {
            found.map(|found| direction_name(found.side, flows.get(found.flow).forward()))
        };
        let notation = self.analysis.sources.first().map(SourceSummary::notation).unwrap_or_default();
        let address = |address, row: &VariableSample| address_text(address, row.endpoints.family, notation);
        let mut columns = Columns::default();
        columns.u32("flow", found.iter().map(|found| found.map(|found| found.flow + self.first_flow)));
        columns.text("direction", found.iter().map(direction));
        columns.text("src", rows.iter().map(|row| address(row.endpoints.src, row)).map(Some));
        columns.u32("src_port", rows.iter().map(|row| u32::from(row.endpoints.src_port)));
        columns.text("dst", rows.iter().map(|row| address(row.endpoints.dst, row)).map(Some));
        columns.u32("dst_port", rows.iter().map(|row| u32::from(row.endpoints.dst_port)));
        columns.i64("time_ns", rows.iter().map(|row| row.time_ns));
        columns.text("name", rows.iter().map(|row| row.name).map(Some));
        columns.text("unit", rows.iter().map(|row| row.unit.name()).map(Some));
        columns.f64("value", rows.iter().map(|row| row.value));
        columns.finish(rows.len())
    }
}

/// One row of the table of packets.
pub struct PacketRow {
    packet: Packet,
    node: Option<String>,
    /// Of both ends, where an address is no IP address.
    names: Option<(String, String)>,
    found: Option<(u32, &'static str)>,
    positions: (Option<i64>, Option<i64>),
    window_bytes: Option<u64>,
    dccp: Option<dccp::Header>,
    /// Of a datagram that a traffic generator numbered.
    number: Option<u64>,
}

impl PacketRow {
    /// A packet as it stands in the table, with what `asides` and its flow add.
    pub fn new(
        packet: Packet,
        asides: &Asides,
        found: Option<Found>,
        flows: &FlowTable,
        reading: &Reading,
    ) -> Self {
        let network = packet.network;
        let is_dccp = network.transport == Transport::Dccp;
        let header = network.head.filter(|_| is_dccp).and_then(|aside| asides.dccp(aside));
        let flow = found.map(|found| (found, flows.get(found.flow)));
        let mut row = Self {
            packet,
            node: reading.interface_name(packet.interface).map(str::to_owned),
            names: reading.endpoint_names(&network.endpoints),
            found: flow.map(|(found, flow)| (found.flow, direction_name(found.side, flow.forward()))),
            positions: (None, None),
            window_bytes: None,
            dccp: header.map(|(header, _)| *header),
            number: flow.and_then(|(found, flow)| flow.number_of(found.side, &asides.head(network.head))),
        };
        if let Some((found, flow)) = flow
            && let (Some(tcp), Some(connection)) = (network.tcp(), &flow.tcp)
        {
            let (mine, theirs) = (connection.half(found.side), connection.half(found.side.other()));
            let is_ack = tcp.flags.has(crate::event::TcpFlags::ACK);
            row.positions.0 = mine.position(tcp.seq);
            row.positions.1 = theirs.position(tcp.ack).filter(|_| is_ack);
            // A SYN's window is never scaled (RFC 7323 section 2.2).
            let is_syn = tcp.flags.has(crate::event::TcpFlags::SYN);
            let scaled = if is_syn { Some(u32::from(tcp.window)) } else { mine.scaled(tcp.window, theirs) };
            row.window_bytes = scaled.map(u64::from);
        }
        row
    }

    fn is_ip(&self) -> bool {
        self.packet.is_ip
    }

    fn tcp(&self) -> Option<&crate::event::Tcp> {
        self.packet.network.tcp()
    }

    fn transport(&self) -> Option<String> {
        self.is_ip().then(|| match (&self.packet.network.transport, self.packet.network.endpoints.protocol) {
            (Transport::IcmpError, _) => "icmp error".into(),
            (_, 6) => "tcp".into(),
            (_, 17) => "udp".into(),
            (_, 33) => "dccp".into(),
            (_, PROTOCOL_TFRC) => "tfrc".into(),
            (_, number) => crate::event::Reason::Unknown(u32::from(number)).words(Layer::Ipv4),
        })
    }

    fn kind(&self) -> Option<&'static str> {
        match self.packet.network.transport {
            Transport::Tfrc => Some("data"),
            Transport::TfrcFeedback => Some("feedback"),
            _ => self.dccp.map(|header| header.kind.name()),
        }
    }

    fn src(&self) -> Option<String> {
        let src = self.packet.network.endpoints.src;
        self.is_ip().then(|| match &self.names {
            Some((src, _)) => src.clone(),
            None => self.ip_address(src),
        })
    }

    fn dst(&self) -> Option<String> {
        let dst = self.packet.network.endpoints.dst;
        self.is_ip().then(|| match &self.names {
            Some((_, dst)) => dst.clone(),
            None => self.ip_address(dst),
        })
    }

    fn ip_address(&self, address: Address) -> String {
        address_text(address, self.packet.network.endpoints.family, Notation::default())
    }

    fn port(&self, port: u16) -> Option<u32> {
        self.packet.network.has_ports.then_some(u32::from(port))
    }

    fn decode_stop(&self) -> Option<String> {
        let stop = self.packet.stop?;
        Some(format!("{}: {}", stop.layer.name(), stop.reason.words(stop.layer)))
    }
}

/// A batch of packets.
pub struct PacketRows {
    /// In order of the source.
    pub rows: Vec<PacketRow>,
    /// Number of the first flow.
    pub first_flow: u32,
}

impl Rows for PacketRows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn batch(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let rows = &self.rows[start..end];
        let ends = |row: &PacketRow| row.packet.network.endpoints;
        let mut columns = Columns::default();
        columns.u64("packet", rows.iter().map(|row| row.packet.number));
        columns.i64("time_ns", rows.iter().map(|row| row.packet.time_ns));
        columns.text("node", rows.iter().map(|row| row.node.as_deref()));
        columns.text("event", rows.iter().map(|row| row.packet.event.map(|event| event.name())));
        columns.u32("flow", rows.iter().map(|row| row.found.map(|found| found.0 + self.first_flow)));
        columns.text("direction", rows.iter().map(|row| row.found.map(|found| found.1)));
        columns.text("transport", rows.iter().map(PacketRow::transport));
        columns.text("src", rows.iter().map(PacketRow::src));
        columns.u32("src_port", rows.iter().map(|row| row.port(ends(row).src_port)));
        columns.text("dst", rows.iter().map(PacketRow::dst));
        columns.u32("dst_port", rows.iter().map(|row| row.port(ends(row).dst_port)));
        columns.u32("captured_bytes", rows.iter().map(|row| row.packet.captured_bytes));
        columns.u32("wire_bytes", rows.iter().map(|row| row.packet.wire_bytes));
        columns.u32("payload_bytes", rows.iter().map(|row| row.packet.network.payload_bytes));
        header_columns(rows, &mut columns);
        columns.finish(rows.len())
    }
}

fn header_columns(rows: &[PacketRow], columns: &mut Columns) {
    let tcp = |row: &PacketRow| row.tcp().copied();
    let timestamp = |row: &PacketRow| row.tcp().and_then(|tcp| tcp.options.timestamp);
    let ack = |row: &PacketRow| {
        row.tcp().filter(|tcp| tcp.flags.has(crate::event::TcpFlags::ACK)).map(|tcp| tcp.ack)
    };
    columns.u32("seq", rows.iter().map(|row| tcp(row).map(|tcp| tcp.seq)));
    columns.u32("ack", rows.iter().map(ack));
    columns.i64("seq_rel", rows.iter().map(|row| row.positions.0));
    columns.i64("ack_rel", rows.iter().map(|row| row.positions.1));
    columns.text("flags", rows.iter().map(|row| tcp(row).map(|tcp| tcp.flags.letters())));
    columns.u64("window_bytes", rows.iter().map(|row| row.window_bytes));
    columns.u32("ts_val", rows.iter().map(|row| timestamp(row).map(|timestamp| timestamp.0)));
    columns.u32("ts_ecr", rows.iter().map(|row| timestamp(row).map(|timestamp| timestamp.1)));
    let ip_id = |row: &PacketRow| {
        row.packet.network.ip_id.map(u32::from).or(row.packet.network.fragment.map(|fragment| fragment.id))
    };
    let ip = |row: &PacketRow, value: u8| row.is_ip().then_some(u32::from(value));
    columns.u32("ip_id", rows.iter().map(ip_id));
    columns.u32("ttl", rows.iter().map(|row| ip(row, row.packet.network.ttl)));
    columns.u32("ecn", rows.iter().map(|row| ip(row, row.packet.network.ecn)));
    let sighting = |row: &PacketRow| row.packet.sighting;
    columns.text("layer", rows.iter().map(|row| sighting(row).map(|seen| seen.layer.name())));
    columns.text("point", rows.iter().map(|row| sighting(row).map(|seen| seen.point.name())));
    let reason = |row: &PacketRow| {
        let reason = sighting(row)?.reason;
        (!reason.text().is_empty()).then(|| reason.text().to_owned())
    };
    columns.text("drop_reason", rows.iter().map(reason));
    columns.u64("uid", rows.iter().map(|row| sighting(row).map(|seen| seen.identity)));
    columns.u64("sequence", rows.iter().map(|row| row.packet.network.sequence.or(row.number)));
    columns.u64("acknowledged", rows.iter().map(|row| row.dccp.and_then(|header| header.ack)));
    columns.text("kind", rows.iter().map(PacketRow::kind));
    columns.u32("flow_id", rows.iter().map(|row| row.packet.network.flow_id));
    columns.text("decode_stop", rows.iter().map(PacketRow::decode_stop));
}
