//! RTP flows (RFC 3550): detected from their packets, counted by source, joined with RTCP.
//!
//! Nothing on the wire identifies a datagram as RTP. A source is accepted once several of its
//! packets agree: one SSRC, consecutive numbers, timestamps that no media clock exceeds. The
//! lengths of RTCP must lead from packet to packet to the datagram's end.

mod loss_bursts;
mod media_clock;
pub mod media_intervals;
pub mod media_packet;
pub mod media_reports;
pub mod media_source;
mod send_times;
pub mod sent_packets;
pub mod sessions;
mod transport_wide;

use serde::{Deserialize, Serialize};

use super::delivery::{Delivery, NumberedCounts, Numbers};
use super::rtt_statistics::{LogHistogram, RttStatistics};
use super::sequences::NumberedArrivals;
use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::packet::seq::distance;
use crate::plural::all_counted;
use crate::wire::probe::SenderClock;
use crate::wire::rtp;
pub use media_clock::RateBy;
use media_packet::MediaPacket;
use media_source::{MediaSource, ReportedLoss};
use transport_wide::TransportWideNumbers;

/// Limit of sources per direction; packets of further ones are only counted.
const MOST_SOURCES: usize = 16;
/// Limit of candidate sources at one time.
const MOST_CANDIDATES: usize = 4;
/// Packets that must agree.
const AGREEING: usize = 6;
/// Packets kept of a candidate, duplicates among them.
const MOST_KEPT: usize = 4 * AGREEING;
/// Largest difference between the numbers of two of them.
const FARTHEST: i64 = 16;
/// Datagrams that look like RTP but are not, before the direction is no longer examined.
const MOST_STRANGE: u64 = 64;
/// Fastest media clock, in ticks per second.
const FASTEST_CLOCK: f64 = 200_000.0;
/// Tolerated difference between timestamps and packets: pictures sent out of order, pauses.
const LEEWAY_S: f64 = 5.0;

/// The user's settings for RTP on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenRtp {
    /// Ticks per second of the payload types without a fixed rate.
    pub clock_rate: Option<u32>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Candidate {
    seen: Vec<MediaPacket>,
    /// Those that repeat the one before them.
    duplicates: usize,
}

impl Candidate {
    fn ssrc(&self) -> Option<u32> {
        self.seen.first().map(|seen| seen.header.ssrc)
    }

    /// Process a packet of this candidate. One that does not continue the sequence restarts it;
    /// returns how many packets then belong to no source.
    fn on_packet(&mut self, seen: &MediaPacket) -> usize {
        let is_duplicate = self.seen.last().is_some_and(|last| last.header == seen.header);
        let follows = is_duplicate || self.seen.last().is_none_or(|last| agree(last, seen));
        let given_up = if follows && self.seen.len() < MOST_KEPT {
            self.duplicates += usize::from(is_duplicate);
            0
        } else {
            std::mem::take(self).seen.len()
        };
        self.seen.push(*seen);
        given_up
    }

    /// Packets that agree, each once.
    fn agreeing(&self) -> usize {
        self.seen.len() - self.duplicates
    }
}

/// Whether two packets of one SSRC can be neighbours of one source.
fn agree(before: &MediaPacket, after: &MediaPacket) -> bool {
    let number = |seen: &MediaPacket| u64::from(seen.header.sequence);
    let timestamp = |seen: &MediaPacket| u64::from(seen.header.timestamp);
    let ahead = distance(number(after), number(before), 16);
    let ticks = distance(timestamp(after), timestamp(before), 32).unsigned_abs() as f64;
    let elapsed = after.time_ns.saturating_sub(before.time_ns) as f64 / 1e9;
    ahead != 0 && ahead.abs() <= FARTHEST && ticks <= FASTEST_CLOCK * (elapsed.abs() + LEEWAY_S)
}

