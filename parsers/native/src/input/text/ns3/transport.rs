//! TCP and UDP headers, and their payload.

use super::scanner::Scanner;
use crate::input::text::sack_blocks;
use crate::packet::event::{Network, Sack, Tcp, TcpFlags, Transport};
use crate::packet::extras::SackBlocks;

/// Bytes of a TCP header without options.
const TCP_HEADER: u32 = 20;
/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;
/// The largest shift (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// `(49153 > 5001 [SYN] Seq=0 Ack=0 Win=65535 ns3::TcpOptionTS(500;0) ns3::TcpOptionEnd(EOL))` and
/// the payload; `bytes` counts from after the IP header.
pub fn read_tcp(fields: &[u8], bytes: u32, network: &mut Network) -> Option<()> {
    let mut scanner = Scanner::new(fields);
    read_ports(scanner.after(b"(")?, network)?;
    let mut tcp = Tcp { flags: flags_of(scanner.after(b"[")?.until(b']')?), ..Tcp::default() };
    tcp.seq = scanner.after(b"Seq=")?.small()?;
    tcp.ack = scanner.after(b"Ack=")?.small()?;
    tcp.window = scanner.after(b"Win=")?.small()?;
    let options = read_options(&mut scanner, &mut tcp);
    let payload = match options {
        Options::Bytes(options) if options > 0 => bytes.saturating_sub(TCP_HEADER + padded(options)),
        _ => payload_behind(scanner.rest(), bytes.saturating_sub(TCP_HEADER)),
    };
    network.endpoints.protocol = 6;
    network.transport = Transport::Tcp;
    network.tcp = tcp;
    network.header_bytes = bytes.saturating_sub(payload).min(u32::from(u8::MAX)) as u8;
    network.payload_bytes = Some(payload);
    Some(())
}

/// `(length: 1008 49153 > 6001)`, perhaps with a numbered packet after it: `ns3::SeqTsHeader ((seq=0
/// time=+0.7s))`. Its bytes are payload.
pub fn read_udp(fields: &[u8], network: &mut Network) -> Option<()> {
    let mut scanner = Scanner::new(fields);
    let length: u16 = scanner.after(b"length: ")?.small()?;
    scanner.passes(b" ");
    read_ports(&mut scanner, network)?;
    scanner.after(b")");
    if scanner.passes(b" ns3::SeqTs") {
        network.sequence = scanner.after(b"seq=").and_then(Scanner::number);
    }
    network.endpoints.protocol = 17;
    network.transport = Transport::Udp;
    network.header_bytes = UDP_HEADER as u8;
    network.payload_bytes = Some(u32::from(length).saturating_sub(UDP_HEADER));
    Some(())
}

/// A fragment whose transport header is in another packet.
pub fn leave_later_fragment(network: &mut Network, payload: u32) {
    network.transport = Transport::LaterFragment;
    network.payload_bytes = Some(payload);
}

fn read_ports(scanner: &mut Scanner<'_>, network: &mut Network) -> Option<()> {
    network.endpoints.src_port = scanner.small()?;
    network.endpoints.dst_port = scanner.after(b"> ")?.small()?;
    network.has_ports = true;
    Some(())
}

/// `SYN|ACK`, up to 3.23 ` SYN  ACK `.
fn flags_of(text: &[u8]) -> TcpFlags {
    let mut flags = 0;
    for name in text.split(|&byte| byte == b'|' || byte == b' ') {
        flags |= match name {
            b"FIN" => TcpFlags::FIN,
            b"SYN" => TcpFlags::SYN,
            b"RST" => TcpFlags::RST,
            b"PSH" => 0x008,
            b"ACK" => TcpFlags::ACK,
            b"URG" => 0x020,
            b"ECE" => 0x040,
            b"CWR" => 0x080,
            _ => 0,
        };
    }
    TcpFlags(flags)
}

/// Length of the options, as far as known.
#[derive(Debug, PartialEq, Eq)]
enum Options {
    Bytes(u32),
    /// One option has an unknown length.
    Unknown,
}

/// Read the options and move after the header. Their lengths are not printed, but follow from
/// their kinds.
fn read_options(scanner: &mut Scanner<'_>, tcp: &mut Tcp) -> Options {
    let mut sum = Options::Bytes(0);
    while scanner.passes(b" ns3::TcpOption") {
        let Some(name) = scanner.until(b'(') else { return Options::Unknown };
        let Some(value) = scanner.until(b')') else { return Options::Unknown };
        let bytes = read_option(name, value, tcp);
        sum = match (sum, bytes) {
            (Options::Bytes(sum), Some(bytes)) => Options::Bytes(sum + bytes),
            _ => Options::Unknown,
        };
    }
    scanner.passes(b")");
    sum
}

/// Read one option and return its length, if it is known.
fn read_option(name: &[u8], value: &[u8], tcp: &mut Tcp) -> Option<u32> {
    let mut value = Scanner::new(value);
    match name {
        b"TS" => {
            let sent = value.small()?;
            value.passes(b";");
            tcp.options.timestamp = Some((sent, value.small()?));
            Some(10)
        }
        b"WinScale" => {
            tcp.options.window_scale = value.small::<u8>().map(|shift| shift.min(MAX_WINDOW_SCALE));
            Some(3)
        }
        b"MSS" => {
            while !value.rest().first()?.is_ascii_digit() {
                value.passes(value.rest().get(..1)?);
            }
            tcp.options.mss = value.small();
            Some(4)
        }
        b"SackPermitted" => {
            tcp.options.sack = Sack::PERMITTED;
            Some(2)
        }
        b"Sack" => {
            let blocks: u8 = value.after(b"blocks: ")?.small()?;
            tcp.options.sack = Sack::PRINTED;
            Some(2 + 8 * u32::from(blocks))
        }
        b"End" | b"NOP" => Some(1),
        _ => None,
    }
}

