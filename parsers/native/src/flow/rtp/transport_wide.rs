//! Transport-wide sequence numbers: the packets of all sources of a direction together, numbered in
//! a header extension element whose identifier only the signalling defines.

use serde::{Deserialize, Serialize};

use super::media_packet::MediaPacket;
use super::sent_packets::{REMEMBERED, ReceiveProgress, SentPackets, outcomes};
use crate::flow::tfrc::from_capture::packet_outcomes::{NamedBy, PacketOutcome, ReportedOutcomes};
use crate::wire::rtcp::feedback::TransportWide;

/// Packets in a row with a consecutive element before it is accepted as the number.
const AGREEING: u32 = 4;
/// Limit of two-byte elements tracked.
const WATCHED: usize = 4;

/// An element that may be the number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CandidateElement {
    id: u8,
    last: u16,
    in_a_row: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TransportWideNumbers {
    watched: Vec<CandidateElement>,
    /// The identifier of the element, with the latest packets.
    numbered: Option<(u8, Box<SentPackets>)>,
    progress: ReceiveProgress,
    /// Number of the latest report, and the highest packet that it names.
    report: Option<u8>,
    reported_to: Option<u16>,
}

impl TransportWideNumbers {
    pub fn on_packet(&mut self, seen: &MediaPacket) {
        for (id, number) in seen.pairs.into_iter().flatten() {
            match &mut self.numbered {
                Some((of, sent)) if *of == id => sent.add(number, seen),
                Some(_) => {}
                None => self.watch(id, number, seen),
            }
        }
    }

    fn watch(&mut self, id: u8, number: u16, seen: &MediaPacket) {
        let Some(watched) = self.watched.iter_mut().find(|watched| watched.id == id) else {
            if self.watched.len() < WATCHED {
                self.watched.push(CandidateElement { id, last: number, in_a_row: 0 });
            }
            return;
        };
        let counts_on = number.wrapping_sub(watched.last) == 1;
        watched.in_a_row = if counts_on { watched.in_a_row + 1 } else { 0 };
        watched.last = number;
        if watched.in_a_row == AGREEING {
            let mut sent = Box::<SentPackets>::default();
            sent.add(number, seen);
            self.numbered = Some((id, sent));
            self.watched = Vec::new();
        }
    }

    /// The receive rate of a report, see [`ReceiveProgress::x_recv`].
    pub fn x_recv(&mut self, arrivals: impl Iterator<Item = (u16, f64)>) -> Option<f64> {
        let (_, sent) = self.numbered.as_ref()?;
        self.progress.x_recv(sent, arrivals)
    }

    /// Outcomes of the packets of `ssrc` in a report, see [`outcomes`], as far back as packets are
    /// remembered. Call before [`Self::missing_before`].
    pub fn outcomes(&mut self, ssrc: u32, report: &TransportWide<'_>) -> Option<(u16, ReportedOutcomes)> {
        let highest = report.arrivals().last()?.number;
        let reported_to = self.reported_to.replace(highest);
        // Some receivers omit packets that did not arrive between two reports.
        let follows = self.report.is_some_and(|last| report.number == last.wrapping_add(1));
        let first = reported_to
            .map(|reported_to| reported_to.wrapping_add(1))
            .filter(|next| follows && report.first.wrapping_sub(*next) < 1 << 15)
            .unwrap_or(report.first);
        let (_, sent) = self.numbered.as_ref()?;
        let packets = highest.wrapping_sub(first).saturating_add(1).min(REMEMBERED as u16);
        let first = highest.wrapping_sub(packets).wrapping_add(1);
        let mut named = vec![PacketOutcome::Lost; packets.into()];
        for arrival in report.arrivals() {
            if let Some(outcome) = named.get_mut(usize::from(arrival.number.wrapping_sub(first))) {
                *outcome = PacketOutcome::Came;
            }
        }
        let named: Vec<_> =
            (0..packets).zip(named).map(|(at, outcome)| (first.wrapping_add(at), outcome)).collect();
        outcomes(NamedBy::TransportWide, sent, ssrc, &named)
    }

    /// Number of reports missing before this one.
    pub fn missing_before(&mut self, report: u8) -> u64 {
        let last = self.report.replace(report);
        let ahead = last.map_or(1, |last| report.wrapping_sub(last));
        // A reordered or repeated one hides none.
        if (1..128).contains(&ahead) { u64::from(ahead) - 1 } else { 0 }
    }
}
