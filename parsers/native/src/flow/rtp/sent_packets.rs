//! Reports on each packet: packets sent, their receive rate, and losses.

use serde::{Deserialize, Serialize};

use super::media_packet::MediaPacket;
use crate::flow::tfrc::from_capture::packet_outcomes::{
    NamedBy, OutcomeRun, PacketOutcome, ReportedOutcomes,
};
use crate::wire::rtp;

/// Packets whose size is remembered: 96 KiB, only where there are such reports.
pub(super) const REMEMBERED: usize = 4096;

/// A packet as reports refer to it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SentPacket {
    number: u16,
    /// Its source, and its number there.
    ssrc: u32,
    sequence: u16,
    /// Payload of its datagram; 0 if no recent packet has this number.
    payload_bytes: u32,
    pub time_ns: i64,
}

/// The latest packets by number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SentPackets(Vec<SentPacket>);

impl Default for SentPackets {
    fn default() -> Self {
        Self(vec![SentPacket::default(); REMEMBERED])
    }
}

impl SentPackets {
    /// Record a packet in place of the one with the same slot.
    pub fn add(&mut self, number: u16, seen: &MediaPacket) {
        if let Some(place) = self.0.get_mut(usize::from(number) % REMEMBERED) {
            let rtp::Header { ssrc, sequence, .. } = seen.header;
            *place = SentPacket {
                number,
                ssrc,
                sequence,
                payload_bytes: seen.payload_bytes,
                time_ns: seen.time_ns,
            };
        }
    }

    pub fn get(&self, number: u16) -> Option<SentPacket> {
        let sent = self.0.get(usize::from(number) % REMEMBERED)?;
        (sent.number == number && sent.payload_bytes > 0).then_some(*sent)
    }
}

/// Outcomes of the packets of `ssrc` in a report: the highest of their numbers, and the outcomes
/// from there downwards. `named` gives each packet by the number that the report uses, the lowest
/// first. Only captured packets count: one missing at the capture was lost upstream.
pub fn outcomes(
    by: NamedBy,
    sent: &SentPackets,
    ssrc: u32,
    named: &[(u16, PacketOutcome)],
) -> Option<(u16, ReportedOutcomes)> {
    let captured = named.iter().rev().filter_map(|&(number, outcome)| {
        let sent = sent.get(number).filter(|sent| sent.ssrc == ssrc)?;
        Some((sent.sequence, outcome))
    });
    let mut captured = captured.peekable();
    let (highest, _) = *captured.peek()?;
    let mut runs = Vec::new();
    let mut next = highest;
    for (sequence, outcome) in captured {
        let between = next.wrapping_sub(sequence);
        // Reordered packets were named already.
        if between < 1 << 15 {
            runs.push(OutcomeRun { packets: between.into(), outcome: PacketOutcome::Came });
            runs.push(OutcomeRun { packets: 1, outcome });
            next = sequence.wrapping_sub(1);
        }
    }
    Some((highest, ReportedOutcomes { by, runs }))
}

/// Progress of the reports.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ReceiveProgress {
    highest: Option<u16>,
    /// By the receiver's clock, seconds.
    last_arrival: Option<f64>,
}

impl ReceiveProgress {
    /// Bytes per second received since the previous report: the packets with higher numbers that
    /// this one reports as arrived, over their arrival times. None for the first one, and if any of
    /// them was not captured.
    pub fn x_recv(&mut self, sent: &SentPackets, arrivals: impl Iterator<Item = (u16, f64)>) -> Option<f64> {
        let (mut bytes, mut are_all_known) = (0.0, true);
        let before = self.last_arrival;
        for (number, time) in arrivals {
            // Reports may overlap.
            let is_new = self.highest.is_none_or(|highest| number.wrapping_sub(highest) as i16 > 0);
            if !is_new {
                continue;
            }
            self.highest = Some(number);
            self.last_arrival = Some(self.last_arrival.map_or(time, |last| last.max(time)));
            match sent.get(number) {
                Some(sent) => bytes += f64::from(sent.payload_bytes),
                None => are_all_known = false,
            }
        }
        let elapsed = self.last_arrival? - before?;
        (are_all_known && elapsed > 0.0).then(|| bytes / elapsed)
    }
}
