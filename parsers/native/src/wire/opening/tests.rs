use proptest::prelude::*;

use super::first_bytes::{FirstBytes, MOST_BYTES};
use super::*;
use crate::packet::encapsulation::Lane;
use crate::packet::event::{Endpoints, Family, Network, Tcp, TcpFlags, Transport};
use crate::packet::opening::{ClientHello, NamedBy};
use crate::testing::vectors::{from_hex, vectors};

/// The message of RFC 8448.
pub fn hello() -> Vec<u8> {
    from_hex(vectors("tls_client_hello.json")[0]["message"].as_str().unwrap())
}

/// A message in records of so many bytes.
pub fn in_records(message: &[u8], size: usize) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1], &(part.len() as u16).to_be_bytes()[..], part].concat();
    message.chunks(size).flat_map(record).collect()
}

/// A client of one connection.
struct Client {
    first_bytes: FirstBytes,
    endpoints: Endpoints,
}

impl Client {
    const SYN: u32 = u32::MAX - 20;

    fn new() -> Self {
        Self::at_port(1, FirstBytes::default())
    }

    fn at_port(src_port: u16, first_bytes: FirstBytes) -> Self {
        let endpoints =
            Endpoints { family: Family::V4, protocol: 6, src: 1, dst: 2, src_port, dst_port: 443 };
        let mut client = Self { first_bytes, endpoints };
        assert_eq!(client.segment(TcpFlags::SYN, Self::SYN, &[], 0), None);
        client
    }

    /// A segment with `payload`, of which so many bytes were captured.
    fn segment(&mut self, flags: u16, seq: u32, payload: &[u8], captured: usize) -> Option<Opening> {
        let network = Network {
            endpoints: self.endpoints,
            transport: Transport::Tcp,
            tcp: Tcp { seq, ack: Self::SYN.wrapping_add(1), flags: TcpFlags(flags), ..Tcp::default() },
            payload_bytes: Some(payload.len() as u32),
            captured_payload: captured as u32,
            ..Network::default()
        };
        self.first_bytes.on_segment(&network, &[&[9; 54], &payload[..captured]].concat())
    }

    /// Bytes of the stream from `start` on.
    fn data(&mut self, start: usize, bytes: &[u8]) -> Option<Opening> {
        self.segment(TcpFlags::ACK, Self::SYN.wrapping_add(1 + start as u32), bytes, bytes.len())
    }
}

fn expected() -> Opening {
    let hello = ClientHello { server_name: Some("server".into()), ..ClientHello::default() };
    Opening::Hello(hello)
}

