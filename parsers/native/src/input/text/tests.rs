//! Formats that read many lines at a time give the same as one by one.

use std::io::Cursor;
use std::sync::Arc;

use super::*;
use crate::input::bytes::Progress;
use proptest::prelude::*;

/// One line, read as if in the middle of a text.
pub fn read_line(reader: &mut dyn LineFormat, number: u64, line: &[u8], packet: &mut Packet) -> Outcome {
    // Followed by as many bytes as a format inspects.
    let window = [line, b"\n".repeat(1024).as_slice()].concat();
    let mut batch = Batch::new(1);
    let usual = reader.read_usual(number, &window, &mut batch, &mut ForwardedCounts::default());
    match (batch.items().next(), usual.lines) {
        (Some(item), _) => {
            *packet = item.to_packet();
            Outcome::Packet
        }
        (None, 1) => Outcome::Held,
        (None, _) => reader.read(number, line.strip_suffix(b"\r").unwrap_or(line), packet),
    }
}

/// All packets of valid lines, in order.
pub fn packets_of<'a>(reader: &mut dyn LineFormat, lines: impl IntoIterator<Item = &'a str>) -> Vec<Packet> {
    let (mut packets, mut packet) = (Vec::new(), Packet::default());
    for (number, line) in (1..).zip(lines) {
        match read_line(reader, number, line.as_bytes(), &mut packet) {
            Outcome::Packet => packets.push(packet),
            Outcome::Wrong(expected) => panic!("{line}: {expected}"),
            Outcome::Other | Outcome::Held | Outcome::Forwarded(_) => {}
        }
    }
    while reader.finish(&mut packet) {
        packets.push(packet);
    }
    packets
}

/// All fields of a packet, with its SACK blocks instead of their index.
fn shown(packet: &Packet, blocks: &[(u32, u32)]) -> String {
    let mut packet = *packet;
    let sack = &mut packet.network.tcp.options.sack;
    if *sack == Sack::PRINTED || sack.blocks().is_some() {
        *sack = Sack::NONE;
    }
    format!("{packet:?} {blocks:?}")
}

/// Packets, counts of wrong and other lines, and caveats.
type Outputs = (Vec<String>, u64, u64, Vec<String>);

/// The result of the usual reading, many lines at a time.
fn at_once(format: TextFormat, text: &[u8]) -> Outputs {
    let reader = Box::new(Cursor::new(text.to_vec()));
    let input = Input::from_reader(reader, None, &Arc::new(Progress::default())).unwrap();
    let mut trace = TextTrace::of(format, input);
    let (mut packets, mut batch) = (Vec::new(), Batch::new(3));
    while packets.is_empty() || batch.is_full() {
        batch.clear();
        trace.fill(&mut batch, None).unwrap();
        packets.extend(batch.items().map(|item| {
            let packet = item.to_packet();
            shown(&packet, batch.extras().sack(packet.network.tcp.options.sack))
        }));
        if batch.is_empty() {
            break;
        }
    }
    (packets, trace.bad_lines.count(), trace.other_lines, trace.reader.caveats())
}

/// The result without lines read in one go.
fn one_by_one(format: TextFormat, text: &[u8]) -> Outputs {
    let mut reader = format.reader();
    let (mut packets, mut packet, mut wrong, mut other) = (Vec::new(), Packet::default(), 0, 0);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        match reader.read(number, line.strip_suffix(b"\r").unwrap_or(line), &mut packet) {
            Outcome::Packet => {
                let blocks = has_blocks(&packet).then(|| reader.take_sack()).flatten().unwrap_or_default();
                packets.push(shown(&packet, blocks.blocks()));
            }
            Outcome::Other => other += 1,
            Outcome::Wrong(_) => wrong += 1,
            Outcome::Held | Outcome::Forwarded(_) => {}
        }
    }
    while reader.finish(&mut packet) {
        packets.push(shown(&packet, &[]));
    }
    (packets, wrong, other, reader.caveats())
}

/// A line of ns-2 and one of tcpdump with these numbers.
fn line_of(format: TextFormat, numbers: (u8, u32, u32)) -> String {
    let (letter, first, second) = numbers;
    let node = first % 7;
    match format {
        TextFormat::Ns2 => {
            let letter = char::from(b"+-rd"[usize::from(letter) % 4]);
            let time = f64::from(first) / 1e6;
            let kind = ["tcp", "ack", "cbr", "tcpFriend"][usize::from(letter as u8 >> 2) % 4];
            format!("{letter} {time} {node} 0 {kind} 1040 ------- 2 {node}.0 5.0 {second} {first}\n")
        }
        _ => {
            let blocks: String =
                (0..letter % 6).map(|at| format!("{{{first}:{}}}", second / (u32::from(at) + 1))).collect();
            let options = match letter % 4 {
                0 => format!("TS val {first} ecr {second}"),
                1 => format!("TS val {first} ecr {second},nop,nop,sack {node} {blocks}"),
                2 => format!("sack {node} {blocks}"),
                _ => "sack 1 {1:2},eol".to_owned(),
            };
            format!(
                "1700000{}.{:06} IP 10.0.0.{node}.5000 > 192.0.2.1.80: Flags [.], seq {second}:{first}, ack 1, \
                 win 502, options [nop,nop,{options}], length 1448\n",
                100 + u32::from(letter),
                first % 1_000_000
            )
        }
    }
}

proptest! {
    #[test]
    fn test_many_lines_at_a_time_give_the_same_as_one_by_one(
        lines in prop::collection::vec(any::<(u8, u32, u32)>(), 1..12),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[\n\r -z]"), 0..6),
        cut: prop::sample::Index,
    ) {
        for format in [TextFormat::Ns2, TextFormat::Tcpdump] {
            let whole: String = lines.iter().map(|&numbers| line_of(format, numbers)).collect();
            let mut text = whole.into_bytes();
            for (at, byte) in &changes {
                let at = at.index(text.len());
                text[at] = byte.as_bytes()[0];
            }
            text.truncate(text.len() - cut.index(60).min(text.len() - 1));
            prop_assert_eq!(at_once(format, &text), one_by_one(format, &text));
        }
    }
}
