//! A checkpoint: all that a pass carries from one file of a trace to the next, so that another run goes on behind the
//! last one without reading the files before.
//!
//! It is written before the pass is finished, and read by the same build only: it has no layout that lasts. Its stamp
//! names what it was made of. Damage shows by a checksum; whoever may write to it is trusted like the program.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, Read, Write};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::appended_capture::AppendedCapture;
use super::flow_ends::FlowEnds;
use super::groups::dns_queries::DnsQueries;
use super::groups::echo_requests::EchoRequests;
use super::interface_duplicates::InterfaceDuplicates;
use super::source_problems::GapsOfSources;
use super::wifi_links::WifiLinks;
use super::{Analysis, Options};
use crate::error::Problem;
use crate::flow::ends::settled_flows::SettledFlows;
use crate::flow::quic::client_hellos::ClientHellos;
use crate::flow::rtp::sessions::Sessions;
use crate::flow::{FlowTable, Fragments};
use crate::groups::Groups;
use crate::input::source_summary::SourceSummary;
use crate::join::order::LastFile;

/// The first bytes.
const MAGIC: &[u8; 8] = b"tfrc-cp\n";

/// Bytes that are copied at a time.
const BLOCK: usize = 1 << 20;

/// Why there is no checkpoint, or why it is of no use.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The pass has state that is not saved.
    NotSaved(&'static str),
    /// It was made of something else.
    AnotherStamp,
    Damaged,
    /// The files that follow change the order of those before.
    AnotherOrder,
    Unread(String),
}

impl Refusal {
    pub fn words(&self) -> String {
        match self {
            Self::NotSaved(what) => format!("{what} cannot be saved"),
            Self::AnotherStamp => "the checkpoint is of something else".to_owned(),
            Self::Damaged => "the checkpoint is damaged".to_owned(),
            Self::AnotherOrder => "a new file does not simply follow the last one".to_owned(),
            Self::Unread(words) => format!("the checkpoint cannot be used: {words}"),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Unread(error.to_string()),
        }
    }
}

/// What a pass carries from one file to the next.
#[derive(Serialize, Deserialize)]
struct Carried {
    flows: FlowTable,
    /// Flows that look-ups find by their five-tuple.
    registered: Vec<u32>,
    ends: FlowEnds,
    gaps: GapsOfSources,
    fragments: Fragments,
    shown_again: InterfaceDuplicates,
    appended: AppendedCapture,
    groups: Option<Groups>,
    dns_queries: DnsQueries,
    echo_requests: EchoRequests,
    sessions: Sessions,
    client_hellos: ClientHellos,
    links: WifiLinks,
    source: u32,
    packets: u64,
    planned_problems: usize,
    sources: Vec<SourceSummary>,
    problems: Vec<Problem>,
}

impl Carried {
    /// Take out what a pass carries, which must be between two files.
    fn of(pass: Analysis) -> Self {
        let Analysis {
            flows,
            ends,
            gaps,
            fragments,
            shown_again,
            appended,
            groups,
            dns_queries,
            echo_requests,
            sessions,
            client_hellos,
            links,
            source,
            packets,
            planned_problems,
            sources,
            problems,
            // Set by the options.
            options: _,
            collects: _,
            // Used within a file.
            runs: _,
            followers: _,
            threads: _,
            backlog: _,
            outcome: _,
            path_outcomes: _,
            // Found at the end.
            lenders: _,
            cut_flows: _,
            end_ns: _,
            has_times: _,
            // `Analysis::refusal` knows them to be empty.
            crossings: _,
            bins: _,
            samples: _,
            details: _,
            tfrc: _,
            link_samples: _,
            variables: _,
            pairing: _,
            spool: _,
            outside: _,
        } = pass;
        let registered = flows.registered();
        Self {
            flows,
            registered,
            ends,
            gaps,
            fragments,
            shown_again,
            appended,
            groups,
            dns_queries,
            echo_requests,
            sessions,
            client_hellos,
            links,
            source,
            packets,
            planned_problems,
            sources,
            problems,
        }
    }

    /// The pass that goes on with it.
    fn into_pass(self, options: Options) -> Analysis {
        Analysis {
            flows: self.flows,
            ends: self.ends,
            gaps: self.gaps,
            fragments: self.fragments,
            shown_again: self.shown_again,
            appended: self.appended,
            groups: self.groups,
            dns_queries: self.dns_queries,
            echo_requests: self.echo_requests,
            sessions: self.sessions,
            client_hellos: self.client_hellos,
            links: self.links,
            source: self.source,
            packets: self.packets,
            planned_problems: self.planned_problems,
            sources: self.sources,
            problems: self.problems,
            ..Analysis::new(options)
        }
    }

