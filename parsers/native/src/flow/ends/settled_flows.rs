//! The state of flows that are over, until tables show it: encoded, packed, and beyond a bound in a temporary file.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::nameless_file::nameless_file;
use crate::flow::Flow;
use crate::packet::tunnel::Tunnel;

/// Packed bytes that stay in memory: beyond them all are in a file.
const IN_MEMORY: usize = 16 << 20;

/// Packed bytes that are written to the file at a time.
const AT_A_TIME: usize = 1 << 20;

/// A flow that is over.
#[derive(Debug, Serialize, Deserialize)]
pub struct SettledFlow {
    /// Its index among its neighbours.
    pub index: u8,
    pub flow: Flow,
    /// What carried the first packet of each side.
    pub tunnels: [Option<Box<Tunnel>>; 2],
}

impl SettledFlow {
    /// Append the encoded state to `states`.
    pub fn encode(&self, states: &mut Vec<u8>) {
        let before = states.len();
        // A vector takes everything.
        if encode(self, states).is_err() {
            states.truncate(before);
        }
    }
}

/// Append an encoded value. All are encoded into a vector, as the compiler makes the code again for each other writer.
pub fn encode(value: &impl Serialize, states: &mut Vec<u8>) -> postcard::Result<()> {
    postcard::to_io(value, states).map(|_| ())
}

/// States of neighbours that were put away together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Chunk {
    at: u64,
    bytes: u32,
}

impl Chunk {
    /// Whether it is among the first `length` bytes.
    pub fn is_within(self, length: u64) -> bool {
        self.at.checked_add(self.bytes.into()).is_some_and(|end| end <= length)
    }
}

/// Where the states of neighbours were put.
pub type Chunks = SmallVec<[Chunk; 1]>;

/// Neighbours that left: what was put away, and encoded states that wait for it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SettledNeighbours {
    pub chunks: Chunks,
    pub states: Vec<u8>,
}

#[derive(Debug)]
pub struct SettledFlows {
    /// Bytes after which the memory is written to a file of `folder`, once it has one and before.
    at_a_time: usize,
    most_in_memory: usize,
    folder: PathBuf,
    /// What follows in the file, or all of it before there is one.
    memory: Vec<u8>,
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
    /// Why the file was given up: the rest stays in memory.
    failure: Option<io::Error>,
}

impl Default for SettledFlows {
    fn default() -> Self {
        Self::new(env::temp_dir(), AT_A_TIME, IN_MEMORY)
    }
}

impl SettledFlows {
    fn new(folder: PathBuf, at_a_time: usize, most_in_memory: usize) -> Self {
        Self { at_a_time, most_in_memory, folder, memory: Vec::new(), file: None, written: 0, failure: None }
    }

    /// Put states away.
    pub fn put_away(&mut self, states: &[u8]) -> Chunk {
        let packed = compress_prepend_size(states);
        let chunk = Chunk { at: self.bytes(), bytes: packed.len() as u32 };
        self.append(&packed);
        chunk
    }

    /// Add packed states.
    pub fn append(&mut self, packed: &[u8]) {
        self.memory.extend_from_slice(packed);
        let most = if self.file.is_some() { self.at_a_time } else { self.most_in_memory };
        if self.memory.len() >= most && self.failure.is_none() {
            self.failure = self.write().err();
        }
    }

    /// All packed bytes.
    pub fn bytes(&self) -> u64 {
        self.written + self.memory.len() as u64
    }

    /// Copy all packed bytes.
    pub fn copy_to(&self, to: &mut impl Write) -> io::Result<()> {
        if let Some(file) = &self.file {
            let mut block = vec![0; AT_A_TIME];
            let mut at = 0;
            while at < self.written {
                let bytes = (self.written - at).min(AT_A_TIME as u64) as usize;
                file.read_exact_at(&mut block[..bytes], at)?;
                to.write_all(&block[..bytes])?;
                at += bytes as u64;
            }
        }
        to.write_all(&self.memory)
    }

