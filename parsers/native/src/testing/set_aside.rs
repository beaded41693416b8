//! Packets are queued and processed out of turn, by several threads, and plain segments take a shorter
//! path: the tables must be the same.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::flow::intervals::IntervalWidth;
use crate::groups::{GroupBy, Grouping};
use crate::input::bytes::{Input, Progress};
use crate::input::reading::Reading;
use crate::pass::{Analysis, Options};
use crate::tables::{Table, explain};
use crate::testing::{pcap_of_packets, uncompressed};
use arrow_array::RecordBatch;
use proptest::prelude::*;

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

fn analyse(bytes: &[u8], options: Options) -> Arc<Analysis> {
    let progress = Arc::new(Progress::default());
    let input = Input::from_reader(Box::new(Cursor::new(bytes.to_vec())), None, &progress);
    let mut analysis = Analysis::new(options);
    analysis.read_from(Reading::with_input("bytes", input, None, &progress), None).unwrap();
    analysis.finish();
    explain(&mut analysis);
    Arc::new(analysis)
}

fn table(analysis: &Arc<Analysis>, name: &str) -> RecordBatch {
    let rows = Table::by_name(name).unwrap().rows(analysis, 1).unwrap();
    rows.batch(0, rows.len()).unwrap()
}

/// Tables that are filled packet by packet, but the one whose packets are followed in the order of the file.
const COLLECTED: [&str; 4] = ["rtt", "losses", "rounds", "bins"];

/// Check that the tables are the same in the order of the file, in which packets are followed where details of
/// connections are counted, and by any number of threads.
fn check_threads(bytes: &[u8], what: &str) {
    let every = IntervalWidth::Ns(250_000_000);
    let grouping = Some(Grouping { by: GroupBy::Host, every, max_rows: 100_000 });
    let options = |tables: &[&str]| Options { grouping, ..Options::collecting(tables) };
    let in_order = analyse(bytes, options(&[&COLLECTED[..], &["tcp"]].concat()));
    let [alone, shared] = [1, 5].map(|threads| {
        let what = format!("{what} by {threads} threads");
        let threads = Some(threads);
        let collected = analyse(bytes, Options { threads, ..options(&COLLECTED) });
        for name in COLLECTED.into_iter().chain(["flows", "rtp_sources", "links"]) {
            assert_eq!(table(&collected, name), table(&in_order, name), "{name} of {what}");
        }
        let flows = analyse(bytes, Options { threads, ..Options::default() });
        assert_eq!(table(&flows, "flows"), table(&in_order, "flows"), "{what}");
        collected
    });
    for name in ["groups", "group_buckets"] {
        assert_eq!(table(&shared, name), table(&alone, name), "{name} of {what}");
    }
}

/// The captures of a folder and of those in it.
fn captures(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            captures(&path, found);
        } else if path.to_string_lossy().contains(".pcap") {
            found.push(path);
        }
    }
}

/// What crosses flows is in them: fragments, ICMP errors, RTCP, tunnels, several interfaces, 802.11.
#[test]
fn test_real_captures_give_the_same_tables_with_any_number_of_threads() {
    let mut found = Vec::new();
    captures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data"), &mut found);
    assert!(found.len() > 100);
    for path in found {
        // Slowly, without optimisation: so once, and not with each analysis.
        check_threads(&uncompressed(&fs::read(&path).unwrap()), &path.to_string_lossy());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn test_tables_are_the_same_with_any_number_of_threads(
        kinds in proptest::collection::vec(sent(), 1..100),
        order in proptest::collection::vec(any::<u16>(), 4_000..24_000),
        flows in 1..40_u16,
        // How many of a thousand packets are of any kind: the others let all others wait.
        odd in prop::sample::select(vec![0, 1, 30, 1_000]),
    ) {
        let mut sent: Vec<Sent> = (0..flows).map(Sent::syn).collect();
        let mut next = vec![(1_u8, 1_u8); usize::from(flows)];
        for number in order {
            if number % 1_000 < odd {
                sent.push(kinds[usize::from(number) % kinds.len()].clone());
                continue;
            }
            // A segment of one side of a connection: usually the next one, else one that was lost or comes again.
            let flow = number % flows;
            let from_server = number >> 7 & 1 == 1;
            let (client, server) = &mut next[usize::from(flow)];
            let (mine, theirs) = if from_server { (server, client) } else { (client, server) };
            let payload = number >> 8 & 7;
            let is_next = number >> 11 > 1;
            let seq = if is_next { *mine } else { mine.wrapping_add(payload as u8).wrapping_sub(9) };
            *mine = mine.wrapping_add(if is_next { payload as u8 } else { 0 });
            let ack = *theirs;
            sent.push(Sent { from_server, flags: 0x10, seq, ack, payload, ..Sent::syn(flow) });
        }
        let packets: Vec<_> = sent.iter().map(|packet| packet.bytes(ETHERNET)).collect();
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        check_threads(&pcap_of_packets(ETHERNET, &packets), "drawn packets");
    }
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
        prop_assert!(aside.carried.flows.len() >= usize::from(flows));
        prop_assert_eq!(table(&at_once, "flows"), table(&aside, "flows"));
    }
}
