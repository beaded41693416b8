//! ns-3's FlowMonitor: totals of each direction of each flow, as XML.
//!
//! The statistics come first and identify flows by number only; the classifiers that follow map
//! numbers to addresses and ports. Times have six digits. Bytes are those of IP packets.

use std::collections::BTreeMap;

use quick_xml::events::BytesStart;

use super::Document;
use super::xml::{self, Tag};
use crate::error::{ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::packet::event::{Address, Code, Endpoints, Family, NodeLayer};
use crate::packet::flow_totals::FlowTotals;
use crate::plural::all_counted;

/// The most flows that are kept.
const MAX_FLOWS: usize = 1 << 20;
/// The most histogram bins that are kept, over all flows.
const MAX_BINS: usize = 1 << 22;
/// The most drop reasons that are kept for one flow; ns-3 has eleven.
const MAX_REASONS: usize = 32;

/// Whether a document that starts with these bytes is FlowMonitor's.
pub fn recognises(start: &[u8]) -> bool {
    memchr::memmem::find(start, b"<FlowMonitor").is_some()
}

/// Read all of `input`.
pub fn read(input: Input, document: &mut Document) -> Result<(), ReadError> {
    let mut monitor = Monitor::default();
    let mut is_empty = true;
    let outcome = xml::read(input, |tag| match tag {
        Tag::Open(depth, tag) => {
            is_empty = false;
            monitor.on_open(depth, tag);
        }
        Tag::Close(depth) => monitor.on_close(depth),
    });
    monitor.finish(document);
    if outcome.is_ok() && is_empty {
        let message = "this has no element of XML, expected a file of FlowMonitor";
        return Err(ReadError::at(ProblemKind::NotACapture, 0, message));
    }
    outcome
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    Statistics,
    /// The five-tuples of the numbers.
    Classifier(Family),
    /// Statistics of single probes; those of flows are their sums.
    #[default]
    Other,
}

/// Statistics of a flow as far as they are read.
#[derive(Debug, Default)]
struct Statistics {
    totals: FlowTotals,
    /// Packets dropped, by reason number, which depends on the IP version.
    drops: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Monitor {
    section: Section,
    statistics: BTreeMap<u64, Statistics>,
    endpoints: BTreeMap<u64, Endpoints>,
    /// The flow whose element is open.
    flow: Option<u64>,
    is_in_delays: bool,
    bins: usize,
    left_out_flows: u64,
    left_out_bins: u64,
    /// Elements with a number or address that is none.
    unreadable: u64,
    /// Numbers used by both an IPv4 and an IPv6 flow.
    shared: u64,
}

impl Monitor {
    fn on_open(&mut self, depth: usize, tag: &BytesStart<'_>) {
        match (depth, tag.name().0) {
            (2, "FlowStats") => self.section = Section::Statistics,
            (2, "Ipv4FlowClassifier") => self.section = Section::Classifier(Family::V4),
            (2, "Ipv6FlowClassifier") => self.section = Section::Classifier(Family::V6),
            (2, _) => self.section = Section::Other,
            (3, "Flow") => match self.section {
                Section::Statistics => self.on_statistics(tag),
                Section::Classifier(family) => self.on_endpoints(family, tag),
                Section::Other => {}
            },
            (4, "packetsDropped") => self.on_drops(tag),
            (4, "delayHistogram") => self.is_in_delays = true,
            (5, "bin") if self.is_in_delays => self.on_bin(tag),
            _ => {}
        }
    }

    fn on_close(&mut self, depth: usize) {
        match depth {
            3 => self.flow = None,
            4 => self.is_in_delays = false,
            _ => {}
        }
    }

    fn on_statistics(&mut self, tag: &BytesStart<'_>) {
        let Some((number, statistics)) = read_statistics(tag) else {
            self.unreadable += 1;
            return;
        };
        if self.statistics.len() >= MAX_FLOWS {
            self.left_out_flows += 1;
            return;
        }
        self.statistics.insert(number, statistics);
        self.flow = Some(number);
    }

    fn on_endpoints(&mut self, family: Family, tag: &BytesStart<'_>) {
        let Some((number, endpoints)) = read_endpoints(family, tag) else {
            self.unreadable += 1;
            return;
        };
        match self.endpoints.get(&number) {
            Some(_) => self.shared += 1,
            None if self.endpoints.len() < MAX_FLOWS => {
                self.endpoints.insert(number, endpoints);
            }
            None => {}
        }
    }

    fn on_drops(&mut self, tag: &BytesStart<'_>) {
        let (mut reason, mut count) = (None, None);
        for (name, value) in xml::attributes(tag) {
            match name {
                "reasonCode" => reason = value.parse().ok(),
                "number" => count = value.parse().ok(),
                _ => {}
            }
        }
        let (Some(reason), Some(count)) = (reason, count) else {
            self.unreadable += 1;
            return;
        };
        if let Some(statistics) = self.open_flow()
            && count > 0
            && statistics.drops.len() < MAX_REASONS
        {
            statistics.drops.push((reason, count));
        }
    }

    fn on_bin(&mut self, tag: &BytesStart<'_>) {
        let (mut start, mut width, mut count) = (None, None, None);
        for (name, value) in xml::attributes(tag) {
            match name {
                "start" => start = seconds(&value),
                "width" => width = seconds(&value),
                "count" => count = value.parse().ok(),
                _ => {}
            }
        }
        let (Some(start), Some(width), Some(count)) = (start, width, count) else {
            self.unreadable += 1;
            return;
        };
        if self.bins >= MAX_BINS {
            self.left_out_bins += 1;
            return;
        }
        self.bins += 1;
        if let Some(statistics) = self.open_flow() {
            statistics.totals.delay_histogram.push((start.saturating_add(width), count));
        }
    }

    fn open_flow(&mut self) -> Option<&mut Statistics> {
        self.statistics.get_mut(&self.flow?)
    }

    /// Join the statistics and the five-tuple of each number.
    fn finish(self, document: &mut Document) {
        let mut nameless = 0;
        for (number, Statistics { mut totals, drops }) in self.statistics {
            let Some(endpoints) = self.endpoints.get(&number) else {
                nameless += 1;
                continue;
            };
            totals.endpoints = *endpoints;
            let named = drops.iter().map(|&(reason, count)| {
                let (layer, code) = reason_of(endpoints.family, reason);
                (layer, Code::new(code), count)
            });
            totals.drops = named.collect();
            document.flows.push(totals);
        }
        let counted = [
            (nameless, "flow[s] without addresses [was|were] left out"),
            (self.unreadable, "element[s] with an unreadable number or address [was|were] left out"),
            (self.left_out_flows, "flow[s] beyond the first 1,048,576 [was|were] left out"),
            (self.left_out_bins, "bin[s] of histograms [was|were] left out"),
            (
                self.shared,
                "number[s] mean[s|] a flow of IPv4 and one of IPv6: FlowMonitor counts both as one",
            ),
        ];
        document.caveats.extend(all_counted(counted));
    }
}

/// Read the statistics in the attributes of `<Flow>`.
fn read_statistics(tag: &BytesStart<'_>) -> Option<(u64, Statistics)> {
    let mut number = None;
    let mut totals = FlowTotals::default();
    let mut sent_ns = (None, None);
    let mut received_ns = (None, None);
    let mut delay_range_ns = (None, None);
    for (name, value) in xml::attributes(tag) {
        let count = || value.parse().ok();
        match name {
            "flowId" => number = value.parse().ok(),
            "timeFirstTxPacket" => sent_ns.0 = time_ns(&value),
            "timeLastTxPacket" => sent_ns.1 = time_ns(&value),
            "timeFirstRxPacket" => received_ns.0 = time_ns(&value),
            "timeLastRxPacket" => received_ns.1 = time_ns(&value),
            "delaySum" => totals.delay_sum_ns = sum_ns(&value),
            "jitterSum" => totals.jitter_sum_ns = sum_ns(&value),
            "minDelay" => delay_range_ns.0 = time_ns(&value),
            "maxDelay" => delay_range_ns.1 = time_ns(&value),
            "txPackets" => totals.sent.0 = count()?,
            "txBytes" => totals.sent.1 = count()?,
            "rxPackets" => totals.received.0 = count()?,
            "rxBytes" => totals.received.1 = count()?,
            "lostPackets" => totals.lost = value.parse().ok(),
            _ => {}
        }
    }
    if totals.sent.0 > 0 {
        totals.sent_ns = sent_ns.0.zip(sent_ns.1);
    }
    // Without a packet the times are 0 and the smallest delay is the largest number.
    if totals.received.0 > 0 {
        totals.received_ns = received_ns.0.zip(received_ns.1);
        totals.delay_range_ns = delay_range_ns.0.zip(delay_range_ns.1);
    }
    Some((number?, Statistics { totals, drops: Vec::new() }))
}

/// Read the five-tuple in the attributes of `<Flow>`.
fn read_endpoints(family: Family, tag: &BytesStart<'_>) -> Option<(u64, Endpoints)> {
    let mut number = None;
    let (mut src, mut dst) = (None, None);
    let mut endpoints = Endpoints { family, ..Endpoints::default() };
    for (name, value) in xml::attributes(tag) {
        match name {
            "flowId" => number = value.parse().ok(),
            "sourceAddress" => src = address(family, &value),
            "destinationAddress" => dst = address(family, &value),
            "protocol" => endpoints.protocol = value.parse().ok()?,
            "sourcePort" => endpoints.src_port = value.parse().ok()?,
            "destinationPort" => endpoints.dst_port = value.parse().ok()?,
            _ => {}
        }
    }
    (endpoints.src, endpoints.dst) = (src?, dst?);
    Some((number?, endpoints))
}

fn address(family: Family, text: &str) -> Option<Address> {
    match family {
        Family::V4 => text.parse().ok().map(|address: std::net::Ipv4Addr| address.to_bits().into()),
        _ => text.parse().ok().map(|address: std::net::Ipv6Addr| address.to_bits()),
    }
}

/// The reason that a number stands for. Releases before 3.26 have no queue discipline, so later
/// numbers are one lower there; the document does not name its release.
fn reason_of(family: Family, number: u64) -> (NodeLayer, &'static [u8]) {
    match (number, family) {
        (0, _) => (NodeLayer::Ip, b"noroute"),
        (1, _) => (NodeLayer::Ip, b"ttl"),
        (2, _) => (NodeLayer::Ip, b"checksum"),
        (3, _) => (NodeLayer::Link, b"queue"),
        (4, _) => (NodeLayer::Link, b"qdisc"),
        (5, _) => (NodeLayer::Ip, b"ifdown"),
        (6, _) => (NodeLayer::Ip, b"routeerr"),
        (7, Family::V4) | (10, Family::V6) => (NodeLayer::Ip, b"fragtime"),
        (7, Family::V6) => (NodeLayer::Ip, b"protocol"),
        (8, Family::V6) => (NodeLayer::Ip, b"option"),
        (9, Family::V6) => (NodeLayer::Ip, b"header"),
        _ => (NodeLayer::Ip, b"other"),
    }
}

/// `+1.48472e+10ns`, in newer releases with any unit.
fn parse_ns(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let per_unit = match text.get(digits.len()..)? {
        "fs" => 1e-6,
        "ps" => 1e-3,
        "" | "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3_600e9,
        "d" => 86_400e9,
        "y" => 365.0 * 86_400e9,
        _ => return None,
    };
    digits.parse().ok().map(|number: f64| number * per_unit)
}

fn time_ns(text: &str) -> Option<i64> {
    parse_ns(text).map(f64::round).filter(|ns| ns.abs() < 9e18).map(|ns| ns as i64)
}

fn sum_ns(text: &str) -> Option<u128> {
    parse_ns(text).map(f64::round).filter(|ns| (0.0..1e30).contains(ns)).map(|ns| ns as u128)
}

fn seconds(text: &str) -> Option<i64> {
    let ns = text.parse::<f64>().ok()? * 1e9;
    (ns.abs() < 9e18).then_some(ns.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ProblemKind;
    use crate::input::bytes::Progress;
    use proptest::prelude::*;
    use std::sync::Arc;

    const EXAMPLE: &str = r#"<?xml version="1.0" ?>
<FlowMonitor>
  <FlowStats>
    <Flow flowId="2" timeFirstTxPacket="+7e+08ns" timeFirstRxPacket="+0ns" timeLastTxPacket="+1.46e+09ns"
      timeLastRxPacket="+0ns" delaySum="+0ns" jitterSum="+0ns" lastDelay="+0ns" maxDelay="+0ns"
      minDelay="+9.22337e+18ns" txBytes="20960" rxBytes="0" txPackets="20" rxPackets="0" lostPackets="20"
      timesForwarded="0">
      <packetsDropped reasonCode="5" number="0" />
      <packetsDropped reasonCode="6" number="20" />
      <delayHistogram nBins="0" ></delayHistogram>
    </Flow>
    <Flow flowId="1" timeFirstTxPacket="+5e+08ns" timeFirstRxPacket="+5.24091e+08ns" timeLastTxPacket="+5.49541e+09ns"
      timeLastRxPacket="+5.49505e+09ns" delaySum="+3.35566e+11ns" jitterSum="+3.62187e+09ns" txBytes="620788"
      rxBytes="479820" txPackets="592" rxPackets="458" lostPackets="57" timesForwarded="916" maxDelay="+1.2s" minDelay="+8ms">
      <packetsDropped reasonCode="4" number="57" />
      <delayHistogram nBins="2" >
        <bin index="8" start="0.008" width="0.001" count="3" />
        <bin index="18" start="0.018" width="0.001" count="1" />
      </delayHistogram>
      <jitterHistogram nBins="1" ><bin index="8" start="0.008" width="0.001" count="3" /></jitterHistogram>
    </Flow>
  </FlowStats>
  <Ipv4FlowClassifier>
    <Flow flowId="1" sourceAddress="10.1.1.1" destinationAddress="10.1.2.2" protocol="6" sourcePort="49153" destinationPort="5001">
      <Dscp value="0x0" packets="592" />
    </Flow>
  </Ipv4FlowClassifier>
  <Ipv6FlowClassifier>
    <Flow flowId="2" sourceAddress="2001:db8::7" destinationAddress="2001:db8::a" protocol="17" sourcePort="49153" destinationPort="6001" />
  </Ipv6FlowClassifier>
  <FlowProbes><FlowProbe index="0"><FlowStats flowId="1" packets="592" bytes="620788" delayFromFirstProbeSum="+0ns" >
    <packetsDropped reasonCode="4" number="57" />
  </FlowStats></FlowProbe></FlowProbes>
</FlowMonitor>
"#;

    fn document_of(bytes: &[u8]) -> (Document, Result<(), ReadError>) {
        let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
        let input = Input::from_reader(reader, None, &Arc::new(Progress::default())).unwrap();
        let mut document = Document::default();
        let outcome = read(input, &mut document);
        (document, outcome)
    }

    #[test]
    fn test_totals_of_both_families() {
        let (document, outcome) = document_of(EXAMPLE.as_bytes());
        assert_eq!((outcome, document.caveats.len()), (Ok(()), 0));
        let [v4, v6] = &document.flows[..] else { panic!("two flows") };
        assert_eq!(v4.endpoints.src, 0x0a01_0101);
        assert_eq!((v4.sent, v4.received, v4.lost), ((592, 620_788), (458, 479_820), Some(57)));
        assert_eq!(v4.sent_ns, Some((500_000_000, 5_495_410_000)));
        assert_eq!((v4.delay_sum_ns, v4.jitter_sum_ns), (Some(335_566_000_000), Some(3_621_870_000)));
        assert_eq!(v4.delay_range_ns, Some((8_000_000, 1_200_000_000)));
        assert_eq!(v4.drops, [(NodeLayer::Link, Code::new(b"qdisc"), 57)]);
        assert_eq!(v4.delay_histogram, [(9_000_000, 3), (19_000_000, 1)]);
        assert_eq!((v6.endpoints.family, v6.endpoints.dst & 0xff), (Family::V6, 0xa));
        assert_eq!(v6.drops, [(NodeLayer::Ip, Code::new(b"routeerr"), 20)]);
        assert_eq!((v6.received_ns, v6.delay_range_ns), (None, None), "nothing was received");
    }

    #[test]
    fn test_a_cut_document_keeps_the_flows_that_have_addresses() {
        let end = EXAMPLE.find("<Ipv6FlowClassifier>").unwrap();
        let (document, outcome) = document_of(&EXAMPLE.as_bytes()[..end]);
        assert_eq!(document.flows.len(), 1);
        assert_eq!(document.caveats, ["1 flow without addresses was left out"]);
        assert_eq!(outcome.unwrap_err().kind, ProblemKind::Truncated);
    }

    #[test]
    fn test_one_number_of_two_families_is_remarked() {
        let text = EXAMPLE.replace("<Flow flowId=\"2\" sourceAddress", "<Flow flowId=\"1\" sourceAddress");
        assert!(document_of(text.as_bytes()).0.caveats.iter().any(|caveat| caveat.contains("both as one")));
    }

    #[test]
    fn test_units() {
        for (text, ns) in [
            ("+1.5e+09ns", 1_500_000_000),
            ("1.5s", 1_500_000_000),
            ("+2us", 2_000),
            ("-3ms", -3_000_000),
            ("7", 7),
        ] {
            assert_eq!(time_ns(text), Some(ns), "{text}");
        }
        for text in ["", "ns", "+9.22337e+18ns", "nan", "infns", "1 parsec"] {
            assert_eq!(time_ns(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn test_tampered_documents_end_somehow(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
            cut: prop::sample::Index,
        ) {
            let mut bytes = EXAMPLE.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
            let (document, _) = document_of(&bytes);
            prop_assert!(document.flows.len() <= 2);
        }
    }
}
