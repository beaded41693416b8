//! One pass over one source, or over several that are one trace.

mod appended_capture;
mod batches;
mod borrowed_rtt;
pub mod checkpoint;
mod collect;
mod cut_flows;
pub mod datagram_layout;
mod datagrams;
mod finish;
mod flow_ends;
mod follow_runs;
mod groups;
mod interface_duplicates;
pub mod joined;
pub mod log_owners;
mod media;
mod missing_ends;
mod pair;
mod runs;
mod simulator_events;
mod source_problems;
pub mod spool;
mod tunnelled;
pub mod wifi_links;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::sync::Arc;

use crate::error::Problem;
use crate::flow::bins::{BinWidth, Bins};
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::dccp::ccid::CcidAssumptions;
use crate::flow::quic::client_hellos::ClientHellos;
use crate::flow::rtp::sessions::Sessions;
use crate::flow::tcp::classify::class::Classification;
use crate::flow::tcp::details::DetailsByFlow;
use crate::flow::tcp::vantage::Vantage;
use crate::flow::tcp::{Outcome, Round};
use crate::flow::tfrc::TfrcSamples;
use crate::flow::transits::{PathOutcome, Transits};
use crate::flow::{Flow, FlowBatches, FlowTable, Found, Fragments, Resolved};
use crate::groups::{Grouping, Groups};
use crate::input::bytes::Progress;
use crate::input::filter::Compiler;
use crate::input::reading::{BATCH, Reading};
use crate::input::source::InputFormat;
use crate::input::source_summary::SourceSummary;
use crate::input::stretch::{OutsideFlows, Stretch};
use crate::packet::event::{Network, NodeLayer, Packet, Transport};
use crate::packet::extras::PacketExtras;
use crate::packet::flow_totals::FlowTotals;
use crate::packet::frame::Frame;
use crate::packet::key::Side;
use crate::packet::logged_variables::VariableSample;
use crate::packet::tunnel::OuterFragment;
use crate::pair::hops::Hops;
use crate::pass::datagram_layout::DatagramLayout;
use crate::pass::log_owners::{LogFacts, LogOwner};
use crate::pass::wifi_links::{LinkSample, WifiLinks};
use crate::tfrc::ns2::Parameters;
use crate::tfrc::profile::Profile;
use crate::threads::Threads;
use crate::wire::layers::TunnelPorts;
use appended_capture::AppendedCapture;
use borrowed_rtt::RttSources;
use collect::{Captured, PacketSamples};
pub use cut_flows::Cut;
use flow_ends::FlowEnds;
use follow_runs::Follower;
use groups::dns_queries::DnsQueries;
use groups::echo_requests::EchoRequests;
use interface_duplicates::InterfaceDuplicates;
pub use pair::{CapturePair, PairOutcome, Transit};
use runs::Runs;
use source_problems::GapsOfSources;
use spool::Spool;

/// Silence that ends a flow unless another is given: NATs keep connections for so long (RFC 5382 section 5).
const IDLE_NS: i64 = 124 * 60 * 1_000_000_000;

/// Batches that are taken together: enough for several threads.
const BATCHES: usize = 8;
const _: () = assert!(BATCHES * BATCH <= Runs::MOST);

/// How sources are read, what is collected of them, and the bounds.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tables to collect beside those that every pass fills (`tables::TABLES`).
    pub collect: HashSet<String>,
    pub bin_width: BinWidth,
    /// TFRC rules against which a capture is checked.
    pub tfrc_profile: Profile,
    /// Parameters of ns-2's TFRC agents, which a trace does not show.
    pub tfrc: Parameters,
    /// Layouts of the UDP payloads from or to these ports.
    pub dissect: Vec<(u16, DatagramLayout)>,
    /// Round-trip time in seconds of flows that do not show theirs.
    pub rtt_s: Option<f64>,
    /// The most flows at a time.
    pub max_flows: u32,
    /// Silence after which a flow is over, in capture time.
    pub idle_ns: i64,
    /// The most samples of each kind.
    pub max_samples: usize,
    /// The most decompressed bytes of a source.
    pub max_decompressed_bytes: Option<u64>,
    /// Layer of a simulator's nodes at which packets count as sent and received; None takes
    /// the highest that the trace has.
    pub layer: Option<NodeLayer>,
    /// Format of the sources; None recognises it by their content.
    pub format: Option<InputFormat>,
    /// Where the captures were taken, seen from the direction with more payload; None infers it.
    pub vantage: Option<Vantage>,
    /// Connections of logs that do not name theirs.
    pub log_owners: Vec<LogOwner>,
    /// The stretch of time that is read; None for all.
    pub stretch: Option<Stretch>,
    /// How flows are grouped, if they are.
    pub grouping: Option<Grouping>,
    /// UDP ports of encapsulations.
    pub tunnel_ports: TunnelPorts,
    /// Threads that follow flows; None for as many as there are processors. The results are the same.
    pub threads: Option<usize>,
}

