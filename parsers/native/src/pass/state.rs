//! The state of a pass, by how long it lasts.

use serde::{Deserialize, Serialize};

use super::chosen_flows::ChosenFlows;
use super::collectors::PacketSamples;
use super::finish::borrowed_rtt::RttSources;
use super::finish::cut_flows::CutFlows;
use super::finish::source_problems::GapsOfSources;
use super::options::Options;
use super::pair::CapturePair;
use super::spool::Spool;
use super::stages::appended_capture::AppendedCapture;
use super::stages::flow_ends::FlowEnds;
use super::stages::follow_runs::Follower;
use super::stages::groups::GroupStage;
use super::stages::interface_duplicates::InterfaceDuplicates;
use super::stages::runs::Runs;
use super::wifi_links::{LinkSample, WifiLinks};
use crate::error::Problem;
use crate::flow::bins::Bins;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::intervals::Cuts;
use crate::flow::quic::client_hellos::ClientHellos;
use crate::flow::rtp::sessions::Sessions;
use crate::flow::tcp::causes::Ledgers;
use crate::flow::tcp::details::DetailsByFlow;
use crate::flow::tcp::sequence_graph::SequenceGraphs;
use crate::flow::tcp::{Connection, Outcome};
use crate::flow::tfrc::TfrcSamples;
use crate::flow::transits::{PathOutcome, Transits};
use crate::flow::{FlowBatches, FlowTable, Found, Fragments};
use crate::groups::Groups;
use crate::input::source_summary::SourceSummary;
use crate::input::stretch::OutsideFlows;
use crate::packet::captured::Captured;
use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::packet::logged_variables::VariableSample;
use crate::pair::hops::Hops;
use crate::threads::Threads;
use crate::wire::opening::first_bytes::FirstBytes;

/// A pass, and its results.
pub struct Analysis {
    pub options: Options,
    pub carried: Carried,
    pub(super) working: Working,
    pub results: Results,
}

/// What a pass carries from one source to the next. It is all that a checkpoint holds.
#[derive(Serialize, Deserialize)]
pub struct Carried {
    pub flows: FlowTable,
    pub(super) ends: FlowEnds,
    /// Bytes that are missing in flows.
    pub(super) gaps: GapsOfSources,
    pub(super) fragments: Fragments,
    /// Recent datagrams, to detect duplicates in the capture.
    pub(super) copies: InterfaceDuplicates,
    /// Whether the source was appended to itself.
    pub(super) appended: AppendedCapture,
    /// Groups by interval, if wanted.
    pub(super) groups: Option<GroupStage>,
    pub(super) sessions: Sessions,
    pub(super) client_hellos: ClientHellos,
    /// The first bytes of TCP connections.
    pub(super) first_bytes: FirstBytes,
    /// Links between 802.11 stations.
    pub links: WifiLinks,
    /// Index of the source that is being read.
    pub(super) source: u32,
    /// Packets of the sources that were planned together.
    pub(super) packets: u64,
    /// How many of the problems were found while planning: the first ones.
    pub(super) planned_problems: usize,
    pub sources: Vec<SourceSummary>,
    pub problems: Vec<Problem>,
}

impl Carried {
    pub fn new(options: &Options) -> Self {
        let vantage = options.vantage;
        let cuts = options.grouping.map(|grouping| Cuts { width: grouping.every, vantage });
        Self {
            flows: FlowTable::new(options.max_flows, options.idle, options.packing, cuts),
            ends: FlowEnds::new(&options.idle),
            gaps: GapsOfSources::new(),
            fragments: Fragments::default(),
            copies: InterfaceDuplicates::default(),
            appended: AppendedCapture::default(),
            groups: options.grouping.map(GroupStage::new),
            sessions: Sessions::default(),
            client_hellos: ClientHellos::default(),
            first_bytes: FirstBytes::default(),
            links: WifiLinks::default(),
            source: 0,
            packets: 0,
            planned_problems: 0,
            sources: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref().map(|of| &of.groups)
    }
}

/// What is of use only while packets are taken.
pub(super) struct Working {
    /// Packets between their two ends, where the trace shows both.
    pub transits: Transits,
    /// Segments of the batches being taken that wait for their flow's turn.
    pub runs: Runs,
    /// The state of each thread that follows them.
    pub followers: Vec<Follower>,
    pub threads: Threads,
    /// Queued packets; empty between sources.
    pub backlog: FlowBatches,
    /// Outcome of the last packet; kept here so that it is not copied. Used only if any table is collected.
    pub outcome: Outcome,
    /// Outcomes of packets that are not grouped yet.
    pub path_outcomes: Vec<PathOutcome>,
    /// Flows with packets outside of the stretch of time.
    pub outside: OutsideFlows,
}

impl Working {
    pub fn new(options: &Options) -> Self {
        Self {
            transits: Transits::default(),
            runs: Runs::default(),
            followers: Vec::new(),
            threads: Threads::new(options.threads),
            backlog: FlowBatches::default(),
            outcome: Outcome::default(),
            path_outcomes: Vec::new(),
            outside: OutsideFlows::default(),
        }
    }

