//! Shared by the tests of whole traces and the fuzz targets: bytes in, checked tables out.

#[cfg(test)]
mod fuzz_seeds;
pub mod fuzz_targets;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod set_aside;
#[cfg(test)]
pub(crate) mod vectors;

use std::io::Cursor;
use std::sync::Arc;

use crate::error::ProblemKind;
use crate::flow::bins::PackedBins;
use crate::flow::delivery::Delivery;
use crate::input::bytes::{Input, Progress};
use crate::input::filter::Compiler;
use crate::input::reading::Reading;
use crate::input::source::InputFormat;
use crate::join::order::plan;
use crate::packet::key::Side;
use crate::pair::Tap;
use crate::pass::{Analysis, Options, RttSample};
use crate::tables::{TABLES, explain};

/// Bounds small enough that a test reaches them.
const MAX_FLOWS: u32 = 64;
const MAX_SAMPLES: usize = 1_000;
const MAX_DECOMPRESSED_BYTES: Option<u64> = Some(16 << 20);

/// Analyse `bytes` as a file with its format detected, collecting everything.
pub fn analyse_bytes(bytes: Vec<u8>) -> Analysis {
    analyse_bytes_with(everything(), bytes)
}

/// The same with the format named, as a user may do it.
pub fn analyse_bytes_as(bytes: Vec<u8>, format: &str) -> Analysis {
    let known = InputFormat::by_name(format);
    assert!(known.is_some(), "no format `{format}`");
    analyse_bytes_with(Options { format: known, ..everything() }, bytes)
}

/// The same with options of the user.
pub(crate) fn analyse_bytes_with(options: Options, bytes: Vec<u8>) -> Analysis {
    let reading = reading_of(bytes, options.format);
    let mut analysis = Analysis::new(options);
    let outcome = analysis.read_from(reading, None);
    assert!(outcome.is_ok(), "without a filter nothing can be refused: {outcome:?}");
    analysis.finish();
    explain(&mut analysis);
    analysis
}

/// The same with a filter; an error is one of its program.
pub(crate) fn analyse_filtered_bytes(bytes: Vec<u8>, compiler: &dyn Compiler) -> Result<Analysis, String> {
    let mut analysis = Analysis::new(everything());
    analysis.read_from(reading_of(bytes, None), Some(compiler))?;
    analysis.finish();
    explain(&mut analysis);
    Ok(analysis)
}

/// Analyse several files as one trace.
pub fn analyse_joined_bytes(files: &[Vec<u8>]) -> Analysis {
    let open = |file: usize| reading_of(files[file].clone(), None);
    let mut analysis = Analysis::new(everything());
    let planned = plan(files.len(), &open, None, MAX_FLOWS);
    let outcome = planned.and_then(|plan| analysis.read_planned(plan, &open, None));
    assert!(outcome.is_ok(), "without a filter nothing can be refused: {outcome:?}");
    analysis.finish();
    explain(&mut analysis);
    analysis
}

/// Analyse two captures of one path.
pub fn analyse_pair_of_bytes(captures: [Vec<u8>; 2]) -> Analysis {
    analyse_captures_of_bytes(&captures)
}

/// Analyse captures of one path or network.
pub fn analyse_captures_of_bytes(captures: &[Vec<u8>]) -> Analysis {
    let open = |tap: Tap| reading_of(captures[tap.index()].clone(), None);
    let mut analysis = Analysis::new(everything());
    let outcome = analysis.read_pair_from(captures.len(), &open, None, None);
    assert!(outcome.is_ok(), "without a filter nothing can be refused: {outcome:?}");
    analysis.finish();
    explain(&mut analysis);
    let transits = analysis.results.pairing.as_ref().map_or(0, |pairing| pairing.transits.kept.len());
    assert!(transits <= MAX_SAMPLES);
    analysis
}

/// Options that collect every table, with bounds that a test reaches.
pub(crate) fn everything() -> Options {
    Options {
        rtt_s: Some(0.05),
        max_flows: MAX_FLOWS,
        max_samples: MAX_SAMPLES,
        max_decompressed_bytes: MAX_DECOMPRESSED_BYTES,
        ..Options::default().with_tables(TABLES.iter().map(|table| table.name.to_owned()).collect())
    }
}

fn reading_of(bytes: Vec<u8>, format: Option<InputFormat>) -> Reading {
    let progress = Arc::new(Progress::default());
    let input = Input::from_reader(Box::new(Cursor::new(bytes)), MAX_DECOMPRESSED_BYTES, &progress);
    Reading::with_input("bytes", input, format, &progress)
}

/// The uncompressed bytes of a gzip file; others as they are.
#[cfg(test)]
fn uncompressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(bytes), &mut out) {
        Ok(_) => out,
        Err(_) => bytes.to_vec(),
    }
}