    /// Complete what was read back; false if it contradicts itself.
    fn restore(&mut self, settled: SettledFlows) -> bool {
        let flows = &mut self.flows;
        self.links.restore();
        flows.restore(settled, &self.registered)
            && self.planned_problems <= self.problems.len()
            && self.fragments.flows().all(|flow| (flow as usize) < flows.len())
            && self.sessions.flows().chain(self.dns_queries.flows()).all(|flow| flows.has(flow))
            && self.groups.as_ref().is_none_or(Groups::is_sound)
    }
}

impl Analysis {
    /// Why the state of this pass cannot be saved.
    fn refusal(&self) -> Option<Refusal> {
        let has_samples = self.collects
            || self.spool.is_some()
            || self.bins.is_some()
            || self.details.is_some()
            || self.left_out().iter().any(|(_, left_out)| *left_out > 0)
            || self.link_samples.wanted
            || !self.variables.kept.is_empty()
            || self.tfrc.wants_any();
        let what = if has_samples {
            "samples"
        } else if !self.crossings.is_empty() || self.pairing.is_some() {
            "two ends of a path"
        } else if self.options.stretch.is_some() {
            "a stretch of time"
        } else if self.flows.spool_failure().is_some() {
            "a spool that failed"
        } else {
            return None;
        };
        Some(Refusal::NotSaved(what))
    }

    /// Write a checkpoint behind the last file, and return the pass.
    pub fn save(self, stamp: &str, last: &LastFile, to: impl Write) -> (Self, Result<(), Refusal>) {
        if let Some(refusal) = self.refusal() {
            return (self, Err(refusal));
        }
        let options = self.options.clone();
        let carried = Carried::of(self);
        let written = write(&carried, stamp, last, to);
        (carried.into_pass(options), written)
    }

    /// The pass that goes on from a checkpoint, and the last file before it.
    pub fn resume(options: Options, stamp: &str, from: File) -> Result<(Self, LastFile), Refusal> {
        let (mut carried, last, settled) = read(stamp, from)?;
        if !carried.restore(settled) {
            return Err(Refusal::Damaged);
        }
        Ok((carried.into_pass(options), last))
    }
}

fn write(carried: &Carried, stamp: &str, last: &LastFile, to: impl Write) -> Result<(), Refusal> {
    let state = postcard::to_stdvec(&(carried, last)).map_err(|_| Refusal::NotSaved("a simulation"))?;
    let settled = &carried.flows.settled;
    let mut to = Hashed { inner: to, hash: XxHash64::with_seed(0) };
    to.write_all(MAGIC)?;
    for length in [stamp.len() as u64, state.len() as u64, settled.bytes()] {
        to.write_all(&length.to_le_bytes())?;
    }
    to.write_all(stamp.as_bytes())?;
    to.write_all(&state)?;
    settled.copy_to(&mut to)?;
    let sum = to.hash.finish();
    to.write_all(&sum.to_le_bytes())?;
    Ok(to.flush()?)
}

fn read(stamp: &str, from: File) -> Result<(Carried, LastFile, SettledFlows), Refusal> {
    let length = from.metadata()?.len();
    let mut from = Hashed { inner: BufReader::with_capacity(BLOCK, from), hash: XxHash64::with_seed(0) };
    let mut magic = *MAGIC;
    from.read_exact(&mut magic)?;
    let mut number = || {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    };
    let (stamp_bytes, state_bytes, settled_bytes) = (number()?, number()?, number()?);
    // What is longer than the file is damaged: nothing is allocated for it.
    let needed = [stamp_bytes, state_bytes, settled_bytes].into_iter().try_fold(40_u64, u64::checked_add);
    if magic != *MAGIC || needed != Some(length) {
        return Err(Refusal::Damaged);
    }
    let mut known = vec![0; stamp_bytes as usize];
    from.read_exact(&mut known)?;
    if known != stamp.as_bytes() {
        return Err(Refusal::AnotherStamp);
    }
    let mut state = vec![0; state_bytes as usize];
    from.read_exact(&mut state)?;
    let mut settled = SettledFlows::default();
    let mut block = vec![0; BLOCK];
    let mut left = settled_bytes;
    while left > 0 {
        let bytes = left.min(BLOCK as u64) as usize;
        from.read_exact(&mut block[..bytes])?;
        settled.append(&block[..bytes]);
        left -= bytes as u64;
    }
    let sum = from.hash.finish();
    let mut written = [0; 8];
    from.read_exact(&mut written)?;
    if u64::from_le_bytes(written) != sum {
        return Err(Refusal::Damaged);
    }
    let (carried, last) = postcard::from_bytes(&state).map_err(|_| Refusal::Damaged)?;
    Ok((carried, last, settled))
}

/// Hashes the bytes that pass.
struct Hashed<T> {
    inner: T,
    hash: XxHash64,
}

impl<T: Write> Write for Hashed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Hashed<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hash.write(&bytes[..read]);
        Ok(read)
    }
}