impl Options {
    /// Collect these tables, with default options.
    pub fn collecting(tables: &[&str]) -> Self {
        Self { collect: tables.iter().map(|&name| name.to_owned()).collect(), ..Self::default() }
    }

    fn collects(&self, table: &str) -> bool {
        self.collect.contains(table)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            collect: HashSet::new(),
            bin_width: BinWidth::Adaptive,
            tfrc_profile: Profile::default(),
            tfrc: Parameters::default(),
            dissect: Vec::new(),
            rtt_s: None,
            max_flows: 1_000_000,
            idle_ns: IDLE_NS,
            max_samples: 10_000_000,
            max_decompressed_bytes: None,
            layer: None,
            format: None,
            vantage: None,
            log_owners: Vec::new(),
            stretch: None,
            grouping: None,
            tunnel_ports: TunnelPorts::default(),
            threads: None,
        }
    }
}

named_enum! {
    /// How an RTT was measured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RttMethod {
        /// Data and its acknowledgement, by Karn's rule.
        Ack = "ack",
        /// Timestamp and its echo.
        Timestamp = "timestamp",
        /// SYN to final ACK.
        Handshake = "handshake",
        /// The window counter of CCID 3 (RFC 4342 section 8.1).
        Counter = "ccval",
        /// A value echoed by a receiver's report, less the time it was held.
        Report = "report",
        /// Edges of QUIC's spin bit (RFC 9000 section 17.4).
        SpinBit = "spin",
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RttSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side whose data were acknowledged.
    pub side: Side,
    pub time_ns: i64,
    pub rtt_ns: u64,
    pub method: RttMethod,
    /// Whether it seems to have waited for a delayed-acknowledgement timer.
    pub is_delayed_ack: bool,
    /// Number of the acknowledging packet.
    pub packet: u64,
}

/// One round of data in flight.
#[derive(Clone, Copy, Debug)]
pub struct RoundSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent the data.
    pub side: Side,
    pub round: Round,
}

/// One data packet that was not simply the next.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sent it.
    pub side: Side,
    pub time_ns: i64,
    pub packet: u64,
    pub position: i64,
    pub payload_bytes: u32,
    /// Bytes of it captured before.
    pub repeated_bytes: u32,
    pub finding: Classification,
}

