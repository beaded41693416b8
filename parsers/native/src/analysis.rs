//! One pass over one source, or over several that are one trace.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::bins::{BinWidth, Bins};
use crate::capture::{Capture, LinkType, Record};
use crate::error::{Problem, ProblemKind, ReadError};
use crate::event::{Network, Packet, Transport};
use crate::filter::{Compiler, Program};
use crate::flow::key::Side;
use crate::flow::tcp::Outcome;
use crate::flow::{FlowTable, Found, Fragments};
use crate::input::{Input, Progress};
use crate::summary::SourceSummary;
use crate::wire;

/// Packets between two looks at the progress counters.
const PROGRESS_STEP: u64 = 8_192;
/// Snap length given to the filter compiler; it only decides how much an accepting filter keeps.
const FILTER_SNAP_LENGTH: u32 = 262_144;

/// What to collect, and the bounds.
#[derive(Clone, Debug)]
pub struct Options {
    /// Collect time bins.
    pub bins: Option<BinWidth>,
    /// Collect every RTT sample.
    pub rtt: bool,
    /// Collect every retransmission and late arrival.
    pub losses: bool,
    /// Flows that are told apart.
    pub max_flows: u32,
    /// Samples of each kind that are kept.
    pub max_samples: usize,
    /// Bytes that a compressed source may grow to.
    pub max_decompressed_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bins: None,
            rtt: false,
            losses: false,
            max_flows: 1_000_000,
            max_samples: 10_000_000,
            max_decompressed_bytes: 64 << 30,
        }
    }
}

/// How an RTT was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMethod {
    /// Data and its acknowledgement, by Karn's rule.
    Ack,
    /// Timestamp and its echo.
    Timestamp,
    /// SYN to final ACK.
    Handshake,
}

impl RttMethod {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Timestamp => "timestamp",
            Self::Handshake => "handshake",
        }
    }
}

/// One round-trip time.
#[derive(Clone, Copy, Debug)]
pub struct RttSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side whose data were acknowledged.
    pub side: Side,
    /// When the acknowledgement was seen.
    pub time_ns: i64,
    /// The time it took.
    pub rtt_ns: u64,
    /// How it was measured.
    pub method: RttMethod,
    /// Number of the acknowledging packet.
    pub packet: u64,
}

/// One data packet that was not simply the next.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent it.
    pub side: Side,
    /// When it was seen.
    pub time_ns: i64,
    /// Its number.
    pub packet: u64,
    /// Its first position.
    pub position: i64,
    /// Its payload.
    pub payload_bytes: u32,
    /// Bytes of it that the capture had already shown.
    pub repeated_bytes: u32,
}

/// Samples of one kind, up to a bound.
#[derive(Debug)]
pub struct Samples<T> {
    /// Those kept: the first ones.
    pub kept: Vec<T>,
    wanted: bool,
    limit: usize,
    left_out: u64,
}

impl<T> Samples<T> {
    fn new(wanted: bool, limit: usize) -> Self {
        Self { kept: Vec::new(), wanted, limit, left_out: 0 }
    }

    fn add(&mut self, sample: T) {
        if self.kept.len() < self.limit {
            self.kept.push(sample);
        } else {
            self.left_out += 1;
        }
    }
}

/// Everything that a pass finds out.
pub struct Analysis {
    options: Options,
    /// All flows.
    pub flows: FlowTable,
    fragments: Fragments,
    /// Of the last packet; kept here so that it is not copied.
    outcome: Outcome,
    /// Whether anything is collected beside the flows themselves.
    collects: bool,
    /// Time bins, if wanted.
    pub bins: Option<Bins>,
    /// RTT samples.
    pub rtt: Samples<RttSample>,
    /// Retransmissions and late arrivals.
    pub losses: Samples<LossSample>,
    /// One for each source read.
    pub sources: Vec<SourceSummary>,
    /// What went wrong.
    pub problems: Vec<Problem>,
}

impl Analysis {
    /// Nothing read yet.
    pub fn new(options: Options) -> Self {
        Self {
            flows: FlowTable::new(options.max_flows),
            fragments: Fragments::default(),
            outcome: Outcome::default(),
            collects: options.bins.is_some() || options.rtt || options.losses,
            bins: options.bins.map(|width| Bins::new(width, options.max_samples)),
            rtt: Samples::new(options.rtt, options.max_samples),
            losses: Samples::new(options.losses, options.max_samples),
            sources: Vec::new(),
            problems: Vec::new(),
            options,
        }
    }

    /// Read one source to its end. What is wrong with it goes to `problems`; an error is one of
    /// the filter, in libpcap's words.
    pub fn read(
        &mut self,
        source: &str,
        compiler: Option<&dyn Compiler>,
        progress: &Arc<Progress>,
    ) -> Result<(), String> {
        let mut reading = Reading::open(source, self, progress);
        while reading.next(self, compiler)? {}
        reading.close(self);
        Ok(())
    }

