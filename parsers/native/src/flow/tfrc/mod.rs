//! The ends of TFRC flows.
//!
//! A simulation shows both ends of a path but none of ns-2's headers, so [`from_simulation`]
//! replays the agents. A capture shows headers at one place, so [`from_capture`] compares a
//! receiver's reports with what it should have seen there. Each transport (DCCP, RTP, UDP) creates
//! a [`from_capture::CapturedEnds`] for each direction with data, and passes it every data packet
//! and every report.

pub mod findings;
pub mod from_capture;
pub mod from_simulation;
mod tfrc_samples;

use serde::{Deserialize, Serialize};

use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::tfrc::ns2::Parameters;
use from_capture::{CapturedEnds, CarrierSetup, InferredReceiver};
use from_simulation::{PacketEvent, SimulatedEnds};
pub use tfrc_samples::{
    FeedbackSample, LossEventSample, LossIntervalSample, ReportedInterval, RttBy, TakenReport, TfrcSamples,
};

/// A packet of one flow, and the sender of the data it is about.
#[derive(Clone, Copy, Debug)]
pub struct PacketRef {
    pub flow: u32,
    /// The side that sends the data: reports come from the other one.
    pub side: Side,
    pub time_ns: i64,
    pub packet: u64,
}

/// Values of one direction for the table of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TfrcSummary {
    /// Loss events found among the packets; None if unknown.
    pub loss_events: Option<u64>,
    /// The same downstream of the capture, if known from reports.
    pub inferred_loss_events: Option<u64>,
    /// The loss event rate of these, where no report has one.
    pub inferred_p: Option<f64>,
    /// Loss event rate of the last report.
    pub p: Option<f64>,
    /// Receive rate of the last report, bytes per second.
    pub x_recv: Option<f64>,
    pub feedback_packets: u64,
    /// R after the last report that the sender processed, seconds.
    pub r: Option<f64>,
}

/// The ends of one direction.
#[derive(Debug, Serialize, Deserialize)]
enum TfrcEnds {
    Captured(Box<CapturedEnds>),
    Inferred(Box<InferredReceiver>),
    /// Not saved, as a simulation is one file; last, as serde counts without it when it reads.
    #[serde(skip)]
    Simulated(Box<SimulatedEnds>),
}

/// The directions of one flow with TFRC data.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TfrcFlow {
    sides: [Option<TfrcEnds>; 2],
}

impl TfrcFlow {
    /// Values for the table of flows of the data of `side`; None if it sends none by TFRC.
    pub fn summary(&self, side: Side) -> Option<TfrcSummary> {
        Some(match self.sides[side as usize].as_ref()? {
            TfrcEnds::Simulated(ends) => ends.summary(),
            TfrcEnds::Captured(ends) => ends.summary(),
            TfrcEnds::Inferred(receiver) => receiver.summary(),
        })
    }

    /// Whether anything is known of the data of `side`.
    pub fn has(&self, side: Side) -> bool {
        self.sides[side as usize].is_some()
    }

    /// Whether losses of the data of `side` belong to no event because the round-trip time is
    /// unknown.
    pub fn lacks_rtt(&self, side: Side) -> bool {
        matches!(&self.sides[side as usize], Some(TfrcEnds::Inferred(receiver)) if receiver.lacks_rtt())
    }

    /// Notes on the data of `side` as text.
    pub fn notes(&self, side: Side) -> Vec<String> {
        match self.sides[side as usize].as_ref() {
            Some(TfrcEnds::Simulated(ends)) => ends.notes(),
            Some(TfrcEnds::Captured(ends)) => ends.notes(),
            Some(TfrcEnds::Inferred(receiver)) => receiver.notes(),
            None => Vec::new(),
        }
    }

    /// Process a packet of a simulation.
    pub fn take_simulated(
        &mut self,
        (flow, side): (u32, Side),
        happening: PacketEvent,
        packet: &Packet,
        parameters: &Parameters,
        samples: &mut TfrcSamples,
    ) {
        let of = from_simulation::side_of_data(side, packet);
        let place = PacketRef { flow, side: of, time_ns: packet.time_ns, packet: packet.number };
        let ends = self.sides[of as usize]
            .get_or_insert_with(|| TfrcEnds::Simulated(Box::new(SimulatedEnds::new(parameters))));
        if let TfrcEnds::Simulated(ends) = ends {
            ends.on_packet(place, happening, packet, samples);
        }
    }

    /// The captured ends of the data that `side` sends, created with `setup` if new; None if a
    /// simulation shows them.
    pub fn captured(
        &mut self,
        side: Side,
        setup: impl FnOnce() -> CarrierSetup,
    ) -> Option<&mut CapturedEnds> {
        let ends = self.sides[side as usize]
            .get_or_insert_with(|| TfrcEnds::Captured(Box::new(CapturedEnds::new(setup()))));
        match ends {
            TfrcEnds::Captured(ends) => Some(ends),
            TfrcEnds::Simulated(_) | TfrcEnds::Inferred(_) => None,
        }
    }

    /// The inferred receiver of the data that `side` sends, created with `setup` and `rtt` (the
    /// user's round-trip time in seconds) if new. None if both ends are known.
    pub fn inferred(
        &mut self,
        side: Side,
        setup: impl FnOnce() -> CarrierSetup,
        rtt: Option<f64>,
    ) -> Option<&mut InferredReceiver> {
        let ends = self.sides[side as usize].get_or_insert_with(|| {
            TfrcEnds::Inferred(Box::new(InferredReceiver::new(&setup().receiver, rtt)))
        });
        match ends {
            TfrcEnds::Inferred(receiver) => Some(receiver),
            TfrcEnds::Simulated(_) | TfrcEnds::Captured(_) => None,
        }
    }

    /// The same if it exists.
    pub fn known_inferred(&mut self, side: Side) -> Option<&mut InferredReceiver> {
        match self.sides[side as usize].as_mut()? {
            TfrcEnds::Inferred(receiver) => Some(receiver),
            TfrcEnds::Simulated(_) | TfrcEnds::Captured(_) => None,
        }
    }

    /// Discard the inferred receiver of `side`: its data have no numbers after all.
    pub fn forget_inferred(&mut self, side: Side) {
        if self.known_inferred(side).is_some() {
            self.sides[side as usize] = None;
        }
    }

    /// The captured ends of `side` if they exist: a report about no data means nothing.
    pub fn known(&mut self, side: Side) -> Option<&mut CapturedEnds> {
        match self.sides[side as usize].as_mut()? {
            TfrcEnds::Captured(ends) => Some(ends),
            TfrcEnds::Simulated(_) | TfrcEnds::Inferred(_) => None,
        }
    }

    /// Emit everything still pending for `flow`. Call once, after the last packet.
    pub fn finish(&mut self, flow: u32, samples: &mut TfrcSamples) {
        for (side, ends) in [Side::Low, Side::High].into_iter().zip(&mut self.sides) {
            match ends {
                Some(TfrcEnds::Simulated(ends)) => ends.finish(samples),
                Some(TfrcEnds::Captured(ends)) => ends.finish((flow, side), samples),
                Some(TfrcEnds::Inferred(receiver)) => receiver.finish((flow, side), samples),
                None => {}
            }
        }
    }
}