/// The results of a pass.
pub struct Analysis {
    options: Options,
    pub flows: FlowTable,
    ends: FlowEnds,
    /// Bytes that are missing in flows.
    gaps: GapsOfSources,
    fragments: Fragments,
    /// Packets between their two ends, where the trace shows both.
    crossings: Transits,
    /// Recent datagrams, to detect duplicates in the capture.
    shown_again: InterfaceDuplicates,
    /// Whether the source was appended to itself.
    appended: AppendedCapture,
    /// Segments of the batches being taken that wait for their flow's turn.
    runs: Runs,
    /// The state of each thread that follows them.
    followers: Vec<Follower>,
    threads: Threads,
    /// Queued packets; empty outside of [`Analysis::read_from`].
    backlog: FlowBatches,
    /// Outcome of the last packet; kept here so that it is not copied. Used only if `collects`.
    outcome: Outcome,
    /// Whether any table is collected beside the flows.
    collects: bool,
    pub bins: Option<Bins>,
    /// Groups by interval, if wanted.
    pub groups: Option<Groups>,
    dns_queries: DnsQueries,
    echo_requests: EchoRequests,
    /// Outcomes of packets that are not grouped yet.
    path_outcomes: Vec<PathOutcome>,
    pub samples: PacketSamples,
    /// Details of TCP connections, if wanted.
    pub details: Option<DetailsByFlow>,
    /// Samples of TFRC's ends.
    pub tfrc: TfrcSamples,
    /// Connections whose round-trip time other flows may use.
    lenders: RttSources,
    sessions: Sessions,
    client_hellos: ClientHellos,
    /// Links between 802.11 stations.
    pub links: WifiLinks,
    pub link_samples: BoundedSamples<LinkSample>,
    /// Variables logged by other programs.
    pub variables: BoundedSamples<VariableSample>,
    /// Set if two captures of one path are read.
    pub pairing: Option<Box<CapturePair>>,
    /// What is kept for a replay, if anything.
    pub spool: Option<Spool>,
    /// Index of the source that is being read.
    source: u32,
    /// Packets of the sources that were planned together.
    packets: u64,
    /// How many of the problems were found while planning: the first ones.
    planned_problems: usize,
    pub sources: Vec<SourceSummary>,
    /// Flows with packets outside of the stretch of time.
    outside: OutsideFlows,
    /// Those of them that are in the table of flows, by number.
    pub cut_flows: BTreeMap<u32, Cut>,
    /// Time of the last packet.
    end_ns: i64,
    /// Whether the packets' times differ: if not, durations and RTTs are unknown.
    pub has_times: bool,
    pub problems: Vec<Problem>,
}

