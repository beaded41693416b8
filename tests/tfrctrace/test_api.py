"""The Python API."""

from __future__ import annotations

import inspect
import io
import sys
import warnings

import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tfrctrace
from tfrctrace.parsers.reading_settings import READING_DEFAULTS, ReadSettings, read_settings
from tfrctrace.parsers.schema import TABLES, polars_schema

FRAMES = ("flows", "bins", "rtt", "losses")


@pytest.fixture
def path(write_capture, conversation):
    return write_capture("link.pcap", [*conversation(1001), *conversation(1002, data_packets=200)])


@pytest.fixture
def passes(monkeypatch):
    """Return a list that grows with every pass over the inputs."""
    from tfrctrace.parsers import reading

    begun = []
    original = reading.Pass.__init__

    def counted(self, *arguments, **options):
        begun.append(arguments)
        original(self, *arguments, **options)

    monkeypatch.setattr(reading.Pass, "__init__", counted)
    return begun


@pytest.fixture
def standard_input(monkeypatch, path):
    """Put a capture on standard input."""
    import os

    saved = os.dup(0)
    with path.open("rb") as file:
        os.dup2(file.fileno(), 0)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    yield
    os.dup2(saved, 0)
    os.close(saved)


def test_the_public_names_are_there():
    assert all(hasattr(tfrctrace, name) for name in tfrctrace.__all__)


def test_help_lists_every_reading_keyword_with_the_default_that_holds():
    parameters = inspect.signature(tfrctrace.open).parameters
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values())
    keywords = {name: one.default for name, one in parameters.items() if name in READING_DEFAULTS}
    assert keywords == READING_DEFAULTS
    assert read_settings(keywords) == read_settings({}) == ReadSettings()


@pytest.mark.parametrize(
    ("method", "source"),
    [
        ("metrics", "measure"),
        ("replay", "replays"),
        ("closed_loop", "closed_loops"),
        ("one_step", "one_steps"),
    ],
)
def test_help_lists_the_parameters_of_a_method_that_passes_them_on(method, source):
    own, others = (inspect.signature(getattr(tfrctrace.Trace, name)) for name in (method, source))
    assert own.parameters == others.parameters
    assert own.return_annotation == "pl.DataFrame"
    assert "`least_packets`" in tfrctrace.Trace.metrics.__doc__


@pytest.mark.parametrize("name", FRAMES)
def test_frames_have_the_documented_columns_and_types(path, name):
    frame = getattr(tfrctrace.open(path), name)
    assert dict(frame.schema) == polars_schema(name)
    assert [column.name for column in TABLES[name]] == frame.columns


def test_packets_come_in_frames_with_the_documented_columns(path):
    frame = pl.concat(tfrctrace.open(path).packets())
    assert dict(frame.schema) == polars_schema("packets")
    assert frame["packet"].to_list() == list(range(1, frame.height + 1))


def test_counts_are_those_of_the_packets(path):
    trace = tfrctrace.open(path)
    packets = pl.concat(trace.packets())
    counted = packets.group_by("flow", "direction").agg(
        pl.len().cast(pl.UInt64).alias("packets"),
        pl.col("wire_bytes").sum().cast(pl.UInt64),
        pl.col("payload_bytes").sum().cast(pl.UInt64),
    )
    columns = ["flow", "direction", "packets", "wire_bytes", "payload_bytes"]
    assert counted.select(columns).sort("flow", "direction").equals(trace.flows.select(columns))


def test_nothing_is_read_before_it_is_asked_for_and_nothing_twice(path, passes):
    trace = tfrctrace.open(path)
    assert not passes
    assert "not read yet" in repr(trace)
    assert trace.flows.equals(trace.flows)
    assert trace.sources
    assert len(passes) == 1
    assert repr(trace) == f"<Trace of {path}: 2 flows, 418 packets>"
    assert trace.rtt.height
    assert trace.rtt.height
    assert len(passes) == 2


def test_several_tables_can_be_had_from_one_pass(path, passes):
    trace = tfrctrace.open(path)
    trace.read("flows", "bins", "rtt", "losses")
    for name in FRAMES:
        getattr(trace, name)
    assert len(passes) == 1


def test_throughput_has_bins_of_the_width_that_was_asked_for(path):
    trace = tfrctrace.open(path)
    throughput = trace.throughput("500ms")
    assert throughput["width_ns"].unique().to_list() == [500_000_000]
    assert throughput["wire_bytes"].sum() == trace.flows["wire_bytes"].sum()
    first = throughput.row(0, named=True)
    assert first["throughput_bps"] == first["wire_bytes"] * 8 / 0.5


def test_bins_can_be_given_a_width(path):
    assert tfrctrace.open(path, bin_width="20ms").bins["width_ns"].unique().to_list() == [20_000_000]


def test_a_wrong_width_is_wrong_usage(path):
    with pytest.raises(tfrctrace.UsageError, match="is not a duration"):
        tfrctrace.open(path).throughput("fast")


def test_a_filter_is_tcpdumps(path):
    assert tfrctrace.open(path, filter="port 1002").flows["src_port"].to_list() == [1002, 80]


def test_a_bad_filter_is_refused_at_once(path):
    with pytest.raises(tfrctrace.FilterError, match="syntax error"):
        tfrctrace.open(path, filter="tcp prt 80")