/// RTP and RTCP that one side sent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RtpDirection {
    sources: Vec<MediaSource>,
    candidates: Vec<Candidate>,
    /// Datagrams with RTP's version that belong to no source, or to one beyond the limit.
    pub strange: u64,
    /// Transport-wide numbers of its packets.
    pub wide: TransportWideNumbers,
    pub compounds: u64,
    /// Datagrams that begin like RTCP and do not go on so.
    pub unreadable_compounds: u64,
    /// Datagrams whose lengths lead beyond their end: damaged, or encrypted where the bytes at which a length leads
    /// look like a header (1 in 32 do).
    pub overlong_compounds: u64,
    /// RTCP packets and extended report blocks with wrong lengths.
    pub malformed: u64,
    /// Reports on sources that the capture does not show.
    pub unknown_reports: u64,
    /// Reports held longer than the time since the packet they echo.
    pub impossible_delays: u64,
    /// Missing transport-wide feedback reports.
    pub missing_reports: u64,
    pub nacks: u64,
    /// RTCP datagrams cut by the snap length.
    pub cut_compounds: u64,
    /// TFRC reports that echo a send time of no recent packet.
    pub unknown_echoes: u64,
    /// The latest round-trip time between the capture and the receiver of the packets, seconds.
    pub rtt_behind: Option<f64>,
    /// Round-trip times from reports on its packets, and their percentiles.
    pub rtt: Option<Box<(RttStatistics, LogHistogram)>>,
}

