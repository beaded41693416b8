//! Two captures of the same packets, taken at two places of their path.
//!
//! 1. [`survey`] reads each capture for itself and keeps a sample of its packets, the same ones in
//!    both ([`sample`]): [`identity`] says by what a packet is known again.
//! 2. [`routes`] learns from the packets that are in both samples which capture a host's packets
//!    pass first, and [`clock`] how the two clocks differ.
//! 3. [`merge`] reads both captures again as one, in the order of time, and [`waiting`] finds for
//!    each packet of one capture the same packet of the other. [`outside`] tells what TCP shows of
//!    losses before the one and behind the other.
//!
//! The first capture's clock is the reference: all times are told by it. What the packets mean to
//! their flows is in `analysis/pairing.rs`.

pub mod by_side;
pub mod clock;
mod hull;
pub mod identity;
pub mod merge;
pub mod outside;
pub mod routes;
pub mod sample;
pub mod survey;
pub mod waiting;

/// One of the two captures, by the place that the user gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// The one named first; its clock is the reference.
    First = 0,
    /// The other.
    Second = 1,
}

impl Tap {
    /// Both, in order.
    pub const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}
