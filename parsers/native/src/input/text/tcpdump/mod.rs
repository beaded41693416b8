//! tcpdump's output, with any options: one line for each packet, two for IPv4 with `-v`.
//!
//! A line is a time ([`timestamp`]), possibly an interface and a link header ([`link`]), possibly
//! an IP header ([`ip`]), both ends ([`endpoints`]), and a transport header ([`tcp`],
//! [`datagram`]). Further lines of other protocols begin with a blank or tab.

mod absolute_sequence;
mod assembly;
mod datagram;
mod endpoints;
mod fast_path;
mod ip;
mod link;
mod messages;
mod pending_times;
mod scan;
mod services;
mod tcp;
mod tcp_options;
#[cfg(test)]
mod tests;
mod timestamp;

use super::sack_blocks::PrintedBlocks;
use super::{FastLines, ForwardedCounts, LineFormat, NameTable, Outcome};
use crate::packet::batch::Batch;
use crate::packet::event::{Endpoints, Family, Packet, Sack};
use crate::packet::extras::SackBlocks;
use crate::plural::counted;
use absolute_sequence::Conversations;
use assembly::Start;
use endpoints::RecentEndpoints;
use fast_path::CachedSecond;
use link::LinkPayload;
use pending_times::{PendingTimes, TimeMeaning};
use timestamp::{Clock, Stamp};

const A_PACKET: &str = "expected a line of tcpdump: a time, then `IP`, `IP6` or another protocol";
const AN_IP_HEADER: &str = "expected what tcpdump -v prints of an IP header";

/// Whether a line looks like output of tcpdump.
pub fn recognises(line: &[u8]) -> bool {
    // With -x most lines are bytes.
    if line.starts_with(b"\t0x0") {
        return line.get(7..9) == Some(b": ");
    }
    let (_, text) = timestamp::without_lengths(timestamp::without_number(line));
    let rest = timestamp::read(text).map_or(text, |(_, rest)| rest);
    let Some((link, rest)) = link::read(rest, false) else { return false };
    match link.kind {
        LinkPayload::Ip(_) => true,
        LinkPayload::Other(ether_type) => ether_type != 0,
        LinkPayload::Unnamed => match ip::Header::default().read(rest) {
            None => false,
            Some(b"") => !rest.is_empty(),
            Some(rest) => has_transport(rest),
        },
    }
}

/// Whether both ends and the beginning of a transport header come next.
fn has_transport(text: &[u8]) -> bool {
    let ends = endpoints::read(text, &mut Endpoints::default(), &mut NameTable::default());
    ends.is_some_and(|(has_ports, rest)| {
        tcp::read(rest).is_some() || (has_ports && datagram::udp_payload(rest).is_some())
    })
}

/// Facts about the whole text that lead to caveats.
#[derive(Debug, Default)]
struct TextSummary {
    /// Lines have times, so a line without is no packet.
    times: bool,
    no_times: bool,
    times_of_day: bool,
    dates: bool,
    frames_without_length: bool,
    tcp_without_header: bool,
    /// TCP packets over IPv4 without the output of -v.
    no_ip_header: bool,
    /// Packets whose second line is missing.
    halves: u64,
    /// Bytes of packets as text (-A).
    dumps: bool,
}

/// Reader of all forms.
#[derive(Default)]
pub struct Tcpdump {
    interfaces: NameTable,
    hosts: NameTable,
    recent: RecentEndpoints,
    conversations: Conversations,
    clock: Clock,
    second: CachedSecond,
    /// Sum of times that are known to be differences.
    sum_ns: i64,
    backlog: PendingTimes,
    /// The first line of a packet, until its second one comes.
    half: Option<Start>,
    /// SACK blocks of packets that are held back.
    sacks: PrintedBlocks,
    seen: TextSummary,
}

impl LineFormat for Tcpdump {
    fn read(&mut self, number: u64, line: &[u8], packet: &mut Packet) -> Outcome {
        let (frame_bytes, text) = timestamp::without_lengths(timestamp::without_number(line));
        match timestamp::read(text) {
            Some((stamp, rest)) => self.begin(number, (stamp, frame_bytes), rest, packet),
            None => self.read_without_time(number, text, packet),
        }
    }

