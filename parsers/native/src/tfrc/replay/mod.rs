//! Rate algorithms of TFRC run offline: the rate that a sender would have allowed itself, given the
//! reports in a trace and the packets sent between them.
//!
//! Nothing here knows the source of reports. [`sender_variant`] gives the state machines of
//! [`crate::tfrc`] one interface and the reason of each decision, and [`drive_sender`] drives one
//! through a recording. Where a trace has no reports, [`simulate`] has a receiver generate them
//! from arrivals, and [`inferred_feedback`] from the rounds and losses of a TCP connection.

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

/// The inverse; a time out of range saturates.
pub fn nanoseconds(time: f64, origin_ns: i64) -> i64 {
    origin_ns.saturating_add((time * 1e9).round() as i64)
}
