//! qlog (draft-ietf-quic-qlog-main-schema, and version 0.3 before it): what an end of a QUIC connection logged itself, as
//! one JSON document or as a sequence of them (RFC 7464, or one in a line). Events become samples while they are read.

mod event;
mod records;
mod trace;

use serde::de::DeserializeSeed;

use super::Document;
use super::json::{BoundedReader, RECORD_SEPARATOR};
use crate::error::{ProblemKind, ReadError};
use crate::input::bytes::Input;
use crate::plural::counted;
use records::RecordSeed;
use trace::{FileFindings, TraceLog};

/// Whether a file that starts with these bytes is a qlog.
pub fn recognises(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let start = start.strip_prefix(&[RECORD_SEPARATOR]).unwrap_or(start).trim_ascii_start();
    let has = |word: &[u8]| memchr::memmem::find(start, word).is_some();
    let names_form = || has(b"\"qlog_version\"") || has(b"\"qlog_format\"") || has(b"urn:ietf:params:qlog");
    start.starts_with(b"{") && (names_form() || has(b"\"traces\"") && has(b"\"vantage_point\""))
}

/// Read all of `input`.
pub fn read(input: Input, document: &mut Document) -> Result<(), ReadError> {
    let mut guarded = BoundedReader::new(input)?;
    let mut findings = FileFindings::default();
    let outcome = read_records(&mut guarded, &mut findings);
    document.caveats = caveats(&findings);
    document.samples = findings.samples.take();
    document.hosts = findings.hosts;
    match outcome {
        Err(error) => Err(guarded.explain(&error)),
        Ok(()) if document.samples.is_empty() => {
            Err(ReadError::whole(ProblemKind::NoPackets, "there are no metrics of a known connection in it"))
        }
        Ok(()) => Ok(()),
    }
}

fn read_records(guarded: &mut BoundedReader, findings: &mut FileFindings) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_reader(guarded);
    let mut trace = TraceLog::default();
    let mut outcome = Ok(());
    // `end` checks that only white space is left.
    while outcome.is_ok() && json.end().is_err() {
        outcome = RecordSeed { trace: &mut trace, findings }.deserialize(&mut json);
    }
    trace.end(findings);
    outcome
}

fn caveats(findings: &FileFindings) -> Vec<String> {
    let mut caveats = Vec::new();
    if findings.has_unknown_clock {
        caveats.push("its clock has no date: times are since the first event".into());
    }
    if findings.unread_events > 0 {
        caveats.push(counted(findings.unread_events, "event[s] of a form that is not read"));
    }
    if findings.unread_connections > 0 {
        let further = counted(findings.unread_connections, "further connection[s] without addresses");
        caveats.push(format!("{further} left out"));
    }
    caveats.extend(findings.samples.caveat());
    caveats
}

#[cfg(test)]
mod tests;
