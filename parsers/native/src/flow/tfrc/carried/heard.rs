//! A receiver that says nothing of TFRC, or is not seen to say anything: what it would report of the
//! packets that passed, given a round-trip time from elsewhere.

use super::super::{LossIntervalSample, Place, Summary, TfrcSamples};
use super::receiving::Receiving;
use crate::flow::key::Side;
use crate::tfrc::DataPacket;
use crate::tfrc::profile::ReceiverProfile;

const NO_RTT: &str =
    "no loss events, because the whole path's round-trip time is not known: `--tfrc rtt=TIME`";

/// The receiver of one direction.
#[derive(Debug)]
pub struct Heard {
    receiving: Receiving,
    origin_ns: Option<i64>,
    /// Seconds; None as long as nothing tells it.
    rtt: Option<f64>,
    /// Packets that came before it was known.
    too_early: u64,
    /// When the latest packet came, seconds.
    latest: f64,
}

impl Heard {
    /// Nothing came yet. `rtt` is the user's word for the round-trip time in seconds.
    pub fn new(profile: &ReceiverProfile, rtt: Option<f64>) -> Self {
        let receiving = Receiving::new(profile, false);
        Self { receiving, origin_ns: None, rtt, too_early: 0, latest: 0.0 }
    }

    /// The round-trip time of the whole path was measured, in seconds.
    pub fn on_rtt(&mut self, rtt: f64) {
        self.rtt = Some(rtt).filter(|rtt| *rtt > 0.0).or(self.rtt);
    }

    /// A packet passes. Without a round-trip time its losses belong to no event.
    pub fn on_data(&mut self, at: Place, packet: &DataPacket, samples: &mut TfrcSamples) {
        if self.rtt.is_none() {
            self.too_early += 1;
            return;
        }
        let origin_ns = *self.origin_ns.get_or_insert(at.time_ns);
        let time = at.time_ns.saturating_sub(origin_ns) as f64 / 1e9;
        self.latest = time;
        self.receiving.take(at, origin_ns, &DataPacket { time, rtt: self.rtt, ..*packet }, samples);
        if self.receiving.is_report_due() && samples.loss_intervals.wanted {
            self.take_intervals(at, samples);
        }
    }

    fn take_intervals(&self, at: Place, samples: &mut TfrcSamples) {
        let Place { flow, side, time_ns, packet } = at;
        for (index, packets) in (0..).zip(self.receiving.intervals()) {
            samples.loss_intervals.add(LossIntervalSample {
                flow,
                side,
                time_ns,
                packet,
                index,
                packets: Some(packets),
                inferred: None,
                reported: None,
            });
        }
    }

    /// Loss event rate at a time; None as long as no packet counts.
    pub fn p(&mut self, time_ns: i64) -> Option<f64> {
        let origin_ns = self.origin_ns?;
        self.receiving.p(time_ns.saturating_sub(origin_ns) as f64 / 1e9)
    }

    /// What the table of flows tells.
    pub fn summary(&self) -> Summary {
        let receiver = &self.receiving.state;
        Summary {
            loss_events: self.receiving.loss_events(),
            p: self.receiving.has_data.then(|| receiver.clone().p(self.latest)),
            x_recv: receiver.recent_rate().filter(|_| self.receiving.has_data),
            ..Summary::default()
        }
    }

    /// What is to be said of it in words.
    pub fn notes(&self) -> Vec<String> {
        match (self.rtt, self.too_early) {
            (None, 0) | (Some(_), 0) => Vec::new(),
            (None, _) => vec![NO_RTT.into()],
            (Some(_), early) => {
                vec![format!("{early} packets are in no loss event: no round-trip time was known yet")]
            }
        }
    }

    /// Hand out the loss event that is still open. To be called once, after the last packet.
    pub fn finish(&self, (flow, side): (u32, Side), samples: &mut TfrcSamples) {
        self.receiving.finish(Place { flow, side, time_ns: 0, packet: 0 }, samples);
    }
}
