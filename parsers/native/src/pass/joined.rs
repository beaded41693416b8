//! Several files of one trace, in the order of their packets.

use super::state::Analysis;
use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::flow::Found;
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source_summary::SourceSummary;
use crate::join::merge::{MergedFiles, PacketsOfOne};
use crate::join::order::{Group, Open};
use crate::packet::batch::Item;
use crate::packet::event::Packet;
use crate::packet::extras::PacketExtras;
use crate::plural::counted;

/// Files that are read as one, and what each held.
pub struct JoinedGroup {
    merged: MergedFiles,
    summaries: Vec<SourceSummary>,
    /// Sources of the trace before them.
    sources_before: u32,
}

impl JoinedGroup {
    /// Begin with the files of `group`; packets are numbered after `packets_before`.
    pub fn begin(analysis: &mut Analysis, group: Group, packets_before: u64) -> Self {
        analysis.begin_group(&group);
        Self {
            merged: MergedFiles::new(group, packets_before),
            summaries: Vec::new(),
            sources_before: analysis.carried.source,
        }
    }

    /// Pass the next packet to its flow, and to `work` with what it was found to be; false at the end.
    pub fn take_next(
        &mut self,
        analysis: &mut Analysis,
        open: Open<'_>,
        compiler: Option<&dyn Compiler>,
        work: impl FnOnce(&Packet, &PacketExtras, Option<Found>, (&Analysis, &Reading)),
    ) -> Result<bool, String> {
        let Some(at) = self.merged.next(open, compiler)? else { return Ok(false) };
        for file in &self.merged.files[self.summaries.len()..] {
            self.summaries.push(SourceSummary::new(file.reading.source()));
        }
        if let Some((packet, extras)) = self.merged.packet(at) {
            analysis.carried.source = self.sources_before + at as u32;
            analysis.end_flows_before(packet.time_ns);
            let found = analysis.take(packet, extras, &mut self.summaries[at]);
            work(packet, extras, found, (analysis, &self.merged.files[at].reading));
        }
        Ok(true)
    }

    /// Pass the next packets, at most so many, to their flows, and each to `work`; false at the end.
    pub fn take_some(
        &mut self,
        analysis: &mut Analysis,
        open: Open<'_>,
        compiler: Option<&dyn Compiler>,
        most: usize,
        mut work: impl FnMut(Item<'_>, &PacketExtras, Option<Found>, (&Analysis, &Reading)),
    ) -> Result<bool, String> {
        if !self.merged.is_alone() {
            return self.take_next(analysis, open, compiler, |packet, extras, found, of| {
                work(Item::Other(packet), extras, found, of);
            });
        }
        let Some(PacketsOfOne { reading, extras, items }) = self.merged.next_of_one(open, compiler, most)?
        else {
            return Ok(false);
        };
        if self.summaries.is_empty() {
            self.summaries.push(SourceSummary::new(reading.source()));
        }
        for item in items {
            analysis.end_flows_before(item.time_ns());
            let found = analysis.take_item(item, extras, &mut self.summaries[0]);
            work(item, extras, found, (analysis, reading));
        }
        Ok(true)
    }

    /// Add the counts and problems of the files; returns how many packets were read, in all groups.
    pub fn close(self, analysis: &mut Analysis) -> u64 {
        let packets = self.merged.packets();
        let Self { merged, mut summaries, sources_before } = self;
        analysis.carried.source = sources_before;
        let names: Vec<String> = merged.files.iter().map(|file| file.reading.source().to_owned()).collect();
        summaries.extend(names[summaries.len()..].iter().map(|name| SourceSummary::new(name)));
        for ((at, file), summary) in merged.files.into_iter().enumerate().zip(summaries) {
            let (copies, packets) = (file.copies, file.reading.packets());
            analysis.close(file.reading, summary);
            if copies > 0 {
                analysis.carried.problems.push(copies_in_overlap(&names, at, copies, packets));
            }
        }
        packets
    }
}

fn copies_in_overlap(names: &[String], at: usize, copies: u64, packets: u64) -> Problem {
    let others = match names {
        [one, other] => format!("`{}`", if at == 0 { other } else { one }),
        _ => "other joined files".to_owned(),
    };
    let which = match copies == packets {
        true => format!("all its {}", counted(packets, "packet[s]")),
        false => format!("{copies} of its {}", counted(packets, "packet[s]")),
    };
    let (are, count) = if copies == 1 { ("is", "counts") } else { ("are", "count") };
    let message = format!("{which} {are} in {others}, too, and {count} once");
    let error = ReadError::whole(ProblemKind::Overlap, message).hint(Hint::JoinedOverlap);
    Problem::of_source(&names[at], error)
}