/// Make every table, and check invariants of any capture: limits hold, no packet is lost, and the
/// parts add up to the whole.
pub fn check_tables(analysis: Analysis) {
    assert!(analysis.carried.flows.live() <= MAX_FLOWS as usize);
    assert!(analysis.results.samples.kept::<RttSample>().len() <= MAX_SAMPLES);
    assert!(analysis.results.variables.kept.len() <= MAX_SAMPLES);
    assert!(analysis.results.tfrc.findings.kept.len() <= MAX_SAMPLES);
    for report in &analysis.results.tfrc.feedback.kept {
        let rates = [report.p, report.inferred_p.map(|(p, _)| p), report.reported_p];
        assert!(rates.into_iter().flatten().all(|p| (0.0..=1.0).contains(&p)), "{report:?}");
        let taken = report.taken.iter().flat_map(|taken| [taken.r, taken.t_rto, taken.x]);
        assert!(taken.into_iter().all(|value| value.is_finite() && value >= 0.0), "{report:?}");
    }
    for source in &analysis.carried.sources {
        let ip = source.tcp_packets
            + source.udp_packets
            + source.dccp_packets
            + source.tfrc_packets
            + source.other_ip_packets;
        assert_eq!(source.packets, ip + source.non_ip_packets + source.undecoded_packets);
        assert!(source.captured_bytes <= source.wire_bytes);
    }
    let analysis = Arc::new(analysis);
    for rows in TABLES.iter().filter_map(|table| table.rows(&analysis, 1)) {
        let batch = rows.batch(0, rows.len());
        assert!(batch.is_ok_and(|batch| batch.num_rows() == rows.len()));
    }
    let flows = analysis.carried.flows.here().map(|number| analysis.carried.flows.get(number));
    let deliveries: Vec<_> = flows.filter_map(|flow| flow.deliveries()).collect();
    // A simulator's trace shows a packet several times.
    let is_capture = analysis.carried.sources.iter().all(|source| source.lines == 0);
    if is_capture && deliveries.is_empty() {
        check_sums(&analysis);
    }
    for side in [Side::Low, Side::High] {
        deliveries.iter().for_each(|deliveries| check_delivery(deliveries.of(side)));
    }
}

/// Every packet sent arrived, is lost, or is in flight.
fn check_delivery(delivery: &Delivery) {
    if delivery.totals.is_none() {
        let arrived = delivery.received - delivery.unsent;
        assert_eq!(delivery.sent, arrived + delivery.lost + delivery.in_flight);
    }
}

/// Flows, bins and the summary count the same packets and bytes.
fn check_sums(analysis: &Analysis) {
    let mut in_flows = (0, 0);
    let mut in_bins = (0, 0);
    let mut copies = 0;
    let read = analysis.carried.flows.for_each(|number, flow| {
        for side in [flow.forward(), flow.forward().other()] {
            let direction = flow.direction(side);
            in_flows.0 += direction.packets;
            copies += u64::from(flow.rarities(side).copies);
            in_flows.1 += direction.wire_bytes;
            // A simulated connection is watched at one end, and its packets are counted at both.
            let captured = flow.transport.tcp.as_ref().filter(|_| flow.deliveries().is_none());
            if let Some(half) = captured.map(|tcp| tcp.half(side)) {
                assert!(half.sent.unique_bytes + half.tally().retransmitted_bytes <= direction.payload_bytes);
            }
            for bin in analysis
                .results
                .bins
                .iter()
                .filter_map(|bins| bins.lane(number, side))
                .flat_map(PackedBins::iter)
            {
                in_bins.0 += bin.packets;
                in_bins.1 += bin.wire_bytes;
            }
        }
    });
    assert!(read.is_ok());
    assert_eq!(in_flows, in_bins);
    // A simulator shows the same packet at many places, and only where it is sent it counts.
    if analysis.carried.sources.iter().any(|source| source.lines > 0) {
        return;
    }
    let counted: u64 = analysis
        .carried
        .sources
        .iter()
        .map(|source| {
            let left_out = source.untracked_packets + source.portless_packets + source.repeated_packets;
            source.tcp_packets + source.udp_packets + source.dccp_packets - left_out
        })
        .sum();
    let taken = in_flows.0 + copies;
    // What several of the joined files have is in the summary of each.
    let has_overlap =
        analysis.carried.problems.iter().any(|problem| problem.error.kind == ProblemKind::Overlap);
    assert!(taken == counted || has_overlap && taken < counted, "{taken} of {counted} packets");
}

/// Pieces of `bytes`, each preceded by a byte with its length.
pub fn split_at_lengths(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while let Some((&length, after)) = bytes.split_first() {
        let (piece, after) = after.split_at(usize::from(length).min(after.len()));
        pieces.push(piece);
        bytes = after;
    }
    pieces
}

/// A little-endian microsecond pcap file of `packets`, one each millisecond.
pub fn pcap_of_packets(link_type: u32, packets: &[&[u8]]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    file.extend(link_type.to_le_bytes());
    for (number, packet) in packets.iter().enumerate() {
        let microseconds = 1_000 * number as u32;
        for field in [microseconds / 1_000_000, microseconds % 1_000_000] {
            file.extend(field.to_le_bytes());
        }
        for _ in 0..2 {
            file.extend((packet.len() as u32).to_le_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}
