//! With many flows, packets are queued and processed out of turn, and plain segments take a shorter
//! path: the flows must be the same.
#![allow(clippy::unwrap_used)]

use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use tfrctrace_native::input::bytes::{Input, Progress};
use tfrctrace_native::input::reading::Reading;
use tfrctrace_native::pass::{Analysis, Options};
use tfrctrace_native::tables::Table;
use tfrctrace_native::testing::pcap_of_packets;

const RAW_IP: u32 = 101;
const ETHERNET: u32 = 1;
/// Two addresses and the type of IPv4.
const ETHERNET_HEADER: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
/// More flows than are processed at once.
const FLOWS: u16 = 1_500;
const SYN: u8 = 0x02;

/// The fields in which the test's packets differ.
#[derive(Clone, Debug)]
struct Sent {
    flow: u16,
    from_server: bool,
    protocol: u8,
    flags: u8,
    seq: u8,
    ack: u8,
    payload: u16,
    fragment: u16,
    stamp: Option<u8>,
    /// End of a SACK block.
    sack: Option<u8>,
    ip: (u8, u8, u8),
    captured: usize,
}

impl Sent {
    fn syn(flow: u16) -> Self {
        Self {
            flow,
            from_server: false,
            protocol: 6,
            flags: SYN,
            seq: 0,
            ack: 0,
            payload: 0,
            fragment: 0,
            stamp: None,
            sack: None,
            ip: (0, 0, 64),
            captured: usize::MAX,
        }
    }

    fn bytes(&self, link_type: u32) -> Vec<u8> {
        let stamp = |stamp| vec![1, 1, 8, 10, 0, 0, 0, stamp, 0, 0, 0, self.ack];
        let block = |end| vec![1, 1, 5, 10, 0, 0, 0, self.ack, 0, 0, 0, end];
        let options = [self.stamp.map_or(vec![], stamp), self.sack.map_or(vec![], block)].concat();
        let (tos, ip_id, ttl) = self.ip;
        let header = if self.protocol == 17 { 8 } else { 20 + options.len() };
        let total = 20 + header as u16 + self.payload;
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (src, dst) = if self.from_server { (server, client) } else { (client, server) };
        let mut ports = [20_000 + self.flow, 80].map(u16::to_be_bytes);
        if self.from_server {
            ports.reverse();
        }
        let mut bytes = vec![0x45, tos];
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, ip_id]);
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([ttl, self.protocol, 0, 0]);
        bytes.extend([src, dst].concat());
        bytes.extend(ports.concat());
        if self.protocol == 17 {
            bytes.extend((8 + self.payload).to_be_bytes());
            bytes.extend([0, 0]);
        } else {
            bytes.extend([0, 0, 0, self.seq, 0, 0, 0, self.ack]);
            bytes.extend([(header as u8 / 4) << 4, self.flags, 1, 0, 0, 0, 0, 0]);
            bytes.extend(options);
        }
        bytes.resize(usize::from(total), 0);
        bytes.truncate(self.captured);
        if link_type == ETHERNET {
            bytes.splice(0..0, ETHERNET_HEADER);
        }
        bytes
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let flags = prop::sample::select(vec![0x10, 0x10, 0x10, 0x18, 0x50, SYN, 0x12, 0x11, 0x04]);
    let protocol = prop::sample::select(vec![6, 6, 6, 17]);
    // The whole datagram mostly, else its first part or a later one.
    let fragment = prop::sample::select(vec![0, 0, 0, 0, 0, 0, 0x2000, 1]);
    let captured = prop::sample::select(vec![usize::MAX, usize::MAX, usize::MAX, 30]);
    let numbers = (0_u8..40, 0_u8..40, 0_u16..12);
    let options = (proptest::option::of(0_u8..20), proptest::option::weighted(0.1, 0_u8..40));
    let ip = (0_u8..4, 0_u8..60, 60_u8..65);
    (0_u16..4, any::<bool>(), protocol, flags, numbers, options, ip, fragment, captured).prop_map(
        |(flow, from_server, protocol, flags, (seq, ack, payload), (stamp, sack), ip, fragment, captured)| {
            Sent {
                // Two groups of neighbours.
                flow: 200 * flow,
                from_server,
                protocol,
                flags,
                seq,
                ack,
                payload,
                fragment,
                stamp,
                sack,
                ip,
                captured,
            }
        },
    )
}

fn analyse(bytes: &[u8], options: Options) -> Analysis {
    let progress = Arc::new(Progress::default());
    let input = Input::from_reader(Box::new(Cursor::new(bytes.to_vec())), None, &progress);
    let mut analysis = Analysis::new(options);
    analysis.read_from(Reading::with_input("bytes", input, None, &progress), None).unwrap();
    analysis
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn test_flows_are_the_same_whether_packets_are_set_aside_or_not(
        packets in proptest::collection::vec(sent(), 0..2_000),
        // Segments are plain over Ethernet only, and with few flows nothing is queued.
        link_type in prop::sample::select(vec![ETHERNET, ETHERNET, RAW_IP]),
        flows in prop::sample::select(vec![FLOWS, FLOWS, 0]),
    ) {
        let opening = (0..flows).map(Sent::syn);
        let packets: Vec<_> = opening.chain(packets).map(|packet| packet.bytes(link_type)).collect();
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        let bytes = pcap_of_packets(link_type, &packets);
        // Samples are in order of packets, so packets are not queued when samples are collected.
        let at_once = analyse(&bytes, Options::collecting(&["rtt"]));
        let aside = analyse(&bytes, Options::default());
        prop_assert!(aside.flows.len() >= usize::from(flows));
        let [at_once, aside] = [at_once, aside].map(|analysis| {
            let rows = Table::by_name("flows").unwrap().rows(&Arc::new(analysis), 1).unwrap();
            rows.batch(0, rows.len()).unwrap()
        });
        prop_assert_eq!(at_once, aside);
    }
}
