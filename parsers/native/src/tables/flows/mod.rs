//! The table of flows.

mod ecn;
mod quic;
mod rtp_reports;
mod tunnels;

use std::borrow::Cow;
use std::io;

use super::column::column;
use super::shown::Shown;
use super::transits::note_on_pair;
use super::{Column, PassTable, Row};
use crate::flow::dccp::Connection as DccpConnection;
use crate::flow::delivery::{Delivery, NumberedCounts, Numbers};
use crate::flow::ends::FlowEnd;
use crate::flow::observation::MissingEnds;
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
use crate::pass::{Analysis, Cut};
use crate::plural;
use crate::wire::probe::SenderClock;

pub struct FlowRow<'a> {
    pub(super) analysis: Shown<'a>,
    pub(super) number: u32,
    first_flow: u32,
    pub(super) notation: Notation<'a>,
    pub(super) flow: &'a Flow,
    pub(super) side: Side,
    pub(super) direction: &'a Direction,
    pub(super) half: Option<&'a HalfConnection>,
    /// Statistics of its samples.
    round_trips: Option<Cow<'a, RttTotals>>,
    pub(super) connection: Option<&'a Connection>,
    /// The vantage, and the confidence.
    pub(super) tap: Option<(Vantage, f64)>,
}

impl<'a> FlowRow<'a> {
    pub(super) fn at(analysis: Shown<'a>, row: usize, first_flow: u32) -> Self {
        let index = (row / 2) as u32;
        let flow = analysis.flow(index);
        let forward = flow.forward();
        let side = if row.is_multiple_of(2) { forward } else { forward.other() };
        let direction = flow.direction(side);
        let connection = flow.transport.tcp.as_deref();
        // Null where packets have no sequence numbers.
        let is_cut = direction.cut_packets > 0;
        let read = connection.filter(|tcp| tcp.was_seen() && !is_cut);
        let half = read.map(|tcp| tcp.half(side));
        let round_trips = half.map(|half| half.path.round_trips.measured());
        let source = analysis.analysis.carried.sources.get(flow.source as usize);
        let notation = source.map(SourceSummary::notation).unwrap_or_default();
        let tap = analysis.options.vantage_of(flow, side).filter(|_| {
            read.is_some()
                || flow.transport.tcp.is_none() && (flow.transport.has_vantage() || flow.is_simulated())
        });
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

    /// Number of the flow, from 0.
    pub(super) fn index(&self) -> u32 {
        self.number - self.first_flow
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
        let duration_ns = self.direction.end_ns.saturating_sub(self.direction.start_ns);
        self.seen(duration_ns as f64 / 1e9).filter(|_| self.analysis.results.has_times)
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
            _ if self.flow.transport.layout_flow().is_some_and(LayoutFlow::has_tfrc) => "tfrc",
            _ => match self.flow.transport.rtp() {
                Some(rtp) if rtp.has_media() => "rtp",
                Some(rtp) if rtp.is_only_rtcp() => "rtcp",
                _ if self.flow.transport.quic().is_some() => "quic",
                _ => "udp",
            },
        }
    }

