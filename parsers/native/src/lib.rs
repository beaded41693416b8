//! The core of tfrctrace: captures in, packets and flows out. Nothing here knows of metrics,
//! reports or the command line, and only `python.rs` knows of Python.
//!
//! The path of one packet:
//!
//! 1. [`input`] opens a path or a pipe, recognises compression, and gives a window of bytes.
//! 2. [`capture`] finds the next record in it: time in ns, interface, captured and wire bytes.
//! 3. [`filter`] drops it if the user's expression, compiled by libpcap, says so.
//! 4. [`wire`] peels layers as far as they go into an [`event::Packet`], or a [`plain::PlainSegment`]
//!    where that holds all; a reason stays where peeling stops early.
//! 5. [`summary`] counts it, so that no packet disappears. [`reading`] does steps 1 to 5, ahead of
//!    the rest, in a thread of its own, and hands packets over in a [`batch::Batch`].
//! 6. [`flow`] finds or opens its conversation and moves that flow's state on.
//! 7. [`bins`] and samples keep what the caller asked for; [`analysis`] ties these steps together.
//! 8. [`columns`] turns flows and samples into Arrow tables, which Python takes over uncopied.

pub mod address;
pub mod analysis;
pub mod asides;
pub mod batch;
pub mod bins;
pub mod capture;
pub mod columns;
pub mod dccp;
pub mod details;
pub mod dissection;
pub mod documents;
pub mod error;
pub mod event;
pub mod filter;
pub mod flow;
pub mod frame;
pub mod input;
pub mod links;
pub mod pair;
pub mod plain;
#[cfg(feature = "python")]
mod python;
pub mod reading;
pub mod replay;
pub mod samples;
pub mod seq;
pub mod source;
pub mod summary;
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod tfrc;
#[cfg(test)]
mod vectors;
pub mod wire;
pub mod words;
