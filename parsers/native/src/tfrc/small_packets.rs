//! TFRC for small packets: RFC 4828 (TFRC-SP) and RFC 5622 (CCID 4).

use serde::{Deserialize, Serialize};

use super::equation::Equation;

/// The segment size that the equation is evaluated with, in bytes (RFC 4828 section 3.2).
const S_NOMINAL: f64 = 1460.0;
/// The least time between two packets in seconds (RFC 4828 section 3.4).
pub const LEAST_INTERVAL: f64 = 0.010;

/// Bytes of header that a TFRC-SP packet counts.
pub const HEADER_TFRC_SP: f64 = 40.0;
/// The same for CCID 4.
pub const HEADER_CCID4: f64 = 36.0;

/// Payload of packets of `s_true` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmallPacketRate {
    /// The equation's rate for packets of full size.
    pub x_nominal: f64,
    /// Of that, payload: headers of `header` bytes take their share.
    pub x_payload: f64,
    /// The same with at most one packet each 10 ms.
    pub x_limited: f64,
}

impl SmallPacketRate {
    /// None where the equation is undefined, or without payload.
    pub fn new(equation: &Equation, rtt: f64, t_rto: f64, p: f64, s_true: f64, header: f64) -> Option<Self> {
        let x_nominal = equation.rate(S_NOMINAL, rtt, t_rto, p).filter(|_| s_true > 0.0)?;
        let x_payload = x_nominal * s_true / (s_true + header);
        Some(Self { x_nominal, x_payload, x_limited: x_payload.min(s_true / LEAST_INTERVAL) })
    }
}
