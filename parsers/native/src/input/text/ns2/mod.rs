//! ns-2's packet traces, in all their forms, which one file may mix: wired links, wireless nodes in
//! the old and the new form, tagged ones; and variables of agents.
//!
//! Each form is read into one [`LinePacket`]; from there on they are the same. The first letters
//! determine the form:
//!
//! | it starts like | it is |
//! |---|---|
//! | `+ 0.2 2 0 tcp 1040` | a packet on a link ([`wired`], nearly always [`wired_fast_path`]) |
//! | `s 1.0 _0_ AGT` | a packet at a wireless node, old form ([`wireless`]) |
//! | `s -t 1.0 -Hs 0` | the same, new form ([`tagged`]) |
//! | `+ 0.5 -s 2 -d 0` | a packet in a tagged trace ([`tagged`]) |
//! | `time: 0.1 saddr: 0`, `0.1 4 0 5 0 cwnd_ 1`, `f -t 0.2 -s 0`, `f t0.2 a_o7` | variables ([`variables`]) |
//! | `E`, `v`, `M`, `N`, `S...`, `a`, `Q` | events, movement, energy, queues: passed over |

mod fields;
mod line_packet;
mod node_addresses;
mod pending_arrivals;
mod tagged;
mod tcp_header;
#[cfg(test)]
mod tests;
mod tfrc_sequence;
mod variables;
mod wired;
mod wired_fast_path;
mod wireless;

use super::{FastLines, ForwardedCounts, ForwardedPacket, LineFormat, NameTable, Outcome};
use crate::packet::batch::Batch;
use crate::packet::event::{Event, NodeLayer, Packet, PathPoint};
use crate::packet::logged_variables::VariableSample;
use fields::Fields;
use line_packet::LinePacket;
use node_addresses::{NodeAddresses, ShownSources};
use pending_arrivals::{PendingArrival, PendingArrivals};
use tcp_header::TcpHeaders;
use tfrc_sequence::TfrcSequences;
use variables::Variables;
use wired_fast_path::WiredFastPath;

const EXPECTED: Outcome = Outcome::Wrong("expected a line of a packet trace of ns-2");
const NAM: Outcome =
    Outcome::Wrong("a nam trace, expected ns-2's packet trace (`trace-all`, not `namtrace-all`)");

/// Reader of all forms.
#[derive(Default)]
pub struct Ns2 {
    nodes: NameTable,
    addresses: NodeAddresses,
    waiting: PendingArrivals,
    sequences: TfrcSequences,
    tcp_headers: TcpHeaders,
    variables: Variables,
    plain: WiredFastPath,
    /// The packet of the last line.
    seen: LinePacket,
    /// Whether packets at intermediate nodes are only counted.
    skips_passing: bool,
    /// Addresses whose packets the trace shows where they are sent.
    sources: ShownSources,
}

impl LineFormat for Ns2 {
    #[inline]
    fn read(&mut self, number: u64, line: &[u8], packet: &mut Packet) -> Outcome {
        let read = match line {
            [letter @ (b'+' | b'-' | b'r' | b'd' | b's' | b'f' | b'D' | b'h'), b' ', rest @ ..] => {
                self.read_event(*letter, rest)
            }
            _ => Err(self.read_other(line)),
        };
        match read {
            Ok(()) => self.on_line(number, packet),
            Err(outcome) => outcome,
        }
    }

    fn read_usual(
        &mut self,
        first: u64,
        window: &[u8],
        batch: &mut Batch,
        passing: &mut ForwardedCounts,
    ) -> FastLines {
        let mut usual = FastLines::default();
        while !batch.is_full()
            && let Some(line) = window.get(usual.bytes..).and_then(wired_fast_path::Line::first_of)
            && let Some(route) = self.plain.find(&line)
        {
            if let Some(it) = self.passing(route, &line) {
                passing.count(first + usual.lines, it);
            } else {
                if self.plain.fill(route, &line, &mut self.seen).is_none() {
                    break;
                }
                let (packet, _) = batch.next_other();
                match self.on_line(first + usual.lines, packet) {
                    Outcome::Forwarded(it) => {
                        self.plain.remember(route, &line, it);
                        passing.count(first + usual.lines, it);
                    }
                    Outcome::Packet => {
                        passing.on_given(packet.number, packet.time_ns);
                        batch.add_other();
                    }
                    _ => {}
                }
            }
            usual.lines += 1;
            usual.bytes += line.bytes;
        }
        usual
    }

    fn skip_forwarded(&mut self) {
        self.skips_passing = true;
    }

    fn finish(&mut self, packet: &mut Packet) -> bool {
        match self.waiting.finish(&mut self.addresses) {
            Some(next) => {
                *packet = next;
                true
            }
            None => false,
        }
    }

    fn places(&self) -> &NameTable {
        &self.nodes
    }

    fn has_hierarchical_addresses(&self) -> bool {
        self.addresses.is_hierarchical()
    }