    /// Report the bounds that were reached. To be called once, after the last source.
    pub fn finish(&mut self) {
        let untracked: u64 = self.sources.iter().map(|source| source.untracked_packets).sum();
        if untracked > 0 {
            let message = format!(
                "more than {} flows: {untracked} packets of further flows were counted but not analysed",
                self.options.max_flows
            );
            let hint = "raise `--max-flows`, or select flows with `--filter`";
            self.bound(ReadError::whole(ProblemKind::FlowLimit, message).hint(hint));
        }
        let lost_bins = self.bins.as_ref().map_or(0, Bins::lost_packets);
        let limits = [
            ("RTT samples", self.rtt.left_out),
            ("loss samples", self.losses.left_out),
            ("packets in time bins", lost_bins),
        ];
        for (what, left_out) in limits.into_iter().filter(|(_, left_out)| *left_out > 0) {
            let message =
                format!("{left_out} {what} left out: only the first {} are kept", self.options.max_samples);
            let hint = "select flows with `--filter`, or use wider bins";
            self.bound(ReadError::whole(ProblemKind::SampleLimit, message).hint(hint));
        }
    }

    fn bound(&mut self, error: ReadError) {
        let first = self.sources.first().map(|source| source.source.clone()).unwrap_or_default();
        let packets_before = self.sources.iter().map(|source| source.packets).sum();
        self.problems.push(Problem { source: first, packet: None, packets_before, error });
    }

    /// Give a packet to its flow.
    #[inline(always)]
    fn take(&mut self, packet: &Packet, summary: &mut SourceSummary) -> Option<Found> {
        if !packet.is_ip {
            return None;
        }
        let network = &packet.network;
        match network.transport {
            Transport::Tcp | Transport::Udp | Transport::Unread if is_flow(network) => {
                let source = self.sources.len() as u32;
                let Some(found) = self.flows.find_or_open(packet, network, source) else {
                    summary.untracked_packets += 1;
                    return None;
                };
                if network.fragment.is_some() {
                    self.fragments.remember(network, found);
                }
                self.give(found, packet, network);
                Some(found)
            }
            Transport::LaterFragment | Transport::IcmpError => {
                self.take_by_reference(packet, network, summary)
            }
            _ => {
                summary.portless_packets += u64::from(matches!(network.endpoints.protocol, 6 | 17));
                None
            }
        }
    }

    /// Packets that name their flow only through another packet.
    #[cold]
    fn take_by_reference(
        &mut self,
        packet: &Packet,
        network: &Network,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        if matches!(network.transport, Transport::IcmpError) {
            let found = self.flows.find(network).filter(|_| network.has_ports)?;
            self.flows.get_mut(found.flow).on_icmp_error(found.side);
            return None;
        }
        let mut network = *network;
        let Some(found) = self.fragments.resolve(&mut network) else {
            summary.portless_packets += u64::from(matches!(network.endpoints.protocol, 6 | 17));
            return None;
        };
        self.give(found, packet, &network);
        Some(found)
    }

    #[inline(always)]
    fn give(&mut self, found: Found, packet: &Packet, network: &Network) {
        let outcome = &mut self.outcome;
        self.flows.get_mut(found.flow).on_packet(found.side, packet, network, outcome);
        if self.collects {
            self.collect(found, packet, network);
        }
    }

    /// Keep of a packet what the caller asked for.
    #[inline(never)]
    fn collect(&mut self, found: Found, packet: &Packet, network: &Network) {
        let Found { flow, side } = found;
        let outcome = &self.outcome;
        let payload_bytes = network.payload_bytes.unwrap_or(0);
        if let Some(bins) = &mut self.bins {
            bins.add(flow, side, packet.time_ns, packet.wire_bytes, payload_bytes, outcome);
        }
        if self.rtt.wanted {
            sample_rtt(&mut self.rtt, found, packet, outcome);
        }
        if self.losses.wanted && (outcome.repeated_bytes > 0 || outcome.out_of_order) {
            self.losses.add(LossSample {
                flow,
                side,
                time_ns: packet.time_ns,
                packet: packet.number,
                position: outcome.position,
                payload_bytes,
                repeated_bytes: outcome.repeated_bytes,
            });
        }
    }
}

fn sample_rtt(samples: &mut Samples<RttSample>, found: Found, packet: &Packet, outcome: &Outcome) {
    let found_rtts = [
        (outcome.ack_rtt_ns, RttMethod::Ack),
        (outcome.timestamp_rtt_ns, RttMethod::Timestamp),
        (outcome.handshake_rtt_ns, RttMethod::Handshake),
    ];
    for (rtt_ns, method) in found_rtts {
        let Some(rtt_ns) = rtt_ns else { continue };
        // The handshake belongs to the side that began it; it also sent the final ACK.
        let side = match method {
            RttMethod::Handshake => found.side,
            _ => found.side.other(),
        };
        samples.add(RttSample {
            flow: found.flow,
            side,
            time_ns: packet.time_ns,
            rtt_ns,
            method,
            packet: packet.number,
        });
    }
}

