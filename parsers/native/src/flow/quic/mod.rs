//! QUIC flows (RFC 9000): recognised by their handshake, whose first packets everyone can open, and followed by what
//! the headers show afterwards.
//!
//! A datagram that looks like QUIC is not yet QUIC. The flow is recognised by an Initial packet that its public keys
//! open, by a Retry packet with the right tag, or by a long header that answers the other side's connection identifier.

pub mod client_hellos;
mod handshake;
mod migration;
pub mod paths;
pub mod spin;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::rtt_statistics::{LogHistogram, RttStatistics};
use crate::packet::key::Side;
use crate::packet::opening::ClientHello;
use crate::plural::counted;
use crate::wire::quic::{
    ConnectionId, Kind, LongHeader, LongPacket, QuicPacket, ShortHeader, Version, packets,
};
use client_hellos::ClientHellos;
use handshake::Handshake;
use spin::Spin;

/// Datagrams that look like QUIC before the flow is no longer examined.
const MOST_STRANGE: u8 = 16;

/// Connections between the same ports that are counted.
const MOST_CONNECTIONS: usize = 256;

/// A datagram's payload, as far as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    pub time_ns: i64,
    pub payload: &'a [u8],
    /// Its bytes on the wire.
    pub length: usize,
}

/// A round-trip time between the capture and the other side of `side`, whose packet was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub side: Side,
    pub rtt_ns: u64,
    pub by: AnswerBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerBy {
    /// A packet of the handshake.
    Handshake,
    SpinBit,
}

/// What a datagram showed beyond counts.
#[derive(Debug, Default)]
pub struct Findings {
    pub answers: SmallVec<[Answer; 1]>,
    /// Identifiers that sides chose, by which packets on another path are known.
    pub ids: SmallVec<[(Side, ConnectionId); 2]>,
}

/// Packets that one side sent, by kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PacketKinds {
    pub initial: u32,
    pub zero_rtt: u32,
    pub handshake: u32,
    pub retry: u32,
    /// Datagrams with a short header.
    pub short: u64,
}

impl PacketKinds {
    fn count(&mut self, kind: Kind) {
        let count = match kind {
            Kind::Initial => &mut self.initial,
            Kind::ZeroRtt => &mut self.zero_rtt,
            Kind::Handshake => &mut self.handshake,
            Kind::Retry => &mut self.retry,
        };
        *count = count.saturating_add(1);
    }
}

/// What one side sent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct QuicDirection {
    pub kinds: PacketKinds,
    /// Of its packets, by answers of the other side.
    pub rtt: Option<Box<(RttStatistics, LogHistogram)>>,
    /// Of its first packets.
    pub first_rtt_ns: Option<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct QuicFlow {
    is_recognised: bool,
    /// Datagrams before it was recognised.
    strange: u8,
    client: Option<Side>,
    /// Version of the last long header, and that of the first.
    versions: Option<(Version, Version)>,
    /// Version negotiation packets.
    negotiations: u32,
    hello: Option<Box<ClientHello>>,
    /// What the clients of its connections first chose as destination.
    destinations: SmallVec<[ConnectionId; 1]>,
    /// Further pairs of addresses.
    pub further_paths: u32,
    directions: [QuicDirection; 2],
    spin: Option<Box<Spin>>,
    handshake: Option<Box<Handshake>>,
}

impl QuicFlow {
    /// Forget what only further packets of the handshake would need.
    pub fn forget_handshake(&mut self) {
        self.handshake = None;
    }

    /// Whether the flow is QUIC.
    pub fn is_recognised(&self) -> bool {
        self.is_recognised
    }

    /// Whether it is none.
    pub fn is_hopeless(&self) -> bool {
        !self.is_recognised && self.strange >= MOST_STRANGE
    }

    pub fn client(&self) -> Option<Side> {
        self.client
    }

    pub fn version(&self) -> Option<Version> {
        self.versions.map(|(_, last)| last)
    }

    /// What the clients of its connections first chose as destination.
    pub fn destinations(&self) -> &[ConnectionId] {
        &self.destinations
    }

    pub fn hello(&self) -> Option<&ClientHello> {
        self.hello.as_deref()
    }

    pub fn direction(&self, side: Side) -> &QuicDirection {
        &self.directions[side as usize]
    }

    pub fn spin(&self) -> Option<&Spin> {
        self.spin.as_deref()
    }

    /// Round-trip time of the handshake over the whole path.
    pub fn handshake_rtt_ns(&self) -> Option<u64> {
        let [low, high] = &self.directions;
        Some(low.first_rtt_ns? + high.first_rtt_ns?)
    }

    /// Process a datagram of `side` of this flow, which has this number.
    pub fn on_datagram(
        &mut self,
        (flow, side): (u32, Side),
        datagram: &Datagram<'_>,
        hellos: &mut ClientHellos,
    ) -> Findings {
        let mut findings = Findings::default();
        for packet in packets(datagram.payload, datagram.length) {
            match packet {
                QuicPacket::Long(packet) => {
                    self.take_long((flow, side), datagram.time_ns, &packet, hellos, &mut findings);
                }
                QuicPacket::VersionNegotiation(header) => self.take_negotiation(side, &header),
                QuicPacket::OtherVersion(header) => {
                    self.handshake().note_ids(side, &header, datagram.time_ns)
                }
                QuicPacket::Short(short) => self.take_short(side, datagram.time_ns, &short, &mut findings),
            }
        }
        self.strange = self.strange.saturating_add(u8::from(!self.is_recognised));
        findings
    }

