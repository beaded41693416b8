//! Finds the flow of the source that a report is about. RTP and RTCP of a session may have ports of
//! their own, and receivers report from anywhere: the SSRC joins them.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::flow::flow_table::Found;
use crate::packet::event::{Address, Endpoints};

/// Limit of sources of all flows, in about 16 MiB.
const MOST: usize = 1 << 16;
/// Limit of flows with the same SSRC.
const MOST_PLACES: usize = 4;
/// Limit of send times waiting for their echo, per source.
const MOST_TIMES: usize = 8;

/// Flow of a source's packets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SourceLocation {
    found: Found,
    src: Address,
    dst: Address,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownSource {
    places: Vec<SourceLocation>,
    /// The middle of the wall clock in the latest reports of this source, and their capture times.
    times: VecDeque<(u32, i64)>,
}

/// All sources of a trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sessions {
    sources: HashMap<u32, KnownSource>,
}

impl Sessions {
    /// The flows of all sources.
    pub fn flows(&self) -> impl Iterator<Item = u32> {
        self.sources.values().flat_map(|known| known.places.iter().map(|place| place.found.flow))
    }

    fn known(&mut self, ssrc: u32) -> Option<&mut KnownSource> {
        if self.sources.len() >= MOST && !self.sources.contains_key(&ssrc) {
            return None;
        }
        Some(self.sources.entry(ssrc).or_default())
    }

    /// Record that packets of `ssrc` were seen in this flow.
    pub fn on_source(&mut self, ssrc: u32, found: Found, endpoints: &Endpoints) {
        let place = SourceLocation { found, src: endpoints.src, dst: endpoints.dst };
        if let Some(known) = self.known(ssrc).filter(|known| known.places.len() < MOST_PLACES) {
            known.places.push(place);
        }
    }

    /// Record a report of `ssrc` with this wall clock, captured at `time_ns`.
    pub fn on_time(&mut self, ssrc: u32, middle_ntp: u32, time_ns: i64) {
        let Some(known) = self.known(ssrc) else { return };
        if known.times.len() == MOST_TIMES {
            known.times.pop_front();
        }
        known.times.push_back((middle_ntp, time_ns));
    }

    /// Capture time of the report that a receiver echoes with these values.
    pub fn sent_ns(&self, ssrc: u32, middle_ntp: u32) -> Option<i64> {
        let times = &self.sources.get(&ssrc)?.times;
        times.iter().rev().find(|(time, _)| *time == middle_ntp).map(|(_, time_ns)| *time_ns)
    }

    /// Flow of the media of `ssrc` for a packet about it found at `report`: the same flow, one
    /// between the same hosts, or the only one with this SSRC. `is_own`: the source itself sent it.
    pub fn find(&self, ssrc: u32, report: Found, endpoints: &Endpoints, is_own: bool) -> Option<Found> {
        let places = &self.sources.get(&ssrc)?.places;
        let (src, dst) = if is_own { (endpoints.src, endpoints.dst) } else { (endpoints.dst, endpoints.src) };
        let is_here = |place: &&SourceLocation| place.found.flow == report.flow;
        let is_between = |place: &&SourceLocation| (place.src, place.dst) == (src, dst);
        let only = || places.first().filter(|_| places.len() == 1);
        let place = places.iter().find(is_here).or_else(|| places.iter().rfind(is_between)).or_else(only)?;
        Some(place.found)
    }
}