impl RtpDirection {
    /// Whether it has RTP.
    pub fn has_media(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Its sources, in the order of acceptance.
    pub fn sources(&self) -> &[MediaSource] {
        &self.sources
    }

    pub fn source_mut(&mut self, ssrc: u32) -> Option<&mut MediaSource> {
        self.sources.iter_mut().find(|source| source.ssrc == ssrc)
    }

    /// Record a round-trip time from a report on its packets.
    pub fn on_rtt(&mut self, rtt_ns: u64) {
        let (statistics, sketch) = &mut **self.rtt.get_or_insert_default();
        statistics.add(rtt_ns);
        sketch.add(rtt_ns);
    }

    /// Process a datagram that may be RTP. Returns the SSRC of a source accepted with it, of which intervals are
    /// collected if wanted. `follow` receives each packet of the first source.
    pub fn on_packet(
        &mut self,
        seen: &MediaPacket,
        given: Option<GivenRtp>,
        wants_intervals: bool,
        mut follow: impl FnMut(&MediaSource, &MediaPacket),
    ) -> Option<u32> {
        let ssrc = seen.header.ssrc;
        if let Some(at) = self.sources.iter().position(|source| source.ssrc == ssrc) {
            self.take_at(at, seen, &mut follow);
            return None;
        }
        let is_hopeless = !self.has_media() && self.strange >= MOST_STRANGE && given.is_none();
        if is_hopeless || self.sources.len() == MOST_SOURCES {
            self.strange += 1 + self.forget_candidates();
            return None;
        }
        let at = self.candidate_of(ssrc);
        let candidate = self.candidates.get_mut(at)?;
        self.strange += candidate.on_packet(seen) as u64;
        if candidate.agreeing() < AGREEING && given.is_none() {
            return None;
        }
        let seen = self.candidates.swap_remove(at).seen;
        if self.candidates.is_empty() {
            self.candidates = Vec::new();
        }
        // Most directions have no second source; a vector begins with room for four.
        self.sources.reserve_exact(1);
        let given_rate = given.and_then(|given| given.clock_rate);
        self.sources.push(MediaSource::new(seen.first()?, given_rate, wants_intervals));
        let at = self.sources.len().saturating_sub(1);
        for seen in &seen {
            self.take_at(at, seen, &mut follow);
        }
        Some(ssrc)
    }

    fn take_at(
        &mut self,
        at: usize,
        seen: &MediaPacket,
        follow: &mut impl FnMut(&MediaSource, &MediaPacket),
    ) {
        let Some(source) = self.sources.get_mut(at) else { return };
        source.on_packet(seen);
        self.wide.on_packet(seen);
        if at == 0 {
            follow(source, seen);
        }
    }

    /// Index of the candidate with this SSRC. A new one replaces the oldest.
    fn candidate_of(&mut self, ssrc: u32) -> usize {
        if let Some(at) = self.candidates.iter().position(|candidate| candidate.ssrc() == Some(ssrc)) {
            return at;
        }
        if self.candidates.len() == MOST_CANDIDATES {
            self.strange += self.candidates.remove(0).seen.len() as u64;
        }
        self.candidates.push(Candidate::default());
        self.candidates.len().saturating_sub(1)
    }

    fn forget_candidates(&mut self) -> u64 {
        std::mem::take(&mut self.candidates).iter().map(|candidate| candidate.seen.len() as u64).sum()
    }

    /// What its numbers show so far of losses before the capture.
    pub fn arrivals(&self) -> NumberedArrivals {
        let mut arrivals = NumberedArrivals::default();
        self.sources.iter().for_each(|source| arrivals += source.sequences.arrivals());
        arrivals
    }

    /// Delivery of the packets of all sources at the capture point. Jitter is that of the source
    /// with the most packets.
    fn delivery(&self) -> Option<Delivery> {
        let mut delivery = Delivery::default();
        let (mut reordered, mut restarts) = (0, 0);
        for source in &self.sources {
            let MediaSource { sequences, received_bytes, .. } = source;
            delivery.sent += sequences.sent();
            delivery.received += sequences.received;
            delivery.lost += source.lost();
            delivery.duplicates += sequences.duplicates;
            delivery.received_bytes += received_bytes;
            reordered += sequences.reordered;
            restarts += sequences.restarts;
        }
        if let Some(jitter) = self.main_source()?.clock.jitter() {
            delivery.set_jitter(jitter);
        }
        // What receivers miss of the packets captured here, the capture does not show.
        delivery.missing.receiver = self.hides_losses();
        delivery.counted = Some(NumberedCounts {
            by: Numbers::Rtp,
            reordered,
            restarts,
            has_delays: false,
            clock: SenderClock::Unstated,
        });
        Some(delivery)
    }

    /// Whether receivers report losses of captured packets, so that the capture does not show all
    /// losses.
    pub fn hides_losses(&self) -> bool {
        self.sources.iter().any(|source| source.lost_behind)
    }

    /// Whether this SSRC is a candidate.
    pub fn may_have(&self, ssrc: u32) -> bool {
        self.candidates.iter().any(|candidate| candidate.ssrc() == Some(ssrc))
    }

    /// Losses by the receivers' last reports on its sources; None without a report that says.
    pub fn reported_loss(&self) -> Option<ReportedLoss> {
        self.sources.iter().filter_map(MediaSource::reported_loss).reduce(|sum, of_one| ReportedLoss {
            lost: sum.lost.saturating_add(of_one.lost),
            expected: sum.expected.saturating_add(of_one.expected),
        })
    }

    /// Number of reports on its sources.
    pub fn reports(&self) -> u64 {
        self.sources.iter().map(|source| source.reports).sum()
    }

    /// The source with the most packets.
    pub fn main_source(&self) -> Option<&MediaSource> {
        // Of several the first one.
        self.sources.iter().rev().max_by_key(|source| source.sequences.received)
    }

    /// Notes on its RTP as text.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.sources.len() > 1 {
            notes.push(format!("{} RTP sources together; jitter is that of the largest", self.sources.len()));
        }
        if self.main_source().is_some_and(|source| source.clock.rate().is_none()) {
            notes.push(
                "no jitter: rate of the media clock unknown, and no layout `udp:PORT=rtp/RATE` gives it"
                    .into(),
            );
        }
        if self.hides_losses() {
            notes.push(match self.sources.first().is_some_and(|source| source.names_losses) {
                true => "losses downstream of the capture are those that receivers name, from their first report on"
                    .into(),
                false => "receivers report losses downstream of the capture, so no loss events are reconstructed".into(),
            });
        }
        let strange = if self.has_media() { self.strange } else { 0 };
        let is_encrypted = self.unreadable_compounds > 0 && self.compounds == 0;
        let (unreadable, overlong) = match self.overlong_compounds {
            overlong if is_encrypted => (self.unreadable_compounds + overlong, 0),
            overlong => (self.unreadable_compounds, overlong),
        };
        let counts = [
            (strange, "datagram[s] look[s|] like RTP but belong[s|] to no tracked source"),
            (unreadable, "RTCP datagram[s] [is|are] encrypted (SRTCP) or damaged, so not read"),
            (self.malformed + overlong, "RTCP packet[s] or block[s] with impossible lengths"),
            (self.unknown_reports, "report[s] on RTP sources that the capture does not show"),
            (self.impossible_delays, "report[s] with an impossible delay"),
            (self.missing_reports, "transport-wide report[s] [is|are] missing"),
            (self.unknown_echoes, "TFRC report[s] echo[es|] a send time of no recent packet"),
            (self.cut_compounds, "RTCP datagram[s] [was|were] cut by the snap length"),
            (self.nacks, "packet[s] [was|were] requested again"),
        ];
        notes.extend(all_counted(counts));
        notes
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RtpFlow {
    directions: [RtpDirection; 2],
}

impl RtpFlow {
    /// The capture has a gap here.
    pub fn leave_gap(&mut self) {
        let sources = self.directions.iter_mut().flat_map(|direction| direction.sources.iter_mut());
        sources.for_each(|source| source.sequences.leave_gap());
    }

