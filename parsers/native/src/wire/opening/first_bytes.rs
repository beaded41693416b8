//! The first bytes of TCP connections, until they show what the client opens with.
//!
//! They are put together where packets are read, which alone has their bytes. A connection is awaited from its SYN until
//! its first bytes are known, so most packets are of none that is.

use std::collections::VecDeque;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::Reading;
use super::pieces::Pieces;
use crate::packet::encapsulation::Lane;
use crate::packet::event::{Network, TcpFlags};
use crate::packet::key::{FlowKey, Ipv4Ends, Side};
use crate::packet::opening::Opening;
use crate::packet::plain::PlainSegment;
use crate::packet::seq::SeqNumber;

/// Bytes of a message; those with keys against quantum computers have some 2,000.
pub const MOST_BYTES: usize = 1 << 14;
/// Those of the records around it.
const MOST_STREAM: usize = MOST_BYTES + 1_024;
/// Connections that are awaited; the oldest is given up.
const MOST_AWAITED: usize = 8_192;
/// Bytes that are kept for all of them.
const MOST_KEPT: usize = 4 << 20;
/// Counters of the filter.
const SLOTS: usize = 4_096;

/// The packets of a client.
type Client = (FlowKey, Side, Lane);

/// A connection whose first bytes are not known.
#[derive(Debug, Serialize, Deserialize)]
struct Awaited {
    /// Sequence number of its first byte.
    first: SeqNumber,
    pieces: Pieces,
    /// Whether it was passed on that they begin as those of TLS or HTTP do.
    has_begun: bool,
}

/// Connections whose first bytes are awaited.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FirstBytes {
    clients: HashMap<Client, Awaited>,
    /// The oldest first; some are no longer awaited.
    order: VecDeque<Client>,
    /// Clients by a few bits of their ends: most packets need no other look. Empty before the first one.
    slots: Vec<u16>,
    /// Bytes that are kept.
    kept: usize,
}

#[inline(always)]
fn slot(ends: &Ipv4Ends) -> usize {
    let mixed = ends.addresses ^ ends.addresses >> 32 ^ u64::from(ends.ports) << 8;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
}

impl FirstBytes {
    /// Whether no connection is awaited.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.clients.is_empty()
    }

    /// What a plain segment of these captured bytes completes, if anything.
    pub fn on_plain(&mut self, segment: &PlainSegment, frame: &[u8]) -> Option<Opening> {
        const HEADERS: usize = 14 + 20;
        if segment.payload == 0 || !self.may_await(&segment.ends) {
            return None;
        }
        let payload = frame.get(HEADERS + usize::from(segment.header_bytes)..).unwrap_or_default();
        let (key, side) = FlowKey::of(&segment.endpoints());
        self.on_payload((key, side, Lane::OUTSIDE), segment.tcp.seq, (payload, segment.payload))
    }

    /// The same of any segment, whose payload is at the end of the captured bytes.
    pub fn on_segment(&mut self, network: &Network, captured: &[u8]) -> Option<Opening> {
        let (flags, length) = (network.tcp.flags, network.payload_bytes.unwrap_or(0));
        let is_syn = flags.has(TcpFlags::SYN);
        let may_concern = is_syn || length > 0 && self.may_await(&Ipv4Ends::of(&network.endpoints));
        if !may_concern || network.fragment.is_some() {
            return None;
        }
        let (key, side) = FlowKey::of(&network.endpoints);
        let client = (key, side, network.lane);
        let mut seq = network.tcp.seq;
        if is_syn && flags.has(TcpFlags::ACK) {
            // It names the client's first byte, which the SYN has told if it was captured.
            let client = (key, side.other(), network.lane);
            if network.lane.is_outside() && !self.clients.contains_key(&client) {
                self.await_client(client, SeqNumber(network.tcp.ack));
            }
            return None;
        }
        if is_syn {
            // The SYN has a number of its own (RFC 9293 section 3.4).
            seq = seq.wrapping_add(1);
            self.await_client(client, SeqNumber(seq));
        }
        let start = captured.len().saturating_sub(network.captured_payload as usize);
        self.on_payload(client, seq, (captured.get(start..).unwrap_or_default(), length))
    }

    /// Whether a client with these ends may be among them.
    #[inline(always)]
    fn may_await(&self, ends: &Ipv4Ends) -> bool {
        self.slots.get(slot(ends)).is_some_and(|clients| *clients > 0)
    }

    #[inline(never)]
    fn await_client(&mut self, client: Client, first: SeqNumber) {
        if let Some(known) = self.clients.get(&client) {
            if known.first == first {
                return;
            }
            self.forget(&client);
        }
        self.make_room();
        self.order.push_back(client);
        self.slots.resize(SLOTS, 0);
        self.slots[slot(&ends_of(&client))] += 1;
        self.clients.insert(client, Awaited { first, pieces: Pieces::default(), has_begun: false });
    }

    fn forget(&mut self, client: &Client) {
        if let Some(known) = self.clients.remove(client) {
            self.slots[slot(&ends_of(client))] -= 1;
            self.kept -= known.pieces.size();
        }
    }

    /// How many connections and bytes are kept.
    #[cfg(test)]
    pub fn sizes(&self) -> (usize, usize) {
        (self.clients.len(), self.kept)
    }

    /// Give up the oldest while there are too many connections or bytes.
    fn make_room(&mut self) {
        while self.order.len() >= MOST_AWAITED || self.kept > MOST_KEPT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forget(&oldest);
        }
    }

    /// Take what was captured of so many bytes of payload.
    #[inline(never)]
    fn on_payload(&mut self, client: Client, seq: u32, (captured, length): (&[u8], u32)) -> Option<Opening> {
        if self.kept > MOST_KEPT {
            self.make_room();
        }
        let known = self.clients.get_mut(&client)?;
        let captured = captured.get(..length as usize).unwrap_or(captured);
        // Bytes before the first are those of a probe.
        let start = usize::try_from(SeqNumber(seq).since(known.first)).ok()?;
        // What was cut, and what the capture lost before such data, does not come again.
        let is_hopeless = captured.len() < length as usize || start >= MOST_STREAM;
        let at_once = (start == 0 && known.pieces.is_empty()).then(|| Reading::of(captured));
        let reading = match at_once {
            None | Some(Reading::Part { .. }) => {
                let before = known.pieces.size();
                known.pieces.add(start, captured, MOST_STREAM);
                self.kept = self.kept - before + known.pieces.size();
                let beginning = known.pieces.beginning();
                match Reading::of(beginning) {
                    Reading::Part { .. } if beginning.len() >= MOST_STREAM => Reading::Damaged,
                    reading => reading,
                }
            }
            Some(reading) => reading,
        };
        let shown = match reading {
            Reading::Part { is_certain } => {
                let is_new = is_certain && !known.has_begun;
                known.has_begun |= is_certain;
                if is_hopeless {
                    self.forget(&client);
                }
                return is_new.then_some(Opening::Part);
            }
            Reading::Whole(opening) => Some(opening),
            Reading::Damaged => Some(Opening::Unread),
            Reading::OtherProtocol => known.has_begun.then_some(Opening::Unread),
        };
        self.forget(&client);
        shown
    }
}

fn ends_of((key, side, _): &Client) -> Ipv4Ends {
    Ipv4Ends::of(&key.endpoints(*side))
}
