use std::io::Cursor;
use std::sync::Arc;

use super::*;
use crate::input::bytes::Progress;
use crate::packet::logged_variables::VariableSample;

fn read_text(text: &str) -> (Document, Result<(), ReadError>) {
    let progress = Arc::new(Progress::default());
    let input = Input::from_reader(Box::new(Cursor::new(text.as_bytes().to_vec())), None, &progress);
    let mut document = Document::default();
    let outcome = read(input.unwrap(), &mut document);
    (document, outcome)
}

fn named(samples: &[VariableSample], name: &str) -> Vec<(i64, f64)> {
    samples.iter().filter(|sample| sample.name == name).map(|sample| (sample.time_ns, sample.value)).collect()
}

const OLD: &str = r#"{"qlog_format": "JSON", "qlog_version": "0.3", "traces": [{"events": [
    {"data": {"cwnd": 12000, "bytes_in_flight": 538}, "name": "recovery:metrics_updated", "time": 1795435545412.5},
    {"data": {"latest_rtt": 51.25, "smoothed_rtt": "50", "min_rtt": null}, "name": "recovery:metrics_updated", "time": 1795435545464},
    {"data": {"type": "1RTT", "packet_number": 7}, "name": "recovery:packet_lost", "time": 1795435545465},
    {"data": {"frames": [{"frame_type": "ack", "ect1": 9, "ce": 2, "acked_ranges": [[0, 3]]}], "header": {}},
     "name": "transport:packet_received", "time": 1795435545466}],
    "vantage_point": {"name": "aioquic", "type": "server"}, "common_fields": {"ODCID": "5681ff6fe903cd43"}}]}"#;

#[test]
fn test_a_log_of_version_0_3() {
    let (document, outcome) = read_text(OLD);
    assert!(outcome.is_ok() && recognises(OLD.as_bytes()));
    let at = |ms: i64| ms * 1_000_000;
    assert_eq!(named(&document.samples, "cwnd"), [(at(1_795_435_545_412) + 500_000, 12_000.0)]);
    assert_eq!(named(&document.samples, "rtt"), [(at(1_795_435_545_464), 51.25)]);
    assert_eq!(named(&document.samples, "srtt"), [(at(1_795_435_545_464), 50.0)]);
    assert!(named(&document.samples, "minrtt").is_empty());
    assert_eq!(named(&document.samples, "lost_packets"), [(at(1_795_435_545_465), 1.0)]);
    assert_eq!(named(&document.samples, "reported_ce_packets"), [(at(1_795_435_545_466), 2.0)]);
    assert_eq!(document.hosts, ["client of 5681ff6fe903cd43", "server of 5681ff6fe903cd43"]);
    assert_eq!((document.samples[0].endpoints.src, document.samples[0].endpoints.dst), (1, 0));
}

#[test]
fn test_a_sequence_of_the_later_schema() {
    let records = [
        r#"{"file_schema": "urn:ietf:params:qlog:file:sequential", "serialization_format": "application/qlog+json-seq",
            "trace": {"vantage_point": {"type": "client"}, "common_fields": {"time_format": "relative_to_previous_event",
            "reference_time": {"clock_type": "system", "epoch": "2026-11-23T12:00:00Z"}}}}"#,
        r#"{"time": 2, "name": "quic:connection_started", "data": {"local": {"ip_v4": "10.0.0.1", "port_v4": 4000},
            "remote": {"ip_v4": "10.0.0.2", "port_v4": 443}}}"#,
        r#"{"time": 1.5, "name": "quic:recovery_metrics_updated", "data": {"congestion_window": 14720}}"#,
        r#"{"time": 1, "name": "quic:recovery_metrics_updated", "data": {"smoothed_rtt": 20.5}}"#,
    ];
    let noon_ns = 1_795_435_200_000_000_000;
    for separator in ["\u{1e}", ""] {
        let text: String = records.iter().map(|record| format!("{separator}{record}\n")).collect();
        assert!(recognises(text.as_bytes()));
        let (document, outcome) = read_text(&text);
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(named(&document.samples, "cwnd"), [(noon_ns + 3_500_000, 14_720.0)]);
        assert_eq!(named(&document.samples, "srtt"), [(noon_ns + 4_500_000, 20.5)]);
        let ends = document.samples[0].endpoints;
        assert_eq!((ends.src_port, ends.dst_port, ends.protocol), (4000, 443, 17));
        assert!(document.hosts.is_empty());
    }
}

#[test]
fn test_what_comes_before_an_error_is_kept() {
    let cut = &OLD[..OLD.find("recovery:packet_lost").unwrap()];
    let (document, outcome) = read_text(cut);
    assert!(outcome.is_err());
    assert_eq!(named(&document.samples, "cwnd").len(), 1);
    let (_, outcome) = read_text(
        r#"{"qlog_version": "0.3", "traces": [{"events": [{"time": []}, {"time": 1, "data": [1]}]}]}"#,
    );
    assert_eq!(outcome.unwrap_err().kind, ProblemKind::NoPackets);
}

#[test]
fn test_connections_without_addresses_are_bounded() {
    let trace = r#"{"events":[{"time":1,"name":"recovery:metrics_updated","data":{"cwnd":1}}]}"#;
    let traces = vec![trace; (1 << 16) + 3].join(",");
    let (document, outcome) = read_text(&format!(r#"{{"qlog_version":"0.3","traces":[{traces}]}}"#));
    outcome.unwrap();
    assert_eq!((document.hosts.len(), document.samples.len()), (2 << 16, 1 << 16));
    assert!(
        document.caveats.iter().any(|caveat| caveat == "3 further connections without addresses left out")
    );
}

#[test]
fn test_a_bomb_of_nested_traces_is_an_error() {
    let nested = [r#"{"qlog_version":"0.3","traces":["#, &r#"{"trace":"#.repeat(100_000)].concat();
    assert!(read_text(&nested).1.is_err());
}
