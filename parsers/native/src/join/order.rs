//! The order in which the files of one trace are read, and what lies between them.

use serde::{Deserialize, Serialize};

use super::file_survey::FileSurvey;
use super::neighbours::{Comparison, silence_ns};
use crate::error::{Hint, Problem, ProblemKind, ReadError};
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::packet::batch::Batch;
use crate::packet::ip_fields::IpFields;
use crate::pair::hash_sampling::{HashSample, KEPT, SampledPacket};
use crate::pair::packet_identity::{identity, payload_head};
use crate::plural::counted;

/// Packets that are decoded to learn when a file begins.
const PEEK: usize = 16;

/// Times of one packet in two files that differ by less have one clock.
const SAME_CLOCK_NS: i64 = 100_000_000;

/// Copies of a packet may differ by this more than those of the sample, and records of one capture
/// may be out of order by so much at a file's end.
const MARGIN_NS: i64 = 1_000_000;

/// Opens a file by its number; a file may be opened several times.
pub type Open<'a> = &'a dyn Fn(usize) -> Reading;

/// A file of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Number of the file, as the user gave them.
    pub file: usize,
    /// Its first packet; None without packets.
    pub start_ns: Option<i64>,
    /// How far its clock is ahead of the group's.
    pub ahead_ns: i64,
}

/// Files that are read as one, in the order of time: usually one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub members: Vec<Member>,
    /// How much the times of one packet in two files differ at most.
    pub tolerance_ns: i64,
    /// Whether no time may be measured from the files before: the clock stepped, or packets are missing.
    pub is_cut_off: bool,
    /// Whether the capture has a gap before it.
    pub follows_gap: bool,
}

impl Group {
    fn is_only(&self, file: usize) -> bool {
        matches!(self.members[..], [member] if member.file == file)
    }

    /// A file alone.
    pub fn of(file: usize, start_ns: Option<i64>) -> Self {
        Self {
            members: vec![Member { file, start_ns, ahead_ns: 0 }],
            tolerance_ns: 0,
            is_cut_off: false,
            follows_gap: false,
        }
    }
}

/// Order, and the problems found while ordering.
#[derive(Debug, Default)]
pub struct Plan {
    pub groups: Vec<Group>,
    pub problems: Vec<Problem>,
    /// Neighbours whose flows go on from the second to the first.
    pub contradictions: usize,
    /// What files that come later are compared with; None if they could change the order of these.
    pub last: Option<LastFile>,
    /// The same without the last file, and how many of the problems do not concern that.
    pub before_last: Option<(LastFile, usize)>,
}

impl Plan {
    /// Split the `file` off, if it is the last one and alone: returns what it follows, and its plan.
    pub fn split_last(&mut self, file: usize) -> Option<(LastFile, Self)> {
        if self.last.is_none() || !self.groups.last()?.is_only(file) {
            return None;
        }
        let (last, problems) = self.before_last.take()?;
        let groups = self.groups.pop().into_iter().collect();
        Some((last, Self { groups, problems: self.problems.split_off(problems), ..Self::default() }))
    }
}

/// Plan how to read `files` files as one trace: by their first packets, or in the order given if the
/// clock was set back so far that only their numbers show it. An error is one of the filter, in
/// libpcap's words.
pub fn plan(
    files: usize,
    open: Open<'_>,
    compiler: Option<&dyn Compiler>,
    max_flows: u32,
) -> Result<Plan, String> {
    let mut given = Vec::with_capacity(files);
    let mut are_captures = true;
    for file in 0..files {
        let mut reading = open(file);
        are_captures &= reading.is_capture() || !reading.is_known();
        given.push((file, first_ns(&mut reading, compiler)?));
    }
    let mut by_time = given.clone();
    by_time.sort_by_key(|&(_, start_ns)| (start_ns.is_none(), start_ns));
    if !are_captures {
        let groups = by_time.into_iter().map(|(file, start_ns)| Group::of(file, start_ns)).collect();
        return Ok(Plan { groups, ..Plan::default() });
    }
    let planner = Planner { open, compiler, max_flows };
    let plan = planner.plan(&by_time, None)?;
    if plan.contradictions == 0 || by_time == given {
        return Ok(plan);
    }
    let other = Plan { last: None, before_last: None, ..planner.plan(&given, None)? };
    Ok(if other.contradictions < plan.contradictions { other } else { plan })
}

