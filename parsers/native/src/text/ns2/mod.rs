//! ns-2's packet traces.

use super::{LineFormat, Names, Outcome};
use crate::event::Packet;

/// Whether a line looks as if ns-2 had written it.
pub fn recognises(line: &[u8]) -> bool {
    line.starts_with(b"+ ")
}

/// Reader of all forms.
#[derive(Default)]
pub struct Ns2 {
    nodes: Names,
}

impl LineFormat for Ns2 {
    fn read(&mut self, _number: u64, _line: &[u8], _packet: &mut Packet) -> Outcome {
        Outcome::Other
    }

    fn places(&self) -> &Names {
        &self.nodes
    }
}
