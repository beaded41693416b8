//! What both ends of TFRC flows did.
//!
//! Two ways lead there. A simulation shows both ends of a path but none of ns-2's headers, so
//! [`from_simulation`] lives through what the agents did. A capture shows headers at one place, so
//! [`from_capture`] holds what a receiver reported against what it should have seen there. A carrier
//! (DCCP, RTP, UDP) makes [`from_capture::CapturedEnds`] one for each direction with data, and gives it every
//! data packet and every report.

pub mod findings;
pub mod from_capture;
pub mod from_simulation;
mod tfrc_samples;

use crate::packet::event::Packet;
use crate::packet::key::Side;
use crate::tfrc::ns2::Parameters;
use from_capture::{CapturedEnds, CarrierSetup, InferredReceiver};
use from_simulation::{PacketEvent, SimulatedEnds};
pub use tfrc_samples::{
    FeedbackSample, LossEventSample, LossIntervalSample, RttBy, TakenReport, TfrcSamples,
};

/// A packet of one flow, and whose data it is about.
#[derive(Clone, Copy, Debug)]
pub struct PacketRef {
    /// Flow, from 0.
    pub flow: u32,
    /// The side that sends the data: reports come from the other one.
    pub side: Side,
    /// When the packet was seen.
    pub time_ns: i64,
    pub packet: u64,
}

/// What the table of flows tells of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TfrcSummary {
    /// Loss events found among the packets; None if the trace does not tell.
    pub loss_events: Option<u64>,
    /// The same behind the capture, if reports tell of them.
    pub inferred_loss_events: Option<u64>,
    /// Likewise the rate that follows from these, where no report has one.
    pub inferred_p: Option<f64>,
    /// Loss event rate of the last report.
    pub p: Option<f64>,
    /// Receive rate of the last report, bytes per second.
    pub x_recv: Option<f64>,
    pub feedback_packets: u64,
    /// R after the last report that the sender took, seconds.
    pub r: Option<f64>,
}

/// The ends of one direction.
#[derive(Debug)]
enum TfrcEnds {
    Simulated(Box<SimulatedEnds>),
    Captured(Box<CapturedEnds>),
    Inferred(Box<InferredReceiver>),
}

/// The directions of one flow in which data of TFRC were seen.
#[derive(Debug, Default)]
pub struct TfrcFlow {
    sides: [Option<TfrcEnds>; 2],
}

impl TfrcFlow {
    /// What the table of flows tells of the data of `side`; None if it sends none by TFRC.
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

    /// Whether losses of the data of `side` belong to no event because nothing tells the round-trip time.
    pub fn lacks_rtt(&self, side: Side) -> bool {
        matches!(&self.sides[side as usize], Some(TfrcEnds::Inferred(receiver)) if receiver.lacks_rtt())
    }

    /// What is to be said of the data of `side` in words.
    pub fn notes(&self, side: Side) -> Vec<String> {
        match self.sides[side as usize].as_ref() {
            Some(TfrcEnds::Simulated(ends)) => ends.notes(),
            Some(TfrcEnds::Captured(ends)) => ends.notes(),
            Some(TfrcEnds::Inferred(receiver)) => receiver.notes(),
            None => Vec::new(),
        }
    }

    /// Take in a packet of a simulation.
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
            ends.take(place, happening, packet, samples);
        }
    }

    /// The ends of the data that `side` sends, which `setup` tells of if they are new; None if a
    /// simulation tells of them.
    pub fn carried(&mut self, side: Side, setup: impl FnOnce() -> CarrierSetup) -> Option<&mut CapturedEnds> {
        let ends = self.sides[side as usize]
            .get_or_insert_with(|| TfrcEnds::Captured(Box::new(CapturedEnds::new(setup()))));
        match ends {
            TfrcEnds::Captured(ends) => Some(ends),
            TfrcEnds::Simulated(_) | TfrcEnds::Inferred(_) => None,
        }
    }

    /// The receiver of the data that `side` sends, which `setup` tells of if it is new, as is `rtt`,
    /// the user's word for the round-trip time in seconds. None if both ends are known.
    pub fn heard(
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

    /// The same if it was there before.
    pub fn known_inferred(&mut self, side: Side) -> Option<&mut InferredReceiver> {
        match self.sides[side as usize].as_mut()? {
            TfrcEnds::Inferred(receiver) => Some(receiver),
            TfrcEnds::Simulated(_) | TfrcEnds::Captured(_) => None,
        }
    }

    /// The data of `side` have no numbers after all.
    pub fn forget_inferred(&mut self, side: Side) {
        if self.known_inferred(side).is_some() {
            self.sides[side as usize] = None;
        }
    }

    /// The same if data of `side` were seen: a report about none says nothing.
    pub fn known(&mut self, side: Side) -> Option<&mut CapturedEnds> {
        match self.sides[side as usize].as_mut()? {
            TfrcEnds::Captured(ends) => Some(ends),
            TfrcEnds::Simulated(_) | TfrcEnds::Inferred(_) => None,
        }
    }

    /// Hand out what still waited of the flow `flow`. To be called once, after the last packet.
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