/// Plan how to go on with `files` files after those that were read before, of which this is the `last`. None if
/// all together would be read otherwise.
pub fn plan_behind(
    last: LastFile,
    files: usize,
    open: Open<'_>,
    compiler: Option<&dyn Compiler>,
    max_flows: u32,
) -> Result<Option<Plan>, String> {
    let mut order = Vec::with_capacity(files);
    for file in 0..files {
        let mut reading = open(file);
        let start_ns = first_ns(&mut reading, compiler)?;
        if !reading.is_capture() || start_ns.is_some_and(|start_ns| start_ns <= last.end_ns()) {
            return Ok(None);
        }
        order.push((file, start_ns));
    }
    order.sort_by_key(|&(_, start_ns)| (start_ns.is_none(), start_ns));
    let plan = Planner { open, compiler, max_flows }.plan(&order, Some(last))?;
    Ok(Some(plan).filter(|plan| plan.contradictions == 0))
}

fn first_ns(reading: &mut Reading, compiler: Option<&dyn Compiler>) -> Result<Option<i64>, String> {
    let mut batch = Batch::new(PEEK);
    reading.fill(&mut batch, compiler)?;
    Ok(batch.items().next().map(|item| item.time_ns()))
}

/// The file that ends last of those read, which later ones may overlap.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastFile {
    member: Member,
    name: String,
    survey: FileSurvey,
    end_ns: i64,
}

impl LastFile {
    /// Its last time by the clock of its group.
    fn end_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.member.ahead_ns)
    }
}

struct Planner<'a> {
    open: Open<'a>,
    compiler: Option<&'a dyn Compiler>,
    max_flows: u32,
}

impl Planner<'_> {
    /// Plan to read the files in this order, after `last`.
    fn plan(&self, order: &[(usize, Option<i64>)], mut last: Option<LastFile>) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut are_all_timed = true;
        for &(file, start_ns) in order {
            let mut reading = (self.open)(file);
            let name = reading.source().to_owned();
            let survey = FileSurvey::read(&mut reading, self.compiler, self.max_flows)?;
            let Some((_, end_ns)) = survey.span_ns else {
                are_all_timed = false;
                plan.groups.push(Group::of(file, start_ns));
                continue;
            };
            let member = Member { file, start_ns, ahead_ns: 0 };
            let mut read = LastFile { member, name, survey, end_ns };
            let Some(before) = &last else {
                plan.groups.push(Group::of(file, start_ns));
                last = Some(read);
                continue;
            };
            let problems = plan.problems.len();
            self.follow(&mut plan, before, &mut read)?;
            read.survey.go_on_from(&before.survey);
            let is_merged = plan.groups.last().is_some_and(|group| group.members.len() > 1);
            if !is_merged || read.end_ns() > before.end_ns() {
                let before_last = last.replace(read);
                plan.before_last = before_last.map(|before| (before, problems)).filter(|_| !is_merged);
            }
        }
        plan.last = last.filter(|_| are_all_timed && plan.contradictions == 0);
        Ok(plan)
    }

    /// Add a file that begins after `before` did.
    fn follow(&self, plan: &mut Plan, before: &LastFile, read: &mut LastFile) -> Result<(), String> {
        let compared = Comparison::of(&before.survey, &read.survey);
        plan.contradictions += usize::from(compared.is_contrary());
        let overlap_ns = before.end_ns().saturating_sub(read.member.start_ns.unwrap_or(i64::MAX));
        let is_same_start = read.member.start_ns == before.member.start_ns;
        let common = match overlap_ns > 0 || is_same_start {
            true => Some(self.common_packets(before, read)?),
            false => None,
        };
        let mut words = Words { plan, source: &read.name, before: &before.name };
        if let Some(common) = common
            && (common.packets > 0 || !compared.goes_on())
        {
            words.of_overlap(&common, overlap_ns);
            read.member.ahead_ns = before.member.ahead_ns.saturating_add(common.ahead_ns);
            if let Some(group) = plan.groups.last_mut() {
                group.members.push(read.member);
                group
                    .members
                    .sort_by_key(|member| member.start_ns.map(|ns| ns.saturating_sub(member.ahead_ns)));
                group.tolerance_ns = group.tolerance_ns.max(common.spread_ns.saturating_add(MARGIN_NS));
            }
            return Ok(());
        }
        let step_ns = compared.step_ns.or((overlap_ns > SAME_CLOCK_NS).then_some(-overlap_ns));
        let follows_gap = match step_ns {
            Some(step_ns) => words.of_step(step_ns, compared.step_ns.is_some()),
            None => words.of_gap(&compared, silence_ns(&before.survey, &read.survey)),
        };
        let is_cut_off = step_ns.is_some() || compared.missing_bytes > 0;
        plan.groups.push(Group {
            is_cut_off,
            follows_gap,
            ..Group::of(read.member.file, read.member.start_ns)
        });
        Ok(())
    }

    /// Packets that both files have in the time that both cover.
    fn common_packets(&self, before: &LastFile, read: &LastFile) -> Result<CommonPackets, String> {
        let samples = [self.sample(before.member.file)?, self.sample(read.member.file)?];
        let common = samples[0].common(&samples[1]);
        let mut ahead_ns: Vec<i64> =
            common.iter().map(|(first, second)| second.time_ns.saturating_sub(first.time_ns)).collect();
        ahead_ns.sort_unstable();
        let median_ns = ahead_ns.get(ahead_ns.len() / 2).copied().unwrap_or(0);
        let distance = |ns: &i64| ns.saturating_sub(median_ns).saturating_abs();
        let spread_ns = ahead_ns.first().into_iter().chain(ahead_ns.last()).map(distance).max().unwrap_or(0);
        let is_one_clock = median_ns.saturating_abs() <= SAME_CLOCK_NS;
        Ok(CommonPackets {
            packets: ahead_ns.len(),
            ahead_ns: if is_one_clock { 0 } else { median_ns },
            spread_ns: if is_one_clock {
                spread_ns.saturating_add(median_ns.saturating_abs())
            } else {
                spread_ns
            },
        })
    }

    fn sample(&self, file: usize) -> Result<HashSample, String> {
        let mut sample = HashSample::new(KEPT);
        (self.open)(file).for_each_batch(self.compiler, |batch| {
            for packet in batch.items().map(|item| item.to_packet()).filter(|packet| packet.is_ip) {
                let network = &packet.network;
                let Some(identity) = identity(network, payload_head(network, batch.extras())) else {
                    continue;
                };
                let place = IpFields::capture_point(&packet);
                let (time_ns, endpoints, ttl) = (packet.time_ns, network.endpoints, network.ttl);
                sample.add(identity, SampledPacket { time_ns, endpoints, ttl, place, is_ambiguous: false });
            }
        })?;
        Ok(sample)
    }
}

