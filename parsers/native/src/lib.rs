//! The core of tfrctrace: captures in, packets and flows out. Nothing here knows of metrics,
//! reports or the command line, and only `python/` knows of Python.
//!
//! The path of one packet:
//!
//! 1. [`input::bytes`] opens a path or a pipe, recognises compression, and gives a window of bytes.
//! 2. [`input::capture`] finds the next record in it: time in ns, interface, captured and wire bytes.
//! 3. [`input::filter`] drops it if the user's expression, compiled by libpcap, says so.
//! 4. [`wire`] peels layers as far as they go into an [`packet::event::Packet`], or a [`packet::plain::PlainSegment`]
//!    where that holds all; a reason stays where peeling stops early.
//! 5. [`input::source_summary`] counts it, so that no packet disappears. [`input::reading`] does steps 1 to 5, ahead of
//!    the rest, in a thread of its own, and hands packets over in a [`packet::batch::Batch`].
//! 6. [`flow`] finds or opens its conversation and moves that flow's state on, with the help of `threads`.
//! 7. [`flow::bins`] and samples keep what the caller asked for; [`pass`] ties these steps together.
//! 8. [`tables`] declares every column and turns flows and samples into Arrow tables, which Python takes over
//!    uncopied.

#[macro_use]
mod named_enum;

pub mod error;
pub mod flow;
pub mod groups;
pub mod input;
pub mod join;
mod long_array;
pub mod packet;
pub mod pair;
pub mod pass;
pub mod plural;
#[cfg(feature = "python")]
mod python;
pub mod tables;
#[doc(hidden)]
pub mod testing;
pub mod tfrc;
mod threads;
pub mod wire;
