//! The table of variables that senders logged themselves, in order of the sources.

use std::collections::{HashMap, HashSet};
use std::io;

use super::column::column;
use super::shown::{Shown, each_flow};
use super::{Column, PassTable, Row};
use crate::flow::{Found, direction_name};
use crate::input::source_summary::SourceSummary;
use crate::packet::event::{Address, Family};
use crate::packet::key::{FlowKey, address_text};
use crate::packet::logged_variables::VariableSample;
use crate::pass::Analysis;

/// The table of variables.
pub(super) struct Variables {
    /// The last of the flows that are over, by the ends that logs name.
    over: HashMap<FlowKey, u32>,
}

impl Variables {
    /// The flow of a value: one that goes on, else the last.
    fn found(&self, analysis: &Analysis, sample: &VariableSample) -> Option<Found> {
        let over = || {
            let (key, side) = FlowKey::of(&sample.endpoints);
            Some(Found { flow: *self.over.get(&key)?, side })
        };
        analysis.carried.flows.find_endpoints(&sample.endpoints).or_else(over)
    }
}

/// A value that a sender logged, with its flow.
pub struct VariableRow<'a> {
    analysis: &'a Analysis,
    flow: Option<(u32, &'static str)>,
    sample: &'a VariableSample,
}

impl PassTable for Variables {
    type Row<'a> = VariableRow<'a>;

    fn new(analysis: &Analysis) -> io::Result<Self> {
        let logged = analysis.results.variables.kept.iter().map(|sample| FlowKey::of(&sample.endpoints).0);
        let logged: HashSet<FlowKey> = logged.collect();
        let mut over = HashMap::new();
        if !logged.is_empty() {
            each_flow(analysis, |shown, number| {
                let key = shown.flow(number).key();
                if logged.contains(&key) {
                    over.insert(key, number);
                }
            })?;
        }
        Ok(Self { over })
    }

    fn len(&self, analysis: &Analysis) -> usize {
        analysis.results.variables.kept.len()
    }

    fn flow(&self, analysis: &Analysis, row: usize) -> Option<u32> {
        Some(self.found(analysis, analysis.results.variables.kept.get(row)?)?.flow)
    }

    fn row<'a>(&'a self, shown: Shown<'a>, row: usize, first_flow: u32) -> Option<VariableRow<'a>> {
        let analysis = shown.analysis;
        let sample = analysis.results.variables.kept.get(row)?;
        let flow = self.found(analysis, sample).map(|found| {
            let forward = shown.flow(found.flow).forward();
            (found.flow + first_flow, direction_name(found.side, forward))
        });
        Some(VariableRow { analysis, flow, sample })
    }
}

impl<'a> Row<'a> for VariableRow<'a> {
    const COLUMNS: &'a [&'a [Column<Self>]] = &[&[
        column("flow", "", "number of the conversation with the same ends")
            .null_when("none of the inputs has it")
            .u32(|row| Some(row.flow?.0)),
        column("direction", "", "direction of which `src` is the sender")
            .null_when("as flow")
            .name(|row| Some(row.flow?.1)),
        column("src", "", "sender that logged the variable")
            .text(|row| Some(row.address(row.sample.endpoints.src))),
        column("src_port", "", "its port; 0 if the log has none")
            .u32(|row| Some(row.sample.endpoints.src_port.into())),
        column("dst", "", "receiver of its data").text(|row| Some(row.address(row.sample.endpoints.dst))),
        column("dst_port", "", "port of the receiver; 0 if the log has none")
            .u32(|row| Some(row.sample.endpoints.dst_port.into())),
        column("time_ns", "ns", "since the epoch, or since the start of a simulation or of the log")
            .i64(|row| Some(row.sample.time_ns)),
        column("name", "", "such as `cwnd`, `ssthresh`, `srtt`, `rttvar`, `throughput`")
            .name(|row| Some(row.sample.name)),
        column("unit", "", "`packets`, `bytes`, `ms`, `bit/s`, or empty for a plain number")
            .name(|row| Some(row.sample.unit.name())),
        column("value", "", "value logged by the sender").f64(|row| Some(row.sample.value)),
    ]];
}

impl VariableRow<'_> {
    fn address(&self, address: Address) -> String {
        let mut notations = self.analysis.carried.sources.iter().map(SourceSummary::notation);
        let first = notations.next().unwrap_or_default();
        let notation = match self.sample.endpoints.family {
            Family::Name if first.hosts.is_empty() => {
                notations.find(|notation| !notation.hosts.is_empty()).unwrap_or(first)
            }
            _ => first,
        };
        address_text(address, self.sample.endpoints.family, notation)
    }
}
