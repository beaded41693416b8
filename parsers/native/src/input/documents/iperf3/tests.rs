use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::input::bytes::Progress;
use crate::packet::logged_variables::{Unit, VariableSample};
use crate::testing::{analyse_bytes_as, check_tables};

const START: &str = r#""start": {"connected": [{"socket": 6, "local_host": "10.74.1.1", "local_port": 48904,
    "remote_host": "10.74.2.2", "remote_port": 5201}], "version": "iperf 3.12", "sock_bufsize": 0, "sock_bufsize": 0,
    "timestamp": {"time": "Sat, 21 Nov 2026 07:53:51 GMT", "timesecs": 1795247631},
    "connecting_to": {"host": "10.74.2.2", "port": 5201},
    "test_start": {"protocol": "TCP", "num_streams": 1, "omit": 0, "reverse": 0}}"#;
const FIRST: &str = r#"{"streams": [{"socket": 6, "start": 0, "end": 1.000103, "bits_per_second": 4563625.96101018,
    "retransmits": 118, "snd_cwnd": 17376, "snd_wnd": 211968, "rtt": 39225, "rttvar": 1655, "pmtu": 1500,
    "omitted": false, "sender": true}], "sum": {"end": 1.000103, "bytes": 570512}}"#;
const SECOND: &str = r#"{"streams": [{"socket": 6, "start": 1.000103, "end": 2.000133, "bits_per_second": 3127586.05,
    "retransmits": 14, "snd_cwnd": 14480, "rtt": 42319, "omitted": false, "sender": true}]}"#;
const END: &str = r#""end": {"cpu_utilization_percent": {"host_total": 0.03}}"#;
const START_NS: i64 = 1_795_247_631_000_000_000;

fn whole() -> String {
    format!("{{{START}, \"intervals\": [{FIRST}, {SECOND}], {END}}}\n")
}

fn read_bytes(bytes: &[u8]) -> (Document, Result<(), ReadError>) {
    let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let input = Input::from_reader(reader, None, &Arc::new(Progress::default())).unwrap();
    let mut document = Document::default();
    let outcome = read(input, &mut document);
    (document, outcome)
}

fn samples_of(text: &str) -> Vec<VariableSample> {
    let (document, outcome) = read_bytes(text.as_bytes());
    assert_eq!(outcome, Ok(()), "{text}");
    document.samples
}

fn value(samples: &[VariableSample], name: &str) -> Option<(f64, Unit)> {
    samples.iter().rev().find(|sample| sample.name == name).map(|sample| (sample.value, sample.unit))
}

#[test]
fn test_intervals_become_samples_of_the_sending_direction() {
    let (document, outcome) = read_bytes(whole().as_bytes());
    assert_eq!(outcome, Ok(()));
    let samples = document.samples;
    let (first, second) = samples.split_at(7);
    for (name, expected, unit) in [
        ("throughput", 4_563_625.961_010_18, Unit::Bps),
        ("cwnd", 17_376.0, Unit::Bytes),
        ("snd_wnd", 211_968.0, Unit::Bytes),
        ("srtt", 39.225, Unit::Ms),
        ("rttvar", 1.655, Unit::Ms),
        ("retransmits", 118.0, Unit::Packets),
        ("interval_retransmits", 118.0, Unit::Packets),
    ] {
        assert_eq!(value(first, name), Some((expected, unit)), "{name}");
    }
    assert!(first.iter().all(|sample| sample.time_ns == START_NS + 1_000_103_000));
    assert_eq!(value(second, "retransmits"), Some((132.0, Unit::Packets)));
    assert_eq!(value(second, "interval_retransmits"), Some((14.0, Unit::Packets)));
    let ends = samples[0].endpoints;
    assert_eq!((ends.src, ends.src_port, ends.dst_port, ends.protocol), (0x0a4a_0101, 48904, 5201, 6));
    assert_eq!(document.caveats.len(), 1, "whole seconds");
}

#[test]
fn test_events_one_per_line_and_sorted_keys_say_the_same() {
    let expected = samples_of(&whole());
    let event =
        |name: &str, data: &str| format!("{{\"event\":\"{name}\",\"data\":{data}}}\n").replace("\n    ", "");
    let start = START.strip_prefix("\"start\": ").unwrap();
    let stream =
        event("start", start) + &event("interval", FIRST) + &event("interval", SECOND) + &event("end", "{}");
    assert_eq!(samples_of(&stream), expected);
    assert!(recognises(stream.as_bytes()));
    let sorted = format!("{{{END}, \"intervals\": [{FIRST}, {SECOND}], {START}}}");
    assert_eq!(samples_of(&sorted), expected);
    let twice = samples_of(&whole().repeat(2));
    assert_eq!(twice, [expected.clone(), expected].concat());
}

#[test]
fn test_the_clock_starts_anew_behind_what_is_omitted() {
    let omitted = FIRST.replace("\"omitted\": false", "\"omitted\": true");
    let text =
        format!("{{{START}, \"intervals\": [{omitted}, {FIRST}]}}").replace("\"omit\": 0", "\"omit\": 1");
    let mut times: Vec<i64> = samples_of(&text).iter().map(|sample| sample.time_ns - START_NS).collect();
    times.dedup();
    assert_eq!(times, [1_000_103_000, 2_000_103_000]);
}

