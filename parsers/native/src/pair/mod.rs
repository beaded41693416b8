//! Two captures of the same packets, taken at two points of their path.
//!
//! 1. [`first_reading`] reads each capture and keeps a sample of its packets, the same ones in
//!    both ([`hash_sampling`]): [`packet_identity`] defines the identity of a packet.
//! 2. [`routes`] learns from the packets in both samples which capture a host's packets
//!    pass first, and [`clock`] how the two clocks differ.
//! 3. [`merge`] reads both captures again as one, in the order of time, and [`unmatched`] finds for
//!    each packet of one capture the same packet of the other. [`outside_loss`] finds losses
//!    upstream of the one and downstream of the other in TCP.
//!
//! The first capture's clock is the reference of all times. The meaning of the packets for their
//! flows is in `pass/pair/mod.rs`.

pub mod by_side;
pub mod clock;
mod convex_hull;
pub mod first_reading;
pub mod hash_sampling;
pub mod merge;
pub mod outside_loss;
pub mod packet_identity;
pub mod routes;
pub mod unmatched;

/// One of the two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// The first one named; its clock is the reference.
    First = 0,
    Second = 1,
}

impl Tap {
    pub const BOTH: [Self; 2] = [Self::First, Self::Second];

    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}
