//! Loss recovery of one direction: SACK blocks, retransmissions, and which of them were spurious.

pub(crate) mod episode;
pub(crate) mod recovery_state;
pub(crate) mod retransmission;
pub(crate) mod sacks;
pub(crate) mod scoreboard;
pub(crate) mod spurious;
pub(crate) mod upstream_loss;
