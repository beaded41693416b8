//! Passes RTP and RTCP to their flows, which may have separate ports.

mod per_packet_feedback;
mod tfrc;

use super::datagrams::Datagrams;
use crate::flow::rtp::media_reports::{MediaReport, ReportKind};
use crate::flow::rtp::media_source::MediaSource;
use crate::flow::rtp::{self, GivenRtp};
use crate::flow::rtt_statistics::{RoundTrip, RttMethod};
use crate::flow::tfrc::from_capture::packet_outcomes::ReportedOutcomes;
use crate::flow::tfrc::{FeedbackSample, PacketRef};
use crate::flow::{Found, NonTcpState};
use crate::packet::event::{Endpoints, Packet};
use crate::packet::key::Side;
use crate::pass::collectors::RttSample;
use crate::pass::state::Results;
use crate::tfrc::round_trip::r_sample;
use crate::wire::rtcp::extended::Block;
use crate::wire::rtcp::{self as wire_rtcp, Form, ReportBlock, ReportBlocks, Rtcp};
use crate::wire::rtp as wire_rtp;

/// Bits of RTP's sequence numbers.
const NUMBER_BITS: u32 = 16;
/// Units of RTCP's short times, 65536ths of a second.
const SHORT_TIME: f64 = 65_536.0;

/// A packet with reports.
#[derive(Clone, Copy)]
struct ReportPacket<'a> {
    found: Found,
    packet: &'a Packet,
}

impl ReportPacket<'_> {
    fn endpoints(&self) -> &Endpoints {
        &self.packet.network.endpoints
    }
}

