//! The handshake: who answers whom, and what Initial packets contain.

use smallvec::SmallVec;

use serde::{Deserialize, Serialize};

use crate::packet::key::Side;
use crate::wire::quic::frames::{Frame, Frames};
use crate::wire::quic::initial::{InitialKeys, Opened, Role, is_retry_to};
use crate::wire::quic::{ConnectionId, Kind, LongHeader, LongPacket};

/// Connection identifiers of which keys are made: the client's first choice, and that of a Retry packet.
const MOST_KEYS: usize = 3;
/// Initial packets of a side that may be acknowledged later.
const MOST_UNANSWERED: usize = 16;
/// Initial packets that are opened of a flow.
const MOST_TRIALS: u8 = 64;

/// The long headers of one side.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ids {
    source: ConnectionId,
    /// Of the first header, and of the last.
    destinations: [ConnectionId; 2],
    version: u32,
    first_ns: i64,
    last_ns: i64,
}

impl Ids {
    /// Whether all its headers were in one datagram.
    fn is_one_datagram(&self) -> bool {
        self.first_ns == self.last_ns
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Handshake {
    ids: [Option<Box<Ids>>; 2],
    /// Destinations that the client chose, of which the keys are made.
    key_ids: SmallVec<[ConnectionId; 1]>,
    /// Numbers and times of Initial packets that the other side must acknowledge.
    unanswered: [Vec<(u64, i64)>; 2],
    trials: u8,
}

/// What a packet showed.
#[derive(Debug, Default)]
pub struct Shown {
    /// Whether the flow must be QUIC.
    pub is_quic: bool,
    pub client: Option<Side>,
    pub is_opened: bool,
    /// The side whose packet it answers, and the time since then.
    pub answer: Option<(Side, u64)>,
    /// Contents of an Initial packet.
    pub frames: Vec<u8>,
}

impl Handshake {
    /// Remember the identifiers of a header of `side`; returns whether the source is a new one.
    pub fn note_ids(&mut self, side: Side, header: &LongHeader, time_ns: i64) {
        let ids = self.ids[side as usize].get_or_insert_with(|| {
            Box::new(Ids {
                source: header.source,
                destinations: [header.destination; 2],
                version: header.version,
                first_ns: time_ns,
                last_ns: time_ns,
            })
        });
        ids.source = header.source;
        ids.destinations[1] = header.destination;
        ids.version = header.version;
        ids.last_ns = time_ns;
    }

    /// The same for a packet of a known version; returns whether its source is a new one.
    pub fn note_long(&mut self, side: Side, time_ns: i64, packet: &LongPacket<'_>) -> bool {
        let known = self.ids[side as usize].as_ref().map(|ids| ids.source);
        if packet.kind != Kind::Retry {
            self.note_ids(side, &packet.header, time_ns);
        }
        known != Some(packet.header.source)
    }

    /// Whether a header of `side` returns both identifiers of the other side's.
    pub fn is_returned(&self, side: Side, header: &LongHeader) -> bool {
        self.ids[side.other() as usize].as_ref().is_some_and(|client| {
            client.source == header.destination && client.destinations[1] == header.source
        })
    }

    /// Process a packet of `side` that was noted.
    pub fn on_packet(
        &mut self,
        side: Side,
        client: Option<Side>,
        time_ns: i64,
        packet: &LongPacket<'_>,
    ) -> Shown {
        if packet.kind == Kind::Retry {
            return self.take_retry(side, time_ns, packet);
        }
        if packet.kind == Kind::Initial
            && let Some((opened, role)) = self.open(side, client, packet)
        {
            let client = if role == Role::Client { side } else { side.other() };
            let answer = self.take_frames(side, time_ns, &opened).map(|rtt_ns| (side.other(), rtt_ns));
            return Shown {
                is_quic: true,
                client: Some(client),
                is_opened: true,
                answer,
                frames: opened.frames,
            };
        }
        let other =
            self.ids[side.other() as usize].as_deref().copied().filter(|other| is_answer(packet, other));
        Shown {
            is_quic: other.is_some(),
            // Otherwise the capture began later: both sides know each other's choice.
            client: other.filter(|other| other.destinations[0] != packet.header.source).map(|_| side.other()),
            answer: other.and_then(|other| self.answer(side, time_ns, packet, &other)),
            ..Shown::default()
        }
    }

    /// A server wants to see the client's address again. The tag proves that it has the client's packet.
    fn take_retry(&mut self, side: Side, time_ns: i64, packet: &LongPacket<'_>) -> Shown {
        let client = side.other();
        let Some(ids) = self.ids[client as usize].as_deref().copied() else { return Shown::default() };
        if packet.header.destination != ids.source || !is_retry_to(packet, &ids.destinations[0]) {
            return Shown::default();
        }
        if self.key_ids.len() < MOST_KEYS {
            self.key_ids.push(packet.header.source);
        }
        // It does not name the packet that it answers.
        let rtt_ns = u64::try_from(time_ns.saturating_sub(ids.first_ns)).ok();
        let answer = rtt_ns.filter(|_| ids.is_one_datagram()).map(|rtt_ns| (client, rtt_ns));
        // The next Initial packets are new ones.
        self.unanswered = Default::default();
        Shown { is_quic: true, client: Some(client), answer, ..Shown::default() }
    }

    /// Open an Initial packet of `side`; returns the role of that side, too.
    fn open(&mut self, side: Side, client: Option<Side>, packet: &LongPacket<'_>) -> Option<(Opened, Role)> {
        if !packet.is_whole || self.trials >= MOST_TRIALS {
            return None;
        }
        let own = packet.header.destination;
        let of_other = self.ids[side.other() as usize].as_ref().map(|ids| ids.destinations[0]);
        let with = |role: Role| move |id: ConnectionId| (role, id);
        let mut candidates: SmallVec<[(Role, ConnectionId); 4]> = SmallVec::new();
        if client != Some(side) {
            candidates.extend(self.key_ids.iter().rev().copied().map(with(Role::Server)));
            candidates.extend(of_other.map(with(Role::Server)));
        }
        if client != Some(side.other()) {
            candidates.extend(self.key_ids.iter().rev().copied().map(with(Role::Client)));
            candidates.push((Role::Client, own));
        }
        let mut tried: SmallVec<[(Role, ConnectionId); 4]> = SmallVec::new();
        for (role, id) in candidates {
            if tried.contains(&(role, id)) {
                continue;
            }
            tried.push((role, id));
            self.trials = self.trials.saturating_add(1);
            let Some(opened) = InitialKeys::new(packet.version, &id, role)?.open(packet) else { continue };
            if !self.key_ids.contains(&id) && self.key_ids.len() < MOST_KEYS {
                self.key_ids.push(id);
            }
            return Some((opened, role));
        }
        None
    }

    /// Process the frames of an Initial packet; returns the time since the packet that it acknowledges.
    fn take_frames(&mut self, side: Side, time_ns: i64, opened: &Opened) -> Option<u64> {
        let mut rtt_ns = None;
        let mut elicits_ack = false;
        for frame in Frames::of(&opened.frames) {
            elicits_ack |= frame.elicits_ack();
            if let Frame::Ack { largest } = frame {
                let unanswered = &mut self.unanswered[side.other() as usize];
                let sent = unanswered.iter().find(|(number, _)| *number == largest);
                rtt_ns = sent.and_then(|&(_, sent_ns)| u64::try_from(time_ns.saturating_sub(sent_ns)).ok());
                unanswered.retain(|(number, _)| *number > largest);
            }
        }
        let unanswered = &mut self.unanswered[side as usize];
        let is_known = unanswered.iter().any(|(number, _)| *number == opened.number);
        if elicits_ack && !is_known && unanswered.len() < MOST_UNANSWERED {
            unanswered.push((opened.number, time_ns));
        }
        rtt_ns
    }

    /// The time since the packet that a Handshake packet, or an Initial packet that cannot be opened, answers: it shows
    /// that a packet of the other side arrived, and it is known which one if there is only one.
    fn answer(
        &mut self,
        side: Side,
        time_ns: i64,
        packet: &LongPacket<'_>,
        other: &Ids,
    ) -> Option<(Side, u64)> {
        let answered = side.other();
        let unanswered = &mut self.unanswered[answered as usize];
        let sent_ns = match unanswered.as_slice() {
            _ if packet.kind == Kind::ZeroRtt => return None,
            [(_, sent_ns)] => *sent_ns,
            [] if self.key_ids.is_empty() && other.is_one_datagram() => other.first_ns,
            _ => return None,
        };
        unanswered.clear();
        u64::try_from(time_ns.saturating_sub(sent_ns)).ok().map(|rtt_ns| (answered, rtt_ns))
    }
}

/// Whether a packet is for the identifier that the other side chose, in its version.
fn is_answer(packet: &LongPacket<'_>, other: &Ids) -> bool {
    other.source == packet.header.destination && other.version == packet.header.version
}
