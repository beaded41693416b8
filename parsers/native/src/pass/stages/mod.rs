//! The stages that a packet passes, one file or folder each.

pub(super) mod appended_capture;
pub(super) mod batches;
pub(super) mod datagrams;
pub(super) mod flow_ends;
pub(super) mod flows;
pub(super) mod follow_runs;
pub(super) mod frames;
pub(super) mod groups;
pub(super) mod interface_duplicates;
mod media;
pub(super) mod runs;
mod simulator;
pub(super) mod sweeps;