/// The blocks of a line that has some: `ns3::TcpOptionSack(blocks: 2,[18001,19001][10001,17001])`.
pub fn sack_blocks(line: &[u8]) -> SackBlocks {
    let mut scanner = Scanner::new(line);
    let Some(option) = scanner.after(b"TcpOptionSack(") else { return SackBlocks::default() };
    option.until(b',');
    sack_blocks::read(option.rest(), *b"[,]", 0)
}

fn padded(options: u32) -> u32 {
    options.next_multiple_of(4)
}

/// Payload after a header of unknown length, of at most `most` bytes: releases up to 3.21 print no
/// options, and the padding of short frames looks like payload.
fn payload_behind(tail: &[u8], most: u32) -> u32 {
    let mut scanner = Scanner::new(tail);
    if !scanner.passes(b" Payload (size=") {
        // Nothing after the header, or a header of the application.
        let is_empty = tail.trim_ascii().is_empty() || tail.starts_with(b" ns3::EthernetTrailer");
        return if is_empty { 0 } else { most };
    }
    let Some(size) = scanner.small::<u32>() else { return most };
    scanner.passes(b")");
    if scanner.passes(b" Payload") { most } else { size.min(most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str, bytes: u32) -> Network {
        let mut network = Network::default();
        read_tcp(text.as_bytes(), bytes, &mut network).unwrap();
        network
    }

    #[test]
    fn test_tcp_of_all_releases() {
        let old = tcp(" (5001 > 49153 [ SYN  ACK ] Seq=0 Ack=1 Win=65535)", 20);
        let new = tcp(
            " (5001 > 49153 [SYN|ACK] Seq=0 Ack=1 Win=65535 ns3::TcpOptionTS(512;500) ns3::TcpOptionWinScale(3) \
             ns3::TcpOptionSackPermitted([sack_perm]) ns3::TcpOptionEnd(EOL))",
            36,
        );
        for network in [&old, &new] {
            let ports = (network.endpoints.src_port, network.endpoints.dst_port);
            assert_eq!((ports, network.payload_bytes), ((5001, 49153), Some(0)));
            let tcp = &network.tcp;
            assert_eq!((tcp.flags.letters(), tcp.seq, tcp.ack, tcp.window), ("SA".into(), 0, 1, 65535));
        }
        assert_eq!(new.tcp.options.timestamp, Some((512, 500)));
        assert_eq!(new.tcp.options.window_scale, Some(3));
    }

    #[test]
    fn test_payload_follows_from_the_lengths() {
        let payload = |tail: &str, bytes| {
            tcp(&format!(" (1 > 2 [ACK] Seq=1 Ack=1 Win=5{tail}"), bytes).payload_bytes.unwrap()
        };
        let timestamp = " ns3::TcpOptionTS(525;512) ns3::TcpOptionEnd(EOL))";
        assert_eq!(payload(&format!("{timestamp} Payload (size=1000)"), 1032), 1000);
        assert_eq!(payload(&format!("{timestamp} ns3::EthernetTrailer (fcs=0)"), 32), 0);
        let sack = " ns3::TcpOptionTS(7;5) ns3::TcpOptionSack(blocks: 2,[18001,19001][10001,17001]))";
        assert_eq!(payload(sack, 48), 0);
        // padding of a short frame, an application's header, data of two packets, a foreign option
        assert_eq!(payload(") Payload (size=6) ns3::EthernetTrailer (fcs=0)", 20), 0);
        assert_eq!(
            payload(") ns3::SeqTsSizeHeader ((size=500) (seq=1 time=+1s)) Payload (size=480)", 520),
            500
        );
        assert_eq!(payload(") Payload (size=300) Payload (size=200)", 520), 500);
        assert_eq!(payload(" ns3::TcpOptionUnknown(9)) Payload (size=500)", 532), 500);
        assert_eq!(payload(") Payload (size=500)", 532), 500);
    }

    #[test]
    fn test_blocks_are_read_where_the_options_have_some() {
        let line = b"r 1 /NodeList/0 ns3::TcpHeader (1 > 2 [ACK] Seq=1 Ack=1 Win=5 ns3::TcpOptionTS(7;5) \
            ns3::TcpOptionSack(blocks: 2,[18001,19001][10001,17001]))";
        assert_eq!(sack_blocks(line).blocks(), [(18_001, 19_001), (10_001, 17_001)]);
        assert_eq!(sack_blocks(b"ns3::TcpOptionSack(blocks: 1").blocks(), []);
    }

    #[test]
    fn test_mss_is_found_behind_words() {
        let network = tcp(" (1 > 2 [SYN] Seq=1 Ack=1 Win=5 ns3::TcpOptionMSS(MSS:1460))", 24);
        assert_eq!(network.tcp.options.mss, Some(1460));
    }

    #[test]
    fn test_udp_with_and_without_a_number() {
        for (tail, sequence) in [
            (" Payload (size=1000)", None),
            (" ns3::SeqTsHeader ((seq=12 time=+0.7s)) Payload (size=988)", Some(12)),
            (" ns3::SeqTsHeader ((seq=12 time=0.7)) Payload (size=988)", Some(12)),
        ] {
            let mut network = Network::default();
            read_udp(format!(" (length: 1008 49153 > 6001){tail}").as_bytes(), &mut network).unwrap();
            assert_eq!((network.sequence, network.payload_bytes), (sequence, Some(1000)), "{tail}");
        }
    }
}
