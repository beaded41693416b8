//! Flows that have been silent for a while: encoded and compressed, until they speak again.

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};
use serde::{Deserialize, Serialize};

use super::idle_times::{IdleKind, IdleTimes, Silence};
use crate::flow::Flow;
use crate::flow::flow_places::FLOWS;

/// When flows are packed that may go on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Packing {
    /// Flows up to which none is packed.
    pub few: u32,
    /// Silence after which one is.
    pub silence_ns: i64,
}

impl Default for Packing {
    fn default() -> Self {
        Self { few: 16_384, silence_ns: 2_000_000_000 }
    }
}

/// Bytes of a dictionary: states of a few kinds of flows.
const MOST_DICTIONARY: usize = 3_000;

/// A packed flow: what a sweep needs, and where its state begins. It ends where the next one begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PackedFlow {
    last_ns: i64,
    at: u32,
    /// How much of the dictionary there was.
    dictionary: u16,
    kind: IdleKind,
}

/// Neighbours that are packed, or were: their places are those in the order of packing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PackedFlows {
    flows: Vec<PackedFlow>,
    states: Vec<u8>,
    /// States that were unlike those before: most of what neighbours consist of is the same.
    dictionary: Vec<u8>,
}

impl PackedFlows {
    /// None yet, next to those that were packed before.
    pub fn beside(others: Option<&Self>) -> Self {
        Self {
            dictionary: others.map_or_else(Vec::new, |others| others.dictionary.clone()),
            ..Self::default()
        }
    }

    /// How many there are or were.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Whether what was read back from a checkpoint fits together.
    pub fn is_sound(&self) -> bool {
        let is_within = |flow: &PackedFlow| {
            flow.at as usize <= self.states.len() && usize::from(flow.dictionary) <= self.dictionary.len()
        };
        self.flows.len() <= FLOWS
            && self.flows.is_sorted_by_key(|flow| flow.at)
            && self.flows.iter().all(is_within)
    }

    /// Since when the flow at a place has been silent.
    pub fn silence(&self, place: usize, idle: &IdleTimes) -> Silence {
        let PackedFlow { last_ns, kind, .. } = self.flows[place];
        Silence { last_ns, quiet_ns: idle.of(kind) }
    }

    /// Pack a flow whose last packet is of this time.
    pub fn push(&mut self, flow: &Flow, last_ns: i64) {
        // Into a vector, which takes everything.
        let state = postcard::to_stdvec(flow).unwrap_or_default();
        let mut packed = compress_prepend_size_with_dict(&state, &self.dictionary);
        if packed.len() > state.len() / 2 && self.dictionary.len() + state.len() <= MOST_DICTIONARY {
            self.dictionary.extend_from_slice(&state);
            packed = compress_prepend_size_with_dict(&state, &self.dictionary);
        }
        let dictionary = self.dictionary.len() as u16;
        let (at, kind) = (self.states.len() as u32, IdleKind::of(flow));
        self.flows.push(PackedFlow { last_ns, at, dictionary, kind });
        self.states.extend_from_slice(&packed);
    }

    /// Take over the flow at a `place` of those beside which these are.
    pub fn push_packed(&mut self, others: &Self, place: usize) {
        self.flows.push(PackedFlow { at: self.states.len() as u32, ..others.flows[place] });
        self.states.extend_from_slice(others.state(place));
    }

    /// The flow at a place.
    pub fn unpack(&self, place: usize) -> Flow {
        let dictionary = &self.dictionary[..self.flows[place].dictionary.into()];
        let state = decompress_size_prepended_with_dict(self.state(place), dictionary).unwrap_or_default();
        // What was packed can be unpacked; a checkpoint has a checksum.
        postcard::from_bytes(&state).unwrap_or_else(|_| Flow::vacant())
    }

    /// Give back the memory that is in use for no flow.
    pub fn shrink(&mut self) {
        self.flows.shrink_to_fit();
        self.states.shrink_to_fit();
        self.dictionary.shrink_to_fit();
    }

    fn state(&self, place: usize) -> &[u8] {
        let end = self.flows.get(place + 1).map_or(self.states.len(), |next| next.at as usize);
        &self.states[self.flows[place].at as usize..end]
    }
}
