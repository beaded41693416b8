//! Lines of tags with values: wireless nodes in the new form (`-t TIME -Hs NODE ...`), and links
//! (`-x {...}`) and wireless nodes (`-k LAYER`) in traces of `use-taggedtrace`.

use super::fields::{Fields, PathEnd};
use super::line_packet::{FlagMarks, LinePacket, PacketKind};
use super::{wired, wireless};
use crate::input::text::{Outcome, number};
use crate::packet::event::{Agent, Event, NodeLayer};

const NEW_WIRELESS: Outcome = Outcome::Wrong(
    "expected `EVENT -t TIME -Hs NODE ... -Nl LAYER ... -Is SRC.PORT -Id DST.PORT -It TYPE -Il SIZE -Ii UID`, \
     a packet at a wireless node of ns-2",
);
const TAGGED: Outcome = Outcome::Wrong(
    "expected `EVENT TIME -s FROM -d TO ... -x {SRC.PORT DST.PORT SEQ FLAGS NAME}` or `... -k LAYER ...`, \
     a tagged packet of ns-2",
);

/// TCP's numbers, as far as a line has them.
#[derive(Default)]
struct Numbers {
    sequence: Option<i64>,
    ack: Option<i64>,
}

impl Numbers {
    /// Copy them to the packet; None if a required one is missing.
    fn give(self, mut seen: LinePacket) -> Option<LinePacket> {
        match (seen.kind, self.sequence) {
            (PacketKind::Tcp | PacketKind::Ack, sequence) => {
                Some(wireless::with_numbers(seen, sequence?, self.ack.unwrap_or(0)))
            }
            (PacketKind::Datagram, sequence) => {
                seen.sequence = sequence;
                Some(seen)
            }
            _ => Some(seen),
        }
    }
}

/// Read what follows `EVENT -t TIME` in the new form of wireless traces.
pub fn read_new_wireless(letter: u8, time_ns: i64, fields: &mut Fields<'_>) -> Result<LinePacket, Outcome> {
    new_wireless(letter, time_ns, fields).ok_or(NEW_WIRELESS)
}

fn new_wireless(letter: u8, time_ns: i64, fields: &mut Fields<'_>) -> Option<LinePacket> {
    let event = wireless::event(letter)?;
    // The layer is a tag of this line.
    let mut seen = LinePacket::new(event, time_ns, 0, NodeLayer::Link);
    let (mut src, mut dst) = (None, None);
    let mut numbers = Numbers::default();
    let mut has_node = false;
    let mut has_size = false;
    // Other protocols use the same letters for other things.
    let mut is_application = false;
    while let Some((tag, value)) = fields.tag() {
        match tag {
            b"Ni" | b"Hs" => (seen.node, has_node) = (small(value)?, true),
            b"Nl" => seen.layer = wireless::layer(value)?,
            b"Nw" => seen.reason = wireless::reason(event, value),
            b"Is" => src = Some(end(value)?),
            b"Id" => dst = Some(end(value)?),
            b"It" => (seen.kind, seen.agent) = (PacketKind::of(value), Agent::of(value)),
            b"Il" => (seen.size, has_size) = (small(value)?, true),
            b"If" => seen.flow_id = flow_id(value),
            b"Ii" => seen.uid = number::signed(value)? as u64,
            b"Iv" => seen.ttl = time_to_live(value),
            b"Pn" => is_application = matches!(value, b"tcp" | b"cbr"),
            b"Ps" | b"Pi" if is_application => numbers.sequence = Some(number::signed(value)?),
            b"Pa" if is_application => numbers.ack = Some(number::signed(value)?),
            _ => {}
        }
    }
    if !has_node || seen.layer == NodeLayer::Link || !fields.is_empty() {
        return None;
    }
    let Some(ends) = src.zip(dst) else {
        seen.kind = PacketKind::Control;
        return Some(seen);
    };
    seen.ends = Some(ends);
    has_size.then(|| numbers.give(seen))?
}

/// Read the text after the time in a tagged trace. Hops of links, `h`, repeat `-`.
pub fn read_tagged(letter: u8, time_ns: i64, fields: &mut Fields<'_>) -> Result<LinePacket, Outcome> {
    let Some(line) = Tagged::read(fields) else {
        return Err(TAGGED);
    };
    match line.layer {
        Some(layer) => line.at_node(letter, time_ns, layer).ok_or(TAGGED),
        None if letter == b'h' => Err(Outcome::Other),
        None => line.on_link(letter, time_ns).ok_or(TAGGED),
    }
}