    fn read_usual(
        &mut self,
        first: u64,
        window: &[u8],
        batch: &mut Batch,
        _passing: &mut ForwardedCounts,
    ) -> FastLines {
        let mut usual = FastLines::default();
        while !batch.is_full()
            && let Some(rest) = window.get(usual.bytes..)
            && let Some(line) = fast_path::read(rest, &mut self.second)
            && self.take_fast_lines(first + usual.lines, &line, batch).is_some()
        {
            usual.lines += 1;
            usual.bytes += line.bytes;
        }
        if usual.lines > 0 {
            self.seen.halves += u64::from(self.half.take().is_some());
            self.seen.times = true;
            self.seen.frames_without_length = true;
        }
        usual
    }

    fn finish(&mut self, packet: &mut Packet) -> bool {
        self.seen.halves += u64::from(self.half.take().is_some());
        self.backlog.pop(packet)
    }

    fn places(&self) -> &NameTable {
        &self.interfaces
    }

    fn hosts(&self) -> Option<&NameTable> {
        Some(&self.hosts)
    }

    fn take_sack(&mut self) -> Option<SackBlocks> {
        self.sacks.take()
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        let mut add_if = |applies: bool, words: &str| {
            if applies {
                caveats.push(words.to_owned());
            }
        };
        let (seen, meaning) = (&self.seen, self.backlog.meaning());
        add_if(seen.no_times, "the text has no times (tcpdump -t): rates, durations and RTT mean nothing");
        add_if(
            seen.times_of_day,
            "the text has times without date: they count from midnight before the first packet",
        );
        add_if(seen.dates, "the text has dates without time zone: they are taken as UTC");
        add_if(
            meaning == Some(TimeMeaning::Differences),
            "times go up and down: taken as differences (tcpdump -ttt) and added up",
        );
        add_if(
            meaning == Some(TimeMeaning::SinceFirst),
            "times grow from 0: taken as since the first packet (tcpdump -ttttt)",
        );
        add_if(
            seen.frames_without_length,
            "the text has no sizes of frames (tcpdump -e): bytes on the wire are those of IP packets",
        );
        add_if(
            seen.tcp_without_header,
            "the text has no TCP headers (tcpdump -q): no retransmissions, RTT or states",
        );
        add_if(
            seen.no_ip_header,
            "the text has no IP headers (tcpdump -v): without identifications a duplicate made by the \
             network may count as retransmitted, and congestion marks are unknown",
        );
        if seen.halves > 0 {
            let what = "packet[s] left out: the line with [its|their] addresses is missing";
            caveats.push(counted(seen.halves, what));
        }
        caveats
    }
}

impl Tcpdump {
    /// Make a packet of a line of the usual form; None, without any change, if it does not fit.
    #[inline(always)]
    fn take_fast_lines(&mut self, number: u64, line: &fast_path::Line<'_>, batch: &mut Batch) -> Option<()> {
        let fast_path::Line { stamp, header, .. } = line;
        let (known, place) = self.recent.find(line.ends, line.hash, &mut self.conversations)?;
        let is_since = matches!(stamp, Stamp::Since(_));
        let is_plain = !is_since && assembly::is_plain(known, header);
        // Blocks wait with a packet that is held back, which any line may give back.
        let has_sack_blocks = !line.blocks.is_empty() || !self.sacks.is_empty();
        if !is_plain && has_sack_blocks {
            return None;
        }
        let numbers = self.conversations.resolve(place, known.side, header);
        self.seen.no_ip_header |= known.endpoints.family == Family::V4;
        if is_plain
            && numbers.seq.is_some()
            && let Some((segment, extras)) = batch.next_plain()
        {
            assembly::fill_plain(number, known, header, numbers, segment);
            if !line.blocks.is_empty() {
                let blocks = tcp_options::read_blocks(line.blocks, numbers.ack_offset(header));
                let sack = extras.add_sack(blocks).and_then(Sack::with_blocks);
                segment.tcp.options.sack = sack.unwrap_or_default();
            }
            segment.time_ns = self.time_ns(*stamp);
            batch.add_plain();
            return Some(());
        }
        let packet = batch.next_other().0;
        *packet = assembly::tcp_alone(number, &known.endpoints, header, numbers);
        packet.time_ns = self.time_ns(*stamp);
        if self.give(is_since, packet) == Outcome::Packet {
            batch.add_other();
        }
        Some(())
    }

