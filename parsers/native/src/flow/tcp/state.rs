//! States of a connection.

use super::Connection;
use crate::packet::key::Side;

named_enum! {
    /// State of a connection at the end of the capture.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ConnectionState {
        /// SYN without an answer.
        Attempted = "attempted",
        /// SYN answered by RST.
        Refused = "refused",
        /// SYN and SYN/ACK, no final ACK.
        Opening = "opening",
        Established = "established",
        /// One side has sent FIN, not both.
        HalfClosed = "half_closed",
        Closed = "closed",
        Reset = "reset",
        /// No SYN, FIN or RST in the capture.
        Midstream = "midstream",
    }
}

impl ConnectionState {
    /// Whether nothing but repetitions may follow.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Closed | Self::Reset | Self::Refused)
    }
}

impl Connection {
    /// Whether a side has ended its stream, by FIN or by the reset of the connection.
    pub(in crate::flow) fn has_ended(&self, side: Side) -> bool {
        self.half(side).fin || self.was_reset_by(side)
    }

    pub(in crate::flow) fn was_reset_by(&self, side: Side) -> bool {
        self.reset_by == Some(side)
    }

    pub fn state(&self) -> ConnectionState {
        let fins = self.halves.iter().filter(|half| half.fin).count();
        let data = self.halves.iter().any(|half| half.sent.unique_bytes > 0);
        let syns = self.halves.iter().any(|half| half.syns.count > 0);
        match (self.reset_by, fins) {
            (_, 2) => ConnectionState::Closed,
            (Some(by), _) => match self.opener {
                Some(opener) if opener != by && self.syn_ack_ns().is_none() && !data => {
                    ConnectionState::Refused
                }
                _ => ConnectionState::Reset,
            },
            (None, 1) => ConnectionState::HalfClosed,
            (None, _) if !syns => ConnectionState::Midstream,
            (None, _) if self.handshake_done => ConnectionState::Established,
            (None, _) if self.syn_ack_ns().is_some() => ConnectionState::Opening,
            (None, _) => ConnectionState::Attempted,
        }
    }
}