def test_several_captures_are_numbered_through_in_every_table(path, write_capture, conversation):
    other = write_capture("other.pcap", conversation(1003), start_s=1_700_000_500)
    trace = tfrctrace.open([path, other])
    assert trace.flows["flow"].to_list() == [1, 1, 2, 2, 3, 3]
    for frame in (trace.bins, trace.rtt, pl.concat(trace.packets())):
        assert frame["flow"].unique().sort().to_list() == [1, 2, 3]
        assert dict(frame.schema)["flow"] == pl.UInt32()


def test_captures_of_different_length_get_bins_of_one_width(path, write_capture, conversation):
    frames = conversation(1003, data_packets=3000)
    long = write_capture("long.pcap", frames)
    alone = tfrctrace.open(long).bins["width_ns"][0]
    assert alone > tfrctrace.open(path).bins["width_ns"][0], "the core should need wider bins for this one"
    assert tfrctrace.open([path, long]).bins["width_ns"].unique().to_list() == [alone]


def test_results_do_not_depend_on_the_number_of_threads(path, write_capture, conversation, monkeypatch):
    paths = [path, *(write_capture(f"{n}.pcap", conversation(2000 + n, data_packets=n)) for n in range(1, 9))]
    many = tfrctrace.open(paths)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    one = tfrctrace.open(paths)
    for name in FRAMES:
        assert getattr(many, name).equals(getattr(one, name))
    assert many.sources == one.sources


def test_when_nothing_can_be_read_an_error_has_the_facts(tmp_path):
    trace = tfrctrace.open([tmp_path / "a.pcap", tmp_path / "b.pcap"])
    with pytest.raises(tfrctrace.InputError) as caught:
        _ = trace.flows
    assert [problem["source"] for problem in caught.value.problems] == [
        str(tmp_path / "a.pcap"),
        str(tmp_path / "b.pcap"),
    ]
    with pytest.raises(tfrctrace.InputError):
        list(trace.packets())


def test_an_empty_directory_is_refused_at_once(tmp_path):
    with pytest.raises(tfrctrace.InputError, match="without any trace of a known format"):
        tfrctrace.open(tmp_path)


def test_what_was_read_with_a_reservation_warns_once(write_capture, conversation):
    trace = tfrctrace.open(write_capture("cut.pcap", conversation(), cut=3))
    with pytest.warns(tfrctrace.TfrctraceWarning, match="packet 12 at byte") as caught:
        _ = trace.flows
    assert len(caught) == 1
    assert caught[0].message.problem["packets_before"] == 11
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trace.bins.height
    assert [problem["packet"] for problem in trace.warnings] == [12]


def test_a_missing_capture_beside_a_good_one_is_a_warning(path, tmp_path):
    trace = tfrctrace.open([path, tmp_path / "nowhere.pcap"])
    with pytest.warns(tfrctrace.TfrctraceWarning, match="nowhere"):
        assert trace.flows.height == 4


def test_frames_become_pandas_in_one_call(path):
    trace = tfrctrace.open(path)
    for name in ("flows", "rtt", "tcp"):
        pd.testing.assert_frame_equal(trace.to_pandas(name), trace.table(name).frame().to_pandas())


def test_a_report_is_written_and_its_path_returned(path, tmp_path):
    written = tfrctrace.open(path).report(tmp_path / "link.html", title="A <title>")
    assert written == tmp_path / "link.html"
    page = written.read_text()
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert "A &lt;title&gt;" in page


@pytest.mark.usefixtures("standard_input")
def test_standard_input_is_read_once_and_answers_everything(path, passes):
    trace = tfrctrace.open("-")
    file = tfrctrace.open(path)
    for name in (*FRAMES, "tcp"):
        ours, theirs = getattr(trace, name), getattr(file, name)
        assert ours.drop("source", strict=False).equals(theirs.drop("source", strict=False))
    of_standard_input = [inputs for inputs, *_ in passes if inputs == ["-"]]
    assert len(of_standard_input) == 1
    # the mean RTT of joined bins is a mean of means, rounded once more
    assert_frame_equal(trace.throughput("500ms"), file.throughput("500ms"), rel_tol=1e-12)


@pytest.mark.usefixtures("standard_input")
def test_what_standard_input_cannot_answer_is_reported():
    trace = tfrctrace.open("-", bin_width="20ms")
    assert trace.bins.height
    with pytest.raises(tfrctrace.UsageError, match="bins of 20 ms, not a divisor of 50 ms"):
        trace.throughput("50ms")
    with pytest.raises(tfrctrace.ReadOnceError, match="table of packets was not collected"):
        list(trace.packets())


@pytest.mark.usefixtures("standard_input")
def test_standard_input_that_was_read_for_one_table_has_no_other():
    trace = tfrctrace.open("-")
    trace.read("flows")
    assert trace.flows.height == 4
    with pytest.raises(tfrctrace.ReadOnceError, match="rtt was not collected"):
        _ = trace.rtt


def test_a_rule_that_fits_no_flow_is_reported_once_for_any_number_of_tables(write_capture, conversation):
    trace = tfrctrace.open(write_capture("a.pcap", conversation(data_packets=30)))
    with pytest.warns(tfrctrace.TfrctraceWarning, match="fits no flow") as caught:
        trace.metrics("jain", labels=["nobody=port 1"])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace.metrics("rate_bps", labels=["nobody=port 1"])
