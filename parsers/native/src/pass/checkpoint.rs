//! A checkpoint: all that a pass carries from one file of a trace to the next, so that another run goes on after the
//! last one without reading the files before.
//!
//! It is written before the pass is finished, and read by the same build only: it has no layout that lasts. Its stamp
//! names what it was made of. Damage shows by a checksum; whoever may write to it is trusted like the program.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, Read, Write};

use twox_hash::XxHash64;

use super::options::Options;
use super::state::{Analysis, Carried};
use crate::flow::ends::settled_flows::{SettledFlows, encode};
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

impl Carried {
    /// Complete what was read back; false if it contradicts itself.
    fn restore(&mut self, settled: SettledFlows, registered: &[u32]) -> bool {
        let flows = &mut self.flows;
        self.links.restore();
        flows.restore(settled, registered)
            && self.planned_problems <= self.problems.len()
            && self.fragments.flows().all(|flow| (flow as usize) < flows.len())
            && self.sessions.flows().all(|flow| flows.has(flow))
            && self.groups.as_ref().is_none_or(|groups| groups.is_sound(flows))
    }
}

/// Why the state of this pass cannot be saved.
fn refusal(pass: &Analysis) -> Option<Refusal> {
    let Analysis { options, carried, working, results } = pass;
    let what = if results.has_samples() {
        "samples"
    } else if !working.transits.is_empty() || results.pairing.is_some() {
        "two ends of a path"
    } else if options.stretch.is_some() {
        "a stretch of time"
    } else if carried.flows.spool_failure().is_some() {
        "a spool that failed"
    } else {
        return None;
    };
    Some(Refusal::NotSaved(what))
}

/// Write a checkpoint of a pass that is between two files, `last` and the next one.
pub fn save(pass: &Analysis, stamp: &str, last: &LastFile, to: impl Write) -> Result<(), Refusal> {
    match refusal(pass) {
        Some(refusal) => Err(refusal),
        None => write(&pass.carried, stamp, last, to),
    }
}

/// The pass that goes on from a checkpoint, and the last file before it.
pub fn resume(options: Options, stamp: &str, from: File) -> Result<(Analysis, LastFile), Refusal> {
    let (carried, last) = read(stamp, from)?;
    Ok((Analysis { carried, ..Analysis::new(options) }, last))
}

fn write(carried: &Carried, stamp: &str, last: &LastFile, to: impl Write) -> Result<(), Refusal> {
    let mut state = Vec::new();
    encode(&(carried, carried.flows.registered(), last), &mut state)
        .map_err(|_| Refusal::NotSaved("a simulation"))?;
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

fn read(stamp: &str, from: File) -> Result<(Carried, LastFile), Refusal> {
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
    let (mut carried, registered, last): (Carried, Vec<u32>, LastFile) =
        postcard::from_bytes(&state).map_err(|_| Refusal::Damaged)?;
    if !carried.restore(settled, &registered) {
        return Err(Refusal::Damaged);
    }
    Ok((carried, last))
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
