//! Captures of the same packets, taken at two or more points of their path.
//!
//! 1. [`first_reading`] reads each capture and keeps a sample of its packets, the same ones in
//!    both ([`hash_sampling`]): [`packet_identity`] defines the identity of a packet.
//! 2. [`routes`] learns from the packets in both samples which capture a host's packets
//!    pass first, and [`clock`] how the two clocks differ.
//! 3. [`merge`] reads both captures again as one, in the order of time, and [`unmatched`] finds for
//!    each packet of one capture the same packet of the other. [`outside_loss`] finds losses
//!    upstream of the one and downstream of the other in TCP.
//!
//! More than two captures have one clock: [`network_routes`] learns the order in which packets pass
//! them, and [`hops`] follows each packet from one to the next.
//!
//! The first capture's clock is the reference of all times. The meaning of the packets for their
//! flows is in `pass/pair/mod.rs`.

pub mod by_side;
pub mod clock;
pub mod convex_hull;
pub mod first_reading;
pub mod hash_sampling;
pub mod hops;
pub mod merge;
pub mod network_routes;
pub mod outside_loss;
pub mod packet_identity;
pub mod routes;
pub mod unmatched;

/// Most captures of one network.
pub const MOST_CAPTURES: usize = 250;

/// One of the captures, by its place among those named; the clock of the first is the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tap(pub u8);

impl Tap {
    pub const FIRST: Self = Self(0);
    pub const SECOND: Self = Self(1);

    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The captures that packets of one direction pass first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteEnds {
    pub near: Tap,
    pub far: Tap,
}

impl RouteEnds {
    /// Those of the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { near: self.far, far: self.near }
    }
}
