//! iperf3's JSON: `--json` (one document, or several in a row), and `--json-stream` (a document for
//! each event). Intervals become samples while they are read, so a document that was cut gives what
//! stands before the cut.
//!
//! Its totals of a test become no [`FlowTotals`](crate::packet::flow_totals::FlowTotals): next to a
//! capture of the same flow they would count its packets twice, and UDP totals do not separate
//! received bytes from sent ones.

mod model;
mod test_run;
mod visitors;

use serde::de::DeserializeSeed;

use super::Document;
use super::json::BoundedReader;
use crate::error::{ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::plural::counted;
use test_run::{FileFindings, TestRun};
use visitors::TestSeed;

/// Whether a file that starts with these bytes is iperf3's.
pub fn recognises(start: &[u8]) -> bool {
    let is_object =
        start.trim_ascii_start().strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let has = |word: &[u8]| memchr::memmem::find(start, word).is_some();
    let is_log = has(b"\"start\"") && has(b"\"connected\"");
    is_object.starts_with(b"{") && (is_log || has(b"\"cpu_utilization_percent\"") || has(b"\"iperf 3"))
}

/// Read all documents of `input`.
pub fn read(input: Input, document: &mut Document) -> Result<(), ReadError> {
    let mut guarded = BoundedReader::new(input)?;
    let mut findings = FileFindings::default();
    let outcome = read_tests(&mut guarded, &mut findings);
    document.samples = findings.samples.take();
    document.caveats = caveats(&findings, document.samples.is_empty());
    match outcome {
        Err(error) => Err(guarded.explain(&error)),
        Ok(()) if document.samples.is_empty() && findings.errors.is_empty() => {
            Err(ReadError::whole(ProblemKind::NoPackets, "there are no intervals of known streams in it"))
        }
        Ok(()) => Ok(()),
    }
}

fn read_tests(guarded: &mut BoundedReader, findings: &mut FileFindings) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_reader(guarded);
    let mut run = TestRun::default();
    let mut outcome = Ok(());
    // `end` checks that only white space is left.
    while outcome.is_ok() && json.end().is_err() {
        outcome = TestSeed { run: &mut run, findings }.deserialize(&mut json);
    }
    run.end(findings);
    outcome
}

fn caveats(findings: &FileFindings, is_empty: bool) -> Vec<String> {
    let mut caveats: Vec<String> =
        findings.errors.iter().map(|words| format!("iperf3 reports an error: {words}")).collect();
    if findings.is_coarse && !is_empty {
        caveats.push("this iperf3 logs its start in whole seconds: times may be up to a second early".into());
    }
    if findings.unknown_intervals > 0 {
        let what = "interval[s] left out whose stream or time is not known";
        caveats.push(counted(findings.unknown_intervals, what));
    }
    caveats.extend(findings.samples.caveat());
    caveats
}

#[cfg(test)]
mod tests;
