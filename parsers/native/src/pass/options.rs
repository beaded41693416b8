//! How sources are read, what is collected of them, and the bounds: all that the caller gives.

use std::collections::HashSet;

use super::chosen_flows::ChosenFlows;
use super::collectors::NewCollector;
use super::datagram_layout::DatagramLayout;
use super::log_owners::LogOwner;
use crate::flow::Flow;
use crate::flow::bins::BinWidth;
use crate::flow::bounded_samples::BoundedSamples;
use crate::flow::ends::idle_times::IdleTimes;
use crate::flow::ends::packed_flows::Packing;
use crate::flow::tcp::vantage::{Vantage, believed};
use crate::groups::Grouping;
use crate::input::source::InputFormat;
use crate::input::stretch::Stretch;
use crate::packet::event::NodeLayer;
use crate::packet::key::Side;
use crate::tfrc::ns2::Parameters;
use crate::tfrc::profile::Profile;
use crate::wire::layers::TunnelPorts;

/// How sources are read, what is collected of them, and the bounds.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tables to collect beside those that every pass fills (`tables::TABLES`).
    pub collect: HashSet<String>,
    /// Collectors of those of them that sample what packets of TCP do.
    pub collectors: Vec<NewCollector>,
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
    pub idle: IdleTimes,
    pub packing: Packing,
    /// The most samples of each kind.
    pub max_samples: usize,
    /// Flows of which round-trip times and rounds are collected.
    pub sampled_flows: ChosenFlows,
    /// Flows of which causes are collected.
    pub explained_flows: ChosenFlows,
    /// Directions of which time-sequence graphs are made: the flow, and whether it is `fwd`.
    pub graphed_flows: Vec<(u32, bool)>,
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
    pub(super) fn collects(&self, table: &str) -> bool {
        self.collect.contains(table)
    }

    /// Whether tables need what held connections back.
    pub(super) fn needs_ledgers(&self) -> bool {
        ["rounds", "causes", "cause_sums", "bottlenecks"].iter().any(|table| self.collects(table))
    }

    /// Room for the samples of a table, if it is collected.
    pub(super) fn samples_of<T: Copy>(&self, table: &str) -> BoundedSamples<T> {
        BoundedSamples::new(self.collects(table), self.max_samples)
    }

    /// Where `flow` was captured, seen from the data of `side`, and the confidence: as given by the
    /// user or by a simulator, else inferred.
    pub fn vantage_of(&self, flow: &Flow, side: Side) -> Option<(Vantage, f64)> {
        flow.vantage(side, self.vantage)
    }

    /// Whether all of the flight of `side` is visible, and with it the congestion window: at the sender, or, if the
    /// vantage is doubtful, no time away from it.
    pub fn shows_flight(&self, flow: &Flow, side: Side) -> bool {
        let is_near =
            || flow.transport.tcp.as_deref().is_none_or(|connection| !connection.half(side).is_far());
        believed(self.vantage_of(flow, side)).map_or_else(is_near, |vantage| vantage == Vantage::Sender)
    }

    /// Whether losses of the data of `side` are visible: not if they are captured at their sender.
    pub fn shows_arrivals(&self, flow: &Flow, side: Side) -> bool {
        if flow.transport.rtp().is_some_and(|rtp| rtp.direction(side).hides_losses()) {
            return false;
        }
        flow.shows_both_ends(side)
            || self.vantage_of(flow, side).is_none_or(|(vantage, _)| vantage != Vantage::Sender)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            collect: HashSet::new(),
            collectors: Vec::new(),
            bin_width: BinWidth::Adaptive,
            tfrc_profile: Profile::default(),
            tfrc: Parameters::default(),
            dissect: Vec::new(),
            rtt_s: None,
            max_flows: 1_000_000,
            idle: IdleTimes::default(),
            packing: Packing::default(),
            max_samples: 10_000_000,
            sampled_flows: ChosenFlows::default(),
            explained_flows: ChosenFlows::default(),
            graphed_flows: Vec::new(),
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
