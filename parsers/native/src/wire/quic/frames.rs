//! Frames of Initial packets (RFC 9000 sections 12.4 and 19).

use super::super::rest::Rest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    Ping,
    /// The largest packet number that arrived.
    Ack {
        largest: u64,
    },
    /// A piece of the handshake.
    Crypto {
        offset: u64,
        data: &'a [u8],
    },
    Close,
}

impl Frame<'_> {
    /// Whether a receiver acknowledges it at once (RFC 9000 section 13.2.1).
    pub fn elicits_ack(&self) -> bool {
        matches!(self, Self::Ping | Self::Crypto { .. })
    }
}

/// The frames of an Initial packet; they end at one that must not be there.
pub struct Frames<'a>(Rest<'a>);

impl<'a> Frames<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(Rest(bytes))
    }

    /// Read an acknowledgement; with ECN it has three counts more.
    fn ack(&mut self, has_ecn: bool) -> Option<Frame<'a>> {
        let rest = &mut self.0;
        let largest = rest.number()?;
        let _delay = rest.number()?;
        let ranges = rest.number()?;
        let _first_range = rest.number()?;
        for _ in 0..ranges {
            let _gap_and_length = (rest.number()?, rest.number()?);
        }
        for _ in 0..if has_ecn { 3 } else { 0 } {
            rest.number()?;
        }
        Some(Frame::Ack { largest })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let padding = self.0.0.iter().take_while(|byte| **byte == 0).count();
        self.0.take(padding)?;
        match self.0.number()? {
            1 => Some(Frame::Ping),
            kind @ 2..=3 => self.ack(kind == 3),
            6 => {
                let offset = self.0.number()?;
                let length = self.0.number()?;
                let data = self.0.take(usize::try_from(length).ok()?)?;
                Some(Frame::Crypto { offset, data })
            }
            0x1c => {
                self.0 = Rest(&[]);
                Some(Frame::Close)
            }
            _ => None,
        }
    }
}
