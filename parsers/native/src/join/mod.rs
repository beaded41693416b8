//! Several capture files of one trace: their order, overlaps, gaps and clocks.
//!
//! 1. [`order`] peeks at the first packet of each file and sorts by it.
//! 2. [`file_survey`] reads each file once and keeps the ends of its flows; [`neighbours`] compares
//!    it with the file before: what is missing between them, whether the clock stepped, whether they
//!    overlap in time and share packets.
//! 3. [`merge`] reads files that overlap as one, in the order of time, and drops the second copies of
//!    packets.
//!
//! What this means for flows is in `pass/joined.rs`.

pub mod file_survey;
pub mod merge;
pub mod neighbours;
pub mod order;