    fn addresses_behind_gateways(&self) -> Vec<u32> {
        self.addresses.behind_gateways()
    }

    fn take_samples(&mut self) -> Vec<VariableSample> {
        self.variables.take()
    }

    fn caveats(&self) -> Vec<String> {
        self.variables.caveats()
    }
}

impl Ns2 {
    /// A line that is only counted, if one of its kind was already: then only its time and its
    /// packet's number are new.
    #[inline(always)]
    fn passing(&mut self, route: usize, line: &wired_fast_path::Line<'_>) -> Option<ForwardedPacket> {
        let passing = self.plain.passing(route, line).filter(|_| !self.addresses.is_hierarchical())?;
        self.addresses.on_packet(line.uid);
        Some(passing)
    }

    /// Read what follows the letter of an event.
    #[inline(always)]
    fn read_event(&mut self, letter: u8, rest: &[u8]) -> Result<(), Outcome> {
        let mut fields = Fields::new(rest);
        let Some(time_ns) = fields.time_ns() else {
            return self.read_without_time(letter, rest);
        };
        match fields.rest() {
            [b'0'..=b'9', ..] => return wired::read(letter, time_ns, &mut fields, &mut self.seen),
            [b'_', ..] => self.seen = wireless::read(letter, time_ns, &mut fields)?,
            [b'-', b's', b' ', ..] => self.seen = tagged::read_tagged(letter, time_ns, &mut fields)?,
            _ => return Err(EXPECTED),
        }
        Ok(())
    }

    /// The letter is followed by `-t TIME`, or it is the `f t0.1` of a traced variable.
    fn read_without_time(&mut self, letter: u8, rest: &[u8]) -> Result<(), Outcome> {
        let mut fields = Fields::new(rest);
        if letter == b'f' && rest.first() == Some(&b't') {
            return Err(self.variables.read_nameless());
        }
        let Some(time_ns) = fields.skip(b"-t").and_then(|()| fields.time_ns()) else {
            return Err(EXPECTED);
        };
        match fields.rest() {
            [b'-', b'H', b's', b' ', ..] => {
                self.seen = tagged::read_new_wireless(letter, time_ns, &mut fields)?;
                Ok(())
            }
            [b'-', b's', b' ', ..] if letter == b'f' => {
                Err(self.variables.read_attached(time_ns, &mut fields))
            }
            [b'-', b's', b' ', ..] => Err(NAM),
            _ => Err(EXPECTED),
        }
    }

    /// A line that does not start with the letter of an event.
    #[cold]
    fn read_other(&mut self, line: &[u8]) -> Outcome {
        match line {
            [] | [b'#', ..] | [b'S', b'a'..=b'z' | b'A'..=b'Z', ..] => Outcome::Other,
            [b'N', b' ', b'-', b't', b' ', ..] => Outcome::Other,
            // Events of medium access have a form of their own.
            [b'E', b' ', b'-', b't', b' ', ..] => Outcome::Other,
            [_, b' ', b'-', b't', b' ', ..] => NAM,
            [b'E' | b'v' | b'M' | b'a' | b'Q', b' ', ..] => Outcome::Other,
            [b'0'..=b'9', ..] => self.variables.read_numbers(line),
            _ if line.starts_with(b"time: ") => self.variables.read_one_line(line),
            _ => EXPECTED,
        }
    }

    /// Make a packet of the line; it waits until its place on the path is known.
    #[inline(always)]
    fn on_line(&mut self, number: u64, packet: &mut Packet) -> Outcome {
        let Self { seen, addresses, .. } = self;
        self.sequences.number(seen);
        self.tcp_headers.measure(seen);
        if let Some(address) = addresses.learn(seen) {
            self.waiting.on_known(address, addresses);
        }
        let interface = self.nodes.index_of_number(u64::from(seen.node));
        let (event, point) = place(seen, addresses);
        if point == PathPoint::Source {
            self.sources.add(seen);
        }
        // Without its source's lines, the packets at intermediate nodes are all that a flow has. With
        // hierarchical addresses they reveal the ends.
        if self.skips_passing
            && is_passing(event, point)
            && !addresses.is_hierarchical()
            && self.sources.has(seen)
            && let Some(protocol) = seen.protocol()
        {
            return Outcome::Forwarded(ForwardedPacket {
                time_ns: seen.time_ns,
                interface,
                bytes: seen.size,
                protocol,
            });
        }
        seen.fill(number, interface, event, point, packet);
        if addresses.is_hierarchical() { self.wait(packet) } else { Outcome::Packet }
    }

