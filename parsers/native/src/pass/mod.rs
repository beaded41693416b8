//! One pass over one source, or over several that are one trace.

pub mod checkpoint;
pub mod chosen_flows;
pub mod collectors;
pub mod datagram_layout;
mod finish;
pub mod joined;
pub mod log_owners;
mod options;
mod pair;
pub mod release;
pub mod spool;
mod stages;
mod state;
pub mod wifi_links;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::input::bytes::Progress;
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::join::order::{Group, Open, Plan};
use crate::packet::flow_totals::FlowTotals;
use crate::pair::Tap;
pub use collectors::RttSample;
pub use finish::cut_flows::Cut;
use joined::JoinedGroup;
use log_owners::LogFacts;
pub use options::Options;
use pair::two_readings::read_captures;
pub use pair::{CapturePair, PairOutcome, Transit};
use spool::Spool;
use stages::batches::BATCHES;
pub use state::{Analysis, Carried, Results, TakeRows};
use state::{Release, Working};

impl Analysis {
    pub fn new(options: Options) -> Self {
        Self {
            carried: Carried::new(&options),
            working: Working::new(&options),
            results: Results::new(&options),
            options,
        }
    }

    /// Keep what a replay needs in `spool`. To be called before the first packet.
    pub fn spool_into(&mut self, spool: Spool) {
        self.results.spool = Some(spool);
        self.results.collects = true;
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
        if self.results.spool.is_none() {
            reading.skip_forwarded();
        }
        reading.await_first_bytes(std::mem::take(&mut self.carried.first_bytes));
        let is_released = release::begin_release(self, reading.source()) && reading.is_capture();
        if is_released {
            reading.be_prompt();
        }
        reading.for_some_batches(compiler, BATCHES, |batches| {
            self.take_batches(batches, &mut summary);
            if is_released {
                release::release_ended(self, batches);
            }
        })?;
        self.working.settle_backlog(&mut self.carried.flows);
        self.working.group_settled(&mut self.carried);
        self.working.threads.stop();
        self.carried.first_bytes = reading.take_first_bytes();
        let packets = reading.packets();
        self.close(reading, summary);
        Ok(packets)
    }

    /// Give rows of groups to `take` when their interval is over. To be called before the first packet.
    pub fn release_groups(&mut self, take: TakeRows) {
        self.results.release =
            Some(Release { take, to_ns: i64::MIN, last_ns: i64::MIN, source: String::new() });
    }

    /// The first source of the trace.
    pub fn first_source(&self) -> Option<&str> {
        let read = self.carried.sources.first().map(|summary| summary.source.as_str());
        read.or_else(|| self.results.release.as_ref().map(|release| release.source.as_str()))
    }

    /// Add the counts and problems of a source that was read.
    pub fn close(&mut self, mut reading: Reading, mut summary: SourceSummary) {
        let document = reading.document();
        for totals in &document.flows {
            self.take_totals(totals, &mut summary);
        }
        let facts = LogFacts::of(&summary.source, &self.options.log_owners);
        for sample in reading.take_samples().into_iter().chain(document.samples) {
            self.results.variables.add(facts.complete(sample));
        }
        self.carried.problems.extend(self.carried.appended.finish(reading.source()));
        self.working.outside.add(reading.take_outside_flows());
        self.carried.problems.extend(reading.finish(&mut summary));
        if !document.hosts.is_empty() {
            summary.hosts = Some(document.hosts);
        }
        self.carried.fragments.forget_early();
        self.carried.sources.push(summary);
        self.carried.source += 1;
    }

    /// Read files as one trace, as planned. An error is one of the filter, in libpcap's words.
    pub fn read_planned(
        &mut self,
        plan: Plan,
        open: Open<'_>,
        compiler: Option<&dyn Compiler>,
    ) -> Result<(), String> {
        let planned = self.carried.planned_problems;
        self.carried.planned_problems += plan.problems.len();
        self.carried.problems.splice(planned..planned, plan.problems);
        for group in plan.groups {
            if let [member] = group.members[..] {
                self.begin_group(&group);
                let mut reading = open(member.file);
                reading.number_after(self.carried.packets);
                self.carried.packets += self.read_from(reading, compiler)?;
                continue;
            }
            let mut merging = JoinedGroup::begin(self, group, self.carried.packets);
            while merging.take_next(self, open, compiler, |_, _, _, _| ())? {}
            self.carried.packets = merging.close(self);
        }
        Ok(())
    }

    fn begin_group(&mut self, group: &Group) {
        if group.is_cut_off {
            self.forget_times();
        }
        if group.follows_gap {
            self.carried.flows.leave_gap();
        }
    }

    /// Read captures of the same path or network as one trace, each twice. Their problems go to
    /// `problems`; the error is the filter's, worded by libpcap. The second of two clocks is ahead by
    /// `given_offset_ns` if given, otherwise its offset is estimated; more captures have one clock.
    pub fn read_pair(
        &mut self,
        sources: &[OsString],
        given_offset_ns: Option<i64>,
        compiler: Option<&dyn Compiler>,
        progress: &Arc<Progress>,
    ) -> Result<(), String> {
        let (format, most_bytes) = (self.options.format, self.options.max_decompressed_bytes);
        let tunnel_ports = self.options.tunnel_ports.clone();
        let open = |tap: Tap| {
            let mut reading = Reading::open(&sources[tap.index()], format, most_bytes, progress);
            reading.find_tunnels_at(&tunnel_ports);
            reading
        };
        self.read_pair_from(sources.len(), &open, given_offset_ns, compiler)
    }

    /// Read captures that are opened elsewhere, each twice.
    pub fn read_pair_from(
        &mut self,
        captures: usize,
        open: &dyn Fn(Tap) -> Reading,
        given_offset_ns: Option<i64>,
        compiler: Option<&dyn Compiler>,
    ) -> Result<(), String> {
        read_captures(self, captures, open, given_offset_ns, compiler)
    }

    /// Add another program's totals of a direction of a flow.
    fn take_totals(&mut self, totals: &FlowTotals, summary: &mut SourceSummary) {
        match self.carried.flows.find_or_open_totals(&totals.endpoints, self.carried.source) {
            Some(found) => self.carried.flows.get_mut(found.flow).on_totals(found.side, totals),
            None => summary.untracked_packets = summary.untracked_packets.saturating_add(totals.sent.0),
        }
    }
}