    pub fn direction(&self, side: Side) -> &RtpDirection {
        &self.directions[side as usize]
    }

    pub fn direction_mut(&mut self, side: Side) -> &mut RtpDirection {
        &mut self.directions[side as usize]
    }

    /// The latest round-trip time of the whole path, seconds, if echoes of both sides were
    /// captured.
    pub fn whole_rtt(&self) -> Option<f64> {
        let [low, high] = &self.directions;
        Some(low.rtt_behind? + high.rtt_behind?)
    }

    /// Whether either direction has RTP.
    pub fn has_media(&self) -> bool {
        self.directions.iter().any(RtpDirection::has_media)
    }

    /// Whether there is RTCP without RTP.
    pub fn is_only_rtcp(&self) -> bool {
        !self.has_media() && self.directions.iter().any(|direction| direction.compounds > 0)
    }

    /// Delivery of the packets that `side` sent, if any.
    pub fn delivery(&self, side: Side) -> Option<Delivery> {
        self.direction(side).delivery()
    }
}

/// Decode a datagram that begins with `payload` as an RTP packet.
pub fn seen(packet: &Packet, payload: &[u8]) -> Option<MediaPacket> {
    let header = rtp::header(payload)?;
    let mut seen = MediaPacket {
        header,
        time_ns: packet.time_ns,
        packet: packet.number,
        wire_bytes: packet.wire_bytes,
        payload_bytes: packet.network.payload_bytes.unwrap_or(0),
        is_marked: packet.network.ecn == CONGESTION_EXPERIENCED,
        rtt_send_time: None,
        pairs: [None; 2],
    };
    let mut pairs = seen.pairs.iter_mut();
    for (id, data) in header.elements(payload) {
        if let Ok(pair) = data.try_into() {
            if let Some(place) = pairs.next() {
                *place = Some((id, u16::from_be_bytes(pair)));
            }
        } else if let Some(element) = rtp::RttSendTime::from_data(data) {
            seen.rtt_send_time = Some(element);
        }
    }
    Some(seen)
}

/// The ECN field of a marked packet (RFC 3168).
const CONGESTION_EXPERIENCED: u8 = 3;

#[cfg(test)]
mod tests;