proptest! {
    #[test]
    fn test_any_segmentation_gives_the_same_name(
        record in 1_usize..200,
        mut cuts in proptest::collection::vec(1_usize..400, 0..40),
        order in any::<prop::sample::Index>(),
        reach in 0_usize..100,
        seed: u64,
    ) {
        for stream in [in_records(&hello(), record), b"GET /a/b HTTP/1.1\r\nAccept: *\r\nHost: server:80\r\n\r\n".to_vec()] {
            cuts.push(0);
            cuts.retain(|cut| *cut < stream.len());
            cuts.sort_unstable();
            cuts.dedup();
            let ends = cuts.iter().skip(1).copied().chain([stream.len()]);
            // Segments reach into those after them, as retransmissions do.
            let mut segments: Vec<(usize, usize)> =
                cuts.iter().copied().zip(ends.map(|end| (end + reach).min(stream.len()))).collect();
            segments.push(segments[order.index(segments.len())]);
            segments.sort_by_key(|(start, _)| (*start as u64).wrapping_mul(seed | 1).rotate_left(17));
            let mut client = Client::new();
            let shown: Vec<Opening> =
                segments.iter().filter_map(|&(start, end)| client.data(start, &stream[start..end])).collect();
            let last = shown.last();
            prop_assert_eq!(last.and_then(Opening::server_name), Some("server"));
            prop_assert!(shown[..shown.len() - 1].iter().all(|before| *before == Opening::Part));
        }
    }

    #[test]
    fn test_any_segments_keep_memory_bounded(
        segments in proptest::collection::vec((0_u16..4, any::<u16>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..60),
    ) {
        let mut client = Client::new();
        for (flags, start, bytes) in segments {
            client.endpoints.src_port = start % 3;
            let seq = Client::SYN.wrapping_add(u32::from(start));
            client.segment(flags, seq, &bytes, bytes.len() / 2);
        }
    }
}

#[test]
fn test_the_first_bytes_are_those_after_the_syn() {
    let stream = in_records(&hello(), 1_000);
    let mut client = Client::new();
    assert_eq!(client.data(0, &stream), Some(expected()));
    // Known once; what follows is no beginning.
    assert_eq!(client.data(0, &stream), None);
    assert_eq!(Client::new().data(1, &stream), None);
    assert_eq!(Client::new().data(1 << 30, &stream), None);
    // With the SYN (RFC 7413).
    let mut fast = Client::new();
    let opening = fast.segment(TcpFlags::SYN, 7, &stream, stream.len());
    assert_eq!(opening, Some(expected()));
    // Of a capture that has the server's SYN only.
    let mut late = Client { first_bytes: FirstBytes::default(), ..Client::new() };
    let there = late.endpoints;
    late.endpoints =
        Endpoints { src: there.dst, dst: there.src, src_port: 443, dst_port: there.src_port, ..there };
    assert_eq!(late.segment(TcpFlags::SYN | TcpFlags::ACK, 99, &[], 0), None);
    late.endpoints = there;
    assert_eq!(late.data(0, &stream), Some(expected()));
    // In another network the same ports are another connection.
    let mut other = Client::new();
    let network = Network {
        endpoints: other.endpoints,
        lane: Lane { network: 7, path: 0 },
        transport: Transport::Tcp,
        tcp: Tcp { seq: Client::SYN.wrapping_add(1), flags: TcpFlags(TcpFlags::ACK), ..Tcp::default() },
        payload_bytes: Some(stream.len() as u32),
        captured_payload: stream.len() as u32,
        ..Network::default()
    };
    assert_eq!(other.first_bytes.on_segment(&network, &stream), None);
}

#[test]
fn test_a_message_that_was_cut_is_a_part() {
    let stream = in_records(&hello(), 1_000);
    let mut client = Client::new();
    assert_eq!(client.segment(TcpFlags::ACK, Client::SYN.wrapping_add(1), &stream, 60), Some(Opening::Part));
    assert_eq!(client.data(stream.len(), b"more"), None);
    assert_eq!(Opening::Part.server_name(), None);
    // Nothing is awaited any more, nor where all was cut, or the beginning is missing.
    for (start, captured) in [(0, 60), (0, 0), (20_000, 200)] {
        let mut client = Client::new();
        client.segment(TcpFlags::ACK, Client::SYN.wrapping_add(1 + start), &stream, captured);
        assert!(client.first_bytes.is_idle());
    }
}

#[test]
fn test_the_extension_of_encrypted_client_hello_marks_the_name() {
    let mut message = hello();
    message.extend([0xfe, 0x0d, 0, 1, 0]);
    let length = |at: usize, message: &mut Vec<u8>| message[at] += 5;
    // Of the message and of its extensions.
    length(3, &mut message);
    length(50, &mut message);
    let opening = Client::new().data(0, &in_records(&message, 1_000)).unwrap();
    assert_eq!((opening.server_name(), opening.named_by()), (Some("server"), Some(NamedBy::SniWithEch)));
    assert_eq!(expected().named_by(), Some(NamedBy::Sni));
}

#[test]
fn test_an_empty_name_is_none() {
    let mut message = hello();
    let name = message.windows(6).position(|bytes| bytes == b"server").unwrap();
    message[name - 1] = 0;
    let opening = Client::new().data(0, &in_records(&message, 1_000)).unwrap();
    assert_eq!((opening.server_name(), opening.named_by()), (None, None));
}

#[test]
fn test_a_longer_message_is_not_read() {
    let mut client = Client::new();
    let head = [1, 0, (MOST_BYTES >> 8) as u8, 0];
    assert_eq!(client.data(0, &in_records(&head, 4)), Some(Opening::Unread));
    let request = [b"GET / HTTP/1.1\r\nCookie: ".as_slice(), &[b'a'; 20_000]].concat();
    assert_eq!(Client::new().data(0, &request), Some(Opening::Unread));
    // A beginning that went on otherwise.
    let mut client = Client::new();
    assert_eq!(client.data(0, b"GET /"), Some(Opening::Part));
    assert_eq!(client.data(5, b"a\r\n"), Some(Opening::Unread));
}

#[test]
fn test_a_message_is_read_whatever_came_before_its_beginning() {
    let stream = [in_records(&hello(), 1_000), vec![23; 20_000]].concat();
    let mut client = Client::new();
    assert_eq!(client.data(100, &stream[100..]), None);
    assert_eq!(client.data(0, &stream[..100]), Some(expected()));
}

#[test]
fn test_gaps_count_as_memory() {
    let mut client = Client::new();
    for at in (2..400).step_by(2) {
        client.data(at, b"a");
    }
    let ranges = 128 * size_of::<(usize, usize)>();
    assert!(client.first_bytes.sizes().1 >= ranges, "{:?}", client.first_bytes.sizes());
}

#[test]
fn test_memory_is_bounded() {
    let mut first_bytes = FirstBytes::default();
    for port in 0..40_000 {
        let mut client = Client::at_port(port, first_bytes);
        client.data(16_000, b"late");
        first_bytes = client.first_bytes;
    }
    let (clients, kept) = first_bytes.sizes();
    assert!(clients <= 8_192 && kept <= (4 << 20) + 20_000, "{clients} {kept}");
}