    /// The first line of a packet. The length of its frame is printed by `--lengths` or with `-e`.
    #[inline]
    fn begin(
        &mut self,
        number: u64,
        (stamp, frame_bytes): (Stamp, Option<u32>),
        text: &[u8],
        packet: &mut Packet,
    ) -> Outcome {
        let has_time = stamp != Stamp::Missing;
        let Some((link, rest)) = link::read(text, has_time) else {
            return Outcome::Wrong(A_PACKET);
        };
        self.seen.halves += u64::from(self.half.take().is_some());
        self.seen.times |= has_time;
        let frame_bytes = frame_bytes.or(link.frame_bytes);
        self.seen.frames_without_length |= frame_bytes.is_none();
        let mut start = Start {
            number,
            time_ns: self.time_ns(stamp),
            is_since: matches!(stamp, Stamp::Since(_)),
            interface: link.interface.map_or(0, |name| self.interfaces.index(&String::from_utf8_lossy(name))),
            event: link.event,
            frame_bytes,
            ip: ip::Header::default(),
        };
        match link.kind {
            LinkPayload::Other(ether_type) => {
                start.without_ip(ether_type, rest, packet);
                return self.give(start.is_since, packet);
            }
            LinkPayload::Ip(family) => start.ip = ip::Header::of(Some(family)),
            LinkPayload::Unnamed => {}
        }
        match start.ip.read(rest) {
            None => Outcome::Wrong(AN_IP_HEADER),
            Some(b"") if !rest.is_empty() => {
                self.half = Some(start);
                Outcome::Other
            }
            Some(rest) => self.complete(&start, rest, packet),
        }
    }

    fn time_ns(&mut self, stamp: Stamp) -> i64 {
        match stamp {
            Stamp::Missing => {
                self.seen.no_times = true;
                0
            }
            Stamp::Epoch(time_ns) | Stamp::Since(time_ns) => time_ns,
            Stamp::Date(time_ns) => {
                self.seen.dates = true;
                time_ns
            }
            Stamp::OfDay(time_ns) => {
                self.seen.times_of_day = true;
                self.clock.unwrap(time_ns)
            }
            Stamp::Difference(time_ns) => {
                self.sum_ns = self.sum_ns.saturating_add(time_ns);
                self.sum_ns
            }
        }
    }

    /// Read the addresses of a packet and the text after them.
    #[inline]
    fn complete(&mut self, start: &Start, text: &[u8], packet: &mut Packet) -> Outcome {
        match start.with_ip(text, self, packet) {
            Ok(()) => self.give(start.is_since, packet),
            Err(expected) => Outcome::Wrong(expected),
        }
    }

    /// Return `packet`, or hold it back until its time is known.
    #[inline]
    fn give(&mut self, is_since: bool, packet: &mut Packet) -> Outcome {
        if is_since && !self.backlog.exchange(packet) {
            return Outcome::Held;
        }
        Outcome::Packet
    }

    /// The second line of a packet, a further line of it, or a packet printed with -t.
    fn read_without_time(&mut self, number: u64, text: &[u8], packet: &mut Packet) -> Outcome {
        if let Some(rest) = text.strip_prefix(b"    ")
            && let Some(start) = self.half.take()
        {
            return self.complete(&start, rest, packet);
        }
        let is_continuation = matches!(text.first(), None | Some(b' ' | b'\t'));
        if !self.seen.times && (!is_continuation || link::cooked(text).is_some()) {
            if messages::is_one(text) {
                return Outcome::Other;
            }
            return self.begin(number, (Stamp::Missing, None), text, packet);
        }
        // A tunnel's inner packet has a line of its own, without a time.
        let is_inner = link::read(text, false).is_some();
        if is_continuation || is_inner || messages::is_one(text) || self.is_dump(text) {
            return Outcome::Other;
        }
        Outcome::Wrong(A_PACKET)
    }

    /// Whether a line is output of -A: the bytes of a packet as text, so any line may follow. The
    /// first byte is the version of IP or, where that is not printable, a dot.
    fn is_dump(&mut self, text: &[u8]) -> bool {
        self.seen.dumps |= matches!(text.first(), Some(b'E' | b'`' | b'.'));
        self.seen.dumps
    }
}