    pub(super) fn dccp(&self) -> Option<&'a DccpConnection> {
        self.flow.transport.dccp()
    }

    pub(super) fn delivery(&self) -> Option<&'a Delivery> {
        self.flow.delivery(self.side)
    }

    /// A simulator shows both ends of a path.
    pub(super) fn vantage(&self) -> Option<&'static str> {
        if self.flow.shows_both_ends(self.side) {
            return Some("both");
        }
        self.tap.map(|(vantage, _)| vantage.name())
    }

    /// Whether sequence numbers count packets, so that bytes are unknown.
    pub(super) fn counts_packets(&self) -> bool {
        self.flow.deliveries().is_some_and(|both| both.numbering == Numbering::Packets)
    }

    pub(super) fn unique_bytes(&self) -> Option<u64> {
        if self.counts_packets() {
            return self.delivery().map(|delivery| delivery.unique_bytes);
        }
        self.half.map(|half| half.sent.unique_bytes)
    }

    pub(super) fn retransmitted_bytes(&self) -> Option<u64> {
        if self.counts_packets() {
            return self.delivery().map(|delivery| delivery.repeated_bytes);
        }
        self.half.map(|half| half.tally().retransmitted_bytes)
    }

    /// None if no header of the connection was whole.
    pub(super) fn state(&self) -> Option<&'static str> {
        if let Some(dccp) = self.dccp() {
            return Some(dccp.state().name());
        }
        self.connection.filter(|tcp| tcp.was_seen() && !self.counts_packets()).map(|tcp| tcp.state().name())
    }

    /// RTT of this direction's packets by their acknowledgement.
    pub(super) fn rtt(&self) -> Option<(&RttStatistics, &LogHistogram)> {
        if !self.analysis.results.has_times {
            return None;
        }
        match &self.round_trips {
            Some(measured) => Some((&measured.all, &measured.sketch)),
            None => self.flow.transport.rtt_of_reports(self.side),
        }
    }

    fn rtt_range(&self) -> Option<&RttRange> {
        self.rtt().map(|(rtt, _)| &rtt.range)
    }

    fn interface(&self) -> Option<&str> {
        let source = self.analysis.carried.sources.get(self.flow.source as usize)?;
        source.interfaces.get(self.flow.interface()? as usize)?.0.name.as_deref()
    }

    fn source(&self) -> Option<&str> {
        let source = self.analysis.carried.sources.get(self.flow.source as usize)?;
        Some(source.source.as_str())
    }

    pub(super) fn percentile_ms(&self, share: f64) -> Option<f64> {
        let (rtt, sketch) = self.rtt()?;
        sketch.percentile_ms(share, &rtt.range)
    }

    pub(super) fn timestamp_rtt(&self) -> Option<&RttRange> {
        self.half.filter(|half| half.options.has_timestamps && self.analysis.results.has_times)?;
        self.round_trips.as_ref().map(|measured| &measured.by_echo)
    }

    pub(super) fn handshake_rtt_ms(&self) -> Option<f64> {
        let handshake_rtt_ns = match (self.dccp(), self.flow.transport.quic()) {
            (Some(dccp), _) => dccp.handshake_rtt_ns,
            (None, Some(quic)) => quic.handshake_rtt_ns(),
            (None, None) => self.connection?.handshake_rtt_ns(),
        };
        handshake_rtt_ns.filter(|_| self.analysis.results.has_times).map(|rtt_ns| rtt_ns as f64 / 1e6)
    }

    pub(super) fn syn_rtt_ms(&self) -> Option<f64> {
        let rtt_ns = match self.flow.transport.quic() {
            Some(quic) => quic.direction(self.side).first_rtt_ns,
            None => self.connection?.syn_rtt_ns(self.side),
        };
        let rtt_ns = rtt_ns.filter(|_| self.analysis.results.has_times)?;
        Some(rtt_ns as f64 / 1e6)
    }

    /// TFRC's ends of this direction's data.
    pub(super) fn tfrc(&self) -> Option<TfrcSummary> {
        self.flow.transport.tfrc()?.summary(self.side)
    }

    pub(super) fn shows_arrivals(&self) -> bool {
        self.analysis.options.shows_arrivals(self.flow, self.side)
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
        if let Some(pairing) = &self.analysis.results.pairing
            && self.vantage().is_some()
        {
            notes.extend(note_on_pair(
                pairing,
                &self.flow.key().endpoints(self.side),
                &self.analysis.carried.sources,
            ));
        }
        notes.extend(self.note_on_missing_ends());
        if self.delivery().is_some_and(|delivery| delivery.totals.is_some()) {
            notes.push("from totals, not from packets".into());
        } else if let Some((delivery, counted)) = self.delivery().and_then(|of| Some((of, of.counted?))) {
            notes.push(self.note_on_numbers(delivery, &counted));
        } else if direction.cut_packets > 0 {
            let packets = plural::counted(direction.cut_packets, "packet[s]");
            notes.push(format!("the transport header of {packets} was cut off or damaged: payload unknown"));
        }
        let n = self.flow.rarities(self.side).copies;
        if n > 0 {
            notes.push(plural::counted(n, "packet[s] that the capture shows again, counted once"));
        }
        // Where headers were cut, a SYN may have been missed.
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
        notes.extend(self.notes_of_transport());
        let rtt_sources = &self.analysis.results.rtt_sources;
        if let Some(other) = rtt_sources.source_for(self.flow, self.side, &self.analysis.options) {
            let (flow, rtt_ms) = (other.flow + self.first_flow, other.rtt_ms);
            notes.push(format!(
                "no loss events: round-trip time unknown; flow {flow} between the same hosts has \
                 `rtt={rtt_ms:.3}ms`"
            ));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// What the protocols over IP and UDP note.
    fn notes_of_transport(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(dccp) = self.dccp() {
            notes.extend(dccp.half(self.side).findings());
        }
        let transport = &self.flow.transport;
        if let Some(opening) = self.opening()
            && self.side == self.flow.forward()
        {
            notes.extend(opening.note().map(str::to_owned));
        }
        if let Some(quic) = transport.quic() {
            notes.extend(quic.notes(self.side));
        }
        if let Some(rtp) = transport.rtp() {
            notes.extend(rtp.direction(self.side).notes());
        }
        if let Some(layout_flow) = transport.layout_flow() {
            notes.extend(layout_flow.half(self.side).notes());
        }
        if let Some(ends) = transport.tfrc() {
            notes.extend(ends.notes(self.side));
            if self.tfrc().is_some() && self.vantage().is_none() && self.shows_arrivals() {
                notes.push("the place of the capture is not known: p leaves out losses beyond it".into());
            }
        }
        notes
    }

    /// Why counts of packets are null.
    fn note_on_missing_ends(&self) -> Option<String> {
        let MissingEnds { sender, receiver } = self.delivery()?.missing;
        let (src, dst) = (self.address(self.side), self.address(self.side.other()));
        match (sender, receiver) {
            (true, true) if self.direction.packets > 0 => Some(format!(
                "the trace shows these packets on their way only: neither where {src} sends nor where {dst} \
                 receives them"
            )),
            (true, true) => Some(format!("the trace shows neither what {src} sends nor what {dst} receives")),
            (true, false) => Some(format!(
                "the trace does not show what {src} sends: packets are counted where they arrive, losses are \
                 unknown"
            )),
            (false, true) if self.flow.numbers_first_fragments(self.side) => Some(
                "these packets came in fragments, of which only the first has the number: how many were lost is not \
                 known"
                    .into(),
            ),
            (false, true) if self.place_is_unknown() => Some(format!(
                "nothing tells where these packets were captured, so whether they arrived is not known: pass \
                 `vantage={}` if it was at their receiver",
                if self.flow.is_larger(self.side) { "receiver" } else { "sender" }
            )),
            (false, true) => {
                Some(format!("the trace does not show what arrives at {dst}: losses are unknown"))
            }
            (false, false) => None,
        }
    }

    /// Whether arrivals are missing because nothing tells where numbered packets were captured.
    fn place_is_unknown(&self) -> bool {
        let reports_losses =
            self.flow.transport.rtp().is_some_and(|rtp| rtp.direction(self.side).hides_losses());
        self.flow.is_numbered() && !reports_losses && self.believed_vantage().is_none()
    }

    /// How packets with numbers were counted.
    fn note_on_numbers(&self, delivery: &Delivery, counted: &NumberedCounts) -> String {
        let whose = match counted.by {
            Numbers::Payload(layout) => format!("sequence numbers in the payload ({})", layout.name()),
            Numbers::Dccp => "sequence numbers, which count packets of every type".into(),
            Numbers::Rtp => "RTP's sequence numbers".into(),
        };
        let mut notes = Vec::new();
        if delivery.missing.receiver {
            notes.push(format!("sent by {whose}"));
            if delivery.lost > 0 {
                notes.push(format!("the capture does not have {} of these packets", delivery.lost));
            }
        } else {
            notes.push(format!("sent, received and lost by {whose}, where the capture was taken"));
            notes.extend(self.note_on_losses_downstream().map(str::to_owned));
        }
        if counted.restarts > 0 {
            notes.push(format!("the numbers began anew {}", plural::counted(counted.restarts, "time[s]")));
        }
        if !counted.has_delays && matches!(counted.by, Numbers::Payload(_)) && !delivery.missing.receiver {
            notes.push("no delay, because the sender's clock is not the capture's".into());
        }
        if let SenderClock::Within { error_ns } = counted.clock {
            notes.push(format!(
                "the sender states that its clock is right within {} ms",
                error_ns as f64 / 1e6
            ));
        }
        notes.join("; ")
    }

    /// Why losses of numbered packets may be more than the capture shows.
    fn note_on_losses_downstream(&self) -> Option<&'static str> {
        let reported = self.flow.transport.rtp().and_then(|rtp| rtp.direction(self.side).reported_loss());
        match self.believed_vantage() {
            Some(Vantage::Receiver) => None,
            // They report no more than the capture shows.
            _ if reported.is_some() => None,
            Some(_) => Some("losses downstream of the capture are not counted"),
            None => Some("the place of the capture is not known: losses downstream of it are not counted"),
        }
    }

    pub(super) fn note_on_half(&self, half: &HalfConnection, notes: &mut Vec<String>) {
        notes.extend(self.note_on_vantage().map(str::to_owned));
        notes.extend(self.note_on_window().map(str::to_owned));
        if half.options.mss.is_some_and(|mss| self.direction.largest_payload > u32::from(mss)) {
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

/// The table of flows: two rows each, `fwd` then `rev`.
pub(super) struct Flows;

impl PassTable for Flows {
    type Row<'a> = FlowRow<'a>;

    fn new(_: &Analysis) -> io::Result<Self> {
        Ok(Self)
    }

    fn len(&self, analysis: &Analysis) -> usize {
        2 * analysis.carried.flows.len()
    }

    fn flow(&self, _: &Analysis, row: usize) -> Option<u32> {
        Some((row / 2) as u32)
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<FlowRow<'a>> {
        Some(FlowRow::at(shown, row, first_flow))
    }
}

impl<'a> Row<'a> for FlowRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[
        Self::IDENTITY,
        Self::VOLUME,
        Self::SEQUENCE_NUMBERS,
        Self::RETRANSMISSIONS,
        Self::ECN,
        Self::ROUND_TRIPS,
        Self::FLIGHT,
        Self::DELIVERY,
        Self::RTP,
        Self::TFRC,
        Self::QUIC,
        Self::TUNNEL,
        Self::REMARKS,
    ];
}

impl<'a> FlowRow<'a> {
    const IDENTITY: &'a [Column<Self>] = &[
        column("flow", "", "number of the conversation, in order of first packet, from 1")
            .u32(|row| Some(row.number)),
        column("direction", "", "`fwd` from the side that opened the flow, else the first seen; `rev`")
            .name(|row| Some(row.direction_name())),
        column(
            "transport",
            "",
            "`tcp`, `udp`, `dccp`, `quic`, `rtp`, `rtcp` without RTP, or `tfrc`: a simulator's TFRC, or UDP \
             payloads with a TFRC layout",
        )
        .name(|row| Some(row.transport())),
        column("label", "", "name given by the user").null_when("none was given").name(|_| None),
        column("src", "", "address of the sender of this direction; in a simulation its node")
            .text(|row| Some(row.address(row.side))),
        column("src_port", "", "port of the sender of this direction").u32(|row| Some(row.port(row.side))),
        column("dst", "", "address of the receiver of this direction, likewise")
            .text(|row| Some(row.address(row.side.other()))),
        column("dst_port", "", "port of the receiver of this direction")
            .u32(|row| Some(row.port(row.side.other()))),
        column("source", "", "file the flow was read from (the first, when files are joined)")
            .name(FlowRow::source),
        column("interface", "", "interface at which its first packet was captured; in a simulation the node")
            .null_when("the file names none")
            .name(FlowRow::interface),
        column(
            "vantage",
            "",
            "where the data of this direction were captured: `sender`, `receiver` or `middle`; \
             `both` if the trace shows both ends, as a simulator's trace and two paired captures do",
        )
        .null_when("not known")
        .name(|row| row.vantage()),
        column("vantage_confidence", "", "confidence in the vantage, from 0 to 1: 1 if it was given")
            .null_when("not known")
            .f64(|row| row.tap.map(|tap| tap.1)),
        column(
            "state",
            "",
            "of the connection when the capture ended: `attempted` (SYN without answer), `refused` \
             (SYN answered by RST), `opening` (SYN and SYN/ACK, no final ACK), `established`, \
             `half_closed` (one FIN), `closed` (both FINs), `reset`, `midstream` (no SYN in the \
             capture, neither FIN nor RST)",
        )
        .null_when("neither TCP nor DCCP, or no TCP header was whole")
        .name(|row| row.state()),
        column(
            "ended",
            "",
            "how the flow ended: `open` (not before the trace), `closed`, `reset`, `idle` (no packet for \
             longer than the time-out: later ones are another flow; unless one is given, 5 minutes of \
             UDP, 4 of a connection that never opened, 124 of others), `replaced` (a SYN opened another \
             connection between the same ports)",
        )
        .null_when("the trace has no packet of it")
        .one_of(|| FlowEnd::ALL.map(FlowEnd::name).to_vec())
        .name(|row| row.analysis.end_of(row.flow).map(FlowEnd::name)),
        column(
            "ccid",
            "",
            "congestion control of the data sent this way (RFC 4340 section 10): 2 is TCP-like, 3 \
             TFRC, 4 TFRC for small packets",
        )
        .null_when("not DCCP, or the capture shows no agreement")
        .u32(|row| row.dccp().and_then(|dccp| dccp.half(row.side).ccid).map(u32::from)),
        column("service_code", "", "service code of the DCCP connection")
            .null_when("not DCCP, or not in the capture")
            .u32(|row| row.dccp().and_then(|dccp| dccp.service_code)),
    ];

    const VOLUME: &'a [Column<Self>] = &[
        column("start_ns", "ns", "time of the first packet of this direction")
            .null_when("no packet this way")
            .i64(|row| row.seen(row.direction.start_ns)),
        column("end_ns", "ns", "time of the last packet of this direction")
            .null_when("no packet this way")
            .i64(|row| row.seen(row.direction.end_ns)),
        column("duration_s", "s", "from first to last packet of this direction")
            .null_when("no packet this way, or all packets of the trace have the same time")
            .f64(FlowRow::duration_s),
        column(
            "packets",
            "",
            "packets of this direction in the capture; in a simulation those sent, or, where its trace \
             does not show the sender, those that arrive, else those at one place on the way",
        )
        .u64(|row| Some(row.direction.packets)),
        column("wire_bytes", "bytes", "whole frames as they were on the wire")
            .u64(|row| Some(row.direction.wire_bytes)),
        column("payload_bytes", "bytes", "transport payload, retransmissions and what RST carries included")
            .null_when("the snap length cut the transport header")
            .u64(FlowRow::payload_bytes),
        column("unique_bytes", "bytes", "payload with every sequence number counted once")
            .null_when("not TCP, or as payload_bytes")
            .u64(FlowRow::unique_bytes),
        column("throughput_bps", "bit/s", "wire_bytes over duration_s")
            .null_when("fewer than two packets, or all at one time")
            .f64(|row| row.rate_bps(row.direction.wire_bytes)),
        column("goodput_bps", "bit/s", "unique_bytes over duration_s (payload_bytes for UDP)")
            .null_when("as throughput_bps or unique_bytes")
            .f64(FlowRow::goodput_bps),
        column("data_packets", "", "packets that carry payload")
            .null_when("as payload_bytes")
            .u64(|row| row.payload_bytes().map(|_| row.direction.data_packets)),
    ];

    const SEQUENCE_NUMBERS: &'a [Column<Self>] = &[
        column(
            "data_segments",
            "",
            "segments that carry payload, as the wire carried them: a packet that offload cuts after the capture, \
             or joined before it, counts as many full segments as it holds; any other is one",
        )
        .null_when(
            "as retransmitted_packets, or packets are longer than the wire carries and neither a SYN nor they \
             show the length of segments",
        )
        .u64(FlowRow::data_segments),
        column(
            "retransmitted_segments",
            "",
            "those of data_segments with bytes that the capture had already shown",
        )
        .null_when("as data_segments")
        .u64(|row| row.segmented().map(|half| half.retransmitted_segments().into())),
        column(
            "retransmitted_packets",
            "",
            "data packets with at least one byte that the capture had already shown",
        )
        .null_when("not TCP, or as payload_bytes")
        .u64(|row| Some(row.half?.tally().retransmitted_packets.into())),
        column("retransmitted_bytes", "bytes", "payload bytes already captured")
            .null_when("as retransmitted_packets")
            .u64(FlowRow::retransmitted_bytes),
        column(
            "out_of_order_packets",
            "",
            "data packets below the highest sequence number seen, with bytes not seen before",
        )
        .null_when("as retransmitted_packets")
        .u64(|row| Some(row.half?.rare_counts().out_of_order_packets.into())),
        column(
            "duplicate_acks",
            "",
            "pure acknowledgements sent this way that repeat number and window while data was \
             outstanding (RFC 5681 section 2)",
        )
        .null_when("not TCP, or as payload_bytes")
        .u64(|row| {
            let connection = row.connection.filter(|_| row.half.is_some())?;
            Some(connection.half(row.side.other()).acknowledged.duplicates.into())
        }),
        column("zero_windows", "", "packets that announce a receive window of 0")
            .null_when("as duplicate_acks")
            .u64(|row| Some(row.half?.windows.closed_packets().into())),
        column(
            "missing_bytes",
            "bytes",
            "sequence numbers passed over and never seen in the capture (lost before it, or not \
             captured)",
        )
        .null_when("as retransmitted_packets")
        .u64(|row| row.half.filter(|_| !row.counts_packets()).map(HalfConnection::missing_bytes)),
        column("mss", "bytes", "maximum segment size this side announced")
            .null_when("no SYN with the option")
            .u32(|row| row.connection?.half(row.side).options.mss.map(u32::from)),
        column(
            "handshake_rtt_ms",
            "ms",
            "from SYN to the ACK that completes the handshake, the same from any capture point; of QUIC from \
             the client's first packet to its answer to the server's first",
        )
        .null_when("no complete handshake, or its packets were sent twice")
        .f64(FlowRow::handshake_rtt_ms),
        column(
            "syn_rtt_ms",
            "ms",
            "from this side's SYN to its acknowledgement: between the place of the capture and the \
             other side; both directions' together are handshake_rtt_ms; of QUIC from this side's first Initial \
             packet that is acknowledged",
        )
        .null_when("as handshake_rtt_ms")
        .f64(FlowRow::syn_rtt_ms),
        column(
            "sender_rtt_p50_ms",
            "ms",
            "median RTT between the place of the capture and this side: from an acknowledgement of \
             the other side to the first data that echo its timestamp (RFC 7323); rtt_p50_ms is the \
             way to the other side",
        )
        .null_when(
            "no timestamps, fewer than 65 data segments, no acknowledgement while more \
            data was on its way beyond the capture (as at a receiver that misses nothing) but such \
            as waited for a timer or the application, or as retransmitted_packets",
        )
        .f64(|row| row.half?.sender_rtt_ms()),
    ];

    const ROUND_TRIPS: &'a [Column<Self>] = &[
        column(
            "rtt_samples",
            "",
            "acknowledgements that gave an RTT of data (and SYN, FIN) of this direction, each by the best \
             method, as the table of RTT samples names it: never of data sent twice, but by timestamps; of DCCP \
             packets other than pure acknowledgements, less the elapsed time that the receiver reports; of QUIC \
             the first Initial packet, and edges of the spin bit that the other side answers; of RTP and TFRC \
             over UDP what receivers report",
        )
        .null_when("neither TCP nor DCCP and nothing of this kind, or as payload_bytes")
        .u64(|row| Some(row.rtt_range()?.count())),
        column("rtt_min_ms", "ms", "smallest sample")
            .null_when("no sample")
            .f64(|row| row.rtt_range()?.min_ms()),
        column("rtt_mean_ms", "ms", "mean of the samples")
            .null_when("no sample")
            .f64(|row| row.rtt_range()?.mean_ms()),
        column("rtt_p50_ms", "ms", "median, within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(0.50)),
        column("rtt_p95_ms", "ms", "95th percentile (nearest rank), within 0.8 %")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(0.95)),
        column("rtt_p99_ms", "ms", "99th percentile, likewise")
            .null_when("no sample")
            .f64(|row| row.percentile_ms(0.99)),
        column("rtt_max_ms", "ms", "largest sample")
            .null_when("no sample")
            .f64(|row| row.rtt_range()?.max_ms()),
        column("rtt_std_ms", "ms", "population standard deviation of the samples")
            .null_when("no sample")
            .f64(|row| row.rtt()?.0.std_ms()),
        column(
            "ts_rtt_samples",
            "",
            "RTT samples by TCP timestamp echo (RFC 7323), valid for retransmitted data too",
        )
        .null_when("as rtt_samples, or no timestamps")
        .u64(|row| row.timestamp_rtt().map(RttRange::count)),
        column("ts_rtt_min_ms", "ms", "smallest of them")
            .null_when("no sample")
            .f64(|row| row.timestamp_rtt()?.min_ms()),
        column("ts_rtt_mean_ms", "ms", "their mean")
            .null_when("no sample")
            .f64(|row| row.timestamp_rtt()?.mean_ms()),
        column("ts_rtt_max_ms", "ms", "largest of them")
            .null_when("no sample")
            .f64(|row| row.timestamp_rtt()?.max_ms()),
    ];

    const DELIVERY: &'a [Column<Self>] = &[
        column(
            "sent_packets",
            "",
            "packets that left the sender; every retransmission is a packet of its own",
        )
        .null_when("the trace does not show what the sender sends")
        .u64(|row| Some(row.delivery()?.at_sender()?.sent)),
        column("received_packets", "", "packets that reached the receiver, without duplicates")
            .null_when("the trace does not show what arrives at the receiver; packets with numbers of which none is \
                    missing were not captured there, or nothing tells where (`vantage` does)")
            .u64(|row| Some(row.delivery()?.at_receiver()?.received)),
        column("received_bytes", "bytes", "bytes of the received packets, as they arrived")
            .null_when("as received_packets")
            .u64(|row| Some(row.delivery()?.at_receiver()?.received_bytes)),
        column("dropped_packets", "", "packets that the trace shows as dropped and that never arrived")
            .null_when("as sent_packets or received_packets and no drop in the trace, or not of a simulator: captures and packet \
                    numbers show no drops")
            .u64(|row| row.delivery()?.dropped_packets()),
        column(
            "lost_packets",
            "",
            "packets that never arrived, with or without a drop in the trace; in_flight_packets are \
             not lost",
        )
        .null_when("as sent_packets or received_packets")
        .u64(|row| Some(row.delivery()?.of_whole_path()?.lost)),
        column(
            "in_flight_packets",
            "",
            "packets of unknown outcome that were sent less than delay_max_ms before the trace \
             ended, or while the other one of two captures was not running",
        )
        .null_when("as lost_packets")
        .u64(|row| Some(row.delivery()?.of_whole_path()?.in_flight)),
        column("duplicate_packets", "", "arrivals of packets that had arrived before")
            .null_when("as received_packets")
            .u64(|row| Some(row.delivery()?.at_receiver()?.duplicates)),
        column(
            "lost_before_packets",
            "",
            "TCP segments that were retransmitted before the capture nearer to the sender had seen \
             them, as their timestamps show",
        )
        .null_when("not TCP between two captures, or it has no timestamps")
        .u64(|row| row.delivery()?.lost_before),
        column(
            "lost_behind_packets",
            "",
            "TCP segments that passed both captures and were retransmitted at the receiver's request",
        )
        .null_when("not TCP between two captures")
        .u64(|row| row.delivery()?.lost_behind),
        column(
            "missed_packets",
            "",
            "packets that arrived and that one of two captures missed while it was running: only the other \
             one has them, or the receiver acknowledged them",
        )
        .null_when("not between two captures")
        .u64(|row| row.delivery()?.missed),
        column(
            "pdr",
            "",
            "packet delivery ratio: received of those sent, without in_flight_packets on either side",
        )
        .null_when("as lost_packets, or nothing was sent")
        .f64(|row| row.delivery()?.of_whole_path()?.ratio()),
        column("plr", "", "packet loss ratio: 1 - pdr")
            .null_when("as pdr")
            .f64(|row| row.delivery()?.of_whole_path()?.ratio().map(|ratio| 1.0 - ratio)),
        column("delay_min_ms", "ms", "smallest one-way delay")
            .null_when("as lost_packets, or nothing arrived")
            .f64(|row| Some(row.delivery()?.of_whole_path()?.delay_range_ms()?.0)),
        column("delay_mean_ms", "ms", "mean one-way delay of the packets that arrived")
            .null_when("as delay_min_ms")
            .f64(|row| row.delivery()?.of_whole_path()?.delay_mean_ms()),
        column("delay_p50_ms", "ms", "median one-way delay, within 0.8 %")
            .null_when("as delay_min_ms")
            .f64(|row| row.delivery()?.of_whole_path()?.delay_percentile_ms(0.50)),
        column("delay_p95_ms", "ms", "95th percentile (nearest rank), within 0.8 %")
            .null_when("as delay_min_ms")
            .f64(|row| row.delivery()?.of_whole_path()?.delay_percentile_ms(0.95)),
        column("delay_p99_ms", "ms", "99th percentile, likewise")
            .null_when("as delay_min_ms")
            .f64(|row| row.delivery()?.of_whole_path()?.delay_percentile_ms(0.99)),
        column("delay_max_ms", "ms", "largest one-way delay")
            .null_when("as delay_min_ms")
            .f64(|row| Some(row.delivery()?.of_whole_path()?.delay_range_ms()?.1)),
        column("jitter_ms", "ms", "interarrival jitter at the end (RFC 3550)")
            .null_when("as lost_packets, or fewer than two arrivals")
            .f64(|row| row.delivery()?.of_whole_path()?.jitter_ms()),
        column(
            "delay_variation_ms",
            "ms",
            "mean change of the delay from one arrival to the next (RFC 3393 section 4.6)",
        )
        .null_when("as jitter_ms")
        .f64(|row| row.delivery()?.of_whole_path()?.delay_variation_ms()),
        column(
            "drop_reasons",
            "",
            "drops by place and reason as the trace names it, most frequent first, including those \
             of packets that arrived in the end",
        )
        .null_when("no drop in the trace")
        .text(|row| row.delivery()?.drop_words()),
        column("flow_id", "", "the simulator's own flow id; flows may share one")
            .null_when("the trace has none")
            .u32(|row| row.flow.deliveries()?.flow_id),
        column(
            "agent",
            "",
            "ns-2's name for the packets of this direction's agent, as `tcp`, `cbr`, `pareto`",
        )
        .null_when("not of ns-2, or of an agent that ns-2.35 does not have")
        .name(|row| row.flow.deliveries()?.agent(row.side)),
        column(
            "dscp",
            "",
            "first differentiated services codepoint (RFC 2474) of this direction that is not 0; 0 \
             if none is",
        )
        .null_when("no packet this way, or the source does not show it")
        .u32(|row| row.seen(u32::from(row.flow.dscp(row.side)?))),
    ];

    const REMARKS: &'a [Column<Self>] = &[
        column("outside", "", "where the flow has packets outside of the stretch of time that was read")
            .one_of(|| Cut::ALL.map(Cut::name).to_vec())
            .null_when("none outside, or none chosen")
            .name(|row| Some(row.analysis.results.cut_flows.get(row.index())?.name())),
        column("ip_fragments", "", "packets that were fragments of a larger datagram")
            .u64(|row| Some(row.flow.rarities(row.side).fragments.into())),
        column("icmp_errors", "", "ICMP errors that quote a packet of this direction")
            .u64(|row| Some(row.flow.rarities(row.side).icmp_errors.into())),
        column("notes", "", "why values are null or uncertain, separated by `; `")
            .null_when("no remark")
            .text(FlowRow::notes),
    ];
}