/// The values of a line's tags.
#[derive(Default)]
struct Tagged<'a> {
    from: Option<u32>,
    /// The next node; -1 where a wireless node does not know it.
    to: Option<i64>,
    layer: Option<NodeLayer>,
    kind: Option<PacketKind>,
    agent: Option<Agent>,
    size: Option<u32>,
    flow_id: Option<u32>,
    uid: Option<i64>,
    reason: Option<&'a [u8]>,
    ttl: u8,
    /// `-x`: source, destination, sequence number and flags of a packet on a link.
    link: Option<Fields<'a>>,
    /// Source and destination, each address and port, at a wireless node.
    ends: [Option<i64>; 4],
    numbers: Numbers,
}

impl<'a> Tagged<'a> {
    fn read(fields: &mut Fields<'a>) -> Option<Self> {
        let mut line = Self::default();
        let [src, src_port, dst, dst_port] = &mut line.ends;
        while let Some((tag, value)) = fields.tag() {
            match tag {
                b"s" => line.from = Some(small(value)?),
                b"d" => line.to = Some(number::signed(value)?),
                b"p" => (line.kind, line.agent) = (Some(PacketKind::of(value)), Agent::of(value)),
                b"e" => line.size = Some(small(value)?),
                b"c" => line.flow_id = flow_id(value),
                b"i" => line.uid = Some(number::signed(value)?),
                b"k" => line.layer = Some(wireless::layer(value)?),
                b"y" => line.reason = Some(value),
                b"x" => line.link = Some(Fields::new(value)),
                b"IP:s" => *src = Some(number::signed(value)?),
                b"IP:sp" => *src_port = Some(number::signed(value)?),
                b"IP:d" => *dst = Some(number::signed(value)?),
                b"IP:dp" => *dst_port = Some(number::signed(value)?),
                b"IP:ttl" => line.ttl = time_to_live(value),
                b"tcp:s" | b"cbr:s" => line.numbers.sequence = Some(number::signed(value)?),
                b"tcp:a" => line.numbers.ack = Some(number::signed(value)?),
                _ => {}
            }
        }
        fields.is_empty().then_some(line)
    }

    /// A packet on a link.
    fn on_link(self, letter: u8, time_ns: i64) -> Option<LinePacket> {
        let (event, at_far_end) = wired::event(letter)?;
        let to = u32::try_from(self.to?).ok()?;
        let node = if at_far_end { to } else { self.from? };
        let mut seen = LinePacket::new(event, time_ns, node, NodeLayer::Link);
        let mut link = self.link?;
        seen.ends = Some((link.end()?, link.end()?));
        seen.sequence = Some(link.signed()?);
        seen.marks = FlagMarks::of(link.field()?);
        (seen.kind, seen.size, seen.uid) = (self.kind?, self.size?, self.uid? as u64);
        (seen.flow_id, seen.agent) = (self.flow_id, self.agent);
        Some(seen)
    }

    /// A packet at a wireless node. Sending is written as putting into a queue.
    fn at_node(self, letter: u8, time_ns: i64, layer: NodeLayer) -> Option<LinePacket> {
        let event = match letter {
            b'+' => Event::Sent,
            b'h' => Event::Forwarded,
            _ => wireless::event(letter)?,
        };
        let mut seen = LinePacket::new(event, time_ns, self.from?, layer);
        seen.reason = self.reason.map(|code| wireless::reason(event, code)).unwrap_or_default();
        (seen.kind, seen.flow_id, seen.ttl) = (self.kind?, self.flow_id, self.ttl);
        seen.agent = self.agent;
        let [Some(src), Some(src_port), Some(dst), Some(dst_port)] = self.ends else {
            seen.kind = PacketKind::Control;
            seen.size = self.size.unwrap_or(0);
            return Some(seen);
        };
        seen.ends = Some((PathEnd::flat(src, src_port)?, PathEnd::flat(dst, dst_port)?));
        (seen.size, seen.uid) = (self.size?, self.uid? as u64);
        self.numbers.give(seen)
    }
}

fn small(value: &[u8]) -> Option<u32> {
    u32::try_from(number::decimal(value)?).ok()
}

fn end(value: &[u8]) -> Option<PathEnd> {
    Fields::new(value).end()
}

fn flow_id(value: &[u8]) -> Option<u32> {
    small(value)
}

fn time_to_live(value: &[u8]) -> u8 {
    number::signed(value).map_or(0, |ttl| ttl.clamp(0, 255) as u8)
}