    fn handshake(&mut self) -> &mut Handshake {
        self.handshake.get_or_insert_default()
    }

    fn take_long(
        &mut self,
        (flow, side): (u32, Side),
        time_ns: i64,
        packet: &LongPacket<'_>,
        hellos: &mut ClientHellos,
        findings: &mut Findings,
    ) {
        self.directions[side as usize].kinds.count(packet.kind);
        let first = self.versions.map_or(packet.version, |(first, _)| first);
        self.versions = Some((first, packet.version));
        let is_over = self.handshake.is_none() && self.is_recognised;
        if is_over && (packet.kind != Kind::Initial || self.client != Some(side)) {
            return;
        }
        let client = self.client;
        let handshake = self.handshake();
        let is_new_id = handshake.note_long(side, time_ns, packet);
        let shown = handshake.on_packet(side, client, time_ns, packet);
        if is_over {
            return self.take_further(packet, &shown);
        }
        if shown.is_quic {
            self.is_recognised = true;
            self.client = self.client.or(shown.client);
        }
        if shown.is_opened && self.client == Some(side) {
            if self.destinations.is_empty() {
                self.destinations.push(packet.header.destination);
            }
            self.take_hello(flow, &shown.frames, hellos);
        }
        if let Some((side, rtt_ns)) = shown.answer {
            self.on_first_answer(side, rtt_ns, findings);
        }
        // Of a client that nobody answers, as in a flood, no packet comes on another path.
        if self.is_recognised && is_new_id && packet.kind != Kind::Retry && self.client == Some(side.other())
        {
            findings.ids.push((side, packet.header.source));
            findings.ids.push((side.other(), packet.header.destination));
        }
    }

    /// An Initial packet after the handshake: of another connection if its own destination opens it.
    fn take_further(&mut self, packet: &LongPacket<'_>, shown: &handshake::Shown) {
        let destination = packet.header.destination;
        let is_new = shown.is_opened && !self.destinations.contains(&destination);
        if is_new && self.destinations.len() < MOST_CONNECTIONS {
            self.destinations.push(destination);
        } else {
            self.handshake = None;
        }
    }

    fn take_hello(&mut self, flow: u32, frames: &[u8], hellos: &mut ClientHellos) {
        if self.hello.is_none() {
            self.hello = hellos.on_frames(flow, frames).map(Box::new);
        }
    }

    /// The first answer to packets of `side`.
    fn on_first_answer(&mut self, side: Side, rtt_ns: u64, findings: &mut Findings) {
        let direction = &mut self.directions[side as usize];
        if direction.first_rtt_ns.is_some() {
            return;
        }
        direction.first_rtt_ns = Some(rtt_ns);
        self.on_answer(Answer { side, rtt_ns, by: AnswerBy::Handshake }, findings);
    }

    fn on_answer(&mut self, answer: Answer, findings: &mut Findings) {
        let (statistics, sketch) = &mut **self.directions[answer.side as usize].rtt.get_or_insert_default();
        statistics.add(answer.rtt_ns);
        sketch.add(answer.rtt_ns);
        findings.answers.push(answer);
    }

    /// A server lists its versions: it answers a client if it returns both identifiers.
    fn take_negotiation(&mut self, side: Side, header: &LongHeader) {
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_returned(side, header)) {
            self.is_recognised = true;
            self.client.get_or_insert(side.other());
            self.negotiations = self.negotiations.saturating_add(1);
        }
    }

    fn take_short(&mut self, side: Side, time_ns: i64, short: &ShortHeader<'_>, findings: &mut Findings) {
        let [low, high] = &self.directions;
        if !self.is_recognised {
            return;
        }
        let is_handshake_over = low.kinds.short > 0 && high.kinds.short > 0;
        let first_rtts_ns = [low.first_rtt_ns, high.first_rtt_ns];
        let kinds = &mut self.directions[side as usize].kinds;
        kinds.short += 1;
        let spin = self.spin.get_or_insert_default();
        if let Some((answered, rtt_ns)) =
            spin.on_short_header((side, self.client), short.spin, time_ns, first_rtts_ns)
        {
            self.on_answer(Answer { side: answered, rtt_ns, by: AnswerBy::SpinBit }, findings);
        }
        if is_handshake_over {
            self.handshake = None;
        }
    }

    /// Notes on its packets as text.
    pub fn notes(&self, side: Side) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((first, last)) = self.versions.filter(|(first, last)| first != last) {
            notes.push(format!("QUIC began with version {} and went on with {}", first.name(), last.name()));
        }
        if self.versions.is_none() {
            notes.push("a version of QUIC that is not read".into());
        }
        if self.negotiations > 0 {
            notes.push(counted(self.negotiations, "version negotiation[s]"));
        }
        if self.destinations.len() > 1 {
            let connections = counted(self.destinations.len() as u32 - 1, "further connection[s]");
            notes.push(format!(
                "{connections} between the same ports; name and handshake are those of the first"
            ));
        }
        if self.client == Some(side) && self.hello.is_none() && self.versions.is_some() {
            notes.push("no server name: the client's first packets are not all in the capture".into());
        }
        notes
    }
}

#[cfg(test)]
mod tests;
