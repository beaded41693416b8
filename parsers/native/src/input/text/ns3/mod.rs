//! ns-3's ASCII traces: one line for each event of each packet at each device, with all its headers.
//!
//! [`prefix`] reads the text before the headers, [`headers`] and [`transport`] read the headers. A
//! line names node and device but not whether the packet is at the end of its path: [`node_roles`]
//! finds out, and [`pending_packets`] holds packets back until then. [`packet_uid`] gives packets
//! identities.
//!
//! The file of a single device (`prefix-node-device.tr`) names no node. It is read as a capture at
//! that device: packets that left the queue and packets that came in.

mod headers;
mod node_roles;
mod packet_uid;
mod pending_packets;
mod prefix;
mod scanner;
mod stations;
mod time_precision;
mod transport;

use hashbrown::HashMap;
use memchr::memmem::Finder;

use super::sack_blocks::{PrintedBlocks, has_blocks};
use super::{LineFormat, NameTable, Outcome};
use crate::packet::event::{Event, NodeLayer, Packet, PathPoint, Sighting};
use crate::packet::extras::SackBlocks;
use headers::Frame;
use node_roles::{NodeRoles, RoleQuestion};
use packet_uid::PacketUids;
use pending_packets::{HeldPacket, PendingPackets};
use prefix::{LinePlace, Prefix};
use stations::Stations;
use time_precision::Precision;

/// Places that are found without formatting their names again.
const MAX_PLACES: usize = 1 << 16;

/// Whether a line looks like ns-3's: an event, a time, and a header by its class.
pub fn recognises(line: &[u8]) -> bool {
    let is_event =
        matches!(line, [b'+' | b'-' | b'd' | b'r' | b't', b' ', digit, ..] if digit.is_ascii_digit());
    is_event && memchr::memmem::find(line, b" ns3::").is_some()
}

/// Reader of all releases' forms.
pub struct Ns3 {
    first_header: Finder<'static>,
    header: Finder<'static>,
    names: NameTable,
    places: HashMap<LinePlace, u32>,
    stations: Stations,
    roles: NodeRoles,
    waiting: PendingPackets,
    /// SACK blocks of packets that are held back.
    sacks: PrintedBlocks,
    identities: PacketUids,
    precision: Precision,
    drops_of_one_device: u64,
    is_sent_by_radio: bool,
}

impl Default for Ns3 {
    fn default() -> Self {
        Self {
            first_header: Finder::new(b" ns3::"),
            header: Finder::new(b"ns3::"),
            names: NameTable::default(),
            places: HashMap::new(),
            stations: Stations::default(),
            roles: NodeRoles::default(),
            waiting: PendingPackets::default(),
            sacks: PrintedBlocks::default(),
            identities: PacketUids::default(),
            precision: Precision::default(),
            drops_of_one_device: 0,
            is_sent_by_radio: false,
        }
    }
}

impl LineFormat for Ns3 {
    fn read(&mut self, number: u64, line: &[u8], packet: &mut Packet) -> Outcome {
        if line.trim_ascii().is_empty() {
            return Outcome::Other;
        }
        let prefix = match Prefix::read(line, self.first_header.find(line)) {
            Ok(prefix) => prefix,
            Err(expected) => return Outcome::Wrong(expected),
        };
        self.precision.note(prefix.time, prefix.time_ns);
        *packet = Packet { number, time_ns: prefix.time_ns, event: Some(prefix.event), ..Packet::default() };
        let frame = match headers::read(prefix.headers, &self.header, packet) {
            Ok(frame) => frame,
            Err(expected) => return Outcome::Wrong(expected),
        };
        let Some(place) = prefix.place else {
            let outcome = self.read_of_one_device(&prefix);
            if outcome == Outcome::Packet {
                self.keep_sack(line, packet);
            }
            return outcome;
        };
        self.keep_sack(line, packet);
        let question = self.locate(&prefix, place, frame, packet);
        if self.waiting.is_empty() && self.is_answered(question, packet) {
            // The usual case.
            self.identify(packet, frame.is_retry);
            return Outcome::Packet;
        }
        let held = HeldPacket { packet: *packet, question, is_retry: frame.is_retry };
        match self.waiting.pass(held, &mut self.roles) {
            Some(held) => self.release(held, packet),
            None => Outcome::Held,
        }
    }

    fn finish(&mut self, packet: &mut Packet) -> bool {
        match self.waiting.first(&mut self.roles, true) {
            Some(held) => self.release(held, packet) == Outcome::Packet,
            None => false,
        }
    }

