//! TCP headers and options (RFC 9293, RFC 7323, RFC 2018, RFC 9768).

use super::{Bytes, u16_at, u32_at};
use crate::packet::event::{Layer, Network, Reason, Sack, Stop, Tcp, TcpFlags, TcpOptions, Transport};
use crate::packet::extras::{EcnByteCounters, PacketExtras, SackBlocks};

/// Bytes of the header without options.
const HEADER: usize = 20;
/// `NOP NOP timestamp(10)`: the options of nearly every segment, in this order.
const ALIGNED_TIMESTAMP: [u8; 4] = [1, 1, 8, 10];
/// Accurate ECN options, by the order of their counters (RFC 9768 section 3.2.3).
const ACC_ECN_0: u8 = 172;
const ACC_ECN_1: u8 = 174;
/// RFC 7323 section 2.3: a larger shift count must be taken for 14.
const MAX_WINDOW_SCALE: u8 = 14;

/// Decode a TCP header into `network`, and SACK blocks into `extras`; a cut header keeps the ports.
#[inline(always)]
pub fn decode(bytes: Bytes<'_>, network: &mut Network, extras: &mut PacketExtras) -> Option<Stop> {
    let Some(header) = bytes.captured.first_chunk::<HEADER>() else {
        return Some(ports_only(bytes, network));
    };
    network.endpoints.src_port = u16_at(header, 0);
    network.endpoints.dst_port = u16_at(header, 2);
    network.has_ports = true;
    let length = usize::from(header[12] >> 4) * 4;
    let payload = bytes.on_wire.checked_sub(length as u32);
    let (true, Some(payload)) = (length >= HEADER, payload) else {
        return Some(Stop { layer: Layer::Tcp, reason: Reason::Malformed });
    };
    let end = length.min(bytes.captured.len());
    let (options, ecn_counters) = read_options(&bytes.captured[HEADER..end], end < length, extras);
    network.head = ecn_counters.and_then(|counters| extras.add_ecn_counters(counters));
    network.transport = Transport::Tcp;
    network.tcp = Tcp {
        seq: u32_at(header, 4),
        ack: u32_at(header, 8),
        flags: TcpFlags(u16_at(header, 12) & 0x01ff),
        window: u16_at(header, 14),
        options,
    };
    network.header_bytes = length as u8;
    network.payload_bytes = Some(payload);
    network.captured_payload = (bytes.captured.len() - end) as u32;
    (end < length).then(|| bytes.shortage(length, Layer::Tcp))
}

#[cold]
fn ports_only(bytes: Bytes<'_>, network: &mut Network) -> Stop {
    if let Some(ports) = bytes.captured.first_chunk::<4>() {
        network.endpoints.src_port = u16_at(ports, 0);
        network.endpoints.dst_port = u16_at(ports, 2);
        network.has_ports = true;
    }
    bytes.shortage(HEADER, Layer::Tcp)
}

/// Decode a header that was captured whole into `tcp`, which is overwritten. False if it is a SYN,
/// or has other options than a timestamp and SACK blocks.
#[inline(always)]
pub fn decode_plain(header: &[u8; HEADER], options: &[u8], tcp: &mut Tcp, extras: &mut PacketExtras) -> bool {
    // Its length, flags and window.
    let word = u32_at(header, 12);
    tcp.flags = TcpFlags((word >> 16) as u16 & 0x01ff);
    if tcp.flags.has(TcpFlags::SYN) {
        return false;
    }
    // Written in place: a value returned by either branch would be copied once more.
    if let Some(timestamp) = aligned_timestamp(options) {
        tcp.options.timestamp = Some(timestamp);
        tcp.options.sack = Sack::NONE;
    } else {
        let (found, ecn_counters) = walk(options, false, extras);
        let is_of_syn = found.mss.is_some() || found.window_scale.is_some() || found.sack.is_permitted();
        if is_of_syn || ecn_counters.is_some() {
            extras.take_back_sack(found.sack);
            return false;
        }
        tcp.options = found;
    }
    tcp.seq = u32_at(header, 4);
    tcp.ack = u32_at(header, 8);
    tcp.window = word as u16;
    true
}

/// A timestamp that is the only option.
#[inline(always)]
fn aligned_timestamp(options: &[u8]) -> Option<(u32, u32)> {
    let aligned = options
        .first_chunk::<12>()
        .filter(|aligned| options.len() == 12 && aligned[..4] == ALIGNED_TIMESTAMP)?;
    Some((u32_at(aligned, 4), u32_at(aligned, 8)))
}

#[inline]
fn read_options(
    bytes: &[u8],
    is_cut: bool,
    extras: &mut PacketExtras,
) -> (TcpOptions, Option<EcnByteCounters>) {
    match aligned_timestamp(bytes) {
        Some(timestamp) => (TcpOptions { timestamp: Some(timestamp), ..TcpOptions::default() }, None),
        None => walk(bytes, is_cut, extras),
    }
}

/// Read options one by one, up to the first invalid length. Not inlined: the loop over packets
/// would lose the registers that this one needs.
#[inline(never)]
fn walk(mut bytes: &[u8], is_cut: bool, extras: &mut PacketExtras) -> (TcpOptions, Option<EcnByteCounters>) {
    let (mut found, mut ecn_counters) = (TcpOptions::default(), None);
    loop {
        let (&kind, rest) = match bytes.split_first() {
            None | Some((0, _)) => return (found, ecn_counters),
            Some((1, rest)) => {
                bytes = rest;
                continue;
            }
            Some(split) => split,
        };
        let Some(option) = rest.first().and_then(|&length| bytes.get(2..usize::from(length))) else {
            if is_cut && kind == 5 {
                found.sack = cut_sack(rest, extras);
            }
            return (found, ecn_counters);
        };
        match (kind, option.len()) {
            (2, 2) => found.mss = Some(u16_at(option, 0)),
            (3, 1) => found.window_scale = Some(option[0].min(MAX_WINDOW_SCALE)),
            (4, 0) => found.sack = Sack::PERMITTED,
            (5, 8 | 16 | 24 | 32) => found.sack = sack_blocks(option, extras),
            (8, 8) => found.timestamp = Some((u32_at(option, 0), u32_at(option, 4))),
            (ACC_ECN_0 | ACC_ECN_1, 3..) => ecn_counters = Some(read_ecn_counters(kind, option)),
            _ => {}
        }
        bytes = &bytes[2 + option.len()..];
    }
}