    /// Hold the packet back if needed, and replace it by one that may be returned.
    #[inline(never)]
    fn wait(&mut self, packet: &mut Packet) -> Outcome {
        let seen = &self.seen;
        if seen.layer != NodeLayer::Agent {
            self.waiting.on_passed(seen.node, seen.uid);
        }
        let arrival = self.arrival(seen);
        if arrival.is_none() && self.waiting.is_empty() {
            return Outcome::Packet;
        }
        self.waiting.add(*packet, arrival);
        match self.waiting.next(&mut self.addresses) {
            Some(next) => {
                *packet = next;
                Outcome::Packet
            }
            None => Outcome::Held,
        }
    }

    /// Set if the packet came over a link to a node that may be its destination.
    fn arrival(&self, seen: &LinePacket) -> Option<PendingArrival> {
        let is_arrival = seen.layer == NodeLayer::Link && seen.event == Event::Received;
        let (_, dst) = seen.ends.filter(|_| is_arrival && seen.endpoints().is_some())?;
        let is_unknown = self.addresses.is_at(dst.address, seen.node).is_none();
        is_unknown.then_some(PendingArrival { address: dst.address, node: seen.node, uid: seen.uid })
    }
}

/// Whether a packet is at an intermediate node and goes on.
#[inline(always)]
fn is_passing(event: Event, point: PathPoint) -> bool {
    point == PathPoint::Between && event != Event::Dropped
}

/// The line's point on the packet's path, as far as known: an event that counts for a flow happens
/// at one of the two ends.
#[inline(always)]
fn place(seen: &LinePacket, addresses: &NodeAddresses) -> (Event, PathPoint) {
    use PathPoint::{Between, Destination, Source};
    let Some((src, dst)) = seen.ends else {
        return (seen.event, Between);
    };
    let is_at = |address: u32| addresses.is_at(address, seen.node) == Some(true);
    match (seen.layer, seen.event) {
        // The end is where the agent is, whatever its address.
        (NodeLayer::Agent, Event::Sent) => (Event::Sent, Source),
        (NodeLayer::Agent, Event::Received) => (Event::Received, Destination),
        (NodeLayer::Link, Event::Received) if !is_at(dst.address) => (Event::Forwarded, Between),
        // DSDV prints a forwarding also at the packet's source.
        (_, Event::Forwarded) if is_at(src.address) => (Event::Sent, Source),
        (_, Event::Sent | Event::Enqueued) if is_at(src.address) => (seen.event, Source),
        // A lossy link drops before its queue, so no line shows the sending.
        (NodeLayer::Link, Event::Dropped) if is_at(src.address) => (Event::Dropped, Source),
        (_, Event::Received) if is_at(dst.address) => (Event::Received, Destination),
        (_, event) => (event, Between),
    }
}

/// Whether a line looks like ns-2's. Other simulators use the same letters, so the text after the
/// time must be valid, too. nam's lines are recognised and refused by name.
pub fn recognises(line: &[u8]) -> bool {
    let rest = line.get(2..).unwrap_or_default();
    let mut fields = Fields::new(rest);
    match line {
        [b'+' | b'-' | b'r' | b'd' | b's' | b'f' | b'D' | b'h', b' ', ..] => recognises_event(rest),
        [b'V' | b'n' | b'l' | b'N', b' ', b'-', b't', b' ', ..] => true,
        [b'M', b' ', ..] => {
            fields.time_ns().is_some() && fields.small().is_some() && fields.rest().starts_with(b"(")
        }
        [b'E', b' ', b'-', b't', b' ', rest @ ..] => Fields::new(rest).time_ns().is_some(),
        [b'E', b' ', ..] => {
            fields.time_ns().is_some() && fields.small().is_some() && fields.small().is_some()
        }
        [b'a' | b'Q', b' ', ..] => {
            fields.time_ns().is_some() && fields.time_ns().is_some() && fields.is_empty()
        }
        [b'0'..=b'9', ..] => variables::is_padded(line) || variables::is_queue_sample(line),
        _ => [&b"time: "[..], b"Sconfig ", b"SFESTs "].iter().any(|start| line.starts_with(start)),
    }
}

/// Whether the text after an event's letter is ns-2's.
fn recognises_event(rest: &[u8]) -> bool {
    let mut fields = Fields::new(rest);
    if let Some(rest) = rest.strip_prefix(b"-t ") {
        fields = Fields::new(rest);
        let is_time = fields.time_ns().is_some();
        return is_time && (fields.rest().starts_with(b"-Hs ") || fields.rest().starts_with(b"-s "));
    }
    if let Some(rest) = rest.strip_prefix(b"t") {
        fields = Fields::new(rest);
        return fields.time_ns().is_some() && fields.rest().starts_with(b"a");
    }
    if fields.time_ns().is_none() {
        return false;
    }
    match fields.rest() {
        [b'_', b'0'..=b'9', ..] | [b'-', b's', b' ', ..] => true,
        [b'0'..=b'9', ..] => {
            let is_on_link = fields.small().is_some() && fields.small().is_some();
            is_on_link && fields.rest().first().is_some_and(u8::is_ascii_alphabetic)
        }
        _ => false,
    }
}