impl Analysis {
    pub fn new(options: Options) -> Self {
        Self {
            flows: FlowTable::new(
                options.max_flows,
                options.idle_ns,
                options.grouping.map(|grouping| grouping.every),
            ),
            ends: FlowEnds::new(options.idle_ns),
            gaps: GapsOfSources::new(),
            fragments: Fragments::default(),
            crossings: Transits::default(),
            shown_again: InterfaceDuplicates::default(),
            appended: AppendedCapture::default(),
            runs: Runs::default(),
            followers: Vec::new(),
            threads: Threads::new(options.threads),
            backlog: FlowBatches::default(),
            outcome: Outcome::default(),
            collects: ["bins", "rtt", "losses", "rounds", "tcp"].iter().any(|table| options.collects(table)),
            bins: options.collects("bins").then(|| Bins::new(options.bin_width, options.max_samples)),
            groups: options.grouping.map(Groups::new),
            dns_queries: DnsQueries::default(),
            echo_requests: EchoRequests::default(),
            path_outcomes: Vec::new(),
            samples: PacketSamples::new(&options),
            details: options.collects("tcp").then(DetailsByFlow::default),
            tfrc: TfrcSamples {
                feedback: BoundedSamples::new(options.collects("feedback"), options.max_samples),
                loss_events: BoundedSamples::new(options.collects("loss_events"), options.max_samples),
                loss_intervals: BoundedSamples::new(options.collects("loss_intervals"), options.max_samples),
                findings: BoundedSamples::new(options.collects("findings"), options.max_samples),
            },
            lenders: RttSources::default(),
            sessions: Sessions::default(),
            client_hellos: ClientHellos::default(),
            links: WifiLinks::default(),
            link_samples: BoundedSamples::new(options.collects("link_samples"), options.max_samples),
            variables: BoundedSamples::new(true, options.max_samples),
            pairing: None,
            spool: None,
            source: 0,
            packets: 0,
            planned_problems: 0,
            sources: Vec::new(),
            outside: OutsideFlows::default(),
            cut_flows: BTreeMap::new(),
            end_ns: i64::MIN,
            has_times: true,
            problems: Vec::new(),
            options,
        }
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Keep what a replay needs in `spool`. To be called before the first packet.
    pub fn spool_into(&mut self, spool: Spool) {
        self.spool = Some(spool);
        self.collects = true;
    }

    /// The hops between more than two captures.
    pub fn hops(&self) -> Option<&Hops> {
        let network = self.pairing.as_ref()?.network.as_ref()?;
        Some(&network.hops)
    }

    /// Samples beyond the limit, by kind.
    fn left_out(&self) -> [(&'static str, u64); 12] {
        [
            ("RTT samples", self.samples.rtt.left_out),
            ("loss samples", self.samples.losses.left_out),
            ("rounds", self.samples.rounds.left_out),
            ("frames", self.link_samples.left_out),
            ("transits", self.pairing.as_ref().map_or(0, |pairing| pairing.transits.left_out)),
            ("packets on hops", self.hops().map_or(0, |hops| hops.left_out)),
            ("TFRC reports", self.tfrc.feedback.left_out),
            ("loss events", self.tfrc.loss_events.left_out),
            ("loss intervals", self.tfrc.loss_intervals.left_out),
            ("findings", self.tfrc.findings.left_out),
            ("samples of variables", self.variables.left_out),
            ("packets in time bins", self.bins.as_ref().map_or(0, Bins::lost_packets)),
        ]
    }

    /// Where `flow` was captured, seen from the data of `side`, and the confidence: as given by the
    /// user or by a simulator, else inferred.
    pub fn vantage(&self, flow: &Flow, side: Side) -> Option<(Vantage, f64)> {
        if flow.shows_path() {
            if flow.is_simulated() && !flow.is_watched() {
                return None;
            }
            let vantage = match flow.watched() {
                Some(watched) if watched == side => Vantage::Sender,
                Some(_) => Vantage::Receiver,
                None => Vantage::Middle,
            };
            return Some((vantage, 1.0));
        }
        let Some(vantage) = self.options.vantage else {
            return flow.vantage(side);
        };
        if !flow.has_vantage() {
            return None;
        }
        let payload = |side| flow.direction(side).payload_bytes;
        let is_larger =
            (payload(side), side == flow.forward()) > (payload(side.other()), side != flow.forward());
        Some((if is_larger { vantage } else { vantage.of_other_direction() }, 1.0))
    }

    /// Whether losses of the data of `side` are visible: not if they are captured at their sender.
    pub fn shows_arrivals(&self, flow: &Flow, side: Side) -> bool {
        if flow.rtp().is_some_and(|rtp| rtp.direction(side).hides_losses()) {
            return false;
        }
        flow.shows_both_ends(side)
            || self.vantage(flow, side).is_none_or(|(vantage, _)| vantage != Vantage::Sender)
    }

    /// Read one source to its end. Its problems go to `problems`; the error is the filter's, worded
    /// by libpcap.
    pub fn read(
        &mut self,
        source: &OsStr,
        compiler: Option<&dyn Compiler>,
        progress: &Arc<Progress>,
    ) -> Result<(), String> {
        let options = &self.options;
        let mut reading = Reading::open(source, options.format, options.max_decompressed_bytes, progress);
        reading.find_tunnels_at(&options.tunnel_ports);
        reading.keep_to(options.stretch);
        self.read_from(reading, compiler).map(|_| ())
    }

    /// Read a source that is already open, and return how many packets it has.
    pub fn read_from(
        &mut self,
        mut reading: Reading,
        compiler: Option<&dyn Compiler>,
    ) -> Result<u64, String> {
        let mut summary = SourceSummary::new(reading.source());
        // See `take_sighting`; a replay counts the time in queues on the way.
        if self.spool.is_none() {
            reading.skip_forwarded();
        }
        reading.for_some_batches(compiler, BATCHES, |batches| self.take_batches(batches, &mut summary))?;
        self.backlog.settle_all(&mut self.flows, &self.threads);
        self.group_settled();
        self.threads.stop();
        let packets = reading.packets();
        self.close(reading, summary);
        Ok(packets)
    }

    /// Add the counts and problems of a source that was read.
    pub fn close(&mut self, mut reading: Reading, mut summary: SourceSummary) {
        let document = reading.document();
        for totals in &document.flows {
            self.take_totals(totals, &mut summary);
        }
        let facts = LogFacts::of(&summary.source, &self.options.log_owners);
        for sample in reading.take_samples().into_iter().chain(document.samples) {
            self.variables.add(facts.complete(sample));
        }
        self.finish_appended(reading.source());
        self.outside.add(reading.take_outside_flows());
        self.problems.extend(reading.finish(&mut summary));
        if !document.hosts.is_empty() {
            summary.hosts = Some(document.hosts);
        }
        self.fragments.forget_early();
        self.sources.push(summary);
        self.source += 1;
    }

    /// Pass a packet to its flow, which is returned. `summary` gets counts that only the flow
    /// knows.
    #[inline(always)]
    pub fn take(
        &mut self,
        packet: &Packet,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        let found = self.pass_on(packet, extras, summary);
        if let Some(found) = found
            && self.spool.is_some()
        {
            self.spool_packet(found, packet, extras);
        }
        found
    }

    #[inline(always)]
    fn pass_on(
        &mut self,
        packet: &Packet,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        if let Some(aside) = packet.frame
            && self.take_frame(packet, extras.frame(aside))
        {
            return self.take_repeat(packet, summary);
        }
        if !packet.is_ip {
            return None;
        }
        if let Some(sighting) = packet.sighting {
            return self.take_sighting(packet, &sighting, extras, summary);
        }
        let network = &packet.network;
        match network.transport {
            Transport::Tcp | Transport::Udp | Transport::Dccp | Transport::Unread if is_flow(network) => {
                let Some(found) = self.find_or_open(packet, network, extras) else {
                    summary.untracked_packets += 1;
                    return None;
                };
                let is_copy = self.take_copy(found, packet, network, extras);
                if network.fragment.is_some() {
                    self.fragments.remember(network, outer_fragment(network, extras), found, is_copy);
                }
                if is_copy {
                    return Some(found);
                }
                self.give(found, packet, network, extras);
                match network.transport {
                    Transport::Udp => self.take_datagram(found, packet, extras),
                    Transport::Dccp => self.follow_dccp(found, packet, extras),
                    _ => {}
                }
                if network.fragment.is_some() {
                    self.take_early_fragments(packet, extras, summary);
                }
                Some(found)
            }
            Transport::LaterFragment | Transport::IcmpError => {
                self.take_by_reference(packet, network, extras, summary)
            }
            _ => {
                summary.portless_packets += u64::from(has_flows(network));
                if self.groups.is_some() && is_icmp(network) {
                    self.take_echo(packet, extras);
                }
                None
            }
        }
    }

    /// Pass a DCCP packet to the TFRC ends that it concerns.
    #[inline(never)]
    fn follow_dccp(&mut self, found: Found, packet: &Packet, extras: &PacketExtras) {
        let Some(header) = packet.network.head.and_then(|aside| extras.dccp(aside)) else { return };
        let Found { flow, side } = found;
        let vantage = self.vantage(self.flows.get(flow), side.other()).map(|(vantage, _)| vantage);
        let assumed = CcidAssumptions { profile: self.options.tfrc_profile, vantage };
        let of = self.flows.get_mut(flow);
        let Some(rtt) = of.follow_tfrc((flow, side), packet, header, assumed, &mut self.tfrc) else { return };
        if self.samples.rtt.wanted {
            let rtt_ns = (rtt * 1e9).round() as u64;
            let (method, is_delayed_ack) = (RttMethod::Counter, false);
            let &Packet { time_ns, number: packet, .. } = packet;
            self.samples.rtt.add(RttSample { flow, side, time_ns, rtt_ns, method, is_delayed_ack, packet });
        }
    }

    /// Pass an 802.11 frame to its link; returns whether it is a retransmission of a captured
    /// frame.
    #[cold]
    fn take_frame(&mut self, packet: &Packet, frame: Option<&Frame>) -> bool {
        let Some(frame) = frame else { return false };
        let is_repeat = self.links.take(packet, frame);
        if let Some(groups) = &mut self.groups {
            groups.take_frame(frame, packet.time_ns);
        }
        if self.link_samples.wanted {
            let &Packet { time_ns, number, .. } = packet;
            self.link_samples.add(LinkSample { time_ns, packet: number, frame: *frame, is_repeat });
        }
        is_repeat
    }

    /// A packet in a frame that the capture had shown before: its acknowledgement was lost on the
    /// air. To the flow it is no packet, let alone a retransmission.
    #[cold]
    fn take_repeat(&mut self, packet: &Packet, summary: &mut SourceSummary) -> Option<Found> {
        let network = &packet.network;
        let is_error = network.transport == Transport::IcmpError;
        if !packet.is_ip || is_error || !has_flows(network) {
            return None;
        }
        summary.repeated_packets += 1;
        let found = self.flows.find_in_lane(network).filter(|_| network.has_ports)?;
        self.flows.get_mut(found.flow).on_repeated_frame(found.side);
        Some(found)
    }

    /// Add another program's totals of a direction of a flow.
    fn take_totals(&mut self, totals: &FlowTotals, summary: &mut SourceSummary) {
        match self.flows.find_or_open_totals(&totals.endpoints, self.source) {
            Some(found) => self.flows.get_mut(found.flow).on_totals(found.side, totals),
            None => summary.untracked_packets = summary.untracked_packets.saturating_add(totals.sent.0),
        }
    }

    /// Packets that identify their flow only by another packet.
    #[cold]
    fn take_by_reference(
        &mut self,
        packet: &Packet,
        network: &Network,
        extras: &PacketExtras,
        summary: &mut SourceSummary,
    ) -> Option<Found> {
        if matches!(network.transport, Transport::IcmpError) {
            let quoted = self.flows.find_quoted(network).filter(|_| network.has_ports);
            let found = quoted.filter(|found| !self.flows.is_over_at(found.flow, packet.time_ns))?;
            if !self.shown_again.is_copy(packet, network, extras) {
                self.flows.get_mut(found.flow).on_icmp_error(found.side);
            }
            return None;
        }
        let mut network = *network;
        let known = self.fragments.resolve(&mut network);
        let is_alive = |known: &Resolved| !self.flows.is_over_at(known.found.flow, packet.time_ns);
        let Some(Resolved { found, is_copy }) = known.filter(is_alive) else {
            summary.portless_packets += u64::from(has_flows(&network));
            self.fragments.keep_early(packet);
            return None;
        };
        let packet = &Packet { network, ..*packet };
        if is_copy {
            self.flows.get_mut(found.flow).on_copy(found.side);
            return Some(found);
        }
        if network.transport == Transport::LaterFragment
            && self.take_copy(found, packet, &network, &PacketExtras::default())
        {
            return Some(found);
        }
        self.backlog.settle(found.flow, &mut self.flows);
        // A later fragment has no options.
        self.give(found, packet, &network, &PacketExtras::default());
        Some(found)
    }

    /// Give the fragments that came before the `first` one of their datagram to its flow.
    #[cold]
    fn take_early_fragments(&mut self, first: &Packet, extras: &PacketExtras, summary: &mut SourceSummary) {
        for packet in self.fragments.take_early(first, outer_fragment(&first.network, extras)) {
            let found = self.take_by_reference(&packet, &packet.network, &PacketExtras::default(), summary);
            summary.portless_packets -= u64::from(found.is_some() && has_flows(&packet.network));
        }
    }

    #[inline(always)]
    fn give(&mut self, found: Found, packet: &Packet, network: &Network, extras: &PacketExtras) {
        let payload = network.tcp().and(network.payload_bytes).unwrap_or(0);
        self.reach_segment(found, packet.time_ns, network.tcp.seq, payload);
        let outcome = &mut self.outcome;
        if self.collects {
            outcome.clear();
        }
        let (flow, pool) = self.flows.get_with_pool(found.flow);
        flow.on_packet(found.side, packet, network, extras, pool, outcome);
        if let (Some(details), Some(connection)) = (&mut self.details, &flow.tcp)
            && !outcome.is_copy()
        {
            let sack = extras.sack(network.tcp.options.sack);
            details.take((found.flow, found.side), connection, packet, sack, outcome);
        }
        if self.collects {
            self.collect(found, &Captured::of(packet, network));
        }
    }
}

/// The fragment around a packet, if there is one.
fn outer_fragment<'a>(network: &Network, extras: &'a PacketExtras) -> Option<&'a OuterFragment> {
    extras.tunnel(network.tunnel)?.outer_fragment.as_ref()
}

/// TCP, UDP and DCCP make flows; a partly decoded packet needs at least its ports.
#[inline(always)]
fn is_flow(network: &Network) -> bool {
    network.has_ports && has_flows(network)
}

/// Messages of ICMP and ICMPv6.
fn is_icmp(network: &Network) -> bool {
    matches!(network.endpoints.protocol, 1 | 58)
}

#[inline(always)]
fn has_flows(network: &Network) -> bool {
    matches!(network.endpoints.protocol, 6 | 17 | 33)
}