#[test]
fn test_who_sends() {
    let is_local = |text: &str| samples_of(text)[0].endpoints.src_port == 48904;
    let receiver = whole().replace("\"sender\": true", "\"sender\": false");
    assert!(!is_local(&receiver));
    assert_eq!(samples_of(&receiver)[0].name, "goodput");
    // Intervals omit it before 3.7.
    let old = whole().replace(", \"sender\": true", "");
    assert!(is_local(&old));
    assert!(!is_local(&old.replace("\"reverse\": 0", "\"reverse\": 1")));
    assert!(!is_local(&old.replace("connecting_to", "accepted_connection")));
}

#[test]
fn test_a_start_in_ms_needs_no_reservation() {
    let text = whole()
        .replace("\"timesecs\": 1795247631", "\"timesecs\": 1795247631, \"timemillisecs\": 1795247631250");
    let (document, outcome) = read_bytes(text.as_bytes());
    assert_eq!((outcome, document.caveats.len()), (Ok(()), 0));
    assert_eq!(document.samples[0].time_ns, START_NS + 250_000_000 + 1_000_103_000);
}

#[test]
fn test_a_cut_document_gives_what_stands_before() {
    let text = whole();
    let whole_samples = samples_of(&text);
    let cut = text.find("\"end\": 2.000133").unwrap();
    let (document, outcome) = read_bytes(&text.as_bytes()[..cut]);
    let error = outcome.unwrap_err();
    assert_eq!((error.kind, error.byte), (ProblemKind::Truncated, Some(cut as u64)));
    assert_eq!(document.samples, whole_samples[..7]);

    let broken = text.replace("\"end\": 2.000133", "\"end\": -nan");
    let (document, outcome) = read_bytes(broken.as_bytes());
    let error = outcome.unwrap_err();
    let at = error.byte.unwrap() as usize;
    assert_eq!((error.kind, error.line), (ProblemKind::Corrupt, Some(broken[..at].lines().count() as u64)));
    // The parser reads a byte or two ahead.
    assert!((0..=3).contains(&(at - broken.find("-nan").unwrap())), "{at}");
    assert_eq!(document.samples, whole_samples[..7]);
}

#[test]
fn test_what_would_fill_the_memory_is_an_error() {
    let deep = "[".repeat(1 << 20);
    let long = format!("{{\"x\": \"{}\"}}", "a\\\"".repeat(1 << 20));
    let number = format!("{{\"intervals\": [{{\"x\": {}}}]}}", "1".repeat(1 << 20));
    for text in [format!("{{\"x\": {deep}"), long, number] {
        let error = read_bytes(text.as_bytes()).1.unwrap_err();
        assert_eq!(error.kind, ProblemKind::Corrupt);
        assert!(error.byte.unwrap() < 70_000, "{error:?}");
    }
    let streams = format!("{{\"start\": {{\"connected\": [{}{{}}]}}}}", "{},".repeat(100_000));
    assert_eq!(read_bytes(streams.as_bytes()).1.unwrap_err().kind, ProblemKind::NoPackets);
}

#[test]
fn test_errors_of_iperf3_are_passed_on() {
    let (document, outcome) =
        read_bytes(br#"{"start": {"connected": []}, "intervals": [], "error": "unable to connect"}"#);
    assert_eq!(outcome, Ok(()));
    assert_eq!(document.caveats, ["iperf3 reports an error: unable to connect"]);
}

#[test]
fn test_intervals_of_unknown_streams_are_counted() {
    let text = whole().replacen("{\"streams\": [{\"socket\": 6", "{\"streams\": [{\"socket\": 7", 1);
    let (document, outcome) = read_bytes(text.as_bytes());
    assert_eq!((outcome, document.samples.len()), (Ok(()), 5));
    assert!(document.caveats.iter().any(|words| words.starts_with("1 interval left out")));
}

#[test]
fn test_it_is_recognised() {
    assert!(recognises(whole().as_bytes()) && recognises(b"\xef\xbb\xbf {\"start\": {\"connected\": "));
    for text in ["", "{}", "[{\"start\": 1, \"connected\": 2}]", "iperf 3", "{\"start\": {\"a\": 1}}"] {
        assert!(!recognises(text.as_bytes()), "{text}");
    }
}

proptest! {
    #[test]
    fn test_any_bytes_are_read(bytes: Vec<u8>) {
        let _ = recognises(&bytes);
        check_tables(analyse_bytes_as(bytes, "iperf3"));
    }

    #[test]
    fn test_tampered_documents_are_read(at in 0_usize..1500, with in "[-\\[\\]{}\",:a-z0-9.\\x00\\xff]{0,4}", remove in 0_usize..20) {
        let mut bytes = whole().into_bytes();
        let at = at.min(bytes.len());
        let end = (at + remove).min(bytes.len());
        bytes.splice(at..end, with.into_bytes());
        let (document, _) = read_bytes(&bytes);
        prop_assert!(document.samples.iter().all(|sample| sample.value.is_finite()));
    }
}
