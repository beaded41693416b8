//! Reports that name each packet of media.

use super::{ReportPacket, ReportRow, SHORT_TIME};
use crate::flow::rtp::media_reports::{MediaReport, ReportKind};
use crate::flow::rtp::sent_packets::outcomes;
use crate::flow::tcp::ecn::{CE, Ecn};
use crate::flow::tfrc::from_capture::packet_outcomes::{NamedBy, PacketOutcome};
use crate::pass::stages::datagrams::Datagrams;
use crate::tfrc::round_trip::r_sample;
use crate::wire::rtcp::feedback::{Congestion, PacketReport, TICKS_PER_SECOND, TransportWide};

impl Datagrams<'_> {
    pub(super) fn take_congestion(&mut self, from: ReportPacket<'_>, report: &Congestion<'_>) {
        for part in report.sources() {
            let (mut came, mut missing) = (0_u64, 0_u64);
            let mut marks = Ecn::default();
            let mut inferred = Vec::new();
            for packet in part.packets() {
                came += u64::from(packet.is_received);
                missing += u64::from(!packet.is_received);
                marks.note_codepoint(packet.ecn);
                let age = packet.age.map(|age| f64::from(age) / 1024.0);
                inferred.extend(packet.is_received.then_some((packet.sequence, age)));
            }
            let time = f64::from(report.time) / SHORT_TIME;
            let mut row = ReportRow::default();
            let mut rtt = None;
            let is_followed = self.is_followed(from, part.ssrc);
            if let Some(source) = self.source_of(from, part.ssrc, false) {
                source.reports += 1;
                let sent = source.sent.get_or_insert_default();
                if is_followed {
                    let named: Vec<_> = part.packets().map(outcome_of).collect();
                    row.named = outcomes(NamedBy::Congestion, sent, part.ssrc, &named);
                }
                let arrivals = inferred.iter().filter_map(|&(number, age)| Some((number, time - age?)));
                row.x_recv = source.progress.x_recv(sent, arrivals);
                let newest = inferred.iter().rev().find_map(|&(number, age)| Some((sent.get(number)?, age?)));
                rtt = newest.and_then(|(sent, age)| {
                    let away = from.packet.time_ns.saturating_sub(sent.time_ns) as f64 / 1e9;
                    row.held = Some(age);
                    r_sample(away, 0.0, age)
                });
                source.on_named(row.named.as_ref());
            }
            row.sequence = inferred.last().map(|&(number, _)| number.into());
            let report = MediaReport {
                fraction_lost: share(missing, came + missing),
                rtt: rtt.map(|rtt| (rtt, "arrival_offset")),
                marks: Some((marks.ect1_packets, marks.ce_packets)),
                ..MediaReport::new(ReportKind::Congestion, part.ssrc, report.sender)
            };
            self.on_media_report(from, report, row);
        }
    }

    pub(super) fn take_transport_wide(&mut self, from: ReportPacket<'_>, report: &TransportWide<'_>) {
        let media = self.carried.sessions.find(report.media, from.found, from.endpoints(), false);
        let (mut came, mut highest) = (0_u64, None);
        for packet in report.arrivals() {
            (came, highest) = (came + 1, Some(u64::from(packet.number)));
        }
        let missing = u64::from(report.count).saturating_sub(came);
        let (mut x_recv, mut named) = (None, None);
        if let Some(media) = media {
            let direction = self.counts(media);
            let seconds = |ticks: i64| ticks as f64 / TICKS_PER_SECOND;
            let arrivals = report.arrivals().map(|packet| (packet.number, seconds(packet.ticks)));
            x_recv = direction.wide.x_recv(arrivals);
            if let Some(source) = direction.source_mut(report.media) {
                source.reports += 1;
            }
            // Of several sources the first is followed, whichever the report is addressed to.
            if let Some(ssrc) = direction.sources().first().map(|source| source.ssrc) {
                named = direction.wide.outcomes(ssrc, report);
                if let Some(source) = direction.source_mut(ssrc) {
                    source.on_named(named.as_ref());
                }
            }
            direction.missing_reports += direction.wide.missing_before(report.number);
        }
        let report = MediaReport {
            fraction_lost: share(missing, came + missing),
            ..MediaReport::new(ReportKind::TransportWide, report.media, report.sender)
        };
        self.on_media_report(from, report, ReportRow { sequence: highest, x_recv, held: None, named });
    }

    /// Whether `ssrc` is the source whose losses are grouped into events: the first of its
    /// direction.
    fn is_followed(&mut self, from: ReportPacket<'_>, ssrc: u32) -> bool {
        let media = self.carried.sessions.find(ssrc, from.found, from.endpoints(), false);
        let first = media.and_then(|media| self.counts(media).sources().first().map(|source| source.ssrc));
        first == Some(ssrc)
    }
}

fn outcome_of(packet: PacketReport) -> (u16, PacketOutcome) {
    let outcome = match (packet.is_received, packet.ecn == CE) {
        (false, _) => PacketOutcome::Lost,
        (true, true) => PacketOutcome::Marked,
        (true, false) => PacketOutcome::Came,
    };
    (packet.sequence, outcome)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
