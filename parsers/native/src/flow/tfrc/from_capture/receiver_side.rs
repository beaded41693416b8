//! A receiver, and the loss events that it finds.

use serde::{Deserialize, Serialize};

use crate::flow::tfrc::{LossEventSample, PacketRef, TfrcSamples};
use crate::tfrc::DataPacket;
use crate::tfrc::loss_events::LossEvent;
use crate::tfrc::profile::ReceiverProfile;
use crate::tfrc::receive_record::ArrivalKind;
use crate::tfrc::receiver::{Feedback, Receiver};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiverSide {
    pub state: Receiver,
    /// Reports that would have been due; kept to reuse the allocation.
    due: Vec<Feedback>,
    /// Time and packet at which the current loss event was found.
    detected: Option<(i64, u64)>,
    /// Zero of the receiver's clock: floats are exact to the nanosecond only near zero.
    origin_ns: i64,
    /// Whether its losses follow from reports, not from missing packets.
    is_inferred: bool,
    pub has_data: bool,
}

impl ReceiverSide {
    pub fn new(profile: &ReceiverProfile, is_inferred: bool) -> Self {
        Self {
            state: Receiver::new(profile),
            due: Vec::new(),
            detected: None,
            origin_ns: 0,
            is_inferred,
            has_data: false,
        }
    }

    /// Process `packet` as received, shown by the packet that passes at `at`.
    pub fn on_packet(
        &mut self,
        at: PacketRef,
        origin_ns: i64,
        packet: &DataPacket,
        samples: &mut TfrcSamples,
    ) -> ArrivalKind {
        self.origin_ns = origin_ns;
        self.has_data |= packet.bytes > 0;
        self.due.clear();
        let kind = self.state.on_data(packet, &mut self.due);
        let (detected, is_inferred) = (&mut self.detected, self.is_inferred);
        let now = &self.state.tracker.now;
        for event in now.ended() {
            let found = detected.replace((at.time_ns, at.packet)).unwrap_or((at.time_ns, at.packet));
            samples.loss_events.offer(sample(at, found, event, origin_ns, is_inferred));
        }
        if now.events.current.is_some() {
            detected.get_or_insert((at.time_ns, at.packet));
        }
        kind
    }

    /// The same without emitting samples, for a packet that may not have arrived.
    pub fn simulate(&mut self, packet: &DataPacket) {
        self.has_data |= packet.bytes > 0;
        self.due.clear();
        self.state.on_data(packet, &mut self.due);
    }

    /// Whether the last packet made a report due.
    pub fn is_report_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Loss event rate; None before any data.
    pub fn p(&mut self, time: f64) -> Option<f64> {
        self.has_data.then(|| self.state.p(time))
    }

    /// Loss events; None before any data.
    pub fn loss_events(&self) -> Option<u64> {
        self.has_data.then_some(self.state.tracker.now.events.count)
    }

    /// Loss intervals in packets, the open one first.
    pub fn intervals(&self) -> impl Iterator<Item = f64> {
        let tracker = &self.state.tracker.now;
        tracker.open_interval().into_iter().chain(tracker.closed_intervals().iter().copied())
    }

    /// Emit the loss event that is still open, after the last packet.
    pub fn finish(&self, at: PacketRef, samples: &mut TfrcSamples) {
        if let (Some(event), Some(found)) = (self.state.tracker.now.events.current, self.detected) {
            samples.loss_events.offer(sample(at, found, &event, self.origin_ns, self.is_inferred));
        }
    }
}

fn sample(
    at: PacketRef,
    (time_ns, packet): (i64, u64),
    event: &LossEvent,
    origin_ns: i64,
    is_inferred: bool,
) -> LossEventSample {
    let PacketRef { flow, side, .. } = at;
    // A float beyond the range of integers saturates.
    let lost_ns = origin_ns.saturating_add((event.time * 1e9).round() as i64);
    let LossEvent { start, packets, .. } = *event;
    LossEventSample { flow, side, time_ns, packet, start, lost_ns, packets, is_inferred }
}