    fn places(&self) -> &NameTable {
        &self.names
    }

    fn take_sack(&mut self) -> Option<SackBlocks> {
        self.sacks.take()
    }

    fn caveats(&self) -> Vec<String> {
        let drops = self.drops_of_one_device;
        let of_one_device = (drops > 0).then(|| {
            format!(
                "the {drops} drops of this one device are not counted: the trace shows no packet's whole path"
            )
        });
        let by_radio = self.is_sent_by_radio.then(|| {
            "packets of radios are seen when they are on the air: their delays leave out the waiting before"
                .to_owned()
        });
        let caveats =
            [self.precision.caveat(), by_radio, self.roles.caveat(), self.identities.caveat(), of_one_device];
        caveats.into_iter().flatten().collect()
    }
}

impl Ns3 {
    /// Keep the SACK blocks of the packet that is being read.
    fn keep_sack(&mut self, line: &[u8], packet: &Packet) {
        if has_blocks(packet) {
            self.sacks.push(transport::sack_blocks(line));
        }
    }

    /// A line without a place: what a capture at the device would show.
    fn read_of_one_device(&mut self, prefix: &Prefix<'_>) -> Outcome {
        match prefix.event {
            Event::Dequeued | Event::Received | Event::Sent | Event::Forwarded => Outcome::Packet,
            Event::Enqueued => Outcome::Other,
            Event::Dropped => {
                self.drops_of_one_device += 1;
                Outcome::Other
            }
        }
    }

    /// Set the packet's point on its path, and return the question that is still open.
    fn locate(
        &mut self,
        prefix: &Prefix<'_>,
        place: LinePlace,
        frame: Frame,
        packet: &mut Packet,
    ) -> Option<RoleQuestion> {
        packet.interface = self.index_of(place);
        let is_meant = self.stations.is_meant(prefix.event, place, frame);
        let mut point = PathPoint::Between;
        let mut question = None;
        if let Some((family, address)) = frame.announced.filter(|_| prefix.is_outgoing()) {
            self.roles.on_announced(place.node, family, address);
        }
        if packet.is_ip {
            let endpoints = &packet.network.endpoints;
            match prefix.event {
                Event::Received if is_meant && packet.network.has_ports => {
                    self.roles.on_incoming(place.node, endpoints);
                    question = Some(RoleQuestion::new(place.node, endpoints));
                }
                Event::Dequeued => {}
                _ if prefix.is_outgoing() => {
                    point = self.roles.on_outgoing(place.node, endpoints, packet.network.ttl);
                }
                _ => {}
            }
        }
        let layer = prefix.layer();
        self.is_sent_by_radio |= point == PathPoint::Source && layer == NodeLayer::Phy;
        packet.sighting = Some(Sighting { layer, point, identity: 0, reason: prefix.reason(), agent: None });
        question
    }

    /// Whether no question is open.
    fn is_answered(&mut self, question: Option<RoleQuestion>, packet: &mut Packet) -> bool {
        let Some(question) = question else { return true };
        let answer = self.roles.answer(&question);
        if let (Some(point), Some(sighting)) = (answer, &mut packet.sighting) {
            sighting.point = point;
        }
        answer.is_some()
    }

    /// Return a packet that was held back.
    fn release(&mut self, held: HeldPacket, packet: &mut Packet) -> Outcome {
        *packet = held.packet;
        self.identify(packet, held.is_retry);
        Outcome::Packet
    }

    /// Set the packet's identity, once its point is known.
    fn identify(&mut self, packet: &mut Packet, is_retry: bool) {
        if !packet.network.has_ports {
            return;
        }
        let identity = self.identities.of(packet, is_retry);
        if let Some(sighting) = &mut packet.sighting {
            sighting.identity = identity;
        }
    }

    #[inline]
    fn index_of(&mut self, place: LinePlace) -> u32 {
        match self.places.get(&place) {
            Some(&index) => index,
            None => self.add(place),
        }
    }

    #[cold]
    fn add(&mut self, place: LinePlace) -> u32 {
        let LinePlace { node, device, is_ip } = place;
        let index = self.names.index(&format!("{node}/{}{device}", if is_ip { "ip" } else { "" }));
        if self.places.len() < MAX_PLACES {
            self.places.insert(place, index);
        }
        index
    }
}

#[cfg(test)]
mod tests;
