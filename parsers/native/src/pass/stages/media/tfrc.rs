//! Passes media to TFRC's ends, and TFRC's own reports.

use super::{NUMBER_BITS, ReportPacket};
use crate::flow::numbered_datagrams::NumberedDatagram;
use crate::flow::rtp::media_packet::MediaPacket;
use crate::flow::rtp::media_source::MediaSource;
use crate::flow::tfrc::from_capture::{CarrierSetup, Reported};
use crate::flow::tfrc::{PacketRef, RttBy, TfrcFlow, TfrcSamples};
use crate::flow::{Found, NonTcpState};
use crate::packet::event::Packet;
use crate::pass::stages::datagrams::Datagrams;
use crate::tfrc::DataPacket;
use crate::tfrc::profile::{Profile, ReceiverProfile};
use crate::tfrc::round_trip::r_sample;
use crate::wire::rtcp::feedback::TfrcReport;

impl Datagrams<'_> {
    pub(super) fn take_tfrc_report(&mut self, from: ReportPacket<'_>, report: &TfrcReport) {
        let media = self.carried.sessions.find(report.media, from.found, from.endpoints(), false);
        let Some(media) = media else {
            self.counts(from.found).unknown_reports += 1;
            return;
        };
        let NonTcpState { rtp, tfrc, .. } = self.carried.flows.get_mut(media.flow).transport.non_tcp_mut();
        let direction = rtp.get_or_insert_default().direction_mut(media.side);
        let Some(source) = direction.source_mut(report.media) else { return };
        source.reports += 1;
        let rate = source.tfrc_times.rate();
        // Unless the data are captured where they are sent, an echo covers only a part of the path.
        let estimate = source.tfrc_times.reported_rtt().map(|rtt| (rtt, RttBy::Estimate));
        let held = rate.map(|rate| f64::from(report.delay) / rate);
        let echoed = source.tfrc_times.captured(report.echoed_send_time);
        let &Packet { time_ns, number: packet, .. } = from.packet;
        let sample = echoed.zip(held).and_then(|((_, captured_ns), held)| {
            r_sample(time_ns.saturating_sub(captured_ns) as f64 / 1e9, 0.0, held)
        });
        let is_impossible = echoed.is_some() && held.is_some() && sample.is_none();
        direction.impossible_delays += u64::from(is_impossible);
        direction.unknown_echoes += u64::from(echoed.is_none());
        let reported = Reported {
            sequence: echoed.map(|(sequence, _)| sequence.into()),
            p: Some(report.p),
            x_recv: Some(report.x_recv.into()),
            elapsed: held,
            r_sample: estimate.or(sample.map(|sample| (sample, RttBy::Timestamp))),
            ..Reported::default()
        };
        let Found { flow, side } = media;
        let place = PacketRef { flow, side, time_ns, packet };
        if let Some(ends) = tfrc.as_deref_mut().and_then(|tfrc| tfrc.known(side)) {
            ends.on_report(place, &reported, &mut self.results.tfrc);
        }
        if let Some(sample) = sample {
            self.on_media_rtt(media, from.packet, sample);
        }
    }

    /// The follower of the packets found at `found`.
    pub(in crate::pass::stages) fn follower(&self, found: Found) -> TfrcFollower {
        TfrcFollower { profile: self.options.tfrc_profile, rtt: self.options.rtt_s, found }
    }
}

/// Passes numbered packets to TFRC's ends.
#[derive(Clone, Copy)]
pub(in crate::pass::stages) struct TfrcFollower {
    profile: Profile,
    /// The user's round-trip time, seconds.
    rtt: Option<f64>,
    found: Found,
}

impl TfrcFollower {
    /// Setup of ends with numbers of `seq_bits` bits and a first payload of `bytes`.
    pub(in crate::pass::stages) fn setup(&self, seq_bits: u32, bytes: u32, is_whole: bool) -> CarrierSetup {
        let receiver = ReceiverProfile { seq_bits, ..self.profile.receiver() };
        CarrierSetup { receiver, sender: self.profile.sender(bytes.into()), is_whole }
    }

    /// The place of a packet of the data.
    pub(in crate::pass::stages) fn place(&self, time_ns: i64, packet: u64) -> PacketRef {
        let Found { flow, side } = self.found;
        PacketRef { flow, side, time_ns, packet }
    }

    /// Process a datagram numbered by a generator. Only the user knows its round-trip time.
    pub(in crate::pass::stages) fn follow_numbered(
        &self,
        tfrc: &mut Option<Box<TfrcFlow>>,
        numbered: &NumberedDatagram,
        samples: &mut TfrcSamples,
    ) {
        if self.rtt.is_none() {
            return;
        }
        let &NumberedDatagram {
            number: seq, bits, time_ns, packet, payload_bytes: bytes, is_marked: ce, ..
        } = numbered;
        let setup = || self.setup(bits, bytes, false);
        if let Some(inferred) = tfrc.get_or_insert_default().inferred(self.found.side, setup, self.rtt) {
            let data = DataPacket { seq, ce, bytes, ..DataPacket::default() };
            inferred.on_data(self.place(time_ns, packet), &data, samples);
        }
    }

    /// A packet of the first source of a direction. If it carries TFRC's times the ends are TFRC's.
    pub(super) fn follow(
        &self,
        tfrc: &mut TfrcFlow,
        source: &MediaSource,
        seen: &MediaPacket,
        samples: &mut TfrcSamples,
    ) {
        let place = self.place(seen.time_ns, seen.packet);
        let data = DataPacket {
            seq: seen.header.sequence.into(),
            ce: seen.is_marked,
            bytes: seen.payload_bytes,
            ..DataPacket::default()
        };
        // At the beginning the sender has no round-trip time yet.
        let is_whole = seen.rtt_send_time.is_some_and(|times| times.rtt == 0);
        let setup = || self.setup(NUMBER_BITS, seen.payload_bytes, is_whole);
        if source.tfrc_times.is_empty() {
            if let Some(inferred) = tfrc.inferred(self.found.side, setup, self.rtt) {
                inferred.on_data(place, &data, samples);
            }
        } else if let Some(ends) = tfrc.captured(self.found.side, setup) {
            let rtt = seen.rtt_send_time.zip(source.tfrc_times.rate());
            let rtt = rtt.map(|(times, rate)| f64::from(times.rtt) / rate);
            ends.on_data(place, &DataPacket { rtt, ..data }, samples);
        }
    }
}
