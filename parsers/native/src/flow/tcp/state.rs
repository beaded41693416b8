//! How far a connection has come.

use super::Connection;
/// State of a connection at the end of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// SYN without an answer.
    Attempted,
    /// SYN answered by RST.
    Refused,
    /// SYN and SYN/ACK, no final ACK.
    Opening,
    /// Open.
    Established,
    /// One side has sent FIN.
    HalfClosed,
    /// Both have.
    Closed,
    /// RST.
    Reset,
    /// No SYN, FIN or RST in the capture.
    Midstream,
}

impl State {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attempted => "attempted",
            Self::Refused => "refused",
            Self::Opening => "opening",
            Self::Established => "established",
            Self::HalfClosed => "half_closed",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Midstream => "midstream",
        }
    }
}

impl Connection {
    /// State as far as seen.
    pub fn state(&self) -> State {
        let fins = self.halves.iter().filter(|half| half.fin).count();
        let data = self.halves.iter().any(|half| half.unique_bytes > 0);
        let syns = self.halves.iter().any(|half| half.syns > 0);
        match (self.reset_by, fins) {
            (_, 2) => State::Closed,
            (Some(by), _) => match self.opener {
                Some(opener) if opener != by && self.syn_ack_ns().is_none() && !data => State::Refused,
                _ => State::Reset,
            },
            (None, 1) => State::HalfClosed,
            (None, _) if !syns => State::Midstream,
            (None, _) if self.handshake_done => State::Established,
            (None, _) if self.syn_ack_ns().is_some() => State::Opening,
            (None, _) => State::Attempted,
        }
    }
}
