"""`tfrctrace groups` in the forms of monitoring systems, as their own parsers read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = Path(__file__).resolve().parents[3] / "sample_traces"
TWO_FLOWS = SAMPLES / "two-flows.pcapng.gz"

NAMES = {
    "tfrctrace_retransmitted_segments": "retransmitted_segments",
    "tfrctrace_sack_retransmissions": "sack_retransmissions",
    "tfrctrace_zero_windows": "zero_windows",
    "tfrctrace_wire_bytes": "wire_bytes",
    "tfrctrace_connections_established": "connections_established",
}
"""Series, and the columns of groups that they are."""


def rows(run: Callable[..., Any], *options: str) -> list[dict[str, Any]]:
    return json.loads(run("groups", TWO_FLOWS, "-q", *options, "--format", "json").out)["groups"]


def test_the_parser_of_prometheus_reads_openmetrics(run: Callable[..., Any]) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    text = run("groups", TWO_FLOWS, "-q", "--by", "port", "--causes", "--format", "openmetrics").out
    assert text.endswith("\n# EOF\n")
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    expected = rows(run, "--by", "port", "--causes")
    for name, column in NAMES.items():
        assert families[name].type == "counter"
        found = {(one.labels["group"], one.labels["direction"]): one.value for one in families[name].samples}
        known = {(row["group"], row["direction"]): row[column] for row in expected if row[column] is not None}
        assert found == known
        assert {one.name for one in families[name].samples} == {f"{name}_total"}
    held = families["tfrctrace_shared_bottleneck_seconds"]
    assert held.unit == "seconds"
    assert sum(one.value for one in held.samples) * 1e9 == pytest.approx(
        sum(row["shared_bottleneck_ns"] or 0 for row in expected)
    )


def test_histograms_are_of_the_samples_that_rows_count(run: Callable[..., Any]) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    text = run("groups", TWO_FLOWS, "-q", "--by", "port", "--format", "openmetrics").out
    (rtt,) = (
        one for one in parser.text_string_to_metric_families(text) if one.name == "tfrctrace_rtt_seconds"
    )
    assert (rtt.type, rtt.unit) == ("histogram", "seconds")
    # each sample of the table of them, at or below the bounds
    header, *samples = run(
        "convert", TWO_FLOWS, "-q", "--what", "rtt", "--format", "csv", "-o", "-"
    ).out.splitlines()
    column = header.split(",").index("rtt_ns")
    seconds = [int(line.split(",")[column]) / 1e9 for line in samples]
    by_bound: dict[str, float] = {}
    for one in rtt.samples:
        if one.name.endswith("_bucket"):
            by_bound[one.labels["le"]] = by_bound.get(one.labels["le"], 0) + one.value
    sides = 2  # a packet is sent by one port and received by the other, of which the client's has none
    assert by_bound["+Inf"] * (2 // sides) == sum(
        row["rtt_samples"] or 0 for row in rows(run, "--by", "port")
    )
    share = by_bound["+Inf"] / len(seconds)
    for bound, count in by_bound.items():
        assert count == share * sum(time <= float(bound) for time in seconds)


def test_the_messages_of_opentelemetry_hold_otlp(run: Callable[..., Any]) -> None:
    messages = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    options = ("--by", "port", "--every", "5s")
    text = run("groups", TWO_FLOWS, "-q", *options, "--format", "otlp").out
    request = json_format.Parse(text, messages.ExportMetricsServiceRequest())
    (scope,) = request.resource_metrics[0].scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    expected = rows(run, *options)

    def place(point: Any) -> tuple[str, str, int, int]:
        labels = {one.key: one.value.string_value for one in point.attributes}
        return labels["group"], labels["direction"], point.start_time_unix_nano, point.time_unix_nano

    def of_row(row: dict[str, Any]) -> tuple[str, str, int, int]:
        return row["group"], row["direction"], row["start_ns"], row["end_ns"]

    retransmitted = metrics["tfrctrace.retransmitted_segments"].sum
    assert retransmitted.is_monotonic
    assert {place(point): point.as_int for point in retransmitted.data_points} == {
        of_row(row): row["retransmitted_segments"]
        for row in expected
        if row["retransmitted_segments"] is not None
    }
    rtt = metrics["tfrctrace.rtt"]
    assert rtt.unit == "s"
    known = {of_row(row): (row["rtt_samples"], row["rtt_sum_ns"]) for row in expected if row["rtt_samples"]}
    assert {
        place(point): (point.count, round(point.sum * 1e9)) for point in rtt.histogram.data_points
    } == known
    for point in rtt.histogram.data_points:
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
        assert sum(point.bucket_counts) == point.count


def test_a_line_of_json_is_a_row(run: Callable[..., Any]) -> None:
    lines = run("groups", TWO_FLOWS, "-q", "--format", "ndjson").out.splitlines()
    assert [json.loads(line) for line in lines] == rows(run)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--every", "1s", "--format", "openmetrics"), "a series of OpenMetrics has one point"),
        (("--under-load", "--format", "otlp"), "`--under-load` is not written as otlp"),
        (("--rows", "3", "--format", "ndjson"), "apply to the text table only"),
    ],
)
def test_what_a_form_cannot_have_is_refused(
    options: tuple[str, ...], words: str, run: Callable[..., Any]
) -> None:
    done = run("groups", TWO_FLOWS, *options)
    assert done.status == 2
    assert words in done.err