    /// Pass all queued packets to their flows.
    pub fn settle_backlog(&mut self, flows: &mut FlowTable) {
        self.backlog.settle_all(flows, &self.threads);
    }

    /// Group what queued packets counted in intervals that ended.
    pub fn group_settled(&mut self, carried: &mut Carried) {
        if self.backlog.has_settled()
            && let Some(groups) = &mut carried.groups
        {
            groups.group_all_pieces(&mut carried.flows);
        }
    }
}

/// Takes rows of groups by their numbers.
pub type TakeRows = Box<dyn Fn(&Analysis, &[u32]) + Send + Sync>;

/// How rows of groups are given away while a trace is read.
pub struct Release {
    pub take: TakeRows,
    /// Rows that begin before it were given.
    pub to_ns: i64,
    /// Time of the last packet.
    pub last_ns: i64,
    /// The source that is read.
    pub source: String,
}

/// What is collected beside the flows, and what is found at the end.
pub struct Results {
    /// Whether any table is collected of what packets do to their flows.
    pub(super) collects: bool,
    pub bins: Option<Bins>,
    pub samples: PacketSamples,
    /// Details of TCP connections, if wanted.
    pub details: Option<DetailsByFlow>,
    /// What held back the senders of TCP connections, if wanted.
    pub ledgers: Option<Ledgers>,
    explained_flows: ChosenFlows,
    /// Time-sequence graphs, if wanted.
    pub graphs: Option<SequenceGraphs>,
    /// Samples of TFRC's ends.
    pub tfrc: TfrcSamples,
    /// Whether sources of RTP count what each second brings.
    pub wants_rtp_intervals: bool,
    pub link_samples: BoundedSamples<LinkSample>,
    /// Variables logged by other programs.
    pub variables: BoundedSamples<VariableSample>,
    /// Set if two captures of one path are read.
    pub pairing: Option<Box<CapturePair>>,
    /// What is kept for a replay, if anything.
    pub spool: Option<Spool>,
    /// Connections whose round-trip time other flows may use.
    pub rtt_sources: RttSources,
    /// Flows that the stretch of time cuts.
    pub cut_flows: CutFlows,
    /// Time of the last packet.
    pub(super) end_ns: i64,
    /// Whether the packets' times differ: if not, durations and RTTs are unknown.
    pub has_times: bool,
    /// Who takes rows of groups meanwhile, if anybody.
    pub release: Option<Release>,
}

impl Results {
    pub fn new(options: &Options) -> Self {
        Self {
            collects: ["bins", "tcp"].iter().any(|table| options.collects(table))
                || options.needs_ledgers()
                || !options.graphed_flows.is_empty()
                || !options.collectors.is_empty(),
            bins: options.collects("bins").then(|| Bins::new(options.bin_width, options.max_samples)),
            samples: PacketSamples::new(&options.collectors, options.max_samples, &options.sampled_flows),
            details: options.collects("tcp").then(DetailsByFlow::default),
            ledgers: options
                .needs_ledgers()
                .then(|| Ledgers::new(options.max_samples, options.collects("rounds"))),
            explained_flows: options.explained_flows.clone(),
            graphs: SequenceGraphs::new(&options.graphed_flows, options.max_samples),
            tfrc: TfrcSamples {
                feedback: options.samples_of("feedback"),
                loss_events: options.samples_of("loss_events"),
                loss_intervals: options.samples_of("loss_intervals"),
                findings: options.samples_of("findings"),
            },
            wants_rtp_intervals: options.collects("rtp_intervals"),
            link_samples: options.samples_of("link_samples"),
            variables: BoundedSamples::new(true, options.max_samples),
            pairing: None,
            spool: None,
            rtt_sources: RttSources::default(),
            cut_flows: CutFlows::default(),
            end_ns: i64::MIN,
            has_times: true,
            release: None,
        }
    }

