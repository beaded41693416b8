//! Client hellos that fill several Initial packets, which may come in any order.

use std::collections::VecDeque;

use hashbrown::HashMap;

use serde::{Deserialize, Serialize};

use crate::packet::opening::ClientHello;
use crate::wire::opening::client_hello::{client_hello, length};
use crate::wire::opening::pieces::Pieces;
use crate::wire::quic::frames::{Frame, Frames};

/// Bytes of a message; those with keys against quantum computers have some 2,000.
const MOST_BYTES: usize = 8_192;
/// Messages that are put together at a time; the oldest is given up.
const MOST_MESSAGES: usize = 2_048;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ClientHellos {
    messages: HashMap<u32, Pieces>,
    /// Flows in the order of their first pieces; of some the message is complete.
    order: VecDeque<u32>,
}

impl ClientHellos {
    /// Add the pieces among the frames of an Initial packet of a flow's client; returns the message when it is whole.
    pub fn on_frames(&mut self, flow: u32, frames: &[u8]) -> Option<ClientHello> {
        let mut message = self.messages.remove(&flow);
        let is_new = message.is_none();
        let pieces = message.get_or_insert_default();
        for frame in Frames::of(frames) {
            if let Frame::Crypto { offset, data } = frame {
                pieces.add(usize::try_from(offset).unwrap_or(usize::MAX), data, MOST_BYTES);
            }
        }
        let beginning = pieces.beginning();
        match length(beginning) {
            Ok(Some(length)) if length <= beginning.len() => return client_hello(beginning.get(..length)?),
            Ok(length) if length.is_none_or(|length| length <= MOST_BYTES) && !pieces.is_empty() => {}
            // Another message, a longer one, or none.
            _ => return None,
        }
        if is_new {
            self.make_room();
            self.order.push_back(flow);
        }
        self.messages.extend(message.map(|message| (flow, message)));
        None
    }

    fn make_room(&mut self) {
        while self.order.len() >= MOST_MESSAGES {
            if let Some(oldest) = self.order.pop_front() {
                self.messages.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::vectors::{from_hex, vectors};

    /// The message of RFC 9001 as frames of so many bytes each.
    fn pieces(bytes: usize) -> Vec<Vec<u8>> {
        let frames = from_hex(vectors("quic_initial.json")[0]["expect"]["frames"].as_str().unwrap());
        let Some(Frame::Crypto { data, .. }) = Frames::of(&frames).next() else { panic!("no handshake") };
        let frame = |(at, piece): (usize, &[u8])| {
            [&[6, 0x40 | ((at * bytes) >> 8) as u8, (at * bytes) as u8, piece.len() as u8], piece].concat()
        };
        data.chunks(bytes).enumerate().map(frame).collect()
    }

    #[test]
    fn test_pieces_in_any_order_are_put_together() {
        for reverse in [false, true] {
            let mut frames = pieces(50);
            if reverse {
                frames.reverse();
            }
            let mut hellos = ClientHellos::default();
            let (last, others) = frames.split_last().unwrap();
            for frame in others {
                assert_eq!(hellos.on_frames(7, frame), None);
                // Another flow, and a piece that comes again.
                assert_eq!(hellos.on_frames(8, frame), None);
                assert_eq!(hellos.on_frames(7, frame), None);
            }
            let hello = hellos.on_frames(7, last).unwrap();
            assert_eq!(hello.server_name.as_deref(), Some("example.com"));
            assert!(!hellos.messages.contains_key(&7) && hellos.messages.contains_key(&8));
        }
    }

    #[test]
    fn test_memory_is_bounded() {
        let first = &pieces(50)[0];
        let mut hellos = ClientHellos::default();
        for flow in 0..3 * MOST_MESSAGES as u32 {
            assert_eq!(hellos.on_frames(flow, first), None);
        }
        assert_eq!((hellos.messages.len(), hellos.order.len()), (MOST_MESSAGES, MOST_MESSAGES));
        // A piece far after, and a message longer than any.
        for frame in [&[6, 0x80, 0, 0x40, 0, 1, 1][..], &[6, 0, 4, 1, 1, 0, 0]] {
            assert_eq!(hellos.on_frames(u32::MAX, frame), None);
            assert!(!hellos.messages.contains_key(&u32::MAX));
        }
    }
}