/// TCP and UDP make flows; what could not be read of them must at least have ports.
#[inline(always)]
fn is_flow(network: &Network) -> bool {
    network.has_ports && matches!(network.endpoints.protocol, 6 | 17)
}

/// One source while it is being read.
pub struct Reading {
    capture: Option<Capture>,
    filters: Vec<(LinkType, Program)>,
    summary: SourceSummary,
    error: Option<ReadError>,
    number: u64,
    packet: Packet,
    found: Option<Found>,
    progress: Arc<Progress>,
}

impl Reading {
    /// Open `source`. If that fails there are no packets, and [`Reading::close`] reports it.
    pub fn open(source: &str, analysis: &Analysis, progress: &Arc<Progress>) -> Self {
        let limit = analysis.options.max_decompressed_bytes;
        Self::with_input(source, Input::open(source, limit, progress), progress)
    }

    /// The same with an input that was opened already.
    pub fn with_input(source: &str, input: Result<Input, ReadError>, progress: &Arc<Progress>) -> Self {
        let mut summary = SourceSummary::new(source);
        let opened = input.and_then(|input| {
            summary.compression = input.compression().name();
            Capture::open(input)
        });
        let (capture, error) = match opened {
            Ok(capture) => (Some(capture), None),
            Err(error) => (None, Some(error)),
        };
        summary.format = capture.as_ref().map_or("", Capture::format);
        Self {
            capture,
            filters: Vec::new(),
            summary,
            error,
            number: 0,
            packet: Packet::default(),
            found: None,
            progress: Arc::clone(progress),
        }
    }

    /// The packet of the last call of [`Reading::next`], and the flow it was given to.
    pub fn packet(&self) -> (&Packet, Option<Found>) {
        (&self.packet, self.found)
    }

    /// Read and analyse the next packet that the filter lets through; false at the end.
    #[inline(always)]
    pub fn next(&mut self, analysis: &mut Analysis, compiler: Option<&dyn Compiler>) -> Result<bool, String> {
        loop {
            let Some(capture) = &mut self.capture else {
                return Ok(false);
            };
            let record = match capture.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(false),
                Err(error) => {
                    self.error = Some(error);
                    return Ok(false);
                }
            };
            self.number += 1;
            if self.number % PROGRESS_STEP == 0 {
                self.progress.packets.fetch_add(PROGRESS_STEP, Ordering::Relaxed);
            }
            if let Some(compiler) = compiler
                && !accepts(&mut self.filters, compiler, &record)?
            {
                self.summary.filtered_packets += 1;
                continue;
            }
            wire::decode(&record, self.number, &mut self.packet);
            self.summary.count(&self.packet);
            self.found = analysis.take(&self.packet, &mut self.summary);
            return Ok(true);
        }
    }

    /// Hand the counts and what went wrong to `analysis`.
    pub fn close(mut self, analysis: &mut Analysis) {
        self.progress.packets.fetch_add(self.number % PROGRESS_STEP, Ordering::Relaxed);
        if let Some(capture) = &self.capture {
            self.summary.finish(capture.interfaces());
        }
        let failed = self.error.is_some();
        if let Some(error) = self.error {
            let in_packets = error.byte.is_some() && self.capture.is_some();
            analysis.problems.push(Problem {
                source: self.summary.source.clone(),
                packet: in_packets.then_some(self.number + 1),
                packets_before: self.number,
                error,
            });
        }
        if self.summary.packets == 0 && !failed {
            let message = match self.summary.filtered_packets {
                0 => "the capture holds no packets".to_owned(),
                n => format!("the filter left out all {n} packets"),
            };
            analysis.problems.push(Problem {
                source: self.summary.source.clone(),
                packet: None,
                packets_before: 0,
                error: ReadError::whole(ProblemKind::NoPackets, message),
            });
        }
        analysis.sources.push(self.summary);
    }

    /// The interfaces known so far, for naming a packet's.
    pub fn interface_name(&self, interface: usize) -> Option<&str> {
        self.capture.as_ref()?.interfaces().get(interface)?.name.as_deref()
    }
}

/// Whether the filter, compiled for the record's link type, lets it through.
#[inline(always)]
fn accepts(
    filters: &mut Vec<(LinkType, Program)>,
    compiler: &dyn Compiler,
    record: &Record<'_>,
) -> Result<bool, String> {
    let program = match filters.iter().position(|(link_type, _)| *link_type == record.link_type) {
        Some(at) => &filters[at].1,
        None => compile(filters, compiler, record.link_type)?,
    };
    Ok(program.accepts(record.data, record.wire_bytes))
}

#[cold]
fn compile<'a>(
    filters: &'a mut Vec<(LinkType, Program)>,
    compiler: &dyn Compiler,
    link_type: LinkType,
) -> Result<&'a Program, String> {
    let instructions = compiler.compile(link_type.number(), FILTER_SNAP_LENGTH)?;
    let program = Program::new(instructions)?;
    filters.push((link_type, program));
    Ok(&filters[filters.len() - 1].1)
}