    /// Whether anything is kept, or would be if it came.
    pub(super) fn has_samples(&self) -> bool {
        self.collects
            || self.spool.is_some()
            || self.bins.is_some()
            || self.follows_connections()
            || self.left_out().next().is_some()
            || self.wants_rtp_intervals
            || self.link_samples.wanted
            || !self.variables.kept.is_empty()
            || self.tfrc.wants_any()
    }

    /// Collect what is wanted of a connection whose packet from `side` of a flow had this outcome.
    pub(super) fn follow_connection(
        &mut self,
        place: (u32, Side),
        connection: &Connection,
        (packet, sack): (&Packet, &[(u32, u32)]),
        outcome: &Outcome,
    ) {
        if let Some(details) = &mut self.details {
            details.on_segment(place, connection, packet, sack, outcome);
        }
        if let Some(ledgers) = &mut self.ledgers
            && self.explained_flows.has(place.0)
        {
            ledgers.on_segment(place, connection, packet, outcome);
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.on_segment(place, connection, (packet, sack), outcome);
        }
    }

    /// Whether anything is collected of connections, for which packets have to come in the order of the file.
    pub(super) fn follows_connections(&self) -> bool {
        self.details.is_some() || self.ledgers.is_some() || self.graphs.is_some()
    }

    /// Collect what is wanted of a packet.
    #[inline(always)]
    pub(super) fn collect(&mut self, found: Found, packet: &Captured, outcome: &Outcome) {
        if let Some(bins) = &mut self.bins
            && !outcome.is_copy()
        {
            bins.add(found, packet, outcome);
        }
        self.samples.collect(found, packet, outcome, true);
        if let Some(spool) = &mut self.spool {
            spool.add_answers(found, packet.time_ns, outcome);
        }
    }

    /// Collect the RTT of the other direction from a packet's arrival, without counting the packet.
    pub(super) fn collect_rtt(&mut self, found: Found, packet: &Captured, outcome: &Outcome) {
        if let (Some(bins), Some(rtt)) = (&mut self.bins, outcome.rtt) {
            bins.add_rtt(found.flow, found.side.other(), packet.time_ns, rtt.ns);
        }
        self.samples.collect(found, packet, outcome, false);
        if let Some(spool) = &mut self.spool {
            spool.add_answers(found, packet.time_ns, outcome);
        }
    }

    /// The hops between more than two captures.
    pub fn hops(&self) -> Option<&Hops> {
        let network = self.pairing.as_ref()?.network.as_ref()?;
        Some(&network.hops)
    }

    /// Samples beyond the limit, by kind.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let others = [
            ("frames", self.link_samples.left_out),
            ("transits", self.pairing.as_ref().map_or(0, |pairing| pairing.transits.left_out)),
            ("packets on hops", self.hops().map_or(0, |hops| hops.left_out)),
            ("TFRC reports", self.tfrc.feedback.left_out),
            ("loss events", self.tfrc.loss_events.left_out),
            ("loss intervals", self.tfrc.loss_intervals.left_out),
            ("findings", self.tfrc.findings.left_out),
            ("samples of variables", self.variables.left_out),
            ("packets in the ledger of causes", self.ledgers.as_ref().map_or(0, |ledgers| ledgers.left_out)),
            (
                "single packets of time-sequence graphs",
                self.graphs.as_ref().map_or(0, |graphs| graphs.left_out),
            ),
            ("packets in time bins", self.bins.as_ref().map_or(0, Bins::lost_packets)),
        ];
        self.samples.left_out().chain(others).filter(|(_, left_out)| *left_out > 0)
    }
}