impl Datagrams<'_> {
    /// Process a datagram that may be RTP or RTCP; `given` is the user's layout.
    pub(super) fn take_rtp(
        &mut self,
        found: Found,
        packet: &Packet,
        payload: &[u8],
        given: Option<GivenRtp>,
    ) {
        match wire_rtp::kind(payload) {
            Some(wire_rtp::DatagramKind::Rtp) => self.take_media(found, packet, payload, given),
            Some(wire_rtp::DatagramKind::Rtcp) => self.take_rtcp(found, packet, payload),
            None => {}
        }
    }

    fn take_media(&mut self, found: Found, packet: &Packet, payload: &[u8], given: Option<GivenRtp>) {
        let Some(seen) = rtp::seen(packet, payload) else { return };
        let follower = self.follower(found);
        let NonTcpState { rtp, tfrc, .. } = self.carried.flows.get_mut(found.flow).transport.non_tcp_mut();
        let Results { tfrc: samples, wants_rtp_intervals, .. } = &mut *self.results;
        let direction = rtp.get_or_insert_default().direction_mut(found.side);
        let believed = direction.on_packet(&seen, given, *wants_rtp_intervals, |source, seen| {
            follower.follow(tfrc.get_or_insert_default(), source, seen, samples);
        });
        if let Some(ssrc) = believed {
            self.carried.sessions.on_source(ssrc, found, &packet.network.endpoints);
        }
    }

    fn take_rtcp(&mut self, found: Found, packet: &Packet, payload: &[u8]) {
        let on_wire = packet.network.payload_bytes.unwrap_or(0) as usize;
        let is_whole = payload.len() >= on_wire;
        let rtp = self.carried.flows.get_mut(found.flow).transport.non_tcp_mut().rtp.get_or_insert_default();
        let is_expected = rtp.has_media() || rtp.is_only_rtcp();
        let direction = rtp.direction_mut(found.side);
        let refused = match wire_rtcp::form(payload, on_wire) {
            Form::Compound if is_expected || is_whole => None,
            Form::Ragged if is_expected => None,
            Form::Overlong if is_expected => Some(&mut direction.overlong_compounds),
            Form::Unreadable if is_expected => Some(&mut direction.unreadable_compounds),
            _ => Some(&mut direction.strange),
        };
        if let Some(count) = refused {
            *count += 1;
            return;
        }
        direction.compounds += 1;
        direction.cut_compounds += u64::from(!is_whole);
        let from = ReportPacket { found, packet };
        for report in wire_rtcp::packets(payload) {
            match report {
                Ok(Rtcp::SenderReport(ssrc, info, blocks)) => {
                    self.carried.sessions.on_time(ssrc, info.middle_ntp(), packet.time_ns);
                    if let Some(source) = self.source_of(from, ssrc, true) {
                        source.on_sender_report(&info);
                    }
                    self.take_blocks(from, ssrc, blocks);
                }
                Ok(Rtcp::ReceiverReport(ssrc, blocks)) => self.take_blocks(from, ssrc, blocks),
                Ok(Rtcp::Extended(ssrc, blocks)) => {
                    blocks.for_each(|block| self.take_extended(from, ssrc, &block));
                }
                Ok(Rtcp::Nack(_, packets)) => self.counts(found).nacks += u64::from(packets),
                Ok(Rtcp::Tfrc(report)) => self.take_tfrc_report(from, &report),
                Ok(Rtcp::Congestion(report)) => self.take_congestion(from, &report),
                Ok(Rtcp::TransportWide(report)) => self.take_transport_wide(from, &report),
                Ok(Rtcp::Other) => {}
                // If the snap length cut a datagram, its last packet is incomplete.
                Err(_) => self.counts(found).malformed += u64::from(is_whole),
            }
        }
    }

    fn counts(&mut self, found: Found) -> &mut rtp::RtpDirection {
        self.carried
            .flows
            .get_mut(found.flow)
            .transport
            .non_tcp_mut()
            .rtp
            .get_or_insert_default()
            .direction_mut(found.side)
    }

    /// The source that a report is about, or that sent it itself.
    fn source_of(&mut self, from: ReportPacket<'_>, ssrc: u32, is_own: bool) -> Option<&mut MediaSource> {
        let media = self.carried.sessions.find(ssrc, from.found, from.endpoints(), is_own)?;
        self.counts(media).source_mut(ssrc)
    }

    fn take_blocks(&mut self, from: ReportPacket<'_>, reporter: u32, blocks: ReportBlocks<'_>) {
        for block in blocks.iter() {
            let rtt = self.echo_rtt(from, block.ssrc, block.last_sr, block.delay_since_last_sr);
            let x_recv = self
                .source_of(from, block.ssrc, false)
                .and_then(|source| source.on_report(reporter, &block, from.packet.time_ns));
            let ReportBlock { ssrc, fraction_lost, cumulative_lost, highest, jitter, .. } = block;
            let report = MediaReport {
                fraction_lost: Some(f64::from(fraction_lost) / 256.0),
                cumulative_lost: Some(cumulative_lost.into()),
                jitter_ticks: Some(jitter),
                rtt: rtt.map(|rtt| (rtt, "rtcp")),
                ..MediaReport::new(ReportKind::Block, ssrc, reporter)
            };
            let held = (block.last_sr != 0).then(|| f64::from(block.delay_since_last_sr) / SHORT_TIME);
            self.on_media_report(
                from,
                report,
                ReportRow { sequence: Some(highest.into()), x_recv, held, named: None },
            );
        }
    }

    /// The round-trip time of an echo of a report of `ssrc`, seconds (RFC 3550 section 6.4.1). Both
    /// ends of it were captured here, so only the capture's clock matters.
    fn echo_rtt(&mut self, from: ReportPacket<'_>, ssrc: u32, middle_ntp: u32, held: u32) -> Option<f64> {
        if middle_ntp == 0 {
            return None;
        }
        let sent_ns = self.carried.sessions.sent_ns(ssrc, middle_ntp)?;
        let away = from.packet.time_ns.saturating_sub(sent_ns) as f64 / 1e9;
        let sample = r_sample(away, 0.0, f64::from(held) / SHORT_TIME);
        self.counts(from.found).impossible_delays += u64::from(sample.is_none());
        sample
    }

    fn take_extended(&mut self, from: ReportPacket<'_>, reporter: u32, block: &Block<'_>) {
        let report = |ssrc| MediaReport::new(ReportKind::Extended, ssrc, reporter);
        let report = match *block {
            Block::Malformed => {
                self.counts(from.found).malformed += 1;
                return;
            }
            Block::ReceiverTime(ntp) => {
                self.carried.sessions.on_time(reporter, (ntp >> 16) as u32, from.packet.time_ns);
                return;
            }
            Block::Echo { ssrc, last_time, delay } => {
                if let Some(rtt) = self.echo_rtt(from, ssrc, last_time, delay) {
                    // It is the path of the other side's packets to the capture, even if they are
                    // only reports.
                    let of = Found { side: from.found.side.other(), ..from.found };
                    self.on_media_rtt(of, from.packet, rtt);
                }
                return;
            }
            Block::Losses(losses) => {
                let range = losses.end.wrapping_sub(losses.first) >> losses.thinning;
                let share = f64::from(losses.lost()) / f64::from(range.max(1));
                MediaReport { fraction_lost: Some(share), ..report(losses.ssrc) }
            }
            Block::Summary(summary) => MediaReport {
                cumulative_lost: summary.lost.map(i64::from),
                jitter_ticks: summary.mean_jitter,
                ..report(summary.ssrc)
            },
            Block::Voip(voice) => MediaReport {
                fraction_lost: Some(f64::from(voice.loss_rate) / 256.0),
                rtt: (voice.round_trip_ms > 0).then(|| (f64::from(voice.round_trip_ms) / 1e3, "reported")),
                ..report(voice.ssrc)
            },
        };
        self.on_media_report(from, report, ReportRow::default());
    }

    /// Collect a report and its round-trip time. If the capture does not show the media, it belongs
    /// to the other side of its flow.
    fn on_media_report(&mut self, from: ReportPacket<'_>, report: MediaReport, row: ReportRow) {
        let ReportPacket { found, packet } = from;
        let media = self.carried.sessions.find(report.ssrc, found, from.endpoints(), false);
        let other = Found { side: found.side.other(), ..found };
        if media.is_none() && !self.counts(other).may_have(report.ssrc) {
            self.counts(found).unknown_reports += 1;
        }
        let media = media.unwrap_or(other);
        if let Some((rtt, _)) = report.rtt {
            self.on_media_rtt(media, packet, rtt);
        }
        let NonTcpState { rtp, tfrc, .. } = self.carried.flows.get_mut(media.flow).transport.non_tcp_mut();
        let rtt_from_here = rtp.as_deref().and_then(|rtp| rtp.direction(media.side).rtt_behind);
        let place =
            PacketRef { flow: media.flow, side: media.side, time_ns: packet.time_ns, packet: packet.number };
        let (mut p, mut inferred_p) = (None, None);
        if let Some(inferred) = tfrc.as_deref_mut().and_then(|tfrc| tfrc.known_inferred(media.side)) {
            p = inferred.p(packet.time_ns);
            inferred_p = row.named.as_ref().and_then(|(highest, outcomes)| {
                inferred.on_named(place, ((*highest).into(), outcomes), rtt_from_here, &mut self.results.tfrc)
            });
        }
        self.results.tfrc.feedback.offer(FeedbackSample {
            flow: media.flow,
            side: media.side,
            sent_ns: packet.time_ns,
            packet: packet.number,
            sequence: row.sequence,
            p,
            inferred_p,
            x_recv: row.x_recv,
            reported_p: None,
            reported_x_recv: None,
            elapsed: row.held,
            losses: None,
            taken: None,
            media: Some(report),
        });
    }

    /// A round-trip time of the media of `media`, seconds.
    fn on_media_rtt(&mut self, media: Found, packet: &Packet, rtt: f64) {
        let rtt_ns = (rtt * 1e9).round() as u64;
        let Found { flow, side } = media;
        let NonTcpState { rtp, tfrc, .. } = self.carried.flows.get_mut(flow).transport.non_tcp_mut();
        let rtp = rtp.get_or_insert_default();
        rtp.direction_mut(side).on_rtt(rtt_ns);
        rtp.direction_mut(side).rtt_behind = Some(rtt);
        // An echo covers the path from the capture to its sender. Only the sum of both covers all
        // of it.
        if let (Some(whole), Some(tfrc)) = (rtp.whole_rtt(), tfrc.as_deref_mut()) {
            for side in [Side::Low, Side::High] {
                if let Some(inferred) = tfrc.known_inferred(side) {
                    inferred.on_rtt(whole);
                }
            }
        }
        self.collect_answer_rtt(media, packet, RoundTrip::new(rtt_ns, RttMethod::Report));
    }

    /// Collect the round-trip time of the data of `data` that another packet than TCP's shows.
    pub(in crate::pass::stages) fn collect_answer_rtt(
        &mut self,
        data: Found,
        packet: &Packet,
        rtt: RoundTrip,
    ) {
        if let Some(bins) = &mut self.results.bins {
            bins.add_rtt(data.flow, data.side, packet.time_ns, rtt.ns);
        }
        self.results.samples.offer(RttSample::of_packet(data, packet, rtt));
    }
}

/// Fields of a report for its tables.
#[derive(Default)]
struct ReportRow {
    sequence: Option<u64>,
    x_recv: Option<f64>,
    held: Option<f64>,
    /// The highest number received of the tracked source, and the outcomes below it.
    named: Option<(u16, ReportedOutcomes)>,
}
