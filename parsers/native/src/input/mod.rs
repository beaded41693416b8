//! One source opened: bytes, a capture, a text trace or a document, read into packets.

pub mod bytes;
pub mod capture;
pub mod documents;
pub mod export;
pub mod filter;
pub mod reading;
pub mod sender_clocks;
pub mod source;
pub mod source_summary;
pub mod stretch;
pub mod text;
pub mod time_order;