/// Packets of a sample that are in two files.
struct CommonPackets {
    packets: usize,
    /// How far the clock of the second file is ahead, if that is another clock.
    ahead_ns: i64,
    /// How much the differences of their times vary.
    spread_ns: i64,
}

/// Words the problems of a file and the one before it.
struct Words<'a> {
    plan: &'a mut Plan,
    source: &'a str,
    before: &'a str,
}

impl Words<'_> {
    fn say(&mut self, kind: ProblemKind, message: String, hint: Hint) {
        let error = ReadError::whole(kind, message).hint(hint);
        self.plan.problems.push(Problem::of_source(self.source, error));
    }

    fn of_overlap(&mut self, common: &CommonPackets, overlap_ns: i64) {
        let before = self.before;
        if common.ahead_ns != 0 {
            let clock = clock_words(common.ahead_ns);
            self.say(
                ProblemKind::ClockStep,
                format!("its clock is {clock} that of `{before}`"),
                Hint::ClockStep,
            );
        } else if common.spread_ns > MARGIN_NS {
            let message = format!(
                "times of packets that are in `{before}`, too, differ by up to {}: RTTs mix two places",
                seconds(common.spread_ns)
            );
            self.say(ProblemKind::Overlap, message, Hint::JoinedOverlap);
        } else if common.packets == 0 && overlap_ns > MARGIN_NS {
            let message = format!(
                "begins {} before `{before}` ends, and they have no packet in common: both are read in the order of \
                 time",
                seconds(overlap_ns)
            );
            self.say(ProblemKind::Overlap, message, Hint::JoinedOverlap);
        }
    }

    /// Whether the step shows that packets are missing: it does not.
    fn of_step(&mut self, step_ns: i64, is_measured: bool) -> bool {
        let (before, clock) = (self.before, clock_words(step_ns));
        let message = match is_measured {
            true => format!(
                "by the TCP timestamps its clock is {clock} that of `{before}`; no RTT is measured across"
            ),
            false => format!(
                "goes on with the flows of `{before}` but begins {} before its end: the clock was set back; no RTT \
                 is measured across",
                seconds(step_ns)
            ),
        };
        self.say(ProblemKind::ClockStep, message, Hint::ClockStep);
        false
    }

    /// Whether packets are missing.
    fn of_gap(&mut self, compared: &Comparison, silence_ns: Option<i64>) -> bool {
        let before = self.before;
        let message = match (compared.missing_bytes, silence_ns) {
            (0, None) => return false,
            (0, Some(silence_ns)) => {
                format!("begins {} after `{before}` ends, with nothing in between", seconds(silence_ns))
            }
            (bytes, _) => format!(
                "{} of {} are missing between the end of `{before}` and its first packet",
                counted(bytes, "payload byte[s]"),
                counted(compared.flows_with_gap, "flow[s]"),
            ),
        };
        self.say(ProblemKind::Gap, message, Hint::JoinedGap);
        true
    }
}

fn clock_words(ahead_ns: i64) -> String {
    format!("{} {}", seconds(ahead_ns), if ahead_ns < 0 { "behind" } else { "ahead of" })
}

fn seconds(ns: i64) -> String {
    format!("{:.3} s", ns.unsigned_abs() as f64 / 1e9)
}
