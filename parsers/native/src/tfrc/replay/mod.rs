//! Rate algorithms of TFRC run offline: what a sender would have allowed itself, given the reports that
//! a trace shows and what it sent between them.
//!
//! Nothing here knows where reports come from. [`sender_variant`] makes the state machines of [`crate::tfrc`]
//! alike and says why each decision fell, and [`drive_sender`] drives one through a recording. Where a trace shows no
//! reports, [`simulate`] lets a receiver make them of arrivals, and [`inferred_feedback`] of the rounds and losses of a TCP.

pub mod drive_sender;
pub mod inferred_feedback;
mod reverse_delay;
pub mod rfc_parameters;
pub mod sender_variant;
pub mod simulate;

/// Seconds of a time in ns, counted from `origin_ns`: small enough that a float keeps every ns.
pub fn seconds(time_ns: i64, origin_ns: i64) -> f64 {
    time_ns.saturating_sub(origin_ns) as f64 / 1e9
}

/// The way back; a time that no integer holds saturates.
pub fn nanoseconds(time: f64, origin_ns: i64) -> i64 {
    origin_ns.saturating_add((time * 1e9).round() as i64)
}
