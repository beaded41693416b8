//! Where on the path of a connection the capture was taken.
//!
//! Several signs indicate one end or the middle, none with certainty. Each has a weight; the place
//! with the largest weight is the result, and its share of the total weight is the confidence.

use serde::{Deserialize, Serialize};

use super::{Connection, HalfConnection};
use crate::flow::tcp::classify::class::Class;
use crate::packet::key::Side;

/// Confidence from which counts that are not visible at a vantage are left out.
pub const BELIEVED: f64 = 0.75;
/// Initial TTL values of operating systems.
const INITIAL_TTLS: [u8; 3] = [64, 128, 255];
/// A round trip shorter than this, in microseconds, is within a host, not across a network.
const MIN_PATH_US: u32 = 1_000;
/// Losses that make a pattern.
const MIN_LOSSES: u32 = 3;

named_enum! {
    /// Where one direction's data were captured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Vantage {
        /// At the sending end.
        Sender = "sender",
        /// At the receiving end.
        Receiver = "receiver",
        Middle = "middle",
    }
}

impl Vantage {
    /// The same place for the data of the other direction.
    pub fn of_other_direction(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
            Self::Middle => Self::Middle,
        }
    }
}

/// A place, if its confidence is high enough.
pub fn believed(found: Option<(Vantage, f64)>) -> Option<Vantage> {
    found.filter(|(_, confidence)| *confidence >= BELIEVED).map(|(vantage, _)| vantage)
}

/// Weights of the signs for [`Side::Low`], [`Side::High`] and the middle.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct VantageEvidence([f64; 3]);

impl VantageEvidence {
    /// Add a sign that the capture is near an end, or with None in the middle.
    pub(in crate::flow) fn add(&mut self, near: Option<Side>, weight: f64) {
        let place = near.map_or(2, |side| side as usize);
        if let Some(sum) = self.0.get_mut(place) {
            *sum += weight;
        }
    }

    /// Add the signs of another flow between the same hosts.
    pub fn add_all(&mut self, Self(others): Self) {
        for (sum, weight) in self.0.iter_mut().zip(others) {
            *sum += weight;
        }
    }

    /// The place with the largest weight, and the confidence: its share, less the uncertainty of a
    /// single weak sign.
    fn place(self) -> Option<(Option<Side>, f64)> {
        let [low, high, middle] = self.0;
        let most = low.max(high).max(middle);
        if most <= 0.0 {
            return None;
        }
        let place = match most {
            _ if middle == most => None,
            _ if low == most => Some(Side::Low),
            _ => Some(Side::High),
        };
        Some((place, most / (low + high + middle) * (1.0 - 0.5_f64.powf(most))))
    }

    /// The same as seen from the data of `side`.
    pub(in crate::flow) fn conclusion(self, side: Side) -> Option<(Vantage, f64)> {
        let (near, confidence) = self.place()?;
        let vantage = match near {
            None => Vantage::Middle,
            Some(near) if near == side => Vantage::Sender,
            Some(_) => Vantage::Receiver,
        };
        Some((vantage, confidence))
    }

    /// The end that responds at once in the handshake is near.
    pub(in crate::flow) fn add_handshake(&mut self, [low_us, high_us]: [u32; 2]) {
        let (shorter, longer) = (low_us.min(high_us), low_us.max(high_us));
        if longer < MIN_PATH_US {
            return;
        }
        let near = if low_us < high_us { Side::Low } else { Side::High };
        match longer / shorter.max(1) {
            10.. => self.add(Some(near), 3.0),
            3..10 => self.add(Some(near), 1.0),
            _ => self.add(None, 2.0),
        }
    }

    /// Time from data of `side` to their acknowledgement, as a share of the whole round-trip time:
    /// all of it at the sender, nothing at the receiver.
    pub(in crate::flow) fn add_turnaround(&mut self, side: Side, share: f64) {
        match share {
            0.4.. => self.add(Some(side), 2.0),
            0.15..0.4 => self.add(None, 2.0),
            _ => self.add(Some(side.other()), 2.0),
        }
    }

    /// A packet with an initial TTL crossed no router and comes from nearby. An end that sent
    /// nothing has a TTL of 0.
    pub(in crate::flow) fn add_hops(&mut self, ttls: [u8; 2]) {
        if ttls.contains(&0) {
            return;
        }
        match ttls.map(|ttl| INITIAL_TTLS.contains(&ttl)) {
            [true, false] => self.add(Some(Side::Low), 2.0),
            [false, true] => self.add(Some(Side::High), 2.0),
            [false, false] => self.add(None, 2.0),
            // A path without routers.
            [true, true] => {}
        }
    }
}

impl Connection {
    /// Where the data of `side` were captured, and the confidence from 0 to 1. None without any
    /// sign.
    pub fn vantage(&self, side: Side) -> Option<(Vantage, f64)> {
        self.signs_of_place().conclusion(side)
    }

    pub(in crate::flow) fn signs_of_place(&self) -> VantageEvidence {
        let mut signs = VantageEvidence::default();
        signs.add_handshake([Side::Low, Side::High].map(|side| self.half(side).path.handshake_us.0));
        signs.add_hops([Side::Low, Side::High].map(|side| self.half(side).on_wire.ttl));
        if self.halves.iter().any(|half| half.rare_counts().is_forwarded) {
            // The capture shows a router's two interfaces.
            signs.add(None, 4.0);
        }
        for side in [Side::Low, Side::High] {
            self.add_turnaround(side, &mut signs);
            self.add_losses(side, &mut signs);
        }
        signs
    }

    /// At the sender an acknowledgement takes the whole round trip, at the receiver nothing.
    fn add_turnaround(&self, side: Side, signs: &mut VantageEvidence) {
        let half = self.half(side);
        let path_us = half.path.handshake_us.1;
        let measured = half.path.round_trips.measured();
        let range = &measured.all.range;
        let Some(shortest_ms) = range.min_ms().filter(|_| range.count() > MIN_LOSSES.into()) else {
            return;
        };
        if path_us < MIN_PATH_US {
            return;
        }
        match shortest_ms * 1e3 / f64::from(path_us) {
            0.8.. => signs.add(Some(side), 2.0),
            0.2..0.8 => signs.add(None, 1.0),
            _ => signs.add(Some(side.other()), 1.0),
        }
    }

    /// Losses upstream of the capture leave holes, losses downstream are retransmitted.
    fn add_losses(&self, side: Side, signs: &mut VantageEvidence) {
        let half: &HalfConnection = self.half(side);
        let tally = half.tally();
        let before = half.classes().of(Class::Unseen);
        match (before >= MIN_LOSSES, tally.retransmitted_packets >= MIN_LOSSES) {
            (true, true) => signs.add(None, 1.0),
            (true, false) if tally.retransmitted_packets == 0 => signs.add(Some(side.other()), 1.0),
            (false, true) if before == 0 => signs.add(Some(side), 1.0),
            _ => {}
        }
    }
}