    /// Why the rest could not be written to a file.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(nameless_file(&self.folder)?),
        };
        // At its place, so that what a failed attempt wrote does not count.
        file.write_all_at(&self.memory, self.written)?;
        self.written += self.memory.len() as u64;
        self.memory.clear();
        self.memory.shrink_to(self.at_a_time);
        Ok(())
    }

    /// Give each flow of a chunk to `take`.
    pub fn read(&self, chunk: Chunk, take: &mut dyn FnMut(SettledFlow)) -> io::Result<()> {
        let Chunk { at, bytes } = chunk;
        let mut packed = vec![0; bytes as usize];
        // A checkpoint is read in blocks, the last of which may end in memory, and begin within a chunk.
        let (in_file, in_memory) =
            packed.split_at_mut(self.written.saturating_sub(at).min(bytes.into()) as usize);
        if let Some(file) = self.file.as_ref().filter(|_| !in_file.is_empty()) {
            file.read_exact_at(in_file, at)?;
        }
        let start = at.saturating_sub(self.written) as usize;
        let kept = self.memory.get(start..start + in_memory.len());
        in_memory.copy_from_slice(kept.ok_or(io::ErrorKind::NotFound)?);
        let states = decompress_size_prepended(&packed);
        decode(&states.map_err(io::Error::other)?, take)
    }
}

/// Give each flow of encoded states to `take`.
pub fn decode(mut states: &[u8], take: &mut dyn FnMut(SettledFlow)) -> io::Result<()> {
    while !states.is_empty() {
        let (flow, rest) = postcard::take_from_bytes(states).map_err(io::Error::other)?;
        take(flow);
        states = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Origin;
    use crate::packet::event::Endpoints;
    use crate::packet::key::{FlowKey, Side};

    /// A flow by its number, encoded.
    fn state(number: u32) -> Vec<u8> {
        let mut states = Vec::new();
        let ends = Endpoints { protocol: 6, src: number.into(), ..Endpoints::default() };
        let flow = Flow::new(FlowKey::of(&ends).0, Side::Low, Origin::new(number, 0));
        SettledFlow { index: number as u8, flow, tunnels: [None, None] }.encode(&mut states);
        states
    }

    fn check(mut settled: SettledFlows) -> SettledFlows {
        let chunks: Vec<Chunk> =
            (0..200).map(|number| settled.put_away(&[state(number), state(number + 1)].concat())).collect();
        let mut packed = Vec::new();
        settled.copy_to(&mut packed).unwrap();
        let mut copy = SettledFlows::new(env::temp_dir(), 500, 1_000);
        packed.chunks(700).for_each(|piece| copy.append(piece));
        assert_eq!([packed.len() as u64, copy.bytes()], [settled.bytes(); 2]);
        for (number, chunk) in (0..200).zip(chunks).rev() {
            for settled in [&settled, &copy] {
                let mut found = Vec::new();
                settled.read(chunk, &mut |settled| found.push((settled.index, settled.flow.source))).unwrap();
                assert_eq!(found, [number, number + 1].map(|number: u32| (number as u8, number)));
            }
        }
        settled
    }

    #[test]
    fn test_states_are_read_from_memory_and_from_the_file() {
        let settled = check(SettledFlows::new(env::temp_dir(), 500, 1_000));
        assert!(settled.written > 0 && !settled.memory.is_empty());
        assert!(check(SettledFlows::new(env::temp_dir(), 500, usize::MAX)).file.is_none());
    }

    #[test]
    fn test_a_state_may_lie_half_in_the_file_and_half_in_memory() {
        let packed = compress_prepend_size(&state(7));
        let (first, rest) = packed.split_at(packed.len() / 2);
        let mut settled = SettledFlows::new(env::temp_dir(), rest.len() + 1, first.len());
        [first, rest].into_iter().for_each(|piece| settled.append(piece));
        assert_eq!((settled.written, settled.memory.as_slice()), (first.len() as u64, rest));
        let mut found = Vec::new();
        let chunk = Chunk { at: 0, bytes: packed.len() as u32 };
        settled.read(chunk, &mut |settled| found.push(settled.flow.source)).unwrap();
        assert_eq!(found, [7]);
    }

    #[test]
    fn test_without_a_file_states_stay_in_memory() {
        let settled = check(SettledFlows::new("/nowhere".into(), 500, 1_000));
        assert!(settled.failure().is_some() && settled.written == 0);
    }
}