/// The counters that fit into an option, whatever its length (RFC 9768 table 5).
fn read_ecn_counters(kind: u8, option: &[u8]) -> EcnByteCounters {
    let mut fields =
        option.as_chunks::<3>().0.iter().map(|&[high, mid, low]| u32::from_be_bytes([0, high, mid, low]));
    let [first, ce, last] = std::array::from_fn(|_| fields.next());
    let (ect0, ect1) = if kind == ACC_ECN_0 { (first, last) } else { (last, first) };
    EcnByteCounters { ect0, ce, ect1 }
}

/// The whole blocks of an option that the capture cut after its `kind`.
#[cold]
fn cut_sack(rest: &[u8], extras: &mut PacketExtras) -> Sack {
    match rest {
        [10 | 18 | 26 | 34, blocks @ ..] if blocks.len() >= 8 => sack_blocks(blocks, extras),
        _ => Sack::default(),
    }
}

fn sack_blocks(option: &[u8], extras: &mut PacketExtras) -> Sack {
    let mut found = SackBlocks::default();
    for block in option.as_chunks::<8>().0 {
        found.add(u32_at(block, 0), u32_at(block, 4));
    }
    extras.add_sack(found).and_then(Sack::with_blocks).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(bytes: &[u8]) -> TcpOptions {
        super::walk(bytes, false, &mut PacketExtras::default()).0
    }

    #[test]
    fn test_sack_blocks_are_kept_beside_the_packet() {
        let mut extras = PacketExtras::default();
        let mut bytes = vec![1, 1, 5, 18];
        bytes.extend([1_u32, 2, 30, 40].map(u32::to_be_bytes).concat());
        let (found, _) = super::walk(&bytes, false, &mut extras);
        assert_eq!(extras.sack(found.sack), [(1, 2), (30, 40)]);
        // Cut by the capture inside the second block, and an option longer than its header.
        let (found, _) = super::walk(&bytes[..16], true, &mut extras);
        assert_eq!(extras.sack(found.sack), [(1, 2)]);
        assert_eq!(walk(&bytes[..16]).sack, Sack::default());
        // A length that fits no number of blocks.
        bytes[3] = 17;
        assert_eq!(walk(&bytes).sack, Sack::default());
    }

    /// Options of a Linux SYN: MSS 1460, SACK permitted, timestamps, NOP, window scale 10.
    const SYN_OPTIONS: [u8; 20] = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 10];

    #[test]
    fn test_options_of_a_syn() {
        let found = walk(&SYN_OPTIONS);
        assert_eq!(found.mss, Some(1460));
        assert_eq!(found.window_scale, Some(10));
        assert_eq!(found.timestamp, Some((7, 0)));
        assert!(found.sack.is_permitted());
    }

    #[test]
    fn test_ecn_counters_stand_in_the_order_of_their_option() {
        let counters = |bytes: &[u8]| super::walk(bytes, false, &mut PacketExtras::default()).1;
        let all = EcnByteCounters { ect0: Some(1), ce: Some(0x0001_0002), ect1: Some(3) };
        assert_eq!(counters(&[172, 11, 0, 0, 1, 1, 0, 2, 0, 0, 3]), Some(all));
        assert_eq!(counters(&[174, 11, 0, 0, 3, 1, 0, 2, 0, 0, 1]), Some(all));
        assert_eq!(counters(&[1, 174, 8, 0, 0, 3, 1, 0, 2]), Some(EcnByteCounters { ect0: None, ..all }));
        // The whole fields of any other length; nothing of the shortest.
        let first = EcnByteCounters { ect0: Some(1), ..EcnByteCounters::default() };
        assert_eq!(counters(&[172, 7, 0, 0, 1, 9, 9]), Some(first));
        assert_eq!(counters(&[172, 2, 1, 1]), None);
    }

    #[test]
    fn test_an_impossible_option_length_ends_the_options() {
        assert_eq!(walk(&[2, 0, 1, 1]).mss, None);
        assert_eq!(walk(&[2, 1]).mss, None);
        assert_eq!(walk(&[2, 4, 5]).mss, None);
        assert_eq!(walk(&[2]).mss, None);
    }

    #[test]
    fn test_both_ways_to_read_a_timestamp_agree() {
        let bytes = [1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0];
        let (found, _) = read_options(&bytes, false, &mut PacketExtras::default());
        assert_eq!(format!("{found:?}"), format!("{:?}", walk(&bytes)));
        assert_eq!(found.timestamp, Some((256, 512)));
    }

    #[test]
    fn test_a_header_cut_behind_the_ports_keeps_them() {
        let mut network = Network::default();
        let bytes = Bytes { captured: &[0, 80, 1, 0, 9], on_wire: 20 };
        let stop = decode(bytes, &mut network, &mut PacketExtras::default()).unwrap();
        assert_eq!(stop, Stop { layer: Layer::Tcp, reason: Reason::Cut });
        assert_eq!((network.endpoints.src_port, network.endpoints.dst_port), (80, 256));
        assert_eq!(network.payload_bytes, None);
    }
}
